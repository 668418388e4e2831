"""Fixtures of the test doubles of the Blob service and of the File service."""
import base64
import contextlib
import pathlib
import uuid

import pytest

from blob_double import BlobDouble
from file_double import FileDouble
from login_double import KEY, TENANT, AzDouble, LoginDouble


ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def blobserver(programs):
    """The double's program: that of the build under test, or of build/dev where that has no tests."""
    for folder in (programs.parent, ROOT / "build/dev"):
        if (folder / "tests/blobserver").exists():
            return folder / "tests/blobserver"
    raise AssertionError("tests/blobserver is in no build folder: scripts/build dev")


@pytest.fixture(scope="session")
def double_server(blobserver):
    server = BlobDouble(blobserver, "--login", f"{base64.b64encode(KEY).decode()}:{TENANT}",
                        accounts=("actdouble", "actsecond"))
    yield server
    server.stop()


@contextlib.contextmanager
def fresh(server):
    """The name of a new container or share, on the server with nothing wrong and an empty log."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    server.no_faults()
    server.clock(0)
    server.create(name)
    server.forget()
    yield name
    server.no_faults()
    server.clock(0)
    server.remove(name)


@pytest.fixture
def double(double_server):
    """The double as a BlobService, with nothing wrong and an empty log; double.container is a fresh one."""
    with fresh(double_server) as double_server.container:
        yield double_server


@pytest.fixture(scope="session")
def file_server(blobserver):
    server = FileDouble(blobserver, "--login", f"{base64.b64encode(KEY).decode()}:{TENANT}",
                        accounts=("actshares", "actsecond"))
    yield server
    server.stop()


@pytest.fixture
def shares(file_server):
    """The File service with nothing wrong and an empty log; shares.share is a fresh share."""
    with fresh(file_server) as file_server.share:
        yield file_server


@pytest.fixture
def login(act):
    """What issues tokens that the doubles of storage take. The user trusts this machine to have them."""
    server = LoginDouble()
    act.env["ACT_TRUSTED_HOSTS"] = "127.0.0.1"
    yield server
    server.close()


@pytest.fixture
def az(scratch):
    """The program az, as it should be; az.folder goes into PATH."""
    return AzDouble(scratch)
