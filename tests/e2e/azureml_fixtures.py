"""Fixtures of the double of Azure Machine Learning."""
import pathlib
import shutil
import tempfile

import pytest

import azureml_double


@pytest.fixture(scope="session")
def azureml_server(azurite):
    yield from serve(azurite)


@pytest.fixture(scope="session")
def server_on_double(double_server):
    """One whose logs are in the double of the Blob service, which can be told to go wrong."""
    yield from serve(double_server)


def serve(service):
    if azureml_double.missing():
        pytest.skip(azureml_double.missing())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="act-azureml-"))
    server = azureml_double.AzureML(service, folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


def empty(server, act, container):
    """The project on an empty workspace. A request that the official client would not send fails the test."""
    server.tell("reset")
    server.use(act, container)
    yield server
    try:
        server.check()
    finally:
        server.tell("reset")


@pytest.fixture
def azureml_on_double(act, double, server_on_double):
    """A workspace whose project and logs are in the double of the Blob service."""
    yield from empty(server_on_double, act, double.container)


@pytest.fixture
def azureml(act, container, azureml_server):
    yield from empty(azureml_server, act, container)
