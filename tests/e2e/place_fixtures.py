"""Fixtures for what holds on each platform."""
import json

import pytest

import sshd

K8S = ("-c", "k8s")
# The fixture that makes the cluster, and the words before a verb that lead there.
PLATFORMS = {"local": ("act", ()), "ssh": ("host", ("-c", "lab")), "slurm": ("behind_ssh", ("-c", "lab", "-n", "4")),
             "kubernetes": ("kubernetes", K8S)}


@pytest.fixture(params=[pytest.param("local", marks=pytest.mark.smoke), "ssh", "slurm", "kubernetes"])
def place(request):
    """A cluster of each platform, as the words before a verb that lead there: this machine, a machine behind ssh, two
    nodes of Slurm behind a login node, a pod."""
    fixture, before = PLATFORMS[request.param]
    request.getfixturevalue(fixture)
    return before


@pytest.fixture(params=["ssh", "slurm", "kubernetes"])
def relayed(act, request):
    """The words before a verb that lead to a cluster by way of a relay, and that."""
    if request.param == "kubernetes":
        server = request.getfixturevalue("kubernetes")
        with sshd.Relay(int(server.url.rsplit(":", 1)[1])) as relay:
            config = json.loads(open(server.kubeconfigs["token"]).read())
            config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{relay.port}"
            path = act.scratch / "kc"
            path.write_text(json.dumps(config))
            path.chmod(0o600)
            server.cluster(k8s={"kubeconfig": str(path)})
            yield K8S, relay
        return
    server = request.getfixturevalue("host") if request.param == "ssh" else request.getfixturevalue("behind_ssh").server
    with sshd.Relay(server.port) as relay:
        act.env["ACT_SSH"] += relay.before(server)
        yield ("-c", "lab", "-n", "1"), relay


def change_cluster(act, before, **keys):
    """The cluster file to which these words lead has these keys at its top level."""
    path = act.project / f"aux_data/aml/{before[1]}.yaml"
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))
