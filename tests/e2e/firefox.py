"""A headless Firefox, told what to do by Marionette (firefox-source-docs.mozilla.org/testing/marionette)."""
import json
import os
import shutil
import socket
import subprocess
import tempfile

import pytest

from waiting import until

PROGRAM = shutil.which("firefox-esr") or shutil.which("firefox")
PREFERENCES = {"marionette.port": 0, "app.update.enabled": False, "datareporting.policy.dataSubmissionEnabled": False,
               "toolkit.telemetry.enabled": False, "network.captive-portal-service.enabled": False,
               "network.connectivity-service.enabled": False, "services.settings.server": "http://127.0.0.1:9",
               "browser.safebrowsing.update.enabled": False, "extensions.update.enabled": False,
               "network.dns.disabled": True, "browser.shell.checkDefaultBrowser": False}


class Firefox:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="act-firefox-")
        with open(f"{self.folder}/user.js", "w", encoding="utf-8") as user:
            user.writelines(f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in PREFERENCES.items())
        self.process = subprocess.Popen(
            [PROGRAM, "--headless", "--no-remote", "--marionette", "--remote-allow-system-access", "--profile",
             self.folder], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self.folder}, start_new_session=True)
        self.socket, self.count = self.connect(), 0
        self.packet()  # a greeting
        self.call("WebDriver:NewSession")

    def connect(self):
        def port():
            assert self.process.poll() is None, "Firefox has ended"
            with open(f"{self.folder}/MarionetteActivePort", encoding="utf-8") as file:
                return int(file.read() or 0)
        found = until(lambda: os.path.exists(f"{self.folder}/MarionetteActivePort") and port(), "Firefox listens")
        return socket.create_connection(("127.0.0.1", found), timeout=300)

    def close(self):
        self.call("Marionette:Quit", flags=["eForceQuit"])
        self.socket.close()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def packet(self):
        """A length in digits, a colon, and so many bytes of JSON."""
        head = b""
        while not head.endswith(b":"):
            head += self.take(1)
        return json.loads(self.take(int(head[:-1])))

    def take(self, n):
        data = b""
        while len(data) < n:
            more = self.socket.recv(n - len(data))
            assert more, "Firefox has closed the connection"
            data += more
        return data

    def call(self, method, **params):
        self.count += 1
        text = json.dumps([0, self.count, method, params]).encode()
        self.socket.sendall(b"%d:%s" % (len(text), text))
        _, number, error, result = self.packet()
        assert number == self.count and error is None, (method, error)
        return result.get("value", result) if isinstance(result, dict) else result

    def open(self, url):
        self.call("WebDriver:Navigate", url=url)

    def size(self, width, height):
        self.call("WebDriver:SetWindowRect", width=width, height=height)

    def evaluate(self, expression):
        return self.call("WebDriver:ExecuteScript", script=f"return {expression}", args=[])

    def until(self, expression, what):
        """Waits until an expression of the page is true, and returns it."""
        return until(lambda: self.evaluate(expression), what)

    def complaints(self, url):
        """What the console has of pages below a URL."""
        self.call("Marionette:SetContext", value="chrome")
        try:
            said = self.evaluate("Services.console.getMessageArray().map(m => "
                                 "[m.sourceName || '', m.errorMessage || m.message || String(m)])")
        finally:
            self.call("Marionette:SetContext", value="content")
        return [text for source, text in said if source.startswith(url) or url in text]


@pytest.fixture(scope="module")
def firefox():
    if not PROGRAM:
        pytest.skip("firefox-esr is not installed")
    opened = Firefox()
    yield opened
    opened.close()
