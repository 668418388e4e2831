"""`a submit --here`: a run that is a step of the job in which it is submitted."""
import json
import re
import subprocess

import pytest

SAY = "echo $RANK $LOCAL_RANK $(uname -n) $CUDA_VISIBLE_DEVICES $SLURM_JOB_ID $SLURM_NNODES"
TIMEOUT = "Watchdog caught collective operation timeout"  # of NCCL, which is tried again
WAITS = "trap 'echo told; exit 0' TERM; echo up; while :; do sleep 0.1; done"


class Job:
    """A job of the user's own, in whose shell `a` is typed from now on."""

    def __init__(self, lab, *options):
        self.lab = lab
        self.id = self.begin(*options)
        lab.act.env["SLURM_JOB_ID"] = self.id

    def begin(self, *options):
        job = self.lab.bed.run("sbatch", "--parsable", "--output=/dev/null", *options, "--wrap", "sleep 600").strip()
        self.lab.act.until(lambda: self.state(job) == "RUNNING", f"job {job} runs")
        return job

    def state(self, job=None):
        return self.lab.bed.show(job or self.id)["JobState"]

    def processors(self):
        """On one node."""
        shown = self.lab.bed.show(self.id)
        return int(shown["NumCPUs"]) // int(shown["NumNodes"].split("-")[0])

    def is_alone(self):
        """Whether nothing else is queued or runs."""
        return self.lab.bed.jobs(states="pending,running") == [self.id]

    def submit(self, script, n=1, before=()):
        return self.lab.submit("--here", "bash", "-c", script, n=n, before=before)


@pytest.fixture
def job(lab):
    return Job(lab, "--nodes=2", "--ntasks-per-node=1", "--gpus-per-node=2", "--time=2:00:00")


@pytest.mark.parametrize("launcher", ["mpirun", "srun"])
def test_a_run_over_all_nodes_of_the_job(lab, job, launcher):
    lab.configure(slurm={"launcher": launcher})
    run = job.submit(SAY, n=4)
    lab.wait(run, "Completed", status=0)
    said = [lab.rank_text(run, rank).split() for rank in range(4)]
    nodes = sorted({words[2] for words in said})
    assert [words[:2] for words in said] == [["0", "0"], ["1", "1"], ["2", "0"], ["3", "1"]]
    assert len(nodes) == (2 if lab.bed.has_namespaces else 1) and {words[3] for words in said} == {"0,1"}
    assert {words[4] for words in said} == {job.id}
    if launcher == "srun":  # mpirun's own step has the other nodes alone
        assert {words[5] for words in said} == {"2"}
    assert job.is_alone() and job.state() == "RUNNING", "nothing was queued, and the job goes on"
    assert re.fullmatch(rf"{job.id}\.\d+", lab.record(run, "job.json")["job"])


def test_a_part_of_the_job(lab, job):
    """The first nodes of it, and as many of its GPUs as the run asks for."""
    run = job.submit(SAY, n=1)
    lab.wait(run, "Completed", status=0)
    words = lab.rank_text(run).split()
    assert words[0] == "0" and len(words[3].split(",")) == 1 and words[5] == "1"


@pytest.mark.parametrize("launcher", ["mpirun", "srun"])
def test_runs_share_the_job(lab, job, launcher):
    """Each has GPUs of its own; what finds none left waits for the runs that have them."""
    def gpus(run, rank=0):
        lab.until_text(run, "up", rank)
        return lab.rank_text(run, rank).split()[0].split(",")

    lab.configure(slurm={"launcher": launcher})
    script = f"echo $CUDA_VISIBLE_DEVICES; {WAITS}"
    first, second = job.submit(script, n=1), job.submit(script, n=1)
    assert gpus(first) + gpus(second) in (["0", "1"], ["1", "0"])
    third = job.submit(script, n=4)
    why = f"waits for 2 GPUs, held by '{first}' and '{second}'"
    lab.act.until(lambda: lab.act.info(third)["reason"] in (why, f"waits for 2 GPUs, held by '{second}' and '{first}'"),
                  "it says whom it waits for")
    assert lab.act.info(third)["state"] == "Queued"
    lab.act.run("abort", second)
    lab.act.until(lambda: lab.act.info(third)["reason"] == f"waits for 1 of 2 GPUs, held by '{first}'", "of one alone")
    lab.act.run("abort", first)
    assert [gpus(third, rank) for rank in range(4)] == [["0", "1"]] * 4
    lab.act.run("abort", third)
    assert job.state() == "RUNNING"


def test_each_task_of_an_array_is_a_job(lab):
    """One of them has the number of the array."""
    array = lab.bed.run("sbatch", "--parsable", "--output=/dev/null", "--array=0-1", "--nodes=1", "--gpus-per-node=1",
                        "--time=2:00:00", "--wrap", "sleep 600").strip()

    def tasks():
        said = lab.bed.run("squeue", "-h", "-r", "-j", array, "-t", "running", "-o", "%A")
        return said.split() if len(said.split()) == 2 else None
    for task in sorted(lab.act.until(tasks, "both tasks run")):
        lab.act.env["SLURM_JOB_ID"] = task
        run = lab.submit("--here", "bash", "-c", SAY)
        lab.wait(run, "Completed", status=0)
        assert lab.rank_text(run).split()[4] == task
        assert lab.record(run, "job.json")["job"].startswith(f"{task}.")


def test_a_run_that_waits_for_its_part_is_aborted(lab, job):
    first = job.submit(WAITS, n=2)
    second = job.submit("echo ran", n=1)
    lab.act.until(lambda: lab.act.info(second)["reason"] == f"waits for 1 GPU, held by '{first}'", "it waits")
    lab.act.run("abort", second)
    assert "canceled while it waited" in lab.wait(second, "Canceled")["reason"]
    assert lab.act.info(first)["state"] == "Running" and not lab.rank_text(second)
    none = job.submit("echo gpus:$CUDA_VISIBLE_DEVICES:", n=0)
    lab.wait(none, "Completed", status=0)
    assert lab.rank_text(none) == "gpus::\n"
    lab.act.run("abort", first)


def test_processors_of_a_job_without_gpus(lab):
    """As many processes as it has processors, or they wait."""
    job = Job(lab, "--nodes=1", "--ntasks-per-node=2")
    lab.configure(slurm={"gres": "none"}, gpu_per_node=4)
    lab.fail("--here", "true", n=3, status=6,
             match=rf"needs 3 processors on each node, and job {job.id} has {job.processors()} there")
    first = job.submit(WAITS, n=2)
    lab.until_text(first, "up", rank=1)
    second = job.submit("true", n=1)
    lab.act.until(lambda: lab.act.info(second)["reason"] == f"waits for 1 processor, held by '{first}'", "it waits")
    lab.act.run("abort", first)
    lab.wait(second, "Completed", status=0)


@pytest.mark.parametrize("launcher", ["mpirun", "srun"])
def test_abort_ends_the_step_and_not_the_job(lab, job, launcher):
    lab.configure(slurm={"launcher": launcher})
    run = job.submit(WAITS, n=4)
    lab.until_text(run, "up", rank=3)
    info = lab.act.info(run)
    assert info["state"] == "Running" and f"a step of job {job.id}" in info["reason"]
    assert lab.act.run("nodes", run, "--json").json["nodes"]
    lab.act.run("abort", run)
    lab.wait(run, "Canceled")
    assert "told" in lab.rank_text(run, 3), "it had the time to end by itself"
    assert job.state() == "RUNNING"


def test_a_run_whose_step_is_killed_is_lost(lab, job):
    run = job.submit(WAITS)
    lab.until_text(run, "up")
    lab.bed.run("scancel", "--signal=KILL", lab.record(run, "job.json")["job"])
    info = lab.wait(run, "Failed")
    assert "lost: its step" in info["reason"] and job.state() == "RUNNING"


def test_a_run_ends_with_its_job(lab, job):
    run = job.submit(WAITS)
    lab.until_text(run, "up")
    lab.bed.run("scancel", job.id)
    assert lab.wait(run, "Failed")["reason"]


def test_a_run_waits_when_its_job_ends(lab, job):
    first = job.submit(WAITS, n=2)
    lab.until_text(first, "up")
    second = job.submit("true", n=1)
    lab.act.until(lambda: lab.act.info(second)["reason"] == f"waits for 1 GPU, held by '{first}'", "it waits")
    lab.bed.run("scancel", job.id)
    why = f"job {job.id} of Slurm ended while the run waited in it"
    assert lab.wait(second, "Failed")["reason"] == why
    assert why in lab.act.run("why", second, status=None).out


def test_it_is_tried_again_in_its_step(lab, job):
    lab.act.env["ACT_RETRY_PAUSE"] = "0"
    run = lab.submit("--here", "--retry", "1", "bash", "-c",
                     f"[ $ACT_ATTEMPT = 2 ] || {{ echo '{TIMEOUT}'; exit 3; }}")
    assert lab.wait(run, "Completed", status=0)["attempt"] == 2
    assert job.is_alone() and job.state() == "RUNNING"


def test_its_own_time_limit(lab, job):
    lab.configure(slurm={"time": "0:01"})
    run = job.submit(WAITS)
    assert "time limit reached" in lab.wait(run, "Failed")["reason"]
    assert job.state() == "RUNNING"


def test_a_failure_is_explained(lab, job):
    run = job.submit("echo 'RuntimeError: no CUDA GPUs are available'; exit 3")
    info = lab.wait(run, "Failed")
    assert info["exit_status"] == 3
    assert "no CUDA GPUs are available" in lab.act.run("why", run, status=None).out


def test_resubmitted(lab, job):
    old = job.submit(WAITS)
    lab.until_text(old, "up")
    new = lab.act.run("-c", "lab", "resubmit", "--here", old).out.strip()
    lab.wait(old, "Canceled")
    lab.until_text(new, "up")
    lab.act.run("abort", new)
    assert job.is_alone() and job.state() == "RUNNING"


@pytest.mark.parametrize("here", [False, True])
def test_it_begins_when_the_run_it_replaces_has_ended(lab, here):
    """Which is a job of its own or a step, and takes its time when it is told to end."""
    Job(lab, "--nodes=1", "--gpus-per-node=1", "--time=2:00:00")
    ended = lab.root / "ended"
    script = (f"trap 'sleep 1; touch {ended}; exit 0' TERM; [ -e {ended} ] && echo after || echo before; "
              "while :; do sleep 0.1; done")
    old = lab.submit(*(["--here"] if here else []), "bash", "-c", script, n=1)
    lab.until_text(old, "before")
    new = lab.act.run("-y", "resubmit", "--here", old).out.strip()
    lab.act.until(lambda: lab.rank_text(new), "the new run begins")
    assert lab.rank_text(new) == "after\n"
    lab.act.run("abort", new)
    assert lab.act.state(old) == "Canceled"


def test_a_dry_run_starts_nothing(lab, job):
    said = lab.act.run("-c", "lab", "-n", "2", "submit", "--here", "--dry-run", "true")
    assert json.loads(said.out)["nodes"] == 1 and f"a step of job {job.id}" in said.err
    assert not (lab.root / "runs").exists()


def test_what_is_refused(lab, job):
    def fail(*words, match, status, n=1):
        lab.act.fail("-c", "lab", "-n", n, "submit", *words, match=match, status=status)
        assert job.is_alone()

    fail("--here", "true", n=6, status=6, match=rf"6 GPUs are asked for, but 'lab' has 4 \(job {job.id} has 2 nodes\)")
    lab.act.fail("-c", "local", "submit", "--here", "true", status=2, match="--here is for the platform slurm")
    lab.act.env["SLURM_JOB_ID"] = "4000000"
    fail("--here", "true", status=3, match=r"cannot look at job 4000000 \(SLURM_JOB_ID\)")
    del lab.act.env["SLURM_JOB_ID"]
    fail("--here", "true", status=2, match="SLURM_JOB_ID is not set: 'salloc' or 'srun --pty bash' begins one")
    lab.configure(slurm={"login": "me@nowhere"})
    lab.act.env["SLURM_JOB_ID"] = job.id
    fail("--here", "true", status=7, match="slurm.login is 'me@nowhere'")


def test_a_job_that_ends_sooner(lab, job):
    lab.configure(slurm={"time": "1-00:00:00"})
    said = lab.act.run("-c", "lab", "-n", "1", "submit", "--here", "--dry-run", "true")
    assert re.search(rf"job {job.id} ends in .*, and the run with it: slurm.time is 24 h", said.err)


def test_a_job_that_has_ended(lab, job):
    lab.bed.run("scancel", job.id)
    lab.act.until(lambda: job.state() == "CANCELLED", "it has ended")
    lab.act.fail("-c", "lab", "submit", "--here", "true", status=2,
                 match=rf"job {job.id} \(SLURM_JOB_ID\) is CANCELLED")


def test_in_the_shell_of_an_allocation(lab):
    """On a node of the job, where the shell's own step has all processors and GPUs of it."""
    script = lab.act.write("shell.sh", "a -c lab -n 2 submit --here sh -c 'echo $RANK' > run && a wait $(cat run)\n")
    done = subprocess.run(["srun", "--ntasks=1", "--gpus-per-node=2", "bash", script], env=lab.act.env,
                          cwd=lab.act.project, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done
    run = (lab.act.project / "run").read_text().strip()
    assert [lab.rank_text(run, rank) for rank in range(2)] == ["0\n", "1\n"]


def test_a_run_of_local_in_the_same_job(lab):
    """On the first node of the job it takes its part in the same queue."""
    lab.configure(slurm={"gres": "none"})
    job = Job(lab, "--nodes=1", "--ntasks-per-node=2")
    script = lab.act.write("shell.sh", f"a -c local -n 2 submit sh -c '{WAITS.replace(chr(39), chr(34))}' > local\n"
                                       "a -c lab -n 1 submit --here true > here\n")
    subprocess.run(["srun", f"--jobid={job.id}", "--overlap", "--ntasks=1", "bash", script], env=lab.act.env,
                   cwd=lab.act.project, stdin=subprocess.DEVNULL, check=True, timeout=120)
    local, here = ((lab.act.project / name).read_text().strip() for name in ("local", "here"))
    if lab.bed.has_namespaces:  # else all nodes have the name of this machine
        lab.act.until(lambda: lab.act.info(here)["reason"] == f"waits for 1 processor, held by '{local}'", "it waits")
    lab.act.run("abort", here, local)
