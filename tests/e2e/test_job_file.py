"""Job files of Azure Batch AI: what they say to run is run, what they cannot have here is said."""
import json

import pytest


@pytest.fixture(autouse=True)
def slots(act):
    act.env["ACT_LOCAL_SLOTS"] = "4"


def job_file(act, name="job.json", **properties):
    """A job file with these properties, on one node unless they say something else."""
    act.write(name, json.dumps({"properties": {"nodeCount": 1, **properties}}))
    return name


def finish(act, file, *words, before=(), status=0):
    """Submits a job file and waits for its end; gives the run id and what the submission said on stderr."""
    result = act.run(*before, "submit", "-f", file, *words)
    run = result.out.strip()
    act.run("wait", run, status=status)
    return run, result.err


def custom(line):
    return {"customToolkitSettings": {"commandLine": line}}


def test_command_line_is_a_shell_line(act):
    run, _ = finish(act, job_file(act, **custom("echo one | tr o O; echo \"$USER_WORD\" 'a  b'"),
                                  environmentVariables=[{"name": "USER_WORD", "value": "x y$HOME"}]))
    assert act.lines(run) == ["One", "x y$HOME a  b"]


def test_processes(act):
    mpi = {"commandLine": "echo rank $RANK of $WORLD_SIZE, task $AZ_BATCHAI_TASK_INDEX", "processCount": 3}
    run, _ = finish(act, job_file(act, customMpiSettings=mpi))
    assert [act.lines(run, rank)[0] for rank in range(3)] == [f"rank {n} of 3, task {n}" for n in range(3)]
    spec = act.run("submit", "--dry-run", "--file", "job.json").json
    assert (spec["nodes"], spec["processes_per_node"]) == (1, 3)
    spec = act.run("-n", "2", "submit", "--dry-run", "-f", "job.json").json
    assert (spec["nodes"], spec["processes_per_node"]) == (1, 2)


def test_python_toolkits(act):
    act.write("show.py", "import os, sys; print(sys.argv[1:], os.environ.get('AZ_BATCHAI_PYTORCH_BACKEND'))")
    act.write("interpreter", '#!/bin/sh\nexec python3 "$@"\n').chmod(0o755)
    script = {"pythonScriptFilePath": "$AZ_BATCHAI_MOUNT_ROOT/show.py", "commandLineArgs": "--word \"a  b\"",
              "pythonInterpreterPath": "./interpreter"}
    for toolkit in "horovodSettings", "chainerSettings", "caffe2Settings", "caffeSettings", "cntkSettings":
        run, _ = finish(act, job_file(act, **{toolkit: script}))
        assert act.lines(run) == ["['--word', 'a  b'] None"], toolkit
    run, _ = finish(act, job_file(act, pyTorchSettings={**script, "communicationBackend": "Gloo"}))
    assert act.lines(run) == ["['--word', 'a  b'] gloo"]
    tensorflow = {k: v for k, v in script.items() if k != "commandLineArgs"}
    run, said = finish(act, job_file(act, tensorFlowSettings={
        **tensorflow, "masterCommandLineArgs": "--master", "workerCommandLineArgs": "--worker"}))
    assert act.lines(run) == ["['--master'] None"]
    assert "only the master is started" in said


def test_folders(act):
    act.cluster("local", extra={"platform": "local"})
    act.write("data/voc/a", "from the folder")
    act.run("upload", "data")
    run, said = finish(act, job_file(
        act, **custom("cat $AZ_BATCHAI_INPUT_SET/a $AZ_BATCHAI_JOB_MOUNT_ROOT/data/voc/a; "
                      "echo model >$AZ_BATCHAI_OUTPUT_MODEL/m"),
        stdOutErrPathPrefix="$AZ_BATCHAI_MOUNT_ROOT/logs",
        inputDirectories=[{"id": "SET", "path": "$AZ_BATCHAI_MOUNT_ROOT/data/voc"},
                          {"id": "ELSE", "path": "$AZ_BATCHAI_JOB_MOUNT_ROOT/nowhere/x"}],
        outputDirectories=[{"id": "MODEL", "pathPrefix": "$AZ_BATCHAI_MOUNT_ROOT/output/", "pathSuffix": "models"}],
        mountVolumes={"azureFileShares": [
            {"accountName": "a", "azureFileUrl": "https://a.file.core.windows.net/s", "relativeMountPath": "logs",
             "credentials": {"accountKey": "c2VjcmV0"}}]}), before=("-c", "local"))
    assert act.log(run) == b"from the folder" * 2
    assert "'a logs' shows" in said
    assert "input 'ELSE'" in said and "input 'SET'" not in said and "output 'MODEL'" not in said
    assert "the volume at 'logs' is not mounted" in said and "c2VjcmV0" not in said
    act.run("-c", "local", "download", "output")
    assert (act.project / "output" / run / "models/m").read_text() == "model\n"


def test_preparation_runs_once(act):
    run, _ = finish(act, job_file(
        act, jobPreparation={"commandLine": "sleep 0.3; echo prepared >>made"},
        customMpiSettings={"commandLine": "cat made", "processCount": 4}))
    assert [act.lines(run, rank) for rank in range(4)] == [["prepared"]] * 4


def test_preparation_that_fails(act):
    finish(act, job_file(act, jobPreparation={"commandLine": "exit 7"}, **custom("echo no")), status=7)


def test_exit_status(act):
    finish(act, job_file(act, **custom("exit 9")), status=9)


def test_secrets(act):
    run, said = finish(act, job_file(
        act, **custom("echo $THE_TOKEN $PLAIN_WORD ${VAULT-unset}"),
        secrets=[{"name": "THE_TOKEN", "value": "t0k"}, {"name": "PLAIN_WORD", "value": "w"},
                 {"name": "VAULT", "valueSecretReference": {"secretUrl": "https://v"}}]))
    assert act.lines(run) == ["t0k w unset"]
    assert "'PLAIN_WORD'" in said and "'VAULT' is in a key vault" in said and "'THE_TOKEN'" not in said
    assert "t0k" not in json.dumps(act.run("submit", "--dry-run", "-f", "job.json").json)


def test_what_has_no_counterpart(act):
    said = act.run("submit", "--dry-run", "-f", job_file(
        act, **custom("true"), cluster={"id": "/subscriptions/s/clusters/nc6"}, schedulingPriority="low",
        constraints={"maxWallClockTime": "P1D"},
        containerSettings={"imageSourceRegistry": {"image": "tf:1", "serverUrl": "https://reg.io"}, "shmSize": "1g"},
        customMpiSettings=None)).err
    for piece in ("cluster is not used", "schedulingPriority", "maxWallClockTime", "image 'reg.io/tf:1' is not used", "shmSize"):
        assert piece in said, piece


def test_image_and_time_on_azure(act, azureml):
    act.run("init")
    file = job_file(act, nodeCount=2, constraints={"maxWallClockTime": "P1D"},
                    horovodSettings={"pythonScriptFilePath": "t.py", "processCount": 4},
                    containerSettings={"imageSourceRegistry": {"image": "horovod/horovod:0.20"}})
    run = act.run("submit", "-f", file).out.strip()
    sent = azureml.job(run)["properties"]
    assert sent["resources"]["instanceCount"] == 2
    assert sent["distribution"]["processCountPerInstance"] == 2
    assert sent["limits"]["timeout"] == "P1D"
    assert "horovod/horovod:0.20" in json.dumps(azureml.tell("objects")["environments"])


@pytest.mark.parametrize("properties, match", [
    ({"nodeCnt": 1}, r"job\.json: 'properties\.nodeCnt' is nothing .* did you mean 'nodeCount'"),
    ({"nodeCount": "1"}, r"'properties\.nodeCount' must be a whole number"),
    ({"nodeCount": 0}, r"'properties\.nodeCount' must be a whole number"),
    ({"nodeCount": None}, r"'properties\.nodeCount' is missing"),
    ({"inputDirectories": [{"id": "A", "path": "x"}, {"id": "B"}]}, r"'properties\.inputDirectories\[1\]\.path' is missing"),
    ({"inputDirectories": {"id": "A"}}, r"'properties\.inputDirectories' must be a list"),
    ({"inputDirectories": [{"id": "A B", "path": "x"}]}, "cannot be part of a variable"),
    ({"environmentVariables": [{"name": "A=B", "value": "x"}]}, "no name of a variable"),
    ({"customToolkitSettings": None}, "says nothing to run"),
    ({"horovodSettings": {"pythonScriptFilePath": "x"}}, "has both 'customToolkitSettings' and 'horovodSettings'"),
    ({"customToolkitSettings": {"commandLine": 1}}, r"'properties\.customToolkitSettings\.commandLine' must be a text"),
    ({"customToolkitSettings": None, "nodeCount": 2, "customMpiSettings": {"commandLine": "x", "processCount": 3}},
     "cannot share evenly"),
    ({"customToolkitSettings": None, "nodeCount": 2, "tensorFlowSettings": {"pythonScriptFilePath": "x"}},
     "workers and parameter servers"),
    ({"customToolkitSettings": None, "cntkSettings": {"languageType": "Python"}}, "needs either"),
    ({"nodeCount": 2}, "asks for 2 nodes, but .* has 1"),
])
def test_bad_files(act, properties, match):
    file = job_file(act, **{**custom("true"), **properties})
    act.fail("-q", "submit", "-f", file, status=None, match=match)


def test_bad_words(act):
    act.fail("submit", "-f", "missing.json", status=None, match="missing.json")
    act.write("broken.json", '{"properties": {')
    act.fail("submit", "-f", "broken.json", status=None, match=r"broken\.json:1:\d+")
    act.fail("submit", "-f", job_file(act, **custom("true")), "echo", "x", status=2, match="says what to run")
