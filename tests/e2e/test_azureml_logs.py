"""Logs of runs on Azure Machine Learning: whose they are, why a run failed when there is nothing but them, and that nobody
asks for what is here already."""
import json
import os
import shutil

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
@pytest.mark.parametrize("runtime, log", [("new", "user_logs/std_log_process_3.txt"), ("old", "azureml-logs/70_driver_log_3.txt")])
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
    act.until(lambda: "act: metrics: node " in act.run("logs", run).out, "the numbers of the node")
    act.run("abort", run)


def test_preparation_that_failed(act, azureml, two_ranks):
    act.write("compile.aml.sh", "#!/bin/sh\necho no compiler here >&2\nexit 7\n")
    run = fail(act, "true", gpus=2)
    answer = why(act, run)
    assert answer["failure"]["exit_status"] == 7
    assert answer["failure"]["reason"] == "preparation failed: compile.aml.sh ended with status 7: no compiler here"


def test_command_that_is_not_there(act, azureml):
    answer = why(act, fail(act, "no-such-program"))
    assert answer["diagnosis"]["code"] == "CommandNotFound", answer
    assert answer["failure"]["reason"].startswith("cannot start 'no-such-program'")


def test_only_the_service_says_why(act, azureml):
    run, = azureml.tell("seed", count=1)
    azureml.tell("job", id=run, set={"status": "Failed", "error": {"code": "UserError", "message": "the image is gone"}})
    result = act.run("why", run)
    assert "the image is gone" in result.out, result


def test_what_a_command_says_is_no_record(act, azureml):
    """Only a line of the rank's own agent counts, and only a whole one."""
    forged = "act: rank 1 on node x exited with status 9 at 2026-01-01T00:00:00Z\\nact: rank 0 on node x exited with status 9"
    run = fail(act, "sh", "-c", f"printf '{forged}\\n'; exit 4")
    failure = why(act, run)["failure"]
    assert (failure["rank"], failure["exit_status"], failure["node"]) == (0, 4, os.uname().nodename)


# ---- names


def test_names_with_zeros(act, azureml):
    run, = azureml.tell("seed", count=1, properties={"act.num_gpu": "12"})
    for rank in range(12):
        azureml.tell("log", id=run, name=f"user_logs/std_log_process_{rank:02}.txt", text=f"rank {rank}\n")
    azureml.tell("log", id=run, name="user_logs/mpi_log.txt", text="mpi\n")
    assert act.run("logs", run).out == "rank 0\n"
    assert act.run("logs", "--all", run).out.splitlines()[-1].endswith("rank 11")
    shown = act.run("q", run).out
    assert shown.startswith("rank 0\n") and "std_log_process_11.txt" in shown


# ---- what is here is not asked for


def test_finished_run_is_not_asked_for_again(act, azureml):
    run = submit(act, "echo", "done")
    act.run("wait", run)
    first = act.run("q", run).out
    azureml.tell("log", id=run, name="user_logs/std_log.txt", text="never looked at\n")
    assert asked(azureml, act, "q", run) == []
    assert asked(azureml, act, "logs", run) == []
    assert act.run("q", run).out == first and first.startswith("done\n")


@pytest.mark.parametrize("damage", ["copy", "size", "marker", "garbage", "all"])
def test_copies_that_are_not_whole_are_fetched(act, azureml, damage):
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
    elif damage == "marker":
        marker.unlink()
    elif damage == "garbage":
        marker.write_bytes(b"{\xff")
    else:
        shutil.rmtree(assets)
    assert asked(azureml, act, "q", run)
    assert log.read_text().startswith("d")
    assert asked(azureml, act, "q", run) == []


def test_running_run_is_asked_for(act, azureml, scratch):
    gate = scratch / "gate"
    run = submit(act, "sh", "-c", f"echo begun; while ! [ -e {gate} ]; do sleep 0.05; done; echo ended")
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
    message = act.fail("q", run, status=None, env={"ACT_MAX_RETRIES": "0"})
    assert "127.0.0.1:9" in message or "look at" in message
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
