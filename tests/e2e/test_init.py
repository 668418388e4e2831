"""init: the package, judged by unzip and Python's zipfile, and what is stored of it."""
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import time
import zipfile

import pytest

from fault_proxy import Rule


def packages(act):
    """All stored packages, by the hash in their names."""
    return {p.stem: p for p in (act.store / "files/code/project").glob("*.zip")}


def check_zip(path):
    """Both readers must find it sound."""
    done = subprocess.run(["unzip", "-tq", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    with zipfile.ZipFile(path) as z:
        assert z.testzip() is None
        return z.infolist()


def pack(act, *words, **options):
    """Runs `a init`; returns {name: ZipInfo} of code_path."""
    act.run(*words, "init", **options)
    return {i.filename: i for i in check_zip(act.store / "files/code/project.zip")}


def files_in(entries):
    """Names that the tests made, without the project's own configuration."""
    return {name for name in entries if not name.startswith("aux_data/")}


@pytest.mark.smoke
def test_package_is_named_by_its_content_and_at_code_path(act):
    act.write("main.py", "print('hi')\n")
    pack(act)
    (sha256, path), = packages(act).items()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    assert (act.store / "files/code/project.zip").read_bytes() == path.read_bytes()


def test_nothing_is_uploaded_when_nothing_changed(act, azure, proxy):
    act.write("main.py", "1")
    act.run("init")
    assert any(method == "PUT" for method, _ in proxy.seen)
    proxy.seen.clear()
    act.run("init")
    assert not [x for x in proxy.seen if x[0] not in ("GET", "HEAD")], proxy.seen
    proxy.seen.clear()
    act.write("main.py", "2")
    act.run("init")
    puts = [path for method, path in proxy.seen if method == "PUT"]
    assert any(path.endswith("/code/project.zip") for path in puts)
    code = azure.service.get(f"{azure.container}/files/code/project.zip")
    assert hashlib.sha256(code).hexdigest() in "".join(azure.service.list(azure.container))


def test_going_back_uploads_nothing_but_publishes(act):
    act.write("main.py", "1")
    pack(act)
    one = (act.store / "files/code/project.zip").read_bytes()
    act.write("main.py", "2")
    pack(act)
    assert len(packages(act)) == 2
    act.write("main.py", "1")
    pack(act)
    assert len(packages(act)) == 2
    assert (act.store / "files/code/project.zip").read_bytes() == one


def test_code_path_that_another_tool_replaced_is_put_right(act):
    act.write("main.py", "1")
    pack(act)
    good = (act.store / "files/code/project.zip").read_bytes()
    (act.store / "files/code/project.zip").write_bytes(b"replaced")
    pack(act)
    assert (act.store / "files/code/project.zip").read_bytes() == good


# ---- what goes in


def test_rules(act):
    for path in ("keep.py", "sub/keep.py", "weights.ckpt", "sub/weights.ckpt", "old/x.py", "notes.log", "sub/notes.log",
                 "sub/important.log", "__pycache__/a.pyc", "sub/mod.pyc", ".git/config", "data/train.bin",
                 "output/model", "assets/run/log", "src/py-faster-rcnn/x", ".env", ".hidden/x"):
        act.write(path, path)
    act.write(".actignore", "# comments\n*.log\n!important.log\n/old/\n")
    act.cluster("aml", extra={"zip_options": ["-x", "*.ckpt", "-x", r"\*src/py-faster-rcnn/\*"]})
    names = files_in(pack(act))
    assert {n for n in names if not n.endswith("/")} == {"keep.py", "sub/keep.py", "sub/important.log",
                                                         "__pycache__/a.pyc", "sub/mod.pyc"}
    act.cluster("aml")
    assert not [n for n in files_in(pack(act)) if n.endswith(".pyc")], "without patterns the built-in list counts"


def test_a_dot_file_that_is_asked_for(act):
    act.write(".env", "A=1")
    act.write(".other", "x")
    act.write(".actignore", "!.env\n")
    names = files_in(pack(act))
    assert ".env" in names and ".other" not in names


def test_account_files_never_go_along(act):
    act.account("secret", account_name="a", account_key="c2VjcmV0LWtleQ==", container_name="c")
    entries = pack(act)
    assert not [n for n in entries if n.startswith("aux_data/configs/") and not n.endswith("/")]


def utf16(text):
    return text.encode("utf-16")


SECRETS = {
    "a cluster file": ("aux_data/aml/other.yaml", "docker: {image: x, password: pssst}\n", "docker.password"),
    "a base of any name": ("shared/common", "docker:\n  password: pssst\n", "docker.password"),
    "an account file elsewhere": ("conf/store.txt", "account_name: a\naccount_key: pssst\ncontainer_name: c\n",
                                  "account_key"),
    "JSON": ("x.json", '{"account_name": "a", "sas_token": "sig=pssst"}', "sas_token"),
    "a volume of a job file": (
        "job.json", '{"properties": {"mountVolumes": {"azureFileShares": [{"credentials": {"accountKey": "pssst"}}]}}}',
        "credentials.accountKey"),
    "a secret variable of a job file": (
        "job.json", '{"properties": {"secrets": [{"name": "A", "value": "pssst"}]}}',
        "secrets"),
    "a list of job files": ("jobs.json", '[{"properties": {"secrets": [{"name": "A", "value": "pssst"}]}}]', "secrets"),
    "a mount with its password": (
        "job.json", '{"properties": {"mountVolumes": {"unmanagedFileSystems": [{"relativeMountPath": "x", '
                    '"mountCommand": "mount -t cifs //h/s -o username=a,password=pssst"}]}}}', "mountCommand"),
    "an escaped key": ("x.json", '{"account\\u005fkey": "pssst"}', "account_key"),
    "an alias": ("y.yml", 'x: &x pssst\ndocker:\n  "\\x70assword": *x\n', "docker.password"),
    "a byte order mark": ("y.yaml", "\ufeffaccount_key: pssst\n", "account_key"),
    "a key on two lines": ("y.yaml", '? "account_\\\n  key"\n: pssst\n', "account_key"),
    "UTF-16": ("y.yaml", utf16("account_key: pssst\n"), "account_key"),
    "UTF-16 without mark": ("y.yaml", "sas_token: pssst\n".encode("utf-16-be"), "sas_token"),
    "a variable": ("y.yaml", "env: {WANDB_API_KEY: pssst}\n", "env.WANDB_API_KEY"),
    "a short name": ("y.yaml", "env:\n  GH_PAT: pssst\n", "env.GH_PAT"),
    "a webhook": ("y.yaml", "env:\n  SLACK_WEBHOOK: https://hooks/pssst\n", "env.SLACK_WEBHOOK"),
    "a URL": ("y.yaml", "env: {HTTPS_PROXY: 'http://me:pssst@proxy:1'}\n", "env.HTTPS_PROXY"),
    "a URL in JSON": ("y.json", r'{"slurm": {"sbatch_options": ["--export=P=http:\/\/me:pssst@proxy"]}}',
                      "slurm, a URL"),
    "a tab": ("aux_data/aml/store.txt", "account_name: a\n\taccount_key: pssst\n", "account_key"),
    "a merge": ("conf/y.yml", "<<<<<<< HEAD\nsas_token: 'pssst'\n=======\n", "sas_token"),
    "half of it": ("aux_data/aml/y.json", '{"docker": {"image": "x", "password":"pssst"', "password"),
    "a variable where it does not parse": ("y.yaml", "a: b: c\nenv:\n  MY_CREDS:\n    pssst\n", "MY_CREDS"),
    "a URL where it does not parse": ("y.yaml", "\tp: http://me:pssst@proxy\n", "a URL with a password"),
    "bytes of another file": ("y.yaml", b"a: b\n\x00\x00\xff\xfe\naccount_key : pssst\n", "account_key"),
    "a job file with comments": (
        "job.json", '{ // mine\n  "mountVolumes": [{"credentials": {"accountKey": "pssst"}}]\n}', "accountKey"),
    "a job file with a key twice": (
        "job.json", '{"a": 1, "a": 2, "properties": {"secrets": [{"name": "A", "value": "pssst"}]}}', "value"),
    "a mount where it does not parse": (
        "job.jsonc", '{"mountCommand": "mount -t cifs //h/s -o username=a,password=pssst", // x\n', "mountCommand"),
    "much text": ("y.yaml", "# comment\n" * 90_000 + "account_key: pssst\n", "account_key"),
}

KUBECONFIG = """apiVersion: v1
kind: Config
clusters:
- name: c
  cluster: {server: 'https://h'}
contexts:
- name: c
  context: {cluster: c, user: me}
current-context: c
users:
- name: other
  user: {}
- name: me
  user:
    %s
"""
SECRETS |= {
    "a kubeconfig": ("kubeconfig", KUBECONFIG % "token: pssst", "users, token"),
    "a kubeconfig of another name": ("deploy/prod.txt", KUBECONFIG % "password: pssst", "users, password"),
    "a kubeconfig with CRLF": ("k.yaml", (KUBECONFIG % "client-key-data: pssst").replace("\n", "\r\n"),
                               "users, client-key-data"),
    "a kubeconfig in JSON": (
        "k.json", r'{"kind": "Config", "users": [{"name": "a", "user": {"\u0074oken": "pssst"}}]}', "users, token"),
    "a kubeconfig in a folder": ("deploy/.kube/config", KUBECONFIG % "token: pssst", "users, token"),
    "an old plugin of kubectl": (
        "k", KUBECONFIG % "auth-provider: {name: oidc, config: {refresh-token: pssst}}",
        "users, auth-provider.refresh-token"),
    "a variable of a plugin": (
        "k", KUBECONFIG % "exec: {command: p, env: [{name: AAD_CLIENT_SECRET, value: pssst}]}",
        "users, exec.env.AAD_CLIENT_SECRET"),
    "a word of a plugin": (
        "k", KUBECONFIG % "exec: {command: p, args: [get, --client-secret, pssst]}", "users, exec.args"),
    "another word of a plugin": ("k", KUBECONFIG % "exec: {command: p, args: [--password=pssst]}", "users, exec.args"),
    "a proxy of a kubeconfig": (
        "k", "clusters: [{name: c, cluster: {proxy-url: 'http://me:pssst@h'}}]\nusers: []\n",
        "clusters, a URL with a password"),
    "a kubeconfig with a tab": ("kubeconfig", KUBECONFIG % "token: pssst" + "\t- x\n", "users, token"),
    "a kubeconfig that is being merged": (
        "admin.conf", "<<<<<<< HEAD\n" + KUBECONFIG % "client-key-data: pssst", "users, client-key-data"),
    "a variable of pods": (
        "y.yaml", "k8s: {pod: {spec: {containers: [{name: main, env: [{name: HF_TOKEN, value: pssst}]}]}}}\n",
        "k8s.pod, env.HF_TOKEN"),
}


@pytest.mark.parametrize("form", list(SECRETS))
def test_what_loads_as_configuration_with_a_secret_stays_out(act, form):
    path, text, what = SECRETS[form]
    act.write("main.py", "x")
    act.write(path, text)
    for words in (("init", "--dry-run"), ("init",), ("init",)):
        result = act.run(*words)
        assert f"left out: '{path}' holds a secret: {what}" in result.err and "pssst" not in result.err
    names = {i.filename for i in check_zip(act.store / "files/code/project.zip")}
    assert path not in names and "main.py" in names


def test_what_only_sounds_secret_goes_in(act):
    act.write("a.yaml", "env: {TOKENIZERS_PARALLELISM: false, MAX_TOKENS: 4096, PATH: /bin, HF_TOKENIZER: bert, "
                        "EMPTY_KEY: ''}\n")
    act.write("b.yaml", "docker: {image: x, password: null}\naccount_key:\n")
    act.write("c.yaml", "model: {docker: {password: x}, account_key: x}\n")
    act.write("d.py", "env = {'account_key': 1, 'docker.password': 'x'}\n")
    act.write("e.yaml", "- account_key: x\n")
    act.write("f.yaml", "env: {PAGE: 'https://host/a:b@c', REMOTE: 'ssh://git@host/x'}\n")
    act.write("g.yaml", "\tpassword: {{ .Values.password }}\naccount_key: ''\nsas_token:\nkey: x\nMAX_TOKENS: 4096\n")
    act.write("i.yaml", "a:" * 100_000)  # does not take long
    act.write("j.json", '{// x\n"credentials": {"password": "<password>", "accountKey": "$KEY"}, "value": 3}')
    act.write("h.py", "class A:\n    account_key: str\n    password: str = 'x'\n")
    act.write("k.yaml", KUBECONFIG % "exec: {command: p, args: [get-token, --server-id, x, --token-cache, d]}")
    act.write("l.yaml", KUBECONFIG % "token: <token>")
    act.write("m.json", '{"users": [{"name": "a", "password": "x"}]}')
    act.write("n.yaml", "k8s: {pod: {spec: {containers: [{name: main, env: [{name: LEVEL, value: '3'}]}]}}}\n")
    names = {"k.yaml", "l.yaml", "m.json", "n.yaml"}
    names |= {"a.yaml", "b.yaml", "c.yaml", "d.py", "e.yaml", "f.yaml", "g.yaml", "h.py", "i.yaml", "j.json"}
    assert names - set(pack(act)) == set()


def test_large_files_with_secrets_are_named(act):
    """Nothing loads them as configuration, so they may be of use to the code."""
    act.write("big.json", '{"mountVolumes": [{"credentials": {"accountKey": "pssst"}}]}' + " " * (1 << 20))
    act.write("big.yaml", "account_key: pssst\n" + "# comment\n" * (1 << 17))
    act.write("data.json", '{"credentials": "none", "value": 1}' + " " * (1 << 20))
    act.write("kubeconfig", "# comment\n" * (1 << 17) + KUBECONFIG % "token: pssst")
    err = act.run("init").err
    assert "'big.json' goes into the package and seems to hold a secret: accountKey" in err and "pssst" not in err
    assert "'big.yaml' goes into the package and seems to hold a secret: account_key" in err and "data.json" not in err
    assert "'kubeconfig' goes into the package and seems to hold a secret: users, token" in err
    act.write(".actignore", "/big.*\n/kubeconfig\n")
    assert "secret" not in act.run("init").err


def test_files_that_log_in_to_clusters_are_no_code(act, tmp_path):
    """Also those of other clusters, without a secret of their own, and what they name."""
    act.write("aux_data/aml/other.yaml", "platform: k8s\nk8s: {kubeconfig: deploy/k1}\n")
    act.write("deploy/k1", KUBECONFIG % "{client-certificate: c.crt, client-key: keys/c, tokenFile: t}")
    act.write("deploy/keys/c", "key")
    act.write("deploy/t", "token")
    act.write("k2", KUBECONFIG % "tokenFile: t2")
    act.write("k3", KUBECONFIG % "tokenFile: t2")
    act.write("t2", "token")
    (act.project / "l").symlink_to("k3")
    act.write("deploy/c.crt", "x")
    act.write("main.py", "x")
    act.env["KUBECONFIG"] = f"k2:{tmp_path}/missing:{act.project}/l"
    packed = set(pack(act))
    assert {"main.py", "deploy/c.crt"} <= packed
    assert not packed & {"deploy/k1", "deploy/keys/c", "deploy/t", "k2", "k3", "t2", "l"}


def test_secret_where_nobody_looks_for_one_first(act):
    """Among so many new files it is found when it is read to be packed."""
    for i in range(300):
        act.write(f"src/{i}.txt", f"file {i}")
    act.write("src/notes", "account_key: pssst\n")
    result = act.run("init")
    assert "left out: 'src/notes' holds a secret: account_key" in result.err
    names = {i.filename for i in check_zip(act.store / "files/code/project.zip")}
    assert "src/notes" not in names and "src/299.txt" in names
    act.write("src/0.txt", "sas_token: pssst\n")
    assert "src/0.txt" not in pack(act)


def test_a_file_that_gets_a_secret_leaves_the_package(act):
    act.write("conf.yaml", "env: {A: b}\n", mtime=1_000_000_000)
    assert "conf.yaml" in pack(act)
    act.write("conf.yaml", "env: {A_TOKEN: pssst}\n", mtime=1_000_000_000)
    assert "conf.yaml" not in pack(act)
    act.write("conf.yaml", "env: {A: b}\n")
    assert "conf.yaml" in pack(act)


def test_credentials_of_the_code_are_named(act):
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"
    act.write("web/.env", "A=1")
    act.write("keys/server.pem", key)
    act.write("keys/ca.pem", "-----BEGIN CERTIFICATE-----\n")
    act.write("keys/id_ed25519", key)
    act.write("gcp.json", '{"type": "service_account", "private_key": "x"}')
    act.write("data.json", '{"type": "x"}')
    for words in (("init", "--dry-run"), ("init",), ("init",)):
        said = act.run(*words).err
        names = "'gcp.json', 'keys/id_ed25519', 'keys/server.pem', 'web/.env'"
        assert f"credentials go into the package: {names}; " in said, said
    assert {"web/.env", "keys/server.pem", "keys/id_ed25519", "gcp.json"} <= set(pack(act))


def test_dry_run_says_what_goes_and_why_not(act):
    act.write("main.py", "x" * 1000)
    act.write("big.bin", os.urandom(50_000))
    act.write("junk.log", "x")
    act.write(".actignore", "*.log\n")
    result = act.run("init", "--dry-run")
    text = result.out + result.err
    for word in ("big.bin", "junk.log", ".actignore"):
        assert word in text, word
    assert not act.store.exists() or not packages(act)


def test_dry_run_sums_up_what_is_long(act):
    for i in range(60):
        act.write(f"src/lib/{i}.py", "x" * i)
        act.write(f"junk/{i}.log", "x")
        act.write(f"src/{i}.pyc", "x")
    act.write("main.py", "x" * 1000)
    act.write(".actignore", "*.log\n")
    lines = act.run("init", "--dry-run").out.splitlines()
    found = [line.split() for line in lines]
    assert ["1.7", "KiB", "60", "files", "src/"] in found
    assert ["0", "B", "0", "files", "junk/"] in found
    assert ["1000", "B", "1", "file", "./"] in found
    assert any("60  by .actignore:1 '*.log', as 'junk/0.log'" in line for line in lines)
    assert any("60  by built-in rule '*.py[co]', as 'src/0.pyc'" in line for line in lines)
    assert len([line for line in lines[lines.index("largest:") + 1:] if line.startswith("  ")]) == 10
    assert len(lines) < 30, lines


def test_dry_run_says_what_is_to_be_done(act):
    for name in ("a.py", "b.py", "c/d.py"):
        act.write(name, name, mtime=1_000_000_000)
    (act.project / "link").symlink_to("a.py")
    before = act.run("init", "--dry-run", "--json").json
    assert before["version"] == 1 and before["files_to_compress"] == before["files"] == 4
    assert before["stored"] is None and before["sha256"] is None
    assert not act.store.exists() and not (act.home / "cache").exists()
    time.sleep(2.1)  # what has just been written is looked into again
    packed = act.run("init", "--json").json
    assert packed["files_read"] == 4 and packed["bytes_sent"] == packed["bytes"] and packed["published"]
    after = act.run("init", "--dry-run", "--json").json
    assert after["files_to_compress"] == 0 and after["stored"] is True and after["sha256"] == packed["sha256"]
    assert {e["path"]: e["bytes"] for e in after["content"]}["c/d.py"] == 6
    assert {f["path"]: f["files"] for f in after["folders"]} == {"./": 3, "aux_data/": 1, "c/": 1}
    assert {r["rule"]: r["left_out"] for r in after["rules"]} == {"built-in rule '/aux_data/configs/'": 1}
    assert "the store has this package" in act.run("init", "--dry-run").out
    act.write("b.py", "changed")
    changed = act.run("init", "--dry-run", "--json").json
    assert changed["files_to_compress"] == 1 and changed["bytes_to_compress"] == 7 and changed["stored"] is None
    act.write("b.py", "b.py", mtime=1_000_000_000)
    assert act.run("init", "--json").json["sha256"] == packed["sha256"]
    shutil.rmtree(act.store)
    assert act.run("init", "--dry-run", "--json").json["stored"] in (False, None)


def test_dry_run_works_without_the_store(act, azure, proxy):
    act.write("a.py", "1", mtime=1_000_000_000)
    time.sleep(2.1)
    act.run("init")
    proxy.close()
    result = act.run("init", "--dry-run", env={"ACT_MAX_RETRIES": "0"})
    assert "a.py" in result.out and "cannot ask the store" in result.err


def test_a_package_that_is_damaged_here_is_made_anew(act):
    act.write("a.txt", "x" * 1000, mtime=1_000_000_000)
    time.sleep(2.1)
    sha256 = act.run("init").out.strip()
    cached = act.home / f"cache/packages/{sha256}.zip"
    good = cached.read_bytes()
    cached.write_bytes(good[:50] + b"?" + good[51:])
    shutil.rmtree(act.store)
    assert act.run("init").out.strip() == sha256
    assert packages(act)[sha256].read_bytes() == good == cached.read_bytes()


def test_leftovers_of_killed_runs_are_removed(act):
    cache = act.home / "cache/packages"
    cache.mkdir(parents=True)
    for name in (".act-new-123456", ".act-new-aBcDeF"):
        (cache / name).write_bytes(b"half")
    for name, age in (("foreign-99.zip", 2 * 86400), (".act-part-x", 2 * 86400), ("foreign-98.zip", 60)):
        (cache / name).write_bytes(b"half")
        os.utime(cache / name, (time.time() - age,) * 2)
    sha256 = act.run("init").out.strip()
    left = {p.name for p in cache.iterdir() if not p.name.startswith("index-")}
    assert left == {f"{sha256}.zip", "foreign-98.zip"}


def test_a_file_that_grows_all_the_time(act):
    """As the log of a server that runs in the project."""
    for i in range(10):
        act.write(f"before/{i}", os.urandom(2_000_000))  # so that it grows between the look at it and its turn
    log = act.write("server.log", "line\n" * 1000)
    writer = subprocess.Popen(["sh", "-c", f"while echo line >>'{log}'; do :; done"])
    try:
        act.until(lambda: log.stat().st_size > 5000, "somebody writes")
        said = act.run("init")
    finally:
        writer.kill()
        writer.wait()
    assert "'server.log' grew while it was packaged: the package has its first " in said.err
    assert "'.actignore'" in said.err


def test_killed_while_packing(act):
    """Nothing half-written stays under a right name, and the next run does not mind."""
    for i in range(40):
        act.write(f"f{i}", os.urandom(1_000_000))
    cache = act.home / "cache/packages"
    for signal in ("kill", "terminate"):
        process = act.start("init")
        while process.poll() is None and not list(cache.glob(".act-new-*")):
            time.sleep(0.001)
        getattr(process, signal)()
        process.communicate()
        for path in cache.glob("[0-9a-f]*.zip"):
            assert hashlib.sha256(path.read_bytes()).hexdigest() == path.stem
    sha256 = act.run("init").out.strip()
    assert hashlib.sha256(packages(act)[sha256].read_bytes()).hexdigest() == sha256
    assert not list(cache.glob(".act-new-*"))


def test_awkward_names(act):
    names = {"two words.py", "it's.py", 'say "hi".py', "Grüße 世界 🚀.py", "a\\b.py", "100%.py", "*.py", "[x].py",
             "-dash.py",
             "$HOME.py", "a:b.py", "tilde~.py"}
    for name in names:
        act.write(name, name)
    assert {n for n in files_in(pack(act))} >= names
    act.write("list.py", "import os; print(sorted(n for n in os.listdir('.') if n != 'list.py'))")
    act.run("init")
    run = act.finish("python3", "list.py", before=("-n", "1"))
    assert names <= set(eval(act.lines(run)[-1]))  # noqa: S307 (a list that this test printed)


def test_empty_project(act):
    pack(act)
    run = act.finish("echo", "no code needed", before=("-n", "1"))
    assert act.lines(run) == ["no code needed"]


# ---- trees that are not as they should be


def nothing_stored(act):
    return not act.store.exists() or (not packages(act) and not (act.store / "files/code/project.zip").exists())


def test_unreadable_files_are_named_all_at_once(act):
    for name in ("one.py", "two.py"):
        act.write(name, "x").chmod(0)
    act.write("fine.py", "x")
    act.respect_modes()
    message = act.fail("init", status=4)
    assert "one.py" in message and "two.py" in message and "fine.py" not in message
    assert nothing_stored(act)
    act.write(".actignore", "/one.py\ntwo*\n")
    act.run("init")


def test_sockets_and_pipes_stay_out_and_it_is_said(act):
    act.write("main.py", "x")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(act.project / "a.sock"))
        os.mkfifo(act.project / "a.pipe")
        result = act.run("init")
        assert "a.sock" in result.err and "a.pipe" in result.err
    names = files_in({i.filename for i in check_zip(act.store / "files/code/project.zip")})
    assert names == {"main.py"}


@pytest.mark.parametrize("name", [b"line\nbreak.py", b"not\xffutf8.py", b"folder\n/x.py", b"bell\x07.py"])
def test_names_that_cannot_be_packed(act, name):
    path = os.path.join(os.fsencode(act.project), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(b"x")
    act.write("fine.py", "x")
    message = act.fail("init", status=(1, 2, 7))
    assert "py" in message or "folder" in message
    assert nothing_stored(act)
    act.write(".actignore", "*.py\nfolder*\n")
    act.run("init")


def test_who_waits_for_another_one_that_packs_is_told(act):
    act.write("x.txt", "x")
    act.run("init")
    lock, = act.home.rglob("*.lock")
    with open(lock, encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = act.start("init")
        said = waiting.stderr.readline().decode()
    assert said == f"waiting for process {os.getpid()}, which packs this project ...\n"
    waiting.communicate()
    assert waiting.returncode == 0


def test_many_at_once_pack_once(act):
    act.write("big.bin", os.urandom(8 << 20))
    inits = [act.start("init") for _ in range(8)]
    done = [(init.communicate(), init.returncode) for init in inits]
    assert [status for _, status in done] == [0] * 8, done
    assert len(packages(act)) == 1
    check_zip(act.store / "files/code/project.zip")


def test_a_package_that_cannot_be_stored(act):
    act.write("main.py", "x")
    act.store.write_text("a file where the store should be")
    act.fail("init", match="store")
    assert act.store.read_text() == "a file where the store should be"


def test_packages_not_used_for_long_leave_the_cache(act):
    act.write("x.txt", "1")
    first = act.run("init").out.strip()
    cache = act.home / "cache/packages"
    month = 31 * 24 * 3600
    for name, age in (("0" * 64 + ".zip", month), ("1" * 64 + ".zip", 60)):
        (cache / name).write_bytes(b"a package")
        os.utime(cache / name, (time.time() - age,) * 2)
    run = act.finish("cat", "x.txt")
    os.utime(cache / f"{first}.zip", (time.time() - month,) * 2)
    act.write("x.txt", "2")
    second = act.run("init").out.strip()
    assert {p.name for p in cache.glob("*.zip")} == {"1" * 64 + ".zip", f"{second}.zip"}
    again = act.run("resubmit", run).out.strip()
    act.run("wait", again)
    assert act.lines(again) == ["1"], "the store still has it"


# ---- large packages go up in blocks


class Blocks:
    """A project of 12 MiB that does not compress, and what goes over the wire for it."""

    def __init__(self, act, azure, proxy):
        self.act, self.azure, self.proxy, self.verified = act, azure, proxy, {}
        for i in range(120):
            act.write(f"part{i % 10}/noise{i:02}", os.urandom(100_000 + i))

    def init(self, **options):
        self.proxy.seen.clear()
        return self.act.run("init", **options)

    def writes(self):
        """What changes something, in order: 'block', 'commit', 'put'; once, though Azurite wants other checksums."""
        kinds = {"comp=blocklist": "commit", "comp=block": "block"}
        paths = dict.fromkeys(path for method, path in self.proxy.seen if method == "PUT")
        return [kinds.get(path.partition("?")[2].split("&")[0], "put") for path in paths]

    def get(self, key):
        return self.azure.service.get(f"{self.azure.container}/files/code/{key}")

    def packages(self):
        """The hashes of all stored packages, each of which must be what its name says."""
        for name in self.azure.service.list(self.azure.container, "files/code/project/"):
            path = f"{self.azure.container}/{name}"
            sha256 = name.rpartition("/")[2][:-4]
            if name.endswith(".zip") and self.verified.get(sha256) != self.azure.service.head(path)["etag"]:
                assert hashlib.sha256(self.azure.service.get(path)).hexdigest() == sha256, name
                self.verified[sha256] = self.azure.service.head(path)["etag"]
        return set(self.verified)

    def check(self, sha256):
        """The package is everywhere where it should be."""
        pointer = json.loads(self.get("project/latest.json"))
        assert pointer["sha256"] == sha256
        assert hashlib.sha256(self.get("project.zip")).hexdigest() == sha256
        assert sha256 in self.packages()
        assert pointer["code_path_etag"] == self.azure.service.head(
            f"{self.azure.container}/files/code/project.zip")["etag"]


@pytest.fixture
def blocks(act, azure, proxy):
    return Blocks(act, azure, proxy)


def test_blocks_that_did_not_change_are_not_sent_again(blocks):
    first = blocks.init().out.strip()
    sent = blocks.writes()
    assert sent.count("block") >= 4 and sent.count("commit") == 1
    blocks.check(first)
    blocks.act.write("part3/noise33", "changed")
    second = blocks.init().out.strip()
    again = blocks.writes()
    assert again.count("block") <= 2, again  # where the file is, and the table of contents
    assert again.count("commit") == 1
    blocks.check(second)
    assert blocks.packages() == {first, second}
    assert blocks.init().out.strip() == second
    assert blocks.writes() == []


def test_going_back_to_an_older_large_package_sends_no_block(blocks):
    original = (blocks.act.project / "part1/noise11").read_bytes()
    first = blocks.init().out.strip()
    blocks.act.write("part1/noise11", "changed")
    blocks.init()
    blocks.act.write("part1/noise11", original)
    assert blocks.init().out.strip() == first
    assert "block" not in blocks.writes()
    blocks.check(first)
    blocks.act.write("part1/noise12", "changed")
    third = blocks.init().out.strip()
    assert blocks.writes().count("block") <= 2
    blocks.check(third)


def test_a_large_package_over_what_another_tool_wrote(blocks, azcopy, scratch):
    foreign = scratch / "foreign.zip"
    foreign.write_bytes(os.urandom(20_000_000))
    azcopy.copy(str(foreign), azcopy.blob("code/project.zip"), "LocalBlob", "--block-size-mb=4")
    sha256 = blocks.init().out.strip()
    blocks.check(sha256)


def test_identical_blocks(blocks):
    blocks.act.write("zeros", bytes(64 << 20))
    noise = os.urandom(1 << 20)
    blocks.act.write("repeated", noise * 16)
    blocks.check(blocks.init().out.strip())
    blocks.act.write("part5/noise55", "changed")
    blocks.check(blocks.init().out.strip())
    assert blocks.writes().count("block") <= 2


def test_killed_at_any_request(blocks):
    """Before the request reaches the service, or after it did its work: the old or the new package, never a mix."""
    current = blocks.init().out.strip()
    for nth in range(8):
        for after in (False, True):
            blocks.act.write("part7/noise77", os.urandom(100_000))
            running = []

            def kill(exchange, after=after, running=running):
                if after:
                    exchange.forward()
                running[0].kill()
                exchange.reset()

            rule = blocks.proxy.add(Rule(kill, method="PUT", skip=nth))
            running.append(blocks.act.start("init"))
            running[0].communicate()
            was_killed = rule.hits > nth
            rule.times = 0
            code = hashlib.sha256(blocks.get("project.zip")).hexdigest()
            blocks.packages()
            new = blocks.init().out.strip()
            assert code in (current, new), (nth, after)
            blocks.check(new)
            current = new
            if not was_killed:
                assert nth >= 5, "a block or two, a commit, a copy, the pointer"
                return
    raise AssertionError("more requests than thought")


def test_a_package_that_came_there_meanwhile(act, azure, proxy):
    """The last request of a process that was killed arrives between the look and the upload of the next one. Its file
    in the cache was of another time, by which an upload of any other file takes it for another one."""
    act.write("a.txt", "x")
    sha256 = act.run("init").out.strip()
    key = f"code/project/{sha256}.zip"
    package = azure.get(key)
    azure.service.delete(f"{azure.container}/files/{key}")

    answers = []

    def other_first(exchange):
        azure.service.put(f"{azure.container}/files/{key}", package, {"x-ms-meta-mtime": "2026-01-02T03:04:05Z"})
        answer = exchange.forward()
        answers.append(answer[0])
        exchange.reply(*answer)

    rule = proxy.add(Rule(other_first, method="PUT", path=sha256))
    assert act.run("init").out.strip() == sha256
    assert rule.hits == 1 and answers == [409] and azure.get(key) == package


def test_two_inits_at_once(blocks):
    """Both succeed, and what is there afterwards is whole."""
    blocks.init()
    copy = blocks.act.scratch / "copy"
    shutil.copytree(blocks.act.project, copy)
    for _ in range(3):
        blocks.act.write("part2/noise22", os.urandom(100_000))
        (copy / "part4/noise44").write_bytes(os.urandom(100_000))
        both = [blocks.act.start("init"), blocks.act.start("init", cwd=copy)]
        out = [p.communicate() for p in both]
        assert [p.returncode for p in both] == [0, 0], out
        made = {o.decode().strip() for o, _ in out}
        assert made <= blocks.packages()
        assert hashlib.sha256(blocks.get("project.zip")).hexdigest() in made


NAMES = ["a", "b.py", "c.pt", "build", "dat", "x y", "é", "[z]", "a.b.c", "tmp"]
LINES = ["*.pt", "/a", "a", "build/", "dat/*", "!dat/a", "**/b.py", "x*", "a/**/c.pt", "!*.pt", "tmp/", "[ab]*",
         "[ab]?", "\\[z]", "# comment", "", "a/b.py", "/dat/", "!/a", "é", "*.b.?", "x y", "*", "!*/", "!b.py", "a/*",
         "?", "??", "[!z]", "[é]*"]


def random_tree(act, random):
    """Files in folders, and some .gitignore files."""
    folders = [act.project / "r"]
    for _ in range(12):
        folder = random.choice(folders) / random.choice(NAMES)
        if not folder.is_file():
            folder.mkdir(exist_ok=True, parents=True)
            folders.append(folder)
    for folder in folders:
        folder.mkdir(exist_ok=True)
        for name in random.sample(NAMES, 4):
            if not (folder / name).exists():
                (folder / name).write_text("")
        if folder == folders[0] or random.random() < 0.3:
            text = "\n".join(random.sample(LINES, random.randint(1, 5)))
            (folder / ".gitignore").write_text(text + random.choice(["", "\n"]))


@pytest.mark.parametrize("seed", range(25))
def test_gitignore_means_what_git_says(act, seed):
    """Every file of a random tree, as `git check-ignore` judges it; the project lies below the repository's top."""
    import random
    git = ["git", "-c", "core.excludesFile=/dev/null", "-C", str(act.project)]
    subprocess.run([*git, "init", "-q"], check=True)
    random_tree(act, random.Random(seed))
    (act.project / ".gitignore").write_text("é/\n/r/tmp\n*.pt\n!/r/c.pt\n")
    act.write("r/aux_data/aml/aml.yaml", (act.project / "aux_data/aml/aml.yaml").read_text())
    root = act.project / "r"
    out = json.loads(act.run("init", "--dry-run", "--json", cwd=root).out)
    packed = {entry["path"] for entry in out["content"] if not entry["path"].endswith("/")}
    files = {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}
    asked = "\0".join(f"r/{name}" for name in sorted(files)).encode()
    answer = subprocess.run([*git, "check-ignore", "-z", "--stdin"], input=asked, capture_output=True, check=False)
    ignored = {name[2:] for name in answer.stdout.decode().split("\0") if name}
    assert packed == {name for name in files - ignored if not name.startswith(".")}


def ignored_by_git(act, root, names):
    env = {**os.environ, "HOME": act.env["HOME"], "GIT_CONFIG_NOSYSTEM": "1"}
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"):
        env.pop(name, None)
    done = subprocess.run(["git", "-C", str(root), "check-ignore", "-z", "--stdin"], input="\0".join(names).encode(),
                          capture_output=True, check=False, env=env)
    assert done.returncode in (0, 1), done
    return {name for name in done.stdout.decode().split("\0") if name}


OWN = {
    "default": lambda home, git: (home / ".config/git").mkdir(parents=True) or (home / ".config/git/ignore"),
    "named": lambda home, git: (home / ".gitconfig").write_text('[core]\n\texcludesFile = "~/my ignore" # mine\n')
    and home / "my ignore",
    "included": lambda home, git: (home / ".gitconfig").write_text("[include]\n\tpath = more.inc\n")
    and (home / "more.inc").write_text("[core]\nexcludesfile=~/mine\n") and home / "mine",
    "of the clone": lambda home, git: (git / "config").open("a").write(f"[core]\n\texcludesFile = {home}/here\n")
    and home / "here",
}


@pytest.mark.parametrize("how", OWN)
def test_excludes_of_the_user_count_as_for_git(act, how):
    """The user's own come last, then those of the clone; a .gitignore takes back what they leave out."""
    subprocess.run(["git", "init", "-q", str(act.project)], check=True)
    home = pathlib.Path(act.env["HOME"])
    OWN[how](home, act.project / ".git").write_text("*.own\n!info.*\n/p/root.txt\n*.both\n")
    (act.project / ".git/info/exclude").write_text("*.info\n!kept.both\np/*.x\n")
    act.write("p/.gitignore", "!back.own\n!back.info\n")
    act.write("p/aux_data/aml/aml.yaml", (act.project / "aux_data/aml/aml.yaml").read_text())
    root = act.project / "p"
    for name in ("a.own", "back.own", "sub/b.own", "c.info", "info.info", "back.info", "root.txt", "sub/root.txt",
                 "a.both", "kept.both", "y.x", "sub/y.x", "plain"):
        act.write(f"p/{name}", "x")
    files = {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and p.name != ".gitignore"}
    ignored = ignored_by_git(act, root, sorted(files))
    assert len(ignored) > 5
    out = json.loads(act.run("init", "--dry-run", "--json", cwd=root).out)
    assert {e["path"] for e in out["content"] if not e["path"].endswith("/")} == files - ignored
    rules = " ".join(row["rule"] for row in out["left_out"])
    assert ".git/info/exclude:1 '*.info'" in rules and str(home) in rules
    everything = json.loads(act.run("-p", "gitignore: false", "init", "--dry-run", "--json", cwd=root).out)
    assert {e["path"] for e in everything["content"] if not e["path"].endswith("/")} == files


def test_excludes_in_a_second_work_tree(act):
    main = act.scratch / "main"
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    subprocess.run(["git", "-C", str(main), "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q",
                    "--allow-empty", "-m", "x"], check=True)
    tree = act.scratch / "tree"
    subprocess.run(["git", "-C", str(main), "worktree", "add", "-q", str(tree)], check=True, capture_output=True)
    (main / ".git/info/exclude").write_text("*.info\n")
    shutil.copytree(act.project, tree, dirs_exist_ok=True)
    (tree / "a.info").write_text("x")
    assert ignored_by_git(act, tree, ["a.info"]) == {"a.info"}
    assert "a.info  (" in act.run("init", "--dry-run", cwd=tree).out


def test_what_the_built_in_list_leaves_out_is_said_once(act):
    act.write("pkg/_C.cpython-311-x86_64-linux-gnu.so", "x")
    act.write("wandb/run.json", "x")
    said = act.run("init").err
    assert "left out: 'pkg/_C.cpython-311-x86_64-linux-gnu.so' (built-in rule '*.so'), 'wandb/' (built-in rule" in said
    act.write("a.py", "x")
    assert "left out" not in act.run("init").err
    act.write("b.o", "x")
    assert "left out: 'b.o' (built-in rule '*.o')" in act.run("init").err
    listed = act.run("-p", "zip_options: ['-x', '*.o']", "init", "--dry-run").out
    assert "b.o  (zip_options '-x *.o')" in listed and "_C.cpython-311-x86_64-linux-gnu.so  (" not in listed


def test_environments_and_results_of_tools_stay_out(act):
    """Whatever their names are; and of results it is said once, however many there are."""
    act.write("env39/pyvenv.cfg", "home = /usr/bin")
    (act.project / "env39/bin").mkdir()
    (act.project / "env39/bin/python").symlink_to("/usr/bin/not-on-this-machine")
    act.write("tools/conda/conda-meta/history", "x")
    act.write("env/settings.py", "x")
    for run in "ab":
        act.write(f"outputs/2026-11-28/{run}/.hydra/config.yaml", "x")
    act.write("mlruns/0/meta.yaml", "x")
    act.write("lightning_logs/version_0/metrics.csv", "x")
    said = act.run("init").err
    for name, rule in (("lightning_logs", "lightning_logs/"), ("mlruns", "mlruns/"),
                       ("outputs/2026-11-28/a", "*/.hydra")):
        assert f"'{name}/' (built-in rule '{rule}')" in said
    assert "left out" not in act.run("init").err
    listed = act.run("init", "--dry-run").out
    assert "env39/  (built-in rule '*/pyvenv.cfg')" in listed and "tools/conda/  (built-in rule" in listed
    assert "env/settings.py" in act.run("init", "--dry-run", "--json").out


MISSED = [("pkg/_C.cpython-311-x86_64-linux-gnu.so", "ModuleNotFoundError: No module named 'pkg._C'", "*.so"),
          ("pkg/_C.so", "ImportError: cannot import name '_C' from 'pkg' (/x/pkg/__init__.py)", "*.so"),
          ("lib/libmine.so", "ImportError: libmine.so: cannot open shared object file: No such file or directory",
           "*.so"),
          ("visualization/a.png", "FileNotFoundError: [Errno 2] No such file or directory: 'visualization/a.png'",
           "/visualization/"),
          ("wandb/x.py", "ModuleNotFoundError: No module named 'wandb'", "wandb/")]


@pytest.mark.parametrize("path,line,rule", MISSED)
def test_why_names_the_rule_that_left_out_what_is_missing(act, path, line, rule):
    act.write(path, "x")
    run = act.finish("sh", "-c", f"echo \"{line}\"; exit 1", status=None)
    said = act.run("why", run).out
    shown = path if "*" in rule else path.split("/")[0] + "/"
    assert f"'{shown}' is not in the package: built-in rule '{rule}' leaves it out" in said, said
    other = act.finish("sh", "-c", "echo \"ModuleNotFoundError: No module named 'other'\"; exit 1", status=None)
    assert "is not in the package" not in act.run("why", other).out


def test_data_that_git_ignores_is_said_once(act):
    """A repository has none, whether or not a run needs it; what is small or has no name of data is no word worth."""
    act.write(".gitignore", "models/\n/big/\nlogs/\n*.egg-info/\n/empty/weights/\n")
    act.write("models/a.pt", "x")
    act.write("big/deep/b", "").touch()
    os.truncate(act.project / "big/deep/b", 20 << 20)
    act.write("logs/l", "x")
    act.write("deep/models/c.pt", "x")
    said = act.run("init").err
    assert ("left out: 'big/' (.gitignore:2 '/big/'), 'models/' (.gitignore:1 'models/'); a line such as '!NAME' in "
            ".actignore takes it back, or map the folder in config_param") in said, said
    assert "left out" not in act.run("init").err
    (act.project / ".actignore").write_text("!models/\n!big/\n")
    assert "left out" not in act.run("init").err


def test_gitignore_can_be_turned_off(act):
    act.write(".gitignore", "*.pt")
    act.write("a.pt", "x")
    assert "a.pt  (.gitignore:1 '*.pt')" in act.run("init", "--dry-run").out
    assert "a.pt  (" not in act.run("-p", "gitignore: false", "init", "--dry-run").out


def test_a_few_bytes_that_would_fill_every_node(act):
    act.write("empty.bin", "").touch()
    os.truncate(act.project / "empty.bin", (1 << 30) + (1 << 20))
    message = act.fail("submit", "-y", "true", match="unpacks to 1.0 GiB, more than 100 times as much")
    assert "leave out of the code what is empty" in message
    assert act.run("q", "--json").json["runs"] == []
    act.write(".actignore", "empty.bin")
    act.run("init")
