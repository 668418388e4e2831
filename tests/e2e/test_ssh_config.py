"""`a ssh-config`: ssh, scp and sftp to the nodes of runs, by the real programs of OpenSSH."""
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess

import pytest

import sshd
import test_forward
import waiting

ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture
def client(act, of_runs):
    """Runs a program of OpenSSH with what 'a ssh-config' prints."""
    def run(program, *words, status=0, typed=b"", match=""):
        done = subprocess.run([program, *of_runs, *words], env=act.env, cwd=act.project, input=typed,
                              capture_output=True, timeout=300)
        assert done.returncode == status, done
        assert match in done.stderr.decode(), done
        return done.stdout
    return run


@pytest.fixture
def run(act):
    run = act.submit("sleep", "1000")
    act.until_state(run, "Running")
    yield run
    act.run("abort", "-y", run)


def sshd_folders():
    """Also those of others on this machine, which come and go."""
    return set(pathlib.Path("/tmp").glob("act-sshd.*"))


def test_nothing_is_left_when_the_run_ends(act, client, run):
    before = sshd_folders()
    session = subprocess.Popen(["ssh", "-F", act.scratch / "of_runs", f"act-{run}", "echo up; exec sleep 1000"],
                               env=act.env, cwd=act.project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert session.stdout.readline() == b"up\n" and sshd_folders() != before
    (shell,) = subprocess.run(["pgrep", "-P", str(session.pid)], stdout=subprocess.PIPE, text=True).stdout.split()
    os.kill(int(shell), signal.SIGTERM)
    assert session.wait(300) == 255
    act.until(lambda: sshd_folders() <= before, "the folder is removed")


@pytest.mark.smoke
def test_the_programs_of_openssh(act, client, run):
    before = sshd_folders()
    assert "Host act-*\n" in act.run("ssh-config").out
    said = client("ssh", f"act-{run}", "cat; echo $ACT_RUN_ID; exit 7", status=7, typed=b"x\n")
    assert said == f"x\n{run}\n".encode()
    there = act.write("there", "some text")
    client("scp", f"act-{run[-8:]}:{there}", "here")
    assert (act.project / "here").read_text() == "some text"
    act.until(lambda: sshd_folders() <= before, "the servers have removed their folders")


@pytest.fixture
def there(act, client, place):
    """A folder on the last node of a run of each platform, as scp names it."""
    run = act.submit("sleep", "1000", before=place)
    act.until_state(run, "Running")
    host = f"act-{run}.{act.run('nodes', '--json', run).json['nodes'][-1]['node']}"
    folder = client("ssh", host, "mktemp -d").decode().strip()
    yield f"{host}:{folder}"
    client("ssh", host, f"rm -r {folder}")
    act.run("abort", "-y", run)


def test_files_there_and_back(act, client, there):
    data = os.urandom(3_000_000)
    act.write("here", data)
    client("scp", "here", f"{there}/one")
    host, folder = there.split(":")
    typed = (f"rename {folder}/one {folder}/two", f"get {folder}/two {act.scratch}/back", f"put here {folder}/three",
             "")
    client("sftp", "-b", "-", host, typed="\n".join(typed).encode())
    assert (act.scratch / "back").read_bytes() == data
    client("scp", f"{there}/three", "three")
    assert (act.project / "three").read_bytes() == data


def test_rsync(act, client, there):
    """A folder there and back, and then what changed."""
    if not shutil.which("rsync"):
        pytest.skip("no rsync")
    ssh = f"ssh -F {act.scratch}/of_runs"

    def copy(*ways):
        words = ["rsync", "-a", "--delete", "-e", ssh, *ways]
        subprocess.run(words, env=act.env, cwd=act.project, check=True, stdin=subprocess.DEVNULL, timeout=300)
    for data in (os.urandom(300_000), b"short"):
        act.write("data/sub/file", data)
        copy("data/", f"{there}/")
        copy(f"{there}/", "back/")
        assert (act.project / "back/sub/file").read_bytes() == data


def through_socks(proxy, port, sent):
    """What a port of the loopback interface there answers, by way of 'ssh -D'."""
    with socket.create_connection(("127.0.0.1", proxy), timeout=300) as s:
        said = s.makefile("rb")
        s.sendall(b"\x05\x01\x00")
        assert said.read(2) == b"\x05\x00"
        s.sendall(b"\x05\x01\x00\x01\x7f\x00\x00\x01" + port.to_bytes(2, "big"))
        assert said.read(10)[:2] == b"\x05\x00"
        s.sendall(sent)
        s.shutdown(socket.SHUT_WR)
        return said.read()


def test_as_an_editor_does(act, client, of_runs, there):
    """Several connections at once: a server of its own there, ports of its choice by 'ssh -D' and to a socket, other
    commands, and whole folders."""
    host, folder = there.split(":")
    before = sshd_folders()
    ssh = ["ssh", *of_runs, "-o", "ExitOnForwardFailure=yes"]
    files = {"env": act.env, "cwd": act.project, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    server = waiting.Process([*ssh, host, "exec python3 -"], **files)
    server.stdin.write(test_forward.SERVER.encode())
    server.stdin.close()
    port = int(server.stdout.readline().split()[1])
    proxy = sshd.free_port()
    own = act.scratch / "own"
    ways = ["-D", f"127.0.0.1:{proxy}", "-L", f"{own}:localhost:{port}"]
    ports = waiting.Process([*ssh, *ways, host, "echo up; cat"], **files)
    assert ports.stdout.readline() == b"up\n"
    assert through_socks(proxy, port, b"give 300000\n") == b"x" * 300000
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(own))
        s.sendall(b"give 5\n")
        assert s.makefile("rb").read(5) == b"xxxxx"
    act.write("tree/sub/file", "in a folder")
    client("scp", "-r", "tree", there)
    assert client("ssh", host, f"cat {folder}/tree/sub/file") == b"in a folder"
    client("scp", "-r", f"{there}/tree", "back")
    assert (act.project / "back/sub/file").read_text() == "in a folder"
    for process in ports, server:
        process.terminate()
        process.wait()
        process.stdout.close()
    ports.stdin.close()
    act.until(lambda: sshd_folders() <= before, "the servers have removed their folders")


def test_a_node_of_a_job(act, lab, client):
    run = lab.shell("exec sleep 1000", n=4)
    act.until_state(run, "Running")
    for host, node in ((f"act-{run}", "n1"), (f"act-{run}.n2", "n2"), (f"act-{run}.1", "n2")):
        assert client("ssh", host, "hostname").decode().strip() == node
    client("ssh", f"act-{run}.n7", "true", status=255, match="has no node 'n7'")
    act.run("abort", "-y", run)


def test_a_machine_behind_ssh(act, hosts, host, client):
    run = hosts.submit("sleep", "1000")
    act.until_state(run, "Running")
    assert client("ssh", f"act-{run}", "echo $ACT_RUN_ID").decode().strip() == run
    act.run("abort", "-y", run)


def test_what_cannot_be_reached(act, client, run):
    client("ssh", "act-nothing", "true", status=255, match="no run 'nothing'")
    client("ssh", "-l", "nobody", f"act-{run}", "true", status=255, match=f"on this node you are '{ME}', not 'nobody'")
    ended = act.finish("true")
    client("ssh", f"act-{ended}", "true", status=255, match="is Completed: only the nodes of a running run")


def test_another_key_is_refused(act, client, run):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", act.scratch / "other"], check=True)
    client("ssh", "-o", f"IdentityFile={act.scratch}/other", "-o", "IdentityAgent=none", "-i", act.scratch / "other",
           "-o", f"CertificateFile={act.scratch}/none", f"act-{run}", "true")  # ACT's own key is still tried
    key = next(pathlib.Path(act.env["ACT_HOME"]).glob("config/ssh-key/id_ed25519"))
    key.rename(act.scratch / "away")
    client("ssh", "-i", act.scratch / "other", f"act-{run}", "true", status=255, match="Permission denied")


@pytest.mark.parametrize("name", ["a%d b", "it's"])
def test_odd_paths(act, client, name):
    """"%" begins a token of ssh."""
    act.env["ACT_HOME"] = str(act.scratch / name)
    (act.scratch / "of_runs").write_text(act.run("ssh-config").out)
    run = act.submit("sleep", "1000")
    act.until_state(run, "Running")
    assert client("ssh", f"act-{run}", "echo $ACT_RUN_ID").decode().strip() == run
    act.run("abort", "-y", run)


@pytest.mark.parametrize("name", ['a"b', "a${HOME}"])
def test_paths_that_ssh_cannot_read(act, name):
    home = act.scratch / name
    act.fail("ssh-config", "--install", status=7, match="OpenSSH cannot read the path", env={"ACT_HOME": str(home)})
    assert not (pathlib.Path(act.env["HOME"]) / ".ssh").exists() and not (home / "config").exists()


def test_installed_once(act):
    ssh = pathlib.Path(act.env["HOME"]) / ".ssh"
    ssh.mkdir(mode=0o700)
    real = act.scratch / "dotfiles"
    real.write_text("Host x\n  User me\n")
    real.chmod(0o640)
    (ssh / "config").symlink_to(real)
    act.run("ssh-config", "--install")
    assert (ssh / "config").is_symlink() and real.stat().st_mode & 0o777 == 0o640
    assert real.read_text() == "Include act_config\nHost x\n  User me\n"
    assert (ssh / "act_config").read_text() == act.run("ssh-config").out
    before = real.stat().st_mtime_ns
    act.run("ssh-config", "--install")
    assert real.stat().st_mtime_ns == before
