"""What passes to and from the node of a run: much data, and a key press, by `a forward` and by `ssh -L` to the same
machine, which is far away for the latter."""
import collections
import contextlib
import re
import signal
import statistics
import subprocess
import time

import sshd
import waiting
from act_tool import Act
from far import Relay, WrongResult
from ssh_fixtures import Hosts
from test_forward import SERVER, connect

MIB = 1 << 20
TRIP_S, PRESSES = 0.05, 50

Line = collections.namedtuple("Line", "name label unit trip_s work target")


class World:
    """A run on a machine behind ssh, whose server gives as many bytes as it is asked for, or sends back lines."""

    def __init__(self, programs, scratch, stack):
        self.act = Act(programs, scratch)
        hosts = Hosts(self.act)
        stack.callback(hosts.end)
        self.server = hosts.add("gpu1")
        hosts.use("gpu1")
        self.ssh = self.act.env["ACT_SSH"]
        self.act.write("server.py", SERVER)
        self.run = hosts.submit("python3", "server.py")
        self.port = int(self.act.until(self._said, "the server listens")[1])

    def _said(self):
        return re.search(r"port (\d+)", self.act.run("logs", self.run, status=None).out)

    @contextlib.contextmanager
    def ways(self, trip_s):
        """A port here for each tool, which leads to the server; the machine is so far away."""
        with contextlib.ExitStack() as stack:
            ssh = self.ssh
            if trip_s:
                relay = stack.enter_context(contextlib.closing(Relay(self.server.port, trip_s)))
                ssh += f" -p {relay.port} -o HostKeyAlias=[127.0.0.1]:{self.server.port}"
            yield {"act": stack.enter_context(self._by_act(ssh)), "ssh": stack.enter_context(self._by_ssh(ssh))}

    @contextlib.contextmanager
    def _by_act(self, ssh):
        process = self.act.start("forward", self.run, f"0:{self.port}", env={"ACT_SSH": ssh})
        found = re.match(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline().decode())
        if not found:
            raise WrongResult(process.stderr.read().decode())
        yield int(found[1])
        process.send_signal(signal.SIGINT)
        process.communicate()

    @contextlib.contextmanager
    def _by_ssh(self, ssh):
        here = sshd.free_port()
        words = [*ssh.split(), "-N", "-L", f"127.0.0.1:{here}:127.0.0.1:{self.port}", "gpu1"]
        process = waiting.Process(words, stdin=subprocess.DEVNULL)
        waiting.until(lambda: listens(here), "ssh listens")
        yield here
        process.terminate()
        process.wait()


def listens(port):
    with contextlib.suppress(OSError):
        connect(port).close()
        return True
    return False


def give(size):
    def seconds(port):
        left, begun = size, time.monotonic()
        with connect(port) as s:
            s.sendall(b"give %d\n" % size)
            while data := s.recv(MIB):
                left -= len(data)
        if left:
            raise WrongResult(f"{left} bytes of {size} did not come")
        return time.monotonic() - begun
    return seconds


def press(port):
    """The milliseconds until a key press is seen."""
    with connect(port) as s:
        keys = s.makefile("rwb", 0)
        keys.write(b"echo\n")

        def one(_):
            begun = time.monotonic()
            keys.write(b"x\n")
            if keys.readline() != b"x\n":
                raise WrongResult("the key press was not seen")
            return 1000 * (time.monotonic() - begun)
        one(0)  # the connection is there
        return statistics.median(map(one, range(PRESSES)))


def lines(quick):
    size = 16 * MIB if quick else 1024 * MIB
    return [Line("node-data", f"{size // MIB:,} MiB from a node", "s", 0, give(size), 1.5),
            Line("node-key", f"a key press, {1000 * TRIP_S:.0f} ms away", "ms", TRIP_S, press, 1.1)]


def measure_line(line, world, runs):
    """Medians by tool, which take turns: what disturbs one disturbs both."""
    with world.ways(line.trip_s) as ways:
        seen = [{tool: line.work(port) for tool, port in ways.items()} for _ in range(runs)]
    return {tool: statistics.median(one[tool] for one in seen) for tool in ways}
