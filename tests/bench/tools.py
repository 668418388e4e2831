"""The programs that are compared, each with its own place in a service, and how one run of them is measured."""
import collections
import os
import pathlib
import shutil
import subprocess
import time

from act_tool import Act

MODULES = pathlib.Path(__file__).resolve().parent.parent / "node_modules"
AZCOPY = sorted(MODULES.glob("@azure-tools/azcopy-linux/dist/bin/azcopy_linux_*"))
HOURS = 24  # of the peers' signatures

Figures = collections.namedtuple("Figures", "wall cpu rss")  # seconds, seconds of user and system, bytes


class ToolFailed(Exception):
    pass


def measure(words, env, cwd, scratch, out=None):
    """Runs a command. CPU seconds are those of its whole tree; the peak is what time(1) saw, because a child of this
    program would count what Python needs."""
    peak = scratch / "peak"
    with open(out or scratch / "stdout", "wb") as stdout, open(scratch / "stderr", "wb") as stderr:
        started = time.perf_counter()
        process = subprocess.Popen(["/usr/bin/time", "-q", "-f", "%M", "-o", peak, *words], stdin=subprocess.DEVNULL,
                                   stdout=stdout, stderr=stderr, env=env, cwd=cwd)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        said = (scratch / "stdout").read_text(errors="replace") if not out else ""
        said += (scratch / "stderr").read_text(errors="replace")
        raise ToolFailed(f"{' '.join(map(str, words))}\nstatus {process.returncode}\n{said[-2000:]}")
    return Figures(wall, usage.ru_utime + usage.ru_stime, int(peak.read_text().split()[-1]) * 1024)


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

    def run(self, *words, out=None, env=None, cwd=None):
        trust = {"SSL_CERT_FILE": str(self.service.ca)} if self.service.ca else {}
        return measure(list(map(str, words)), {**self.env, **trust, **(env or {})}, cwd or self.scratch, self.scratch,
                       out)


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

    def copy(self, name, source, target):
        env = {**self.remote("from", *source), **self.remote("to", *target)}
        return self.rclone("copy", f"from:{source[1]}/files/data/{name}", f"to:{target[1]}/files/data/{name}", env=env)
