"""Projects that are not one's own: where credentials go, and what a project may reach."""
import socket
import threading

import pytest

KEY = "bm90IGEgcmVhbCBrZXk="
SAS = "sv=2021-12-02&sr=c&sig=bm90IGEgcmVhbCBzaWduYXR1cmU%3D"
LAB = {"platform": "aml", "compute_target": "gpu", "docker": {"image": "img"},
       "aml_config": {"subscription_id": "s", "resource_group": "g", "workspace_name": "w"}}


class Listener:
    """Takes connections, keeps what comes first on each, and answers nothing."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.heard = []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                peer, _ = self.server.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(20)
                try:
                    self.heard.append(peer.recv(65536))
                except OSError:
                    self.heard.append(b"")

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


@pytest.fixture
def listener():
    server = Listener()
    yield server
    server.close()


def settings(act, text, mode=0o600):
    """The user's own configuration file."""
    path = act.home / "config/config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


# ---- credentials


@pytest.mark.parametrize("words", [("q",), ("qr",), ("s",), ("blame",), ("cluster", "list")])
def test_a_project_cannot_have_tokens_of_the_resource_manager_sent_anywhere(act, login, listener, words):
    act.env |= {**login.principal(), "HTTPS_PROXY": f"http://127.0.0.1:{listener.port}", "ACT_MAX_RETRIES": "0"}
    act.account("store", account_name="acct", container_name="cont")
    act.cluster("aml", extra={**LAB, "azureml": {"endpoint": "https://evil.example"}})
    result = act.run(*words, status=0 if words[0].startswith("q") else 4)
    assert "'azureml.endpoint' of 'aux_data/aml/aml.yaml:" in result.err, result
    assert "'evil.example' is none of them" in result.err, result
    assert f"""add 'trusted_hosts: ["evil.example"]' to '{act.home}/config/config.yaml'""" in result.err, result
    assert not listener.heard and not login.asked(), (listener.heard, login.asked())


def test_a_project_cannot_have_tokens_of_the_run_history_sent_anywhere(act, azureml, listener):
    azureml.cluster(azureml={"history_endpoint": "https://evil.example"})
    result = act.run("q", env={"HTTPS_PROXY": f"http://127.0.0.1:{listener.port}", "ACT_MAX_RETRIES": "0"})
    assert "'azureml.history_endpoint' of 'aux_data/aml/aml.yaml:" in result.err, result
    assert "'evil.example' is none of them" in result.err, result
    assert not listener.heard


CREDENTIALS = {"login": {}, "key": {"AZURE_STORAGE_KEY": KEY}, "SAS": {"AZURE_STORAGE_SAS_TOKEN": SAS}}


@pytest.mark.parametrize("scheme", ["https", "http"])
@pytest.mark.parametrize("kind", CREDENTIALS)
def test_a_project_cannot_have_credentials_sent_to_an_endpoint(act, login, listener, kind, scheme):
    """0.0.0.0 is this machine to the kernel, but not by name: what would be sent would arrive."""
    act.account("store", account_name="acct", container_name="cont", endpoint=f"{scheme}://0.0.0.0:{listener.port}/acct")
    act.env |= {**login.principal(), **CREDENTIALS[kind], "ACT_MAX_RETRIES": "0", "ACT_CONNECT_TIMEOUT": "5"}
    act.write("data/a", "a")
    for words in (("ls", "data"), ("u", "data"), ("init",), ("url", "data/a")):
        if kind == "login" and scheme == "http":
            act.fail(*words, status=7, match="not encrypted")
            continue
        act.fail(*words, status=4, match=r"'endpoint' of '.*/aux_data/configs/store.yaml' is '.*'0\.0\.0\.0' is none of them")
    assert not listener.heard and not login.asked(), (listener.heard, login.asked())


def test_what_stands_beside_the_endpoint_may_go_there_unless_everybody_could_read_it(act, listener):
    act.account("store", account_name="acct", container_name="cont", endpoint=f"http://0.0.0.0:{listener.port}/acct",
                account_key=KEY)
    env = {"ACT_MAX_RETRIES": "0"}
    act.fail("ls", "data", status=4, match="not encrypted, so everybody on the way could read", env=env)
    assert not listener.heard
    act.account("store", account_name="acct", container_name="cont", endpoint=f"https://0.0.0.0:{listener.port}/acct",
                account_key=KEY)
    act.fail("ls", "data", status=5, env=env)
    assert listener.heard


@pytest.mark.parametrize("how", ["file", "variable"])
def test_the_user_says_which_hosts_are_trusted(act, listener, how):
    act.account("store", account_name="acct", container_name="cont", endpoint=f"http://0.0.0.0:{listener.port}/acct")
    env = {"AZURE_STORAGE_KEY": KEY, "ACT_MAX_RETRIES": "0"}
    if how == "file":
        settings(act, "trusted_hosts: [storage.example, 0.0.0.0]\n")
    else:
        env["ACT_TRUSTED_HOSTS"] = "storage.example, 0.0.0.0"
    act.fail("ls", "data", status=5, env=env)
    assert any(b"SharedKey acct:" in heard for heard in listener.heard)


def test_a_project_cannot_say_which_hosts_are_trusted(act, listener):
    act.account("store", account_name="acct", container_name="cont", endpoint=f"http://0.0.0.0:{listener.port}/acct",
                trusted_hosts=["0.0.0.0"])
    act.write("aux_data/aml/base.yaml", "trusted_hosts: [0.0.0.0]\nenv: {ACT_TRUSTED_HOSTS: 0.0.0.0}\n")
    act.cluster("aml", extra={"_base_": "base.yaml", "trusted_hosts": ["0.0.0.0"]})
    act.write("config.yaml", "trusted_hosts: [0.0.0.0]\n")
    for words in ((), ("-p", "trusted_hosts: [0.0.0.0]")):
        result = act.run(*words, "ls", "data", status=4, env={"AZURE_STORAGE_SAS_TOKEN": SAS})
        assert "'0.0.0.0' is none of them" in result.err, result
    assert not listener.heard


@pytest.mark.parametrize("text, mode, status, words", [
    ("trusted_hosts: [0.0.0.0]\n", 0o666, 4, "can be written by everybody"),
    ("trusted_hosts: [0.0.0.0\n", 0o600, 7, "config.yaml:"),
    ("trusted_hosts: {a: b}\n", 0o600, 7, "trusted_hosts"),
    ("trusted_hosts: ['http://0.0.0.0']\n", 0o600, 7, "among the trusted hosts is none"),
])
def test_a_list_that_says_nothing_trusts_nobody(act, listener, text, mode, status, words):
    settings(act, text, mode)
    act.account("store", account_name="acct", container_name="cont", endpoint=f"http://0.0.0.0:{listener.port}/acct")
    act.fail("ls", "data", status=status, match=words, env={"AZURE_STORAGE_KEY": KEY})
    assert not listener.heard


def test_nodes_get_no_credential_for_a_strange_endpoint(act, listener):
    act.account("store", account_name="acct", container_name="cont", endpoint=f"http://0.0.0.0:{listener.port}/acct")
    act.account("code", folder=str(act.store))
    config = act.cluster("aml", account="code", folders=())
    config.write_text(config.read_text().replace('"config_param": {', '"config_param": {"data_folder": {"path": "x", '
                      '"mode": "download", "azure_blob_config_file": "aux_data/configs/store.yaml"},'))
    result = act.run("-n", "1", "submit", "true", env={"AZURE_STORAGE_SAS_TOKEN": SAS}, status=4)
    assert "folder 'data': 'endpoint' of" in result.err and "'0.0.0.0' is none of them" in result.err, result
    assert not listener.heard
