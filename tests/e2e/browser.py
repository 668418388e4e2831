"""A headless Chromium, told what to do over a pipe (the DevTools protocol: chromedevtools.github.io)."""
import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile

import pytest

from waiting import until

PROGRAM = shutil.which("chromium")
GONE = ("Inspected target navigated or closed", "Execution context was destroyed.",
        "Cannot find context with specified id")


class PageGone(Exception):
    """The page that was asked is not there any more."""


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="act-browser-")
        commands, self.out = os.pipe()
        self.back, answers = os.pipe()
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "chromium", PROGRAM, "--headless=new",
             "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
             "--no-first-run", f"--user-data-dir={self.folder}", "--remote-debugging-pipe"],
            pass_fds=(commands, answers), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.folder})
        os.close(commands)
        os.close(answers)
        self.count, self.held, self.session, self.events = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.back)
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self):
        while b"\0" not in self.held:
            data = os.read(self.back, 1 << 20)
            assert data, "the browser has ended"
            self.held += data
        text, self.held = self.held.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.count += 1
        request = {"id": self.count, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.out, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.count:
                if answer.get("error", {}).get("message") in GONE:
                    raise PageGone(method, answer)
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self.events.append(answer)

    def open(self, path, width=1200, height=1600, scheme="light", media=""):
        """Loads a file or a URL, and returns what the browser complained of and which requests it made."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        before = self.loaders()
        self.events.clear()
        url = path if str(path).startswith(("http:", "about:")) else f"file://{path}"
        self.call("Page.navigate", url=url)
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.message())
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        said = [e["params"] for e in self.events
                if e.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")]
        asked = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"
                 and e["params"]["loaderId"] not in before]  # of the page before, which may still ask
        return said, asked

    def loaders(self):
        """Who asks for what the page and the frames in it need."""
        found, frames = set(), [self.call("Page.getFrameTree")["frameTree"]]
        while frames:
            frame = frames.pop()
            found.add(frame["frame"]["loaderId"])
            frames += frame.get("childFrames", [])
        return found

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    # ---- what a person does

    def until(self, expression, what):
        """Waits until an expression of the page is true, and returns it."""
        def look():
            with contextlib.suppress(PageGone):  # another one is on its way
                return self.evaluate(expression)
        return until(look, what)

    def place(self, selector, part=(0.5, 0.5)):
        """Where an element is, once it can be seen."""
        find = f"""(() => {{
            const node = document.querySelector({json.dumps(selector)});
            if (!node) return null;
            node.scrollIntoView({{block: "center"}});
            const box = node.getBoundingClientRect();
            return box.width ? [box.left + box.width * {part[0]}, box.top + box.height * {part[1]}] : null;
        }})()"""
        return self.until(find, f"there is {selector}")

    def mouse(self, kind, place, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], **more)

    def hover(self, selector, part=(0.5, 0.5)):
        self.mouse("mouseMoved", self.place(selector, part))

    def click(self, selector, part=(0.5, 0.5)):
        place = self.place(selector, part)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, place, button="left", clickCount=1)

    def drag(self, selector, begin, end):
        """From one part of an element's width to another."""
        first, last = self.place(selector, (begin, 0.5)), self.place(selector, (end, 0.5))
        self.mouse("mouseMoved", first)
        self.mouse("mousePressed", first, button="left", buttons=1, clickCount=1)
        for n in range(1, 6):
            self.mouse("mouseMoved", [a + (b - a) * n / 5 for a, b in zip(first, last)], button="left", buttons=1)
        self.mouse("mouseReleased", last, button="left", clickCount=1)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key):
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowRight": 39}
        text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else "")
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=codes.get(key, 0),
                      **({"text": text} if text and kind == "keyDown" else {}))

    def shot(self, path, whole=False):
        """A picture of the window, or of the whole page."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])


@pytest.fixture(scope="module")
def browser():
    if not PROGRAM:
        pytest.skip("chromium is not installed: scripts/install-deps --test")
    opened = Browser()
    yield opened
    opened.close()
