"""A run over several machines behind ssh, which have addresses, processes and homes of their own."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

import pods
import sshd

TIMEOUT = "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12)"
WAIT = ("sh", "-c", "echo begun; exec sleep 300")
HELLO = """
import os
print(*(os.environ[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR")), os.uname().nodename)
print(open("data.txt").read())
"""


def test_two_machines(act, rack):
    act.write("hello.py", HELLO)
    act.write("data.txt", "from the package")
    result = act.run("-c", "lab", "-n", 4, "submit", "python3", "hello.py")
    run = result.out.strip()
    assert "on 'gpu1' and 'gpu2'" in result.err.splitlines(), result
    assert rack.runs("gpu1") == rack.runs("gpu2") == [run] and rack.runs("gpu3") == []
    act.run("wait", run)
    assert act.state(run) == "Completed", act.run("why", run)
    address = rack.servers["gpu1"].address
    for rank, name in enumerate(["gpu1", "gpu1", "gpu2", "gpu2"]):
        assert act.lines(run, rank) == [f"{rank} 4 {rank % 2} {address} {name}", "from the package"]
    assert len(act.run("q", "--json").json["runs"]) == 1


def begin(act, rack, *words, n=4, before=(), options=()):
    """Submits a run and waits until all its ranks have begun."""
    run = act.run("-c", "lab", "-n", n, *before, "submit", *options, *(words or WAIT)).out.strip()
    act.until(lambda: act.run("logs", "--all", run, status=None).out.count("begun") == n,
              lambda: f"all begin\n{act.run('why', run, status=None)}\n{story(rack, run)}")
    return run


def story(rack, run):
    """What the agents say, for a test that fails."""
    logs = [path for server in rack.servers.values()
            for path in sorted((server.home / ".act/runs" / run).glob("system_logs/*.txt"))]
    return "\n".join(f"--- {path}\n{path.read_text()}" for path in logs)


def idle(act):
    """The slots that nothing uses, of each machine."""
    return {p["name"]: p["gpus"]["idle"] for p in act.run("-c", "lab", "summary", "--json").json["partitions"]}


def test_abort(act, rack):
    run = begin(act, rack, n=6)
    nodes = act.run("nodes", "--json", run).json["nodes"]
    assert [(n["name"], n["node"], n["first_rank"]) for n in nodes] == [("gpu1", 0, 0), ("gpu2", 1, 2), ("gpu3", 2, 4)]
    assert act.run("ssh", run, "gpu3", "--", "uname", "-n").out == "gpu3\n"
    act.run("abort", run)
    assert act.state(run) == "Canceled", story(rack, run)
    assert set(idle(act).values()) == {2}
    for server in rack.servers.values():
        act.until(lambda s=server: not s.agents(), "no agent is left")


def test_a_rank_fails(act, rack):
    run = act.run("-c", "lab", "-n", 4, "submit", "sh", "-c",
                  "[ $RANK = 3 ] && { echo no such thing; exit 7; }; exec sleep 300").out.strip()
    act.run("wait", run, status=None)
    assert act.state(run) == "Failed" and act.info(run)["exit_status"] == 7
    why = act.run("why", run).out
    assert "rank 3" in why and "no such thing" in why, why
    assert set(idle(act).values()) == {2}


def test_another_machine_dies(act, rack):
    run = begin(act, rack)
    rack.servers["gpu2"].stop()
    act.until(lambda: act.state(run) == "Failed", lambda: f"it fails\n{story(rack, run)}", timeout=120)
    assert "'gpu2' was lost" in act.info(run)["reason"]
    assert "gpu2" in act.run("why", run).out
    rack.servers["gpu2"].start()
    act.until(lambda: set(idle(act).values()) == {2}, lambda: f"all slots are free {idle(act)}")


def test_the_first_machine_dies(act, rack):
    run = begin(act, rack)
    rack.servers["gpu1"].stop()
    act.until(lambda: act.state(run) == "Failed", lambda: f"it fails\n{story(rack, run)}", timeout=120)
    assert "'gpu1' was lost" in act.info(run)["reason"]
    rack.servers["gpu1"].start()
    act.until(lambda: set(idle(act).values()) == {2}, lambda: f"all slots are free {idle(act)}")


def test_they_wait_for_one_another(act, rack):
    """Four runs over two of three machines each: none holds what another one waits for, for ever."""
    runs = []
    for names in (("gpu1", "gpu2"), ("gpu2", "gpu1"), ("gpu2", "gpu3"), ("gpu3", "gpu1")):
        rack.use(*names)
        runs.append(act.run("-c", "lab", "-n", 4, "submit", "sleep", "1").out.strip())
    act.until(lambda: all(act.state(run) == "Completed" for run in runs),
              lambda: "all end\n" + "\n".join(story(rack, run) for run in runs), timeout=180)


def test_it_waits_and_is_aborted(act, rack):
    rack.use("gpu2")
    other = begin(act, rack, n=2)
    rack.use("gpu1", "gpu2")
    run = act.run("-c", "lab", "-n", 4, "submit", "true").out.strip()
    act.until(lambda: "waits for its turn on 'gpu2'" in (act.info(run)["reason"] or ""), "it waits")
    assert act.state(run) == "Queued"
    act.run("abort", run)
    assert act.state(run) == "Canceled"
    assert act.state(other) == "Running"
    act.run("abort", other)


def waits_on(act, run, name):
    """Whether it waits for slots of a machine, which may be the one that leads."""
    reason = act.info(run)["reason"] or ""
    return f"waits for its turn on '{name}'" in reason or (name == "gpu1" and "waits for 2 processors" in reason)


def test_what_it_has_while_it_waits_is_not_idle(act, rack):
    """It takes the slots of its machines one after the other: where the first one has room, they are its own."""
    left = {}
    for full in ("gpu1", "gpu2"):
        rack.use(full)
        runs = [begin(act, rack, n=2)]
        rack.use("gpu1", "gpu2")
        runs.append(act.run("-c", "lab", "-n", 4, "submit", "true").out.strip())
        act.until(lambda f=full, r=runs[1]: waits_on(act, r, f), "it waits")
        left[full] = idle(act)
        assert left[full][full] == 0
        act.run("abort", *reversed(runs))
        act.until(lambda: set(idle(act).values()) == {2}, lambda: f"all slots are free: {idle(act)}")
    assert sorted([left["gpu1"]["gpu2"], left["gpu2"]["gpu1"]]) == [0, 2], left


def test_without_mpirun(act, rack):
    """The agents start the ranks."""
    lean = act.scratch / "lean"
    lean.mkdir()
    for name in ("sh", "bash", "cat", "mkdir", "env", "uname", "python3", "mv", "rm", "tr", "grep", "sed"):
        (lean / name).symlink_to(f"/usr/bin/{name}")
    (lean / "shell").write_text(f'#!/bin/bash\nexport PATH={lean}\nexec /bin/bash "${{@/-lc/-c}}"\n')
    (lean / "shell").chmod(0o755)
    server = rack.servers["gpu2"]
    server.shell(sshd.as_machine(2, f"export PATH={lean} SHELL={lean}/shell TMPDIR={server.folder}/tmp"))
    act.write("hello.py", HELLO)
    act.write("data.txt", "x")
    run = act.run("-c", "lab", "-n", 4, "submit", "python3", "hello.py").out.strip()
    act.run("wait", run, status=None)
    assert act.state(run) == "Completed", story(rack, run)
    assert [act.lines(run, rank)[0][:5] for rank in range(4)] == [f"{rank} 4 {rank % 2}" for rank in range(4)]


def test_machines_that_do_not_reach_one_another(act, rack):
    run = begin(act, rack, n=2)  # the programs are there
    act.run("abort", run)
    space = rack.servers["gpu2"].space
    pods.ip("-n", space, "route", "add", "blackhole", f"{rack.servers['gpu1'].address}/32")
    try:
        message = act.fail("-c", "lab", "-n", 4, "submit", "true", status=6)
    finally:
        pods.ip("-n", space, "route", "del", "blackhole", f"{rack.servers['gpu1'].address}/32")
    assert "'gpu2' cannot reach 'gpu1'" in message or "'gpu1' cannot reach 'gpu2'" in message, message
    assert rack.runs("gpu1") == [run] and rack.runs("gpu2") == []
    assert [r["id"] for r in act.run("q", "--json").json["runs"]] == [run]


def test_one_behind_another(act, rack):
    """gpu3 is reached by way of gpu1."""
    rack.put_behind("gpu3", "gpu1")
    rack.use("gpu2", "gpu3")
    before = rack.servers["gpu1"].logins()
    run = begin(act, rack, "sh", "-c", "echo begun $RANK")
    act.run("wait", run)
    assert act.state(run) == "Completed"
    assert rack.servers["gpu1"].logins() > before and rack.runs("gpu1") == []
    assert sorted(re.findall(r"begun (\d)", act.run("logs", "--all", run).out)) == ["0", "1", "2", "3"]


def test_a_folder_in_common(act, rack):
    for names in (["gpu1"], ["gpu1", "gpu2"]):  # the programs are there before both want to bring them
        rack.use(*names, root=str(act.scratch / "store/common"))
        act.run("-c", "lab", "summary")
    message = act.fail("-c", "lab", "-n", 4, "submit", "true", status=7)
    assert "have '" in message and "in common" in message and "ssh.root" in message
    assert act.run("q", "--json").json["runs"] == []


def test_connections_go_and_the_run_stays(act, rack):
    run = begin(act, rack, "sh", "-c", "echo begun; while [ ! -e go ]; do sleep 0.1; done; echo done")
    for server in rack.servers.values():
        server.end_shared()
    for server in rack.servers.values():
        for code in (server.home / ".act/runs").glob(f"{run}/nodes/*/code"):
            (code / "go").write_text("")
    act.run("wait", run)
    assert [act.lines(run, rank) for rank in range(4)] == [["begun", "done"]] * 4


def test_again(act, rack):
    """A second attempt on the same machines, after a rank that failed."""
    server = rack.servers["gpu1"]
    server.shell(sshd.as_machine(2, f"export TMPDIR={server.folder}/tmp ACT_RETRY_PAUSE=0\n"))
    run = act.run("-c", "lab", "-n", 4, "submit", "--retry", 1, "--retry-on", "nccl_timeout", "sh", "-c",
                  f"echo attempt $ACT_ATTEMPT; [ $RANK$ACT_ATTEMPT != 21 ] || {{ echo '{TIMEOUT}'; exit 9; }}; "
                  "[ $ACT_ATTEMPT = 2 ] || exec sleep 300").out.strip()
    act.run("wait", run, status=None)
    assert act.state(run) == "Completed", story(rack, run)
    assert [act.lines(run, rank) for rank in range(4)] == [["attempt 2"]] * 4
    assert TIMEOUT in act.run("logs", "--all", "--attempt", 1, run).out


@pytest.mark.parametrize("after_s", [0, 1])
def test_a_machine_goes_between_attempts(act, rack, after_s):
    """Whenever that is, no next attempt waits for it for ever."""
    run = act.run("-c", "lab", "-n", 4, "submit", "--retry", 1, "--retry-on", "nccl_timeout", "sh", "-c",
                  f"[ $RANK$ACT_ATTEMPT != 01 ] || {{ echo '{TIMEOUT}'; exit 9; }}; exec sleep 300").out.strip()
    act.until(lambda: TIMEOUT in act.run("logs", run, status=None).out, "it fails")
    time.sleep(after_s)
    os.kill(agents(rack.servers["gpu2"], "--slots-dir")[0], signal.SIGKILL)
    act.until(lambda: act.state(run) == "Failed", lambda: f"it ends\n{story(rack, run)}")
    assert "'gpu2'" in act.info(run)["reason"]
    act.until(lambda: set(idle(act).values()) == {2}, lambda: f"all slots are free: {idle(act)}")


def unread(pid):
    """How many bytes have come to the connections of a process that it has not read."""
    process = pathlib.Path(f"/proc/{pid}")
    own = {os.readlink(fd) for fd in (process / "fd").iterdir()}
    rows = [line.split() for line in (process / "net/tcp").read_text().splitlines()[1:]]
    return sum(int(row[4].split(":")[1], 16) for row in rows if row[3] == "01" and f"socket:[{row[9]}]" in own)


def test_a_machine_goes_while_an_attempt_ends(act, rack):
    """It has said that it is there, and not yet that nothing of the attempt is left on it."""
    run = begin(act, rack, "sh", "-c", f"echo begun; [ $RANK = 0 ] || exec sleep 300; until [ -e go ]; do sleep 0.1; "
                                       f"done; echo '{TIMEOUT}'; exit 9",
                options=("--retry", 1, "--retry-on", "nccl_timeout"))
    folder = rack.servers["gpu1"].home / ".act/runs" / run
    first, other = (agents(rack.servers[name], "--slots-dir")[0] for name in ("gpu1", "gpu2"))
    os.kill(other, signal.SIGSTOP)
    next(folder.glob("nodes/*/code")).joinpath("go").touch()
    act.until(lambda: (folder / "outcome.json").exists() and '"Failed"' in (folder / "outcome.json").read_text()
              and unread(other), "the first machine asks whether the other one is there")
    os.kill(first, signal.SIGSTOP)
    os.kill(other, signal.SIGCONT)
    act.until(lambda: unread(first) and not unread(other), "it is")
    os.kill(other, signal.SIGSTOP)
    os.kill(first, signal.SIGCONT)
    act.until(lambda: unread(other), "it is told to end what is left")
    os.kill(other, signal.SIGKILL)
    act.until(lambda: act.state(run) == "Failed", lambda: f"it ends\n{story(rack, run)}")
    assert "'gpu2'" in act.info(run)["reason"]


def test_the_run_is_where_its_cluster_is(act, rack):
    """The run is on two machines of three; the cluster's own configuration counts for it."""
    run = begin(act, rack, "echo", "begun")
    for words in (("wait", run), ("q", run), ("nodes", run), ("resubmit", "--dry-run", run)):
        assert "leads elsewhere" not in act.run(*words).err, words
    rack.use("gpu1")
    assert "leads elsewhere" in act.run("q", run).err


def test_what_needs_one_folder(act, rack):
    act.write("job.json", json.dumps({"properties": {
        "nodeCount": 2, "containerSettings": None,
        "customToolkitSettings": {"commandLine": "echo $AZ_BATCHAI_SHARED_JOB_TEMP"}}}))
    act.fail("-c", "lab", "submit", "-f", "job.json", status=7, match="folder that the 2 nodes of cluster 'lab' do not")
    rack.use("gpu1", "gpu2", root="~/my runs")
    act.fail("-c", "lab", "-n", 4, "submit", "true", status=7, match="'gpu1' keeps its runs in .*my runs', a path with")
    assert act.run("q", "--json").json["runs"] == []


def packages(act, rack):
    return sum(len(list(place.rglob("packages/*.zip"))) for place in (
        act.home, *(server.home for server in rack.servers.values())))


def test_nothing_is_left(act, rack):
    """What is removed of a run is removed on all its machines, and counted once."""
    act.write("data.txt", "x" * 100_000)
    run = begin(act, rack, "echo", "begun")
    act.run("wait", run)
    before = packages(act, rack)
    act.until(lambda: act.run("-c", "lab", "prune", "--older", "1s", "--dry-run", "--json").json["runs"], "it is old")
    done = act.run("-c", "lab", "prune", "--older", "1s", "-y", "--json").json
    assert done["packages"] == before - packages(act, rack) >= 2
    assert rack.runs("gpu1") == rack.runs("gpu2") == []


def agents(server, word):
    """The pids of the agents of a machine that were started with this word."""
    found = []
    for pid in server.agents():
        with contextlib.suppress(OSError):
            if word.encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                found.append(pid)
    return found


@pytest.mark.parametrize("name, word, said", [
    ("gpu2", "--slots-dir", "'gpu2' was lost"), ("gpu1", "--slots-dir", "lost: the supervisor is gone"),
    ("gpu1", "--pods", "the supervisor ended with status 137"), ("gpu2", "rank", "was killed")])
def test_an_agent_is_killed(act, rack, name, word, said):
    """However a run is torn, it ends, says why, and leaves no process and no slot behind."""
    run = begin(act, rack)
    os.kill(agents(rack.servers[name], word)[0], signal.SIGKILL)
    act.until(lambda: act.state(run) == "Failed", lambda: f"it fails\n{story(rack, run)}", timeout=120)
    assert said in act.info(run)["reason"], (act.info(run)["reason"], story(rack, run))
    act.until(lambda: set(idle(act).values()) == {2}, lambda: f"all slots are free: {idle(act)}")
    for server in rack.servers.values():
        act.until(lambda s=server: not agents(s, "rank") and not agents(s, "supervise"), "no agent of the run is left")


def test_a_home_that_is_full(act, rack):
    """What cannot be written on one machine is said with its name, and nothing stays queued on the others."""
    act.run("-c", "lab", "summary")  # the programs are there
    act.write("data.bin", os.urandom(3_000_000))
    server = rack.servers["gpu2"]
    pid = int(pathlib.Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()[0])
    enter = ["nsenter", "-t", str(pid), "-m", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs"]
    for folder in ("packages", "new"):
        (server.home / ".act" / folder).mkdir(exist_ok=True)
        subprocess.run([*enter, server.home / ".act" / folder], check=True)
    message = act.run("-c", "lab", "-n", 4, "submit", "true", status=None)
    assert message.status != 0 and "'gpu2'" in message.err and "No space left" in message.err, message
    assert rack.runs("gpu1") == rack.runs("gpu2") == [], "all have the package before one begins"
    act.until(lambda: set(idle(act).values()) == {2}, lambda: f"all slots are free: {idle(act)}")
