"""Who one is to Azure Machine Learning, played by its double: which cloud and which tenant are asked for the token, and what
becomes of a submission of somebody who is not logged in."""
import pytest

CLOUDS = {"AzureCloud": "https://management.azure.com", "AzureUSGovernment": "https://management.usgovcloudapi.net",
          "AzureChinaCloud": "https://management.chinacloudapi.cn"}
NOBODY_THERE = {"HTTPS_PROXY": "http://127.0.0.1:9", "ACT_MAX_RETRIES": "0"}


def scopes(azureml):
    return [dict(pair.split("=", 1) for pair in r["body"].split("&"))["scope"].replace("%3A", ":").replace("%2F", "/")
            for r in azureml.requests("login")]


# ---- clouds


@pytest.mark.parametrize("cloud", CLOUDS)
def test_endpoint_says_which_cloud_the_token_is_for(act, azureml, cloud):
    azureml.cluster(azureml={"endpoint": CLOUDS[cloud], "history_endpoint": None})
    act.fail("summary", status=5, match=CLOUDS[cloud].removeprefix("https://"), env=NOBODY_THERE)
    assert scopes(azureml) == [CLOUDS[cloud] + "/.default"]


@pytest.mark.parametrize("named, cloud", [("AzureCloud", "AzureChinaCloud"), ("AzureUSGovernment", "AzureCloud")])
def test_no_token_is_asked_for_another_cloud_than_the_endpoint_is_in(act, azureml, named, cloud):
    azureml.cluster(azureml={"endpoint": CLOUDS[cloud], "history_endpoint": None})
    text = act.fail("summary", status=7, env=NOBODY_THERE | {"AZURE_CLOUD": named})
    assert f"'{CLOUDS[cloud]}' is in {cloud}" in text and "AZURE_CLOUD" in text
    assert azureml.requests("login") == []


def test_run_history_of_another_cloud_gets_no_token(act, azureml):
    azureml.cluster(azureml={"history_endpoint": "https://chinaeast.api.ml.azure.cn"})
    result = act.run("q", "--max", "1", env=NOBODY_THERE)
    assert "'https://chinaeast.api.ml.azure.cn' is in AzureChinaCloud, but the login is for AzureCloud" in result.err
