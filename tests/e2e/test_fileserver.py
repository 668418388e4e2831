"""File servers in Azure: NFS shares of premium storage accounts, on the double of the resource manager."""
import json
import os
import pty
import re
import signal

import pytest

import azureml_double
from waiting import Process

SUBNET = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/nodes"
ADDRESS = "teamdata.file.core.windows.net:/teamdata/data"
MOUNT = ("sudo mkdir -p /mnt/teamdata && sudo mount -t nfs -o vers=4,minorversion=1,sec=sys,nconnect=4 "
         f"{ADDRESS} /mnt/teamdata")
LINES = "config_param:\n  data_folder:\n    mode: path\n    path: /mnt/teamdata\n"


NOT_FOUND, DENIED, NO_CAPACITY = 3, 4, 6


def fail(act, *words, match="", **options):
    return act.fail(*words, match=re.escape(match), **options)


def create(act, *words, name="teamdata", **options):
    return act.run("fileserver", "create", name, "--subnet", SUBNET, *words, **options)


def refuse(act, *words, name="teamdata", **options):
    return fail(act, "fileserver", "create", name, "--subnet", SUBNET, *words, **options)


def show(act, name="teamdata"):
    return act.run("fileserver", "show", "--json", name).json["server"]


def sent(azureml, *methods):
    """The last part of the URLs, and the bodies, of changes."""
    return [(r["url"].split("?")[0].split("/")[-1], r["body"] and json.loads(r["body"]))
            for r in azureml.requests("arm") if r["method"] in (methods or ("PUT", "DELETE", "PATCH"))]


def made_by_others(azureml, name="teamdata", **more):
    azureml.tell("fileserver", name=name, **{"shares": {"old": {"shareQuota": 200, "enabledProtocols": "NFS",
                                                               "usedGiB": 12}}, **more})


@pytest.mark.smoke
def test_create(act, azureml):
    done = create(act, "-y", "--size", "1T", "--tag", "team=vision")
    account, share = sent(azureml)
    assert account == ("teamdata", {
        "location": "eastus", "kind": "FileStorage", "sku": {"name": "Premium_LRS"},
        "tags": {"team": "vision", "act:fileserver": "data"}, "properties": {
            "supportsHttpsTrafficOnly": False, "minimumTlsVersion": "TLS1_2", "allowBlobPublicAccess": False,
            "networkAcls": {"defaultAction": "Deny", "virtualNetworkRules": [{"id": SUBNET, "action": "Allow"}]}}})
    assert share == ("data", {"properties": {"enabledProtocols": "NFS", "rootSquash": "NoRootSquash",
                                             "shareQuota": 1024}})
    assert "file server 'teamdata': Accepted" in done.err and "file server 'teamdata': Succeeded" in done.err
    assert f"address      {ADDRESS}\n" in done.out
    assert f"mount        {MOUNT}\n" in done.out
    assert LINES in done.out


def test_the_lines_are_those_of_a_cluster_file(act, azureml):
    text = create(act, "-y").out
    act.write("aux_data/aml/nodes.yaml", "platform: slurm\n" + text[text.index("config_param:"):])
    folder = act.run("-c", "nodes", "config", "show", "--json").json
    assert "/mnt/teamdata" in json.dumps(folder)


def test_create_elsewhere(act, azureml):
    create(act, "-y", "--location", "West Europe", "--redundancy", "zrs")
    assert sent(azureml)[0][1]["location"] == "West Europe"
    server = show(act)
    assert (server["redundancy"], server["made_by_act"], server["networks"]) == ("zrs", True, [SUBNET])
    assert server["shares"] == [{"name": "data", "protocol": "nfs", "gib": 100, "used": 0, "address": ADDRESS,
                                 "mount": MOUNT}]


def test_create_asks(act, azureml):
    refuse(act, status=2, match="-y")
    assert sent(azureml) == []


def test_dry_run(act, azureml):
    done = create(act, "--dry-run", "--size", "200G")
    answer = json.loads(done.out)
    assert (answer["dry_run"], answer["action"], answer["name"]) == (True, "create", "teamdata")
    assert [(r["method"], r["url"].split("/")[-1]) for r in answer["requests"]] == [
        ("PUT", "teamdata"), ("PUT", "data")]
    assert answer["requests"][1]["body"]["properties"]["shareQuota"] == 200
    assert "would create the file server 'teamdata' in eastus" in done.err
    assert sent(azureml) == []


def test_the_same_command_goes_on(act, azureml):
    create(act, "-y")
    azureml.tell("forget")
    done = create(act)  # nothing is left to pay for, so nothing is asked
    assert sent(azureml) == [] and ADDRESS in done.out
    assert "is there already" in create(act, "--dry-run").err


def test_tags_of_one_that_is_there(act, azureml):
    create(act, "-y", "--tag", "team=vision", "--tag", "cost=1")
    azureml.tell("forget")
    dry = create(act, "--dry-run", "--tag", "cost=2")
    assert json.loads(dry.out)["requests"][0]["method"] == "PATCH" and "would set its tags" in dry.err
    create(act, "--tag", "cost=2")
    assert sent(azureml) == [("teamdata", {"tags": {"act:fileserver": "data", "team": "vision", "cost": "2"}})]
    azureml.tell("forget")
    create(act, "--tag", "team=vision")
    assert sent(azureml) == []


def test_what_is_not_asked_for_may_be_as_it_is(act, azureml):
    create(act, "-y", "--size", "1T", "--location", "westeurope", "--redundancy", "zrs")
    azureml.tell("forget")
    assert ADDRESS in create(act).out and sent(azureml) == []


def test_no_wait_and_going_on(act, azureml):
    azureml.tell("settings", operationPolls=1)
    done = create(act, "-y", "--no-wait")
    assert "is accepted" in done.err and ADDRESS not in done.out
    assert [name for name, _ in sent(azureml)] == ["teamdata"]
    assert show(act)["state"] == "Creating"
    made_by_others(azureml, tags={"act:fileserver": "data"}, shares={}, properties={  # it is over
        "networkAcls": {"defaultAction": "Deny", "virtualNetworkRules": [{"id": SUBNET, "action": "Allow"}]}})
    azureml.tell("forget")
    create(act, "-y")
    assert [name for name, _ in sent(azureml)] == ["data"]


def test_waits_for_one_that_is_being_made(act, azureml):
    made_by_others(azureml, tags={"act:fileserver": "data"}, shares={}, properties={
        "provisioningState": "Creating",
        "networkAcls": {"defaultAction": "Deny", "virtualNetworkRules": [{"id": SUBNET, "action": "Allow"}]}})
    azureml.tell("settings", provisionsOnLook=3)
    assert ADDRESS in create(act, "-y").out
    assert [name for name, _ in sent(azureml)] == ["data"]


@pytest.mark.parametrize("words, match", [
    (("--size", "99G"), "cannot hold 99.0 GiB: it has 100 GiB to 100 TiB"),
    (("--size", "101T"), "cannot hold 101.0 TiB"),
    (("--size", "153601M"), "in whole GiB"),
    (("--redundancy", "grs"), "--redundancy is lrs (in one place) or zrs (in several zones), not 'grs'"),
    (("--tag", "act:fileserver=x"), "'act:fileserver' is not a key"),
    (("--max", "3"), "--max"),
    (("--all",), "takes no --all")])
def test_create_what_there_cannot_be(act, azureml, words, match):
    refuse(act, "-y", *words, status=2, match=match)
    assert azureml.requests("arm") == []


@pytest.mark.parametrize("name", ["ab", "Team", "team-data", "a" * 25, ""])
def test_names_that_cannot_be(act, azureml, name):
    refuse(act, "-y", name=name, status=2, match="3 to 24 small letters and digits")
    assert azureml.requests("arm") == []


def test_create_without_a_network(act, azureml):
    fail(act, "fileserver", "create", "teamdata", "-y", status=2, match="needs --subnet")
    fail(act, "fileserver", "create", "teamdata", "-y", "--subnet", "nodes", status=2, match="must be a resource id")


def test_a_network_that_is_no_text(act, azureml):
    fail(act, "fileserver", "create", "teamdata", "-y", "--subnet", SUBNET.encode() + b"\xff", status=2, match="UTF-8")
    assert sent(azureml) == []


def test_interrupted(act, azureml):
    """The creation goes on at the service, and the same command goes on with it."""
    azureml.tell("settings", operationPolls=10**9)
    process = act.start("fileserver", "create", "teamdata", "--subnet", SUBNET, "-y")
    said = b""
    while b"InProgress" not in said:
        said += os.read(process.stderr.fileno(), 4096)
    process.send_signal(signal.SIGINT)
    said += process.communicate()[1]
    assert b"it goes on at the service; the same command goes on with it" in said and process.returncode != 0
    assert show(act)["state"] == "Creating"
    azureml.tell("settings", provisionsOnLook=2)
    assert ADDRESS in create(act, "-y").out
    assert [name for name, _ in sent(azureml)] == ["teamdata", "data"]


def test_the_name_is_taken(act, azureml):
    azureml.tell("settings", takenNames=["teamdata"])
    refuse(act, "-y", match="the name 'teamdata' is taken")
    refuse(act, "--dry-run", match="the name 'teamdata' is taken")
    assert sent(azureml) == []


def test_the_name_is_taken_meanwhile(act, azureml):
    azureml.tell("faults", [{"method": "PUT", "match": "storageAccounts/teamdata", "answer": {"status": 409, "json": {
        "error": {"code": "StorageAccountAlreadyTaken",
                  "message": "The storage account named teamdata is already taken."}}}}])
    refuse(act, "-y", match="somebody else in Azure has this name; choose another")
    assert [name for name, _ in sent(azureml)] == ["teamdata"], "it goes no further"


def test_regions(act, azureml):
    refuse(act, "-y", "--location", "moon", status=2, match="the region 'moon' has no premium files")
    refuse(act, "-y", "--redundancy", "zrs", status=2,
           match="the region 'eastus' has no premium files of the kind Premium_ZRS; see --location, --redundancy")
    azureml.tell("settings", restrictedRegions=["eastus"])
    refuse(act, "-y", status=NO_CAPACITY,
           match="your subscription may have no premium files of the kind Premium_LRS in 'eastus'")
    assert sent(azureml) == []


def test_a_resource_group_that_is_nowhere(act, azureml):
    azureml.tell("faults", [{"method": "GET", "match": "/resourceGroups/[^/]*\\?", "answer": {
        "status": 200, "json": {"name": "rg"}}}])
    refuse(act, "-y", match="does not say where the resource group 'rg' is; see --location")
    assert sent(azureml) == []


def test_a_subnet_without_an_endpoint(act, azureml):
    subnet = SUBNET.replace("/nodes", "/plain")
    fail(act, "fileserver", "create", "teamdata", "--subnet", subnet, "-y",
         match=f"'az network vnet subnet update --ids {subnet} --service-endpoints Microsoft.Storage'")
    assert [name for name, _ in sent(azureml)] == ["teamdata"]  # no share


def test_no_permission(act, azureml):
    azureml.tell("faults", [{"method": "PUT", "match": "storageAccounts/teamdata",
                             "forbidden": "Microsoft.Storage/storageAccounts/write"}])
    refuse(act, "-y", status=DENIED, match="the role 'Storage Account Contributor' on the resource group allows it")
    assert [name for name, _ in sent(azureml)] == ["teamdata"], "it goes no further"


def test_an_account_of_others(act, azureml):
    made_by_others(azureml)
    refuse(act, "-y", match="'teamdata' is a storage account that ACT did not make; choose another name")
    assert sent(azureml) == []


def test_another_one_is_there(act, azureml):
    create(act, "-y")
    refuse(act, "-y", "--size", "1T", match="is there already, with 100 GiB; 'az storage share-rm update")
    refuse(act, "-y", "--redundancy", "zrs", match="is there already, with the redundancy lrs")
    refuse(act, "-y", "--location", "westeurope", match="is there already, in 'eastus'")
    fail(act, "fileserver", "create", "teamdata", "-y", "--subnet", SUBNET.replace("nodes", "more"),
             match="for another network; 'az storage account network-rule add")


@pytest.mark.smoke
def test_list_and_show(act, azureml):
    assert "there are no file servers in the resource group" in act.run("fileserver", "list").err
    create(act, "-y", "--size", "2T")
    made_by_others(azureml, "older", location="westeurope")
    made_by_others(azureml, "blobs", kind="StorageV2")
    made_by_others(azureml, "far", group="other", shares={})
    rows = act.run("fileserver", "list").out.splitlines()
    assert rows[0].split() == ["NAME", "STATE", "SIZE", "LOCATION", "REDUNDANCY", "NETWORK", "BY", "ACT"]
    assert [row.split() for row in rows[1:]] == [
        ["teamdata", "Succeeded", "2.0", "TiB", "eastus", "lrs", "nodes", "yes"],
        ["older", "Succeeded", "200.0", "GiB", "westeurope", "lrs", "all", "no"]]
    answer = act.run("fileserver", "list", "--json").json
    assert [(s["name"], s["shares"][0]["gib"], s["shares"][0]["used"]) for s in answer["servers"]] == [
        ("teamdata", 2048, None), ("older", 200, None)]

    text = act.run("fileserver", "show", "older").out
    assert "old (NFS, 200.0 GiB, 12.0 GiB used)" in text
    assert re.search(r"^network +open to all, with which NFS does not work$", text, re.M)
    assert re.search(r"^made by act +no$", text, re.M)
    fail(act, "fileserver", "show", "blobs", status=7,
         match="'blobs' is not a file server, but a storage account of the kind")
    fail(act, "fileserver", "show", "none", status=NOT_FOUND,
         match="there is no file server 'none' in the resource group 'rg'")


def test_list_all_on_many_pages(act, azureml):
    azureml.tell("settings", pageSize=1)
    made_by_others(azureml, "older", shares={"one": {"shareQuota": 100, "enabledProtocols": "NFS"},
                                             "two": {"shareQuota": 100}})
    made_by_others(azureml, "newer")
    assert [(s["name"], len(s["shares"])) for s in act.run("fileserver", "list", "--json").json["servers"]] == [
        ("older", 2), ("newer", 1)]
    rows = act.run("fileserver", "list", "--all").out.splitlines()
    assert [row.split()[:2] for row in rows[1:]] == [["rg", "older"], ["rg", "newer"]]


def test_shares_that_may_not_be_listed(act, azureml):
    made_by_others(azureml)
    azureml.tell("faults", [{"method": "GET", "match": "teamdata/fileServices",
                             "forbidden": "Microsoft.Storage/storageAccounts/fileServices/shares/read"}])
    done = act.run("fileserver", "list")
    assert "teamdata" in done.out and "cannot list the shares of 'teamdata'" in done.err


def test_delete(act, azureml):
    create(act, "-y")
    fail(act, "fileserver", "delete", "teamdat", "-y", status=NOT_FOUND, match="there is no file server 'teamdat'")
    fail(act, "fileserver", "delete", "teamdata", status=2, match="-y")
    done = act.run("fileserver", "delete", "teamdata", "--dry-run")
    assert "would delete the file server 'teamdata' with data (NFS, 100.0 GiB, 0 B used)" in done.err
    assert show(act)["state"] == "Succeeded"
    assert act.run("fileserver", "delete", "teamdata", "-y", "--json").json == {
        "version": 1, "name": "teamdata", "deleted": True}
    fail(act, "fileserver", "show", "teamdata", status=NOT_FOUND, match="there is no file server")


def answer_on_a_terminal(act, text, *words):
    """Runs it with a terminal as stdin and stderr, on which text is typed; gives the exit status and what it showed."""
    leader, follower = pty.openpty()
    process = Process([act.programs / "a", *words], stdin=follower, stdout=follower, stderr=follower,
                               env=act.env, cwd=act.project)
    os.close(follower)
    shown = b""
    while b"?" not in shown:
        shown += os.read(leader, 4096)
    os.write(leader, text.encode())
    status = process.wait()
    os.close(leader)
    return status, shown.decode()


def test_delete_what_act_did_not_make(act, azureml):
    made_by_others(azureml)
    fail(act, "fileserver", "delete", "teamdata", "-y",
         status=DENIED, match="'teamdata' was not made by ACT, and has old (NFS, 200.0 GiB, 12.0 GiB used)")
    status, shown = answer_on_a_terminal(act, "n\n", "fileserver", "delete", "teamdata")
    assert status != 0 and "ACT did not make it. Delete" in " ".join(shown.split())
    assert sent(azureml, "DELETE") == []
    status, _ = answer_on_a_terminal(act, "y\n", "fileserver", "delete", "teamdata")
    assert status == 0 and [name for name, _ in sent(azureml, "DELETE")] == ["teamdata"]


def test_where_in_azure(act, azureml):
    """A cluster that is not in Azure needs to be told; -p tells it the double's address."""
    act.cluster("lab", folders=(), extra={"platform": "local"})
    where = ("-c", "lab", "-p", f"azureml: {{endpoint: {azureml.links['arm']}}}", "fileserver", "list")
    fail(act, *where, status=2, match="where in Azure? add --subscription ID")
    fail(act, *where, "--subscription", azureml_double.SUBSCRIPTION, status=2, match="add --resource-group NAME")
    made_by_others(azureml)
    done = act.run(*where, "--subscription", azureml_double.SUBSCRIPTION, "--resource-group", "rg")
    assert "teamdata" in done.out
    fail(act, *where, "--subscription", azureml_double.SUBSCRIPTION, "--resource-group", "nowhere", status=NOT_FOUND,
         match="nowhere")


def test_of_a_cluster_of_kubernetes(act, azureml):
    act.cluster("aks", folders=(), extra={
        "platform": "k8s", "k8s": {"image": "debian:12"},
        "aks": {"subscription": azureml_double.SUBSCRIPTION, "resource_group": "rg", "cluster": "kube",
                "endpoint": azureml.links["arm"]}})
    made_by_others(azureml)
    assert "teamdata" in act.run("-c", "aks", "fileserver", "list").out


@pytest.mark.parametrize("words, match", [
    (("make",), "'a fileserver' cannot 'make'; 'a fileserver --help' has examples"),
    (("creat", "x"), "cannot 'creat'; did you mean 'create'? 'a fileserver --help' has"),
    (("list", "x"), "takes no name, not 'x'"),
    (("show",), "which file server? 'a fileserver show NAME'"),
    (("show", "x", "--size", "1T"), "'a fileserver show' takes no --size"),
    (("delete", "x", "y"), "")])
def test_words_that_do_not_fit(act, azureml, words, match):
    fail(act, "fileserver", *words, status=2, match=match)
