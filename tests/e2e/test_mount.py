"""Mapped folders that are mounted on the nodes of a run: rclone mount, a container of Azurite, and what goes wrong."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

FUSE = pathlib.Path("/dev/fuse")


@pytest.fixture
def mounts(act, azure):
    """The project with its folders mounted from Azurite, and no mount left at the end."""
    if not FUSE.exists() or not shutil.which("rclone") or not shutil.which("fusermount3"):
        pytest.skip("no FUSE here: scripts/install-deps --test")
    (act.scratch / "tmp").mkdir()
    act.env["TMPDIR"] = str(act.scratch / "tmp")
    yield azure
    left = points(act)
    for point in left:
        subprocess.run(["fusermount3", "-uz", point], check=False)
    assert not left


def points(act):
    """What is mounted below the test's folder."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4] for line in lines if str(act.scratch) in line.split()[4]]


def use(act, **modes):
    """The cluster file, whose folders have these modes; a mode None is the default."""
    path = act.cluster("aml")
    text = path.read_text()
    for folder, mode in modes.items():
        if mode:
            text = text.replace(f'"path": "files/{folder}"', f'"path": "files/{folder}", "mode": "{mode}"')
    path.write_text(text)


def test_the_default_mode_reads_and_writes_the_container(act, mounts):
    mounts.put("data/a.txt", b"from the store")
    act.finish("sh", "-c", "cat data/a.txt; mkdir -p output/deep; echo result >output/deep/b.txt; cp data/a.txt output/")
    run = act.finish("sh", "-c", "cat output/deep/b.txt")
    assert act.lines(run) == ["result"]
    assert mounts.get("output/deep/b.txt") == b"result\n" and mounts.get("output/a.txt") == b"from the store"
    assert not points(act) and not list((act.scratch / "tmp").glob("act-*/*"))
