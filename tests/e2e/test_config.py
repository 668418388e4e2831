"""Configuration: which file, which value, where it came from, and what is wrong with it."""
import json
import os
import re

import pytest


def values(act, *words, **options):
    """{key: {"value", "origin"}} of `a config show --json`."""
    whole = act.run(*words, "config", "show", "--json", **options).json
    assert whole["version"] == 1
    return whole["values"]


EVERYTHING = """\
# every key, as files of the original have them
azure_blob_config_file: null
datastore_name: null
aml_config: aux_data/aml/config.json
config_param:
   code_path:
       azure_blob_config_file: ./aux_data/configs/account.yaml # the blob account
       path: path/to/code.zip
   data_folder:
       azure_blob_config_file: ./aux_data/configs/account.yaml
       path: path/to/data/
       storage_type: blob
       datastore_name: my_store
       blob_cache_timeout: 120
       submit_with_url: false
       mode: ro_mount
   output_folder:
       azure_blob_config_file: ./aux_data/configs/account.yaml
       path: path/to/output
use_custom_docker: true
compute_target: NC24RSV3
platform: local
docker:
    image: amsword/setup:py38pt112cu11
    address: registry.example.com
    username: me
    password: pass-word-of-docker
experiment_name: experiment_name
use_cli_auth: True
multi_process: True
gpu_per_node: 4
process_count_per_node: 1
preemption_allowed: false
elastic_num_gpu: [4, 8]
singularity_sla_tier: Standard
singularity_instance_type: 'AISupercomputer.ND40rs_v2'
interpreter_path: /opt/conda/bin/python
aks_compute: false
env:
   NCCL_IB_DISABLE: '0'
compile_args: --fast
sleep_if_fail: false
sleep_if_succeed: no
num_gpu: 2
zip_options:
    - '-x'
    - '\\*src/py-faster-rcnn/\\*'
"""


ITP = "{platform: itp, preemption_allowed: true, num_gpu: 4}"


def everything(act):
    act.write("aux_data/aml/aml.yaml", EVERYTHING)
    act.write("aux_data/aml/config.json", json.dumps(
        {"subscription_id": "sub-id", "resource_group": "group", "workspace_name": "space"}))
    act.account("account", account_name="acct", account_key="c2VjcmV0LWtleQ==", sas_token="?sv=1&sig=secret-sig",
                container_name="cont")


@pytest.mark.smoke
def test_files_of_the_original_work_unchanged(act):
    everything(act)
    result = act.run("config", "show", "--json")
    assert "warning" not in result.err, result
    text = result.out
    for word in ("experiment_name", "path/to/code.zip", "sub-id", "NC24RSV3", "ro_mount", "ND40rs_v2"):
        assert word in text, word
    got = result.json["values"]
    assert got["num_gpu"]["value"] == 2
    assert got["num_gpu"]["origin"].startswith("aux_data/aml/aml.yaml:")
    assert got["experiment_name"]["origin"].split(":")[1] == str(
        EVERYTHING.splitlines().index("experiment_name: experiment_name") + 1)
    assert "warning" not in act.run("-p", ITP, "config", "check").err


def test_secrets_are_masked(act):
    everything(act)
    for words in (("config", "show"), ("config", "show", "--json"), ("config", "check")):
        result = act.run("-p", ITP, *words)
        for secret in ("pass-word-of-docker", "c2VjcmV0LWtleQ==", "secret-sig"):
            assert secret not in result.out + result.err


def test_params_reach_the_run(act):
    act.write("say.sh", 'echo "$GREETING"')
    run = act.finish("sh", "say.sh", before=("-p", "env: {GREETING: 'hello from -p'}", "-n", "1"))
    assert act.lines(run) == ["hello from -p"]


# ---- what is wrong


def test_check_names_the_cluster(act):
    file = act.project / "aux_data/aml/aml.yaml"
    assert act.run("config", "check").err == f"the configuration of cluster 'aml' is valid: {file}\n"
    checked = act.run("config", "check", "--json").json
    assert (checked["cluster"], checked["file"], checked["ok"]) == ("aml", str(file), True)
    assert "cluster 'local' is valid: built-in" in act.run("-c", "local", "config", "check").err
    act.cluster("lab", extra={"num_gpu": "x"})
    assert "1 problem in the configuration of cluster 'lab'" in act.run("-c", "lab", "config", "check", status=7).err
    file.write_text("platform: [local\n")
    assert "1 problem in the configuration of cluster 'aml'" in act.run("config", "check", status=7).err


@pytest.mark.parametrize("text, place", [
    ("platform: [local\n", ":"),
    ("platform: local\n  bad: indent\n", ":2:"),
    ("platform: mars\n", ":1:"),
    ("platform: \"\\xff\n", ":"),
    ("\0\0\0", ":"),
])
def test_invalid_files(act, text, place):
    (act.project / "aux_data/aml/aml.yaml").write_text(text)
    result = act.run("config", "check", status=7)
    assert "aux_data/aml/aml.yaml" + place in result.out + result.err, result
    act.fail("submit", "true", status=7, match="aux_data/aml/aml.yaml")
    assert act.run("q", "--json").json["runs"] == []


def test_members_of_a_workspace_beside_its_file(act):
    """What -p says comes before the file that the cluster file names; the rest of that file holds."""
    act.write("ws.json", '{"subscription_id": "s", "resource_group": "g", "workspace_name": "said"}')
    act.cluster("aml", extra={"platform": "aml", "aml_config": "ws.json"})
    keys = values(act, "-p", "aml_config: {workspace_name: typed}")
    assert keys["aml_config.workspace_name"] == {"value": "typed", "origin": "-p"}, keys
    assert keys["aml_config.resource_group"] == {"value": "g", "origin": "ws.json"}, keys


@pytest.mark.parametrize("sas, words", [
    ("sv=2021&sr=c&sig=aGlkZGVu+c2VjcmV0%3D", "'+' in it, which the service reads as a blank; write '%2B' for it"),
    ("https://acct.blob.core.windows.net/cont?sv=2021&sig=aGlkZGVu", "a whole URL: only what follows its '?'"),
    ('"sv=2021&sig=aGlkZGVu"', "has quotes in it, which are no part of a SAS"),
])
def test_a_sas_that_no_service_takes(act, listener, sas, words):
    """It is named by `a config check`, and refused before anything is sent, wherever it comes from."""
    keys = {"account_name": "acct", "container_name": "cont", "endpoint": f"http://127.0.0.1:{listener.port}/acct"}
    act.account("store", **keys, sas_token=sas)
    for place, env in (("aux_data/configs/store.yaml", {}), ("$AZURE_STORAGE_SAS_TOKEN", {
            "AZURE_STORAGE_SAS_TOKEN": sas, "ACT_TRUSTED_HOSTS": "127.0.0.1"})):
        result = act.run("config", "check", status=7, env=env)
        assert words in result.out and place in result.out and "aGlkZGVu" not in result.out + result.err, result
        assert words in act.fail("ls", "data", status=7, env=env)
        act.account("store", **keys)
    assert not listener.heard


def test_missing_and_unreadable_files(act):
    (act.project / "aux_data/configs/store.yaml").unlink()
    message = act.fail("ls", "data", status=(3, 7), match="aux_data/configs/store.yaml")
    assert "No such file" in message
    assert "aux_data/configs/store.yaml" in act.run("config", "check", status=7).out
    act.fail("config", "show", status=(3, 7), match="nowhere.yaml", env={"AML_CONFIG_PATH": "nowhere.yaml"})
    act.write("aux_data/aml/aml.yaml", "platform: aml\naml_config: aux_data/aml/config.json\n")
    assert "config.json" in act.run("config", "check", status=7).out
    act.write("aux_data/aml/config.json", "{not json")
    assert "config.json:1" in act.run("config", "check", status=7).out


@pytest.mark.parametrize("account, words", [
    ({}, "account_name"), ({"account_name": "a"}, "container_name"),
    ({"folder": 7, "account_name": ["x"]}, "account_name"),
])
def test_invalid_account_files(act, account, words):
    act.account("store", **account)
    message = act.fail("ls", "data", status=(4, 7))
    assert words in message and "store.yaml" in message
    result = act.run("config", "check", status=7)
    assert words in result.out


def test_bad_params(act):
    act.fail("-p", "{unclosed", "config", "show", status=(2, 7), match="-p")
    act.fail("-p", "num_gpu: many", "config", "show", status=(2, 7), match="num_gpu")
    for image in ("--privileged", "-v/:/host", "x y"):
        act.fail("-p", f"docker: {{image: '{image}'}}", "config", "show", status=2, match="not the name of an image")
    act.fail("-p", "num_gpuu: 1", "config", "show", status=2, match="did you mean 'num_gpu'")


def test_show_leaves_out_what_has_no_value(act):
    short, whole = act.run("config", "show").out.splitlines(), act.run("config", "show", "--all").out.splitlines()
    assert not [line for line in short if " null " in line] and [line for line in whole if " null " in line]
    assert re.fullmatch(r"# \d+ keys have no value, or are of other platforms; --all shows them", short[-1])
    assert "slurm.launcher" in "".join(whole) and "slurm.launcher" not in "".join(short)
    given = act.run("-p", "slurm: {time: 60}", "config", "show").out
    assert "slurm.time" in given and "slurm.launcher" not in given
    assert len(short) + int(short[-1].split()[1]) == len(whole) + 1


def test_one_more_problem(act):
    act.cluster("aml", extra={"num_gpu": "x", "gpu_per_node": "y"})
    assert "1 more problem: 'a config check' names it" in act.fail("u", "data", status=7)


def test_a_platform_that_this_version_cannot_drive(act):
    act.cluster("aml", extra={"platform": "k8s"})
    act.fail("submit", "true", status=7, match="k8s")
    act.run("u", "data", status=3)
    act.write("data/a", "a")
    act.run("u", "data")  # the data verbs need no platform


def test_folder_with_a_space_and_relative_account_folder(act):
    act.account("store", folder="my store")
    act.write("data/a", "a")
    (act.project / "sub").mkdir()
    act.run("u", "../data/a", cwd=act.project / "sub")
    assert (act.project / "my store/files/data/a").read_text() == "a"


def test_examples_of_the_repository_are_valid(act):
    """The files that people copy."""
    import pathlib
    examples = pathlib.Path(__file__).resolve().parents[2] / "aux_data"
    for kind in ("aml", "configs"):
        for path in (examples / kind).glob("*.example.yaml"):
            target = act.write(f"aux_data/{kind}/{path.name.replace('.example', '')}", path.read_text())
            target.chmod(0o600)
    act.account("folder_account", folder=str(act.store))
    for cluster in ("local", "aml", "slurm"):
        result = act.run("-c", cluster, "config", "check")
        assert "warning" not in result.err, result
    assert os.path.exists(examples / "example/train.py")


REFUSED = {"slurm.container": {"docker": {"image": "x"}}, "srun": {"slurm": {"mpi": "pmix"}},
           "--output": {"slurm": {"sbatch_options": ["--output=x"]}}}


def test_check_says_what_submit_would_refuse(act):
    for word, keys in REFUSED.items():
        act.write("aux_data/aml/lab.yaml", json.dumps({"platform": "slurm", **keys}))
        assert word in act.run("-c", "lab", "config", "check", status=7).out
        act.fail("-c", "lab", "submit", "true", status=7, match=word)
    act.write("aux_data/aml/lab.yaml", "platform: itp\n")
    assert "code_path" in act.run("-c", "lab", "config", "check", status=7).out
    act.account("store", account_name="acct", account_key="c2VjcmV0LWtleQ==", container_name="cont")
    act.without("rclone", "blobfuse2")
    assert "'data' cannot be mounted" in act.run("config", "check", status=7).out
    act.fail("submit", "true", status=7, match="'data' cannot be mounted")
    for typo in ("platform: slrum\n", "platfrom: slurm\n"):
        act.write("aux_data/aml/lab.yaml", typo)
        assert "did you mean" in act.run("-c", "lab", "config", "check", status=7).out
    assert act.run("-c", "lab", "config", "check", status=7).out == (
        "aux_data/aml/lab.yaml:1:1: unknown key 'platfrom'; did you mean 'platform'?\n")
    act.fail("-c", "lab", "submit", "true", status=7, match="unknown key 'platfrom'; did you mean 'platform'\\?")
    act.write("aux_data/aml/lab.yaml", "platform: aml\ncompute_taget: gpus\n")
    assert "unknown key 'compute_taget'" in act.run("-c", "lab", "config", "check", status=7).out


@pytest.mark.parametrize("row", [{"path": "data"}, "data", None])
def test_a_folder_without_its_suffix_is_no_folder(act, row):
    """A run would go without it."""
    act.write("aux_data/aml/lab.yaml", json.dumps({"platform": "local", "config_param": {"data": row}}))
    said = "unknown key 'data' in 'config_param': a folder 'data' is 'data_folder', and the code is 'code_path'"
    assert said in act.run("-c", "lab", "config", "check", status=7).out
    act.fail("-c", "lab", "submit", "true", status=7, match=said)


def test_a_code_path_that_is_taken_away(act):
    """Each verb says that there is none."""
    act.write("aux_data/aml/lab.yaml", "platform: local\nconfig_param: {code_path: null}\n")
    act.fail("-c", "lab", "submit", "true", status=7, match="no 'code_path' in 'config_param'")
    act.run("-c", "lab", "prune", "--older", "30d", "--dry-run")


AZURE = {"platform": "aml", "compute_target": "gpu", "docker": {"image": "x"},
         "aml_config": {"subscription_id": "s", "resource_group": "r", "workspace_name": "w"}}
PODS = {"platform": "k8s", "k8s": {"image": "x"}}
MORE_REFUSED = [
    ({"retry": {"times": 2, "on": ["nccl_timeot"]}}, "retry.on: there is no class of failures 'nccl_timeot'"),
    ({"retry": {"on": ["nccl_timeout"]}}, "nothing says how often"),
    ({"hang": "soon"}, "'hang' must be a duration such as 90s"),
    ({"hang": "31d"}, "'hang' must be at most 30d"),
    ({"zip_options": ["-q9"]}, None),
    ({"zip_options": ["-P", "word"]}, "zip_options: '-P' is not supported"),
    ({"zip_options": ["-x"]}, "zip_options: '-x' is not followed by a pattern"),
    ({**AZURE, "retry": 2}, "on the platform 'aml' the service starts the processes"),
    ({**AZURE, "hang": "20m"}, "cannot be watched for hangs"),
    ({**AZURE, "num_gpu": 6}, "cannot use 6 GPUs with 4 on each node"),
    ({**AZURE, "azureml": {"timeout": "soon"}}, "azureml.timeout is 'soon'"),
    ({**AZURE, "azureml": {"shm_size": "much"}}, "azureml.shm_size is 'much'"),
    ({**AZURE, "azureml": {"priority": 2}}, "azureml.priority is for"),
    ({**AZURE, "azureml": {"identity": "me"}}, "azureml.identity is 'me'"),
    ({**AZURE, "docker": {"image": "x", "username": "me"}}, "needs 'docker.password' too"),
    ({**PODS, "k8s": {"image": "x", "pod": {"containers": []}}}, "'k8s.pod' is merged into"),
    ({**PODS, "k8s": {"image": "x", "volumes": [{"mount_path": "data"}]}}, "needs 'mount_path', a path in the pods"),
    ({"platform": "slurm", "slurm": {"warn_seconds": 99999}}, "slurm.warn_seconds is 99999"),
    ({"platform": "slurm", "num_gpu": 6}, "cannot use 6 GPUs with 4 on each node"),
]


@pytest.mark.parametrize("keys, match", MORE_REFUSED)
def test_check_knows_the_values_that_submit_refuses(act, keys, match):
    act.account("store", account_name="acct", account_key="c2VjcmV0LWtleQ==", container_name="cont")
    act.cluster("lab", folders=(), extra=keys)
    checked = act.run("-c", "lab", "config", "check", status=7 if match else 0)
    if match:
        assert len(checked.out.splitlines()) == 1 and match in checked.out, checked
        assert match in act.fail("-c", "lab", "submit", "--dry-run", "true", status=(2, 6, 7))


def test_check_lists_all_wrong_values(act):
    act.account("store", folder=str(act.store))
    act.cluster("aml", extra={"hang": "soon", "zip_options": ["-P"], "retry": {"times": 1, "on": ["nothing"]}})
    said = act.run("config", "check", status=7)
    assert [re.sub(r":\d+:\d+: ", ": ", line)[:44] for line in said.out.splitlines()] == [
        "aux_data/aml/aml.yaml: 'hang' must be a dura", "aux_data/aml/aml.yaml: zip_options: '-P' is ",
        "aux_data/aml/aml.yaml: retry.on: there is no"], said
    act.cluster("aml")
    before = (act.project / "aux_data/aml/aml.yaml").read_text()
    for key, value in (("hang", "soon"), ("zip_options", "['-P']"), ("retry", "{times: 1, on: [nothing]}")):
        act.fail("config", "set", key, value, status=7, match=f"{key}")
    assert (act.project / "aux_data/aml/aml.yaml").read_text() == before


@pytest.mark.parametrize("data, shared", [("shared/data", "shared"), ("one", "one"), ("data", "files/code")])
def test_folders_that_lie_in_one_another(act, data, shared):
    """Nothing is deleted in the outer one as a whole; both are used as before otherwise."""
    act.account("store", folder=str(act.store))
    path = act.cluster("aml")
    config = json.loads(path.read_text())
    rows = config["config_param"]
    rows["data_folder"]["path"] = data
    rows["checkpoints_folder"] = {**rows["data_folder"], "path": shared}
    path.write_text(json.dumps(config))
    other = "data" if data.startswith(shared) else "code_path"
    act.write("train.py", "pass")
    act.run("init")
    act.write("data/sub/d", "d")
    act.run("u", "data")
    act.write("checkpoints/own/c", "c")
    act.run("u", "checkpoints")
    before = sorted(p for p in act.store.rglob("*"))
    for words in (("u", "--delete", "-y"), ("u", "--delete", "--dry-run"), ("rm", "-y")):
        refused = act.run(*words, "checkpoints", status=2)
        assert f"'{other}'" in refused.err and "'checkpoints'" in refused.err, refused
    assert sorted(p for p in act.store.rglob("*")) == before
    act.run("rm", "-y", "checkpoints/own")
    act.run("u", "--delete", "-y", "checkpoints/own")
    said = act.run("config", "check").err
    assert f"'{other}'" in said and "'checkpoints'" in said, said


def test_a_store_in_the_project_is_no_code(act):
    act.account("store", folder="stor")
    act.cluster("aml")
    act.write("train.py", "pass")
    first = act.run("init", "--json").json
    act.write("data/d", "d")
    act.run("u", "data")
    assert (act.project / "stor/files/data/d").is_file()
    assert act.run("init", "--json").json["sha256"] == first["sha256"]


def test_a_code_path_without_zip(act):
    path = act.cluster("aml")
    path.write_text(path.read_text().replace("project.zip", "project"))
    act.write("train.py", "print('ran')")
    act.run("init")
    act.write("train.py", "print('ran again')")
    run = act.run("submit", "python3", "train.py").out.strip()
    act.run("wait", run)
    assert act.run("logs", run).out == "ran again\n"


def test_mistakes_are_named_by_their_kind(act):
    """Those of the command line are exit status 2, those of a file 7."""
    act.cluster("aml")
    for param in ("num_gpus: 2", "num_gpu: x"):
        assert "-p" in act.run("-p", param, "config", "show", status=2).err
    for time, status in (("1 day", 7), ("90", 0), ("12:00:00", 0), ("3-00", 0), ("1:2:3:4", 7), ("UNLIMITED", 0)):
        act.cluster("aml", extra={"slurm": {"time": time}})
        assert ("slurm.time" in act.run("config", "check", status=status).out) == (status != 0), time
    act.cluster("aml")
    (act.project / "models/deep").mkdir(parents=True)
    said = act.run("ls", "data", cwd=act.project / "models/deep", status=3).err
    assert "paths count from the current folder: did you mean '../../data'?" in said
    act.write("train.py", "import os")
    assert "'train.py' is not a job file" in act.run("submit", "-f", "train.py", status=7).err
