"""The pages of `a ui` as people use them, in Chromium: data that no test could wait for comes from page_double.py, and
the page with its script, its sheet and its policy is the real one. What the server answers: test_ui.py."""
import itertools
import json
import math
import re
import subprocess

import pytest

import page_double
from conftest import HERE, MODULES
from test_ui import serving
from waiting import until

AXE = MODULES / "axe-core/axe.min.js"
WAYS = {"light": {"width": 1280, "height": 900}, "dark": {"width": 1280, "height": 900, "scheme": "dark"},
        "phone": {"width": 360, "height": 740}, "4K": {"width": 3840, "height": 2160}}


SHELL = []


@pytest.fixture
def shell(act):
    """A page of runs as it is served, and its policy; the first test that wants it asks for it."""
    if not SHELL:
        with serving(act) as ui:
            SHELL.extend((ui.page().source, ui.ask()[1]["Content-Security-Policy"]))
    return SHELL


@pytest.fixture
def double(shell):
    served = page_double.PageDouble(*shell)
    yield served
    served.close()


class Reader:
    """Somebody at a browser, whose console stays empty."""

    def __init__(self, browser, double):
        self.browser, self.double, self.data = browser, double, double.data

    def open(self, path="", **how):
        self.browser.open("about:blank")  # else another fragment is no other page
        self.browser.open(f"{self.double.url}/{path}", **{**WAYS["light"], **how})
        self.until("/s\\.|As of/.test(document.querySelector('.live')?.textContent)", "the page has its data")
        return self

    def until(self, expression, what):
        return self.browser.until(expression, what)

    def text(self, selector="main"):
        return self.browser.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def texts(self, selector):
        return self.browser.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(n => n.innerText)")

    def until_text(self, text, selector="main"):
        self.until(f"(document.querySelector({json.dumps(selector)})?.innerText ?? '').includes({json.dumps(text)})",
                   f"{selector} says {text!r}")

    def names(self):
        return self.texts(".run-name")

    def said(self):
        """What the console has."""
        self.browser.evaluate("0")
        return [e["params"] for e in self.browser.events
                if e.get("method") in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")]

    def pictures(self, n):
        """Waits for so many pictures; each is drawn when it is near the window."""
        def drawn():
            self.scroll_through()
            return self.browser.evaluate("document.querySelectorAll('.plot-box canvas').length") >= n
        until(drawn, f"there are {n} pictures")

    def point(self, selector):
        """Moves the pointer over a picture until its values are shown."""
        def pointed():
            for part in (0.45, 0.5):
                self.browser.hover(selector, (part, 0.5))
            return self.browser.evaluate("Boolean(document.querySelector('.tip:not([hidden])'))")
        until(pointed, "the values are shown")

    def scroll_through(self):
        """Brings all that is drawn only when it is near."""
        self.browser.evaluate("""(async () => {
            for (let y = 0; y < document.body.scrollHeight; y += 400) {
                scrollTo(0, y);
                await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
            }
            scrollTo(0, 0);
        })()""")


@pytest.fixture
def reader(browser, double):
    someone = Reader(browser, double)
    yield someone
    assert someone.said() == []


# ---- all runs


def test_runs_in_lines(reader):
    reader.open()
    assert reader.names()[:3] == [reader.data.rows[0]["id"], "train-1", "train-2"]
    first, second, failed, queued = reader.texts("tbody tr")[:4]
    assert "Completed" in first and "0.2" in first and "Running" in second and "93 % busy" in second
    assert "Failed" in failed and "out of memory on the GPU" in failed and "waits for proj_" in queued
    assert reader.browser.evaluate("document.querySelectorAll('tbody .spark').length") > 10
    assert "Refreshes every 10 s." in reader.text(".live")
    colours = reader.browser.evaluate("['Failed', 'Running', 'Queued', 'Completed'].map(s => "
                                      "getComputedStyle(document.querySelector('tbody .' + s)).color)")
    shapes = reader.browser.evaluate("['Failed', 'Running', 'Queued', 'Completed'].map(s => "
                                     "getComputedStyle(document.querySelector('tbody .' + s), '::before').content)")
    assert len(set(colours)) == len(set(shapes)) == 4


def test_filtered_while_one_types(reader):
    reader.open()
    reader.browser.click("input[type=search]")
    reader.browser.type("train-11")
    reader.until_text("1 run", ".count")
    assert reader.names() == ["train-11"]
    assert "q=train-11" in reader.browser.evaluate("location.hash")
    reader.browser.evaluate("document.querySelector('input[type=search]').select()")
    reader.browser.type("-")
    reader.until_text("20 runs", ".count")
    reader.browser.click(".states button:nth-child(2)")
    reader.until_text("4 runs", ".count")
    assert set(reader.texts("tbody .state")) == {"Failed"}
    reader.open("#q=train-11")
    assert reader.names() == ["train-11"], "the address has it"


def test_sorted(reader):
    reader.open()
    reader.browser.click("th:nth-child(4) .sort")
    reader.until("document.querySelector('th:nth-child(4)').ariaSort == 'ascending'", "it is sorted by loss")
    reader.until(f"document.querySelector('.run-name').innerText == {json.dumps(reader.data.rows[0]['id'])}", "up")
    reader.browser.click("th:nth-child(4) .sort")
    reader.until("document.querySelector('th:nth-child(4)').ariaSort == 'descending'", "and down")
    reader.until_text("1.12", "tbody tr:nth-child(1)")
    assert "sort=key%3Aloss" in reader.browser.evaluate("location.hash")


def test_chosen_numbers(reader):
    reader.open()
    reader.browser.click(".chooser summary")
    reader.browser.click(".choices div:nth-child(2) input")
    reader.until("![...document.querySelectorAll('thead th')].some(h => h.innerText.trim() == 'acc')", "acc is gone")
    reader.open(reader.browser.evaluate("location.hash"))
    assert [h.strip() for h in reader.texts("thead th")][2:4] == ["loss", "lr"]


def test_a_sweep_is_one_line(reader):
    reader.data.rows = page_double.sweep() + [page_double.row(1)]
    reader.open()
    line = reader.text("tr.group")
    assert "Sweep a73d6d0a" in line and "64 runs" in line and "best: grid-13" in line and "0.1953" in line
    assert reader.names() == ["train-1"]
    reader.browser.click("tr.group .fold")
    reader.until("document.querySelectorAll('tr.inside').length == 64", "it opens")
    reader.browser.click("tr.group .fold")
    reader.until("document.querySelectorAll('tr.inside').length == 0", "it closes")
    reader.browser.evaluate("(s => { s.value = 'tag:lr'; s.dispatchEvent(new Event('change')) })"
                            "(document.querySelector('.bar select'))")
    reader.until("document.querySelectorAll('tr.group').length == 4", "a group for each lr")
    assert reader.names() == ["train-1"], "one without stands alone"
    reader.browser.click("tr.group .fold")
    reader.until("document.querySelectorAll('tr.inside').length == 16", "it opens, too")


def test_a_sweep_larger_than_a_page(reader):
    """It is one line with its best; opened, its runs go on over the pages."""
    reader.data.rows = page_double.sweep(64)
    for i in range(5):
        reader.data.rows += [{**r, "id": f"{r['id']}-{i}", "name": f"{r['name']}-{i}"} for r in page_double.sweep(64)]
    reader.open()
    assert reader.text(".count") == "384 runs in 1 line" and "384 runs" in reader.text("tr.group")
    assert reader.names() == [] and "best: grid-13" in reader.text("tr.group")
    reader.browser.click("tr.group .fold")
    reader.until_text("1 to 100 of 384 runs", ".count")
    reader.until("document.querySelectorAll('.run-name').length == 100", "all of them")
    reader.open(reader.browser.evaluate("location.hash"))
    reader.until("document.querySelectorAll('.run-name').length == 100", "the address has it")


def test_a_sweep_by_its_name(reader):
    """Nothing that was set is best."""
    reader.data.rows = page_double.sweep()
    for i, row in enumerate(reader.data.rows):
        row.update(name=f"widths.{i + 1}", last={**row["last"], "lr": 0.1, "width": 64})
    reader.data.keys = ["loss", "lr", "width"]
    reader.open()
    line = reader.text("tr.group")
    assert "Sweep widths" in line and line.count("best: ") == 1, line
    reader.open("compare?tag=sweep%3Da73d6d0a")
    assert reader.text("h1") == "Sweep widths"


def test_only_what_is_known_of_a_run(reader):
    """A run without a name has its command; on a telephone what has no value is not there."""
    reader.data.rows = [page_double.row(3, name=None, gpus=0, command_line="train.py --x 1")]
    reader.open(**WAYS["phone"])
    assert "train.py --x 1" in reader.text(".run-id")
    assert [text.strip() for text in reader.texts("tbody td[data-head]") if text][0].startswith("Queued")
    assert reader.browser.evaluate("[...document.querySelectorAll('tbody td[data-head]')].filter(c => "
                                   "c.checkVisibility()).map(c => c.dataset.head)") == ["State", "Cluster", "Age"]


def test_marked_and_compared(reader):
    reader.open()
    assert reader.browser.evaluate("document.querySelector('.primary').disabled")
    for n in (1, 3):
        reader.browser.click(f"tbody tr:nth-child({n}) input")
    reader.until_text("Compare 2 runs", ".primary")
    reader.browser.click(".primary")
    reader.until("document.title == '2 runs compared'", "the other page")
    ids = [reader.data.rows[n]["id"] for n in (0, 2)]
    assert reader.browser.evaluate("location.search") == f"?id={ids[0]}&id={ids[1]}"
    reader.pictures(2)


def test_live(reader):
    """New rows come, others stay as they are, with what is marked; a pause is one; what is hidden rests."""
    reader.data.next_s = 0.2
    reader.open()
    reader.browser.click("tbody tr:nth-child(2) input")
    reader.browser.evaluate("window.kept = document.querySelector('tbody tr:nth-child(2)')")
    reader.data.rows = [page_double.row(100, id="proj_new", name="brand-new")] + reader.data.rows
    reader.until_text("brand-new", "tbody")
    assert reader.browser.evaluate("kept.isConnected && kept.querySelector('input').checked")
    reader.browser.click(".live button")
    reader.until_text("Paused", ".live")
    asked = len(reader.data.asked)
    reader.data.rows = reader.data.rows[1:]
    reader.browser.evaluate("new Promise(done => setTimeout(done, 600))")
    assert len(reader.data.asked) == asked and "brand-new" in reader.text("tbody")
    reader.browser.click(".live button")
    reader.until("!document.querySelector('tbody').innerText.includes('brand-new')", "it goes on")


def test_no_line_goes_when_one_comes(reader):
    """Also where the table is longer than the window: all lines were there."""
    reader.data.next_s = 0.2
    reader.data.rows = [page_double.row(i) for i in range(90)]
    reader.open()
    reader.until("document.querySelectorAll('tbody tr').length == 90", "all lines of the page")
    reader.browser.evaluate("""(() => {
        const last = document.querySelector('tbody tr:last-child');
        window.gone = 0;
        last.querySelector('input').focus({preventScroll: true});
        new MutationObserver(seen => seen.forEach(e => { gone += [...e.removedNodes].includes(last); }))
            .observe(last.parentNode, {childList: true});
    })()""")
    reader.data.rows = [page_double.row(100, id="proj_new", name="brand-new")] + reader.data.rows
    reader.until_text("brand-new", "tbody")
    reader.until("document.querySelectorAll('tbody tr').length == 91", "all lines of the page")
    assert reader.browser.evaluate("gone == 0 && document.activeElement.closest('tr')?.matches(':last-child')")


def test_a_server_that_fails(reader):
    reader.data.next_s = 0.2
    reader.open()
    reader.data.broken = True
    reader.until_text("the ledger is locked; asks again", ".live")
    assert len(reader.names()) == 20, "what was known stays"
    reader.browser.events.clear()  # the browser itself writes down the status
    reader.browser.evaluate("document.querySelector('.live button').click()")
    reader.data.broken = False
    reader.browser.evaluate("document.querySelector('.live button').click()")
    reader.until_text("Refreshes every", ".live")
    reader.browser.events.clear()


def test_ten_thousand_runs(reader):
    reader.data.rows = [page_double.row(i) for i in range(10_000)]
    reader.open()
    assert "1 to 100 of 10,000 runs" in reader.text(".count")
    reader.browser.evaluate("[...document.querySelectorAll('main button')].find(b => b.innerText == 'Older').click()")
    reader.until_text("101 to 200 of 10,000 runs", ".count")


MOVED = """new Promise(done => {
    let sum = 0;
    new PerformanceObserver(list => list.getEntries().forEach(e => { sum += e.hadRecentInput ? 0 : e.value; }))
        .observe({type: "layout-shift", buffered: true});
    setTimeout(() => done(sum), 100);
})"""


def test_lines_beyond_the_window(reader):
    """They come after those that it shows, nothing moves, and who comes back finds the place again."""
    reader.data.rows = [page_double.row(i) for i in range(150)]
    reader.data.rows[90].update(name="a-name-that-is-wider-than-any-other-" * 3, cluster="a-cluster-with-a-long-name",
                                why="a reason that is longer than most of the others are", last={"loss": 1.2345e-10})
    for width in (980, 1280, 1920):
        reader.open(width=width)
        reader.until("document.querySelectorAll('tbody tr').length == 100", "all lines of the page")
        assert reader.browser.evaluate(MOVED) == 0, width
        too_wide = reader.browser.evaluate("[...document.querySelectorAll('.wide, tbody th, tbody td')].filter(c => "
                                           "c.scrollWidth > c.clientWidth).map(c => c.innerText)")
        assert too_wide == [], width
    reader.browser.click("tbody tr:nth-child(80) .run-name")
    reader.until("document.body?.dataset.page == 'run'", "the page of the run")
    reader.browser.evaluate("history.back()")
    reader.until("document.body?.dataset.page == 'runs' && scrollY > 1000", "the place is found again")


# ---- one run


def test_head_of_a_run(reader):
    failed, running = reader.data.rows[2]["id"], reader.data.rows[1]["id"]
    reader.open(f"run?id={failed}")
    reader.until_text(f"a resubmit {failed}")
    text = reader.text()
    for part in ("train-2", failed, "Failed", "1.25 GPU-hours", "Why it failed", "Rank 3 on node n1 failed first",
                 "make the batch smaller", f"a resubmit {failed}", page_double.EVIL, "What happened"):
        assert part in text, part
    assert reader.browser.evaluate("document.title") == "train-2"
    assert reader.texts(".rank.first") == ["3"]
    reader.open(f"run?id={running}")
    assert "2 nodes, 4 processes each" in reader.text(".facts")
    assert "400/1000, about" in reader.text(".progress") and "Why" not in reader.text("main > div:nth-of-type(3)")
    assert not reader.browser.evaluate("document.querySelector('.why')"), "a healthy run has none"


def chart(n):
    return f".grid-of > :nth-child({n}) .u-over"


def test_values_under_the_pointer(reader):
    ids = [reader.data.rows[n]["id"] for n in (0, 1, 2)]
    reader.open("compare?" + "&".join(f"id={i}" for i in ids))
    reader.pictures(3)
    assert len(set(reader.browser.evaluate("[...document.querySelectorAll('.legend-of path')].map(p => "
                                           "getComputedStyle(p).stroke)"))) == 3
    reader.point(chart(2))
    rows = reader.texts(".tip:not([hidden]) tr")
    assert len(rows) == 3 and {"train-1", "train-2"} < {r.split("\t")[1] for r in rows}
    values = [float(r.split("\t")[2]) for r in rows]
    assert values == sorted(values, reverse=True)
    readings = reader.texts(".reading")
    assert readings[0] and readings[0] == readings[1], "all pictures are at the same step"


def test_numbers_that_were_said_once(reader):
    """They are no curves, beside those of other runs either."""
    reader.data.points = 1
    reader.open(f"compare?id={reader.data.rows[0]['id']}&id={reader.data.rows[1]['id']}")
    reader.until("document.querySelectorAll('.slot .values').length == 3", "a list for each")
    assert re.match(r"loss\n+proj_\S+ 2\.2\s*train-1 2\.82", reader.text(".slot")), reader.text(".slot")
    assert not reader.browser.evaluate("document.querySelector('.plot-box')")


def test_one_value_and_many_that_are_not_finite(reader):
    """They are seen, of one run and of several."""
    reader.data.points, reader.data.not_finite = 1, 9
    ids = [reader.data.rows[n]["id"] for n in (0, 1)]
    for path, n in (f"run?id={ids[1]}", 9), (f"compare?id={ids[0]}&id={ids[1]}", 18):
        reader.open(path)
        reader.pictures(3)
        assert f"{n} values are not finite" in reader.text(".slot .note"), path


def test_what_stands_below_a_curve(reader):
    """Which numbers have no step is said, since the axis shows something else."""
    for name, said in {"step": "", "epoch": "By epoch.", "value": "In the order of the log."}.items():
        reader.data.x_name = name
        reader.open(f"run?id={reader.data.rows[1]['id']}")
        reader.pictures(2)
        assert reader.text(".slot:nth-child(2) .note") == said


def scale(n):
    """The range of x that a picture shows."""
    return f"(p => [p.scales.x.min, p.scales.x.max])(document.querySelectorAll('.plot-box')[{n}].chart.plot)"


def test_zoom(reader):
    """A drag zooms all pictures; Escape, and a double click, show everything again."""
    reader.open(f"run?id={reader.data.rows[1]['id']}")
    reader.pictures(2)
    whole = reader.browser.evaluate(scale(0))
    reader.browser.drag(chart(1), 0.25, 0.5)
    reader.until(f"{scale(0)}[1] < 2000", "it is zoomed")
    low, high = reader.browser.evaluate(scale(0))
    assert 500 < low < 1000 < high < 1800 and reader.browser.evaluate(scale(1)) == [low, high]
    reader.browser.press("Escape")
    reader.until(f"JSON.stringify({scale(0)}) == '{json.dumps(whole).replace(' ', '')}'", "everything again")


def test_finer_points_of_a_zoom(reader):
    """What is zoomed to gets all its points; what is around it stays as it was."""
    reader.open(f"run?id={reader.data.rows[1]['id']}")
    reader.pictures(2)
    plot = "document.querySelector('.plot-box').chart.plot"
    reader.browser.drag(chart(1), 0.25, 0.5)
    inside = f"{plot}.data[0].filter(x => x >= {plot}.scales.x.min && x <= {plot}.scales.x.max)"
    reader.until(f"{inside}.length > 300", "it has more points")
    steps = reader.browser.evaluate(inside)
    assert steps == list(range(steps[0], steps[-1] + 1)), "every step"
    whole = reader.browser.evaluate(f"Array.from({plot}.data[0])")
    assert whole == sorted(set(whole)) and (whole[0], whole[-1]) == (0, 2990)
    reader.browser.press("Escape")
    reader.until(f"{plot}.scales.x.max == 2990", "everything again")


def test_finer_points_of_nodes(reader):
    """All pictures together ask once."""
    reader.open(f"run?id={reader.data.rows[2]['id']}")
    reader.until_text("GPUs, busy")
    reader.pictures(13)
    over = "h3 + .grid-of .u-over"
    reader.browser.drag(over, 0.25, 0.5)
    plot = f"document.querySelector('{over}').closest('.plot-box').chart.plot"
    reader.until(f"{plot}.data[0].length > 400", "it has more points")
    assert len({a for a in reader.data.asked if isinstance(a, tuple)}) == 1


def test_ticks_differ(reader):
    """However far one zooms in: numbers get more digits, and times stay whole seconds."""
    reader.open(f"run?id={reader.data.rows[2]['id']}")
    reader.pictures(13)
    assert reader.browser.evaluate("tickTexts([2.3, 2.30001, 2.30002, null], numberText)") == [
        "2.3", "2.30001", "2.30002", None]
    assert reader.browser.evaluate("tickTexts([1e6, 1e6 + 1, 2e6], numberText)") == ["1e6", "1.000001e6", "2e6"]
    use = "[...document.querySelectorAll('.plot-box')].map(b => b.chart).find(c => c.what.title == 'Disk')"
    reader.browser.evaluate(f"{use}.charts.zoom([{page_double.NOW - 4000}, {page_double.NOW - 3998}])")
    reader.until(f"{use}.plot.scales.x.max == {page_double.NOW - 3998}", "it is zoomed")
    ticks = reader.browser.evaluate(f"{use}.plot.axes[0]._values")
    assert ticks and len(set(ticks)) == len(ticks), ticks


def test_a_log_without_times(reader):
    """The picture says what it lacks, instead of showing steps as times."""
    reader.data.has_times = False
    for axis, name in (("time", "times"), ("relative", "times"), ("epoch", "epochs")):
        reader.open(f"run?id={reader.data.rows[1]['id']}#x={axis}")
        reader.until_text(f"The log has no {name}: choose another axis.", ".live-chart .note")


def test_by_epoch(reader):
    reader.open(f"run?id={reader.data.rows[1]['id']}#x=epoch")
    reader.pictures(2)
    assert reader.browser.evaluate(scale(0)) == [0, 29.9]
    reader.browser.drag(chart(1), 0.25, 0.5)
    reader.until("document.querySelector('.plot-box').chart.plot.data[0].length > 900", "it has more points")
    assert all(x == int(x) for pair in reader.data.asked if isinstance(pair, tuple) for x in map(float, pair)), "steps"


def test_axes_and_smoothing(reader):
    reader.open(f"run?id={reader.data.rows[1]['id']}")
    reader.pictures(2)
    plot = "document.querySelector('.plot-box').chart.plot"
    high = reader.browser.evaluate(f"{plot}.scales.y.max")
    assert high > 4.7
    reader.browser.click(".bar .check:nth-of-type(4) input")
    reader.until(f"{plot}.scales.y.max < 4", "without outliers")
    reader.browser.click(".bar .check:nth-of-type(3) input")
    reader.until(f"{plot}.scales.y.distr == 3", "logarithmic")
    reader.browser.evaluate("(s => { s.value = 'time'; s.dispatchEvent(new Event('change')) })"
                            "(document.querySelector('.bar select'))")
    reader.until(f"{plot}.scales.x.min > 1.7e9", "by the time of day")
    lines = reader.browser.evaluate(f"{plot}.series.length")
    reader.browser.evaluate("(s => { s.value = '0.9'; s.dispatchEvent(new Event('input')) })"
                            "(document.querySelector('input[type=range]'))")
    reader.until(f"{plot}.series.length == {2 * lines - 1}", "smoothed, before the values as they are")
    assert {"log=1", "usual=1", "x=time", "smooth=0.9"} == set(reader.browser.evaluate("location.hash")[1:].split("&"))
    reader.open(f"run?id={reader.data.rows[1]['id']}{reader.browser.evaluate('location.hash')}")
    reader.pictures(1)
    assert reader.browser.evaluate(f"{plot}.scales.y.distr") == 3, "the address has it all"


def test_what_is_not_finite(reader):
    reader.open(f"run?id={reader.data.rows[1]['id']}")
    reader.pictures(1)
    assert "1 value is not finite, marked ×" in reader.text(".live-chart .note")
    data = reader.browser.evaluate("document.querySelector('.plot-box').chart.plot.data[1].slice(99, 102)")
    assert data[1] is None and data[0] and data[2]


def test_lines_are_hidden(reader):
    ids = [reader.data.rows[n]["id"] for n in (0, 1)]
    reader.open("compare?" + "&".join(f"id={i}" for i in ids))
    reader.pictures(2)
    reader.browser.click(".legend-of li:nth-child(1) button")
    reader.until("[...document.querySelectorAll('.plot-box')].filter(b => b.chart.plot).every(b => "
                 "b.chart.plot.series.length == 2)", "one line is left in each picture")


def test_nodes_on_one_axis(reader):
    reader.open(f"run?id={reader.data.rows[2]['id']}")
    reader.until_text("GPUs, busy")
    reader.pictures(13)
    assert reader.browser.evaluate(
        "new Set([...document.querySelectorAll('.plot-box')].map(b => b.chart).filter(c => c.charts.isTime)"
        ".map(c => JSON.stringify([c.plot.scales.x.min, c.plot.scales.x.max]))).size") == 1
    network = "[...document.querySelectorAll('.plot-box')].map(b => b.chart).find(c => c.what.title == 'Network')"
    assert reader.browser.evaluate(f"{network}.plot.scales.y.max") == 1024, "no axis of '1 B/s, 0 B/s, 0 B/s'"
    assert reader.browser.evaluate(f"{network}.what.marks") == [{"x": page_double.NOW - 3000, "label": "attempt 2"}]
    assert reader.browser.evaluate(f"{network}.plot.data[1].includes(null)"), "a hole where nothing was known"


def test_colours_of_what_nodes_use(reader):
    """Each line has the colour of its quantity, whichever others there are, and is named beside it."""
    reader.open(f"run?id={reader.data.rows[2]['id']}")
    reader.pictures(13)
    charts = "[...document.querySelectorAll('.plot-box')].map(b => b.chart).filter(c => c.what.hasLegend)"
    assert reader.browser.evaluate(f"{charts}.find(c => c.what.title == 'Disk').legend.innerText") == "read"
    use = [{"id": "r", "node": "n", "gpu": None, "what": "disk_written", "chart": "Disk", "label": "written",
            "unit": "bytes_per_s", "x": [0, 9], "y": [1, 2]}]
    assert reader.browser.evaluate(f"useCharts({json.dumps(use)})[0].lines[0].colour") == 1
    ticks = reader.browser.evaluate(f"{charts}[0].plot.axes[0]._values")
    assert all(re.fullmatch(r"\d\d:\d\d(:\d\d)?(\n\d{4}-\d\d-\d\d)?", tick) for tick in ticks), ticks
    assert "\n" in ticks[0]


def test_a_file_whose_name_is_not_utf8(reader):
    data = reader.data.run
    files = [{"name": {"base64": "YeliLnR4dA=="}, "size": 1}, {"name": "user_logs/std_log.txt", "size": 2}]
    reader.data.run = lambda query: {**data(query), "files": files, "outputs": files[:1]}
    reader.open(f"run?id={reader.data.rows[1]['id']}")
    reader.until_text("a\ufffdb.txt", "[aria-label='files that it wrote']")
    reader.until_text("a\ufffdb.txt", "[aria-label=logs]")
    links = reader.browser.evaluate("[...document.querySelectorAll('a[download]')].map(a => a.getAttribute('href'))")
    run = reader.data.rows[1]["id"]
    assert links[0] == f"api/file?id={run}&output=%61%e9%62%2e%74%78%74", "byte by byte"


def test_files_of_a_run(reader):
    """Each is a link that keeps it; of folders that only nodes see there is a command that looks into them."""
    data = reader.data.run
    reader.data.run = lambda query: {**data(query), "outputs_beyond": [{"folder": "claimed",
                                                                        "command": "a submit ls -l claimed"}]}
    run = reader.data.rows[1]["id"]
    reader.open(f"run?id={run}")
    reader.until_text("model.pt", "[aria-label='files that it wrote']")
    links = reader.browser.evaluate("[...document.querySelectorAll('a[download]')].map(a => [a.download, "
                                    "decodeURIComponent(a.getAttribute('href'))])")
    assert links == [["model.pt", f"api/file?id={run}&output=output/model.pt"],
                     ["std_log_process_0.txt", f"api/file?id={run}&name=user_logs/std_log_process_0.txt"]]
    reader.until_text("'claimed' is on a claim")
    assert "a submit ls -l claimed" in reader.texts(".copy pre")


def test_a_tab_that_was_asleep(reader):
    """What is hidden asks for nothing; when it is seen again it catches up at once, and does not wait for its turn."""
    reader.data.next_s = 0.3
    reader.open()
    reader.browser.evaluate("""(() => {
        window.isHidden = true;
        Object.defineProperty(document, "hidden", {get: () => window.isHidden});
    })()""")
    asked = []
    def rests():
        asked.append(len(reader.data.asked))
        reader.browser.evaluate("new Promise(done => setTimeout(done, 700))")
        return len(reader.data.asked) == asked[-1]
    until(rests, "it rests")
    reader.data.rows = [page_double.row(100, id="proj_new", name="brand-new")] + reader.data.rows
    reader.data.next_s = 3600
    reader.browser.evaluate("window.isHidden = false, document.dispatchEvent(new Event('visibilitychange')), 0")
    reader.until_text("brand-new", "tbody")


def test_log(reader):
    reader.open(f"run?id={reader.data.rows[1]['id']}")
    reader.until_text("step 2999 loss 2999", ".log")
    assert reader.browser.evaluate("(l => l.scrollTop + l.clientHeight >= l.scrollHeight - 4)"
                                   "(document.querySelector('.log'))"), "its end is shown"
    text = "rank 0\n" + "".join(f"step {k} loss {k}\n" for k in range(3000))
    reader.data.log["0"] = text + page_double.EVIL + "\n"
    reader.until_text(page_double.EVIL, ".log")
    assert not reader.browser.evaluate("document.querySelector('.log *')"), "text, and nothing else"
    reader.browser.click("#log input[type=search]")
    reader.browser.type("LOSS 1234")
    reader.until_text("1 of 1", "#log [role=status]")
    assert not reader.browser.evaluate("document.querySelector('#log input[type=checkbox]').checked"), "stays there"
    reader.browser.click(".rank:nth-child(3)")
    reader.until_text("rank 2", ".log")


def test_ranks_without_a_log(reader):
    """Nothing is asked that would be refused: the browser writes each refusal down."""
    data = reader.data.run
    reader.data.run = lambda query: {**data(query), "ranks": [
        {**r, "log": r["log"] if r["rank"] == 1 else None} for r in data(query)["ranks"]], "files": []}
    reader.open(f"run?id={reader.data.rows[2]['id']}")
    reader.until_text("rank 1", ".log")
    assert reader.texts("#log option") == ["Rank 1 on n0"]
    assert reader.browser.evaluate("document.querySelectorAll('.rank:disabled').length") == 7


def test_log_in_parts(reader):
    reader.data.log["0"] = "first line\n" + "x" * 79 + "\n" + ("y" * 79 + "\n") * 2000
    reader.open(f"run?id={reader.data.rows[1]['id']}")
    reader.until("document.querySelector('.log').textContent.length >= 65000", "the end of it")
    assert "first line" not in reader.browser.evaluate("document.querySelector('.log').textContent")
    for _ in range(2):
        length = reader.browser.evaluate("document.querySelector('.log').textContent.length")
        reader.browser.evaluate("[...document.querySelectorAll('#log button')].find(b => "
                                "b.innerText.startsWith('Show')).click()")
        reader.until(f"document.querySelector('.log').textContent.length > {length}", "what is before")
    assert reader.browser.evaluate("document.querySelector('.log').textContent.startsWith('first line')")


def test_a_progress_bar_in_the_log(reader):
    """Its line has the state that a terminal would show, however many came before, and in whichever parts."""
    bar = "".join(f"\r{k:5}/9999 |{'#' * 40}|" for k in range(4000))
    reader.data.log["0"] = "loading\r\nbegun\n" + bar
    reader.open(f"run?id={reader.data.rows[1]['id']}")
    shown = "document.querySelector('.log').textContent"
    last = f" 3999/9999 |{'#' * 40}|"
    reader.until(f"{shown} == {json.dumps(last)}", "the last state alone")
    reader.data.log["0"] += "\r 4000/9999 |"
    reader.until(f"{shown} == ' 4000/9999 |'", "what is half written is what there is")
    reader.data.log["0"] += "####|\r"
    reader.until(f"{shown} == ' 4000/9999 |####|'", "nothing has replaced it yet")
    reader.data.log["0"] += "\nended\n"
    reader.until(f"{shown} == ' 4000/9999 |####|\\nended\\n'", "the line has ended")
    reader.browser.evaluate("[...document.querySelectorAll('#log button')].find(b => "
                            "b.innerText.startsWith('Show')).click()")
    reader.until(f"{shown} == 'loading\\nbegun\\n 4000/9999 |####|\\nended\\n'", "what is before the bar")


# ---- several runs


def test_what_differs(reader):
    ids = [reader.data.rows[n]["id"] for n in (0, 1, 2)]
    reader.open("compare?" + "&".join(f"id={i}" for i in ids))
    reader.until_text("OMP_NUM_THREADS")
    cells = [text.strip() for text in reader.texts("[aria-label=differences] td")]
    assert cells == ["train.py --lr 0.0", "train.py --lr 0.1", "train.py --lr 0.2", "4", "-", "-"]
    reader.until_text("2 values the same")
    assert not reader.browser.evaluate("document.querySelector('[aria-label=Configuration]').checkVisibility()")
    reader.browser.evaluate("document.querySelectorAll('details:has([aria-label=Configuration])')"
                            ".forEach(d => d.open = true)")
    assert "retry\t3" in reader.text("[aria-label=Configuration]")


def test_what_differs_among_many(reader):
    """The values, each with the runs that have it, instead of a column for each of 64 runs."""
    reader.data.rows = page_double.sweep()
    reader.open("compare?" + "&".join(f"id={r['id']}" for r in reader.data.rows))
    reader.until_text("Values, and which runs have them")
    command = reader.text("[aria-label=differences] tbody tr:nth-child(1)")
    assert "train.py --lr 0.0" in command and "grid-0" in command and "58 more values" in command
    threads = reader.text("[aria-label=differences] tbody tr:nth-child(2)")
    assert threads.index("63 runs") < threads.index("grid-0"), "what most of them have comes first"
    reader.scroll_through()
    assert reader.browser.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_sweep(reader):
    reader.data.rows = page_double.sweep()
    reader.open("compare?tag=sweep%3Da73d6d0a")
    reader.until_text("grid-13", "[aria-label=leaderboard] tbody tr:nth-child(1)")
    assert reader.text("h1") == "Sweep a73d6d0a"
    assert set(reader.texts(".grid-of figcaption")) >= {"lr", "width", "optimizer", "seed"}
    assert reader.browser.evaluate("document.querySelectorAll('.parallel .line').length") == 64
    reader.browser.evaluate("(s => { s.value = 'high'; s.dispatchEvent(new Event('change')) })"
                            "(document.querySelectorAll('.bar select')[1])")
    reader.until_text("grid-51", "[aria-label=leaderboard] tbody tr:nth-child(1)")
    reader.pictures(1)
    assert reader.browser.evaluate("document.querySelectorAll('.legend-of li').length") == 64


def test_sixty_four_lines_differ(reader):
    """By the colour or by the strokes."""
    reader.data.rows = page_double.sweep()
    reader.open("compare?tag=sweep%3Da73d6d0a")
    reader.until("document.querySelectorAll('.legend-of li').length == 64", "all of them")
    assert reader.browser.evaluate("new Set([...document.querySelectorAll('.legend-of path')].map(p => "
                                   "p.getAttribute('class') + p.getAttribute('stroke-dasharray'))).size") == 64


def test_parameters_that_are_not_known(reader):
    """They have no place in a picture; one that was typed has."""
    reader.data.rows = page_double.sweep()
    for row in reader.data.rows[:3]:
        del row["tags"]["lr"]
    reader.data.rows[0]["command"] = ["train.py", "--lr", "0.1"]
    reader.data.rows[1]["command"] = ["train.py", "--lr=0.01"]
    reader.open("compare?tag=sweep%3Da73d6d0a")
    reader.until("document.querySelectorAll('.parallel .line').length == 63", "one has no lr")
    points = "[...document.querySelectorAll('figure')].find(f => f.querySelector('figcaption').innerText == {!r})"
    counts = [reader.browser.evaluate(f"{points.format(name)}.querySelectorAll('circle').length")
              for name in ("lr", "width")]
    assert counts == [63, 64]
    assert reader.texts("section .note").count("Not shown, without a value: 1 run.") == 2


def test_many_points(reader):
    """100 curves of 100,000 points are on the screen; how long it took is said, not judged."""
    reader.open()
    took = reader.browser.evaluate("""(() => {
        const lines = Array.from({length: 100}, (_, n) => {
            const x = Array.from({length: 100000}, (_, i) => i);
            return {id: `r${n}`, label: `r${n}`, colour: n, x, y: x.map(i => Math.sin(i / 5000 + n)), t: null};
        });
        const charts = new Charts(), begin = performance.now();
        const chart = new Chart(charts, {title: "many", lines, xName: "step"});
        document.querySelector("main").prepend(chart.element);
        chart.show();
        return performance.now() - begin;
    })()""")
    reader.pictures(1)
    print(f"100 curves of 100,000 points: {took:.0f} ms")
    assert reader.browser.evaluate("document.querySelector('.plot-box').chart.plot.series.length") == 101


# ---- clusters


def test_clusters(reader):
    reader.open("clusters", **WAYS["phone"])
    assert reader.browser.evaluate("[...document.querySelectorAll('.card td')].every(c => c.clientHeight < 80)"), \
        "no word is broken to save width"
    reader.open("clusters")
    cards = reader.texts(".card")
    assert cards[0].startswith("lab") and "8 of 32 free" in cards[0] and "2 running, 1 queued" in cards[0], "mine first"
    assert "NVIDIA H100" in cards[0] and "40 GiB of 80 GiB" in cards[0] and "it does not answer" in cards[1]
    reader.browser.click(".card details summary")
    reader.until_text("somebody", ".card")


# ---- how it looks, and for whom


PAGES = ("", "run?id={2}", "compare?id={0}&id={1}&id={2}", "compare?tag=sweep%3Da73d6d0a", "clusters")


@pytest.mark.parametrize("path", PAGES)
def test_fits_every_window(reader, path):
    """Nothing is wider than the window, nothing moves once it is there."""
    if "sweep" in path:
        reader.data.rows = page_double.sweep()
    path = path.format(*(r["id"] for r in reader.data.rows))
    for name, how in WAYS.items():
        reader.open(path, **how)
        reader.scroll_through()
        assert reader.browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        moved = reader.browser.evaluate(MOVED)
        assert moved < 0.1, (name, moved)


def open_all(reader):
    """What stays shut until somebody wants it; what was searched for in the log is marked."""
    reader.browser.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    if reader.browser.evaluate("Boolean(document.querySelector('#log input[type=search]'))"):
        reader.until_text("step", ".log")
        reader.browser.click("#log input[type=search]")
        reader.browser.type("step")
        reader.until_text(" of ", "#log [role=status]")


# What axe looks for in each way: the dark colours are all that differs from the light page.
RULES = {"light": {}, "dark": {"runOnly": ["color-contrast"]}, "phone": {}}


@pytest.mark.parametrize("path", PAGES)
def test_everybody_can_read_it(reader, path):
    """axe finds nothing on a page of which all is open; test_ui.py shows it pages on which some is shut."""
    if "sweep" in path:
        reader.data.rows = page_double.sweep()
    for name, rules in RULES.items():
        reader.open(path.format(*(r["id"] for r in reader.data.rows)), **WAYS[name])
        reader.scroll_through()
        open_all(reader)
        reader.browser.evaluate(AXE.read_text() + "; 0")
        found = reader.browser.evaluate(f"axe.run({json.dumps(rules)}).then("
                                        "r => r.violations.map(v => [v.id, v.impact, v.nodes[0].html]))")
        assert found == [], name
        assert reader.browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), name


@pytest.mark.parametrize("path", PAGES)
def test_the_keyboard_reaches_everything(reader, path):
    if "sweep" in path:
        reader.data.rows = page_double.sweep()
    reader.open(path.format(*(r["id"] for r in reader.data.rows)))
    reader.scroll_through()
    open_all(reader)
    reader.browser.evaluate("document.activeElement.blur(), scrollTo(0, 0)")
    wanted = reader.browser.evaluate("""(() => {
        window.wanted = new Set([...document.querySelectorAll('a, button, input, select, summary, [tabindex="0"]')]
            .filter(n => !n.disabled && n.checkVisibility()));
        return wanted.size;
    })()""")
    for _ in range(wanted + 20):
        reader.browser.press("Tab")
        reader.browser.evaluate("wanted.delete(document.activeElement)")
    assert reader.browser.evaluate("[...wanted].map(n => n.outerHTML.slice(0, 200))") == []


def test_a_picture_by_keyboard(reader):
    reader.open(f"run?id={reader.data.rows[1]['id']}")
    reader.pictures(1)
    reader.browser.evaluate("document.querySelector('.plot-box').focus()")
    for _ in range(3):
        reader.browser.press("ArrowRight")
    assert re.search(r"loss, step 20: train-1 \d", reader.text(".bar .unseen"))
    reader.browser.press("+")
    reader.until(f"{scale(0)}[1] < 2000", "it is zoomed")


def test_hostile_names(reader):
    evil = page_double.EVIL
    reader.data.keys = [evil, "loss"]
    reader.data.rows = [page_double.row(1, name=evil, tags={evil: evil}, cluster=evil, command_line=evil, reason=evil,
                                        last={evil: 1, "loss": 2}, spark={evil: [1, 2, 3]}),
                        page_double.row(2, name=evil, why=evil, tags={evil: "b"}, last={evil: 2}, spark={})]
    ids = [r["id"] for r in reader.data.rows]
    for path in ("", f"run?id={ids[0]}", f"compare?id={ids[0]}&id={ids[1]}"):
        reader.open(path)
        reader.until_text(evil, "main")
        reader.scroll_through()
        assert reader.browser.evaluate("document.querySelectorAll('img, main script, main b').length") == 0, path


# ---- in another browser


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("width", [1280, 450])
def test_pages_in_firefox(firefox, double, path, width):
    if "sweep" in path:
        double.data.rows = page_double.sweep()
    firefox.size(width, 900)
    firefox.open("about:blank")
    firefox.open(f"{double.url}/{path.format(*(r['id'] for r in double.data.rows))}")
    firefox.until("/s\\.|As of/.test(document.querySelector('.live')?.textContent)", "the page has its data")
    firefox.until("(scrollBy(0, 400), scrollY + innerHeight >= document.documentElement.scrollHeight - 2)",
                  "all of it was seen")
    assert firefox.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert firefox.complaints(double.url) == []


def test_a_sweep_in_firefox(firefox, double):
    double.data.rows = page_double.sweep()
    firefox.open(f"{double.url}/compare?tag=sweep%3Da73d6d0a")
    best = "document.querySelector('[aria-label=leaderboard] tbody tr:nth-child(1)')?.innerText ?? ''"
    firefox.until(f"({best}).includes('grid-13')", "the leaderboard")
    firefox.until("document.querySelectorAll('.parallel .line').length == 64", "a line a run")
    firefox.until("(document.querySelector('.grid-of:last-child, .slot').scrollIntoView(), "
                  "document.querySelector('.plot-box canvas')?.width > 0)", "a picture is drawn")
    firefox.evaluate("(s => { s.value = 'high'; s.dispatchEvent(new Event('change')) })"
                     "(document.querySelectorAll('.bar select')[1])")
    firefox.until(f"({best}).includes('grid-51')", "the other way round")
    assert firefox.complaints(double.url) == []


# ---- what the pages are made of


def linear(colour):
    values = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def oklab(rgb):
    """bottosson.github.io/posts/oklab: distances in it are what people see."""
    r, g, b = (max(0.0, min(1.0, v)) for v in rgb)
    lms = [(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3),
           (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3),
           (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)]
    return [sum(f * v for f, v in zip(row, lms)) for row in (
        (0.2104542553, 0.7936177850, -0.0040720468), (1.9779984951, -2.4285922050, 0.4505937099),
        (0.0259040371, 0.7827717662, -0.8086757660))]


# Machado, Oliveira and Fernandes, 2009, at full severity.
SIGHTS = {
    "all colours": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def test_colours_of_lines(shell):
    """Any two differ for everybody, and all stand out from the background."""
    palettes = re.findall(r"--back:(#\w+).*?((?:--c\d:#\w+;?)+)", shell[0])
    assert len(palettes) == 3
    for back, colours in palettes:
        back = linear("#ffffff" if back == "#fff" else back)
        colours = [linear(c) for c in re.findall(r"--c\d:(#\w+)", colours)]
        assert len(colours) == 8
        for sight, matrix in SIGHTS.items():
            seen = [oklab([sum(f * v for f, v in zip(row, c)) for row in matrix]) for c in colours]
            assert min(math.dist(a, b) for a, b in itertools.combinations(seen, 2)) > 0.095, (back, sight)
        light = [0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05 for r, g, b in [back, *colours]]
        assert all(max(light[0], v) / min(light[0], v) >= 3 for v in light[1:]), back


def test_scripts_are_as_they_should_be():
    """uPlot is what its authors published, and the scripts are JavaScript."""
    folder = HERE.parents[1] / "act/cli/page/assets"
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder / "uplot", check=True,
                   capture_output=True)
    names = []
    for script in sorted(folder.glob("*.js")):
        subprocess.run(["node", "--check", script], check=True)
        names += re.findall(r"^(?:async )?(?:function|class) (\w+)", script.read_text(), re.MULTILINE)
    assert len(names) == len(set(names)), "they become one script, in which the later one of a name counts"
