"""Fixtures: a Slurm cluster, and the program in a project with a cluster file for it."""
import json
import time

import pytest

import slurm_bed
import sshd


@pytest.fixture(scope="session")
def slurm():
    """Three nodes of four GPUs each."""
    yield from start(nodes=3)


def start(**options):
    """For fixtures: the cluster with these options, or a skipped test."""
    why = slurm_bed.missing()
    if why:
        pytest.skip(why)
    with slurm_bed.running(**options) as bed:
        yield bed


class Lab:
    """The cluster file "lab": GPUs of the nodes are used in pairs, so that a run of four has two nodes."""

    def __init__(self, act, bed):
        self.act, self.bed = act, bed
        self.root = act.scratch / "shared"
        act.env["SLURM_CONF"] = str(bed.conf)
        self.configure()

    def configure(self, name="lab", slurm=None, **extra):
        """Writes the cluster file; slurm is merged into its map of that name."""
        config = {"platform": "slurm", "gpu_per_node": 2, "slurm": {"root": str(self.root), **(slurm or {})}, **extra}
        return self.act.cluster(name, extra=config)

    def submit(self, *words, n=1, before=(), **options):
        return self.act.submit(*words, before=("-c", "lab", "-n", n, *before), **options)

    def shell(self, script, **options):
        return self.submit("bash", "-c", script, **options)

    def fail(self, *words, n=1, before=(), **options):
        return self.act.fail("-c", "lab", "-n", n, *before, "submit", *words, **options)

    def run_dir(self, run):
        return self.root / "runs" / run

    def record(self, run, name):
        return json.loads((self.run_dir(run) / name).read_text())

    def text(self, run, name):
        return (self.run_dir(run) / name).read_text()

    def rank_text(self, run, rank=0):
        """What a rank has written so far."""
        path = self.run_dir(run) / f"user_logs/std_log_process_{rank}.txt"
        return path.read_text() if path.exists() else ""

    def until_text(self, run, text, rank=0):
        self.act.until(lambda: text in self.rank_text(run, rank), f"rank {rank} of {run} says {text!r}")

    def wait(self, run, state, status=None):
        """Waits for the end of a run and expects a state and an exit status; returns what `a q --json` says of it."""
        result = self.act.run("wait", run, status=status)
        info = self.act.info(run)
        assert info["state"] == state, (info, result)
        return info

    def until_over(self, run):
        """Waits until its job has ended: the agent writes nothing any more."""
        self.act.until(lambda: self.bed.show(self.bed.job(run))["JobState"] == "COMPLETED", f"the job of {run} is over")

    def clean_up(self):
        """Ends every job. Returns the processes of runs that are left then."""
        self.bed.cancel_all()
        for _ in range(100):  # the last agent may still be on its way out
            left = self.bed.step_processes(str(self.root))
            if not left:
                break
            time.sleep(0.1)
        return left


@pytest.fixture
def lab(act, slurm):
    yield from in_lab(act, slurm)


def in_lab(act, bed):
    """For fixtures: the project on that cluster; fails when processes of its runs are left."""
    lab = Lab(act, bed)
    yield lab
    left = lab.clean_up()
    assert not left, f"processes were left running: {left}"


def configure_below_root(act, lab, **slurm):
    """Without an account file: code and folders are below slurm.root."""
    act.write("aux_data/aml/lab.yaml", json.dumps(
        {"platform": "slurm", "gpu_per_node": 2, "slurm": {"root": str(lab.root), **slurm}}))


@pytest.fixture
def behind_ssh(act, lab):
    """The same cluster by way of a login node, whose home is another one."""
    if sshd.missing():
        pytest.skip(sshd.missing())
    server = sshd.Sshd(act.scratch / "ssh")
    server.shell(f"export SLURM_CONF={lab.bed.conf}")
    act.env |= server.env
    del act.env["SLURM_CONF"]
    configure_below_root(act, lab, login=sshd.LOGIN)
    lab.server = server
    yield lab
    act.env["SLURM_CONF"] = str(lab.bed.conf)
    server.stop()
