"""What a reader of `a ui` waits for in Chromium, and what `a report` takes. Runs are as many in the ledger as one made
them, with the numbers that its log has."""
import collections
import contextlib
import http.client
import json
import sqlite3
import statistics
import time
import urllib.parse

import glance
import report_data
from act_tool import Act
from browser import Browser
from tools import measure

DAY_S, NODES, EVERY_S = 24 * 3600, 16, 10
CREATED = int(time.time()) - 10 * 24 * 3600
# What a person sees: the first rows are painted, and the page takes input again.
INTERACTIVE = """new Promise(done => {
    const look = () => document.querySelector("tbody tr")
        ? requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0)) : requestAnimationFrame(look);
    look();
})"""
CURVES = """(() => {
    const lines = Array.from({length: 100}, (_, n) => {
        const x = Array.from({length: 100000}, (_, i) => i);
        return {id: `r${n}`, label: `r${n}`, colour: n, x, y: x.map(i => Math.sin(i / 5000 + n)), t: null};
    });
    return new Promise(done => {
        const begin = performance.now();
        const chart = new Chart(new Charts(), {title: "many", lines, xName: "step"});
        document.querySelector("main").prepend(chart.element);
        chart.show();
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin), 0));
    });
})()"""

Line = collections.namedtuple("Line", "name label unit target run")


class WrongResult(Exception):
    pass


class Runs:
    """A ledger of so many runs, and `a ui` over it."""

    def __init__(self, programs, scratch, count):
        scratch.mkdir(parents=True)
        self.act = Act(programs, scratch)
        self.act.write("train.py", f"print({report_data.training(2000)!r}, end='')")
        example = self.act.finish("python3", "train.py", before=("-n", 1))
        self.act.run("q", "--json", "--max", 1)
        with contextlib.closing(self.serve()) as ui:  # it reads the numbers
            self.act.until(lambda: '"loss"' in ui.ask("api/runs"), "the numbers are read")
        self.fill(example, count)
        self.ui = self.serve()

    def fill(self, example, count):
        with sqlite3.connect(self.act.home / "ledger.db") as ledger:
            names = [row[1] for row in ledger.execute("PRAGMA table_info(runs)")]
            row = dict(zip(names, ledger.execute("SELECT * FROM runs WHERE id = ?", (example,)).fetchone()))
            spec, note = json.loads(row["spec"]), ledger.execute("SELECT text FROM notes").fetchone()[0]
            marks = ", ".join("?" * len(names))
            for n in range(count - 1):
                run = f"exp_{CREATED + n}_{n:08x}"
                row.update(id=run, created_unix_s=CREATED + n, spec=json.dumps({**spec, "id": run}))
                ledger.execute(f"INSERT INTO runs VALUES ({marks})", [row[name] for name in names])
                ledger.execute("INSERT INTO notes VALUES (?, ?)", (run, note))

    def serve(self):
        return Ui(self.act)

    def close(self):
        self.ui.close()
        self.act.clean_up()


class Ui:
    def __init__(self, act):
        self.process = act.start("ui")
        self.url = self.process.stdout.readline().decode().strip()
        parts = urllib.parse.urlsplit(self.url)
        self.port, self.base = parts.port, parts.path

    def ask(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while True:
            connection.request("GET", self.base + path)
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.status != 202:  # it is being made
                break
            time.sleep(0.02)
        if answer.status != 200:
            raise WrongResult(f"{path} is answered with {answer.status}: {text[:200]}")
        return text

    def close(self):
        self.process.terminate()
        self.process.communicate()


class Worlds:
    """The ledgers, the browser and the run of a day, each made when it is first needed."""

    def __init__(self, programs, scratch, stack):
        self.programs, self.scratch, self.stack, self.made, self._browser = programs, scratch, stack, {}, None
        self.asked = 0

    def runs(self, count):
        if count not in self.made:
            self.made[count] = self.stack.enter_context(
                contextlib.closing(Runs(self.programs, self.scratch / f"runs{count}", count)))
        return self.made[count]

    @property
    def browser(self):
        if not self._browser:
            self._browser = self.stack.enter_context(contextlib.closing(Browser()))
        return self._browser

    def day(self, seconds):
        """A run of a day on 16 nodes."""
        if "day" not in self.made:
            scratch = self.scratch / "day"
            scratch.mkdir(parents=True)
            act = Act(self.programs, scratch)
            self.stack.callback(act.clean_up)
            run = act.finish("true", before=("-n", 1))
            metrics = act.run_dir(run) / "metrics"
            for old in metrics.iterdir():
                old.unlink()
            for n in range(NODES):
                (metrics / f"n{n}.jsonl").write_text(report_data.metrics(n, seconds // EVERY_S))
            self.made["day"] = act, run
        return self.made["day"]


def open_page(worlds, count, path, expression):
    worlds.browser.call("Page.navigate", url="about:blank")
    worlds.browser.open(worlds.runs(count).ui.url + path)
    return worlds.browser.evaluate(expression)


def last_byte(worlds, count):
    return open_page(worlds, count, "", "performance.getEntriesByType('navigation')[0].responseEnd")


def interactive(worlds, count):
    """From the click until rows are painted. The promise is asked for as soon as there is a page."""
    browser, url = worlds.browser, worlds.runs(count).ui.url
    source = f"window.shown = {INTERACTIVE};"
    script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=source)["identifier"]
    browser.call("Page.navigate", url="about:blank")
    browser.open(url)
    took = browser.evaluate("window.shown")
    browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    return took


def curves(worlds, count):
    return open_page(worlds, count, "", CURVES)


def asked(worlds, count):
    """CPU of the server for the rows of all runs but a few, each time others: it keeps an answer for a while."""
    ui = worlds.runs(count).ui
    worlds.asked += 1
    before = glance.cpu_seconds(ui.process.pid)
    rows = json.loads(ui.ask(f"api/runs?max={count - worlds.asked}"))["runs"]
    if len(rows) != count - worlds.asked:
        raise WrongResult(f"there are {len(rows)} rows")
    return 1000 * (sum(glance.cpu_seconds(ui.process.pid)) - sum(before))


def memory(worlds, count):
    open_page(worlds, count, "", "0")
    worlds.runs(count).ui.ask("api/runs?max=1000")
    return glance.peak_memory(worlds.runs(count).ui.process.pid) / (1 << 20)


def report(worlds, seconds):
    act, run = worlds.day(seconds)
    page = act.scratch / "report.html"
    page.unlink(missing_ok=True)
    return 1000 * measure([act.programs / "a", "report", run, "-o", page], act.env, act.project, act.scratch).wall


def report_size(worlds, seconds):
    report(worlds, seconds)
    return (worlds.day(seconds)[0].scratch / "report.html").stat().st_size / 1000


def lines(quick):
    some, many, seconds = (20, 100, 600) if quick else (1000, 10000, DAY_S)
    return [
        Line("pages: last byte", f"`a ui`, the first page with {some:,} runs: last byte", "ms", 100,
             lambda w: last_byte(w, some)),
        Line("pages: interactive", f"`a ui`, the first page with {some:,} runs: rows are painted", "ms", 300,
             lambda w: interactive(w, some)),
        Line("pages: api", f"`api/runs` of {some:,} runs: CPU of the server", "ms", None, lambda w: asked(w, some)),
        Line("pages: memory", f"`a ui` with {many:,} runs: peak", "MiB", 40, lambda w: memory(w, many)),
        Line("pages: curves", "100 curves of 100,000 points", "ms", 1000, lambda w: curves(w, some)),
        Line("pages: report", f"`a report`, {NODES} nodes for {seconds // 60} min", "ms", 300,
             lambda w: report(w, seconds)),
        Line("pages: report size", f"`a report`, {NODES} nodes for {seconds // 60} min", "KB", 1000,
             lambda w: report_size(w, seconds)),
    ]


def measure_line(line, worlds, runs):
    """The median, without the first, in which a browser or a cache begins."""
    line.run(worlds)
    return statistics.median(line.run(worlds) for _ in range(runs))
