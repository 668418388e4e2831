"""Pods of a run without Kubernetes: each is `act-node pod` with pid 1 in namespaces of its own, with the mounts, the
address and the names that Kubernetes would give it. The namespaces and their bridge are made here and removed again."""
import contextlib
import hashlib
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import zipfile

import waiting

HERE = pathlib.Path(__file__).resolve().parent
LINE = re.compile(rb"\[(\d+)(\+?)\] (.*)")
MARK = re.compile(rb"act: log (\d+) at (\d+)")
# What Kubernetes mounts, below a folder of the test.
ENTER = """
set -e
here=$1; shift
mkdir -p $here/dev
mount -t tmpfs tmpfs $here/dev
for name in null zero full random urandom tty; do touch $here/dev/$name; mount --bind /dev/$name $here/dev/$name; done
mkdir $here/dev/shm
mount -t tmpfs tmpfs $here/dev/shm
ln -s /proc/self/fd $here/dev/fd
touch $here/dev/termination-log
mount --bind $here/termination-log $here/dev/termination-log
mount --move $here/dev /dev
mount -t tmpfs tmpfs /run
mkdir -p /run/act/secret /run/act/node
mount --bind $here/../secret /run/act/secret
mount --bind $here/work /run/act/node
hostname "$1"; shift
exec $AS_USER "$@"
"""


def missing():
    """Why there can be no pods here; None: there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    tools = [tool for tool in ("ip", "unshare", "mount") if not shutil.which(tool)]
    return f"{tools} not found" if tools else None


def ip(*words, check=True):
    subprocess.run(["ip", *map(str, words)], check=check, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=None if check else subprocess.DEVNULL)


class Pod:
    """One process of the run, alive or not. It may be started again, as Kubernetes makes a new pod."""

    def __init__(self, job, index):
        self.job, self.index = job, index
        self.name = f"{job.name}-{index}"
        self.folder = job.folder / f"pod{index}"
        self.process = self.outside = None

    def start(self, **env):
        """A new pod: nothing of an earlier one is left but its output."""
        shutil.rmtree(self.folder / "work", ignore_errors=True)
        for name in ("work", "tmp"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
            (self.folder / name).chmod(0o777)
        (self.folder / "termination-log").write_text("")
        (self.folder / "termination-log").chmod(0o666)
        shutil.copy(self.job.act.programs / "act-node", self.folder / "work/act-node")
        env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "TMPDIR": str(self.folder / "tmp"),
               "ACT_ABORT_GRACE": "3", "JOB_COMPLETION_INDEX": str(self.index), **self.job.env, **env}
        words = ["ip", "netns", "exec", self.job.bed.space(self.index), "unshare", "--pid", "--fork", "--kill-child",
                 "--mount-proc", "--uts", "sh", "-c", ENTER, "enter", str(self.folder), self.name,
                 "/run/act/node/act-node", "pod", "--job", self.job.name, "--nodes", str(self.job.nodes),
                 "--secret", "/run/act/secret", "--work", "/run/act/node"]
        with open(self.folder / "out", "ab") as out:
            self.process = waiting.Process(words, env={k: v for k, v in env.items() if v is not None},
                                           stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        return self

    def wait(self, status=None, timeout=waiting.PATIENCE_S):
        try:
            got = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end\n{self.story()}") from None
        assert status is None or got == status, (got, self.story())
        return got

    def pid(self):
        """Of its pid 1, from outside."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def terminate(self):
        os.kill(self.pid(), signal.SIGTERM)

    def kill(self):
        """As when the node loses its power, but that its network says so."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def out(self):
        path = self.folder / "out"
        return path.read_bytes() if path.exists() else b""

    def text(self, name):
        path = self.folder / "work/run" / name
        return path.read_text() if path.exists() else ""

    def message(self):
        return json.loads((self.folder / "termination-log").read_text())

    def story(self):
        """What is known of it, for a test that fails."""
        logs = sorted((self.folder / "work/run/system_logs").glob("*.txt"))
        return "\n".join([f"--- {self.name} {self.process and self.process.returncode}",
                          self.out().decode(errors="replace"), *(f"{p.name}: {p.read_text()}" for p in logs)])

    def words(self):
        """What the agent says, for people."""
        lines = self.out().decode(errors="replace").splitlines()
        return [line for line in lines if line.startswith("act: ") and not line.startswith("act: log ")]

    def logs(self, attempt=None):
        """The output taken apart: rank -> bytes, of one attempt; None: of the last one. Checks every mark."""
        attempts = {1: {}}
        now = 1
        for line in self.out().split(b"\n")[:-1]:
            framed, mark = LINE.fullmatch(line), MARK.fullmatch(line)
            if framed:
                rank = int(framed[1])
                old = attempts[now].get(rank, b"")
                attempts[now][rank] = old + framed[3] + (b"" if framed[2] else b"\n")
            elif mark:
                assert len(attempts[now].get(int(mark[1]), b"")) == int(mark[2]), line
            elif line.startswith(b"act: attempt "):
                now = int(line.split()[-1])
                attempts[now] = {}
            else:
                assert line.startswith(b"act: "), line
        return attempts.get(attempt or now, {})


class Job:
    """A run, and its pods."""

    def __init__(self, bed, act, number, command, nodes, procs, files=None, env=(), **members):
        self.bed, self.act, self.nodes, self.procs = bed, act, nodes, procs
        self.id = f"exp_1700000000_{number:08x}"
        self.name = f"exp-1700000000-{number:08x}"
        self.folder = act.scratch / self.id
        self.secret = self.folder / "secret"
        self.secret.mkdir(parents=True)
        self.go = self.folder / "go"  # for commands that wait until the test makes it
        self.env = {"GO": str(self.go)}
        for folder in (act.scratch, self.folder, self.secret):
            folder.chmod(0o755)
        self.spec = {"version": 1, "id": self.id, "experiment": "exp", "cluster": "k", "platform": "k8s",
                     "project_root": "/p", "created": 1700000000, "command": list(command),
                     "package_store": "blob:a/c", "package_key": "", "package_sha256": "", "package_bytes": 0,
                     "folders": [], "nodes": nodes, "processes_per_node": procs, "gpus_per_node": 0, "env": list(env),
                     "sleep_if_fail": False, "sleep_if_succeed": False, **members}
        if files:
            self.pack(files)
        (self.secret / "token").write_text("5a" * 32)
        self.write()
        self.pods = [Pod(self, i) for i in range(nodes)]
        bed.name_pods(self.name)

    def write(self):
        (self.secret / "run.json").write_text(json.dumps(self.spec))

    def pack(self, files):
        path = self.folder / "package.zip"
        with zipfile.ZipFile(path, "w") as package:
            for name, content in files.items():
                info = zipfile.ZipInfo(name)
                info.external_attr = 0o100644 << 16
                package.writestr(info, content)
        data = path.read_bytes()
        self.spec.update(package_key="code/x.zip", package_sha256=hashlib.sha256(data).hexdigest(),
                         package_bytes=len(data))
        (self.secret / "package.zip").write_bytes(data)

    def bare_path(self):
        """A PATH of an image that has little."""
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        for name in ("sh", "true", "mount", "mkdir", "touch", "ln", "hostname", "unshare", "ip"):
            if not (folder / name).exists():
                (folder / name).symlink_to(shutil.which(name))
        return str(folder)

    def start(self):
        for pod in self.pods:
            pod.start()
        return self

    def wait(self, status=0, timeout=waiting.PATIENCE_S):
        """Pod 0 has the status of the run, the others have none."""
        self.until(lambda: self.pods[0].process.poll() is not None, "the first pod has ended", timeout)
        self.pods[0].wait(status)
        for pod in self.pods[1:]:
            pod.wait(0)
        return self.pods[0].message()

    def run(self, status=0):
        return self.start().wait(status)

    def log(self, rank, attempt=None):
        """What the pods have printed of a rank."""
        return self.pods[rank // self.procs].logs(attempt).get(rank, b"").decode()

    def until(self, test, what, timeout=waiting.PATIENCE_S):
        waiting.until(test, lambda: "\n".join([what, *(pod.story() for pod in self.pods)]), timeout)

    def until_log(self, rank, text, attempt=None):
        self.until(lambda: text in self.log(rank, attempt), f"rank {rank} says {text!r}")

    def close(self):
        for pod in self.pods:
            pod.kill()


class Bed:
    """Network namespaces of three pods, and one for the bridge between them."""
    NAMES = "10.77.0.254"  # of the name server, if there is one
    numbers = itertools.count()  # a namespace that could not be deleted does not take the name from the next bed

    def __init__(self, size=3):
        self.size, self.mark = size, f"act{os.getpid()}-{next(self.numbers)}"
        self.bridge = f"{self.mark}-br"
        ip("netns", "add", self.bridge)
        ip("-n", self.bridge, "link", "add", "br0", "type", "bridge")
        ip("-n", self.bridge, "addr", "add", f"{self.NAMES}/24", "dev", "br0")
        ip("-n", self.bridge, "link", "set", "br0", "up")
        for i in range(size):
            space = self.space(i)
            ip("netns", "add", space)
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", f"p{i}", "netns", self.bridge)
            ip("-n", space, "addr", "add", f"{self.address(i)}/24", "dev", "eth0")
            ip("-n", space, "link", "set", "eth0", "up")
            ip("-n", self.bridge, "link", "set", f"p{i}", "master", "br0", "up")

    def space(self, i):
        return f"{self.mark}-{i}"

    @staticmethod
    def address(i):
        return f"10.77.0.{1 + i}"

    def name_pods(self, job):
        lines = ["127.0.0.1 localhost", *(f"{self.address(i)} {job}-{i}.{job} {job}-{i}" for i in range(self.size))]
        for i in range(self.size):
            folder = pathlib.Path("/etc/netns") / self.space(i)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "hosts").write_text("".join(line + "\n" for line in lines))
            (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")

    @contextlib.contextmanager
    def cut_off(self, i):
        """Meanwhile no packet gets to or from a pod."""
        ip("-n", self.bridge, "link", "set", f"p{i}", "down")
        yield
        ip("-n", self.bridge, "link", "set", f"p{i}", "up")

    @contextlib.contextmanager
    def names_by_dns(self, path):
        """The pods' names come from a name server, which knows those in a file."""
        for i in range(self.size):
            folder = pathlib.Path("/etc/netns") / self.space(i)
            (folder / "hosts").write_text("127.0.0.1 localhost\n")
            (folder / "resolv.conf").write_text(f"search ns.svc.cluster.local svc.cluster.local cluster.local\n"
                                                f"nameserver {self.NAMES}\noptions ndots:5\n")
        words = ["ip", "netns", "exec", self.bridge, "python3", HERE / "pod_dns.py", self.NAMES, path]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as server:
            try:
                server.stdout.readline()
                yield
            finally:
                server.kill()

    def close(self):
        for space in (*map(self.space, range(self.size)), self.bridge):
            ip("netns", "del", space, check=False)
            shutil.rmtree(pathlib.Path("/etc/netns") / space, ignore_errors=True)
