"""Runs that Slurm preempts, starts anew, forgets, or ends because their time is up."""
import os
import pathlib
import shutil
import signal
import tempfile

import pytest

import slurm_bed
from act_tool import Act
from slurm_fixtures import in_lab, start


@pytest.fixture(scope="module")
def strict():
    """A cluster that forgets ended jobs at once, has few GPUs, and takes nodes away for the partition `urgent`."""
    extra = ["MinJobAge=2", "PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE",
             "PartitionName=urgent Nodes=ALL PriorityTier=100 State=UP"]
    yield from start(nodes=2, gpus=2, extra=extra)


@pytest.fixture
def strict_lab(act, strict):
    yield from in_lab(act, strict)


@pytest.fixture(scope="module")
def accounted():
    """A cluster with a database of its jobs, which it itself forgets at once."""
    yield from start(nodes=2, accounting=True, extra=["MinJobAge=2", "AccountingStorageEnforce=associations"])


@pytest.fixture
def accounted_lab(act, accounted):
    yield from in_lab(act, accounted)


@pytest.fixture(scope="module", autouse=True)
def late(programs):
    """Runs with a time limit of a minute, the shortest there is, submitted before everything else: by name."""
    if slurm_bed.missing():
        yield {}
        return
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="act-"))
    try:
        for bed in start(nodes=1):
            for lab in in_lab(Act(programs, scratch), bed):
                lab.configure(slurm={"time": "1", "warn_seconds": 50})
                scripts = {"saves": "trap 'echo saved; exit 0' USR1; echo up; while :; do sleep 0.1; done",
                           "does not": "echo up; sleep 300"}
                yield lab, {name: lab.shell(script) for name, script in scripts.items()}
    finally:
        shutil.rmtree(scratch)


def test_preempted_and_started_anew(strict_lab):
    lab = strict_lab
    lab.configure(preemption_allowed=True)
    run = lab.shell("echo attempt $RANK; [ -e seen ] && exit 0; touch seen; sleep 300", n=2, before=())
    lab.until_text(run, "attempt 1", rank=1)
    urgent = lab.submit("true", n=4, before=("-p", "slurm: {partition: urgent}"))
    lab.wait(urgent, "Completed", status=0)
    info = lab.wait(run, "Completed", status=0)
    assert info["attempt"] == 2
    assert lab.text(run, "attempts/1/user_logs/std_log_process_1.txt") == "attempt 1\n"
    assert lab.rank_text(run, 1) == "attempt 1\n"
    assert lab.record(run, "attempts/1/status.json")["state"] == "Queued"


def test_requeued_by_hand(strict_lab):
    """With the first attempt's logs kept, and those of the second from their beginning."""
    lab = strict_lab
    lab.configure(preemption_allowed=True)
    run = lab.shell("echo attempt; [ -e seen ] && exit 0; touch seen; sleep 300", n=2)
    lab.until_text(run, "attempt")
    lab.bed.run("scontrol", "requeue", lab.bed.job(run))
    info = lab.wait(run, "Completed", status=0)
    assert info["attempt"] == 2
    assert lab.text(run, "attempts/1/user_logs/std_log_process_0.txt") == "attempt\n"
    assert lab.rank_text(run) == "attempt\n"


def failed_once(lab, run, node):
    """While its second attempt runs: what is said of the node that ended the first, now and later."""
    lab.act.until(lambda: lab.act.info(run)["state"] == "Running" and lab.act.info(run)["attempt"] == 2, "it runs anew")
    answer = lab.act.run("why", "--json", run).json
    assert (answer["failure"]["attempt"], answer["failure"]["node"]) == (1, node), answer
    assert (answer["diagnosis"]["code"], answer["diagnosis"]["retry"]) == ("NodeFailure", "other_node"), answer
    assert f"'{node}'" in answer["failure"]["reason"], answer
    bad = lab.act.run("-c", "lab", "nodes", "--bad", "--json").json["nodes"]
    assert [(row["node"], row["class"]) for row in bad if row["run"] == run] == [(node, "node_failure")], bad


def until_open(lab):
    """The second attempt of it waits for the file that it returns with the script."""
    gate = lab.act.scratch / "gate"
    return gate, f"echo attempt; [ -e seen ] && until [ -e {gate} ]; do sleep 0.1; done && exit; touch seen; sleep 300"


def test_node_failed_and_started_anew(strict_lab):
    """One node goes away with all that runs on it: Slurm starts the run again."""
    lab = strict_lab
    lab.configure(preemption_allowed=True)
    gate, script = until_open(lab)
    run = lab.shell(script, n=4)
    for rank in range(4):
        lab.until_text(run, "attempt", rank)
    lab.bed.kill("slurmd.n2")  # else it says at once that it is well
    lab.bed.run("scontrol", "update", "nodename=n2", "state=down", "reason=test")
    lab.act.until(lambda: lab.act.info(run)["state"] == "Queued", "it waits again")
    lab.bed.start()  # resumes it
    failed_once(lab, run, "n2")
    gate.touch()
    info = lab.wait(run, "Completed", status=0)
    assert info["attempt"] == 2
    assert lab.text(run, "attempts/1/user_logs/std_log_process_3.txt") == "attempt\n"


def test_node_that_dies_before_slurm_knows(strict_lab):
    """Its ranks are gone at once, and Slurm would notice after minutes: the job begins again all the same."""
    lab = strict_lab
    if not lab.bed.has_namespaces:
        pytest.skip("no permission for nodes with namespaces of their own")
    lab.configure(preemption_allowed=True)
    gate, script = until_open(lab)
    run = lab.shell(script, n=4)
    for rank in range(4):
        lab.until_text(run, "attempt", rank)
    lab.bed.end_node("n2")
    lab.act.until(lambda: lab.record(run, "status.json")["state"] == "Queued", "the agent has it queued again")
    lab.bed.start()
    failed_once(lab, run, "n2")
    gate.touch()
    lab.wait(run, "Completed", status=0)


def test_node_of_the_supervisor_dies(strict_lab):
    """It could not say so: the next one finds out."""
    lab = strict_lab
    if not lab.bed.has_namespaces:
        pytest.skip("no permission for nodes with namespaces of their own")
    lab.configure(preemption_allowed=True)
    gate, script = until_open(lab)
    run = lab.shell(script, n=2)
    lab.until_text(run, "attempt", 1)
    node = lab.bed.show(lab.bed.job(run))["BatchHost"]
    lab.bed.end_node(node)
    lab.bed.run("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
    failed_once(lab, run, node)
    gate.touch()
    lab.wait(run, "Completed", status=0)
    lab.bed.start()


def test_not_requeued_unless_allowed(strict_lab):
    lab = strict_lab
    run = lab.shell("echo up; sleep 300", n=2)
    lab.until_text(run, "up")
    urgent = lab.submit("true", n=4, before=("-p", "slurm: {partition: urgent}"))
    info = lab.wait(run, "Failed")
    assert "preempted" in info["reason"], info
    lab.wait(urgent, "Completed", status=0)


def test_forgotten_by_slurm(strict_lab):
    lab = strict_lab
    runs = [lab.shell("exit 7"), lab.shell("exit 0")]
    lab.act.until(lambda: all((lab.run_dir(r) / "status.json").exists() and not lab.bed.jobs(r) for r in runs),
                  "Slurm has forgotten them")
    assert lab.wait(runs[0], "Failed", status=7)["exit_status"] == 7
    lab.wait(runs[1], "Completed", status=0)


def forgotten(lab, *runs):
    """Waits until only the database knows the jobs of the runs."""
    jobs = [lab.record(run, "job.json")["job"] for run in runs]
    lab.act.until(lambda: not any(lab.bed.jobs(run) for run in runs), "Slurm has forgotten them")
    ends = ("sacct", "-n", "-X", "-P", "-o", "End", "-j", ",".join(jobs))
    lab.act.until(lambda: "Unknown" not in lab.bed.run(*ends), "the database knows their ends")


def test_ends_from_the_database(accounted_lab):
    """Of jobs whose agent could not tell: it never ran, or was killed."""
    lab = accounted_lab
    held = lab.submit("true", before=("-p", "slurm: {sbatch_options: [--hold], account: main}"))
    lab.bed.run("scancel", lab.bed.job(held))
    killed = lab.shell("echo up; sleep 300", n=4)
    lab.until_text(killed, "up", rank=3)
    for pid, words in lab.bed.step_processes(str(lab.run_dir(killed))).items():
        if "supervise" in words:
            os.kill(pid, signal.SIGKILL)
    whole = lab.shell("exit 3", n=4)
    lab.act.until(lambda: lab.record(whole, "status.json")["state"] == "Failed", "it has ended")
    forgotten(lab, held, killed, whole)
    lab.wait(held, "Canceled", status=143)
    assert "killed by signal 9" in lab.wait(killed, "Failed")["reason"]
    assert "rank" in lab.wait(whole, "Failed", status=3)["reason"]


# ---- bad input


def test_unknown_account(accounted_lab):
    message = accounted_lab.fail("true", before=("-p", "slurm: {account: nosuch}"), status=None)
    assert "Invalid account" in message


def test_more_gpus_than_a_node_has(strict_lab):
    strict_lab.configure(gpu_per_node=4)
    message = strict_lab.fail("true", n=4, status=6)
    assert "gpu_per_node" in message and "2" in message


# ---- last, because it takes a minute from the beginning


def test_time_limit(late):
    lab, runs = late
    lab.wait(runs["saves"], "Completed", status=0)
    assert "saved" in lab.rank_text(runs["saves"])
    info = lab.wait(runs["does not"], "Failed")
    assert "time limit" in info["reason"]
    assert "time limit" in lab.act.run("why", runs["does not"]).out
