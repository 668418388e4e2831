"""Projects that are not one's own: where credentials go, and what a project may reach."""
import json
import os
import pty
import select
import shutil
import sqlite3
import stat
import subprocess
import time

import pytest

from waiting import Process

KEY = "bm90IGEgcmVhbCBrZXk="
SAS = "sv=2021-12-02&sr=c&sig=bm90IGEgcmVhbCBzaWduYXR1cmU%3D"
LAB = {"platform": "aml", "compute_target": "gpu", "docker": {"image": "img"},
       "aml_config": {"subscription_id": "s", "resource_group": "g", "workspace_name": "w"}}


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
    act.account("store", account_name="acct", container_name="cont",
                endpoint=f"{scheme}://0.0.0.0:{listener.port}/acct")
    act.env |= {**login.principal(), **CREDENTIALS[kind], "ACT_MAX_RETRIES": "0", "ACT_CONNECT_TIMEOUT": "5"}
    act.write("data/a", "a")
    for words in (("ls", "data"), ("u", "data"), ("init",), ("url", "data/a")):
        if kind == "login" and scheme == "http":
            act.fail(*words, status=7, match="not encrypted")
            continue
        act.fail(*words, status=4,
                 match=r"'endpoint' of '.*/aux_data/configs/store.yaml' is '.*'0\.0\.0\.0' is none of them")
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
    result = act.run("ls", "data", status=4, env={"AZURE_STORAGE_SAS_TOKEN": SAS})
    assert "'0.0.0.0' is none of them" in result.err, result
    assert not listener.heard


@pytest.mark.parametrize("text, mode, status, words", [
    ("trusted_hosts: [0.0.0.0]\n", 0o666, 4, "can be written by everybody"),
    ("trusted_hosts: [0.0.0.0]\n", 0o660, 4, "can be written by its group"),
    ("trusted_hosts: [0.0.0.0\n", 0o600, 7, "config.yaml:"),
    ("trusted_hosts: {a: b}\n", 0o600, 7, "trusted_hosts"),
    ("trusted_hosts: ['http://0.0.0.0']\n", 0o600, 7, "in trusted_hosts is not a host"),
])
def test_a_list_that_says_nothing_trusts_nobody(act, listener, text, mode, status, words):
    settings(act, text, mode)
    act.account("store", account_name="acct", container_name="cont", endpoint=f"http://0.0.0.0:{listener.port}/acct")
    act.fail("ls", "data", status=status, match=words, env={"AZURE_STORAGE_KEY": KEY})
    assert not listener.heard


@pytest.mark.parametrize("mode, status", [(0o777, 4), (0o770, 4), (0o1777, 5), (0o700, 5)])
def test_a_list_that_others_can_replace_trusts_nobody(act, listener, mode, status):
    path = settings(act, "trusted_hosts: [0.0.0.0]\n")
    path.parent.chmod(mode)
    act.account("store", account_name="acct", container_name="cont", endpoint=f"http://0.0.0.0:{listener.port}/acct")
    result = act.run("ls", "data", status=status, env={"AZURE_STORAGE_KEY": KEY, "ACT_MAX_RETRIES": "0"})
    assert ("others can write its folder" in result.err) == (status == 4), result
    path.parent.chmod(0o700)
    assert bool(listener.heard) == (status == 5)


@pytest.mark.parametrize("kind", ["key", "SAS"])
def test_nothing_goes_to_azure_in_clear_text(act, listener, kind):
    act.account("store", account_name="acct", container_name="cont", endpoint="http://acct.blob.core.windows.net")
    env = {**CREDENTIALS[kind], "ACT_MAX_RETRIES": "0", "HTTP_PROXY": f"http://127.0.0.1:{listener.port}",
           "http_proxy": f"http://127.0.0.1:{listener.port}"}
    act.fail("ls", "data", status=4, match="not encrypted, so everybody on the way could read", env=env)
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


# ---- projects


@pytest.fixture
def other(act, scratch):
    """A project of somebody else, whose store is in it, so that nothing leads out yet."""
    del act.env["ACT_TRUSTED_PROJECTS"]
    act.account("store", folder="store")
    act.write("data/a", "a")
    secret = scratch / "home/.ssh"
    secret.mkdir(parents=True)
    (secret / "id_rsa").write_text("private")
    act.secret = secret
    return act


def link(act, name="data", to=None):
    path = act.project / name
    if path.is_dir() and not path.is_symlink():
        path.rename(act.project / f"{name}.was")
    path.symlink_to(to or act.secret)


def stored(act):
    return [str(p) for p in (act.project / "store").rglob("*") if p.is_file()]


def at_terminal(act, *words, answer="y\n", before_answer=lambda: None, status=0, env=None):
    """Runs `a words...` on a terminal of its own and answers what it asks; what it wrote is text."""
    here, there = pty.openpty()
    process = Process([act.programs / "a", *words], stdin=there, stdout=there, stderr=there, close_fds=True,
                               env={**act.env, **(env or {})}, cwd=act.project)
    os.close(there)
    text, answered, end = b"", False, time.monotonic() + 120
    while time.monotonic() < end:
        ready, _, _ = select.select([here], [], [], 1)
        try:
            piece = os.read(here, 65536) if ready else None
        except OSError:
            break
        if piece == b"":
            break
        text += piece or b""
        if not answered and b"[y/N]" in text:
            before_answer()
            os.write(here, answer.encode())
            answered = True
    os.close(here)
    assert process.wait() == status, text.decode()
    assert b"AddressSanitizer" not in text and b"runtime error" not in text, text.decode()
    return text.decode()


VERBS = [("trust",), ("u", "data"), ("d", "data"), ("ls", "data"), ("rm", "-y", "data"), ("verify", "data"),
         ("cat", "data/a"), ("init",), ("init", "--dry-run"), ("submit", "true"), ("u", "--dry-run", "data"),
         ("local", "true"), ("shell", "--", "true"), ("notebook",), ("tensorboard", "data")]


def test_a_project_that_stays_in_its_folder_is_never_asked_about(other):
    other.run("u", "data")
    other.run("ls", "data")
    other.run("init")
    assert "there is nothing to trust" in other.run("trust").err
    assert other.run("trust", "--json").json["reaches"] == []
    assert not (other.home / "trusted.json").exists()


@pytest.mark.parametrize("words", VERBS)
def test_without_a_terminal_nothing_leads_out(other, words):
    link(other)
    result = other.run(*words, status=125 if words[0] in ("local", "shell") else 4)
    assert f"'data' is a link to '{other.secret}'" in result.err, result
    assert "say so there with 'a -c aml trust'; without a terminal, with 'trust -y'" in result.err, result
    assert not stored(other) and os.listdir(other.secret) == ["id_rsa"]


@pytest.mark.parametrize("words",
                         [("config", "show"), ("config", "check"), ("help",), ("trust", "--json"), ("trust", "--list"),
                                   ("trust", "--dry-run")])
def test_what_only_looks_needs_no_trust(other, words):
    link(other)
    other.run(*words)
    assert not (other.home / "trusted.json").exists()


@pytest.mark.smoke
@pytest.mark.parametrize("answer", ["y\n", "yes\n"])
def test_yes_is_remembered(other, answer):
    link(other)
    text = at_terminal(other, "u", "data", answer=answer)
    assert f"'data' is a link to '{other.secret}'" in text
    assert [name for name in stored(other) if name.endswith("id_rsa")]
    assert stat.S_IMODE((other.home / "trusted.json").stat().st_mode) == 0o600
    assert "[y/N]" not in at_terminal(other, "u", "data")
    other.run("ls", "data")
    assert str(other.secret) in other.run("trust", "--list").out
    assert other.run("trust", "--list", "--json").json["projects"][0]["path"] == os.path.realpath(other.project)
    other.run("trust", "--remove")
    other.run("ls", "data", status=4)


@pytest.mark.parametrize("answer", ["n\n", "\n", "yep\n", "yesyesyes\n", "y n\n", "\x04"])
def test_anything_else_is_no(other, answer):
    link(other)
    text = at_terminal(other, "u", "data", answer=answer, status=4)
    assert "is not trusted: nothing was done" in text and not stored(other)
    other.run("u", "data", status=4)


def test_a_link_that_is_swapped_while_the_question_stands_there(other, scratch):
    (scratch / "harmless").mkdir()
    (other.project / "data").rename(other.project / "was")
    (other.project / "data").symlink_to(scratch / "harmless")

    def swap():
        (other.project / "data").unlink()
        (other.project / "data").symlink_to(other.secret)
    text = at_terminal(other, "u", "data", before_answer=swap, status=4)
    assert "was changed while you were asked" in text and not stored(other)
    assert not (other.home / "trusted.json").exists()


def test_another_target_asks_again_and_nothing_else_does(other, scratch):
    link(other)
    at_terminal(other, "trust")
    other.run("ls", "data")
    other.cluster("aml", extra={"num_gpu": 1, "env": {"A": "b"}})
    other.write("train.py", "print(1)")
    other.run("ls", "data")
    (other.project / "data").unlink()
    (other.project / "data").symlink_to(scratch)
    other.run("ls", "data", status=4)
    assert "[y/N]" in at_terminal(other, "ls", "data")


def test_what_is_trusted_once_holds_for_all_cluster_files(other):
    link(other)
    names = ["aml", "two", "three", "four", "five"]
    for name in names:
        other.cluster(name)
    first = other.run("-c", "aml", "trust", "-y")
    assert "it is trusted now" in first.err and "reaches out of it" not in first.err, first
    for name in names:
        other.run("-c", name, "ls", "data")
        assert "reaches out of it" not in other.run("-c", name, "trust").err
    other.cluster("six", extra={"platform": "slurm", "slurm": {"login": "me@h.example"}})
    assert "cluster 'six' reaches out of it: 'a -c six trust' shows how" in other.run("trust").err


def test_a_workspace_file_elsewhere(other, scratch):
    file = scratch / "ws.json"
    file.write_text('{"subscription_id": "s", "resource_group": "g", "workspace_name": "w"}')
    lab = {**LAB, "aml_config": str(file)}
    other.cluster("aml", extra=lab)
    line = f"the configuration file '{file}' lies outside of the project"
    assert other.run("trust", "--json").json["untrusted"] == [line]
    assert line in other.fail("ls", "data", status=4)
    other.cluster("aml", extra=LAB)
    param = json.dumps({"aml_config": str(file)})
    assert other.run("-p", param, "trust", "--json").json["reaches"] == [], "the user names it"


def own_login(act, keys, named):
    """The project names a cluster file of the user's as base, and changes what it means."""
    path = act.home / "config/lab.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("slurm: {login: me@h.example, root: /mine}\n")
    act.cluster("aml", extra={"_base_": str(path), "platform": "slurm", "slurm": keys})
    assert f"{path}: 'slurm.login' is 'me@h.example'" in act.run("trust", "--json").json["untrusted"]
    return f"aux_data/aml/aml.yaml: {named}"


def reach(act, scratch, kind):
    """Lets the project reach out; what the question must name."""
    if kind == "assets":
        link(act, "assets")
        return f"'assets' is a link to '{act.secret}'"
    if kind == "hooks":
        link(act, "data", to=".git/hooks")
        return f"'data' is a link to '{act.project}/.git/hooks'"
    if kind == "the project itself":
        link(act, "data", to=".")
        return f"'data' is a link to '{act.project}'"
    if kind == "account files":
        link(act, "data", to="aux_data/configs")
        return f"'data' is a link to '{act.project}/aux_data/configs'"
    if kind == "mapped .git":
        act.cluster("aml", folders=(".git", "data"))
        return "'.git' is a mapped folder, and programs run what is found there"
    if kind == "store in .git":
        act.account("store", folder=".git")
        return f"aux_data/configs/store.yaml: 'files/data' in the store is '{act.project}/.git/files/data'"
    if kind == "dangling":
        (act.project / "output").symlink_to(scratch / "home/nothing/there")
        return f"'output' is a link to '{scratch}/home/nothing/there'"
    if kind == "store":
        act.account("store", folder=str(scratch / "home"))
        return f"aux_data/configs/store.yaml: the store is the folder '{scratch}/home'"
    if kind == "store through a link":
        act.account("store", folder="aux_data/there")
        (act.project / "aux_data/there").symlink_to(act.secret)
        return "aux_data/configs/store.yaml: the store is the folder"
    if kind == "account file":
        path = scratch / "mine.yaml"
        path.write_text(f"folder: {act.project}/store")
        act.cluster("aml")
        config = act.project / "aux_data/aml/aml.yaml"
        config.write_text(config.read_text().replace("aux_data/configs/store.yaml", str(path)))
        return f"the account file '{path}' lies outside of the project"
    if kind == "account file through a link":
        path = scratch / "mine.yaml"
        path.write_text(f"folder: {act.project}/store")
        (act.project / "aux_data/configs/store.yaml").unlink()
        (act.project / "aux_data/configs/store.yaml").symlink_to(path)
        return f"the account file 'aux_data/configs/store.yaml' lies outside of the project: it is '{path}'"
    if kind == "account file of the user":
        path = act.home / "config/own.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(f"folder: {scratch}/own-store")
        config = act.project / "aux_data/aml/aml.yaml"
        config.write_text(config.read_text().replace("aux_data/configs/store.yaml", str(path)))
        return f"'data' is 'files/data' in the store of your own account file '{path}'"
    if kind == "row through a link":
        (act.project / "store/files").mkdir(parents=True)
        (act.project / "store/files/data").symlink_to(act.secret)
        return f"aux_data/configs/store.yaml: 'files/data' in the store leads by a link to '{act.secret}'"
    if kind == "packages through a link":
        (act.project / "store/files/code").mkdir(parents=True)
        (act.project / "store/files/code/project").symlink_to(act.secret)
        return f"aux_data/configs/store.yaml: 'files/code/project' in the store leads by a link to '{act.secret}'"
    if kind == "base file":
        path = scratch / "base.yaml"
        path.write_text("env: {A: b}\n")
        act.cluster("aml", extra={"_base_": str(path)})
        return f"the configuration file '{path}' lies outside of the project"
    if kind == "cluster folder":
        folder = act.project / "aux_data/aml"
        folder.rename(scratch / "clusters")
        folder.symlink_to(scratch / "clusters")
        return ("the configuration file 'aux_data/aml/aml.yaml' lies outside of the project: it is "
                f"'{scratch}/clusters/aml.yaml'")
    if kind == "slurm.root with a login of the user":
        return own_login(act, {"root": "/elsewhere"}, "'slurm.root' is '/elsewhere'")
    if kind == "slurm.sbatch_options with a login of the user":
        return own_login(act, {"sbatch_options": ["--output=x", "--wait"]},
                         "'slurm.sbatch_options' is '--output=x --wait'")
    if kind == "slurm.root through a link":
        act.cluster("aml", extra={"platform": "slurm", "slurm": {"root": "there"}})
        (act.project / "there").symlink_to(act.secret)
        return f"'slurm.root' is '{act.secret}'"
    if kind == "endpoint in clear text":
        act.account("store", account_name="acct", container_name="cont", account_key=KEY,
                    endpoint="http://acct.blob.core.windows.net")
        return "aux_data/configs/store.yaml: 'endpoint' is 'http://acct.blob.core.windows.net'"
    if kind == "endpoint":
        act.account("store", account_name="acct", container_name="cont", endpoint="https://h.example", account_key=KEY)
        return "aux_data/configs/store.yaml: 'endpoint' is 'https://h.example'"
    if kind == "base":  # outside, and named so that it could be taken for a variable
        (act.project / "aux_data/aml").mkdir(exist_ok=True)
        (act.project / "$x.yaml").write_text("platform: slurm\nslurm: {login: me@h.example}\n")
        act.cluster("aml", extra={"_base_": "../../$x.yaml"})
        config = json.loads((act.project / "aux_data/aml/aml.yaml").read_text())
        del config["platform"]
        (act.project / "aux_data/aml/aml.yaml").write_text(json.dumps(config))
        return "'slurm.login' is 'me@h.example'"
    keys = {"slurm.login": {"platform": "slurm", "slurm": {"login": "me@h.example"}},
            "slurm.root": {"platform": "slurm", "slurm": {"root": str(act.secret)}},
            "azureml.endpoint": {**LAB, "azureml": {"endpoint": "https://h.example"}}}
    act.cluster("aml", extra=keys[kind])
    return f"aux_data/aml/aml.yaml: '{kind}' is '"


@pytest.mark.parametrize("kind",
                         ["assets", "hooks", "the project itself", "account files", "mapped .git", "store in .git",
                                  "dangling", "store", "store through a link", "account file", "endpoint", "base",
                                  "slurm.login", "slurm.root", "azureml.endpoint", "account file through a link",
                                  "account file of the user", "row through a link", "packages through a link",
                          "base file",
                                  "cluster folder", "slurm.root with a login of the user", "slurm.root through a link",
                                  "slurm.sbatch_options with a login of the user", "endpoint in clear text"])
def test_what_leads_out(other, scratch, kind):
    named = reach(other, scratch, kind)
    result = other.run("init", "--dry-run", status=4)
    items = other.run("trust", "--json").json["untrusted"]
    assert items[0] in result.err, result
    assert [item for item in items if named in item], items
    other.run("trust", "-y")
    assert other.run("trust", "--json").json["untrusted"] == []


@pytest.mark.parametrize("kind", ["store through a link", "account file through a link", "row through a link",
                                  "slurm.root through a link"])
def test_a_link_that_is_turned_elsewhere_is_asked_about_again(other, scratch, kind):
    reach(other, scratch, kind)
    other.run("trust", "-y")
    where = {"store through a link": "aux_data/there", "account file through a link": "aux_data/configs/store.yaml",
             "row through a link": "store/files/data", "slurm.root through a link": "there"}[kind]
    elsewhere = scratch / "elsewhere"
    elsewhere.mkdir() if kind[0] != "a" else elsewhere.write_text(f"folder: {other.project}/store")
    (other.project / where).unlink()
    (other.project / where).symlink_to(elsewhere)
    assert [item for item in other.run("trust", "--json").json["untrusted"] if f"'{elsewhere}'" in item]
    other.run("init", "--dry-run", status=4)


def test_the_path_in_an_account_of_the_user_is_part_of_the_question(other, scratch):
    reach(other, scratch, "account file of the user")
    other.run("trust", "-y")
    other.run("u", "data")
    config = other.project / "aux_data/aml/aml.yaml"
    config.write_text(config.read_text().replace("files/data", "elses/data"))
    other.run("u", "data", status=4)
    assert not (scratch / "own-store/elses").exists()


def test_a_link_below_a_folder_is_asked_about_when_it_is_named(other):
    (other.project / "data/voc").symlink_to(other.secret)
    other.run("u", "data", status=8)  # the link itself is refused
    assert not [name for name in stored(other) if name.endswith("id_rsa")]
    (other.project / ".git/hooks").mkdir(parents=True)
    (other.project / "data/hooks").symlink_to("../.git/hooks")
    for words in (("u", "data/voc"), ("d", "data/voc"), ("u", "data/voc/id_rsa"), ("verify", "data/voc/id_rsa"),
                  ("d", "data/hooks"), ("d", "data/hooks/post-checkout"), ("u", "--follow", "data"),
                  ("verify", "--follow", "data")):
        result = other.run(*words, status=4)
        assert "leads by a link to" in result.err, result
    assert not [name for name in stored(other) if name.endswith("id_rsa")]


def test_logs_do_not_go_where_assets_leads(other):
    run = other.finish("echo", "hello", before=("-n", "1"))
    link(other, "assets")
    result = other.run("q", run, status=4)
    assert "'assets' is a link to" in result.err and os.listdir(other.secret) == ["id_rsa"], result
    assert "'assets' is a link to" in other.run("-no-wl", "parse", run, status=4).err
    (other.project / "my").mkdir()
    (other.project / "my/logs").symlink_to(other.secret)
    result = other.run("q", run, status=4, env={"AML_LOG_FOLDER": "my/logs"})
    assert "'my/logs' is a link to" in result.err and os.listdir(other.secret) == ["id_rsa"], result
    other.run("q", run, env={"AML_LOG_FOLDER": str(other.scratch / "elsewhere")})


@pytest.mark.parametrize("below", ["", "user_logs", "user_logs/std_log_process_0.txt"])
def test_nothing_below_assets_is_reached_through_a_link(other, below):
    """Neither written nor, where copies of an earlier attempt would go, removed."""
    run = other.finish("echo", "hello", before=("-n", "1"))
    precious = [other.secret / name for name in ("user_logs/mine", "system_logs/mine", "metrics/mine")]
    for path in precious:
        path.parent.mkdir()
        path.write_text("mine")
    path = other.project / "assets" / run / below
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(other.secret / "id_rsa" if below.endswith("txt") else other.secret)
    if not below:
        (path / ".attempt").write_text("7\n")
    before = sorted(other.secret.rglob("*"))
    result = other.run("q", run, status=4, env={"ACT_TRUSTED_PROJECTS": "*"})
    assert f"'{path}' is a symbolic link" in result.err, result
    assert sorted(other.secret.rglob("*")) == before and all(p.read_text() == "mine" for p in precious)
    assert (other.secret / "id_rsa").read_text() == "private"
    if not below.endswith("txt"):
        other.fail("parse", run, status=4, match="is a symbolic link")


def give_away(*paths):
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    for path in paths:
        os.chown(path, 65534, 65534, follow_symlinks=False)


@pytest.mark.parametrize("given", ["aux_data", "aux_data/aml", "aux_data/aml/aml.yaml", "act.yaml"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_configuration_of_somebody_else_is_asked_about(other, given, inside):
    """As /tmp/aux_data would be, for whoever works somewhere below /tmp."""
    (other.project / "act.yaml").write_text("setup: touch ran\n")
    give_away(other.project / given)
    here = other.project / "sub/dir" if inside else other.project
    here.mkdir(parents=True, exist_ok=True)
    for words in (("submit", "touch", "ran"), ("u", "data")):
        message = other.run(*words, status=4, cwd=here).err
        assert f"'{given}' belongs to the user '" in message and "if you trust it, say so" in message, message
    assert not stored(other)
    other.run("trust", "-y", cwd=here)
    other.run("u", "data")


def test_the_file_of_a_project_that_is_elsewhere_is_asked_about(other, scratch):
    (scratch / "elsewhere.yaml").write_text("setup: touch ran\n")
    link(other, "act.yaml", scratch / "elsewhere.yaml")
    message = other.run("submit", "true", status=4).err
    assert f"the configuration file 'act.yaml' lies outside of the project: it is '{scratch}/elsewhere.yaml'" in message


@pytest.mark.parametrize("text", ["hunter2: 1\n", "hunter2\n", "setup: {hunter2: 1}\n", "hunter2: [\n",
                                  "hunter2: 1\nhunter2: 2\n"])
def test_nothing_is_said_of_a_private_file_elsewhere(other, scratch, text):
    """Which a project calls its own."""
    (scratch / "elsewhere.yaml").write_text(text)
    link(other, "act.yaml", scratch / "elsewhere.yaml")
    for words in (("submit", "true"), ("config", "show"), ("config", "check"), ("q",)):
        result = other.run(*words, status=None)
        assert "hunter2" not in result.out + result.err, result


def test_the_file_of_a_project_that_leads_nowhere_is_refused(other):
    link(other, "act.yaml", "gone.yaml")
    other.fail("submit", "true", status=7, match="'act.yaml' in the project is a link that leads nowhere")


def test_the_file_of_a_project_marks_it(other):
    """For whoever works below it, unless it is somebody else's."""
    shutil.rmtree(other.project / "aux_data")
    here = other.project / "sub/dir"
    here.mkdir(parents=True)
    (other.project / "act.yaml").write_text("setup: true\n")
    root = lambda: other.run("trust", "--json", cwd=here).json["path"]
    assert root() == os.path.realpath(other.project)
    assert f"project: '{root()}', as act.yaml is in it" in other.run("submit", "--dry-run", "true", cwd=here).err
    give_away(other.project / "act.yaml")
    assert root() == os.path.realpath(here)


def test_a_repository_of_somebody_else_above_is_none(other):
    shutil.rmtree(other.project / "aux_data")
    here = other.project / "mine"
    here.mkdir()
    (other.project / ".git").mkdir()
    (other.project / ".gitignore").write_text("*.py\n")
    (here / "train.py").write_text("print(1)")
    root = lambda: other.run("trust", "--json", cwd=here).json["path"]
    assert root() == os.path.realpath(other.project)
    give_away(other.project / ".git")
    assert root() == os.path.realpath(here)


def test_what_is_the_users_own_needs_no_trust(other, scratch):
    """His configuration folder, the command line, the environment."""
    own = other.home / "config"
    own.mkdir(parents=True)
    (own / "store.yaml").write_text(f"folder: {scratch}/own-store\n")
    for row in ("code_path", "data_folder"):
        assert row in (other.project / "aux_data/aml/aml.yaml").read_text()
    config = (other.project / "aux_data/aml/aml.yaml").read_text()
    (own / "mine.yaml").write_text(config.replace("aux_data/configs/store.yaml", str(own / "store.yaml")))
    other.run("u", "data", env={"AML_CONFIG_PATH": str(own / "mine.yaml")})
    assert (scratch / "own-store/files/data/a").exists()
    assert other.run("-p", "{platform: slurm, slurm: {login: me@h.example}}", "trust", "--json").json["reaches"] == []


@pytest.mark.parametrize("listed, status",
                         [("*", 0), ("{p}", 0), ("/nowhere:{p}/..", 0), ("{p}x", 4), ("", 4), (".", 4)])
def test_the_environment_trusts_for_programs(other, listed, status):
    link(other)
    done = other.run("u", "data", env={"ACT_TRUSTED_PROJECTS": listed.format(p=other.project)}, status=status)
    assert ("if you trust it" in done.err) == (status != 0), done


def test_the_words_of_a_project_do_nothing_to_the_terminal(other, scratch):
    (scratch / "home/x\x1b[2J\u202ey").mkdir()
    (other.project / "data").rename(other.project / "was")
    (other.project / "data").symlink_to(scratch / "home/x\x1b[2J\u202ey")
    assert "\x1b[2J" not in at_terminal(other, "u", "data", answer="n\n", status=4)


def test_two_that_are_trusted_at_once_are_both_remembered(other, scratch):
    link(other)
    second = scratch / "second"
    subprocess.run(["cp", "-a", other.project, second], check=True)
    started = [other.start("trust", "-y", cwd=folder) for folder in (other.project, second)]
    assert [process.wait() for process in started] == [0, 0]
    assert len(other.run("trust", "--list", "--json").json["projects"]) == 2
    other.run("trust", "--remove", second)
    assert len(other.run("trust", "--list", "--json").json["projects"]) == 1


def test_a_command_for_many_runs_asks_once(other):
    for n in range(3):
        other.finish("echo", str(n), before=("-n", 1))
    link(other, "assets")
    runs = ("@", "@2", "@3")
    text = at_terminal(other, "q", *runs, answer="n\n" * 6, status=4)
    assert text.count("[y/N]") == 1, text
    assert other.run("q", *runs, status=4).err.count("reaches out of its folder") == 3, "each names its run"
    text = at_terminal(other, "q", *runs, answer="y\n")
    assert text.count("[y/N]") == 1 and len(os.listdir(other.secret)) == 4


def test_a_command_for_many_runs_asks_once_about_their_cluster(other):
    """Their rows do not say where they are."""
    for _ in range(2):
        other.finish("true", before=("-n", 1))
    assert "[y/N]" not in at_terminal(other, "grep", "x"), "nothing leads out"
    db = sqlite3.connect(other.home / "ledger.db")
    db.execute("update runs set platform = 'aml', place = null")
    db.commit()
    db.close()
    other.cluster("aml", extra={**LAB, "azureml": {"endpoint": "https://h.example"}})
    for words, status in ((("du",), 4), (("grep", "x"), 4), (("q", "@", "@2"), 4)):
        text = at_terminal(other, *words, answer="n\n" * 6, status=status)
        assert text.count("[y/N]") == 1, text
    assert other.run("grep", "x", status=4).err.count("reaches out of its folder") == 1


def test_trust_refuses_what_it_does_not_take(other):
    other.fail("trust", "elsewhere", status=2, match="--remove")
    other.fail("trust", "--list", "--remove", status=2, match="--list")


def test_store_below_slurm_root_through_a_link(act, scratch):
    root, elsewhere = act.project / "shared", scratch / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    act.write("aux_data/aml/aml.yaml", json.dumps({"platform": "slurm", "slurm": {"root": str(root)}}))
    assert act.run("trust", "--json").json["reaches"] == []
    (root / "store").symlink_to(elsewhere)
    assert any("slurm.root" in line and str(elsewhere) in line for line in act.run("trust", "--json").json["untrusted"])


def test_a_run_is_not_asked_about_its_own_folders(act):
    """In the folder of its code they are links that its agent has made, and nobody answers there."""
    act.write("data/x.txt", "x")
    act.env["ACT_TRUSTED_PROJECTS"] = str(act.project)
    said, inner = act.scratch / "said", act.scratch / "inner"
    words = (f"a -c local trust --json >{said}; a -c local -n 1 submit cat data/x.txt >{inner} && "
             f"a wait $(cat {inner})")
    act.finish("sh", "-c", words, before=("-c", "local", "-n", "1"))
    assert json.loads(said.read_text())["reaches"] == []
    assert act.run("logs", inner.read_text().strip()).out == "x"


def test_what_a_run_links_elsewhere_is_asked_about(act, scratch):
    """What lies there is no project of this run, whatever a variable of it says."""
    (scratch / "elsewhere").mkdir()
    copied = act.project.with_name("copied")
    shutil.copytree(act.project, copied)
    (copied / "data").symlink_to(scratch / "elsewhere")
    act.env["ACT_TRUSTED_PROJECTS"] = str(act.project)
    words = f"cd {copied} && a -n 1 submit true"
    run = act.finish("sh", "-c", words, before=("-n", "1"), status=4)
    assert "'data' is a link to" in act.log(run).decode()


def test_what_a_link_leads_to_is_not_shown(act):
    """A cluster file of the project that is a link to a file of the user's: no key and no value of it is printed."""
    (act.scratch / "own.yaml").write_text("token_of_mine: hunter2\nnum_gpu: hunter3\n")
    link = act.project / "aux_data/aml/other.yaml"
    link.symlink_to(act.scratch / "own.yaml")
    for words in (("-c", "other", "submit", "true"), ("-c", "other", "ls", "data"), ("-c", "other", "q")):
        said = act.run(*words, status=None)
        assert "token_of_mine" not in said.err + said.out and "hunter" not in said.err + said.out, said
    message = act.fail("-c", "other", "submit", "true", status=7)
    assert f"'aux_data/aml/other.yaml' leads out of the project, to '{act.scratch}/own.yaml'" in message
    (act.scratch / "own.yaml").write_text((act.project / "aux_data/aml/aml.yaml").read_text()[:-1] + ', "mine": 1}')
    said = act.run("-c", "other", "submit", "--dry-run", "true", status=None).err
    assert "'a config check' says what of it is doubtful" in said and "mine" not in said, said
