"""The double of Kubernetes as the fixture gives it."""
import pathlib
import subprocess

import pytest

import kubernetes_double
import waiting
from kubernetes_double import IMAGE


def job(name, script, nodes=2, **spec):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
        "completionMode": "Indexed", "completions": nodes, "parallelism": nodes, "backoffLimit": 0,
        "template": {"spec": {"restartPolicy": "Never", "subdomain": name, "containers": [
            {"name": "main", "image": IMAGE, "command": ["/bin/sh", "-c", script]}]}}, **spec}}


def service(name):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"job-name": name}}}


def ended(found):
    return any(c["type"] in ("Complete", "Failed") and c["status"] == "True"
               for c in found["status"].get("conditions", []))


@pytest.fixture
def cluster(kubernetes_api):
    reason = kubernetes_api.why_no_pods()
    if reason:
        pytest.skip(f"no pods here: {reason}")
    return kubernetes_api


def alive(pids):
    """Those of some processes that run: one that nobody waited for does not."""
    states = subprocess.run(["ps", "-o", "pid=,stat=", "-p", ",".join(map(str, pids))], stdout=subprocess.PIPE,
                            text=True).stdout.splitlines()
    return [line for line in states if line.split()[1][0] != "Z"]


LISTEN = "import socket; s = socket.create_server(('', 6427)); c, _ = s.accept(); print(c.recv(99).decode())"
CONNECT = """
import socket, time
for _ in range(200):
    try:
        s = socket.create_connection(("{0}-0.{0}", 6427))
        break
    except OSError:
        time.sleep(0.05)
s.sendall(b"hello from " + socket.gethostname().encode())
"""


@pytest.mark.smoke
def test_pods_reach_each_other_by_name(cluster):
    script = f'''if [ "$JOB_COMPLETION_INDEX" = 0 ]; then exec python3 -c "{LISTEN}"; fi
python3 -c '{CONNECT.format("pair")}' '''
    cluster.create(service("pair"))
    cluster.create(job("pair", script))
    found = cluster.until("Job", "pair", ended)
    assert found["status"]["succeeded"] == 2 and found["status"]["completedIndexes"] == "0,1"
    first, _ = cluster.pods_of("pair")
    _, text = cluster.call("GET", f"/api/v1/namespaces/default/pods/{first['metadata']['name']}/log")
    assert text == "hello from pair-1\n"


def test_nothing_is_left_behind(cluster):
    cluster.create(job("long", "sleep 1000"))
    cluster.until("Job", "long", lambda found: found["status"].get("ready") == 2)
    pids = [cluster.pod(pod["metadata"]["name"], "pid")["pid"] for pod in cluster.pods_of("long")]
    assert all(pids)
    cluster.tell("reset")
    assert cluster.objects("Job") == [] and not (cluster.folder / "pods").exists()
    assert alive(pids) == []
    with open("/proc/self/mounts") as mounts:
        assert str(cluster.folder) not in mounts.read()


def test_pods_end_with_a_double_that_is_killed(cluster, scratch):
    other = kubernetes_double.Kubernetes(scratch)
    try:
        other.create(job("long", "sleep 1000 & sleep 1000"))
        other.until("Job", "long", lambda found: found["status"].get("ready") == 2)
        pids = [other.pod(pod["metadata"]["name"], "pid")["pid"] for pod in other.pods_of("long")]
        children = pathlib.Path(f"/proc/{other.process.pid}/task/{other.process.pid}/children").read_text().split()
        assert len(children) == 5  # the bridge, two pods, two containers
        other.process.kill()
        waiting.until(lambda: not alive([*pids, *children]), "they have ended")
    finally:
        other.stop()


def test_a_wrong_body_fails_the_test(kubernetes_api):
    body = job("wrong", "true")
    del body["spec"]["template"]["spec"]["restartPolicy"]
    assert kubernetes_api.call("POST", "/apis/batch/v1/namespaces/default/jobs", body)[0] == 422
    with pytest.raises(AssertionError, match="restartPolicy: Required value"):
        kubernetes_api.check()
    assert len(kubernetes_api.violations()) == 1
