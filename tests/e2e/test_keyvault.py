"""Secrets in key vaults: of account files, of registries, of job files; and what goes wrong."""
import base64
import json
import pathlib
import re
import subprocess
import time

import pytest

from authority import Authority
from login_double import OTHER_TENANT
from vault_double import AUDIENCE, VERSION, VaultDouble

CLIENT = pathlib.Path(__file__).resolve().parent.parent / "keyvault/read.mjs"


@pytest.fixture
def authority(scratch):
    return Authority(scratch)


@pytest.fixture
def vault(act, login, authority):
    server = VaultDouble(authority)
    act.env |= {**login.principal(), "ACT_CA_FILE": str(authority.file)}
    yield server
    server.close()
    unseen = [s for s in server.secrets.values() if len(s) > 8]
    for path in act.scratch.rglob("*"):
        if path.is_file() and path.name != "secrets.json" and "user_logs" not in path.parts:
            content = path.read_bytes()
            assert not [s for s in unseen if s.encode() in content], path


@pytest.fixture
def store(act, double, vault):
    """The project with its data at an account whose key is in the vault."""
    vault.secrets["storage"] = double.key
    act.account("store", account_name=double.account, container_name=double.container, endpoint=double.endpoint,
                account_key=vault.said("storage"))
    return double


def account(act, double, **keys):
    act.account("store", account_name=double.account, container_name=double.container, endpoint=double.endpoint, **keys)


def test_the_official_client_reads_the_double(vault, authority, login):
    vault.secrets["one"] = "the value"
    said = subprocess.run(["node", CLIENT, vault.url, "one"], capture_output=True, text=True, timeout=300, env={
        "PATH": "/usr/bin:/bin", "NODE_EXTRA_CA_CERTS": str(authority.file),
        "TOKEN": login.token("https://vault.azure.net")})
    assert said.returncode == 0, said.stderr
    got = json.loads(said.stdout)
    assert got["value"] == "the value" and got["properties"]["version"] == VERSION, got
    assert vault.refused and "missing" in vault.refused[0], "it asks without a token first, and reads the challenge"


@pytest.mark.parametrize("version", [None, VERSION])
def test_the_key_of_an_account(act, store, vault, version):
    account(act, store, account_key=vault.said("storage", version))
    act.write("data/a.txt", "hello")
    act.run("u", "data")
    assert store.get(f"{store.container}/files/data/a.txt") == b"hello"
    assert len(vault.log) == 1, "each secret is asked for once in a command"
    act.write("data/a.txt", "changed")
    act.run("d", "-y", "data")


def test_a_sas(act, store, vault):
    vault.secrets["sas"] = "?" + store.container_sas(store.container)
    account(act, store, sas_token=vault.said("sas"))
    act.write("data/a.txt", "hello")
    act.run("u", "data")
    assert act.run("cat", "data/a.txt").out == "hello"


def test_a_run_with_its_code_there(act, store, vault):
    act.cluster("aml", folders=())
    run = act.submit("echo", "done")
    act.run("wait", run)
    assert act.lines(run) == ["done"]


def test_the_secret_of_the_file_that_is_not_used_is_not_asked_for(act, store, vault):
    account(act, store, account_key=vault.said("storage"), auth="key", sas_token=vault.said("nowhere"))
    act.write("data/a.txt", "hello")
    act.run("u", "data")
    assert [path for path in vault.log if "storage" not in path] == []


def test_a_job_file(act, vault):
    vault.secrets["token"] = "hf_a-secret-of-others"
    act.write("aux_data/configs/job.json", json.dumps({"properties": {
        "nodeCount": 1, "customToolkitSettings": {"commandLine": "echo ${#TOKEN} $TOKEN"},
        "secrets": [{"name": "TOKEN", "valueSecretReference": {
            "sourceVault": {"id": "/subscriptions/x"}, "secretUrl": f"{vault.url}/secrets/token"}}]}}))
    result = act.run("submit", "-f", "aux_data/configs/job.json")
    assert f"'TOKEN' is what your login reads at '{vault.url}/secrets/token'" in result.err
    run = result.out.split()[-1] if not result.out.startswith("{") else result.json["id"]
    act.run("wait", run)
    assert act.lines(run) == ["21 hf_a-secret-of-others"]
    assert "hf_a" not in act.run("q", "--json").out


def test_where_a_secret_is_may_be_shown(act, store, vault):
    shown = act.run("config", "show", "--json").json
    assert vault.said("storage") in json.dumps(shown)
    assert not vault.log
    (act.project / "aux_data/configs/store.yaml").chmod(0o644)
    assert "chmod" not in act.run("config", "check", status=None).err


# ---- what goes wrong


@pytest.mark.parametrize("said, match", [
    ("keyvault:", "is not a secret of a key vault"),
    ("keyvault:https://a.vault.azure.net/keys/x", "is not a secret of a key vault"),
    ("keyvault:https://a.vault.azure.net/secrets/x?y", "is not a secret of a key vault"),
    ("keyvault:https://a.vault.azure.net/secrets/x/1/2", "is not a secret of a key vault"),
    ("keyvault:https://a.vault.azure.net/secrets/a_b", "is not a secret of a key vault"),
    ("keyvault:https://me@a.vault.azure.net/secrets/x", "is not a secret of a key vault")])
def test_a_wrong_reference(act, store, vault, said, match):
    account(act, store, account_key=said)
    message = act.fail("ls", "data", status=7, match=match)
    assert "aux_data/configs/store.yaml:4" in message and "account_key" not in message.split(":")[0]
    assert match in act.run("config", "check", status=7).out


@pytest.mark.parametrize("url, status, match", [
    ("https://acct.blob.core.windows.net", 7, "is not a key vault of AzureCloud: its host is not in 'vault.azure.net'"),
    ("https://vault.azure.net", 7, "is not a key vault"),
    ("https://vault.example.com", None, "ACT_TRUSTED_HOSTS|trusted_hosts"),
    ("http://a.vault.azure.net", 7, "https")])
def test_a_token_goes_to_key_vaults_alone(act, store, vault, login, url, status, match):
    account(act, store, account_key=f"keyvault:{url}/secrets/x")
    act.fail("ls", "data", status=status, match=match)
    assert not vault.log and not login.asked("token")


def test_not_there_forbidden_disabled(act, store, vault):
    vault.forbidden.add("f")
    vault.disabled.add("d")
    for name, match in (("none", "SecretNotFound"), ("f", "'Key Vault Secrets User'"), ("d", "disabled secret")):
        account(act, store, account_key=vault.said(name))
        message = act.fail("ls", "data", status=None, match=match)
        assert f"{vault.url}/secrets/{name}" in message and "store.yaml:4" in message, message


def test_a_secret_that_is_no_key(act, store, vault):
    vault.secrets["storage"] = "not base64, but secret"
    message = act.fail("ls", "data", status=7, match="'account_key' is not base64")
    assert "but secret" not in message


def test_the_vault_is_of_another_tenant(act, store, vault, login):
    """The service names it, and no tenant is set where a token comes from 'az'."""
    vault.tenant = OTHER_TENANT
    act.fail("ls", "data", status=None, match="AKV10032|tenant")
    assert not vault.log


def test_nothing_is_submitted_without_its_secrets(act, vault):
    act.write("aux_data/configs/job.json", json.dumps({"properties": {
        "nodeCount": 1, "customToolkitSettings": {"commandLine": "true"},
        "secrets": [{"name": "TOKEN", "valueSecretReference": {"secretUrl": f"{vault.url}/secrets/none"}}]}}))
    act.fail("submit", "-f", "aux_data/configs/job.json", status=None, match="the variable 'TOKEN'.*SecretNotFound")
    assert act.run("q", "--json").json["runs"] == []


def test_an_unknown_project_is_asked_about(act, store, vault, login):
    """Its files say which secrets of the user are read."""
    (act.home / "trusted").unlink(missing_ok=True)
    message = act.fail("ls", "data", status=None, match="your login reads",
                       env={"ACT_TRUSTED_PROJECTS": ""})
    assert vault.url in message and not vault.log and not login.asked()


def test_what_only_looks_asks_no_vault(act, store, vault, login):
    for words in (["check"], ["show"], ["get", "platform"]):
        act.run("config", *words, status=None)
    assert not vault.log and not login.asked()


def test_a_password_goes_to_the_registry_that_was_trusted(act, kubernetes_api, vault):
    """A project that names a secret of the user's names whom the nodes show it to."""
    docker = {"address": "registry.example.com", "username": "me", "password": vault.said("registry")}
    kubernetes_api.use(act)
    kubernetes_api.cluster(docker=docker)
    act.run("-c", "k8s", "trust", "-y")
    del act.env["ACT_TRUSTED_PROJECTS"]
    assert act.run("-c", "k8s", "trust", "--json").json["untrusted"] == []
    kubernetes_api.cluster(docker={**docker, "address": "127.0.0.1:5000"})
    message = act.fail("-c", "k8s", "submit", "true", status=4)
    assert "'docker.password' is for the registry '127.0.0.1:5000'" in message, message
    assert not vault.log


@pytest.mark.parametrize("words", [("submit", "true"), ("sweep", "--grid", "n=1", "test", "{n}")])
def test_the_password_of_a_registry(act, kubernetes, vault, words):
    """The pods' Secret has it; what is shown has not."""
    vault.secrets["registry"] = "pssst-of-the-registry"
    kubernetes.cluster(docker={"address": "registry.example.com", "username": "me",
                               "password": vault.said("registry")})
    dry = act.run("-c", "k8s", words[0], "--dry-run", *words[1:])
    assert "pssst" not in dry.out and len(vault.log) == 1, "whether it can be had is known before"
    act.run("-c", "k8s", *words)
    secret, = [s["data"][key] for s in kubernetes.objects("Secret") for key in s["data"] if key == ".dockerconfigjson"]
    login = json.loads(base64.b64decode(secret))["auths"]["registry.example.com"]
    assert login["password"] == "pssst-of-the-registry"
    act.run("wait", "@")
    assert "pssst" not in act.run("q", "--json", "@").out


# ---- hostile references and vaults

A_DAY = 86400


@pytest.mark.parametrize("said", [
    "https://a.vault.azure.net:443@evil.example.com/secrets/x",
    "https://a.vault.azure.net\\@evil.example.com/secrets/x",
    "https://a.vault.azure.net%2f.evil.example.com/secrets/x", "https://a.vault.azure.net/secrets/..%2fkeys",
    "https://a.vault.azure.net/secrets/x/%2e%2e", "https://a.vault.azure.net/secrets/../keys/x",
    "https://a.vault.azure.net/secrets/x#y", "https://a.vault.azure.net//secrets/x", "https:///secrets/x",
    "HTTPS://a.vault.azure.net/secrets/x", "https://a.vault.azure.net/secrets/" + "x" * 128,
    "https://a.vault.azure.net.evil.example.com/secrets/x", "https://evilvault.azure.net/secrets/x",
    "https://169.254.169.254/secrets/x", "https://[::ffff:169.254.169.254]/secrets/x",
    "https://management.azure.com/secrets/x", "https://LONG.vault.azure.net/secrets/x"])
def test_a_hostile_reference_gets_no_token(act, store, vault, login, said):
    account(act, store, account_key=f"keyvault:{said.replace('LONG', 'a' * 100_000)}")
    assert len(act.fail("ls", "data", status=None)) < 1000
    assert not vault.log and not vault.refused and not login.asked("token")


def test_a_redirect_is_not_followed(act, store, vault, authority):
    """The token stays with the vault."""
    other = VaultDouble(authority)
    other.secrets["storage"] = store.key
    try:
        for status in (301, 302, 307, 308):
            vault.errors.append((status, {}, {"Location": f"{other.url}/secrets/storage?api-version=7.4"}))
            act.fail("ls", "data", status=None, match=f"{vault.url}/secrets/storage.*HTTP {status}")
        assert not other.log and not other.refused
    finally:
        other.close()


@pytest.mark.parametrize("answer, match", [
    (b"<html>sign in</html>", "the response is not JSON"),
    (b'{"value": "pssst-of-the', "the response is not JSON"),
    (b'["pssst-of-the-vault"]', "has no value"),
    (b'{"value": 12345678901}', "has no value"),
    (b'{"value": ""}', "has no value"),
    (b'{"value": "pssst\\u0000of-the-vault"}', "not JSON|no text"),
    (b'{"value": "pssst\xff\xfeof-the-vault"}', "not JSON"),
    (b'{"value": "pssst-' + b"x" * (17 << 20) + b'"}', "it has more than"),
    (b"", "the response is empty")], ids=lambda value: value[:20])
def test_answers_that_are_no_secret(act, store, vault, answer, match):
    vault.errors.append((200, answer))
    result = act.run("ls", "data", status=None, env={"ACT_TRACE": "all"})
    last = result.err.splitlines()[-1]
    assert result.status > 0 and re.search(match, last) and f"{vault.url}/secrets/storage" in last, last
    assert "pssst" not in result.err


def test_a_vault_that_is_busy(act, store, vault):
    """It may refuse each vault 4,000 times in ten seconds."""
    act.write("data/a.txt", "hello")
    vault.errors += [(429, {"error": {"code": "Throttled", "message": "Too many requests"}}, {"Retry-After": "1"}),
                     (503, {"error": {"code": "ServiceUnavailable", "message": "Later"}})]
    act.run("u", "data")
    assert vault.errors == [] and len(vault.log) == 1


def test_a_challenge_chooses_neither_host_nor_audience(act, store, vault, login):
    """Whoever answers as the vault gets no token for something else, and no other authority is asked."""
    vault.errors += [(401, {"error": {"code": "Unauthorized", "message": "AKV10000"}}, {
        "WWW-Authenticate": 'Bearer authorization="https://evil.example.com/common", '
                            'resource="https://management.azure.com", scope="https://management.azure.com/.default"'})]
    act.write("data/a.txt", "hello")
    act.run("u", "data")
    assert {row.form["scope"] for row in login.asked("token")} == {f"{AUDIENCE}/.default"}
    assert len(vault.log) == 1


def test_a_secret_that_has_expired(act, store, vault):
    """The service gives it all the same; what is done with it fails for a reason that is not seen otherwise."""
    act.write("data/a.txt", "hello")
    vault.attributes["storage"] = {"exp": int(time.time()) - A_DAY}
    assert f"the secret '{vault.url}/secrets/storage' has expired, on 20" in act.run("u", "data").err
    vault.attributes["storage"] = {"nbf": int(time.time()) + A_DAY}
    assert f"the secret '{vault.url}/secrets/storage' is to be used only from 20" in act.run("u", "data").err
    vault.attributes["storage"] = {"nbf": int(time.time()) - A_DAY, "exp": int(time.time()) + A_DAY}
    assert "secret" not in act.run("u", "data").err


def test_newlines_at_the_end_of_credentials(act, store, vault, kubernetes):
    """As 'az keyvault secret set --file' and 'echo' leave them. A variable is what the secret is."""
    act.write("data/a.txt", "hello")
    vault.secrets["storage"] = store.key + "\n"
    act.run("u", "data")
    vault.secrets["sas"] = "?" + store.container_sas(store.container) + "\r\n"
    account(act, store, sas_token=vault.said("sas"))
    act.run("u", "data")
    vault.secrets["registry"] = "pssst-of-the-registry\n"
    kubernetes.cluster(docker={"address": "registry.example.com", "username": "me",
                               "password": vault.said("registry")})
    act.run("-c", "k8s", "submit", "true")
    secret, = [s["data"][key] for s in kubernetes.objects("Secret") for key in s["data"] if key == ".dockerconfigjson"]
    login = json.loads(base64.b64decode(secret))["auths"]["registry.example.com"]
    assert login["password"] == "pssst-of-the-registry"
    act.run("wait", "@")
    vault.secrets["storage"] = "\n"
    account(act, store, account_key=vault.said("storage"))
    act.fail("ls", "data", status=7, match="'account_key' is not base64")


def test_no_secret_in_what_is_said(act, store, vault):
    """Not in a trace, not by ps, not on the disk of the node but where the run needs it."""
    vault.secrets["token"] = "hf_a-secret-of-others"
    command = "ps axww -o args | grep act-node > output/ps.txt; echo done"
    act.write("aux_data/configs/job.json", json.dumps({"properties": {
        "nodeCount": 1, "customToolkitSettings": {"commandLine": command},
        "secrets": [{"name": "TOKEN", "valueSecretReference": {"secretUrl": f"{vault.url}/secrets/token"}}]}}))
    result = act.run("submit", "-f", "aux_data/configs/job.json", env={"ACT_TRACE": "all"})
    run = result.out.split()[-1]
    act.run("wait", run)
    act.run("d", "output")
    said = result.out + result.err + (act.project / "output/ps.txt").read_text() + act.run("q", run).out
    for secret in ("hf_a-secret", store.key):
        assert secret not in said
    assert "secrets/token" in said
