"""Runs that could never start on a Slurm cluster, which accepts them: they are refused before anything is sent, or
warned of where they only wait for somebody."""
import shutil

import pytest

from slurm_fixtures import in_lab, start

PARTITIONS = ("AccountingStorageEnforce=associations,limits,qos",
              "PartitionName=short Nodes=n1,n2 MaxTime=10 MaxNodes=1",
              "PartitionName=closed Nodes=n3 State=DOWN")


@pytest.fixture(scope="module")
def limited():
    yield from start(nodes=3, accounting=True, extra=PARTITIONS)


@pytest.fixture
def lab(act, limited):
    yield from in_lab(act, limited)
    for node in ("n1", "n2", "n3"):
        limited.run("scontrol", "update", f"nodename={node}", "state=resume", status=None)


def told(lab, *keys, n=2, env=None):
    """What a dry run says to stderr."""
    return lab.act.run("-c", "lab", "-n", n, *in_slurm(keys), "submit", "--dry-run", "true", env=env).err


def in_slurm(keys):
    return [word for key in keys for word in ("-p", f"slurm: {{{key}}}")]


@pytest.mark.parametrize("keys, n, match", [
    ((), 8, r"it needs 4 nodes, and a run in the partition 'main' can have 3; use at most -n 6"),
    (("partition: short",), 4, r"it needs 2 nodes, and a run in the partition 'short' can have 1; use at most -n 2"),
    (("partition: short", "time: '60'"), 2, "slurm.time is '60', .* partition 'short' can have 00:10:00"),
    (("partition: nosuch",), 2, "nvalid partition"),
    (("account: nobody",), 2, "nvalid account"),
    (("qos: none",), 2, "nvalid qos"),
    (("constraint: fast",), 2, "nvalid feature"),
    (("gres: tpu",), 2, "nvalid generic resource"),
    (("reservation: later",), 2, "eservation is invalid"),
    (("sbatch_options: [--mem=999G]",), 2, "node configuration is not available")])
def test_what_could_never_start(lab, keys, n, match):
    lab.fail("true", n=n, before=in_slurm(keys), match=match, status=None)
    lab.act.fail("-c", "lab", "-n", n, *in_slurm(keys), "submit", "--dry-run", "true", match=match, status=None)
    lab.act.fail("-c", "lab", "-n", n, *in_slurm(keys), "sweep", "--grid", "x=1,2", "--", "echo", "{x}", match=match,
                 status=None)
    assert lab.act.run("q", "--json").json["runs"] == [] and lab.bed.jobs() == []
    assert not (lab.root / "runs").exists() or not any((lab.root / "runs").iterdir())


def test_a_resubmit_that_could_never_start_ends_nothing(lab):
    run = lab.shell("sleep 600")
    lab.act.fail("-c", "lab", "-p", "slurm: {partition: short, time: '60'}", "resubmit", run, status=None,
                 match="can have 00:10:00")
    assert lab.act.info(run)["state"] in ("Queued", "Running")


def test_what_only_has_to_wait(lab):
    """Nodes that are out of service for now, and a partition that is closed."""
    assert "could" not in told(lab) and "wait" not in told(lab)
    lab.bed.run("scontrol", "update", "nodename=n1", "state=drain", "reason=test")
    assert "with the nodes that are in service now it could not start" in told(lab, n=6)
    assert "could not start" not in told(lab, n=4)
    assert "the partition 'closed' is DOWN" in told(lab, "partition: closed")
    lab.act.fail("-c", "lab", "-n", 8, "submit", "--dry-run", "true", match="can have 3", status=None)
    assert lab.submit("true", n=6)


def test_busy_nodes_are_no_reason(lab):
    for _ in range(3):
        lab.submit("sleep", "600", n=2, before=("-p", "slurm: {sbatch_options: [--exclusive]}"))
    assert told(lab, n=6).count("warning") == 0


def test_the_limits_of_a_qos_may_change(lab):
    lab.bed.run("sacctmgr", "-i", "add", "qos", "small", "set", "MaxTRESPerJob=node=1,gres/gpu=2", "MaxWall=5",
                status=None)
    lab.bed.run("sacctmgr", "-i", "modify", "user", "root", "set", "qos+=small", status=None)
    shown = ("scontrol", "show", "assoc_mgr", "qos=small", "flags=qos")
    lab.act.until(lambda: "small" in lab.bed.run(*shown, status=None), "the controller knows the QOS")
    said = told(lab, "qos: small", "time: '60'", n=4)
    assert "the QOS 'small', which allows a run 1 nodes: it asks for 2" in said
    assert "which allows a run 2 GPUs: it asks for 4" in said
    assert "which allows a run 00:05:00: slurm.time is '60'" in said
    assert "QOS" not in told(lab, "qos: small", "time: '4'", n=2)


@pytest.mark.parametrize("keys, env", [
    (("qos: lasting",), {}),
    (("sbatch_options: [--qos=lasting]",), {}),
    (("sbatch_options: [-q, lasting]",), {}),
    ((), {"SBATCH_QOS": "lasting"})])
def test_a_qos_that_lifts_the_limit_is_found_wherever_it_is_named(lab, keys, env):
    lab.bed.run("sacctmgr", "-i", "add", "qos", "lasting", "set", "flags=PartitionTimeLimit", status=None)
    lab.bed.run("sacctmgr", "-i", "modify", "user", "root", "set", "qos+=lasting", status=None)
    shown = ("scontrol", "show", "assoc_mgr", "qos=lasting", "flags=qos")
    lab.act.until(lambda: "lasting" in lab.bed.run(*shown, status=None), "the controller knows the QOS")
    assert "warning" not in told(lab, "partition: short", "time: '60'", *keys, env=env)
    other = ("-p", "slurm: {partition: short, time: '60', sbatch_options: ['--qos=normal']}")
    lab.act.fail("-c", "lab", "-n", 2, *other, "submit", "--dry-run", "true", match="can have 00:10:00", status=None)


def test_who_cannot_be_asked(lab):
    programs = lab.act.scratch / "bin"
    programs.mkdir()
    for name in ("sh", "mpirun"):
        (programs / name).symlink_to(shutil.which(name))
    said = told(lab, env={"PATH": f"{lab.act.programs}:{programs}"})
    assert "whether Slurm could start it is not known: sh: " in said
