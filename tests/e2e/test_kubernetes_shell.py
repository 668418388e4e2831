"""Commands in pods by WebSocket: 'a ssh' without kubectl."""
import fcntl
import hashlib
import json
import os
import pathlib
import pty
import random
import shutil
import struct
import subprocess
import termios

import pytest

import test_attach
import test_forward
import test_shell
from connect_proxy import ConnectProxy

K8S = ("-c", "k8s")


def use(act, kubernetes, name, **cluster):
    """From now on the kubeconfig says who to be as this one of the double does, and this of the cluster besides; None:
    not what it says."""
    config = json.loads(open(kubernetes.kubeconfigs[name]).read())
    merged = {**config["clusters"][0]["cluster"], **cluster}
    config["clusters"][0]["cluster"] = {k: v for k, v in merged.items() if v is not None}
    path = act.scratch / "kc"
    path.write_text(json.dumps(config))
    path.chmod(0o600)


@pytest.fixture
def run(act, kubernetes):
    """A run with a pod; no kubectl is in PATH."""
    act.env["PATH"] = str(act.programs)
    use(act, kubernetes, "token")
    kubernetes.cluster(k8s={"kubeconfig": str(act.scratch / "kc")})
    run = act.submit("/bin/sleep", "1000", before=K8S)
    act.until_state(run, "Running")
    yield run
    use(act, kubernetes, "token")
    act.run("abort", run)


def shell(act, run, script, typed=b"", status=0):
    """Status, output and errors of a script in its pod, with this input."""
    done = subprocess.run([act.programs / "a", "ssh", run, "--", "sh", "-c", script], input=typed, env=act.env,
                          cwd=act.project, capture_output=True, timeout=300)
    assert done.returncode == status, done.stderr.decode(errors="replace")
    return done.stdout, done.stderr


@pytest.mark.smoke
def test_output_errors_and_status(act, run):
    assert shell(act, run, "echo out; echo err >&2") == (b"out\n", b"err\n")
    assert shell(act, run, "exit 3", status=3) == (b"", b"")
    assert shell(act, run, "basename $PWD") == (b"code\n", b"")


def test_ten_megabytes_there_and_back(act, run):
    data = random.Random(1).randbytes(10_000_000)
    out, _ = shell(act, run, "cat", data)
    assert hashlib.sha256(out).digest() == hashlib.sha256(data).digest()


def test_an_input_that_is_a_file(act, run):
    data = random.Random(2).randbytes(300_000)
    path = act.write("input", data)
    with open(path, "rb") as file:
        out = subprocess.run([act.programs / "a", "ssh", run, "--", "cat"], stdin=file, env=act.env, cwd=act.project,
                             capture_output=True, timeout=300, check=True).stdout
    assert out == data
    assert act.run("ssh", run, "--", "cat").out == ""  # /dev/null


def test_a_reader_that_has_enough(act, run):
    command = f"'{act.programs}/a' ssh {run} -- sh -c 'yes' | head -n 2"
    done = subprocess.run(["/bin/sh", "-c", command], env={**act.env, "PATH": "/usr/bin:/bin"}, cwd=act.project,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    assert done.stdout == b"y\ny\n" and done.returncode == 0


def read_until(fd, wanted):
    text = b""
    while wanted not in text:
        text += os.read(fd, 65536)
    return text


def test_a_terminal(act, kubernetes, run):
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(act.project)
        os.execve(act.programs / "a", ["a", "ssh", run, "--", "sh", "-c", "tty >/dev/null && echo is-one; "
                                       "read line; echo got $line; exit 4"], {**act.env, "TERM": "xterm"})
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("4H", 33, 77, 0, 0))
    read_until(fd, b"is-one")
    assert termios.tcgetattr(fd)[3] & termios.ICANON == 0
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("4H", 44, 88, 0, 0))
    act.until(lambda: {"Width": 88, "Height": 44} in kubernetes.tell("look")["resizes"], "the new size is told")
    os.write(fd, b"word\r")
    read_until(fd, b"got word")
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 4
    assert termios.tcgetattr(fd)[3] & termios.ICANON
    os.close(fd)


def test_a_signal_gives_the_terminal_back(act, run):
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(act.project)
        os.execve(act.programs / "a", ["a", "ssh", run, "--", "sh", "-c", "echo up; sleep 1000"], act.env)
    read_until(fd, b"up")
    os.kill(pid, 15)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == -15
    assert termios.tcgetattr(fd)[3] & termios.ICANON
    os.close(fd)


def fail(act, run, match, status=1):
    return act.fail("ssh", run, "--", "true", match=match, status=status)


def test_refused_before_the_upgrade(act, kubernetes, run):
    kubernetes.forbid({"verb": "*", "resource": "pods/exec"})
    assert 'resource "pods/exec"' in fail(act, run, "HTTP 403", status=None)
    kubernetes.forbid()
    kubernetes.faults({"match": "/exec", "status": 404, "message": "pods \"x\" not found"})
    fail(act, run, 'pods "x" not found', status=None)
    kubernetes.faults({"match": "/exec", "cut": "before"})
    fail(act, run, "cannot run a command", status=None)


def fake_kubectl(tmp_path, act):
    """It says what it was asked; the environment that has it."""
    (tmp_path / "kubectl").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "kubectl").chmod(0o755)
    return {"PATH": f"{tmp_path}:{act.env['PATH']}"}


def test_the_rights_that_a_server_asks_for(act, kubernetes, run, tmp_path):
    """From 1.35 on a WebSocket needs create beside get; with create alone kubectl gets in by a POST."""
    kubernetes.forbid({"verb": "create", "resource": "pods/exec"})
    act.run("ssh", run, "--", "true")
    kubernetes.tell("settings", version="1.35")
    fail(act, run, 'cannot create resource "pods/exec".*; ask whoever runs the cluster for this right', status=4)
    kubernetes.forbid({"verb": "get", "resource": "pods/exec"})
    without = {"PATH": str(tmp_path)}
    act.fail("ssh", run, "--", "true", match='cannot get resource "pods/exec".*which is enough with kubectl in PATH',
             status=4, env=without)
    said = act.run("ssh", run, "--", "hostname", env=fake_kubectl(tmp_path, act)).out.splitlines()
    assert "exec" in said and said[-1] == "hostname"


def test_a_server_that_ends_early(act, kubernetes, run):
    kubernetes.faults({"match": "/exec", "cut": "within", "bytes": 3})
    done = act.run("ssh", run, "--", "sh", "-c", "echo one; sleep 1000", status=None)
    assert done.status and done.out == "" and "the connection" in done.err


def test_a_server_that_is_gone(act, kubernetes, run):
    """It takes the connection away from nobody, and says nothing any more."""
    kubernetes.tell("settings", execDead=True)
    done = act.run("ssh", run, "--", "true", env={"ACT_STALL_TIMEOUT": "1"}, status=None)
    kubernetes.tell("settings", execDead=False)
    assert done.status and "the connection is silent, and nobody answers there" in done.err, done


def test_a_command_that_is_silent_is_waited_for(act, kubernetes, run):
    """Its server answers what asks whether it is there."""
    done = act.run("ssh", run, "--", "sh", "-c", "sleep 4; echo done", env={"ACT_STALL_TIMEOUT": "1"})
    assert done.out == "done\n"


def test_a_server_that_is_too_old(act, kubernetes, run, tmp_path):
    kubernetes.tell("settings", execProtocols=["v4.channel.k8s.io"])
    assert "kubectl" in fail(act, run, "run a command in the pod", status=None)
    said = act.run("ssh", run, "--", "hostname", env=fake_kubectl(tmp_path, act)).out.splitlines()
    pod = kubernetes.pods_of(kubernetes.objects("Job")[0]["metadata"]["name"])[0]["metadata"]["name"]
    assert said[said.index("exec"):][:4] == ["exec", "--stdin", f"pod/{pod}", "--container=main"]
    assert said[-1] == "hostname"


def test_a_client_certificate(act, kubernetes, run):
    use(act, kubernetes, "certificate")
    assert shell(act, run, "echo hello") == (b"hello\n", b"")
    use(act, kubernetes, "certificate", **{"certificate-authority-data": None})
    fail(act, run, "cannot trust", status=None)


def test_through_a_proxy(act, kubernetes, run):
    name = kubernetes.url.removeprefix("https://")
    proxy = ConnectProxy({name: ("127.0.0.1", int(name.split(":")[1]))})
    use(act, kubernetes, "token", **{"proxy-url": f"http://127.0.0.1:{proxy.port}"})
    try:
        assert shell(act, run, "echo hello") == (b"hello\n", b"")
        assert ("CONNECT", name) in proxy.seen and b"the-token-of-tests" not in proxy.bytes
    finally:
        proxy.close()


def test_a_plugin_and_its_token(act, kubernetes, run):
    act.env["PATH"] = "/usr/bin:/bin"  # for the plugin
    before = kubernetes.plugin_runs()
    use(act, kubernetes, "exec")
    assert shell(act, run, "echo hello") == (b"hello\n", b"")
    assert kubernetes.plugin_runs() > before
    asked = [r for r in kubernetes.requests() if "/exec?" in r["url"]]
    assert asked[-1]["status"] == 101 and asked[-1]["headers"]["user-agent"].startswith("act/")
    assert "the-token-of-tests" not in asked[-1]["url"]


def test_by_kubectl(act, kubernetes, terminal):
    """Where the server is too old for `a`, the real kubectl carries ports and input."""
    if not shutil.which("kubectl"):
        pytest.skip("kubectl is not installed")
    kubernetes.cluster()
    kubernetes.tell("settings", execOldFor="act/")
    run, port = test_forward.serve(act, *K8S)
    with test_forward.forwarded(act, run, f"0:{port}") as (process, here):
        assert b"kubectl" in pathlib.Path(f"/proc/{test_forward.child_of(process)}/cmdline").read_bytes()
        test_forward.carries(here)
        test_forward.carries_many(here)
    act.run("abort", "-y", run)
    test_attach.interrupts(act, test_attach.listens(act, before=K8S))
    test_attach.types(act, test_attach.reads(act, *K8S))
    test_shell.uses(act, terminal, *K8S)
    done = subprocess.run([act.programs / "a", *K8S, "shell", "--", "sh", "-c", "cat; exit 3"], input=b"typed\n",
                          env=act.env, cwd=act.project, capture_output=True, timeout=300)
    assert done.returncode == 3 and done.stdout == b"typed\n", done
