"""How often a Kubernetes cluster is asked while somebody watches a run there, beside kubectl: when the watch begins, in
each minute in which nothing changes, and until the run's end was seen. The double counts."""
import collections
import re
import shutil
import subprocess
import time

import cluster
import glance

VERBS = ("get", "list", "watch")
LOGS_S = 8  # after which `a top` has begun to follow logs

# Counters of requests by verb: at the start, while nothing changed, to the end. seconds: until the end was seen.
Seen = collections.namedtuple("Seen", "start quiet whole seconds")


def verb_of(request):
    """As the server's own rules for rights name it; what kubectl asks of the API itself is a get, too."""
    path, _, query = request["url"].partition("?")
    if "watch=" in query:
        return "watch"
    return "list" if re.search(r"/namespaces/[^/]+/[^/]+$|/(nodes|pods)$", path) else "get"


def count(double):
    return collections.Counter(verb_of(r) for r in double.requests() if r["method"] == "GET")


def settle(double, seconds):
    """Waits until nothing more is asked at the beginning, and for so long nothing was."""
    before, since = None, 0
    while (now := count(double)) != before or not now or time.monotonic() < since + seconds:
        if now != before:
            before, since = now, time.monotonic()
        time.sleep(.2)
    return now


class Plain:
    """A program that ends when the run does."""

    def __init__(self, words, env, folder):
        self.process = subprocess.Popen(list(map(str, words)), env=env, cwd=folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def await_end(self):
        if self.process.wait(60) != 0:
            raise cluster.WrongResult(f"{self.process.args} ended with status {self.process.returncode}")

    def close(self):
        self.process.kill()
        self.process.wait()


class Listed(Plain):
    """One that goes on, and prints a line of each change."""

    def __init__(self, words, env, folder, sign):
        self.process = subprocess.Popen(list(map(str, words)), env=env, cwd=folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.sign = sign

    def await_end(self):
        while not re.search(self.sign, self.process.stdout.readline()):
            pass


class Shown:
    """`a top`, or a table, on a terminal."""

    def __init__(self, act, words):
        self.screen = glance.Watched(act, words=words)

    def await_end(self):
        self.screen.until(b"Completed")

    def close(self):
        self.screen.close()


class Watch:
    """One row of the table. words: of `a`, RUN for the run's id; peer: of kubectl, JOB and POD for their names;
    running: whether the run has begun; times: how many programs watch it at once; shown: on a terminal; sign: of the
    end, in what kubectl prints; asks: it may ask for something now and then."""

    def __init__(self, name, label, words, peer=None, running=True, times=1, shown=False, sign=None, asks=False):
        self.name, self.label, self.words, self.peer, self.asks = name, label, words, peer, asks
        self.running, self.times, self.shown, self.sign = running, times, shown, sign

    def programs_of_act(self, bed, names):
        words = [names.get(word, word) for word in self.words]
        if self.shown:
            return [Shown(bed.act, words)]
        command = [bed.act.programs / "a", *words]
        return [Plain(command, bed.act.env, bed.act.project) for _ in range(self.times)]

    def programs_of_kubectl(self, bed, names):
        command = ["kubectl", "--kubeconfig", bed.double.kubeconfig, "--cache-dir", bed.scratch / "cache",
                   *(re.sub("JOB|POD", lambda found: names[found[0]], word) for word in self.peer)]
        if self.sign:
            return [Listed(command, bed.act.env, bed.scratch, self.sign)]
        return [Plain(command, bed.act.env, bed.scratch)]

    def see(self, bed, start, seconds):
        bed.reset()
        job = bed.submit()
        pod = bed.pod_of(job)
        if self.running:
            bed.set_pod(pod, cluster.RUNNING)
            bed.double.tell("log", name=pod, text="[0] it begins\n")
        bed.double.forget()
        programs = start(bed, {"RUN": job["metadata"]["annotations"]["act/run"], "JOB": job["metadata"]["name"],
                               "POD": pod})
        try:
            begun = settle(bed.double, LOGS_S if self.shown else 1)
            time.sleep(seconds)
            quiet = count(bed.double) - begun
            changed = time.monotonic()
            bed.double.tell("log", name=pod, text="", end=True)
            bed.set_pod(pod, cluster.ENDED)
            for program in programs:
                program.await_end()
            took = time.monotonic() - changed
        finally:
            for program in programs:
                program.close()
        per_minute = {verb: n * 60 / seconds for verb, n in quiet.items()}
        return Seen(begun, per_minute, count(bed.double), took)

    def run(self, bed, seconds):
        """ACT's figures, and kubectl's or nothing."""
        act = self.see(bed, self.programs_of_act, seconds)
        peer = self.peer and shutil.which("kubectl") and self.see(bed, self.programs_of_kubectl, seconds)
        return act, peer


def lines(quick):
    many = 10 if quick else 100
    complete = ["wait", "--for=condition=complete", "--timeout=10m", "job/JOB"]
    return [
        Watch("k8s-watch-queued", "`a wait`, the run is queued; `kubectl wait`", ["wait", "RUN"], complete,
              running=False),
        Watch("k8s-watch-running", "`a wait`, the run runs; `kubectl wait`", ["wait", "RUN"], complete),
        Watch("k8s-watch-many", f"{many} times `a wait` at once", ["wait", "RUN"], times=many),
        Watch("k8s-watch-log", "`a logs -f` of a run that says nothing; `kubectl logs -f`", ["logs", "-f", "RUN"],
              ["logs", "-f", "POD"]),
        Watch("k8s-watch-table", "`a q --watch`; `kubectl get jobs -w`", ["-c", "k8s", "q", "--watch"],
              ["get", "jobs", "-w"], shown=True, sign=r"Complete|1/1"),
        Watch("k8s-watch-top", "`a top`, which asks for the load of the cluster", ["-c", "k8s", "top"], shown=True,
              asks=True),
    ]
