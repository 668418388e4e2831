"""The double of Azure Machine Learning: tests/azureml/server.mjs, which runs the jobs it is given on this machine."""
import json
import pathlib
import subprocess
import urllib.request

import azurite


HERE = pathlib.Path(__file__).resolve().parent
SERVER = HERE.parent / "azureml/server.mjs"
PACKAGES = [HERE.parent / "node_modules/@azure" / name for name in ("arm-machinelearning", "arm-containerservice")]
LOGS = "azureml"  # the container of the workspace's own logs

TENANT, OTHER_TENANT = "72f988bf-0000-0000-0000-000000000001", "72f988bf-0000-0000-0000-000000000002"
SUBSCRIPTION = "00000000-0000-0000-0000-00000000000a"
CLIENT, SECRET = "22222222-0000-0000-0000-000000000001", "the~secret.of_tests"


def login_env(url):
    """The login with a secret, at this address."""
    return {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT, "AZURE_CLIENT_SECRET": SECRET,
            "AZURE_AUTHORITY_HOST": url}


def cluster_keys(arm, api):
    """The keys of a cluster file for a workspace at these addresses."""
    return {
        "platform": "aml", "compute_target": "gpu", "docker": {"image": "debian:12"}, "gpu_per_node": 2,
        "aml_config": {"subscription_id": SUBSCRIPTION, "resource_group": "rg", "workspace_name": "ws"},
        "azureml": {"endpoint": arm, "history_endpoint": api},
    }


def missing():
    """Why it cannot be started; None: it can."""
    for part in (*PACKAGES, azurite.PROGRAM):
        if not part.exists():
            return "the packages of the double are not installed: scripts/install-deps --test"
    return None


class AzureML:
    """The double, and the cluster "aml" of a project that is on it."""

    def __init__(self, service, folder, **more):
        """folder is an empty one; more: settings of the double, see tests/azureml/world.mjs."""
        (folder / "work").mkdir()
        self.service = service
        self.errors = open(folder / "errors", "w+b")
        self.process = subprocess.Popen(["node", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, cwd=folder)
        settings = {"accounts": {service.account: service.endpoint}, "folder": str(folder / "work"),
                    "logs": {"account": service.account, "key": service.key, "container": LOGS}, **more}
        self.process.stdin.write(json.dumps(settings).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.said()
        self.links = json.loads(line)
        self.act = None

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode()

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.errors.close()

    # ---- commands for the double, see tests/azureml/admin.mjs

    def tell(self, what, body=None, **members):
        data = json.dumps(members if body is None else body).encode()
        request = urllib.request.Request(f"{self.links['admin']}/{what}", data, method="POST")
        with urllib.request.urlopen(request, timeout=180) as answer:  # a reset ends processes first
            return json.load(answer)

    def faults(self, *faults):
        self.tell("faults", list(faults))

    def job(self, run):
        found = [job for job in self.tell("jobs") if job["name"] == run]
        assert len(found) == 1, (run, found)
        return found[0]

    def requests(self, *servers):
        """What was asked since the beginning or forget(), of all servers or some; logins only when named."""
        return [r for r in self.tell("look")["requests"] if r["server"] in (servers or ("arm", "api"))]

    def forget(self):
        """Forgets the requests. What was wrong with one is an error now."""
        self.check()
        self.tell("forget")

    def violations(self):
        """What the official client would not have sent. Asked for, it is no error of the test."""
        found = self.tell("look")["violations"]
        self.tell("forget")
        return found

    def check(self):
        found = self.tell("look")["violations"]
        assert not found, found

    # ---- a project

    def use(self, act, container):
        """The project's data is in a container, its cluster "aml" in the workspace; it logs in with a secret."""
        self.act = act
        act.env.update(self.login_env())
        act.account("store", account_name=self.service.account, account_key=self.service.key,
                    container_name=container, endpoint=self.service.endpoint)
        self.cluster()

    def login_env(self):
        """The login with a secret."""
        return login_env(self.links["login"])

    def log_key(self, run, name):
        """Where the service keeps a log."""
        return f"{LOGS}/ExperimentRun/dcid.{run}/{name}"

    def cluster(self, name="aml", **extra):
        """A cluster file; extra is merged into its top level, its own parts are merged into what is there."""
        merged = cluster_keys(self.links["arm"], self.links["api"])
        for key, value in extra.items():
            merged[key] = {**merged[key], **value} if isinstance(merged.get(key), dict) else value
        return self.act.cluster(name, extra=merged)
