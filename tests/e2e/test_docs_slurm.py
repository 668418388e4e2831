"""The tutorial for Slurm, typed on a cluster."""
import pytest

import documents
from slurm_fixtures import start


@pytest.fixture
def cluster():
    """Its nodes, in a partition named as in the tutorial."""
    yield from start(nodes=2, extra=["PartitionName=gpu Nodes=ALL State=UP"])


def test_tutorial(act, cluster):
    del act.env["ACT_TRUSTED_PROJECTS"]
    act.env["SLURM_CONF"] = str(cluster.conf)
    assert documents.Reader("docs/tutorials/slurm.md", act.env, act.scratch / "home").read() > 10
