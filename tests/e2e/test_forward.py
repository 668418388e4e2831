"""`a forward`: ports of a run's node, here."""
import contextlib
import hashlib
import os
import pathlib
import random
import re
import signal
import socket
import subprocess

import pytest

import sshd
import test_shell
import tmux
import user_fixtures
import waiting

# Answers each connection with the sum of what it read, after its end; or sends back each line at once.
SERVER = """
import hashlib, socketserver, sys
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        first = self.rfile.readline()
        if first.startswith(b"give "):
            self.wfile.write(b"x" * int(first.split()[1]))
        elif first == b"echo\\n":
            for line in self.rfile:
                self.wfile.write(line)
        else:
            sum = hashlib.sha256(first)
            while data := self.rfile.read(65536):
                sum.update(data)
            self.wfile.write(sum.hexdigest().encode())
class Server(socketserver.ThreadingTCPServer):
    request_queue_size = 1024
    daemon_threads = True
with Server(("127.0.0.1", 0), Handler) as server:
    print("port", server.server_address[1], flush=True)
    server.serve_forever()
"""


@contextlib.contextmanager
def forwarded(act, run, *words):
    """The process, and the ports here."""
    process = act.start("forward", *words[:-1], run, words[-1])
    try:
        line = process.stdout.readline().decode()
        found = re.match(r"http://127\.0\.0\.1:(\d+)/ leads to port \d+ of run", line)
        assert found, (line, process.stderr.read())
        yield process, int(found[1])
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def server(act):
    """Starts the server as a run, and ends it. Gives the run and the port of its node."""
    runs = []

    def start(*before):
        runs.append(serve(act, *before))
        return runs[-1]
    yield start
    act.run("abort", "-y", *(run for run, _ in runs), status=None)


def serve(act, *before):
    act.write("server.py", SERVER)
    run = act.submit("python3", "server.py", before=before)
    act.until(lambda: "port" in act.run("logs", run, status=None).out, "the server listens")
    return run, int(re.search(r"port (\d+)", act.run("logs", run).out)[1])


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=300)


def ask(port, first, more=b""):
    with connect(port) as s:
        s.sendall(first + more)
        s.shutdown(socket.SHUT_WR)
        answer = b""
        while data := s.recv(1 << 20):
            answer += data
    return answer


def carries(here):
    assert ask(here, b"give 5\n") == b"xxxxx"
    assert ask(here, b"give 0\n") == b""
    assert ask(here, b"give 20000000\n") == b"x" * 20000000
    data = random.Random(3).randbytes(3_000_000)
    assert ask(here, b"sum\n", data).decode() == hashlib.sha256(b"sum\n" + data).hexdigest()
    with connect(here) as s:
        lines = s.makefile("rwb", 0)
        lines.write(b"echo\n")
        for i in range(20):
            lines.write(b"%d\n" % i)
            assert lines.readline() == b"%d\n" % i


def carries_many(here):
    """A thousand at once. One that nobody reads holds up only itself; one that is reset is over there, too."""
    stalled = connect(here)
    stalled.sendall(b"give 50000000\n")
    dropped = connect(here)
    dropped.sendall(b"echo\nx\n")
    assert dropped.recv(2) == b"x\n"
    dropped.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    dropped.close()
    sockets = [connect(here) for _ in range(1000)]
    for i, s in enumerate(sockets):
        s.sendall(b"echo\n%d\n" % i)
    for i, s in enumerate(sockets):
        assert s.makefile("rb").readline() == b"%d\n" % i
    for s in sockets:
        s.close()
    assert ask(here, b"give 3000000\n") == b"x" * 3000000
    got = 0
    while data := stalled.recv(1 << 20):
        got += len(data)
    assert got == 50000000


def test_a_port(act, place, server):
    run, port = server(*place)
    with forwarded(act, run, f"0:{port}") as (_, here):
        carries(here)
        carries_many(here)


def test_a_node_that_is_named(act, lab, server):
    """By its number or its name. Here the nodes have one loopback interface."""
    run, port = server("-c", "lab", "-n", "4")
    for node in ("1", "n2"):
        with forwarded(act, run, "--node", node, f"0:{port}") as (_, here):
            assert ask(here, b"give 5\n") == b"xxxxx"


def test_another_user(act, server, stranger):
    """Everybody on this machine can connect to its loopback interface; one who has hung up already is nobody's."""
    run, port = server()
    script = ("import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); "
              "s.sendall(b'give 5\\n'); print(len(s.recv(10)))")
    with forwarded(act, run, f"0:{port}") as (process, here):
        words = user_fixtures.as_user(stranger, "/usr/bin/python3", "-c", script, str(here))
        other = subprocess.run(words, capture_output=True, text=True)
        assert other.returncode == 1 and "ConnectionResetError" in other.stderr, other
        refused = b"was refused: it is another user's, or was closed at once"
        act.until(lambda: refused in process.stderr.readline(), "it is said")
        assert ask(here, b"give 5\n") == b"xxxxx"


def test_from_an_ipv6_socket(act, server):
    run, port = server()
    with forwarded(act, run, f"0:{port}") as (_, here):
        with socket.socket(socket.AF_INET6) as s:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            s.connect(("::ffff:127.0.0.1", here))
            s.sendall(b"give 5\n")
            assert s.makefile("rb").read(5) == b"xxxxx"


def child_of(process):
    """What 'a __tunnel' of 'a forward' has become."""
    pids = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (pid,) = [pid for pid in pids if b"tunnel" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
    return int(pid)


def test_a_connection_that_is_lost(act, server):
    run, port = server()
    with forwarded(act, run, f"0:{port}") as (process, here):
        with connect(here) as s:
            s.sendall(b"echo\nx\n")
            assert s.recv(2) == b"x\n"
            os.kill(child_of(process), signal.SIGKILL)
            with pytest.raises(ConnectionResetError):
                while s.recv(1):
                    pass
        carries(here)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read().decode()
        assert f"the connection to run '{run}' is lost" in said and f"connected to run '{run}' again" in said


def test_a_machine_that_was_away(act, hosts, host, server):
    run, port = server("-c", "lab")
    with forwarded(act, run, f"0:{port}") as (process, here):
        host.stop()
        act.until(lambda: b"is lost" in process.stderr.readline(), "it is said")
        host.start()
        act.until(lambda: b"again" in process.stderr.readline(), "it is connected again")
        carries(here)


@contextlib.contextmanager
def beside(act, run, port, script, env=None):
    """The process of `a ssh -L` with a script, and two ports here that lead to the same one."""
    words = [act.programs / "a", "ssh", "-L", f"0:{port}", "--forward", f"0:localhost:{port}", run, "--", "sh", "-c"]
    process = waiting.Process([*words, script], env={**act.env, **(env or {})}, cwd=act.project, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        found = [re.match(rb"http://127\.0\.0\.1:(\d+)/ leads to port", process.stderr.readline()) for _ in range(2)]
        assert all(found), process.stderr.read()
        yield process, *(int(one[1]) for one in found)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.smoke
def test_beside_a_command(act, server):
    """`a ssh -L`: input, output and exit status are the command's, and with it the ports end."""
    run, port = server()
    with beside(act, run, port, "read x; echo $x; read x; exit 7") as (process, here, other):
        process.stdin.write(b"up\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"up\n"
        carries(here)
        os.kill(child_of(process), signal.SIGKILL)
        act.until(lambda: b"connected to run" in process.stderr.readline(), "it is connected again")
        carries(other)
        out, err = process.communicate(b"\n")
        assert (process.returncode, out, err) == (7, b"", b"")
    act.fail("ssh", "-L", f"{port}:80", run, "--", "true", status=2, match=f"port {port} of this machine is taken")


def test_beside_a_command_of_a_node(act, lab, server):
    run, port = server("-c", "lab", "-n", "2")
    with beside(act, run, port, "read x; hostname") as (process, here, _):
        carries(here)
        out, err = process.communicate(b"\n")
        assert process.returncode == 0 and out == b"n1\n", err


def test_beside_a_command_that_is_ended(act, hosts, host, server):
    """SIGTERM ends both; Ctrl-C is the command's."""
    run, port = server("-c", "lab")
    with beside(act, run, port, "echo up; cat") as (process, here, _):
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        carries(here)
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 255  # as ssh says that it was ended


@pytest.mark.skipif(tmux.MISSING is not None, reason=str(tmux.MISSING))
def test_beside_a_shell(act, server, terminal):
    """Ctrl-C is the shell's; at the end the terminal is as it was."""
    run, port = server()
    screen = test_shell.shell_on(terminal, "ssh", "-L", f"0:{port}", run)
    here = int(screen.until(r"http://127\.0\.0\.1:(\d+)/ leads to port")[1])
    screen.type("echo sle''eps; sleep 1000", "Enter")
    screen.until("^sleeps")
    screen.type("C-c")
    screen.until(r"\^C")
    screen.type("echo st''ill here", "Enter")
    screen.until("^still here")
    carries(here)
    screen.type("exit 3", "Enter")
    screen.ends(3)


def test_nothing_listens(act, server):
    run, _ = server()
    free = sshd.free_port()
    with forwarded(act, run, f"0:{free}") as (process, here):
        with pytest.raises(ConnectionResetError):
            ask(here, b"x")
        act.until(lambda: b"no connection to port" in process.stderr.readline(), "it is said")


def test_the_run_ends(act, server):
    run, port = server()
    with forwarded(act, run, f"0:{port}") as (process, here):
        carries(here)
        act.run("abort", "-y", run)
        with contextlib.suppress(ConnectionError):  # the next one that is not taken shows it
            ask(here, b"x")
        assert process.wait(300) == 0
        assert f"run '{run}' has ended: Canceled" in process.stderr.read().decode()


def test_what_cannot_be_forwarded(act):
    run = act.finish("true")
    act.fail("forward", run, "0:80", status=1, match="is Completed: there is nothing left to connect to")
    act.fail("forward", "nothing", "0:80", status=3, match="no run 'nothing'")
    for word in ("x", "0", "65536", "80:", ":80", "80:x", "80:localhost:x", "80::x", "-1:80", "65536:80"):
        act.fail("forward", "--", run, word, status=2, match="is not a port: PORT, or LOCAL:PORT")
        act.fail("ssh", "-L", word, run, status=2, match="is not a port: PORT, or LOCAL:PORT")
    for host in ("db.example.org", "90", "", "1:2"):
        act.fail("forward", run, f"80:{host}:100", status=2, match=f"leads to '{host}': only ports of the node itself")
    act.fail("ssh", "-L", "0:80", run, status=1, match="is Completed: there is nothing left to connect to")
    act.fail("ssh", "-L", "0:80", "10.0.0.4", status=2, match="'10.0.0.4' is an address")
    act.fail("forward", run, status=2, match="needs more")


def test_a_port_that_is_taken(act, server):
    run, port = server()
    act.fail("forward", "--node", "n9", run, f"0:{port}", status=None, match="n9")
    act.fail("forward", run, str(port), status=2, match="the run is on this machine, so if it is the run's")
    act.fail("forward", run, f"{port}:80", status=2, match=f"port {port} of this machine is taken: name another one")


def test_a_run_that_waits(act):
    first = act.submit("sleep", "300", before=("-n", "2"))
    second = act.submit("true", before=("-n", "2"))
    act.until_state(first, "Running")
    act.fail("forward", second, "0:80", status=5, match=f"run '{second}' is Queued: its node is known when it runs")
    act.run("abort", "-y", first, second)
