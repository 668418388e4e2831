"""A container mapped as a whole, by an empty path: as job files of Batch AI mount theirs, on each platform, by real
runs; and what the data verbs do with it."""
import json

import pytest

CODE = "aux_data/configs/code.yaml"
STORE = "aux_data/configs/store.yaml"
JOB = {"properties": {
    "nodeCount": 1,
    "customToolkitSettings": {"commandLine": "cat $AZ_BATCHAI_INPUT_SET/in && echo made >$AZ_BATCHAI_OUTPUT_MODEL/m"},
    "inputDirectories": [{"id": "SET", "path": "$AZ_BATCHAI_MOUNT_ROOT/bfs/voc"}],
    "outputDirectories": [{"id": "MODEL", "pathPrefix": "$AZ_BATCHAI_MOUNT_ROOT/out"}],
    "mountVolumes": {"azureBlobFileSystems": [
        {"accountName": "theirs", "containerName": "theirs", "relativeMountPath": name,
         "credentials": {"accountKey": "c2VjcmV0"}} for name in ("bfs", "out")]}}}


def whole(mode, path=""):
    return {"azure_blob_config_file": STORE, "path": path, "mode": mode}


def folders(act, code=CODE):
    """bfs is read, out is written, both the whole container."""
    act.account("code", folder=str(act.store))
    return {"config_param": {
        "code_path": {"azure_blob_config_file": code, "path": "code/project.zip"},
        "bfs_folder": whole("download"), "out_folder": whole("upload")}}


def look(act, blobs, *before):
    """A run of the job file, and what it made."""
    blobs.service.put(f"{blobs.container}/voc/in", b"from the container\n")
    act.write("job.json", json.dumps(JOB))
    result = act.run(*before, "submit", "-f", "job.json")
    assert "the mapped folder stands for the volume at 'bfs'" in result.err
    run = result.out.strip()
    act.run("wait", run)
    assert act.run("logs", run).out == "from the container\n"
    assert blobs.service.get(f"{blobs.container}/{run}/m") == b"made\n"
    assert act.run("cat", f"{run}:MODEL/m").out == "made\n"
    return run


def test_on_this_machine(act, azure):
    act.cluster("aml", extra=folders(act))
    look(act, azure)


def test_on_slurm(act, lab, azure):
    lab.configure(**folders(act), gpu_per_node=1, slurm={})
    look(act, azure, "-c", "lab", "-n", "1")


def test_on_kubernetes(act, kubernetes, azure_double):
    kubernetes.tell("settings", forward=[azure_double.service.port])
    kubernetes.cluster(gpu_per_node=1, k8s={"gpu_resource": "none", "launcher": "direct"}, **folders(act))
    look(act, azure_double, "-c", "k8s", "-n", "1")


def test_on_azure(act, azureml, container):
    act.account("code", account_name=azureml.service.account, account_key=azureml.service.key,
                container_name=container, endpoint=azureml.service.endpoint)
    rows = folders(act)["config_param"]
    azureml.cluster(config_param={**{name: None for name in ("data_folder", "output_folder")}, **rows,
                                  "code_path": {"azure_blob_config_file": STORE, "path": "code/project.zip"},
                                  "bfs_folder": whole("ro_mount"), "out_folder": whole("rw_mount")})

    class Blobs:
        service = azureml.service
    Blobs.container = container
    look(act, Blobs)


@pytest.mark.parametrize("path", ["", "/", "."])
def test_data_verbs(act, azure, path):
    keys = folders(act)
    keys["config_param"] = {"code_path": keys["config_param"]["code_path"], "bfs_folder": whole("rw_mount", path)}
    act.cluster("aml", extra=keys, folders=())
    act.write("bfs/a/b", "b")
    act.write("bfs/c", "c")
    act.run("u", "bfs")
    names = [key.removeprefix(f"{azure.container}/") for key in azure.service.list(azure.container)]
    assert {"a/b", "c"} <= set(names)
    assert act.run("cat", "bfs/a/b").out == "b" and act.run("verify", "bfs").out == ""
    listed = act.run("ls", "-r", "bfs")
    assert set(listed.out.split()) == {"a/b", "c"} and "warning" not in listed.err
    (act.project / "bfs/c").unlink()
    act.run("d", "bfs/c")
    assert (act.project / "bfs/c").read_text() == "c"
    (act.project / "bfs/c").unlink()
    for words in (("u", "--delete", "bfs"), ("rm", "bfs")):
        act.fail(*words, status=None, match="-y|--yes")
        assert azure.service.exists(f"{azure.container}/c")
    act.run("u", "--delete", "-y", "bfs")
    assert not azure.service.exists(f"{azure.container}/c") and azure.service.exists(f"{azure.container}/a/b")
    act.run("rm", "-y", "bfs")
    assert azure.service.list(azure.container) == {}


def test_nothing_is_deleted_where_the_code_lies_in_it(act, azure):
    keys = folders(act, code=STORE)
    act.cluster("aml", extra=keys, folders=())
    act.write("bfs/c", "c")
    act.run("init")
    act.run("u", "bfs")
    before = azure.service.list(azure.container)
    for words in (("u", "--delete", "-y", "bfs"), ("rm", "-y", "bfs")):
        act.fail(*words, status=2, match="lies in it, and would be deleted as well")
    assert azure.service.list(azure.container) == before
