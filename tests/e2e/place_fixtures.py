"""A fixture for what holds on each platform."""
import pytest

# The fixture that makes the cluster, and the words before a verb that lead there.
PLATFORMS = {"local": ("act", ()), "ssh": ("host", ("-c", "lab")), "slurm": ("behind_ssh", ("-c", "lab", "-n", "4")),
             "kubernetes": ("kubernetes", ("-c", "k8s"))}


@pytest.fixture(params=[pytest.param("local", marks=pytest.mark.smoke), "ssh", "slurm", "kubernetes"])
def place(request):
    """A cluster of each platform, as the words before a verb that lead there: this machine, a machine behind ssh, two
    nodes of Slurm behind a login node, a pod."""
    fixture, before = PLATFORMS[request.param]
    request.getfixturevalue(fixture)
    return before
