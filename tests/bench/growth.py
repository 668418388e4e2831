"""How what verbs take grows: at n, 10n and 100n runs in the ledger, megabytes of a log, ranks of a run, or files of a
folder. Some have a peer that does the same with the largest of them."""
import collections
import json
import math
import shutil
import sqlite3
import time

from act_tool import Act
from tools import measure

MIB = 1 << 20
STEPS = 3  # n, 10n, 100n
CREATED = int(time.time()) - 10 * 24 * 3600
LOG_LINE = "2026-11-29 12:00:%02d step %08d loss 0.123 ...................................\n"
WRITE_LOG = f"""
import sys
block = "".join({LOG_LINE!r} % (i % 60, i) for i in range(10000))
for _ in range(int(sys.argv[1]) // len(block) + 1):
    sys.stdout.write(block)
print("the needle is here")
"""
PATTERNS = {"a text": "the needle", "alternatives": "^the|nothing", "an expression": "n[e]+dl[e]"}

RUNS_WORDS = ("q --max 0", "q --json --max 0", "qf", "q --name x", "q --tag a=b", "grep --max 0 says", "du", "doctor",
              "prune --older 1d --dry-run --json")
RANKS_WORDS = ("logs --all", "q", "grep says", "report", "why", "files")
OBJECTS_WORDS = ("u data", "ls -r data", "du data", "verify data")

SAYS_NOTHING = ("u", "verify")  # where all is the same

Line = collections.namedtuple("Line", "name label world words peer cpu rss", defaults=(None, None, None))


class WrongResult(Exception):
    pass


class Logs:
    """A run on this machine with a log of so many bytes."""

    def __init__(self, programs, scratch, size):
        self.act = Act(programs, scratch)
        self.run = self.act.finish("python3", "-c", WRITE_LOG, size, before=("-n", 1))
        self.log = next(self.act.home.rglob("std_log_process_0.txt"))

    def empty(self):
        shutil.rmtree(self.act.project / "assets", ignore_errors=True)


class Runs:
    """So many runs in the ledger, as if all of them had been submitted as one run was."""

    def __init__(self, programs, scratch, count):
        self.act = Act(programs, scratch)
        example = self.act.finish("echo", "says", before=("-n", 1))
        with sqlite3.connect(self.act.home / "ledger.db") as ledger:
            names = [row[1] for row in ledger.execute("PRAGMA table_info(runs)")]
            row = dict(zip(names, ledger.execute("SELECT * FROM runs WHERE id = ?", (example,)).fetchone()))
            spec = json.loads(row["spec"])
            marks = ", ".join("?" * len(names))
            for n in range(count):
                run = f"exp_{CREATED + n}_{n:08x}"
                row.update(id=run, created_unix_s=CREATED + n, spec=json.dumps({**spec, "id": run}))
                ledger.execute(f"INSERT INTO runs VALUES ({marks})", [row[name] for name in names])

    def empty(self):
        pass


class Ranks:
    """A run on this machine with so many ranks, as if each had said something."""

    def __init__(self, programs, scratch, count):
        self.act = Act(programs, scratch)
        self.run = self.act.finish("echo", "says", before=("-n", 1))
        folder = next(self.act.home.rglob("std_log_process_0.txt")).parent
        for rank in range(count):
            (folder / f"std_log_process_{rank}.txt").write_text(f"rank {rank} says so\n" + "a line\n" * 80)

    def empty(self):
        shutil.rmtree(self.act.project / "assets", ignore_errors=True)


class Objects:
    """So many small files in a mapped folder, here and in its store."""

    def __init__(self, programs, scratch, count):
        self.act = Act(programs, scratch)
        for n in range(count):
            self.act.write(f"data/{n % 100}/{n}.txt", f"file {n}\n")
        self.act.run("u", "data")

    def empty(self):
        pass


def lines():
    def grep(name, pattern):
        return Line(f"growth: grep {name}", f"`a grep` for {name}, MB of a log", Logs,
                    lambda w: ("grep", pattern, w.run), lambda w: ("grep", "-nE", pattern, w.log), 2)
    return [*(grep(name, pattern) for name, pattern in PATTERNS.items()),
            Line("growth: q RUN", "`a q RUN`, MB of a log", Logs, lambda w: ("q", w.run),
                 lambda w: ("cp", w.log, w.act.scratch / "copy"), 2, 64),
            *(Line(f"growth: {words}", f"`a {words}`, runs", Runs, lambda w, words=words: words.split(), rss=64)
              for words in RUNS_WORDS),
            *(Line(f"growth: {words} RUN", f"`a {words} RUN`, ranks", Ranks,
                   lambda w, words=words: (*words.split(), w.run), rss=64) for words in RANKS_WORDS),
            *(Line(f"growth: {words}", f"`a {words}`, files", Objects, lambda w, words=words: words.split(), rss=64)
              for words in OBJECTS_WORDS)]


def first(line, quick):
    """n: bytes, runs, ranks or files."""
    sizes = {Logs: (MIB, 5 * MIB), Runs: (10, 1000), Ranks: (1, 10), Objects: (10, 1000)}
    return sizes[line.world][0 if quick else 1]


class Growth:
    """The worlds, each made when it is first needed."""

    def __init__(self, programs, scratch):
        self.programs, self.scratch, self.made = programs, scratch, {}

    def world(self, kind, n):
        if (kind, n) not in self.made:
            scratch = self.scratch / f"{kind.__name__}-{n}"
            scratch.mkdir(parents=True)
            self.made[kind, n] = kind(self.programs, scratch, n)
        return self.made[kind, n]

    def act(self, line, n):
        world = self.world(line.world, n)
        world.empty()
        out = world.act.scratch / "said"
        figures = measure([self.programs / "a", *line.words(world)], world.act.env, world.act.project,
                          world.act.scratch, out)
        if line.words(world)[0] in SAYS_NOTHING:
            return figures
        if not out.stat().st_size:
            raise WrongResult(f"{line.words(world)} said nothing")
        return figures

    def peer(self, line, n):
        world = self.world(line.world, n)
        return measure(line.peer(world), {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}, world.act.project,
                       world.act.scratch)


def exponent(before, after):
    """Of the growth of a figure to that at ten times as many."""
    return math.log10(max(after, 0.01) / max(before, 0.01))
