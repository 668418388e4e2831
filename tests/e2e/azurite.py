"""Azurite as a service with one account, for the time of a with statement."""
import base64
import contextlib
import os
import pathlib
import socket
import subprocess
import time

from authority import Authority
from blob_service import BlobService

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "node_modules/azurite/dist/src/blob/main.js"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def running(folder, with_logins=False):
    """Keeps its data and its log in a folder, which it makes. With logins it speaks TLS."""
    folder.mkdir()
    options, authority = [], Authority(folder) if with_logins else None
    if authority:
        certificate = authority.issue()
        options = ["--oauth", "basic", "--cert", certificate, "--key", certificate]
    key, port = base64.b64encode(os.urandom(64)).decode(), free_port()
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            ["node", PROGRAM, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", folder / "data",
             "--disableTelemetry", "--skipApiVersionCheck", "--silent", *options], stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, cwd=folder, env={**os.environ, "AZURITE_ACCOUNTS": f"actaccount:{key}"})
    try:
        for _ in range(600):
            if process.poll() is not None:
                raise RuntimeError((folder / "log").read_text())
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        else:
            raise RuntimeError("azurite did not start")
        yield BlobService(port, "actaccount", key, authority)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
