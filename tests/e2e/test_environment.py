"""What programs see of the environment in which `a` is typed: docs/reference/environment.md."""
import json

import pytest
import yaml

from test_mount import blobfuse2, fuse, mounts  # noqa: F401 fixtures

SECRETS = {"AZURE_STORAGE_KEY": "c2VjcmV0LWtleQ==", "AZURE_STORAGE_SAS_TOKEN": "sv=x&sig=secret",
           "AZURE_BATCHAI_STORAGE_KEY": "c2VjcmV0LWtleQ==", "AZURE_CLIENT_SECRET": "secret-secret"}
OTHERS = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost", "MINE": "reaches it"}


def noting(path, script="#!/bin/sh\n"):
    """A program that writes its environment beside itself and goes on as script does."""
    path.parent.mkdir(exist_ok=True)
    first, rest = script.split("\n", 1)
    path.write_text(f"{first}\nenv >{path}.env\n{rest}")
    path.chmod(0o755)
    return path


def seen(path):
    return dict(line.split("=", 1) for line in path.with_name(path.name + ".env").read_text().splitlines()
                if "=" in line)


# ---- secrets


@pytest.mark.parametrize("n", [1, 2])
def test_a_command_on_this_machine_sees_no_secrets(act, n):
    act.write("compile.aml.sh", "#!/bin/sh\nenv >compiled\n")
    act.env |= {**SECRETS, **OTHERS}
    run = act.finish("sh", "-c", "env; cat compiled", before=("-n", n))
    lines = act.lines(run)
    assert lines.count("MINE=reaches it") == 2 and lines.count(f"NO_PROXY={OTHERS['NO_PROXY']}") == 2
    assert not [line for line in lines if line.split("=")[0] in SECRETS]


def test_a_secret_that_a_run_is_given(act):
    act.env |= SECRETS
    run = act.finish("sh", "-c", "echo $AZURE_CLIENT_SECRET", before=("-p", "env: {AZURE_CLIENT_SECRET: its-own}"))
    assert act.lines(run) == ["its-own"]


@pytest.mark.parametrize("mode", ["rw_mount", "upload"])
def test_a_key_of_the_environment_opens_folders_of_local_runs(act, mounts, mode):  # noqa: F811
    """By ACT itself: the command does not see it."""
    act.account("store", account_name=mounts.service.account, container_name=mounts.container,
                endpoint=mounts.service.endpoint)
    act.cluster("aml", keys={"mode": mode})
    act.env |= {"AZURE_STORAGE_KEY": mounts.service.key, "ACT_TRUSTED_HOSTS": "127.0.0.1"}
    act.finish("sh", "-c", "echo key: $AZURE_STORAGE_KEY. >output/a.txt")
    assert mounts.get("output/a.txt") == b"key: .\n"


def test_the_azure_cli(act, login, az):
    token = login.token(upn="ann@contoso.com")
    az.gives(token)
    noting(az.folder / "az", (az.folder / "az").read_text())
    act.env |= {**login.authority(), "PATH": f"{az.folder}:{act.env['PATH']}", **SECRETS, **OTHERS}
    del act.env["HTTPS_PROXY"]  # for ACT itself
    act.env["AZURE_TOKEN_CREDENTIALS"] = "AzureCliCredential"
    act.run("login", status=None)
    got = seen(az.folder / "az")
    assert got["MINE"] == OTHERS["MINE"] and got["NO_PROXY"] == OTHERS["NO_PROXY"] and not SECRETS.keys() & got.keys()


def test_a_plugin_of_a_kubeconfig(act, kubernetes_api, tmp_path):
    """It may log in as the service principal that the shell names, but has nothing to do with storage."""
    plugin = noting(tmp_path / "login", "#!/bin/sh\nexit 3\n")
    config = yaml.safe_load(open(kubernetes_api.kubeconfig, encoding="utf-8"))
    config["users"][0]["user"] = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin),
                                           "interactiveMode": "Never", "env": [{"name": "MINE", "value": "its own"}]}}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    act.env |= {**SECRETS, "MINE": "x"}
    kubernetes_api.act = act
    kubernetes_api.cluster(k8s={"kubeconfig": str(path)})
    act.run("-c", "k8s", "qq", status=None)
    got = seen(plugin)
    assert got["MINE"] == "its own" and got["AZURE_CLIENT_SECRET"] == SECRETS["AZURE_CLIENT_SECRET"]
    assert "KUBERNETES_EXEC_INFO" in got and not (SECRETS.keys() - {"AZURE_CLIENT_SECRET"}) & got.keys()


# ---- what mounts


def test_rclone_leaves_out_nothing(act, mounts):  # noqa: F811
    """Options of rclone's own, for other calls of it."""
    mounts.put("data/a.txt", b"from the store")
    act.env |= {"RCLONE_EXCLUDE": "*.txt", "RCLONE_READ_ONLY": "true",
                "RCLONE_CONFIG_ACT_SAS_URL": "http://127.0.0.1:9"}
    run = act.finish("sh", "-c", "cat data/a.txt; echo b >output/b.txt")
    assert act.log(run) == b"from the store" and mounts.get("output/b.txt") == b"b\n"


def test_blobfuse2_mounts_what_it_is_told(act, blobfuse2):  # noqa: F811
    """It takes these before its configuration."""
    blobfuse2.put("data/a.txt", b"from the store")
    act.env |= {"AZURE_STORAGE_SAS_TOKEN": "sv=x&sig=another", "AZURE_STORAGE_ACCOUNT_CONTAINER": "another",
                "AZURE_STORAGE_BLOB_ENDPOINT": "http://127.0.0.1:9/another"}
    run = act.finish("cat", "data/a.txt")
    assert act.log(run) == b"from the store"


# ---- inside another job or run


def test_a_run_in_a_run(act):
    """Under mpirun, whose processes `a` would be one of: it has ranks of its own."""
    act.env["ACT_LOCAL_SLOTS"] = "4"
    inner = "a -c local -n 2 local sh -c 'echo $RANK of $WORLD_SIZE: $OMPI_COMM_WORLD_SIZE $ACT_LINK.'"
    run = act.finish("sh", "-c", f"[ $RANK = 1 ] || {inner}", before=("-n", "2"), status=0)
    assert "0 of 2: 2 ." in act.lines(run)


@pytest.mark.parametrize("variables", [
    {"PBS_ENVIRONMENT": "PBS_BATCH", "PBS_JOBID": "1.pbs", "PBS_NODEFILE": "/nonexistent"},
    {"LSB_JOBID": "1", "LSB_HOSTS": "other other", "LSB_DJOB_HOSTFILE": "/nonexistent"},
    {"SGE_ROOT": "/sge", "ARC": "lx", "PE_HOSTFILE": "/nonexistent", "JOB_ID": "1"},
    {"FLUX_URI": "local:///nonexistent", "FLUX_JOB_ID": "f1"},
    {"PMIX_RANK": "0", "PMIX_NAMESPACE": "outer", "PMIX_SERVER_URI4": "1.0;tcp4://127.0.0.1:9"},
    {"SLURM_JOBID": "1", "SLURM_JOB_ID": "1", "SLURM_NODELIST": "elsewhere", "SLURM_TASKS_PER_NODE": "1",
     "SLURM_NNODES": "1", "SLURM_JOB_CPUS_PER_NODE": "1"},
    {"TORCHELASTIC_RUN_ID": "outer", "TORCHELASTIC_USE_AGENT_STORE": "True", "GROUP_RANK": "3"},
], ids=lambda variables: next(iter(variables)))
def test_a_local_run_in_a_job_of_another_system(act, variables):
    """As far as that shows in its variables."""
    act.env |= variables
    run = act.finish("env", before=("-n", "2"))
    lines = act.lines(run, 1)
    assert "OMPI_COMM_WORLD_RANK=1" in lines
    assert {name for name, value in variables.items() if f"{name}={value}" in lines} <= {"SGE_ROOT", "ARC", "JOB_ID"}
