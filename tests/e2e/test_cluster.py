"""Where runs are and what a cluster is doing: nodes, ssh, summary, blame; the logs of all ranks and of all attempts."""
import os
import re
import shutil
import socket
import subprocess

import pytest

HOST = socket.gethostname()


@pytest.fixture(autouse=True)
def slots(act):
    """As many processors as the tests want."""
    act.env["ACT_LOCAL_SLOTS"] = "4"


def table(result):
    """The rows of a table as dictionaries; its columns are two blanks apart."""
    head, *rows = result.out.splitlines()
    names = re.split(r"\s{2,}", head.strip())
    return [dict(zip(names, re.split(r"\s{2,}", row.strip()))) for row in rows]


def running(act, *words, n="1"):
    run = act.submit(*words, before=("-n", n))
    act.until_state(run, "Running")
    return run


def waiting_script(act, gate):
    act.write("talk.sh", f'echo "up $RANK"; while [ ! -e {gate} ]; do sleep 0.1; done; echo "down $RANK"')
    return ("sh", "talk.sh")


# ---- nodes


@pytest.mark.smoke
def test_nodes_of_a_running_run(act, two_ranks):
    run = running(act, "sleep", "300", n="2")
    node, = act.run("nodes", run, "--json").json["nodes"]
    assert (node["node"], node["name"], node["state"], node["first_rank"], node["ranks"]) == (0, HOST, "running", 0, 2)
    assert node["address"] is None and node["port"] is None
    row, = table(act.run("nodes", run[-8:]))
    assert (row["NODE"], row["NAME"], row["RANKS"]) == ("0", HOST, "0-1")
    act.run("abort", run)
    assert table(act.run("nodes", run))[0]["STATE"] == "ended"


def test_nodes_of_a_run_that_waits(act):
    blocker = running(act, "sleep", "300", n="4")
    queued = act.submit("true", before=("-n", "1"))
    act.until(lambda: act.info(queued)["reason"], "it says what it waits for")
    assert act.run("nodes", "--json", queued).json["nodes"] == []
    act.fail("nodes", queued, status=3, match="Queued.*waits for")
    act.fail("nodes", "no-such-run", status=3)
    act.run("abort", queued, blocker)


# ---- ssh


@pytest.mark.smoke
def test_a_command_on_a_node(act):
    act.write("here.txt", "the code")
    act.cluster("aml", extra={"env": {"COLOUR": "blue", "MY_TOKEN": "hidden"}})
    run = running(act, "sleep", "300")
    look = ("ssh", run, "--", "sh", "-c", "cat here.txt; echo; env")
    act.until(lambda: "RANK=0" in act.run(*look).out.split(), "the command runs")
    lines = act.run(*look).out.splitlines()
    assert lines[0] == "the code"
    assert {"COLOUR=blue", f"ACT_RUN_ID={run}", "RANK=0", "WORLD_SIZE=1"} <= set(lines)
    assert not any("hidden" in line for line in lines), "a secret would be seen in the list of processes"
    assert act.run("ssh", run, "0", "--", "sh", "-c", "exit 7", status=7)
    words = ["a b", "", "$HOME", "'\"", "-n", "--", "é\n"]
    out = act.run("ssh", run, HOST, "--", "printf", "%s|", *words).out
    assert out == "".join(f"{w}|" for w in words)
    act.run("abort", run)


def test_a_shell_on_a_node(act):
    run = running(act, "sleep", "300")
    process = subprocess.run([act.programs / "a", "ssh", run], input=b"pwd; exit 5\n", stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env={**act.env, "SHELL": "/bin/sh"}, cwd=act.project, timeout=300)
    assert process.returncode == 5, process
    assert process.stdout.decode().strip() == str(act.run_dir(run) / "code")
    act.run("abort", run)


def test_ssh_with_a_gpu_mask(act):
    """What the rank sees, the shell sees."""
    run = running(act, "env", "CUDA_VISIBLE_DEVICES=3", "sleep", "300")
    act.until(lambda: any(b"sleep" in b"".join(w) for w in act.processes().values()), "the command runs")
    out = act.until(lambda: act.run("ssh", run, "--", "printenv", "CUDA_VISIBLE_DEVICES", status=None).out,
                    "the mask of the command")
    assert out == "3\n"
    act.run("abort", run)


def test_ssh_where_it_cannot_be(act):
    run = running(act, "sleep", "300")
    act.fail("ssh", run, "n7", status=3, match=f"no node 'n7'.*{HOST}")
    act.fail("ssh", run, "1", status=3, match="no node '1'")
    act.fail("ssh", run, "pwd", status=3, match=f"no node 'pwd'.*a command comes after '--': a ssh {run} -- pwd")
    act.fail("ssh", run, "0", "hostname", status=2, match="after '--'")
    act.fail("ssh", status=2)
    act.fail("ssh", "--", "hostname", status=2, match=r"needs more: a ssh RUN")
    act.run("abort", run)
    act.fail("ssh", run, status=1, match="is Canceled")


# ---- summary


@pytest.mark.smoke
def test_summary_counts_slots_and_runs(act):
    empty = act.run("summary", "--json").json
    assert (empty["version"], empty["cluster"], empty["platform"]) == (1, "aml", "local")
    assert empty["total"]["gpus"] == {"total": 4, "idle": 4, "busy": 0, "down": 0}
    assert empty["own_runs"] == {"running": 0, "queued": 0}

    first = running(act, "sleep", "300", n="3")
    second = act.submit("sleep", "300", before=("-n", "2"))
    act.until_state(second, "Queued")
    busy = act.run("s", "--json").json
    assert busy["total"]["gpus"] == {"total": 4, "idle": 1, "busy": 3, "down": 0}
    assert busy["total"]["jobs"] == {"running": 1, "queued": 1, "queued_gpus": 2}
    assert busy["total"]["nodes"] == {"total": 1, "idle": 0, "busy": 1, "down": 0}
    assert busy["own_runs"] == {"running": 1, "queued": 1}
    text = act.run("s").out
    assert "cluster aml (local)" in text and "your runs: 1 running, 1 queued" in text and "load: " in text

    act.cluster("other")
    assert act.run("-c", "other", "s", "--json").json["own_runs"] == {"running": 1, "queued": 1}, "it is one machine"
    act.run("abort", second, first)
    assert act.run("s", "--json").json["total"]["gpus"]["idle"] == 4


def test_summary_of_a_cluster_that_nobody_knows_how_to_reach(act):
    act.cluster("far", extra={"platform": "k8s"})
    for verb in ("summary", "blame"):
        act.fail("-c", "far", verb, status=3, match="there is no kubeconfig")


# ---- blame


def test_blame_lists_the_longest_first(act):
    assert act.run("blame", "--json").json["jobs"] == []
    first = running(act, "sleep", "300.1")
    started = act.info(first)["started"]
    act.until(lambda: act.run("blame", "--json").json["jobs"][0]["running_s"] >= 1, "time passes")
    second = running(act, "sleep", "300.2", n="2")
    assert act.info(second)["started"] > started
    whole = act.run("blame", "--json").json
    assert [(j["job"], j["gpus"], j["name"]) for j in whole["jobs"]] == [(first, None, "sleep 300.1"),
                                                                         (second, None, "sleep 300.2")]
    assert all(j["node_names"] == HOST and j["nodes"] == 1 and j["limit_s"] is None for j in whole["jobs"])
    rows = table(act.run("blame"))
    assert [row["JOB"] for row in rows] == [first, second]
    one = act.run("blame", "--max", "1")
    assert [row["JOB"] for row in table(one)] == [first] and "1 of 2 jobs" in one.err
    assert act.run("blame", "--max", "0", "--json").json["total"] == 2
    act.run("abort", first, second)


# ---- the logs of all ranks


@pytest.mark.smoke
def test_all_ranks_follow(act, two_ranks):
    gate = act.scratch / "gate"
    run = running(act, *waiting_script(act, gate), n="2")
    watch = act.start("logs", "-f", "--all", run)
    seen = [watch.stdout.readline() for _ in range(2)]
    assert sorted(seen) == [b"[0] up 0\n", b"[1] up 1\n"], "before the run ends"
    gate.touch()
    out, err = watch.communicate()
    assert sorted(out.splitlines()) == [b"[0] down 0", b"[1] down 1"]
    assert (watch.returncode, err) == (0, b"Completed\n")
    assert act.run("logs", "--all", run).out == "[0] up 0\n[0] down 0\n[1] up 1\n[1] down 1\n", "one after the other"
    assert act.run("logs", "--all", "--tail", "1", run).out == "[0] down 0\n[1] down 1\n"


def test_all_ranks_follow_from_the_queue(act, two_ranks):
    """Logs that are not there yet are taken up when they come."""
    act.write("talk.sh", 'echo "late $RANK"')
    blocker = running(act, "sleep", "300", n="4")
    run = act.submit("sh", "talk.sh", before=("-n", "2"))
    watch = act.start("logs", "-f", "--all", run)
    act.run("abort", blocker)
    out, _ = watch.communicate()
    assert sorted(out.splitlines()) == [b"[0] late 0", b"[1] late 1"]


def test_lines_of_all_ranks_are_whole(act, two_ranks):
    """Ranks that write at the same time, in pieces: never two of them on one line; nothing is lost."""
    act.write("talk.py", """
import os, sys, time
rank = os.environ["RANK"]
for i in range(300):
    for piece in ("rank ", rank, " line ", str(i), "\\n"):
        os.write(1, piece.encode())
        if i % 100 == 0: time.sleep(0.02)
os.write(1, b"x" * 150000 + b"\\n" + b"last, without an end")
""")
    run = act.submit("python3", "talk.py", before=("-n", "2"))
    for result in (act.run("logs", "-f", "--all", run), act.run("logs", "--all", run)):
        for rank in "01":
            lines = [line[4:] for line in result.out.splitlines() if line.startswith(f"[{rank}] ")]
            assert lines[:300] == [f"rank {rank} line {i}" for i in range(300)]
            assert [len(line) for line in lines[300:-1]] == [65536, 65536, 150000 - 2 * 65536]
            assert lines[-1] == "last, without an end"
        assert len(result.out.splitlines()) == 2 * 304


def test_options_that_do_not_go_together(act):
    run = act.finish("true", before=("-n", "1"))
    act.fail("logs", "--all", "--rank", "0", run, status=2)
    act.fail("logs", "--all", "--name", "x", run, status=2)
    act.fail("logs", "--attempt", "0", run, status=2)
    act.fail("logs", "--attempt", "2", run, status=3, match="1 attempt")


def test_a_log_that_is_not_there(act):
    run = act.finish("true", before=("-n", "1"))
    act.fail("logs", "--name", "system_logs/nothing.txt", run, status=3, match="no log 'system_logs/nothing.txt'")
    blocker = running(act, "sleep", "300", n="4")
    queued = act.submit("true", before=("-n", "1"))
    assert act.run("logs", queued).out == "", "it may come"
    act.run("abort", queued)
    act.fail("logs", "-f", queued, status=3, match="is Canceled and has no log")
    act.fail("logs", "--all", queued, status=3, match="is Canceled and has no log of a rank")
    act.run("abort", blocker)


def test_colour_of_all_ranks(act, two_ranks):
    act.write("talk.sh", 'echo "this is $RANK"')
    run = act.finish("sh", "talk.sh", before=("-n", "2"))

    def on_a_terminal(**env):
        words = f"{act.programs / 'a'} logs --all {run}"
        done = subprocess.run(["script", "-qec", words, "/dev/null"], env={**act.env, "TERM": "xterm", **env},
                              cwd=act.project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=300)
        assert done.returncode == 0
        return done.stdout.decode().splitlines()

    if not shutil.which("script"):
        pytest.skip("no terminal without script(1)")
    coloured = on_a_terminal()
    assert all(re.fullmatch(rf"\x1b\[\d+m\[{i}\]\x1b\[0m this is {i}", line) for i, line in enumerate(coloured))
    assert coloured[0][:6] != coloured[1][:6], "each rank has its colour"
    assert on_a_terminal(NO_COLOR="1") == ["[0] this is 0", "[1] this is 1"]


# ---- attempts: what a scheduler does when it starts a run anew


def next_attempt(act, run, text):
    """What the agent does when a run begins again, and what its rank 0 then says."""
    folder = act.run_dir(run)
    number = len(list(folder.glob("attempts/*"))) + 1
    kept = folder / f"attempts/{number}"
    kept.mkdir(parents=True)
    for name in ("user_logs", "system_logs"):
        (folder / name).rename(kept / name)
    log = folder / "user_logs/std_log_process_0.txt"
    (folder / "system_logs").mkdir()
    log.parent.mkdir()
    log.write_text(text)


def test_logs_of_earlier_attempts(act):
    run = act.finish("echo", "the first words, which are many", before=("-n", "1"))
    copy = act.project / f"assets/{run}"
    act.run("q", run)
    (copy / "user_logs/std_log_process_7.txt").write_text("a copy of a rank that has no log now")
    next_attempt(act, run, "the second\n")
    assert act.run("logs", run).out == "the second\n"
    assert act.run("logs", "--attempt", "1", run).out == "the first words, which are many\n"
    assert act.run("logs", "--attempt", "2", run).out == "the second\n"
    assert act.run("logs", "--all", "--attempt", "1", run).out == "[0] the first words, which are many\n"
    act.fail("logs", "--attempt", "3", run, status=3, match="2 attempts")

    act.run("q", run)
    assert (copy / "user_logs/std_log_process_0.txt").read_text() == "the second\n", "never a mixture"
    assert [p.name for p in (copy / "user_logs").iterdir()] == ["std_log_process_0.txt"]
    first = copy / "attempts/1/user_logs/std_log_process_0.txt"
    assert first.read_text() == "the first words, which are many\n"
    assert act.run("q", run).out.count(str(first)) == 1

    next_attempt(act, run, "the third, longer than the second\n")
    act.run("q", run)
    assert (copy / "user_logs/std_log_process_0.txt").read_text() == "the third, longer than the second\n"
    assert (copy / "attempts/2/user_logs/std_log_process_0.txt").read_text() == "the second\n"


# ---- the table


def test_queued_runs_say_what_they_wait_for(act):
    blocker = running(act, "sleep", "300", n="4")
    queued = act.submit("echo", "later", before=("-n", "2"))
    why = f"waits for 2 processors, held by '{blocker}'"
    act.until(lambda: act.info(queued)["reason"], "it says what it waits for")
    row, = table(act.run("qq"))
    assert (row["ID"], row["REASON"], row["COMMAND"]) == (queued, why, "echo later")
    info, = act.run("q", "--json", "-no-wl", queued).json["runs"]
    assert (info["attempt"], info["reason"]) == (1, why)
    assert why in act.run("q", queued).out
    act.run("abort", queued, blocker)


def test_completion_asks_no_cluster(act):
    """A run on a cluster whose file is gone: completion offers it, in silence."""
    run = act.finish("true", before=("-n", "1"))
    blocker = running(act, "sleep", "300")
    (act.run_dir(blocker) / "status.json").rename(act.scratch / "status.json")
    assert set(act.run("__complete", "ssh", "exp").out.split()) == {run, blocker}
    (act.scratch / "status.json").rename(act.run_dir(blocker) / "status.json")
    act.run("abort", blocker)


def test_failed_runs_say_why(act):
    run = act.finish("sh", "-c", "exit 3", before=("-n", "1"), status=3)
    row, = table(act.run("qf"))
    assert row["ID"] == run and "3" in row["REASON"] and len(row["REASON"]) <= 80
    assert row["REASON"].removesuffix("...") in act.info(run)["reason"]


# ---- doctor


def findings(act, *words, status=0, **options):
    whole = act.run(*words, "doctor", "--json", status=status, **options).json
    assert whole["version"] == 1 and whole["ok"] == (status == 0) == all(c["ok"] for c in whole["checks"])
    return whole["checks"]


@pytest.mark.smoke
def test_doctor_of_a_sound_cluster(act):
    what = {c["what"]: c["text"] for c in findings(act)}
    assert {"configuration", "ledger", "store of 'code'", "agent", "mpirun", "folder of the runs"} <= what.keys()
    assert "cluster 'aml'" in what["configuration"] and "4 processes" in what["room"]
    lines = act.run("doctor").out.splitlines()
    assert len(lines) == len(what) and all(line.startswith("ok    ") for line in lines)


def test_doctor_writes_nothing(act):
    before = act.snapshot()
    texts = {c["what"]: c["text"] for c in findings(act)}
    assert "made with the first run" in texts["ledger"] and "made with the first run" in texts["folder of the runs"]
    assert texts["store of 'code'"] == f"folder:{act.store}, made when something is stored"
    assert act.snapshot() == before
    act.finish("true")
    before = act.snapshot()
    texts = {c["what"]: c["text"] for c in findings(act)}
    assert texts["ledger"] == "can be read and written" and texts["store of 'code'"].endswith("answers")
    assert act.snapshot() == before
    (act.home / "ledger.db").write_text("no ledger")
    before = act.snapshot()
    bad, = [c for c in findings(act, status=1) if not c["ok"]]
    assert bad["what"] == "ledger" and "damaged" in bad["text"]
    assert act.snapshot() == before
    act.respect_modes()
    (act.scratch / "closed").mkdir(mode=0o500)
    act.account("store", folder=str(act.scratch / "closed/store"))
    bad = {c["what"] for c in findings(act, status=1) if not c["ok"]}
    assert bad == {"ledger", "store of 'code'"}


def test_doctor_without_mpirun(act):
    (act.scratch / "bin").mkdir()
    path = {"PATH": f"{act.scratch / 'bin'}"}
    bad, = [c for c in findings(act, status=1, env=path) if not c["ok"]]
    assert bad["what"] == "mpirun" and "install Open MPI" in bad["text"]
    out = act.run("doctor", status=1, env=path).out
    assert "fail  mpirun: not found" in out and "ok    agent" in out


def test_doctor_of_a_broken_configuration(act):
    (act.project / "aux_data/aml/bad.yaml").write_text("platform: [")
    checks = findings(act, "-c", "bad", status=1)
    assert [c["what"] for c in checks if not c["ok"]] == ["configuration"] and "bad.yaml" in checks[0]["text"]
    act.cluster("far", extra={"platform": "k8s"})
    assert any("kubeconfig" in c["text"] for c in findings(act, "-c", "far", status=1) if not c["ok"])
    (act.project / "aux_data/aml/codeless.yaml").write_text("platform: aml\n")
    assert any("code_path" in c["text"] for c in findings(act, "-c", "codeless", status=1) if not c["ok"])
    checks = findings(act, "-c", "nowhere", status=1)
    assert "nowhere" in checks[0]["text"]


def test_doctor_finds_a_store_that_refuses(act, azure_double):
    act.cluster("aml", folders=())  # blobs are not mounted here
    findings(act)
    act.account("store", account_name=azure_double.service.account, account_key="d3Jvbmc=",
                container_name=azure_double.container, endpoint=azure_double.service.endpoint)
    bad, = [c for c in findings(act, status=1) if not c["ok"]]
    assert bad["what"] == "store of 'code'"
