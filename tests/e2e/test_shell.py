"""`a shell` and `a attach`: a run that is a shell on a node."""
import contextlib
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import termios
import time

import pytest

import tmux
import user_fixtures
import waiting

pytestmark = pytest.mark.skipif(tmux.MISSING is not None, reason=str(tmux.MISSING))


def shell_on(terminal, *words, **options):
    """A terminal in which the shell is ready; elsewhere than here it has a prompt of its own."""
    screen = terminal(*words, env={"SHELL": "/bin/sh", "PS1": "ready> ", "ENV": ""}, **{"columns": 160, **options})
    screen.until(r"^(ready>|.*[#$])$")
    return screen


def run_of(act):
    return act.run("q", "--json").json["runs"][0]["id"]


def ended(act, run):
    act.until_state(run, "Completed", "Failed", "Canceled")
    return next(r for r in act.run("q", "--json").json["runs"] if r["id"] == run)


def uses(act, terminal, *before, name=""):
    """The shell is in the code and has the environment of a run, but is none of its ranks."""
    act.write("hello.txt", "hello from the code\n")
    screen = shell_on(terminal, *before, "shell", *(("--name", name) if name else ()))
    run = run_of(act)
    screen.type("cat hello.txt; echo $ACT_RUN_ID is ${RANK-no rank}; tty", "Enter")
    screen.until("^hello from the code")
    screen.until(f"^{run} is no rank")
    screen.until("^/dev/pts/")
    assert act.state(run) == "Running"
    screen.type("exit 7", "Enter")
    screen.ends(7)
    assert ended(act, run)["exit_status"] == 7
    return run


def test_a_shell(act, place, terminal):
    run = uses(act, terminal, *place, name="mine")
    assert run in act.run("q", "--name", "mine").out
    act.fail("attach", run, status=125, match="its shell has ended")


def test_what_is_no_shell(act):
    act.fail("shell", status=125, match="needs a terminal")
    act.fail("attach", "nothing", status=125, match="no run 'nothing'")


def test_a_job_of_two_nodes(act, lab, terminal):
    """The keepers on the other nodes end with the shell, also when it ends well."""
    screen = shell_on(terminal, "-c", "lab", "-n", "4", "shell")
    run = run_of(act)
    screen.type("hostname; exit 0", "Enter")
    screen.until("^n1")
    screen.ends(0)
    assert ended(act, run)["state"] == "Completed"


def test_a_command(act):
    """Without a terminal it has the input and output of 'a shell'."""
    process = subprocess.run([act.programs / "a", "shell", "--", "sh", "-c", "cat; echo wrong >&2; exit 3"],
                             input=b"typed\n", env=act.env, cwd=act.project, capture_output=True, timeout=300)
    assert process.returncode == 3 and process.stdout == b"typed\n" and b"wrong\n" in process.stderr, process
    assert ended(act, run_of(act))["exit_status"] == 3


def test_nobody_waits_for_a_command_any_more(act, place):
    """Without a terminal what runs there ends with 'a shell', however that ends, and the run with it."""
    process = act.start(*place, "shell", "--", "sh", "-c", "echo up; exec sleep 1000")
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGKILL if place else signal.SIGTERM)
    assert process.wait() == (-signal.SIGKILL if place else 128 + signal.SIGTERM)
    assert ended(act, run_of(act))["state"] != "Completed"
    process.communicate()


def children_of(process):
    """The words of each child of a process, by pid."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return {int(pid): pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1] for pid in children}


def test_a_command_goes_on_while_its_own_connection_does(act):
    """What tells its keeper that somebody is there breaks alone, and is made anew."""
    process = act.start("shell", "--", "sh", "-c", "echo up; exec sleep 1000")
    assert process.stdout.readline() == b"up\n"
    stays = lambda: {pid for pid, words in children_of(process).items() if words[-1:] == [b"stay"]}
    first = waiting.until(stays, "somebody stays")
    os.kill(*first, signal.SIGKILL)
    waiting.until(lambda: stays() - first, "somebody else stays")
    assert process.poll() is None and b"sleep 1000" in subprocess.run(
        ["ps", "-eo", "args"], capture_output=True, check=True).stdout
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 128 + signal.SIGTERM
    process.communicate()


def test_whoever_starts_it_ignores_the_end_of_children(act):
    process = act.start("shell", "--", "sh", "-c", "exit 7",
                        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert process.wait() == 7
    process.communicate()


def test_a_command_that_is_not_there(act):
    result = act.run("shell", "--", "no-such-program", status=127)
    assert "cannot start 'no-such-program'" in result.err


def test_a_dry_run(act):
    spec = act.run("-n", "2", "shell", "--dry-run", "--time", "2h", "--idle", "10m", "--", "htop", "-d", "5").json
    assert spec["processes_per_node"] == 1 and spec["title"] == "a shell -- htop -d 5"
    assert spec["command"] == ["act-node", "keep", "600", "7200", "300", "ends", "htop", "-d", "5"], spec
    assert not act.run("q", "--json").json["runs"]


def test_a_platform_that_is_not_reached(act, azureml):
    act.fail("-c", "aml", "shell", "--", "true", status=125, match="a shell cannot be opened on the platform 'aml'")


def test_back_after_a_broken_connection(act, terminal):
    """What was printed meanwhile is shown; the shell is the same."""
    screen = shell_on(terminal, "shell")
    run = run_of(act)
    screen.type("mark=here; echo pid $$", "Enter")
    pid = screen.until(r"^pid (\d+)")[1]
    session, = (p for p in screen.processes() if is_session(p))
    os.kill(int(session), signal.SIGKILL)
    screen.until("the connection to run .* broke; here is its shell again")
    screen.type("clear; echo $mark is $$", "Enter")
    screen.until(f"^here is {pid}")
    again = terminal("ssh", run)
    screen.until("another session has taken over")
    screen.ends(129)
    again.until("the shell of run")
    again.type("clear; echo $mark is $$", "Enter")
    again.until(f"^here is {pid}")
    third = terminal("attach", run)
    again.until("another session has taken over")
    third.type("exit 0", "Enter")
    third.ends(0)
    assert ended(act, run)["state"] == "Completed"


def test_back_through_a_machine_that_was_away(act, hosts, host, terminal):
    """Each connection is cut, and for a while there is none to be had: the same shell comes back by itself."""
    screen = shell_on(terminal, "-c", "lab", "shell")
    screen.type("mark=here; echo pid $$", "Enter")
    pid = screen.until(r"^pid (\d+)")[1]
    host.stop()
    screen.until("broke; trying again for 5 minutes")
    host.start()
    screen.until("here is its shell again")
    screen.type("clear; echo $mark is $$", "Enter")
    screen.until(f"^here is {pid}")
    screen.type("exit 0", "Enter")
    screen.ends(0)


def is_session(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            words = f.read().split(b"\0")
    except OSError:
        return False
    return words[0].endswith(b"act-node") and b"session" in words


def test_kept(act, terminal):
    screen = shell_on(terminal, "shell", "--keep")
    run = run_of(act)
    screen.type("exit 4", "Enter")
    screen.ends(4)
    assert "goes on" in screen.text()
    again = terminal("attach", run)
    again.until("^ready>")
    again.type("exit 0", "Enter")
    again.ends(0)
    act.run("abort", "-y", run)
    assert ended(act, run)["state"] == "Canceled"


def test_a_run_that_is_aborted(act, terminal):
    screen = shell_on(terminal, "shell")
    run = run_of(act)
    act.run("abort", "-y", run)
    screen.until("the run is asked to end")
    screen.until(r"^status \d+")
    assert screen.mode(0) == screen.mode(1)
    assert ended(act, run)["state"] == "Canceled"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_command_that_is_killed(act, how):
    """Its terminal is what it was; the shell waits for somebody to come back."""
    main, other = pty.openpty()
    before = termios.tcgetattr(other)
    process = subprocess.Popen([act.programs / "a", "shell"], env=act.env, cwd=act.project, stdin=other, stdout=other,
                               stderr=other)
    act.until(lambda: termios.tcgetattr(other) != before, "the session has the terminal")
    process.send_signal(how)
    assert process.wait(waiting.PATIENCE_S) == (143 if how == signal.SIGTERM else -how)
    act.until(lambda: termios.tcgetattr(other) == before, "the terminal is given back")
    run = run_of(act)
    assert act.state(run) == "Running"
    act.run("abort", "-y", run)
    for fd in main, other:
        os.close(fd)


def test_interrupted_in_the_queue(act, terminal):
    """Ctrl-C ends a run that waits, and its reason is shown, also where there is little room."""
    first = act.submit("sleep", "1000", before=("-n", "2"))
    act.until_state(first, "Running")
    screen = terminal("-n", "2", "shell", columns=20)
    screen.until("^Queued  ")
    run = run_of(act)
    screen.resize(80, 24)
    screen.until("^Queued  .*waits for")
    screen.type("C-c")
    screen.ends(130)
    assert ended(act, run)["state"] == "Canceled"
    act.run("abort", "-y", first)


def test_interrupted_while_its_node_is_prepared(act, terminal):
    act.write("compile.aml.sh", "touch ../begun; exec sleep 1000\n")
    screen = terminal("shell", columns=160)
    screen.until("Ctrl-C while it waits ends it")
    run = run_of(act)
    act.until_state(run, "Running")
    act.until(lambda: any(is_session(p) for p in screen.processes()), "it waits for the terminal")
    screen.type("C-c")
    screen.ends(130)
    assert ended(act, run)["state"] == "Canceled"


def test_a_node_that_cannot_be_prepared(act, terminal):
    act.write("compile.aml.sh", "exit 3\n")
    screen = terminal("shell", columns=160)
    screen.until("has ended: Failed: .*preparation failed")
    screen.ends(3)


def test_size_and_keys(act, place, terminal):
    """The terminal there has the size of the one here; Ctrl-C and Ctrl-Z are for what runs there."""
    screen = shell_on(terminal, *place, "shell", columns=60, rows=20)
    screen.type("stty size", "Enter")
    has_size = place != ("-c", "k8s")  # the double only notes it, for test_kubernetes_shell.py
    screen.until("^20 60" if has_size else "^0 0")
    for columns, rows in ((20, 22), (70, 22)) if has_size else ():
        screen.resize(columns, rows)
        screen.type("clear", "Enter")
        size = f"{rows} {columns}"
        act.until(lambda size=size: (screen.type("stty size", "Enter"), size in screen.text())[1], "the size is known")
    sleeping = "sh -c 'echo at $((%d + 1)); exec sleep 1000'"  # a key that comes before it runs is the shell's
    screen.type(sleeping % 1, "Enter")
    screen.until("^at 2")
    screen.type("C-c")
    screen.type("echo after $((20 + 3))", "Enter")
    screen.until("^after 23")
    screen.type(sleeping % 2, "Enter")
    screen.until("^at 3")
    screen.type("C-z")
    screen.until("Stopped")
    screen.type("exit 0", "Enter")
    screen.until("(are|have) stopped jobs")
    screen.type("exit 0", "Enter")
    screen.ends(0)


def test_a_narrow_terminal_and_a_deaf_command(act, terminal):
    """Neither Ctrl-C nor Ctrl-Z ends or stops it, or this command."""
    act.write("deaf.sh", "trap '' INT TSTP\nstty size\n"
                         "while read -r line && [ $line != over ]; do echo got $line; done\nexit 5\n")
    screen = terminal("shell", "--", "sh", "deaf.sh", columns=20)
    screen.until("^24 20")
    screen.type("C-c")
    screen.type("C-z")
    screen.type("one", "Enter")
    screen.until("^got one")
    act.fail("attach", run_of(act), status=125, match="needs a terminal")
    screen.type("over", "Enter")
    screen.ends(5)


def keep(act, *words, run="keeper_1_00000001"):
    """The keeper itself."""
    return subprocess.Popen([act.programs / "act-node", "keep", *words], env={**act.env, "ACT_RUN_ID": run},
                            cwd=act.project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_nobody_comes(act):
    keeper = keep(act, "3600", "0", "1", "ends")
    out, _ = keeper.communicate(timeout=300)
    assert keeper.returncode == 0 and b"act: nobody has come back" in out


def test_nobody_comes_back_to_what_does_not_read(act):
    """What was typed last is still on its way to it when the connection breaks."""
    keeper = keep(act, "0", "0", "1", "ends", "sh", "-c", "stty -icanon; echo up; exec sleep 1000")
    pid, screen = pty.fork()
    if pid == 0:
        os.execve(act.programs / "act-node", ["act-node", "session", "keeper_1_00000001"], act.env)
    seen = b""
    while b"up" not in seen:
        seen += os.read(screen, 4096)
    os.set_blocking(screen, False)
    with contextlib.suppress(BlockingIOError):
        for _ in range(1000):
            os.write(screen, b"x" * 1000)
            time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(screen)
    out, _ = keeper.communicate(timeout=60)
    assert b"act: nobody has come back" in out


def test_nobody_uses_it(act, terminal):
    screen = shell_on(terminal, "shell", "--idle", "2s")
    screen.until("this shell is ended in .* unless you type something")
    screen.until("nothing was typed or printed for too long")
    screen.until(r"^status \d+")
    assert screen.mode(0) == screen.mode(1)
    ended(act, run_of(act))


def make_gpu(parent):
    """A folder for PATH, whose nvidia-smi says of four GPUs how busy the file "busy" beside it says that they are."""
    folder = parent / "smi"
    folder.mkdir()
    (folder / "busy").write_text("100\n")
    smi = folder / "nvidia-smi"
    smi.write_text('#!/bin/sh\ncd "$(dirname "$0")" && echo >>seen\n'
                   'for i in 0 1 2 3; do echo $i, $(cat busy), 0, 1000, 30, 50, 0; done\n')
    smi.chmod(0o755)
    return folder


def until_its_gpu_is_idle(act, screen, folder="smi"):
    """A shell with an 'idle' of two seconds goes on as long as the GPU computes. folder: on its node."""
    run = run_of(act)

    def has_looked():
        seen = act.run("ssh", run, "0", "--", "cat", f"{folder}/seen", status=None)  # there is none at first
        return len(seen.out) >= 8
    act.until(has_looked, "it is looked at again and again")
    assert "this shell is ended" not in screen.text() and act.state(run) == "Running"
    act.run("ssh", run, "0", "--", "sh", "-c", f"echo 0 >{folder}/busy")
    screen.until("and no GPU computes: this shell is ended in .* unless you type something")
    screen.until("and no GPU computes: the shell is ended, and the run")


def test_a_gpu_computes(act, terminal):
    """Who waits for it uses the shell, although he types nothing."""
    folder = make_gpu(act.scratch)
    act.env["PATH"] = f"{folder}:{act.env['PATH']}"
    screen = shell_on(terminal, "shell", "--idle", "2s")
    until_its_gpu_is_idle(act, screen, folder)
    ended(act, run_of(act))


def test_the_time_is_over(act, terminal):
    screen = shell_on(terminal, "shell", "--time", "3s")
    screen.until("the time is over")
    screen.until(r"^status \d+")
    ended(act, run_of(act))


def test_much_is_typed_while_much_is_printed(act):
    """Neither waits for the other."""
    typed = b"".join(b"%d\n" % i for i in range(60000)) + b"\x04"
    main, other = pty.openpty()
    process = subprocess.Popen([act.programs / "a", "shell", "--", "sh", "-c", "sleep 1; seq 1 200000; exec wc -l"],
                               env=act.env, cwd=act.project, stdin=other, stdout=other, stderr=subprocess.DEVNULL)
    os.close(other)
    os.set_blocking(main, False)
    act.until_state(act.until(lambda: act.run("q", "--json").json["runs"], "it is submitted")[0]["id"], "Running")
    printed, end = b"", time.monotonic() + waiting.PATIENCE_S
    while process.poll() is None:
        assert time.monotonic() < end, printed[-200:]
        readable, writable, _ = select.select([main], [main] if typed else [], [], 1)
        with contextlib.suppress(OSError):
            printed = (printed + os.read(main, 65536))[-1000:] if readable else printed
            typed = typed[os.write(main, typed[:1024]):] if writable else typed
    with contextlib.suppress(OSError):
        while piece := os.read(main, 65536):
            printed += piece
    os.close(main)
    assert b"60000\r\n" in printed[-1000:], printed  # of the echo a terminal drops what it has no room for


def test_too_long(act):
    act.fail("shell", "--time", "99999999999s", "--", "true", status=125, match="at most 24855 days")


# Listens as a keeper would, and says what it hears.
PRETENDS = """
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("\\0" + sys.argv[1])
s.listen()
print("up", flush=True)
print(s.accept()[0].recv(100), flush=True)
"""


def test_a_keeper_of_another_user(act, stranger):
    """It has a like name, and nobody speaks to it."""
    run = f"keeper_1_{os.getpid():08x}"
    words = user_fixtures.as_user(stranger, "/usr/bin/python3", "-c", PRETENDS, f"act-shell-{run}-0123456789abcdef")
    other = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"up\n"
    look = subprocess.run([act.programs / "act-node", "session", run, "look"], env=act.env, timeout=300)
    assert look.returncode == 77 and other.communicate(timeout=300)[0] == b"b''\n"
