"""What the disk keeps: holes, and whole files when the power fails."""
import os
import shutil

import pytest

import power

MIB = 1 << 20


def sparse(path, size, data=()):
    """A file of size bytes with these bytes at these places, and nothing else."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        for at, content in data:
            file.seek(at)
            file.write(content)
        file.truncate(size)
    os.utime(path, (1_500_000_000, 1_500_000_000))
    return path


def room(path):
    return path.stat().st_blocks * 512


def same(a, b):
    with open(a, "rb") as first, open(b, "rb") as second:
        while True:
            one, other = first.read(16 * MIB), second.read(16 * MIB)
            if one != other:
                return False
            if not one:
                return True


DATA = [(5 * MIB, b"five"), (100 * MIB - 10, os.urandom(MIB)), (300 * MIB, b"x" * 70_000)]


def test_holes_stay_holes(act):
    here = sparse(act.project / "data/large", 320 * MIB, DATA)
    small = sparse(act.project / "data/small", 3 * MIB, [(MIB, b"one")])
    empty = sparse(act.project / "data/zeros", 20 * MIB)
    act.run("u", "data")
    for path in (here, small, empty):
        there = act.store / "files/data" / path.name
        assert same(path, there) and room(there) <= 4 * MIB, path
    shutil.move(act.project / "data", act.project / "before")
    act.run("d", "data")
    for name in ("large", "small", "zeros"):
        assert same(act.project / "before" / name, act.project / "data" / name)
        assert room(act.project / "data" / name) <= 4 * MIB, name


def test_holes_take_the_place_of_bytes(act):
    """What was in a file that gets a hole there is gone."""
    path = act.write("data/f", b"old" * (10 * MIB))
    act.run("u", "data/f")
    sparse(path, 30 * MIB, [(20 * MIB, b"new")])
    act.run("u", "--overwrite", "data/f")
    assert same(path, act.store / "files/data/f") and room(act.store / "files/data/f") <= 2 * MIB


@pytest.mark.skipif(not power.possible(), reason="no loop devices, or not root")
def test_power_cut(act):
    violation = power.cut(act, seed=1)
    assert violation is None, violation
