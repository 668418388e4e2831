"""Who one is to Azure Machine Learning, played by its double: which cloud and which tenant are asked for the token, and
what becomes of a submission of somebody who is not logged in."""
import json
import ssl
import time
import urllib.parse

import pytest

from authority import Authority
from azureml_double import OTHER_TENANT, SECRET, TENANT
from connect_proxy import ConnectProxy
from fault_proxy import FaultProxy
from test_azureml import submit

CLOUDS = {"AzureCloud": "https://management.azure.com", "AzureUSGovernment": "https://management.usgovcloudapi.net",
          "AzureChinaCloud": "https://management.chinacloudapi.cn"}
NOBODY_THERE = {"HTTPS_PROXY": "http://127.0.0.1:9", "ACT_MAX_RETRIES": "0"}


@pytest.fixture
def by_az(act, azureml, az):
    """The login is that of az alone."""
    for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"):
        del act.env[name]
    act.env["PATH"] = f"{az.folder}:{act.env['PATH']}"
    return az


def token(azureml, tenant, audience="https://management.azure.com"):
    return azureml.tell("token", audience=audience, tenant=tenant)["token"]


def at_home(azureml, az, there, status=0):
    """az has a home tenant; for the workspace's tenant it says what is given."""
    az.gives(token(azureml, OTHER_TENANT))
    script = az.folder / "az"
    (az.folder / "there").write_text(there)
    script.write_text(script.read_text().replace(
        "cat '", f"case \"$*\" in *'--tenant {TENANT}') cat '{az.folder}/there' >&{1 + bool(status)}; exit {status};; "
                 f"esac\ncat '", 1))


def printed(text):
    return json.dumps({"accessToken": text, "expires_on": int(time.time()) + 3600})


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


# ---- clocks


@pytest.mark.parametrize("who", ["secret", "identity"])
@pytest.mark.parametrize("hours", [3, -3])
def test_clock_of_the_service_differs(act, azureml, hours, who):
    azureml.tell("settings", clock=hours * 3600 * 1000)
    if who == "identity":
        del act.env["AZURE_CLIENT_SECRET"]
        act.env |= {"IDENTITY_ENDPOINT": azureml.links["login"] + "/msi/token", "IDENTITY_HEADER": "msi-header"}
    submit(act, "true")
    act.run("summary")
    assert len(azureml.requests("login")) == 1 and 401 not in [r["status"] for r in azureml.requests()]


def test_clock_of_the_service_is_named_when_it_refuses_the_login(act, azureml, by_az):
    """az takes what it keeps for valid, by a clock that is behind."""
    by_az.gives(token(azureml, TENANT))
    azureml.tell("settings", clock=3 * 3600 * 1000)
    act.fail("summary", status=4,
             match="ExpiredAuthenticationToken.*; the clock of this machine is 3h00m behind that of the service$")


# ---- nobody


def test_who_is_not_logged_in_packs_nothing(act, azureml, by_az, container):
    by_az.says(err="ERROR: Please run 'az login' to setup account.", status=1)
    act.write("code.txt", "the code")
    text = act.fail("submit", "cat", "code.txt", status=4, match="^act: you are not logged in to Azure: ")
    assert text.count("az login") == 1 and "cannot" not in text
    assert azureml.service.list(container) == {} and azureml.requests("arm", "api") == []
    assert not (act.home / "cache").exists() or not list((act.home / "cache").rglob("*.zip"))
    assert act.run("q", "--json").json["runs"] == []


def test_what_entra_said_to_az_is_shown(act, azureml, by_az):
    by_az.says(err="ERROR: AADSTS50173: The provided grant has expired due to it being revoked. Trace ID: 0\n"
               "Interactive authentication is needed. Please run:\naz login\n", status=1)
    act.fail("submit", "true", status=4,
             match="Azure CLI: AADSTS50173: The provided grant has expired due to it being revoked; "
             "run 'az login' or 'a login --device-code'$")


def test_a_login_that_is_kept_costs_a_submission_nothing(act, azureml):
    submit(act, "true")
    azureml.forget()
    submit(act, "true")
    assert azureml.requests("login") == []


# ---- tenants


def test_the_tenant_that_the_service_names_is_asked_where_none_is_set(act, azureml, by_az):
    """'az login' in a home tenant, the workspace in another one."""
    at_home(azureml, by_az, printed(token(azureml, TENANT)))
    submit(act, "true")
    assert [line.partition("management.azure.com")[2].strip() for line in by_az.asked()] == ["", f"--tenant {TENANT}"]
    assert [r["status"] for r in azureml.requests("arm")].count(401) == 1
    azureml.forget()
    act.run("summary")
    assert len(by_az.asked()) == 2, "both tokens are kept"
    assert [r["status"] for r in azureml.requests()].count(401) == 1


def test_a_tenant_that_az_is_not_logged_in_to(act, azureml, by_az):
    at_home(azureml, by_az, "AADSTS50020: User account 'ann@contoso.com' does not exist in tenant 'T'.\n"
            "Interactive authentication is needed. Please run:\naz login\n", status=1)
    text = act.fail("summary", status=4,
                    match=f"run 'az login --tenant {TENANT}' or 'a login --device-code --tenant {TENANT}'$")
    assert text.count("az login") == 1 and "AADSTS50020" in text
    assert [r["status"] for r in azureml.requests("arm")] == [401]


def test_a_login_that_knows_one_tenant_only(act, azureml, by_az):
    by_az.gives(token(azureml, OTHER_TENANT))
    act.fail("summary", status=4, match=f"InvalidAuthenticationTokenTenant.*run 'az login --tenant {TENANT}'")
    assert [r["status"] for r in azureml.requests("arm")] == [401, 401]


def test_a_tenant_that_is_set_is_not_left(act, azureml):
    act.env["AZURE_TENANT_ID"] = OTHER_TENANT
    act.fail("summary", status=4, match=f"it belongs to the tenant {TENANT}, AZURE_TENANT_ID is '{OTHER_TENANT}'")
    assert len(azureml.requests("login")) == 2 and all(f"/{OTHER_TENANT}/" in r["url"]
                                                       for r in azureml.requests("login"))


# ---- the host of the run history


@pytest.fixture
def unknown(act, azureml):
    """A running run of a workspace whose run history only the workspace itself can tell; what is kept of that."""
    azureml.cluster(azureml={"history_endpoint": None})
    act.env["ACT_MAX_RETRIES"] = "0"
    run, = azureml.tell("seed", count=1, status="Running")
    act.run("q", run)
    azureml.forget()

    def memory(**changed):
        path, = (act.home / "cache").glob("azureml-*.json")
        kept = json.loads(path.read_text()) | changed
        if changed:
            path.write_text(json.dumps(kept))
        return kept["history"]
    memory.run = run
    return memory


def workspace_asked(azureml):
    return len([r for r in azureml.requests("arm") if "/workspaces/ws?" in r["url"]])


def test_a_host_that_the_tracking_address_does_not_lead_to_is_discovered(act, azureml, unknown):
    """As at private links. The tracking address of the double is one of https, where it does not answer."""
    assert unknown() == azureml.links["api"]
    assert "Running" in act.run("q", unknown.run).out
    assert workspace_asked(azureml) == 0
    assert not [r for r in azureml.requests("api") if r["url"] == "/discovery" and r["authorized"]]


def test_the_page_of_a_run_names_the_tenant_of_the_workspace(act, unknown):
    """Who is a guest there would be led to a workspace of the home tenant, which there is not."""
    page = act.run("q", "--json", unknown.run).json["runs"][0]["page"]
    assert page.endswith(f"/workspaces/ws&tid={TENANT}")


@pytest.mark.parametrize("gone", ["http://127.0.0.1:9", "https://nowhere.api.azureml.ms"])
def test_a_remembered_host_that_is_gone_is_forgotten(act, azureml, unknown, gone):
    unknown(history=gone)
    assert "Running" in act.run("q", unknown.run, env={"HTTPS_PROXY": "http://127.0.0.1:9"}).out
    assert unknown() == azureml.links["api"] and workspace_asked(azureml) == 1


def test_a_remembered_host_that_no_longer_knows_the_workspace_is_forgotten(act, azureml, unknown):
    unknown(history=azureml.links["api"].replace("127.0.0.1", "localhost"))
    act.env["ACT_TRUSTED_HOSTS"] += ", localhost"
    azureml.faults({"match": "^api /history", "answer": {"status": 404, "json": {"error": {
        "code": "UserError", "message": "Workspace not found.", "innerError": {"code": "WorkspaceNotFound"}}}}})
    assert "Running" in act.run("q", unknown.run).out
    assert unknown() == azureml.links["api"] and workspace_asked(azureml) == 1


def test_a_host_that_fails_in_between_is_not_forgotten(act, azureml, unknown):
    azureml.faults({"match": "^api /history", "times": 9, "answer": {"status": 503, "body": ""}})
    act.fail("q", unknown.run, status=None)
    assert unknown() == azureml.links["api"] and workspace_asked(azureml) == 0


@pytest.mark.parametrize("answer",
                         [{"status": 200, "json": []}, {"status": 200, "body": "<html>"}, {"status": 404, "body": ""},
                                    {"status": 200, "json": {"api": "http://open.example"}}])
def test_a_discovery_that_says_nothing(act, azureml, unknown, answer):
    """The last resort is the region's host."""
    unknown(history="http://127.0.0.1:9")
    azureml.faults({"match": "^api /discovery", "times": 9, "answer": answer})
    act.fail("q", unknown.run, status=5, match="eastus.api.azureml.ms", env={"HTTPS_PROXY": "http://127.0.0.1:9"})
    assert not list((act.home / "cache").glob("azureml-*.json")), "no host is remembered that did not answer"


# ---- proxies


@pytest.fixture
def proxy(act, azureml, scratch):
    """The service has names that only a proxy knows, and speaks TLS."""
    names = {name: f"{name}.invalid" for name in ("arm", "login", "api")}
    authority = Authority(scratch)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue(*names.values()))
    ports = {name: urllib.parse.urlsplit(azureml.links[name]).port for name in names}
    fronts = {name: FaultProxy(("127.0.0.1", ports[name]), tls=context) for name in names}
    server = ConnectProxy({f"{names[name]}:443": ("127.0.0.1", front.port) for name, front in fronts.items()})
    azureml.cluster(azureml={"endpoint": f"https://{names['arm']}", "history_endpoint": f"https://{names['api']}"})
    act.env |= {"AZURE_AUTHORITY_HOST": f"https://{names['login']}", "ACT_CA_FILE": str(authority.file),
                "ACT_MAX_RETRIES": "0",
                "ACT_TRUSTED_HOSTS": f"{names['arm']}, {names['api']}",
                "HTTPS_PROXY": f"http://127.0.0.1:{server.port}"}
    yield server
    server.close()
    for front in fronts.values():
        front.close()


def test_the_way_through_a_proxy(act, azureml, proxy):
    """It opens tunnels, and sees nothing of what goes through them. Blob Storage is on this machine here."""
    run = submit(act, "true")
    act.run("q", run)
    assert set(proxy.seen) == {("CONNECT", f"{name}.invalid:443") for name in ("arm", "login", "api")}
    assert not [secret for secret in (b"Bearer", SECRET.encode(), b"eyJ", b"/subscriptions/") if secret in proxy.bytes]


@pytest.mark.parametrize("variable", ["NO_PROXY", "no_proxy"])
@pytest.mark.parametrize("hosts, asked", [("arm.invalid", ["login.invalid:443"]), (".invalid", []), ("*", []),
                                          ("other.invalid,login.invalid", [])])
def test_hosts_that_are_not_for_the_proxy(act, azureml, proxy, variable, hosts, asked):
    act.fail("summary", status=5, match=r"cannot reach \w+.invalid:443: its name cannot be resolved",
             env={variable: hosts})
    assert [target for _, target in proxy.seen] == asked


def test_a_proxy_with_a_password(act, azureml, proxy):
    proxy.login = "zoe:pssst-1234"
    act.run("summary", env={"HTTPS_PROXY": f"http://zoe:pssst-1234@127.0.0.1:{proxy.port}"})
    act.run("logout")
    for given in ("", "zoe:wrong-5678@"):
        text = act.fail("summary", status=4,
                        env={"HTTPS_PROXY": f"http://{given}127.0.0.1:{proxy.port}", "ACT_MAX_RETRIES": "3"},
                        match=f"cannot reach login.invalid:443: the proxy 'http://.*127.0.0.1:{proxy.port}' refuses: "
                              f"HTTP 407; "
                        "it wants a user and a password")
        assert "wrong" not in text and "zoe" not in text and "tried" not in text


@pytest.mark.parametrize("answer, status", [("403 Forbidden", 4), ("503 Busy", 5)])
def test_a_proxy_that_refuses(act, azureml, proxy, answer, status):
    proxy.status = answer
    act.fail("summary", status=status,
             match=f"cannot reach login.invalid:443: the proxy 'http://127.0.0.1:{proxy.port}' refuses: "
             f"HTTP {answer[:3]}$")


@pytest.mark.parametrize("address", ["http://zoe:pssst@127.0.0.1:9", "http://zoe:pssst@nowhere.invalid:80",
                                     "gopher://zoe:pssst@127.0.0.1:9", "http://zoe:pssst@[:9"])
def test_a_proxy_that_cannot_be_used(act, azureml, proxy, address):
    result = act.run("summary", status=None, env={"HTTPS_PROXY": address, "ACT_TRACE": "all"})
    assert result.status != 0 and "proxy" in result.err and "pssst" not in result.err and "zoe" not in result.err


def test_no_machine_asks_for_its_identity_through_a_proxy(act, azureml, proxy, by_az):
    by_az.gives(token(azureml, TENANT))
    http_proxy = f"http://127.0.0.1:{proxy.port}"
    act.run("summary", env={"http_proxy": http_proxy, "AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://imds.invalid"})
    assert {target for _, target in proxy.seen} == {"arm.invalid:443", "api.invalid:443"}


# ---- answers


COMPUTE = {"method": "GET", "match": "/computes/gpu", "times": 100}


@pytest.mark.parametrize("answer, message", [
    ({"status": 200, "body": "<html><h1>Sign in</h1></html>", "headers": {"Content-Type": "text/html"}},
     "the response is not JSON.*is 'http://127.0.0.1:[0-9]+' the right address"),
    ({"status": 200, "body": ""}, "the response is empty"),
    ({"status": 200, "body": "\u001f\u008b\b\u0000\u0000\u001b[31m", "headers": {"Content-Encoding": "gzip"}},
     "the response is not JSON"),
    ({"status": 301, "body": "", "headers": {"Location": "https://elsewhere.invalid/"}}, "HTTP 301")])
def test_answers_that_are_none(act, azureml, answer, message):
    azureml.faults(COMPUTE | {"answer": answer})
    text = act.fail("summary", status=1, match=f"cannot look at the compute 'gpu': .*{message}")
    assert text.isprintable()


def test_where_a_cancel_leads_is_not_followed(act, azureml):
    azureml.tell("hold", status="Queued")
    run = submit(act, "true")
    act.until(lambda: azureml.job(run)["status"] == "Queued", "it waits")
    azureml.faults({"method": "POST", "match": "/cancel", "answer": {
        "status": 202, "body": "", "headers": {"Location": azureml.links["elsewhere"] + "/x", "Retry-After": "3600"}}})
    assert "it is being aborted" in act.run("abort", run).err
    assert azureml.requests("elsewhere") == []
    act.run("abort", run)


def test_the_id_that_support_asks_for_is_shown(act, azureml):
    azureml.faults(COMPUTE | {"answer": {"status": 400, "json": {"error": {"code": "BadRequest", "message": "No."}},
                                         "headers": {
        "x-ms-correlation-request-id": "c0ffee-1", "x-ms-request-id": "r-2"}}})
    act.fail("summary", match=r"HTTP 400: BadRequest: No \(request id c0ffee-1\)$")


def test_what_the_service_has_left_is_shown_in_the_trace_alone(act, azureml):
    left = "x-ms-ratelimit-remaining-subscription-reads 11999"
    assert left in act.run("summary", env={"ACT_TRACE": "http"}).err
    assert "ratelimit" not in act.run("summary").err
