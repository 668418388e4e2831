"""Why a run ended as it did: a why, a parse. What the rules find in texts is in tests/unit/diagnose_test.c."""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

GPU = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
RESET = "RuntimeError: [gloo/transport/tcp/pair.cc:589] Read error [10.0.0.1]:33123: Connection reset by peer"


def python(text):
    return ("python3", "-c", text)


def by_rank(**scripts):
    """A command whose ranks run different shell scripts; r0 is that of rank 0, others that of the others."""
    cases = " ".join(f"{name[1:]}) {script};;" for name, script in scripts.items() if name != "others")
    return ("sh", "-c", f'case $RANK in {cases} *) {scripts.get("others", "sleep 300")};; esac')


def why(act, run):
    answer = act.run("why", "--json", run).json
    assert answer["version"] == 1 and answer["run"] == run
    return answer


def fields(result):
    """The lines of what people see, by their first word."""
    return {line.split()[0]: line.split(maxsplit=1)[1] for line in result.out.splitlines() if not line.startswith(" ")}


def plant(act, run, rank=0, log=None, **files):
    """Replaces logs in the run's folder, as an agent on another cluster would have written them."""
    folder = act.run_dir(run)
    if log is not None:
        (folder / f"user_logs/std_log_process_{rank}.txt").write_bytes(log.encode() if isinstance(log, str) else log)
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


# ---- what people see


@pytest.mark.parametrize("command", [("./run.sh",), ("bash", "run.sh")])
def test_scripts_with_the_line_ends_of_windows(act, command):
    (act.project / "run.sh").write_bytes(b"#!/bin/bash\r\n\r\nexit 3\r\n")
    (act.project / "run.sh").chmod(0o755)
    run = act.finish(*command, before=("-n", "1"), status=None)
    assert why(act, run)["diagnosis"]["id"] == "windows_lines", why(act, run)


@pytest.mark.parametrize("first", ["#!/bin/bash", "#!/bin/sh", ""])
def test_a_compile_script_with_the_line_ends_of_windows(act, first):
    (act.project / "compile.aml.sh").write_bytes(f"{first}\r\nset -e\r\n\r\ntrue\r\n".encode())
    run = act.finish("true", before=("-n", "1"), status=None)
    assert why(act, run)["diagnosis"]["id"] == "windows_lines", why(act, run)
    assert ".gitattributes" in fields(act.run("why", run))["next"]


@pytest.mark.parametrize("script, line", [
    ("import queue; queue.Queue().get(timeout=0.1)", "_queue.Empty"),
    ("class Stop(BaseException): pass\nraise Stop", "Stop"),
    ("class Odd(BaseException): pass\nraise Odd('x') from ValueError('y')", "Odd: x"),
])
def test_what_ends_a_traceback_is_the_exception(act, script, line):
    run = act.finish(*python(script), before=("-n", "1"), status=1)
    diagnosis = why(act, run)["diagnosis"]
    assert diagnosis and (diagnosis["code"], diagnosis["line"]) == ("Exception", line), diagnosis


def test_a_child_that_was_killed(act):
    """As torchrun tells it; its own exit status is 1."""
    said = "[ERROR] failed (exitcode: -9) local_rank: 0 (pid: 47) of binary: python3"
    run = act.finish("sh", "-c", f"echo '{said}'; exit 1", before=("-n", "1"), status=1)
    diagnosis = why(act, run)["diagnosis"]
    assert (diagnosis["id"], diagnosis["retry"]) == ("child_killed", "after_change")


@pytest.mark.smoke
def test_the_failing_rank_and_what_it_means(act, two_ranks):
    run = act.finish(*by_rank(r1=f"echo step 1; echo '{GPU}' >&2; exit 3"), before=("-n", "2"), status=3)
    result = act.run("why", run)
    first, *rest = result.out.splitlines()
    assert first.startswith("rank 1 ") and first.endswith("failed first: exited with status 3"), result
    assert "  step 1" in rest and f"  {GPU}" in rest
    said = fields(result)
    assert said["class"] == "out of memory on the GPU"
    assert said["again"].startswith("no") and said["why"] and said["next"]
    assert said["evidence"] == "the last line above, of user_logs/std_log_process_1.txt", "nothing is said twice"
    assert result.out.count(GPU) == 1

    answer = why(act, run)
    assert answer["state"] == "Failed" and answer["attempt"] == 1
    failure, diagnosis = answer["failure"], answer["diagnosis"]
    assert (failure["rank"], failure["exit_status"], failure["signal"]) == (1, 3, None)
    assert failure["lines"][-2:] == ["step 1", GPU]
    assert (diagnosis["id"], diagnosis["code"], diagnosis["rank"]) == ("gpu_out_of_memory", "OOM", 1)
    assert diagnosis["log"] == "user_logs/std_log_process_1.txt" and diagnosis["line"] == GPU
    assert diagnosis["retry"] == "no"


@pytest.mark.parametrize("command, status, code", [
    (("/no-such-program",), 127, "CommandNotFound"),
    (("sh", "-c", "exec ./gone"), 127, "CommandNotFound"),
    (("sh", "-c", "kill -SEGV $$"), 139, "before"),
    (("sh", "-c", "kill -KILL $$"), 137, "Killed"),
    (("sh", "-c", "kill -TERM $$"), 143, "Terminated"),
    (("timeout", "0.2", "sleep", "300"), 124, "TimeLimit"),
    (python("import no_such_module_of_act"), 1, "ModuleErr"),
    (python("open('data/missing.tsv')"), 1, "FileNotFound"),
    (python("x = bytearray(1 << 60)"), 1, "HostOOM"),
    (python("def f(:"), 1, "Syntax"),
    (python("raise ValueError('odd')"), 1, "Exception"),
    (python("{}['lr']"), 1, "Exception"),
    (python("a, b = [1]"), 1, "Unpack"),
])
def test_real_failures(act, command, status, code):
    run = act.finish(*command, before=("-n", "1"), status=status)
    diagnosis = why(act, run)["diagnosis"]
    assert diagnosis["code"] == code, diagnosis
    assert fields(act.run("why", run))["class"] == diagnosis["class"], "in words; the codes are for programs"
    assert act.run("parse", run).out.splitlines() == [code]


@pytest.mark.parametrize("script, code", [
    ("raise KeyboardInterrupt", "Interrupted"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGINT)", "Interrupted"),
    ("import sys; print('MyError: bad', file=sys.stderr); raise KeyboardInterrupt", "Exception"),
])
def test_what_somebody_ended_may_be_submitted_again(act, script, code):
    run = act.finish(*python(script), before=("-n", "1"), status=130)
    diagnosis = why(act, run)["diagnosis"]
    assert (diagnosis["code"], diagnosis["retry"]) == (code, "yes" if code == "Interrupted" else "no"), diagnosis


def test_mpirun_in_the_command(act, two_ranks):
    """Where the command has an mpirun of its own: within ACT's, with too many processes, with one that fails."""
    as_root = ("env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun")
    for words, before, code in ((("-n", "1", "true"), ("-n", "2"), "MPINested"),
                                (("-n", "999", "true"), ("-n", "1"), "MPISlots"),
                                (("-n", "1", "sh", "-c", "exit 3"), ("-n", "1"), "MPIChild")):
        run = act.submit(*as_root, *words, before=before)
        act.run("wait", run, status=None)
        diagnosis = why(act, run)["diagnosis"]
        assert diagnosis and diagnosis["code"] == code, (words, diagnosis, act.lines(run))


def test_a_table_of_runs_says_why(act):
    """Each in its own words, without a question about each; what no rule explains has its status."""
    ends = {"KeyError: 'lr'": python("{}['lr']"),
            "ModuleNotFoundError: No module named 'torhc'": python("import torhc"),
            GPU: python(f"raise RuntimeError('{GPU}')"), "": ("sh", "-c", "echo fine; exit 1")}
    runs = {act.finish(*command, status=1): line for line, command in ends.items()}
    reasons = {row["id"]: row["reason"] for row in act.run("qf", "--json").json["runs"]}
    for run, line in runs.items():
        assert reasons[run].startswith("rank 0 exited with status 1") and reasons[run].endswith(line), reasons
    shown = act.run("qf", env={"COLUMNS": "80"}).out
    assert "rank 0 exited with status 1: KeyError: 'lr'" in shown
    assert act.run("wait", next(iter(runs)), status=1).err.count("KeyError: 'lr'") == 1


def test_the_line_that_explains_is_not_indented_and_says_where_it_is_cut(act):
    torchrun = "    map[i] = val_or_map.get(i, Std.NONE)"
    run = act.finish("sh", "-c", f"echo '{torchrun}'; exit 1", status=1)
    assert act.info(run)["reason"] == f"rank 0 exited with status 1: {torchrun.strip()}"
    run = act.finish(*python("raise RuntimeError('word ' * 60 + 'end')"), status=1)
    reason = act.info(run)["reason"]
    assert re.fullmatch(r"rank 0 exited with status 1: RuntimeError: (word )+(w|wo|wor|word)?\.\.\.", reason), reason


def test_no_rule_fits(act):
    run = act.finish("sh", "-c", "echo all is odd; exit 9", before=("-n", "1"), status=9)
    said = fields(act.run("why", run))
    assert "not known" in said["class"] and said["next"].startswith(f"a logs --rank 0 {run};")
    assert why(act, run)["diagnosis"] is None
    result = act.run("parse", run)
    assert result.out == "" and "no known error" in result.err
    assert act.run("parse", "--json", run).json["codes"] == []


def test_the_cause_in_another_rank(act, two_ranks):
    """The rank that ended first only says that its peer is gone."""
    run = act.finish(*by_rank(r0=f"sleep 1; echo '{RESET}'; exit 1", r1=f"echo '{GPU}'; sleep 300"),
                     before=("-n", "2"), status=1)
    answer = why(act, run)
    assert answer["failure"]["rank"] == 0 and answer["diagnosis"]["rank"] == 1
    assert answer["diagnosis"]["code"] == "OOM"
    assert fields(act.run("why", run))["evidence"].startswith("rank 1, user_logs/std_log_process_1.txt: ")
    plant(act, run, rank=1, log="all is well\n")
    assert why(act, run)["diagnosis"]["code"] == "PeerGone"


WATCHDOG = ("[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=600000) ran "
            "for 600042 milliseconds before timing out.")
THROWN = "terminate called after throwing an instance of 'std::runtime_error'"


@pytest.mark.parametrize("end, status, code", [
    ("kill -ABRT $$", 134, "NCCLTimeout"), ("kill -KILL $$", 137, "Killed"), ("exit 1", 1, "NCCLTimeout")])
def test_an_abort_is_what_a_rank_does_about_it(act, two_ranks, end, status, code):
    """How a rank ends itself says less than what it could not go on after; what came from outside says more."""
    said = f"echo '{WATCHDOG}'" + (f"; echo \"{THROWN}\"" if status == 134 else "")
    run = act.finish(*by_rank(r0=f"{said}; sleep 300", r1=f"{said}; {end}"), before=("-n", "2"), status=status)
    answer = why(act, run)
    assert (answer["failure"]["rank"], answer["diagnosis"]["code"]) == (1, code), answer


def test_advice_names_the_rank(act, two_ranks):
    run = act.finish(*by_rank(r1="echo 'ValueError: odd'; exit 1"), before=("-n", "2"), status=1)
    assert f"a logs --rank 1 {run}" in why(act, run)["diagnosis"]["advice"]
    run = act.finish(*by_rank(r1="echo odd; exit 9"), before=("-n", "2"), status=9)
    assert f"a logs --rank 1 {run}" in fields(act.run("why", run))["next"]


def test_the_agents_numbers_are_no_last_line(act):
    run = act.submit("sh", "-c", "echo epoch 1; echo 'act: metrics: node n1, cpu 3 %'; exec sleep 300",
                     before=("-n", "1"))
    act.until(lambda: why(act, run)["last_line"] == "epoch 1" and "metrics" in act.run("logs", run).out, "both lines")
    assert "metrics" not in act.run("why", run).out
    act.run("abort", run)


# ---- what hangs


def rows(result):
    """Of what every rank said last: (rank, silent, line)."""
    lines = result.out.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("RANK  "))
    found = (re.match(r"^ *([0-9]+) +(>?[0-9a-z]+|-) +(.*)$", line) for line in lines[head + 1:])
    return [row.groups() for row in found if row]


def age(log, seconds):
    """Lets a log be silent for so long."""
    os.utime(log, (time.time() - seconds,) * 2)


def test_of_a_silent_run_every_rank_shows_where_it_is(act, two_ranks):
    run = act.submit(*by_rank(r0="echo step 7; echo 'act: metrics: node n1, cpu 3 %, at 2026-01-01T00:00:00Z'; exec "
                                 "sleep 300",
                              r1="echo loading shard 3; exec sleep 300"), before=("-n", "2"))
    logs = [act.run_dir(run) / f"user_logs/std_log_process_{rank}.txt" for rank in (0, 1)]
    act.until(lambda: all(log.exists() and log.stat().st_size for log in logs), "both lines")
    age(logs[1], 7200)
    shown = rows(act.run("why", run))
    assert [(rank, line) for rank, _, line in shown] == [("0", "step 7"), ("1", "loading shard 3")]
    assert re.match("^>[0-9]+d",
                    shown[0][1]) and shown[1][1].startswith("2h0"), "what the agent said is no sign of rank 0"
    answer = why(act, run)
    assert answer["last_line"] == "step 7" and answer["ranks"][1]["silent_s"] >= 7200 and answer["ranks"][0]["longer"]

    # more ranks than are shown: where few others are comes first, then who is silent longest
    spec = json.loads((act.run_dir(run) / "run.json").read_text())
    (act.run_dir(run) / "run.json").write_text(json.dumps({**spec, "processes_per_node": 40}))
    for ledger in act.home.glob("ledger.db*"):  # which would know better
        ledger.unlink()
    for rank in range(39):
        plant(act, run, rank, log=f"step {rank}\n" if rank != 5 else "loading shard 3\n")
        age(act.run_dir(run) / f"user_logs/std_log_process_{rank}.txt", 1000 + 100 * rank)
    result = act.run("why", run)
    shown = rows(result)
    assert len(shown) == 16 and "and 24 more ranks" in result.out, result
    assert [row[0] for row in shown[:4]] == ["5", "39", "38", "37"], shown
    act.run("abort", run)


def test_a_time_limit_shows_every_rank(act, two_ranks):
    run = act.finish(*by_rank(r0="echo step 7; exec sleep 300", r1="echo shard 3; timeout 0.5 sleep 300"),
                     before=("-n", "2"), status=124)
    result = act.run("why", run)
    assert fields(result)["class"] == "time limit"
    assert sorted(row[::2] for row in rows(result)) == [("0", "step 7"), ("1", "shard 3")]
    run = act.finish(*by_rank(r1=f"echo '{GPU}'; exit 1"), before=("-n", "2"), status=1)
    assert "LAST LINE" not in act.run("why", run).out


def test_what_is_near_the_end_counts(act):
    run = act.finish("false", before=("-n", "1"), status=1)
    early = "requests: Network is unreachable, trying the mirror\n"
    plant(act, run, log=early + "step\n" * 500 + "ValueError: bad value\n")
    assert why(act, run)["diagnosis"]["code"] == "Exception"
    plant(act, run, log=early + "step\n" * 500)
    assert why(act, run)["diagnosis"]["code"] == "Network"
    plant(act, run, log="Network is unreachable\nValueError: bad value\n")
    assert why(act, run)["diagnosis"]["code"] == "Network", "a cause before an exception"


def test_logs_of_any_size_and_content(act):
    run = act.finish("false", before=("-n", "1"), status=1)
    folder = act.run_dir(run)
    log = folder / "user_logs/std_log_process_0.txt"
    with open(log, "wb") as f:
        f.truncate(3 << 30)  # sparse: only the end is read
        f.seek(0, os.SEEK_END)
        f.write(b"\n\x1b[2J\x1b]0;title\x07[1,0]<stderr>:\x1b[31m" + GPU.encode() + b"\x1b[0m\xff\x00\r\n"
                + b"\xe2" * 5000)
    result = act.run("why", run)
    assert b"\x1b" not in result.raw_out and b"\x07" not in result.raw_out and b"\x00" not in result.raw_out
    result.raw_out.decode("utf-8")
    assert fields(result)["class"] == "out of memory on the GPU"
    assert why(act, run)["diagnosis"]["code"] == "OOM"
    log.unlink()
    assert act.run("why", run).out.startswith("rank 0 ")


# ---- what the agent and the scheduler say


def failed_with(act, reason, **record):
    """A run whose agent wrote this record."""
    run = act.finish("false", before=("-n", "1"), status=1)
    folder = act.run_dir(run)
    status = json.loads((folder / "status.json").read_text())
    (folder / "status.json").write_text(json.dumps({**status, "reason": reason}))
    failure = {"version": 1, "attempt": 1, "rank": 0, "node": "n2", "exit_status": 1, "signal": 0, "reason": reason,
               "time": 1700000000, "lines": ["said before"], **record}
    (folder / "system_logs/failure.json").write_text(json.dumps(failure))
    return run


def test_the_record_of_the_agent(act):
    run = failed_with(act, "rank 0 was killed by signal 9 (Killed)", signal=9, exit_status=137)
    result = act.run("why", run)
    assert result.out.splitlines()[:2] == ["rank 0 on node n2 failed first: killed by signal 9 (Killed)",
                                           "  said before"]
    failure = why(act, run)["failure"]
    assert (failure["node"], failure["signal"], failure["time"]) == ("n2", 9, "2023-11-14T22:13:20Z")
    (act.run_dir(run) / "system_logs/slurm.txt").write_text("slurmstepd: error: Detected 1 oom_kill event in "
                                                            "StepId=1.0.\n")
    diagnosis = why(act, run)["diagnosis"]
    assert (diagnosis["code"], diagnosis["log"]) == ("HostOOM", "system_logs/slurm.txt")


def test_many_preparations_hide_neither_the_scheduler_nor_their_own_node(act):
    run = failed_with(act, "the preparation failed on n21: something", rank=0, node="n21")
    logs = act.run_dir(run) / "system_logs"
    for i in range(1, 22):
        (logs / f"prepare_n{i}.txt").write_text("Requirement already satisfied: numpy\n")
        (logs / f"folders_n{i}.txt").write_text("download of 'data' ended\n")
    (logs / "prepare_n21.txt").write_text("ERROR: No matching distribution found for torch==9.9\n")
    diagnosis = why(act, run)["diagnosis"]
    assert (diagnosis["code"], diagnosis["log"]) == ("Pip", "system_logs/prepare_n21.txt")
    (logs / "slurm.txt").write_text("slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT x DUE TO NODE FAILURE ***\n")
    diagnosis = why(act, run)["diagnosis"]
    assert (diagnosis["code"], diagnosis["log"]) == ("NodeFailure", "system_logs/slurm.txt")
    (logs / "slurm.txt").rename(logs / "srun.txt")
    (logs / "srun.txt").write_text("srun: error: MPI: Unable to load any plugin\n")
    assert why(act, run)["diagnosis"]["id"] == "mpi_plugin", "what srun says is read where srun starts the ranks"


@pytest.mark.parametrize("reason, shown", [
    ("rank 0 is lost: its agent was killed", "lost: its agent was killed"),
    ("rank 0: cannot start './x': Permission denied", "cannot start './x': Permission denied"),
    ("rank 0 exited with status 1", "exited with status 1"),
    ("rank 01 is no such rank", "killed by signal 9 (Killed)"),
    ("something else", "killed by signal 9 (Killed)"),
])
def test_how_a_rank_ended(act, reason, shown):
    run = failed_with(act, reason, signal=9, exit_status=137)
    assert act.run("why", run).out.splitlines()[0] == f"rank 0 on node n2 failed first: {shown}"


@pytest.mark.parametrize("reason, code", [
    ("time limit reached", "TimeLimit"),
    ("preempted", "Preempted"),
    ("Slurm ended the job: NODE_FAIL", "NodeFailure"),
    ("rank 3 is lost: its agent was killed", "RankLost"),
    ("preparation failed: compile.aml.sh ended with status 2: error", "Compile"),
])
def test_reasons(act, reason, code):
    run = failed_with(act, reason, rank=-1, node="")
    assert why(act, run)["diagnosis"]["code"] == code
    assert act.run("why", run).out.splitlines()[0] == reason


def test_a_step_before_the_command_is_a_class_of_its_own(act):
    act.write("compile.aml.sh",
              "#!/bin/sh\necho building\necho \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 7\n")
    run = act.finish("true", before=("-n", "1"), status=7)
    result = act.run("why", run)
    assert fields(result)["class"] == "compile step failed" and "\n  building\n" in result.out, result


def test_what_slurm_said_of_an_earlier_attempt_does_not_count(act):
    earlier = "slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT x DUE TO NODE FAILURE ***\n"
    for start, code in ((0, "NodeFailure"), (len(earlier), "Exception")):
        run = failed_with(act, "rank 0 exited with status 1", slurm_from=start)
        plant(act, run, log="ValueError: odd\n")
        (act.run_dir(run) / "system_logs/slurm.txt").write_text(earlier + "the second one begins\n")
        assert why(act, run)["diagnosis"]["code"] == code


def test_advice_names_run_and_node(act):
    run = failed_with(act, "rank 0 exited with status 1")
    plant(act, run, log="RuntimeError: CUDA error: uncorrectable ECC error encountered\n")
    advice = why(act, run)["diagnosis"]["advice"]
    assert f"resubmit {run}" in advice and '{exclude: "n2"}' in advice
    assert why(act, run)["diagnosis"]["retry"] == "other_node"


def metrics(**memory):
    return json.dumps({"time": 1700000000.5, "node": "n2", "memory": {"total": 100, "available": 60, **memory},
                       "disk": {"code": {"total": 1000, "free": 5}},
                       "gpus": [{"index": 3, "memory_used": 79, "memory_total": 80}]}) + "\n"


def test_metrics_tell_what_was_full(act):
    run = failed_with(act, "rank 0 was killed by signal 9 (Killed)", signal=9, exit_status=137)
    folder = act.run_dir(run)
    (folder / "metrics").mkdir(exist_ok=True)
    log = folder / "metrics/n2.jsonl"
    log.write_text(metrics() * 3)
    answer = why(act, run)
    assert answer["notes"] == ["disk of the code 99% full on n2", "memory of GPU 3 98% full on n2"]
    assert answer["diagnosis"]["code"] == "Killed"
    log.write_text(metrics() + metrics(available=2) + metrics() + '{"torn')
    answer = why(act, run)
    assert answer["notes"][0] == "host memory 98% full on n2" and answer["diagnosis"]["code"] == "HostOOM"
    assert "also      host memory 98% full on n2" in act.run("why", run).out


def test_an_earlier_attempt(act):
    run = act.submit("sleep", "300", before=("-n", "1"))
    act.until_state(run, "Running")
    act.until(lambda: (act.run_dir(run) / "user_logs/std_log_process_0.txt").exists(), "a log")
    folder = act.run_dir(run)
    old = folder / "attempts/1"
    (old / "user_logs").mkdir(parents=True)
    (old / "user_logs/std_log_process_0.txt").write_text(GPU + "\n")
    (old / "status.json").write_text(json.dumps({"version": 1, "state": "Failed", "attempt": 1, "failed_rank": 0,
                                                 "exit_status": 1, "reason": "rank 0 exited with status 1"}))
    status = json.loads((folder / "status.json").read_text())
    (folder / "status.json").write_text(json.dumps({**status, "attempt": 2, "heartbeat_unix_s": int(time.time())}))
    result = act.run("why", run)
    assert result.out.startswith("running since ") and "\nattempt 1: rank 0 failed first: " in result.out, result
    answer = why(act, run)
    assert (answer["attempt"], answer["failure"]["attempt"]) == (2, 1)
    assert answer["diagnosis"]["log"] == "attempts/1/user_logs/std_log_process_0.txt"

    (folder / "attempts").rename(folder / "away")  # the next attempt has not begun yet
    answer = why(act, run)
    assert answer["failure"] is None and answer["diagnosis"] is None
    (folder / "system_logs/failure.json").write_text(json.dumps({"version": 1, "attempt": 1, "rank": -1,
                                                                 "reason": "preempted", "lines": []}))
    answer = why(act, run)
    assert (answer["failure"]["attempt"], answer["diagnosis"]["code"]) == (1, "Preempted")
    act.run("abort", run)


# ---- runs that have not failed


def test_other_states(act):
    done = act.finish("true", before=("-n", "1"))
    assert act.run("why", done).out.startswith("completed")
    running = act.submit("sh", "-c", "echo epoch 1; echo epoch 2; sleep 300", before=("-n", os.cpu_count(), "-single"))
    act.until_state(running, "Running")
    act.until(lambda: why(act, running)["last_line"] == "epoch 2", "its last line")
    assert re.search("^   0 +[0-9]+s  epoch 2$", act.run("why", running).out, re.M)
    queued = act.submit("true", before=("-n", "1"))
    act.until_state(queued, "Queued")
    assert act.run("why", queued).out.startswith("Queued ")
    act.run("abort", running, queued)
    assert act.run("why", running).out.startswith("Canceled ")
    answer = why(act, running)
    assert answer["failure"] is None and answer["diagnosis"]["id"] == "aborted"
    shown = fields(act.run("why", queued))
    assert "'a abort'" in shown["why"] and shown["again"].startswith("yes") and f"a resubmit {queued}" in shown["next"]
    act.fail("why", "nothing-like-it", status=3, match="no run")
    act.fail("parse", "nothing-like-it", status=3, match="no run")


# ---- parse, own rules


def test_parse_prints_all_codes(act):
    run = act.finish("false", before=("-n", "1"), status=1)
    plant(act, run, log="RuntimeError: CUDA error: out of memory\nOSError: [Errno 28] No space left on device: "
                        "'/tmp/x'\nValueError: x\n" + "line\n" * 100000)
    act.fail("-no-wl", "parse", run, status=3, match="no logs of")
    assert act.run("parse", run).out.splitlines() == ["NoSpace", "OOM", "cuda"]
    (act.project / f"assets/{run}/user_logs/std_log_process_0.txt").write_text(GPU)
    assert act.run("-no-wl", "parse", run).out.splitlines() == ["OOM"]
    answer = act.run("-no-wl", "parse", "--json", run).json
    assert answer["version"] == 1 and answer["run"] == run
    assert answer["codes"] == [{"code": "OOM", "id": "gpu_out_of_memory", "class": "out of memory on the GPU",
                                "log": "user_logs/std_log_process_0.txt", "line": GPU}]


def test_where_logs_are_copied_to_is_said_once(act):
    run = act.finish("true", before=("-n", "1"))
    told = f"logs of runs are copied to '{act.project}/assets'"
    assert told in act.run("parse", run).err
    again = act.finish("true", before=("-n", "1"))
    assert told not in act.run("parse", again).err


def test_copies_of_logs_stay_out_of_git(act):
    """As what other tools keep in a project does, without a change of the user's own files."""
    subprocess.run(["git", "init", "-q", act.project], check=True)
    act.run("q", act.finish("echo", "said"))
    assert (act.project / "assets").is_dir()
    git = ["git", "status", "--short"]
    shown = subprocess.run(git, cwd=act.project, check=True, capture_output=True, text=True).stdout
    assert "assets" not in shown, shown


def test_parse_shows_error_lines_as_the_original_did(act):
    act.write("old/azureml-logs/70_driver_log_0.txt", "WARNING: Retrying after ConnectionError\nValueError: odd\nfine\n"
              + "KeyError: 'x'\n" * 150)
    result = act.run("parse", "old")
    assert "70_driver_log_0.txt: ValueError: odd\n" in result.err and "Retrying" not in result.err
    assert result.err.count("KeyError") == 99 and "fine" not in result.err and "Error" not in result.out
    assert act.run("parse", "--json", "old").json["errors"][0] == {"log": "azureml-logs/70_driver_log_0.txt",
                                                                   "line": "ValueError: odd"}


def test_parse_a_folder_of_old_logs(act):
    act.write("old/run1/azureml-logs/70_driver_log_0.txt", f"step 1\n{GPU}\n")
    act.write("old/run1/azureml-logs/55_azureml-execution.txt", "all is well\n")
    act.write("old/plain/job.log", "OSError: [Errno 28] No space left on device\n")
    act.write("old/empty/below/deep.txt", f"{GPU}\n")
    assert act.run("parse", "old/run1").out.splitlines() == ["OOM"]
    assert act.run("parse", "./old/plain/").out.splitlines() == ["NoSpace"]
    answer = act.run("parse", "--json", "old/plain").json
    assert answer["folder"] == "old/plain" and "run" not in answer
    assert [(c["code"], c["log"]) for c in answer["codes"]] == [("NoSpace", "job.log")]
    act.fail("parse", "old/empty", status=3, match="no logs in")
    assert act.run("q").out.count("\n") <= 1, "no run comes of it"


def test_own_rules(act):
    run = act.finish("sh", "-c", "echo the flux is odd; exit 1", before=("-n", "1"), status=1)
    rules = act.write("aux_data/diagnosis.yaml", """version: 1
rules:
- id: flux
  code: Flux
  title: odd flux
  patterns: [{regex: 'flux is [a-z]+$'}]
  retry: no
  summary: the flux went wrong
  advice: repair it
""")
    assert why(act, run)["diagnosis"]["code"] == "Flux"
    assert act.run("parse", run).out.splitlines() == ["Flux"]
    rules.write_text(rules.read_text().replace("retry: no", "retry: perhaps"))
    for verb in ("why", "parse"):
        act.fail(verb, run, status=7, match=r"aux_data/diagnosis.yaml:7:3: 'retry' must be one of: no, yes")


# ---- memory


@pytest.fixture
def little_memory():
    """A folder of cgroups that this user may make in, with a limit of 400 MB; its programs are moved there."""
    groups = pathlib.Path("/proc/self/cgroup").read_text()
    old = re.search(r"^\d+:memory:(/.*)$", groups, re.M)
    own = pathlib.Path("/sys/fs/cgroup/memory" if old else "/sys/fs/cgroup", (old or re.search(
        r"^0::(/.*)$", groups, re.M))[1].lstrip("/"))
    group = own / f"act-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(400 << 20))
    except OSError as error:
        if group.exists():
            group.rmdir()
        pytest.skip(f"this user may make no cgroup with a limit of memory here: {error}")
    yield group
    for _ in range(100):
        with contextlib.suppress(OSError):
            group.rmdir()
        if not group.exists():
            return
        time.sleep(0.1)


def test_a_rank_that_the_kernel_killed_for_memory(act, little_memory):
    """It says nothing itself. The limit is its own, and not its node's: to try it again does not help."""
    act.write("eat.py", "x = []\nwhile True:\n    x.append(bytearray(16 << 20))\n")
    result = subprocess.run(["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', little_memory, act.programs / "a",
                             "-n", "1", "submit", "--retry", "2", "--", "python3", "eat.py"], cwd=act.project,
                            env=act.env, capture_output=True, check=True)
    run = result.stdout.decode().strip()
    act.run("wait", run, status=137)
    info = act.info(run)
    assert "rank 0: killed by the kernel: it used more memory than it may (400.0 MiB)" in info["reason"], info
    assert info["attempt"] == 1
    answer = why(act, run)
    assert answer["diagnosis"]["id"] == "host_out_of_memory" and "k8s.memory" in answer["diagnosis"]["advice"]


def test_a_reason_says_nothing_twice(act):
    """The line of the log that explains it may be what the agent gives as the reason."""
    act.write("act.yaml", "modules: [nothing]\n")
    for words, before in ((("sh", "-c", "true"), ()), (("/no-such-program",), ("-p", "modules: []"))):
        run = act.submit(*words, before=before)
        act.run("wait", run, status=None)
        reason = act.info(run)["reason"]
        assert reason.startswith("rank 0: ") and "act: " not in reason, reason
