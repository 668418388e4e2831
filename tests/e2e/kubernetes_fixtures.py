"""Fixtures of the double of Kubernetes."""
import pathlib
import shutil
import tempfile
import time

import pytest

import kubernetes_double

NOW = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
RUNNING = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": NOW}}}]}
ENDED = {"phase": "Succeeded", "containerStatuses": [
    {"name": "main", "state": {"terminated": {"exitCode": 0, "finishedAt": NOW}}}]}


@pytest.fixture(scope="session")
def kubernetes_server():
    if kubernetes_double.missing():
        pytest.skip(kubernetes_double.missing())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="act-kubernetes-"))
    server = kubernetes_double.Kubernetes(folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture
def kubernetes_api(kubernetes_server):
    """An empty cluster, whether or not its pods can run here. A body that the official client would not send fails the
    test."""
    kubernetes_server.tell("reset")
    yield kubernetes_server
    try:
        kubernetes_server.check()
    finally:
        kubernetes_server.tell("reset")


@pytest.fixture
def kubernetes(act, kubernetes_api):
    """The project on an empty cluster whose pods run on this machine."""
    reason = kubernetes_api.why_no_pods()
    if reason:
        pytest.skip(f"no pods here: {reason}")
    kubernetes_api.use(act)
    return kubernetes_api


@pytest.fixture
def still(act, tmp_path):
    """The project on a cluster of its own, whose pods do not run: a test says what becomes of them."""
    if kubernetes_double.missing():
        pytest.skip(kubernetes_double.missing())
    server = kubernetes_double.Kubernetes(tmp_path, run=False)
    server.use(act)
    yield server
    try:
        server.check()
    finally:
        server.stop()
