"""Names that are legal in one place and not in another: they come back as they were, or are refused with the reason."""
import os
import re
import urllib.parse

import pytest

from conftest import any_name
from test_data import away, tree

FINE = [" leading", "trailing ", "two  blanks", "tab\there", "line\nbreak", "a+b", "a%20b", "%", "%zz", "&amp;",
        "<xml>", "a\"b", "a'b",
        "a?b=c", "a#b", "a;b", "a:b", "a@b", "a=b", "~tilde", "[x]", "(y)", "{z}", "p|q", "c^d", "back`tick", "a,b",
        "!", "*", "$HOME",
        "café", "cafe\u0301", "日本語", "🚀🚀", "\u200bzero", "\u202ertl", "-dash", "--delete", ".hidden", "..a", "a..b",
        "con", "nul.txt", "x" * 255,
        "é" * 127, "deep/" * 120 + "end", ("d" * 200 + "/") * 3 + "end"]
ODD = ["...", "dot.", "folder./x", "cr\rhere", "bell\x07", "\x01", "\x1f", "\x7f", "c1\u0081", "\ue000private",
       "nonchar\ufffe", "nonchar\uffff", "back\\slash",
       "a\\..\\b", "deep/" * 260 + "end", ("n" * 200 + "/") * 6 + "end"]


def put_locally(act, name):
    """As bytes, step by step: some names are longer than a path may be."""
    parts = os.fsencode(name).split(b"/")
    (act.project / "data").mkdir(exist_ok=True)
    fd = os.open(act.project / "data", os.O_DIRECTORY)
    for part in parts[:-1]:
        try:
            os.mkdir(part, dir_fd=fd)
        except FileExistsError:
            pass
        fd, old = os.open(part, os.O_DIRECTORY, dir_fd=fd), fd
        os.close(old)
    with os.fdopen(os.open(parts[-1], os.O_CREAT | os.O_WRONLY, dir_fd=fd), "wb") as f:
        f.write(name.encode("utf-8", "surrogateescape"))
    os.close(fd)


def test_names_that_are_fine_everywhere(act, azure_double):
    for name in FINE:
        put_locally(act, name)
    before = tree(act.project / "data")
    assert len(before) == len(FINE)
    act.run("u", "data")
    assert {key.removeprefix("data/") for key in azure_double.keys()} == set(FINE)
    assert f"{len(FINE)} already the same" in act.run("u", "data").err
    act.run("verify", "data")
    away(act, "data")
    act.run("d", "data")
    assert tree(act.project / "data") == before
    act.run("rm", "-y", "data")
    assert azure_double.keys() == {}


@pytest.mark.parametrize("name", ODD, ids=[ascii(name)[1:20] for name in ODD])
def test_names_that_are_not(act, azure_double, name):
    put_locally(act, name)
    act.write("data/good", "good")
    before = {p: d for p, d in tree(act.project / "data").items()}
    result = act.run("u", "data", status=(0, 8))
    kept = {urllib.parse.unquote(key).removeprefix("data/") for key in azure_double.keys()}
    assert "good" in kept
    if result.status == 8:
        assert kept == {"good"}, "nothing of it was moved"
        assert "act: " in result.err and re.search("the name|is longer than 1024 characters", result.err), result
        return
    assert len(kept) == 2
    away(act, "data")
    act.run("d", "data")
    assert tree(act.project / "data") == before, "it came back as it was"


def test_names_that_are_no_utf8(act, stored):
    put_locally(act, os.fsdecode(b"not\xffutf8"))
    act.write("data/good", "good")
    stored.put("data/theirs", b"theirs")
    for words in (["u"], ["u", "-y", "--delete"]):
        act.fail(*words, "data", status=(1, 8), match="not.*utf8.*UTF-8")
        assert stored.get("data/theirs") == b"theirs" and set(stored.keys()) <= {"data/good", "data/theirs"}


def test_a_blob_with_a_name_that_xml_cannot_hold(act, azure_double):
    azure_double.put("data/nonchar\ufffe", b"1")
    azure_double.put("data/good", b"2")
    result = act.run("d", "data", status=(0, 8))
    files = tree(act.project / "data")
    assert files["good"] == b"2"
    assert len(files) == 2 or result.status == 8


@any_name
def test_names_that_differ_only_in_case(act, stored):
    for name in ("data/Readme", "data/README", "data/a/x", "data/A/x"):
        act.write(name, name)
    act.run("u", "data")
    away(act, "data")
    act.run("d", "data")
    assert len(tree(act.project / "data")) == 4


def test_a_blob_and_a_folder_of_one_name(act, azure_double):
    """A disk cannot have both: the other files arrive, and the failure names it."""
    azure_double.put("data/a", b"file")
    azure_double.put("data/a/b", b"below")
    azure_double.put("data/c", b"other")
    result = act.run("d", "data", status=8)
    assert "data/a" in result.err and (act.project / "data/c").read_bytes() == b"other"
