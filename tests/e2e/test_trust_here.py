"""Who listens on this machine may be anybody: what a project cannot have sent there, and what the user can."""
import json

import pytest

from test_trust import CREDENTIALS, KEY, LAB, settings

QUICK = {"ACT_MAX_RETRIES": "0", "ACT_CONNECT_TIMEOUT": "5"}


@pytest.fixture
def user(act, login):
    """A user with a login who has trusted no host, and no project."""
    for name in ("ACT_TRUSTED_HOSTS", "ACT_TRUSTED_PROJECTS"):
        del act.env[name]
    act.env |= {**login.principal(), **QUICK}
    act.account("code", folder="code")
    act.cluster("aml", account="code")
    act.write("data/a", "a")
    return act


def trusted(act, listener):
    """As who trusts the project, which does not mean the listener."""
    untrusted = act.run("trust", "--json").json["untrusted"]
    assert any(f"127.0.0.1:{listener.port}" in line for line in untrusted), untrusted
    act.run("trust", "-y")


def refused(result, listener, said_by):
    assert said_by in result.err and "any user of this machine may listen there" in result.err, result
    assert f"""add 'trusted_hosts: ["127.0.0.1:{listener.port}"]' to '""" in result.err, result


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("kind", CREDENTIALS)
def test_a_project_cannot_have_credentials_sent_to_another_port(user, login, listener, kind, scheme):
    user.account("store", account_name="acct", container_name="cont",
                 endpoint=f"{scheme}://127.0.0.1:{listener.port}/acct")
    user.cluster("aml", account="store")
    user.env |= CREDENTIALS[kind]
    result = user.run("ls", "data", status=4)
    assert "reaches out of its folder" in result.err and str(listener.port) in result.err, result
    trusted(user, listener)
    for words in (("ls", "data"), ("u", "data"), ("init",), ("url", "data/a")):
        refused(user.run(*words, status=4), listener, "'endpoint' of '")
    assert not listener.heard and not login.asked(), (listener.heard, login.asked())


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "acct.localhost", "127.1", "0x7f000001"])
def test_whatever_it_is_called(user, listener, name):
    user.account("store", account_name="acct", container_name="cont", endpoint=f"http://{name}:{listener.port}/acct")
    user.cluster("aml", account="store")
    user.env |= {**CREDENTIALS["key"], "ACT_TRUSTED_PROJECTS": "*"}
    assert "any user of this machine may listen there" in user.run("ls", "data", status=4).err
    assert not listener.heard


SERVICES = {
    "azureml.endpoint": ({**LAB, "azureml": {"endpoint": "URL"}}, ("s",)),
    "azureml.history_endpoint": ({**LAB, "azureml": {"history_endpoint": "URL"}}, None),
    "aks.endpoint": ({"platform": "k8s", "k8s": {"image": "i"},
                      "aks": {"endpoint": "URL", "subscription": "s", "resource_group": "g", "cluster": "c"}},
                     ("cluster", "list")),
}


@pytest.mark.parametrize("key", SERVICES)
def test_a_project_cannot_have_tokens_sent_to_another_port(user, login, listener, key):
    extra, words = SERVICES[key]
    url = f"http://127.0.0.1:{listener.port}"
    user.cluster("aml", account="code", folders=(), extra=json.loads(json.dumps(extra).replace("URL", url)))
    trusted(user, listener)
    if words:
        refused(user.run(*words, status=4), listener, f"'{key}' of 'aux_data/aml/aml.yaml:")
    assert not listener.heard and not login.asked(), (listener.heard, login.asked())


def test_a_project_cannot_have_tokens_of_the_run_history_sent_to_another_port(act, azureml, listener):
    url = f"http://127.0.0.1:{listener.port}"
    azureml.cluster(azureml={"history_endpoint": url})
    act.env["ACT_TRUSTED_HOSTS"] = ", ".join(azureml.links[name].split("//")[1] for name in ("arm", "api"))
    refused(act.run("q", env=QUICK), listener, "'azureml.history_endpoint' of 'aux_data/aml/aml.yaml:")
    assert not listener.heard


def test_a_project_cannot_have_tokens_of_a_vault_sent_to_another_port(user, login, listener):
    user.account("store", account_name="acct", container_name="cont", endpoint="https://storage.example",
                 account_key=f"keyvault:https://127.0.0.1:{listener.port}/secrets/x")
    user.cluster("aml", account="store")
    trusted(user, listener)
    refused(user.run("ls", "data", status=4), listener, "a secret's key vault is 'https://127.0.0.1")
    assert not listener.heard and not login.asked(), (listener.heard, login.asked())


def test_a_job_file_cannot_have_its_key_sent_to_this_machine(act, azureml, listener):
    act.env["ACT_TRUSTED_HOSTS"] = ", ".join(azureml.links[name].split("//")[1] for name in ("arm", "api"))
    act.write("job.json", json.dumps({"properties": {
        "nodeCount": 1, "customToolkitSettings": {"commandLine": "true"}, "mountVolumes": {"azureFileShares": [
            {"accountName": "acct", "azureFileUrl": f"http://acct.file.localhost:{listener.port}/s",
             "relativeMountPath": "afs", "credentials": {"accountKey": KEY}}]}}}))
    result = act.run("submit", "-f", "job.json", status=4)
    assert f"""add 'trusted_hosts: ["acct.file.localhost:{listener.port}"]'""" in result.err, result
    assert not listener.heard


def test_what_the_account_file_itself_says_may_go_there_unasked(user, listener):
    user.account("store", account_name="acct", container_name="cont", account_key=KEY,
                 endpoint=f"http://127.0.0.1:{listener.port}/acct")
    user.cluster("aml", account="store")
    assert "there is nothing to trust" in user.run("trust").err
    user.run("ls", "data", status=5)
    assert any(b"SharedKey acct:" in heard for heard in listener.heard)


@pytest.mark.parametrize("how", ["file", "variable", "all ports"])
def test_the_user_trusts_a_port(user, listener, other_listener, how):
    """Another one who listens here gets nothing, unless the user trusts all of this machine."""
    entry = "127.0.0.1" if how == "all ports" else f"127.0.0.1:{listener.port}"
    if how == "file":
        settings(user, f"trusted_hosts: ['{entry}']\n")
    else:
        user.env["ACT_TRUSTED_HOSTS"] = entry
    user.env |= CREDENTIALS["key"]
    for one, goes in ((listener, True), (other_listener, how == "all ports")):
        user.account("store", account_name="acct", container_name="cont", endpoint=f"http://127.0.0.1:{one.port}/acct")
        user.cluster("aml", account="store")
        user.run("ls", "data", status=5 if goes else 4)
        assert bool(one.heard) == goes, one.heard


OWN = {
    "azureml.endpoint": lambda url: {"azureml": {"endpoint": url}},
    "aks.endpoint": lambda url: {"aks": {"endpoint": url}},
}


@pytest.mark.parametrize("how", ["typed", "own file", "variable"])
@pytest.mark.parametrize("key", OWN)
def test_an_address_that_the_user_names_needs_no_ceremony(user, scratch, listener, key, how):
    url = f"http://127.0.0.1:{listener.port}"
    extra, words = SERVICES[key]
    keys = json.loads(json.dumps(extra).replace("URL", url))
    if how == "typed":
        named = json.loads(json.dumps(extra).replace("URL", "https://evil.example"))
        user.cluster("aml", account="code", folders=(), extra=named)
        user.run("-p", json.dumps(OWN[key](url)), "trust", "-y")
        words = ("-p", json.dumps(OWN[key](url)), *words)
    else:
        file = {"own file": user.home / "config/clusters/mine.yaml", "variable": scratch / "elsewhere.yaml"}[how]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(keys))
        file.chmod(0o600)
        words = ("-c", "mine", *words) if how == "own file" else words
        user.env |= {} if how == "own file" else {"AML_CONFIG_PATH": str(file)}
    user.run(*words, status=None)
    assert any(b"Bearer " in heard for heard in listener.heard), listener.heard


def test_an_account_file_of_the_users_needs_no_ceremony(user, listener):
    file = user.home / "config/store.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(f"account_name: acct\ncontainer_name: cont\nendpoint: http://127.0.0.1:{listener.port}/acct\n")
    file.chmod(0o600)
    row = json.dumps({"config_param": {"data_folder": {"azure_blob_config_file": str(file), "path": "x"}}})
    user.run("-p", row, "ls", "data", status=5)
    assert any(b"Bearer " in heard for heard in listener.heard), listener.heard
