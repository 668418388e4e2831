"""The data behind the pages of `a ui`: the same rows as `--json`, for programs. Who may ask, and the pages: test_ui.py."""
import json
import math
import urllib.parse

import pytest

import report_data
from test_report import plant, print_lines
from test_ui import serving


def read(ui, path, status=200):
    """A document, once it has been made."""
    def ready():
        got, headers, text = ui.ask(path)
        assert headers["Content-Type"] == "application/json; charset=utf-8", (path, headers)
        assert headers["Cache-Control"] == "no-store" and headers["Refresh"] is None
        assert headers["Content-Security-Policy"] == "default-src 'none'"
        document = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        if got == 202:
            assert document == {"wait_ms": 500}
            return None
        assert got == status, (path, got, text)
        return document
    return ui.act.until(ready, f"{path!r} is made")


def query(**values):
    return urllib.parse.urlencode(values, doseq=True)


def rows_of(act, *words):
    return json.loads(act.run("q", "--json", *words).out)["runs"]


@pytest.fixture
def ui(act):
    with serving(act) as served:
        yield served


@pytest.mark.smoke
def test_the_list_has_the_rows_of_q(act, ui):
    good = act.finish(*print_lines(*report_data.training(20).splitlines()), before=("-n", "1"))
    named = act.run("submit", "--name", "base", "--tag", "sweep=7", "--tag", "lr=0.1", "sh", "-c", "exit 3").out.strip()
    act.run("wait", named, status=3)
    document = read(ui, "api/runs")
    assert document["total"] == 2 and document["next_s"] == 10 and document["now"] > 1_600_000_000
    assert [run["id"] for run in document["runs"]] == [named, good]
    for row, said in zip(document["runs"], rows_of(act)):
        assert {k: row[k] for k in said} == said
    failed, completed = document["runs"]
    assert failed["sweep"] == "7" and completed["sweep"] is None
    assert failed["why"] and completed["why"] is None
    assert failed["elapsed_s"] >= 0


def test_a_part_of_the_list(act, ui):
    ids = [act.run("submit", "--name", f"r{i}", "true").out.strip() for i in range(4)]
    act.run("wait", *ids)
    newest = ids[::-1]
    for asked, shown in {"max=2": newest[:2], "max=2&offset=1": newest[1:3], "offset=3": newest[3:], "offset=9": [],
                         "name=r1": [ids[1]], "name=r1&offset=1": [], "since=1": newest}.items():
        assert [run["id"] for run in read(ui, f"api/runs?{asked}")["runs"]] == shown, asked
    assert read(ui, "api/runs?max=1&offset=2")["total"] == 4
    for asked in ("max=x", "max=0", "max=1001", "offset=-1", "since=y", "max=99999999999999999999", "tag=nonsense",
                  "nothing=1", "name=a%20b"):
        assert read(ui, f"api/runs?{asked}", 400)["error"], asked


def test_a_run(act, ui):
    run = act.finish(*print_lines(*report_data.training(20).splitlines()), before=("-n", "2"))
    document = read(ui, f"api/run?id={run}")
    (said,) = rows_of(act, run)
    assert {k: document["run"][k] for k in said if k in document["run"]} == {
        k: v for k, v in said.items() if k not in ("logs", "page")}
    assert document["command"] == f"a resubmit {run}"
    assert [key["name"] for key in document["keys"]][:1] == ["loss"]
    assert [rank["rank"] for rank in document["ranks"]] == [0, 1]
    assert document["ranks"][0]["log"] in [file["name"] for file in document["files"]]
    assert [event["what"] for event in document["events"]] == ["created", "started", "ended"]
    assert document["why"] is None and document["next_s"] is None
    assert document["spec"]["nodes"] == "1"


def test_a_run_that_failed(act, ui):
    run = act.finish("sh", "-c", "echo 45/100, 4.32it/s; echo 'RuntimeError: CUDA out of memory'; exit 3",
                     before=("-n", "1"), status=3)
    document = read(ui, f"api/run?id={run}")
    why = json.loads(act.run("why", "--json", run).out)
    assert {k: document["why"][k] for k in why if k != "version"} == {k: v for k, v in why.items() if k != "version"}
    assert document["why"]["class"] == why["diagnosis"]["class"] == document["run"]["why"]
    assert document["ranks"][0]["failed_first"] and document["ranks"][0]["exit_status"] == 3


def test_curves(act, ui):
    lines = [f"step {i} loss {math.exp(-i / 100):.6g} lr 0.1" for i in range(1000)] + ["step 1000 loss nan lr 0.1"]
    run = act.finish(*print_lines(*lines), before=("-n", "1"))
    other = act.finish(*print_lines("step 1 loss 7", "step 2 loss 6"), before=("-n", "1"))
    plot = json.loads(act.run("plot", "--json", "loss", run).out)["runs"][0]
    document = read(ui, "api/series?" + query(id=[run, other], key="loss", points=5000))
    first, second = document["series"]
    assert (first["id"], first["key"], first["x_name"], first["t"]) == (run, "loss", "step", None)
    assert list(zip(first["x"][:-1], first["y"][:-1])) == [pytest.approx(tuple(p)) for p in plot["points"]]
    assert (first["x"][-1], first["y"][-1]) == (1000, None), "NaN is a gap"
    assert (second["x"], second["y"]) == ([1, 2], [7, 6])
    few = read(ui, "api/series?" + query(id=run, points=50))["series"]
    assert [curve["key"] for curve in few] == ["loss", "lr"] and len(few[1]["x"]) == 50
    assert read(ui, "api/series?" + query(id=run, key="no-such"))["series"] == []
    for asked in ("", "id=", f"id={run}&points=1", f"id={run}&points=x", f"id={run}&use=2", "&".join(["id=x"] * 17)):
        assert read(ui, f"api/series?{asked}", 400)["error"], asked
    assert read(ui, "api/series?id=no-such-run", 404)["error"]
    assert read(ui, "api/run?id=no-such-run", 404)["error"].startswith("no run 'no-such-run'")
    assert read(ui, "api/other", 404)["error"]


def test_use_of_nodes(act, ui):
    run = act.finish("echo", "loss 1", before=("-n", "1"))
    act.run("q", run)
    plant(act, run, {"metrics/n1.jsonl": report_data.metrics(1, 300, gpus=2)})
    document = read(ui, f"api/series?id={run}&use=1&points=100")
    assert document["series"] == []
    curves = {(curve["what"], curve["gpu"]): curve for curve in document["use"] if curve["node"] == "n1"}
    assert ("gpu_busy", 0) in curves and ("gpu_memory", 1) in curves and ("gpu_busy", 2) not in curves
    memory = curves["memory", None]
    assert len(memory["x"]) == len(memory["y"]) == 100 and memory["unit"] == "share" and memory["x"][0] == 1790000000
    assert curves["net_sent", None]["unit"] == "bytes_per_s"


def test_the_key_and_the_host(act, ui):
    act.finish("true")
    assert ui.ask("/api/runs")[0] == 403
    assert ui.ask("api/runs", Host="evil.example")[0] == 421
    assert ui.ask("api/runs", method="POST")[0] == 405
    status, headers, text = ui.ask("api/runs", method="HEAD")
    assert status == 200 and text == "" and int(headers["Content-Length"]) > 100
