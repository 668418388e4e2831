"""Fixtures: the program in a scratch project, a blob service, its other clients, and a proxy that breaks things.

The programs are those of build/dev, or of the build folder that ACT_BUILD names."""
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import types
import uuid

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODULES = HERE.parent / "node_modules"
sys.path.insert(0, str(HERE))

import azurite as azurite_server  # noqa: E402
from act_tool import Act  # noqa: E402
from azureml_fixtures import azureml, azureml_on_double, azureml_server, server_on_double  # noqa: E402,F401
from browser import browser  # noqa: E402,F401
from double_fixtures import az, blobserver, double, double_server, file_server, login, shares  # noqa: E402,F401
from fault_proxy import FaultProxy  # noqa: E402
from firefox import firefox  # noqa: E402,F401
from listener import listener, other_listener  # noqa: E402,F401
from gpu_machine import gpu_machine  # noqa: E402,F401
from kubernetes_fixtures import kubernetes, kubernetes_api, kubernetes_server, still, still_server  # noqa: E402,F401
from place_fixtures import place, relayed  # noqa: E402,F401
from pod_fixtures import pod_bed  # noqa: E402,F401
from slurm_fixtures import behind_ssh, lab, slurm  # noqa: E402,F401
from ssh_fixtures import host, hosts, of_runs, pair, rack, rack_bed  # noqa: E402,F401
from terminal_fixtures import terminal  # noqa: E402,F401
from user_fixtures import stranger  # noqa: E402,F401


# Tests that break, kill, or bring what is hostile or damaged, by file and by name. They run with the sanitizers, as do
# those that are marked smoke. The others run with the release, and with the sanitizers in `scripts/test --sanitized`.
SANITIZED = {"test_as_listed", "test_bad_names", "test_clock", "test_cut_connection", "test_disk", "test_faults",
             "test_incomplete", "test_killed", "test_kubernetes_errors", "test_kubernetes_loss",
             "test_kubernetes_trust", "test_names", "test_pod", "test_programs", "test_resume", "test_shell",
             "test_slurm_faults", "test_soak", "test_trust", "test_trust_here", "test_wrong_ranges"}
SANITIZED_NAME = re.compile("kill|grows|vanish|dies|break|broken|damaged|interrupted|connections?_go"
                            "|(is|was|are|stays|goes)_(away|lost|cut)")


def pytest_configure(config):
    # Started in the background by a shell, this process ignores Ctrl-C, and so would the programs under test.
    # A worker that is busy when it is told to begin does so in another thread, which may set no handler.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "smoke: one test of each area, for the loop and an old kernel")
    config.addinivalue_line("markers", "sanitized: runs with the sanitizers")
    config.addinivalue_line("markers", "leaves_processes: ends with processes still running, on purpose")


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items):
    for item in items:
        if (item.path.stem in SANITIZED or SANITIZED_NAME.search(item.originalname)
                or item.get_closest_marker("smoke")):
            item.add_marker("sanitized")


@pytest.fixture(scope="session")
def programs():
    """The folder with a, act and act-node."""
    folder = pathlib.Path(os.environ.get("ACT_BUILD", ROOT / "build/dev")).resolve() / "act"
    for name in ("a", "act", "act-node"):
        assert (folder / name).exists(), f"{folder / name} is missing: scripts/build dev"
    return folder


@pytest.fixture
def scratch():
    """A short path: sockets live below it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="act-"))
    yield folder
    try:
        shutil.rmtree(os.fsencode(folder))  # as bytes: names need not be UTF-8
    except PermissionError:  # of a user who is not root
        subprocess.run(["chmod", "-R", "u+rwX", folder], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(os.fsencode(folder))


@pytest.fixture
def act(request, programs, scratch):
    tool = Act(programs, scratch)
    yield tool
    on_purpose = request.node.get_closest_marker("leaves_processes")
    left = {} if not on_purpose and tool.await_ends() else tool.clean_up()
    if left and not on_purpose:
        pytest.fail(f"processes were left running: {left}")


@pytest.fixture
def two_ranks():
    if os.cpu_count() < 2:
        pytest.skip("this machine has one processor: no two ranks")


# ---- the blob service


@pytest.fixture(scope="session")
def azurite():
    """Azurite, the emulator of the Blob service, as a BlobService."""
    if not azurite_server.PROGRAM.exists():
        pytest.skip("azurite is not installed: scripts/install-deps --test")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="act-azurite-"))
    try:
        with azurite_server.running(folder / "azurite") as service:
            yield service
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def container(azurite):
    """The name of a fresh container."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    azurite.create(name)
    yield name
    azurite.request("DELETE", name, {"restype": "container"}, expect=None)


# For tests of names that a share does not take. Azurite and the double do not take the same.
any_name = pytest.mark.parametrize("stored", ["folder", "azure", "double"], indirect=True)
# For tests of what is decided or done on this side, whatever the store is: what stores differ in, the conformance suite
# and the tests of all three tell.
one_store = pytest.mark.parametrize("stored", ["azure"], indirect=True)


@pytest.fixture(params=["folder", "azure", "share"])
def stored(request, act):
    """The project with its data in a store of each kind, and the store seen from the other side. What the double of the
    Blob service does beside Azurite, the conformance suite and test_double.py tell; it is "double" where names
    matter."""
    if request.param == "folder":
        return FolderPeer(act)
    if request.param == "double":
        return request.getfixturevalue("azure_double")
    if request.param == "share":
        return request.getfixturevalue("azure_share")
    return AzurePeer(act, request.getfixturevalue("azurite"), request.getfixturevalue("container"))


class FolderPeer:
    """The folder store: its objects are plain files."""
    kind = "folder"
    unfit = ""  # what no name has there

    def __init__(self, act):
        self.act, self.root = act, act.store / "files"

    def keys(self):
        if not self.root.exists():
            return {}
        return {str(p.relative_to(self.root)): p.stat().st_size for p in self.root.rglob("*") if p.is_file()}

    def get(self, key):
        return (self.root / key).read_bytes()

    def put(self, key, data):
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


class AzurePeer:
    """A container of Azurite or of the test double, by the client of the tests."""
    kind = "azure"
    unfit = ""

    def __init__(self, act, service, container):
        self.act, self.service, self.container = act, service, container
        act.account("store", account_name=service.account, account_key=service.key, container_name=container,
                    endpoint=service.endpoint)

    def keys(self):
        return {k.removeprefix("files/"): v for k, v in self.service.list(self.container, "files/").items()}

    def get(self, key):
        return self.service.get(f"{self.container}/files/{key}")

    def put(self, key, data):
        self.service.put(f"{self.container}/files/{key}", data)


class SharePeer(AzurePeer):
    """A share of the test double of the File service."""
    kind = "share"
    unfit = '"\\:|<>*?'

    def __init__(self, act, service, share):
        self.act, self.service, self.container = act, service, share
        act.account("store", **service.account_keys(share))
        act.cluster("aml", keys=service.folder_keys(share))


@pytest.fixture
def azure_share(act, shares):  # noqa: F811
    """The project with everything in a fresh share of the test double."""
    return SharePeer(act, shares, shares.share)


@pytest.fixture
def azure(act, azurite, container):
    """The project with everything in a fresh container of Azurite."""
    return AzurePeer(act, azurite, container)


@pytest.fixture
def azure_double(act, double):  # noqa: F811
    """The project with everything in a fresh container of the test double."""
    return AzurePeer(act, double, double.container)


@pytest.fixture
def proxy(act, azure):
    """The same behind a proxy that can be told to break things."""
    server = FaultProxy(("127.0.0.1", azure.service.port))
    act.account("store", account_name=azure.service.account, account_key=azure.service.key,
                container_name=azure.container, endpoint=f"http://127.0.0.1:{server.port}/{azure.service.account}")
    yield server
    server.close()


# ---- the other clients of the service


def azcopy_on(peer, scratch):
    """azcopy on a container or share: azcopy.copy(source, destination) where blob(key) names a blob or file."""
    found = sorted(MODULES.glob("@azure-tools/azcopy-linux/dist/bin/azcopy_linux_*"))
    if not found:
        pytest.skip("azcopy is not installed: scripts/install-deps --test")
    sas = peer.service.sas(peer.container)

    def blob(key):
        return f"{peer.service.endpoint}/{peer.container}/files/{key}?{sas}"

    def run(verb, source, destination, direction, *options):
        logs = scratch / "azcopy"
        env = {"PATH": "/usr/bin:/bin", "HOME": str(scratch / "home"), "AZCOPY_LOG_LOCATION": str(logs),
               "AZCOPY_JOB_PLAN_LOCATION": str(logs), "AZCOPY_DISABLE_SYSLOG": "true"}
        done = subprocess.run([found[0], verb, source, destination, "--from-to", direction, "--recursive",
                               "--skip-version-check", *options], env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        assert done.returncode == 0, done.stdout
        return done.stdout
    return types.SimpleNamespace(blob=blob, run=run, copy=functools.partial(run, "copy"))


@pytest.fixture
def azcopy(azure, scratch):
    return azcopy_on(azure, scratch)


@pytest.fixture
def azcopy_there(azure_share, scratch):
    return azcopy_on(azure_share, scratch)


@pytest.fixture
def rclone(azure, scratch):
    """rclone on the container: rclone("copy", remote("data"), folder)."""
    if not shutil.which("rclone"):
        pytest.skip("rclone is not installed: scripts/install-deps --test")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(scratch / "home"), "RCLONE_CONFIG": str(scratch / "rclone.conf"),
           "RCLONE_CONFIG_PEER_TYPE": "azureblob",
           "RCLONE_CONFIG_PEER_SAS_URL": f"{azure.service.endpoint}/{azure.container}?"
                                         + azure.service.container_sas(azure.container)}

    def run(*words):
        done = subprocess.run(["rclone", *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=300)
        assert done.returncode == 0, done.stdout
        return done.stdout
    return types.SimpleNamespace(run=run, remote=lambda key: f"peer:{azure.container}/files/{key}")
