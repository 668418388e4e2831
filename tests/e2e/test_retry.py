"""Runs that are tried again after a failure, by its class; nodes that were to blame for one."""
import json
import os
import shutil
import signal

import pytest

from gated import job_of

TIMEOUT = "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12)"
ECC = "NVRM: Xid (PCI:0000:3b:00): 48, pid=1, Double Bit ECC error"


def fails(words, attempts=1, sleep=0):
    """A command that says so and fails in its first attempts."""
    return ["bash", "-c", f"echo attempt $ACT_ATTEMPT; [ $ACT_ATTEMPT -gt {attempts} ] && exit 0; "
                          f"echo '{words}'; sleep {sleep}; exit 3"]


@pytest.fixture
def quick(act):
    act.env["ACT_RETRY_PAUSE"] = "0"
    return act


def status(act, run):
    return json.loads((act.run_dir(run) / "status.json").read_text())


def classes(act, run):
    return [t["class"] for t in json.loads((act.run_dir(run) / "retry.json").read_text())["tries"]]


# ---- on this machine


def test_fails_once_then_works(quick):
    run = quick.submit("--retry", "3", "--retry-on", "nccl_timeout,node_failure", *fails(TIMEOUT),
                       before=("-c", "local", "-n", "2"))
    quick.run("wait", run)
    info = quick.info(run)
    assert (info["state"], info["attempt"], info["attempts"]) == ("Completed", 2, 4)
    assert "attempt 1 failed" in info["retry"] and "nccl_timeout" in info["retry"]
    assert quick.run("logs", run).out == "attempt 2\n"
    first = quick.run("logs", "--all", "--attempt", "1", run).out
    assert "attempt 1\n" in first and "attempt 2" not in first, first
    assert "attempt   2 of 4\n" in quick.run("q", run).out
    assert quick.run("nodes", "--bad", "--json").json["nodes"] == [], "a time-out blames no node"


def test_the_cluster_file_says_it(quick):
    quick.cluster("mine", extra={"platform": "local", "retry": {"times": 1, "on": ["NCCLTimeout"]}})
    run = quick.submit(*fails(TIMEOUT, attempts=9), before=("-c", "mine", "-n", "1"))
    quick.run("wait", run, status=3)
    info = quick.info(run)
    assert (info["state"], info["attempt"], info["attempts"]) == ("Failed", 2, 2), info
    assert "all attempts are used up" in info["retry"]
    why = quick.run("why", run).out
    assert "attempt 2 of 2: rank 0" in why and "NCCL timeout" in why and "used up" in why
    again = quick.run("resubmit", "--dry-run", run).json
    assert again["retry"] == {"times": 1, "on": ["nccl_timeout"]}


@pytest.mark.parametrize("more", ["", "x"])
def test_words_of_many_bytes_are_remembered_too(quick, more):
    """They are cut, but not inside of a character."""
    run = quick.submit("--retry", "1", *fails(TIMEOUT + more + "\u00e9" * 300, attempts=9),
                       before=("-c", "local", "-n", "1"))
    quick.run("wait", run, status=3)
    assert quick.info(run)["attempt"] == 2 and classes(quick, run) == ["nccl_timeout"]


def test_user_errors_are_not_tried_again(quick):
    run = quick.submit("--retry", "3", *fails("ImportError: cannot import name 'x' from 'y'"),
                       before=("-c", "local", "-n", "1"))
    quick.run("wait", run, status=3)
    info = quick.info(run)
    assert info["attempt"] == 1 and "import_error" in info["retry"] and "retry.on" in info["retry"]


def test_same_words_at_once_are_not_tried_for_ever(quick):
    run = quick.submit("--retry", "9", *fails(TIMEOUT, attempts=9), before=("-c", "local", "-n", "1"))
    quick.run("wait", run, status=3)
    info = quick.info(run)
    assert info["attempt"] == 3 and "three times in a row, with the same words" in info["retry"]
    assert "three times in a row" in quick.run("why", run).out


def test_logs_follow_into_the_next_attempt(quick):
    quick.env["ACT_RETRY_PAUSE"] = "1"
    run = quick.submit("--retry", "2", *fails(TIMEOUT), before=("-c", "local", "-n", "1"))
    followed = quick.run("logs", "-f", run)
    assert "attempt 1\n" in followed.out or "attempt 2\n" in followed.out
    assert followed.out.endswith("attempt 2\n"), followed


def test_aborted_between_tries(quick):
    quick.env["ACT_RETRY_PAUSE"] = "200"
    run = quick.submit("--retry", "2", *fails(TIMEOUT), before=("-c", "local", "-n", "1"))
    quick.until(lambda: quick.info(run)["reason"] == "attempt 2 of 3 begins in 200 s", "it pauses")
    why = quick.run("why", run).out
    assert "attempt 1 of 3: rank 0" in why and "NCCL timeout" in why
    quick.run("abort", run)
    quick.run("wait", run, status=143)
    assert quick.info(run)["state"] == "Canceled"
    assert classes(quick, run) == ["nccl_timeout"]


def test_aborted_runs_are_not_tried_again(quick):
    run = quick.submit("--retry", "2", "bash", "-c", f"echo '{TIMEOUT}'; sleep 300", before=("-c", "local", "-n", "1"))
    quick.until(lambda: b"timeout" in quick.log(run), "it runs")
    quick.run("abort", run)
    quick.run("wait", run, status=143)
    assert quick.info(run)["attempt"] == 1 and not (quick.run_dir(run) / "retry.json").exists()


def test_killed_between_tries_nothing_is_doubled(quick):
    quick.env["ACT_RETRY_PAUSE"] = "200"
    run = quick.submit("--retry", "2", *fails(TIMEOUT), before=("-c", "local", "-n", "1"))
    quick.until(lambda: "begins in" in (quick.info(run)["reason"] or ""), "it pauses")
    os.kill(int((quick.run_dir(run) / "supervisor.lock").read_text()), signal.SIGKILL)
    quick.until_state(run, "Failed")
    info = quick.info(run)
    assert "lost" in info["reason"] and info["attempt"] == 2
    assert sorted(p.name for p in (quick.run_dir(run) / "attempts").iterdir()) == ["1"]
    assert list((quick.run_dir(run) / "user_logs").iterdir()) == []


def test_the_projects_own_rules(quick):
    rule = {"id": "flaky", "title": "our flaky server", "patterns": ["the flaky server"], "retry": "yes",
            "summary": "it went away", "advice": "wait"}
    quick.write("aux_data/diagnosis.yaml", json.dumps({"version": 1, "rules": [rule]}).encode())
    run = quick.submit("--retry", "1", "--retry-on", "flaky", *fails("the flaky server"),
                       before=("-c", "local", "-n", "1"))
    quick.run("wait", run)
    assert "our flaky server (flaky)" in quick.info(run)["retry"]


# ---- bad input


@pytest.mark.parametrize("words, match", [
    (("--retry", "2", "--retry-on", "nccl_timeot"), "no class of failures 'nccl_timeot'.*did you mean 'nccl_timeout'"),
    (("--retry-on", "nccl_timeout"), "nothing says how often"),
    (("--retry", "2", "--retry-on", "time_limit"), "never tried again"),
    (("--retry", "101"), "'times' must be a whole number from 0 to 100, not '101'"),
    (("-p", "retry: often"), "'retry' must be a whole number from 0 to 100 or a map, .*, not 'often'"),
    (("--retry", "2", "--retry-on", "it's,x"), "no class of failures 'it's'"),
])
def test_refused(act, words, match):
    act.fail("-c", "local", "submit", *words, "true", status=2, match=match)


def test_refused_in_the_cluster_file(act):
    act.cluster("mine", extra={"platform": "local", "retry": "often"})
    act.fail("-c", "mine", "submit", "true", status=7, match="'retry' must be a whole number from 0 to 100 or a map")


def test_azure_machine_learning_cannot(act, azureml):
    azureml.cluster()
    act.fail("submit", "--retry", "2", "true", status=2, match="the service starts the processes.*a wait RUN ")
    assert azureml.requests() == []


def test_bad_nodes_take_the_right_words(act):
    act.fail("nodes", status=3, match="no run '@'")
    act.fail("nodes", "--forget", "n1", status=2, match="goes with --bad")
    act.fail("nodes", "--bad", "--forget", status=2, match="which node")
    act.fail("nodes", "--bad", "--forget", "n1", status=3, match="no failure of node 'n1' is remembered")
    act.fail("nodes", "--bad", "some_run", status=2, match="about all runs")


# ---- nodes


def test_a_node_to_blame_is_remembered_and_forgotten(quick):
    run = quick.submit(*fails(ECC, attempts=9), before=("-c", "local", "-n", "1"))
    quick.run("wait", run, status=3)
    found = quick.run("nodes", "--bad", "--json").json["nodes"]
    assert [(n["cluster"], n["class"], n["run"]) for n in found] == [("local", "ecc", run)]
    assert found[0]["node"] in quick.run("nodes", "--bad").out
    quick.run("nodes", "--bad", "--forget", found[0]["node"])
    quick.run("q", run)
    assert quick.run("nodes", "--bad", "--json").json["nodes"] == []


def test_slurm_goes_to_another_node(lab):
    """Rank 0 alone fails: the first that does ends the others, perhaps before they have said where they are."""
    lab.act.env["ACT_RETRY_PAUSE"] = "0"
    alone = "[ $RANK = 0 ] || sleep 1000; "
    run = lab.shell(f"{alone}echo attempt 1 on $SLURMD_NODENAME; echo '{ECC}'; exit 3", n=2)
    lab.wait(run, "Failed")
    first = lab.rank_text(run).split()[3]
    assert [n["node"] for n in lab.act.run("nodes", "--bad", "--json").json["nodes"]] == [first]

    dry = lab.act.run("-c", "lab", "-n", "2", "submit", "--retry", "2", "--dry-run", "true")
    assert f"not on {first}, which failed lately" in dry.err and dry.json["avoid_nodes"] == [first]
    used = lab.act.run("-c", "lab", "-n", "2", "submit", "--use-bad-nodes", "--dry-run", "true")
    assert "avoid_nodes" not in used.json
    all_three = lab.act.run("-c", "lab", "-n", "6", "submit", "--dry-run", "true")
    assert "would not fit" in all_three.err and "avoid_nodes" not in all_three.json

    again = lab.act.run("-c", "lab", "-n", "2", "submit", "--retry", "2", "bash", "-c",
                        "[ $ACT_ATTEMPT -gt 1 ] || " + alone + "echo attempt $ACT_ATTEMPT on $SLURMD_NODENAME; "
                        f"[ $ACT_ATTEMPT -gt 1 ] && exit 0; echo '{TIMEOUT}'; exit 3").out.strip()
    info = lab.wait(again, "Completed", status=0)
    assert (info["attempt"], info["attempts"]) == (2, 3)
    nodes = [lab.text(again, "attempts/1/user_logs/std_log_process_0.txt").split()[3], lab.rank_text(again).split()[3]]
    assert len({first, *nodes}) == 3, (first, nodes)
    assert f"without {nodes[0]} from now on" in info["retry"]
    assert lab.bed.show(lab.bed.job(again))["Restarts"] == "1"


def test_slurm_is_not_asked_about_other_runs(lab, tmp_path):
    """A submit knows the nodes that failed from what was seen of runs before."""
    lab.shell("sleep 300", n=6)
    lab.shell("true", n=6)  # waits
    asked, tools = tmp_path / "asked", tmp_path / "bin"
    tools.mkdir()
    for name in ("sacct", "sbatch", "scontrol", "sinfo", "squeue"):
        tool = tools / name
        tool.write_text(f'#!/bin/sh\necho "{name} $*" >> {asked}\nexec {shutil.which(name)} "$@"\n')
        tool.chmod(0o755)
    lab.shell("true", env={"PATH": f"{tools}:{lab.act.env['PATH']}"})
    tools_asked = [line.split()[0] for line in asked.read_text().splitlines()]
    assert "squeue" not in tools_asked and "sacct" not in tools_asked, asked.read_text()
    submitted = [line for line in asked.read_text().splitlines() if line.startswith("sbatch ")]
    assert len([line for line in submitted if "--test-only" not in line]) == 1


def test_slurm_waits_in_the_queue(lab):
    """The agent of the failed attempt is gone by then, and nothing is there twice."""
    lab.act.env["ACT_RETRY_PAUSE"] = "300"
    run = lab.act.run("-c", "lab", "-n", "2", "submit", "--retry", "2", *fails(TIMEOUT)).out.strip()
    lab.act.until(lambda: lab.act.info(run)["state"] == "Queued" and lab.act.info(run)["attempt"] == 2, "it is queued")
    why = lab.act.run("why", run).out
    assert "attempt 1 of 3: rank" in why and "NCCL timeout" in why, why
    lab.bed.run("scontrol", "update", f"jobid={lab.bed.job(run)}", "starttime=now")
    info = lab.wait(run, "Completed", status=0)
    assert info["attempt"] == 2 and len(lab.record(run, "retry.json")["tries"]) == 1


def test_slurm_agent_killed_before_it_requeues(lab):
    """Its job ends with it: no other attempt begins, and none is counted."""
    run = lab.shell(f"echo up; sleep 300; echo '{TIMEOUT}'", n=2, before=("-p", "retry: 2"))
    lab.until_text(run, "up")
    for pid, words in lab.bed.step_processes(str(lab.run_dir(run))).items():
        if "supervise" in words:
            os.kill(pid, signal.SIGKILL)
    info = lab.wait(run, "Failed")
    assert info["attempt"] == 1 and not (lab.run_dir(run) / "retry.json").exists()
    assert lab.bed.show(lab.bed.job(run))["Restarts"] == "0"


def test_kubernetes_tries_in_the_same_pods(quick, kubernetes):
    kubernetes.cluster(gpu_per_node=1, env={"ACT_RETRY_PAUSE": "0"},
                       k8s={"gpu_resource": "none", "launcher": "direct"})
    result = quick.run("-c", "k8s", "-n", "2", "submit", "--retry", "2", *fails(TIMEOUT))
    assert "same nodes" in result.err
    run = result.out.strip()
    quick.run("wait", run)
    info = quick.info(run)
    assert (info["state"], info["attempt"], info["attempts"]) == ("Completed", 2, 3)
    assert quick.run("logs", run).out == "attempt 2\n"
    assert len(kubernetes.pods_of(job_of(kubernetes)["metadata"]["name"])) == 2


def test_kubernetes_knows_the_class_of_a_failure_in_another_pod(quick, kubernetes):
    """Its log is not in the first pod, where the decision is made, and is of more than one line."""
    kubernetes.cluster(gpu_per_node=1, env={"ACT_RETRY_PAUSE": "0"},
                       k8s={"gpu_resource": "none", "launcher": "direct"})
    command = (f"[ $ACT_ATTEMPT -gt 1 ] && exit 0; [ $RANK = 0 ] && exec sleep 300; "
               f"echo one; echo '{TIMEOUT}'; echo two; exit 3")
    run = quick.submit("--retry", "2", "bash", "-c", command, before=("-c", "k8s", "-n", "2"))
    quick.run("wait", run)
    info = quick.info(run)
    assert info["attempt"] == 2 and "(nccl_timeout)" in info["retry"], info


def test_kubernetes_shows_the_attempt_that_its_logs_have(quick, kubernetes, tmp_path):
    """The cluster does not know of it before the end: who has read the logs does, without another request."""
    gate = tmp_path / "gate"
    kubernetes.cluster(env={"ACT_RETRY_PAUSE": "0"},
                       k8s={"volumes": [{"mount_path": str(tmp_path), "hostPath": {"path": str(tmp_path)}}]})
    run = quick.submit("--retry", "2", "bash", "-c", f"echo attempt $ACT_ATTEMPT; [ $ACT_ATTEMPT -gt 1 ] || "
                       f"{{ echo '{TIMEOUT}'; exit 3; }}; until [ -e {gate} ]; do sleep 0.1; done",
                       before=("-c", "k8s"))
    quick.until(lambda: quick.run("logs", run, status=None).out == "attempt 2\n", "the second attempt")
    assert quick.info(run)["attempt"] == 2
    assert "attempt   2" in quick.run("q", run).out
    gate.touch()
    quick.run("wait", run)
    info = quick.info(run)
    assert (info["state"], info["attempt"], info["attempts"]) == ("Completed", 2, 3)


def test_kubernetes_keeps_off_bad_nodes(quick, kubernetes):
    keys = {"gpu_resource": "none", "launcher": "direct"}
    kubernetes.cluster(gpu_per_node=1, k8s=keys)
    run = quick.submit(*fails(ECC, attempts=9), before=("-c", "k8s", "-n", "1"))
    quick.run("wait", run, status=3)
    pods = kubernetes.pods_of(job_of(kubernetes)["metadata"]["name"])
    node = pods[0]["spec"]["nodeName"]
    assert [n["node"] for n in quick.run("nodes", "--bad", "--json").json["nodes"]] == [node]
    second = quick.run("-c", "k8s", "-n", "1", "submit", "echo", "here")
    assert f"not on {node}" in second.err
    quick.run("wait", second.out.strip())
    job = next(j for j in kubernetes.objects("Job") if j["metadata"]["annotations"]["act/run"] == second.out.strip())
    terms = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    fields = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]["matchFields"]
    assert fields == [{"key": "metadata.name", "operator": "NotIn", "values": [node]}]
