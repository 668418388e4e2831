"""What `a top` takes of a processor, and how much memory, while 1,000 runs of 10 clusters run: Slurm clusters, whose
programs are scripts that print what was written down, so that what is measured is ACT. Each run has a log that has
numbers, and samples of a node with eight GPUs."""
import collections
import fcntl
import json
import os
import pathlib
import pty
import re
import sqlite3
import struct
import termios
import threading
import time

import report_data
from act_tool import Act

CREATED = int(time.time()) - 3600
SEPARATOR = "\x1f"

Result = collections.namedtuple("Result", "share children rss")


class WrongResult(Exception):
    pass


def run_id(n):
    return f"exp_{CREATED + n}_{n:08x}"


def put(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


class World:
    """The clusters, the ledger and the folders of the runs."""

    def __init__(self, programs, scratch, runs, clusters):
        scratch.mkdir(parents=True)
        self.scratch, self.n_runs, self.n_clusters = scratch, runs, clusters
        self.act = Act(programs, scratch)
        self.make_slurm()
        for c in range(clusters):
            self.act.cluster(f"c{c}", extra={"platform": "slurm", "gpu_per_node": 8,
                                             "slurm": {"root": str(self.root(c))}})
        self.make_ledger()
        for n in range(runs):
            self.make_run(n)

    def root(self, cluster):
        return self.scratch / f"shared{cluster}"

    def make_slurm(self):
        rows = "".join(SEPARATOR.join([str(n + 1), str(n + 1), "RUNNING", "None", "2026-11-21T21:22:29", "N/A", "0",
                                       "0", f"n{n}", run_id(n)]) + SEPARATOR + "\n" for n in range(self.n_runs))
        put(self.scratch / "squeue.txt", rows)
        put(self.scratch / "sinfo.txt", "".join(
            SEPARATOR.join([f"n{n}", "mixed", "8/88/0/96", "gpu:8", "gpu:8", "main"]) + SEPARATOR + "\n"
            for n in range(100)))
        programs = self.scratch / "programs"
        put(programs / "squeue", f"#!/bin/sh\ncase $* in *--me*) exec cat {self.scratch}/squeue.txt;; esac\n", 0o755)
        put(programs / "sinfo", f"#!/bin/sh\nexec cat {self.scratch}/sinfo.txt\n", 0o755)
        for name in ("sbatch", "scancel", "scontrol", "sacct"):
            put(programs / name, "#!/bin/sh\nexit 1\n", 0o755)
        self.act.env["PATH"] = f"{programs}:{self.act.env['PATH']}"

    def make_ledger(self):
        """As if all of them had been submitted as one run was, which was one of this machine."""
        example = self.act.finish("true", before=("-n", 1))
        with sqlite3.connect(self.act.home / "ledger.db") as ledger:
            names = [row[1] for row in ledger.execute("PRAGMA table_info(runs)")]
            row = dict(zip(names, ledger.execute("SELECT * FROM runs WHERE id = ?", (example,)).fetchone()))
            spec = json.loads(row["spec"])
            ledger.execute("DELETE FROM runs")
            for n in range(self.n_runs):
                cluster = f"c{n % self.n_clusters}"
                config = {**spec["config"], "platform": "slurm", "slurm": {"root": str(self.root(n % self.n_clusters))}}
                own = {**spec, "id": run_id(n), "platform": "slurm", "cluster": cluster, "created": CREATED + n,
                       "config": config}
                row.update(id=run_id(n), platform="slurm", cluster=cluster, state="Running", status=None,
                           created_unix_s=CREATED + n, num_gpu=8, command=f"python train.py --seed {n}",
                           place=json.dumps({"config": {"slurm": {"root": str(self.root(n % self.n_clusters))}}}),
                           spec=json.dumps(own))
                marks = ", ".join("?" * len(names))
                ledger.execute(f"INSERT INTO runs VALUES ({marks})", [row[name] for name in names])

    def make_run(self, n):
        folder = self.root(n % self.n_clusters) / "runs" / run_id(n)
        put(folder / "status.json", json.dumps({
            "version": 1, "state": "Running", "started": CREATED + n, "started_unix_s": CREATED + n, "exit_status": 0,
            "failed_rank": -1, "attempt": 1, "reason": ""}))
        put(folder / "job.json", json.dumps({"job": str(n + 1)}))
        put(folder / "user_logs/std_log_process_0.txt", report_data.training(2000))
        put(folder / "metrics/n1.jsonl", report_data.metrics(n, 360))

    def speak(self, stop):
        """Every run says something every two seconds, and its node every ten."""
        step = 2000
        while not stop.wait(2):
            for n in range(self.n_runs):
                folder = self.root(n % self.n_clusters) / "runs" / run_id(n)
                with (folder / "user_logs/std_log_process_0.txt").open("a") as log:
                    log.write(report_data.training(1, step))
            step += 1


def cpu_seconds(pid):
    """Of the process, and of the children that it has waited for."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return (int(fields[11]) + int(fields[12])) / ticks, (int(fields[13]) + int(fields[14])) / ticks


def peak_memory(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10


class Watched:
    """`a top`, or other words, on a terminal of this size."""

    def __init__(self, act, rows=50, columns=200, words=("top",)):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
            os.chdir(act.project)
            os.execve(act.programs / "a", ["a", *words], {**act.env, "TERM": "xterm-256color"})
        self.seen = b""
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            while data := os.read(self.fd, 1 << 16):
                self.seen = (self.seen + data)[-1 << 20:]
        except OSError:
            pass

    def until(self, text):
        end = time.monotonic() + 60
        while text not in self.seen:
            if time.monotonic() > end:
                raise WrongResult(f"it does not show {text!r}")
            time.sleep(0.05)

    def close(self):
        os.write(self.fd, b"q")
        if os.waitpid(self.pid, 0)[1] != 0:
            raise WrongResult("it did not end well")
        os.close(self.fd)


def measure(world, seconds):
    stop = threading.Event()
    speaker = threading.Thread(target=world.speak, args=(stop,))
    speaker.start()
    top = Watched(world.act)
    try:
        top.until(f"{world.n_runs} running".encode())
        top.until(b"loss ")
        time.sleep(min(seconds, 5))  # what only the start takes
        began, (own, children) = time.monotonic(), cpu_seconds(top.pid)
        time.sleep(seconds)
        took = time.monotonic() - began
        own_after, children_after = cpu_seconds(top.pid)
        result = Result((own_after - own) / took, (children_after - children) / took, peak_memory(top.pid))
    finally:
        stop.set()
        speaker.join()
        top.close()
    return result
