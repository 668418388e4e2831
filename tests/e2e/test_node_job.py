"""act-node job: one process of a run that a service starts, alone or by the service's own mpirun."""
import base64
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import zipfile

import pytest

from test_submit import AWKWARD
from waiting import Process

PRINT_ARGV = "import json, os, sys\nprint(json.dumps([os.fsencode(a).hex() for a in sys.argv[1:]]))\n"
# One process on the node that it would have, with an output of its own.
RANK = """
node=$((OMPI_COMM_WORLD_RANK / $1))
export AZUREML_CR_NODE_RANK=$node OMPI_COMM_WORLD_LOCAL_RANK=$((OMPI_COMM_WORLD_RANK % $1)) TMPDIR=$2/node$node
export OMPI_COMM_WORLD_LOCAL_SIZE=$1
out=$2/rank$OMPI_COMM_WORLD_RANK
shift 2
exec "$@" >>$out.out 2>>$out.err
"""


class Job:
    """What a service has of one run, and what its processes said."""

    def __init__(self, act, command, number, nodes, procs, files, folders, env, **members):
        self.act, self.nodes, self.procs = act, nodes, procs
        self.id = f"exp_1700000000_{number:08x}"
        self.folder = act.scratch / self.id
        for node in range(nodes):
            (self.folder / f"node{node}").mkdir(parents=True)
        self.package = self.folder / "input.zip"
        with zipfile.ZipFile(self.package, "w") as package:
            for name, content in (files or {}).items():
                info = zipfile.ZipInfo(name)
                info.external_attr = 0o100644 << 16
                package.writestr(info, content)
        self.folders = {name: str(path) for name, (path, _) in folders.items()}
        self.spec = self.folder / "spec.json"
        self.spec.write_text(json.dumps({
            "version": 1, "id": self.id, "experiment": "exp", "cluster": "aml", "platform": "aml", "project_root": "/p",
            "created": 1700000000, "command": [as_json(word) for word in command],
            "package_store": "blob:a/c", "package_key": "code/x.zip",
            "package_sha256": hashlib.sha256(self.package.read_bytes()).hexdigest(),
            "package_bytes": self.package.stat().st_size,
            "folders": [{"name": name, "store": "blob:a/c", "path": name, "mode": mode}
                        for name, (_, mode) in folders.items()],
            "nodes": nodes, "processes_per_node": procs, "gpus_per_node": procs, "env": env,
            "sleep_if_fail": False, "sleep_if_succeed": False, **members}))
        self.env = {**act.env, "TMPDIR": str(self.folder / "node0"), "ACT_ABORT_GRACE": "2",
                    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                    "AZ_BATCH_HOST_LIST": ",".join(f"127.0.0.{1 + n}" for n in range(nodes)),
                    "AZ_BATCH_MASTER_NODE": "127.0.0.1:6105", "AZUREML_CR_NODE_RANK": "0"}

    def words(self):
        words = [str(self.act.programs / "act-node"), "job", "--spec", str(self.spec), "--package", str(self.package)]
        for i, path in enumerate(self.folders.values()):
            words += ["--folder", f"{i}={path}"]
        return words

    def start(self):
        """Alone its output goes to the same files as that of a rank."""
        words, out, err = self.words(), subprocess.DEVNULL, subprocess.DEVNULL
        if self.nodes * self.procs > 1:
            words = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(self.nodes * self.procs), "bash", "-c",
                     RANK, "rank", str(self.procs), str(self.folder), *words]
        else:
            out, err = (open(self.folder / f"rank0.{name}", "ab") for name in ("out", "err"))
        return Process(words, env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.folder)

    def run(self, status=0):
        process = self.start()
        try:
            got = process.wait()
        finally:
            process.kill()
        assert status is None or got == status, (got, [self.err(rank) for rank in range(self.nodes * self.procs)])
        return got

    def out(self, rank=0):
        return (self.folder / f"rank{rank}.out").read_bytes().decode("utf-8", "surrogateescape")

    def err(self, rank=0):
        path = self.folder / f"rank{rank}.err"
        return path.read_text() if path.exists() else ""

    def left(self):
        """What is left in the nodes' private folders."""
        return [p for n in range(self.nodes) for p in (self.folder / f"node{n}").glob(f"act-{os.getuid()}/*")]

    def gone(self):
        self.act.until(lambda: not self.act.processes() and not self.left(),
                       lambda: f"nothing is left: {self.act.processes()}, {self.left()}")


def as_json(word):
    word = os.fsencode(word)
    try:
        return word.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(word).decode()}


@pytest.fixture
def job(act):
    made = []

    def make(*command, nodes=1, procs=1, files=None, folders=None, env=(), **members):
        if nodes * procs > (os.cpu_count() or 1) * 2:
            pytest.skip("this machine has one processor")
        made.append(Job(act, command, len(made), nodes, procs, files, folders or {}, list(env), **members))
        return made[-1]
    return make


# ---- what the command finds


@pytest.mark.smoke
def test_arguments_and_output_alone(job):
    run = job("python3", "argv.py", *AWKWARD, files={"argv.py": PRINT_ARGV})
    run.run()
    assert json.loads(run.out()) == [word.hex() for word in AWKWARD]
    assert run.err() == "", "the agent has nothing to say"
    run.gone()


def test_files_that_the_environment_names(job):
    run = job("sh", "-c", "cat $AZ_BATCHAI_MPI_HOST_FILE; echo $MASTER_ADDR; touch $AZ_BATCHAI_JOB_TEMP/x "
              "$AZ_BATCHAI_STDOUTERR_DIR/y")
    for name in ("AZ_BATCH_HOST_LIST", "AZ_BATCH_MASTER_NODE"):
        del run.env[name]
    run.run()
    assert run.out() == "127.0.0.1 slots=1\n127.0.0.1\n"


def test_several_nodes_without_an_address_are_refused(job):
    run = job("true", nodes=2)
    for name in ("AZ_BATCH_HOST_LIST", "AZ_BATCH_MASTER_NODE"):
        del run.env[name]
    run.run(status=125)
    assert "cannot find the address of the first of 2 nodes" in run.err(0) + run.err(1)
    run.gone()


def test_output_at_full_speed_is_complete(job):
    run = job("python3", "-c", "import sys\nfor _ in range(1000): sys.stdout.write('x' * 99 + chr(10) + 'y' * 9900)")
    run.run()
    assert len(run.out()) == 10_000_000


def test_output_comes_at_once(job, act):
    run = job("sh", "-c", "printf hello; while [ ! -e go ]; do sleep 0.1; done")
    process = run.start()
    act.until(lambda: run.out() == "hello", "the output is there before the end")
    (code,) = run.folder.glob("node0/act-*/*/0-*/code")
    (code / "go").touch()
    assert process.wait() == 0


# ---- metrics


def smi(act, job, script):
    """nvidia-smi is this script."""
    path = act.scratch / "smi/nvidia-smi"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    job.env.update(PATH=f"{path.parent}:{job.env['PATH']}", ACT_METRICS_EVERY="1")


def test_metrics_are_lines_of_local_rank_0(job, act):
    run = job("sh", "-c", "while [ ! -e go ]; do sleep 0.1; done", procs=2)
    smi(act, run, "echo 0, 97, 30000, 40960, 61, 312.55, 0")
    line = re.compile(r"^act: metrics: node \S+, cpu \d+ %, memory [\d.]+/[\d.]+ GiB, disk [\d.]+/[\d.]+ GiB, "
                      r"gpu 0 97 % 29\.3/40\.0 GiB, at \S+Z$", re.M)
    process = run.start()
    act.until(lambda: len(line.findall(run.err(0))) >= 2, "two lines")
    (code,) = run.folder.glob("node0/act-*/*/0-*/code")
    (code / "go").touch()
    assert process.wait() == 0
    rest = line.sub("", run.err(0)).split("\n")
    node = [said for said in rest if said.startswith("act: metrics: ")]
    assert len([said for said in node if said.startswith("act: metrics: system: ")]) == 1, "what the node is, once"
    assert "".join(said for said in rest if said not in node) == run.err(1) == "", "nothing else"
    run.gone()


@pytest.mark.parametrize("script", ["trap '' TERM; while :; do sleep 1000; done", "exit 9"], ids=["hangs", "fails"])
def test_bad_nvidia_smi_holds_no_job_up(job, act, script):
    run = job("echo", "hello")
    smi(act, run, script)
    run.run()
    assert run.out() == "hello\n"
    run.gone()


# ---- preparation


def test_package_that_is_missing(job):
    run = job("true")
    run.package.unlink()
    run.run(status=125)
    assert "preparation failed" in run.err()
    run.gone()


def test_folder_that_the_job_does_not_bring(job, act):
    run = job("true", folders={"data": (act.scratch, "ro_mount"), "output": (act.scratch, "rw_mount")})
    del run.folders["output"]
    run.run(status=125)
    assert run.err() == "act: the job says nothing of folder 'output': '--folder 1=PATH' is missing\n"


@pytest.mark.parametrize("words, status, says", [
    ((), 2, "usage"), (("--spec",), 2, "usage"), (("--what", "x"), 2, "usage"),
    (("--spec", "/nowhere/spec.json"), 125, "nowhere/spec.json"),
])
def test_bad_words(act, words, status, says):
    done = subprocess.run([act.programs / "act-node", "job", *words], env=act.env, capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stdout) == (status, "") and says in done.stderr


def test_another_number_of_processes_is_refused(job):
    run = job("true", nodes=2)
    process = subprocess.run(run.words(), env=run.env, capture_output=True, text=True, check=False)
    assert process.returncode == 125
    assert process.stderr == "act: the run has 2 processes, and 1 were started\n"


def test_folder_of_others_is_not_used(job, act):
    run = job("true")
    taken = run.folder / f"node0/act-{os.getuid()}"
    taken.symlink_to("/tmp")
    run.run(status=0)
    (other,) = (run.folder / "node0").glob(f"{taken.name}.*")
    assert list(other.iterdir()) == [] and other.stat().st_mode & 0o777 == 0o700


def test_copy_of_the_agent_goes(job):
    """The command of a job makes one for each process."""
    run = job("echo", "hello")
    with tempfile.NamedTemporaryFile(prefix="act-node.", dir="/tmp", delete=False) as copy:
        copy.write((run.act.programs / "act-node").read_bytes())
    os.chmod(copy.name, 0o755)
    done = subprocess.run([copy.name, *run.words()[1:]], env=run.env, capture_output=True, text=True, check=True)
    assert done.stdout == "hello\n" and not os.path.exists(copy.name)
    assert (run.act.programs / "act-node").exists()


# ---- how it ends


def test_sigterm_gives_time(job, act):
    run = job("sh", "-c", "trap 'echo saved; exit 9' TERM; echo ready; while :; do sleep 0.1; done")
    process = run.start()
    act.until(lambda: run.out() == "ready\n", "it runs")
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 9
    assert run.out() == "ready\nsaved\n" and run.err() == ""
    run.gone()


def test_sigterm_and_no_answer(job, act):
    run = job("sh", "-c", "trap '' TERM; echo ready; sleep 300 & while :; do sleep 0.1; done")
    process = run.start()
    act.until(lambda: run.out() == "ready\n", "it runs")
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 137
    run.gone()


def test_kill_of_the_process_that_the_service_knows(job, act):
    run = job("sh", "-c", "trap 'echo saved; exit 0' TERM; setsid sleep 300 & echo ready; while :; do sleep 0.1; done")
    process = run.start()
    act.until(lambda: run.out() == "ready\n", "it runs")
    process.kill()
    process.wait()
    run.gone()
    assert run.out() == "ready\nsaved\n"


# ---- several runs on one node


def test_second_start_after_a_kill_begins_anew(job, act):
    """The service starts the same job again on the same node: nothing of what was left is taken for its own."""
    run = job("sh", "-c", "[ -e mark ] && echo old; touch mark; echo ready; while :; do sleep 0.1; done")
    process = run.start()
    act.until(lambda: run.out() == "ready\n", "it runs")
    for pid in act.processes():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()
    act.until(lambda: not act.processes(), "all are dead: until then their locks hold")
    assert len(run.left()) == 1
    process = run.start()
    act.until(lambda: run.out() == "ready\nready\n", "it runs again")
    process.terminate()
    process.wait()
    run.gone()


def test_secrets_are_not_said(job):
    run = job("false", env=[{"name": "MY_TOKEN"}])
    run.env["MY_TOKEN"] = "s3cr3t-value"
    run.run(1)
    assert "s3cr3t-value" not in run.err() + run.out()
    for path in pathlib.Path(run.folder).rglob("*"):
        if path.is_file():
            assert b"s3cr3t-value" not in path.read_bytes()
