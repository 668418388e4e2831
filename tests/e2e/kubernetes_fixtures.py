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
    yield from serve()


@pytest.fixture(scope="session")
def still_server():
    """One whose pods do not run."""
    yield from serve(run=False)


def serve(**settings):
    if kubernetes_double.missing():
        pytest.skip(kubernetes_double.missing())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="act-kubernetes-"))
    server = kubernetes_double.Kubernetes(folder, **settings)
    yield server
    server.stop()
    shutil.rmtree(folder)


def empty(server):
    """The server for one test. A body that the official client would not send fails the test."""
    server.tell("reset")
    yield server
    try:
        server.check()
    finally:
        server.tell("reset")


@pytest.fixture
def kubernetes_api(kubernetes_server):
    """An empty cluster, whether or not its pods can run here."""
    yield from empty(kubernetes_server)


@pytest.fixture
def kubernetes(act, kubernetes_api):
    """The project on an empty cluster whose pods run on this machine."""
    reason = kubernetes_api.why_no_pods()
    if reason:
        pytest.skip(f"no pods here: {reason}")
    kubernetes_api.use(act)
    return kubernetes_api


@pytest.fixture
def still(act, still_server):
    """The project on an empty cluster whose pods do not run: a test says what becomes of them."""
    still_server.use(act)
    yield from empty(still_server)
