"""The double of Azure Machine Learning runs what it is given: ranks, inputs, outputs, logs, ends. Its answers are
tested by tests/azureml/double.test.mjs."""
import json
import pathlib
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

import pytest

from azureml_double import CLIENT, SECRET, SUBSCRIPTION, TENANT

WORKSPACE = (f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/"
             "Microsoft.MachineLearningServices/workspaces/ws")


class Client:
    """A small client of the service, which shares nothing with ACT."""

    def __init__(self, azureml):
        self.azureml = azureml
        form = {"grant_type": "client_credentials", "client_id": CLIENT, "client_secret": SECRET,
                "scope": "https://management.azure.com/.default"}
        with urllib.request.urlopen(f"{azureml.links['login']}/{TENANT}/oauth2/v2.0/token",
                                    urllib.parse.urlencode(form).encode()) as answer:
            self.token = json.load(answer)["access_token"]

    def call(self, method, path, body=None, server="arm"):
        url = self.azureml.links[server] + path + ("?api-version=2024-10-01" if server == "arm" else "")
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json",
                   "x-ms-client-request-id": str(uuid.uuid4()), "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(url, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or "null")

    def submit(self, command, **properties):
        name = f"job_{uuid.uuid4().hex[:8]}"
        body = {"jobType": "Command", "command": command, "environmentId": f"{WORKSPACE}/environments/e/versions/1",
                "computeId": f"{WORKSPACE}/computes/gpu", **properties}
        self.call("PUT", f"{WORKSPACE}/jobs/{name}", {"properties": body})
        return name

    def details(self, name):
        return self.call("GET", f"/history/v1.0{WORKSPACE}/runs/{name}/details", server="api")

    def until(self, name, condition):
        for _ in range(600):
            details = self.details(name)
            if condition(details):
                return details
            time.sleep(0.05)
        raise AssertionError(details)

    def ended(self, name, status="Completed"):
        details = self.until(name, lambda d: d["status"] in ("Completed", "Failed", "Canceled"))
        assert details["status"] == status, (details, self.log(details))
        return details

    def log(self, details, name=None):
        """A log as it stands; without a name the user's logs by name."""
        if name is None:
            return {n: self.log(details, n) for n in details["logFiles"]
                    if n.startswith(("user_logs", "azureml-logs/70"))}
        with urllib.request.urlopen(details["logFiles"][name], timeout=30) as answer:
            return answer.read().decode()


@pytest.fixture
def client(azureml, container):
    client = Client(azureml)
    service = azureml.service
    environment = {"properties": {"image": "debian:12", "osType": "Linux"}}
    client.call("PUT", f"{WORKSPACE}/environments/e/versions/1", environment)
    store = {"datastoreType": "AzureBlob", "accountName": service.account, "containerName": container,
             "endpoint": "core.windows.net", "protocol": "https",
             "credentials": {"credentialsType": "AccountKey",
                             "secrets": {"secretsType": "AccountKey", "key": service.key}}}
    client.call("PUT", f"{WORKSPACE}/datastores/ds", {"properties": store})
    store["credentials"] = {"credentialsType": "Sas", "secrets": {
        "secretsType": "Sas", "sasToken": service.container_sas(container)}}
    client.call("PUT", f"{WORKSPACE}/datastores/by_sas", {"properties": store})
    return client


def mpi(nodes, per_node):
    return {"distribution": {"distributionType": "Mpi", "processCountPerInstance": per_node},
            "resources": {"instanceCount": nodes}}


def processes(marker):
    """Process ids of programs with this in their environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_ranks_on_nodes(client):
    names = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
             "AZUREML_CR_NODE_RANK", "AZ_BATCH_HOST_LIST", "AZ_BATCH_IS_CURRENT_NODE_MASTER", "COLOUR")
    details = client.ended(client.submit("echo " + " ".join(f"${n}" for n in names), **mpi(2, 2),
                                         environmentVariables={"COLOUR": "blue"}))
    hosts = "127.0.0.1,127.0.0.2"
    assert client.log(details) == {
        "user_logs/std_log_process_0.txt": f"0 4 0 2 0 {hosts} true blue\n",
        "user_logs/std_log_process_1.txt": f"1 4 1 2 0 {hosts} true blue\n",
        "user_logs/std_log_process_2.txt": f"2 4 0 2 1 {hosts} false blue\n",
        "user_logs/std_log_process_3.txt": f"3 4 1 2 1 {hosts} false blue\n"}


def test_ranks_speak_with_each_other(client):
    code = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.Get_rank() + 1))"
    details = client.ended(client.submit(f"python3 -c '{code}'", **mpi(1, 2)))
    assert set(client.log(details).values()) == {"3\n"}


@pytest.mark.parametrize("store", ["ds", "by_sas"])
def test_inputs_and_outputs(client, azureml, container, store):
    service = azureml.service
    for name in ("in/a.txt", "in/deep/b & c.txt", "out/old.txt", "up/old.txt"):
        service.put(f"{container}/{name}", name.encode())
    uri = f"azureml://datastores/{store}/paths"
    details = client.ended(client.submit(
        "cat ${{inputs.file}} ${{inputs.folder}}/deep/*; echo ${{inputs.number}}; cat ${{outputs.out}}/old.txt; "
        "ls ${{outputs.up}}; echo new >${{outputs.out}}/new.txt; mkdir ${{outputs.up}}/d; echo up "
        ">${{outputs.up}}/d/n.txt",
        inputs={"file": {"jobInputType": "uri_file", "mode": "Download", "uri": f"{uri}/in/a.txt"},
                "folder": {"jobInputType": "uri_folder", "mode": "ReadOnlyMount", "uri": f"{uri}/in/"},
                "number": {"jobInputType": "literal", "value": "42"}},
        outputs={"out": {"jobOutputType": "uri_folder", "mode": "ReadWriteMount", "uri": f"{uri}/out/"},
                 "up": {"jobOutputType": "uri_folder", "mode": "Upload", "uri": f"{uri}/up/"}}))
    assert client.log(details, "user_logs/std_log.txt") == "in/a.txtin/deep/b & c.txt42\nout/old.txt"
    assert service.get(f"{container}/out/new.txt") == b"new\n"
    assert service.get(f"{container}/up/d/n.txt") == b"up\n"


def test_data_that_is_not_there(client):
    for uri in ("azureml://datastores/ds/paths/none", "azureml://datastores/none/paths/none"):
        inputs = {"file": {"jobInputType": "uri_file", "mode": "Download", "uri": uri}}
        details = client.ended(client.submit("true", inputs=inputs), "Failed")
        assert "DataAccessError" in details["error"]["error"]["message"]


def test_log_grows_while_the_job_runs(client, scratch):
    gate = scratch / "gate"
    name = client.submit(f"echo begun; while ! [ -e {gate} ]; do sleep 0.05; done; echo ended")
    details = client.until(name, lambda d: "user_logs/std_log.txt" in d["logFiles"]
                           and client.log(d, "user_logs/std_log.txt") == "begun\n")
    assert details["status"] == "Running" and details["startTimeUtc"] and not details["endTimeUtc"]
    gate.touch()
    details = client.ended(name)
    assert client.log(details, "user_logs/std_log.txt") == "begun\nended\n"
    assert details["endTimeUtc"] >= details["startTimeUtc"]


def test_command_that_fails(client):
    details = client.ended(client.submit("echo bad; exit 7", **mpi(1, 2)), "Failed")
    assert "status code 7" in details["error"]["error"]["message"]


@pytest.mark.parametrize("more", [{}, mpi(2, 1)])
def test_cancelled_job_leaves_nothing(client, azureml, more):
    azureml.tell("settings", graceMs=500)
    marker = f"MARKER={uuid.uuid4()}"
    command = "trap '' TERM; setsid sleep 300 & echo up; sleep 300"
    name = client.submit(command, environmentVariables=dict([marker.split("=")]), **more)
    client.until(name, lambda d: "up\n" in client.log(d).values())
    assert len(processes(marker)) > 1
    client.call("POST", f"{WORKSPACE}/jobs/{name}/cancel")
    client.ended(name, "Canceled")
    assert not processes(marker)


def test_limit(client):
    name = client.submit("sleep 300", limits={"jobLimitsType": "Command", "timeout": "PT1S"})
    assert "limit of PT1S" in client.ended(name, "Failed")["error"]["error"]["message"]


def test_preempted_job_begins_again(client, azureml):
    name = client.submit("echo $$; sleep 1000")
    first = client.until(name, client.log)
    before = client.log(first)
    azureml.tell("job", id=name, preempt=True)
    client.until(name, lambda d: azureml.job(name)["attempt"] == 2)
    client.until(name, lambda d: client.log(d) not in ({}, before) and d["status"] == "Running")
    assert client.details(name)["warnings"]


def test_nodes_of_a_job(client):
    name = client.submit("sleep 1000", **mpi(2, 1))
    client.until(name, lambda d: d["status"] == "Running")
    nodes = client.call("POST", f"{WORKSPACE}/computes/gpu/listNodes")["nodes"]
    assert [(n["runId"], n["privateIpAddress"]) for n in nodes] == [(name, "127.0.0.1"), (name, "127.0.0.2")]
    compute = client.call("GET", f"{WORKSPACE}/computes/gpu")["properties"]["properties"]
    assert compute["nodeStateCounts"]["runningNodeCount"] == 2


def test_service_endpoints_of_a_job(client):
    name = client.submit("sleep 1000", services={"shell": {"jobServiceType": "SSH"}})
    client.until(name, lambda d: d["status"] == "Running")
    found = client.call("GET", f"/history/v1.0{WORKSPACE}/runs/{name}/serviceinstances/0", server="api")
    assert found["instances"]["shell"]["type"] == "SSH"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        client.call("GET", f"/history/v1.0{WORKSPACE}/runs/{name}/serviceinstances/1", server="api")
