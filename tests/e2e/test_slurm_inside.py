"""Typed inside a job of the user's own, or with variables that are meant for other programs: what they say of that job
is not said of the runs."""
import json
import pathlib
import re
import subprocess

import pytest

TIMEOUT = "Watchdog caught collective operation timeout"  # of NCCL, which is tried again
FAILS_ONCE = f"[ $ACT_ATTEMPT = 2 ] || {{ echo '{TIMEOUT}'; exit 3; }}"
STARTS = {  # how people come into a job
    "sbatch": ["sbatch", "--wait", "--output={out}", "{script}"],
    "salloc": ["salloc", "--quiet", "bash", "{script}"],
    "srun": ["script", "-qec", "srun --pty {options} {script}", "/dev/null"],
}


SMALL = {"sbatch": ["--nodes=2", "--ntasks=2"], "salloc": ["--nodes=2", "--ntasks=2"], "srun": ["--ntasks=1"]}


class Outer:
    """A job of the user's own, in which a script runs."""

    def __init__(self, lab):
        self.lab = lab
        self.env = {**lab.act.env, "TERM": "dumb", "ACT_LOCAL_SLOTS": "4"}

    def run(self, start, script, *options):
        """What the script prints, with blanks between the lines' ends for a terminal."""
        path = self.lab.act.write("outer.sh", f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)
        out = self.lab.act.scratch / "outer.txt"
        words = [word.format(out=out, script=path, options=" ".join(options)) for word in STARTS[start]]
        if start != "srun":
            words[1:1] = options
        done = subprocess.run(words, env=self.env, cwd=self.lab.act.project, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        text = out.read_text() if start == "sbatch" else done.stdout
        assert done.returncode == 0, (done, text)
        return text

    def submits(self, start, words, *options):
        """The run that `a` submitted in there."""
        self.run(start, f"a -c lab {words} > {self.lab.act.scratch}/run", *options)
        return (self.lab.act.scratch / "run").read_text().strip()


@pytest.fixture
def outer(lab):
    return Outer(lab)


def test_the_task_of_an_array_is_not_queued_again(lab, outer):
    """SLURM_ARRAY_JOB_ID and SLURM_ARRAY_TASK_ID, of the job in which it is typed."""
    lab.act.env["ACT_RETRY_PAUSE"] = outer.env["ACT_RETRY_PAUSE"] = "0"
    words = f'-n 1 submit --retry 1 bash -c "{FAILS_ONCE}"'.replace("$", "\\$")
    run = lab.act.scratch / "run"
    outer.run("sbatch", f"a -c lab {words} > {run} && a wait $(cat {run})", "--array=7")
    info = lab.wait(run.read_text().strip(), "Completed", status=0)
    assert info["attempt"] == 2, "it was tried again itself"
    job, = [j for j in lab.bed.jobs() if lab.bed.show(j)["JobName"] == "outer.sh"]
    assert lab.bed.show(job)["Restarts"] == "0" and lab.bed.show(job)["JobState"] == "COMPLETED"


@pytest.mark.parametrize("start", ["sbatch", "salloc"])
def test_from_a_job_with_memory_for_each_node(lab, outer, start):
    """SLURM_MEM_PER_NODE, which srun does not take beside the SLURM_MEM_PER_CPU of the job."""
    run = outer.submits(start, "-n 4 submit true", "--mem=200")
    assert lab.wait(run, "Completed", status=0)["exit_status"] == 0


def test_from_a_job_that_was_queued_again(lab, outer):
    """SLURM_RESTART_COUNT: the run's own attempt is its first."""
    outer.env["SLURM_RESTART_COUNT"] = "3"
    run = outer.submits("salloc", "-n 1 submit true")
    assert lab.wait(run, "Completed", status=0)["attempt"] == 1


@pytest.mark.parametrize("launcher", ["mpirun", "srun"])
def test_from_a_run(lab, launcher):
    """One of four processes, which mpirun or srun has started, submits another run of four."""
    lab.configure(slurm={"launcher": launcher})
    inner = lab.act.scratch / "inner"
    words = "a -c lab -n 4 submit sh -c 'echo $RANK of $WORLD_SIZE in $SLURM_JOB_ID as $ACT_RUN_ID'"
    run = lab.shell(f"cd {lab.act.project} && if [ $RANK = 3 ]; then {words} >{inner}; fi", n=4)
    lab.wait(run, "Completed", status=0)
    second = inner.read_text().strip()
    lab.wait(second, "Completed", status=0)
    job = lab.bed.job(second)
    for rank in range(4):
        assert lab.act.lines(second, rank) == [f"{rank} of 4 in {job} as {second}"]


def test_a_shell_in_a_run(lab, outer):
    """srun would have the step be as large as the job in which it is typed."""
    run = lab.shell("sleep 300")
    lab.act.until_state(run, "Running")
    said = outer.run("salloc", f"a ssh {run} -- sh -c 'echo in $SLURM_JOB_ID'", "--mem=400", "--ntasks=2")
    assert f"in {lab.bed.job(run)}\n" in said
    lab.act.run("abort", run)


def test_what_sbatch_may_be_told(lab):
    """By variables of the submitter: whom it counts for and where it runs, but nothing that ACT itself says."""
    gate = lab.act.scratch / "gate"
    lab.act.env |= {"SBATCH_PARTITION": "low", "SBATCH_TIMELIMIT": "7", "SBATCH_MEM_PER_NODE": "300",
                    "SBATCH_GRES": "gpu:1", "SBATCH_WAIT": "1", "SBATCH_ARRAY_INX": "0-1",
                    "SBATCH_OUTPUT": "/dev/null", "SBATCH_ERROR": "/dev/null"}
    run = lab.shell(f"until [ -e {gate} ]; do sleep 0.1; done; echo $CUDA_VISIBLE_DEVICES", n=2)
    job = lab.bed.show(lab.bed.job(run))
    assert (job["Partition"], job["TimeLimit"], job["MinMemoryNode"]) == ("low", "00:07:00", "300M")
    assert "ArrayJobId" not in job and job["StdErr"].endswith("/slurm.txt")
    gate.touch()
    lab.wait(run, "Completed", status=0)
    assert lab.act.lines(run) == ["0,1"]
    checks = lab.act.run("-c", "lab", "doctor", "--json", status=None).json["checks"]
    check, = [check for check in checks if check["what"] == "sbatch"]
    told = check["text"]
    assert check["ok"] and "SBATCH_WAIT" in told and "SBATCH_GRES" in told
    assert "SBATCH_PARTITION" not in told and "slurm.sbatch_options" in told


@pytest.mark.parametrize("start", [None, "salloc"])
def test_what_srun_may_be_told(lab, outer, start):
    """By a module of the site, or a profile; in a job nobody knows whether it is of that job."""
    told = {"SLURM_MPI_TYPE": "none", "SLURM_CPU_BIND": "none", "SLURM_TASK_PROLOG": "/nonexistent",
            "SLURM_TMPDIR": "/scratch"}
    lab.act.env |= told
    outer.env |= told
    words = "printf '%s,%s,%s,%s\n' $SLURM_MPI_TYPE. $SLURM_CPU_BIND. $SLURM_TASK_PROLOG. $SLURM_TMPDIR."
    run = outer.submits(start, f'-n 1 submit sh -c "{words}"'.replace("$", "\\$")) if start else lab.shell(words)
    lab.wait(run, "Completed", status=0)
    assert lab.act.lines(run) == [".,.,.,." if start else ",".join(f"{value}." for value in told.values())]


def test_a_site_that_hands_nothing_on(lab):
    lab.act.env |= {"SBATCH_EXPORT": "NONE", "MINE": "stays here"}
    run = lab.shell("echo $RANK.$MINE", n=4)
    lab.wait(run, "Completed", status=0)
    assert [lab.act.lines(run, rank) for rank in range(4)] == [[f"{rank}."] for rank in range(4)]


def test_a_run_is_canceled_whatever_scancel_is_told(lab):
    """By variables that would have it ask, or leave out what runs."""
    run = lab.shell("sleep 300")
    lab.until_text(run, "")
    lab.act.env |= {"SCANCEL_INTERACTIVE": "1", "SCANCEL_STATE": "PENDING", "SCANCEL_NAME": "another"}
    lab.act.until_state(run, "Running")
    lab.act.run("abort", run)
    lab.wait(run, "Canceled", status=None)


def test_the_time_zone_is_the_submitter_s(lab):
    """Slurm's tools are asked for UTC; what is told to sbatch, and the run itself, is not."""
    lab.act.env["TZ"] = "TST-9"
    run = lab.submit("date", "+%Z", before=("-p", "slurm: {sbatch_options: [--begin=00:00:00]}"))
    lab.bed.run("scontrol", "update", f"JobId={lab.bed.job(run)}", "StartTime=now")
    lab.wait(run, "Completed", status=0)
    assert lab.act.lines(run) == ["TST"]


def test_secrets_of_the_submitter_stay_here(lab):
    secrets = {"AZURE_STORAGE_KEY": "c2VjcmV0LWtleQ==", "AZURE_STORAGE_SAS_TOKEN": "sig=secret",
               "AZURE_BATCHAI_STORAGE_KEY": "c2VjcmV0LWtleQ==",
               "AZURE_CLIENT_SECRET": "secret-secret", "IDENTITY_HEADER": "secret-header", "MSI_SECRET": "secret-msi"}
    lab.act.env |= {**secrets, "MINE": "reaches it"}
    run = lab.submit("env")
    lab.wait(run, "Completed", status=0)
    said = lab.act.lines(run)
    assert "MINE=reaches it" in said
    assert not [line for line in said if line.split("=")[0] in secrets]


# ---- runs on this machine


@pytest.mark.parametrize("start", STARTS)
def test_a_local_run_in_an_allocation_stays_on_this_node(lab, outer, start):
    """Open MPI would take what Slurm gave the job: as many slots as that has tasks, on its other nodes too."""
    said = lab.act.scratch / "said"
    lab.act.write("say.sh", f"env > {said}.$RANK; uname -n > {said}.node.$RANK")
    outer.run(start, f"a -n 3 local sh say.sh && uname -n > {said}.here", *SMALL[start])
    here = (lab.act.scratch / "said.here").read_text()
    for rank in range(3):
        assert (lab.act.scratch / f"said.node.{rank}").read_text() == here
        names = {line.split("=")[0] for line in (lab.act.scratch / f"said.{rank}").read_text().splitlines()}
        assert not {"SLURM_JOB_ID", "SLURM_NODELIST", "SLURM_PROCID", "SLURMD_NODENAME"} & names
        assert {"SLURM_CONF", "RANK", "OMPI_COMM_WORLD_RANK"} <= names


def test_a_local_run_that_is_submitted_in_an_allocation(lab, outer):
    run = lab.act.scratch / "run"
    outer.run("sbatch", f"a -c local -n 3 submit sh -c 'echo $SLURM_JOB_ID.$RANK' > {run} && a wait $(cat {run})",
              *SMALL["sbatch"])
    assert [lab.act.lines(run.read_text().strip(), rank) for rank in range(3)] == [[f".{rank}"] for rank in range(3)]


def test_the_doctor_says_in_which_job_it_is(lab, outer):
    said = lab.act.scratch / "said"
    outer.run("sbatch", f"a -c local doctor --json > {said}; true", "--time=3:00:00", *SMALL["sbatch"])
    check, = [check for check in json.loads(said.read_text())["checks"] if check["what"] == "job of Slurm"]
    assert re.fullmatch(r"in job \d+ on \S+: \d+ processors?.*, (2|3) h left", check["text"]), check


# ---- GPUs that are bound to tasks


@pytest.mark.parametrize("launcher", ["srun", "mpirun"])
@pytest.mark.parametrize("option", ["--gpu-bind=single:1", "--gpu-bind=map_gpu:1,0", "--gpus-per-task=1"])
def test_ranks_see_all_gpus_of_the_run(lab, option, launcher):
    """However a site binds them: the GPU of LOCAL_RANK is there."""
    lab.configure(slurm={"launcher": launcher, "sbatch_options": [option]})
    run = lab.shell("echo $LOCAL_RANK of $CUDA_VISIBLE_DEVICES", n=4)
    lab.wait(run, "Completed", status=0)
    assert [lab.act.lines(run, rank) for rank in range(4)] == [[f"{rank % 2} of 0,1"] for rank in range(4)]


# ---- programs that speak MPI

MPI = """
import ctypes, os, sys
mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
mpi.MPI_Init(None, None)
world = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, "ompi_mpi_comm_world")))
rank, size = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
mpi.MPI_Barrier(world)
open(f"{sys.argv[1]}.{os.environ['RANK']}", "w").write(f"{rank.value} of {size.value}")
mpi.MPI_Finalize()
"""
KINDS = ["none", "pmi2", "pmix"]


@pytest.fixture
def mpi(lab):
    """mpi(n): what so many ranks of the program wrote."""
    lab.act.write("mpi.py", MPI)
    said = lab.act.scratch / "said"

    def ranks(n):
        return [pathlib.Path(f"{said}.{rank}").read_text() for rank in range(n)]
    ranks.words = f"python3 mpi.py {said}"
    return ranks


def need_srun(lab, kind):
    """Debian's plugin for PMIx wants the library's name without a version, which libpmix-dev has."""
    tried = subprocess.run(["srun", f"--mpi={kind}", "--test-only", "--ntasks=1", "true"], env=lab.act.env,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if "Invalid MPI type" in tried.stderr:
        pytest.skip(f"srun cannot load '{kind}' (Debian: libpmix-dev)")


@pytest.mark.parametrize("kind", KINDS)
def test_mpi_of_a_local_run_in_a_step(lab, outer, mpi, kind):
    """The step that srun starts is a process of MPI itself, with PMIx, PMI or neither; the run is another program."""
    need_srun(lab, kind)
    outer.run("srun", f"a -n 3 local {mpi.words}", "--ntasks=1", f"--mpi={kind}")
    assert mpi(3) == [f"{rank} of 3" for rank in range(3)]


@pytest.mark.parametrize("launcher, kind", [("mpirun", "none"), ("mpirun", "pmix"), ("srun", "pmix")])
def test_mpi_over_the_nodes_of_a_job(lab, outer, mpi, launcher, kind):
    """Typed in a step of a job: over both nodes of it, by mpirun, or by srun with PMIx."""
    need_srun(lab, kind)
    lab.configure(slurm={"launcher": launcher, **({"mpi": kind} if launcher == "srun" else {})})
    run = lab.act.scratch / "run"
    outer.run("sbatch", f"srun --ntasks=1 --nodes=1 --overlap --mpi={kind} sh -c "
                        f"'a -c lab -n 4 submit --here {mpi.words} > {run}' && a wait $(cat {run})",
              "--nodes=2", "--ntasks-per-node=1", "--gpus-per-node=2")
    lab.wait(run.read_text().strip(), "Completed", status=0)
    assert mpi(4) == [f"{rank} of 4" for rank in range(4)]


@pytest.mark.parametrize("launcher, kind", [("mpirun", None), ("srun", "pmix")])
def test_mpi_of_a_job_of_its_own(lab, mpi, launcher, kind):
    need_srun(lab, kind or "none")
    lab.configure(slurm={"launcher": launcher, **({"mpi": kind} if kind else {})})
    lab.wait(lab.submit(*mpi.words.split(), n=4), "Completed", status=0)
    assert mpi(4) == [f"{rank} of 4" for rank in range(4)]
