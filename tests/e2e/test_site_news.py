"""Logs that are followed behind a login: the other side tells what is new, and is asked for nothing meanwhile."""
import re
import subprocess

import pytest

import waiting

WRITER = "user_logs/std_log_process_{}.txt"


class Follower:
    """`a logs -f` of a run, whose output is in files."""

    def __init__(self, act, *words):
        self.act, self.out, self.err = act, act.scratch / "followed", act.scratch / "followed.err"
        self.files = open(self.out, "wb"), open(self.err, "wb")
        self.process = waiting.Process([act.programs / "a", "logs", "-f", *words], stdin=subprocess.DEVNULL,
                                       stdout=self.files[0], stderr=self.files[1],
                                       env=act.env | {"ACT_TRACE": "site"}, cwd=act.project)

    def text(self):
        return self.out.read_text()

    def until(self, text):
        self.act.until(lambda: text in self.text(), f"{text!r} is followed")

    def asked(self):
        """The requests so far, by name."""
        names = re.findall(r" site: \S+ (\S+)", self.err.read_text())
        return [name for several in names for name in several.split("+")]

    def end(self, status):
        assert self.process.wait() == status, self.err.read_text()
        for file in self.files:
            file.close()


@pytest.fixture
def lab(behind_ssh):
    return behind_ssh


def run_until(lab, go):
    return lab.shell(f"echo begins; until [ -e {lab.root}/{go} ]; do sleep 0.1; done; echo ends")


def append(lab, run, text, mode="a"):
    """As another process of the run may."""
    with open(lab.run_dir(run) / WRITER.format(0), mode) as log:
        log.write(text)


def test_requests_while_a_log_is_followed(act, lab):
    run = run_until(lab, "go")
    lab.until_text(run, "begins")
    follower = Follower(act, run)
    follower.until("begins\n")
    for n in range(20):
        append(lab, run, f"line {n}\n")
        follower.until(f"line {n}\n")
    asked = follower.asked()
    (lab.root / "go").touch()
    follower.end(0)
    assert "news" in asked and asked.count("files") <= 2, " ".join(asked)
    assert follower.text() == lab.rank_text(run)


def test_much_at_once(act, lab):
    """More than fits into what is told is read, and nothing is lost or comes twice."""
    run = run_until(lab, "go")
    follower = Follower(act, run)
    follower.until("begins\n")
    append(lab, run, "".join(f"line {n} of many that come at once\n" for n in range(100_000)))
    follower.until("line 99999 of many")
    append(lab, run, "one more\n")
    follower.until("one more\n")
    (lab.root / "go").touch()
    follower.end(0)
    assert follower.text() == lab.rank_text(run)


def test_a_log_that_begins_anew(act, lab):
    run = run_until(lab, "go")
    follower = Follower(act, run)
    follower.until("begins\n")
    append(lab, run, "a long line before it is cut off\n")
    follower.until("cut off\n")
    append(lab, run, "new\n", mode="w")
    follower.until("new\n")
    assert "begins anew" in follower.err.read_text()
    (lab.root / "go").touch()
    follower.end(0)


def test_all_ranks(act, lab):
    run = lab.shell(f'echo "$RANK begins"; until [ -e {lab.root}/go ]; do sleep 0.1; done; echo "$RANK ends"', n=4)
    follower = Follower(act, "--all", run)
    for rank in range(4):
        follower.until(f"{rank} begins\n")
    (lab.root / "go").touch()
    follower.end(0)
    assert sorted(line for line in follower.text().splitlines() if "ends" in line) == [
        f"[{rank}] {rank} ends" for rank in range(4)]


def test_a_connection_that_is_cut(act, lab):
    run = run_until(lab, "go")
    follower = Follower(act, run)
    follower.until("begins\n")
    lab.server.drop()
    append(lab, run, "written meanwhile\n")
    follower.until("written meanwhile\n")
    (lab.root / "go").touch()
    follower.end(0)
    assert follower.text() == lab.rank_text(run)
