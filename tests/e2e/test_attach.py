"""`a attach` of a run that is not of `a shell`: the output of a rank, and Ctrl-C for it."""
import contextlib
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess

import pytest

import tmux
import waiting

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

# Says each line that it reads, and the end.
READS = """
import os, sys
print("rank", os.environ["RANK"], "listens", flush=True)
for line in sys.stdin:
    print("read", line.strip(), flush=True)
print("no more", flush=True)
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
    assert err.index(b"Ctrl-C interrupts it") < err.index(f"Ctrl-C was sent to rank {rank}".encode())


def test_interrupt(act, place):
    run = listens(act, before=place)
    interrupts(act, run)
    act.until_state(run, "Failed")
    act.fail("attach", run, status=125, match="is Failed: 'a logs' shows its output")
    assert "from 'a attach'" in act.run("why", run, status=None).out


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
    process.stderr.readline() # what Ctrl-C does
    line = says and process.stderr.readline()
    assert says in line, line
    process.send_signal(signal.SIGQUIT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0 and f"run {run} goes on".encode() in err, err
    assert not os.path.exists(f"/proc/{seen.read_text().strip()}")
    assert act.state(run) == "Running"
    act.run("abort", "-y", run)


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
    act.until(lambda: screen.text().count(f"a attach {run}") > 2, "it goes on: the shell says so")
    screen.type("C-c")
    screen.until("heard SIGINT")
    act.until_state(run, "Failed")


def test_what_cannot_be_attached(act):
    act.fail("attach", "nothing", status=125, match="no run 'nothing'")
    run = listens(act)
    act.fail("attach", run, "--rank", "7", status=125, match="has ranks 0 to 0, not 7")
    act.run("abort", "-y", run)


# ---- what is typed: 'a submit --stdin'

def reads(act, *before, ranks=1):
    act.write("reads.py", READS)
    run = act.run(*before, "submit", "--stdin", "python3", "reads.py").out.strip()
    for rank in range(ranks):
        act.until(lambda rank=rank: "listens" in act.run("logs", "--rank", rank, run, status=None).out, "it listens")
    return run


def started(act, *words, **files):
    """'a', with other files than those of act.start()."""
    return waiting.Process([act.programs / "a", *map(str, words)], env=act.env, cwd=act.project, **files)


def typing(act, run, *words, stdin=subprocess.PIPE):
    return started(act, "attach", run, *words, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def types(act, run, rank=0):
    """Somebody types and leaves, which ends nothing; somebody else types more, and the end."""
    first = typing(act, run, "--rank", rank)
    first.stdin.write(b"one\n")
    first.stdin.flush()
    until_printed(first, b"read one")
    first.send_signal(signal.SIGTERM)
    assert first.wait() == 0
    assert act.state(run) == "Running" and "no more" not in act.run("logs", "--rank", rank, run).out
    second = typing(act, run, "--rank", rank)
    second.stdin.write(b"two\nthree")
    second.stdin.close()
    for said in (b"read one\n", b"read two\n", b"read three\n", b"no more\n"):
        until_printed(second, said)
    second.send_signal(signal.SIGTERM)  # other ranks may go on
    assert b"it reads what you type" in second.stderr.read()
    second.wait()


def test_input(act, place):
    run = reads(act, *place)
    types(act, run)
    act.run("abort", "-y", run)  # its other ranks, if it has any


def test_input_again(act):
    run = reads(act)
    act.run("abort", "-y", run)
    assert "stdin" not in act.run("submit", "--dry-run", "true").json
    again = act.run("resubmit", "-y", run).out.strip().split()[-1]
    act.until(lambda: "listens" in act.run("logs", again, status=None).out, "it listens again")
    types(act, again)


def test_input_of_a_rank_of_another_node(act, lab):
    run = reads(act, "-c", "lab", "-n", "4", ranks=4)
    types(act, run, rank=3)
    assert act.state(run) == "Running" and "no more" not in act.run("logs", run).out
    act.run("abort", "-y", run)


def test_input_where_none_is_possible(act, azureml):
    act.fail("-c", "aml", "submit", "--stdin", "cat", status=2, match="can have no input")


def test_no_input(act):
    """What is typed stays where it is."""
    run = listens(act)
    process = typing(act, run)
    until_printed(process, b"rank 0 listens")
    read, write = os.pipe()
    other = typing(act, run, stdin=read)
    os.write(write, b"kept\n")
    until_printed(other, b"rank 0 listens")
    for p in (process, other):
        p.send_signal(signal.SIGTERM)
        _, err = p.communicate()
        assert b"it has no input" in err
    assert os.read(read, 100) == b"kept\n"
    os.close(read)
    os.close(write)
    act.run("abort", "-y", run)


def test_input_of_the_submit(act):
    """A run has the input of 'a attach': what the submit itself is given is not lost without a word."""
    process = started(act, "submit", "--stdin", "cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                      stderr=subprocess.PIPE)
    out, err = process.communicate(b"one\n")
    run = out.decode().strip()
    assert f"'... | a attach {run}' brings it" in err.decode()
    out, err = typing(act, run).communicate(b"two\n")
    assert out.splitlines()[-1] == b"two", (out, err)


def test_much_input(act):
    """More than anything on the way can hold, for a command that takes its time."""
    data = b"".join(b"%d\n" % i for i in range(100000))
    run = act.run("submit", "--stdin", "sh", "-c", "sleep 1; wc -c").out.strip()
    out, err = typing(act, run).communicate(data)
    assert out.split()[-1] == b"%d" % len(data), (out, err)


def test_input_before_it_begins(act):
    """What is typed while the run waits reaches it."""
    first = act.submit("sleep", "1000", before=("-n", "2"))
    act.until_state(first, "Running")
    run = act.run("-n", "2", "submit", "--stdin", "sh", "-c", "[ $RANK = 1 ] || cat").out.strip()
    process = typing(act, run)
    process.stdin.write(b"early\n")
    process.stdin.flush()
    act.run("abort", "-y", first)
    until_printed(process, b"early")
    process.communicate()
    act.until_state(run, "Completed")


def test_input_that_is_closed(act):
    """The command does not want it any more."""
    script = "read x; echo got $x; exec <&-; until [ -e stop ]; do sleep 0.1; done"
    run = act.run("submit", "--stdin", "sh", "-c", script).out.strip()
    process = typing(act, run)
    process.stdin.write(b"one\n")
    process.stdin.flush()
    until_printed(process, b"got one")
    act.until(lambda: b"input of this rank has ended" in process.stderr.readline(), "it is said")
    late = [typing(act, run) for _ in range(2)]
    late[0].stdin.write(b"two\n")
    late[0].stdin.flush()
    for one in late:
        act.until(lambda one=one: b"input of this rank has ended" in one.stderr.readline(), "it is said to others")
    act.run("abort", "-y", run)
    for one in (process, *late):
        one.communicate()


def feeder_name(run):
    return re.search(rf"@(act-shell-{run}\.0-\w+)", open("/proc/net/unix").read())[1]


def test_input_of_too_many(act):
    """A command that reads nothing keeps waiting what was sent to it; whoever comes when no more can wait hears so."""
    run = act.run("submit", "--stdin", "sleep", "1000").out.strip()
    act.until_state(run, "Running")
    act.until(lambda: f"act-shell-{run}.0-" in open("/proc/net/unix").read(), "the feeder is there")
    others = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(20)]
    for other in others:
        other.connect("\0" + feeder_name(run))
    process = typing(act, run)
    process.stdin.write(b"one\n")
    process.stdin.flush()
    act.until(lambda: b"no more can wait" in process.stderr.readline(), "it is said")
    for other in others:
        other.close()
    act.run("abort", "-y", run)
    process.communicate()


def position(path):
    """How much of the file that is its input a process has read."""
    return int(re.search(r"pos:\s+(\d+)", pathlib.Path(path).read_text())[1])


def brings(run):
    """Whether anything on its node, which is this machine, brings the run its input."""
    words = b"\0input\0%s\x000\0" % run.encode()
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().endswith(words):
                return True
    return False


def leaves(act, run, how):
    """Somebody types more than the run takes, and goes with this signal; what he typed is not waited for."""
    text = act.write("much", b"line\n" * 2_000_000)
    with open(text, "rb") as stdin:
        process = started(act, "attach", run, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seen = []

    def stands_still():
        seen.append(position(f"/proc/{process.pid}/fdinfo/0"))
        return seen[-1] > 0 and seen[-15:].count(seen[-1]) == 15
    act.until(stands_still, "nothing more is taken")
    assert seen[-1] < text.stat().st_size
    process.send_signal(how)
    process.wait()


def nobody_reads(act, how, *before):
    """What brings the input ends when it has lost who sent it; what it has brought is read in the end."""
    stop = act.scratch / "stop"
    run = act.run(*before, "submit", "--stdin", "sh", "-c", f"until [ -e {stop} ]; do sleep 0.1; done; head -n 1")
    run = run.out.strip()
    act.until_state(run, "Running")
    leaves(act, run, how)
    act.until(lambda: not brings(run), "nobody waits any more")
    stop.touch()
    act.until_state(run, "Completed")
    assert act.lines(run) == ["line"]


def test_input_that_nobody_reads(act):
    nobody_reads(act, signal.SIGKILL)


def test_input_that_nobody_reads_behind_ssh(act, hosts, host):
    nobody_reads(act, signal.SIGTERM, "-c", "lab")


def ssh_of_input(process):
    """The 'a __input' of an attach, which is ssh by now."""
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as f:
        for pid in f.read().split():
            with open(f"/proc/{pid}/cmdline", "rb") as words:
                if b"input" in words.read():
                    return int(pid)
    return 0


def test_input_over_a_connection_that_breaks(act, hosts, host):
    run = reads(act, "-c", "lab")
    process = typing(act, run)
    process.stdin.write(b"one\n")
    process.stdin.flush()
    until_printed(process, b"read one")
    os.kill(ssh_of_input(process), signal.SIGKILL)
    act.until(lambda: b"input of rank 0 is lost" in process.stderr.readline(), "it is said")
    out, err = process.communicate(b"two\n")
    assert out.endswith(b"read two\nno more\n"), (out, err)


@on_a_terminal
def test_input_on_a_terminal(act, terminal):
    """Ctrl-D ends the input, Ctrl-Z stops only the attach, which types on in the foreground."""
    run = reads(act)
    screen = terminal(columns=40, shell=True)
    screen.type(f"a attach {run}", "Enter")
    screen.until("rank 0 listens")
    screen.type("one", "Enter")
    screen.until("read one")
    screen.type("C-z")
    screen.until("Stopped")
    screen.type("bg", "Enter", "echo sh''ell", "Enter")
    screen.until("^shell")
    screen.type("fg", "Enter")
    screen.type("two", "Enter")
    screen.until("read two")
    screen.type("C-d")
    screen.until("^no more")
    act.until_state(run, "Completed")


def test_input_from_a_terminal_that_goes(act):
    """A window that is closed ends no input, also where the shell in it passes no signal on."""
    run = reads(act)
    main, other = pty.openpty()
    shell = ["setsid", "--ctty", "--wait", "sh", "-c", 'trap : HUP; "$0" attach "$1"; true']
    process = waiting.Process([*shell, act.programs / "a", run], env=act.env, cwd=act.project, stdin=other,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    os.close(other)
    os.write(main, b"one\n")
    until_printed(process, b"read one")
    os.close(main)
    types(act, run)
    process.communicate()


@pytest.mark.parametrize("verb, words", [("attach", ()), ("logs", ("-f",))])
def test_a_terminal_that_nobody_reads(act, verb, words):
    """One signal is enough."""
    run = act.submit("sh", "-c", "yes 'a line that fills it' | head -n 100000; exec sleep 1000")
    act.until(lambda: len(act.run("logs", "--tail", 50000, run, status=None).out) > 500000, "it has printed")
    main, other = pty.openpty()
    process = started(act, verb, *words, run, stdin=other, stdout=other, stderr=other)
    os.close(other)
    act.until(lambda: any(is_writing(pid) for pid in family(process.pid)), "it stands still")
    process.send_signal(signal.SIGTERM)
    process.wait()
    os.close(main)
    act.run("abort", "-y", run)


def is_writing(pid):
    """It waits in write(2)."""
    number = {"x86_64": "1", "aarch64": "64"}[os.uname().machine]
    return any(path.read_text().split()[0] == number for path in pathlib.Path(f"/proc/{pid}/task").glob("*/syscall"))


def family(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [pid, *(int(child) for child in f.read().split())]
