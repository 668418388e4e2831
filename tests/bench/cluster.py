"""What ACT does with a Kubernetes cluster: how many requests it makes of the server, and how long it takes. The server
is the double (tests/kubernetes), in which no pods run: a line says itself what has become of them."""
import collections
import json
import pathlib
import socket
import statistics
import threading
import time

import kubernetes_double
import tools
from act_tool import Act

MIB = 1 << 20
STARTS = 20  # of a program, to know how long its start takes
K8S = ("-c", "k8s")
NOW = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())  # older ones would be collected
RUNNING = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": NOW}}}]}
ENDED = {"phase": "Succeeded", "containerStatuses": [
    {"name": "main", "state": {"terminated": {"exitCode": 0, "finishedAt": NOW}}}]}

# The figures of ACT, how many requests it made, and the seconds that curl took. None: there is no such figure.
Result = collections.namedtuple("Result", "wall cpu rss requests peer", defaults=(None,) * 4)


class WrongResult(Exception):
    pass


def expect(what, got, wanted):
    if got != wanted:
        raise WrongResult(f"{what}: {got}, not {wanted}")


def first_request(act, server, words):
    """Median seconds from the start of `a words...` to its first byte to a server that never answers."""
    took = []
    for _ in range(STARTS + 1):  # the first one warms the caches
        started = time.perf_counter()
        process = act.start(*words)
        with server.accept()[0] as connection:
            if not connection.recv(1):
                raise WrongResult(f"a {' '.join(words)} sent nothing")
            took.append(time.perf_counter() - started)
            process.kill()
            process.communicate()
    return statistics.median(took[1:])


class Cluster:
    """The double, and a project whose cluster it is."""

    def __init__(self, programs, scratch):
        for name in ("double", "tool"):
            (scratch / name).mkdir(parents=True)
        self.scratch = scratch / "tool"
        self.double = kubernetes_double.Kubernetes(scratch / "double", run=False, logBytes=1 << 40)
        self.act = Act(programs, scratch)
        self.double.use(self.act)
        self.act.write("train.py", "print('hello')\n")

    def stop(self):
        self.double.stop()

    def reset(self):
        """An empty cluster, of which ACT knows nothing; what it packs of the project is packed."""
        self.double.tell("reset")
        (self.act.home / "ledger.db").unlink(missing_ok=True)
        for known in (self.act.home / "cache").glob("k8s-*.json"):
            known.unlink()
        self.double.cluster()
        self.act.run(*K8S, "init")

    def a(self, *words, out=None):
        """Figures of a command, and how many requests it made."""
        self.double.forget()
        program = self.act.programs / "a"
        figures = tools.measure([program, *words], self.act.env, self.act.project, self.scratch, out)
        return figures, len(self.double.requests())

    def submit(self):
        """The Job that a submit makes."""
        self.act.run(*K8S, "submit", "python3", "train.py")
        return self.double.objects("Job")[-1]

    def pod_of(self, job):
        """Its pod, once the Job controller has made it."""
        end = time.monotonic() + 30
        while not (found := self.double.pods_of(job["metadata"]["name"])):
            if time.monotonic() > end:
                raise WrongResult("the Job has no pod")
            time.sleep(.01)
        return found[0]["metadata"]["name"]

    def set_pod(self, name, status):
        self.double.tell("patch", kind="Pod", name=name, patch={"status": status})


# ---- lines


class Line:
    """One row of the table: most requests, most seconds, and most of the wall time of curl; None: no target."""

    def __init__(self, name, label, requests=None, wall=None, ratio=None, **values):
        self.name, self.label, self.targets = name, label, (requests, wall, ratio)
        vars(self).update(values)

    def run(self, cluster):
        raise NotImplementedError


class Start(Line):
    """The server of the kubeconfig is a socket that answers nothing."""

    def run(self, cluster):
        cluster.reset()
        with socket.create_server(("127.0.0.1", 0)) as server:
            silent = cluster.scratch / "silent"
            text = pathlib.Path(cluster.double.kubeconfig).read_text()
            silent.write_text(text.replace(cluster.double.url, f"https://127.0.0.1:{server.getsockname()[1]}"))
            cluster.double.cluster(k8s={"kubeconfig": str(silent)})
            wall = first_request(cluster.act, server, (*K8S, "q"))
        return Result(wall)


class Submit(Line):
    """first: the namespace has nothing of ACT yet; gpus: the pods want some, so that the nodes are looked at."""
    first = gpus = False

    def run(self, cluster):
        cluster.reset()
        if self.gpus:
            cluster.double.cluster(k8s={"gpu_resource": "nvidia.com/gpu"})
        if not self.first:
            cluster.submit()
        before = len(cluster.double.objects("Job"))
        figures, requests = cluster.a(*K8S, "submit", "python3", "train.py")
        expect("new Jobs", len(cluster.double.objects("Job")) - before, 1)
        return Result(*figures, requests)


class Table(Line):
    """Runs that this machine's ledger does not know: most of them have ended, some run."""

    def run(self, cluster):
        cluster.reset()
        self.fill(cluster, cluster.submit())
        (cluster.act.home / "ledger.db").unlink()
        out = cluster.scratch / "table"
        figures, requests = cluster.a(*K8S, "q", "--max", "0", "--json", out=out)
        states = collections.Counter(run["state"] for run in json.loads(out.read_bytes())["runs"])
        expect("runs", states, {"Running": self.running, "Completed": self.count - self.running})
        return Result(*figures, requests)

    def fill(self, cluster, first):
        jobs = [first] + [self.copy(first, i) for i in range(1, self.count)]
        for i in range(self.running):
            if i:
                cluster.double.tell("create", kind="Job", object=jobs[i])
            cluster.set_pod(cluster.pod_of(jobs[i]), RUNNING)
        over = {"conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": NOW}], "startTime": NOW,
                "completionTime": NOW, "succeeded": 1}
        rest = [{**job, "status": over} for job in jobs[self.running:]]
        for i in range(0, len(rest), 100):
            cluster.double.tell("create", kind="Job", objects=rest[i:i + 100])

    def copy(self, first, i):
        """A Job as a submit would have made it, of another run."""
        run, name = f"bench_{1700000000 + i}_{i:08x}", f"bench-{1700000000 + i}-{i:08x}"
        old = first["metadata"]
        text = json.dumps({k: first[k] for k in ("apiVersion", "kind", "metadata", "spec")})
        text = text.replace(old["annotations"]["act/run"], run).replace(old["name"], name)
        job = json.loads(text)
        for part in (job["metadata"], job["spec"]["template"]["metadata"]):
            part["labels"] = {k: v for k, v in part["labels"].items() if not k.endswith("controller-uid")}
        job["spec"].pop("selector", None)
        for key in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
            job["metadata"].pop(key, None)
        return job


class Follow(Line):
    """The log of a pod, written while it is read; curl is told where it is."""

    def run(self, cluster):
        return Result(*self.follow(cluster, self.act), peer=self.follow(cluster, self.curl).wall)

    def follow(self, cluster, reader):
        cluster.reset()
        job = cluster.submit()
        pod = cluster.pod_of(job)
        cluster.set_pod(pod, RUNNING)
        cluster.double.tell("log", name=pod, text="")
        writer = threading.Thread(target=self.write, args=(cluster, pod))
        cluster.double.forget()
        writer.start()
        try:
            return reader(cluster, job, pod)
        finally:
            writer.join()

    def lines(self):
        return [f"step {i:8} loss 0.123 ................................................\n"
                for i in range(self.size // 80)]

    def write(self, cluster, pod):
        """From the first request on, as quickly as the double takes it; what the double is told is 3 MiB at most."""
        double, lines, part = cluster.double, self.lines(), 2 * MIB // 80
        while not any(f"/pods/{pod}/log" in request["url"] for request in double.requests()):
            time.sleep(.005)
        for i in range(0, len(lines), part):
            double.tell("log", name=pod, text="".join(f"[0] {line}" for line in lines[i:i + part]))
        double.tell("log", name=pod, text="", end=True)
        cluster.set_pod(pod, ENDED)

    def act(self, cluster, job, pod):
        out = cluster.scratch / "log"
        run = job["metadata"]["annotations"]["act/run"]
        figures = tools.measure([cluster.act.programs / "a", "logs", "-f", run], cluster.act.env, cluster.act.project,
                                cluster.scratch, out)
        expect("the log that was followed", out.read_text() == "".join(self.lines()), True)
        return figures

    def curl(self, cluster, job, pod):
        double, out, config = cluster.double, cluster.scratch / "log", cluster.scratch / "curl"
        config.write_text(f'cacert = "{double.folder}/pki/ca.crt"\nheader = "Authorization: Bearer '
                          f'the-token-of-tests"\nurl = "{double.url}/api/v1/namespaces/default/pods/{pod}/log'
                          '?container=main&timestamps=true&follow=true"\nno-buffer\nsilent\nfail\n')
        figures = tools.measure(["curl", "-K", config], cluster.act.env, cluster.scratch, cluster.scratch, out)
        expect("lines that curl saw", out.read_bytes().count(b"\n"), len(self.lines()))
        return figures


def lines(quick):
    count, size = (60, 2 * MIB) if quick else (1000, 50 * MIB)
    return [
        Start("k8s-start", "start of `a q` to its first request", wall=.005),
        Submit("k8s-submit-first", "submit, first time in a namespace", requests=8, first=True),
        Submit("k8s-submit", "submit", requests=5),
        Submit("k8s-submit-gpus", "submit of a run with GPUs", requests=6, gpus=True),
        Table("k8s-table", f"table of {count:,} runs", requests=3, count=count, running=count // 20),
        Follow("k8s-follow", f"follow a log of {size // MIB} MiB", ratio=1.2, size=size),
    ]
