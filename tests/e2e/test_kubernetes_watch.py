"""Runs on Kubernetes that are watched: how often the server is asked, by what it counts."""
import collections
import re
import time

import pytest

import kubernetes_double
from gated import job_of

NOW = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
RUNNING = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": NOW}}}]}
ENDED = {"phase": "Succeeded", "containerStatuses": [
    {"name": "main", "state": {"terminated": {"exitCode": 0, "finishedAt": NOW}}}]}


@pytest.fixture
def still(act, tmp_path):
    if kubernetes_double.missing():
        pytest.skip(kubernetes_double.missing())
    server = kubernetes_double.Kubernetes(tmp_path, run=False)
    server.use(act)
    yield server
    try:
        server.check()
    finally:
        server.stop()


def asked(still):
    """How often for what: "watch pods", "list jobs", "get pods/x/log"."""
    counts = collections.Counter()
    for request in still.requests():
        path = request["url"].split("?")[0].split("/namespaces/default/")[-1]
        verb = "watch" if "watch=1" in request["url"] else "list" if "/" not in path else "get"
        counts[f"{verb} {path}"] += 1
    return counts


def submit(act, still):
    """A run whose pod is there and waits, and the pod's name."""
    run = act.submit("true", before=("-c", "k8s"))
    job = job_of(still)["metadata"]["name"]
    return run, act.until(lambda: still.pods_of(job), "the pod is made")[0]["metadata"]["name"]


def set_pod(still, name, status):
    still.tell("patch", kind="Pod", name=name, patch={"status": status})


def test_a_wait_asks_nothing_while_nothing_changes(act, still):
    run, pod = submit(act, still)
    waiter = act.start("wait", run)
    act.until(lambda: asked(still)["watch events"], "the wait watches")
    before = asked(still)
    time.sleep(3)
    print(before, asked(still))
    set_pod(still, pod, RUNNING)
    time.sleep(1)
    set_pod(still, pod, ENDED)
    out, err = waiter.communicate(timeout=60)
    print(asked(still), out, err)
    assert 0
