"""Fixtures of the test double of the Blob service."""
import uuid

import pytest

from blob_double import BlobDouble


@pytest.fixture(scope="session")
def double_server(programs):
    program = programs.parent / "tests/blobserver"
    assert program.exists(), f"{program} is missing: scripts/build dev"
    server = BlobDouble(program, accounts=("actdouble", "actsecond"))
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
