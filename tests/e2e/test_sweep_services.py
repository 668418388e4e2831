"""Sweeps on the doubles of Azure Machine Learning and Kubernetes: a job for each point, once whatever happens."""
import json

import pytest

from test_sweep import ONCE, TRAIN, grid, runs_of, values_of

GRID = ("--grid", "lr=0.1,0.2", "--grid", "layers=2,4")
COMMAND = ("--", "python3", "train.py", "{lr}", "{layers}")


class Service:
    """What both have in common."""

    def __init__(self, act, cluster, jobs):
        self.act, self.cluster, self.jobs = act, ("-c", cluster), jobs
        self.before = (*self.cluster, "-n", "1")

    def sweep(self, *words, **options):
        return self.act.run(*self.before, "sweep", *words, **options).out.strip()


@pytest.fixture(params=["azureml", "kubernetes"])
def service(act, request, tmp_path):
    """Its runs see tmp_path."""
    double = request.getfixturevalue(request.param)
    if request.param == "azureml":
        return Service(act, "aml", lambda: [job["name"] for job in double.tell("jobs")])
    volumes = [{"mount_path": str(tmp_path), "hostPath": {"path": str(tmp_path)}}]
    double.cluster(gpu_per_node=1, k8s={"gpu_resource": "none", "launcher": "direct", "volumes": volumes})
    return Service(act, "k8s", lambda: [job["metadata"]["annotations"]["act/run"] for job in double.objects("Job")])


def test_a_sweep_from_its_submission_to_its_comparison(service):
    act = service.act
    act.write("train.py", TRAIN)
    s = service.sweep("--tag", "who=me", *GRID, *COMMAND)
    runs = runs_of(act, s)
    assert [values_of(run, "lr", "layers", "who") for run in runs] == [
        ("0.1", "2", "me"), ("0.1", "4", "me"), ("0.2", "2", "me"), ("0.2", "4", "me")]
    assert sorted(service.jobs()) == sorted(run["id"] for run in runs) and len({run["package"] for run in runs}) == 1
    act.run("wait", "--tag", f"sweep={s}")
    board = act.run("sweep", "--show", "@", "--metric", "loss", "--min", "--json").json["runs"]
    assert [values_of({"tags": run["parameters"]}, "lr", "layers") for run in board] == [
        ("0.1", "2"), ("0.1", "4"), ("0.2", "2"), ("0.2", "4")]
    assert [run["best"] for run in board] == [0.45, 0.65, 0.65, 1.05]
    assert service.sweep("--tag", "who=me", *GRID, *COMMAND) == s and len(service.jobs()) == 4, "all are there"


def test_runs_are_found_again_with_their_tags(service):
    act = service.act
    s = service.sweep("--grid", "n=1,2", "--", "true", "{n}")
    act.run("wait", "--tag", f"sweep={s}")
    (act.home / "ledger.db").unlink()
    found = act.run(*service.cluster, "q", "--json", "--tag", f"sweep={s}").json["runs"]
    assert sorted((run["tags"]["n"], run["name"]) for run in found) == [("1", f"sweep-{s}.1"), ("2", f"sweep-{s}.2")]
    assert service.sweep("--grid", "n=1,2", "--", "true", "{n}") == s and len(service.jobs()) == 2


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_killed_on_the_way(service, jobs):
    """When so many jobs are at the service."""
    act, words = service.act, ("--grid", grid("n", 5), "--", "true", "{n}")
    process = act.start(*service.before, "sweep", *words)
    act.until(lambda: len(service.jobs()) >= jobs, f"{jobs} jobs")
    process.kill()
    process.communicate()
    s = service.sweep(*words)
    runs = runs_of(act, s)
    assert [run["tags"]["n"] for run in runs] == [str(n) for n in range(5)]
    assert sorted(service.jobs()) == sorted(run["id"] for run in runs)
    act.run("wait", "--tag", f"sweep={s}")


def test_at_most_so_many_at_once(service, tmp_path):
    """The command waits for room."""
    act, gates = service.act, tmp_path
    process = act.start(*service.before, "sweep", "--max-parallel", "1", "--grid", grid("n", 3), "--", "sh", "-c",
                        f"until [ -e {gates}/{{n}} ]; do sleep 0.1; done")
    for n in range(3):
        act.until(lambda: len(service.jobs()) == n + 1, f"{n + 1} jobs")
        (gates / str(n)).touch()
    out, _ = process.communicate()
    assert process.returncode == 0
    act.run("wait", "--tag", f"sweep={out.decode().strip()}")


# ---- what goes wrong on the way


def test_the_service_is_down_on_the_way(act, azureml):
    """The points before it stay, and the same command goes on."""
    words = ("-n", "1", "sweep", "--grid", grid("n", 4), "--", "true", "{n}")
    act.finish("true", before=("-n", "1"))
    azureml.faults({"method": "PUT", "match": "/jobs/", "times": 1000, "skip": 2,
                    "answer": {"status": 503, "body": ""}})
    result = act.run(*words, status=5, env={"ACT_MAX_RETRIES": "1"})
    assert "2 of the 4 runs of sweep" in result.err and "the same command goes on" in result.err
    azureml.faults()
    s = act.run(*words).out.strip()
    assert [run["tags"]["n"] for run in runs_of(act, s)] == [str(n) for n in range(4)]
    assert len(azureml.tell("jobs")) == 5
    act.run("wait", "--tag", f"sweep={s}")


def test_an_answer_is_lost(act, azureml):
    """The job was made, and nobody could tell: no point runs twice."""
    words = ("-n", "1", "sweep", "--grid", "n=1,2", "--", "true", "{n}")
    azureml.faults({"method": "PUT", "match": "/jobs/", "cut": "after"},
                   {"match": "/jobs/", "times": 1000, "answer": {"status": 503, "body": ""}})
    act.run(*words, status=5, env={"ACT_MAX_RETRIES": "1"})
    azureml.faults()
    s = act.run(*words).out.strip()
    assert sorted(job["name"] for job in azureml.tell("jobs")) == sorted(run["id"] for run in runs_of(act, s))
    act.run("wait", "--tag", f"sweep={s}")


def test_the_half_of_a_run_is_completed_and_not_waited_for(act, kubernetes):
    """It ended before the pods of its first run had all that they need: only the same command lets them begin."""
    kubernetes.cluster(gpu_per_node=1, k8s={"gpu_resource": "none", "launcher": "direct"})
    words = ("-c", "k8s", "-n", "1", "sweep", "--max-parallel", "1", "--grid", grid("n", 2), "--", "true", "{n}")
    kubernetes.faults({"method": "POST", "match": "services", "status": 503, "times": 50})
    act.run(*words, status=5, env={"ACT_MAX_RETRIES": "0"})
    (job,) = kubernetes.objects("Job")
    assert job["spec"]["suspend"]
    kubernetes.faults()
    s = act.run(*words).out.strip()
    act.run("wait", "--tag", f"sweep={s}")
    assert len(kubernetes.objects("Job")) == 2


def test_the_server_is_away_on_the_way(act, kubernetes):
    kubernetes.cluster(gpu_per_node=1, k8s={"gpu_resource": "none", "launcher": "direct"})
    words = ("-c", "k8s", "-n", "1", "sweep", "--max-parallel", "1", "--grid", grid("n", 3), "--", "true", "{n}")
    process = act.start(*words)
    act.until(lambda: kubernetes.objects("Job"), "the first job")
    kubernetes.away()
    process.kill()
    process.communicate()
    act.run(*words, status=5, env={"ACT_MAX_RETRIES": "0"})
    kubernetes.back()
    s = act.run(*words).out.strip()
    assert [run["tags"]["n"] for run in runs_of(act, s)] == ["0", "1", "2"]
    assert len(kubernetes.objects("Job")) == 3
    act.run("wait", "--tag", f"sweep={s}")


# ---- each run by itself is tried again, or not


def test_azure_machine_learning_does_not_try_again(act, azureml):
    act.fail("-n", "1", "sweep", "--retry", "1", "--grid", "n=1", "--", "true", "{n}", status=2,
             match="submit without retry")
    act.fail("-n", "1", "sweep", "--hang", "5m", "--grid", "n=1", "--", "true", "{n}", status=2, match="hang")
    assert azureml.tell("jobs") == []


def test_pods_try_again(act, kubernetes):
    kubernetes.cluster(gpu_per_node=1, env={"ACT_RETRY_PAUSE": "0"},
                       k8s={"gpu_resource": "none", "launcher": "direct"})
    act.write("point.sh", ONCE)
    s = act.run("-c", "k8s", "-n", "1", "sweep", "--retry", "1", "--grid", "fails=0,1,2", "--", "sh", "point.sh",
                "{fails}").out.strip()
    act.run("wait", "--tag", f"sweep={s}", status=3)
    runs = runs_of(act, s)
    assert [(run["state"], run["attempt"]) for run in runs] == [("Completed", 1), ("Completed", 2), ("Failed", 2)]
    again = json.loads(act.run("resubmit", "--dry-run", runs[0]["id"]).out)
    assert "retry" in json.dumps(again)
