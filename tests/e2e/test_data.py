"""u, d, ls, rm, url: the mapped folders, in a folder store and in the Blob service, seen from both sides."""
import base64
import fcntl
import hashlib
import json
import os
import random
import re
import shutil
import signal
import ssl
import stat
import struct
import termios
import threading
import time
import urllib.error
import urllib.request

import pytest

import fault_proxy
from authority import Authority
from conftest import one_store

AWKWARD_NAMES = ["two words.txt", "it's", 'say "hi"', "Grüße 世界 🚀.txt", "a+b&c=d#e?f.txt", "100%", "%41", "semi;colon",
                 "-dash",
                 "$HOME", "*", "[x]", "{y}", "comma,", "a!b", "tilde~", ".hidden", "UPPER", "upper"]


def content(size, seed=0):
    return random.Random(seed).randbytes(size)


def tree(folder):
    """{relative path: bytes} of all files below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def entries(act, *words):
    """{name: entry} of `a ls --json`."""
    found = [json.loads(line) for line in act.run("ls", "--json", *words).out.splitlines()]
    assert all(e["version"] == 1 for e in found)
    return {e["name"]: e for e in found}


def away(act, path):
    """Takes a local path away, so that a download has to bring it."""
    target = act.project / path
    shutil.rmtree(target) if target.is_dir() else target.unlink()


# ---- up and down


@pytest.mark.smoke
def test_round_trip_of_a_folder(act, stored):
    names = [name for name in AWKWARD_NAMES if not set(name) & set(stored.unfit)]
    files = {f"data/voc/{i}/{name}": content(50 + i, i) for i, name in enumerate(names)}
    files["data/voc/empty"] = b""
    for path, data in files.items():
        act.write(path, data, mtime=1_500_000_000 + len(data))
    result = act.run("u", "data/voc")
    assert result.out == "" and result.err.strip(), "the summary is for people: stderr"
    assert stored.keys() == {path: len(data) for path, data in files.items()}
    for path, data in files.items():
        assert stored.get(path) == data
    away(act, "data/voc")
    act.run("d", "data/voc")
    assert tree(act.project / "data") == {path.removeprefix("data/"): data for path, data in files.items()}
    for path, data in files.items():
        assert (act.project / path).stat().st_mtime == 1_500_000_000 + len(data), path


def test_round_trip_of_a_file(act, stored):
    act.write("data/one.txt", "one", mtime=1_234_567_890)
    act.write("data/two.txt", "two")
    act.run("upload", "data/one.txt")
    assert stored.keys() == {"data/one.txt": 3}
    away(act, "data/one.txt")
    act.run("download", "data/one.txt")
    assert (act.project / "data/one.txt").read_text() == "one"
    assert (act.project / "data/one.txt").stat().st_mtime == 1_234_567_890


def test_a_name_is_not_a_prefix(act, stored):
    for path in ("data/voc2/a", "data/voc2012/b", "data/voc2.txt"):
        act.write(path, path)
    act.run("u", "data/voc2")
    assert set(stored.keys()) == {"data/voc2/a"}
    act.run("u", "data")
    away(act, "data")
    act.run("d", "data/voc2")
    assert tree(act.project / "data") == {"voc2/a": b"data/voc2/a"}
    assert set(entries(act, "data/voc2")) <= {"voc2/a", "a", "data/voc2/a"}
    act.run("-y", "rm", "data/voc2")
    assert set(stored.keys()) == {"data/voc2012/b", "data/voc2.txt"}


def test_the_whole_mapped_folder_and_spellings_of_paths(act, azure):
    act.write("data/x/y", "y")
    act.write("data/z", "z")
    act.run("u", "./data/")
    assert set(azure.keys()) == {"data/x/y", "data/z"}
    away(act, "data")
    act.run("d", str(act.project / "data/x"))
    act.run("d", "z", cwd=act.project / "data")
    assert tree(act.project / "data") == {"x/y": b"y", "z": b"z"}


def test_several_paths(act, azure):
    act.write("data/a", "a")
    act.write("output/b", "b")
    act.run("u", "data/a", "output/b")
    assert set(azure.keys()) == {"data/a", "output/b"}


def test_paths_inside_of_others_count_once(act, azure):
    for path in ("data/a/b/x", "data/a/y", "data/ab"):
        act.write(path, path)
    said = act.run("u", "data/a", "data/a/b", "data/ab").err
    assert "'data/a/b' is in 'data/a', and counts once" in said and "uploaded 3 objects" in said, said
    said = act.run("verify", "data/a/b/", "./data/a", "data/ab", "data/ab").err
    assert said.count("counts once") == 1 and "compared 3 objects" in said, said
    assert "removed 3 objects" in act.run("-y", "rm", "data/a/b", "data/a", "data/ab").err
    act.run("u", "--exclude", "b/", "data/a", "data/a/b")
    assert set(azure.keys()) == {"data/a/y", "data/a/b/x"}, "a filter takes less of a folder"


def test_as_many_paths_as_a_shell_finds(act):
    """'data/*': the time that they take is not that of all pairs of them, of which there are four million."""
    names = [f"data/{i}" for i in range(2000)]
    for name in names:
        act.write(name, "x")
    said = act.run("u", *names, names[0]).err
    assert "uploaded 2000 objects" in said, said


def test_blocks(act, stored):
    data = content(20_000_000 + 12345)
    act.write("data/big.bin", data)
    act.run("u", "data/big.bin")
    assert stored.get("data/big.bin") == data
    away(act, "data/big.bin")
    act.run("d", "data/big.bin")
    assert (act.project / "data/big.bin").read_bytes() == data


@one_store
def test_many_small_files(act, stored):
    files = {f"data/many/{i % 7}/{i:04}": str(i).encode() for i in range(150)}
    for path, data in files.items():
        act.write(path, data)
    act.run("u", "data/many")
    assert len(stored.keys()) == 150
    away(act, "data/many")
    act.run("d", "data/many")
    assert tree(act.project / "data/many") == {p.removeprefix("data/many/"): d for p, d in files.items()}


def test_unchanged_is_not_moved_again(act, azure, proxy):
    for i in range(5):
        act.write(f"data/f{i}", f"content {i}", mtime=1_600_000_000 + i)
    act.run("u", "data")
    assert sum(method == "PUT" for method, _ in proxy.seen) == 5
    proxy.seen.clear()
    act.run("u", "data")
    assert not [m for m, _ in proxy.seen if m == "PUT"]
    act.write("data/f3", "changed 3", mtime=1_700_000_000)
    act.run("u", "data")
    assert [p for m, p in proxy.seen if m == "PUT"] == [f"/actaccount/{azure.container}/files/data/f3"]
    proxy.seen.clear()
    act.run("d", "data")
    assert not [p for m, p in proxy.seen if m == "GET" and "comp=list" not in p]


@one_store
def test_changed_at_the_other_side_comes_down(act, stored):
    act.write("data/f", "mine", mtime=1_500_000_000)
    act.run("u", "data/f")
    stored.put("data/f", b"theirs!")
    act.run("d", "data/f")
    assert (act.project / "data/f").read_bytes() == b"theirs!"


def test_dry_run_moves_nothing(act, azure):
    act.write("data/a", "a")
    result = act.run("u", "--dry-run", "data/a")
    assert "data/a" in result.out + result.err
    assert azure.keys() == {}
    azure.put("data/b", b"b")
    act.run("d", "--dry-run", "data/b")
    assert not (act.project / "data/b").exists()
    act.run("rm", "--dry-run", "data/b")
    assert "would remove" not in act.run("rm", "--dry-run", "data/none", status=3).err
    assert set(azure.keys()) == {"data/b"}


def test_modes_links_and_empty_folders(act, stored):
    act.write("data/run.sh", "#!/bin/sh\n").chmod(0o755)
    (act.project / "data/link").symlink_to("run.sh")
    (act.project / "data/empty").mkdir()
    act.run("u", "data")
    away(act, "data")
    act.run("d", "data")
    data = act.project / "data"
    assert data.joinpath("run.sh").stat().st_mode & 0o777 == 0o755
    assert os.readlink(data / "link") == "run.sh"
    assert (data / "empty").is_dir()


def test_an_empty_folder_by_its_own_path(act, stored):
    for name in ("empty", "empty!", "emptier", "empty-1", "empty-2", "empty-3", "empty-4"):
        (act.project / "data" / name).mkdir(parents=True)
    act.run("u", "data")
    away(act, "data")
    for path in ("data/empty", "data/empty/"):
        assert act.run("ls", path).out == ""
        assert act.run("du", "--json", path).json["bytes"] == 0
        act.fail("cat", path, status=2, match="is a folder")
        act.run("d", "--dry-run", path)
        assert not (act.project / "data").exists()
        act.run("d", path)
        assert os.listdir(act.project / "data") == ["empty"]
        away(act, "data")
    act.fail("rm", "data/empty", status=2, match="-y")
    assert "1 object" in act.run("rm", "--dry-run", "data/empty").err
    assert "empty" in entries(act, "data") or "empty/" in entries(act, "data")
    assert "removed 1 object" in act.run("rm", "-y", "data/empty").err
    act.fail("ls", "data/empty", status=3, match="names that begin like it: 'data/empty")
    assert len(entries(act, "data")) == 6


def test_a_link_by_its_own_path(act):
    act.write("data/f", "content")
    act.write("data/sub/g", "g")
    links = {"l": "f", "dir": "sub", "dangling": "nothing", "sub/up": "../f"}
    for name, target in links.items():
        (act.project / "data" / name).symlink_to(target)
    act.run("u", "data")
    for name, target in links.items():
        path, stored = f"data/{name}", act.store / "files/data" / name
        assert entries(act, path)[os.path.basename(name)]["kind"] == "symlink"
        assert act.run("cat", path).out == target
        assert path in act.run("du", path).out
        act.run("verify", path)
        act.run("d", path)
        act.run("u", path)
        (act.project / path).unlink()
        act.run("d", path)
        assert os.readlink(act.project / path) == target
        act.run("rm", "-y", path)
        assert not stored.is_symlink()
        act.run("u", path)
        assert os.readlink(stored) == target
    act.run("verify", "data")
    shutil.move(act.store / "files/data", act.store / "elsewhere")
    (act.store / "files/data").symlink_to(act.store / "elsewhere")
    act.fail("ls", "data", status=1, match="'data': it is a symbolic link in")


# ---- clear errors


def test_paths_that_are_not_there(act, azure):
    act.fail("u", "data/nothing", status=3, match="data/nothing")
    act.fail("d", "data/nothing", status=3, match="data/nothing")
    act.fail("ls", "data/nothing", status=3)
    act.fail("-y", "rm", "data/nothing", status=3)
    act.fail("url", "data/nothing", status=3)
    assert not (act.project / "data").exists(), "nothing is made for what does not come"


def test_paths_that_are_not_mapped(act, azure):
    act.write("src/main.py", "x")
    message = act.fail("u", "src/main.py", status=3, match="src")
    assert "data" in message and "output" in message, "names the folders that are mapped"
    act.fail("u", "dat/x", status=3, match="data")
    act.fail("u", "../x", status=(2, 3))
    act.fail("d", "data/../../x", status=(2, 3))
    act.fail("u", "/etc/passwd", status=(2, 3))
    act.fail("u", status=2)


def test_names_that_no_store_can_have(act, stored):
    act.write("data/good", "good")
    bad = os.fsencode(act.project) + b"/data/not\xffutf8"
    with open(bad, "wb") as f:
        f.write(b"bad")
    result = act.run("u", "data", status=(1, 8))
    assert "act: " in result.err and "UTF-8" in result.err
    assert b"\xff" not in result.raw_err, "what is said can be shown"
    assert set(stored.keys()) <= {"data/good"}
    act.run("u", "data/good")
    os.unlink(bad)


def test_unreadable_file(act, azure):
    act.write("data/good", "good")
    act.write("data/secret", "x").chmod(0)
    act.respect_modes()
    plan = act.run("u", "--dry-run", "data", status=8)
    assert "data/good" in plan.out and "secret" not in plan.out
    assert "data/secret" in plan.err, plan
    result = act.run("u", "data", status=8)
    assert "data/secret" in result.err and azure.keys() == {"data/good": 4}


# ---- ls, rm, url


@pytest.mark.smoke
def test_ls(act, stored):
    act.write("data/voc/a.txt", "12345", mtime=1_500_000_000)
    act.write("data/voc/deep/b.txt", "1", mtime=1_500_000_000)
    act.write("data/top.txt", "")
    act.run("u", "data")
    names = {name.rstrip("/").split("/")[-1]: e for name, e in entries(act, "data/voc").items()}
    assert names["a.txt"]["size"] == 5 and names["a.txt"]["kind"] == "file"
    assert "deep" in names or "b.txt" in names
    assert act.run("ls", "data/voc").out == "a.txt\ndeep/\n"
    assert "a.txt" in act.run("ls", "data/voc/a.txt").out
    assert "top.txt" in act.run("ls", "data").out
    assert "top.txt" in act.run("ls", "data/").out


def test_ls_of_hostile_names(act, azure):
    act.account("store", account_name=azure.service.account, account_key=azure.service.key,
                container_name=azure.container, endpoint=azure.service.endpoint)
    azure.put("data/\u202ereversed", b"")
    azure.put("data/\x7fdelete", b"")
    assert b"\x7fdelete\n" in act.run("ls", "data").raw_out, "a pipe gets names as they are"
    assert act.on_terminal("ls", "data").splitlines()[:2] == [b"?delete", b"?reversed"]


def test_ls_of_many_pages(act, azure, proxy):
    for i in range(40):
        azure.put(f"data/{i:03}", b"x")
    pages = SmallPages(4)
    proxy.add(fault_proxy.Rule(pages, method="GET", path="comp=list.*delimiter|delimiter.*comp=list", times=None))
    assert sorted(name.split("/")[-1] for name in entries(act, "data")) == [f"{i:03}" for i in range(40)]
    assert pages.asked == 11, "the last page is empty"


class SmallPages:
    """Answers listings in pages of a few names, the last one empty, whatever the client would like."""

    def __init__(self, size):
        self.size, self.asked, self.first = size, 0, None

    def __call__(self, exchange):
        self.asked += 1
        marker = re.search(r"[?&]marker=page(\d+)", exchange.path)
        if not marker:
            self.first = exchange.forward()
        status, headers, body = self.first
        text = body.decode()
        blobs = re.findall(r"<Blob>.*?</Blob>", text, re.S)
        start = int(marker.group(1)) if marker else 0
        after = f"<NextMarker>page{start + self.size}</NextMarker>" if start < len(blobs) else "<NextMarker/>"
        head = text[:text.index("<Blobs>")]
        page = f"{head}<Blobs>{''.join(blobs[start:start + self.size])}</Blobs>{after}</EnumerationResults>"
        exchange.reply(status, headers, page.encode())


def test_rm_needs_a_word_without_a_terminal(act, azure):
    act.write("data/a", "a")
    act.run("u", "data/a")
    act.fail("rm", "data/a", status=2, match="-y")
    assert set(azure.keys()) == {"data/a"}
    act.run("rm", "-y", "data/a")
    assert azure.keys() == {}
    assert (act.project / "data/a").exists(), "the local file stays"


def test_rm_asks_on_a_terminal(act, azure):
    act.write("data/a", "a")
    act.write("data/b", "b")
    act.run("u", "data")
    for answer, left in ((b"n\n", 2), (b"\n", 2), (b"y\n", 0)):
        text = on_a_terminal(act, ["rm", "data"], answer)
        assert b"2" in text and b"?" in text, text
        assert len(azure.keys()) == left, (answer, text)


def on_a_terminal(act, words, answer, columns=80):
    """Runs a command on a pseudo terminal, types an answer, returns what it showed."""
    import pty
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        os.chdir(act.project)
        os.execve(act.programs / "a", ["a", *words], act.env)
    text, answered = b"", False
    while True:
        try:
            data = os.read(fd, 4096)
        except OSError:
            break
        if not data:
            break
        text += data
        if not answered and b"?" in text:
            os.write(fd, answer)
            answered = True
    os.waitpid(pid, 0)
    os.close(fd)
    return text


def test_rm_of_everything_below(act, stored):
    for i in range(50):
        act.write(f"data/x/{i}/f", "f")
    act.write("data/y", "y")
    act.run("u", "data")
    act.write("data/x/deep/er/f", "f")
    act.run("u", "data")
    result = act.run("rm", "-y", "data/x")
    assert "51 objects" in result.err
    assert set(stored.keys()) == {"data/y"}
    assert set(entries(act, "data")) == {"y"}, "no empty folders are left"
    act.fail("ls", "data/x", status=3)


def test_url_reads_the_file(act, stored):
    act.write("data/some file.txt", "by url")
    act.run("u", "data")
    url = act.run("url", "data/some file.txt").out.strip()
    with urllib.request.urlopen(url, timeout=300) as f:
        assert f.read() == b"by url"
    if stored.kind == "azure":
        assert stored.service.key not in url
        request = urllib.request.Request(url, data=b"x", method="PUT", headers={"x-ms-blob-type": "BlockBlob"})
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=300)


def test_url_with_nothing_but_a_sas(act, azure):
    sas = azure.service.container_sas(azure.container)
    act.account("store", account_name=azure.service.account, container_name=azure.container,
                endpoint=azure.service.endpoint, sas_token=sas)
    act.write("data/a.txt", "by url")
    act.run("u", "data")
    for words in (("url", "data/a.txt"), ("url", "--expires", "1h", "data/a.txt")):
        message = act.fail(*words, status=4, match="account_key, or a login.*--share-sas")
        assert "sig=" not in message
    url = act.run("url", "--share-sas", "data/a.txt").out.strip()
    assert url.endswith("?" + sas)
    with urllib.request.urlopen(url, timeout=300) as f:
        assert f.read() == b"by url"
    act.fail("url", "--share-sas", "--expires", "1h", "data/a.txt", status=2, match="'--expires' has no effect")


def test_url_of_a_key_is_signed_whatever_is_shared(act, azure):
    sas = azure.service.container_sas(azure.container)
    act.account("store", account_name=azure.service.account, container_name=azure.container,
                endpoint=azure.service.endpoint, account_key=azure.service.key, sas_token=sas)
    act.write("data/a.txt", "by url")
    act.run("u", "data")
    urls = act.run("url", "--share-sas", "--expires", "1h", "data/a.txt").out.split()
    assert len(urls) == 1 and "sr=b" in urls[0] and sas not in urls[0]


def test_url_of_a_folder_store_does_not_end(act):
    act.write("data/a.txt", "x")
    act.run("u", "data")
    assert act.run("url", "data/a.txt").out.startswith("file://")
    some = act.run("url", "data/nosuch", "data/a.txt", status=8)
    assert some.out.startswith("file://") and "cannot find 'data/nosuch'" in some.err
    act.fail("url", "--expires", "1h", "data/a.txt", status=2, match="'--expires' has no effect")


def test_rm_looks_at_all_words_before_it_removes(act):
    account = "aux_data/configs/store.yaml"
    act.cluster("aml", extra={"config_param": {
        "code_path": {"azure_blob_config_file": account, "path": "code.zip"},
        "data_folder": {"azure_blob_config_file": account, "path": "files/data"},
        "all_folder": {"azure_blob_config_file": account, "path": "files"}}})
    act.write("data/a", "x")
    act.write("data/b", "x")
    act.run("u", "data")
    for words, status in ((("data/a", "/elsewhere"), 2), (("data/a", "no-folder/x"), 3)):
        act.fail("rm", "-y", *words, status=status, match="nothing was removed")
        act.fail("rm", "-y", words[1], status=status)
    act.fail("rm", "-y", "data/a", "all", status=2, match="lies in it.*nothing was removed")
    assert act.run("ls", "data").out.split() == ["a", "b"]
    result = act.run("rm", "-y", "data/a", "data/none", status=8)
    assert "cannot find 'data/none'" in result.err and act.run("ls", "data").out.split() == ["b"]


@pytest.mark.parametrize("path, advice", [("data/*.txt", "--include '*.txt' data"),
                                          ("data/d[12]/*.txt", "--include 'd[12]/*.txt' data")])
@pytest.mark.parametrize("verb", ["upload", "download", "rm"])
def test_a_pattern_is_an_option(act, verb, path, advice):
    act.write("data/a.txt", "x")
    act.run("u", "data")
    failed = act.run(verb, path, status=3)
    assert f"a {verb} {advice}" in failed.err and f"{path}'" in failed.err.splitlines()[-1]
    assert "--include" not in act.run("ls", path, status=3).err  # takes no patterns


# ---- from one store to another


@pytest.mark.parametrize("source", ["folder", "azure", "same account"])
def test_store_to_store(act, azure, source):
    service = dict(account_name=azure.service.account, account_key=azure.service.key, endpoint=azure.service.endpoint)
    azure.service.create(second := azure.container + "-2")
    act.account("blob", container_name=azure.container, **service)
    act.account("blob2", container_name=second, **service)
    ends = {"folder": ("store", "blob"), "azure": ("blob", "store"), "same account": ("blob", "blob2")}
    act.cluster("from", account=ends[source][0], below="one")
    act.cluster("to", account=ends[source][1], below="two")
    files = {"data/voc/a b.txt": content(1000), "data/voc/deep/c": b"", "data/voc/big": content(9_000_000, 1)}
    for path, data in files.items():
        act.write(path, data, mtime=1_500_000_000)
    act.write("data/voc2012/other", "x")
    act.run("-c", "from", "u", "data")
    away(act, "data")
    act.run("-c", "to", "-f", "from", "u", "data/voc")
    assert not (act.project / "data").exists(), "nothing lands here on the way"
    act.run("-c", "to", "d", "data")
    assert tree(act.project) | {} == {**tree(act.project), **files}
    assert not (act.project / "data/voc2012").exists()
    assert (act.project / "data/voc/deep/c").stat().st_mtime == 1_500_000_000
    azure.service.request("DELETE", second, {"restype": "container"})


# ---- options


@pytest.mark.parametrize("words, match", [
    (["--memory", "4M"], "4.0 MiB of memory cannot hold one part of 8.0 MiB"),
    (["--memory", "16M", "--part-size", "32M"], "--part-size"),
    (["--part-size", "1T", "--memory", "2T"], "at most"),
    (["--part-size", "10"], "more than 50000 parts"),
    (["--transfers", "0"], "1 to 500"), (["--transfers", "501"], "1 to 500"),
    (["--bwlimit", "0"], "--bwlimit"), (["--bwlimit", "fast"], "--bwlimit"),
    (["--max-delete", "3"], "--delete"),
])
def test_values_that_cannot_be(act, azure, proxy, words, match):
    act.write("data/big", content(600_000))
    act.fail("u", *words, "data/big", status=2, match=match)
    assert not [m for m, _ in proxy.seen if m != "HEAD"], "nothing was started"
    assert azure.keys() == {}


def test_the_environment_gives_defaults(act, azure):
    act.write("data/a", "a")
    act.fail("u", "data", status=2, match="ACT_MEMORY", env={"ACT_MEMORY": "little"})
    act.fail("u", "data", status=2, match="4.0 MiB", env={"ACT_MEMORY": "4M"})
    act.run("u", "data", "--memory", "16M", env={"ACT_MEMORY": "4M"})
    act.run("ls", "data", env={"ACT_BWLIMIT": "1M"})
    assert azure.keys() == {"data/a": 1}


def test_parts_of_any_size(act, stored):
    data = content(1_000_003)
    act.write("data/f", data)
    act.run("u", "data/f", "--part-size", "100k", "--memory", "100k", "--transfers", "1")
    assert stored.get("data/f") == data
    away(act, "data/f")
    act.run("d", "data/f", "--part-size", "64k", "--memory", "1M", "--transfers", "30")
    assert (act.project / "data/f").read_bytes() == data


def test_summary(act, azure):
    act.write("data/a", "12345")
    act.write("data/b", "1")
    act.run("u", "data/a")
    lines = act.run("u", "data").err.splitlines()
    assert len(lines) == 1
    assert re.fullmatch(r"uploaded 1 object, 1 B in \d+\.\d s; 1 already the same", lines[0]), lines
    assert act.run("-q", "u", "data").err == ""


def test_summary_as_json(act, azure):
    act.write("data/a", "12345")
    act.write("output/b", "1")
    act.run("u", "data/a")
    result = act.run("u", "--json", "data", "output", "data/nothing", status=8)
    summary = result.json
    assert summary["version"] == 1 and summary["summary"] == "upload" and summary["dry_run"] is False
    counts = {k: summary[k] for k in ("objects", "bytes", "resumed_bytes", "same", "deleted", "failed")}
    assert counts == {"objects": 1, "bytes": 1, "resumed_bytes": 0, "same": 1, "deleted": 0, "failed": 0}
    assert summary["seconds"] > 0 and summary["failures"] == []
    assert [e["status"] for e in summary["errors"]] == [3] and "data/nothing" in summary["errors"][0]["text"]
    assert act.run("d", "--json", "data").err == ""


def test_the_plan(act, azure):
    act.write("data/same", "same", mtime=1_500_000_000)
    act.write("data/longer", "1", mtime=1_500_000_000)
    act.run("u", "data")
    act.write("data/longer", "1234567", mtime=1_500_000_000)
    act.write("data/sub dir/new", "123", mtime=1_500_000_000)
    result = act.run("u", "--dry-run", "data")
    lines = sorted(line.split(maxsplit=3) for line in result.out.splitlines())
    assert lines == [["copy", "3", "B", "data/sub dir/new  (new)"], ["copy", "7", "B", "data/longer  (size)"]]
    assert "would upload 2 objects, 10 B; 1 already the same" in result.err
    *steps, summary = map(json.loads, act.run("u", "--dry-run", "--json", "data/").out.splitlines())
    assert sorted((s["action"], s["size"], s["path"], s["reason"]) for s in steps) == [
        ("copy", 3, "data/sub dir/new", "new"), ("copy", 7, "data/longer", "size")]
    assert summary["dry_run"] and summary["objects"] == 2 and summary["bytes"] == 10
    assert azure.keys() == {"data/same": 4, "data/longer": 1}
    away(act, "data")
    assert sorted(line.split("  ")[-2] for line in act.run("d", "--dry-run", "data").out.splitlines()) == [
        "data/longer", "data/same"]
    assert not (act.project / "data").exists()


def test_a_path_that_fails_does_not_stop_the_next(act, azure):
    act.write("data/a", "a")
    act.write("output/b", "b")
    result = act.run("u", "data/a", "data/nothing", "data/none", "output/b", status=8)
    assert azure.keys() == {"data/a": 1, "output/b": 1}
    assert "uploaded 2 objects" in result.err
    errors = [line for line in result.err.splitlines() if line.startswith("act: ")]
    assert len(errors) == 2 and "data/nothing" in errors[0] and "data/none" in errors[1]
    act.run("u", "data/nothing", "data/neither", status=3)
    result = act.run("d", "data/nothing", "data/a", status=8)
    assert "nothing" in result.err.splitlines()[-1]


@pytest.mark.parametrize("verb", ["u", "d"])
def test_a_path_that_cannot_be_stops_all(act, verb):
    """A source and a target are given to scp."""
    act.write("data/a", "a")
    act.run("u", "data/a")
    (act.project / "data/a" if verb == "d" else act.store / "files/data/a").unlink()
    before = tree(act.scratch)
    for path, status in (("/some/where", 2), ("elsewhere/x", 3)):
        act.fail(verb, path, status=status)
        message = act.fail(verb, "data", path, status=status, match="nothing was copied")
        assert f"'{path}'" in message and "each is copied to the same place" in message
    both = act.run(verb, "elsewhere/x", "data", "/some/where", status=3)
    assert "elsewhere/x" in both.err and "/some/where" in both.err
    summary = act.run(verb, "--json", "data", "elsewhere/x", status=3).json
    assert summary["objects"] == 0 and [e["status"] for e in summary["errors"]] == [3]
    assert tree(act.scratch) == before


# ---- a destination that cannot be


def test_a_file_where_a_folder_is(act, stored):
    act.write("data/x/file", "1")
    act.write("data/y", "2")
    act.run("u", "data")
    away(act, "data")
    act.write("data/x", "now a file")
    act.write("data/y/file", "now a folder")
    for direction in ("u", "d"):
        for path in ("data/x", "data/y"):
            message = act.fail(direction, path, status=1, match=f"'{path}': it is a (file|folder), and a (file|folder)")
            assert "file" in message and "folder" in message
    assert stored.keys() == {"data/x/file": 1, "data/y": 1}
    assert tree(act.project / "data") == {"x": b"now a file", "y/file": b"now a folder"}
    act.fail("u", "data/x/", status=3, match="file, not a folder")


def test_the_source_is_the_destination(act, azure):
    keys = dict(account_name=azure.service.account, container_name=azure.container, endpoint=azure.service.endpoint)
    act.account("one", account_key=azure.service.key, **keys)
    act.account("other", sas_token=azure.service.container_sas(azure.container), **keys)
    act.cluster("one", account="one")
    act.cluster("other", account="other")
    act.cluster("inner", account="other", below="files/data")
    act.write("data/a", "a")
    act.run("u", "data")
    act.fail("-c", "other", "-f", "one", "u", "data", status=2, match="same place on both sides")
    act.fail("-c", "other", "-f", "one", "u", "data/a", status=2, match="same place on both sides")
    act.fail("-c", "inner", "-f", "one", "u", "data", status=2, match="one lies in the other")
    act.fail("-c", "one", "-f", "inner", "u", "data", status=(2, 3))
    assert azure.keys() == {"data/a": 1}


@pytest.mark.parametrize("store, below", [("data/store", "files"), ("data", "."), ("", "data/inner")])
def test_the_store_is_in_the_folder_or_the_reverse(act, store, below):
    act.account("store", folder=str(act.project / store))
    act.cluster("aml", below=below)
    act.write("data/a", "a")
    before = tree(act.project)
    act.fail("u", "data", status=2, match="one lies in the other|same place")
    act.fail("-y", "u", "--delete", "data", status=2, match="one lies in the other|same place")
    assert {k: v for k, v in tree(act.project).items()} == before


def test_a_link_to_the_store_itself(act):
    act.write("data/a", "a")
    act.run("u", "data")
    away(act, "data")
    (act.project / "data").symlink_to(act.store / "files/data")
    act.fail("u", "data", status=2, match="same place")
    act.fail("d", "data", status=2, match="same place")
    assert tree(act.store / "files") == {"data/a": b"a"}


# ---- interrupted


@pytest.mark.parametrize("how, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted(act, azure, proxy, how, status):
    for i in range(4):
        act.write(f"data/{i}", content(100_000, i))
    stall = threading.Event()

    def keep_waiting(exchange):
        stall.wait(30)
        exchange.reset()

    proxy.add(fault_proxy.Rule(keep_waiting, method="PUT", times=None))
    client = act.start("u", "data")
    act.until(lambda: any(m == "PUT" for m, _ in proxy.seen), "something is under way")
    client.send_signal(how)
    out, err = client.communicate()
    stall.set()
    assert client.returncode == status, err
    assert out == b"" and err.splitlines()[-1] == b"act: interrupted; the same command goes on where it stopped"
    proxy.rules.clear()
    act.run("u", "data")
    assert azure.keys() == {f"data/{i}": 100_000 for i in range(4)}


# ---- on a terminal


def test_the_line_on_a_terminal(act, azure, proxy):
    """It stays within the width, with a bar where there is room, and is gone at the end."""
    for i in range(30):
        act.write(f"data/{i}", "x" * i)
    proxy.add(fault_proxy.Rule(slow(0.1), method="PUT", times=None))
    for columns in (40, 80, 200):
        words = ["u", "--checksum", "--overwrite", "--transfers", "2", "data"]
        shown = on_a_terminal(act, words, b"", columns=columns)
        lines = shown.replace(b"\r\n", b"\n").split(b"\r")
        assert len(lines) > 2, shown
        assert max(len(re.sub(rb"\x1b\[K", b"", line.split(b"\n")[0])) for line in lines[:-1]) < columns
        assert lines[-1].startswith(b"\x1b[Kuploaded 30 objects, "), shown
        assert re.search(rb"uploading \d+% " + (rb"\[#*\.*\] " if columns > 80 else b""), shown), shown
        for i in range(30):
            act.write(f"data/{i}", f"{columns}" * (i + 1))
    assert "%" not in act.run("u", "--overwrite", "data").err


@pytest.mark.parametrize("verb, doing", [("u", b"uploading"), ("d", b"downloading")])
def test_the_line_moves_within_a_part(act, azure, verb, doing):
    """A file of one part, under a limit that lets it take three seconds: what is on its way counts."""
    act.write("data/f", os.urandom(3 << 20))
    if verb == "d":
        act.run("u", "data")
        (act.project / "data/f").unlink()
    shown = on_a_terminal(act, [verb, "--bwlimit", "1M", "data"], b"")
    shares = {int(share) for share in re.findall(doing + rb" (\d+)%", shown)}
    assert shares - {0, 99, 100}, shown


def test_the_first_line_has_what_was_listed(act, azure, proxy):
    """The destination is slow to tell what is there."""
    for i in range(3):
        act.write(f"data/{i}", b"x" * 1024)
    proxy.add(fault_proxy.Rule(slow(1), method="GET", path="comp=list", times=None))
    assert b"uploading, comparing 3+ objects, 3.0 KiB+" in on_a_terminal(act, ["u", "data"], b"")
    act.write("data/1", b"y" * 2048)
    proxy.rules.clear()
    proxy.add(fault_proxy.Rule(slow(1), method="HEAD", times=None))
    assert b"uploading, comparing 1 object, 2.0 KiB" in on_a_terminal(act, ["u", "data/1"], b"")


def slow(seconds):
    def act(exchange):
        time.sleep(seconds)
        exchange.reply(*exchange.forward())
    return act

# ---- hostile content of a store


@pytest.mark.parametrize("name",
                         ["data/../../x", "data/a/../../../x", "data/./x", "data//x", "data/x/..", "data/a\\..\\b"])
def test_hostile_names_are_refused(act, azure, name):
    act.account("store", account_name=azure.service.account, account_key=azure.service.key,
                container_name=azure.container, endpoint=azure.service.endpoint)
    before = sorted(p for p in act.scratch.rglob("*"))
    raw_put(azure, f"files/{name}", b"evil")
    azure.put("data/good", b"good")
    result = act.run("d", "data", status=None)
    assert (act.project / "data/good").read_bytes() == b"good", result
    made = sorted(str(p.relative_to(act.scratch)) for p in act.scratch.rglob("*") if p not in before)
    outside = [p for p in made if not p.startswith(("project/data", "act-home"))]
    assert not outside, outside
    if ".." in name.split("/") or "/./" in name or "//" in name:
        assert result.status == 8 and "act: " in result.err, result


def raw_put(azure, key, data):
    """Puts a blob whose name no well-meaning client would send."""
    sas = azure.service.container_sas(azure.container)
    quoted = key.replace("..", "%2E%2E").replace("/./", "/%2E/").replace("\\", "%5C")
    request = urllib.request.Request(f"{azure.service.endpoint}/{azure.container}/{quoted}?{sas}", data=data,
                                     method="PUT", headers={"x-ms-blob-type": "BlockBlob"})
    urllib.request.urlopen(request, timeout=300).read()


@one_store
def test_links_that_lead_out_are_refused(act, stored):
    """Neither is a link followed that is there already, nor one made that leads out."""
    outside = act.scratch / "outside"
    outside.mkdir()
    stored.put("data/sub/file", b"evil")
    (act.project / "data").mkdir()
    (act.project / "data/sub").symlink_to(outside)
    result = act.run("d", "data", status=None)
    assert list(outside.iterdir()) == [], result
    assert result.status != 0


def test_a_link_in_the_service_that_leads_out(act, azure):
    act.account("store", account_name=azure.service.account, account_key=azure.service.key,
                container_name=azure.container, endpoint=azure.service.endpoint)
    azure.service.put(f"{azure.container}/files/data/link", b"/etc/passwd", {"x-ms-meta-is_symlink": "true"})
    result = act.run("d", "data", status=None)
    link = act.project / "data/link"
    assert not link.is_symlink() or not os.readlink(link).startswith("/"), result


def test_a_download_replaces_whole_files_only(act, azure, proxy):
    old = content(9_000_000, 1)
    act.write("data/f", old, mtime=1_400_000_000)
    azure.put("data/f", content(9_000_000, 2))
    act.env.update(ACT_MAX_RETRIES="1")
    proxy.add(fault_proxy.truncate(method="GET", path="/data/f", times=None))
    act.fail("d", "data/f", status=(1, 5))
    assert tree(act.project / "data") == {"f": old}


# ---- other clients of the same service


@pytest.fixture
def many(act):
    """Local files of all kinds, as {path below data/: bytes}."""
    files = {f"peer/{name}": content(100 + i, i) for i, name in enumerate(AWKWARD_NAMES) if "\\" not in name}
    files.update({"peer/deep/er/big.bin": content(20_000_000, 99), "peer/empty": b""})
    return files


@pytest.fixture
def in_azure(act, azure):
    act.account("store", account_name=azure.service.account, account_key=azure.service.key,
                container_name=azure.container, endpoint=azure.service.endpoint)
    return azure


@pytest.mark.smoke
def test_azcopy_reads_what_act_wrote(act, in_azure, azcopy, many, scratch):
    for path, data in many.items():
        act.write(f"data/{path}", data)
    act.run("u", "data")
    azcopy.copy(azcopy.blob("data/*"), str(scratch / "theirs"), "BlobLocal", "--check-md5", "FailIfDifferentOrMissing")
    assert tree(scratch / "theirs") == many


def test_act_reads_what_azcopy_wrote(act, in_azure, azcopy, many, scratch):
    for path, data in many.items():
        target = scratch / "theirs" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    azcopy.copy(str(scratch / "theirs/peer"), azcopy.blob("data"), "LocalBlob", "--put-md5")
    act.run("d", "data")
    assert tree(act.project / "data") == many


@pytest.mark.smoke
def test_rclone_reads_what_act_wrote(act, in_azure, rclone, many, scratch):
    for path, data in many.items():
        act.write(f"data/{path}", data, mtime=1_500_000_000)
    act.run("u", "data")
    rclone.run("copy", rclone.remote("data"), str(scratch / "theirs"))
    assert tree(scratch / "theirs") == many
    assert (scratch / "theirs/peer/deep/er/big.bin").stat().st_mtime == 1_500_000_000
    rclone.run("check", rclone.remote("data"), str(act.project / "data"), "--download")


def test_act_reads_what_rclone_wrote(act, in_azure, rclone, many, scratch):
    for path, data in many.items():
        target = scratch / "theirs" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        os.utime(target, (1_400_000_000, 1_400_000_000))
    rclone.run("copy", str(scratch / "theirs"), rclone.remote("data"))
    act.run("d", "data")
    assert tree(act.project / "data") == many
    assert (act.project / "data/peer/deep/er/big.bin").stat().st_mtime == 1_400_000_000


def test_a_checksum_of_the_whole_is_stored(act, in_azure):
    """The MD5, and of what went in parts the CRC-64 too."""
    for path, size in (("small", 10), ("big", 20_000_000)):
        data = content(size)
        act.write(f"data/{path}", data)
        act.run("u", f"data/{path}")
        head = in_azure.service.head(f"{in_azure.container}/files/data/{path}")
        assert head["content-md5"] == base64.b64encode(hashlib.md5(data).digest()).decode()
    assert len(head["x-ms-meta-act_crc64"]) == 16


# What one tool brought to the other side leaves nothing to do for the next: large files and small ones, checksums and
# times.


def nothing_for_rclone(rclone, folder, remote):
    for source, target in ((folder, remote), (remote, folder)):
        rclone.run("check", source, target)
        said = rclone.run("sync", "--dry-run", "-v", source, target)
        assert "Skipped" not in said and "There was nothing to transfer" in said, said


def nothing_for_azcopy(azcopy, folder, blob):
    """Up only: downwards it goes by when the blob was written, which is always later than the file."""
    said = azcopy.run("sync", folder, blob, "LocalBlob", "--dry-run", "--delete-destination", "true")
    assert "DRYRUN" not in said, said


def nothing_for_act(act, n):
    for words in (["u", "data"], ["d", "data"]):
        result = act.run(*words, "--dry-run", "--delete")
        assert result.out == "" and f"{n} already the same" in result.err, result
    act.run("verify", "data")


def azure_has_marker(azure, key):
    return azure.service.head(f"{azure.container}/files/{key}")["x-ms-meta-hdi_isfolder"] == "true"


def test_nothing_to_do_after_act(act, in_azure, azcopy, rclone, many):
    for path, data in many.items():
        act.write(f"data/{path}", data, mtime=1_500_000_000)
    (act.project / "data/peer").chmod(0o700)
    act.run("u", "data")
    assert azure_has_marker(in_azure, "data/peer")
    nothing_for_rclone(rclone, str(act.project / "data"), rclone.remote("data"))
    nothing_for_azcopy(azcopy, str(act.project / "data"), azcopy.blob("data"))
    away(act, "data")
    act.run("d", "data")
    nothing_for_rclone(rclone, str(act.project / "data"), rclone.remote("data"))
    nothing_for_act(act, len(many))


def test_nothing_to_do_after_rclone(act, in_azure, rclone, many):
    for path, data in many.items():
        act.write(f"data/{path}", data, mtime=1_500_000_000)
    rclone.run("copy", str(act.project / "data"), rclone.remote("data"))
    nothing_for_act(act, len(many))
    away(act, "data")
    rclone.run("copy", rclone.remote("data"), str(act.project / "data"))
    nothing_for_act(act, len(many))


def test_nothing_to_do_after_azcopy(act, in_azure, azcopy, many):
    for path, data in many.items():
        act.write(f"data/{path}", data, mtime=1_500_000_000)
    azcopy.copy(str(act.project / "data/peer"), azcopy.blob("data"), "LocalBlob", "--put-md5")
    nothing_for_act(act, len(many))
    away(act, "data")
    azcopy.copy(azcopy.blob("data/peer"), str(act.project / "data"), "BlobLocal")
    nothing_for_act(act, len(many))


def test_content_that_was_damaged_is_noticed(act, azure, proxy):
    data = content(1000)
    act.write("data/f", data)
    act.run("u", "data/f")
    away(act, "data")
    act.env.update(ACT_MAX_RETRIES="1")
    proxy.add(fault_proxy.change_body(lambda b: b[:500] + bytes([b[500] ^ 1]) + b[501:], method="GET",
                                      path="/data/f", times=None))
    act.fail("d", "data/f", status=(1, 5), match="(?i)md5|checksum|differ|damaged")
    assert not (act.project / "data/f").exists()


# ---- every form of an account file


def account_forms(service, container):
    base = dict(account_name=service.account, container_name=container, endpoint=service.endpoint)
    port = service.port
    return {
        "key": dict(base, account_key=service.key),
        "sas": dict(base, sas_token=service.container_sas(container)),
        "sas with question mark": dict(base, sas_token="?" + service.container_sas(container)),
        "account sas": dict(base, sas_token="?" + service.account_sas()),
        "both, key wanted": dict(base, account_key=service.key, sas_token="?sv=1&sig=bad", auth="key"),
        "both, sas wanted": dict(base, account_key="bm90IGEga2V5", sas_token=service.account_sas(), auth="sas"),
        "legacy nulls": dict(base, account_key=service.key, sas_token=None),
        "endpoint with slash": dict(base, account_key=service.key, endpoint=service.endpoint + "/"),
        "host style, key": dict(base, account_key=service.key,
                                endpoint=f"http://{service.account}.blob.localhost:{port}"),
        "host style, sas": dict(base, sas_token=service.container_sas(container),
                                endpoint=f"http://{service.account}.blob.localhost:{port}"),
    }


@pytest.mark.parametrize("form", list(account_forms(type("S", (), dict(
    account="", key="", endpoint="", port=0, container_sas=lambda *_: "", account_sas=lambda *_: ""))(), "")))
def test_account_forms(act, azure, form):
    act.account("store", **account_forms(azure.service, azure.container)[form])
    act.write("data/a b+c.txt", "x")
    act.write("data/sub/d", content(10_000))
    act.run("u", "data")
    assert azure.keys() == {"data/a b+c.txt": 1, "data/sub/d": 10_000}
    assert "a b+c.txt" in act.run("ls", "data").out
    away(act, "data")
    act.run("d", "data")
    assert set(tree(act.project / "data")) == {"a b+c.txt", "sub/d"}
    act.run("rm", "-y", "data")
    assert azure.keys() == {}


@pytest.mark.parametrize("variable", ["AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"])
def test_secret_from_the_environment(act, azure, variable):
    act.account("store", account_name=azure.service.account, container_name=azure.container,
                endpoint=azure.service.endpoint)
    value = azure.service.key if variable.endswith("KEY") else "?" + azure.service.container_sas(azure.container)
    act.write("data/a", "a")
    host = azure.service.endpoint.split("/")[2]
    act.run("u", "data", env={variable: value, "ACT_TRUSTED_HOSTS": host})
    assert azure.keys() == {"data/a": 1}


def test_https_is_verified(act, azure, scratch):
    authority = Authority(scratch)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.issue())
    server = fault_proxy.FaultProxy(("127.0.0.1", azure.service.port), tls)
    try:
        act.account("store", account_name=azure.service.account, account_key=azure.service.key,
                    container_name=azure.container, endpoint=f"https://127.0.0.1:{server.port}/actaccount")
        act.write("data/a", "a")
        message = act.fail("u", "data", status=None, match="certificate", env={"ACT_MAX_RETRIES": "0"})
        assert f"127.0.0.1:{server.port}" in message or "127.0.0.1" in message
        assert azure.keys() == {} and not server.seen
        act.write("empty.pem", "")
        for file in ("nowhere.pem", "empty.pem"):
            for variable in ("ACT_CA_FILE", "SSL_CERT_FILE"):
                act.fail("u", "data", status=7, match=f"certificates in '{act.project}/{file}'",
                         env={variable: str(act.project / file)})
        act.run("u", "data", env={"ACT_CA_FILE": str(authority.file)})
        assert azure.keys() == {"data/a": 1}
    finally:
        server.close()


@one_store
def test_nothing_is_left_beside_the_files(act, stored):
    """No temporary files, neither here nor in a folder store."""
    act.write("data/a", content(9_000_000))
    act.run("u", "data")
    away(act, "data")
    act.run("d", "data")
    names = [p.name for root in (act.project / "data", act.store) if root.exists() for p in root.rglob("*")
             if p.is_file()]
    assert set(names) == {"a"}, names
    assert stat.S_IMODE((act.project / "data/a").stat().st_mode) & 0o600 == 0o600
