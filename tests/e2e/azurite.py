"""Azurite as a service with one account, for the time of a with statement."""
import base64
import contextlib
import os
import pathlib
import re
import subprocess

import waiting
from authority import Authority
from blob_service import BlobService

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "node_modules/azurite/dist/src/blob/main.js"
LISTENS = re.compile(r"successfully listens on https?://127\.0\.0\.1:(\d+)")


def port_of(process, log):
    """The kernel has chosen it, and the server says it when it listens."""
    def look():
        return LISTENS.search(log.read_text()) or process.poll() is not None
    waiting.until(look, "azurite listens")
    if not (said := LISTENS.search(log.read_text())):
        raise RuntimeError(f"azurite did not start: {log.read_text()}")
    return int(said[1])


@contextlib.contextmanager
def running(folder, with_logins=False):
    """Keeps its data and its log in a folder, which it makes. With logins it speaks TLS."""
    folder.mkdir()
    options, authority = [], Authority(folder) if with_logins else None
    if authority:
        certificate = authority.issue()
        options = ["--oauth", "basic", "--cert", certificate, "--key", certificate]
    key = base64.b64encode(os.urandom(64)).decode()
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            ["node", PROGRAM, "--blobHost", "127.0.0.1", "--blobPort", "0", "--location", folder / "data",
             "--disableTelemetry", "--skipApiVersionCheck", "--silent", *options], stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, cwd=folder, env={**os.environ, "AZURITE_ACCOUNTS": f"actaccount:{key}"})
    try:
        yield BlobService(port_of(process, folder / "log"), "actaccount", key, authority)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
