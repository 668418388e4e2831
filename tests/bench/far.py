"""What work on a cluster takes whose login node is far away: a real Slurm on this machine and an sshd in front of it,
behind a relay that delays what passes and limits how much of it does. Beside it, through the same relay, what people
type there themselves: rsync, and ssh over a connection that is open already."""
import collections
import contextlib
import itertools
import os
import queue
import random
import shutil
import socket
import subprocess
import threading
import time

import slurm_bed
import sshd
from act_tool import Act
from slurm_fixtures import Lab, configure_below_root

TRIP_S, MBIT = 0.3, 125_000
WORDS = "layer batch model loss step data epoch token state mask weight index shape value device".split()
RANK = "user_logs/std_log_process_{}.txt"

Line = collections.namedtuple("Line", "name before prepare act peer_name peer")


def source(made):
    """About 2 KB of text that packs as source code does, to a third."""
    words = [f"{made.choice(WORDS)}_{made.randrange(300)}" for _ in range(40)]
    return "".join(f"    {made.choice(words)} = {made.choice(words)}({made.choice(words)}, {made.randrange(1000)})\n"
                   for _ in range(48))


class WrongResult(Exception):
    pass


class Relay:
    """Listens on loopback in front of a port of this machine. What comes is passed on half a trip later, and no faster
    than that many bytes a second; at most 4 MiB of each direction are on the way. passed counts the bytes of both."""

    def __init__(self, port, trip_s=0.0, rate=None):
        self.to, self.delay_s, self.rate, self.passed = port, trip_s / 2, rate, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):  # it is closed
            while True:
                client, _ = self.listener.accept()
                peer = socket.create_connection(("127.0.0.1", self.to))
                for ends in (client, peer), (peer, client):
                    on_the_way = queue.Queue(maxsize=64)
                    for end in ends:
                        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=self._read, args=(ends[0], on_the_way), daemon=True).start()
                    threading.Thread(target=self._write, args=(ends[1], on_the_way), daemon=True).start()

    def _read(self, source, on_the_way):
        free_at = 0.0
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                free_at = max(time.monotonic(), free_at) + (len(data) / self.rate if self.rate else 0)
                self.passed += len(data)
                on_the_way.put((free_at + self.delay_s, data))
        on_the_way.put((0, b""))

    @staticmethod
    def _write(to, on_the_way):
        with contextlib.suppress(OSError):
            while (item := on_the_way.get())[1]:
                time.sleep(max(0.0, item[0] - time.monotonic()))
                to.sendall(item[1])
            to.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.close()


class World:
    """The cluster "lab" behind a relay; its runs may have all of the bed."""

    def __init__(self, programs, scratch, stack, quick):
        self.quick = quick
        self.bed = stack.enter_context(slurm_bed.running(nodes=3, gpus=4 if quick else 18))
        self.act = Act(programs, scratch)
        self.lab = Lab(self.act, self.bed)
        self.server = sshd.Sshd(scratch / "ssh")
        stack.callback(self.lab.clean_up)
        stack.callback(self.server.stop)
        self.server.shell(f"export SLURM_CONF={self.bed.conf}")
        self.act.env |= self.server.env
        del self.act.env["SLURM_CONF"]
        configure_below_root(self.act, self.lab, login=sshd.LOGIN)
        self.words = self.act.env["ACT_SSH"]
        self.act.write("train.sh", 'echo "step 1 loss $1"; sleep 3000\n')

    def behind(self, relay):
        """Everything goes through the relay from now on; a connection of each is open."""
        self.relay = relay
        self.ssh = f"{self.words} -p {relay.port} -o HostKeyAlias=[127.0.0.1]:{self.server.port}"
        self.act.env["ACT_SSH"] = self.ssh
        self.mux = f"{self.ssh} -o ControlMaster=auto -o ControlPath={self.server.runtime}/hand -o ControlPersist=60"
        self.server.end_shared()
        self.hand(f"{self.mux} lab true")
        self.run("-c", "lab", "-n", 1, "submit", "true")

    def run(self, *words):
        return self.act.run(*words)

    def hand(self, words):
        done = subprocess.run(words, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=os.environ | self.act.env, check=False)
        if done.returncode != 0:
            raise WrongResult(f"{words}: {done.stderr}")
        return done.stdout

    def stop(self):
        subprocess.run(f"{self.mux} -O exit lab", shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)

    # ---- what is there

    def big(self):
        """The project has many files, as a repository with its assets; both sides have it, or neither."""
        folder = self.act.project / "many"
        shutil.rmtree(folder, ignore_errors=True)
        made = random.Random(31)
        for n in range(1000 if self.quick else 10_000):
            path = folder / f"package_{n // 100}" / f"module_{n}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source(made))
        self.end_all()
        self.forget_code()

    def forget_code(self):
        """The site has no package, and the folder that rsync fills is empty."""
        shutil.rmtree(self.lab.root / "packages", ignore_errors=True)
        shutil.rmtree(self.act.scratch / "there", ignore_errors=True)

    def both_have_big(self):
        self.big()
        submit(self, None)
        sbatch(self, None)
        return itertools.count()

    def change_ten(self, count):
        made = random.Random(next(count))
        for path in made.sample(sorted((self.act.project / "many").rglob("*.py")), 10):
            path.write_text(source(made))

    def ranks(self):
        """A run of 64 ranks that has ended: of a single one, and the logs of the others."""
        run = self.lab.submit("bash", "-c", "echo rank 0 says so")
        self.lab.until_over(run)
        for rank in range(64):
            (self.lab.run_dir(run) / RANK.format(rank)).write_text(f"rank {rank} says so\n" + "a line\n" * 80)
        return run

    def long_log(self, mib):
        run = self.lab.submit("bash", "-c", "echo it begins")
        self.lab.until_over(run)
        with open(self.lab.run_dir(run) / RANK.format(0), "w") as log:
            for step in range(mib * 16384):
                log.write(f"step {step:9} loss {1 / (step + 1):.9f} took a moment, all is well\n")
        return run

    def sweep(self):
        n = 6 if self.quick else 50
        points = ",".join(map(str, range(n)))
        words = ("sweep", "--grid", f"loss={points}", "--", "bash", "train.sh", "{loss}")
        self.sweep_id = self.run("-c", "lab", "-n", 1, *words).out.strip()

    def running_sweep(self):
        self.end_all()
        self.sweep()
        found = self.run("q", "--json", "--max", 0, "--tag", f"sweep={self.sweep_id}").json["runs"]
        runs = [run["id"] for run in sorted(found, key=lambda run: int(run["id"].rpartition("_")[2], 16))]
        for run in runs[:4]:  # the others have one after the other a place to run
            self.lab.until_text(run, "loss")
        return runs

    def forget(self, run):
        """What was fetched of a run."""
        shutil.rmtree(self.act.project / "assets" / run, ignore_errors=True)
        shutil.rmtree(self.act.scratch / "copy", ignore_errors=True)

    def rsync(self, run):
        self.hand(f"rsync -a -e '{self.ssh}' lab:{self.lab.run_dir(run)}/ {self.act.scratch}/copy/")

    def end_all(self):
        self.run("abort", "--all", "-y")


def of_logs(verb, before):
    words = {"logs": ("logs", "--all"), "q": ("q",), "grep": ("grep", "says so"), "report": ("report",)}[verb]

    def act(world, run):
        world.forget(run)
        begun = time.monotonic()
        said = world.run(*words, run)
        taken = time.monotonic() - begun
        if verb in ("logs", "grep") and said.out.count("says so") != 64:
            raise WrongResult(f"{words}: {said}")
        return taken

    def by_hand(world, run):
        world.forget(run)
        begun = time.monotonic()
        if verb == "grep":
            world.hand(f"{world.mux} lab grep -r says {world.lab.run_dir(run)}/user_logs")
        else:
            world.rsync(run)
        return time.monotonic() - begun

    return Line(f"far: `a {' '.join(words)} RUN`, 64 ranks", before, World.ranks, act,
                "grep over a mux" if verb == "grep" else "rsync", by_hand)


def timed(work):
    def act(world, what):
        begun = time.monotonic()
        work(world, what)
        return time.monotonic() - begun

    return act


def abort(world, _):
    runs = world.running_sweep()
    begun = time.monotonic()
    world.run("abort", *runs)
    return time.monotonic() - begun


def scancel(world, _):
    runs = world.running_sweep()
    job = world.lab.record(runs[0], "job.json")["job"].partition("_")[0]
    begun = time.monotonic()
    world.hand(f"{world.mux} lab scancel {job}")
    return time.monotonic() - begun


def sweep(world, _):
    world.end_all()
    begun = time.monotonic()
    world.sweep()
    return time.monotonic() - begun


def q_of_long(world, run):
    world.forget(run)
    begun = time.monotonic()
    world.run("q", run)
    taken = time.monotonic() - begun
    copy = next((world.act.project / "assets" / run / "user_logs").iterdir())
    if copy.stat().st_size != (world.lab.run_dir(run) / RANK.format(0)).stat().st_size:
        raise WrongResult(f"{copy} is not whole")
    return taken


def rsync_of_long(world, run):
    world.forget(run)
    begun = time.monotonic()
    world.rsync(run)
    return time.monotonic() - begun


def submit(world, _):
    world.run("-c", "lab", "-n", 1, "submit", "true")


def sbatch(world, _):
    world.hand(f"rsync -a -e '{world.ssh}' {world.act.project}/ lab:{world.act.scratch}/there/ && "
               f"{world.mux} lab 'sbatch --wrap true'")


def after_change(work):
    """What of ten files of the project takes to be there; each time they are others."""
    def act(world, count):
        world.change_ten(count)
        return timed(work)(world, count)

    return act


def first_time(work):
    def act(world, what):
        world.forget_code()
        return timed(work)(world, what)

    return act


def nothing(_):
    return None


SHOW = ("sweep", "--show", "@", "--metric", "loss", "--min")


def lines():
    """Those of a latency, then that of a rate. before: seconds, as measured before requests were in flight together."""
    return [
        (lambda port: Relay(port, trip_s=TRIP_S), "300 ms", [
            of_logs("logs", 20.6), of_logs("q", 32), of_logs("grep", 90), of_logs("report", 31),
            Line("far: `a submit`", None, nothing, timed(submit), "rsync, sbatch over a mux", timed(sbatch)),
            Line("far: `a sweep` of 50 runs", 33, nothing, sweep, None, None),
            Line("far: `a top --once`, 50 runs", 78, World.running_sweep,
                 timed(lambda world, _: world.run("top", "--once")), "squeue over a mux",
                 timed(lambda world, _: world.hand(f"{world.mux} lab squeue --me"))),
            Line("far: `a sweep --show --metric`, 50 runs", 93, World.running_sweep,
                 timed(lambda world, _: world.run(*SHOW)), None, None),
            Line("far: `a abort` of 50 runs", 94, nothing, abort, "scancel over a mux", scancel),
            Line("far: `a q RUN`, a log of 50 MB", 16.9, lambda world: world.long_log(2 if world.quick else 50),
                 q_of_long, "rsync", rsync_of_long)]),
        (lambda port: Relay(port, rate=10 * MBIT), "10 Mbit/s", [
            Line("far: `a q RUN`, a log of 5 MB", None, lambda world: world.long_log(1 if world.quick else 5),
                 q_of_long, "rsync", rsync_of_long),
            Line("far: `a submit`, 10,000 files, the first time", None, World.big, first_time(submit),
                 "rsync, sbatch over a mux", first_time(sbatch)),
            Line("far: `a submit`, 10 of 10,000 files changed", 10.5, World.both_have_big, after_change(submit),
                 "rsync, sbatch over a mux", after_change(sbatch))])]
