"""What takes pods away on Kubernetes, or makes them silent, on the double: another attempt with its reason, what is
left of the logs, and who says that something is lost."""

import pytest

from gated import finish, job_of

K8S = ("-c", "k8s")


@pytest.fixture
def cluster(kubernetes, tmp_path):
    """Nodes with processes instead of GPUs, and a gate for commands that wait."""
    kubernetes.keys = {"gpu_resource": "none", "launcher": "direct",
                       "volumes": [{"mount_path": str(tmp_path), "hostPath": {"path": str(tmp_path)}}]}
    kubernetes.cluster(gpu_per_node=1, env={"ACT_ABORT_GRACE": "3"}, k8s=kubernetes.keys)
    kubernetes.gate = tmp_path / "gate"
    return kubernetes


def submit(act, cluster, size="1"):
    script = f"echo attempt $ACT_ATTEMPT; until [ -e {cluster.gate} ]; do sleep 0.1; done"
    run = act.submit("sh", "-c", script, before=(*K8S, "-n", size))
    says(act, run, 1)
    return run


def says(act, run, attempt):
    act.until(lambda: act.run("logs", run, status=None).out.splitlines()[-1:] == [f"attempt {attempt}"],
              f"attempt {attempt}")


def pods(cluster):
    return cluster.pods_of(job_of(cluster)["metadata"]["name"])


def cordon(cluster, do="cordon"):
    for node in cluster.objects("Node", None):
        cluster.node(node["metadata"]["name"], do)


def drain(cluster, pod):
    cluster.node(pod["spec"]["nodeName"], "drain")


def delete(cluster, pod):
    cluster.tell("delete", kind="Pod", name=pod["metadata"]["name"])


TAKEN = {"preempted": (lambda cluster, pod: cluster.pod(pod["metadata"]["name"], "preempt"),
                       "was preempted: its node was needed for a pod of higher priority"),
         "drained": (drain, "was evicted, as from a node that is drained"),
         "deleted": (delete, "was deleted by somebody"),
         "evicted": (lambda cluster, pod: cluster.pod(pod["metadata"]["name"], "evict"),
                     "was ended by its node (The node was low on resource")}


@pytest.mark.parametrize("how", TAKEN)
def test_a_run_whose_only_pod_is_taken_has_another_attempt(act, cluster, how):
    """Also where nobody but the cluster knows that there was one before."""
    take, words = TAKEN[how]
    cluster.tell("settings", backoffMs=50 if how == "preempted" else 3000)  # whether somebody looks before the next pod
    run = submit(act, cluster)
    cordon(cluster)
    first = pods(cluster)[0]
    take(cluster, first)
    act.until(lambda: act.state(run) == "Queued", "its pod has ended")
    act.until(lambda: act.state(run) == "Queued" and "nodes are available" in (act.info(run)["reason"] or ""),
              "its next pod waits")
    info = act.info(run)
    assert info["attempt"] == 2 and info["started"], info
    assert info["retry"] == f"pod '{first['metadata']['name']}' {words}" + info["retry"].partition(words)[2]
    assert words in act.run("q", run, status=None).out
    cordon(cluster, "uncordon")
    says(act, run, 2)
    finish(act, cluster, run)
    info = act.info(run)
    assert info["attempt"] == 2 and words in info["retry"], info
    assert act.run("logs", run).out == "attempt 2\n"
    logs = act.run("logs", "--attempt", "1", run, status=None)
    if how == "evicted":
        assert logs.out == "attempt 1\n" and "not complete" not in logs.err
    else:
        assert logs.status != 0
        assert "pod 0 of the run is the 2. in its place, and 1 of those before it took their logs along" in logs.err


def test_attempts_go_on_as_often_as_a_pod_is_taken(act, cluster):
    run = submit(act, cluster)
    for attempt in (2, 3):
        cluster.pod(pods(cluster)[-1]["metadata"]["name"], "preempt")
        says(act, run, attempt)
        assert act.info(run)["attempt"] == attempt
    finish(act, cluster, run)
    assert act.info(run)["attempt"] == 3
    assert "and 2 of those before it took their logs along" in act.run("logs", run).err


def test_the_reason_is_there_while_the_pod_ends(act, cluster):
    cluster.tell("settings", backoffMs=600000)
    run = submit(act, cluster)
    cluster.pod(pods(cluster)[0]["metadata"]["name"], "preempt")
    act.until(lambda: act.state(run) == "Queued", "its pod has ended")
    assert "was preempted" in act.info(run)["reason"] and "another attempt follows" in act.info(run)["reason"]
    cluster.tell("settings", backoffMs=50)
    says(act, run, 2)
    assert "was preempted" not in (act.info(run)["reason"] or ""), "it is over"
    finish(act, cluster, run)


def test_copies_of_a_log_that_is_gone_are_kept(act, cluster):
    """What 'a q' has fetched of an attempt is all that is left of it."""
    run = submit(act, cluster)
    act.run("q", run)
    cluster.pod(pods(cluster)[0]["metadata"]["name"], "preempt")
    says(act, run, 2)
    act.run("q", run)
    copies = act.project / "assets" / run
    for folder, attempt in ((copies / "attempts/1", 1), (copies, 2)):
        assert (folder / "user_logs/std_log_process_0.txt").read_text() == f"attempt {attempt}\n"
    finish(act, cluster, run)
    act.run("q", run)
    assert (copies / "attempts/1/user_logs/std_log_process_0.txt").read_text() == "attempt 1\n"


def test_a_run_that_is_followed_goes_on(act, cluster):
    run = submit(act, cluster)
    follows = act.start("logs", "-f", run)
    act.until(lambda: follows.stdout.readline() == b"attempt 1\n", "it follows")
    cluster.pod(pods(cluster)[0]["metadata"]["name"], "preempt")
    act.until(lambda: follows.stdout.readline() == b"attempt 2\n", "it follows the next attempt")
    finish(act, cluster, run)
    _, err = follows.communicate()
    assert follows.returncode == 0 and b"attempt 2 begins" in err and b"took their logs" not in err, err


def test_a_log_that_the_node_has_removed_is_missed(act, cluster):
    """The kubelet says so with success, instead of a log: so it does soon of a pod that it has evicted."""
    run = submit(act, cluster)
    first = pods(cluster)[0]["metadata"]["name"]
    cluster.pod(first, "evict")
    says(act, run, 2)
    cluster.pod(first, "collect")
    finish(act, cluster, run)
    logs = act.run("logs", run)
    assert logs.out == "attempt 2\n"
    assert f"the logs are not complete: the node of the pod '{first}' has removed its log" in logs.err
    assert "unable to retrieve" not in act.run("logs", "--attempt", "1", run, status=None).out


# ---- nodes that do not answer


@pytest.mark.parametrize("asked_to_go", [False, True])
def test_a_dead_node_is_named(act, cluster, asked_to_go):
    run = submit(act, cluster, "2")
    lost = pods(cluster)[1]
    node = lost["spec"]["nodeName"]
    cluster.node(node, "lose", evict=asked_to_go)
    reason = act.info(run)["reason"]
    assert reason.startswith(f"node '{node}' does not answer since 20"), reason
    assert f"'kubectl delete node {node}'" in reason
    states = {n["name"]: n["state"] for n in act.run("nodes", "--json", run).json["nodes"]}
    assert states[lost["metadata"]["name"]].startswith("Unreachable since 20")
    assert states[lost["metadata"]["name"]].endswith(f"Z on {node}")
    act.fail("ssh", run, lost["metadata"]["name"], status=None, match="is Unreachable")
    cluster.node(node, "remove")
    says(act, run, 2)
    finish(act, cluster, run)
    assert act.info(run)["attempt"] == 2


def test_an_abort_says_what_it_waits_for(act, cluster):
    run = submit(act, cluster)
    node = pods(cluster)[0]["spec"]["nodeName"]
    cluster.node(node, "lose", evict=False)
    said = act.run("abort", run)
    assert f"node '{node}' does not answer since 20" in said.err + said.out, said
    assert f"its pod stays until it does, or until somebody who may deletes the node: 'kubectl delete node {node}'" \
        in act.info(run)["reason"]
    cluster.node(node, "remove")
    act.until_state(run, "Canceled")


# ---- Jobs that are deleted


def remove_job(act, cluster):
    cluster.tell("delete", kind="Job", name=job_of(cluster)["metadata"]["name"])
    act.until(lambda: not cluster.objects("Job") and not cluster.objects("Pod"), "it is gone")


def test_a_job_that_is_deleted_while_it_waits_was_submitted(act, cluster):
    """That a run is older than a submission takes is no proof that it was interrupted."""
    cordon(cluster)
    run = act.submit("true", before=K8S)
    act.until(lambda: act.info(run)["reason"], "it waits")
    act.age_runs(1 * 86400)
    remove_job(act, cluster)
    info = act.info(run)
    assert (info["state"], info["reason"]) == ("Canceled", "somebody deleted it from the cluster")


def test_a_job_whose_time_in_the_cluster_is_over(act, cluster):
    """Nobody looked in the week after its end."""
    run = submit(act, cluster)
    act.age_runs(8 * 86400)
    remove_job(act, cluster)
    info = act.info(run)
    assert info["state"] == "Canceled"
    assert info["reason"].startswith("it is not in the cluster any more: somebody deleted it, or it ended before"), info


def test_the_logs_of_pods_that_are_scaled_away(act, cluster):
    run = submit(act, cluster, "1:2")
    said = act.run("scale", "--dry-run", run, "1").err
    assert "the logs of the last 1 of its 2 pods go with them" in said
    assert "the logs of" not in act.run("scale", "--dry-run", run, "2", status=None).err
    finish(act, cluster, run)
