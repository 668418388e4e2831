"""The double of Azure Machine Learning: tests/azureml/server.mjs, which runs the jobs it is given on this machine."""
import pathlib

import azurite
import service_double

HERE = pathlib.Path(__file__).resolve().parent
SERVER = HERE.parent / "azureml/server.mjs"
PACKAGES = [HERE.parent / "node_modules/@azure" / name
            for name in ("arm-machinelearning", "arm-containerservice", "arm-storage")]
LOGS = "azureml"  # the container of the workspace's own logs

TENANT, OTHER_TENANT = "72f988bf-0000-0000-0000-000000000001", "72f988bf-0000-0000-0000-000000000002"
SUBSCRIPTION = "00000000-0000-0000-0000-00000000000a"
CLIENT, SECRET = "22222222-0000-0000-0000-000000000001", "the~secret.of_tests"


def login_env(url):
    """The login with a secret, at this address, of a user who trusts this machine to have its tokens."""
    return {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT, "AZURE_CLIENT_SECRET": SECRET,
            "AZURE_AUTHORITY_HOST": url, "ACT_TRUSTED_HOSTS": "127.0.0.1"}


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


class AzureML(service_double.ServiceDouble):
    """The double, and the cluster "aml" of a project that is on it."""

    def __init__(self, service, folder, **more):
        """folder is an empty one; more: settings of the double, see tests/azureml/world.mjs."""
        (folder / "work").mkdir()
        self.service = service
        settings = {"accounts": {service.account: service.endpoint}, "folder": str(folder / "work"),
                    "logs": {"account": service.account, "key": service.key, "container": LOGS}, **more}
        super().__init__(SERVER, folder, settings)

    # ---- commands for the double, see tests/azureml/admin.mjs

    def job(self, run):
        found = [job for job in self.tell("jobs") if job["name"] == run]
        assert len(found) == 1, (run, found)
        return found[0]

    def requests(self, *servers):
        """What was asked since the beginning or forget(), of all servers or some; logins only when named."""
        return [r for r in self.tell("look")["requests"] if r["server"] in (servers or ("arm", "api"))]

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
        keys = cluster_keys(self.links["arm"], self.links["api"])
        return self.act.cluster(name, extra=service_double.merge(keys, extra))
