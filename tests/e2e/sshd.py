"""A private sshd on the loopback, with keys, a home folder and a known_hosts of its own."""
import contextlib
import json
import os
import pathlib
import random
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

import waiting
from act_tool import ASAN_OPTIONS

SSHD = pathlib.Path("/usr/sbin/sshd")
LOGIN = "lab"  # the name of the host in the client's configuration


def is_installed():
    return SSHD.exists() and shutil.which("ssh") is not None


def missing():
    return None if is_installed() else "OpenSSH is not installed: scripts/install-deps --test"


def as_machine(slots, more=""):
    """For Sshd.shell(): a machine of its own that has so many slots."""
    return ("unset ACT_HOME XDG_RUNTIME_DIR\n"
            f"export SHELL=/bin/bash ACT_LOCAL_SLOTS={slots} ASAN_OPTIONS={ASAN_OPTIONS}\n{more}")


def free_port():
    """It stays free while the server is down: it is none of those that the kernel gives to connections, that runs take
    or that a bed of Slurm has."""
    while True:
        port = random.randrange(7000, 10000)
        with contextlib.suppress(OSError), socket.socket() as s:
            s.bind(("127.0.0.1", port))
            return port


# Begins a machine of its own: it has a name, and sees of the folder of all machines its own one, and "store".
ENTER = """
set -e
hostname "$1"; all=$2; own=$3; shift 3
mkdir -p "$own/tmp" "$all/store"
mount -t tmpfs tmpfs /mnt
mkdir /mnt/own /mnt/store
mount --bind "$own" /mnt/own
mount --bind "$all/store" /mnt/store
mount -t tmpfs tmpfs "$all"
mkdir "$own" "$all/store"
mount --bind /mnt/own "$own"
mount --bind /mnt/store "$all/store"
exec "$@"
"""


class Sshd:
    """env makes ACT log in there as "lab". Where the path of folder is short, connections are shared. In a network
    namespace, space, it has this address and processes of its own: stop() ends them as when the power goes."""

    def __init__(self, folder, address="127.0.0.1", space=None):
        self.folder, self.process = pathlib.Path(folder), None
        self.address, self.space = address, space
        self.extra = ""  # more lines for sshd_config, from the next start() on
        self.home, self.runtime = self.folder / "home", self.folder / "rt"
        for path in (self.home, self.runtime):
            path.mkdir(parents=True, mode=0o700)
        if os.geteuid() == 0:
            pathlib.Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # it refuses to start without
        self.port = free_port()
        self.user_key = self._new_key("user")
        (self.folder / "authorized").write_text((self.folder / "user.pub").read_text())
        self.log, self.commands = self.folder / "sshd.log", self.folder / "commands"
        self.shell("")
        self._write_client()
        self.new_host_key()
        self.trust()
        self.start()

    def _new_key(self, name):
        path = self.folder / name
        path.unlink(missing_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True,
                       stdin=subprocess.DEVNULL)
        return path

    def _write_client(self):
        (self.folder / "ssh_config").write_text(
            f"Host {LOGIN}\n HostName {self.address}\n Port {self.port}\n"
            f"Host *\n User {os.environ.get('USER') or subprocess.getoutput('id -un')}\n IdentityFile {self.user_key}\n"
            f" IdentitiesOnly yes\n UserKnownHostsFile {self.folder}/known\n GlobalKnownHostsFile /dev/null\n")
        self.env = {"ACT_SSH": f"ssh -F {self.folder}/ssh_config", "XDG_RUNTIME_DIR": str(self.runtime)}

    def shell(self, script):
        """What the login shell does before it runs the command that it is given."""
        path = self.folder / "shell"
        path.write_text("#!/bin/bash\n"
                        f'printf "%s\\n" "${{SSH_ORIGINAL_COMMAND:0:20}}" >>{self.commands}\n'
                        f'{script}\n'
                        'exec "${ACT_TEST_SHELL:-/bin/bash}" -c "$SSH_ORIGINAL_COMMAND"\n')
        path.chmod(0o700)

    def new_host_key(self):
        self._new_key("host")

    def trust(self, *keys):
        """known_hosts holds the present host key, or nothing but these."""
        key = " ".join((self.folder / "host.pub").read_text().split()[:2])
        (self.folder / "known").write_text(f"[{self.address}]:{self.port} {key}\n" if not keys else "".join(keys))

    def start(self):
        config = self.folder / "sshd_config"
        config.write_text(
            f"Port {self.port}\nListenAddress {self.address}\nHostKey {self.folder}/host\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {self.folder}/authorized\nStrictModes no\nPasswordAuthentication no\n"
            f"SetEnv HOME={self.home}\nForceCommand {self.folder}/shell\n{self.extra}\n")
        before = self.log.read_text().count("Server listening") if self.log.exists() else 0
        # In the foreground: its children are the connections.
        self.process = subprocess.Popen([*self._enter(), SSHD, "-D", "-f", config, "-E", self.log],
                                        stdin=subprocess.DEVNULL, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        for _ in range(6000):
            assert self.process.poll() is None, self.log.read_text()
            if self.log.exists() and self.log.read_text().count("Server listening") > before:
                return
            time.sleep(0.01)
        raise AssertionError("sshd does not answer")

    def _enter(self):
        return [] if not self.space else [
            "ip", "netns", "exec", self.space, "unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc",
            "sh", "-c", ENTER, "sh", self.folder.name, self.folder.parent, self.folder]

    def stop(self):
        self.end_shared()
        self.drop()
        if self.process:
            self.process.send_signal(signal.SIGKILL if self.space else signal.SIGTERM)
            self.process.wait()
        self.process = None

    def connections(self):
        """The pids of the processes that serve a connection."""
        pid = self.process.pid
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def drop(self):
        """Every connection breaks."""
        for pid in self.connections() if self.process and not self.space else ():
            with contextlib.suppress(ProcessLookupError):  # it ends by itself just now
                os.kill(pid, signal.SIGKILL)

    def end_shared(self):
        """Ends the clients that hold shared connections open."""
        for path in (self.runtime / "act").glob("*"):
            if not path.is_socket():
                continue
            subprocess.run(["ssh", "-F", self.folder / "ssh_config", "-o", f"ControlPath={path}", "-O", "exit", LOGIN],
                           stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def agents(self):
        """The pids of the agents that were started from the home folder."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and os.readlink(entry / "exe").startswith(str(self.home)):
                    found.append(int(entry.name))
        return found

    def logins(self):
        return self.log.read_text().count("Accepted publickey")

    def sessions(self):
        """How many commands the login shell was given."""
        return len(self.commands.read_text().splitlines()) if self.commands.exists() else 0


class Relay:
    """A listener in front of a server of this machine, which hangs up on the first connections and passes the later
    ones on. passed counts the bytes of both directions, turns how often the other side than before has spoken. cut()
    breaks what there is, and is_away hangs up on whoever comes."""

    def __init__(self, port, refuses=0):
        self.to, self.refuses, self.taken, self.passed = port, refuses, 0, 0
        self.turns, self.speaker = 0, None
        self.is_away, self.ends = False, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def before(self, server):
        """Words for ssh that lead to an sshd by way of this: the host is known by the port of the sshd itself."""
        return f" -p {self.port} -o HostKeyAlias=[127.0.0.1]:{server.port}"

    def _accept(self):
        with contextlib.suppress(OSError):  # it is closed
            while True:
                client, _ = self.listener.accept()
                self.taken += 1
                if self.taken <= self.refuses or self.is_away:
                    client.close()
                    continue
                peer = socket.create_connection(("127.0.0.1", self.to))
                self.ends += client, peer
                for ends in (client, peer), (peer, client):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source, to):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.passed += len(data)
                self.turns += source is not self.speaker
                self.speaker = source
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)

    def cut(self, is_away=False):
        self.is_away = is_away
        for end in self.ends:
            with contextlib.suppress(OSError):  # it is over
                end.shutdown(socket.SHUT_RDWR)
        self.ends.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


class Busy(Relay):
    """One in front of an sshd; env makes ACT go that way."""

    def __init__(self, server, refuses):
        super().__init__(server.port, refuses)
        self.env = {"ACT_SSH": server.env["ACT_SSH"] + self.before(server)}


class SiteTool:
    """The program sitetool on a site: answers are its lines, parsed."""

    def __init__(self, program, login, root, env, *words):
        self.process = waiting.Process([program, login, root, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, env=env, start_new_session=True)  # no terminal
        self.opened = self.answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        said = self.process.stderr.read().decode().splitlines()
        assert all(line.startswith("waiting for ") for line in said), said  # another process connects
        self.process.stdout.close()
        self.process.stderr.close()

    def answer(self, timeout=waiting.PATIENCE_S):
        assert select.select([self.process.stdout], [], [], timeout)[0], "no answer"
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        return json.loads(line)

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, line, rc=0):
        self.tell(line)
        answer = self.answer()
        assert answer["rc"] == rc, answer
        return answer
