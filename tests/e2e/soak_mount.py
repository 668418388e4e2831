"""Mounts that are killed at random: `a mount` of a container of the test double, where requests go wrong now and then,
a writer, and a kill of the tool, of its keeper, or of both, or none at all.

What was closed is in the store if the mount ended well; however it ended, it is there or in the cache that is kept."""
import collections
import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from act_tool import Act
from soak import Violation, check


def possible():
    return os.path.exists("/dev/fuse") and shutil.which("rclone") and shutil.which("fusermount3")


class MountRound:
    def __init__(self, programs, double, seed, keep_in):
        self.rng = random.Random(seed)
        self.double, self.seed, self.keep_in = double, seed, keep_in
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="act-soak-"))
        self.act, self.seen = Act(programs, self.scratch), collections.Counter()
        self.at, self.closed, self.stop = self.scratch / "at", {}, threading.Event()
        self.service, self.container = double.other(double.account), f"mount-{seed & 0xffffffffff:x}"

    def run(self):
        """What did not hold; None: everything did."""
        self.service.create(self.container)
        self.act.account("aml", account_name=self.double.account, account_key=self.service.key,
                         container_name=self.container, endpoint=self.service.endpoint)
        self.act.cluster("aml", account="aml", extra={"mount": "rclone"})
        try:
            self.disturb()
        except Violation as violation:
            shutil.copytree(self.act.home, self.keep_in / f"mount-{self.seed}", symlinks=True, dirs_exist_ok=True)
            return violation
        finally:
            self.double.no_faults()
            subprocess.run(["fusermount3", "-uzq", self.at], check=False, stderr=subprocess.DEVNULL)
            self.act.clean_up()
            self.service.request("DELETE", self.container, {"restype": "container"}, expect=None)
            shutil.rmtree(self.scratch, ignore_errors=True)
        return None

    def go_wrong(self):
        """Some of the writer's requests, at some moment. Less often than what gives up what it sends."""
        for _ in range(self.rng.randrange(3)):
            kind, values = self.rng.choice([
                ("answer", {"status": 503, "code": "ServerBusy", "retry_after": 0}),
                ("answer", {"status": 500, "code": "InternalError"}),
                ("reset", {"where": "request"}), ("reset", {"where": "upload"}), ("reset", {"where": "answer"}),
                ("truncate", {"where": "answer"}), ("stall", {"where": "answer", "ms": 1500})])
            self.double.fault(kind, method=self.rng.choice(["PUT", "HEAD", "GET"]), path=f"/{self.container}",
                              times=self.rng.randint(1, 3), skip=self.rng.randrange(15), **values)
            self.seen[f"mounts, faults: {kind}"] += 1

    def write(self):
        """Files, some of them again and again, until told to stop. What failed to be written promises nothing."""
        rng = random.Random(self.seed)
        while not self.stop.is_set():
            name, data = f"f{rng.randrange(12)}", rng.randbytes(rng.choice([0, 10, 1 << 10, 300 << 10]))
            self.closed.pop(name, None)
            try:
                if not os.path.ismount(self.at):
                    continue
                (self.at / name).write_bytes(data)
                if os.path.ismount(self.at):
                    self.closed[name] = data
            except OSError:
                time.sleep(0.02)

    def disturb(self):
        self.at.mkdir()
        keeper = self.act.start("mount", "data", self.at)
        self.act.until(lambda: os.path.ismount(self.at) or keeper.poll() is not None, "it to be mounted")
        writer = threading.Thread(target=self.write)
        self.go_wrong()
        writer.start()
        victims = self.rng.choice(["none", "tool", "tool", "keeper", "both"])
        self.seen[f"mounts, killed: {victims}"] += 1
        time.sleep(self.rng.uniform(0.05, 1.5))
        for pid in self.victims(victims, keeper):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(self.rng.uniform(0.05, 1))
        self.stop.set()
        writer.join()
        if victims in ("none", "tool"):
            self.act.until(lambda: os.path.ismount(self.at) or keeper.poll() is not None, "it to be there again")
            keeper.send_signal(signal.SIGINT)
        _, err = keeper.communicate()
        self.compare(keeper.returncode, err)

    def victims(self, which, keeper):
        tools = [pid for pid, words in self.act.processes().items() if words[0].endswith(b"rclone")]
        return {"none": [], "tool": tools, "keeper": [keeper.pid], "both": [keeper.pid, *tools]}[which]

    def compare(self, status, err):
        self.double.no_faults()
        for name, data in self.closed.items():
            key = f"{self.container}/files/data/{name}"
            is_stored = self.service.exists(key) and self.service.get(key) == data
            kept = [p for p in (self.act.home / "cache/mounts").rglob(name) if "/vfs/" in str(p)]
            check(is_stored or status != 0, name, "is not in the store, though the mount ended well:", err)
            check(is_stored or any(p.read_bytes() == data for p in kept), name, "is neither in the store nor kept", err)
            self.seen["files written to mounts"] += 1
