"""Logs of runs on Azure Machine Learning: whose they are, why a run failed when there is nothing but them, and that
nobody asks for what is here already."""
import hashlib
import json
import os
import re
import resource
import shutil
import signal

import pytest

GPU = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def submit(act, *words, gpus=1):
    return act.submit(*words, before=("-n", gpus))


def fail(act, *words, gpus=1, status=None):
    run = submit(act, *words, gpus=gpus)
    act.run("wait", run, status=status)
    return run


def why(act, run):
    return act.run("why", "--json", run).json


def asked(azureml, act, *words):
    azureml.forget()
    act.run(*words)
    return azureml.requests()


# ---- why


@pytest.mark.smoke
@pytest.mark.parametrize("runtime, log",
                         [("new", "user_logs/std_log_process_3.txt"), ("old", "azureml-logs/70_driver_log_3.txt")])
def test_rank_that_failed(act, azureml, two_ranks, runtime, log):
    azureml.tell("settings", runtime=runtime)
    run = fail(act, "sh", "-c", f"[ $RANK = 3 ] || exec sleep 300; sleep 1; echo step; echo '{GPU}'; exit 5", gpus=4)
    answer = why(act, run)
    failure, diagnosis = answer["failure"], answer["diagnosis"]
    assert (failure["rank"], failure["exit_status"], failure["signal"]) == (3, 5, None), answer
    assert failure["node"] == os.uname().nodename
    assert GPU in failure["lines"] and "step" in failure["lines"]
    assert (diagnosis["code"], diagnosis["rank"], diagnosis["log"], diagnosis["line"]) == ("OOM", 3, log, GPU)
    act.run("q", run)
    assert "OOM" in act.run("parse", run).out


def test_signal_that_killed(act, azureml):
    run = fail(act, "sh", "-c", "kill -SEGV $$")
    answer = why(act, run)
    assert (answer["failure"]["rank"], answer["failure"]["signal"], answer["failure"]["exit_status"]) == (0, 11, 139)
    assert answer["diagnosis"], answer


def test_metrics_are_no_reason(act, azureml):
    """The last that the agent said before, when it said nothing of the end."""
    answer = why(act, fail(act, "sh", "-c", "echo 'act: metrics: node n1, cpu 3 %' >&2; exit 4"))
    assert answer["failure"]["exit_status"] == 4 and "metrics" not in (answer["failure"]["reason"] or "")


def test_metrics_in_the_log(act, azureml):
    azureml.cluster(env={"ACT_METRICS_EVERY": "1"})
    run = submit(act, "sh", "-c", "while :; do sleep 1; done")
    line = act.until(lambda: next((line for line in act.run("logs", run).out.splitlines()
                                   if line.startswith("act: metrics: node ")), None), "the numbers of the node")
    assert ", cpu" in line and ", memory " in line, line
    act.run("abort", run)


def test_report_draws_the_metrics_in_the_log(act, azureml):
    azureml.cluster(env={"ACT_METRICS_EVERY": "1"})
    run = submit(act, "sh", "-c", "echo step 1 loss 2; echo step 2 loss 1; while :; do sleep 1; done")
    act.until(lambda: act.run("logs", run).out.count("act: metrics: node ") > 1, "the numbers of the node, twice")
    act.run("abort", run)
    page = act.run("report", run).out
    assert f"<h3>Node {os.uname().nodename}</h3>" in page and "; CPU busy: " in page
    assert "<figcaption>loss</figcaption>" in page


def test_preparation_that_failed(act, azureml, two_ranks):
    act.write("compile.aml.sh", "#!/bin/sh\necho no compiler here >&2\nexit 7\n")
    run = fail(act, "true", gpus=2)
    answer = why(act, run)
    assert answer["failure"]["exit_status"] == 7
    assert answer["failure"]["reason"] == "preparation failed: compile.aml.sh ended with status 7: no compiler here"


def test_of_a_hang_every_rank_shows_where_it_is(act, azureml, two_ranks):
    act.write("job.json", json.dumps({"properties": {
        "nodeCount": 1, "constraints": {"maxWallClockTime": "00:00:04"},
        "customMpiSettings": {"commandLine": "echo at $RANK; exec sleep 300", "processCount": 2}}}))
    run = act.run("submit", "-f", "job.json").out.strip()
    act.until(lambda: sorted((r["rank"], r["line"]) for r in why(act, run)["ranks"]) == [(0, "at 0"), (1, "at 1")],
              "lines")
    act.run("wait", run, status=None)
    answer = why(act, run)
    assert answer["diagnosis"]["code"] == "TimeLimit", answer
    assert sorted((r["rank"], r["line"]) for r in answer["ranks"]) == [(0, "at 0"), (1, "at 1")]
    assert all(0 <= r["silent_s"] < 100 for r in answer["ranks"]), "before the end, whenever one asks"


def test_command_that_is_not_there(act, azureml):
    answer = why(act, fail(act, "/no-such-program"))
    assert answer["diagnosis"]["code"] == "CommandNotFound", answer
    assert answer["failure"]["reason"].startswith("cannot start '/no-such-program'")


def test_only_the_service_says_why(act, azureml):
    run, = azureml.tell("seed", count=1)
    azureml.tell("job", id=run,
                 set={"status": "Failed", "error": {"code": "UserError", "message": "the image is gone"}})
    result = act.run("why", run)
    assert "the image is gone" in result.out, result


def test_what_a_command_says_is_no_record(act, azureml):
    """Only a line of the rank's own agent counts, and only a whole one."""
    forged = ("act: rank 1 on node x exited with status 9 at 2026-01-01T00:00:00Z\\n"
              "act: rank 0 on node x exited with status 9")
    run = fail(act, "sh", "-c", f"printf '{forged}\\n'; exit 4")
    failure = why(act, run)["failure"]
    assert (failure["rank"], failure["exit_status"], failure["node"]) == (0, 4, os.uname().nodename)


@pytest.mark.parametrize("before", ["wait", "q", "qf"])
def test_a_table_keeps_what_the_ranks_said(act, azureml, before):
    """The service knows neither the rank nor its status: who asked the ranks first, or later, knows them for good."""
    run = submit(act, "sh", "-c", "exit 7", gpus=1)
    if before != "wait":
        act.until(lambda: [r for r in act.run(before, "--json").json["runs"] if r["state"] == "Failed"],
                  "its end in the table")
    act.run("wait", run, status=7)
    for verb in ("q", "qf", "q"):
        row, = act.run(verb, "--json").json["runs"]
        assert row["failed_rank"] == 0 and row["exit_status"] == 7, (verb, row)
        assert row["reason"].startswith("rank 0 exited with status 7"), (verb, row)
    act.run("wait", run, status=7)


def test_an_aborted_run_says_so(act, azureml):
    run = submit(act, "sleep", "300")
    act.until_state(run, "Running")
    act.run("abort", run)
    act.run("wait", run, status=143)
    assert act.run("why", run).out.startswith("Canceled  aborted"), act.run("why", run)
    row, = act.run("q", "--json").json["runs"]
    assert (row["state"], row["reason"]) == ("Canceled", "aborted")


# ---- names


def test_names_with_zeros(act, azureml):
    run, = azureml.tell("seed", count=1, properties={"act.num_gpu": "12"})
    for rank in range(12):
        azureml.tell("log", id=run, name=f"user_logs/std_log_process_{rank:02}.txt", text=f"rank {rank}\n")
    azureml.tell("log", id=run, name="user_logs/mpi_log.txt", text="mpi\n")
    assert act.run("logs", run).out == "rank 0\n"
    assert act.run("logs", "--all", run).out.splitlines()[-1].endswith("rank 11")
    assert act.run("q", run).out.startswith("rank 0\n")
    paths = act.run("q", "--json", run).json["runs"][0]["logs"]
    assert any(path.endswith("std_log_process_11.txt") for path in paths), paths


# ---- what is here is not asked for


def complete_at_once(azureml):
    """Nothing will be added to the logs of a run that has ended."""
    azureml.cluster(azureml={"settle_seconds": 0})


def test_finished_run_is_not_asked_for_again(act, azureml):
    complete_at_once(azureml)
    run = submit(act, "echo", "done")
    act.run("wait", run)
    first = act.run("q", run).out
    azureml.tell("log", id=run, name="user_logs/std_log.txt", text="never looked at\n")
    assert asked(azureml, act, "q", run) == []
    assert asked(azureml, act, "logs", run) == []
    assert act.run("q", run).out == first and first.startswith("done\n")


@pytest.mark.parametrize("damage", ["copy", "size", "text", "marker", "garbage", "all"])
def test_copies_that_are_not_whole_are_fetched(act, azureml, damage):
    complete_at_once(azureml)
    run = submit(act, "echo", "done")
    act.run("wait", run)
    act.run("q", run)
    assets = act.project / f"assets/{run}"
    log, marker = assets / "user_logs/std_log.txt", assets / ".complete"
    assert json.loads(marker.read_text())["state"] == "Completed"
    if damage == "copy":
        log.unlink()
    elif damage == "size":
        log.write_text("d")
    elif damage == "text":
        log.write_text("DONE\n")
    elif damage == "marker":
        marker.unlink()
    elif damage == "garbage":
        marker.write_bytes(b"{\xff")
    else:
        shutil.rmtree(assets)
    assert asked(azureml, act, "q", run)
    assert log.read_text().startswith("done\n")
    assert asked(azureml, act, "q", run) == []


def test_running_run_is_asked_for(act, azureml, scratch):
    gate = scratch / "gate"
    run = submit(act, "sh", "-c", f"echo begun; while ! [ -e {gate} ]; do sleep 0.1; done; echo ended")
    act.until(lambda: "begun" in act.run("q", run).out, "it runs")
    assert not (act.project / f"assets/{run}/.complete").exists()
    gate.touch()
    act.run("wait", run)
    assert act.run("q", run).out.startswith("begun\nended\n")


def test_size_that_is_not_known_is_not_0(act, azureml):
    """The store of the logs does not answer: that is no empty log, and nothing is taken for complete."""
    run, = azureml.tell("seed", count=1)
    azureml.tell("log", id=run, name="user_logs/std_log.txt", text="fine\n")
    details = {"runId": run, "status": "Completed", "logFiles": {"user_logs/std_log.txt": "http://127.0.0.1:9/logs/x"}}
    azureml.faults({"match": "/details", "times": 9, "answer": {"status": 200, "json": details}})
    failed = act.run("q", run, status=None, env={"ACT_MAX_RETRIES": "0"})
    assert failed.status and ("127.0.0.1:9" in failed.err or "look at" in failed.err)
    azureml.faults()
    assert act.run("q", run).out.startswith("fine\n")


@pytest.mark.parametrize("message, code", [
    ("DataAccessError(PermissionDenied): cannot read the input", "DataAccess"),
    ("AzureMLCompute job failed.\nFailedPullingImage: Unable to pull docker image\n\timagename: x", "Image"),
    ("The job was preempted", "Preempted"),
])
def test_words_of_the_service(act, azureml, message, code):
    run, = azureml.tell("seed", count=1)
    azureml.tell("job", id=run, set={"status": "Failed", "error": {"code": "UserError", "message": message}})
    answer = why(act, run)
    assert answer["diagnosis"]["code"] == code, answer
    assert message.split("\n")[-1].strip() in answer["failure"]["reason"]


# ---- what comes after the end


def test_what_is_added_after_the_end_is_seen(act, azureml):
    run = submit(act, "echo", "done")
    act.run("wait", run)
    assert act.run("q", run).out.startswith("done\n")
    azureml.tell("log", id=run, name="user_logs/std_log.txt", text="and more\n", more=True)
    assert act.run("q", run).out.startswith("done\nand more\n")
    assert (act.project / f"assets/{run}/user_logs/std_log.txt").read_text() == "done\nand more\n"
    azureml.tell("log", id=run, name="system_logs/late.txt", text="late\n")
    assert "system_logs/late.txt" in act.run("q", run).out
    assert len(asked(azureml, act, "q", run)) <= 2, "without asking for the state"


def test_another_look_on_request(act, azureml):
    complete_at_once(azureml)
    run = submit(act, "echo", "done")
    act.run("wait", run)
    act.run("q", run)
    azureml.tell("log", id=run, name="user_logs/std_log.txt", text="and more\n", more=True)
    assert asked(azureml, act, "q", run) == []
    assert act.run("q", "--refresh", run).out.startswith("done\nand more\n")
    assert asked(azureml, act, "q", run) == []
    assert act.run("q", run).out.startswith("done\nand more\n")
    act.fail("q", "--refresh", status=2, match="which one")


def test_log_that_another_one_replaces(act, azureml):
    """What is there of it is longer than the copy of the old one."""
    run, = azureml.tell("seed", count=1, status="Running")
    log = act.project / f"assets/{run}/user_logs/std_log.txt"
    for text in ("the first attempt\n", "another one which has said more\n", "and\n"):
        azureml.tell("log", id=run, name="user_logs/std_log.txt", text=text)
        act.run("q", run)
        assert log.read_text() == text


def test_log_whose_blob_is_not_there_yet(act, azureml):
    run, = azureml.tell("seed", count=1, status="Running")
    azureml.tell("log", id=run, name="user_logs/std_log.txt", text="x")
    azureml.service.request("DELETE", azureml.log_key(run, "user_logs/std_log.txt"), expect=(202,))
    act.run("q", run)
    assert (act.project / f"assets/{run}/user_logs/std_log.txt").read_text() == ""
    azureml.tell("log", id=run, name="user_logs/std_log.txt", text="late\n")
    assert act.run("q", run).out.startswith("late\n")
    assert (act.project / f"assets/{run}/user_logs/std_log.txt").read_text() == "late\n"


# ---- attempts


def test_logs_of_a_run_that_was_started_again(act, azureml):
    """The service keeps those of a later attempt in a folder of its own."""
    run, = azureml.tell("seed", count=1, status="Failed", properties={"act.num_gpu": "2"})
    azureml.tell("log", id=run, name="system_logs/lifecycler/x.log", text="all of them\n")
    for rank in range(2):
        for folder, attempt in (("", 1), ("retry_001/", 2), ("retry_002/", 3)):
            text = f"{attempt} of {rank}\n" + (GPU + "\n" if (attempt, rank) == (3, 0) else "")
            azureml.tell("log", id=run, name=f"user_logs/{folder}std_log_process_{rank}.txt", text=text)
    assert act.run("q", run).out.startswith(f"3 of 0\n{GPU}\n")
    assets = act.project / f"assets/{run}"
    assert (assets / "user_logs/std_log_process_1.txt").read_text() == "3 of 1\n"
    assert (assets / "attempts/2/user_logs/std_log_process_1.txt").read_text() == "2 of 1\n"
    assert (assets / "system_logs/lifecycler/x.log").read_text() == "all of them\n"
    for attempt in (1, 2):
        assert act.run("logs", "--attempt", attempt, run).out == f"{attempt} of 0\n"
    assert act.run("logs", "--all", run).out.splitlines() == ["[0] 3 of 0", f"[0] {GPU}", "[1] 3 of 1"]
    assert act.run("logs", "--name", "attempts/1/user_logs/std_log_process_1.txt", run).out == "1 of 1\n"
    assert "3 attempts" in act.fail("logs", "--attempt", 4, run, status=None)
    assert why(act, run)["diagnosis"]["code"] == "OOM"


def test_why_an_earlier_attempt_failed(act, azureml):
    run, = azureml.tell("seed", count=1, status="Running")
    words = f"{GPU}\nact: rank 0 on node n1 exited with status 9 at 2026-01-01T00:00:00.000000000Z\n"
    azureml.tell("log", id=run, name="user_logs/std_log.txt", text=words)
    azureml.tell("log", id=run, name="user_logs/retry_001/std_log.txt", text="step 5\n")
    answer = why(act, run)
    assert (answer["attempt"], answer["last_line"]) == (2, "step 5"), answer
    failure = answer["failure"]
    assert (failure["attempt"], failure["rank"], failure["exit_status"], failure["node"]) == (1, 0, 9, "n1"), answer
    assert answer["diagnosis"]["code"] == "OOM" and answer["diagnosis"]["log"] == "attempts/1/user_logs/std_log.txt"
    assert "attempt   2\n" in act.run("q", run).out


def test_retry_is_followed(act, azureml, scratch):
    azureml.tell("settings", retryFolders=True)
    gate = scratch / "gate"
    run = submit(act, "sh", "-c", f"echo begun; while ! [ -e {gate} ]; do sleep 0.1; done; echo ended")
    follower = act.start("logs", "-f", run)
    assert follower.stdout.readline() == b"begun\n"
    act.run("q", run)
    assert (act.project / f"assets/{run}/user_logs/std_log.txt").read_text() == "begun\n"
    azureml.tell("job", id=run, preempt=True)
    assert follower.stdout.readline() == b"begun\n", "by the second attempt"
    act.run("q", run)
    assert (act.project / f"assets/{run}/attempts/1/user_logs/std_log.txt").read_text() == "begun\n"
    assert act.info(run)["state"] == "Running"
    gate.touch()
    out, err = follower.communicate()
    assert out == b"ended\n" and b"attempt 2 begins" in err and follower.returncode == 0
    act.run("wait", run)
    assert act.run("q", run).out.startswith("begun\nended\n")
    assert act.run("logs", "--attempt", 1, run).out == "begun\n"
    assert (act.project / f"assets/{run}/user_logs/std_log.txt").read_text() == "begun\nended\n"


# ---- many logs, long logs


MIB = 1 << 20


def digests(service, azureml, run):
    """What the service has: name -> MD5."""
    return {name: hashlib.md5(service.get(azureml.log_key(run, name))).hexdigest() for name in azureml.job(run)["logs"]}


def copies(act, run):
    folder = act.project / f"assets/{run}"
    return {str(f.relative_to(folder)): hashlib.md5(f.read_bytes()).hexdigest()
            for f in folder.rglob("*") if f.is_file() and not f.name.startswith(".")}


def seed_long(azureml, *sizes):
    run, = azureml.tell("seed", count=1)
    for i, size in enumerate(sizes):
        azureml.tell("log", id=run, name=f"user_logs/std_log_process_{i}.txt", size=size)
    return run


@pytest.mark.smoke
def test_long_logs(act, azureml_on_double, double):
    run = seed_long(azureml_on_double, 30 * MIB + 7, 0, 1, 4 * MIB, 9 * MIB)
    act.run("q", run)
    assert copies(act, run) == digests(double, azureml_on_double, run)
    double.forget()
    azureml_on_double.tell("log", id=run, name="user_logs/std_log_process_3.txt", text="more\n", more=True)
    act.run("q", run)
    assert sum(r.sent for r in double.log()) < 20 * MIB, "only what is new, and the end of rank 0's for its last lines"
    assert copies(act, run) == digests(double, azureml_on_double, run)


def test_many_logs(act, azureml_on_double):
    run, = azureml_on_double.tell("seed", count=1)
    for i in range(1000):
        azureml_on_double.tell("log", id=run, name=f"user_logs/std_log_process_{i:03}.txt", text=f"rank {i}\n")
    shown = act.run("q", run).out
    assert shown.startswith("rank 0\n")
    found = copies(act, run)
    assert len(found) == 1000
    assert found["user_logs/std_log_process_999.txt"] == hashlib.md5(b"rank 999\n").hexdigest()


def beginnings(act, run, service):
    """The length of each copy, which must be how its log begins."""
    service.no_faults()
    lengths = {}
    for file in (act.project / f"assets/{run}").rglob("std_log*"):
        name, data = file.name, file.read_bytes()
        assert service.get(f"azureml/ExperimentRun/dcid.{run}/user_logs/{name}").startswith(data), name
        lengths[name] = len(data)
    return lengths


def test_killed_while_it_fetches(act, azureml_on_double, double):
    """A part that does not come keeps those behind it out of the file."""
    run = seed_long(azureml_on_double, 30 * MIB, 10 * MIB)
    double.fault("stall", where="answer", method="GET", path="std_log_process_0", skip=2, times=1, ms=30000)
    fetcher = act.start("q", run)
    other = act.project / f"assets/{run}/user_logs/std_log_process_1.txt"
    act.until(lambda: other.exists() and other.stat().st_size == 10 * MIB, "the other log is here")
    fetcher.kill()
    fetcher.communicate()
    assert beginnings(act, run, double).get("std_log_process_0.txt", 0) < 30 * MIB
    act.run("q", run)
    assert copies(act, run) == digests(double, azureml_on_double, run)


@pytest.mark.parametrize("fault, values", [
    ("answer", {"status": 500}), ("answer", {"status": 404, "code": "BlobNotFound"}), ("truncate", {}),
    ("reset", {"where": "body"}),
    ("range", {}),
])
def test_faults_leave_beginnings(act, azureml_on_double, double, fault, values):
    run = seed_long(azureml_on_double, 21 * MIB, 13 * MIB)
    double.fault(fault, method="GET", path="std_log_process_0", skip=2, times=0, **values)
    act.run("q", run, status=None, env={"ACT_MAX_RETRIES": "1"})
    assert beginnings(act, run, double)["std_log_process_0.txt"] < 21 * MIB
    double.fault(fault, method="GET", path="std_log_process", skip=1, times=2, **values)
    act.run("q", run, status=None)
    act.run("q", run)
    assert copies(act, run) == digests(double, azureml_on_double, run)


def test_disk_that_is_full(act, azureml_on_double, double):
    run = seed_long(azureml_on_double, 21 * MIB)
    limit = {"preexec_fn": lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                                    resource.setrlimit(resource.RLIMIT_FSIZE, (9 * MIB, 9 * MIB)))}
    failed = act.run("q", run, status=None, **limit)
    assert failed.status and "cannot write" in failed.err and "std_log_process_0.txt" in failed.err
    assert 0 < beginnings(act, run, double)["std_log_process_0.txt"] <= 9 * MIB
    act.run("q", run)
    assert copies(act, run) == digests(double, azureml_on_double, run)


def test_no_signature_is_ever_shown(act, azureml_on_double, double):
    run = seed_long(azureml_on_double, 5 * MIB)
    double.fault("answer", status=403, code="AuthenticationFailed", method="GET", path="std_log_process", times=0)
    result = act.run("q", run, status=None, env={"ACT_TRACE": "all"})
    assert result.status and "does not let it be read" in result.err
    double.no_faults()
    result = act.run("q", run, env={"ACT_TRACE": "all"})
    for text in (result.err, result.out, act.run("logs", run, env={"ACT_TRACE": "all"}).err):
        assert not re.search("sig=(?!REDACTED)", text)
    for file in [*act.project.rglob("*"), *act.home.rglob("*")]:
        assert not file.is_file() or b"sig=" not in file.read_bytes(), file


# ---- names


@pytest.mark.parametrize("name", ["../../../escaped.txt", "/escaped.txt", "user_logs/../../../escaped.txt",
                                  "user_logs/retry_001/../../../../escaped.txt", "user_logs//escaped.txt", "."])
def test_names_that_leave_the_folder(act, azureml, name):
    run, = azureml.tell("seed", count=1)
    azureml.tell("log", id=run, name="user_logs/std_log.txt", text="fine\n")
    azureml.tell("log", id=run, name=name, key="escaped", text="bad\n")
    assert "fine" in act.run("q", run).out
    assert not list(act.scratch.rglob("escaped.txt")) and not os.path.exists("/escaped.txt")


@pytest.mark.parametrize("name", ["user_logs/a b+c%20&?#=.txt", "user_logs/größe 日本.txt", "user_logs/'\"`$(x).txt",
                                  "user_logs/retry_001.txt", "user_logs/retry_/x.txt", "user_logs/retry_1x/x.txt"])
def test_names_with_odd_characters(act, azureml, name):
    run, = azureml.tell("seed", count=1)
    azureml.tell("log", id=run, name="user_logs/std_log.txt", text="fine\n")
    azureml.tell("log", id=run, name=name, text="odd\n")
    act.run("q", run)
    assert (act.project / f"assets/{run}" / name).read_text() == "odd\n"
    assert act.run("logs", "--name", name, run).out == "odd\n"
