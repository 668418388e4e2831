"""Whether a compute of Azure Machine Learning could ever start a run: asked in one request, before all
else."""
import pytest


def refused(act, azureml, container, *before, match):
    azureml.forget()
    act.fail(*before, "submit", "true", status=6, match=match)
    assert not [r for r in azureml.requests() if r["method"] != "GET"], "nothing is made"
    assert not azureml.service.list(container), "nothing is stored"
    assert act.run("q", "--json").json["runs"] == []


def test_more_nodes_than_it_may_have(act, azureml, container):
    azureml.cluster(gpu_per_node=8)
    refused(act, azureml, container, "-n", "40",
            match="needs 5 nodes, and 'gpu' has at most 4; use at most -n 32, or 'a cluster autoscale gpu --max 5'")
    act.run("cluster", "autoscale", "gpu", "--max", "5")
    act.run("-n", "40", "submit", "--dry-run", "true")


def test_more_gpus_than_its_machines_have(act, azureml, container):
    azureml.cluster(gpu_per_node=16)
    refused(act, azureml, container, "-n", "16",
            match="needs 16 GPUs on each node, and a machine of the size 'STANDARD_ND96ASR_V4' has 8: set gpu_per_node")
    azureml.tell("compute", name="gpu", properties={"properties": {
        "vmSize": "STANDARD_D2_V2", "scaleSettings": {"maxNodeCount": 4}}})
    act.run("-n", "16", "submit", "--dry-run", "true")


def test_what_is_asked(act, azureml):
    """The compute for each run, what its machines have for the first one."""
    act.run("submit", "true")
    for _ in range(2):
        azureml.forget()
        act.run("submit", "true")
        asked = [r["url"] for r in azureml.requests("arm") if r["method"] == "GET"]
        assert len([url for url in asked if "/computes/gpu?" in url]) == 1 and not [u for u in asked if "vmSizes" in u]
    azureml.forget()
    act.run("sweep", "--grid", "lr=1,2,3", "sh", "-c", "echo {lr}")
    assert len([r for r in azureml.requests("arm") if "/computes/gpu?" in r["url"]]) == 1, "runs of a sweep are alike"


@pytest.mark.parametrize("status", [403, 500])
def test_whoever_cannot_look_finds_out_later(act, azureml, status):
    azureml.faults({"method": "GET", "match": "/computes/", "times": 100, "answer": {"status": status, "json": {
        "error": {"code": "AuthorizationFailed", "message": "The client may not read computes."}}}})
    assert "whether the run can start is not known" in act.run("submit", "true", env={"ACT_MAX_RETRIES": "1"}).err


def test_a_compute_of_another_kind_or_that_goes(act, azureml, container):
    azureml.cluster(compute_target="itpgpu")
    refused(act, azureml, container, match="'itpgpu' is of type 'Kubernetes'; platform 'aml' needs 'AmlCompute'")
    azureml.cluster()
    azureml.tell("compute", name="gpu", properties={"provisioningState": "Deleting"})
    refused(act, azureml, container, match="'gpu' is 'Deleting': no run begins there")
    azureml.tell("compute", name="gpu", properties={"provisioningState": "Failed"})
    assert "warning: the run waits: 'gpu' is 'Failed'" in act.run("submit", "--dry-run", "true").err


def test_what_kept_it_from_having_nodes(act, azureml):
    azureml.tell("compute", name="gpu", shown={"errors": [{"error": {
        "code": "ClusterCoreQuotaReached", "message": "The quota of 96 vCPUs is used up."}}]})
    said = act.run("submit", "--dry-run", "true").err
    assert "warning: 'gpu' did not get the nodes it should have: " in said and "quota of 96 vCPUs" in said, said


def test_instance_types_of_attached_kubernetes(act, azureml, container):
    azureml.tell("compute", name="itpgpu", properties={"properties": {
        "defaultInstanceType": "small", "instanceTypes": {
            "small": {"resources": {"limits": {"nvidia.com/gpu": "1"}}},
            "large": {"resources": {"limits": {"nvidia.com/gpu": "8"}}}}}})
    azureml.cluster(platform="itp", compute_target="itpgpu", gpu_per_node=8)
    refused(act, azureml, container, "-n", "8",
            match="needs 8 GPUs on each node, and the instance type 'small' has 1")
    azureml.cluster(platform="itp", compute_target="itpgpu", gpu_per_node=8, azureml={"instance_type": "large"})
    act.run("-n", "8", "submit", "--dry-run", "true")


def test_quota_of_a_virtual_cluster(act, azureml):
    azureml.cluster(platform="singularity", compute_target="vc", gpu_per_node=8)
    assert "quota" not in act.run("-n", "32", "submit", "--dry-run", "true").err
    said = act.run("-n", "40", "submit", "--dry-run", "true").err
    assert "raises the quota of 'vc': a run of the tier 'Premium' can have 32 GPUs there, and it asks for 40" in said


def test_doctor_tells_the_quota(act, azureml):
    found = act.run("doctor", status=None).out
    assert "192 of 960 processors of the family 'standardNDASv4Family'" in found, found
    assert "the quota is for 10 nodes of the size STANDARD_ND96ASR_V4, and 'gpu' may have 4" in found, found
