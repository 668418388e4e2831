"""What the doubles of services have in common: a server of Node.js, and commands for it."""
import json
import subprocess
import urllib.request


def merge(keys, extra):
    """The keys of a cluster file with others: parts of their own are merged into what is there."""
    merged = dict(keys)
    for key, value in extra.items():
        merged[key] = {**merged[key], **value} if isinstance(merged.get(key), dict) else value
    return merged


class ServiceDouble:
    """The server runs until stop(); links are its addresses. What tell() takes is said in the server's own folder."""

    def __init__(self, server, folder, settings):
        self.errors = open(folder / "errors", "w+b")
        self.process = subprocess.Popen(["node", server], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, cwd=folder)
        self.process.stdin.write(json.dumps(settings).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.said()
        self.links = json.loads(line)
        self.act = None

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode()

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.errors.close()

    def tell(self, what, body=None, **members):
        data = json.dumps(members if body is None else body).encode()
        request = urllib.request.Request(f"{self.links['admin']}/{what}", data, method="POST")
        with urllib.request.urlopen(request, timeout=300) as answer:  # a reset ends processes first
            return json.load(answer)

    def faults(self, *faults):
        self.tell("faults", list(faults))

    def forget(self):
        """Forgets the requests. What was wrong with one is an error now."""
        self.check()
        self.tell("forget")

    def violations(self):
        """What the official client would not have sent. Asked for, it is no error of the test."""
        found = self.tell("look")["violations"]
        self.tell("forget")
        return found

    def check(self):
        found = self.tell("look")["violations"]
        assert not found, found
