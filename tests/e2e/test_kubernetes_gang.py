"""Runs of several pods on Kubernetes, of which a part holds what others could use: asked before, and given back."""
import pytest

from gated import job_of

K8S = ("-c", "k8s")


@pytest.fixture
def cluster(kubernetes):
    """Nodes with processes instead of GPUs; a part of a run is held for three seconds."""
    kubernetes.keys = {"gpu_resource": "none", "launcher": "direct", "gang_wait": "3s"}
    kubernetes.cluster(gpu_per_node=1, env={"ACT_ABORT_GRACE": "3"}, k8s=kubernetes.keys)
    return kubernetes


def quota(cluster, name="team", **hard):
    cluster.tell("create", kind="ResourceQuota", object={
        "metadata": {"name": name, "namespace": "default"}, "spec": {"hard": hard}})


def submit(act, size, *words):
    return act.run(*K8S, "-n", size, "submit", *(words or ("sleep", "1000")))


def test_a_run_that_a_quota_never_lets_in_is_refused(act, cluster):
    quota(cluster, pods="2")
    act.fail(*K8S, "-n", "3", "submit", "true", status=6,
             match="the quota 'team' of the namespace 'default' allows 2 of 'pods', which is enough for 2 of the run's")
    assert cluster.objects("Job") == [] and act.run("q", "--json").json["runs"] == []


@pytest.mark.parametrize("hard, amount", [({"requests.memory": "5Gi"}, "5.0 GiB of 'requests.memory'"),
                                          ({"limits.cpu": "1500m"}, "1500m of 'limits.cpu'")])
def test_what_each_pod_asks_for_counts(act, cluster, hard, amount):
    quota(cluster, **hard)
    cluster.cluster(k8s={**cluster.keys, "memory": "2Gi", "cpu": "500m"})
    message = act.fail(*K8S, "-n", "4", "submit", "true", status=6, match="allows")
    assert amount in message.replace("5 GiB", "5.0 GiB"), message


def test_a_quota_for_some_pods_alone_refuses_nothing(act, cluster):
    cluster.tell("create", kind="ResourceQuota", object={
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": {"pods": "2"}, "scopes": ["BestEffort"]}})
    cluster.cluster(k8s={**cluster.keys, "cpu": "1"})
    act.run(*K8S, "-n", "3", "submit", "--dry-run", "true")


def test_a_part_of_a_run_is_given_back(act, cluster):
    """Of three pods two have room: they are warned of, and hold theirs no longer than they may."""
    quota(cluster, pods="3")
    other = act.submit("sleep", "1000", before=(*K8S, "-n", "1"))
    act.until_state(other, "Running")
    made = submit(act, "3", "echo", "hello")
    run = made.out.strip()
    assert "has room for 2 of the run's 3 pods now (1 of 3 of 'pods' are used): it waits for the others, and holds " \
        "what it got for 3s (k8s.gang_wait)" in made.err
    act.run("wait", run, status=6)
    info = act.info(run)
    assert info["state"] == "Failed" and info["exit_status"] == 6
    assert info["reason"].startswith("only 2 of its 3 pods were there at once for as long as k8s.gang_wait allows, so "
                                     "it gave them back: pod 2 is missing"), info
    act.until(lambda: sum(p["status"]["phase"] == "Running" for p in cluster.objects("Pod")) == 1, "they are back")
    assert act.state(other) == "Running"
    act.run("abort", other)


def test_a_run_without_its_first_pod_gives_the_others_back(act, cluster):
    run = submit(act, "2").out.strip()
    act.until_state(run, "Running")
    act.until(lambda: len(act.run("nodes", "--json", run).json["nodes"]) == 2, "both are there")
    for node in cluster.objects("Node", None):
        cluster.node(node["metadata"]["name"], "cordon")
    cluster.pod(cluster.pods_of(job_of(cluster)["metadata"]["name"])[0]["metadata"]["name"], "preempt")
    act.run("wait", run, status=None)
    info = act.info(run)
    assert info["state"] == "Failed", info
    assert "waited for the first one as long as k8s.gang_wait allows, so the run gave back what it had" \
        in info["reason"], info


def test_nodes_that_are_too_few_are_warned_of(act, cluster):
    cluster.cluster(gpu_per_node=4, k8s={"gpu_resource": "nvidia.com/gpu"})
    made = act.run(*K8S, "-n", "12", "submit", "--dry-run", "true")
    assert "the nodes of 'k8s' have room for 2 of the run's 3 pods, if nothing else is there" in made.err
    assert "have room for" not in act.run(*K8S, "-n", "8", "submit", "--dry-run", "true").err
    assert "have room for" not in act.run(*K8S, "-n", "4:12", "submit", "--dry-run", "true").err
    cluster.cluster(gpu_per_node=1, k8s={"gpu_resource": "none", "cpu": "5"})
    assert "room for 2 of the run's 3" in act.run(*K8S, "-n", "3", "submit", "--dry-run", "true").err


def test_who_may_not_look_is_not_refused(act, cluster):
    quota(cluster, pods="1")
    cluster.forbid({"verb": "list", "resource": "resourcequotas"}, {"verb": "list", "resource": "nodes"})
    cluster.cluster(k8s={**cluster.keys, "cpu": "5"})
    assert "room" not in act.run(*K8S, "-n", "3", "submit", "--dry-run", "true").err
    assert "not known: you may not list quotas" in act.run(*K8S, "doctor", status=None).out


def test_only_runs_of_several_pods_ask_for_quotas(act, cluster):
    """Once the cluster has been asked whether it would let such pods in."""
    for size, more in (("1", 0), ("2", 1)):
        act.finish("true", before=(*K8S, "-n", size))
        cluster.forget()
        run = act.submit("true", before=(*K8S, "-n", size))
        asked = [r["url"].partition("?")[0].rpartition("/")[2] for r in cluster.requests()]
        assert asked.count("resourcequotas") == more and len(asked) == 5 + more, asked
        act.run("wait", run)


@pytest.mark.parametrize("value", ["soon", "-1s"])
def test_a_wait_that_is_no_duration(act, cluster, value):
    cluster.cluster(k8s={**cluster.keys, "gang_wait": value})
    act.fail(*K8S, "submit", "true", status=7, match="'k8s.gang_wait' must be a duration such as 30m or 2h")
