"""Logs of Kubernetes that are followed, from pods that do not run: a test says what becomes of them."""
import time

from gated import job_of
from kubernetes_fixtures import ENDED, RUNNING


def set_pod(still, name, status):
    still.tell("patch", kind="Pod", name=name, patch={"status": status})


def asked(still, word):
    """How often for an address with that word."""
    return sum(word in request["url"] for request in still.requests())


def test_a_log_that_ends_before_its_pod(act, still):
    """As on a node that is slow to tell: the pod is watched until it has ended, and of its log only the last lines are
    asked for again."""
    run = act.submit("true", before=("-c", "k8s"))
    job = job_of(still)["metadata"]["name"]
    pod = act.until(lambda: still.pods_of(job), "the pod is made")[0]["metadata"]["name"]
    set_pod(still, pod, RUNNING)
    still.tell("log", name=pod, text="")
    follower = act.start("logs", "-f", run)
    act.until(lambda: asked(still, "follow=true"), "the log is followed")
    still.tell("log", name=pod, text="[0] one\n[0] two\n", end=True)
    act.until(lambda: asked(still, "tailLines"), "its last lines are asked for")
    still.forget()
    time.sleep(2)
    assert asked(still, "/pods?") == 0
    set_pod(still, pod, ENDED)
    out, err = follower.communicate()
    assert (out, follower.returncode) == (b"one\ntwo\n", 0), err
    assert asked(still, "/log?") == asked(still, "tailLines")
