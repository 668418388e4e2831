"""Fixture: where pods run, for the tests of act-node pod."""
import pytest

import pods


@pytest.fixture(scope="module")
def pod_bed():
    why = pods.missing()
    if why:
        pytest.skip(why)
    made = pods.Bed()
    yield made
    made.close()
