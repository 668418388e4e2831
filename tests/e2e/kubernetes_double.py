"""The double of Kubernetes: tests/kubernetes/server.mjs, which runs the pods it is given on this machine."""
import json
import pathlib
import urllib.error
import urllib.request

import service_double
import waiting

HERE = pathlib.Path(__file__).resolve().parent
SERVER = HERE.parent / "kubernetes/server.mjs"
MODULES = HERE.parent / "node_modules"
IMAGE = "registry.example.com/act/test:1"
PATHS = {"Job": "/apis/batch/v1/namespaces/{}/jobs", "Pod": "/api/v1/namespaces/{}/pods",
         "Secret": "/api/v1/namespaces/{}/secrets", "Service": "/api/v1/namespaces/{}/services",
         "Event": "/api/v1/namespaces/{}/events"}


def missing():
    """Why it cannot be started; None: it can."""
    for part in ("@kubernetes/client-node", "kubernetes-models"):
        if not (MODULES / part).exists():
            return "the packages of the double are not installed: scripts/install-deps --test"
    return None


class Kubernetes(service_double.ServiceDouble):
    """The double, and the cluster "k8s" of a project that is on it."""

    def __init__(self, folder, **settings):
        """folder is an empty one; settings of the double: see tests/kubernetes/world.mjs."""
        self.folder = folder
        super().__init__(SERVER, folder, {"folder": str(folder), **settings})
        self.url, self.plain = self.links["url"], self.links["plain"]
        self.kubeconfigs = self.links["kubeconfig"]
        self.kubeconfig = self.kubeconfigs["token"]

    def why_no_pods(self):
        """Why pods cannot run on this machine; None: they can."""
        return self.tell("able")["reason"]

    # ---- commands for the double, see tests/kubernetes/control.mjs

    def forbid(self, *rules):
        self.tell("forbid", list(rules))

    def node(self, name, do, **more):
        return self.tell("node", name=name, do=do, **more)

    def pod(self, name, do, **more):
        return self.tell("pod", name=name, do=do, **more)

    def objects(self, kind, namespace="default"):
        return self.tell("objects", kind=kind, namespace=namespace)

    def clock(self, seconds):
        """The server's clock is that much ahead."""
        self.tell("settings", clock=int(seconds * 1000))

    def away(self):
        """Nobody listens at its addresses until back()."""
        self.tell("away")

    def back(self):
        self.tell("back")

    def new_token(self, token, until=None):
        """From now on only this token is good; the exec plugin gives it, with an end (RFC 3339) where one is given."""
        self.tell("tokens", revoke=True, add={token: {}}, credential={"token": token, "expirationTimestamp": until})

    def plugin_runs(self):
        """How often the exec plugin was run."""
        runs = self.folder / "credential.runs"
        return len(runs.read_text().splitlines()) if runs.exists() else 0

    def requests(self):
        """What was asked over https since the beginning or forget()."""
        return [r for r in self.tell("look")["requests"] if r["server"] == "secure"]

    def changes(self):
        """Those requests that were to change something; a dry run is not."""
        return [r for r in self.requests() if r["method"] != "GET" and "dryRun=All" not in r["url"]]

    # ---- the API, as somebody else uses it

    def call(self, method, path, body=None, content_type="application/json"):
        """Status and answer of a request over http, which needs no credentials."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.plain + path, data, {"Content-Type": content_type}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text.decode(errors="replace")

    def create(self, body, namespace="default"):
        status, answer = self.call("POST", PATHS[body["kind"]].format(namespace), body)
        assert status == 201, answer
        return answer

    def until(self, kind, name, reached, namespace="default"):
        """The object as soon as reached(object) holds; it may not exist at first."""
        found = None

        def is_reached():
            nonlocal found
            status, found = self.call("GET", f"{PATHS[kind].format(namespace)}/{name}")
            return status == 200 and reached(found)

        waiting.until(is_reached, lambda: found)
        return found

    def pods_of(self, job):
        """Its pods in the order of their indexes."""
        key = "batch.kubernetes.io/job-completion-index"
        found = [pod for pod in self.objects("Pod") if pod["metadata"].get("labels", {}).get("job-name") == job]
        return sorted(found, key=lambda pod: int(pod["metadata"].get("annotations", {}).get(key, 0)))

    # ---- a project

    def use(self, act):
        """The project's cluster "k8s" is this one."""
        self.act = act
        self.cluster()

    def cluster(self, name="k8s", **extra):
        """A cluster file; extra is merged into its top level, its own parts are merged into what is there."""
        keys = {"platform": "k8s", "gpu_per_node": 1,
                "k8s": {"kubeconfig": str(self.kubeconfig), "namespace": "default", "image": IMAGE,
                        "gpu_resource": "none"}}
        return self.act.cluster(name, folders=(), extra=service_double.merge(keys, extra))
