"""Fixtures: machines without a scheduler, each a private sshd with a home of its own, and a cluster file for them."""
import pytest

import sshd


class Hosts:
    """Machines by name, and the project's cluster "lab" on them."""

    def __init__(self, act):
        self.act, self.servers = act, {}

    def add(self, name, slots=4):
        server = self.servers[name] = sshd.Sshd(self.act.scratch / name)
        server.shell(sshd.as_machine(slots))
        self._write_client()
        return server

    def _write_client(self):
        """One configuration of ssh for all of them, by their names."""
        first = next(iter(self.servers.values()))
        text = "".join(f"Host {name}\n HostName 127.0.0.1\n Port {s.port}\n IdentityFile {s.user_key}\n"
                       f" UserKnownHostsFile {s.folder}/known\n" for name, s in self.servers.items())
        config = self.act.scratch / "ssh_config"
        config.write_text(text + "Host *\n IdentitiesOnly yes\n GlobalKnownHostsFile /dev/null\n")
        self.act.env.update({"ACT_SSH": f"ssh -F {config}", "XDG_RUNTIME_DIR": str(first.runtime)})

    def use(self, *names):
        """The cluster "lab" has these machines."""
        self.act.cluster("lab", extra={"platform": "ssh", "ssh": {"hosts": list(names)}})

    def runs(self, name):
        folder = self.servers[name].home / ".act/runs"
        return sorted(p.name for p in folder.iterdir()) if folder.exists() else []

    def submit(self, *words, n=1):
        return self.act.submit(*words, before=("-c", "lab", "-n", n))

    def end(self):
        """Ends what runs on them, and the machines."""
        for name in self.servers:
            for run in self.runs(name):
                self.act.run("-c", "lab", "abort", run, status=None)
        for server in self.servers.values():
            server.stop()


@pytest.fixture
def hosts(act):
    if sshd.missing():
        pytest.skip(sshd.missing())
    hosts = Hosts(act)
    yield hosts
    hosts.end()


@pytest.fixture
def host(hosts):
    """The only machine of the cluster, with four slots."""
    server = hosts.add("gpu1")
    hosts.use("gpu1")
    return server


@pytest.fixture
def pair(hosts):
    """Two machines with two slots each."""
    for name in ("gpu1", "gpu2"):
        hosts.add(name, slots=2)
    hosts.use("gpu1", "gpu2")
    return hosts
