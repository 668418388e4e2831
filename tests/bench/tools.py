"""The programs that are compared, each with its own place in a service, and how one run of them is measured."""
import collections
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

from act_tool import Act

MODULES = pathlib.Path(__file__).resolve().parent.parent / "node_modules"
AZCOPY = sorted(MODULES.glob("@azure-tools/azcopy-linux/dist/bin/azcopy_linux_*"))
HOURS = 24  # of the peers' signatures

Figures = collections.namedtuple("Figures", "wall cpu rss")  # seconds, seconds of user and system, bytes


class ToolFailed(Exception):
    pass


class Started:
    """A command that is measured. CPU seconds are those of its whole tree; the peak is what time(1) saw, because a
    child of this program would count what Python needs."""

    def __init__(self, words, env, cwd, scratch, out=None):
        self.words, self.out = list(map(str, words)), out
        self.said, self.errors, self.peak = scratch / "stdout", scratch / "stderr", scratch / "peak"
        with open(out or self.said, "wb") as stdout, open(self.errors, "wb") as stderr:
            self.began = time.perf_counter()
            self.process = subprocess.Popen(["/usr/bin/time", "-q", "-f", "%M", "-o", self.peak, *self.words],
                                            stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=env, cwd=cwd,
                                            start_new_session=True)

    def interrupt(self):
        """As Ctrl-C does; time(1) does not mind it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def has_ended(self):
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def wait(self):
        _, status, usage = os.wait4(self.process.pid, 0)
        wall = time.perf_counter() - self.began
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode:
            said = self.said.read_text(errors="replace") if not self.out else ""
            said += self.errors.read_text(errors="replace")
            raise ToolFailed(f"{' '.join(self.words)}\nstatus {self.process.returncode}\n{said[-2000:]}")
        return Figures(wall, usage.ru_utime + usage.ru_stime, int(self.peak.read_text().split()[-1]) * 1024)


def measure(words, env, cwd, scratch, out=None):
    return Started(words, env, cwd, scratch, out).wait()


def add(figures):
    """Several commands, one after the other, as one."""
    return Figures(sum(f.wall for f in figures), sum(f.cpu for f in figures), max(f.rss for f in figures))


class Tool:
    """A program with a container or a share of its own in a service. Files are below root in it."""
    variants = {"": ()}  # what is tried, by name

    def __init__(self, service, scratch):
        self.service, self.scratch = service, scratch / self.name
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.container = f"bench-{self.name}"
        self.flags = ()
        self.empty()

    def empty(self):
        """Starts over with an empty container."""
        self.service.remove(self.container)
        self.service.create(self.container)

    def url(self, key, service=None, container=None):
        service, container = service or self.service, container or self.container
        return f"{service.endpoint}/{container}/{key}?{service.sas(container, hours=HOURS)}"

    def start(self, *words, out=None, env=None, cwd=None):
        trust = {"SSL_CERT_FILE": str(self.service.ca)} if self.service.ca else {}
        return Started(words, {**self.env, **trust, **(env or {})}, cwd or self.scratch, self.scratch, out)

    def run(self, *words, **how):
        return self.start(*words, **how).wait()

    @contextlib.contextmanager
    def mounted(self, name):
        """The folder where what has this name is mounted anew, with nothing in any cache, and a list that has the
        figures of all that mounted it after the end."""
        at, figures = self.scratch / "at", []
        at.mkdir(exist_ok=True)
        tool = self.start_mount(name, at)
        while not at.is_mount():
            if tool.has_ended():
                raise ToolFailed(f"it was not mounted: {tool.wait()}")
            time.sleep(0.01)
        try:
            yield at, figures
        finally:
            self.end_mount(tool, at)
            figures.append(tool.wait())


class ActTool(Tool):
    """ACT in a project of its own, whose folder data is files/data in the container."""
    name = "act"
    root = "files/data/"

    def __init__(self, service, scratch, programs):
        super().__init__(service, scratch)
        shutil.rmtree(self.scratch)
        self.act = Act(programs, self.scratch)
        self.programs, self.env, self.project = programs, self.act.env, self.act.project
        self.configure("store", "aml", service, self.container)

    def configure(self, account, cluster, service, container):
        self.act.account(account, **service.account_keys(container))
        self.act.cluster(cluster, account=account, keys=service.folder_keys(container))

    def a(self, *words, out=None):
        return self.run(self.programs / "a", *words, cwd=self.project, out=out)

    def place(self, tree, name):
        """The project's folder data/NAME is a tree: moved there, not copied."""
        link = self.project / "data" / name
        link.parent.mkdir(exist_ok=True)
        os.rename(tree, link)
        return link

    def up(self, tree, name):
        place = self.place(tree, name)
        try:
            return self.a("u", f"data/{name}")
        finally:
            os.rename(place, tree)

    again = up

    def up_file(self, file, name):
        return self.up(file, name)

    def down(self, name, folder):
        shutil.rmtree(self.project / "data", ignore_errors=True)
        figures = self.a("d", f"data/{name}")
        os.rename(self.project / "data" / name, folder)
        return figures

    down_file = down

    def list(self, name, out):
        return self.a("ls", "-r", f"data/{name}", out=out)

    def delete(self, name):
        return self.a("rm", "-y", f"data/{name}")

    def start_mount(self, name, at):
        return self.start(self.programs / "a", "-p", "mount: rclone", "mount", f"data/{name}", at, cwd=self.project)

    def end_mount(self, tool, at):
        tool.interrupt()

    def copy(self, name, source, target):
        """From one (service, container) to another."""
        self.configure("from", "from", *source)
        self.configure("to", "to", *target)
        return self.a("-c", "to", "-f", "from", "u", f"data/{name}")


class Download(ActTool):
    """ACT as the peer of itself: what the engine for data does with the same bytes."""
    name = "download"


class Azcopy(Tool):
    """azcopy with its defaults."""
    name = "azcopy"
    root = "data/"

    def __init__(self, service, scratch):
        super().__init__(service, scratch)
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(self.scratch),
                    "AZCOPY_LOG_LOCATION": str(self.scratch / "log"),
                    "AZCOPY_JOB_PLAN_LOCATION": str(self.scratch / "plan"), "AZCOPY_DISABLE_SYSLOG": "true"}

    def azcopy(self, *words, out=None):
        return self.run(AZCOPY[-1], *words, "--skip-version-check", out=out)

    def transfer(self, verb, source, target, ways, *more):
        """ways: from where to where, and the service is '%s'."""
        return self.azcopy(verb, source, target, "--from-to", ways.replace("%s", self.service.azcopy), *more)

    def up(self, tree, name):
        return self.transfer("copy", f"{tree}/*", self.url(f"data/{name}"), "Local%s", "--recursive")

    def up_file(self, file, name):
        return self.transfer("copy", file, self.url(f"data/{name}"), "Local%s")

    def again(self, tree, name):
        return self.transfer("sync", tree, self.url(f"data/{name}"), "Local%s", "--recursive")

    def down(self, name, folder):
        return self.transfer("copy", self.url(f"data/{name}/*"), folder, "%sLocal", "--recursive")

    def down_file(self, name, file):
        return self.transfer("copy", self.url(f"data/{name}"), file, "%sLocal")

    def list(self, name, out):
        return self.azcopy("list", self.url(f"data/{name}"), "--location", "Blob", out=out)

    def delete(self, name):
        return self.azcopy("remove", self.url(f"data/{name}"), "--from-to", "BlobTrash", "--recursive")

    def copy(self, name, source, target):
        return self.azcopy("copy", self.url(f"files/data/{name}/*", *source),
                           self.url(f"files/data/{name}", *target), "--from-to", "BlobBlob", "--recursive")


class Rclone(Tool):
    """rclone with its defaults, and with more at once; the quicker of the two is compared."""
    name = "rclone"
    root = "data/"
    variants = {"defaults": (), "32 at once": ("--transfers", "32", "--checkers", "32")}

    def __init__(self, service, scratch):
        super().__init__(service, scratch)
        (self.scratch / "rclone.conf").touch()
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(self.scratch),
                    "RCLONE_CONFIG": str(self.scratch / "rclone.conf"), **self.remote("x", service, self.container)}

    def remote(self, name, service, container):
        sas_url = self.url("", service, container).replace("/?", "?")
        return {f"RCLONE_CONFIG_{name.upper()}_TYPE": "azureblob", f"RCLONE_CONFIG_{name.upper()}_SAS_URL": sas_url}

    def rclone(self, *words, out=None, env=None):
        return self.run("rclone", *words, *self.flags, out=out, env=env)

    def up(self, tree, name):
        return self.rclone("copy", tree, f"x:{self.container}/data/{name}")

    again = up

    def up_file(self, file, name):
        return self.rclone("copyto", file, f"x:{self.container}/data/{name}")

    def down(self, name, folder):
        return self.rclone("copy", f"x:{self.container}/data/{name}", folder)

    def down_file(self, name, file):
        return self.rclone("copyto", f"x:{self.container}/data/{name}", file)

    def list(self, name, out):
        return self.rclone("ls", "--fast-list", f"x:{self.container}/data/{name}", out=out)

    def delete(self, name):
        return self.rclone("delete", f"x:{self.container}/data/{name}")

    def start_mount(self, name, at):
        """As a person has it who also wants to write."""
        return self.start("rclone", "mount", f"x:{self.container}/data/{name}", at, "--vfs-cache-mode", "writes")

    def end_mount(self, tool, at):
        subprocess.run(["fusermount3", "-u", at], check=True)

    def copy(self, name, source, target):
        env = {**self.remote("from", *source), **self.remote("to", *target)}
        return self.rclone("copy", f"from:{source[1]}/files/data/{name}", f"to:{target[1]}/files/data/{name}", env=env)
