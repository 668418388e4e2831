"""Machines without a scheduler, behind ssh: each is a private sshd with a home of its own."""
import contextlib
import os
import pathlib
import random
import re
import signal
import sqlite3
import time

import pytest

import sshd


def test_spine(act, hosts, host):
    act.write("hello.py", "import os; print('hello', os.environ['RANK'], os.environ['MASTER_ADDR'])\n")
    run = hosts.submit("python3", "hello.py", n=2)
    assert hosts.runs("gpu1") == [run]
    act.run("wait", run)
    assert act.state(run) == "Completed"
    assert act.lines(run, 1) == ["hello 1 127.0.0.1"]
    act.run("why", run)

    run = hosts.submit("sleep", "300")
    act.until_state(run, "Running")
    assert "gpu1" in act.run("nodes", run).out
    look = ("ssh", run, "--", "printenv", "ACT_RUN_ID")
    act.until(lambda: act.run(*look, status=None).out.strip() == run, "it has begun")
    act.run("abort", run)
    assert act.state(run) == "Canceled"


def requests(result):
    """What went over the connections, as "machine request"."""
    return re.findall(r"^ *[\d.]+ site: (\S+ \S+)$", result.err, re.MULTILINE)


def test_few_round_trips(act, hosts, host):
    """With an open connection: two where the code is there already, and three where it is not."""
    trace = {"ACT_TRACE": "site"}
    act.run("wait", hosts.submit("true"))
    result = act.run("-c", "lab", "-n", 1, "submit", "true", env=trace)
    asked = [r for r in requests(result) if not r.endswith(" open")]
    assert asked == ["gpu1 run"] * 2, result  # what there is; begin
    act.write("more.txt", "a package that is new there, but for the other files")
    result = act.run("-c", "lab", "-n", 1, "submit", "true", env=trace)
    asked = [r for r in requests(result) if not r.endswith(" open")]
    assert asked == ["gpu1 run", "gpu1 run", "gpu1 parts+run"], result
    result = act.run("q", env=trace)
    assert [r for r in requests(result) if not r.endswith(" open")] == ["gpu1 run"], result
    runs = [hosts.submit("sleep", "300") for _ in range(3)]
    result = act.run("abort", *runs, env=trace)
    assert {r["state"] for r in act.run("q", "--json", *runs).json["runs"]} == {"Canceled"}
    assert [r for r in requests(result) if not r.endswith(" open")] == ["gpu1 run"] * 2, result  # end; how they ended


def test_all_machines_are_asked_at_once(act, pair):
    """Each shell waits until the other one has begun; then each machine is asked once."""
    for name in ("gpu1", "gpu2"):
        pair.use(name)
        pair.submit("sleep", "300")
    pair.use("gpu1", "gpu2")
    for name, other in (("gpu1", "gpu2"), ("gpu2", "gpu1")):
        pair.servers[name].end_shared()
        pair.servers[name].shell(sshd.as_machine(2, f"touch {act.scratch}/{name}\n"
                                                    f"until [ -e {act.scratch}/{other} ]; do sleep 0.1; done\n"))
    result = act.run("q", env={"ACT_TRACE": "site"})
    asked = [r for r in requests(result) if not r.endswith(" open")]
    assert sorted(asked) == ["gpu1 run", "gpu2 run"], result


def test_the_first_one_with_room(act, pair):
    said = []
    for _ in range(4):
        result = act.run("-c", "lab", "-n", 2, "submit", "--", "sh", "-c", "[ $RANK = 1 ] || echo up; exec sleep 300")
        said.append([line for line in result.err.splitlines() if line.startswith("on '")])
    assert said[0] == ["on 'gpu1'"] and said[1] == ["on 'gpu2'"], said
    assert said[2] == ["on 'gpu1', where it waits: no machine has 2 free processors now"], said
    assert said[3] == ["on 'gpu2', where it waits: no machine has 2 free processors now"], said
    assert len(pair.runs("gpu1")) == len(pair.runs("gpu2")) == 2
    act.until(lambda: [r["state"] for r in act.run("q", "--json").json["runs"]].count("Running") == 2, "two run")
    act.run("-c", "lab", "abort", "--all", "-y")
    states = {r["state"] for r in act.run("q", "--json").json["runs"]}
    assert states == {"Canceled"}


def test_a_machine_that_is_down(act, pair):
    run = pair.submit("sleep", "300")
    act.until_state(run, "Running")
    other = act.run("-c", "lab", "-n", 2, "submit", "sleep", "300").out.strip()
    assert pair.runs("gpu2") == [other]
    pair.servers["gpu2"].stop()
    result = act.run("q", "--json")
    assert {r["id"]: r["state"] for r in result.json["runs"]}[run] == "Running"
    warnings = [line for line in result.err.splitlines() if "warning" in line]
    assert len(warnings) == 1 and "the state of 1 run may be old: " in warnings[0] and "'gpu2'" in warnings[0], result
    result = act.run("-c", "lab", "summary")
    assert len([line for line in result.err.splitlines() if "'gpu2' is left out: " in line]) == 1, result
    down = {p["name"]: p["nodes"]["down"] for p in act.run("-c", "lab", "summary", "--json").json["partitions"]}
    assert down == {"gpu1": 0, "gpu2": 1}
    assert pair.submit("true") in pair.runs("gpu1")
    assert "gpu2" in act.fail("why", other, status=5)
    pair.servers["gpu2"].start()
    act.until_state(other, "Running")


def test_more_than_there_is(act, pair):
    message = act.fail("-c", "lab", "-n", 6, "submit", "true", status=6)
    assert "6 processes are asked for, but 'lab' has 4; use at most -n 4" in message
    assert pair.runs("gpu1") == pair.runs("gpu2") == [] and act.run("q", "--json").json["runs"] == []


def test_machines_of_two_sizes(act, hosts):
    """A run over several has as many of each."""
    for name, slots in (("gpu1", 4), ("gpu2", 2)):
        hosts.add(name, slots=slots)
    hosts.use("gpu1", "gpu2")
    message = act.fail("-c", "lab", "-n", 6, "submit", "true", status=6)
    assert "6 processes are asked for, but 'lab' has 4 (" in message
    assert "'gpu1' has 4, 'gpu2' has 2, and 'gpu_per_node: 2' takes 2 of each" in message
    assert hosts.runs("gpu1") == hosts.runs("gpu2") == []


@pytest.mark.parametrize("hosts_key, said", [
    ([], "names no machine"), (["gpu1", "gpu1"], "names 'gpu1' twice"), (["-oProxyCommand=x"], "is not of the form"),
    (["a b"], "is not of the form"), (["me@gpu1:2222"], "write 'ssh://me@gpu1:2222', or leave it out"),
    (["me@gpu1:2222"], "give the host its 'Port 2222' in ~/.ssh/config"),
    *(([f"ssh://{uri}"], "is no URI that ssh takes: write 'ssh://user@host:port'")
      for uri in ("gpu1:none", "gpu1:22/home", "me@", "@gpu1", "gpu1:0", "gpu1:70000", "me@[::1:22"))])
def test_bad_lists(act, hosts, hosts_key, said):
    hosts.use(*hosts_key)
    assert said in act.fail("-c", "lab", "submit", "true", status=7)


def test_no_list(act):
    act.write("aux_data/aml/lab.yaml", "platform: ssh\n")
    assert "lab.yaml:1:1: 'ssh.hosts' names no machine" in act.run("-c", "lab", "config", "check", status=7).out
    act.fail("-p", "platform: ssh", "submit", "true", status=(2, 7), match="-p:1:1: 'ssh.hosts' names no machine")


def test_top_counts_all_machines(act, pair):
    place, = act.run("-c", "lab", "top", "--once", "--json").json["clusters"]
    assert place["nodes"] == 2, place


def test_a_port_in_a_uri(act, hosts, host):
    """As ssh takes it, whatever ~/.ssh/config says of the port."""
    config = act.scratch / "ssh_config"
    config.write_text(config.read_text().replace(f" Port {host.port}\n", " Port 1\n"))
    uri = f"ssh://gpu1:{host.port}"
    hosts.use(uri)
    run = hosts.submit("echo", "hello")
    assert hosts.runs("gpu1") == [run]
    act.run("wait", run)
    assert act.lines(run) == ["hello"] and uri in act.run("nodes", run).out


def test_a_machine_under_two_names(act, hosts, host):
    """Its GPUs would count twice, and a run over both names would wait for itself."""
    config = act.scratch / "ssh_config"
    config.write_text(config.read_text().replace("Host gpu1\n", "Host gpu1 gpu1.lan\n"))
    hosts.use("gpu1", "gpu1.lan")
    for words in (("submit", "true"), ("summary",)):
        assert "'gpu1' and 'gpu1.lan' in ssh.hosts are the same machine: name it once" in act.fail(
            "-c", "lab", *words, status=7), words
    assert hosts.runs("gpu1") == [] and act.run("q", "--json").json["runs"] == []


def test_without_mpirun(act, hosts, host):
    lean = act.scratch / "lean"
    lean.mkdir()
    for path in pathlib.Path("/usr/bin").iterdir():
        if path.name not in ("mpirun", "orterun"):
            (lean / path.name).symlink_to(path)
    (lean / "shell").write_text(f'#!/bin/bash\nexport PATH={lean}\nexec /bin/bash "${{@/-lc/-c}}"\n')
    (lean / "shell").chmod(0o755)
    host.shell(sshd.as_machine(4, f"export PATH={lean} SHELL={lean}/shell"))
    message = act.fail("-c", "lab", "-n", 2, "submit", "true", status=3)
    assert "mpirun is not on 'gpu1'" in message and hosts.runs("gpu1") == []
    act.run("wait", hosts.submit("true"))


def test_a_folder_that_a_machine_does_not_have(act, hosts, host):
    """The doctor and 'a why' name it: the program is not to blame."""
    place = act.scratch / "place"
    act.cluster("lab", extra={"platform": "ssh", "ssh": {"hosts": ["gpu1"]},
                              "config_param": {"data_folder": {"mode": "path", "path": str(place)}}})

    def check(ok):
        found = act.run("-c", "lab", "doctor", "--json", status=0 if ok else 1).json["checks"]
        return next(c["text"] for c in found if c["what"] == "folder 'data'" and c["ok"] == ok)

    assert f"there is no folder '{place}' on 'gpu1': make it there (mkdir -p)" in check(ok=False)
    run = hosts.submit("ls", "data")
    act.run("wait", run, status=125)
    why = act.run("why", "--json", run).json
    assert why["diagnosis"]["id"] == "place_missing" and str(place) in why["failure"]["reason"]
    place.mkdir()
    assert check(ok=True) == f"'{place}' on 'gpu1'"
    run = hosts.submit("ls", "data")
    act.run("wait", run)
    assert f"where it ran: 'a nodes {run}' names the node" in act.run("files", run).err


def test_where_nothing_can_be_written(act, hosts, host):
    (host.home / ".act").write_text("a file\n")
    message = act.fail("-c", "lab", "submit", "true", status=1)
    assert "cannot bring the agent to '~/.act' on 'gpu1'" in message
    assert act.run("q", "--json").json["runs"] == []


def test_unknown_and_changed_host_keys(act, hosts, host):
    (host.folder / "known").write_text("")
    assert "its host key is not known here" in act.fail("-c", "lab", "submit", "true", status=4)
    host.trust()
    host.stop()
    host.new_host_key()
    host.start()
    assert "its host key has changed" in act.fail("-c", "lab", "submit", "true", status=4)


def test_the_connection_goes_and_the_run_stays(act, hosts, host):
    run = hosts.submit("sh", "-c", "echo begun; while ! [ -e /tmp/none ] && [ ! -e go ]; do sleep 0.1; done; echo done")
    act.until(lambda: "begun" in act.run("logs", run).out, "it has begun")
    host.stop()
    code = next((host.home / ".act/runs" / run).glob("code"))
    (code / "go").write_text("")
    host.start()
    act.run("wait", run)
    assert act.lines(run) == ["begun", "done"]


def supervisor(host, run):
    return int((host.home / ".act/runs" / run / "supervisor.lock").read_text())


def test_a_machine_that_was_restarted(act, hosts, host):
    run = hosts.submit("sleep", "300")
    act.until_state(run, "Running")
    os.kill(supervisor(host, run), signal.SIGKILL)
    assert act.until_state(run, "Failed")
    assert "lost: the supervisor is gone" in act.info(run)["reason"]
    assert "machine restarted" in act.run("why", run).out


def test_again_elsewhere(act, pair):
    run = pair.submit("true")
    act.run("wait", run)
    assert pair.runs("gpu1") == [run]
    busy = act.run("-c", "lab", "-n", 2, "submit", "sleep", "300").out.strip()
    act.until_state(busy, "Running")
    again = act.run("resubmit", run).out.split()[-1]
    act.run("wait", again)
    assert pair.runs("gpu2") == [again]


def test_again_where_it_was(act, pair):
    busy = pair.submit("sleep", "300", n=2)
    act.until_state(busy, "Running")
    run = pair.submit("true")
    act.run("wait", run)
    assert pair.runs("gpu2") == [run]
    act.run("abort", busy)
    again = act.run("resubmit", run).out.split()[-1]
    act.run("wait", again)
    assert again in pair.runs("gpu2")


def test_found_again_without_the_ledger(act, pair):
    pair.submit("sleep", "300", n=2)
    run = pair.submit("echo", "hello", n=2)
    assert run in pair.runs("gpu2")
    act.run("wait", run)
    (act.home / "ledger.db").unlink()
    act.run("-c", "lab", "q", "--rebuild")
    assert len(act.run("q", "--json").json["runs"]) == 2
    assert act.lines(run) == ["hello"]
    pair.servers["gpu1"].stop()
    assert act.run("logs", run).out == "hello\n"  # nobody else is asked


def test_a_run_that_cannot_be_asked_about_fails_no_other(act, pair):
    """Also where both are asked about in one request."""
    runs = [pair.submit("sleep", "300", n=2) for _ in range(2)]
    here, there = sorted(runs, key=lambda run: run in pair.runs("gpu2"))
    assert there in pair.runs("gpu2") and here in pair.runs("gpu1")
    pair.servers["gpu2"].stop()
    for _ in range(2):
        shown = act.run("q", there, here, status=None)
        assert shown.status != 0 and "gpu2" in shown.err
        assert here in shown.out and "Running" in shown.out
        with contextlib.closing(sqlite3.connect(act.home / "ledger.db")) as db, db:
            db.execute("UPDATE runs SET place = NULL")  # as old ledgers have it: all are of the cluster


def test_cluster_add(act, hosts, host):
    ssh = act.scratch / "home/.ssh"
    ssh.mkdir(mode=0o700)
    (ssh / "config").write_text("Host gpu1 old\n  User me\nHost *.example\nhost = gpu2\n")
    message = act.fail("cluster", "add", "--kind", "ssh", status=2)
    assert "--hosts is missing: Machines, as user@host, with commas between them" in message
    assert "any name will do, such as: gpu1, old, gpu2" in message
    act.fail("cluster", "add", "--kind", "ssh", "--login", "x", status=2, match="of kind ssh; it takes --hosts")
    result = act.run("cluster", "add", "--kind", "ssh", "--hosts", "gpu1", "-y", status=(0, 1))
    assert re.search(r"^ok +gpu1: .* processors", result.out, re.MULTILINE), result
    assert "no folders are mapped: 'data' of a project goes with its code" in result.err
    keys = re.search(r"'a (-c gpu1 config set [^']*)'", result.err)[1].replace("/WHERE/IT/IS", str(host.home))
    act.run(*keys.split())
    assert act.run("-c", "gpu1", "ls", "data").out == ""
    act.run("-c", "gpu1", "config", "unset", "config_param.data_folder")
    assert not list(host.home.iterdir())  # nothing was brought there
    act.run("wait", act.submit("true", before=("-c", "gpu1")))


def test_prune_asks_a_machine_that_is_down_once(act, pair):
    """Two clusters name it, and every other place is compared with it. Twenty seconds later it may be there again."""
    for host in ("gpu1", "gpu2"):
        act.run("wait", act.run("-c", "lab", "-p", f"ssh: {{hosts: [{host}]}}", "-n", 1, "submit", "true").out.strip())
    pair.servers["gpu2"].stop()
    time.sleep(2.1)  # so that both runs are old
    program, asked = act.scratch / "counted-ssh", act.scratch / "asked"
    program.write_text(f'#!/bin/sh\necho "$(date +%s) $*" >>{asked}\nexec {act.env["ACT_SSH"]} "$@"\n')
    program.chmod(0o755)
    result = act.run("-c", "lab", "prune", "--older", "1s", "--dry-run", env={"ACT_SSH": str(program)})
    assert "cannot connect to 'gpu2'" in result.err
    lines = [line.split() for line in asked.read_text().splitlines() if "gpu2" in line]
    times = [int(line[0]) for line in lines if line[1] != "-G"]  # which asks only how ssh is configured
    assert times and all(later - earlier >= 19 for earlier, later in zip(times, times[1:])), asked.read_text()


def test_a_newer_version_beside_it_is_told(act, hosts, host):
    """By what the last connection has seen, not by one of its own."""
    act.run("wait", hosts.submit("true"))
    brought, = host.home.glob(".act/bin/*/version")
    assert brought.read_text().strip() in act.run("--version").out.splitlines()[0]
    for version in ("0.0.9", "99.10.0", "99.9.0"):
        folder = host.home / f".act/bin/{version}"
        folder.mkdir()
        (folder / "version").write_text(f"{version}\n")
    assert "newer" not in act.run("--version").out
    act.run("wait", hosts.submit("true"))
    assert "a newer one is there: 99.10.0 on gpu1" in act.run("--version", env={"ACT_SSH": "/bin/false"}).out


# ---- the verbs that watch, compare and try again


def test_a_sweep_over_machines(act, pair):
    """Its runs go where there is room, and are compared wherever they are."""
    act.write("train.sh", 'echo "step 1 loss $1"; [ $1 != 4 ] || exec sleep 300\n')
    act.run("-c", "lab", "-n", 2, "sweep", "--grid", "loss=3,1,4,2", "--", "bash", "train.sh", "{loss}")
    listed = act.run("q", "--json").json["runs"]
    assert len(listed) == 4 and pair.runs("gpu1") and pair.runs("gpu2")
    running, = [run["id"] for run in listed if run["id"] in act.run("q", "--json", "--tag", "loss=4").out]
    act.run("wait", *(run["id"] for run in listed if run["id"] != running))
    act.until_state(running, "Running")
    board = act.run("sweep", "--show", "@", "--metric", "loss", "--min", "--json").json["runs"]
    assert [run["parameters"]["loss"] for run in board] == ["1", "2", "3", "4"]
    assert "3 done  1 running" in act.run("top", "--once").out
    act.run("abort", running)


def test_a_run_that_hangs_on_a_machine(act, hosts, host):
    result = act.run("-c", "lab", "-n", 1, "submit", "--hang", "3s", "sh", "-c", "echo begins; exec sleep 300")
    run = result.out.strip()
    act.run("wait", run, status=143)
    info = act.info(run)
    assert info["state"] == "Failed" and info["reason"].startswith("hang: no rank has written a line for 3s"), info
    assert "hang" in act.run("why", run).out


def test_a_run_is_tried_again_on_its_machine(act, hosts, host):
    host.shell(sshd.as_machine(4, "export ACT_RETRY_PAUSE=0\n"))
    run = act.run("-c", "lab", "-n", 2, "submit", "--retry", 1, "--retry-on", "nccl_timeout", "sh", "-c",
                  "echo attempt $ACT_ATTEMPT; [ $RANK$ACT_ATTEMPT != 11 ] || { echo 'Watchdog caught collective "
                  "operation timeout: WorkNCCL(SeqNum=12)'; exit 9; }").out.strip()
    act.run("wait", run)
    assert act.info(run)["attempt"] == 2 and act.lines(run, 1) == ["attempt 2"]
    assert "Watchdog" in act.run("logs", "--all", "--attempt", 1, run).out


# ---- cuts and kills

ROUNDS, AT_ONCE = int(os.environ.get("ACT_SSH_ROUNDS", "3")), 20  # by hand: 200


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def play(act, pair, dice):
    """Runs are submitted while connections break; a submission and processes of a run are killed. What nobody has
    killed ends well, and of what was killed nothing is left."""
    servers = list(pair.servers.values())
    submits = [act.start("-c", "lab", "-n", dice.choice((1, 2)), "submit", "sh", "-c", f"sleep 0.{dice.randint(0, 9)}")
               for _ in range(3)]
    time.sleep(dice.random())
    victim = dice.choice([*submits, None])
    if victim:
        kill(victim.pid)
    if dice.random() < 0.5:
        dice.choice(servers).drop()
    answers = [process.communicate() for process in submits]
    runs = [out.decode().strip() for out, _ in answers if out]
    agents = [pid for server in servers for pid in server.agents()]
    torn = bool(agents) and dice.random() < 0.5
    if torn:
        kill(dice.choice(agents))
    for server in servers:
        if dice.random() < 0.5:
            server.drop()
            server.end_shared()
    for run in runs:
        act.run("wait", run, status=None)
    act.until(lambda: not [pid for server in servers for pid in server.agents()], "no agent is left")
    act.age_runs()  # who was killed may have begun a submission
    states = [run["state"] for run in act.run("q", "--json", "--max", 0).json["runs"]]
    assert set(states) <= {"Completed", "Failed", "Canceled"}, states
    assert states.count("Completed") >= len(runs) - torn, (states, answers)
    slots = act.run("-c", "lab", "summary", "--json").json["partitions"]
    assert [pool["gpus"]["idle"] for pool in slots] == [2, 2]
    act.run("-c", "lab", "prune", "--older", "0s", "-y", status=None)


@pytest.mark.parametrize("first", range(0, ROUNDS, AT_ONCE))
def test_cuts_and_kills(act, pair, first):
    for seed in range(first, min(first + AT_ONCE, ROUNDS)):
        play(act, pair, random.Random(seed))
