"""Runs in a queue of Kueue, on the double: they wait, are admitted in part, and lose what they had."""
import pytest

from gated import finish, job_of, says, submit

K8S = ("-c", "k8s")


@pytest.fixture
def queue(kubernetes, tmp_path):
    """The cluster with Kueue and the queue "team", and a gate for commands that wait."""
    kubernetes.tell("settings", kueue=True)
    kubernetes.tell("create", kind="LocalQueue", object={"metadata": {"name": "team", "namespace": "default"},
                                                         "spec": {"clusterQueue": "cluster"}})
    kubernetes.cluster(gpu_per_node=1, env={"ACT_POD_SETTLE": "1", "ACT_ABORT_GRACE": "3"},
                       k8s={"gpu_resource": "none", "launcher": "direct", "queue": "team",
                            "volumes": [{"mount_path": str(tmp_path), "hostPath": {"path": str(tmp_path)}}]})
    kubernetes.gate = tmp_path / "gate"
    return kubernetes


def test_a_run_waits_for_its_queue(act, queue):
    queue.tell("settings", kueueAdmit=False)
    run = submit(act, queue, "2")
    reason = act.until(lambda: "insufficient" in (act.info(run)["reason"] or "") and act.info(run)["reason"], "why")
    assert act.info(run)["state"] == "Queued" and reason.startswith("it waits in the queue 'team': "), reason
    assert "it waits in the queue 'team'" in act.run("why", run, status=None).out
    queue.tell("settings", kueueAdmit=True)
    says(act, run, 1, 2)
    finish(act, queue, run)


def test_a_queue_that_is_not_there_is_refused(act, queue):
    queue.tell("delete", kind="LocalQueue", name="team")
    act.fail(*K8S, "submit", "true", status=7, match="there is no queue 'team' in the cluster of 'k8s'")
    assert queue.objects("Job") == []


@pytest.mark.parametrize("size", ["2", "1:2"])
def test_a_run_whose_quota_is_taken_begins_anew(act, queue, size):
    run = submit(act, queue, size)
    says(act, run, 1, 2)
    queue.tell("settings", kueueAdmit=False)
    queue.tell("kueue", name=job_of(queue)["metadata"]["name"])
    act.until_state(run, "Queued")
    reason = act.info(run)["reason"]
    assert reason.startswith("it waits in the queue 'team' again, as Kueue took its pods away (Preempted); it begins "
                             "anew: Preempted to accommodate a workload"), reason
    assert "Kueue took its pods away" in act.run("why", run, status=None).out
    act.until(lambda: not queue.objects("Pod"), "its pods are gone")
    queue.tell("settings", kueueAdmit=True)
    says(act, run, 1, 2)
    said = act.run("logs", run).err
    assert "the logs are not complete: Kueue took the pods of this run away before, and their logs with them: " \
        "Preempted to accommodate a workload" in said, said
    finish(act, queue, run)


def test_a_run_that_kept_its_quota_lacks_no_logs(act, queue):
    run = submit(act, queue, "1")
    says(act, run, 0, 1)
    assert "Kueue" not in act.run("logs", run).err
    finish(act, queue, run)


def test_an_elastic_run_begins_with_what_its_queue_has(act, queue):
    queue.tell("settings", kueuePods=2)
    run = submit(act, queue, "1:3")
    notes = job_of(queue)["metadata"]["annotations"]
    assert notes["kueue.x-k8s.io/job-min-parallelism"] == "1"
    assert notes["kueue.x-k8s.io/job-completions-equal-parallelism"] == "true"
    says(act, run, 1, 2)
    assert len(act.run("nodes", "--json", run).json["nodes"]) == 2
    for dry in ((), ("--dry-run",)):
        act.fail("scale", *dry, run, "1", status=2, match="in the queue 'team' of Kueue, which would end all its pods")
    finish(act, queue, run)
    fixed = act.run("-c", "k8s", "-n", "2", "submit", "--dry-run", "true").json["items"][0]
    assert not any(key.startswith("kueue") for key in fixed["metadata"]["annotations"])
