"""What files take to and from a folder behind a login, beside rsync, scp and sftp over the same ssh: seconds, CPU of
both sides, bytes on the way, and the memory of ACT here and there. Each logs in for itself, and ends all it began; far
away, where a login takes seconds, each has a connection that is open already, and CPU is that of this side."""
import collections
import contextlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import threading
import time

import far
import sshd
from act_tool import Act

MIB, GIB = 1 << 20, 1 << 30
TICKS = os.sysconf("SC_CLK_TCK")

# again: nothing has to move. changed: 1 % of the bytes differ on the side that is copied from.
Line = collections.namedtuple("Line", "name what verb state peers")
Measured = collections.namedtuple("Measured", "seconds cpu passed here there")


class World:
    """The cluster "lab", whose login node is an sshd; its folder is on this machine. No Slurm is asked for anything."""

    def __init__(self, programs, scratch, stack, quick):
        self.quick, self.scratch = quick, scratch
        self.act = Act(programs, scratch)
        self.server = sshd.Sshd(scratch / "ssh")
        self.server.stop()
        self.server.extra = "Subsystem sftp /usr/lib/openssh/sftp-server"
        self.server.start()
        stack.callback(self.server.stop)
        self.act.env |= self.server.env
        self.here, self.root = self.act.project / "data", self.server.home / "act"
        self.act.write("aux_data/aml/lab.yaml", json.dumps(
            {"platform": "slurm", "gpu_per_node": 2, "slurm": {"root": str(self.root), "login": sshd.LOGIN}}))
        self.peers_there = scratch / "there"
        self.relay = None
        self.direct()
        self.act.write("data/x", "x")
        self.act.run("-c", "lab", "--no-share", "u", "data")
        self.server.end_shared()
        self.act_there = next((self.root / "store").iterdir()) / "data"

    def direct(self):
        self.relay, self.ssh, self.shares = None, self.server.env["ACT_SSH"], False

    def behind(self, relay, shares):
        """Everything goes through the relay, over a login of its own or a shared one."""
        self.relay, self.shares = relay, shares
        self.server.end_shared()
        more = f"-p {relay.port} -o HostKeyAlias=[127.0.0.1]:{self.server.port}"
        self.ssh = f"{self.server.env['ACT_SSH']} {more}"

    def fill(self, what):
        """Makes the files here, and nowhere else."""
        for place in self.here, self.act_there, self.peers_there:
            shutil.rmtree(place, ignore_errors=True)
        number, size = {"20,000 small files": (20_000, 1000), "2,000 small files": (2000, 1000),
                        "a file of 4 GiB": (1, 4 * GIB), "a file of 1 GiB": (1, GIB)}[what]
        number, size = (max(1, number // 10), max(1000, size // 64)) if self.quick else (number, size)
        for i in range(number):
            path = self.here / str(i % 100) / f"{i}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "wb") as out:
                for at in range(0, size, MIB):
                    out.write(os.urandom(min(MIB, size - at)))

    def words(self, tool, verb):
        there = f"{sshd.LOGIN}:{self.peers_there}"
        ends = (f"{self.here}/", f"{there}/") if verb == "u" else (f"{there}/", f"{self.here}/")
        each = [*sorted(self.here.glob("*")), f"{there}/"] if verb == "u" else [f"{there}/*", f"{self.here}/"]
        options = self.ssh.split()[1:]
        share = [] if self.shares else ["--no-share"]
        mux = f"-o ControlMaster=auto -o ControlPath={self.server.runtime}/hand -o ControlPersist=60"
        ports = ["-P" if word == "-p" else word for word in options]
        return {"ACT": [self.act.programs / "a", "-c", "lab", *share, verb, "--overwrite", "data"],
                "rsync": ["rsync", "-a", "-e", f"{self.ssh} {mux}" if self.shares else self.ssh, *ends],
                "scp": ["scp", *ports, "-rpq", *each],
                "sftp": ["sftp", *ports, "-q", "-b", "-", sshd.LOGIN]}[tool]

    def typed(self, tool, verb):
        copy = "put" if verb == "u" else "get"
        return f"cd {self.peers_there}\nlcd {self.here}\n{copy} -Rp *\n" if tool == "sftp" else ""

    def target(self, tool, verb):
        return self.here if verb == "d" else self.act_there if tool == "ACT" else self.peers_there

    def source(self, tool, verb):
        return self.here if verb == "u" else self.act_there if tool == "ACT" else self.peers_there

    def prepare(self, tool, line, made):
        """What the state of a line says is true for this tool."""
        target, source = self.target(tool, line.verb), self.source(tool, line.verb)
        if line.state == "new":
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
        elif line.state == "changed":
            path = next(path for path in source.rglob("*") if path.is_file())
            size = path.stat().st_size
            with open(path, "r+b") as file:
                for _ in range(16):
                    file.seek(made.randrange(size - size // 1600))
                    file.write(made.randbytes(size // 1600))

    # ---- measuring

    def cpu_there(self):
        if self.shares:  # it is known only when the connection ends
            return 0
        while self.server.connections():
            time.sleep(0.01)
        words = pathlib.Path(f"/proc/{self.server.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, words[11:15])) / TICKS

    def watch(self, over, found):
        """The most memory that a process of ACT there has had."""
        while not over.wait(0.05):
            for pid in self.server.agents():
                with contextlib.suppress(OSError, IndexError):
                    text = pathlib.Path(f"/proc/{pid}/status").read_text()
                    found[pid] = int(text.split("VmHWM:")[1].split()[0]) * 1024

    def measure(self, tool, line, made):
        self.prepare(tool, line, made)
        before, passed = self.cpu_there(), self.relay.passed if self.relay else 0
        over, found = threading.Event(), {0: 0}
        watcher = threading.Thread(target=self.watch, args=(over, found), daemon=True)
        watcher.start()
        begun = time.monotonic()
        process = subprocess.Popen(self.words(tool, line.verb), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, cwd=self.act.project,
                                   env={**self.act.env, "ACT_SSH": self.ssh, "HOME": self.act.env["HOME"]})
        process.stdin.write(self.typed(tool, line.verb).encode())
        process.stdin.close()
        said = process.stderr.read().decode()
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        over.set()
        watcher.join()
        cpu = used.ru_utime + used.ru_stime + self.cpu_there() - before
        if process.returncode != 0 or self.differ(tool):
            raise far.WrongResult(f"{line.name} by {tool}: {said}")
        return Measured(seconds, cpu, self.relay.passed - passed if self.relay else None, used.ru_maxrss * 1024,
                        max(found.values()))

    def differ(self, tool):
        there = self.act_there if tool == "ACT" else self.peers_there
        return subprocess.run(["diff", "-rq", self.here, there], check=False, stdout=subprocess.DEVNULL).returncode != 0

    def measure_line(self, line, runs):
        """Of each tool the figures of each run; the tools take turns."""
        made, found = random.Random(line.name), collections.defaultdict(list)
        self.peers_there.mkdir(exist_ok=True)
        for tool in ("ACT", *line.peers):  # both sides have it, as it was before; and what is shared is there
            if line.state != "new" or line.verb == "d" or self.shares:
                self.measure(tool, line._replace(verb="u", state="again"), made)
        for _ in range(runs):
            for tool in ("ACT", *line.peers):
                if line.verb == "d" and line.state == "changed":
                    self.measure(tool, line._replace(verb="u", state="again"), made)
                found[tool].append(self.measure(tool, line, made))
        return found


def lines_of(what, states, peers):
    for verb, to in ("u", "up"), ("d", "down"):
        for state in states:
            more = {"new": "", "again": ", again", "changed": ", of which 1 % changed"}[state]
            yield Line(f"far: {what}{more}, {to}", what, verb, state, peers if state == "new" else peers[:1])


def groups():
    """How each is reached, and the lines."""
    hand = ("rsync", "scp", "sftp")
    return [("no distance", None, [*lines_of("20,000 small files", ("new", "again"), hand),
                                   *lines_of("a file of 4 GiB", ("new",), hand)]),
            ("no distance, counted", far.Relay, list(lines_of("a file of 1 GiB", ("changed",), hand[:1]))),
            ("300 ms", lambda port: far.Relay(port, trip_s=far.TRIP_S),
             list(lines_of("2,000 small files", ("new", "again"), hand[:1])))]
