"""Power cuts: a download over files that are there, onto a file system in an image; the image is copied while it is
written, as the disk would be left, and the copy is mounted. Every file there is the old one or the new one, and whole.

Needs root, loop devices and mkfs.ext4."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

MIB = 1 << 20
SIZE = 192 * MIB
LARGE = 11 * MIB  # in several parts


def possible():
    return os.geteuid() == 0 and os.path.exists("/dev/loop-control") and shutil.which("mkfs.ext4") is not None


def quietly(*words):
    return subprocess.run(list(map(str, words)), check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)


def do(*words):
    done = quietly(*words)
    assert done.returncode == 0, (words, done.stdout)


def mount(image, at):
    at.mkdir(exist_ok=True)
    return quietly("mount", "-o", "loop", image, at).returncode == 0


def contents(rng, version):
    """name -> bytes of small and large files; not one byte is the same in another version."""
    sizes = {f"small/{i}": rng.randrange(1, 40_000) for i in range(150)} | {f"large/{i}": LARGE for i in range(3)}
    return {name: bytes([version]) * size for name, size in sizes.items()}


def write(root, files):
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


def look(root, old, new):
    """What is wrong with the files after the cut, or None."""
    for name, before in old.items():
        path = root / name
        data = path.read_bytes() if path.exists() else None
        if data not in (before, new[name]):
            return f"{name} is neither old nor new: {'gone' if data is None else len(data)} bytes"
    return None


def writes_of(mounted):
    """What the device of a file system has done so far; it changes with every request."""
    device = quietly("findmnt", "-n", "-o", "SOURCE", mounted).stdout.strip()
    return pathlib.Path("/sys/block", pathlib.Path(device).name, "stat").read_text()


def copy_in_mid_write(process, mounted, image, copy, moment):
    """False: the kernel wrote all the time, so that no copy is of one moment."""
    time.sleep(moment)  # chance; what must hold does not depend on it
    process.send_signal(signal.SIGSTOP)
    with open(mounted / "other", "wb") as other:  # another program syncs: so the names are on the disk, not all bytes
        other.write(b"x")
        other.flush()
        os.fsync(other.fileno())
    try:
        for _ in range(10):
            before = writes_of(mounted)
            shutil.copyfile(image, copy)
            if writes_of(mounted) == before:
                return True
    finally:
        process.send_signal(signal.SIGCONT)
    return False


def cut(act, seed):
    """One round in the project of act, whose store is a folder. None, or what did not hold."""
    rng = random.Random(seed)
    old, new = contents(random.Random(seed), 1), contents(random.Random(seed), 2)
    image, copy, here, after = (act.scratch / "image", act.scratch / "copy", act.project / "data",
                                act.scratch / "after")
    with open(image, "wb") as file:
        file.truncate(SIZE)
    do("mkfs.ext4", "-q", image)
    if not mount(image, here):
        return None  # a container without the right to mount
    try:
        write(here, old)
        write(act.store / "files/data", new)
        os.sync()
        process = act.start("d", "data")
        copied = copy_in_mid_write(process, here, image, copy, rng.uniform(0, 1.5))
        out, err = process.communicate()
        assert process.returncode == 0, (out, err)
        violation = look(here, new, new)
    finally:
        quietly("umount", here)
    if violation or not copied:
        return violation
    if not mount(copy, after):
        return "the copy cannot be mounted"
    try:
        return look(after, old, new)
    finally:
        quietly("umount", after)
