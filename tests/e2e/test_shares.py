"""Folders in shares of Azure Files: what the data verbs do there, and what can go wrong. Against the test double."""
import json
import re
import threading

import pytest

import waiting
from test_data import away, content, entries, tree
from test_resume import kill_after

MIB = 1 << 20
TEMP = ".act-part-"
FILES = {"small": b"small", "empty": b"", "sub/deep/größe 日本.txt": b"a name", "sub/a+b%20&c": b"x" * 1000}


@pytest.fixture
def there(azure_share):
    return azure_share


def visible(there):
    """What others see: {key: size} without what is under way."""
    return {key: size for key, size in there.keys().items() if TEMP not in key}


def is_range(request):
    return request.method == "PUT" and "comp=range" in request.target and request.status == 201


def write(act, files, folder="data", mtime=1_500_000_000):
    for name, data in files.items():
        act.write(f"{folder}/{name}", data, mtime=mtime)


# ---- the data verbs


@pytest.mark.smoke
def test_round_trip(act, there):
    files = {**FILES, "large": content(9 * MIB + 17)}
    write(act, files)
    act.run("u", "data")
    assert there.keys() == {f"data/{name}": len(data) for name, data in files.items()}
    for name, data in files.items():
        assert there.get(f"data/{name}") == data
    assert "5 already the same" in act.run("u", "data").err
    act.run("verify", "data")
    assert json.loads(act.run("du", "--json", "data").out.splitlines()[-1])["bytes"] == sum(map(len, files.values()))
    away(act, "data")
    act.run("d", "data")
    assert tree(act.project / "data") == files
    assert (act.project / "data/small").stat().st_mtime == 1_500_000_000
    assert entries(act, "-r", "data").keys() == set(files)
    act.run("rm", "-y", "data")
    assert not there.keys()


def test_what_others_put_there(act, there):
    """Not by ACT: without its metadata, in folders of their own."""
    there.put("data/theirs/f", b"theirs")
    there.service.mkdir(f"{there.container}/files/data/none")
    act.run("d", "data")
    assert tree(act.project / "data") == {"theirs/f": b"theirs"}
    act.run("verify", "data")


def test_only_what_differs_is_sent(act, there):
    write(act, FILES)
    act.run("u", "data")
    act.write("data/small", "other", mtime=1_600_000_000)
    there.service.forget()
    act.run("u", "data")
    writes = [r for r in there.service.log() if r.method == "PUT" and "comp=range" in r.target]
    assert len(writes) == 1 and there.get("data/small") == b"other"


def test_mirror(act, there):
    write(act, FILES)
    act.run("u", "data")
    away(act, "data/sub")
    act.run("u", "--delete", "-y", "data")
    assert there.keys() == {"data/small": 5, "data/empty": 0}


@pytest.mark.parametrize("how", ["share", "account", "login"])
def test_credentials(act, there, login, how):
    keys = there.service.account_keys(there.container)
    del keys["account_key"]
    if how == "login":
        act.env |= login.principal()
    else:
        sas = there.service.share_sas(there.container) if how == "share" else there.service.account_sas()
        keys["sas_token"] = sas
    act.account("store", **keys)
    write(act, FILES)
    act.run("u", "data")
    away(act, "data")
    act.run("d", "data")
    assert tree(act.project / "data") == FILES
    act.run("rm", "-y", "data")
    assert not there.keys()


# ---- between a share and a container


@pytest.fixture
def second(act, there, double):
    """The cluster whose folders are in a container."""
    act.account("second", **double.account_keys(double.container))
    act.cluster("second", account="second")
    return double


def test_from_a_share_to_a_container_and_back(act, there, second):
    files = {**FILES, "large": content(9 * MIB + 17)}
    write(act, files)
    act.run("u", "data")
    act.run("-c", "second", "-f", "aml", "u", "data")
    in_container = second.list(second.container, "files/data/")
    assert in_container == {f"files/data/{name}": len(data) for name, data in files.items()}
    act.run("rm", "-y", "data")
    act.run("-c", "aml", "-f", "second", "u", "data")
    assert there.keys() == {f"data/{name}": len(data) for name, data in files.items()}
    away(act, "data")
    act.run("d", "data")
    assert tree(act.project / "data") == files
    again = act.run("-c", "aml", "-f", "second", "u", "data").err
    assert "5 already the same" in again, again


def test_between_two_shares(act, there):
    there.service.create(f"{there.container}-b")
    act.account("second", **there.service.account_keys("none"))
    act.cluster("second", account="second", keys=there.service.folder_keys(f"{there.container}-b"))
    write(act, FILES)
    act.run("u", "data")
    act.run("-c", "second", "-f", "aml", "u", "data")
    found = there.service.list(f"{there.container}-b", "files/data/")
    assert found == {f"files/data/{name}": len(data) for name, data in FILES.items()}
    there.service.remove(f"{there.container}-b")


# ---- by another client as well


def nothing_to_do(act, n):
    for words in (["u", "data"], ["d", "data"]):
        result = act.run(*words, "--dry-run", "--delete")
        assert result.out == "" and f"{n} already the same" in result.err, result
    act.run("verify", "data")


def test_azcopy_reads_what_act_wrote(act, there, azcopy_there, scratch):
    """The times are those of the service: on Linux azcopy does not take those of files."""
    files = {**FILES, "large": content(9 * MIB + 17)}
    write(act, files)
    act.run("u", "data")
    azcopy_there.copy(azcopy_there.blob("data/*"), str(scratch / "theirs"), "FileLocal", "--check-md5",
                      "FailIfDifferent")
    assert tree(scratch / "theirs") == files


def test_act_reads_what_azcopy_wrote(act, there, azcopy_there):
    files = {**FILES, "large": content(9 * MIB + 17)}
    write(act, files)
    azcopy_there.copy(f"{act.project}/data/*", azcopy_there.blob("data"), "LocalFile", "--put-md5")
    away(act, "data")
    act.run("d", "data")
    assert tree(act.project / "data") == files
    nothing_to_do(act, len(files))


# ---- interrupted, and seen by others meanwhile


def test_an_upload_goes_on_after_kill(act, there):
    data = content(60 * MIB)
    there.put("data/big", b"the old one")
    waiting.settled(act.write("data/big", data))
    double = there.service
    double.fault("stall", ms=100, times=0, method="PUT", path="comp=range")
    for more in (3, 5):
        kill_after(act, double, ["u", "--overwrite", "--transfers", "2", "data/big"], more, is_range)
        assert there.get("data/big") == b"the old one" and visible(there) == {"data/big": 11}
    double.no_faults()
    before = sum(map(is_range, double.log()))
    act.run("u", "--overwrite", "data/big")
    assert there.get("data/big") == data
    assert there.keys() == {"data/big": len(data)}, "what was under way is gone"
    assert before > 0


def test_nothing_half_written_is_ever_seen(act, there):
    files = {f"f{i}": content(3 * MIB + i, i) for i in range(12)}
    write(act, files)
    there.service.fault("stall", ms=20, times=0, method="PUT", path="comp=range")
    seen, wrong, over = set(), [], threading.Event()

    def look():
        while not over.is_set():
            for key in visible(there):
                name = key.removeprefix("data/")
                seen.add(name)
                if there.get(key) != files[name]:
                    wrong.append(name)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        act.run("u", "data")
    finally:
        over.set()
        watcher.join()
    assert not wrong and seen <= set(files)
    assert there.keys() == {f"data/{name}": len(data) for name, data in files.items()}


# ---- the same upload by two processes at once


@pytest.mark.parametrize("old, head_start", [(None, 0), (b"the old one", 5)])
def test_two_upload_the_same_at_once(act, there, old, head_start):
    """Each on its own, or both into one temporary file: whole, and nothing is left."""
    data = content(60 * MIB)
    if old:
        there.put("data/big", old)
    waiting.settled(act.write("data/big", data))
    double = there.service
    double.fault("stall", ms=60, times=0, method="PUT", path="comp=range", where="answer")
    words = ["u", "--overwrite", "--transfers", "2", "data/big"]
    first = act.start(*words)
    act.until(lambda: sum(map(is_range, double.log())) >= head_start, "the first one has begun")
    second = act.start(*words)
    for process in (first, second):
        err = process.communicate()[1]
        assert process.returncode == 0, err
    assert there.get("data/big") == data
    assert there.keys() == {"data/big": len(data)}, "what was under way is gone"


def test_what_was_sent_is_removed_meanwhile(act, there):
    """As a leftover, by somebody else: it is sent again."""
    data = content(60 * MIB)
    waiting.settled(act.write("data/big", data))
    double = there.service
    double.fault("stall", ms=60, times=0, method="PUT", path="comp=range", where="answer")
    client = act.start("u", "--transfers", "2", "data/big")
    act.until(lambda: sum(map(is_range, double.log())) >= 5, "it has begun")
    act.run("rm", "-y", "--leftovers", "data")
    err = client.communicate()[1]
    assert client.returncode == 0, err
    assert there.get("data/big") == data and there.keys() == {"data/big": len(data)}


# ---- what goes wrong


def test_a_folder_vanishes_and_then_the_connection(act, there):
    """Between what tells of the blocks and what they go into: it fails, for all blocks that wait for it."""
    act.write("data/big", content(60 * MIB))
    temp = r"/\.act-part-[0-9a-f]+$"
    there.service.fault("answer", status=404, code="ParentNotFound", method="PUT", path=temp)
    there.service.fault("reset", where="request", method="PUT", path=temp, times=0)
    result = act.run("u", "data", status=None, env={"ACT_MAX_RETRIES": "1"})
    assert result.status == 5 and "came to a halt" not in result.err, result
    assert not visible(there)


@pytest.mark.parametrize("name", [r"/\.act-part-[0-9a-f]+$", r"\.blocks$"])
@pytest.mark.parametrize("mib", [1, 60])
def test_a_folder_vanishes(act, there, mib, name):
    """Between making it and writing into it, a file or what tells of the blocks of one: it is made again."""
    data = content(mib * MIB)
    act.write("data/file", data)
    there.service.fault("answer", status=404, code="ParentNotFound", method="PUT", path=name)
    act.run("u", "data")
    assert there.get("data/file") == data and there.keys() == {"data/file": len(data)}


@pytest.mark.parametrize("kind, values", [
    ("answer", {"status": 503, "code": "ServerBusy", "retry_after": 0, "times": 4}),
    ("answer", {"status": 500, "code": "InternalError", "times": 3}),
    ("answer", {"status": 500, "code": "OperationTimedOut", "times": 3}),
    ("reset", {"where": "request", "times": 3}), ("reset", {"where": "upload", "times": 3}),
    ("reset", {"times": 3}), ("truncate", {"where": "headers", "times": 3}),
])
@pytest.mark.parametrize("what", ["", "comp=range", "comp=rename", "comp=list", "restype=directory"])
def test_what_passes(act, there, kind, values, what):
    files = {**FILES, "large": content(5 * MIB)}
    write(act, files)
    there.service.fault(kind, path=what, **values)
    act.run("u", "data")
    there.service.no_faults()
    assert there.keys() == {f"data/{name}": len(data) for name, data in files.items()}
    away(act, "data")
    there.service.fault(kind, path=what, **values)
    act.run("d", "data")
    assert tree(act.project / "data") == files


@pytest.mark.parametrize("kind", ["corrupt", "replace", "truncate", "overlong", "range"])
def test_no_wrong_bytes_arrive(act, there, kind):
    data = content(9 * MIB)
    act.write("data/f", data, mtime=1_500_000_000)
    act.run("u", "data")
    away(act, "data")
    there.service.fault(kind, method="GET", path="/data/f", **({"where": "body"} if kind == "truncate" else {}))
    result = act.run("d", "data", status=None)
    there.service.no_faults()
    whole = there.get("data/f")
    path = act.project / "data/f"
    assert path.read_bytes() in (data, whole) if path.exists() else result.status, result
    act.run("d", "--overwrite", "data")
    assert (act.project / "data/f").read_bytes() == whole


@pytest.mark.parametrize("page", ["torn", "repeat", "loop"])
def test_a_listing_that_is_wrong(act, there, page):
    """Tried again, or the end of it: never half of what is there."""
    write(act, FILES)
    act.run("u", "data")
    there.service.fault("page", page=page, path="comp=list", times=0)
    act.fail("ls", "-r", "data", status=None, match={"torn": "XML|answer", "loop": "twice"}.get(page, "same page"))


def test_a_share_that_is_full(act, there):
    there.put("data/kept", b"kept")
    there.service.limit(there.container, 6 * MIB)
    write(act, {"a": content(1 * MIB), "big": content(8 * MIB)})
    act.fail("u", "data", status=8, match="data/big.*share is full")
    assert set(visible(there)) <= {"data/kept", "data/a"} and there.get("data/kept") == b"kept"
    there.service.limit(there.container, 60 * MIB)
    act.run("u", "data")
    assert there.keys() == {"data/kept": 4, "data/a": MIB, "data/big": 8 * MIB}


def test_a_share_that_is_full_when_a_run_sends_its_output(act, there):
    act.account("code", folder=str(act.store))
    path = act.cluster("aml", keys={**there.service.folder_keys(there.container), "mode": "upload"})
    config = json.loads(path.read_text())
    config["config_param"]["code_path"] = {"azure_blob_config_file": "aux_data/configs/code.yaml", "path": "code.zip"}
    path.write_text(json.dumps(config))
    there.service.limit(there.container, MIB)
    run = act.finish("sh", "-c", "head -c 2M /dev/zero >output/big", status=125)
    assert "not all folders could be sent" in act.info(run)["reason"] and "the share is full" in act.info(run)["reason"]
    assert (act.run_dir(run) / "folders/output/big").stat().st_size == 2 * MIB


def test_a_share_that_is_not_there(act, there):
    there.service.remove(there.container)
    act.write("data/f", "x")
    for words in (["u", "data"], ["d", "data"], ["ls", "data"]):
        assert there.container in act.run(*words, status=(1, 2, 3, 4, 5)).err, words


@pytest.mark.parametrize("name", ["a:b", "a*b", "what?", "a|b", 'say "hi"', "<x>", "back\\slash", "nul", "COM1",
                                  "x" * 200 + "ü" * 27])
def test_names_that_a_share_does_not_take(act, there, name):
    act.write(f"data/{name}", "x")
    act.write("data/fine", "fine")
    result = act.run("u", "data", status=None)
    if len(name) > 200:
        assert result.status == 0 and len(there.keys()) == 2, "227 characters"
        return
    assert result.status != 0 and name in result.err.replace("\\\\", "\\"), result
    assert there.keys() == {"data/fine": 4}, "the rest is there"


def test_a_name_with_a_dot_at_its_end(act, there):
    write(act, {"dot.": b"1", "sub./x": b"2"})
    act.run("u", "data")
    assert there.keys() == {"data/dot.": 1, "data/sub./x": 1}
    away(act, "data")
    act.run("d", "data")
    assert tree(act.project / "data") == {"dot.": b"1", "sub./x": b"2"}


def test_names_that_differ_in_case_alone(act, there):
    """A share has one of them: never the content of one under the name of the other without a word."""
    write(act, {"Name": b"first", "name": b"second!"})
    result = act.run("u", "data", status=None)
    assert result.status != 0 and "ame" in result.err, result
    assert len(there.keys()) <= 1
    for key in there.keys():
        assert there.get(key) == {"data/Name": b"first", "data/name": b"second!"}[key]


@pytest.mark.parametrize("size", [7, 9 * MIB])
@pytest.mark.parametrize("name", ["data/Foo", "data"])
@pytest.mark.parametrize("words", [(), ("--overwrite",)])
def test_one_of_others_in_other_capitals_is_not_replaced(act, there, words, name, size):
    there.put("data/foo", b"theirs")
    act.write("data/Foo", content(size))
    result = act.run("u", *words, name, status=1)
    assert "does not tell capitals from small letters" in result.err and "again" not in result.err, result
    assert visible(there) == {"data/foo": 6} and there.get("data/foo") == b"theirs"


def test_one_of_others_in_other_capitals_is_another_one(act, there):
    there.put("data/foo", b"theirs")
    for words in [("rm", "-y"), ("cat",), ("d",), ("url",)]:
        act.fail(*words, "data/FOO", status=3)
    assert there.keys() == {"data/foo": 6}
    assert act.run("cat", "data/foo").out == "theirs"


def test_a_folder_in_other_capitals_is_named(act, there):
    """Never reached by a name that it has not: neither read, nor removed."""
    there.put("data/Sub/deep/f", b"theirs")
    for path in ("data/SUB", "data/SUB/", "data/SUB/deep", "data/Sub/DEEP", "data/SUB/deep/f", "DATA"):
        for words in [("rm", "-y"), ("ls", "-r"), ("d",), ("du",)]:
            status = 3 if path != "DATA" else None
            said = act.run(*words, path, status=status).err
            assert path == "DATA" or re.search("its name there is '.*data/Sub/(deep/)?'", said), (words, path, said)
    act.write("data/SUB/new", "x")
    act.fail("u", "data/SUB", status=3, match="its name there is '.*data/Sub/'")
    assert there.keys() == {"data/Sub/deep/f": 6}
    act.run("rm", "-y", "data/Sub")
    assert not there.keys()


def test_folders_in_one_another_whatever_their_capitals(act, there):
    place = {"azure_blob_config_file": "aux_data/configs/store.yaml", **there.service.folder_keys(there.container)}
    act.cluster("aml", extra={"config_param": {
        "data_folder": {**place, "path": "files/data"}, "inner_folder": {**place, "path": "Files/DATA/Größe/inner"}}})
    there.put("data/größe/inner/f", b"x")
    there.put("data/other/f", b"x")
    for words in (["rm", "-y", "data"], ["rm", "-y", "data/größe"], ["u", "--delete", "-y", "data"]):
        act.write("data/f", "x")
        act.fail(*words, status=2, match="'inner' lies in it")
    act.run("rm", "-y", "data/other")
    assert there.keys() == {"data/größe/inner/f": 1}


# ---- runs


def use_folders(act, shares, data=None, output=None, **extra):
    """The folders of the cluster are in the share, with these modes; its code is elsewhere."""
    rows = {f"{name}_folder": shares.folder(act, name, **({"mode": mode} if mode else {}))
            for name, mode in (("data", data), ("output", output))}
    code = {"azure_blob_config_file": "aux_data/configs/store.yaml", "path": "files/code/project.zip"}
    act.cluster("aml", extra={"config_param": {"code_path": code, **rows}, **extra})


def get(shares, key):
    return shares.get(f"{shares.share}/files/{key}")


@pytest.mark.parametrize("how", [{"data": "download", "output": "upload"}, {"mount": "copy"}])
def test_a_run_whose_folders_are_in_a_share(act, shares, how):
    """Brought before it, and sent after it."""
    use_folders(act, shares, **how)
    write(act, FILES)
    act.run("u", "data")
    act.finish("sh", "-c", "cat data/small > output/y.txt; find data/ -type f | wc -l >> output/y.txt")
    assert get(shares, "output/y.txt") == b"small4\n"
    act.finish("sh", "-c", "echo partial > output/z.txt; exit 3", status=3)
    assert get(shares, "output/z.txt") == b"partial\n", "what is there is sent, however the run ends"


def test_a_share_is_not_mounted(act, shares):
    use_folders(act, shares)
    act.fail("submit", "true", status=7, match="'mode: download' or 'mode: upload', or 'mount: copy'")
    act.fail("mount", "data", act.scratch, status=7, match="mount that by SMB, or copy it with 'a d'")
    assert "'data' is in a share of Azure Files, which is not mounted" in act.run("doctor", status=1).out
    use_folders(act, shares, mount="copy")
    assert "which is not mounted" not in act.run("doctor", status=None).out


def test_code_is_not_in_a_share(act, shares):
    use_folders(act, shares, mount="copy")
    act.cluster("aml", extra={"config_param": {"code_path": shares.folder(act, "code/project.zip")}})
    for words, status in ((["init"], 7), (["submit", "true"], 7), (["local", "true"], 125)):
        said = act.run(*words, status=status).err.strip()
        assert "'code_path' cannot be in a share" in said and len(said.splitlines()) == 1, said
    assert not shares.list(shares.share)
