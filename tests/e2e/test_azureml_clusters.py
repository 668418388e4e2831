"""The managed clusters of an Azure Machine Learning workspace: what there is, and changing it."""
import json
import re
import signal
import shutil
import subprocess

import pytest

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGexample ann@contoso"


def show(act, name):
    return act.run("cluster", "show", "--json", name).json["cluster"]


def sent(azureml, method):
    """The URLs and bodies of the requests for one cluster."""
    return [(r["url"], r["body"] and json.loads(r["body"])) for r in azureml.requests("arm")
            if r["method"] == method and "/computes/" in r["url"]]


def create(act, name, *words, **options):
    return act.run("cluster", "create", name, "--vm-size", "STANDARD_NC6", "--max", "3", *words, **options)


def test_list_and_show(act, azureml):
    rows = act.run("cluster", "list").out.splitlines()
    assert re.split(r"\s{2,}", rows[0].strip()) == [
        "NAME", "TYPE", "STATE", "VM SIZE", "MIN", "MAX", "NODES", "BUSY", "IDLE", "DOWN"]
    assert [row.split() for row in rows[1:]] == [
        ["gpu", "AmlCompute", "Succeeded", "STANDARD_ND96ASR_V4", "0", "4", "0", "0", "0", "0"],
        ["itpgpu", "Kubernetes", "Succeeded", *"-------"]]

    answer = act.run("cluster", "list", "--json").json
    assert answer["version"] == 1
    assert [c["name"] for c in answer["clusters"]] == ["gpu", "itpgpu"]
    assert answer["clusters"][1]["max_nodes"] is None

    text = act.run("cluster", "show").out  # of the cluster file
    assert re.search(r"^name +gpu$", text, re.M)
    assert re.search(r"^nodes +0, at least 0, at most 4$", text, re.M)
    assert re.search(r"^idle time +2m00s$", text, re.M)


def test_list_on_many_pages(act, azureml):
    azureml.tell("settings", pageSize=1)
    assert [c["name"] for c in act.run("cluster", "list", "--json").json["clusters"]] == ["gpu", "itpgpu"]


def test_states_of_nodes(act, azureml):
    azureml.tell("compute", name="gpu",
                 shown={"currentNodeCount": 4, "allocationState": "Resizing", "nodeStateCounts": {
        "preparingNodeCount": 1, "runningNodeCount": 1, "idleNodeCount": 0, "unusableNodeCount": 1,
        "leavingNodeCount": 0, "preemptedNodeCount": 1}})
    assert act.run("cluster", "list").out.splitlines()[1].split()[-4:] == ["4", "2", "0", "2"]
    cluster = show(act, "gpu")
    assert cluster["allocation"] == "Resizing"
    assert cluster["node_states"] == {"preparing": 1, "running": 1, "idle": 0, "unusable": 1, "leaving": 0,
                                      "preempted": 1}


def test_create(act, azureml):
    key = act.write("id.pub", KEY + "\n")
    done = create(act, "fresh", "--min", "1", "--idle", "5m", "--low-priority", "--ssh-key", key, "--admin-user", "ann")
    assert re.search(r"^name +fresh$", done.out, re.M)
    assert "cluster 'fresh': " in done.err and "Succeeded" in done.err
    ((_, body),) = sent(azureml, "PUT")
    assert body == {"location": "eastus", "properties": {
        "computeType": "AmlCompute", "description": "created by act", "properties": {
            "vmSize": "STANDARD_NC6", "vmPriority": "LowPriority", "osType": "Linux",
            "scaleSettings": {"minNodeCount": 1, "maxNodeCount": 3, "nodeIdleTimeBeforeScaleDown": "PT300S"},
            "userAccountCredentials": {"adminUserName": "ann", "adminUserSshPublicKey": KEY},
            "remoteLoginPortPublicAccess": "Enabled"}}}
    cluster = show(act, "fresh")
    assert (cluster["state"], cluster["idle_s"], cluster["admin_user"]) == ("Succeeded", 300, "ann")


SUBNET = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/nodes"
IDENTITY = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/me"
NODE_IMAGE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/images/ours"


def test_create_with_a_network_and_identities(act, azureml):
    create(act, "fresh", "--subnet", SUBNET, "--no-public-ip", "--identity", "system", "--identity", IDENTITY,
           "--node-image", NODE_IMAGE, "--tag", "team=vision", "--tag", "cost=42")
    ((_, body),) = sent(azureml, "PUT")
    own = body["properties"]["properties"]
    assert (own["subnet"], own["enableNodePublicIp"], own["virtualMachineImage"]) == (
        {"id": SUBNET}, False, {"id": NODE_IMAGE})
    assert body["identity"] == {"type": "SystemAssigned,UserAssigned", "userAssignedIdentities": {IDENTITY: {}}}
    assert body["tags"] == {"team": "vision", "cost": "42"}
    create(act, "second", "--identity", "system")
    assert sent(azureml, "PUT")[1][1]["identity"] == {"type": "SystemAssigned"}


def test_a_dry_run_says_all_that_would_be_made(act, azureml):
    words = ("--subnet", SUBNET, "--no-public-ip", "--identity", "system", "--identity", IDENTITY, "--node-image",
             NODE_IMAGE, "--tag", "team=vision", "--low-priority", "--idle", "5m", "--ssh-key",
             act.write("id.pub", KEY + "\n"), "--dry-run")
    facts = dict(re.split(r"  +", line, maxsplit=1) for line in create(act, "fresh", *words).out.splitlines())
    assert facts == {
        "name": "fresh", "location": "that of the workspace", "vm size": "STANDARD_NC6",
        "priority": "low: the nodes may be taken away", "nodes": "at least 0, at most 3", "idle time": "5m00s",
        "admin user": "azureuser", "ssh key": KEY, "subnet": SUBNET, "public ip": "none",
        "identities": f"system, {IDENTITY}", "node image": NODE_IMAGE, "tags": "team=vision"}
    told = create(act, "fresh", *words, "--json").json["cluster"]
    assert told == {
        "name": "fresh", "location": None, "vm_size": "STANDARD_NC6", "low_priority": True, "min_nodes": 0,
        "max_nodes": 3, "idle_s": 300, "admin_user": "azureuser", "ssh_key": KEY, "subnet": SUBNET,
        "no_public_ip": True, "identities": ["system", IDENTITY], "node_image": NODE_IMAGE, "tags": {"team": "vision"}}
    assert sent(azureml, "PUT") == []
    plain = create(act, "fresh", "--dry-run", "--json").json["cluster"]
    assert (plain["identities"], plain["tags"], plain["idle_s"]) == ([], None, None)


@pytest.mark.parametrize("words, match", [
    (("--subnet", "nodes"), "--subnet 'nodes' must be a resource id: /subscriptions/.../subnets/NAME"),
    (("--identity", SUBNET), "must be a resource id: /subscriptions/.../userAssignedIdentities/NAME"),
    (("--node-image", "ubuntu"), "must be a resource id"),
    (("--tag", "team"), "team")])
def test_create_with_ids_that_are_none(act, azureml, words, match):
    act.fail("cluster", "create", "fresh", "--vm-size", "S", "--max", "2", *words, status=2, match=match)
    assert sent(azureml, "PUT") == []


def batch(act, **properties):
    """A file of a cluster as Azure Batch AI had it."""
    return act.write("cluster.json", json.dumps({"location": "westus2", "properties": {
        "vmSize": "STANDARD_NC24", "vmPriority": "lowpriority",
        "scaleSettings": {"autoScale": {"minimumNodeCount": 1, "maximumNodeCount": 5, "initialNodeCount": 0}},
        "userAccountSettings": {"adminUserName": "ann", "adminUserSshPublicKey": KEY}, **properties}}))


def test_create_from_a_file_of_batch_ai(act, azureml):
    file = batch(act, subnet={"id": SUBNET}, nodeSetup={"setupTask": {"commandLine": "apt"}, "mountVolumes": {}},
                 virtualMachineConfiguration={"imageReference": {"offer": "UbuntuServer", "sku": "16.04-LTS"}})
    done = act.run("cluster", "create", "fresh", "-f", file, "--max", "4", "--idle", "5m")
    ((_, body),) = sent(azureml, "PUT")
    assert body == {"location": "westus2", "properties": {
        "computeType": "AmlCompute", "description": "created by act", "properties": {
            "vmSize": "STANDARD_NC24", "vmPriority": "LowPriority", "osType": "Linux", "subnet": {"id": SUBNET},
            "scaleSettings": {"minNodeCount": 1, "maxNodeCount": 4, "nodeIdleTimeBeforeScaleDown": "PT300S"},
            "userAccountCredentials": {"adminUserName": "ann", "adminUserSshPublicKey": KEY},
            "remoteLoginPortPublicAccess": "Enabled"}}}
    for note in ("(UbuntuServer 16.04-LTS) is not used", "setupTask is not run", "mountVolumes are not mounted"):
        assert note in done.err, done.err


def test_a_file_of_batch_ai_with_a_fixed_size(act, azureml):
    act.run("cluster", "create", "fresh", "-f", batch(
        act, scaleSettings={"manual": {"targetNodeCount": 2}}, vmPriority="dedicated",
        virtualMachineConfiguration={"imageReference": {"virtualMachineImageId": NODE_IMAGE}},
        userAccountSettings={"adminUserName": "ann", "adminUserPassword": "pssst-1234"}))
    own = sent(azureml, "PUT")[0][1]["properties"]["properties"]
    assert own["scaleSettings"] == {"minNodeCount": 2, "maxNodeCount": 2} and own["vmPriority"] == "Dedicated"
    assert own["virtualMachineImage"] == {"id": NODE_IMAGE} and "userAccountCredentials" not in own


def test_options_say_what_a_file_of_batch_ai_does_not(act, azureml):
    """As the files of its recipes, whose sizes and users were options."""
    bare = batch(act, vmSize=None, scaleSettings=None, userAccountSettings={"adminUserName": "ann"})
    act.fail("cluster", "create", "fresh", "-f", bare, status=2, match="needs --vm-size and --max")
    assert sent(azureml, "PUT") == []
    key = act.write("key.pub", KEY + "\n")
    done = act.run("cluster", "create", "fresh", "-f", bare, "--vm-size", "STANDARD_NC6", "--max", "3",
                   "--ssh-key", key)
    own = sent(azureml, "PUT")[0][1]["properties"]["properties"]
    assert own["vmSize"] == "STANDARD_NC6" and own["scaleSettings"]["maxNodeCount"] == 3
    assert own["userAccountCredentials"] == {"adminUserName": "ann", "adminUserSshPublicKey": KEY}
    assert "nobody can log in" not in done.err
    act.run("cluster", "create", "other", "-f", batch(act, userAccountSettings=None), "--admin-user", "bob",
            "--ssh-key", key)
    own = sent(azureml, "PUT")[1][1]["properties"]["properties"]
    assert own["userAccountCredentials"]["adminUserName"] == "bob"


@pytest.mark.parametrize("properties, match", [
    ({"scaleSettings": {"manual": {"targetNodeCount": 1}, "autoScale": {
        "minimumNodeCount": 1, "maximumNodeCount": 5}}}, "must have one of 'manual', 'autoScale'"),
    ({"vmPriority": "spot"}, "must be 'dedicated' or 'lowpriority'"),
    ({"vmSizes": "x"}, "'properties.vmSizes' is nothing that a file of a cluster has; did you mean 'vmSize'"),
    ({"scaleSettings": {"manual": {"targetNodeCount": -1}}}, "must be a whole number from 0")])
def test_a_file_of_batch_ai_that_is_wrong(act, azureml, properties, match):
    act.fail("cluster", "create", "fresh", "-f", batch(act, **properties), status=7, match=match)
    assert azureml.requests() == []


def test_list_of_a_subscription(act, azureml):
    azureml.tell("settings", others=["theirs"])
    done = act.run("cluster", "list", "--all")
    rows = [row.split() for row in done.out.splitlines()]
    assert rows[0][:2] == ["WORKSPACE", "NAME"] and [row[:2] for row in rows[1:]] == [
        ["rg/ws", "gpu"], ["rg/ws", "itpgpu"]]
    assert "cannot list the clusters of the workspace 'rg/theirs'" in done.err
    assert {c["owner"] for c in act.run("cluster", "list", "--all", "--json").json["clusters"]} == {"rg/ws"}
    act.fail("cluster", "list", "--all", "--own", status=2, match="--own lists cluster files")


def test_create_without_waiting(act, azureml):
    done = create(act, "fresh", "--no-wait", "--location", "westus2")
    assert done.out == "" and "accepted" in done.err
    assert not [r for r in azureml.requests("arm") if "computeOperations" in r["url"]]
    assert show(act, "fresh")["location"] == "westus2"


@pytest.mark.parametrize("words, match", [
    ((), "needs --vm-size and --max"),
    (("--vm-size", "S"), "needs --vm-size and --max"),
    (("--vm-size", "S", "--max", "2", "--min", "3"), "at least 3 and at most 2"),
    (("--vm-size", "S", "--max", "2", "--admin-user", "ann"), "needs --ssh-key"),
    (("--vm-size", "S", "--max", "2", "--ssh-key", "id"), "not a public key"),
])
def test_create_with_bad_words(act, azureml, words, match):
    act.write("id", "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n-----END OPENSSH PRIVATE KEY-----\n")
    act.fail("cluster", "create", "fresh", *words, status=2, match=match)
    assert not sent(azureml, "PUT")


def test_create_what_is_there(act, azureml):
    act.fail("cluster", "create", "gpu", "--vm-size", "S", "--max", "2", match="'gpu' is there already")
    assert not sent(azureml, "PUT")


def test_create_that_fails(act, azureml):
    azureml.tell("settings", operationError={"code": "ClusterCoreQuotaReached", "message": "No more cores."})
    failed = act.fail("cluster", "create", "fresh", "--vm-size", "S", "--max", "2", status=6,
                      match="cannot create the cluster 'fresh'.*ClusterCoreQuotaReached")
    assert "No more cores" in failed


def test_create_beyond_the_quota(act, azureml):
    act.fail("cluster", "create", "fresh", "--vm-size", "S", "--max", "101", status=6,
             match="cannot create the cluster 'fresh'.*ClusterCoreQuotaReached.*total vCPU quota of 9600")


def test_create_that_ends_in_a_failed_state(act, azureml):
    """The operation went well, the cluster did not."""
    azureml.tell("settings", provisioned={"provisioningState": "Failed", "provisioningErrors": [
        {"error": {"code": "SubnetFull", "message": "No address is left."}}]})
    act.fail("cluster", "create", "fresh", "--vm-size", "S", "--max", "2",
             match="cannot create the cluster 'fresh': Failed: SubnetFull: No address is left$")
    assert (show(act, "fresh")["state"], show(act, "fresh")["error"]) == ("Failed", "SubnetFull: No address is left")
    assert re.search(r"^error +SubnetFull: No address is left$", act.run("cluster", "show", "fresh").out, re.M)
    act.fail("cluster", "create", "fresh", "--vm-size", "S", "--max", "2",
             match="is there already, and 'Failed'.*delete fresh")


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_it_waits(act, azureml, sig):
    azureml.tell("settings", operationPolls=10**6)
    process = act.start("cluster", "create", "fresh", "--vm-size", "S", "--max", "2")
    assert process.stderr.readline() == b"cluster 'fresh': Accepted\n"
    process.send_signal(sig)
    _, err = process.communicate()
    assert process.returncode == 128 + sig and b"the change goes on at the service" in err
    assert show(act, "fresh")["state"] == "Creating"


@pytest.mark.parametrize("name", ["my cluster", "a/b", "../gpu", "1st", "-x-", "under_score"])
def test_names_that_cannot_be(act, azureml, name):
    act.fail("cluster", "create", "--vm-size", "S", "--max", "2", "--", name, status=2, match="cannot be the name")
    assert azureml.requests() == []


@pytest.mark.parametrize("words, match", [
    (("list", "--max", "3"), "'a cluster list' takes no --max"),
    (("delete", "gpu", "-y", "--nodes", "0"), "takes no --nodes"),
    (("resize", "gpu", "--nodes", "2", "--max", "4"), "takes no --max"),
    (("autoscale", "gpu", "--min", "0", "--vm-size", "S"), "takes no --vm-size")])
def test_options_of_another_verb(act, azureml, words, match):
    act.fail("cluster", *words, status=2, match=match)
    assert azureml.requests() == []


def test_resize_and_autoscale(act, azureml):
    act.run("cluster", "resize", "gpu", "--nodes", "2")
    assert sent(azureml, "PATCH")[0][1] == {"properties": {"properties": {"scaleSettings": {
        "minNodeCount": 2, "maxNodeCount": 2, "nodeIdleTimeBeforeScaleDown": "PT120S"}}}}
    cluster = act.run("cluster", "autoscale", "--min", "0", "--max", "8", "--idle", "10m", "--json").json["cluster"]
    assert (cluster["min_nodes"], cluster["max_nodes"], cluster["idle_s"]) == (0, 8, 600)
    act.run("cluster", "autoscale", "gpu", "--max", "5")
    cluster = show(act, "gpu")
    assert (cluster["min_nodes"], cluster["max_nodes"], cluster["idle_s"]) == (0, 5, 600)


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_scale_with_bad_words(act, azureml, dry):
    """A dry run refuses what is refused."""
    for words, match in (
            (("resize", "gpu"), "--nodes"),
            (("autoscale", "gpu"), "nothing to change"),
            (("autoscale", "gpu", "--min", "5"), "at least 5 and at most 4"),
            (("resize", "itpgpu", "--nodes", "1"), "'Kubernetes', not a managed cluster"),
            (("resize", "missing", "--nodes", "1"), "'a cluster list' shows"),
            (("delete", "-y", "itpgpu"), "not a managed cluster"),
            (("create", "gpu", "--vm-size", "S", "--max", "2"), "'gpu' is there already"),
            (("create", "fresh", "--vm-size", "S", "--min", "3", "--max", "2"), "at least 3 and at most 2")):
        act.fail("cluster", *words, *dry, status=None, match=match)
    assert not [method for method in ("PATCH", "PUT", "DELETE") if sent(azureml, method)]


@pytest.mark.parametrize("words, said", [
    (("create", "fresh", "--vm-size", "S", "--max", "2"), "would create cluster 'fresh' of nodes S, at most 2"),
    (("resize", "gpu", "--nodes", "9"), "would resize cluster 'gpu', at least 9, at most 9"),
    (("autoscale", "gpu", "--max", "9", "--idle", "5m"), "would resize cluster 'gpu', at most 9, gone 5m00s after"),
    (("delete", "-y", "gpu"), "would delete cluster 'gpu' with all its nodes"),
])
def test_dry_runs(act, azureml, words, said):
    before = act.run("cluster", "list", "--json").json
    assert said in act.run("cluster", "--dry-run", *words).err
    told = act.run("--dry-run", "cluster", *words, "--json").json
    assert (told.pop("cluster", None) is not None) == (words[0] == "create")
    assert told == {"version": 1, "dry_run": True, "action": told["action"], "name": words[1].replace("-y", "gpu")}
    assert act.run("cluster", "list", "--json").json == before
    act.fail("cluster", "list", "--dry-run", status=2, match="takes no --dry-run; it takes --json")
    act.fail("cluster", "show", "-y", "gpu", status=2, match="takes no --yes")


def test_delete(act, azureml):
    act.fail("cluster", "delete", status=2, match="which cluster")
    act.fail("cluster", "delete", "gpu", status=2, match="add -y")
    assert not sent(azureml, "DELETE")
    act.fail("cluster", "delete", "-y", "itpgpu", status=None, match="not a managed cluster")
    assert "'gpu' is deleted" in act.run("cluster", "delete", "-y", "gpu").err
    ((url, _),) = sent(azureml, "DELETE")
    assert "underlyingResourceAction=Delete" in url
    act.fail("cluster", "show", "gpu", status=None, match="cannot look at the cluster 'gpu'")


@pytest.mark.parametrize("answer, status", [("n", 1), ("", 1), ("y", 0)])
def test_delete_asks(act, azureml, answer, status):
    if not shutil.which("script"):
        pytest.skip("no terminal without script(1)")
    done = subprocess.run(["script", "-qec", f"{act.programs / 'a'} cluster delete gpu", "/dev/null"], env=act.env,
                          cwd=act.project, input=f"{answer}\n".encode(), stdout=subprocess.PIPE, timeout=300)
    assert done.returncode == status and b"Delete the cluster 'gpu' with all its nodes?" in done.stdout
    assert len(sent(azureml, "DELETE")) == (status == 0)


def test_delete_what_is_not_there(act, azureml):
    act.fail("cluster", "delete", "-y", "missing", status=3, match="'a cluster list' shows")
    assert not sent(azureml, "DELETE")


def test_nodes(act, azureml):
    assert "no nodes now" in act.run("cluster", "nodes", "gpu").err
    azureml.tell("compute", name="gpu", idle=[
        {"nodeId": "tvm-1", "privateIpAddress": "10.0.0.4", "publicIpAddress": "203.0.113.7", "port": 50000,
         "nodeState": "running", "runId": "run-1"},
        {"nodeId": "tvm-2", "privateIpAddress": "10.0.0.5", "nodeState": "idle"}])
    rows = [row.split() for row in act.run("cluster", "nodes", "gpu").out.splitlines()]
    assert rows == [["NODE", "STATE", "PUBLIC", "PRIVATE", "PORT", "RUN"],
                    ["tvm-1", "running", "203.0.113.7", "10.0.0.4", "50000", "run-1"],
                    ["tvm-2", "idle", "-", "10.0.0.5", "-", "-"]]
    answer = act.run("cluster", "nodes", "--json").json
    assert answer["version"] == 1 and answer["name"] == "gpu"
    assert answer["nodes"][1] == {"id": "tvm-2", "state": "idle", "public_address": None,
                                  "private_address": "10.0.0.5", "port": None, "run": None}


def test_no_permission(act, azureml):
    azureml.faults({"method": "PUT", "forbidden": "Microsoft.MachineLearningServices/workspaces/computes/write"})
    act.fail("cluster", "create", "fresh", "--vm-size", "S", "--max", "2", status=None,
             match="Microsoft.MachineLearningServices/workspaces/computes/write")


def test_words(act, azureml):
    act.fail("cluster", "lisst", status=2, match="did you mean 'list'")
    act.fail("cluster", "list", "gpu", status=2, match="takes no name")
    assert act.run("cluster").out == act.run("cluster", "list").out


def test_other_platforms(act):
    act.fail("-c", "local", "cluster", "list", status=None, match="'local' has no managed clusters: choose a .*-c")


def test_nodes_on_many_pages(act, azureml):
    azureml.tell("settings", pageSize=1)
    azureml.tell("compute", name="gpu", idle=[{"nodeId": f"tvm-{n}", "nodeState": "idle"} for n in range(3)])
    answer = act.run("cluster", "nodes", "gpu", "--json").json
    assert [n["id"] for n in answer["nodes"]] == ["tvm-0", "tvm-1", "tvm-2"]
