"""What goes wrong on the nodes of a Slurm, and with its daemons: the truth, whatever is killed."""
import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess

import pytest

import slurm_bed
from slurm_fixtures import in_lab, start


@pytest.fixture
def small_lab(act, scratch):
    """A cluster whose shared folder is a disk with room for 4 MiB, once the agent is there."""
    if not slurm_bed.has_namespaces():
        pytest.skip("no permission for mounts")
    root = scratch / "shared"
    root.mkdir()
    # Before the nodes start: each has the mounts of that moment.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", root], check=True)
    try:
        for bed in start(nodes=1):
            for lab in in_lab(act, bed):
                lab.wait(lab.submit("true"), "Completed", status=0)
                (root / "taken").write_bytes(bytes(shutil.disk_usage(root).free - (4 << 20)))
                yield lab
    finally:
        subprocess.run(["umount", "--lazy", root], check=True)


def kill_and_end(lab, run, pid):
    """kill -9 of one process of the run, which then fails, and nobody is left."""
    os.kill(pid, signal.SIGKILL)
    info = lab.wait(run, "Failed")
    lab.act.until(lambda: not lab.bed.step_processes(str(lab.run_dir(run))), "nobody is left")
    return info


def start_ranks(lab):
    """A run of two ranks on each of two nodes; each says its own and its agent's process id."""
    run = lab.shell("echo $$ $PPID; exec sleep 300", n=4)
    for rank in range(4):
        lab.until_text(run, "\n", rank)
    return run, [list(map(int, lab.rank_text(run, rank).split())) for rank in range(4)]


def test_command_killed(lab):
    run, pids = start_ranks(lab)
    info = kill_and_end(lab, run, pids[3][0])
    assert (info["failed_rank"], info["exit_status"]) == (3, 137)
    assert "rank 3 was killed by signal 9 (Killed)" in info["reason"]


def test_agent_of_a_rank_killed(lab):
    run, pids = start_ranks(lab)
    info = kill_and_end(lab, run, pids[2][1])
    assert info["failed_rank"] == 2
    assert "rank 2 is lost" in info["reason"]


def test_supervisor_killed(lab):
    run, _ = start_ranks(lab)
    found = [pid for pid, words in lab.bed.step_processes(str(lab.run_dir(run))).items() if "supervise" in words]
    info = kill_and_end(lab, run, found[0])
    assert "lost" in info["reason"] or "killed" in info["reason"], info


def test_slurmd_killed(lab):
    """Slurm goes on without the daemon of a node; so does the run."""
    gate = lab.act.scratch / "gate"
    run = lab.shell(f"echo up; until [ -e {gate} ]; do sleep 0.1; done", n=4)
    lab.until_text(run, "up", rank=3)
    lab.bed.kill("slurmd.n2")
    assert lab.act.state(run) == "Running"
    gate.touch()
    lab.act.until(lambda: lab.record(run, "status.json")["state"] == "Completed", "the agent says so")
    lab.bed.start()
    lab.wait(run, "Completed", status=0)


def noted_state(lab, run):
    """The state in the ledger, where whoever watches a run writes it."""
    with contextlib.closing(sqlite3.connect(lab.act.home / "ledger.db")) as db:
        return db.execute("select state from runs where id = ?", [run]).fetchone()[0]


def test_controller_restarted_while_watched(lab):
    gate = lab.act.scratch / "gate"
    run = lab.shell(f"echo up; until [ -e {gate} ]; do sleep 0.1; done; exit 3", n=4)
    lab.until_text(run, "up")
    watcher = lab.act.start("wait", run)
    try:
        lab.act.until(lambda: noted_state(lab, run) == "Running", "it has asked once")
        lab.bed.until(lambda: os.fsencode(run) in (lab.bed.dir / "ctld/job_state").read_bytes(), "the job is on disk")
        lab.bed.kill("slurmctld")
        with pytest.raises(subprocess.TimeoutExpired):
            watcher.wait(2)
        message = lab.fail("true", status=5, env=lab.bed.impatient())
        assert "slurm" in message.lower()
        lab.bed.start()
        gate.touch()
        words = watcher.communicate()
        assert watcher.returncode == 3, words
    finally:
        watcher.kill()
        watcher.communicate()
    lab.wait(run, "Failed", status=3)


@pytest.mark.parametrize("n", [2, 4])
def test_folder_not_shared(lab, n):
    """A node does not see the run's folder: the only one, or the second. It is the same failure."""
    if not lab.bed.has_namespaces:
        pytest.skip("no permission for mounts: all nodes see the same")
    lab.root.mkdir()
    node = f"n{n // 2}"
    with lab.bed.hidden(lab.root, node):
        run = lab.submit("echo", "hi", n=n)
        info = lab.wait(run, "Failed")
    assert node in info["reason"] and "share" in info["reason"], info
    diagnosis = lab.act.run("why", "--json", run).json["diagnosis"]
    assert (diagnosis["id"], diagnosis["retry"]) == ("shared_folder", "after_change"), diagnosis


def test_disk_full(small_lab):
    """Where the package does not fit, nothing half-done is left; where what is in it does not, the run says so."""
    before = sorted((small_lab.root / "runs").iterdir()), small_lab.bed.jobs()
    small_lab.act.write("big.bin", os.urandom(6 << 20))
    small_lab.act.run("-c", "lab", "init")
    message = small_lab.fail("true", status=None)
    assert "No space left" in message
    assert (sorted((small_lab.root / "runs").iterdir()), small_lab.bed.jobs()) == before
    assert shutil.disk_usage(small_lab.root).free > 3 << 20
    small_lab.act.write("big.bin", bytes(32 << 20))
    small_lab.act.run("-c", "lab", "init")
    run = small_lab.submit("echo", "must not run")
    info = small_lab.wait(run, "Failed")
    assert "preparation failed" in info["reason"], info
    assert "No space left" in info["reason"] or "room" in info["reason"], info
    why = small_lab.act.run("why", run).out
    assert "disk" in why or "space" in why, why
