"""What cannot be read or named: that one is left out and named, the rest is done."""
import json
import os

import pytest

from conftest import any_name
from test_data import tree
from test_sync import there


@pytest.fixture
def broken(act, stored):
    """A folder with two names that are not UTF-8, one with a line break, a file and a folder that cannot be read."""
    for name in ("good", "sub/x", "zz", "shut/in", "shut-not", "sub/secret"):
        act.write(f"data/{name}", name, mtime=1_500_000_000)
    act.run("u", "data")
    act.write("data/new", "new")
    for name in (b"bad\xff", b"sub/worse\xfe", b"line\nbreak"):
        with open(os.path.join(os.fsencode(act.project / "data"), name), "wb") as f:
            f.write(name)
    act.write("data/sub/secret", "another").chmod(0)
    (act.project / "data/shut").chmod(0)
    act.respect_modes()
    yield stored
    (act.project / "data/shut").chmod(0o755)


HELD = {"good", "sub/x", "zz", "shut/in", "shut-not", "sub/secret"}
OUT = ["--exclude", "bad*", "--exclude", "worse?", "--exclude", "shut/", "--exclude", "secret"]


@any_name
def test_one_bad_thing_stops_nothing(act, broken):
    result = act.run("u", "data", status=8)
    for text in ("'bad\\xff'", "'sub/worse\\xfe'", "not UTF-8", "'shut/': Permission denied", "sub/secret",
                 "--exclude"):
        assert text in result.err, result.err
    assert there(broken) == HELD | {"new", "line\nbreak"}
    result = json.loads(act.run("u", "--json", "data", status=8).out)
    assert result["failed"] == 4 and result["same"] == 6
    names = [f["text"] for f in result["failures"]] + [name for f in result["failures"] for name in f["also"]]
    assert len(names) == 4 and "sub/worse\\xfe" in names
    act.run("u", *OUT, "data")
    assert "'shut/'" in act.fail("u", *OUT[:4], "--include", "secrets", "data", status=8), "what is below may be meant"


@any_name
def test_a_mirror_spares_what_it_could_not_read(act, broken):
    broken.put("data/extra", b"x")
    broken.put("data/shut/more", b"x")
    assert "1 to delete" in act.run("u", "--delete", "--dry-run", *OUT, "data").err
    act.fail("u", "--delete", "-y", "data", status=8)
    assert "extra" in there(broken), "nothing is deleted when one failed"
    act.run("u", "--delete", "-y", *OUT, "data")
    assert there(broken) == HELD | {"new", "line\nbreak", "shut/more"}


def test_nothing_that_can_be_read_is_an_empty_source(act, broken):
    before = broken.keys()
    for name in ("good", "new", "sub/x", "sub/secret", "zz", "shut-not", "line\nbreak"):
        (act.project / "data" / name).unlink()
    act.run("u", "--delete", "-y", "--exclude", "bad*", "--exclude", "worse*", "data", status=2)
    assert broken.keys() == before


def test_verify_names_them(act, broken):
    result = act.run("verify", "data", status=8)
    for text in ("bad\\xff", "worse\\xfe", "'shut/': Permission denied"):
        assert text in result.err
    assert "new" in result.out and "shut" not in result.out, "what a name that cannot be read may hide is not extra"


def test_a_download_beside_them(act, broken):
    broken.put("data/from", b"x")
    act.run("d", "data", "--exclude", "shut/", "--exclude", "secret")
    assert tree(act.project / "data/from") is not None and (act.project / "data/from").read_bytes() == b"x"


@pytest.mark.parametrize("stored", ["folder"], indirect=True)
def test_a_store_with_bad_names(act, stored):
    """A folder store is written by others too."""
    act.write("data/good", "x")
    act.run("u", "data")
    with open(os.path.join(os.fsencode(stored.root), b"data/bad\xff"), "wb") as f:
        f.write(b"x")
    result = act.run("ls", "data", status=8)
    assert result.out == "good\n" and "data/bad\\xff': its name is not UTF-8" in result.err
    act.run("rm", "-y", "data", status=8)
    assert os.listdir(os.fsencode(stored.root / "data")) == [b"bad\xff"]


@any_name
def test_names_go_into_a_pipe_as_they_are(act, stored):
    name = "a\x1b[31m\tb\u202e" if stored.kind == "folder" else "a\tb\u202e\u00fc"
    act.write(f"data/{name}", "x")
    act.run("u", "data")
    assert act.run("ls", "data").raw_out == os.fsencode(f"{name}\n")
    assert act.run("ls", "-l", "data").raw_out.endswith(os.fsencode(f"  {name}\n"))
    assert b"\x1b[31m" not in (shown := act.on_terminal("ls", "data")) and "\u202e".encode() not in shown
    assert json.loads(act.run("ls", "--json", "data").out)["name"] == name
    act.write(f"data/{name}", "other", mtime=2_000_000_000)
    assert act.run("verify", "data", status=8).raw_out == os.fsencode(f"size data/{name}\n")
    assert os.fsencode(f"  data/{name}  (") in act.run("u", "--dry-run", "data").raw_out


@pytest.mark.parametrize("stored", ["folder"], indirect=True)
def test_one_thing_in_the_way_of_another_is_named(act, stored):
    act.write("data/a/x", "x")
    act.write("data/b", "b")
    stored.put("data/a", b"file")
    stored.put("data/b/y", b"y")
    result = act.run("u", "--overwrite", "data", status=(1, 8))
    assert "data/a/x': 'files/data/a' is a file, not a folder: move it away" in result.err
    assert "data/b': there is a folder of this name: move it away" in result.err
    assert there(stored) == {"a", "b/y"}


def test_one_object_is_not_many(act, stored):
    stored.put("data/only", b"x")
    (act.project / "data").mkdir()
    assert "has 1 object:" in act.fail("u", "--delete", "-y", "data", status=2)
