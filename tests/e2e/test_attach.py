"""`a attach` of a run that is not of `a shell`: the output of a rank, and Ctrl-C for it."""
import os
import signal

import pytest

import tmux

# Says what it hears; rank by rank, so that it is seen which one was told.
LISTENS = """
import os, signal, sys, time
def heard(number, frame):
    print("heard", signal.Signals(number).name, flush=True)
    sys.exit(5)
signal.signal(signal.SIGINT, heard if "deaf" not in sys.argv else signal.SIG_IGN)
print("rank", os.environ["RANK"], "listens", flush=True)
while not os.path.exists("stop"):
    time.sleep(0.1)
"""

on_a_terminal = pytest.mark.skipif(tmux.MISSING is not None, reason=str(tmux.MISSING))


def listens(act, *words, before=(), ranks=1):
    act.write("listens.py", LISTENS)
    run = act.submit("python3", "listens.py", *words, before=before)
    for rank in range(ranks):
        act.until(lambda rank=rank: "listens" in act.run("logs", "--rank", rank, run, status=None).out, "it listens")
    return run


def until_printed(process, text):
    line = b""
    while text not in line:
        line = process.stdout.readline()
        assert line, process.stderr.read()


def interrupts(act, run, rank=0, status=5):
    process = act.start("attach", run, "--rank", rank)
    until_printed(process, b"rank %d listens" % rank)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert b"heard SIGINT" in out and process.returncode == status, (out, err)
    assert f"Ctrl-C was sent to rank {rank}".encode() in err


@pytest.mark.smoke
def test_interrupt(act):
    run = listens(act)
    interrupts(act, run)
    act.until_state(run, "Failed")
    act.fail("attach", run, status=125, match="is Failed: 'a logs' shows its output")


def test_its_children(act):
    """All of the process group is told, as on a terminal."""
    act.write("listens.py", LISTENS)
    run = act.submit("sh", "-c", "trap : INT; python3 listens.py; echo child $?; exit 6")
    act.until(lambda: "listens" in act.run("logs", run, status=None).out, "it listens")
    interrupts(act, run, status=6)
    assert "child 5" in act.run("logs", run).out


def test_a_rank_of_another_node(act, lab):
    run = listens(act, before=("-c", "lab", "-n", "4"), ranks=4)
    interrupts(act, run, rank=3)
    act.until_state(run, "Failed")
    assert "heard" not in act.run("logs", run).out


def test_a_machine_behind_ssh(act, hosts, host):
    interrupts(act, listens(act, before=("-c", "lab",)))


@pytest.mark.parametrize("does, says", [("exec sleep 10000", b""), ("kill -TTIN $$", b"asks something")])
def test_a_way_that_stands_still(act, hosts, host, does, says):
    """Nobody has to wait until Ctrl-C has come to the machine; what asks for a password in the background is ended."""
    run = listens(act, before=("-c", "lab"))
    seen, ssh = act.scratch / "seen", act.scratch / "ssh.sh"
    ssh.write_text(f'#!/bin/sh\ncase "$*" in *interrupt*) echo $$ > {seen}.new; mv {seen}.new {seen}; {does};; esac\n'
                   f'exec {act.env["ACT_SSH"]} "$@"\n')
    ssh.chmod(0o755)
    process = act.start("attach", run, env={"ACT_SSH": str(ssh)})
    until_printed(process, b"rank 0 listens")
    process.send_signal(signal.SIGINT)
    act.until(seen.exists, "Ctrl-C is on its way")
    line = says and process.stderr.readline()
    assert says in line, line
    process.send_signal(signal.SIGQUIT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0 and f"run {run} goes on".encode() in err, err
    assert not os.path.exists(f"/proc/{seen.read_text().strip()}")
    assert act.state(run) == "Running"
    act.run("abort", "-y", run)


def test_a_pod(act, kubernetes):
    kubernetes.cluster()
    interrupts(act, listens(act, before=("-c", "k8s",)))


@on_a_terminal
def test_leaving(act, terminal):
    """Twice means that nobody wants it sent; a command that does not hear Ctrl-C is left as well."""
    run = listens(act, "deaf")
    screen = terminal(columns=100, shell=True)
    screen.type(f"a attach {run}", "Enter")
    screen.until("rank 0 listens")
    screen.type("C-c")
    screen.until("Ctrl-C was sent to rank 0")
    act.until(lambda: (screen.type("C-c"), "goes on; 'a attach" in screen.text())[1], "twice quickly leaves")
    assert act.state(run) == "Running"
    again = terminal(columns=20, shell=True)
    again.type(f"a attach {run}", "Enter")
    again.until("^rank 0 listens")
    again.type("C-\\")
    again.type("echo le''ft", "Enter")
    again.until("^left")
    act.run("abort", "-y", run)


@on_a_terminal
def test_stopped_here(act, terminal):
    run = listens(act)
    screen = terminal(columns=100, shell=True)
    screen.type(f"a attach {run}", "Enter")
    screen.until("rank 0 listens")
    screen.type("C-z")
    screen.until("Stopped")
    screen.type("fg", "Enter")
    screen.type("C-c")
    screen.until("heard SIGINT")
    act.until_state(run, "Failed")


def test_what_cannot_be_attached(act):
    act.fail("attach", "nothing", status=125, match="no run 'nothing'")
    run = listens(act)
    act.fail("attach", run, "--rank", "7", status=125, match="has ranks 0 to 0, not 7")
    act.run("abort", "-y", run)
