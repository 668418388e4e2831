"""Fixtures: machines without a scheduler, each a private sshd with a home of its own, and a cluster file for them."""
import shutil

import pytest

import pods
import sshd


class Hosts:
    """Machines by name, and the project's cluster "lab" on them. With a bed of namespaces each has one."""

    def __init__(self, act, bed=None):
        self.act, self.servers, self.bed = act, {}, bed
        self.jumps = {}  # name -> the one that it is behind

    def add(self, name, slots=4):
        number = len(self.servers)
        at = (self.bed.address(number), self.bed.space(number)) if self.bed else ()
        server = self.servers[name] = sshd.Sshd(self.act.scratch / name, *at)
        server.shell(sshd.as_machine(slots, f"export TMPDIR={server.folder}/tmp\n" if self.bed else ""))
        self._write_client()
        return server

    def _write_client(self):
        """One configuration of ssh for all of them, by their names."""
        first = next(iter(self.servers.values()))
        text = "".join(f"Host {name}\n HostName {s.address}\n Port {s.port}\n IdentityFile {s.user_key}\n"
                       f" UserKnownHostsFile {s.folder}/known\n" for name, s in self.servers.items())
        text += "".join(f"Host {name}\n ProxyJump {over}\n" for name, over in self.jumps.items())
        config = self.act.scratch / "ssh_config"
        config.write_text(text + "Host *\n IdentitiesOnly yes\n GlobalKnownHostsFile /dev/null\n")
        enter = f"ip netns exec {self.bed.bridge} " if self.bed else ""
        self.act.env.update({"ACT_SSH": f"{enter}ssh -F {config}", "XDG_RUNTIME_DIR": str(first.runtime)})

    def put_behind(self, name, over):
        """ssh reaches a machine by way of another one."""
        self.jumps[name] = over
        self._write_client()

    def use(self, *names, **keys):
        """The cluster "lab" has these machines."""
        self.act.cluster("lab", extra={"platform": "ssh", "ssh": {"hosts": list(names), **keys}})

    def runs(self, name):
        folder = self.servers[name].home / ".act/runs"
        return sorted(p.name for p in folder.iterdir()) if folder.exists() else []

    def submit(self, *words, n=1):
        return self.act.submit(*words, before=("-c", "lab", "-n", n))

    def end(self):
        """Ends what runs on them, and the machines."""
        for name, server in self.servers.items():
            for run in self.runs(name) if server.process else ():
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


@pytest.fixture(scope="session")
def rack_bed():
    if pods.missing():
        pytest.skip(pods.missing())
    bed = pods.Bed(3)
    yield bed
    bed.close()


@pytest.fixture
def rack(act, rack_bed):
    """Three machines with two slots each, which have addresses and processes of their own."""
    if sshd.missing():
        pytest.skip(sshd.missing())
    hosts = Hosts(act, rack_bed)
    for name in ("gpu1", "gpu2", "gpu3"):
        hosts.add(name, slots=2)
    hosts.use("gpu1", "gpu2", "gpu3")
    yield hosts
    hosts.end()


@pytest.fixture
def of_runs(act):
    """The options by which programs of OpenSSH lead to the nodes of runs."""
    if not shutil.which("sshd", path="/usr/sbin:/usr/bin"):
        pytest.skip("no sshd")
    config = act.scratch / "of_runs"
    config.write_text(act.run("ssh-config").out)
    return ["-F", config]
