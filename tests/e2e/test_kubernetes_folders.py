"""Mapped folders of runs on Kubernetes: brought and sent by act in the pods, or mounted; and the logs that outlive the
pods. On the double, with the double of the Blob service at the loopback of each pod."""
import json

import pytest

K8S = ("-c", "k8s")
STORE = "aux_data/configs/store.yaml"


@pytest.fixture
def blobs(act, kubernetes, azure_double):
    """The project with its folders in a container that pods reach, and the container."""
    kubernetes.tell("settings", forward=[azure_double.service.port])
    return azure_double


def folder(mode, path):
    return {"azure_blob_config_file": STORE, "path": f"files/{path}", "mode": mode}


def use(kubernetes, nodes=1, code=None, **folders):
    """Where the folders are, and how they come; code: the store of the code, if it is not on this machine."""
    rows = {f"{name}_folder": row for name, row in folders.items()}
    if code:
        rows["code_path"] = {"azure_blob_config_file": code, "path": "files/code/project.zip"}
    kubernetes.cluster(gpu_per_node=1, config_param=rows, k8s={"gpu_resource": "none", "launcher": "direct"})


def client_secrets(kubernetes):
    return [o["metadata"]["name"] for o in kubernetes.objects("Secret")
            if o["metadata"]["name"].startswith("act-client-")]


def test_folders_are_brought_and_sent(act, kubernetes, blobs):
    blobs.put("data/in", b"from the store")
    use(kubernetes, data=folder("download", "data"), output=folder("upload", "output"))
    run = act.submit("sh", "-c", "cat data/in > output/from-$RANK", before=("-c", "k8s", "-n", "2"))
    act.run("wait", run)
    assert blobs.get("output/from-0") == blobs.get("output/from-1") == b"from the store"


def test_act_comes_by_secrets_that_are_made_once(act, kubernetes, blobs):
    use(kubernetes, output=folder("upload", "output"))
    act.run(*K8S, "init")
    act.finish("sh", "-c", "echo 1 > output/1", before=K8S)
    made = client_secrets(kubernetes)
    assert made and len({name.rsplit("-", 1)[0] for name in made}) == 1
    kubernetes.forget()
    run = act.submit("sh", "-c", "echo 2 > output/2", before=K8S)
    assert [r["method"] for r in kubernetes.requests()] == ["GET", "GET", "POST", "POST", "POST", "PATCH"]
    act.run("wait", run)
    assert client_secrets(kubernetes) == made
    assert blobs.get("output/2") == b"2\n"


def test_what_a_run_has_made_is_sent_however_it_ends(act, kubernetes, blobs):
    use(kubernetes, output=folder("upload", "output"))
    act.finish("sh", "-c", "echo half > output/half; exit 7", before=K8S, status=7)
    assert blobs.get("output/half") == b"half\n"
    run = act.submit("sh", "-c", "echo some > output/some; echo begun; sleep 1000", before=K8S)
    act.until(lambda: "begun" in act.run("logs", run, status=None).out, "the command runs")
    act.run("abort", run)
    act.until(lambda: "output/some" in blobs.keys(), "it was sent")
    act.until_state(run, "Canceled")
