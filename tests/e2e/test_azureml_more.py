"""Azure Machine Learning, played by its double: the other kinds of clusters, and what the cluster file can ask for. The
double looks at every body with the mappers of the official package."""
import hashlib
import json
import re

import pytest

import azureml_double
from test_azureml import puts, requests_of, submit, waits_for


def body(azureml, run):
    return azureml.job(run)["properties"]


# ---- kinds of clusters


def test_attached_kubernetes(act, azureml):
    azureml.cluster(platform="itp", compute_target="itpgpu", preemption_allowed=True, elastic_num_gpu=[4, 2],
                    azureml={"instance_type": "gpu2", "priority": 120})
    job = body(azureml, submit(act, "true", gpus=4))
    assert job["computeId"].endswith("/computes/itpgpu")
    assert job["resources"]["instanceType"] == "gpu2"
    assert job["resources"]["properties"]["itp"] == {
        "resource_configuration": {"gpu_count": 2},
        "priority_configuration": {"job_priority": 120, "is_preemptible": True, "node_count_set": [2, 1],
                                   "scale_interval": 480}}
    assert job["resources"]["shmSize"] == "1024g"


def test_elastic_counts_are_whole_nodes(act, azureml):
    azureml.cluster(platform="itp", compute_target="itpgpu", preemption_allowed=True, elastic_num_gpu=[3])
    act.fail("submit", "true", status=None, match="elastic_num_gpu.*'3'.*multiple of the 2")
    assert azureml.requests() == [], "nothing is asked before that is clear"


def test_elastic_run_begins_with_its_own_size(act, azureml):
    azureml.cluster(platform="itp", compute_target="itpgpu", preemption_allowed=True, elastic_num_gpu=[2, 4])
    act.fail("-n", "4", "submit", "true", status=7, match="elastic_num_gpu begins with 2.*this run has 4")
    assert azureml.requests() == []


def test_global_dispatch_is_not_used_and_that_is_said(act, azureml):
    azureml.cluster(platform="itp", compute_target="itpgpu", aks_compute_global_dispatch=True,
                    aks_compute_global_dispatch_arg={"vm_size": ["x"]})
    result = act.run("-n", "1", "submit", "true")
    assert result.err.count("aks_compute_global_dispatch is not used") == 1, result.err


# ---- ssh to the nodes


def ssh_key(act, name="id_rsa"):
    folder = act.scratch / "user/.ssh"
    folder.mkdir(parents=True, exist_ok=True)
    act.env["HOME"] = str(folder.parent)
    (folder / f"{name}.pub").write_text(f"ssh-{name} AAAA me@here\n")


@pytest.mark.parametrize("name", ["id_rsa", "id_ed25519"])
def test_ssh_to_a_managed_cluster(act, azureml, name):
    ssh_key(act, name)
    azureml.cluster(azureml={"ssh": True})
    assert body(azureml, submit(act, "true"))["services"] == {"act_ssh": {
        "jobServiceType": "SSH", "properties": {"sshPublicKeys": f"ssh-{name} AAAA me@here"},
        "nodes": {"nodesValueType": "All"}}}


def test_ssh_to_attached_kubernetes(act, azureml):
    ssh_key(act)
    azureml.cluster(platform="itp", compute_target="itpgpu", azureml={"ssh": True})
    job = body(azureml, submit(act, "true"))
    assert job["resources"]["properties"]["itp"]["interactive_configuration"] == {
        "is_ssh_enabled": True, "ssh_public_key": "ssh-id_rsa AAAA me@here"}
    assert "services" not in job


def test_ssh_that_cannot_be(act, azureml):
    act.env["HOME"] = str(act.scratch / "nobody")
    azureml.cluster(azureml={"ssh": True})
    act.fail("submit", "true", status=7, match="azureml.ssh needs your public key.*id_rsa.pub.*ssh-keygen")
    ssh_key(act)
    (act.scratch / "user/.ssh/id_rsa.pub").write_text("")
    act.fail("submit", "true", status=7, match="id_rsa.pub' is not a public key")
    azureml.cluster(platform="singularity", compute_target="vc", azureml={"ssh": True})
    act.fail("submit", "true", status=7, match="azureml.ssh is for the platforms aml and itp")
    assert azureml.requests() == []


def test_nobody_gets_in_unasked(act, azureml):
    ssh_key(act)
    assert "services" not in body(azureml, submit(act, "true"))


# ---- virtual clusters


def test_virtual_cluster_by_default(act, azureml):
    azureml.cluster(platform="singularity", compute_target="vc")
    job = body(azureml, submit(act, "true", gpus=2))
    assert job["queueSettings"] == {"jobTier": "Premium", "priority": 3}
    assert job["resources"]["properties"]["AISuperComputer"]["priority"] == "High"
    azureml.cluster(platform="singularity", compute_target="vc", multi_process=False)
    assert "WORLD_SIZE" not in body(azureml, submit(act, "true", gpus=2))["environmentVariables"]


def test_virtual_cluster_of_another_version(act, azureml):
    """Stable versions have no priority."""
    azureml.cluster(platform="singularity", compute_target="vc", azureml={"api_version": "2024-10-01"})
    assert body(azureml, submit(act, "true"))["queueSettings"] == {"jobTier": "Premium"}


def test_virtual_cluster(act, azureml):
    azureml.cluster(platform="singularity", compute_target="vc", singularity_sla_tier="Basic",
                    singularity_instance_type="Singularity.ND40rs_v2", azureml={"priority": 2},
                    env={"JOB_EXECUTION_MODE": "Other"})
    run = submit(act, "true", gpus=4)
    job = body(azureml, run)
    assert re.search(r"/resourceGroups/rg/providers/Microsoft.MachineLearningServices/virtualclusters/vc$",
                     job["computeId"])
    assert job["queueSettings"] == {"jobTier": "Basic", "priority": 2}
    assert job["resources"]["instanceType"] == "Singularity.ND40rs_v2"
    assert job["resources"]["properties"]["AISuperComputer"] == {
        "interactive": False, "priority": "Medium", "slaTier": "Basic",
        "scalePolicy": {"autoScaleIntervalInSec": 36000, "minInstanceTypeCount": 2, "maxInstanceTypeCount": 2}}
    told = job["environmentVariables"]
    assert told["JOB_EXECUTION_MODE"] == "Other", "the user's word"
    assert told["WORLD_SIZE"] == "4" and told["AZUREML_COMPUTE_USE_COMMON_RUNTIME"] == "true"
    put = [r for r in azureml.requests("arm") if r["method"] == "PUT" and "/jobs/" in r["url"]]
    assert "api-version=2023-04-01-preview" in put[0]["url"]


def test_unknown_virtual_cluster(act, azureml):
    azureml.cluster(platform="singularity", compute_target="nothing")
    act.fail("submit", "true", status=None,
             match="the virtual cluster 'nothing': .* was not found.*; compute_target names it")


@pytest.mark.parametrize("preemption", [False, True])
def test_without_a_cluster(act, azureml, preemption):
    azureml.cluster(compute_target=None, preemption_allowed=preemption, azureml={"instance_type": "Standard_NC24"})
    job = body(azureml, submit(act, "true"))
    assert "computeId" not in job
    assert job["resources"]["instanceType"] == "Standard_NC24"
    assert job.get("queueSettings") == ({"jobTier": "Spot"} if preemption else None)


def test_gpus_are_nodes_and_processes(act, azureml):
    """The arithmetic of the original, as the service is told it: (-n, multi_process, process_count_per_node) is so many
    nodes with MPI and so many processes on each, or without MPI (0)."""
    azureml.tell("hold", status="NotStarted")
    for gpus, multi, per_node, nodes, processes in (
            (0, True, None, 1, 0), (1, True, None, 1, 0), (3, True, None, 1, 3), (4, True, None, 1, 4),
            (8, True, None, 2, 4),
            (0, False, None, 1, 0), (3, False, None, 1, 0), (4, False, None, 1, 0), (8, False, None, 2, 1),
            (0, True, 2, 1, 0), (1, True, 2, 1, 2), (3, True, 2, 1, 2), (4, True, 2, 1, 2), (8, True, 2, 2, 2),
            (4, True, 1, 1, 0), (4, False, 2, 1, 0), (8, False, 2, 2, 1)):
        azureml.cluster(gpu_per_node=4, multi_process=multi, process_count_per_node=per_node)
        job = body(azureml, submit(act, "true", gpus=gpus))
        told = (job["resources"]["instanceCount"], job.get("distribution", {}).get("processCountPerInstance", 0))
        assert told == (nodes, processes), (gpus, multi, per_node)
        assert job.get("distribution", {"distributionType": "Mpi"})["distributionType"] == "Mpi"
    act.fail("-n", "6", "submit", "true", status=2, match="6 GPUs with 4 on each node.*-n 4 or -n 8")


# ---- what the cluster file asks for


def test_private_registry(act, azureml):
    azureml.cluster(docker={"image": "team/image:1", "address": "reg.example.com", "username": "me",
                            "password": "pssst-5678"})
    run = submit(act, "true")
    assert puts(azureml) == ["PUT datastores", "PUT connections", "PUT environments", "PUT jobs"]
    connection, environment = ([r for r in azureml.requests("arm") if r["method"] == "PUT" and kind in r["url"]][0]
                               for kind in ("/connections/", "/environments/"))
    assert '"target":"https://reg.example.com"' in connection["body"] and "pssst-5678" in connection["body"]
    assert '"image":"reg.example.com/team/image:1"' in environment["body"]
    name = hashlib.sha256(b"reg.example.com/team/image:1").hexdigest()[:16]
    assert body(azureml, run)["environmentId"].endswith(f"/environments/act-{name}/versions/1")
    for request in azureml.requests("arm", "api", "login"):
        assert "pssst-5678" not in request["url"]
        assert "pssst-5678" not in request["body"] or "/connections/" in request["url"]
    azureml.forget()
    submit(act, "true")
    assert puts(azureml) == ["PUT jobs"]


@pytest.mark.parametrize("nothing", [None, ""])
def test_registry_that_is_told_in_part(act, azureml, nothing):
    azureml.cluster(docker={"address": "reg.example.com", "username": "me", "password": nothing})
    act.fail("submit", "true", status=7, match="docker.password")
    assert azureml.requests() == []
    azureml.cluster(docker={"address": "reg.example.com", "username": nothing, "password": "pssst-5678"})
    assert "not used without a 'docker.username'" in act.run("-n", 1, "submit", "true").err
    assert "PUT connections" not in puts(azureml)


def connections(azureml):
    return [c["properties"]["target"] for c in azureml.tell("objects")["connections"].values()]


@pytest.mark.parametrize("image, address, target, pulled", [
    ("me/image:1", None, "https://index.docker.io/v1/", "me/image:1"),
    ("reg.example.com:5000/image@sha256:" + "0" * 64, "", "https://reg.example.com:5000",
     "reg.example.com:5000/image@sha256:" + "0" * 64),
    ("image", "https://reg.example.com:5000/", "https://reg.example.com:5000", "reg.example.com:5000/image")])
def test_registry_of_an_image(act, azureml, image, address, target, pulled):
    """Without an address it is the one that docker would ask."""
    azureml.cluster(docker={"image": image, "address": address, "username": "me", "password": "pssst-5678"})
    submit(act, "true")
    assert connections(azureml) == [target]
    assert [e["properties"]["image"] for e in azureml.tell("objects")["environments"].values()] == [pulled]


def test_singularity_has_the_registry_in_the_image(act, azureml):
    azureml.cluster(platform="singularity", compute_target="vc",
                    docker={"image": "team/image:1", "address": "reg.example.com"})
    run = submit(act, "true")
    environment, = azureml.tell("objects")["environments"].values()
    assert environment["properties"]["image"] == "reg.example.com/team/image:1"
    assert "/environments/act-" in body(azureml, run)["environmentId"]


PRIVATE = {"image": "team/image:1", "address": "reg.example.com", "username": "me", "password": "pssst-5678"}


@pytest.mark.parametrize("method, action", [("GET", "read"), ("PUT", "write")])
@pytest.mark.parametrize("told", [True, False])
def test_connection_that_may_not_be_made(act, azureml, method, action, told):
    whole = f"Microsoft.MachineLearningServices/workspaces/connections/{action}"
    azureml.cluster(docker=PRIVATE)
    azureml.faults({"method": method, "match": "/connections/",
                    **({"forbidden": whole} if told else {"answer": {"status": 403, "body": ""}})})
    act.fail("submit", "true", status=4, match=f"{whole}.*AcrPull")
    assert azureml.tell("jobs") == []


@pytest.mark.parametrize("other", [{"target": "https://other.example.com"}, {"category": "PythonFeed"},
                                   {"target": "https://reg.example.com.elsewhere"}])
def test_connection_that_leads_elsewhere(act, azureml, other):
    azureml.cluster(docker=PRIVATE)
    submit(act, "true")
    (name, had), = azureml.tell("objects")["connections"].items()
    azureml.tell("object", kind="connections", name=name, properties={**had["properties"], **other})
    act.fail("submit", "true", status=7, match=f"connection '{name}'.*delete it")


@pytest.mark.parametrize("same", [{"target": "REG.example.com"}, {"target": "https://reg.example.com/"},
                                  {"target": None}])
def test_connection_that_is_told_in_another_form(act, azureml, same):
    azureml.cluster(docker=PRIVATE)
    submit(act, "true")
    (name, had), = azureml.tell("objects")["connections"].items()
    azureml.tell("object", kind="connections", name=name, properties={**had["properties"], **same})
    submit(act, "true")
    assert list(azureml.tell("objects")["connections"]) == [name] and len(azureml.tell("jobs")) == 2


def test_connection_and_environment_that_others_make_at_the_same_moment(act, azureml):
    azureml.cluster(docker=PRIVATE)
    azureml.faults({"method": "PUT", "match": "/connections/", "cut": "after"},
                   {"method": "PUT", "match": "/environments/", "cut": "after"},
                   *({"method": "PUT", "match": kind,
                      "answer": {"status": 409, "json": {"error": {"code": "Conflict"}}}}
                     for kind in ("/connections/", "/environments/")))
    submit(act, "true")
    made = azureml.tell("objects")
    assert len(made["connections"]) == len(made["environments"]) == len(azureml.tell("jobs")) == 1


# ---- environments


def environment_puts(azureml):
    return [r["url"] for r in azureml.requests("arm") if r["method"] == "PUT" and "/environments/" in r["url"]]


def test_environment_that_is_archived_is_used(act, azureml):
    submit(act, "true")
    (name, had), = azureml.tell("objects")["environments"].items()
    azureml.tell("object", kind="environments", name=name, properties={**had["properties"], "isArchived": True})
    azureml.forget()
    act.run("wait", submit(act, "true"))
    assert environment_puts(azureml) == []


def test_environment_that_is_there(act, azureml):
    azureml.tell("object", kind="environments", name="theirs/3.1", properties={"image": "debian:12", "osType": "Linux"})
    azureml.cluster(docker={"image": "azureml:theirs:3.1"})
    run = submit(act, "true")
    act.run("wait", run)
    assert body(azureml, run)["environmentId"].endswith("/workspaces/ws/environments/theirs/versions/3.1")
    again = act.run("resubmit", run).out.split()[-1]
    assert body(azureml, again)["environmentId"] == body(azureml, run)["environmentId"]
    assert environment_puts(azureml) == []
    azureml.cluster(docker={"image": "azureml:theirs:4"})
    act.fail("submit", "true", status=3, match="workspace 'ws' has no environment 'azureml:theirs:4'")


def test_environment_of_a_registry(act, azureml):
    image = "azureml://registries/azureml/environments/acpt/versions/7"
    azureml.cluster(docker={"image": image})
    assert body(azureml, submit(act, "true"))["environmentId"] == image
    assert not [r for r in azureml.requests("arm") if "/environments/" in r["url"]]


def test_environment_that_cannot_be_meant(act, azureml):
    azureml.cluster(docker={"image": "azureml:theirs@latest"})
    act.fail("submit", "true", status=7, match="docker.image is 'azureml:theirs@latest'.*azureml:NAME:VERSION")
    azureml.cluster(docker={"image": "azureml:theirs:3", "username": "me", "password": "pssst-5678"})
    act.fail("submit", "true", status=7, match="docker.address")
    assert azureml.requests() == []


def test_time_limit_and_memory(act, azureml):
    azureml.cluster(azureml={"timeout": "36h", "shm_size": "16g", "docker_args": "--ulimit memlock=-1"})
    job = body(azureml, submit(act, "true"))
    assert job["limits"] == {"jobLimitsType": "Command", "timeout": "PT129600S"}
    assert job["resources"]["shmSize"] == "16g" and job["resources"]["dockerArgs"] == "--ulimit memlock=-1"


def test_run_that_takes_too_long(act, azureml):
    azureml.cluster(azureml={"timeout": "1s"})
    run = submit(act, "sleep", "300")
    act.run("wait", run, status=None)
    assert "limit of PT1S" in act.run("q", run).out


@pytest.mark.parametrize("setting, match", [
    ({"timeout": "soon"}, "azureml.timeout is 'soon'"), ({"shm_size": "much"}, "azureml.shm_size is 'much'"),
    ({"identity": "Managed"}, "azureml.identity is 'Managed'"), ({"priority": 1}, "azureml.priority is for")])
def test_settings_that_mean_nothing(act, azureml, setting, match):
    azureml.cluster(azureml=setting)
    act.fail("submit", "true", status=None, match=match)
    assert azureml.requests() == []


def test_priority_that_a_virtual_cluster_does_not_have(act, azureml):
    azureml.cluster(platform="singularity", compute_target="vc", azureml={"priority": 0})
    act.fail("submit", "true", status=7, match="it is 1 to 3")


@pytest.mark.parametrize("who, identity", [
    ("managed", {"identityType": "Managed"}),
    ("/subscriptions/s/x", {"identityType": "Managed", "resourceId": "/subscriptions/s/x"}),
    (azureml_double.CLIENT, {"identityType": "Managed", "clientId": azureml_double.CLIENT})])
def test_managed_identity(act, azureml, who, identity):
    azureml.cluster(azureml={"identity": who})
    assert body(azureml, submit(act, "true"))["identity"] == identity


def test_identity_of_the_user(act, azureml):
    """The job may be its user to the storage with a second token, which is for Azure Machine Learning."""
    azureml.cluster(azureml={"identity": "user"})
    run = submit(act, "true")
    assert body(azureml, run)["identity"] == {"identityType": "UserIdentity"}
    asked = [r["body"] for r in azureml.requests("login")]
    assert sum("ml.azure.com%2F.default" in text for text in asked) == 1, asked


def test_bytes_that_a_job_cannot_have(act, azureml):
    """Words of the command may be any bytes."""
    run = submit(act, "printf", "%s", b"a\xff")
    act.run("wait", run)
    _, asked = requests_of(azureml, act, "q", run)
    assert len(asked) <= 2


# ---- what is known, and what is asked


def test_run_history_is_found_and_remembered(act, azureml):
    azureml.cluster(azureml={"history_endpoint": None})
    workspace = re.compile(r"/workspaces/ws\?")
    run = submit(act, "true")
    act.run("q", run, status=None)  # whose address is not that of the double; 'a wait' would go on until it answers
    asked = [r["url"] for r in azureml.requests("arm") if workspace.search(r["url"])]
    assert len(asked) <= 1
    azureml.forget()
    act.run("q", run, status=None)
    assert not [r for r in azureml.requests("arm") if workspace.search(r["url"])]


def test_abort_says_that_it_is_on_its_way(act, azureml, scratch):
    run = submit(act, *waits_for(scratch / "never"))
    act.until_state(run, "Running")
    azureml.faults({"method": "POST", "match": "/cancel", "answer": {"status": 202, "body": ""}})
    assert f"{run}  Running: it is being aborted\n" in act.run("abort", run).err
    act.run("abort", run)
    act.until_state(run, "Canceled")
    assert f"{run}  Canceled: it had ended already\n" in act.run("abort", run).err


def test_abort_of_what_ends_meanwhile(act, azureml):
    """The service refuses to cancel a job that has ended."""
    run, = azureml.tell("seed", count=1, status="Completed")
    running = {"method": "GET", "match": f"runs/{run}/details", "answer": {
        "status": 200, "json": {"runId": run, "status": "Running"}}}
    azureml.faults({**running, "times": 2})
    done = act.run("abort", run)
    assert f"{run}  Completed: it had ended already\n" in done.err
    cancels = [r for r in azureml.requests() if r["url"].split("?")[0].endswith("/cancel")]
    assert [r["status"] for r in cancels] == [400]


def test_old_runs_are_not_searched_for_in_all_pages(act, azureml):
    """Three old runs of an experiment with thousands of newer ones cost a few questions, not hundreds of pages."""
    runs = [submit(act, "true") for _ in range(3)]
    for run in runs:
        azureml.tell("job", id=run, set={"status": "Running"})
    azureml.tell("settings", maxTop=1, clock=24 * 3600 * 1000)
    azureml.tell("seed", count=300)
    azureml.tell("settings", clock=0)
    _, asked = requests_of(azureml, act, "q", "--max", "3")
    assert len(asked) < 20, len(asked)


def test_experiment_that_the_history_does_not_know(act, azureml):
    """A list that is refused is no reason not to tell the states."""
    runs = [submit(act, "true") for _ in range(3)]
    for run in runs:
        act.until(lambda run=run: azureml.job(run)["status"] == "Completed", "it ends")
    azureml.faults({"method": "POST", "match": "runs:query", "times": 9, "answer": {"status": 404, "json": {"error": {
        "code": "UserError", "message": "Experiment exp was not found."}}}})
    assert [r["state"] for r in act.run("q", "--json").json["runs"]] == ["Completed"] * 3


def test_why_an_image_was_not_pulled(act, azureml):
    azureml.cluster(docker={"image": "unpullable/image:1"})
    run = submit(act, "true")
    act.run("wait", run, status=None)
    why = act.run("why", run).out
    assert "image could not be pulled" in why and "AcrPull" in why


# ---- a service that does not answer at first


def test_wait_begins_while_the_service_is_away(act, azureml):
    run = submit(act, "true")
    azureml.faults({"match": "/details", "times": 3, "answer": {"status": 503, "body": ""}})
    waited = act.run("wait", run, env={"ACT_MAX_RETRIES": "0"})
    assert waited.err.count("this goes on until it answers") == 1 and "it answers again" in waited.err, waited
    azureml.faults({"match": "/details", "times": 1, "answer": {"status": 503, "body": ""}})
    run = submit(act, "echo", "heard")
    followed = act.run("logs", "-f", run, env={"ACT_MAX_RETRIES": "0"})
    assert followed.out == "heard\n" and "this goes on until it answers" in followed.err


def test_waiting_for_a_service_that_stays_away(act, azureml):
    run = submit(act, "true")
    azureml.faults({"match": "/details", "times": 10000, "answer": {"status": 503, "body": ""}})
    quick = {"ACT_MAX_RETRIES": "0"}
    assert "503" in act.run("wait", "--timeout", "1s", run, env=quick, status=125).err
    act.fail("logs", run, env=quick, status=5, match="503")
    azureml.faults({"match": "/details", "times": 10000,
                    "forbidden": "Microsoft.MachineLearningServices/workspaces/read"})
    act.fail("logs", "-f", run, env=quick, status=4, match="workspaces/read")


# ---- the same run again


def image_of(azureml, run):
    name, version = re.search(r"/environments/([^/]+)/versions/([^/]+)$", body(azureml, run)["environmentId"]).groups()
    return azureml.tell("objects")["environments"][f"{name}/{version}"]["properties"]["image"]


def resubmit(act, run, *before, **options):
    return act.run(*before, "resubmit", "-y", run, **options).out.strip()


def job_file(act, image="team/job:1"):
    act.write("job.json", json.dumps({"properties": {
        "nodeCount": 2, "customMpiSettings": {"commandLine": "true", "processCount": 2},
        "containerSettings": {"imageSourceRegistry": {"image": image}}, "constraints": {"maxWallClockTime": "PT5H"},
        "environmentVariables": [{"name": "COLOUR", "value": "blue"}],
        "secrets": [{"name": "JOB_TOKEN", "value": "pssst-9"}]}}))
    return act.run("submit", "-f", "job.json").out.strip()


def told(azureml, run):
    job = body(azureml, run)
    env = job["environmentVariables"]
    return (image_of(azureml, run), env.get("COLOUR"), env.get("JOB_TOKEN"), env.get("SHARED"),
            job.get("distribution"), job["resources"]["instanceCount"], job.get("limits"))


def test_resubmit_keeps_what_a_job_file_said(act, azureml, scratch):
    azureml.cluster(env={"SHARED": "first"})
    run = job_file(act)
    first = told(azureml, run)
    assert first[:4] == ("team/job:1", "blue", "pssst-9", "first") and first[5] == 2
    assert first[6] == {"jobLimitsType": "Command", "timeout": "PT18000S"}
    azureml.cluster(env={"SHARED": "second"}, docker={"image": "other:2"}, num_gpu=1)
    assert told(azureml, resubmit(act, run)) == first
    assert told(azureml, resubmit(act, run, env={"ACT_HOME": str(scratch / "other")})) == first, "by the job alone"


def test_resubmit_takes_what_this_command_says(act, azureml):
    azureml.cluster(env={"SHARED": "first"})
    run = job_file(act)
    again = resubmit(act, run, "-n", "1", "-p", "{docker: {image: 'said:3'}, env: {COLOUR: red}}")
    image, colour, token, shared, mpi, nodes, _ = told(azureml, again)
    assert (image, colour, token, shared, mpi, nodes) == ("said:3", "red", "pssst-9", "first", None, 1)


def test_resubmit_elsewhere_takes_what_only_the_job_file_said(act, azureml):
    azureml.cluster(env={"SHARED": "first"})
    azureml.cluster("other", env={"SHARED": "other", "MORE": "1"}, docker={"image": "other:2"})
    run = job_file(act)
    again = resubmit(act, run, "-rt", "other")
    image, colour, token, shared, _, nodes, limits = told(azureml, again)
    assert (image, colour, token, shared, nodes) == ("team/job:1", "blue", "pssst-9", "other", 2)
    assert limits == {"jobLimitsType": "Command", "timeout": "PT18000S"}
    assert body(azureml, again)["environmentVariables"]["MORE"] == "1"
    plain = submit(act, "true")
    assert told(azureml, resubmit(act, plain, "-rt", "other"))[:4] == ("other:2", None, None, "other")


def test_resubmit_keeps_hooks_and_folders(act, azureml, container):
    account = "aux_data/configs/store.yaml"

    def cluster(path, mode, **extra):
        azureml.cluster(config_param={
            "code_path": {"azure_blob_config_file": account, "path": "files/code/project.zip"},
            "data_folder": {"azure_blob_config_file": account, "path": path, "mode": mode}}, **extra)

    azureml.service.put(f"{container}/files/one/x.txt", b"one")
    cluster("files/one", "download", compile_args="--fast", modules=["cuda"], setup="true\n")
    run = submit(act, "true")
    cluster("files/two", "rw_mount", compile_args="--slow")
    again = resubmit(act, run)
    assert body(azureml, again)["inputs"]["act_folder_0"] == body(azureml, run)["inputs"]["act_folder_0"]
    assert body(azureml, again)["properties"]["act.compile_args"] == "--fast"
    assert json.loads(body(azureml, again)["properties"]["act.setup"]) == {
        "modules": ["cuda"], "lines": "true\n", "timeout_s": 600}
    azureml.cluster(config_param={"code_path": {"azure_blob_config_file": account, "path": "files/code/project.zip"},
                                  "data_folder": None})
    act.fail("resubmit", run, status=7, match="cluster 'aml' has no folder 'data' any more")


def test_secret_that_nobody_knows_any_more(act, azureml, scratch):
    """It is not in run.json; the job has it, and where that is gone the cluster file may."""
    azureml.cluster(env={"MY_TOKEN": "pssst-1"})
    run = submit(act, "true")
    azureml.cluster(env={"MY_TOKEN": None})
    again = resubmit(act, run)
    assert body(azureml, again)["environmentVariables"]["MY_TOKEN"] == "pssst-1"
    act.run("wait", again)  # no copy of a run begins beside one that goes on
    azureml.tell("job", id=run, set={"properties": {"environmentVariables": {}}})
    act.fail("resubmit", run, status=7, match="'MY_TOKEN' is a secret and not known any more")
    azureml.cluster(env={"MY_TOKEN": "pssst-2"})
    assert body(azureml, resubmit(act, run))["environmentVariables"]["MY_TOKEN"] == "pssst-2"


def test_run_goes_on_when_it_cannot_be_submitted_again(act, azureml, scratch):
    run = submit(act, *waits_for(scratch / "never"))
    act.until_state(run, "Running")
    azureml.faults({"method": "PUT", "match": "/jobs/", "times": 9, "forbidden": "x/jobs/write"})
    act.fail("resubmit", run, status=4, match="x/jobs/write")
    assert act.state(run) == "Running"
    azureml.faults()
    again = resubmit(act, run)
    act.until_state(run, "Canceled")
    act.run("abort", again)


FOREIGN = {
    "jobType": "Command", "command": "ls ${{inputs.words}} && echo ${{inputs.lr}}", "displayName": "theirs",
    "environmentId": "azureml://registries/azureml/environments/curated/versions/7",
    "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 4},
    "resources": {"instanceCount": 2, "instanceType": "big", "shmSize": "17g", "dockerArgs": "--ulimit memlock=-1"},
    "limits": {"jobLimitsType": "Command", "timeout": "PT7H"}, "identity": {"identityType": "Managed"},
    "environmentVariables": {"THEIRS": "1"}, "tags": {"team": "a", "_aml_system_x": "y"},
    "properties": {"mlflow.x": "y"},
    "inputs": {"lr": {"jobInputType": "literal", "value": "0.1"}},
    "outputs": {"out": {"jobOutputType": "uri_folder", "mode": "Upload", "uri": "azureml://datastores/theirs/paths/x"}},
    "services": {"tb": {"jobServiceType": "TensorBoard", "properties": {"logDir": "x"}, "status": "Running",
                        "endpoint": "https://x"}}}


def test_job_of_another_tool_again(act, azureml):
    run, = azureml.tell("seed", count=1)
    azureml.tell("hold", status="NotStarted")
    azureml.tell("job", id=run, set={"properties": FOREIGN})
    again = resubmit(act, run)
    job = body(azureml, again)
    kept = ("jobType", "command", "displayName", "environmentId", "distribution", "resources", "limits", "identity",
            "environmentVariables", "inputs", "outputs", "computeId", "experimentName")
    assert {k: job.get(k) for k in kept} == {**{k: body(azureml, run).get(k) for k in kept}}
    assert job["tags"] == {"team": "a", "act": "1"} and job["properties"] == {"act.resubmit_of": run}
    assert job["services"] == {"tb": {"jobServiceType": "TensorBoard", "properties": {"logDir": "x"}}}
    assert puts(azureml) == ["PUT jobs"]
    third = resubmit(act, again, "-n", "4")
    job = body(azureml, third)
    assert job["resources"]["instanceCount"] == 2 and job["properties"] == {"act.resubmit_of": again}


def test_job_of_another_tool_elsewhere(act, azureml):
    azureml.cluster("other")
    run, = azureml.tell("seed", count=1)
    azureml.tell("job", id=run, set={"properties": FOREIGN})
    act.fail("-rt", "other", "resubmit", run, match="another tool made it.*inputs of its job")
    azureml.tell("job", id=run, set={"properties": {"command": "echo plain | tr a-z A-Z", "distribution": None,
                                                    "resources": None}})
    act.run("q", run, env={"ACT_HOME": str(act.scratch / "anew")})
    again = resubmit(act, run, "-rt", "other", "-n", "1", env={"ACT_HOME": str(act.scratch / "anew2")})
    act.run("wait", again, env={"ACT_HOME": str(act.scratch / "anew2")})
    assert act.run("logs", again, env={"ACT_HOME": str(act.scratch / "anew2")}).out == "PLAIN\n"
