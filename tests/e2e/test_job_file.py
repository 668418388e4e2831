"""Job files of Azure Batch AI: what they say to run is run, what they cannot have here is said."""
import json
import os
import subprocess

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
    run, _ = finish(act, job_file(act, tensorFlowSettings={
        **tensorflow, "masterCommandLineArgs": "--master", "workerCommandLineArgs": "--worker"}))
    assert act.lines(run) == ["['--master'] None"]


# As a server of TensorFlow is: it has the address that its list says, and one of a parameter server never ends by
# itself.
TASK = """
import json, os, socket, sys, time
config = json.loads(os.environ["TF_CONFIG"])
role, index = config["task"]["type"], config["task"]["index"]
lists = {kind: os.environ[f"AZ_BATCHAI_{kind.upper()}_HOSTS"].split(",") for kind in ("ps", "worker")}
assert config["cluster"] == lists and config["environment"] == "cloud", config
print(role, index, *sys.argv[1:], flush=True)
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("", int(lists["ps" if role == "ps" else "worker"][index].rsplit(":", 1)[1])))
server.listen()
if os.environ.get("FAILING") == role:
    sys.exit(3)
if os.environ.get("WAITING") == role:
    time.sleep(300)
if role == "ps":
    peers = [server.accept()[0] for _ in lists["worker"]]
    for peer in peers:
        peer.sendall(b"from ps %d" % index)
    while True:
        time.sleep(60)
for address in lists["ps"]:
    host, port = address.rsplit(":", 1)
    while True:
        try:
            peer = socket.create_connection((host, int(port)))
            break
        except OSError:
            time.sleep(0.1)
    print(peer.recv(100).decode())
"""


def distributed(act, nodes, workers, servers, **properties):
    """A job file of workers and parameter servers, all of which show their arguments."""
    act.write("task.py", TASK)
    words = "$AZ_BATCHAI_TASK_INDEX '$AZ'"
    return job_file(act, nodeCount=nodes, tensorFlowSettings={
        "pythonScriptFilePath": "$AZ_BATCHAI_JOB_MOUNT_ROOT/task.py", "pythonInterpreterPath": "python3",
        "workerCount": workers, "parameterServerCount": servers, "masterCommandLineArgs": f"--master {words}",
        "workerCommandLineArgs": f"--worker {words}", "parameterServerCommandLineArgs": f"--server {words}"},
                    **properties)


def test_parameter_servers(act):
    run, _ = finish(act, distributed(act, 1, 2, 1))
    assert act.lines(run, 0) == ["master 0 --master 0 $AZ", "from ps 0"]
    assert act.lines(run, 1) == ["worker 1 --worker 1 $AZ", "from ps 0"]
    assert act.lines(run, 2) == ["ps 0 --server 0 $AZ"]


@pytest.mark.parametrize("role, rank", [("master", 0), ("worker", 1), ("ps", 2)])
def test_a_task_that_fails(act, role, rank):
    run, _ = finish(act, distributed(act, 1, 2, 1, environmentVariables=[{"name": "FAILING", "value": role}]), status=3)
    assert act.info(run)["failed_rank"] == rank


def test_abort_of_workers_and_servers(act):
    run = act.run("submit", "-f", distributed(
        act, 1, 2, 1, environmentVariables=[{"name": "WAITING", "value": "worker"}])).out.strip()
    act.until(lambda: "from ps" in act.run("logs", run, status=None).out or
              "worker" in act.run("logs", "--rank", "1", run, status=None).out, "the worker waits")
    act.run("abort", run)
    act.run("wait", run, status=None)
    assert act.info(run)["state"] == "Canceled"


def test_the_size_of_workers_and_servers_is_the_file_s(act):
    file = distributed(act, 1, 2, 1)
    act.fail("-n", "4", "submit", "-f", file, status=2, match="says how many workers")
    run, _ = finish(act, file)
    again = act.run("-n", "4", "resubmit", run).out.strip()
    act.run("wait", again, status=2)
    said = act.run("logs", "--all", again).out  # the first rank that fails stops the others, maybe before they say it
    assert "need 1 node(s) with 3 processes each" in said


def test_custom_command_starts_an_mpirun_of_its_own(act):
    line = ("mpirun --allow-run-as-root --oversubscribe -n 3 --hostfile $AZ_BATCHAI_MPI_HOST_FILE "
            "sh -c 'echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE, $RANK.$MY_WORD' | sort; "
            "echo $OMPI_MCA_btl_base_verbose")
    file = job_file(act, **custom(line), environmentVariables=[
        {"name": "MY_WORD", "value": "w"}, {"name": "OMPI_MCA_btl_base_verbose", "value": "0"}])
    for size in ((), ("-n", "2")):
        run, _ = finish(act, file, before=size)
        assert act.lines(run) == [f"rank {n} of 3, .w" for n in range(3)] + ["0"], size


def test_people_see_what_the_file_runs(act):
    """Not the line that it becomes: file, toolkit and the user's own words, in tables and of the run."""
    settings = {"commandLine": "echo $MY_WORD"}
    text = json.dumps({"$comment": "theirs", "properties": {
        "nodeCount": 1, "constraints": {"maxWallClockTime": "7 days, 0:00:00"}, "customMpiSettings": {
            **settings, "process_count": 1, "$comment": "theirs"}}})
    act.write("theirs.json", "\ufeff" + text)
    run, _ = finish(act, "theirs.json")
    title = "theirs.json, customMpi: echo $MY_WORD"
    assert f"command   {title}\n" in act.run("q", run).out and act.run("q").out.endswith(f"  {title}\n")
    assert act.info(run)["title"] == title and act.info(run)["command"][-1].endswith("echo $MY_WORD")
    again = act.run("resubmit", run).out.strip()
    act.run("wait", again)
    assert f"command   {title}\n" in act.run("q", again).out


def test_shared_folder_of_azure_nodes(act, azureml):
    """There is none: such a run is refused before it is queued."""
    file = job_file(act, nodeCount=2, customMpiSettings={"commandLine": "touch $AZ_BATCHAI_SHARED_JOB_TEMP/x"})
    act.fail("submit", "-f", file, status=7,
             match="'job.json' uses .AZ_BATCHAI_SHARED_JOB_TEMP.* the 2 nodes .* mapped folder")
    assert act.run("q", "--json").json["runs"] == []
    run, _ = finish(act, file, before=("-n", "1"))
    assert "customMpi: touch" in act.run("q",
                                         env={"ACT_HOME": str(act.scratch / "anew")}).out, "another machine sees it so"
    act.fail("-n", "4", "resubmit", run, status=7, match="'job.json' uses .AZ_BATCHAI_SHARED_JOB_TEMP.* the 2 nodes")
    act.cluster("here", folders=(), extra={"platform": "local"})
    run, _ = finish(act, file, before=("-c", "here", "-n", "1"))
    act.fail("-rt", "aml", "-n", "4", "resubmit", run, status=7, match="uses .AZ_BATCHAI_SHARED_JOB_TEMP")
    assert len(act.run("q", "--json").json["runs"]) == 2


def volumes(service, container, share):
    """A container and a share, with the account's key."""
    credentials = {"accountKey": service.key}
    return {"azureBlobFileSystems": [{"accountName": service.account, "containerName": container,
                                      "relativeMountPath": "bfs",
                                      "credentials": credentials}],
            "azureFileShares": [{"accountName": service.account, "relativeMountPath": "afs", "credentials": credentials,
                                 "azureFileUrl": f"https://{service.account}.file.core.windows.net/{share}/team/x"}]}


def volume_job(act, azureml, container):
    """In the double a container of its name stands for the share."""
    service, share = azureml.service, f"files-{container}"
    service.create(share)
    service.put(f"{share}/team/x/a", b"from the share")
    service.put(f"{container}/voc/b", b", from the container")
    return job_file(act, **custom("cat $AZ_BATCHAI_MOUNT_ROOT/afs/a $AZ_BATCHAI_INPUT_SET/b; ls *.json; "
                                  "echo new >$AZ_BATCHAI_JOB_MOUNT_ROOT/afs/c"),
                    mountVolumes=volumes(service, container, share),
                    inputDirectories=[{"id": "SET", "path": "$AZ_BATCHAI_MOUNT_ROOT/bfs/voc"}])


def test_volumes_are_mounted_on_azure(act, azureml, container):
    """By the keys of the file, which are written down nowhere but in the workspace."""
    act.write("other.json", "{}")
    file, service, share = volume_job(act, azureml, container), azureml.service, f"files-{container}"
    shown = act.run("submit", "--dry-run", "-f", file)
    run, said = finish(act, file)
    assert act.lines(run) == ["from the share, from the containerother.json"], "the file itself is not packed"
    assert service.get(f"{share}/team/x/c") == b"new\n" and "mounted" not in said and "'SET'" not in said
    stores = [d["properties"] for d in azureml.tell("objects")["datastores"].values()]
    made = {d["datastoreType"] + (d.get("fileShareName") or d["containerName"]): d for d in stores
            if d["protocol"] == "https"}
    assert sorted(made) == [f"AzureBlob{container}", f"AzureFile{share}"]
    for properties in made.values():
        assert properties["endpoint"] == "core.windows.net"
        assert properties["credentials"]["secrets"]["key"] == service.key
    seen = shown.out + shown.err + said + json.dumps(azureml.job(run)) + act.run("q", "--json").out
    assert service.key not in seen
    for path in act.home.rglob("*"):
        assert not path.is_file() or service.key.encode() not in path.read_bytes(), path


def test_placeholders_of_the_recipes(act, azureml, container):
    """As az batchai filled them in: from options, else from the environment."""
    act.write("other.json", "{}")
    file = act.project / volume_job(act, azureml, container)
    account, key = azureml.service.account, azureml.service.key
    file.write_text(file.read_text().replace(account, "<AZURE_BATCHAI_STORAGE_ACCOUNT>").replace(
        json.dumps(key)[1:-1], "<AZURE_BATCHAI_STORAGE_KEY>"))
    act.fail("submit", "-f", "job.json", status=7,
             match=r"'<AZURE_BATCHAI_STORAGE_ACCOUNT>' stands for: give --storage-account-name, or set \$AZURE_")
    env = {"AZURE_BATCHAI_STORAGE_ACCOUNT": account}
    act.fail("submit", "-f", "job.json", status=7, env=env, match="'<AZURE_BATCHAI_STORAGE_KEY>' stands for")
    shown = act.run("submit", "--dry-run", "-f", "job.json", env={**env, "AZURE_BATCHAI_STORAGE_KEY": key})
    assert key not in shown.out + shown.err and "holds secrets" not in shown.err
    run, said = finish(act, "job.json", "--storage-account-name", account, "--storage-account-key", key)
    assert act.lines(run)[0].startswith("from the share, from the container")
    assert key not in said + act.run("q", "--json").out
    for path in act.home.rglob("*"):
        assert not path.is_file() or key.encode() not in path.read_bytes(), path
    act.fail("submit", "--storage-account-key", key, "true", status=2, match="give it with -f")


def test_a_script_in_a_volume_that_nothing_mounts(act, azureml):
    file = job_file(act, horovodSettings={"pythonScriptFilePath": "$AZ_BATCHAI_MOUNT_ROOT/afs/train.py"}, mountVolumes={
        "azureFileShares": [{"accountName": "acct", "azureFileUrl": "https://acct.file.core.windows.net/s",
                             "relativeMountPath": "afs", "credentials": {}}]})
    act.fail("submit", "-f", file, status=7,
             match="horovodSettings.pythonScriptFilePath' is .* in the volume 'afs', which is not mounted")
    act.write("afs/train.py", "")
    assert "the code's 'afs' stands for the volume" in act.run("submit", "--dry-run", "-f", file).err


def test_what_no_node_can_start(act):
    """A word or a variable that the kernel does not take is refused before anything runs; a little less runs."""
    long = "x" * (128 * 1024)
    act.fail("submit", "-f", job_file(act, **custom(f"true {long}")), status=2,
             match="a word of the command has .* put it into a script of the project")
    variable = [{"name": "LONG", "value": long}]
    act.fail("submit", "-f", job_file(act, **custom("true"), environmentVariables=variable), status=2,
             match="the variable 'LONG' has .* put its value into a file")
    assert act.run("q", "--json").json["runs"] == []
    run, _ = finish(act, job_file(act, **custom("echo ${#LONG}"), environmentVariables=[
        {"name": "LONG", "value": long[:-6]}]))
    assert act.lines(run) == [str(len(long) - 6)]


def test_two_volumes_at_one_path(act, azureml):
    act.fail("submit", "-f", job_file(act, **custom("true"), mountVolumes={
        kind: [{"accountName": "acct", "relativeMountPath": "data", place: where,
                "credentials": {"accountKey": "YQ=="}}]
        for kind, place, where in (("azureFileShares", "azureFileUrl", "https://acct.file.core.windows.net/s"),
                                   ("azureBlobFileSystems", "containerName", "c"))}),
        status=7, match=r"azureBlobFileSystems\[0\]' is mounted at 'data', as another volume is")


def test_where_a_volume_is_mounted(act, azureml, container):
    """Its path as it may be written; at the mount root itself is the code."""
    volume = {"accountName": azureml.service.account, "containerName": container,
              "credentials": {"accountKey": azureml.service.key}}
    azureml.service.put(f"{container}/in", b"from the container\n")
    for path in ("/bfs/", "./bfs", "bfs"):
        file = job_file(act, **custom("cat $AZ_BATCHAI_MOUNT_ROOT/bfs/in"), mountVolumes={
            "azureBlobFileSystems": [{**volume, "relativeMountPath": path}]})
        run, said = finish(act, file)
        assert act.lines(run) == ["from the container"] and "not mounted" not in said
    for path in ("/", ".", "./", "//"):
        file = job_file(act, **custom("true"), mountVolumes={
            "azureBlobFileSystems": [{**volume, "relativeMountPath": path}]})
        act.fail("submit", "-f", file, status=7,
                 match="mounted at the mount root itself, which is the folder of the code here: give it a "
                       "relativeMountPath such as 'bfs'")


@pytest.mark.parametrize("text, match", [
    ('{"properties": {\n  // how many\n  "nodeCount": 1}}', r"job\.json:2:3: this is a comment"),
    ('{"properties": /* all */ {"nodeCount": 1}}', r"job\.json:1:16: this is a comment"),
    ('{"properties": {"nodeCount": 1,\n}}', r"job\.json:1:31: this is a comma with nothing behind it"),
    ('{"a": "// , } \\" #", "b": [1, 2,]}', r"job\.json:1:32: this is a comma with nothing behind it"),
    ('{"properties": {"nodeCount": 01}}', r"job\.json:1:\d+: ")])
def test_what_json_does_not_have(act, text, match):
    act.write("job.json", text)
    act.fail("submit", "-f", "job.json", status=7, match=match)


def test_volumes_of_a_repeated_run(act, azureml, container):
    """The keys are gone, the datastores are there: as long as they are, and lead where they led."""
    run, _ = finish(act, volume_job(act, azureml, container))
    (act.project / "job.json").unlink()
    for env in {}, {"ACT_HOME": str(act.scratch / "anew")}:
        again = act.run("resubmit", run, env=env).out.strip()
        act.run("wait", again, env=env)
        assert act.run("logs", again, env=env).out.startswith("from the share, from the container"), env
    act.cluster("here", folders=(), extra={"platform": "local"})
    assert "the volume 'afs', 'file:" in act.run("-rt", "here", "resubmit", "--dry-run", run).err
    name, = (name for name in azureml.tell("objects")["datastores"] if name.startswith("file_"))
    gone = ("has no datastore 'file_.* for 'file:.* the job file of the first run mounted as 'afs' "
            ".*submit the job file again")
    azureml.tell("object", kind="datastores", name=name, properties={
        "datastoreType": "AzureFile", "accountName": "other", "fileShareName": "files",
        "credentials": {"credentialsType": "None"}})
    act.fail("resubmit", run, status=7, match=gone)
    azureml.tell("reset")
    act.fail("resubmit", run, status=7, match=gone)


@pytest.mark.parametrize("url, status, match", [
    ("https://acct.file.evil.example/s", 4,
     r"azureFileShares\[0\]\.azureFileUrl' of 'job\.json' .*evil\.example.*trusted_hosts"),
    ("http://acct.file.core.windows.net/s", 4, "not encrypted"),
    ("https://acct.file.@evil.example/s", 7, "azureFileUrl' must be that of a share of its account"),
    ("https://evil.example/s", 7, "must be that of a share of its account"),
    ("https://acct.file.core.windows.net/s/../x", 7, "must be that of a share of its account"),
    ("https://acct.file.core.windows.net/", 7, "must be that of a share of its account")])
def test_key_goes_to_no_foreign_host(act, azureml, url, status, match):
    file = job_file(act, **custom("true"), mountVolumes={"azureFileShares": [
        {"accountName": "acct", "azureFileUrl": url, "relativeMountPath": "afs",
         "credentials": {"accountKey": "c2VjcmV0"}}]})
    act.fail("submit", "-f", file, status=status, match=match)
    assert azureml.requests() == [] and "c2VjcmV0" not in act.run("q", "--json").out


def test_volume_that_azure_cannot_mount(act, azureml):
    place = {"accountName": "acct", "containerName": "data"}
    vault = {"accountKeySecretReference": {}}
    said = act.run("submit", "--dry-run", "-f", job_file(act, **custom("true"), mountVolumes={"azureBlobFileSystems": [
        {**place, "relativeMountPath": "a", "credentials": vault},
        {**place, "relativeMountPath": "b/c", "credentials": {"accountKey": "c2VjcmV0"}},
        {**place, "relativeMountPath": "data", "credentials": {"accountKey": "c2VjcmV0"}}]})).err
    for piece in ("'a' is not mounted, as the file has no accountKey for it; map",
                  "'b/c' is not mounted, as its path is not",
                  "the mapped folder stands for the volume at 'data'"):
        assert piece in said, said


def test_custom_command_runs_on_the_first_node(lab):
    run, said = finish(lab.act, job_file(lab.act, nodeCount=2, **custom("echo here $AZ_BATCHAI_TASK_INDEX")),
                       before=("-c", "lab"))
    assert lab.act.lines(run, 0) == ["here 0"] and lab.act.lines(run, 1) == []
    assert "the command runs on the first node only" in said


def test_own_mpirun_on_two_nodes_of_slurm(lab):
    line = ("mpirun --allow-run-as-root -n 2 --hostfile $AZ_BATCHAI_MPI_HOST_FILE "
            "sh -c 'echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $SLURMD_NODENAME' 2>&1 | sort")
    run, _ = finish(lab.act, job_file(lab.act, nodeCount=2, **custom(line),
                                      constraints={"maxWallClockTime": "0:02:00"}), before=("-c", "lab"))
    ends = [line.rpartition(" on ") for line in lab.act.lines(run, 0)]
    assert [end[0] for end in ends] == ["rank 0 of 2", "rank 1 of 2"] and ends[0][2] != ends[1][2], ends


def test_parameter_servers_on_two_nodes_of_slurm(lab):
    file = distributed(lab.act, 2, 2, 2)
    run, _ = finish(lab.act, file, before=("-c", "lab"))
    assert lab.act.lines(run, 0) == ["master 0 --master 0 $AZ", "from ps 0", "from ps 1"]
    assert lab.act.lines(run, 1) == ["ps 0 --server 0 $AZ"]
    assert lab.act.lines(run, 2) == ["worker 1 --worker 1 $AZ", "from ps 0", "from ps 1"]
    assert lab.act.lines(run, 3) == ["ps 1 --server 1 $AZ"]
    run, _ = finish(lab.act, distributed(lab.act, 2, 2, 1), before=("-c", "lab"))
    assert lab.act.lines(run, 3) == [], "nothing is left to do"


def test_parameter_servers_on_two_nodes_of_azure(act, azureml):
    act.write("task.py", TASK)
    act.run("init")
    run, _ = finish(act, distributed(act, 2, 2, 1))
    assert azureml.job(run)["properties"]["distribution"]["processCountPerInstance"] == 2
    said = {rank: act.run("logs", "--rank", rank, run).out.splitlines() for rank in range(4)}
    assert said[0] == ["master 0 --master 0 $AZ", "from ps 0"] and said[1] == ["ps 0 --server 0 $AZ"]
    assert said[2] == ["worker 1 --worker 1 $AZ", "from ps 0"] and said[3] == []


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


OUTPUTS = [{"id": "MODEL", "pathPrefix": "$AZ_BATCHAI_MOUNT_ROOT/output/", "pathSuffix": "models/"},
           {"id": "KEPT", "pathPrefix": "$AZ_BATCHAI_JOB_MOUNT_ROOT/external", "pathSuffix": "m"},
           {"id": "THERE", "pathPrefix": "/tmp", "createNew": False}]


def look_at_outputs(act, cluster):
    """By their ids, whether they lie in a mapped folder or are kept with the run."""
    line = ("echo model >$AZ_BATCHAI_OUTPUT_MODEL/m; echo kept >external/$ACT_RUN_ID/m/k; "
            "mkdir $AZ_BATCHAI_OUTPUT_KEPT/sub; echo deep >$AZ_BATCHAI_OUTPUT_KEPT/sub/d")
    run, said = finish(act, job_file(act, **custom(line), outputDirectories=OUTPUTS), before=("-c", cluster))
    assert ("output 'KEPT': '$AZ_BATCHAI_JOB_MOUNT_ROOT/external' is in no mapped folder: it is kept with the run, in "
            "'outputs/KEPT'") in said
    assert "output 'THERE': '/tmp' is in no mapped folder: what is written there stays on the node" in said

    def names(folder):
        lines = act.run("files", "-d", folder, "--json", run).out.splitlines()
        return [json.loads(text)["path"] for text in lines]

    assert names("MODEL") == [f"output/{run}/models/m"]
    assert names("KEPT") == [f"{run}:outputs/KEPT/k", f"{run}:outputs/KEPT/sub/d"] == names("outputs/KEPT")
    assert names("KEPT/sub") == [f"{run}:outputs/KEPT/sub/d"]
    act.fail("files", "-d", "THERE", run, status=3, match="'THERE' of .* was '/tmp' on its nodes, in no mapped folder")
    act.fail("files", "-d", "ELSE", run, status=3, match="it has: logs, .*output, MODEL, KEPT, THERE")
    for follow in (), ("-f",):
        assert act.run("cat", *follow, f"{run}:MODEL/m").out == "model\n"
        assert act.run("cat", *follow, f"{run}:KEPT/sub/d").out == "deep\n"
        act.fail("cat", *follow, f"{run}:MODEL/n", status=3)
    assert act.run("cat", f"{run}:outputs/MODEL/m").out == "model\n"
    assert act.run("ls", f"{run}:MODEL/").out.split()[-1] == "m"
    look_at_copies(act, run)
    act.fail("download", f"{run}:MODEL", status=2, match=f"'output/{run}/models' in a mapped folder: download that")
    return run


def look_at_copies(act, run):
    """What may be a model of any size comes only when it is asked for, also beside copies that are whole."""
    copies = act.project / "assets" / run / "outputs"
    assert "outputs/" not in act.run("q", run).out and "outputs/" in act.run("ls", "-r", f"{run}:").out
    assert (copies.parent / "user_logs").is_dir() and not copies.exists()
    act.run("download", f"{run}:KEPT/sub")
    assert (copies / "KEPT/sub/d").read_text() == "deep\n" and not (copies / "KEPT/k").exists()
    act.run("download", f"{run}:")
    assert (copies / "KEPT/k").read_text() == "kept\n"
    assert "outputs/" not in act.run("q", run).out and "outputs/" in act.run("files", run).out


def test_outputs_by_id_on_this_machine(act):
    act.cluster("local", extra={"platform": "local"})
    run = look_at_outputs(act, "local")
    again = act.run("resubmit", run).out.strip()
    act.run("wait", again)
    assert act.run("cat", f"{again}:MODEL/m", f"{again}:KEPT/k").out == "model\nkept\n"


def test_outputs_by_id_on_slurm(lab):
    look_at_outputs(lab.act, "lab")


def test_outputs_by_id_on_azure(act, azureml):
    """Its nodes keep nothing that lies in no mapped folder."""
    line = "echo model >$AZ_BATCHAI_OUTPUT_MODEL/m; echo lost >$AZ_BATCHAI_OUTPUT_KEPT/k"
    run, said = finish(act, job_file(act, **custom(line), outputDirectories=OUTPUTS), before=("-c", "aml"))
    assert "output 'KEPT': '$AZ_BATCHAI_JOB_MOUNT_ROOT/external' is in no mapped folder: what is written" in said
    assert act.run("files", "-d", "MODEL", "--json", run).json["path"] == f"output/{run}/models/m"
    for follow in (), ("-f",):
        assert act.run("cat", *follow, f"{run}:MODEL/m").out == "model\n"
    act.fail("files", "-d", "KEPT", run, status=3, match="'KEPT' of .* was 'external/.*/m' on its nodes, in no mapped")
    act.fail("cat", f"{run}:KEPT/k", status=3, match="'KEPT' of .* was 'external/.*/m' on its nodes, in no mapped")


def test_an_output_called_like_a_folder_of_logs(act, azureml):
    """It does not hide the folder that the run has itself."""
    outputs = [{"id": name, "pathPrefix": "$AZ_BATCHAI_MOUNT_ROOT/output/", "pathSuffix": name}
               for name in ("logs", "outputs", "user_logs")]
    line = "for name in logs outputs user_logs; do eval echo $name '>$AZ_BATCHAI_OUTPUT_'$name/m; done; echo printed"
    run, said = finish(act, job_file(act, **custom(line), outputDirectories=outputs))
    assert "'RUN:logs' is a folder of the run itself; the output is 'RUN:outputs/logs'" in said
    azureml.tell("log", id=run, name="logs/azureml/m", text="of the service\n")
    assert act.run("cat", f"{run}:logs/azureml/m").out == "of the service\n"
    assert "std_log" in act.run("ls", f"{run}:user_logs/").out
    assert "user_logs/" in act.run("files", "-d", "logs", run).out
    for name in "logs", "outputs", "user_logs":
        assert act.run("cat", f"{run}:outputs/{name}/m").out == f"{name}\n"


def test_an_output_that_grows(act):
    """`a cat -f` is the file stream of Batch AI."""
    act.cluster("local", extra={"platform": "local"})
    line = ("echo first >$AZ_BATCHAI_OUTPUT_MODEL/m; while [ ! -e go ]; do sleep 0.1; done; "
            "echo last >>$AZ_BATCHAI_OUTPUT_MODEL/m")
    run = act.run("-c", "local", "submit", "-f", job_file(
        act, **custom(f"cd {act.scratch}; {line}"), outputDirectories=OUTPUTS[:1])).out.strip()
    with act.start("cat", "-f", f"{run}:MODEL/m") as following:
        begun = following.stdout.readline()
        (act.scratch / "go").touch()
        assert begun + following.communicate()[0] == b"first\nlast\n"


def test_outputs_of_several_processes(act):
    """All of them make the same path."""
    run, _ = finish(act, job_file(act, customMpiSettings={
        "commandLine": "echo $RANK >$AZ_BATCHAI_OUTPUT_KEPT/$RANK", "processCount": 4}, outputDirectories=OUTPUTS[1:2]))
    listed = act.run("files", "-d", "KEPT", "--urls", run).out.split()
    assert listed == [f"{run}:outputs/KEPT/{rank}" for rank in range(4)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_file_system_that_the_nodes_have_mounted(act):
    nfs, source = act.scratch / "nfs", f"10.0.0.4:/{act.scratch.name}"
    nfs.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", source, nfs], check=True)
    try:
        (nfs / "a.txt").write_text("on the server")
        act.cluster("local", folders=(), extra={"platform": "local"})
        run, said = finish(act, job_file(
            act, **custom("cat $AZ_BATCHAI_MOUNT_ROOT/share/a.txt"), mountVolumes={"unmanagedFileSystems": [
                {"mountCommand": f"mount -t nfs -o ro {source}", "relativeMountPath": "share"},
                {"mountCommand": "mount -t nfs 10.0.0.4:/elsewhere", "relativeMountPath": "other"}]}),
            before=("-c", "local"))
        assert act.log(run) == b"on the server"
        assert f"the volume at 'share' is '{nfs}'" in said and "the volume at 'other' is not mounted" in said
    finally:
        subprocess.run(["umount", nfs], check=True)


ID = "/subscriptions/s/resourceGroups/g/providers/Microsoft.BatchAI/workspaces/w/fileServers/nfs1"


def of_server(act, **keys):
    """A job file that reads and writes the volume 'share' of a file server."""
    line = "cd $AZ_BATCHAI_MOUNT_ROOT/; cat share/a.txt; echo new >share/b.txt; readlink share"
    volume = {"fileServer": {"id": ID}, "relativeMountPath": "share", **keys}
    return job_file(act, **custom(line), mountVolumes={"fileServers": [volume]})


def server_is(act, cluster, place):
    """The cluster file says where the nodes have what the file server is today."""
    path = act.project / f"aux_data/aml/{cluster}.yaml"
    config = json.loads(path.read_text())
    config["config_param"]["nfs1_folder"] = {"mode": "path", "path": str(place)}
    path.write_text(json.dumps(config))


def use_file_server(act, cluster):
    nfs = act.scratch / "mnt"
    (nfs / "sets/voc").mkdir(parents=True)
    (nfs / "sets/voc/a.txt").write_text("on the server\n")
    act.fail("-c", cluster, "submit", "-f", of_server(act, sourceDirectory="sets/voc"), status=7,
             match="file server 'nfs1', whose volume is at 'share', .* config_param 'nfs1_folder: {mode: path, path: ")
    server_is(act, cluster, nfs)
    run, said = finish(act, of_server(act, sourceDirectory="/sets/voc/", mountOptions="rw"), before=("-c", cluster))
    assert act.lines(run) == ["on the server", str(nfs / "sets/voc")] and (nfs / "sets/voc/b.txt").exists()
    assert f"the volume at 'share' is '{nfs}/sets/voc', in the mapped folder 'nfs1'" in said and "mountOptions" in said
    (act.project / "job.json").unlink()
    again = act.run("resubmit", run).out.strip()
    act.run("wait", again)
    assert act.lines(again) == ["on the server", str(nfs / "sets/voc")]


def test_a_file_server_that_the_machine_has_mounted(act):
    act.cluster("here", folders=(), extra={"platform": "local"})
    use_file_server(act, "here")
    for directory, status, match in (("../other", 7, "sourceDirectory'"), ("none", 3, "mnt/none' is not there")):
        file = of_server(act, sourceDirectory=directory)
        act.fail("-c", "here", "submit", "-f", file, status=status, match=match)
    act.cluster("other", folders=(), extra={"platform": "local"})
    run = act.info(act.run("q", "--json").json["runs"][0]["id"])["id"]
    assert "'share', 'folder:" in act.run("-rt", "other", "resubmit", "--dry-run", run).err


def test_a_file_server_that_nodes_of_slurm_have_mounted(lab):
    use_file_server(lab.act, "lab")


PREPARED = ("act: the preparation has printed:", "act: jobPreparation has ended")

RECIPE = dict(
    jobPreparation={"commandLine": "echo prepared by $0 >$AZ_BATCHAI_JOB_TEMP/made"},
    customMpiSettings={"commandLine": "cat $AZ_BATCHAI_JOB_TEMP/made $AZ_BATCHAI_INPUT_SET/a; "
                                      "echo model of $USER_WORD >$AZ_BATCHAI_OUTPUT_MODEL/m$AZ_BATCHAI_TASK_INDEX"},
    environmentVariables=[{"name": "USER_WORD", "value": "us"}],
    inputDirectories=[{"id": "SET", "path": "$AZ_BATCHAI_JOB_MOUNT_ROOT/data/voc"}],
    outputDirectories=[{"id": "MODEL", "pathPrefix": "$AZ_BATCHAI_JOB_MOUNT_ROOT/output", "pathSuffix": "models"}],
    mountVolumes={"azureBlobFileSystems": [
        {"accountName": "a", "containerName": "c", "relativeMountPath": name} for name in ("data", "output")]})


def carry_out(act, cluster, nodes):
    """As the recipes have it: a preparation, an input, an output, which is brought back."""
    act.write("data/voc/a", "from the folder")
    act.run("-c", cluster, "upload", "data")
    run, said = finish(act, job_file(act, nodeCount=nodes, **RECIPE), before=("-c", cluster))
    for rank in range(nodes):
        assert act.run("logs", "--rank", rank, run).out == "\n".join(
            (*PREPARED, "prepared by /bin/bash", "from the folder"))
    assert said.count("the mapped folder stands for the volume") == 2
    act.run("-c", cluster, "download", "output")
    for rank in range(nodes):
        assert (act.project / "output" / run / f"models/m{rank}").read_text() == "model of us\n"


def test_recipe_on_this_machine(act):
    act.cluster("local", extra={"platform": "local"})
    carry_out(act, "local", 1)


def test_recipe_on_slurm(lab):
    carry_out(lab.act, "lab", 2)


def test_recipe_on_azure(act, azureml):
    carry_out(act, "aml", 2)


def test_preparation_runs_once(act):
    run, _ = finish(act, job_file(
        act, jobPreparation={"commandLine": "sleep 0.3; echo prepared >>made"},
        customMpiSettings={"commandLine": "cat made", "processCount": 4}))
    assert [act.lines(run, rank) for rank in range(4)] == [[*PREPARED, "prepared"], *[["prepared"]] * 3]


def test_numbers_of_a_preparation_are_none_of_the_run(act):
    run, _ = finish(act, job_file(act, jobPreparation={"commandLine": "echo step 7 loss 9"},
                                  **custom("echo step 1 loss 2; echo step 2 loss 1")))
    (curve,) = json.loads(act.run("plot", "--json", "loss", run).out)["runs"]
    assert curve["points"] == [[1, 2], [2, 1]], curve


def test_preparation_that_fails(act):
    line = "echo 'No module named wheels' >&2; exit 7"
    run, _ = finish(act, job_file(act, jobPreparation={"commandLine": line}, **custom("echo no")), status=7)
    assert act.lines(run) == [PREPARED[0], "No module named wheels", "act: jobPreparation ended with status 7"]
    why = act.run("why", run).out
    assert "class     jobPreparation failed\n" in why and "\n  No module named wheels\n" in why, why


def test_exit_status(act):
    run, _ = finish(act, job_file(act, **custom("exit 9")), status=9)
    assert act.info(run)["exit_status"] == 9


def test_secrets(act):
    file = "aux_data/configs/job.json"
    run, said = finish(act, job_file(
        act, file, **custom("echo $THE_TOKEN $PLAIN_WORD"),
        secrets=[{"name": "THE_TOKEN", "value": "t0k"}, {"name": "PLAIN_WORD", "value": "pl41n"}]))
    assert act.lines(run) == ["t0k pl41n"]
    assert "'THE_TOKEN'" not in said and "'PLAIN_WORD'" not in said
    spec = json.dumps(act.run("submit", "--dry-run", "-f", file).json)
    assert "t0k" not in spec and "pl41n" not in spec and "PLAIN_WORD" in spec
    for path in (act.home / "runs" / run).rglob("*"):
        if path.is_file() and path.name != "secrets.json" and "user_logs" not in path.parts:
            assert b"pl41n" not in path.read_bytes(), path
    assert "holds secrets" not in said
    assert "'job.json' holds secrets" in act.run("submit", "--dry-run", "-f", job_file(
        act, **custom("true"), secrets=[{"name": "A", "value": "x"}])).err
    assert "pl41n" not in act.run("q", "--json").out


def test_variables_of_batch_ai_in_values(act):
    run, said = finish(act, job_file(
        act, **custom('echo "$WHERE|$BOTH|$NONE|$SECRET_PLACE"; [ -d "$AZ_BATCHAI_JOB_TEMP" ] && echo temp; '
                      'echo "$AZ_BATCHAI_NUM_GPUS_PER_NODE"'),
        inputDirectories=[{"id": "SET", "path": "$AZ_BATCHAI_MOUNT_ROOT/data"}],
        environmentVariables=[{"name": "WHERE", "value": "$AZ_BATCHAI_INPUT_SET/x"},
                              {"name": "BOTH", "value": "${AZ_BATCHAI_TASK_INDEX}-$AZ_BATCHAI_TASK_INDEX $HOME"},
                              {"name": "NONE", "value": "($AZ_BATCHAI_INPUT_NONE)"}],
        secrets=[{"name": "SECRET_PLACE", "value": "v4lue$AZ_BATCHAI_TASK_INDEX"}]))
    where, temp, gpus = act.lines(run)
    assert where.endswith("/data/x|0-0 $HOME|()|v4lue0") and where.startswith("/")
    assert temp == "temp" and gpus.isdigit()
    assert "environmentVariables[2].value: nothing sets '$AZ_BATCHAI_INPUT_NONE'" in said
    assert "v4lue" not in json.dumps(act.run("submit", "--dry-run", "-f", "job.json").json)


def test_time_limit(act):
    run, _ = finish(act, job_file(act, **custom("echo begun; sleep 300"), constraints={"maxWallClockTime": "00:00:01"}),
                    status=124)
    assert act.lines(run)[0] == "begun" and "timeout: sending signal TERM" in act.log(run).decode()
    assert not any("MaxWall" in word for word in act.run("submit", "--dry-run", "-f", "job.json").json["command"])


def test_time_limit_on_slurm(lab):
    file = job_file(lab.act, **custom("true"), constraints={"maxWallClockTime": "1.02:00:00"})
    spec = lab.act.run("-c", "lab", "submit", "--dry-run", "-f", file).json
    assert spec["command"][0] == "/bin/bash" and spec["config"]["slurm"]["time"] == "1-02:00:00"
    run, _ = finish(lab.act, file, before=("-c", "lab"))
    assert lab.bed.show(lab.bed.job(run))["TimeLimit"] == "1-02:00:00"


def test_what_has_no_counterpart(act):
    said = act.run("submit", "--dry-run", "-f", job_file(
        act, **custom("true"), cluster={"id": "/subscriptions/s/clusters/nc6"}, schedulingPriority="low",
        containerSettings={"imageSourceRegistry": {"image": "tf:1", "serverUrl": "https://reg.io"}, "shmSize": "1g"},
        customMpiSettings=None)).err
    for piece in ("cluster is not used", "schedulingPriority", "image 'reg.io/tf:1' is not used", "shmSize"):
        assert piece in said, piece


def test_what_azure_is_told(act, azureml):
    act.run("init")
    file = job_file(act, nodeCount=2, constraints={"maxWallClockTime": "1.00:00:00"},
                    horovodSettings={"pythonScriptFilePath": "t.py", "processCount": 4},
                    containerSettings={"imageSourceRegistry": {"image": "horovod/horovod:0.20"}, "shmSize": "16gb"})
    spec = act.run("submit", "--dry-run", "-f", file).json
    assert spec["config"]["docker"]["image"] == "horovod/horovod:0.20"
    assert spec["config"]["azureml"]["timeout"] == "PT86400S"
    run = act.run("submit", "-f", file).out.strip()
    sent = azureml.job(run)["properties"]
    assert sent["resources"]["instanceCount"] == 2
    assert sent["resources"]["shmSize"] == "16g"
    assert sent["distribution"]["processCountPerInstance"] == 2
    assert sent["limits"]["timeout"] == "PT86400S"
    assert "horovod/horovod:0.20" in json.dumps(azureml.tell("objects")["environments"])


def test_the_image_of_a_job_file_on_kubernetes(act, kubernetes_api):
    """As 'a cluster add' writes it: the cluster file has an image of its own, under the other of the two keys."""
    kubernetes_api.use(act)
    file = job_file(act, **custom("true"), constraints={"maxWallClockTime": "01:00:00"}, containerSettings={
        "imageSourceRegistry": {"serverUrl": "reg.io", "image": "team/tf:2"}, "shmSize": "1g"})
    assert image_of(act, file) == "reg.io/team/tf:2"
    assert image_of(act, file, "-p", "k8s: {image: 'typed:1'}") == "typed:1"
    assert image_of(act, file, "-p", "docker: {image: 'typed:2'}") == "typed:2"


def image_of(act, file, *before):
    pod = act.run("-c", "k8s", *before, "submit", "--dry-run", "-f", file).json
    return pod["items"][0]["spec"]["template"]["spec"]["containers"][0]["image"]


def test_what_the_command_says_beats_the_job_file(lab):
    """And that beats the cluster file, whichever of its keys says it."""
    lab.configure(slurm={"sbatch_options": ["--time=7"]}, env={"ONE": "cluster", "TWO": "cluster", "THREE": "cluster"})
    file = job_file(lab.act, **custom("echo $ONE $TWO $THREE"), constraints={"maxWallClockTime": "00:20:00"},
                    environmentVariables=[{"name": n, "value": "file"} for n in ("TWO", "THREE")])
    run, _ = finish(lab.act, file, before=("-c", "lab", "-p", "env: {THREE: typed}"))
    assert lab.act.lines(run) == ["cluster file typed"]
    assert lab.bed.show(lab.bed.job(run))["TimeLimit"] == "00:20:00"
    run, said = finish(lab.act, file, before=("-c", "lab", "-p", "slurm: {time: '5'}"))
    assert lab.bed.show(lab.bed.job(run))["TimeLimit"] == "00:05:00"
    assert "maxWallClockTime is not used: this command itself gives 'slurm.time'" in said
    run, _ = finish(lab.act, file, before=("-c", "lab", "-p", "slurm: {sbatch_options: [--time=9]}"))
    assert lab.bed.show(lab.bed.job(run))["TimeLimit"] == "00:09:00"


def test_registry_on_azure(act, azureml):
    act.run("init")
    registry = {"serverUrl": "demo.azurecr.io", "image": "demo.azurecr.io/team/tf",
                "credentials": {"username": "puller", "password": "p4ssw0rd"}}
    file = job_file(act, **custom("true"), containerSettings={"imageSourceRegistry": registry})
    run = act.run("submit", "-f", file).out.strip()
    objects = azureml.tell("objects")
    connection, = objects["connections"].values()
    assert connection["properties"]["target"] == "https://demo.azurecr.io"
    assert connection["properties"]["credentials"] == {"username": "puller", "password": "p4ssw0rd"}
    assert "demo.azurecr.io/team/tf" in json.dumps(objects["environments"])
    assert "p4ssw0rd" not in json.dumps(azureml.job(run))
    for path in act.home.rglob("*"):
        assert not path.is_file() or b"p4ssw0rd" not in path.read_bytes(), path
    assert "p4ssw0rd" not in json.dumps(act.run("submit", "--dry-run", "-f", file).json)


@pytest.mark.parametrize("properties, match", [
    ({"nodeCnt": 1}, r"job\.json: 'properties\.nodeCnt' is nothing .* did you mean 'nodeCount'"),
    ({"nodeCount": "1"}, r"'properties\.nodeCount' must be a whole number"),
    ({"nodeCount": 0}, r"'properties\.nodeCount' must be a whole number"),
    ({"nodeCount": None}, r"'properties\.nodeCount' is missing"),
    ({"inputDirectories": [{"id": "A", "path": "x"}, {"id": "B"}]},
     r"'properties\.inputDirectories\[1\]\.path' is missing"),
    ({"inputDirectories": {"id": "A"}}, r"'properties\.inputDirectories' must be a list"),
    ({"inputDirectories": [{"id": "A B", "path": "x"}]}, "cannot be part of a variable"),
    ({"environmentVariables": [{"name": "A=B", "value": "x"}]},
     r"environmentVariables\[0\]\.name' is 'A=B', no name of a variable"),
    ({"customToolkitSettings": None}, "says nothing to run"),
    ({"horovodSettings": {"pythonScriptFilePath": "x"}}, "has both 'customToolkitSettings' and 'horovodSettings'"),
    ({"customToolkitSettings": {"commandLine": 1}}, r"'properties\.customToolkitSettings\.commandLine' must be a text"),
    ({"customToolkitSettings": None, "nodeCount": 2, "customMpiSettings": {"commandLine": "x", "processCount": 3}},
     "cannot share evenly"),
    ({"customToolkitSettings": None, "tensorFlowSettings": {"pythonScriptFilePath": "x", "parameterServerCount": 2}},
     "a node has at most one"),
    ({"customToolkitSettings": None, "cntkSettings": {"languageType": "Python"}}, "needs either"),
    ({"nodeCount": 1.5}, r"'properties\.nodeCount' must be a whole number"),
    ({"outputDirectories": [{"id": "A", "pathPrefix": "x", "createNew": "no"}]}, r"createNew' must be true or false"),
    ({"constraints": {"maxWallClockTime": "7 days"}}, r"'properties\.constraints\.maxWallClockTime' is '7 days'"),
    ({"containerSettings": {"imageSourceRegistry": {"image": "a"}, "shmSize": "much"}}, r"shmSize' is 'much'"),
    ({"containerSettings": {"imageSourceRegistry": {"image": "r.io/a", "credentials": {"username": "u"}}}},
     r"imageSourceRegistry\.credentials\.password' is missing"),
    ({"secrets": [{"name": "A"}]}, r"'properties\.secrets\[0\]\.value' is missing"),
    ({"customToolkitSettings": None, "caffe2Settings": {"pythonScriptFilePath": "x", "processCount": 2}},
     r"'properties\.caffe2Settings\.processCount' is nothing"),
    ({"nodeCount": 2}, "asks for 2 nodes, but .* has 1"),
])
def test_bad_files(act, properties, match):
    file = job_file(act, **{**custom("true"), **properties})
    act.fail("-q", "submit", "-f", file, status=None, match=match)


def test_bad_words(act):
    act.fail("submit", "-f", "missing.json", status=None, match="missing.json")
    act.write("broken.json", '{"properties": {')
    act.fail("submit", "-f", "broken.json", status=7, match=r"broken\.json:1:\d+")
    act.write("list.json", "[]")
    act.fail("submit", "-f", "list.json", status=7, match="'list.json' is not a job file")
    act.write("flat.json", json.dumps({"nodeCount": 1, **custom("true")}))
    act.fail("submit", "-f", "flat.json", status=7, match=r"flat\.json: 'nodeCount' must be a member of 'properties'")
    act.write("large.json", '{"properties": "' + "x" * (1 << 20) + '"}')
    act.fail("submit", "-f", "large.json", status=None, match=r"large\.json': larger than 1048576 bytes")
    act.write("empty.json", "")
    act.fail("submit", "-f", "empty.json", status=7, match=r"empty\.json")
    act.fail("submit", "-f", ".", status=None, match=r"'\.'|: Is a directory")
    act.fail("submit", "-f", job_file(act, **custom("true")), "echo", "x", status=2, match="says what to run")
