"""The work that is measured: for each line what is prepared, what each tool does, and how its result is checked."""
import hashlib
import io
import mmap
import os
import random
import re
import shutil
import zipfile

from tools import ActTool, Azcopy, Download, Rclone, add

MIB = 1 << 20
PATTERN = bytes((i * 7 + (i >> 8)) & 0xff for i in range(65536))  # what the double reads where it swallowed


class WrongResult(Exception):
    pass


def expect(what, got, wanted):
    if got != wanted:
        raise WrongResult(f"{what}: {got}, not {wanted}")


# ---- trees


def make_large(path, size):
    with open(path, "wb") as file:
        for _ in range(size // (len(PATTERN) * 16)):
            file.write(PATTERN * 16)


def make_small(folder, count):
    """Files of 200 B to 20 KiB, up to 200 in a folder."""
    rng = random.Random(1)
    for i in range(count):
        path = folder / f"d{i // 200:03}/f{i:05}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.randbytes(rng.randint(200, 20 << 10)))
        os.utime(path, (1700000000 + i, 1700000000 + i))  # before any upload: azcopy compares with its date


def make_equal(folder, count, size):
    """Files of one size in one folder."""
    rng = random.Random(8)
    folder.mkdir(parents=True)
    for i in range(count):
        (folder / f"f{i:05}").write_bytes(rng.randbytes(size))


def make_logs(folder, count, size):
    folder.mkdir(parents=True)
    for i in range(count):
        line = f"rank {i}: step %08d loss 0.123 ................................................\n"
        text = "".join(line % step for step in range(size // len(line % 0) + 1))
        (folder / f"std_log_process_{i}.txt").write_text(text[:size])


def make_code(folder, count, size):
    """Text like code, and one file in ten that does not compress."""
    rng = random.Random(2)
    words = [rng.randbytes(rng.randint(1, 5)).hex() for _ in range(2000)]
    for i in range(count):
        path = folder / f"p{i // 100:03}/m{i:05}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        if i % 10:
            path.write_text(" ".join(rng.choices(words, k=size // 7))[:size])
        else:
            path.write_bytes(rng.randbytes(size))


def files_below(folder):
    """{relative path: size}"""
    found = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            found[os.path.relpath(path, folder)] = os.path.getsize(path)
    return found


def digest(data):
    return hashlib.md5(data).hexdigest()


def check_blobs(service, container, root, tree):
    """Every file is there with its size, and some with their content."""
    local = files_below(tree)
    there = {k.removeprefix(root): v for k, v in service.list(container, root).items()}
    expect("blobs and their sizes", {k: there[k] for k in there if k in local}, local)
    expect("blobs", len(there), len(local))
    for name in random.Random(3).sample(sorted(local), min(8, len(local))):
        expect(f"content of {name}", digest(service.get(f"{container}/{root}{name}")),
               digest((tree / name).read_bytes()))


def check_files(folder, tree):
    local = files_below(tree)
    expect("files and their sizes", files_below(folder) == local, True)
    for name in random.Random(4).sample(sorted(local), min(200, len(local))):
        expect(f"content of {name}", digest((folder / name).read_bytes()), digest((tree / name).read_bytes()))


def check_large(path, size):
    expect("size", path.stat().st_size, size)
    rng = random.Random(5)
    with open(path, "rb") as file:
        for at in [0, size - MIB] + [rng.randrange(size // MIB) * MIB for _ in range(30)]:
            file.seek(at)
            expect(f"content at {at}", file.read(MIB) == PATTERN * (MIB // len(PATTERN)), True)


# ---- lines


class Line:
    """One row of the table. targets: most of the better peer's wall time and CPU, and bytes; None: no target."""
    tuned = True  # whether flags of the peers change anything

    def __init__(self, bench, name, label, service, wall=None, cpu=None, rss=None, peers=("azcopy", "rclone")):
        self.bench, self.name, self.label, self.service = bench, name, label, service
        self.targets, self.peers = (wall, cpu, rss), peers
        self.units = None  # (how many, what) that one run moves

    def prepare(self):
        """Once, before the first run."""

    def run(self, tool):
        raise NotImplementedError


def warm_memory(size):
    """Takes three times so much memory and gives it back. A virtual machine may have given its free memory to its host,
    and getting 4 GiB of it back costs whichever program needs it first up to 9 s, for 1 s of work."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    mmap.mmap(-1, min(3 * size, free // 2), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE).close()


class LargeUp(Line):
    def prepare(self):
        self.file = self.bench.large(self.size)
        self.units = (self.size, "bytes")

    def run(self, tool):
        tool.empty()
        figures = tool.up_file(self.file, "large")
        head = tool.service.head(f"{tool.container}/{tool.root}large")
        expect("size", int(head["content-length"]), self.size)
        return figures


class LargeDown(LargeUp):
    def run(self, tool):
        if not tool.service.exists(f"{tool.container}/{tool.root}large"):
            super().run(tool)
        got = self.bench.scratch / "got"
        got.unlink(missing_ok=True)
        warm_memory(self.size)
        figures = tool.down_file("large", got)
        check_large(got, self.size)
        got.unlink()
        return figures


class SmallUp(Line):
    def prepare(self):
        self.tree = self.bench.small(self.count)
        self.units = (self.count, "files")

    def run(self, tool):
        tool.empty()
        figures = tool.up(self.tree, "small")
        check_blobs(tool.service, tool.container, f"{tool.root}small/", self.tree)
        return figures

    def ensure(self, tool):
        if len(tool.service.list(tool.container, f"{tool.root}small/")) != self.count:
            SmallUp.run(self, tool)


class SmallDown(SmallUp):
    def run(self, tool):
        self.ensure(tool)
        got = self.bench.scratch / "got"
        shutil.rmtree(got, ignore_errors=True)
        figures = tool.down("small", got)
        check_files(got, self.tree)
        shutil.rmtree(got)
        return figures


class SmallAgain(SmallUp):
    def etags(self, tool):
        names = random.Random(7).sample(sorted(files_below(self.tree)), 8)
        return [tool.service.head(f"{tool.container}/{tool.root}small/{name}")["etag"] for name in names]

    def run(self, tool):
        self.ensure(tool)
        before = self.etags(tool)
        figures = tool.again(self.tree, "small")
        expect("blobs written again", self.etags(tool), before)
        return figures


class Many(Line):
    """Blobs that the double makes up."""

    def fill(self, tool):
        tool.service.control("POST", "/-/preload", f"{tool.container}:{tool.root}many/:{self.count}:1000")
        self.units = (self.count, "blobs")


class List(Many):
    tuned = False  # one request follows another

    def run(self, tool):
        tool.empty()
        self.fill(tool)
        out = self.bench.scratch / "listing"
        figures = tool.list("many", out)
        names = set(re.findall(rb"(?<![0-9])[0-9]{7}(?![0-9])", out.read_bytes()))
        expect("names listed", len(names), self.count)
        tool.empty()
        return figures


class Delete(Many):
    def run(self, tool):
        tool.empty()
        self.fill(tool)
        figures = tool.delete("many")
        expect("blobs that are left", len(tool.service.list(tool.container)), 0)
        return figures


class Copy(SmallUp):
    """From one account to another; the source is the same for all."""

    def run(self, tool):
        source = self.bench.tool(ActTool, self.service)
        self.ensure(source)
        target = self.bench.double.other("benchsecond")
        container = f"to-{tool.name}"
        target.request("DELETE", container, {"restype": "container"}, expect=None)
        target.create(container)
        figures = tool.copy("small", (source.service, source.container), (target, container))
        check_blobs(target, container, "files/data/small/", self.tree)
        return figures


class OneFile(Line):
    def prepare(self):
        self.file = self.bench.scratch / "one"
        self.file.write_bytes(b"one small file\n" * 100)

    def run(self, tool):
        tool.empty()
        figures = tool.up_file(self.file, "one")
        expect("content", tool.service.get(f"{tool.container}/{tool.root}one"), self.file.read_bytes())
        return figures


class Init(Line):
    """A package of the code; the peer is Info-ZIP's zip and azcopy."""

    def prepare(self):
        self.units = (self.count, "files")

    def tree(self, tool):
        """Each has its tree: ACT's is in its project."""
        folder = (tool.project if tool.name == "act" else tool.scratch) / "src"
        if not folder.exists():
            shutil.copytree(self.bench.code(self.count, self.size), folder)
        return folder

    def run(self, tool):
        self.tree(tool)
        if tool.name == "act":
            shutil.rmtree(tool.act.home, ignore_errors=True)
        else:
            (tool.scratch / "code.zip").unlink(missing_ok=True)
        tool.empty()
        return self.pack(tool, "-qry")

    def pack(self, tool, how):
        if tool.name == "act":
            figures, key = tool.a("init"), "files/code/project.zip"
        else:
            package = tool.scratch / "code.zip"
            zipped = tool.run("zip", how, package, "src", cwd=tool.scratch)
            figures, key = add([zipped, tool.up_file(package, "code.zip")]), "data/code.zip"
        self.check(tool.service.get(f"{tool.container}/{key}"), self.tree(tool))
        return figures

    def check(self, package, tree):
        with zipfile.ZipFile(io.BytesIO(package)) as zipped:
            names = [n for n in zipped.namelist() if n.startswith("src/") and not n.endswith("/")]
            expect("files in the package", len(names), self.count)
            for name in random.Random(6).sample(sorted(names), 8) + self.changed():
                expect(f"content of {name}", digest(zipped.read(name)), digest((tree.parent / name).read_bytes()))

    def changed(self):
        return [f"src/p{i // 100:03}/m{i:05}.py" for i in range(3, self.count, self.count // 10)][:10]


class InitAgain(Init):
    """The same with ten files changed since the last time."""

    def prepare(self):
        super().prepare()
        self.done = {}

    def run(self, tool):
        if tool not in self.done:
            Init.run(self, tool)
        self.done[tool] = self.done.get(tool, 0) + 1
        for name in self.changed():
            with open(self.tree(tool).parent / name, "a") as file:
                file.write(f"# change {self.done[tool]}\n")
        return self.pack(tool, "-quyr")


class Logs(Line):
    """The logs of a run on Azure Machine Learning that are not here yet, by `a q`; the peer is `a d` of files that are
    the same, from the same server."""
    tuned = False

    def prepare(self):
        self.tree = self.bench.make("logs", make_logs, self.count, self.size)
        self.units = (self.count * self.size, "bytes")
        self.runs = {}

    def run_of(self, tool):
        """A run that ACT knows, on the double of the service."""
        service = self.bench.azureml(tool.service)
        if service not in self.runs:
            tool.env.update(service.login_env())
            service.act = tool.act
            service.cluster("service")
            run, = service.tell("seed", count=1)
            for file in sorted(self.tree.iterdir()):
                service.tell("log", id=run, name=f"user_logs/{file.name}", size=0)
                tool.service.put(service.log_key(run, f"user_logs/{file.name}"), file.read_bytes())
            tool.a("-c", "service", "-no-wl", "q", run)
            self.runs[service] = run
        return self.runs[service]

    def fetch(self, tool):
        run = self.run_of(tool)
        got = tool.project / f"assets/{run}"
        shutil.rmtree(got, ignore_errors=True)
        figures = tool.a("-c", "service", "q", run)
        check_files(got / "user_logs", self.tree)
        return figures

    def download(self, tool):
        if len(tool.service.list(tool.container, f"{tool.root}logs/")) != self.count:
            tool.up(self.tree, "logs")
        got = self.bench.scratch / "got"
        shutil.rmtree(got, ignore_errors=True)
        figures = tool.down("logs", got)
        check_files(got, self.tree)
        shutil.rmtree(got)  # the next line has a file of this name
        return figures

    def run(self, tool):
        return self.fetch(tool) if tool.name == "act" else self.download(tool)


class Mount(Line):
    """Files of a mounted folder are read, one after the other. The wall time is that of reading; the rest is of all
    that mounts, from its start to its end."""
    tuned = False

    def prepare(self):
        self.tree = self.bench.make("equal", make_equal, self.count, self.size)
        self.units = (self.count * self.size, "bytes")

    def run(self, tool):
        if len(tool.service.list(tool.container, f"{tool.root}equal/")) != self.count:
            tool.up(self.tree, "equal")
        with tool.mounted("equal") as (at, mounted):
            reading = tool.run("sh", "-c", "cat -- * >/dev/null", cwd=at)
            check_files(at, self.tree)
        return mounted[0]._replace(wall=reading.wall)


TOOLS = {"act": ActTool, "download": Download, "azcopy": Azcopy, "rclone": Rclone}
