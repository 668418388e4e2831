"""The node pools of a cluster of Azure Kubernetes Service: what there is, changing it, and the login to the cluster."""
import json
import pathlib
import re
import shutil
import signal
import stat
import subprocess

import pytest

import azureml_double


@pytest.fixture
def aks(act, azureml):
    """The cluster file "aks" of the project, and the double behind it; HOME has no kubeconfig."""
    act.env.pop("KUBECONFIG", None)
    write(act, azureml)
    return azureml


def write(act, azureml, name="aks", kubeconfig=None, **more):
    act.cluster(name, folders=(), extra={
        "platform": "k8s", "k8s": {"image": "debian:12", **({"kubeconfig": str(kubeconfig)} if kubeconfig else {})},
        "aks": {"subscription": azureml_double.SUBSCRIPTION, "resource_group": "rg", "cluster": "kube", "pool": "gpu",
                "endpoint": azureml.links["arm"], **more}})


def run(act, *words, **options):
    return act.run("-c", "aks", "cluster", *words, **options)


def fail(act, *words, **options):
    return act.fail("-c", "aks", "cluster", *words, **options)


def show(act, name):
    return run(act, "show", "--json", name).json["cluster"]


def sent(azureml, *methods):
    """The last part of the URLs, and the bodies, of changes."""
    return [(r["url"].split("?")[0].split("/")[-1], r["body"] and json.loads(r["body"]))
            for r in azureml.requests("arm") if r["method"] in (methods or ("PUT", "DELETE", "PATCH"))]


def pool(azureml, name="gpu", **changes):
    azureml.tell("managed", name="kube", pools={name: changes})


# ---- looking


def test_list_and_show(act, aks):
    rows = [row.split() for row in run(act, "list").out.splitlines()]
    assert rows[1:] == [["system", "System", "Succeeded", "Standard_D2s_v5", "-", "-", "1", "-", "-", "-"],
                        ["gpu", "User", "Succeeded", "Standard_ND96asr_v4", "-", "-", "2", "-", "-", "-"]]
    answer = run(act, "list", "--json").json
    assert [(c["name"], c["autoscaler"], c["nodes"]) for c in answer["clusters"]] == [
        ("system", "off", 1), ("gpu", "off", 2)]

    text = run(act, "show").out  # aks.pool
    assert re.search(r"^name +gpu$", text, re.M)
    assert re.search(r"^type +User$", text, re.M)
    assert re.search(r"^taints +sku=gpu:NoSchedule$", text, re.M)
    pool(aks, enableAutoScaling=True, minCount=0, maxCount=8)
    text = run(act, "show", "gpu").out
    assert re.search(r"^nodes +2, at least 0, at most 8$", text, re.M)
    assert re.search(r"^autoscaler +on$", text, re.M)


def test_a_stopped_pool(act, aks):
    pool(aks, powerState={"code": "Stopped"})
    assert show(act, "gpu")["state"] == "Stopped"


def test_list_on_many_pages(act, aks):
    aks.tell("settings", pageSize=1)
    assert [c["name"] for c in run(act, "list", "--json").json["clusters"]] == ["system", "gpu"]


def test_what_is_not_there(act, aks):
    fail(act, "show", "cpu", status=3,
         match="cannot look at the node pool 'cpu' of the cluster 'kube'.*'a cluster list'")
    aks.tell("managed", name="kube", remove=True)
    fail(act, "list", status=3, match="cannot list the node pools of the cluster 'kube'.*'a cluster create' makes")


@pytest.mark.parametrize("key", ["subscription", "resource_group", "cluster"])
def test_a_cluster_file_without(act, aks, key):
    write(act, aks, **{key: None})
    fail(act, "list", status=None, match=f"'a cluster' needs 'aks.{key}' in the cluster file")
    write(act, aks, pool=None)
    fail(act, "show", status=2, match="has no aks.pool: name the node pool that is meant")
    assert aks.requests() == []


def test_an_endpoint_of_somebody_else(act, aks):
    write(act, aks, endpoint="https://management.example.com")
    fail(act, "list", status=None, match="management.example.com")


# ---- making


def test_create(act, aks):
    write(act, aks, node_taints=["sku=gpu:NoSchedule"], node_labels={"team": "vision", "n": 3, "fast": True})
    done = run(act, "create", "fresh", "--vm-size", "Standard_NC6", "--max", "3", "--min", "1", "--low-priority")
    assert re.search(r"^name +fresh$", done.out, re.M)
    assert "node pool 'fresh': " in done.err and "Succeeded" in done.err
    assert sent(aks) == [("fresh", {"properties": {
        "mode": "User", "type": "VirtualMachineScaleSets", "osType": "Linux", "vmSize": "Standard_NC6", "count": 1,
        "enableAutoScaling": True, "minCount": 1, "maxCount": 3,
        "nodeLabels": {"team": "vision", "n": "3", "fast": "true"}, "nodeTaints": ["sku=gpu:NoSchedule"],
        "scaleSetPriority": "Spot", "scaleSetEvictionPolicy": "Delete", "spotMaxPrice": -1}})]
    fresh = show(act, "fresh")
    assert (fresh["state"], fresh["vm_priority"], fresh["max_nodes"]) == ("Succeeded", "Spot", 3)


def test_create_from_the_cluster_file(act, aks):
    write(act, aks, vm_size="Standard_NC6", max=5)
    assert "accepted" in run(act, "create", "fresh", "--no-wait").err
    assert not [r for r in aks.requests("arm") if "/operations/" in r["url"]]
    fresh = show(act, "fresh")
    assert (fresh["vm_size"], fresh["min_nodes"], fresh["max_nodes"]) == ("Standard_NC6", 0, 5)


def test_create_in_a_subnet_with_tags(act, aks):
    subnet = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/nodes"
    run(act, "create", "fresh", "--vm-size", "S", "--max", "2", "--subnet", subnet, "--tag", "team=vision")
    ((_, body),) = sent(aks)
    assert (body["properties"]["vnetSubnetID"], body["properties"]["tags"]) == (subnet, {"team": "vision"})


@pytest.mark.parametrize("name", ["gpu-pool", "GPU", "1st", "abcdefghijklm", "a_b", "a/b"])
def test_names_that_cannot_be(act, aks, name):
    fail(act, "create", name, "--vm-size", "S", "--max", "2", status=2, match="cannot be the name of a node pool")
    assert aks.requests() == []


@pytest.mark.parametrize("words, match", [
    ((), "needs --vm-size and --max"),
    (("--vm-size", "S"), "needs --vm-size and --max"),
    (("--vm-size", "S", "--max", "2", "--min", "3"), "node pool 'fresh' cannot have at least 3 and at most 2"),
    (("--vm-size", "S", "--max", "2", "--idle", "5m"), "--idle has no effect on node pools"),
    (("--vm-size", "S", "--max", "2", "--ssh-key", "id.pub"), "--ssh-key has no effect on node pools"),
    (("--vm-size", "S", "--max", "2", "--location", "westus2"), "--location is for a new cluster"),
    (("--vm-size", "S", "--max", "2", "--identity", "system"), "--identity has no effect on node pools"),
    (("--vm-size", "S", "--max", "2", "--no-public-ip"), "--no-public-ip has no effect on node pools"),
    (("--vm-size", "S", "--max", "2", "--node-image", "/subscriptions/s/x/images/i"), "--node-image has no effect on"),
])
def test_create_with_bad_words(act, aks, words, match):
    act.write("id.pub", "ssh-ed25519 AAAA ann@contoso\n")
    fail(act, "create", "fresh", *words, status=2, match=match)
    assert not sent(aks)


def test_create_with_a_label_that_is_no_text(act, aks):
    write(act, aks, node_labels={"a": {"b": "c"}})
    fail(act, "create", "fresh", "--vm-size", "S", "--max", "2", status=None, match="aks.node_labels.*'a' must be text")
    assert not sent(aks)


def test_create_what_is_there(act, aks):
    fail(act, "create", "gpu", "--vm-size", "S", "--max", "2", match="node pool 'gpu' is there already.*autoscale gpu")
    pool(aks, provisioningState="Failed")
    fail(act, "create", "gpu", "--vm-size", "S", "--max", "2", match="is there already, and 'Failed'.*delete gpu")
    assert not sent(aks)


def test_create_beyond_the_quota(act, aks):
    fail(act, "create", "fresh", "--vm-size", "S", "--max", "101", status=6,
         match="cannot create the node pool 'fresh'.*ErrCode_InsufficientVCPUQuota.*remaining 96")


def test_create_that_fails(act, aks):
    aks.tell("settings", operationError={"code": "ReconcileVMSSAgentPoolFailed", "message": "No node came."})
    fail(act, "create", "fresh", "--vm-size", "S", "--max", "2",
         match="cannot create the node pool 'fresh'.*No node came")
    assert show(act, "fresh")["state"] == "Failed"


def test_interrupted_while_it_waits(act, aks):
    aks.tell("settings", operationPolls=10**6)
    process = act.start("-c", "aks", "cluster", "create", "fresh", "--vm-size", "S", "--max", "2")
    assert process.stderr.readline() == b"node pool 'fresh': Accepted\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 128 + signal.SIGINT and b"the change goes on at the service" in err
    assert show(act, "fresh")["state"] == "Creating"


def test_another_change_is_under_way(act, aks):
    aks.tell("managed", name="kube", busy="Upgrading")
    for words in (("create", "fresh", "--vm-size", "S", "--max", "2"), ("resize", "gpu", "--nodes", "1"),
                  ("delete", "-y", "gpu")):
        fail(act, *words, match=r"Another operation \(Upgrading\) is in progress.*'a cluster list' shows")


# ---- a cluster where there is none


SETUP = ("create", "gpu", "--vm-size", "Standard_ND96asr_v4", "--max", "4")


def test_create_with_the_cluster(act, aks):
    aks.tell("managed", name="kube", remove=True)
    fail(act, *SETUP, status=2,
         match="There is no cluster 'kube'.*in eastus.*costs money.*'az aks delete -g rg -n kube'")
    assert not sent(aks)
    done = run(act, *SETUP, "-y")
    assert re.search(r"^name +gpu$", done.out, re.M)
    ((name, body),) = sent(aks)
    assert name == "kube"
    assert body == {"location": "eastus", "identity": {"type": "SystemAssigned"}, "properties": {
        "dnsPrefix": "kube", "enableRBAC": True,
        "agentPoolProfiles": [
            {"name": "system", "mode": "System", "type": "VirtualMachineScaleSets", "osType": "Linux",
             "vmSize": "Standard_D2s_v5", "count": 1},
            {"name": "gpu", "mode": "User", "type": "VirtualMachineScaleSets", "osType": "Linux",
             "vmSize": "Standard_ND96asr_v4", "count": 0, "enableAutoScaling": True, "minCount": 0, "maxCount": 4,
             "nodeLabels": {}}],
        "networkProfile": {"networkPlugin": "azure", "networkPluginMode": "overlay"},
        "storageProfile": {"blobCSIDriver": {"enabled": True}}}}
    assert [c["state"] for c in run(act, "list", "--json").json["clusters"]] == ["Succeeded", "Succeeded"]


@pytest.mark.parametrize("answer, status", [("n", 1), ("y", 0)])
def test_create_with_the_cluster_asks(act, aks, answer, status):
    if not shutil.which("script"):
        pytest.skip("no terminal without script(1)")
    aks.tell("managed", name="kube", remove=True)
    command = f"{act.programs / 'a'} -c aks cluster {' '.join(SETUP)}"
    done = subprocess.run(["script", "-qec", command, "/dev/null"], env=act.env, cwd=act.project,
                          input=f"{answer}\n".encode(), stdout=subprocess.PIPE, timeout=300)
    assert done.returncode == status and b"costs money" in done.stdout
    assert len(sent(aks)) == (status == 0)


def test_where_the_cluster_is_made(act, aks):
    aks.tell("managed", name="kube", remove=True)
    write(act, aks, location="westeurope", system_vm_size="Standard_D4s_v5")
    said = run(act, "--dry-run", *SETUP).err
    assert "in westeurope with one node Standard_D4s_v5" in said and "would create node pool 'gpu'" in said
    run(act, *SETUP, "-y", "--location", "northeurope")
    ((_, body),) = sent(aks)
    assert body["location"] == "northeurope"


def test_no_resource_group(act, aks):
    aks.tell("managed", name="kube", remove=True)
    write(act, aks, resource_group="other")
    fail(act, *SETUP, "-y", status=3, match="cannot look at the resource group 'other'.*'az group create --name other")
    assert not sent(aks)


def test_the_name_of_the_nodes_of_the_cluster(act, aks):
    aks.tell("managed", name="kube", remove=True)
    fail(act, "create", "system", "--vm-size", "S", "--max", "2", "-y", status=2, match="cannot be 'system'")


# ---- changing


def test_resize_keeps_what_others_set(act, aks):
    before = show(act, "gpu")
    cluster = run(act, "resize", "gpu", "--nodes", "5", "--json").json["cluster"]
    assert cluster == {**before, "nodes": 5}
    ((name, body),) = sent(aks)
    properties = body["properties"]
    assert name == "gpu"
    assert (properties["nodeLabels"], properties["tags"]) == ({"team": "vision"}, {"owner": "ann"})
    assert properties["upgradeSettings"] == {"maxSurge": "10%"} and properties["maxPods"] == 250
    assert "provisioningState" not in properties and "nodeImageVersion" not in properties
    run(act, "resize", "gpu", "--nodes", "0")
    assert show(act, "gpu")["nodes"] == 0


def test_autoscale(act, aks):
    cluster = run(act, "autoscale", "--max", "8", "--json").json["cluster"]
    assert (cluster["autoscaler"], cluster["min_nodes"], cluster["max_nodes"], cluster["nodes"]) == ("on", 0, 8, 2)
    run(act, "autoscale", "gpu", "--min", "1")
    cluster = show(act, "gpu")
    assert (cluster["min_nodes"], cluster["max_nodes"]) == (1, 8)
    run(act, "resize", "gpu", "--nodes", "3")
    cluster = show(act, "gpu")
    assert (cluster["autoscaler"], cluster["max_nodes"], cluster["nodes"]) == ("off", None, 3)
    assert "minCount" not in sent(aks)[-1][1]["properties"]


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_scale_with_bad_words(act, aks, dry):
    """A dry run refuses what is refused."""
    fail(act, "resize", "gpu", *dry, status=2, match="--nodes")
    fail(act, "autoscale", "gpu", *dry, status=2, match="nothing to change")
    fail(act, "autoscale", "gpu", "--min", "1", *dry, status=2, match="'gpu' needs --max")
    fail(act, "autoscale", "gpu", "--min", "5", "--max", "4", *dry, status=2, match="at least 5 and at most 4")
    fail(act, "autoscale", "gpu", "--max", "4", "--idle", "5m", *dry, status=2, match="setting of the whole cluster")
    fail(act, "resize", "system", "--nodes", "0", *dry, status=2, match="'system' is a system pool.*fewer nodes than 1")
    fail(act, "autoscale", "system", "--min", "0", "--max", "2", *dry, status=2, match="'system' is a system pool")
    fail(act, "resize", "missing", "--nodes", "1", *dry, status=3, match="'a cluster list' shows")
    fail(act, "create", "gpu", "--vm-size", "S", "--max", "2", *dry, match="'gpu' is there already")
    fail(act, "delete", "-y", "gp", *dry, status=3, match="'a cluster list' shows")
    assert not sent(aks)
    run(act, "autoscale", "system", "--max", "2")
    assert show(act, "system")["min_nodes"] == 1


@pytest.mark.parametrize("words, said", [
    (("create", "fresh", "--vm-size", "S", "--max", "2"),
     "would create node pool 'fresh' of nodes S, at least 0, at most 2"),
    (("resize", "gpu", "--nodes", "9"), "would resize node pool 'gpu', at least 9, at most 9"),
    (("autoscale", "gpu", "--max", "9"), "would resize node pool 'gpu', at most 9"),
    (("delete", "-y", "gpu"), "would delete node pool 'gpu' with all its nodes"),
])
def test_dry_runs(act, aks, words, said):
    assert said in run(act, "--dry-run", *words).err
    assert run(act, "--dry-run", *words, "--json").json["dry_run"]
    assert not sent(aks)


def test_delete(act, aks):
    fail(act, "delete", status=2, match="which node pool")
    fail(act, "delete", "gpu", status=2, match="Delete the node pool 'gpu'.*add -y|add -y")
    fail(act, "delete", "-y", "gp", status=3, match="'a cluster list' shows")
    assert not sent(aks)
    assert "node pool 'gpu' is deleted" in run(act, "delete", "-y", "gpu").err
    fail(act, "show", "gpu", status=3)
    fail(act, "delete", "-y", "system", match="at least one system agent pool")


def test_no_permission(act, aks):
    aks.faults({"method": "PUT", "forbidden": "Microsoft.ContainerService/managedClusters/agentPools/write"})
    fail(act, "resize", "gpu", "--nodes", "1", status=None,
         match="Microsoft.ContainerService/managedClusters/agentPools/write")


# ---- nodes


def test_nodes(act, aks, kubernetes_api):
    write(act, aks, kubeconfig=kubernetes_api.kubeconfig)
    fail(act, "nodes", status=7, match="another cluster than 'kube'.*'a cluster login'")
    aks.tell("managed", name="kube", properties={"fqdn": "127.0.0.1"})
    assert "node pool 'gpu' has no nodes now" in run(act, "nodes").err
    (first, *_) = kubernetes_api.tell("objects", kind="Node", namespace="")
    name = first["metadata"]["name"]
    status, _ = kubernetes_api.call("PATCH", f"/api/v1/nodes/{name}", {"metadata": {"labels": {
        "kubernetes.azure.com/agentpool": "gpu"}}}, "application/merge-patch+json")
    assert status == 200
    answer = run(act, "nodes", "gpu", "--json").json
    assert [(n["id"], n["state"], n["run"]) for n in answer["nodes"]] == [(name, "Ready", None)]
    fail(act, "nodes", "cpu", status=3, match="node pool 'cpu'")


def test_nodes_without_a_login(act, aks):
    fail(act, "nodes", status=3, match="'a cluster login' fetches the login to the cluster 'kube'")


# ---- the login


OTHERS = """\
# mine
apiVersion: v1
kind: Config
preferences: {}
clusters:
# at home
- cluster:
    server: https://10.0.0.1:6443  # the old one
  name: home
contexts:
- context:
    cluster: home
    user: me
  name: home
current-context: home
users:
- name: me
  user:
    token: abc
# the end
"""


def kubeconfig(act):
    return pathlib.Path(act.env["HOME"]) / ".kube/config"


def test_login_where_there_are_none(act, aks):
    file = kubeconfig(act)
    assert f"would put the context 'kube' into '{file}'" in run(act, "login", "--dry-run").err
    assert not file.exists()
    answer = run(act, "login", "--json").json
    assert answer == {"version": 1, "dry_run": False, "file": str(file), "context": "kube", "changed": True}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert "current-context: \"kube\"" in text and "command: kubelogin" in text
    if shutil.which("kubectl"):
        view = json.loads(subprocess.check_output(["kubectl", "config", "view", "-o", "json"], env=act.env))
        assert view["users"][0]["user"]["exec"]["args"][:2] == ["get-token", "--server-id"]
        assert view["current-context"] == "kube"
    assert "has the context 'kube' already" in run(act, "login").err
    assert file.read_text() == text


def test_a_login_is_trusted_by_who_asked_for_it(act, aks):
    """The cluster file is the project's: what the login adds to where it leads needs no second word."""
    del act.env["ACT_TRUSTED_PROJECTS"]
    act.account("store", folder="store")
    write(act, aks)
    run(act, "list")
    said = run(act, "login").err
    assert "so this project is trusted to use it: aux_data/aml/aks.yaml: 'platform' leads to the context 'kube'" in said
    for verb in ("list", "show", "login"):
        run(act, verb)
    assert act.run("-c", "aks", "trust", "--json").json["untrusted"] == []
    write(act, aks, name="other")
    assert "'platform' leads to" in act.fail("-c", "other", "cluster", "list", status=4), "nobody asked for that one"


def test_login_beside_others(act, aks):
    file = kubeconfig(act)
    file.parent.mkdir()
    file.write_text(OTHERS)
    assert "'k8s.context: kube' in the cluster file" in run(act, "login").err
    text = file.read_text()
    lines = iter(text.splitlines())
    assert all(line in lines for line in OTHERS.splitlines())  # in their order
    assert text.count("current-context") == 1
    assert re.search(r"^  name: home\n- cluster:\n    certificate-authority-data: .*\n    server: https://kube", text,
                     re.M)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_login_ask_before_they_replace(act, aks):
    file = kubeconfig(act)
    run(act, "login")
    before = file.read_text()
    file.write_text(before.replace("kube-dns.hcp.eastus", "old-dns.hcp.eastus") + "# mine\n")
    said = fail(act, "login", status=2, match="says something else of cluster 'kube'")
    assert "add -y" in said
    assert "old-dns" in file.read_text()
    run(act, "login", "-y")
    assert file.read_text() == before + "# mine\n"


def test_login_into_a_named_file(act, aks, tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text(OTHERS)
    link.symlink_to(real)
    act.env["KUBECONFIG"] = f"{link}:/nowhere"
    run(act, "login")
    assert link.is_symlink() and "kubelogin" in real.read_text()


@pytest.mark.parametrize("text, match", [
    ("- a\n- b\n", "no kubeconfig"),
    ("a: [\n", "config:"),
    ("clusters: {a: b}\n", "'clusters' must be a list"),
    ('{"clusters": [{"name": "x", "cluster": {}}], "users": []}\n', "not written as kubectl writes it"),
])
def test_login_for_a_file_that_cannot_be_edited(act, aks, text, match):
    file = kubeconfig(act)
    file.parent.mkdir()
    file.write_text(text)
    fail(act, "login", "-y", status=None, match=match)
    assert file.read_text() == text


def test_login_are_not_for_a_workspace(act, azureml):
    act.fail("cluster", "login", status=None, match="have no login of their own")
    act.fail("-c", "aml", "cluster", "login", "gpu", status=2, match="takes no name")


def test_no_login(act, aks):
    aks.faults({"method": "POST", "match": "listClusterUserCredential", "answer": {"status": 200,
                                                                                  "json": {"kubeconfigs": []}}})
    fail(act, "login", match="gives no kubeconfig")
    aks.faults({"method": "POST", "match": "listClusterUserCredential",
                "forbidden": "Microsoft.ContainerService/managedClusters/listClusterUserCredential/action"})
    fail(act, "login", status=None, match="listClusterUserCredential/action")
    aks.tell("managed", name="kube", remove=True)
    fail(act, "login", status=3, match="'a cluster create' makes the cluster 'kube'")
    assert not kubeconfig(act).exists()


def test_nothing_secret_is_traced(act, aks):
    done = run(act, "login", env={"ACT_TRACE": "all"})
    assert "listClusterUserCredential" in done.err and "LS0tLS1" not in done.err
