"""Data verbs to a folder behind a login: slurm.root's own store, and folders of the mode 'path', over a real sshd."""
import contextlib
import fcntl
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import termios
import time
import zlib

import pytest

import sshd
import waiting


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


def test_how_often_a_command_waits(act, far):
    """Not for the agent, if ACT is there: the connection begins with the folder, what it is, and its list. Then once
    for all files, and for the disk with them."""
    act.write("data/x", "x")
    first = far.run("u", "data", env={"ACT_TRACE": "all"}).err
    assert "site: lab become" in first

    def waits(verb):
        said = far.run(verb, "data", env={"ACT_TRACE": "all"}).err
        assert " site: lab " not in said
        return said.count(" far: waits for ")

    assert waits("u") == waits("d") == 0
    for number in range(300):
        act.write(f"data/{number % 7}/{number}", f"number {number}")
    assert waits("u") == 1
    shutil.rmtree(act.project / "data")
    assert waits("d") == 1
    assert len(list(act.project.glob("data/*/*"))) == 300


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


def mount_there(act, far, words):
    """Commands behind the login see at the first path what these words mount of the second one."""
    seen, real = act.scratch / "seen", act.scratch / "real"
    for folder in (seen, real / "data"):
        folder.mkdir(parents=True, exist_ok=True)
    mount = words.format(real=real, seen=seen)
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount], check=False).returncode != 0:
        pytest.skip("no namespace of mounts can be made")
    far.server.end_shared()
    enter = f"{mount}; exec /bin/bash -c \"$SSH_ORIGINAL_COMMAND\""
    far.server.shell(f"exec unshare -rm sh -c '{enter}'")
    far.real = real / "data"
    far.configure(config_param={"data_folder": {"mode": "path", "path": str(seen / "data")}})
    return seen / "data"


@pytest.fixture
def place(act, far):
    """A folder that only commands behind the login see."""
    return mount_there(act, far, "mount --bind {real} {seen}")


def test_a_folder_that_the_login_node_sees(act, far, place):
    assert place.parent.is_dir() and not place.exists()
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
    far.fail("u", "data", match="sent something that is not part of ACT's protocol|was lost", status=None)


def test_a_program_that_says_nothing(act, far):
    """Whatever is started there instead of ACT, or before it, the user learns that it says nothing."""
    act.write("data/x", "x")
    far.run("u", "data")
    far.server.end_shared()
    program = next((far.root / "bin").iterdir()) / "act"
    program.write_bytes(b"#!/bin/sh\nexec sleep 1000\n".ljust(program.stat().st_size))
    far.fail("u", "data", status=5, match="'lab': the program of ACT there has said nothing for 1 second",
             env={"ACT_STALL_TIMEOUT": "1", "ACT_MAX_RETRIES": "0"})


def test_a_cut_before_the_first_words(act, far):
    """It is a cut as any other: the command connects again."""
    act.write("data/x", "x")
    far.run("u", "data")
    far.server.end_shared()
    program, begun = next((far.root / "bin").iterdir()) / "act", act.scratch / "begun"
    size = program.stat().st_size
    program.write_bytes(f"#!/bin/sh\n[ -e {begun} ] && exec {act.programs}/a \"$@\"\n"
                        f"touch {begun}\n".encode().ljust(size))
    act.write("data/y", "y")
    said = far.run("u", "data").err
    assert begun.exists() and "the connection to 'lab' was lost; connecting again" in said, said
    assert content(far.folder()) == content(act.project / "data")


def change(path, places, chance):
    """Other bytes at so many places; the length stays."""
    with open(path, "r+b") as file:
        for _ in range(places):
            file.seek(chance.randrange(path.stat().st_size - 1000))
            file.write(chance.randbytes(1000))


@pytest.fixture
def counted(act, far):
    """A relay that counts what passes; everything goes through it."""
    with sshd.Busy(far.server, refuses=0) as relay:
        act.env |= relay.env
        yield relay


def test_only_what_changed(act, far, counted):
    """Of a file that is there already only the blocks that differ move, in both directions."""
    chance = random.Random(3)
    size = 24 << 20
    path = act.write("data/large.bin", chance.randbytes(size))
    small = act.write("data/small.bin", chance.randbytes(1 << 20))
    far.run("u", "data")
    assert counted.passed > size
    for verb in "u", "d":
        here, there = act.project / "data", far.folder()
        for name in path.name, small.name:
            change((here if verb == "u" else there) / name, 5, chance)
        before = counted.passed
        far.run(verb, "--overwrite", "data")
        assert counted.passed - before < 2 << 20
        assert content(here) == content(there)
    path.write_bytes(path.read_bytes()[:5 << 20])  # it is shorter
    before = counted.passed
    far.run("u", "data")
    assert counted.passed - before < 2 << 20 and content(act.project / "data") == content(far.folder())
    with open(far.folder() / path.name, "ab") as file:
        file.write(chance.randbytes(3 << 20))
    far.run("d", "--overwrite", "data")
    assert content(act.project / "data") == content(far.folder())


def test_bwlimit(act, far, counted):
    """Under a limit everything arrives, in both directions."""
    act.write("data/x", random.Random(4).randbytes(3 << 20))
    trace = far.run("u", "data", "--bwlimit", "2M", env={"ACT_TRACE": "far"}).err
    assert "waits for --bwlimit" in trace and "not used" not in trace
    (act.project / "data").rename(act.project / "sent")
    trace = far.run("d", "data", "--bwlimit", "2M", env={"ACT_TRACE": "far"}).err
    assert "waits for --bwlimit" in trace
    assert content(act.project / "data") == content(act.project / "sent")


def size_of(folder):
    """How much is in a folder, in which files come and go."""
    size = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            size += 0 if path.is_dir() else path.lstat().st_size
    return size


def arrived(far):
    """How much is there, also of what is not whole yet."""
    return size_of(far.root / "store")


def cut_while(act, far, command, cuts, chance, came):
    """Breaks the connections of a command so many times, each time when more has come. Returns how often."""
    done = 0
    while done < cuts and command.poll() is None:
        goal = came() + chance.randrange(1 << 10, 1 << 20)
        act.until(lambda goal=goal: command.poll() is not None or came() >= goal, "more came")
        if command.poll() is None:
            far.server.drop()
            done += 1
    return done


def leftovers(folder):
    return [p.name for p in folder.rglob(".act-part-*")]


def test_a_connection_that_breaks_now_and_then(act, far):
    """A command whose connection breaks goes on by itself; nothing is lost, nothing is left over."""
    make_tree(act, files=100)
    for number in range(3):
        act.write(f"data/large-{number}.bin", random.Random(number).randbytes(20 << 20))
    far.run("u", "data/a name with 'quotes' and \u00e9")
    chance = random.Random(7)
    for verb in "u", "d":
        command = act.start("-c", "lab", verb, "data", "--part-size", "1M", "--bwlimit", "40M",
                            env={"ACT_MAX_RETRIES": "30"})
        came = arrived if verb == "u" else lambda far: size_of(act.project / "data")
        cuts = cut_while(act, far, command, 20, chance, lambda came=came: came(far))
        said = command.communicate()[1].decode()
        assert command.returncode == 0, said
        assert cuts > 0 and "the connection to 'lab' was lost; connecting again" in said, said
        if verb == "u":
            assert content(far.folder()) == content(act.project / "data")
            assert far.run("u", "data", "--json").json["objects"] == 0
            (act.project / "data").rename(act.project / "sent")
    assert content(act.project / "data") == content(act.project / "sent")
    assert not leftovers(far.folder()) and not leftovers(act.project / "data")


def test_only_what_changed_after_a_cut(act, far, counted):
    """A connection that breaks while a changed file comes costs no more than what had not come."""
    chance = random.Random(8)
    path = act.write("data/large.bin", chance.randbytes(24 << 20))
    far.run("u", "data")
    change(far.folder() / path.name, 50, chance)
    before = counted.passed
    command = act.start("-c", "lab", "--no-share", "d", "--overwrite", "data", "--bwlimit", "100K")
    act.until(lambda: counted.passed - before > 200 << 10, "some of it came")
    far.server.drop()
    said = command.communicate()[1].decode()
    assert command.returncode == 0 and "the connection to 'lab' was lost; connecting again" in said, said
    assert counted.passed - before < 4 << 20
    assert content(act.project / "data") == content(far.folder())


def children(pid):
    return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize(("verb", "where"), [("u", "there"), ("d", "there"), ("u", "here")])
def test_an_end_that_is_stopped(act, far, verb, where):
    """Nothing comes of it any more, or of the ssh here: the command connects again."""
    for number in range(60):
        act.write(f"data/{number}", random.Random(number).randbytes(100_000))
    far.run("u", "data/0" if verb == "u" else "data")
    far.server.end_shared()
    if verb == "d":
        (act.project / "data").rename(act.project / "sent")
    came = far.folder() if verb == "u" else act.project / "data"
    before = size_of(came)
    share = [] if where == "there" else ["--no-share"]  # what is shared passes by the ssh of a command
    command = act.start("-c", "lab", *share, verb, "data", "--bwlimit", "1M",
                        env={"ACT_STALL_TIMEOUT": "2", "ACT_MAX_RETRIES": "30"})
    act.until(lambda: size_of(came) > before + 500_000, "some of it came")
    stopped = far.server.agents() if where == "there" else children(command.pid)
    assert stopped
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        said = command.communicate()[1].decode()
        assert command.returncode == 0 and "the connection to 'lab' was lost; connecting again" in said, said
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    act.until(lambda: not set(stopped) & set(far.server.agents()), "it has ended")
    assert content(far.folder()) == content(act.project / ("data" if verb == "u" else "sent"))
    assert content(act.project / "data") == content(far.folder())


def test_a_connection_that_does_not_come_back(act, far):
    """In the end the user is told, and the same command goes on where this one was."""
    waiting.settled(act.write("data/x", random.Random(5).randbytes(8 << 20)))
    command = act.start("-c", "lab", "u", "data", "--part-size", "1M", "--bwlimit", "4M",
                        env={"ACT_MAX_RETRIES": "2"})
    act.until(lambda: any(p.stat().st_size for p in far.root.rglob(".act-part-*.map")), "a block is written down there")
    far.server.stop()
    said = command.communicate()[1].decode()
    assert command.returncode != 0 and "act: " in said.splitlines()[-1], said
    act.until(lambda: not far.server.agents(), "the other end has ended, too: the upload is nobody's")
    far.server.start()
    assert far.run("u", "data", "--part-size", "1M", "--json").json["resumed_bytes"] > 0
    assert content(far.folder()) == content(act.project / "data")


# ---- what is there, and may be done there


def test_nothing_newer_is_replaced(act, far):
    act.write("data/x", "mine", mtime=1700000000)
    far.run("u", "data")
    (far.folder() / "x").write_text("changed there")
    assert "data/x" in far.run("u", "data", status=None).err
    assert (far.folder() / "x").read_text() == "changed there"
    far.run("u", "--overwrite", "data")
    assert (far.folder() / "x").read_text() == "mine"


def test_what_was_moved(act, far):
    """With --delete the names there are those here, and the reverse; without it nothing goes."""
    for name in ("old/a", "old/b", "stays"):
        act.write(f"data/{name}", name)
    far.run("u", "data")
    (act.project / "data/old").rename(act.project / "data/new")
    far.run("u", "data")
    assert (far.folder() / "old/a").exists()
    far.run("u", "--delete", "-y", "data")
    assert content(far.folder()) == content(act.project / "data")
    (far.folder() / "new").rename(far.folder() / "third")
    far.run("d", "--delete", "-y", "data")
    assert content(far.folder()) == content(act.project / "data")


def test_from_one_cluster_to_another(act, far):
    make_tree(act, files=30)
    far.run("u", "data")
    act.run("-c", "aml", "-f", "lab", "u", "data")
    here = act.store / "files/data"
    assert content(here) == content(far.folder())
    far.run("rm", "-y", "data")
    act.run("-c", "lab", "-f", "aml", "u", "data")
    assert content(far.folder()) == content(here)


def test_a_full_disk_there(act, far):
    place = mount_there(act, far, "mount -t tmpfs -o size=2m tmpfs {seen}; mkdir {seen}/data")
    act.write("data/fits", "x")
    act.write("data/large", random.Random(6).randbytes(20 << 20))
    said = far.run("u", "data", status=None)
    assert said.status != 0 and "No space left on device" in said.err and str(place) in said.err, said


def test_a_read_only_folder_there(act, far):
    place = mount_there(act, far, "mount --bind {real} {seen}; mount -o remount,bind,ro {seen}")
    (far.real / "y").write_text("y")
    act.write("data/x", "x")
    said = far.run("u", "data", status=None)
    assert said.status != 0 and "Read-only file system" in said.err and str(place) in said.err, said
    far.run("d", "data")
    assert (act.project / "data/y").read_text() == "y"


def test_a_folder_of_another_user_there(act, far):
    """What may be read can be fetched; what may not be written is said once, with its name."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    place = mount_there(act, far, "mount --bind {real} {seen}")
    (far.real / "y").write_text("y")
    for path in (far.real / "y", far.real):
        os.chown(path, 54321, 54321)
    act.write("data/x", "x")
    said = far.run("u", "data", status=None)
    assert said.status != 0 and "Permission denied" in said.err and str(place) in said.err, said
    far.run("d", "data")
    assert (act.project / "data/y").read_text() == "y"


# ---- the other end


MARK = 0x41435446  # of the head of a block


def block(of_call, words, bytes_follow):
    """One of one frame."""
    frame = struct.pack("<IIQ", len(words), bytes_follow, of_call) + words
    return struct.pack("<III", len(frame), len(frame), MARK) + frame


def ask_for_list(of_call):
    """A frame that asks for all that is there, in the words of far_words.c."""
    operation, flags, no_bytes, all_keys, no_marker, as_many_as_fit = b"\14", b"\0", b"\0", b"\1\0", b"\0", b"\0"
    words = operation + flags + no_bytes + all_keys + no_marker + as_many_as_fit + flags
    return block(of_call, words, 0)


def memory(pid):
    return int(pathlib.Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) * 1024


def cpu_ticks(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])


def is_idle(pid):
    before = cpu_ticks(pid)
    time.sleep(0.2)
    return cpu_ticks(pid) == before


def begin_file(of_call):
    """A frame that says that a byte of a file follows, which does not."""
    operation, flags, with_bytes, key, a_byte, no_md5, no_sum = b"\2", b"\0", b"\1", b"\2x\0", b"\1", b"\0", b"\0"
    file, no_mode, no_time, no_condition = b"\0", b"\1", b"\0", b"\0\0"
    words = (operation + flags + with_bytes + key + a_byte + no_md5 + no_sum + file + no_mode + no_time + no_condition)
    return block(of_call, words, 1)


def take_frames(stream):
    """Yields the numbers of the calls of frames that no bytes follow, block by block."""
    while True:
        packed, plain, mark = struct.unpack("<III", stream.read(12))
        frames = stream.read(packed)
        assert mark == MARK and len(frames) == packed
        frames = zlib.decompress(frames, -zlib.MAX_WBITS) if packed < plain else frames
        while frames:
            words, rest, of_call = struct.unpack("<IIQ", frames[:16])
            assert rest == 0 and len(frames) >= 16 + words
            frames = frames[16 + words:]
            yield of_call


NO_CALL = (1 << 64) - 1  # of a frame that says no more than that the end is there


def unread(pipe):
    """How many bytes wait in it."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


def test_lists_that_nobody_reads(act):
    """They wait in the stream, not in the memory of the end that serves; and all are answered when they are read."""
    folder, calls = act.scratch / "served", 400
    deep = folder / ("a" * 250) / ("b" * 250) / ("c" * 250)
    deep.mkdir(parents=True)
    for n in range(300):
        (deep / f"{n}{'-' * 240}").touch()
    asked = act.scratch / "asked"
    asked.write_bytes(b"".join(map(ask_for_list, range(calls))))
    env = act.env | {"ASAN_OPTIONS": "detect_leaks=1:quarantine_size_mb=1"}
    with (waiting.Process(["cat", asked, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as asks,
          waiting.Process([act.programs / "a", "__store", folder, "find"], stdin=asks.stdout, stdout=subprocess.PIPE,
                          env=env) as server):
        asks.stdout.close()
        frames = take_frames(server.stdout)
        assert next(frames) == 0  # its first words
        act.until(lambda: unread(server.stdout) > 4096, "it answers, and does not only say that it is there")
        act.until(lambda: is_idle(server.pid), "it takes no more in")
        peak = memory(server.pid)
        answers = itertools.islice((call for call in frames if call != NO_CALL), calls)
        assert sorted(answers) == list(range(calls))
        asks.stdin.close()
        assert server.wait() == 0
    assert peak < 120 << 20, f"{peak >> 20} MiB"  # all of them take more


def test_an_end_that_waits_says_so(act):
    """Whoever it serves knows by that that it is there; and nothing of a file that did not come whole is left."""
    folder = act.scratch / "served"
    folder.mkdir()
    with waiting.Process([act.programs / "a", "__store", folder, "find"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, env=act.env) as server:
        frames = take_frames(server.stdout)
        assert next(frames) == 0  # its first words
        server.stdin.write(begin_file(7))
        server.stdin.flush()
        assert [next(frames) for _ in range(3)] == [NO_CALL] * 3
        server.stdin.close()
        assert server.wait() == 0
    assert not list(folder.iterdir())
