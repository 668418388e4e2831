"""Runs on a real Slurm of several nodes: every verb, and what is refused."""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess

import pytest

import slurm_bed
from slurm_fixtures import in_lab, start
from test_many_runs import pair

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "aux_data/example/train.py"


# ---- a run from its submission to its end


@pytest.mark.smoke
def test_run_on_two_nodes(lab):
    run = lab.shell('echo "rank $RANK of $WORLD_SIZE on node $NODE_RANK: $1"', n=4)
    # returns with the job accepted, found again by its name and by its comment
    job = lab.bed.show(lab.bed.job(run))
    assert job["JobName"] == run and job["Comment"] == f"act:{run}"
    assert job["NumNodes"] in ("2", "2-2")
    info = lab.wait(run, "Completed", status=0)
    assert (info["cluster"], info["num_gpu"], info["exit_status"]) == ("lab", 4, 0)
    for rank in range(4):
        assert lab.act.lines(run, rank) == [f"rank {rank} of 4 on node {rank // 2}: "]
    (lab.act.home / "ledger.db").unlink()
    found = lab.act.run("-c", "lab", "q", "--rebuild", "--json", "--max", "0").json["runs"]
    assert [(r["cluster"], r["state"]) for r in found if r["id"] == run] == [("lab", "Completed")]


def test_report_of_two_nodes(lab):
    run = lab.shell('[ $RANK = 0 ] && for step in 1 2 3; do echo "step $step loss $((9 - step))"; done; exit 0', n=4)
    lab.wait(run, "Completed", status=0)
    page = lab.act.run("report", run).out
    nodes = {path.stem for path in (lab.run_dir(run) / "metrics").iterdir()}
    assert all(f"<h3>Node {name}</h3>" in page for name in nodes)
    assert len(nodes) == (2 if lab.bed.has_namespaces else 1)
    assert "<figcaption>loss</figcaption>" in page and "<td>2, with 2 processes each</td>" in page
    assert lab.act.run("plot", "loss", "--csv", run).out.splitlines()[1:] == [f"{run},{n},{9 - n}" for n in (1, 2, 3)]


def test_code_and_data_on_two_nodes(lab):
    lab.act.write("main.py", "import os, sys; print(open('data/in.txt').read() + sys.argv[1]); "
                             "open(f\"output/{os.environ['RANK']}\", 'w').write(os.uname().nodename)")
    lab.act.write("data/in.txt", "from the store")
    lab.act.run("-c", "lab", "upload", "data")
    run = lab.submit("python3", "main.py", "an 'argument'", n=4)
    lab.wait(run, "Completed", status=0)
    for rank in range(4):
        assert lab.act.lines(run, rank) == ["from the storean 'argument'"]
    names = {(lab.act.store / f"files/output/{rank}").read_text() for rank in range(4)}
    assert len(names) == (2 if lab.bed.has_namespaces else 1), "two nodes"


def test_as_an_ordinary_user(act):
    """All of it: the cluster, the program and the run. The nodes have no names of their own then."""
    if os.geteuid() != 0:
        pytest.skip("every other test is one of an ordinary user already")
    act.prefix = slurm_bed.AS_NOBODY
    subprocess.run(["chown", "-R", str(slurm_bed.NOBODY), act.scratch], check=True)
    for bed in start(nodes=2, prefix=act.prefix):
        for lab in in_lab(act, bed):
            run = lab.shell("id -u; (setsid sleep 300 &); [ $RANK = 3 ] && exit 4; sleep 300", n=4)
            info = lab.wait(run, "Failed", status=4)
            assert info["failed_rank"] == 3
            assert lab.rank_text(run, 3) == f"{slurm_bed.NOBODY}\n"
            assert (lab.run_dir(run) / "run.json").stat().st_uid == slurm_bed.NOBODY


def test_started_by_srun(lab):
    lab.configure(slurm={"launcher": "srun", "mpi": "none"})
    said = lab.act.scratch / "said"  # by all before one fails
    run = lab.shell('echo "$RANK of $WORLD_SIZE, $LOCAL_RANK on $NODE_RANK: $1"; '
                    f"echo $RANK >> {said}; until [ $(wc -l < {said}) = 4 ]; do sleep 0.1; done; "
                    "[ $RANK = 3 ] && exit 7; sleep 300", n=4)
    info = lab.wait(run, "Failed", status=7)
    assert info["failed_rank"] == 3
    for rank in range(4):
        assert lab.act.lines(run, rank) == [f"{rank} of 4, {rank % 2} on {rank // 2}: "]


def test_an_mpi_plugin_that_does_not_load(lab):
    """srun refuses to start; no other node helps, so it is not tried there. The doctor says it before."""
    asked = ("srun", "--mpi=pmix", "--test-only", "--ntasks=1", "true")
    if subprocess.run(asked, env=lab.bed.env, stderr=subprocess.DEVNULL).returncode == 0:
        pytest.skip("PMIx is installed here")
    lab.configure(slurm={"launcher": "srun", "mpi": "pmix"})
    said = lab.act.run("-c", "lab", "doctor", status=1).out
    assert "srun cannot load 'pmix'" in said and "--mpi=list" in said, said
    run = lab.submit("--retry", "2", "true", n=4)
    info = lab.wait(run, "Failed")
    assert info["attempt"] == 1, info
    diagnosis = lab.act.run("why", "--json", run).json["diagnosis"]
    assert (diagnosis["id"], diagnosis["retry"]) == ("mpi_plugin", "after_change"), diagnosis
    lab.configure(slurm={"launcher": "srun", "mpi": "none"})
    assert "srun has 'none'" in lab.act.run("-c", "lab", "doctor", status=None).out


def test_starters_by_srun(lab):
    """One on each node, with the processors of its processes."""
    lab.configure(slurm={"launcher": "srun", "mpi": "none", "sbatch_options": ["--cpus-per-task=1"]})
    lab.act.write("torchrun", "#!/bin/sh\necho $SLURM_CPUS_PER_TASK $1 $2 $3; echo $4\n").chmod(0o755)
    lab.act.write("train.py")
    run = lab.submit("./torchrun", "train.py", n=4)
    lab.wait(run, "Completed", status=0)
    said = [lab.act.lines(run, node) for node in (0, 1)]
    assert [lines[0] for lines in said] == [f"2 --nnodes=2 --nproc_per_node=2 --node_rank={node}" for node in (0, 1)]
    assert said[0][1] == said[1][1] and said[0][1].startswith("--master_addr=")


def test_runs_share_a_node(lab):
    """Each has GPUs of its own."""
    gate = lab.act.scratch / "gate"
    script = f"echo $CUDA_VISIBLE_DEVICES; until [ -e {gate} ]; do sleep 0.1; done"
    runs = [lab.shell(script, n=2, before=("-p", "slurm: {nodelist: n1}")) for _ in range(2)]
    for run in runs:
        lab.until_text(run, "\n")
    gate.touch()
    for run in runs:
        lab.wait(run, "Completed", status=0)
    seen = [gpu for run in runs for gpu in lab.act.lines(run)[0].split(",")]
    assert sorted(seen) == ["0", "1", "2", "3"]


def test_logs_while_it_runs(lab):
    gate = lab.act.scratch / "gate"
    run = lab.shell(f"echo first $RANK; until [ -e {gate} ]; do sleep 0.1; done; echo second $RANK", n=4)
    lab.until_text(run, "first 3", rank=3)
    follower = lab.act.start("logs", "-f", "--rank", "3", run)
    try:
        assert follower.stdout.readline() == b"first 3\n", "before its end"
        gate.touch()
        assert follower.stdout.read() == b"second 3\n"
        assert follower.wait(60) == 0
    finally:
        follower.kill()
        follower.communicate()
    lab.wait(run, "Completed", status=0)
    lines = lab.act.run("logs", "--all", run).out.splitlines()
    assert sorted(lines) == sorted(f"[{rank}] {word} {rank}" for rank in range(4) for word in ("first", "second"))


def test_failing_training_is_explained(lab):
    """Nine characters are three examples: the fourth rank has none."""
    shutil.copy(EXAMPLE, lab.act.project / "train.py")
    lab.act.write("data/text.txt", "123456789")
    lab.act.run("-c", "lab", "upload", "data")
    run = lab.submit("python3", "train.py", n=4)
    info = lab.wait(run, "Failed", status=1)
    assert info["failed_rank"] == 3
    assert "rank 3 exited with status 1" in info["reason"]
    why = lab.act.run("why", run).out
    assert "rank 3" in why and "ValueError" in why
    if lab.bed.has_namespaces:
        assert "n2" in why, "the node"


def test_mpi_abort_names_the_rank_that_called(lab):
    """The launcher then ends the others, and their agents."""
    lab.act.write("main.py", "from mpi4py import MPI\nc = MPI.COMM_WORLD\nc.Barrier()\n"
                             "if c.Get_rank() == 2:\n    print('out of ideas', flush=True)\n"
                             "    c.Abort(9)\nc.Barrier()\n")
    run = lab.submit("python3", "main.py", n=4)
    info = lab.wait(run, "Failed", status=9)
    assert info["failed_rank"] == 2, info
    assert "out of ideas" in lab.act.run("why", run).out


def test_resubmit_there_and_back(lab):
    lab.act.env["ACT_LOCAL_SLOTS"] = "4"
    lab.act.write("say.sh", "echo \"$ACT_RUN_ID: $WORLD_SIZE $1\"\n")
    first = lab.act.finish("bash", "say.sh", "a  b", before=("-n", "2"))
    there = lab.act.run("-rt", "lab", "resubmit", first).out.strip()
    lab.wait(there, "Completed", status=0)
    back = lab.act.run("-rt", "aml", "resubmit", there).out.strip()
    lab.wait(back, "Completed", status=0)
    for run in (first, there, back):
        for rank in range(2):
            assert lab.act.lines(run, rank) == [f"{run}: 2 a  b"]
    assert [lab.act.info(run)["cluster"] for run in (first, there, back)] == ["aml", "lab", "aml"]


@pytest.mark.smoke
def test_nodes_summary_blame(lab):
    before = lab.act.run("-c", "lab", "summary", "--json").json["total"]
    assert (before["nodes"]["total"], before["nodes"]["idle"], before["gpus"]["total"]) == (3, 3, 12)
    run = lab.shell("echo up; sleep 300", n=4)
    lab.until_text(run, "up", rank=3)
    nodes = lab.act.run("nodes", "--json", run).json["nodes"]
    assert [(n["name"], n["first_rank"], n["ranks"], n["gpus"]) for n in nodes] == [("n1", 0, 2, 2), ("n2", 2, 2, 2)]
    now = lab.act.run("-c", "lab", "summary", "--json").json
    assert (now["total"]["nodes"]["busy"], now["total"]["gpus"]["busy"], now["total"]["gpus"]["idle"]) == (2, 4, 8)
    assert now["own_runs"] == {"running": 1, "queued": 0}
    assert {p["name"] for p in now["partitions"]} == {"main", "low"}
    assert [p["name"] for p in now["partitions"] if p["default"]] == ["main"]
    job = lab.act.run("-c", "lab", "blame", "--json").json["jobs"][0]
    assert (job["name"], job["nodes"], job["gpus"]) == (run, 2, 4)
    lab.act.run("abort", run)


def test_shell_on_a_node(lab):
    run = lab.shell("echo up; sleep 300", n=4)
    lab.until_text(run, "up", rank=3)
    out = lab.act.run("ssh", run, "n2", "--", "sh", "-c", "hostname; ls -d ../code").out
    assert "code" in out
    assert not lab.bed.has_namespaces or out.startswith("n2")
    lab.act.run("abort", run)


# ---- waiting and ending


def test_queued_says_why_and_is_aborted(lab):
    lab.configure(gpu_per_node=4)
    first = lab.shell("echo up; sleep 300", n=12)
    lab.until_text(first, "up")
    second = lab.shell("echo must not run", n=4)
    info = lab.act.until(lambda: lab.act.info(second)["reason"] and lab.act.info(second), "there is a reason")
    assert info["state"] == "Queued"
    assert "waits" in info["reason"], info
    assert "Running" not in lab.act.run("abort", second).err
    lab.wait(second, "Canceled", status=143)
    assert lab.bed.show(lab.bed.job(second))["JobState"] == "CANCELLED"
    assert lab.act.info(second)["started"] is None, "it never ran"
    assert "elapsed" not in lab.act.run("q", second, status=None).out
    assert lab.act.state(first) == "Running"
    lab.act.run("abort", first)
    lab.wait(first, "Canceled", status=143)


def test_abort_running_is_graceful(lab):
    saved = lab.act.scratch / "saved"
    run = lab.shell(f"trap 'echo $RANK >> {saved}; exit 0' TERM; echo up; sleep 300 & wait", n=4)
    for rank in range(4):
        lab.until_text(run, "up", rank)
    lab.act.run("abort", run)
    lab.wait(run, "Canceled", status=143)
    assert sorted(saved.read_text().split()) == ["0", "1", "2", "3"], "every rank could save"
    lab.act.until(lambda: lab.bed.show(lab.bed.job(run))["JobState"] == "CANCELLED", "Slurm says the same")


def test_all_are_told_before_one_is_waited_for(lab):
    """Two that run end when both have been told to, and one waits; Slurm is asked for all of them together."""
    lab.act.env["ACT_ABORT_GRACE"] = "300"
    scratch = lab.act.scratch
    (scratch / "gate").touch()
    _, scripts = pair(scratch)
    runs = [lab.submit("bash", "-c", script, before=("-n", 1)) for script in scripts]
    for run in runs:
        lab.until_text(run, "up")
    runs.append(lab.submit("true", before=("-p", "slurm: {sbatch_options: [--hold]}")))
    lab.act.run("abort", *runs)
    for run in runs:
        lab.wait(run, "Canceled", status=143)
    assert [info["state"] for info in lab.act.run("q", "--json", *runs).json["runs"]] == ["Canceled"] * 3


def test_cancelled_by_an_administrator(lab):
    run = lab.shell("echo up; sleep 300", n=4)
    lab.until_text(run, "up", rank=3)
    lab.bed.run("scancel", lab.bed.job(run))
    info = lab.wait(run, "Canceled", status=143)
    assert "administrator" in info["reason"]
    queued = lab.submit("true", before=("-p", "slurm: {sbatch_options: [--hold]}"))
    lab.bed.run("scancel", lab.bed.job(queued))
    lab.wait(queued, "Canceled", status=143)


def test_many_at_once(lab):
    def submit(i):
        return lab.shell(f"sleep 0.2; exit {i % 2}" if i < 30 else "sleep 300")

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(submit, range(50)))
    assert len(set(runs)) == 50 and len(lab.bed.jobs()) >= 50
    lab.act.run("abort", *runs[30:], timeout=300)
    for run in runs[:30]:
        lab.act.run("wait", run, status=None)
    states = {info["id"]: info["state"] for info in lab.act.run("q", "--json", "--max", "0").json["runs"]}
    wanted = [("Completed", "Failed")[i % 2] if i < 30 else "Canceled" for i in range(50)]
    assert [states[run] for run in runs] == wanted


# ---- bad input


def test_unknown_partition(lab):
    message = lab.fail("true", before=("-p", "slurm: {partition: nosuch}"), status=None)
    assert "nosuch" in message
    assert lab.bed.jobs() == [] or all(lab.bed.show(j)["Partition"] != "nosuch" for j in lab.bed.jobs())


def test_refused_by_sbatch(lab):
    message = lab.fail("true", before=("-p", "slurm: {sbatch_options: [--nodelist=n99]}"), status=None)
    assert "n99" in message or "node" in message


def test_no_slurm_here(lab):
    bin_dir = lab.act.scratch / "bin"
    bin_dir.mkdir()
    for name in ("bash", "sh", "mpirun", "ssh"):
        if shutil.which(name):
            (bin_dir / name).symlink_to(shutil.which(name))
    message = lab.fail("true", env={"PATH": f"{lab.act.programs}:{bin_dir}"}, status=None)
    assert "slurm" in message.lower() and "login" in message


def test_no_controller(lab):
    env = lab.bed.impatient(("SlurmctldPort=", f"SlurmctldPort={slurm_bed.free_base_port(1)}\n#"))
    message = lab.fail("true", env=env, status=5)
    assert "Unable to contact slurm controller" in message
