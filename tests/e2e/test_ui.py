"""The runs in a browser: who may ask for what, what is shown, and what it costs. Requests as such: web_test.c."""
import base64
import contextlib
import hashlib
import http.client
import re
import shutil
import signal
import socket
import sqlite3
import time
import urllib.parse

import pytest

import report_data
from conftest import MODULES
from test_report import Page, print_lines

KEY = re.compile(r"[0-9a-f]{32}")


class Ui:
    """`a ui`, and what it answers."""

    def __init__(self, act, *words, **options):
        self.act, self.process, self.ended = act, act.start("ui", *words, **options), None
        self.url = self.process.stdout.readline().decode().strip()
        assert self.url, self.process.stderr.read()
        parts = urllib.parse.urlsplit(self.url)
        self.port, self.base, self.query = parts.port, parts.path, parts.query
        assert parts.hostname == "127.0.0.1" and KEY.fullmatch(self.base.strip("/")), self.url

    def ask(self, path="", method="GET", **headers):
        """Status, headers and body of an answer to one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        connection.request(method, path if path.startswith("/") else self.base + path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()

    def page(self, path=""):
        """A page, once it has been made."""
        def ready():
            status, _, text = self.ask(path)
            assert status in (200, 202), (status, text)
            return text if status == 200 else None
        return Page(self.act.until(ready, f"the page {path!r} is made"))

    def talk(self, data):
        """What comes back for these bytes, until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=300) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: s.recv(65536), b""))

    def memory_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])

    def end(self, how=signal.SIGINT):
        self.process.send_signal(how)
        out, err = self.process.communicate()
        self.ended = (self.process.returncode, out, err)
        return self.ended


@contextlib.contextmanager
def serving(act, *words, **options):
    ui = Ui(act, *words, **options)
    try:
        yield ui
    finally:
        status, _, err = ui.ended or ui.end()
        assert status == 0 and b"Sanitizer" not in err and b"runtime error" not in err, err


@pytest.fixture
def ui(act):
    with serving(act) as served:
        yield served


def policy_of(page):
    return re.search(r'Content-Security-Policy" content="(.*?)"', page.source)[1]


# ---- the pages


@pytest.mark.smoke
def test_table_and_page_of_a_run(act):
    run = act.finish(*print_lines(*report_data.training(20).splitlines()), before=("-n", "1"))
    named = act.run("submit", "--name", "base", "--tag", "sweep=7", "--tag", "lr=<0.1>", "true").out.strip()
    act.run("wait", named)
    with serving(act) as ui:
        table = ui.page()
        for text in (run, named, "base", "sweep=7", "lr=<0.1>", "aml", "Completed", "2 runs"):
            assert text in table.text, text
        links = [v for k, v in table.attributes if k == "href"]
        assert f"run?id={run}" in links and "./?tag=sweep%3D7" in links
        elsewhere = [v for v in links if (":" in v or v.startswith("/")) and v != "data:,"]  # that is no icon
        assert not elsewhere, "all links are relative"
        page = ui.page(f"run?id={run}")
        assert page.captions[0] == "loss" and run in page.text and "Refreshes" not in page.text
        both = ui.page(f"run?id={run}&id={named}")
        assert "2 runs" in both.text and named in both.text
        assert [p.tags.count("script") for p in (table, page, both)] == [2, 1, 1]


def test_filters(act):
    one = act.run("submit", "--name", "one", "--tag", "sweep=ID", "true").out.strip()
    two = act.run("submit", "--name", "two", "true").out.strip()
    act.run("wait", one, two)
    with serving(act, "--tag", "sweep=ID") as ui:
        assert ui.query == "tag=sweep%3DID"
        for query, shown in {"?tag=sweep=ID": {one}, "?" + ui.query: {one}, "?name=two": {two},
                             "?cluster=aml": {one, two},
                             "?name=&tag=&cluster=": {one, two}, "?tag=sweep%3DID&name=two": set(),
                             "?tag=sweep=ID&tag=a=b": set(), "?max=1": {two}}.items():
            page = ui.page(query)
            assert {run for run in (one, two) if run in page.text} == shown, query
        assert "The newest 1 of 2 runs" in page.text and ("href", "./?max=0") in page.attributes
        for query in ("?tag=nonsense", "?name=a%20b", "?max=x", "?cluster=--json", "?tag=" + "%3Cscript%3E"):
            status, _, text = ui.ask(query)
            assert status in (400, 404) and "%3Cscript" not in text and text.count("<script") == 1, (query, status)
        assert ui.ask("?cluster=no-such-cluster")[0] == 404


def test_more_runs_than_a_table_has(act):
    act.finish("true", before=("-n", "1"))
    with contextlib.closing(sqlite3.connect(act.home / "ledger.db")) as ledger:
        names = ", ".join(row[1] for row in ledger.execute("PRAGMA table_info(runs)") if row[1] != "id")
        ledger.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) "
                       f"INSERT INTO runs (id, {names}) SELECT printf('exp_1_%08x', i), {names} FROM runs, n")
        ledger.commit()
    with serving(act) as ui:
        page = ui.page()
        assert "The newest 100 of 2001 runs. Show 2000" in page.text and ("href", "./?max=2000") in page.attributes
        assert "The newest 2000 of 2001 runs." in ui.page("?max=2000").text


def test_a_run_that_goes_on(act):
    act.write("main.py", "import pathlib, time\nn = 0\nprint('loss 1', flush=True)\n"
              "while not pathlib.Path('/%s/stop').exists():\n"
              "    if pathlib.Path('/%s/more').exists() and not n: n = 1; print('grown', flush=True)\n"
              "    time.sleep(0.05)\n" % ((str(act.scratch).strip("/"),) * 2))
    run = act.submit("python3", "main.py", before=("-n", "1"))
    act.until_state(run, "Running")
    act.until(lambda: "loss 1" in act.run("logs", run, status=None).out, "it has said something")
    with serving(act) as ui:
        page = ui.page(f"run?id={run}")
        assert "grown" not in page.text and "Refreshes every 10 s." in page.text
        status, headers, text = ui.ask(f"run?id={run}")
        assert status == 200 and headers["Refresh"] is None and 'http-equiv="refresh"' in text
        assert text == page.source, "the same one, not made again"
        assert 'http-equiv="refresh"' not in ui.page(f"run?id={run}&live=0").source
        for path in ("run", "compare"):
            assert ("href", f"?id={run}&live=0") in ui.page(f"{path}?id={run}").attributes, "it leads to the same page"
        (act.scratch / "more").touch()
        act.until(lambda: "grown" in ui.page(f"run?id={run}").text, "the page has what the log has")
        (act.scratch / "stop").touch()
        act.run("wait", run)
        act.until(lambda: "Completed" in ui.page(f"run?id={run}").text, "the page says that it has ended")
        assert 'http-equiv="refresh"' not in ui.page(f"run?id={run}").source


def test_what_is_not_there(act, ui):
    act.finish("true")
    status, _, text = ui.ask("run?id=no-such-run")
    assert status == 404 and "no run &#39;no-such-run&#39;" in text
    for path in ("other", "run/x", "../", "favicon.ico"):
        assert ui.ask(path)[0] == 404, path
    for path in ("run", "run?id=", "run?id=x&name=y", "?state=Failed", "?id=x", "run?" + "id=r&" * 17):
        assert ui.ask(path)[0] == 400, path
    assert ui.ask("run?id=--help")[0] == 404


def test_hostile_texts(act):
    evil = "</td></table><script>alert(1)</script><img src=x onerror=alert(1)>\"' \u202e"
    run = act.submit("--tag", f"x={evil}", "--", "echo", evil, before=("-n", "1"))
    act.run("wait", run)
    with serving(act) as ui:
        for path in ("", f"run?id={run}", f"?tag={urllib.parse.quote('x=' + evil)}"):
            page = ui.page(path)
            assert page.tags.count("script") == (1 if "run?" in path else 2) and "img" not in page.tags, path
            assert "<script>alert(1)</script>" in page.text and "\u202e" not in page.text


def test_an_untrusted_project(act):
    """Nothing is asked, and what is known here is shown."""
    run = act.finish("echo", "loss 1", before=("-n", "1"))
    act.run("q", run)
    extra = {"config_param": {"code_path": {"azure_blob_config_file": "aux_data/configs/store.yaml", "path": "x.zip"}},
             "platform": "slurm", "slurm": {"login": "nobody@far.invalid"}}
    act.cluster("aml", extra=extra)
    with serving(act, env={"ACT_TRUSTED_PROJECTS": ""}) as ui:
        table = ui.page()
        assert run in table.text and "'a -c aml trust'" in table.text
        assert run in ui.page(f"run?id={run}").text


def test_a_page_that_takes_long(act):
    """Nobody waits for long, what is there already is shown, and nothing is left when that is the end."""
    run = act.finish("echo", "loss 1", before=("-n", "1"))
    with serving(act) as ui, contextlib.closing(sqlite3.connect(act.home / "ledger.db")) as ledger:
        ui.page(f"run?id={run}")
        ledger.execute("BEGIN EXCLUSIVE")
        status, headers, text = ui.ask()
        assert status == 202 and "being made" in text and headers["Refresh"] == "2"
        assert ui.ask(f"run?id={run}")[0] == 200 and ui.ask("other")[0] == 404
        ledger.rollback()
        assert run in ui.page().text
        ledger.execute("BEGIN EXCLUSIVE")
        assert ui.ask("?name=other")[0] == 202
        status, _, _ = ui.end()
        assert status == 0
    act.until(lambda: not act.processes(), "nothing is left")


# ---- who may ask


def test_only_with_the_key(act, ui):
    run = act.finish("true")
    good = ui.base.strip("/")
    for path in ("/", "/run", f"/{good}", f"/{good[:-1]}/", f"/{good}0/", f"/{'0' * 32}/", f"/{good.upper()}x/", "//",
                 f"/x/{good}/", f"/?{good}"):
        status, _, text = ui.ask(path)
        assert status == 403 and run not in text and good not in text, path
    assert ui.page().text


def test_host_and_method(act, ui):
    act.finish("true")
    ui.page()
    for host in ("evil.example", f"evil.example:{ui.port}", "127.0.0.1.evil.example", "localhost.", "127.0.0.1:x", "",
                 "localhost@evil.example", "0.0.0.0"):
        assert ui.ask(Host=host)[0] == 421, host
    for host in ("localhost", f"localhost:{ui.port}", "LOCALHOST:9", f"127.0.0.1:{ui.port}"):
        assert ui.ask(Host=host)[0] == 200, host
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "get"):
        status, headers, _ = ui.ask(method=method)
        assert status == 405 and headers["Allow"] == "GET, HEAD", method
    status, headers, text = ui.ask(method="HEAD")
    assert status == 200 and text == "" and int(headers["Content-Length"]) > 1000


def test_headers(act, ui):
    act.finish("true")
    page = ui.page()
    _, headers, _ = ui.ask()
    assert headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Set-Cookie"] is None
    script = base64.b64encode(hashlib.sha256(page.scripts[-1].encode()).digest()).decode()
    assert f"script-src 'sha256-{script}'; connect-src 'self'; " in headers["Content-Security-Policy"]
    assert headers["Content-Security-Policy"] == policy_of(page) + "; frame-ancestors 'none'"
    assert policy_of(page).startswith("default-src 'none'; style-src 'sha256-")
    assert ui.ask("/")[1]["Referrer-Policy"] == "no-referrer"


def listening(port):
    """The addresses on which this machine listens at a port, as the kernel writes them."""
    found = set()
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}", encoding="utf-8") as table:
            for line in table.readlines()[1:]:
                address, number = line.split()[1].split(":")
                if line.split()[3] == "0A" and int(number, 16) == port:
                    found.add(address)
    return found


def test_loopback_alone(ui):
    assert listening(ui.port) == {"0100007F"}


def test_port(act):
    with serving(act) as first:
        assert f"port {first.port} of 127.0.0.1 is taken" in act.fail("ui", "--port", str(first.port), status=2)
        for port in ("0", "65536", "-1", "x", "80x"):
            act.fail("ui", "--port", port, status=2)
        port = first.port
    with serving(act, "--port", str(port)) as again:
        assert again.port == port
    act.fail("ui", "--tag", "nonsense", status=2)
    act.fail("ui", "extra", status=2)
    act.fail("-c", "no-such-cluster", "ui", status=(3, 7))


def test_ends_at_ctrl_c(act):
    act.finish("true")
    for how in (signal.SIGINT, signal.SIGTERM):
        ui = Ui(act)
        with socket.create_connection(("127.0.0.1", ui.port)):
            connection = http.client.HTTPConnection("127.0.0.1", ui.port)
            connection.request("GET", ui.base)  # a page that is being made
            status, out, err = ui.end(how)
        assert status == 0 and out == b"" and b"Sanitizer" not in err, err
        act.until(lambda: not act.processes(), "nothing is left")


def test_opens_a_browser(act):
    """By a file that nobody else can read: words of programs are for all to see."""
    folder = act.scratch / "bin"
    folder.mkdir()
    opener = folder / "xdg-open"
    opener.write_text(f'#!/bin/sh\ncp -p "$1" {act.scratch}/copy.tmp; echo "$1" > {act.scratch}/word\n'
                      f'mv {act.scratch}/copy.tmp {act.scratch}/copy\n')
    opener.chmod(0o755)
    with serving(act, "--open", env={"PATH": f"{folder}:{act.env['PATH']}"}) as ui:
        act.until((act.scratch / "copy").exists, "the browser was opened")
        assert f"url={ui.url}" in (act.scratch / "copy").read_text()
        assert (act.scratch / "copy").stat().st_mode & 0o777 == 0o600
        word = (act.scratch / "word").read_text()
        assert ui.base not in word
    assert not list(act.home.rglob("ui-*.html"))
    with serving(act, "--open", env={"PATH": str(act.programs)}) as ui:
        ui.page()


# ---- what it may cost


def test_many_and_slow_clients(act, ui):
    act.finish("true")
    ui.page()
    before = ui.memory_kib()
    held = []
    for n in range(1000):
        s = socket.socket()
        s.settimeout(30)
        s.connect(("127.0.0.1", ui.port))
        with contextlib.suppress(OSError):  # the oldest ones are closed
            s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: " if n % 2 else b"")
        held.append(s)
    assert ui.ask()[0] == 200, "who has the key gets in"
    for s in held[-40:]:
        with contextlib.suppress(OSError):
            s.sendall(b"x" * 4000)
    assert ui.ask()[0] == 200
    assert ui.memory_kib() < before + 16 * 1024
    end = time.monotonic() + 60
    for s in held:
        s.settimeout(max(0.1, end - time.monotonic()))
        with contextlib.suppress(ConnectionError):
            while s.recv(65536):
                pass  # each is closed, without having asked for anything
        s.close()


def test_malformed_requests(act, ui):
    act.finish("true")
    ui.page()
    path = ui.base.encode()
    long = b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"
    for data, status in {
            b"": None, b"\r\n\r\n": b"400", b"GET\r\n\r\n": b"400", b"\0" * 100 + b"\r\n\r\n": b"400",
            b"GET / HTTP/1.1\r\n\r\n": b"400", b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n": b"505",
            b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n": b"400",
            b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n": b"400",
            b"GET / HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n": b"400", b"\x16\x03\x01" * 20: None,
            b"GET / HTTP/1.1\nHost: localhost\n\n": None, long: b"431", b"A" * 9000: b"431",
            b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\n\r\n": b"200",
            b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nmax=0&x=1": b"405",
    }.items():
        with contextlib.suppress(ConnectionError):
            answer = ui.talk(data)
            assert answer.split(b" ")[1:2] == ([status] if status else []), (data[:60], answer[:200])
            assert answer.count(b"HTTP/1.1 ") <= 1, "one answer to a connection"
    assert ui.ask()[0] == 200


def test_a_reader_that_stops(act, ui):
    """It holds up nobody, and gets the whole page when it goes on."""
    for _ in range(3):
        act.finish("true")
    ui.page()
    slow = [socket.create_connection(("127.0.0.1", ui.port), timeout=300) for _ in range(3)]
    for s in slow:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        s.sendall(f"GET {ui.base} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert ui.ask()[0] == 200
    for s in slow:
        data = b"".join(iter(lambda s=s: s.recv(65536), b""))
        head, body = data.split(b"\r\n\r\n", 1)
        assert len(body) == int(re.search(rb"Content-Length: (\d+)", head)[1])
        s.close()


def test_readers_that_never_read(act, ui):
    """They cost next to nothing, hold up nobody, and do not keep the server from ending."""
    run = act.finish(*print_lines(*report_data.training(1000).splitlines()), before=("-n", "1"))
    path = f"run?id={run}"
    size = len(ui.page(path).source)
    before, deaf = ui.memory_kib(), []
    for _ in range(40):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 10)
        s.connect(("127.0.0.1", ui.port))
        s.sendall(f"GET {ui.base}{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        deaf.append(s)
    assert len(ui.ask(path)[2]) == size
    assert ui.memory_kib() < before + 4 * 1024, "all of them read one copy"
    status, _, _ = ui.end()
    assert status == 0
    for s in deaf:
        s.close()


def test_two_browsers_are_one_question(act, ui):
    """The page is made once; a change of the ledger in between is seen only later, by a page that was not made yet."""
    act.finish("true")
    act.until(lambda: '"next_s":10' in ui.page().scripts[0], "its log was looked at for the list")
    names = (f"changed-{n}" for n in range(1000))
    def made_once():
        first, name = ui.page(), next(names)
        with contextlib.closing(sqlite3.connect(act.home / "ledger.db")) as ledger:
            ledger.execute("UPDATE runs SET name = ?", (name,))
            ledger.commit()
        return name if ui.page().source == first.source else None  # unless its ten seconds were over just then
    assert act.until(made_once, "one page serves both") in ui.page("?max=99").text


@pytest.mark.parametrize("path", ["", "run?id="])
def test_a_service_is_asked_once(act, azureml, path):
    run = act.submit("sh", "-c", "echo loss 1; exec sleep 300", before=("-n", "1"))
    act.until_state(run, "Running")
    with serving(act) as ui:
        if not path:
            act.until(lambda: '"next_s":10' in ui.page().scripts[0], "its log was looked at for the list")
        page = ui.page(path + (run if path else ""))
        assert run in page.text and "Running" in page.text
        azureml.forget()
        for _ in range(5):
            assert ui.ask(path + (run if path else ""))[2] == page.source
        assert azureml.requests() == []
    act.run("abort", "-y", run)


def test_on_slurm(lab):
    run = lab.submit("sh", "-c", "echo step 1 loss 7; echo step 2 loss 6; exec sleep 300", n=2,
                     before=("-c", "lab"))
    lab.until_text(run, "loss 6")
    with serving(lab.act) as ui:
        table = ui.page("?cluster=lab")
        assert run in table.text and "Running" in table.text
        page = ui.page(f"run?id={run}&cluster=lab")
        assert page.captions[0] == "loss" and "Running" in page.text
    lab.act.run("abort", "-y", run)


# ---- in a browser


def shown(browser):
    """The text of the page; none between two pages."""
    try:
        return browser.evaluate("document.readyState == 'complete' ? document.body.innerText : ''")
    except AssertionError:
        return ""


TABLE = "document.querySelector('.live') && document.querySelectorAll('.run-name').length == 2"


def test_in_a_browser(act, browser):
    """As test_pages.py looks at it, with what the server really answers."""
    run = act.finish(*print_lines(*report_data.training(100).splitlines()), before=("-n", "1"))
    other = act.run("submit", "--name", "a-rather-long-name-of-a-run", "--tag", "sweep=7", "--tag", "lr=1e-3",
                    "sh", "-c", "echo step 1 loss 0.3; echo step 2 loss 0.2").out.strip()
    act.run("wait", other)
    axe = (MODULES / "axe-core/axe.min.js").read_text()
    with serving(act) as ui:
        for path in ("", "?tag=sweep=7", f"run?id={run}", f"compare?id={run}&id={other}", "clusters"):
            ui.page(path)
            said, asked = browser.open(ui.url + path)
            browser.until("Boolean(document.querySelector('.live'))", "the script has its data")
            asked = [url.removeprefix(ui.url) for url in asked if not url.endswith("/favicon.ico")]
            assert said == [] and asked[0] == path and all(url.startswith("api/") for url in asked[1:]), (said, asked)
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            browser.evaluate(axe + "; 0")
            assert browser.evaluate("axe.run().then(r => r.violations.map(v => [v.id, v.nodes[0].html]))") == [], path

        browser.open(ui.url)
        browser.until(TABLE, "both runs")
        assert "0.2" in shown(browser)
        browser.click(f'a[href*="{run}"]')
        browser.until("document.querySelectorAll('.plot-box canvas').length >= 2", "a click leads to the run's curves")
        assert browser.evaluate("document.referrer") == "" and f"a resubmit {run}" in shown(browser)
        act.until(lambda: "step 99" in browser.evaluate("document.querySelector('.log').textContent"), "its log")
        browser.click("header a")
        browser.until(TABLE, "and back")
        for n in (1, 2):
            browser.click(f"tbody tr:nth-child({n}) input")
        browser.click(".primary")
        act.until(lambda: "What differs" in shown(browser), "both")
        browser.until("document.querySelectorAll('.plot-box canvas').length >= 1", "in one set of pictures")
        browser.open(ui.url)
        browser.until(TABLE, "both runs")
        browser.click("input[type=search]")
        browser.type("lr=1e-3 loss<0.25")
        browser.until("document.querySelectorAll('.run-name').length == 1", "filtered")


def test_the_first_list_comes_with_the_page(act, browser):
    """It is drawn without a question; a list that the address wants otherwise is asked for."""
    run = act.finish("true")
    deaf = browser.call("Page.addScriptToEvaluateOnNewDocument", source="window.fetch = () => new Promise(() => {})")
    try:
        with serving(act) as ui:
            assert run in ui.page().scripts[0]
            browser.open(ui.url)
            browser.until("document.querySelector('.live') && document.querySelectorAll('.run-name').length == 1", run)
            browser.open("about:blank")
            browser.open(f"{ui.url}#q=nothing-like-it")
            assert browser.evaluate("document.querySelectorAll('.live, .run-name').length") == 0
    finally:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=deaf["identifier"])


def test_what_is_lacking_in_a_browser(act, browser):
    """The pages say what they lack, and go on with the rest; the console stays empty."""
    run = act.finish(*print_lines(*report_data.training(100).splitlines()), before=("-n", "1"))
    log = next(act.home.rglob("std_log_process_0.txt"))
    log.write_bytes(log.read_bytes() + "\u00e4".encode()[:1])
    pages = {"": run, f"run?id={run}": "step 99", f"compare?id={run}": run, "clusters": ""}

    def look(pages, said):
        with serving(act) as ui:
            for path, text in pages.items():
                ui.page(path)
                complaints, _ = browser.open(ui.url + path)
                browser.until("Boolean(document.querySelector('.live'))", "the script has its data")
                assert complaints == [] and not browser.evaluate("document.querySelector('.live.bad')"), path
                act.until(lambda text=text: text in shown(browser) and said(shown(browser)), f"{path!r} has {text!r}")

    look(pages, lambda text: True)
    (act.home / "ledger.db").write_bytes(b"no ledger" * 1000)
    look({"": run}, lambda text: "damaged" in text)
    shutil.rmtree(act.project / "aux_data")
    (act.home / "runs" / run).rename(act.scratch / "elsewhere")
    look({"": run, f"run?id={run}": run}, lambda text: True)
    assert [e["params"]["entry"]["url"] for e in browser.events if e.get("method") == "Log.entryAdded"] == []


def test_read_without_scripts(act, browser):
    """Everything is there, and forms and links lead on."""
    run = act.finish(*print_lines(*report_data.training(100).splitlines()), before=("-n", "1"))
    other = act.run("submit", "--name", "named", "--tag", "sweep=7", "true").out.strip()
    act.run("wait", other)
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        with serving(act) as ui:
            for path, text in (("", "2 runs"), (f"run?id={run}", "Curves"), (f"compare?id={run}&id={other}", "2 runs")):
                ui.page(path)
                browser.events.clear()
                browser.call("Page.navigate", url=ui.url + path)
                act.until(lambda text=text: text in shown(browser), path)
                assert not [e for e in browser.events if e.get("method") == "Log.entryAdded"]
            browser.call("Page.navigate", url=ui.url)
            act.until(lambda: "named" in shown(browser), "the table")
            browser.evaluate("document.querySelectorAll('input[type=checkbox]').forEach(b => b.checked = true)")
            browser.evaluate("document.querySelector('form[action=compare] button').click()")
            act.until(lambda: "Curves" in shown(browser), "both")
            browser.call("Page.navigate", url=f"{ui.url}?tag=sweep=7")
            act.until(lambda: "1 run\n" in shown(browser), "filtered")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_renewed_in_a_browser_without_scripts(act, browser):
    act.write("main.sh", f"echo begun; while [ ! -e {act.scratch}/stop ]; do sleep 0.1; done; echo ended")
    run = act.submit("sh", "main.sh", before=("-n", "1"))
    act.until(lambda: "begun" in act.run("logs", run, status=None).out, "it has begun")
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        with serving(act) as ui:
            ui.page(f"run?id={run}")
            browser.call("Page.navigate", url=f"{ui.url}run?id={run}")
            act.until(lambda: "begun" in shown(browser), "the page is there")
            (act.scratch / "stop").touch()
            act.run("wait", run)
            act.until(lambda: "ended" in shown(browser), "the page has what the log has, by itself")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
