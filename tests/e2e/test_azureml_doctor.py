"""What `a doctor` says of a cluster on Azure Machine Learning."""
from azureml_double import CLIENT, TENANT


def findings(act, *words, status=0):
    """What was looked at, and what was found there, in that order; several of the same name become the last."""
    before = act.snapshot(act.home)
    whole = act.run(*words, "doctor", "--json", status=status).json
    assert act.snapshot(act.home) == before
    assert {p.name for p in act.home.glob("*")} <= {"cache"}
    assert whole["ok"] == (status == 0)
    return {check["what"]: (check["ok"], check["text"]) for check in whole["checks"]}


def test_all_is_there(act, azureml):
    found = findings(act)
    assert found["login"][0] and CLIENT in found["login"][1] and f"tenant {TENANT}" in found["login"][1]
    assert "client secret" in found["login"][1].lower() and "until 20" in found["login"][1]
    assert found["workspace"] == (True, "'ws' in eastus answers")
    assert found["run history"][0]
    assert found["compute"] == (True, "'gpu' is there: STANDARD_ND96ASR_V4, at most 4 nodes")
    assert found["store of 'code'"][0]


def test_other_platforms(act, azureml):
    azureml.cluster("itp", platform="itp", compute_target="itpgpu")
    azureml.cluster("vc", platform="singularity", compute_target="vc")
    azureml.cluster("wrong", platform="itp")
    azureml.cluster("serverless", compute_target=None, azureml={"instance_type": "STANDARD_NC6"})
    assert findings(act, "-c", "itp")["compute"] == (True, "'itpgpu' is there")
    assert findings(act, "-c", "vc")["compute"] == (True, "the virtual cluster 'vc' is there")
    ok, text = findings(act, "-c", "wrong", status=1)["compute"]
    assert not ok and "'AmlCompute'; platform 'itp' needs 'Kubernetes'" in text
    assert "serverless" in findings(act, "-c", "serverless")["compute"][1]


def test_compute_that_is_not_there(act, azureml):
    azureml.cluster(compute_target="missing")
    ok, text = findings(act, status=1)["compute"]
    assert not ok and "cannot look at the compute 'missing'" in text


def test_compute_without_nodes(act, azureml):
    act.run("cluster", "autoscale", "gpu", "--max", "0")
    ok, text = findings(act, status=1)["compute"]
    assert not ok and "'a cluster autoscale gpu --max N'" in text


def test_workspace_that_is_not_there(act, azureml):
    azureml.cluster(aml_config={"workspace_name": "other"})
    found = findings(act, status=1)
    assert found["login"][0] and not found["workspace"][0] and "compute" not in found
    assert "cannot open the workspace 'other'" in found["workspace"][1]


def test_no_login(act, azureml):
    act.env["AZURE_CLIENT_SECRET"] = "wrong"
    found = findings(act, status=1)
    assert not found["login"][0] and "workspace" not in found
    assert "wrong" not in found["login"][1]


def test_no_permission(act, azureml):
    azureml.faults({"method": "GET", "match": "/workspaces/ws\\?",
                    "forbidden": "Microsoft.MachineLearningServices/workspaces/read"})
    ok, text = findings(act, status=1)["workspace"]
    assert not ok and "Microsoft.MachineLearningServices/workspaces/read" in text
