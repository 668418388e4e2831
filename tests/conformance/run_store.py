#!/usr/bin/env python3
"""Runs the conformance suite of the stores on a Blob or File service, once for each kind of credential.

usage: run_store.py PATH_OF_store_test [PATH_OF_blobserver [--files]]

The service is Azurite ($AZURITE, or tests/node_modules/.bin/azurite-blob), or the test double that is named. Exit
status 77 means skipped: there is no Azurite.
"""
import base64
import contextlib
import datetime
import hashlib
import hmac
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

ACCOUNT = "devstoreaccount1"
# The emulator's well-known key, the same everywhere.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
SKIPPED = 77
VERSION = "2021-12-02"
LISTENS = re.compile(r"successfully listens on https?://127\.0\.0\.1:(\d+)")


def sign(text):
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def expiry():
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    return end.strftime("%Y-%m-%dT%H:%M:%SZ")


def query(fields):
    return urllib.parse.urlencode(fields, quote_via=urllib.parse.quote, safe="")


def account_sas(service="b", permissions="rwdlac"):
    end = expiry()
    text = "\n".join([ACCOUNT, permissions, service, "sco", "", end, "", "", VERSION, "", ""])
    fields = {"sv": VERSION, "ss": service, "srt": "sco", "sp": permissions, "se": end, "sig": sign(text)}
    return query(fields)


def container_sas(container):
    end = expiry()
    text = "\n".join(["racwdl", "", end, f"/blob/{ACCOUNT}/{container}", "", "", "", VERSION, "c"] + [""] * 7)
    fields = {"sv": VERSION, "sr": "c", "sp": "racwdl", "se": end, "sig": sign(text)}
    return query(fields)


def share_sas(share):
    end = expiry()
    text = "\n".join(["rcwdl", "", end, f"/file/{ACCOUNT}/{share}", "", "", "", VERSION] + [""] * 5)
    return query({"sv": VERSION, "sr": "s", "sp": "rcwdl", "se": end, "sig": sign(text)})


def find_azurite():
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.environ.get("AZURITE") or os.path.join(here, "..", "node_modules", ".bin", "azurite-blob")
    return path if os.access(path, os.X_OK) else None


@contextlib.contextmanager
def azurite(path):
    """The port of one, which the kernel has chosen and the server says when it listens."""
    with tempfile.TemporaryDirectory() as folder:
        command = [path, "--disableTelemetry", "--silent", "--blobHost", "127.0.0.1", "--blobPort", "0", "--location",
                   folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                said = next((said for line in server.stdout if (said := LISTENS.search(line))), None)
                if not said:
                    sys.exit(f"azurite ended with {server.wait()}")
                yield int(said[1])
            finally:
                server.terminate()


def make_container(port, name):
    make(f"http://127.0.0.1:{port}/{ACCOUNT}/{name}?restype=container&{account_sas()}")


def make_share(port, name):
    make(f"http://127.0.0.1:{port}/{ACCOUNT}/{name}?restype=share&{account_sas('f', 'rwdlc')}")


def make(url):
    request = urllib.request.Request(url, method="PUT", headers={"x-ms-version": VERSION})
    urllib.request.urlopen(request, timeout=30).close()


@contextlib.contextmanager
def double(path, *options):
    """The test double; it ends when its standard input is closed."""
    with subprocess.Popen([path, *options, "--account", ACCOUNT, "--key", KEY], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as server:
        try:
            yield int(server.stdout.readline())
        finally:
            server.stdin.close()
            server.wait()


def run_suite(store_test, port):
    """The number of kinds of credential with which it failed."""
    failed = 0
    path_style = f"http://127.0.0.1:{port}/{ACCOUNT}"
    # With the account in the host name, as the service has it. libcurl itself takes *.localhost for the loopback
    # address; Azurite does not, when it looks at the source of a copy with a SAS.
    host_style = f"http://{ACCOUNT}.blob.localhost:{port}"
    runs = [
        ("shared-key", path_style, {"TEST_AZURE_KEY": KEY}),
        ("container-sas", path_style, {"TEST_AZURE_SAS": container_sas("container-sas")}),
        ("account-sas", path_style, {"TEST_AZURE_SAS": "?" + account_sas()}),
        ("host-key", host_style, {"TEST_AZURE_KEY": KEY}),
    ]
    for name, endpoint, credential in runs:
        print(f"--- {name} at {endpoint}", file=sys.stderr, flush=True)
        make_container(port, name)
        env = dict(os.environ, TEST_AZURE_ENDPOINT=endpoint, TEST_AZURE_ACCOUNT=ACCOUNT,
                   TEST_AZURE_CONTAINER=name, no_proxy="*", **credential)
        failed += subprocess.run([store_test], env=env).returncode != 0
    return failed


def run_on_shares(store_test, port):
    """Likewise on a File service."""
    failed = 0
    path_style = f"http://127.0.0.1:{port}/{ACCOUNT}"
    host_style = f"http://{ACCOUNT}.file.localhost:{port}"
    runs = [
        ("shared-key", path_style, {"TEST_AZURE_KEY": KEY}),
        ("share-sas", path_style, {"TEST_AZURE_SAS": share_sas("share-sas")}),
        ("account-sas", host_style, {"TEST_AZURE_SAS": "?" + account_sas("f", "rwdlc")}),
    ]
    for name, endpoint, credential in runs:
        print(f"--- {name} at {endpoint}", file=sys.stderr, flush=True)
        make_share(port, name)
        env = dict(os.environ, TEST_AZURE_ENDPOINT=endpoint, TEST_AZURE_ACCOUNT=ACCOUNT, TEST_AZURE_SHARE=name,
                   no_proxy="*", **credential)
        failed += subprocess.run([store_test], env=env).returncode != 0
    return failed


def main():
    if "--files" in sys.argv[3:]:
        with double(sys.argv[2], "--files") as port:
            return 1 if run_on_shares(sys.argv[1], port) else 0
    if len(sys.argv) > 2:
        service = double(sys.argv[2])
    elif find_azurite():
        service = azurite(find_azurite())
    else:
        print("skipped: no Azurite; run 'npm ci' in tests/ or set AZURITE", file=sys.stderr)
        return SKIPPED
    with service as port:
        return 1 if run_suite(sys.argv[1], port) else 0


if __name__ == "__main__":
    sys.exit(main())
