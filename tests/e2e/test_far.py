"""Data verbs to a folder behind a login: slurm.root's own store, and folders of the mode 'path', over a real sshd."""
import json
import os
import random
import subprocess

import pytest

import sshd


class Far:
    """A cluster "lab" whose login node is a private sshd. No Slurm is asked for anything."""

    def __init__(self, act):
        self.act, self.server = act, sshd.Sshd(act.scratch / "ssh")
        act.env |= self.server.env
        self.root = self.server.home / "act"
        self.configure()

    def configure(self, **more):
        self.act.write("aux_data/aml/lab.yaml", json.dumps(
            {"platform": "slurm", "gpu_per_node": 2,
             "slurm": {"root": str(self.root), "login": sshd.LOGIN}, **more}))

    def run(self, *words, **options):
        return self.act.run("-c", "lab", *words, **options)

    def fail(self, *words, **options):
        return self.act.fail("-c", "lab", *words, **options)

    def folder(self, name="data"):
        """Where a mapped folder is there."""
        return next((self.root / "store").iterdir()) / name


@pytest.fixture
def far(act):
    if sshd.missing():
        pytest.skip(sshd.missing())
    far = Far(act)
    yield far
    far.server.stop()


def content(folder):
    """All of it that is to survive: links, modes, times, bytes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        stat = path.lstat()
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_dir():
            found[name] = oct(stat.st_mode & 0o777)
        else:
            found[name] = (path.read_bytes(), oct(stat.st_mode & 0o777), stat.st_mtime_ns)
    return found


def make_tree(act, below="data", files=300):
    """Many small files, an empty one, a link, an empty folder, an odd name, a large file, and one with a hole."""
    for number in range(files):
        act.write(f"{below}/many/{number % 7}/{number}.txt", f"number {number}\n" * (number % 50))
    act.write(f"{below}/a name with 'quotes' and \u00e9", "odd")
    act.write(f"{below}/large.bin", random.Random(1).randbytes(20 << 20))
    root = act.project / below
    (root / "empty").mkdir()
    (root / "link").symlink_to("many/0/0.txt")
    (root / "many/0/7.txt").chmod(0o700)
    with open(root / "hole", "wb") as file:
        file.truncate(40 << 20)
        file.write(b"begin")


def test_up_and_down(act, far):
    act.write("data/words", "some words", mtime=1700000000)
    far.run("u", "data")
    there = far.folder() / "words"
    assert there.read_text() == "some words" and there.stat().st_mtime == 1700000000
    assert far.root.stat().st_mode & 0o77 == (far.root / "store").stat().st_mode & 0o77 == 0
    (act.project / "data/words").unlink()
    far.run("d", "data")
    assert (act.project / "data/words").read_text() == "some words"
    assert far.run("cat", "data/words").out == "some words"


def test_a_tree(act, far):
    make_tree(act)
    far.run("u", "data")
    assert content(far.folder()) == content(act.project / "data")
    assert (far.folder() / "hole").stat().st_blocks < 1000
    far.run("verify", "data")
    assert far.run("u", "data", "--json").json["objects"] == 0
    (act.project / "data").rename(act.project / "sent")
    far.run("d", "data")
    assert content(act.project / "data") == content(act.project / "sent")
    assert far.run("d", "data", "--json").json["objects"] == 0


def test_the_other_verbs(act, far):
    for name in ("a", "sub/b", "sub/c"):
        act.write(f"data/{name}", name)
    far.run("u", "data")
    assert far.run("ls", "data/sub").out.split() == ["b", "c"]
    assert "3" in far.run("du", "data").out
    (far.folder() / "a").write_text("changed there")
    assert far.run("verify", "data", status=8).out == "size data/a\n"
    far.run("rm", "-y", "data/sub/b")
    assert sorted(p.name for p in (far.folder() / "sub").iterdir()) == ["c"]
    far.run("rm", "-y", "data/sub")
    assert far.fail("ls", "data/sub", status=3)
    far.fail("u", "train.py", status=3, match="mapped folders: 'data', 'output'")


def test_large_parts(act, far):
    """Parts of any size that folders take are those of a folder there, too."""
    content_of = random.Random(2).randbytes(33 << 20)
    act.write("data/x", content_of)
    far.run("u", "data", "--part-size", "32M")
    assert (far.folder() / "x").read_bytes() == content_of
    (act.project / "data/x").unlink()
    far.run("d", "data", "--part-size", "32M")
    assert (act.project / "data/x").read_bytes() == content_of


def test_nothing_leads_out(act, far):
    act.write("data/x", "x")
    far.run("u", "data")
    outside = act.scratch / "outside"
    outside.mkdir()
    (far.folder() / "out").symlink_to(outside)
    act.write("data/out/y", "y")
    far.run("u", "data", status=None)
    assert not list(outside.iterdir())
    far.fail("cat", "data/../../x", status=2)


@pytest.fixture
def place(act, far):
    """A folder that only commands behind the login see."""
    seen, real = act.scratch / "seen", act.scratch / "real"
    for folder in (seen, real / "data"):
        folder.mkdir(parents=True)
    if subprocess.run(["unshare", "-rm", "mount", "--bind", real, seen], check=False).returncode != 0:
        pytest.skip("no namespace of mounts can be made")
    enter = f"mount --bind {real} {seen}; exec /bin/bash -c \"$SSH_ORIGINAL_COMMAND\""
    far.server.shell(f"exec unshare -rm sh -c '{enter}'")
    far.real = real / "data"
    return seen / "data"


def test_a_folder_that_the_login_node_sees(act, far, place):
    far.configure(config_param={"data_folder": {"mode": "path", "path": str(place)}})
    act.write("data/x", "x")
    far.run("u", "data")
    assert (far.real / "x").read_text() == "x"
    (far.real / "y").write_text("y")
    far.run("d", "data")
    assert (act.project / "data/y").read_text() == "y"


def test_a_folder_that_machines_see(act, far, place):
    act.write("aux_data/aml/lab.yaml", json.dumps(
        {"platform": "ssh", "ssh": {"hosts": [sshd.LOGIN]},
         "config_param": {"data_folder": {"mode": "path", "path": str(place)}}}))
    act.write("data/x", "x")
    far.run("u", "data")
    assert (far.real / "x").read_text() == "x"
    (far.real / "x").unlink()
    far.real.rmdir()
    far.fail("u", "data", status=3, match=f"'lab'.*{place}.*No such file")


def test_a_program_of_another_version(act, far):
    act.write("data/x", "x")
    far.run("u", "data")
    far.server.end_shared()
    program = next((far.root / "bin").iterdir()) / "act"
    size = program.stat().st_size
    program.write_bytes(b"#!/bin/sh\nprintf '%20s' x; exit 3\n".ljust(size))
    far.fail("u", "data", match="the other side sent something that is no part of what ACT says|was lost", status=None)


def arrived(far):
    """How much is there, also of what is not whole yet."""
    return sum(p.lstat().st_size for p in (far.root / "store").rglob("*") if not p.is_dir())


def test_a_connection_that_breaks_now_and_then(act, far):
    """Each command goes on where the one before it ended; in the end nothing is lost, and nothing is left over."""
    make_tree(act, files=100)
    far.run("u", "data/a name with 'quotes' and \u00e9")
    chance = random.Random(7)
    for _ in range(6):
        goal = arrived(far) + chance.randrange(1 << 20, 12 << 20)
        command = act.start("-c", "lab", "u", "data")
        act.until(lambda goal=goal, command=command: command.poll() is not None or arrived(far) >= goal, "much came")
        far.server.drop()
        said = command.communicate()[1].decode()
        assert command.returncode in (0, 5, 8), said
        assert command.returncode == 0 or "connection was lost" in said, said
    far.run("u", "data")
    assert content(far.folder()) == content(act.project / "data")
    assert far.run("u", "data", "--json").json["objects"] == 0
    (act.project / "data").rename(act.project / "sent")
    command = act.start("-c", "lab", "d", "data")
    act.until(lambda: command.poll() is not None or (act.project / "data").exists(), "the first came")
    far.server.drop()
    command.communicate()
    far.run("d", "data")
    assert content(act.project / "data") == content(act.project / "sent")
