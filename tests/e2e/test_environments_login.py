"""Environments that the login node of a Slurm cluster makes, for nodes that reach no index of packages."""
import os
import pathlib
import re
import signal

import pytest
import waiting
from environment_bed import SAY, environments_in, index, rest_in, said  # noqa: F401

LOGIN = "environment: {where: login}"
# No node reaches the index: lines of 'setup' are for the nodes alone.
UNREACHABLE = "export PIP_INDEX_URL=http://127.0.0.1:9/simple/ PIP_RETRIES=1 PIP_NO_CACHE_DIR=1"
WHEEL = "toy-1.0-py3-none-any.whl"


@pytest.fixture
def apart(lab, index):
    """The cluster, whose nodes reach no index."""
    lab.configure(setup=UNREACHABLE)
    lab.act.write("requirements.txt", "toy==1.0\n")
    return lab


def said_by_all(lab, run, ranks=4):
    (folder,) = environments_in(lab.root).values()
    assert {lab.rank_text(run, rank).splitlines()[-1] for rank in range(ranks)} == {said(folder)}


def test_made_before_the_run_is_queued(apart, index):
    """On two nodes, and used by the next run as it is."""
    for _ in range(2):
        run = apart.submit("python3", "-c", SAY, n=4, before=("-p", LOGIN))
        apart.wait(run, "Completed", 0)
        said_by_all(apart, run)
    assert index.downloads(WHEEL) == 1 and not rest_in(apart.root)
    (key,) = environments_in(apart.root)
    assert apart.record(run, "run.json")["environment"] == {"where": "login", "key": key}
    again = apart.act.run("resubmit", run).out.split()[-1]
    apart.wait(again, "Completed", 0)
    said_by_all(apart, again)


def test_over_ssh(act, behind_ssh, index):
    """The login node is the one that ssh leads to; the variables of the run hold there."""
    del act.env["PIP_INDEX_URL"]
    behind_ssh.configure(slurm={"login": "lab"}, setup=UNREACHABLE, env={"PIP_INDEX_URL": index.url})
    act.write("requirements.txt", "toy==1.0\n")
    run = behind_ssh.submit("python3", "-c", SAY, n=4, before=("-p", LOGIN))
    behind_ssh.wait(run, "Completed", 0)
    said_by_all(behind_ssh, run)
    assert index.downloads(WHEEL) == 1


def test_a_sweep_has_one(apart, index):
    out = apart.act.run("-c", "lab", "-n", 2, "-p", LOGIN, "sweep", "--grid", "lr=1,2", "--", "python3", "-c",
                        SAY + "; '{lr}'")
    runs = [line.split()[-1] for line in out.out.splitlines() if line.strip()]
    assert index.downloads(WHEEL) == 1, (runs, out)


def test_by_itself_once_a_node_has_reached_none(apart, index):
    run = apart.submit("python3", "-c", SAY, n=2)
    apart.wait(run, "Failed", 1)
    assert "where: login" in " ".join(apart.act.run("why", run).out.split())
    assert not environments_in(apart.root)
    result = apart.act.run("-c", "lab", "-n", 2, "submit", "python3", "-c", SAY)
    assert "has reached no index of packages" in result.err
    run = result.out.split()[-1]
    apart.wait(run, "Completed", 0)
    said_by_all(apart, run, ranks=2)
    on_nodes = apart.submit("true", n=2, before=("-p", "{setup: null, environment: {where: nodes}}"))
    apart.wait(on_nodes, "Completed", 0)
    assert (apart.root / "environments/no-index").exists(), "it was there, and nobody asked an index"


def test_says_how_far_it_is_and_can_be_left(apart, index):
    """Who types it sees what is done; what was begun goes on without him, and serves the next one."""
    goes_on = index.hold(WHEEL)
    typed = apart.act.start("-c", "lab", "-n", 2, "-p", LOGIN, "submit", "python3", "-c", SAY)
    waiting.until(lambda: index.downloads(WHEEL), "the login node asks for the package")
    line = typed.stderr.readline()
    while b"making the environment" not in line:
        line = typed.stderr.readline()
    assert b"on the login node: making the environment from requirements.txt" in line
    typed.send_signal(signal.SIGKILL)
    typed.wait()
    assert not list((apart.root / "runs").glob("*")), "nothing is queued before it is there"
    (made,) = apart.act.run("-c", "lab", "env", "list", "--json").json["environments"]
    assert made["being_made"] and not made["in_use"] and made["from"] == "requirements.txt"
    assert "being made for " in apart.act.run("-c", "lab", "env", "list").out
    apart.act.fail("-c", "lab", "env", "rm", "-y", made["key"], status=1, match="is being made")
    goes_on.set()
    run = apart.submit("python3", "-c", SAY, n=2, before=("-p", LOGIN))
    apart.wait(run, "Completed", 0)
    assert index.downloads(WHEEL) == 1
    (made,) = apart.act.run("-c", "lab", "env", "list", "--json").json["environments"]
    assert not made["being_made"]


def test_what_fails_is_said_and_nothing_is_queued(apart, index):
    apart.act.write("requirements.txt", "toy==9.9\n")
    failed = apart.fail("true", n=2, before=("-p", LOGIN), status=1,
                        match="on the login node: cannot make the environment from requirements.txt: ERROR: ")
    assert "No matching distribution found for toy==9.9" in failed
    assert not list((apart.root / "runs").glob("*")) and not environments_in(apart.root) and not rest_in(apart.root)
    apart.act.write("requirements.txt", "-e ./lib\n")
    apart.fail("true", n=2, before=("-p", LOGIN), match="links to folders of the project")


def parent(pid):
    return int(re.search(r"PPid:\s*(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def test_a_maker_that_is_killed_is_replaced(apart, index):
    goes_on = index.hold(WHEEL)
    typed = apart.act.start("-c", "lab", "-n", 2, "-p", LOGIN, "submit", "python3", "-c", SAY)
    waiting.until(lambda: index.downloads(WHEEL), "the login node asks for the package")
    makers = lambda: [pid for pid, words in apart.act.processes().items()
                      if words[0].endswith(b"act-node") and words[1:2] == [b"environment"]
                      and parent(pid) != typed.pid]
    waiting.until(makers, "the maker is there")
    for pid in makers():
        os.kill(pid, signal.SIGKILL)
    waiting.until(lambda: index.downloads(WHEEL) == 2, "another one begins anew")
    goes_on.set()
    assert typed.wait() == 0
    apart.act.run("wait", typed.stdout.read().split()[-1])
    assert len(environments_in(apart.root)) == 1 and not rest_in(apart.root)


def test_gone_or_of_another_python(apart, index):
    """A node that does not find it, or cannot use it, says so."""
    held = apart.submit("true", n=2, before=("-p", "{" + LOGIN + ", slurm: {sbatch_options: [--hold]}}"))
    (link,) = (path for path in (apart.root / "environments").iterdir() if path.is_symlink())
    python = link / "env/bin/python3"
    target = os.readlink(python)
    python.unlink()
    python.symlink_to("/nosuch/python3.99")
    apart.bed.run("scontrol", "release", apart.bed.job(held))
    apart.wait(held, "Failed")
    assert "does not have; name a module that both have" in apart.act.run("wait", held, status=None).err
    python.unlink()
    python.symlink_to(target)
    held = apart.submit("true", n=2, before=("-p", "{" + LOGIN + ", slurm: {sbatch_options: [--hold]}}"))
    link.unlink()
    apart.bed.run("scontrol", "release", apart.bed.job(held))
    apart.wait(held, "Failed")
    assert "is not there any more" in apart.act.run("wait", held, status=None).err


def test_refused_where_there_is_no_login_node(act, lab):
    lab.fail("true", before=("-p", "{" + LOGIN + ", docker: {image: x}, slurm: {container: apptainer}}"), status=7,
             match="is for runs without an image")
    lab.fail("true", before=("-p", "environment: {where: login, wheels_folder: data}"), status=7, match="of the login")
    act.cluster("here", extra={"platform": "local"})
    act.fail("-c", "here", "-p", LOGIN, "submit", "true", status=7, match="the platform 'local' has none")
    assert act.run("-p", LOGIN, "local", "echo", "made here").out == "made here\n"
