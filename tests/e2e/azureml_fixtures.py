"""Fixtures of the double of Azure Machine Learning."""
import pathlib
import shutil
import tempfile

import pytest

import azureml_double


@pytest.fixture(scope="session")
def azureml_server(azurite):
    if azureml_double.missing():
        pytest.skip(azureml_double.missing())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="act-azureml-"))
    server = azureml_double.AzureML(azurite, folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture
def azureml_on_double(act, double, tmp_path):
    """A workspace whose project and logs are in the double of the Blob service, which can be told to go wrong."""
    if azureml_double.missing():
        pytest.skip(azureml_double.missing())
    server = azureml_double.AzureML(double, tmp_path)
    try:
        server.use(act, double.container)
        yield server
        server.check()
    finally:
        server.stop()


@pytest.fixture
def azureml(act, container, azureml_server):
    """The project on an empty workspace. A request that the official client would not send fails the test."""
    azureml_server.tell("reset")
    azureml_server.use(act, container)
    yield azureml_server
    try:
        azureml_server.check()
    finally:
        azureml_server.tell("reset")
