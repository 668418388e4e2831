"""A run as a page, and its numbers as curves: a report, a plot. What lines are numbers is in numbers_test.c."""
import base64
import csv
import hashlib
import html.parser
import json
import os
import re
import subprocess
import xml.etree.ElementTree

import pytest

import report_data
from conftest import MODULES

VOID = {"meta", "br", "hr", "link", "img", "input"}


class Page(html.parser.HTMLParser):
    """A page, which must be well-formed. text is what people see; of sections by their headings."""

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.attributes, self.parts, self.scripts = [], [], [], [], []
        self.source = source
        self.feed(source)
        self.close()
        assert self.open == [], self.open
        self.text = "".join(self.parts)
        self.captions = re.findall(r"<figcaption>(.*?)</figcaption>", source)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.extend(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.extend(attrs)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (self.open, tag, self.getpos())
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.parts.append(data)


def page_of(act, *words, **options):
    return Page(act.run(*words, **options).out)


def print_lines(*lines):
    """A command that prints these, of any bytes."""
    data = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
    return ("python3", "-c", f"import sys; sys.stdout.buffer.write({data!r})")


def plant(act, run, files):
    """Copies of logs, as if they had been fetched."""
    act.run("q", run)
    for name, content in files.items():
        path = act.project / f"assets/{run}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.fixture
def trained(act):
    """A run with two curves."""
    return act.finish(*print_lines(*report_data.training(100).splitlines()), before=("-n", "1"))


# ---- the page


@pytest.mark.smoke
def test_report_of_a_run(act):
    act.write("main.py", "import sys\n" + "\n".join(f"print('step {s} loss {9 - s}')" for s in range(9))
              + "\nprint('torch.OutOfMemoryError: CUDA out of memory.'); sys.exit(3)")
    run = act.finish("python3", "main.py", status=3,
                     before=("-n", "1", "-p", "env: {COLOUR: green, MY_TOKEN: hush-hush}"))
    page = page_of(act, "report", run)
    for text in (run, "Failed", "python3 main.py", "out of memory on the GPU", "CUDA out of memory", "step 8 loss 1",
                 "user_logs/std_log_process_0.txt", "env.COLOUR", "green", act.info(run)["package"]):
        assert text in page.text, text
    assert page.captions[0] == "loss" and any("CPU" in c for c in page.captions)
    assert "hush-hush" not in page.source and "(secret)" in page.text


def test_page_stands_alone(act, trained):
    page = page_of(act, "report", trained)
    assert page.tags.count("script") == 2 and not {"img", "link", "iframe", "object", "a"} & set(page.tags)
    assert not [a for a in page.attributes if a[0].startswith("on") or a[0] in ("src", "href", "style")]
    data, script = page.scripts
    rest = page.source.replace(script, "")
    assert not [outside for outside in ("url(", "@import", "://") if outside in rest]
    assert not [outside for outside in ("eval(", "Function(", "import(", "innerHTML", "document.write")
                if outside in script]
    sheet = re.search(r"<style>(.*?)</style>", page.source, re.S)[1]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (sheet, script)]
    policy = dict(page.attributes)["content"] and re.search(r'Content-Security-Policy" content="(.*?)"', page.source)[1]
    assert policy == "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'none'; " \
        "base-uri 'none'; form-action 'none'".format(*hashes)
    assert [s["key"] for s in json.loads(data)["series"]] == ["loss", "lr"]


def test_hostile_log(act):
    evil = "</pre></details><script>alert('x')</script><img src=x onerror=alert(1)>\"' &amp; ]]> <!-- "
    run = act.finish(*print_lines(evil, "\x1b]0;title\x07\u202egnp.exe", b"\xff\xfe\x00\x01 loss 3", evil + " loss: 1",
                                  "'<b>loss</b>': 2", "x" * 20000, "step 1 loss 4"), before=("-n", "1"))
    page = page_of(act, "report", run)
    assert page.tags.count("script") == 2 and "img" not in page.tags and "b" not in page.tags
    assert "<" not in page.scripts[0] and evil[:9] not in page.scripts[0]
    assert "<script>alert('x')</script>" in page.text and "&amp; ]]>" in page.text
    assert "\u202e" not in page.text and "\x1b" not in page.text and "\0" not in page.text
    assert len(page.source.replace(page.scripts[1], "")) < 100_000


def test_a_progress_bar_in_the_log(act):
    """Of its states the page has the one that a terminal would show."""
    run = act.finish("sh", "-c", "for i in $(seq 1 999); do printf '\\r%5d of 999' $i; done; echo; echo ended",
                     before=("-n", "1"))
    page = page_of(act, "report", run)
    assert "999 of 999\nended" in page.text and "998 of 999" not in page.text


def test_metrics_of_nodes_and_attempts(act, trained):
    begin = 1_790_000_000
    second = report_data.metrics(1, 50, gpus=2, begin=begin + 600)
    backwards = "".join(reversed(report_data.metrics(2, 60, gpus=0).splitlines(True)))
    plant(act, trained, {
        "attempts/1/metrics/n1.jsonl": report_data.metrics(1, 50, gpus=2),
        "attempts/1/user_logs/std_log_process_0.txt": "step 1 loss 77\n",
        "attempts/1/status.json": {"version": 1, "state": "Failed", "started": begin, "ended": begin + 500,
                                   "attempt": 1, "exit_status": 9, "reason": "node n1 <lost>"},
        "metrics/n1.jsonl": second + second[:200],  # cut in a line
        "metrics/n2.jsonl": backwards + '{"time": 1790000005, "cpu": {"busy": NaN}}\n{}\n'})
    page = page_of(act, "-no-wl", "report", trained)
    assert "node n1 <lost>" in page.text and "Node n1" in page.text and "Node n2" in page.text
    assert page.captions.count("GPUs, busy") == 1, "n2 has none"
    assert page.captions.count("CPU, memory, disks") == 3, "of the real node too"
    assert page.text.count("of its metrics could not be read") == 1 and "2 lines of its metrics" in page.text
    assert "GPU 1: 50.1 % to" not in page.source and 'aria-label="GPUs, busy; GPU 0: ' in page.source
    points = act.run("-no-wl", "plot", "loss", "--csv", trained).out.splitlines()
    assert f"{trained},1,3.0826" in points and len(points) == 101, "the later attempt counts"


def test_attempts_are_marked(act, trained):
    started = 1_790_000_300
    for n in (1, 2):
        begin = started - 300 + 300 * (n - 1)
        plant(act, trained, {
            f"attempts/{n}/metrics/n1.jsonl": report_data.metrics(1, 30, gpus=1, begin=begin),
            f"attempts/{n}/status.json": {"version": 1, "state": "Failed", "started": begin, "attempt": n}})
    page = page_of(act, "-no-wl", "report", trained)
    assert "attempt 2 (5m00s)" in page.text
    assert page.source.count('class="mark"') >= 3, "in each chart of the node"


def test_metrics_in_the_log_of_a_service(act, trained):
    """As Azure Machine Learning has them: no file of metrics."""
    act.run("q", trained)
    folder = act.project / f"assets/{trained}"
    for path in (folder / "metrics").iterdir():
        path.unlink()
    with (folder / "user_logs/std_log_process_0.txt").open("a") as log:
        for minute in range(3):
            log.write(f"act: metrics: node far, cpu {30 + minute} %, memory 10.0/20.0 GiB, gpu 0 97 % 1.0/2.0 GiB, "
                      f"at 2026-01-01T00:0{minute}:00Z\n")
    page = page_of(act, "-no-wl", "report", trained)
    assert "Node far" in page.text and "CPU busy: 30 % to 32 %, finally 32 %" in page.source
    assert page.captions.count("GPUs, busy") == 1


def test_what_differs_from_the_run_before(act):
    one = act.finish("sh", "-c", "echo loss 1; echo loss 2", before=("-n", "1", "-p", "env: {A: one}"))
    two = act.finish("sh", "-c", "echo loss 3; echo loss 4", before=("-n", "1", "-p", "env: {A: two}"))
    again = act.run("resubmit", one).out.strip()
    act.run("wait", again)
    text = page_of(act, "report", again).text
    assert f"What differs from {one}nothing" in text.replace("\n", ""), text
    page = page_of(act, "report", one, two)
    text = re.sub(r"\s+", " ", page.text)
    assert f"What differs from {one}" in text and "env.A" in page.text
    assert re.search(r"env\.A</th><td>two</td><td>one", page.source)
    assert page.captions.count("loss") == 1, "both in one picture"
    assert f"<title>{one}</title></path>" in page.source and f"<title>{two}</title></path>" in page.source


def test_files_that_the_run_wrote(act):
    """The biggest first, a hundred of them; what was there before is none of them."""
    store = act.store / "files"
    (store / "output").mkdir(parents=True)
    (store / "output/before.bin").write_bytes(b"x" * 9000)
    os.utime(store / "output/before.bin", (1000, 1000))
    run = act.finish("sh", "-c", "mkdir -p output/sub; head -c 5000 /dev/zero > output/sub/model.pt; "
                     "echo '<b>' > 'output/<b>.txt'; for i in $(seq 200); do : > output/e$i; done", before=("-n", "1"))
    page = page_of(act, "report", run)
    assert "202 files in its folders, written while it ran" in page.text and "the biggest:" in page.text
    assert len(re.findall(r"output/e\d", page.text)) == 98
    assert "before.bin" not in page.text and "output/<b>.txt" in page.text
    first = re.search(r"output/e\d", page.text).start()
    assert page.text.index("output/sub/model.pt") < page.text.index("output/<b>.txt") < first
    (act.project / "aux_data/configs/store.yaml").unlink()
    result = act.run("report", run)
    assert "is known" in result.err or "is not known" in result.err, result.err
    assert "<h2>Artefacts</h2>" in result.out


def test_files_in_the_own_folder_of_a_project(act):
    """It is still that folder that the run wrote into when it was stored later."""
    act.write("data/x", "x")
    run = act.finish("sh", "-c", "echo more > data/made", before=("-n", "1"))
    assert "data/made" in page_of(act, "report", run).text
    act.run("u", "data")
    result = act.run("report", run)
    assert "known" not in result.err and "data/made" in Page(result.out).text, result


def test_name_and_tags(act):
    run = act.run("-n", "1", "submit", "--name", "first", "--tag", "lr=0.1", "--tag", "who=<b>", "true").out.strip()
    act.run("wait", run)
    page = page_of(act, "report", run)
    assert "first" in page.text and "lr=0.1, who=<b>" in page.text


def test_a_folder_in_another_counts_once(act):
    path = act.cluster("aml", folders=("output",))
    config = json.loads(path.read_text())
    account = config["config_param"]["output_folder"]["azure_blob_config_file"]
    config["config_param"]["model_folder"] = {"azure_blob_config_file": account, "path": "files/output/model"}
    path.write_text(json.dumps(config))
    run = act.finish("sh", "-c", "echo 12345 > model/w; echo 1 > output/o", before=("-n", 1))
    page = act.run("report", run).out
    assert "2 files in its folders, written while it ran, 8 B" in page and "output/model/w" in page


def test_into_a_file(act, trained):
    target = act.project / "run.html"
    said = act.run("report", "-o", "run.html", trained)
    assert re.fullmatch(r"wrote 'run.html', [0-9.]+ Ki?B\n", said.err.splitlines(True)[-1]) and said.out == "", said
    assert Page(target.read_text()).text.count(trained) > 1
    page = act.project / "run.html"
    for mode in (0o600, 0o664):
        page.chmod(mode)
        act.run("report", "-o", "run.html", trained)
        assert page.stat().st_mode & 0o777 == mode, "that of the file that it replaces"
    (act.project / "link.html").symlink_to("run.html")
    page.write_text("old")
    act.run("report", "-o", "link.html", trained)
    assert (act.project / "link.html").is_symlink() and page.read_text().startswith("<!DOCTYPE html>")
    target.write_text("kept")
    act.fail("report", "-o", "run.html", trained, "no-such-run", status=3)
    assert target.read_text() == "kept"
    (act.project / "closed").write_text("")
    for folder in ("closed", "missing/below"):
        assert f"there is no folder '{folder}'" in act.fail("report", "-o", f"{folder}/run.html", trained, status=3)
    assert not (act.project / "missing").exists()
    assert "not a regular file" in act.fail("report", "-o", "/dev/null", trained, status=2)
    assert "is a folder" in act.fail("report", "-o", "aux_data", trained, status=2)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([act.programs / "a", "report", trained], env=act.env, cwd=act.project, stdout=full,
                              stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1 and done.stderr.count(b"cannot write the output") == 1


def test_refused_on_a_terminal(act, trained):
    shown = act.on_terminal("report", trained)
    assert b"-o run.html" in shown and b"<html" not in shown
    assert b"<html" not in act.on_terminal("report", "-o", "run.html", trained)
    assert (act.project / "run.html").exists()


def test_without_logs(act):
    run = act.finish("true", before=("-n", "1"))
    page = page_of(act, "-no-wl", "report", run)
    assert "no numbers with names" in page.text and "Completed" in page.text


# ---- curves


@pytest.mark.smoke
def test_plot(act, trained):
    text = act.run("plot", "loss", trained).out
    assert text.splitlines()[0].strip() == "loss" and trained in text and "step" in text
    assert any("\u2800" <= c <= "\u28ff" for c in text)
    assert act.run("plot", "LOSS", trained, env={"LC_ALL": "C"}).out.isascii()
    shown = act.on_terminal("plot", "loss", trained, columns=60)
    assert b"\x1b[3" in shown
    assert all(len(re.sub(r"\x1b\[[0-9]*m", "", line)) <= 60
               for line in shown.decode().replace("\r", "").splitlines()[:18])

    rows = list(csv.reader(act.run("plot", "loss", "--csv", trained).out.splitlines()))
    assert rows[0] == ["run", "step", "loss"] and len(rows) == 101 and rows[1][:2] == [trained, "0"]
    answer = act.run("plot", "loss", "--json", trained).json
    assert (answer["version"], answer["key"], answer["by"]) == (1, "loss", "step")
    assert answer["runs"][0]["values"] == 100 and answer["runs"][0]["points"][0] == [0, 3.0]
    svg = xml.etree.ElementTree.fromstring(act.run("plot", "loss", "--svg", trained).out)
    assert svg.tag.endswith("svg") and not [e for e in svg.iter() if e.tag.endswith("script")]


def test_plot_of_several_runs(act, trained):
    other = act.finish(*print_lines("loss: 1", "loss: nan", "loss: 3"), before=("-n", "1"))
    act.finish("true", before=("-n", "1"))
    answer = act.run("plot", "--json", "loss", trained, other, trained).json
    assert [r["run"] for r in answer["runs"]] == [trained, other]
    assert (answer["runs"][1]["not_finite"], answer["runs"][1]["points"]) == (1, [[1, 1], [3, 3]])
    assert "1 not finite" in act.run("plot", "loss", other).out
    assert "1 value is not finite" in page_of(act, "report", other).text


def test_plot_tells_curves_apart(act, trained):
    """By names, and by marks where there are no colours."""
    named = [act.run("submit", "--name", name, *print_lines("loss: 1", "loss: 3")).out.strip()
             for name in ("base", "twin", "twin")]
    act.run("wait", *named)
    text = act.run("plot", "loss", trained, named[0]).out
    assert re.search(rf"\* {trained}: ", text) and re.search(r"\+ base: ", text), text
    twins = act.run("plot", "loss", *named[1:]).out
    assert all(f"twin ({run[-8:]})" in twins for run in named[1:]) and named[1] not in twins
    shown = act.on_terminal("plot", "loss", trained, named[0], columns=60, NO_COLOR="1")
    assert b"+ base" in shown and b"\x1b[3" not in shown
    assert act.run("plot", "loss", "--csv", named[0]).out.splitlines()[1].startswith(named[0])
    assert act.run("plot", "loss", "--json", named[0]).json["runs"][0]["run"] == named[0]


def test_plot_of_runs_of_which_some_have_it(act, trained):
    """The others are named, and the exit status says so."""
    other = act.finish("echo", "acc 0.5", before=("-n", "1"))
    result = act.run("plot", "loss", "--json", trained, other, status=8)
    assert [run["run"] for run in result.json["runs"]] == [trained]
    assert f"1 of 2 runs are drawn: there is no 'loss' in the log of {other}" in result.err
    act.fail("plot", "loss", other, status=3)


def test_plot_without_a_key_lists_them(act, trained):
    """Of the run submitted last, as 'a plot KEY' takes it, or of those that are named by '@' or a tag."""
    script = "echo step 1 loss 2; echo step 2 loss 1.5; echo step 2 extra=3"
    last = act.run("submit", "--tag", "kind=mine", "sh", "-c", script).out.strip()
    act.run("wait", last)
    rows = [line.split() for line in act.run("plot").out.splitlines()]
    assert rows == [["KEY", "VALUES", "MIN", "MAX", "LAST", "RUN"], ["loss", "2", "1.5", "2", "1.5", last],
                    ["extra", "1", "3", "3", "3", last]]
    assert act.run("plot", "@").out == act.run("plot", "--tag", "kind=mine").out == act.run("plot").out
    keys = act.run("plot", "@2", "--json").json["keys"]
    assert {"run": trained, "key": "loss", "by": "step"}.items() <= keys[0].items()
    assert act.run("plot", "loss", "--csv").out.splitlines()[1:] == [f"{last},1,2", f"{last},2,1.5"]
    act.finish("true", before=("-n", "1"))
    assert "has no number with a name" in act.fail("plot", status=3)


def test_plot_of_what_is_not_finite(act):
    run = act.finish(*print_lines("loss: 2", "lr: nan", "loss: nan", "gain: 1", "gain: inf"), before=("-n", "1"))
    rows = {line.split()[0]: line.split()[1:-1] for line in act.run("plot").out.splitlines()[1:]}
    assert rows == {"loss": ["1", "2", "2", "nan"], "lr": ["0", "-", "-", "nan"], "gain": ["1", "1", "1", "inf"]}
    keys = {k["key"]: [k[name] for name in ("values", "min", "max", "last", "not_finite")]
            for k in act.run("plot", "--json").json["keys"]}
    assert keys == {"loss": [1, 2, 2, None, 1], "lr": [0, None, None, None, 1], "gain": [1, 1, 1, None, 1]}
    (curve,) = act.run("plot", "--json", "lr", run).json["runs"]
    assert curve == {"run": run, "values": 0, "min": None, "max": None, "last": None, "not_finite": 1, "points": []}


def test_a_picture_is_of_one_number(act, trained):
    """What lists the numbers is neither one nor a table of points."""
    for option in ("--csv", "--svg"):
        said = act.fail("plot", option, "@", status=2)
        assert f"{option} needs the name of a number, as in 'a plot loss {option}'" in said


def test_plot_of_what_is_not_there(act, trained):
    assert "did you mean 'loss'? it has loss, lr" in act.fail("plot", "los", trained, status=3)
    act.fail("plot", "loss", "no-such-run", status=3)
    act.fail("plot", "--svg", "--csv", "loss", trained, status=2)
    empty = act.finish("true", before=("-n", "1"))
    assert "has no number with a name" in act.fail("plot", "loss", empty, status=3)


def test_numbers_of_another_rank(act, two_ranks):
    run = act.finish("sh", "-c", "[ $RANK = 0 ] || seq -f 'loss %g' 3", before=("-n", "2"))
    assert len(act.run("plot", "loss", "--json", run).json["runs"][0]["points"]) == 3, "of the first that has any"
    act.fail("plot", "loss", "--rank", "0", run, status=3)
    act.run("plot", "loss", "--rank", "1", run)
    assert "has ranks 0 to 1, not 2" in act.fail("plot", "loss", "--rank", "2", run, status=2)
    act.fail("report", "--rank", "99999999999", run, status=2)


def test_a_log_with_a_line_of_many_megabytes(act, trained):
    log = act.project / f"assets/{trained}/user_logs/std_log_process_0.txt"
    act.run("q", trained)
    with log.open("r+b") as file:
        file.seek(64 << 20)  # a hole: a line without an end
        file.write(b"\nstep 200 loss 7\n")
    assert act.run("-no-wl", "plot", "loss", "--json", trained).json["runs"][0]["points"][-1] == [200, 7]


# ---- in a browser


def test_requests_of_frames_are_seen(browser, scratch):
    """What looks for requests sees those of frames, too, and none of the page before."""
    page = scratch / "frames.html"
    page.write_text("""<iframe srcdoc="<img src='lacking.png'>"></iframe>""")
    for _ in range(2):
        asked = browser.open(page)[1]
        assert [url.rpartition("/")[2] for url in asked if url.startswith("file:")] == ["frames.html", "lacking.png"]


def test_in_a_browser(act, browser, trained):
    """Light, dark, on a phone, on paper; nothing is complained of, asked for, or hard to reach."""
    plant(act, trained, {f"metrics/n{n}.jsonl": report_data.metrics(n, 300, gpus=9) for n in range(3)})
    path = act.project / "run.html"
    act.run("-no-wl", "report", "-o", path, trained)
    axe = (MODULES / "axe-core/axe.min.js").read_text()
    backs = {}
    for name, how in {"light": {}, "dark": {"scheme": "dark"}, "phone": {"width": 375, "height": 800},
                      "print": {"media": "print", "scheme": "dark"}}.items():
        said, asked = browser.open(path, **how)
        assert said == [] and len(asked) == 1, (name, said, asked)
        backs[name] = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        legends = "[...document.querySelectorAll('[data-unit] .live-chart .legend-of')].map(l => l.textContent)"
        assert "readwritten" in browser.evaluate(legends), "lines of what nodes use have their names"
        assert browser.evaluate("[...document.querySelectorAll('.chart svg path')].every(p => p.getTotalLength() > 0)")
        if name != "print":
            browser.evaluate(axe + "; 0")
            found = browser.evaluate("axe.run().then(r => r.violations.map(v => [v.id, v.impact, v.nodes[0].html]))")
            assert not [v for v in found if v[1] in ("serious", "critical")], (name, found)
    assert backs["light"] == backs["phone"] == backs["print"] == "rgb(255, 255, 255)" != backs["dark"]
    assert browser.pdf().startswith(b"%PDF")


def test_a_day_of_16_nodes(act, trained):
    plant(act, trained, {f"metrics/n{n:02}.jsonl": report_data.metrics(n % 3, 864, gpus=8, every=100)
                         for n in range(16)})
    page = page_of(act, "-no-wl", "report", trained)
    assert len(page.source) < 1_000_000 and page.captions.count("GPUs, busy") == 16
