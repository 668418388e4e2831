"""Logins: every source of tokens, their cache, what is refused; and Blob Storage with nothing else."""
import concurrent.futures
import json
import os
import re
import stat
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

import azurite
import slurm_bed
from login_double import CLIENT, OTHER_TENANT, RESOURCE, TENANT


@pytest.fixture
def store(act, double, login, az):
    """The project with its data at an account that has neither key nor SAS."""
    act.account("store", account_name=double.account, container_name=double.container, endpoint=double.endpoint)
    act.env |= {**login.authority(), "PATH": f"{az.folder}:{act.env['PATH']}"}
    yield double
    no_secrets(act, login)


def no_secrets(act, login):
    """Nothing secret is anywhere but in the cache, which only its owner can read."""
    for path in act.scratch.rglob("*"):
        if path.is_file() and path.name not in ("tokens.json", "assertion") and "az-bin" not in path.parts:
            content = path.read_bytes()
            assert not [s for s in login.secrets if s.encode() in content], path


def cache(act):
    return act.home / "cache/tokens.json"


def kept(act):
    return json.loads(cache(act).read_text())


def put(act, path="data/a.txt", content="hello"):
    act.write(path, content)


# ---- the sources


@pytest.mark.parametrize("source", ["principal", "federated", "app_service", "azureml", "machine"])
def test_each_source_gives_a_token_that_the_service_takes(act, store, login, source):
    env = login.federated(act.scratch) if source == "federated" else getattr(login, source)()
    put(act)
    act.run("u", "data", env=env)
    assert store.get(f"{store.container}/files/data/a.txt") == b"hello"
    asked = [row.kind for row in login.asked() if row.kind != "probe"]
    assert asked == [{"principal": "token", "federated": "token", "app_service": "app", "azureml": "azureml",
                      "machine": "imds"}[source]]
    act.run("ls", "data", env=env)
    assert len(login.asked()) == len(asked) + (source == "machine"), "the second command took it from the cache"


@pytest.mark.smoke
def test_login_says_who_one_is(act, store, login):
    who = act.run("login", "--json", env=login.principal()).json
    assert (who["version"], who["app_id"], who["tenant"], who["source"]) == (1, CLIENT, TENANT, "client secret")
    out = act.run("login", env=login.principal()).out
    assert out.splitlines()[0] == CLIENT and TENANT in out
    assert login.asked()[0].form["scope"] == RESOURCE + "/.default"


@pytest.mark.parametrize("form", ["new", "text", "old"])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_the_azure_cli(act, store, login, az, form, zone, monkeypatch):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        az.gives(login.token(upn="ann@contoso.com"), form=form)
    finally:
        monkeypatch.undo()
        time.tzset()
    who = act.run("login", "--json", env={"TZ": zone}).json
    assert (who["name"], who["source"]) == ("ann@contoso.com", "Azure CLI")
    left = kept(act)["tokens"]
    assert len(left) == 1 and abs(next(iter(left.values()))["expires_on"] - time.time() - 3600) < 120
    assert az.asked() == [f"/ account get-access-token --output json --resource {RESOURCE}"]
    act.run("login", env={"TZ": zone})
    assert len(az.asked()) == 1


def test_a_new_az_login_is_noticed(act, store, login, az):
    az.gives(login.token(upn="ann@contoso.com"))
    profile = act.scratch / "home/.azure/azureProfile.json"
    profile.parent.mkdir()
    profile.write_text("{}")
    assert act.run("login", "--json").json["name"] == "ann@contoso.com"
    az.gives(login.token(upn="bob@contoso.com"))
    os.utime(profile, (1, 1))
    assert act.run("login", "--json").json["name"] == "bob@contoso.com"


@pytest.mark.parametrize("err, status, message", [
    ("ERROR: Please run 'az login' to setup account.", 1, "run 'az login'"),
    ("AADSTS50076: x\nTo re-authenticate, run:\naz login --scope https://storage.azure.com/.default", 1,
     "AADSTS50076: x; run 'az login --scope https://storage.azure.com/.default'"),
    ("ERROR: AADSTS700082: The refresh token has expired due to inactivity. Trace ID: 1 Correlation ID: 2\n"
     "Interactive authentication is needed. Please run:\naz login\n", 1,
     "Azure CLI: AADSTS700082: The refresh token has expired due to inactivity; run 'az login' or"),
    ("Interactive authentication is needed. Please run 'az login --tenant \"t\" --scope \"s\"' now.", 1,
     "Azure CLI: not logged in for this; run 'az login --tenant \"t\" --scope \"s\"'"),
    ("ERROR: AADSTS90002: Tenant 'x' not found. Trace ID: 1", 1, "failed: AADSTS90002: Tenant 'x' not found"),
    ("/bin/sh: 1: az: not found", 127, "no such program"),
    ("Something broke", 3, "failed: Something broke"),
    ("", 1, "it did not say why"),
    ("leak eyJhbGciOiJIUzI1NiJ9.eyJhdWQiOiJ4In0.c2ln", 1, "leak REDACTED"),
])
def test_what_az_says_when_it_fails(act, store, az, err, status, message):
    az.says(err=err, status=status)
    text = act.fail("ls", "data", status=4, match="no credential for account 'actdouble'")
    assert "Azure CLI: " in text and message in text and text.count("az login") <= 1


@pytest.mark.parametrize("out, message", [
    ("", "the response is not JSON"), ("garbage", "the response is not JSON"), ("{}", "no token that can be used"),
    ('{"accessToken": 7}', "no token that can be used"),
    ('{"accessToken": "x", "expires_on": 5}', "ended at 1970-01-01T00:00:05Z, but the clock of this machine says 20"),
    ('{"accessToken": "a\\nb", "expires_on": 99999999999}', "no token that can be used")])
def test_az_that_prints_no_token(act, store, az, out, message):
    az.says(out=out)
    act.fail("ls", "data", status=4, match=f"'az account get-access-token': .*{message}")


def test_az_that_hangs(act, store, az):
    az.says(seconds=600)
    act.fail("ls", "data", status=4, match="did not end within 1 s", env={"ACT_AZ_TIMEOUT": "1"})


def test_no_az(act, store, az):
    text = act.fail("ls", "data", status=4, match="no credential for account 'actdouble'")
    for tried in ("you are not logged in to Azure: no AZURE_CLIENT_SECRET, ", "device login: none; ",
                  "managed identity: this machine has none", "Azure CLI: no such program 'az'; "):
        assert tried in text, text
    assert text.endswith("; run 'az login' or 'a login --device-code'") and text.count("az login") == 1
    for only, remedy in (("AzureCliCredential", "; run 'az login'"),
                         ("DeviceCodeCredential", "; run 'a login --device-code'"),
                         ("ManagedIdentityCredential", "no metadata service answers")):
        assert act.fail("ls", "data", status=4, env={"AZURE_TOKEN_CREDENTIALS": only}).endswith(remedy)


def test_use_cli_auth_asks_nothing_else(act, store, login, az):
    az.gives(login.token(upn="ann@contoso.com"))
    act.cluster("aml", extra={"use_cli_auth": True})
    assert act.run("login", "--json", env=login.principal()).json["source"] == "Azure CLI"
    assert login.asked() == []


def test_the_environment_may_name_the_credential(act, store, login, az):
    az.gives(login.token(upn="ann@contoso.com"))
    env = {**login.principal(), "AZURE_TOKEN_CREDENTIALS": "AzureCliCredential"}
    assert act.run("login", "--json", env=env).json["source"] == "Azure CLI"
    env["AZURE_TOKEN_CREDENTIALS"] = "dev"
    assert act.run("login", "--json", env=env).json["source"] == "Azure CLI"
    act.fail("login", status=4, match="AZURE_TOKEN_CREDENTIALS is 'Mine', which leaves no source to ask",
             env=env | {"AZURE_TOKEN_CREDENTIALS": "Mine"})
    env["AZURE_TOKEN_CREDENTIALS"] = "prod"
    assert act.run("login", "--json", env=env).json["source"] == "client secret"


# ---- refusals


def test_a_wrong_secret(act, store, login, az):
    az.gives(login.token())
    env = login.principal() | {"AZURE_CLIENT_SECRET": "wrong"}
    text = act.fail("ls", "data", status=4, match="invalid_client: AADSTS7000215: Invalid client secret provided",
                    env=env)
    assert "c0ffee00-0000-4000-8000-000000000000" in text and "Trace" not in text
    assert az.asked() == [], "what is set up is the only one"


def test_a_wrong_assertion(act, store, login):
    env = login.federated(act.scratch)
    (act.scratch / "assertion").write_text("other")
    act.fail("ls", "data", status=4, match="federated token: no token: HTTP 401 invalid_client: AADSTS700212", env=env)
    (act.scratch / "assertion").write_text("\n")
    act.fail("ls", "data", status=4, match="is empty", env=env)
    (act.scratch / "assertion").unlink()
    act.fail("ls", "data", match="No such file", status=None, env=env)


@pytest.mark.parametrize("tenant, message", [
    ("99999999-0000-4000-8000-000000000000", "AADSTS90002"),
    ("../../common", "is not a tenant"),
    (OTHER_TENANT, f"the account belongs to the tenant {TENANT}"),
])
def test_a_wrong_tenant(act, store, login, tenant, message):
    text = act.fail("ls", "data", status=4, env=login.principal(tenant))
    assert message in text


def test_the_tenant_that_the_service_names_is_asked_where_none_is_set(act, store, login, az):
    """'az login' in a home tenant, the account in another one."""
    az.gives(login.token(tenant=OTHER_TENANT))
    script = az.folder / "az"
    right = login.token(tenant=TENANT)
    text = script.read_text().replace("cat '", f"case \"$*\" in *'--tenant {TENANT}') cat '{az.folder}/right'; exit;; "
                                               f"esac\n"
                                      "cat '", 1)
    (az.folder / "right").write_text(json.dumps({"accessToken": right, "expires_on": int(time.time()) + 3600}))
    script.write_text(text)
    act.write("data/a", "1")
    act.run("u", "data")
    assert [line.split()[-1] for line in az.asked()] == [RESOURCE, TENANT]


def test_the_login_host_breaks(act, store, login):
    login.errors = [(500, {"error": "server_error"}), (503, b"<html>"), (429, {"error": "throttled"})]
    act.run("login", env=login.principal())
    assert len(login.asked("token")) == 4
    login.errors = [(200, b"garbage")]
    act.run("logout")
    act.fail("login", match="the response has no token that can be used", env=login.principal())
    login.errors = [(200, {"access_token": "x", "expires_in": -1})]
    act.fail("login", match="the response has no token that can be used", env=login.principal())
    act.fail("login", status=5, match="cannot reach 127.0.0.1:9",
             env=login.principal() | {"AZURE_AUTHORITY_HOST": "http://127.0.0.1:9"})
    act.fail("login", status=7, match="must begin with 'https://'",
             env=login.principal() | {"AZURE_AUTHORITY_HOST": "http://login.example"})
    act.fail("login", status=7, match="AZURE_CLOUD is 'Mars'", env=login.principal() | {"AZURE_CLOUD": "Mars"})


def test_no_token_goes_over_an_open_wire(act, store, login):
    keys = {"account_name": "someone", "container_name": "some", "endpoint": "http://storage.example"}
    act.account("store", **keys)
    act.fail("ls", "data", status=7, match="is not encrypted", env=login.principal())
    act.account("store", **keys, auth="login")
    act.fail("ls", "data", status=7, match="needs an 'endpoint' that is encrypted", env=login.principal())
    assert login.asked() == []


def test_a_proxy_is_for_others_than_this_machine(act, store, login):
    proxy = {"http_proxy": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"}
    assert act.run("login", "--json", env=login.machine() | proxy).json["source"] == "managed identity"
    text = act.fail("login", status=5,
                    env=login.principal() | proxy | {"AZURE_AUTHORITY_HOST": "https://login.invalid"})
    assert "cannot reach login.invalid:443: the proxy 'http://127.0.0.1:9' cannot be used: Connection refused" in text


# ---- clocks

HOURS = 3 * 3600


@pytest.mark.parametrize("ahead", [HOURS, -HOURS])
@pytest.mark.parametrize("source", ["principal", "app_service", "azureml", "machine"])
def test_a_clock_that_differs_from_that_of_the_services(act, store, login, source, ahead):
    """The token is as good as with the right clock, and is kept for as long as it lasts, not longer."""
    login.clock = ahead
    store.clock(ahead)
    act.env |= getattr(login, source)()
    put(act)
    act.run("u", "data")
    left = next(iter(kept(act)["tokens"].values()))
    assert abs(left["expires_on"] - time.time() - login.life) < 120
    before = len(login.asked())
    assert act.run("cat", "data/a.txt").out == "hello"
    assert [row.kind for row in login.asked()[before:] if row.kind != "probe"] == []


def test_a_clock_that_is_behind_that_of_az(act, store, login, az):
    login.clock = HOURS
    store.clock(HOURS)
    az.gives(login.token(upn="ann@contoso.com"), life=HOURS + login.life)
    put(act)
    act.run("u", "data")
    left = next(iter(kept(act)["tokens"].values()))
    assert abs(left["expires_on"] - time.time() - login.life) < 120, "no token lasts longer than it does in all"


@pytest.mark.parametrize("form", ["new", "old"])
def test_a_clock_that_is_ahead_of_that_of_az_is_named(act, store, login, az, form):
    login.clock = -HOURS
    az.gives(login.token(upn="ann@contoso.com"), life=login.life - HOURS, form=form)
    act.fail("ls", "data", status=4, match=r"Azure CLI: .* ended at 20[-0-9T:]+Z, but the clock of this machine says "
             r"20[-0-9T:]+Z; is that clock right\?$")


# ---- virtual machines


def test_the_metadata_service_is_being_updated(act, store, login):
    login.identity_errors = [(410, {"error": "gone"})]
    act.run("login", env=login.machine())
    assert [row.kind for row in login.asked()] == ["probe", "imds", "imds"]


def test_a_machine_without_an_identity(act, store, login, az):
    az.gives(login.token(upn="ann@contoso.com"))
    login.imds = False
    assert act.run("login", "--json", env=login.machine()).json["source"] == "Azure CLI"
    login.identity_errors = [(403, {"error": "forbidden", "error_description": "no"})]
    act.run("logout")
    act.fail("login", status=4, match="managed identity: no token: HTTP 403 forbidden: no", env=login.machine())


@pytest.mark.parametrize("address", ["http://192.0.2.1", "http://127.0.0.1:9", "http://nowhere.invalid"])
def test_no_metadata_service(act, store, login, az, address):
    az.gives(login.token(upn="ann@contoso.com"))
    env = {"AZURE_POD_IDENTITY_AUTHORITY_HOST": address}
    assert act.run("login", "--json", env=env).json["source"] == "Azure CLI"


@pytest.mark.parametrize("status, body", [(403, b""), (404, b"<html>"), (401, b"{}"), (403, b"[]"),
                                          (403, b"the network is unreachable")])
def test_the_metadata_service_of_somebody_else(act, store, login, az, status, body):
    az.gives(login.token(upn="ann@contoso.com"))
    login.probe_errors = [(status, body)]
    assert act.run("login", "--json", env=login.machine()).json["source"] == "Azure CLI"
    assert [row.kind for row in login.asked()] == ["probe"]
    az.says(err="Please run 'az login'", status=1)
    act.run("logout")
    login.probe_errors = [(status, body)]
    act.fail("login", status=4, match=rf"its metadata service is not Azure's \(HTTP {status}\)", env=login.machine())


def test_an_identity_that_a_user_assigned(act, store, login):
    act.run("login", env={**login.machine(), "AZURE_CLIENT_ID": "assigned"})
    assert login.asked("imds")[0].form["client_id"] == "assigned"
    act.run("login", env={**login.azureml(), "AZURE_CLIENT_ID": ""})
    assert login.asked("azureml")[0].form["clientid"] == CLIENT


def test_the_token_of_an_identity_is_renewed_at_half_life(act, store, login):
    login.life = 86400
    act.run("login", env=login.app_service())
    token = next(iter(kept(act)["tokens"].values()))
    assert abs(token["refresh_on"] - time.time() - 43200) < 60
    login.numbers_as_text = False
    login.life = 3600
    act.run("logout")
    act.run("login", env=login.app_service())
    token = next(iter(kept(act)["tokens"].values()))
    assert token["expires_on"] - token["refresh_on"] == 300


# ---- the cache


def test_twenty_processes_ask_once(act, store, login):
    login.delay = 1
    put(act)
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        done = [pool.submit(act.run, "login", "--json", env=login.principal()) for _ in range(20)]
        assert {d.result().json["app_id"] for d in done} == {CLIENT}
    assert len(login.asked("token")) == 1


def test_many_requests_ask_once(act, store, login):
    for i in range(100):
        act.write(f"data/{i}", str(i))
    act.run("u", "data", env=login.principal())
    assert len(login.asked("token")) == 1
    assert len(store.list(store.container, "files/data/")) == 100


def test_the_cache_is_for_its_owner(act, store, login):
    act.run("login", env=login.principal())
    assert stat.S_IMODE(cache(act).stat().st_mode) == 0o600
    assert stat.S_IMODE(cache(act).parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", [b"", b"garbage", b"[]", b'{"version": 2}', b'{"version": 1, "tokens": 3}',
                                     b'{"version": 1, "tokens": {}, "logins": {}}' + b" " * (5 << 20)],
                         ids=["empty", "garbage", "array", "version", "number", "large"])
def test_a_damaged_cache_is_replaced(act, store, login, content):
    cache(act).parent.mkdir(mode=0o700, parents=True)
    cache(act).write_bytes(content)
    cache(act).chmod(0o600)
    act.run("login", env=login.principal())
    assert len(kept(act)["tokens"]) == 1
    act.run("login", env=login.principal())
    assert len(login.asked()) == 1


@pytest.mark.parametrize("wrong", ["mode", "link"])
def test_a_cache_that_others_could_have_written(act, store, login, wrong):
    act.run("login", env=login.principal())
    if wrong == "mode":
        cache(act).chmod(0o644)
    else:
        cache(act).rename(act.scratch / "tokens.json")
        cache(act).symlink_to(act.scratch / "tokens.json")
    result = act.run("login", env=login.principal())
    assert "is not used: it is not a file that only you can read and write" in result.err
    assert len(login.asked()) == 2
    assert not cache(act).is_symlink() and stat.S_IMODE(cache(act).stat().st_mode) == 0o600
    assert act.run("login", env=login.principal()).err == ""


def test_a_cache_that_cannot_be_written(act, store, login):
    act.respect_modes()
    cache(act).parent.mkdir(mode=0o500, parents=True)
    result = act.run("login", "--json", env=login.principal())
    assert result.json["app_id"] == CLIENT and "the login is not kept for the next command" in result.err
    cache(act).parent.chmod(0o700)


def test_a_full_disk(act, store, login):
    if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("no mount namespaces here")
    cache(act).parent.mkdir(mode=0o700, parents=True)
    script = ('mount -t tmpfs -o size=4k,mode=0700 none "$1" && head -c 4096 /dev/zero > "$1/full"; shift; exec "$@"')
    act.prefix = ("unshare", "-m", "sh", "-c", script, "sh", str(cache(act).parent))
    result = act.run("login", "--json", env=login.principal())
    assert result.json["app_id"] == CLIENT and "the login is not kept for the next command" in result.err
    assert not cache(act).exists()


def test_a_token_that_ends_soon_is_renewed(act, store, login):
    login.life = 700
    act.run("login", env=login.principal())
    key, entry = next(iter(kept(act)["tokens"].items()))
    content = kept(act)
    content["tokens"][key] = {**entry, "expires_on": int(time.time()) + 299, "refresh_on": int(time.time()) - 1}
    cache(act).write_text(json.dumps(content))
    act.run("login", env=login.principal())
    assert len(login.asked("token")) == 2
    login.errors = [(500, {})] * 20  # what is not due yet is not asked for
    act.run("login", env=login.principal())
    assert len(login.asked("token")) == 2


@pytest.mark.smoke
def test_logout(act, store, login):
    act.run("login", env=login.principal())
    assert "logged out" in act.run("logout").err
    assert not cache(act).exists()
    assert "no login to forget" in act.run("logout").err


# ---- 401


def test_a_token_that_the_service_refuses_is_asked_for_again_once(act, store, login):
    env = login.principal()
    put(act)
    act.run("u", "data", env=env)
    store.clock(4000)  # as if it had ended; the next one lives longer
    login.life = 86400
    for i in range(20):
        act.write(f"data/{i}", str(i))
    act.run("u", "data", env=env)
    assert len(login.asked("token")) == 2
    store.clock(0)
    assert len(store.list(store.container, "files/data/")) == 21
    store.forget()
    store.clock(200000)
    act.fail("ls", "data", status=4, match="the service rejects the login", env=env)
    refused = [r for r in store.log() if r.status == 401]
    assert len(refused) == 2 and len(login.asked("token")) == 3


@pytest.mark.parametrize("source", ["app_service", "machine"])
def test_a_refused_token_of_a_machine_is_asked_for_again(act, store, login, source):
    env = getattr(login, source)()
    put(act)
    act.run("u", "data", env=env)
    store.clock(4000)
    login.life = 86400
    act.run("ls", "data", env=env)
    assert len([row for row in login.asked() if row.kind != "probe"]) == 2


def test_a_claims_challenge_names_the_command(act, store, login):
    claims = "eyJhY2Nlc3NfdG9rZW4iOnsibmJmIjp7ImVzc2VudGlhbCI6dHJ1ZX19fQ=="
    login.claims = {}
    token = login.token
    login.token = lambda audience=RESOURCE, tenant=None, **more: token(audience, tenant, **more, challenge=claims)
    text = act.fail("ls", "data", status=4, env=login.principal())
    assert f"run 'az login --claims-challenge {claims} --scope {RESOURCE}/.default --tenant {TENANT}'" in text
    assert len(login.asked("token")) == 1, "it does not help to ask again"


def test_traces_and_errors_show_no_secret(act, store, login):
    put(act, content="x" * 100)
    env = {**login.principal(), "ACT_TRACE": "all"}
    result = act.run("u", "data", env=env)
    url = act.run("url", "data/a.txt", env=env)
    other = act.run("login", env={**login.machine(), "ACT_TRACE": "all"})
    assert "auth: token for https://storage.azure.com/.default from client secret until" in result.err
    for text in (result.err, url.err, other.err):
        assert not [s for s in login.secrets if s in text]
        assert "sig=" not in text.replace("sig=REDACTED", "")


def test_the_token_ends_between_two_tries(act, store, login):
    """The service throttles for longer than the token lives: the next try has another one."""
    login.life = 3
    store.fault("answer", status=503, retry_after=4, method="PUT", times=3)
    put(act)
    act.run("u", "data", env=login.principal())
    assert store.get(f"{store.container}/files/data/a.txt") == b"hello"
    assert len(login.asked("token")) > 1 and 401 not in [r.status for r in store.log()]


# ---- everything that a store does


def test_all_verbs_with_a_login(act, store, login):
    act.env |= login.principal()
    big = os.urandom(1 << 20) * 20
    act.write("data/big", big)
    for i in range(20):
        act.write(f"data/many/{i}", str(i))
    act.run("u", "data")
    assert store.get(f"{store.container}/files/data/big") == big
    assert len(act.run("ls", "-r", "data").out.splitlines()) >= 21
    assert act.run("cat", "data/many/7").out == "7"
    act.run("verify", "data")
    act.run("du", "data")
    subprocess.run(["rm", "-r", act.project / "data"], check=True)
    act.run("d", "data")
    assert (act.project / "data/big").read_bytes() == big
    store.forget()
    act.run("rm", "-y", "data/many")
    assert [r.method for r in store.log() if "comp=batch" in r.target] == ["POST"]
    assert [r for r in store.log() if r.method == "DELETE"] == []
    act.run("init")
    act.write("more.py", "print(1)")
    act.run("init")
    assert len(login.asked("token")) == 1
    assert {row.status for row in store.log()} <= {200, 201, 202, 206, 404, 412}


def test_parts_of_a_batch_whose_token_has_ended_go_alone(act, store, login):
    token = login.token
    login.token = lambda audience=RESOURCE, tenant=None, **more: token(audience, tenant, **more, parts="false")
    act.env |= login.principal()
    for i in range(20):
        act.write(f"data/{i}", str(i))
    act.run("u", "data")
    store.forget()
    act.run("rm", "-y", "data")
    assert store.list(store.container, "files/data/") == {}
    assert [r.status for r in store.log() if "comp=batch" in r.target] == [202]
    assert [r.status for r in store.log() if r.method == "DELETE"] == [202] * 20


def read(url):
    with urllib.request.urlopen(url, timeout=300) as answer:
        return answer.read()


def test_a_url_is_signed_by_the_login(act, store, login):
    act.env |= login.principal()
    put(act, "data/a b&\u00e9.txt", "hello")
    act.run("u", "data")
    url = act.run("url", "data/a b&\u00e9.txt").out.strip()
    fields = dict(urllib.parse.parse_qsl(url.partition("?")[2]))
    assert {"sv", "se", "sr", "sp", "skoid", "sktid", "skt", "ske", "sks", "skv", "sig"} <= fields.keys()
    assert (fields["sp"], fields["sr"], fields["sktid"]) == ("r", "b", TENANT)
    assert read(url) == b"hello"
    for wrong in (url.replace("sp=r", "sp=rw"), url.replace("skoid=", "skoid=0"), url.replace("a%20b", "other")):
        with pytest.raises(urllib.error.HTTPError):
            read(wrong)
    urls = act.run("url", "--expires", "7d", "data/a b&\u00e9.txt").out.split()
    assert read(urls[0]) == b"hello"
    act.fail("url", "--expires", "8d", "data/a b&\u00e9.txt", status=2, match="at most 7 days")


def no_delegation(login):
    """The role is one on the container alone."""
    token = login.token
    login.token = lambda audience=RESOURCE, tenant=None, **more: token(audience, tenant, **more, delegation="false")


def test_a_login_that_may_not_sign_urls(act, store, login):
    no_delegation(login)
    act.env |= login.principal()
    put(act)
    act.run("u", "data")
    act.fail("url", "data/a.txt", status=4, match="a role on the whole account")


def two_accounts(act, store, second=None):
    other = store.other("actsecond")
    other.create(store.container)
    keys = {"account_key": other.key} if second == "key" else {}
    act.account("second", account_name=other.account, container_name=store.container, endpoint=other.endpoint, **keys)
    act.cluster("second", account="second")
    return other


@pytest.mark.parametrize("second", ["login", "key"])
@pytest.mark.parametrize("size", [1000, 300 << 20])
def test_copies_between_accounts_stay_in_the_service(act, store, login, second, size):
    act.env |= login.principal()
    other = two_accounts(act, store, second)
    (act.project / "data").mkdir()
    with open(act.project / "data/a", "wb") as f:
        f.truncate(size)
    act.run("u", "data")
    store.forget()
    act.run("-c", "second", "-f", "aml", "u", "data")
    assert int(other.head(f"{store.container}/files/data/a")["content-length"]) == size
    assert [r for r in store.log() if r.method == "GET" and r.target.endswith("/a")] == []
    assert len([r for r in store.log() if "userdelegationkey" in r.target]) == 1
    other.request("DELETE", store.container, {"restype": "container"})


def test_copies_stream_where_no_url_can_be_signed(act, store, login):
    no_delegation(login)
    act.env |= login.principal()
    other = two_accounts(act, store)
    for i in range(10):
        act.write(f"data/{i}", str(i))
    act.run("u", "data")
    act.run("-c", "second", "-f", "aml", "u", "data")
    assert other.get(f"{store.container}/files/data/7") == b"7"
    other.request("DELETE", store.container, {"restype": "container"})


def test_a_role_that_only_reads(act, store, login):
    act.write("data/a", "1")
    act.run("u", "data", env=login.principal())
    act.run("logout")
    token = login.token
    login.token = lambda audience=RESOURCE, tenant=None, **more: token(audience, tenant, **more, rights="rl")
    act.run("ls", "data", env=login.principal())
    act.write("data/b", "2")
    text = act.fail("u", "data", env=login.principal(), status=None, match="AuthorizationPermissionMismatch")
    assert "Storage Blob Data Contributor" in text


def test_auth_login_passes_over_a_key(act, store, login):
    act.account("store", account_name=store.account, container_name=store.container, endpoint=store.endpoint,
                account_key=store.key, auth="login")
    put(act)
    act.run("u", "data", env=login.principal())
    assert len(login.asked("token")) == 1


def test_anonymous_is_said(act, store, login):
    act.account("store", account_name=store.account, container_name=store.container, endpoint=store.endpoint,
                auth="anonymous")
    act.fail("ls", "data", match="PublicAccessNotPermitted", env=login.principal(), status=None)
    assert login.asked() == []


def test_the_nodes_of_a_cluster_get_a_url_that_the_login_signed(act, store, login):
    if slurm_bed.missing():
        pytest.skip(slurm_bed.missing())
    act.env |= login.principal()
    path = act.cluster("bed", folders=("data", "output"), extra={"platform": "slurm", "gpu_per_node": 2,
                                                                 "slurm": {"root": str(act.scratch / "shared")}})
    config = json.loads(path.read_text())
    for folder, mode in (("data", "download"), ("output", "upload")):
        config["config_param"][f"{folder}_folder"]["mode"] = mode
    path.write_text(json.dumps(config))
    put(act)
    act.run("-c", "bed", "u", "data")
    with slurm_bed.running(nodes=1, gpus=2) as bed:
        act.env |= {"SLURM_CONF": str(bed.conf), "PATH": f"{act.env['PATH']}:/usr/sbin:/sbin"}
        act.write("job.sh", "cat data/a.txt && echo $ACT_RUN_ID > output/id")
        run = act.submit("bash", "job.sh", before=("-c", "bed", "-n", "1"))
        act.run("wait", run)
        assert store.get(f"{store.container}/files/output/id").decode().strip() == run
    given = json.loads(next((act.scratch / "shared").rglob("stores.json")).read_text())["folders"]
    rights = {name: dict(urllib.parse.parse_qsl(folder["sas_token"])) for name, folder in given.items()}
    assert all(folder["by_login"] for folder in given.values())
    given = {name: (row["sp"], row["sr"]) for name, row in rights.items()}
    assert given == {"data": ("rl", "c"), "output": ("rcwl", "c")}
    assert all("skoid" in row for row in rights.values())


# ---- the second judge


def test_azurite_takes_the_logins_and_the_urls(act, login, scratch):
    if not azurite.PROGRAM.exists():
        pytest.skip("azurite is not installed: scripts/install-deps --test")
    login.life = 86400
    with azurite.running(scratch / "azurite", with_logins=True) as service:
        service.create("logins")
        act.env |= {**login.principal(), "ACT_CA_FILE": str(service.ca)}
        act.account("store", account_name=service.account, container_name="logins", endpoint=service.endpoint)
        act.write("data/a b.txt", "hello")
        for i in range(10):
            act.write(f"data/many/{i}", str(i))
        act.run("u", "data")
        assert service.get("logins/files/data/a b.txt") == b"hello"
        act.run("verify", "data")
        url = act.run("url", "data/a b.txt").out.strip()
        assert "skoid=" in url
        with urllib.request.urlopen(url, timeout=300, context=service.context) as answer:
            assert answer.read() == b"hello"
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(url.replace("sp=r", "sp=rw"), timeout=300, context=service.context)
        act.run("rm", "-y", "data/many")
        assert list(service.list("logins", "files/data/")) == ["files/data/a b.txt"]
        act.run("init")
        act.write("more.py", "print(1)")
        act.run("init")


# ---- the device code


@pytest.mark.smoke
def test_a_device_code(act, store, login):
    login.device = ["authorization_pending", "slow_down"]
    result = act.run("login", "--device-code", "--json")
    assert "enter the code ABCD-EFGH" in result.err
    who = result.json
    assert (who["name"], who["source"]) == ("ann@contoso.com", "device login")
    kinds = [row.form.get("grant_type", "code").rpartition(":")[2] for row in login.asked()]
    assert kinds == ["code", "device_code", "device_code", "device_code", "refresh_token"]
    assert login.asked("devicecode")[0].tenant == "organizations"
    assert login.asked("devicecode")[0].form["scope"].split() == [RESOURCE + "/.default", "openid", "profile",
                                                                  "offline_access"]
    put(act)
    act.run("u", "data")
    store.clock(4000)
    login.life = 86400
    act.run("ls", "data")
    assert login.asked()[-1].form["grant_type"] == "refresh_token"
    assert len(kept(act)["logins"]) == 1


@pytest.mark.parametrize("state, message", [("authorization_declined", "the login was declined"),
                                            ("expired_token", "the code was not typed in time"),
                                            ("bad_verification_code", "bad_verification_code: AADSTS70016")])
def test_a_device_code_that_is_not_used(act, store, login, state, message):
    login.device = ["authorization_pending", state]
    result = act.run("login", "--device-code", status=4)
    assert result.err.splitlines()[-1].startswith("act: cannot log in: ") and message in result.err
    assert not cache(act).exists()


def test_the_login_comes_before_the_azure_cli(act, store, login, az):
    """Also when its token has ended and that of az has not."""
    az.gives(login.token(upn="bob@contoso.com"))
    act.run("login")
    login.life = 2
    assert act.run("login", "--device-code", "--json").json["name"] == "ann@contoso.com"
    time.sleep(1.5)
    login.life = 3600
    who = act.run("login", "--json").json
    assert (who["name"], who["source"]) == ("ann@contoso.com", "device login")
    assert login.asked()[-1].form["grant_type"] == "refresh_token"


def test_a_device_login_for_a_tenant(act, store, login):
    act.run("login", "--device-code", "--tenant", OTHER_TENANT)
    assert {row.tenant for row in login.asked()} == {OTHER_TENANT}
    result = act.run("login", "--device-code", "--tenant", "a/b", status=2)
    assert "'a/b' is not a tenant" in result.err
    act.fail("login", "--tenant", TENANT, status=2, match="--tenant is for --device-code")


def test_a_device_login_that_has_ended(act, store, login, az):
    act.run("login", "--device-code")
    az.gives(login.token())
    content = kept(act)
    content["tokens"] = {}
    cache(act).write_text(json.dumps(content))
    login.refresh_token = "another"
    text = act.fail("login", status=4, match="device login: the login has ended: HTTP 400 invalid_grant")
    assert "run 'a login --device-code' again, or 'a logout'" in text
    act.run("logout")
    assert act.run("login", "--json").json["source"] == "Azure CLI"


def test_another_device_login_takes_the_place_of_the_first(act, store, login):
    act.run("login", "--device-code")
    first = kept(act)
    act.run("login", "--device-code")
    second = kept(act)
    assert [k for k in first["tokens"]] == [k for k in second["tokens"]]
    assert first["tokens"] != second["tokens"]


def test_names_in_a_token_cannot_drive_a_terminal(act, store, login, az):
    az.gives(login.token(upn="\x1b[31mann\n"))
    assert re.match(r"\?\[31mann\?\n", act.run("login").out)
