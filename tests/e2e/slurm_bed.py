"""A Slurm cluster of several nodes on this machine (tests/slurm), and what a test does to it."""
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import waiting

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent / "slurm"
PROGRAMS = ("munged", "munge", "slurmctld", "slurmd", "sinfo", "mpirun", "slurmdbd", "mariadbd", "mariadb")
PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


def missing():
    """Why there can be no cluster here; empty when there can."""
    absent = [name for name in PROGRAMS if not shutil.which(name, path=PATH)]
    return f"{', '.join(absent)} not installed: scripts/install-deps --test" if absent else ""


def has_namespaces():
    """Whether each node can have a host name and mounts of its own."""
    return subprocess.run(["unshare", "--uts", "--mount", "true"], stderr=subprocess.DEVNULL).returncode == 0


def free_base_port(nodes):
    """A port with the next ones that the cluster needs free, below those that runs and the kernel choose."""
    for _ in range(200):
        base = random.randrange(10000, 19900)
        with contextlib.ExitStack() as stack:
            try:
                for port in (base, base + 1, *range(base + 11, base + 11 + nodes)):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
        return base
    raise RuntimeError("no free ports")


class SlurmBed:
    """Real slurmctld and slurmds; nodes n1, n2, ... with the same number of pretended GPUs. With prefix AS_NOBODY it is
    that user's."""

    def __init__(self, nodes=3, gpus=4, extra=(), accounting=False, prefix=()):
        self.nodes, self.gpus, self.extra, self.prefix = nodes, gpus, extra, prefix
        self.has_namespaces = not prefix and has_namespaces()
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="tb-"))  # short: sockets are in it
        if prefix:
            os.chown(self.dir, NOBODY, NOBODY)
        self.options = ["-n", str(nodes), "-g", str(gpus), "-d", str(self.dir), "-p", str(free_base_port(nodes))]
        self.options += ["-u"] * self.has_namespaces + ["-a"] * accounting
        self.conf = self.dir / "etc/slurm.conf"
        self.env = {"PATH": PATH, "SLURM_CONF": str(self.conf), "TZ": "UTC", "LANG": "C.UTF-8"}

    def start(self):
        """Starts it, or the daemons of it that have died."""
        env = {"PATH": PATH, "HOME": str(self.dir), "SLURM_TESTBED_EXTRA": "\n".join(self.extra)}
        done = subprocess.run([*self.prefix, SCRIPTS / "start.sh", *self.options], env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=300)
        assert done.returncode == 0, done.stderr

    def stop(self):
        subprocess.run([SCRIPTS / "stop.sh", "-d", self.dir, "-x"], env={"PATH": PATH}, stdin=subprocess.DEVNULL,
                       timeout=300, check=True)

    def run(self, *words, status=0):
        """A program of Slurm; its output. status None: any."""
        done = subprocess.run(list(map(str, words)), env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300)
        assert status is None or done.returncode == status, (words, done)
        return done.stdout

    def impatient(self, *changes):
        """Another configuration of it, whose programs soon give up to reach the controller."""
        conf = self.conf.with_name("impatient.conf")
        text = self.conf.read_text() + "MessageTimeout=1\n"
        for old, new in changes:
            text = text.replace(old, new)
        conf.write_text(text)
        return {"SLURM_CONF": str(conf)}

    # ---- jobs

    def jobs(self, run=None, states="all"):
        """The ids of the jobs, all of them or those of a run of ACT."""
        name = ["-n", run] if run else []
        return self.run("squeue", "-h", "-t", states, "-o", "%A", *name).split()

    def job(self, run):
        """The one job of a run of ACT."""
        found = self.jobs(run)
        assert len(found) == 1, (run, found)
        return found[0]

    def show(self, job):
        """What scontrol shows of a job, by key."""
        return dict(re.findall(r"(\w+)=(\S*)", self.run("scontrol", "show", "job", job)))

    def cancel_all(self):
        """Ends every job and waits until the nodes are free again. What Slurm does not let go is an error of this test
        alone: its nodes are taken from it."""
        try:
            self.until(self._has_no_jobs, "all jobs have ended")
        except AssertionError:
            left = self._listed("%A %j %T on %N: %Z")
            for state in ("state=down reason=left", "state=resume"):
                self.run("scontrol", "update", "nodename=ALL", *state.split())
            raise AssertionError(f"Slurm does not let go: {left}") from None

    def _has_no_jobs(self):
        """Cancels what there is. Slurm is not asked for jobs in some states: it leaves out those that have a flag too,
        as one that waits for its node to answer."""
        jobs = [line.split() for line in self._listed("%A %t")]
        alive = [job for job, state in jobs if state != "CG"]
        if alive:
            self.run("scancel", *alive, status=None)  # one may have ended by itself
        return not jobs

    def _listed(self, columns):
        """A line for each job that has not ended, or still has nodes."""
        return self.run("squeue", "-h", "-o", columns).splitlines()

    # ---- daemons

    def pid(self, daemon):
        """Of "slurmctld" or, for example, "slurmd.n2"."""
        return int((self.dir / f"run/{daemon}.pid").read_text())

    def kill(self, daemon):
        """kill -9; start() brings it back."""
        pid = self.pid(daemon)
        os.kill(pid, signal.SIGKILL)
        self.until(lambda: not pathlib.Path(f"/proc/{pid}/exe").exists(), f"{daemon} is dead")

    def end_node(self, node):
        """kill -9 of all that runs on a node, its daemon first, as when its power fails. Needs has_namespaces."""
        slurmd = self.pid(f"slurmd.{node}")
        space = os.readlink(f"/proc/{slurmd}/ns/uts")
        for pid in [slurmd, *(int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit())]:
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/ns/uts") == space:
                    os.kill(pid, signal.SIGKILL)

    def step_processes(self, text):
        """The processes with that text in their command line, and their words."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")[:-1] if entry.name.isdigit() else []
                if any(os.fsencode(text) in word for word in words):
                    found[int(entry.name)] = [os.fsdecode(word) for word in words]
        return found

    @contextlib.contextmanager
    def hidden(self, path, node):
        """While it lasts, an empty folder is at path on that node, as when it were not shared."""
        within = ["nsenter", "-m", "-t", str(self.pid(f"slurmd.{node}"))]
        subprocess.run([*within, "mount", "-t", "tmpfs", "none", path], check=True)
        try:
            yield
        finally:
            subprocess.run([*within, "umount", path], check=True)

    until = staticmethod(waiting.until)


@contextlib.contextmanager
def running(**options):
    bed = SlurmBed(**options)
    try:
        bed.start()
        yield bed
    finally:
        bed.stop()
