"""Azurite as a service with one account, for the time of a with statement."""
import base64
import contextlib
import os
import pathlib
import socket
import ssl
import subprocess
import time

from blob_service import BlobService

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "node_modules/azurite/dist/src/blob/main.js"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def make_certificate(folder, *names):
    """A certificate for this machine, and hosts, that signs itself, and its key."""
    files = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=azurite",
                    "-addext", ",".join(["subjectAltName=IP:127.0.0.1", *(f"DNS:{n}" for n in names)]), "-out", files[0], "-keyout", files[1]],
                   check=True, stderr=subprocess.DEVNULL)
    return files


@contextlib.contextmanager
def running(folder, with_logins=False):
    """Keeps its data and its log in a folder, which it makes. With logins it speaks TLS, and its service has the file of
    the certificate as `ca`."""
    folder.mkdir()
    options, context = [], None
    if with_logins:
        certificate, private = make_certificate(folder)
        options = ["--oauth", "basic", "--cert", certificate, "--key", private]
        context = ssl.create_default_context(cafile=certificate)
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
        service = BlobService(port, "actaccount", key, context)
        service.ca = folder / "cert.pem"
        yield service
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
