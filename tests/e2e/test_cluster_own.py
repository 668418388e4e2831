"""Clusters of the user's own: making their files, choosing one, and changing them."""
import concurrent.futures
import fcntl
import os
import pathlib
import re
import stat

import pytest

import sshd as private_sshd



@pytest.fixture
def bare(act):
    """A project without clusters of its own."""
    (act.project / "aux_data/aml/aml.yaml").unlink()
    act.home.mkdir(mode=0o700)
    return act


def mine(act, name):
    return act.home / f"config/clusters/{name}.yaml"


def own(act, **options):
    """{name: row} of `a cluster list --own --json`; of several of a name, the one that counts."""
    rows = act.run("cluster", "list", "--own", "--json", **options).json["own"]
    return {row["name"]: row for row in reversed(rows) if not row["hidden"]}


def edits(act, script):
    """An editor that does this to its file, $1."""
    editor = act.scratch / "editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o755)
    return {"EDITOR": str(editor)}


# ---- from nothing


@pytest.mark.smoke
def test_from_nothing_to_a_run(bare, scratch):
    act = bare
    done = act.run("cluster", "add", "here", "--kind", "local")
    assert "ok    configuration: cluster 'here'" in done.out and "it is the default cluster now" in done.err
    assert mine(act, "here").read_text().startswith("# ")
    assert stat.S_IMODE(mine(act, "here").stat().st_mode) == 0o600
    assert stat.S_IMODE(mine(act, "here").parent.stat().st_mode) == 0o700
    act.write("hello.py", "print('hello')")
    run = act.finish("python3", "hello.py")
    assert act.info(run)["cluster"] == "here"
    assert "hello" in act.lines(run)
    other = scratch / "other"
    other.mkdir()
    assert own(act, cwd=other)["here"]["default"], "every project finds it"
    assert act.run("cluster", "list", cwd=other).out.splitlines()[1].split()[:5] == ["*", "here", "local", "file", "ok"]


def test_what_fails_its_check_is_not_the_default(bare):
    """A bare submit would go where nothing runs. The user may still choose it."""
    gone = bare.scratch / "gone"
    gone.write_text("#!/bin/sh\necho 'ssh: connect to host gone port 22: No route to host' >&2\nexit 255\n")
    gone.chmod(0o755)
    words = ("cluster", "add", "box", "--kind", "ssh", "--hosts", "me@gone", "-y")
    done = bare.run(*words, env={"ACT_SSH": str(gone)}, status=1)
    assert "fail  me@gone: " in done.out and "it is not the default cluster, as a check failed" in done.err
    assert own(bare)["local"]["default"]
    bare.run("cluster", "remove", "-y", "box")
    found = bare.run(*words, "--json", env={"ACT_SSH": str(gone)}, status=1).json
    assert not found["ok"] and not found["default"] and not found["checks"][-1]["ok"]
    bare.run("cluster", "use", "box")
    assert own(bare)["box"]["default"]
    bare.run("cluster", "remove", "-y", "box")
    found = bare.run("cluster", "add", "here", "--kind", "local", "--json").json
    assert found["ok"] and found["default"] and {check["ok"] for check in found["checks"]} == {True}


def test_trust_is_not_asked_for(bare):
    del bare.env["ACT_TRUSTED_PROJECTS"]
    bare.run("cluster", "add", "far", "--kind", "local", "-p", f"env: {{WHERE: {bare.scratch}}}")
    for words, status in ((("config", "show"), 0), (("ls", "data"), (0, 3))):
        assert "trust" not in bare.run("-c", "far", *words, status=status).err


def test_files_of_the_project_win(act):
    act.run("cluster", "add", "here", "--kind", "local", "-p", "num_gpu: 3")
    done = act.run("cluster", "add", "here", "--kind", "local", "--project", "-p", "num_gpu: 5")
    assert "warning" not in done.err
    assert stat.S_IMODE((act.project / "aux_data/aml/here.yaml").stat().st_mode) == 0o644
    act.run("cluster", "add", "secret", "--kind", "local", "--project", "-p", "docker: {image: x, password: pw}")
    assert stat.S_IMODE((act.project / "aux_data/aml/secret.yaml").stat().st_mode) == 0o600
    act.run("cluster", "add", "there", "--kind", "local", "--project")
    assert "'there' too, which comes before it" in act.run("cluster", "add", "there", "--kind", "local").err
    assert act.run("-c", "here", "config", "get", "num_gpu").out == "5\n"
    assert (act.project / "aux_data/aml/here.yaml").exists()
    rows = act.run("cluster", "list", "--own", "--json").json["own"]
    assert [(r["yours"], r["hidden"]) for r in rows if r["name"] == "here"] == [(False, False), (True, True)]
    assert act.run("config", "get", "platform").out == "local\n"
    assert own(act)["aml"]["default"], "aml.yaml of the project comes before the user's default"


def test_what_add_refuses(bare):
    act = bare
    act.fail("cluster", "add", status=2, match="--kind is missing; there are: local, slurm, ssh, k8s, aml")
    act.fail("cluster", "add", "--kind", "local", status=2, match="the name, 'a cluster add NAME', is missing")
    act.fail("cluster", "add", "x", "--kind", "clurm", status=2, match="no kind 'clurm'; did you mean 'slurm'")
    assert "there is: " not in act.fail("cluster", "add", "x", "--kind", "slurm", status=2, match="--login is missing")
    act.fail("cluster", "add", "x", "--kind", "local", "--login", "me@host", status=2,
             match="--login is not for .*local")
    act.fail("cluster", "add", "x", "--kind", "local", "--image", "x", status=2, match="--image is not for")
    for name in ("../x", "a/b", ".hidden", "-x", "a b", "x.yaml", "é", "", "x" * 65):
        words = ["--kind", "local", "--", name] if name.startswith("-") else [name, "--kind", "local"]
        act.fail("cluster", "add", *words, status=2, match="cannot be the name|is not an answer")
    act.fail("cluster", "add", "local", "--kind", "local", status=2, match="built-in")
    act.fail("cluster", "add", "x", "--kind", "local", "-p", "numm_gpu: 3", status=7, match="did you mean 'num_gpu'")
    act.fail("cluster", "add", "x", "--kind", "local", "-p", "[1]", status=2, match="-p takes")
    act.fail("cluster", "use", "x", "--kind", "local", status=2, match="takes no --kind")
    act.fail("cluster", "add", "x", "y", "--kind", "local", status=2, match="takes one name")
    assert not mine(act, "x").parent.exists(), "nothing was written"
    act.run("cluster", "add", "x", "--kind", "local")
    before = mine(act, "x").read_bytes()
    act.fail("cluster", "add", "x", "--kind", "slurm", status=2,
             match="there is a cluster 'x' already.*edit x.*remove x")
    assert mine(act, "x").read_bytes() == before


def test_add_changes_nothing_in_a_dry_run(bare):
    before = bare.snapshot()
    text = bare.run("cluster", "add", "here", "--kind", "local", "--dry-run").out
    assert "platform: local\n" in text
    found = bare.run("cluster", "add", "here", "--kind", "local", "--dry-run", "--json").json
    assert found == {"version": 1, "action": "add", "name": "here", "kind": "local", "file": str(mine(bare, "here")),
                     "default": False, "dry_run": True}
    assert bare.snapshot() == before


def test_asks_on_a_terminal(bare):
    shown = bare.on_terminal("cluster", "add", typed=b"9\nloca\n1\nbad/name\nhere\n").decode()
    assert "   2  slurm" in shown and "did you mean 'local'" in shown and "cannot be the name" in shown
    assert "default cluster now" in shown
    assert own(bare)["here"]["kind"] == "local"
    shown = bare.on_terminal("cluster", "add", "--kind", "local", typed=b"\x04").decode()
    assert "no answer: nothing was written" in shown
    assert list(own(bare)) == ["local", "here"]


# ---- Slurm


def partitions(bed):
    return bed.run("sinfo", "-h", "-o", "%P").split()


def test_a_slurm_cluster(bare, slurm):
    act = bare
    act.env["SLURM_CONF"] = str(slurm.conf)
    act.env["MODULEPATH"] = str(act.scratch / "modules")
    for module in ("cuda/11.8", "cuda/12.1", "openmpi/4.1", "strange/1"):
        (act.scratch / "modules" / module).parent.mkdir(parents=True, exist_ok=True)
        (act.scratch / "modules" / module).write_text("#%Module1.0\n")
    (act.scratch / "home/miniforge3/envs/torch/conda-meta").mkdir(parents=True)
    names = [name.rstrip("*") for name in partitions(slurm)]
    root = f"slurm: {{root: {act.scratch / 'shared'}}}"
    words = ("cluster", "add", "lab", "--kind", "slurm", "--login", "none", "-p", root)
    act.fail(*words, "--partition", "nope", status=3, match="no partition 'nope'; .*there are: .*" + names[0])
    done = act.run(*words, "--partition", names[0], "-p", "gpu_per_node: 2", status=None)
    assert "ok    partition" in done.out, done
    text = mine(act, "lab").read_text()
    assert "# modules: [NAME, ...]   there are cuda/11.8 cuda/12.1 openmpi/4.1\n" in text
    assert "# conda: NAME            there are torch\n" in text
    assert re.search(r"\n# The login node has Python 3\.", text)
    assert f"  partition: {names[0]}\n" in text and "login" not in text.split("slurm:")[1].split("#")[0]
    assert "gpu_per_node: 2 " in text, "what -p says comes before what was found"
    run = act.finish("true", before=("-n", "1"))
    assert act.info(run)["cluster"] == "lab"


def test_a_slurm_cluster_by_prompts(bare, slurm):
    act = bare
    act.env["SLURM_CONF"] = str(slurm.conf)
    names = [name.rstrip("*") for name in partitions(slurm)]
    more = b"" if len(names) == 1 else b"1\n"
    shown = act.on_terminal("cluster", "add", typed=b"slurm\n\n" + more + b"lab\n", SLURM_CONF=str(slurm.conf)).decode()
    assert "this machine is one" in shown and re.search(r"nodes, \d+ idle, \d+ GPUs|Partition: ", shown), shown
    text = mine(act, "lab").read_text()
    assert "gpu_per_node: 4" in text, "as many as sinfo counts"
    assert own(act)["lab"]["kind"] == "slurm"


def test_a_slurm_cluster_behind_ssh(bare, slurm):
    act = bare
    if not private_sshd.is_installed():
        pytest.skip("sshd is not installed: scripts/install-deps --test")
    server = private_sshd.Sshd(act.scratch / "ssh")
    try:
        server.shell(f"export SLURM_CONF={slurm.conf} SINFO_PARTITION=nope SINFO_FORMAT=x SINFO_SORT=x")
        act.env.update(server.env)
        words = ("cluster", "add", "--kind", "slurm")
        message = act.fail(*words, "lab", "--login", "lab", status=2, match="--partition is missing")
        assert all(name.rstrip("*") in message for name in partitions(slurm))
        act.fail(*words, "lab", "--login", "-oProxyCommand=x", status=2, match="is not an answer for --login")
        done = act.run(*words, "-y", "--login", "lab", status=None)
        assert "  login: lab  # " in mine(act, "main").read_text() and "Partition: main" in done.err
        assert "ok    login node: 'lab' can be reached" in done.out
        assert own(act)["main"]["default"]
    finally:
        server.stop()


# ---- Kubernetes


def test_a_kubernetes_cluster(bare, kubernetes_api):
    act = bare
    act.env["KUBECONFIG"] = str(kubernetes_api.kubeconfig)
    words = ("cluster", "add", "pods", "--kind", "k8s")
    act.fail(*words, "--context", "nope", status=3, match="no context 'nope'.*there are: ")
    act.fail(*words, status=2, match="--namespace is missing; there are: default, other; -y takes 'default'")
    act.fail(*words, "-y", status=2, match="--image is missing")
    act.fail(*words, "-y", "--image", "debian:12", "--partition", "x", status=2, match="not for a cluster of kind k8s")
    assert not mine(act, "pods").exists()
    done = act.run(*words, "--namespace", "other", "--image", "debian:12", status=None)
    assert "Context of the kubeconfig: " in done.err, "the only one is not asked about"
    text = mine(act, "pods").read_text()
    assert '  namespace: other\n' in text and '  image: "debian:12"' in text and "kubeconfig:" not in text
    assert "cluster 'pods', platform k8s" in done.out
    assert act.run("cluster", "list").out.splitlines()[1].split()[:3] == ["*", "pods", "k8s"], "none of a workspace"
    kept = act.scratch / "kube config"
    kept.write_bytes(pathlib.Path(kubernetes_api.kubeconfig).read_bytes())
    act.run("cluster", "add", "more", "--kind", "k8s", "-y", "--image", "debian:12", "--kubeconfig", kept, status=None,
            env={"KUBECONFIG": ""})
    assert f'  kubeconfig: "{kept}"\n' in mine(act, "more").read_text()


def test_a_kubernetes_cluster_by_prompts(bare, kubernetes_api):
    env = {"KUBECONFIG": str(kubernetes_api.kubeconfig)}
    shown = bare.on_terminal("cluster", "add", "--kind", "k8s", typed=b"3\n2\n\ndebian:12\npods\n", **env).decode()
    assert "1  default" in shown and "2  other" in shown and "kube-system" not in shown
    assert "no namespace '3'" in shown and "there is no usual answer for --image" in shown
    assert "  namespace: other\n" in mine(bare, "pods").read_text()
    shown = bare.on_terminal("cluster", "add", "--kind", "k8s", typed=b"2\n\n\n", **env).decode()
    assert shown.count("usual answer for --image") == 1 and "no answer: nothing was written" in shown


def test_without_a_kubeconfig(bare):
    bare.fail("cluster", "add", "x", "--kind", "k8s", status=3, match="no kubeconfig")


# ---- Azure Machine Learning


@pytest.fixture
def azure_home(bare, azureml_server):
    """A login, and a workspace that no file names yet; the words that lead there."""
    azureml_server.tell("reset")
    bare.env.update(azureml_server.login_env())
    yield bare, azureml_server, ("--kind", "aml", "-p", f"azureml: {{endpoint: '{azureml_server.links['arm']}'}}")
    azureml_server.check()
    azureml_server.tell("reset")


def test_accounts_without_blobs_are_not_offered(azure_home):
    act, server, words = azure_home
    server.tell("fileserver", name="teamdata")
    act.fail("cluster", "add", "gpu", *words, "--compute", "gpu", "--storage", "teamdata", status=3,
             match="no .*'teamdata'")


def test_a_workspace(azure_home):
    act, server, words = azure_home
    act.fail("cluster", "add", "gpu", *words, status=2, match="--compute is missing; there are: gpu, ")
    act.fail("cluster", "add", "gpu", *words, "--workspace", "sw", status=3, match="no workspace 'sw'.*mean 'ws'")
    act.fail("cluster", "add", "gpu", *words, "--compute", "gpu", "--container", "Bad_Name", "--image", "debian:12",
             status=7, match="cannot be the name of a container")
    assert not [p for p in (act.home / "config").rglob("*") if p.is_file()], "nothing was written"
    assert not [r for r in server.requests() if r["method"] == "PUT"]
    done = act.run("cluster", "add", "gpu", *words, "--subscription", "Tests", "--compute", "gpu", "-y", status=None)
    assert "the container 'act' is made" in done.err and "Workspace: ws" in done.err
    text, account = mine(act, "gpu").read_text(), act.home / "config/accounts/gpu.yaml"
    assert "compute_target: gpu\n" in text and "gpu_per_node: 8 " in text and "  resource_group: rg\n" in text
    assert "container_name: act\n" in account.read_text() and "auth: login " in account.read_text()
    assert stat.S_IMODE(account.stat().st_mode) == 0o600
    puts = [r for r in server.requests() if r["method"] == "PUT"]
    assert len(puts) == 1 and "/containers/act?" in puts[0]["url"]
    values = act.run("config", "show", "--json").json["values"]
    assert re.fullmatch(r"project-[0-9a-f]{8}/data", values["config_param.data_folder.path"]["value"])
    assert "cluster 'gpu', platform aml" in done.out
    server.forget()
    assert "fail  store of 'code'" in done.out and "it is not the default cluster" in done.err, "403 of the double"
    act.run("cluster", "use", "gpu")
    assert "gpu" in act.run("cluster", "list").out, "of the workspace, as before"
    assert "computes" in server.requests()[-1]["url"]
    assert act.run("cluster", "list", "--own").out.splitlines()[1].split()[:5] == ["*", "gpu", "aml", "file", "ok"]
    act.run("cluster", "add", "more", *words, "--compute", "gpu", "-y", "--container", "act", status=None)
    assert len([r for r in server.requests() if r["method"] == "PUT"]) == 0, "it is there already"


def test_a_workspace_by_prompts(azure_home):
    act, server, words = azure_home
    shown = act.on_terminal("cluster", "add", *words, typed=b"gpu\n\n\n\n").decode()
    assert "AmlCompute, up to 4 nodes, STANDARD_ND96ASR_V4" in shown and "the container 'act' is made" in shown, shown
    assert own(act)["gpu"]["ok"]


def test_a_workspace_for_a_project(azure_home):
    act, server, words = azure_home
    act.run("cluster", "add", "gpu", *words, "--compute", "gpu", "-y", "--project", status=None)
    assert "azure_blob_config_file: aux_data/configs/gpu.yaml\n" in (act.project / "aux_data/aml/gpu.yaml").read_text()
    assert stat.S_IMODE((act.project / "aux_data/configs/gpu.yaml").stat().st_mode) == 0o600
    act.run("-c", "gpu", "config", "check")
    assert act.run("-c", "gpu", "config", "get", "config_param.data_folder.path").out == "project/data\n"


# ---- choosing


def test_use(bare, scratch):
    act = bare
    for name in ("one", "two"):
        act.run("cluster", "add", name, "--kind", "local", "-p", f"experiment_name: {name}")
    assert own(act)["one"]["default"], "the first one"
    settings = act.home / "config/config.yaml"
    settings.write_text("# mine\ntrusted_hosts: [a.example.org]  # ours\ndefault_cluster: one\n")
    settings.chmod(0o600)
    act.run("cluster", "use", "two", "--dry-run")
    act.run("cluster", "use", "two")
    assert settings.read_text() == "# mine\ntrusted_hosts: [a.example.org]  # ours\ndefault_cluster: two\n"
    assert act.run("config", "get", "experiment_name").out == "two\n"
    assert act.run("config", "get", "experiment_name", env={"ACT_CLUSTER": "one"}).out == "one\n"
    assert act.run("config", "get", "experiment_name", env={"ACT_CLUSTER": ""}).out == "two\n"
    assert act.run("-c", "two", "config", "get", "experiment_name", env={"ACT_CLUSTER": "one"}).out == "two\n"
    act.fail("config", "get", "experiment_name", env={"ACT_CLUSTER": "gone"}, status=3, match=r"\$ACT_CLUSTER names it")
    act.fail("cluster", "use", "three", status=3, match="no cluster 'three'")
    act.fail("cluster", "use", "tow", status=3, match="did you mean 'two'")
    act.fail("cluster", "use", status=2, match="which cluster")
    act.cluster("here")
    act.fail("cluster", "use", "here", status=3, match="of this project.*ACT_CLUSTER=here")
    act.cluster("aml")
    assert "aml.yaml' comes before it; 'a -c one' chooses it" in act.run("cluster", "use", "one").err
    act.run("cluster", "use", "local")
    assert own(act, cwd=scratch)["local"]["default"]


def test_rename_and_remove(bare):
    act = bare
    act.run("cluster", "add", "one", "--kind", "local")
    act.run("cluster", "add", "two", "--kind", "local")
    run = act.finish("true", before=("-c", "one"))
    act.fail("cluster", "rename", "one", status=2, match="what shall it be called")
    act.fail("cluster", "rename", "one", "two", status=2, match="there is a cluster 'two' already")
    act.fail("cluster", "rename", "one", "../x", status=2, match="cannot be the name")
    act.fail("cluster", "rename", "none", "x", status=3, match="no cluster 'none'")
    text = mine(act, "one").read_bytes()
    done = act.run("cluster", "rename", "one", "big")
    assert "1 run of it keeps the old name, and is found where it went" in done.err
    assert mine(act, "big").read_bytes() == text and own(act)["big"]["default"]
    assert act.state(run) == "Completed"
    act.fail("cluster", "remove", "big", status=2, match="add -y")
    act.run("cluster", "remove", "big", "--dry-run")
    assert b"not confirmed" in act.on_terminal("cluster", "remove", "big", typed=b"n\n")
    assert mine(act, "big").exists()
    act.run("cluster", "remove", "-y", "big")
    assert list(own(act)) == ["local", "two"] and own(act)["local"]["default"]


@pytest.mark.parametrize("words, file, match", [
    (("rename", "one", "big"), "config/config.yaml", "is read-only"),
    (("remove", "-y", "one"), "config/config.yaml", "is read-only"),
    (("remove", "-y", "one"), "config/clusters", "cannot remove")])
def test_what_cannot_be_changed_stays_whole(bare, words, file, match):
    """The file of a cluster and the default that names it change together, or not at all; a dry run says so."""
    act = bare
    act.respect_modes()
    act.run("cluster", "add", "one", "--kind", "local")
    path = act.home / file
    path.chmod(0o500 if path.is_dir() else 0o400)
    for dry in ("--dry-run",) * path.is_file(), ():
        act.fail("cluster", *words, *dry, status=None, match=match)
        assert mine(act, "one").exists() and not mine(act, "big").exists() and own(act)["one"]["default"]
    path.chmod(0o700 if path.is_dir() else 0o600)
    act.run("cluster", *words)


def test_a_default_that_is_gone(bare):
    bare.run("cluster", "add", "one", "--kind", "local")
    mine(bare, "one").unlink()
    bare.fail("config", "show", status=3, match="no cluster 'one'.*config.yaml names it")
    assert own(bare)["local"]["kind"] == "local", "the list works without it"
    bare.run("cluster", "use", "local")
    bare.run("config", "show")


def test_a_list_of_broken_files(bare):
    act = bare
    act.run("cluster", "add", "one", "--kind", "local")
    mine(act, "two").write_text("platform: [\n")
    mine(act, "two").chmod(0o600)
    rows = own(act)
    assert rows["one"]["ok"] and not rows["two"]["ok"] and "two.yaml:" in rows["two"]["problems"][0]
    assert "1 problem" in act.run("cluster", "list").out


def test_a_list_says_what_config_check_says(act):
    """A platform that is none is no aml, and what submit would refuse is a problem."""
    act.write("aux_data/aml/one.yaml", "platform: slrum\n")
    act.write("aux_data/aml/two.yaml", "platform: local\nhang: soon\n")
    rows = own(act)
    assert rows["one"]["kind"] is None and not rows["one"]["ok"]
    assert rows["two"]["kind"] == "local" and "'hang' must be a duration" in rows["two"]["problems"][0]
    assert ["one", "-", "1", "problem"] in [line.split()[:4] for line in act.run("cluster", "list").out.splitlines()]


def test_the_cluster_that_the_variable_names(act):
    """It is the default one, whether or not it is in a folder of clusters."""
    file = act.write("conf/abc.yaml", "platform: local\n")
    env = {"AML_CONFIG_PATH": "conf/abc.yaml"}
    rows = {row["name"]: row for row in act.run("cluster", "list", "--json", env=env).json["own"]}
    assert rows["abc"]["default"] and rows["abc"]["file"] == str(file) and not rows["abc"]["yours"]
    assert not rows["aml"]["default"] and not rows["aml"]["hidden"]
    assert act.run("cluster", "list", env=env).out.splitlines()[1].split()[:3] == ["*", "abc", "local"]
    act.fail("cluster", "remove", "-y", "abc", status=3, env=env, match="no cluster 'abc' is your own")
    (act.project / "link").symlink_to("aux_data")
    rows = act.run("cluster", "list", "--json", env={"AML_CONFIG_PATH": "link/aml/aml.yaml"}).json["own"]
    assert [row["name"] for row in rows if row["default"]] == ["aml"] and len(rows) == len(own(act))


def test_a_file_that_others_can_write(bare):
    bare.run("cluster", "add", "one", "--kind", "local")
    mine(bare, "one").chmod(0o666)
    bare.fail("-c", "one", "config", "show", status=4, match="can be written by everybody")
    assert not own(bare)["one"]["ok"]


# ---- editing


def test_edit(bare):
    act = bare
    act.run("cluster", "add", "one", "--kind", "local")
    good = edits(act, 'echo "num_gpu: 7" >> "$1"')
    assert "is saved" in act.run("cluster", "edit", "one", env=good).err
    assert act.run("config", "get", "num_gpu").out == "7\n"
    before = mine(act, "one").read_bytes()
    assert "is unchanged" in act.run("cluster", "edit", env=edits(act, "true")).err
    bad = edits(act, 'echo "num_gpuu: 7" >> "$1"')
    message = act.fail("cluster", "edit", "one", env=bad, status=7, match="stays as it was: 1 problem")
    copy = re.search(r"is in '([^']+)'", message)[1]
    assert mine(act, "one").read_bytes() == before and "num_gpuu: 7" in open(copy).read(), "nothing typed is lost"
    os.unlink(copy)
    act.fail("cluster", "edit", "one", env=edits(act, "exit 3"), match="the editor .* failed")
    act.fail("cluster", "edit", "one", env={"EDITOR": ""}, status=2, match="EDITOR is not set")
    act.fail("cluster", "edit", "local", env=good, status=3, match="built in")
    race = edits(act, f'echo "# mine" >> "$1"; echo "# theirs" >> {mine(act, "one")}')
    act.fail("cluster", "edit", "one", env=race, status=5, match="changed by somebody else")
    assert mine(act, "one").read_text().endswith("# theirs\n")


def test_edit_again_on_a_terminal(bare):
    act = bare
    act.run("cluster", "add", "one", "--kind", "local")
    twice = edits(act, 'if grep -q bad: "$1"; then sed -i s/bad:.*/num_gpu:\\ 4/ "$1"; else echo bad: 1 >> "$1"; fi')
    shown = act.on_terminal("cluster", "edit", "one", typed=b"y\n", **twice).decode()
    assert "unknown key 'bad'" in shown and "is saved" in shown
    assert act.run("config", "get", "num_gpu").out == "4\n"
    assert not [p for p in mine(act, "one").parent.iterdir() if p.name.startswith(".")]


# ---- values


def test_config_set_keeps_the_file(act):
    path = act.project / "aux_data/aml/lab.yaml"
    path.write_text("# ours\nplatform: local   # here\n\nenv:\n  A: '1'  # first\n\n# how many\nnum_gpu: 2\n")
    path.chmod(0o640)
    act.run("-c", "lab", "config", "set", "num_gpu", "4")
    act.run("-c", "lab", "config", "set", "env.B", "yes")
    act.run("-c", "lab", "config", "set", "docker.image", "ubuntu:22.04")
    assert path.read_text() == ("# ours\nplatform: local   # here\n\nenv:\n  A: '1'  # first\n  B: \"yes\"\n\n"
                                "# how many\nnum_gpu: 4\ndocker:\n  image: \"ubuntu:22.04\"\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert act.run("-c", "lab", "config", "get", "env").json == {"A": "1", "B": "yes"}
    assert act.run("-c", "lab", "config", "get", "env.B").out == "yes\n"
    found = act.run("-c", "lab", "config", "get", "--json", "num_gpu").json
    assert found == {"version": 1, "key": "num_gpu", "value": 4, "origin": "aux_data/aml/lab.yaml:9"}
    assert "removed 'docker.image' from '" in act.run("-c", "lab", "config", "unset", "docker.image").err
    act.run("-c", "lab", "config", "unset", "env.B")
    assert "would remove 'num_gpu' from '" in act.run("-c", "lab", "config", "unset", "num_gpu", "--dry-run").err
    assert path.read_text() == "# ours\nplatform: local   # here\n\nenv:\n  A: '1'  # first\n\n# how many\nnum_gpu: 4\n"
    assert "is not set in" in act.run("-c", "lab", "config", "unset", "docker.image").err
    act.fail("-c", "lab", "config", "unset", "numgpu", status=2, match="no key 'numgpu'; did you mean 'num_gpu'")
    act.fail("config", "unset", "numgpu", status=2, match="did you mean 'num_gpu'")
    act.fail("-c", "lab", "config", "unset", "nothing.like.it", status=2, match="'a config show --all'")
    assert "is that already" in act.run("-c", "lab", "config", "set", "num_gpu", "4").err
    act.fail("-c", "lab", "config", "get", "docker.image", status=3, match="has no value")


def test_config_set_takes_keys_that_need_each_other(act):
    """A folder is refused as long as one of its keys is missing."""
    path = act.project / "aux_data/aml/lab.yaml"
    path.write_text("platform: local\n")
    folder = ("config_param.sets_folder.mode=path", f"config_param.sets_folder.path={act.scratch}")
    for key in folder:
        act.fail("-c", "lab", "config", "set", key, status=7, match="nothing was changed")
    done = act.run("-c", "lab", "config", "set", *folder, "env.A=b=c", "--json")
    assert done.json["key"] is None and done.json["keys"][2] == "env.A" and done.json["changed"]
    assert act.run("-c", "lab", "config", "get", "env.A").out == "b=c\n"
    assert "are that already" in act.run("-c", "lab", "config", "set", *folder).err


def test_what_config_set_refuses(act):
    before = act.snapshot()
    act.fail("config", "set", "num_gpuu", "4", status=2, match="did you mean 'num_gpu'")
    act.fail("config", "set", "num_gpu", "many", status=7, match="whole number.*nothing was changed")
    act.fail("config", "set", "num_gpu", "[", status=7)
    act.fail("config", "set", "env", "[1]", status=7)
    act.fail("config", "set", "platform.x", "1", status=2, match="no key")
    act.fail("config", "set", "docker.password", "secret", status=2, match="is a secret.*a cluster edit")
    act.fail("config", "set", "env.WANDB_API_KEY", "0123456789abcdef", status=2, match="is a secret")
    act.fail("config", "set", "num_gpu", status=2, match="'num_gpu' has no value: a config set KEY VALUE")
    act.fail("config", "set", "num_gpu=3", "4", status=2, match="'4' has no value")
    act.fail("config", "set", "num_gpu=3", "num_gpuu=4", status=2, match="did you mean 'num_gpu'")
    act.fail("config", "set", "num_gpu=3", "default_cluster=local", status=2, match="stand in two files")
    for first, second in (("num_gpu=3", "num_gpu=4"), ("docker.image=x", "docker={}"), ("docker={}", "docker.image=x")):
        act.fail("config", "set", first, second, status=2, match="set the same value: name it once")
    act.fail("config", "set", "num_gpu=3", "env=[1]", status=7, match="nothing was changed")
    act.fail("config", "get", "a", "b", status=2, match=r"takes fewer words: a config get \[KEY\]")
    act.fail("config", "unset", status=2, match="needs more: a config unset KEY")
    act.fail("config", "get", "num_gpuu", status=2, match="did you mean")
    act.fail("config", "set", "num_gpu", "3", "--all", status=2, match="takes no --all")
    act.fail("config", "set", "-p", "num_gpu: 2", "num_gpu", "3", status=2, match="takes no --param")
    assert act.snapshot() == before
    act.fail("-c", "local", "config", "set", "num_gpu", "3", status=3, match="built in and has no file")


def test_keys_are_listed(act):
    result = act.run("config", "get")
    assert {"num_gpu", "docker.image", "slurm.time", "default_cluster"} <= set(result.out.split())
    assert "'a config get KEY' prints" in result.err
    assert act.run("config", "get", "--json").json == {"version": 1, "keys": result.out.split()}


def test_origins_are_not_cut(bare):
    act = bare
    act.env["HOME"] = str(act.scratch)
    file = mine(act, "one")
    act.run("cluster", "add", "one", "--kind", "local", "-p", "num_gpu: 2")
    for columns, deep in ((80, False), (40, False), (80, True), (200, True)):
        if deep and file.name == "one.yaml":
            file = file.with_name("x" * 40 + ".yaml")
            act.run("cluster", "rename", "one", "x" * 40)
        shown = act.on_terminal("config", "show", columns=columns).decode().replace("\r", "").splitlines()
        assert len(shown[0]) <= columns and shown[0].startswith(f"# cluster {file.stem}")
        assert all(len(line) <= columns or line.startswith(("# from ", "# project ")) for line in shown[:-1])
        assert not [line for line in shown if "# default" in line]
        assert sum(re.fullmatch(r"[a-z_.]+ +\S.*", line) is not None for line in shown) > 10
        origin = f"# ~/{file.relative_to(act.scratch)}:"
        assert origin in "\n".join(shown) or columns == 40, shown


def test_a_default_is_a_cluster(act):
    act.home.mkdir(mode=0o700)
    act.fail("config", "set", "default_cluster", "nosuch", status=3, match="no cluster 'nosuch'")
    act.cluster("here")
    act.fail("config", "set", "default_cluster", "here", status=3, match="of this project.*ACT_CLUSTER=here")
    assert not (act.home / "config/config.yaml").exists()
    act.run("cluster", "add", "one", "--kind", "local", "-p", "num_gpu: 2")
    act.run("config", "set", "default_cluster", "one")
    act.run("config", "set", "default_cluster", "local")
    act.run("config", "unset", "default_cluster")
    (act.project / "aux_data/aml/aml.yaml").unlink()
    settings = act.home / "config/config.yaml"
    settings.write_text("default_cluster: nosuch\n")
    settings.chmod(0o600)
    act.fail("config", "unset", "num_gpu", status=3, match="'a cluster use NAME' another")
    act.run("-c", "one", "config", "unset", "num_gpu")
    act.run("config", "unset", "default_cluster")
    assert settings.read_text() == ""


def test_the_default_is_removed(bare):
    bare.run("cluster", "add", "one", "--kind", "local")
    bare.run("cluster", "add", "two", "--kind", "local")
    said = "'one' {} the default cluster: that {} 'local' now"
    assert said.format("is", "would be") in bare.run("cluster", "remove", "--dry-run", "one").err
    assert "It is the default cluster." in bare.on_terminal("cluster", "remove", "one", typed=b"n\n").decode()
    assert said.format("was", "is") in bare.run("cluster", "remove", "-y", "one").err
    assert own(bare)["local"]["default"]
    assert "default" not in bare.run("cluster", "remove", "-y", "two").err


def test_two_that_set_at_once_lose_nothing(act):
    """One that comes too late says so; what was said to be set is in the file."""
    file = act.project / "aux_data/aml/aml.yaml"
    for _ in range(4):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda i: act.run("config", "set", f"env.AT_ONCE_{i}", "x", status=None), range(8)))
        text = file.read_text()
        for i, result in enumerate(results):
            assert result.status == 0 or "meanwhile" in result.err, result
            assert result.status != 0 or f"AT_ONCE_{i}:" in text, (i, result, text)
            act.run("config", "unset", f"env.AT_ONCE_{i}")


@pytest.mark.parametrize("key", ["env.MINE", "trusted_hosts"])
def test_a_folder_that_is_locked_for_long(act, key):
    """By a process that hangs: which one that is, and nothing was changed."""
    folder = act.home / "config" if key == "trusted_hosts" else act.project / "aux_data/aml"
    folder.mkdir(parents=True, exist_ok=True)
    before = {path: path.read_text() for path in folder.iterdir()}
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    act.fail("config", "set", key, "[x]", status=5, match=rf"was not changed: process {os.getpid()} has had '{folder}' "
                                                          r"locked for \d+ s; try again when it has ended")
    os.close(held)
    assert {path: path.read_text() for path in folder.iterdir()} == before
    act.run("config", "set", key, "[x]")


def test_config_set_of_the_users_settings(act):
    act.home.mkdir(mode=0o700)
    act.run("config", "set", "trusted_hosts", "[blob.example.org]")
    settings = act.home / "config/config.yaml"
    assert settings.read_text() == "trusted_hosts: [blob.example.org]\n"
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    assert act.run("config", "get", "trusted_hosts").json == ["blob.example.org"]
    act.run("config", "unset", "trusted_hosts")
    act.fail("config", "get", "trusted_hosts", status=3, match="has no value")
    act.fail("-c", "aml", "config", "set", "trusted_hosts", "[a]", status=2, match="no -c and no -p")


def test_a_link_stays_a_link(act):
    real = act.project / "aux_data/aml/lab.yaml"
    real.write_text("platform: local\n")
    link = act.project / "aux_data/aml/aml.yaml"
    link.unlink()
    link.symlink_to("lab.yaml")
    act.run("config", "set", "num_gpu", "3")
    assert link.is_symlink() and real.read_text() == "platform: local\nnum_gpu: 3\n"


def test_a_read_only_file_is_left_alone(bare):
    bare.run("cluster", "add", "one", "--kind", "local")
    before = mine(bare, "one").read_bytes()
    mine(bare, "one").chmod(0o400)
    bare.fail("config", "set", "num_gpu", "3", status=4, match="is read-only; 'chmod u.w ")
    editor = edits(bare, "touch /nowhere; exit 9")
    bare.fail("cluster", "edit", "one", env=editor, status=4, match="is read-only")
    assert mine(bare, "one").read_bytes() == before


def test_a_link_that_leads_nowhere(bare):
    (bare.project / "aux_data/aml").mkdir(parents=True, exist_ok=True)
    link = bare.project / "aux_data/aml/far.yaml"
    for target in ("nowhere", "far.yaml"):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        bare.fail("-c", "far", "config", "show", status=3, match=f"'{link}' is a link that leads nowhere")


def test_completion(bare):
    bare.run("cluster", "add", "lab1", "--kind", "local")
    assert bare.run("__complete", "cluster", "use", "la").out.split() == ["lab1"]
    assert bare.run("__complete", "-c", "la").out.split() == ["lab1"]
    assert bare.run("__complete", "config", "get", "docker.im").out.split() == ["docker.image"]
    assert "--partition" in bare.run("__complete", "cluster", "add", "--pa").out.split()
    assert "rename" in bare.run("__complete", "cluster", "re").out.split()
