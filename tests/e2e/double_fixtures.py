"""Fixtures of the test doubles of the Blob service and of the File service."""
import base64
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


@pytest.fixture
def double(double_server):
    """The double as a BlobService, with nothing wrong and an empty log; double.container is a fresh one."""
    double_server.no_faults()
    double_server.clock(0)
    double_server.container = f"test-{uuid.uuid4().hex[:12]}"
    double_server.create(double_server.container)
    double_server.forget()
    yield double_server
    double_server.no_faults()
    double_server.clock(0)
    double_server.request("DELETE", double_server.container, {"restype": "container"}, expect=None)


@pytest.fixture(scope="session")
def file_server(blobserver):
    server = FileDouble(blobserver, "--login", f"{base64.b64encode(KEY).decode()}:{TENANT}",
                        accounts=("actshares", "actsecond"))
    yield server
    server.stop()


@pytest.fixture
def shares(file_server):
    """The File service with nothing wrong and an empty log; shares.share is a fresh share."""
    file_server.no_faults()
    file_server.clock(0)
    file_server.share = f"share-{uuid.uuid4().hex[:12]}"
    file_server.create(file_server.share)
    file_server.forget()
    yield file_server
    file_server.no_faults()
    file_server.clock(0)
    file_server.request("DELETE", file_server.share, {"restype": "share"}, expect=None)


@pytest.fixture
def login():
    """What issues tokens that the doubles of storage take."""
    server = LoginDouble()
    yield server
    server.close()


@pytest.fixture
def az(scratch):
    """The program az, as it should be; az.folder goes into PATH."""
    return AzDouble(scratch)
