"""Listing, measuring, removing and reading what a store has."""
import json
import random
import re
import signal
import subprocess
import threading

import pytest

import fault_proxy
from conftest import one_store


def lines(act, *words, **options):
    return act.run(*words, **options).out.splitlines()


def objects(act, *words):
    """What `a ... --json` prints: an object on each line."""
    found = [json.loads(line) for line in lines(act, *words, "--json")]
    assert all(e["version"] == 1 for e in found)
    return found


@pytest.fixture
def voc(act, stored):
    """data/voc with a few files, at the store; data/voc2012 beside it."""
    for path, size in {"a.txt": 5, "deep/b.txt": 2000, "deep/er/c": 1, "deep-not/d": 3, "z": 0}.items():
        act.write(f"data/voc/{path}", b"x" * size, mtime=1_500_000_000)
    act.write("data/voc2012/other", "no")
    act.run("u", "data")
    return stored


# ---- ls


@pytest.mark.smoke
def test_ls_is_names(act, voc):
    assert lines(act, "ls", "data/voc") == ["a.txt", "deep-not/", "deep/", "z"]
    assert lines(act, "ls", "-r", "data/voc") == ["a.txt", "deep-not/d", "deep/b.txt", "deep/er/c", "z"]
    assert lines(act, "ls", "data/voc/deep/b.txt") == ["b.txt"]
    assert lines(act, "ls", "data/voc/deep", "data/voc/z") == ["data/voc/deep:", "b.txt", "er/", "data/voc/z:", "z"]


@one_store
def test_ls_counts_on_stderr(act, voc):
    assert act.run("ls", "data/voc").err == "2 folders, 2 objects, 5 B\n"
    assert act.run("ls", "-r", "data/voc").err == "5 objects, 2.0 KiB\n"
    assert act.run("ls", "data").err == "2 folders, 0 objects, 0 B\n"
    assert act.run("ls", "-q", "data").err == ""


def test_ls_long(act, voc):
    first, *_, last = lines(act, "ls", "-l", "data/voc/deep", env={"TZ": "UTC"})
    assert re.fullmatch(r"-[rwx-]{9} +2.0 KiB  2017-07-14 02:40:00  b.txt", first), first
    assert re.fullmatch(r"d([rwx-]{9})?  +-  (-|[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8})  *er/", last), last
    assert " 2000 " in lines(act, "ls", "-l", "--bytes", "data/voc/deep")[0]


def test_ls_json_is_lines(act, voc):
    found = objects(act, "ls", "-r", "data/voc")
    assert [e["path"] for e in found] == [f"data/voc/{n}"
                                          for n in ("a.txt", "deep-not/d", "deep/b.txt", "deep/er/c", "z")]
    b = found[2]
    assert (b["name"], b["kind"], b["size"], b["mtime"]) == ("deep/b.txt", "file", 2000, "2017-07-14T02:40:00Z")
    assert re.fullmatch("0[0-7]{3}", b["mode"])
    deep = [e for e in objects(act, "ls", "data/voc") if e["name"] == "deep/"]
    assert [e["kind"] for e in deep] == ["folder"]
    assert [e["path"] for e in objects(act, "ls", "data/voc/z")] == ["data/voc/z"]


def test_what_does_not_exist(act, voc):
    for verb in ("ls", "du"):
        act.fail(verb, "data/nothing", status=3, match="data/nothing")
        act.fail(verb, "data/vo", status=3)
        some = act.run(verb, "data/nothing", "data/voc", status=8)
        assert "data/voc" in some.out + some.err and "data/nothing" in some.err
    act.fail("rm", "-y", "data/nothing", status=3, match="data/nothing")


def test_a_mapped_folder_with_nothing_in_it(act, stored):
    """It is there as soon as it is mapped; a part of it that is not there is an error."""
    for path in ("data", "data/"):
        result = act.run("ls", path)
        assert result.out == "" and "'data' is empty: there is nothing below '" in result.err, path
        assert act.run("ls", "--json", path).out == ""
    assert objects(act, "du", "data") == [{"version": 1, "path": "data", "objects": 0, "bytes": 0}]
    assert "0 objects" in act.run("rm", "-y", "data").err
    act.fail("ls", "data/x", status=3)
    act.fail("d", "data", status=3)
    act.write("data/here", "x")
    hint = "it is in the project's own folder 'data', which runs use"
    assert (hint in act.run("ls", "data").err) == (stored.kind == "folder")
    act.run("u", "data")
    act.run("rm", "-y", "data/here")
    assert act.run("ls", "data").out == ""


def test_a_mapped_folder_of_a_container_that_is_missing(act, azure):
    act.account("store", account_name=azure.service.account, account_key=azure.service.key,
                container_name="nocontainer", endpoint=azure.service.endpoint)
    act.fail("ls", "data", status=3, match="container")


@one_store
def test_what_begins_so_is_suggested(act, voc):
    for words in (["ls"], ["du"], ["rm", "-y"], ["d"]):
        act.fail(*words, "data/vo", status=3,
                 match="'data/vo'.*names that begin like it: 'data/voc/', 'data/voc2012/'$")
    act.fail("ls", "data/voc/a", status=3, match="'data/voc/a.txt'$")
    assert "begins" not in act.fail("ls", "data/nothing", status=3)
    for i in range(4):
        voc.put(f"data/many{i}", b"")
    act.fail("ls", "data/many", status=3, match="'data/many2', ...$")


def test_a_reader_that_goes_away(act, azure):
    for i in range(30):
        azure.put(f"data/{i:03}-{'x' * 900}/{'y' * 200}/{'z' * 200}", b"")
    for words in (("ls", "-r", "data"), ("ls", "-r", "--json", "data"), ("du", "-d", "3", "data")):
        process = act.start(*words)
        process.stdout.close()
        assert process.wait(60) == -signal.SIGPIPE
        assert process.stderr.read() == b""
        process.stderr.close()


def test_a_full_disk(act, voc):
    for words in (("ls", "-r", "data"), ("du", "data")):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([act.programs / "a", *words], cwd=act.project, env=act.env, stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=300)
        assert done.returncode == 1 and "cannot write the output: No space left" in done.stderr


def test_interrupted(act, azure, proxy):
    azure.put("data/x", b"x")
    asked, over = threading.Event(), threading.Event()

    def stall(exchange):
        asked.set()
        over.wait(60)
        exchange.reset()

    proxy.add(fault_proxy.Rule(stall, method="GET", path="comp=list"))
    process = act.start("ls", "data/")
    assert asked.wait(60)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) in (-signal.SIGINT, 130)
    assert not over.is_set()
    over.set()
    process.communicate()


# ---- du


@one_store
def test_du(act, voc):
    assert lines(act, "du", "--bytes", "data/voc") == [f"{2009:>15}  {5:>10}  data/voc"]
    assert [line.split() for line in lines(act, "du", "-d", "1", "data/voc")] == [
        ["3", "B", "1", "data/voc/deep-not"], ["2.0", "KiB", "2", "data/voc/deep"], ["2.0", "KiB", "5", "data/voc"]]
    assert {e["path"]: (e["objects"], e["bytes"]) for e in objects(act, "du", "-d", "9", "data")} == {
        "data/voc/deep-not": (1, 3), "data/voc/deep/er": (1, 1), "data/voc/deep": (2, 2001), "data/voc": (5, 2009),
        "data/voc2012": (1, 2), "data": (6, 2011)}
    assert [line.split() for line in lines(act, "du", "-d3", "data/voc/z", "data/voc/a.txt")] == [
        ["0", "B", "1", "data/voc/z"], ["5", "B", "1", "data/voc/a.txt"]]


# ---- rm


@one_store
def test_rm_with_a_filter(act, voc):
    plan = act.run("rm", "--dry-run", "--exclude", "deep/", "data/voc")
    assert plan.out.splitlines() == ["data/voc/a.txt", "data/voc/deep-not/d", "data/voc/z"]
    assert plan.err == "would remove 3 objects\n"
    *removed, summary = objects(act, "rm", "--dry-run", "--include", "*.txt", "data/voc")
    assert [(e["action"], e["path"], e["size"]) for e in removed] == [
        ("delete", "data/voc/a.txt", 5), ("delete", "data/voc/deep/b.txt", 2000)]
    assert "action" not in summary
    assert len(voc.keys()) == 6
    act.run("rm", "-y", "--include", "*.txt", "data/voc")
    assert set(voc.keys()) == {"data/voc/deep/er/c", "data/voc/deep-not/d", "data/voc/z", "data/voc2012/other"}
    assert "matched nothing" in act.run("rm", "-y", "--include", "*.none", "data/voc").err
    for verb in ("u", "rm", "verify"):
        for path in ("nopath", "data/nopath"):
            act.fail(verb, "--include", "X", path, status=(3, 8), match="nopath")
            assert "matched nothing" not in act.run(verb, "--include", "X", path, status=(3, 8)).err
    assert len(voc.keys()) == 4


def test_rm_of_many(act, stored):
    for i in range(700):
        act.write(f"data/many/{i % 7}/{i}", "x")
    act.write("data/stays", "x")
    act.run("u", "data")
    result = act.run("rm", "-y", "data/many")
    assert result.err.startswith("removed 700 objects, 700 B in ")
    assert set(stored.keys()) == {"data/stays"}


def test_rm_of_several_paths(act, voc):
    result = act.run("rm", "-y", "data/voc/z", "data/none", "data/voc2012", status=8)
    assert "removed 2 objects" in result.err and "data/none" in result.err
    assert set(voc.keys()) == {"data/voc/a.txt", "data/voc/deep/b.txt", "data/voc/deep/er/c", "data/voc/deep-not/d"}


# ---- leftovers


def leave(stored):
    """What an upload of data/voc/big that was killed left: some of its bytes. Returns how many."""
    if stored.kind == "azure":
        blob = f"{stored.container}/files/data/voc/big"
        stored.service.request("PUT", blob, {"comp": "block", "blockid": "QUFBQQ=="}, body=b"x" * 4096)
    elif stored.kind == "share":
        stored.put(f"data/voc/.act-part-{'1' * 48}", b"x" * 4096)
    else:
        (stored.root / "data/voc" / f".act-part-{'0' * 16}-{'1' * 32}").write_bytes(b"x" * 4096)
    return 4096


def test_leftovers(act, voc):
    before = voc.keys()
    size = leave(voc)
    assert "big" not in act.run("ls", "-r", "data").out, "a leftover is not an object"
    (left,) = objects(act, "ls", "--leftovers", "data")
    assert (left["kind"], left["size"]) == ("leftover", size) and left["path"].startswith("data/voc/")
    result = act.run("ls", "--leftovers", "data/voc")
    assert re.search(r"^store +4.0 KiB .* old  ", result.out) and result.err == "1 leftover, 4.0 KiB\n"
    assert act.run("ls", "--leftovers", "data/voc2012").err == "0 leftovers, 0 B\n"
    act.fail("rm", "--leftovers", "data", status=2, match="-y")
    assert len(lines(act, "rm", "--leftovers", "--dry-run", "data")) == 1
    act.run("rm", "-y", "--leftovers", "data/voc2012")
    assert len(objects(act, "ls", "--leftovers", "data")) == 1
    assert act.run("rm", "-y", "--leftovers", "data").err.startswith("removed 1 object, 4.0 KiB in ")
    assert objects(act, "ls", "--leftovers", "data") == []
    assert {k: v for k, v in voc.keys().items() if ".act-" not in k} == before


@one_store
def test_leftovers_of_a_download_are_here(act, stored):
    act.write("data/a", b"x")
    part = f".act-part-{'0' * 16}-{'1' * 32}"
    act.write(f"data/{part}", b"half")
    act.write(f"data/{part}.map", b"")
    act.run("u", "data")
    (left,) = objects(act, "ls", "--leftovers", "data")
    assert (left["place"], left["path"]) == ("here", f"data/{part}") and left["size"] >= 4
    assert act.run("ls", "--leftovers", "data/a").err == "0 leftovers, 0 B\n"
    act.run("rm", "-y", "--leftovers", "data")
    assert [p.name for p in (act.project / "data").iterdir()] == ["a"]


# ---- cat


def test_cat(act, stored):
    data = random.Random(1).randbytes(20_000_000)
    stored.put("data/big", data)
    stored.put("data/small", b"one\n")
    stored.put("data/empty", b"")
    assert act.run("cat", "data/small", "data/empty", "data/small").raw_out == b"one\none\n"
    assert act.run("cat", "data/big").raw_out == data
    assert act.run("cat", "--memory", "1M", "data/big").raw_out == data
    assert act.run("cat", "--first", "1000", "data/big").raw_out == data[:1000]
    assert act.run("cat", "--last", "9M", "data/big").raw_out == data[-(9 << 20):]
    assert act.run("cat", "--last", "1k", "data/small").raw_out == b"one\n"
    act.fail("cat", "data/none", status=3, match="data/none")
    act.fail("cat", "data", status=2, match="folder")
    act.fail("cat", "--first", "1", "--last", "1", "data/small", status=2)


@one_store
def test_cat_to_a_reader_that_goes_away(act, stored):
    stored.put("data/big", b"x" * 20_000_000)
    process = act.start("cat", "data/big")
    assert process.stdout.read(10) == b"x" * 10
    process.stdout.close()
    assert process.wait(60) == -signal.SIGPIPE
    assert process.stderr.read() == b""
    process.stderr.close()


def test_cat_notices_damage(act, azure, proxy):
    azure.put("data/x", b"what was stored")
    proxy.add(fault_proxy.change_body(lambda body: b"W" + body[1:], method="GET", path="data/x"))
    result = act.run("cat", "data/x", status=1)
    assert result.out == "What was stored" and "do not trust it" in result.err


def test_cat_of_a_log_that_grows(act, azure, proxy):
    blob = f"{azure.container}/files/data/log"

    def append(data):
        azure.service.request("PUT", blob, {"comp": "appendblock"}, body=data)

    def grow(exchange):
        append(b"later\n")
        exchange.reply(*exchange.forward())

    azure.service.request("PUT", blob, headers={"x-ms-blob-type": "AppendBlob"})
    append(b"first\n")
    proxy.add(fault_proxy.Rule(grow, method="GET", path="data/log"))
    assert act.run("cat", "data/log").out == "first\n"
    assert act.run("cat", "data/log").out == "first\nlater\n"

    def replace(exchange):
        azure.put("data/log", b"")
        exchange.reply(*exchange.forward())

    proxy.add(fault_proxy.Rule(replace, method="GET", path="data/log"))
    assert "log" in act.run("cat", "data/log", status=5).err


def test_cat_of_a_file_that_changes(act, azure, proxy):
    azure.put("data/x", b"1" * 9_000_000)

    def replace(exchange):
        azure.put("data/x", b"2" * 9_000_000)
        exchange.reply(*exchange.forward())

    proxy.add(fault_proxy.Rule(replace, method="GET", path="data/x"))
    result = act.run("cat", "data/x", status=5)
    assert "change" in result.err and b"2" not in result.raw_out
