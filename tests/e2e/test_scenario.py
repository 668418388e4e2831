"""Any command, unchanged, on any cluster: scenario.yaml with the same outcome on each platform."""
import pathlib
import re

import pytest
import yaml

STEPS = yaml.safe_load((pathlib.Path(__file__).parent / "scenario.yaml").read_text(encoding="utf-8"))


class Cluster:
    """A cluster file by its name, and how what is stored there is read."""

    def __init__(self, act, name, stored):
        self.act, self.name, self.stored = act, name, stored

    def lines(self, run, rank):
        return self.act.lines(run, rank)

    def failure(self, run):
        """Which rank failed first, and why."""
        info = self.act.info(run)
        return info["failed_rank"], info["reason"]


class AzureCluster(Cluster):
    """Its service tells the exit status of a run; all else stands in the logs, in lines of the agent."""

    def lines(self, run, rank):
        return [line for line in self.act.lines(run, rank) if not line.startswith("act: ")]

    def failure(self, run):
        rank = self.act.run("why", "--json", run).json["failure"]["rank"]
        said = (line for line in self.act.lines(run, rank) if line.startswith("act: "))
        return rank, re.sub(r" on node \S+", "", "\n".join(said))


def on_kubernetes(act, kubernetes):
    """The project's store is a volume of the pods, at the same path."""
    act.store.mkdir()
    kubernetes.cluster("aml", gpu_per_node=2, config_param={
        row: {"azure_blob_config_file": "aux_data/configs/store.yaml", "path": f"files/{path}"}
        for row, path in (("code_path", "code.zip"), ("data_folder", "data"), ("output_folder", "output"))},
        k8s={"gpu_resource": "none", "volumes": [
            {"mount_path": str(act.store), "hostPath": {"path": str(act.store)}}]})


@pytest.fixture(params=["local", "slurm", "ssh", "azureml", "kubernetes"])
def cluster(request, act):
    """This machine, or one behind ssh, as one node of four, or two nodes of two."""
    if request.param == "azureml":
        service, container = request.getfixturevalue("azureml").service, request.getfixturevalue("container")
        return AzureCluster(act, "aml", lambda name: service.get(f"{container}/files/{name}").decode())
    if request.param == "kubernetes":
        on_kubernetes(act, request.getfixturevalue("kubernetes"))
    elif request.param in ("slurm", "ssh"):
        request.getfixturevalue({"slurm": "lab", "ssh": "host"}[request.param])
    else:
        act.env["ACT_LOCAL_SLOTS"] = "4"
    name = "lab" if request.param in ("slurm", "ssh") else "aml"
    return Cluster(act, name, lambda name: (act.store / "files" / name).read_text())


def prepare(act, cluster, step):
    for name, text in step.get("files", {}).items():
        act.write(name, text)
    for folder in step.get("upload", []):
        act.run("-c", cluster.name, "upload", folder)


def abort_when(act, run, text):
    act.until(lambda: text in act.run("logs", run, status=None).out, f"{run} says {text!r}")
    act.run("abort", run)


def expected_logs(step, run):
    """The lines of each rank that the step says something of."""
    logs = step.get("logs", {})
    if isinstance(logs, list):
        logs = {rank: logs for rank in range(step["n"])}
    return {rank: [line.replace("{rank}", str(rank)).replace("{id}", run) for line in lines]
            for rank, lines in logs.items()}


def check(act, cluster, step, run):
    act.run("wait", run, status=step["exit"])
    assert act.state(run) == step["state"]
    if step["state"] == "Failed":
        rank, reason = cluster.failure(run)
        assert rank == step.get("failed_rank", rank)
        assert step.get("reason", "") in (reason or "")
    for rank, lines in expected_logs(step, run).items():
        assert cluster.lines(run, rank) == lines
    for name, text in step.get("stored", {}).items():
        assert cluster.stored(name) == text


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step["name"].replace(" ", "-"))
def test_step(act, cluster, step):
    prepare(act, cluster, step)
    run = act.submit(*step["submit"], before=("-c", cluster.name, "-n", step["n"], *step.get("options", [])))
    if "abort_when" in step:
        abort_when(act, run, step["abort_when"])
    check(act, cluster, step, run)
    if "repeat" in step:
        prepare(act, cluster, {"files": step["repeat"]})
        check(act, cluster, step, act.run("resubmit", run).out.split()[-1])
