"""What commands leave that are killed, and what happens to those that work at the same time."""
import json
import os
import re
import socket
import subprocess
import time

import pytest


def secrets_below(act):
    return sorted(act.home.rglob("secrets.json"))


def this_machine(act):
    """As ACT calls it, where it has submitted a run."""
    lock, = (act.home / "new").glob(".lock-*")
    return lock.name.split("@")[1]


def leave_behind(act, run, machine=None, age=0):
    """What a submission leaves of a run when it is killed."""
    folder = act.home / f"new/{run}.0123456789ab@{machine or this_machine(act)}"
    folder.mkdir(parents=True)
    (folder / "secrets.json").write_text('{"MY_TOKEN": "hush"}')
    os.utime(folder, (time.time() - age,) * 2)
    return folder


def leftovers(act):
    return [p for p in (act.home / "new").glob("*") if not p.name.startswith(".")]


def test_what_killed_commands_left(act):
    run = act.finish("true")
    one = leave_behind(act, "exp_1_00000000")
    rows = {json.loads(line)["what"]: json.loads(line) for line in act.run("du", "--json").out.splitlines()}
    assert rows["leftovers"]["n"] == 1 and rows["leftovers"]["where"] == str(act.home / "new")
    said = act.run("prune", "--older", "30d", "--dry-run")
    assert "would remove 0 runs, 0 packages and 0 agents, 1 leftover of killed commands, " in said.err and one.exists()
    assert act.run("-y", "prune", "--older", "30d", "--json").json["leftovers"] == 1
    assert not leftovers(act) and "leftovers" not in act.run("du").out
    other = act.finish("true")
    for command in (["rm", "-y", run + ":"], ["submit", "true"], ["rm", "-y", other + ":"]):
        leave_behind(act, "exp_1_00000000")
        act.run(*command)
        assert not secrets_below(act) and not leftovers(act), command


@pytest.mark.parametrize("machine", ["elsewhere", "{host}", "{host}-01234567"])
def test_what_was_left_on_another_machine(act, machine):
    """Which may have the same host name. Its locks may not reach here: only age tells, or the removal of the run
    itself."""
    machine = machine.format(host=socket.gethostname())
    run = act.finish("true")
    leave_behind(act, "exp_1_00000000", machine, 7200)
    young = leave_behind(act, "exp_1_00000001", machine)
    own = leave_behind(act, run, machine)
    act.finish("true")
    assert sorted(leftovers(act)) == sorted([young, own])
    act.run("rm", "-y", run + ":")
    assert leftovers(act) == [young]


def test_a_submission_that_was_killed_is_removed_whole(act):
    """Its row is there, and it was never submitted: killed when its folder is seen, and a little later."""
    act.cluster("aml", extra={"env": {"MY_TOKEN": "hush"}})
    act.run("init")
    left = n = 0
    while n < 6 or not left:  # not each one is killed in time
        process = act.start("submit", "true")
        while process.poll() is None and not leftovers(act):
            time.sleep(0.0002)
        time.sleep(0.001 * (n % 6))
        process.kill()
        process.communicate()
        left += len(leftovers(act))
        act.age_runs()
        n += 1
        for run in act.run("q", "--json").json["runs"]:
            act.run("abort", run["id"], status=None)
            act.run("wait", run["id"], status=None)
            act.run("rm", "-y", run["id"] + ":")
        assert not secrets_below(act) and not leftovers(act)


def test_what_a_killed_change_left_is_not_packed(act):
    for folder in ("", "aux_data/aml/"):
        path = act.write(f"{folder}.act-new-abcdef", "platform: local # half", mtime=1e9)
    listed = act.run("init", "--dry-run").out
    assert "aux_data/aml/.act-new-abcdef  (built-in rule '.act-new-*')" in listed
    act.run("config", "set", "env.A", "1")
    assert not path.exists()


def test_many_prune_at_once(act):
    """What another one has removed meanwhile is no error."""
    for _ in range(4):
        act.finish("true")
    for i in range(30):
        old = [act.home / f"packages/{i:064x}.zip", act.home / f"bin/{i:016x}/act-node"]
        for path in old:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x" * 10_000)
            os.utime(path, (1e9, 1e9))
            os.utime(path.parent, (1e9, 1e9))
        leave_behind(act, f"exp_1_{i:08x}")
    time.sleep(2)
    done = [p.communicate() + (p.returncode,) for p in
            [act.start("-y", "prune", "--older", "1s") for _ in range(10)]]
    assert [d[2] for d in done] == [0] * 10, done
    assert not any(b"stay" in d[1] for d in done), done
    assert not act.run("q", "--json").json["runs"] and not leftovers(act)
    assert not list((act.home / "packages").iterdir()) and not list((act.home / "runs").iterdir())


def test_many_clusters_are_added_at_once(act):
    """One of them is the default, and it says so."""
    n = 20
    started = [act.start("cluster", "add", f"c{i}", "--kind", "local", "-y", cwd=act.scratch) for i in range(n)]
    done = [p.communicate() + (p.returncode,) for p in started]
    assert [d[2] for d in done] == [0] * n, done
    names = {c["name"] for c in act.run("cluster", "list", "--json").json["own"]}
    assert names >= {f"c{i}" for i in range(n)}
    (chosen,) = re.findall(r"default_cluster: (c\d+)", next(act.scratch.rglob("config.yaml")).read_text())
    assert [i for i, d in enumerate(done) if b"it is the default cluster now" in d[1]] == [int(chosen[1:])], done


def test_many_change_one_file_at_once(act):
    """Each change is in the file, or its command says that it is not."""
    started = [act.start("config", "set", f"env.V{i}", i) for i in range(12)]
    done = [p.communicate() + (p.returncode,) for p in started]
    assert [d[2] for d in done] == [0] * 12, done
    text = act.run("config", "show").out
    assert all(f"V{i}" in text for i in range(12)), text


# ---- a full disk

@pytest.fixture
def small_disk(act):
    """The runs are on a disk of 24 MiB, of which a file takes the half."""
    act.home.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=700", "none", act.home], capture_output=True)
    if done.returncode:
        pytest.skip("no permission to mount")
    act.env["ACT_CONFIG_HOME"] = str(act.scratch / "config")
    filler = act.home / "filler"
    filler.write_bytes(b"x" * (12 << 20))
    yield filler
    subprocess.run(["umount", "-l", act.home], check=True)


WRITE = "head -c 40000000 /dev/zero | tr '\\0' x"


def fill_the_disk(act, filler, command):
    run = act.submit("sh", "-c", command)
    status = act.home / f"runs/{run}/status.json"
    act.until(lambda: json.loads(status.read_text())["state"] in ("Failed", "Completed"), "its end")
    filler.unlink()
    return run


@pytest.mark.parametrize("command,state", [(f"{WRITE} || true; true", "Completed"),
                                           (f"{WRITE}; exit 3", "Failed")])
def test_the_disk_is_full_while_a_log_is_written(act, small_disk, command, state):
    run = fill_the_disk(act, small_disk, command)
    (row,) = [r for r in act.run("q", "--json").json["runs"] if r["id"] == run]
    assert row["state"] == state
    assert "the log of rank 0 is not whole: No space left on device" in row["reason"]
    said = act.run("why", run).out
    assert "log of rank 0 is not whole" in said or "this log is not whole" in said, said
    if state == "Failed":
        assert "NoSpace" in said or "disk" in said, said
    last = act.run("logs", run, status=None).out.splitlines()[-1]
    assert last == "act: this log is not whole: No space left on device while it was written"


def test_the_disk_is_full_for_a_time(act, small_disk):
    """Nobody knows whether the command has tried to write meanwhile."""
    command = f"echo first; {WRITE} >big || true; sleep 8; rm big; echo last"
    run = fill_the_disk(act, small_disk, command)
    (row,) = [r for r in act.run("q", "--json").json["runs"] if r["id"] == run]
    assert (row["state"], row["reason"]) == (
        "Completed", "the log of rank 0 may not be whole: No space left on device for a time")
    lines = act.run("logs", run).out.splitlines()
    assert lines[0] == "first" and lines[-3:] == [
        "last", "", "act: this log may not be whole: No space left on device for a time while it was written"]


def test_a_log_that_is_whole(act):
    run = act.finish("echo", "x")
    assert "not whole" not in act.run("why", run).out + act.run("logs", run).out
    assert not list((act.home / f"runs/{run}").rglob("room.*"))
