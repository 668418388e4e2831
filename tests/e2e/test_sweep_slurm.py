"""Sweeps on a real Slurm: one array, of which each task is a run of its own."""
import pytest

from slurm_fixtures import in_lab, start
from test_sweep import ONCE, grid, runs_of, values_of

ONE = ("-c", "lab", "-n", "1")


def sweep(lab, *words, before=ONE, **options):
    return lab.act.run(*before, "sweep", *words, **options).out.strip()


def array_of(lab, runs):
    """The one array that the runs are, and their tasks."""
    jobs = [lab.record(run["id"], "job.json")["job"].split("_") for run in runs]
    assert len({job for job, _ in jobs}) == 1, jobs
    return jobs[0][0], [int(task) for _, task in jobs]


@pytest.mark.smoke
def test_one_array_of_runs(lab):
    act = lab.act
    act.write("train.sh", 'echo "step 1 loss $1"; echo "$ACT_RUN_ID $RANK of $WORLD_SIZE"; exit $2\n')
    s = sweep(lab, "--grid", "loss=3,1,2", "--grid", "status=0,4", "--", "bash", "train.sh", "{loss}", "{status}",
              before=("-c", "lab", "-n", "2"))
    runs = runs_of(act, s)
    assert [values_of(run, "loss", "status") for run in runs] == [(a, b) for a in "312" for b in "04"]
    job, tasks = array_of(lab, runs)
    assert tasks == list(range(6)) and len(lab.bed.jobs(runs[0]["id"][:-3])) >= 1
    act.run("wait", "--tag", f"sweep={s}", status=4)
    for run in runs_of(act, s):
        status = int(run["tags"]["status"])
        assert (run["state"], run["exit_status"]) == (("Failed", 4) if status else ("Completed", 0)), run
        for rank in range(0 if status else 2):  # of those that fail, the second rank may be ended before it speaks
            assert act.lines(run["id"], rank) == [f"step 1 loss {run['tags']['loss']}", f"{run['id']} {rank} of 2"]
        assert (lab.run_dir(run["id"]) / "system_logs/slurm.txt").exists()
    assert "exited with status 4" in act.run("why", runs[1]["id"]).out
    board = act.run("sweep", "--show", "@", "--metric", "loss", "--min", "--json").json["runs"]
    assert [run["parameters"]["loss"] for run in board] == ["1", "1", "2", "2", "3", "3"]
    (act.home / "ledger.db").unlink()
    act.run("-c", "lab", "q", "--rebuild")
    assert len(runs_of(act, s)) == 6, "they are found again, with their tags"


def test_at_most_so_many_at_once(lab):
    """Slurm sees to it; the command returns at once."""
    gate = lab.act.scratch / "gate"
    s = sweep(lab, "--max-parallel", "2", "--grid", grid("n", 4), "--", "bash", "-c",
              f"echo up {{n}}; until [ -e {gate} ]; do sleep 0.1; done")
    runs = runs_of(lab.act, s)
    for run in runs[:2]:
        lab.until_text(run["id"], "up")
    now = lab.act.until(lambda: [r for r in [runs_of(lab.act, s)] if "JobArrayTaskLimit" in r[3]["reason"]], "why")[0]
    assert [run["state"] for run in now] == ["Running", "Running", "Queued", "Queued"]
    assert "waits for other runs of its array" in lab.act.run("why", runs[3]["id"]).out
    gate.touch()
    lab.act.run("wait", "--tag", f"sweep={s}")


def test_single_tasks(lab):
    """Aborted while it runs and while it waits, looked into, requeued: the others do not notice."""
    act, gate = lab.act, lab.act.scratch / "gate"
    s = sweep(lab, "--max-parallel", "3", "--grid", grid("n", 5), "--", "bash", "-c",
              f"echo up {{n}}; until [ -e {gate} ]; do sleep 0.1; done",
              before=(*ONE, "-p", "preemption_allowed: true"))
    runs = [run["id"] for run in runs_of(act, s)]
    job, _ = array_of(lab, runs_of(act, s))
    for run in runs[:3]:
        lab.until_text(run, "up")
    act.run("abort", runs[4])
    assert lab.wait(runs[4], "Canceled", status=143)["reason"] == "aborted"
    act.run("abort", runs[0])
    lab.wait(runs[0], "Canceled", status=143)
    lab.until_text(runs[3], "up")
    assert "code" in act.run("ssh", runs[1], "--", "sh", "-c", "ls -d ../code").out
    assert [n["name"] for n in act.run("nodes", "--json", runs[1]).json["nodes"]] == ["n1"]
    lab.bed.run("scontrol", "requeue", f"{job}_2")
    act.until(lambda: lab.act.info(runs[2])["state"] == "Queued", "it was requeued")
    assert [act.state(run) for run in (runs[1], runs[3])] == ["Running", "Running"]
    gate.touch()
    for run in (runs[1], runs[3]):
        lab.wait(run, "Completed", status=0)
    lab.bed.run("scontrol", "update", f"jobid={job}_2", "starttime=now")
    assert lab.wait(runs[2], "Completed", status=0)["attempt"] == 2


def test_last_task_alone_is_aborted(lab):
    """Slurm gives it the number of the whole array."""
    s = sweep(lab, "--grid", grid("n", 3), "--", "bash", "-c", "echo up {n}; sleep 300")
    runs = [run["id"] for run in runs_of(lab.act, s)]
    for run in runs:
        lab.until_text(run, "up")
    lab.act.run("abort", runs[2])
    lab.wait(runs[2], "Canceled", status=143)
    assert [lab.act.state(run) for run in runs[:2]] == ["Running", "Running"]
    lab.act.run("abort", "-y", "--tag", f"sweep={s}")
    assert {run["state"] for run in runs_of(lab.act, s)} == {"Canceled"}


@pytest.mark.parametrize("at", ["folders", "claim", "job", "first"])
def test_killed_at_a_place(lab, at):
    """Killed while the folders are made, before and after sbatch, and while the numbers of the tasks are written."""
    act = lab.act
    words = (*ONE, "sweep", "--grid", grid("n", 60), "--", "true", "{n}")
    places = {"folders": "runs/*", "claim": "runs/*/submit.1", "first": "runs/*/job.json"}
    process = act.start(*words)

    def come_so_far():
        return lab.bed.jobs() if at == "job" else list(lab.root.glob(places[at]))

    act.until(come_so_far, at)
    process.kill()
    process.communicate()
    s = act.run(*words).out.strip()
    runs = runs_of(act, s)
    assert [run["tags"]["n"] for run in runs] == [str(n) for n in range(60)]
    job, tasks = array_of(lab, runs)
    assert tasks == list(range(60))
    assert {job} == {line.split("_")[0] for line in lab.bed.run("squeue", "-h", "-t", "all", "-o", "%F",
                                                               "-n", runs[0]["id"][:-3]).split()}
    act.run("abort", "-y", "--tag", f"sweep={s}")


def test_refused_by_slurm(lab):
    """Nothing is left over, and with the cause removed the same command submits all."""
    words = ("--grid", "n=1,2", "--", "true", "{n}")
    lab.act.fail(*ONE, "-p", "slurm: {partition: none}", "sweep", *words, status=7, match="there are main, low")
    assert lab.act.run("q", "--json").json["runs"] == []
    s = sweep(lab, *words)
    lab.act.run("wait", "--tag", f"sweep={s}")
    assert len(runs_of(lab.act, s)) == 2


def test_a_task_is_tried_again_alone(lab):
    lab.act.env["ACT_RETRY_PAUSE"] = "0"
    lab.act.write("point.sh", ONCE)
    s = sweep(lab, "--retry", "1", "--grid", "fails=0,1,2", "--", "sh", "point.sh", "{fails}")
    lab.act.run("wait", "--tag", f"sweep={s}", status=3)
    runs = runs_of(lab.act, s)
    assert [(run["state"], run["attempt"]) for run in runs] == [("Completed", 1), ("Completed", 2), ("Failed", 2)]
    assert array_of(lab, runs)[1] == [0, 1, 2]
    assert "all attempts are used up" in runs[2]["retry"]


def test_a_node_that_failed_meanwhile(lab):
    """It is left out, and the same command is the same sweep all the same."""
    act, words = lab.act, ("--grid", "n=1,2", "--", "bash", "-c", "echo $SLURMD_NODENAME {n}")
    s = sweep(lab, *words)
    act.run("wait", "--tag", f"sweep={s}")
    bad = lab.shell("echo $SLURMD_NODENAME; echo 'CUDA error: uncorrectable ECC error encountered'; exit 3")
    lab.wait(bad, "Failed", status=3)
    node = lab.rank_text(bad).split()[0]
    again = act.run(*ONE, "sweep", *words)
    assert again.out.strip() == s and f"not on {node}, which failed lately" in again.err
    other = sweep(lab, "--name", "other", *words)
    act.run("wait", "--tag", f"sweep={other}")
    assert node not in {lab.rank_text(run["id"]).split()[0] for run in runs_of(act, other)}
    used = act.run(*ONE, "sweep", "--use-bad-nodes", "--dry-run", "--name", "used", *words)
    assert "failed lately" not in used.err


@pytest.fixture(scope="module")
def short_arrays():
    """A site whose arrays have five tasks."""
    yield from start(nodes=1, gpus=16, extra=["MaxArraySize=5"])


@pytest.fixture
def short_lab(act, short_arrays):
    yield from in_lab(act, short_arrays)


def arrays_of(lab, runs):
    """The tasks of each array, in the order of the runs."""
    arrays = {}
    for run in runs:
        job, task = lab.record(run["id"], "job.json")["job"].split("_")
        arrays.setdefault(int(job), []).append(int(task))
    return arrays


def test_more_runs_than_an_array_takes(short_lab):
    act = short_lab.act
    s = sweep(short_lab, "--grid", grid("n", 12), "--", "echo", "point {n}")
    runs = runs_of(act, s)
    assert [run["tags"]["n"] for run in runs] == [str(n) for n in range(12)]
    arrays = arrays_of(short_lab, runs)
    assert list(arrays) == sorted(arrays) and list(arrays.values()) == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1]]
    act.run("wait", "--tag", f"sweep={s}")
    assert [act.lines(run["id"]) for run in runs] == [[f"point {n}"] for n in range(12)]
    assert sweep(short_lab, "--grid", grid("n", 12), "--", "echo", "point {n}") == s and len(runs_of(act, s)) == 12


def test_killed_between_arrays(short_lab):
    """What of the first arrays is there stays, and the others follow."""
    act, words = short_lab.act, (*ONE, "sweep", "--grid", grid("n", 12), "--", "true", "{n}")
    process = act.start(*words)
    act.until(lambda: len(list(short_lab.root.glob("runs/*/job.json"))) >= 6, "the second array is being written down")
    process.kill()
    process.communicate()
    s = act.run(*words).out.strip()
    runs = runs_of(act, s)
    assert [run["tags"]["n"] for run in runs] == [str(n) for n in range(12)]
    assert [len(tasks) for tasks in arrays_of(short_lab, runs).values()] == [5, 5, 2]
    act.run("wait", "--tag", f"sweep={s}")


def test_arrays_wait_for_one_another(short_lab):
    """With --max-parallel no more run at a time than in one array."""
    act, gate = short_lab.act, short_lab.act.scratch / "gate"
    s = sweep(short_lab, "--max-parallel", "5", "--grid", grid("n", 7), "--", "bash", "-c",
              f"echo up {{n}}; until [ -e {gate} ]; do sleep 0.1; done")
    runs = runs_of(act, s)
    for run in runs[:5]:
        short_lab.until_text(run["id"], "up")
    act.until(lambda: "Dependency" in runs_of(act, s)[6]["reason"], "the second array waits for the first")
    assert [run["state"] for run in runs_of(act, s)] == 5 * ["Running"] + 2 * ["Queued"]
    gate.touch()
    act.run("wait", "--tag", f"sweep={s}")


def test_an_array_of_the_users_own(lab):
    """Then each run is such an array, and they are submitted one by one."""
    s = sweep(lab, "--grid", "n=1,2", "--", "true", "{n}", before=(*ONE, "-p", "slurm: {sbatch_options: [--array=0]}"))
    runs = runs_of(lab.act, s)
    assert [lab.record(run["id"], "job.json")["job"].endswith("_[0]") for run in runs] == [True, True]
    lab.act.run("wait", "--tag", f"sweep={s}")
