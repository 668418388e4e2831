"""What holds for all verbs that lead to the nodes of runs: `a shell`, `a notebook`, `a attach`, `a forward`, `a ssh`,
and ssh by `a ssh-config`."""
import contextlib
import json
import os
import pathlib
import re
import select
import subprocess

import pytest

import test_attach
import test_forward
import test_notebook
import test_tensorboard
import tmux
import user_fixtures
import waiting

on_a_terminal = pytest.mark.skipif(tmux.MISSING is not None, reason=str(tmux.MISSING))


def start(act, *words):
    """A command whose input stays open."""
    return waiting.Process(list(words), env=act.env, cwd=act.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, start_new_session=True)


def until_said(process, pattern):
    """Waits until it has printed that."""
    seen = b""
    while not re.search(pattern, seen):
        ready = select.select([process.stdout, process.stderr], [], [], waiting.PATIENCE_S)[0]
        piece = os.read(ready[0].fileno(), 65536) if ready else b""
        assert piece, seen
        seen += piece


def of_the_way(run):
    """The processes of this machine that lead to a run, here and on its nodes, which are on it as well."""
    verbs = {b"tunnel", b"session", b"input", b"interrupt", b"__tunnel", b"__session", b"__input", b"__interrupt",
             b"ssh", b"logs", b"act-sshd"}
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().replace(b"'", b" ").replace(b"\0", b" ").split()
            if os.fsencode(run) in words and verbs & set(words):
                found[path.parent.name] = words
    return found


def test_nothing_outlives_a_command_that_is_killed(act, place, of_runs):
    """Neither here nor on the node; the run goes on, or ends as its shell does."""
    run, port = test_forward.serve(act, *place)
    a = act.programs / "a"
    ways = {
        "forward": (start(act, a, "forward", run, f"0:{port}"), rb"leads to port"),
        "attach": (start(act, a, "attach", run), rb"port \d+"),
        "beside": (start(act, a, "ssh", "-L", f"0:{port}", run, "--", "sh", "-c", "echo up; cat"), rb"^up|\nup"),
        "ssh": (start(act, "ssh", *of_runs, f"act-{run}", "echo up; cat"), rb"^up|\nup"),
    }
    for process, said in ways.values():
        until_said(process, said)
    act.until(lambda: len(of_the_way(run)) >= len(ways), lambda: of_the_way(run))
    for process, _ in ways.values():
        process.kill()
    act.until(lambda: not of_the_way(run), lambda: of_the_way(run))
    for process, _ in ways.values():
        process.communicate()
    assert act.state(run) == "Running"
    act.run("abort", "-y", run)


def test_the_run_ends_meanwhile(act, place, of_runs):
    """What is a part of its job ends with it, and says so; elsewhere a shell goes on until it is left."""
    run, port = test_forward.serve(act, *place)
    a = act.programs / "a"
    ways = {
        "attach": (start(act, a, "attach", run), rb"port \d+"),
        "beside": (start(act, a, "ssh", "-L", f"0:{port}", run, "--", "sh", "-c", "echo up; cat"), rb"^up|\nup"),
        "ssh": (start(act, "ssh", *of_runs, f"act-{run}", "echo up; cat"), rb"^up|\nup"),
    }
    for process, said in ways.values():
        until_said(process, said)
    act.run("abort", "-y", run)
    is_job = place not in ((), ("-c", "lab"))
    for name, (process, _) in ways.items():
        if is_job or name == "attach":
            assert process.wait() != 0, name  # although its input goes on
        process.communicate()
    act.until(lambda: not of_the_way(run), lambda: of_the_way(run))


def test_the_run_has_not_begun(act, of_runs):
    first = act.submit("sleep", "1000", before=("-n", "2"))
    act.until_state(first, "Running")
    run = act.submit("true", before=("-n", "2"))
    waits = f"run '{run}' is Queued: its node is known when it runs"
    act.fail("forward", run, "0:80", status=5, match=waits)
    act.fail("ssh", "-L", "0:80", run, status=5, match=waits)
    for words in ([act.programs / "a", "ssh", run, "--", "true"], ["ssh", *of_runs, f"act-{run}", "true"]):
        done = subprocess.run(words, env=act.env, cwd=act.project, capture_output=True, text=True, timeout=300)
        assert done.returncode and f"run '{run}' is Queued" in done.stderr, done
    attached = start(act, act.programs / "a", "attach", run)
    until_said(attached, rb"Ctrl-C interrupts it")
    act.run("abort", "-y", first)
    attached.communicate()
    assert attached.returncode == 0


# What is typed, and what it prints first.
TYPED = {"forward": "forward {run} 0:{port}", "beside": "ssh -L 0:{port} {run} -- cat", "notebook": "notebook",
         "tensorboard": "tensorboard {run}"}


def address_on(screen):
    return re.search(r"http://127\.0\.0\.1:\d+/\S*", screen.text("-J"))


def is_served(address, verb):
    if verb in ("forward", "beside"):
        return test_forward.ask(int(re.search(r":(\d+)/", address)[1]), b"give 5\n") == b"xxxxx"
    return test_notebook.get(address)[0] == 200


@on_a_terminal
@pytest.mark.parametrize("verb", TYPED)
def test_a_narrow_terminal(act, terminal, verb):
    """It has 20 columns. Ctrl-Z stops the command, which then goes on in the foreground. Ctrl-C ends it, and leaves the
    terminal as it was."""
    test_notebook.double(act)
    test_tensorboard.package(act)
    run, port = test_forward.serve(act)
    screen = terminal(columns=20, rows=60, shell=True)
    screen.type(f"stty -g >{act.scratch}/before", "Enter", "a " + TYPED[verb].format(run=run, port=port), "Enter")
    address = act.until(lambda: address_on(screen), "the address is there")[0]
    screen.type("C-z")
    screen.until("Stopped")
    screen.type("fg", "Enter")
    assert is_served(address, verb)
    screen.type("C-c")
    screen.type(f"stty -g >{act.scratch}/after; echo o''ver", "Enter")
    screen.until("^over")
    assert (act.scratch / "before").read_text() == (act.scratch / "after").read_text()
    act.run("abort", "-y", run)


# ---- another user of this machine, of the login node, of the node

# Tries all that it is given, and prints what it got; a page that was not found is nothing.
TRIES = """
import contextlib, json, os, socket, sys
given, got = json.load(sys.stdin), []
def ask(kind, address, what, type=socket.SOCK_STREAM):
    s = socket.socket(kind, type)
    s.settimeout(20)
    with contextlib.suppress(OSError), s:
        s.connect(address)
        s.send(what)
        data = s.recv(100)
        if data and b" 404 " not in data:
            got.append((str(address), repr(data)))
for port in given["ports"]:
    ask(socket.AF_INET, ("127.0.0.1", port), b"GET / HTTP/1.0\\r\\n\\r\\n")
for name in given["names"]:
    for packet in b"h" + bytes(70), b"l", b"w", b"c", b"dmine\\n":
        ask(socket.AF_UNIX, "\\0" + name, packet, socket.SOCK_SEQPACKET)
for path in given["paths"]:
    ask(socket.AF_UNIX, path, b"GET / HTTP/1.0\\r\\n\\r\\n")
    with contextlib.suppress(OSError):
        got.append((path, os.listdir(path) if os.path.isdir(path) else open(path).read()))
for name in os.listdir("/proc"):
    for path in f"/proc/{name}/cmdline", f"/proc/{name}/environ":
        with contextlib.suppress(OSError):
            data = open(path, "rb").read().decode(errors="replace")
            got += [(path, secret) for secret in given["secrets"] if secret in data]
print(json.dumps(got))
"""


def listens_elsewhere(pids):
    """The sockets of these processes that listen at another address than 127.0.0.1."""
    inodes = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            inodes |= {os.readlink(fd) for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
    rows = [line.split() for table in ("tcp", "tcp6") for line in open(f"/proc/net/{table}").readlines()[1:]]
    return [row for row in rows
            if row[3] == "0A" and f"socket:[{row[9]}]" in inodes and not row[1].startswith("0100007F:")]


def test_another_user(act, place, of_runs, stranger):
    """He gets nothing from any port, socket, folder or token, and learns no token; what he tries does no harm."""
    test_notebook.double(act)
    test_tensorboard.package(act)
    act.env["ACT_LOCAL_SLOTS"] = "8"  # for four runs at once
    place = place[:2]
    before = ("-p", json.dumps({"env": {"PYTHONPATH": act.env["PYTHONPATH"]}}), *place)
    a, (served, port) = act.programs / "a", test_forward.serve(act, *place)
    run = test_attach.reads(act, *place)
    typing = test_attach.typing(act, run)
    beside = start(act, "ssh", *of_runs, f"act-{run}", "echo up; cat")
    until_said(beside, rb"up")
    shell = start(act, a, *place, "shell", "--", "sh", "-c", "echo up; cat")
    until_said(shell, rb"up")
    with test_forward.forwarded(act, served, f"0:{port}") as (_, here), \
            test_notebook.opened(act, *before, "notebook") as (notebook, page, _), \
            test_tensorboard.shown(act, served) as (_, curves):
        names = re.findall(r"@(act-shell-\S+)", open("/proc/net/unix").read())
        paths = re.findall(r"(/\S*act-\S+)", open("/proc/net/unix").read())
        paths += [str(path.parent) for path in map(pathlib.Path, paths)]
        paths += [str(p) for p in (*act.scratch.rglob("tensorboard-*"), *pathlib.Path("/tmp").glob("act-sshd.*"),
                                   *act.home.glob("config/ssh-key"))]
        assert place == ("-c", "k8s") or len(names) >= 3, names
        ports = [here, *(int(re.search(r":(\d+)/", address)[1]) for address in (page, curves))]
        given = {"ports": ports, "names": names, "paths": paths,
                 "secrets": [page.partition("=")[2], curves.rstrip("/").rpartition("/")[2]]}
        other = subprocess.run(user_fixtures.as_user(stranger, "/usr/bin/python3", "-c", TRIES), timeout=300,
                               input=json.dumps(given).encode(), capture_output=True, cwd="/")
        assert other.returncode == 0 and json.loads(other.stdout) == [], other
        assert not listens_elsewhere([*act.processes(), *of_the_way(run), *of_the_way(served)])
        assert test_forward.ask(here, b"give 5\n") == b"xxxxx" and test_notebook.get(page)[0] == 200
        typing.stdin.write(b"own\n")
        typing.stdin.flush()
        test_attach.until_printed(typing, b"read own")
        test_notebook.ends(notebook)
    assert "mine" not in act.run("logs", run).out
    act.run("abort", "-y", run, served)
    for process in typing, beside, shell:
        process.communicate()
