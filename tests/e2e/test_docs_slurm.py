"""The tutorial for Slurm, typed on a cluster, and what the reference shows of a cluster file for its nodes."""
import subprocess

import pytest

import documents
from slurm_fixtures import start


@pytest.fixture
def cluster():
    """Its nodes, in a partition named as in the tutorial."""
    yield from start(nodes=2, extra=["PartitionName=gpu Nodes=ALL State=UP"])


def test_tutorial(act, cluster):
    del act.env["ACT_TRUSTED_PROJECTS"]
    act.env["SLURM_CONF"] = str(cluster.conf)
    assert documents.Reader("docs/tutorials/slurm.md", act.env, act.scratch / "home").read() > 10


SAY = ("import os, resource, sys; limits = resource.getrlimit(resource.RLIMIT_NOFILE); "
       "print(*(os.environ[name] for name in ('LOADEDMODULES', 'CONDA_DEFAULT_ENV', 'VIRTUAL_ENV', 'CACHE')), "
       "sys.prefix, limits[0] == limits[1], 'NCCL_SOCKET_IFNAME' in os.environ)")


def test_what_the_command_finds(act, cluster):
    """The example of docs/reference/runs.md: real modules, a real virtual environment, a folder as conda makes it."""
    act.env["SLURM_CONF"] = str(cluster.conf)
    (example,) = [text for language, text in documents.blocks("docs/reference/runs.md")
                  if language == "yaml" and text.startswith("modules:")]
    home = act.scratch / "home"
    for name in ("cuda/12.1", "openmpi/4.1"):
        module = act.scratch / "modules" / name
        module.parent.mkdir(parents=True)
        module.write_text("#%Module1.0\n")
    conda = home / "miniforge3/envs/torch"
    (conda / "conda-meta").mkdir(parents=True)
    (conda / "bin").mkdir()
    (conda / "bin/python").symlink_to("/usr/bin/python3")
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", home / "envs/train"], check=True)
    act.env["MODULEPATH"] = str(act.scratch / "modules")
    act.write("aux_data/aml/lab.yaml",
              f"platform: slurm\ngpu_per_node: 4\nslurm: {{root: {act.scratch}/shared}}\n{example}")
    tried = [check for check in act.run("-c", "lab", "doctor", "--json", status=None).json["checks"]
             if check["what"] == "setup"]
    assert [(check["ok"], "modules cuda/12.1 openmpi/4.1" in check["text"]) for check in tried] == [(True, True)], tried
    run = act.submit("python", "-c", SAY, before=("-c", "lab", "-n", 2))
    act.run("wait", run)
    venv = home / "envs/train"
    for rank in range(2):
        assert act.lines(run, rank) == [f"cuda/12.1:openmpi/4.1 torch {venv} /tmp/cache.{rank} {venv} True True"]
    other = act.submit("printenv", "LOADEDMODULES", before=("-c", "lab", "-p", "modules: [openmpi]"))
    act.run("wait", other)
    again = act.run("resubmit", other).out.split()[-1]
    act.run("wait", again)
    assert act.lines(other) == act.lines(again) == ["openmpi/4.1"]
