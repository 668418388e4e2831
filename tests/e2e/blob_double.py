"""The test double of the Blob service (tests/blobserver), which can be told to go wrong:

    double.fault("answer", status=503, retry_after=0, method="PUT", path="comp=block", times=2)
    double.fault("reset", where="body", method="GET")

The kinds and their values are in tests/blobserver/fault.h."""
import base64
import collections
import os
import subprocess
import urllib.parse

import blob_service

Request = collections.namedtuple("Request", "method target status received sent")


class BlobDouble(blob_service.BlobService):
    """A server process of its own, with one account or more; the first one is that of this client. With an authority it
    speaks TLS, for 127.0.0.1 and these hosts."""

    def __init__(self, program, *options, accounts=("actdouble",), authority=None, hosts=()):
        self.keys = {name: base64.b64encode(os.urandom(64)).decode() for name in accounts}
        words = [word for name in accounts for word in ("--account", name, "--key", self.keys[name])]
        words += ["--tls", authority.issue(*hosts)] if authority else []
        # Its standard input is what ends it, also when this process is killed.
        self.process = subprocess.Popen([program, *words, *map(str, options)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{program} ended with {self.process.wait()}")
        super().__init__(int(line), accounts[0], self.keys[accounts[0]], authority)
        self.container = None

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(20) == 0

    def other(self, account):
        """The same server, as the client of another account."""
        return blob_service.BlobService(self.port, account, self.keys[account], self.authority)

    def control(self, method, path, body=""):
        connection = self.connect()
        try:
            connection.request(method, path, body.encode())
            answer = connection.getresponse()
            data = answer.read().decode()
        finally:
            connection.close()
        assert answer.status == 200, (method, path, body, answer.status, data)
        return data

    def fault(self, kind, **values):
        """Adds a rule; the first rule that wants a request decides."""
        words = [f"{name}={urllib.parse.quote(str(value), safe='')}" for name, value in values.items()]
        self.control("POST", "/-/faults", " ".join([kind, *words]))

    def no_faults(self):
        self.control("DELETE", "/-/faults")

    def clock(self, ahead):
        """Sets the server's clock so many seconds ahead."""
        self.control("POST", "/-/clock", str(ahead))

    def log(self):
        """The requests so far, in the order in which they were answered. Status 0: none, the connection was cut."""
        rows = (line.split(" ") for line in self.control("GET", "/-/log").splitlines())
        return [Request(method, target, *map(int, numbers)) for method, target, *numbers in rows
                if not target.startswith("/-/")]

    def tls(self):
        """(handshakes so far, those of them that went on with an earlier session, the cipher of the last one)"""
        accepted, resumed, cipher = self.control("GET", "/-/tls").split(" ")
        return int(accepted), int(resumed), cipher

    def forget(self):
        self.control("DELETE", "/-/log")
