"""Elastic runs on Kubernetes, on the double: they work with the pods that are there."""
import contextlib
import datetime
import json
import pathlib
import re
import time

import pytest

from gated import finish, job_of, says, submit

K8S = ("-c", "k8s")


@pytest.fixture
def cluster(kubernetes, tmp_path):
    """Nodes with processes instead of GPUs, and a gate for commands that wait."""
    kubernetes.keys = {"gpu_resource": "none", "launcher": "direct",
                       "volumes": [{"mount_path": str(tmp_path), "hostPath": {"path": str(tmp_path)}}]}
    kubernetes.cluster(gpu_per_node=1, env={"ACT_POD_SETTLE": "1", "ACT_ABORT_GRACE": "3"}, k8s=kubernetes.keys)
    kubernetes.gate = tmp_path / "gate"
    return kubernetes


def pod(cluster, index):
    """The newest pod of an index."""
    found = [p for p in cluster.pods_of(job_of(cluster)["metadata"]["name"])
             if p["spec"]["hostname"].endswith(f"-{index}") and "deletionTimestamp" not in p["metadata"]]
    return max(found, key=lambda p: p["metadata"]["creationTimestamp"])["metadata"]["name"]


def test_it_begins_with_what_there_is(act, cluster):
    """Of three pods two find a node, and the run succeeds without the third."""
    cluster.cluster(gpu_per_node=1, env={"ACT_POD_SETTLE": "1"}, k8s={**cluster.keys, "cpu": "5"})
    run = submit(act, cluster, "1:3")
    spec = job_of(cluster)["spec"]
    assert (spec["completions"], spec["parallelism"]) == (3, 3)
    assert spec["successPolicy"] == {"rules": [{"succeededIndexes": "0"}]}
    says(act, run, 1, 2)
    info = act.info(run)
    assert info["state"] == "Running" and info["reason"].startswith("2 of its 3 pods run"), info
    assert re.search(r"^processes +2$", act.run("q", run).out, re.M), "what it has now, not what it could have"
    finish(act, cluster, run)


@pytest.mark.smoke
def test_scale_shrinks_and_grows(act, cluster):
    run = submit(act, cluster, "1:3")
    says(act, run, 2, 3)
    assert "would scale" in act.run("scale", "--dry-run", run, "2").err
    assert job_of(cluster)["spec"]["completions"] == 3
    answer = act.run("scale", "--json", run, "2").json
    assert answer == {"version": 1, "id": run, "num_gpu": 2, "nodes": 2, "dry_run": False}
    job = job_of(cluster)
    assert (job["spec"]["completions"], job["spec"]["parallelism"]) == (2, 2)
    assert job["metadata"]["annotations"]["act/num-gpu"] == "2"
    says(act, run, 1, 2)
    assert len(act.run("nodes", "--json", run).json["nodes"]) == 2
    act.run("scale", run, "3")
    says(act, run, 2, 3)
    assert [n["first_rank"] for n in act.run("nodes", "--json", run).json["nodes"]] == [0, 1, 2]
    finish(act, cluster, run)
    last = act.info(run)["attempt"]  # pods that come late to the first one may cost one more
    assert last >= 3
    assert act.run("logs", "--attempt", str(last - 1), "--rank", "1", run).out == "1 of 2\n"
    act.fail("scale", run, "2", status=None, match=f"cannot scale '{run}': it has ended: Completed")


def lose(act, cluster, run, index, attempt):
    """Preempts a pod of two; this attempt follows."""
    time.sleep(1.1)  # times of Kubernetes have only seconds
    cluster.pod(pod(cluster, index), "preempt")
    act.until(lambda: act.run("logs", "--attempt", str(attempt), run, status=None).status == 0, "another attempt")
    says(act, run, 1, 2)


def test_the_clock_of_a_run_goes_on_when_its_pods_are_replaced(act, cluster):
    run = submit(act, cluster, "1:2")
    says(act, run, 1, 2)
    first = act.info(run)
    lose(act, cluster, run, 0, 2)
    lose(act, cluster, run, 1, 3)
    now = act.info(run)
    assert (now["state"], now["started"]) == ("Running", first["started"])
    finish(act, cluster, run)
    assert act.info(run)["started"] == first["started"]


def supervisor_words(cluster):
    """Those of the supervisor of the run."""
    job = job_of(cluster)["metadata"]["name"]
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if "supervise" in words and job in words:
                return words
    return []


def time_left(cluster):
    words = supervisor_words(cluster)
    return int(words[words.index("--time-left") + 1]) if words else None


def test_new_pods_learn_from_the_others_when_the_run_began(act, cluster):
    """So it has no more time than it had, and ends with its own beginning where nobody has looked before."""
    cluster.cluster(gpu_per_node=1, env={"ACT_POD_SETTLE": "1", "ACT_ABORT_GRACE": "3"},
                    k8s={**cluster.keys, "time": "1h"})
    run = submit(act, cluster, "1:2")
    says(act, run, 1, 2)
    first = time_left(cluster)
    assert 3000 < first <= 3600
    lose(act, cluster, run, 0, 2)
    assert 0 < time_left(cluster) < first
    lose(act, cluster, run, 1, 3)
    finish(act, cluster, run)
    pods = cluster.pods_of(job_of(cluster)["metadata"]["name"])
    ends = {p["spec"]["hostname"][-1]: p["status"]["containerStatuses"][0]["state"]["terminated"] for p in pods}
    began = datetime.datetime.fromisoformat(ends["0"]["startedAt"]).timestamp()
    assert json.loads(ends["0"]["message"])["started"] < began


def test_a_pod_that_is_ending_is_none_that_it_has(act, cluster):
    """What is left of a run is what 'a q' shows, also when that is nothing."""
    run = submit(act, cluster, "1:2")
    says(act, run, 1, 2)
    first = act.info(run)
    for node in cluster.objects("Node", None):
        cluster.node(node["metadata"]["name"], "cordon")
    for left in (1, 0):
        cluster.pod(pod(cluster, left), "preempt")
        act.until(lambda: re.search(rf"^processes +{left}$", act.run("q", run).out, re.M), f"{left} processes")
    assert act.info(run)["started"] == first["started"]
    act.run("abort", run)


@pytest.mark.parametrize("index", [0, 1])
def test_a_pod_that_is_preempted_costs_an_attempt(act, cluster, index):
    run = submit(act, cluster, "1:2")
    says(act, run, 1, 2)
    cluster.pod(pod(cluster, index), "preempt")
    act.until(lambda: act.run("logs", "--attempt", "2", run, status=None).status == 0, "a second attempt")
    says(act, run, 1, 2)
    finish(act, cluster, run)
    assert act.info(run)["attempt"] >= 2


def test_the_cluster_file_may_have_the_range(act, cluster):
    cluster.cluster(gpu_per_node=2, elastic_num_gpu=[2, 4],
                    k8s={"gpu_resource": "none", "launcher": "direct"})
    spec = act.run(*K8S, "submit", "--dry-run", "true").json["items"][0]["spec"]
    assert spec["completions"] == 2 and "successPolicy" in spec
    spec = act.run("-c", "k8s", "-n", "2", "submit", "--dry-run", "true").json["items"][0]["spec"]
    assert spec["completions"] == 1 and "successPolicy" not in spec, "-n N is a fixed size"
    cluster.cluster(gpu_per_node=2, elastic_num_gpu=[2, 4], num_gpu=2, k8s={"gpu_resource": "none"})
    act.fail(*K8S, "submit", "true", status=None, match="num_gpu is 2, but the largest of elastic_num_gpu is 4")


def test_a_run_that_is_repeated_has_the_range_too(act, cluster):
    cluster.gate.touch()
    run = submit(act, cluster, "1:2")
    act.run("wait", run)
    again = act.run("resubmit", run).out.strip()
    act.run("wait", again)
    assert [j["metadata"]["annotations"]["act/min-nodes"] for j in cluster.objects("Job")] == ["1", "1"]


def test_a_run_that_moves_keeps_its_range_or_says_so(act, cluster):
    cluster.gate.touch()
    run = submit(act, cluster, "1:2")
    act.run("wait", run)
    cluster.cluster("other", gpu_per_node=1, k8s=cluster.keys)
    act.run("-c", "other", "resubmit", run)
    assert [j["metadata"]["annotations"].get("act/min-nodes") for j in cluster.objects("Job")] == ["1", "1"]
    moved = act.run("-c", "local", "resubmit", "-y", run)
    assert "the first run had 1 to 2 nodes; this one has a fixed size, as platform 'local'" in moved.err
    act.run("wait", moved.out.strip())


@pytest.mark.parametrize("words, match", [
    (("-c", "k8s", "-n", "4:2"), "-n takes MIN:MAX, and 4 is more than 2"),
    (("-c", "k8s", "-n", "0:2"), "-n takes a number, or MIN:MAX"),
    (("-c", "k8s", "-n", "1:"), "-n takes a number, or MIN:MAX"),
    (("-c", "k8s", "-n", "3:4"), "whole nodes: 3:4 must be multiples of the 2"),
    (("-c", "k8s", "-n", "2:5"), "5 GPUs with 2 on each node|whole nodes"),
    (("-n", "1:2"), "needs the platform k8s: cluster '.*' has the platform 'local'")])
def test_sizes_that_cannot_be(act, cluster, words, match):
    cluster.cluster(gpu_per_node=2, k8s={"gpu_resource": "none"})
    act.fail(*words, "submit", "true", status=None, match=match)
    assert cluster.objects("Job") == []


def test_what_cannot_be_scaled(act, cluster):
    fixed = act.submit("sleep", "1000", before=("-c", "k8s", "-n", "1"))
    act.fail("scale", fixed, "2", status=None, match="it has a fixed size")
    act.run("abort", fixed)
    run = submit(act, cluster, "1:2")
    act.fail("scale", run, "3", status=None, match="it can have from 1 to 2, not 3")
    act.fail("scale", run, "x", status=None, match="takes a number of GPUs, not 'x'")
    act.run("abort", run)
    here = act.finish("true", before=("-n", "1"))
    act.fail("scale", here, "2", status=None, match="platform 'local' cannot change the size of a run")


def test_an_old_server_has_no_elastic_runs(act, cluster):
    cluster.tell("settings", version="1.30")
    act.fail("-c", "k8s", "-n", "1:2", "submit", "true", status=None, match="older than Kubernetes 1.31")
    assert cluster.objects("Job") == cluster.objects("Secret") == act.run("q", "--json").json["runs"] == []
