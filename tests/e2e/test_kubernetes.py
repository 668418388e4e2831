"""Runs on Kubernetes, from the command to its logs, on the double."""
import json

import pytest

K8S = ("-c", "k8s")


def several(kubernetes, per_node=1, **keys):
    """The cluster's nodes have processes instead of GPUs."""
    kubernetes.cluster(gpu_per_node=per_node, k8s={"gpu_resource": "none", "launcher": "direct", **keys})


@pytest.mark.smoke
def test_a_command_from_submit_to_logs(act, kubernetes):
    act.write("hello.py", "print('hello from the pod')\n")
    run = act.submit("python3", "hello.py", before=K8S)
    act.run("wait", run)
    assert act.info(run)["state"] == "Completed"
    assert act.run("logs", run).out == "hello from the pod\n"
