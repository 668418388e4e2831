"""A Slurm cluster that is driven from a laptop: everything goes through one connection to its login node."""
import json
import pathlib
import time

import pytest

import slurm_bed
import sshd as private_sshd

NODES = 2
AWKWARD = ["a b", "", "$HOME", "it's", '"', "new\nline", "\\", "*", "-n", "ü", "{}", "~", "!x", "%s"]


@pytest.fixture(scope="module")
def bed():
    missing = slurm_bed.missing()
    if missing:
        pytest.skip(missing)
    with slurm_bed.running(nodes=NODES) as cluster:
        yield cluster


@pytest.fixture
def login(act, bed, scratch):
    """The cluster "lab" of the project, on the other side of ssh."""
    if not private_sshd.is_installed():
        pytest.skip("OpenSSH is not installed: scripts/install-deps --test")
    server = private_sshd.Sshd(scratch / "ssh")
    server.shell(f"export SLURM_CONF={bed.conf}")
    # Slurm is on this machine too, and shall not be found but on the other side.
    programs = scratch / "bin"
    programs.mkdir()
    for name in ("ssh", "sh"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    act.env.update(server.env, PATH=f"{act.programs}:{programs}")
    act.cluster("lab", extra={"platform": "slurm", "gpu_per_node": 2, "slurm": {"login": private_sshd.LOGIN}})
    yield server
    bed.cancel_all()
    server.stop()


def lab(act, *words, **options):
    return act.run("-c", "lab", *words, **options)


def submit(act, *words, gpus=1):
    return act.submit(*words, before=("-c", "lab", "-n", gpus))


def test_run_over_two_nodes(act, login):
    act.write("code.txt", "the code")
    show = "import json, os, sys; print(json.dumps([os.environ['RANK'], open('code.txt').read(), sys.argv[1:]]))"
    run = submit(act, "python3", "-c", show, *AWKWARD, gpus=2 * NODES)
    lab(act, "wait", run)
    folder = login.home / f".act/runs/{run}"
    for rank in range(2 * NODES):
        log = (folder / f"user_logs/std_log_process_{rank}.txt").read_text()
        assert json.loads(log.splitlines()[-1]) == [str(rank), "the code", AWKWARD]
    assert json.loads(lab(act, "logs", run).out) == ["0", "the code", AWKWARD]
    nodes = lab(act, "nodes", "--json", run).json
    assert len(nodes["nodes"]) == NODES, nodes
    assert login.logins() == 1
    assert len(list((login.home / ".act/bin").iterdir())) == 1


def test_logs_are_followed(act, login, scratch):
    go = scratch / "go"
    run = submit(act, "sh", "-c", f"echo begun; while ! [ -e {go} ]; do sleep 0.1; done; echo ended")
    follower = act.start("-c", "lab", "logs", "-f", run)
    try:
        assert follower.stdout.readline() == b"begun\n"
        go.touch()
        assert follower.stdout.read() == b"ended\n"
        assert follower.wait() == 0
    finally:
        follower.kill()
        follower.communicate()


def test_failure_is_told(act, login):
    run = submit(act, "sh", "-c", "echo bad luck >&2; exit 7")
    lab(act, "wait", run, status=7)
    assert "bad luck" in lab(act, "why", run).out


def test_what_the_login_s_shell_says_of_another_job(act, login, bed):
    """Or tells Slurm's tools for its own user, and what ssh was told to send: as on this machine."""
    said = {"SLURM_ARRAY_JOB_ID": "1", "SLURM_ARRAY_TASK_ID": "1", "SLURM_MEM_PER_NODE": "200", "SBATCH_GRES": "gpu:1",
            "SLURM_RESTART_COUNT": "2", "SQUEUE_FORMAT": "x", "SINFO_PARTITION": "low", "SINFO_FORMAT": "x"}
    sent = {"SBATCH_ARRAY_INX": "0-1", "SBATCH_TIMELIMIT": "7"}
    exports = " ".join(f"{name}={value}" for name, value in said.items())
    login.shell(f"export SLURM_CONF={bed.conf} {exports}")
    login.stop()
    login.extra = "AcceptEnv SBATCH_*"
    login.start()
    act.env |= {**sent, "ACT_SSH": f"{act.env['ACT_SSH']} -o SendEnv=SBATCH_*"}
    run = submit(act, "sh", "-c", "env; [ $RANK != 0 ] || exit 3", gpus=2 * NODES)  # else another may fail first
    job = bed.show(bed.job(run))
    assert job["TimeLimit"] == "00:07:00" and "ArrayJobId" not in job
    lab(act, "wait", run, status=3)
    names = {line.split("=")[0] for line in lab(act, "logs", run).out.splitlines()}
    assert not {"SLURM_ARRAY_JOB_ID", "SLURM_MEM_PER_NODE", "SBATCH_GRES", "SLURM_RESTART_COUNT"} & names


def test_abort_and_shell(act, login, bed):
    run = submit(act, "sleep", "1000")
    bed.until(lambda: act.state(run) == "Running", "it runs")
    done = lab(act, "ssh", run, "--", "sh", "-c", "echo on $SLURMD_NODENAME in $PWD")
    assert "on n1 in " in done.out, done
    lab(act, "abort", run)
    assert act.state(run) == "Canceled"


def test_connection_breaks_while_a_run_is_watched(act, login, bed, scratch):
    go = scratch / "go"
    run = submit(act, "sh", "-c", f"while ! [ -e {go} ]; do sleep 0.1; done; exit 4")
    before = login.sessions()
    watch = act.start("-c", "lab", "wait", run)
    try:
        bed.until(lambda: login.sessions() > before, "it is watched")
        time.sleep(1)  # and was seen once: only who cannot even begin gives up
        login.drop()
        bed.until(lambda: login.logins() == 2, "it connects again")
        go.touch()
        assert watch.wait() == 4, watch.stderr.read()
    finally:
        watch.kill()
        watch.communicate()


def test_answer_of_sbatch_is_lost(act, login, bed, scratch):
    """The connection breaks when Slurm has the job and nobody has heard of it: it is found, and not submitted twice."""
    mark, go = scratch / "mark", scratch / "go"
    programs = login.folder / "programs"
    programs.mkdir()
    (programs / "sbatch").write_text(f"#!/bin/sh\nsbatch=/usr/bin/sbatch\n[ -e {mark} ] && exec $sbatch \"$@\"\n"
                                     f"$sbatch \"$@\"; touch {mark}; while ! [ -e {go} ]; do sleep 0.02; done\n")
    (programs / "sbatch").chmod(0o755)
    login.shell(f"export SLURM_CONF={bed.conf} PATH={programs}:$PATH")
    submitted = act.start("-c", "lab", "-n", 1, "submit", "sleep", "1000")
    try:
        bed.until(mark.exists, "Slurm has the job")
        login.drop()
        out, err = submitted.communicate()
    finally:
        go.touch()
        submitted.kill()
    assert submitted.returncode == 0, err
    run = out.decode().strip()
    assert len(bed.jobs(run)) == 1
    lab(act, "abort", run)


def test_login_node_is_gone(act, login):
    login.stop()
    assert "Connection refused" in act.fail("-c", "lab", "submit", "true", status=5)
    assert "Connection refused" in act.fail("-c", "lab", "summary", status=5)


def test_no_slurm_there(act, login):
    """Without Slurm's configuration the other side belongs to no cluster."""
    login.shell("export SLURM_CONF=/nonexistent PATH=/usr/bin:/bin")
    empty = pathlib.Path(login.folder / "empty")
    empty.mkdir()
    for name in ("sh", "bash", "cat", "mkdir", "mv", "rm", "chmod", "wc", "uname", "id", "env"):
        (empty / name).symlink_to(f"/bin/{name}")
    (login.home / ".bash_profile").write_text(f"PATH={empty}\n")
    login.shell(f"export PATH={empty} SHELL=/bin/bash")
    message = act.fail("-c", "lab", "submit", "true", status=None)
    assert "sbatch" in message and private_sshd.LOGIN in message, message
