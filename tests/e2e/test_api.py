"""The data behind the pages of `a ui`: the rows of `--json`, for programs. Who may ask, and the pages: test_ui.py."""
import calendar
import contextlib
import http.client
import itertools
import json
import math
import os
import shutil
import socket
import sqlite3
import time
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
    assert document["total"] == 2 and document["next_s"] in (2, 10) and document["now"] > 1_600_000_000
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


def ids_of(document):
    return [run["id"] for run in document["runs"]]


def test_numbers_of_runs_in_the_list(act, ui):
    """They are read behind the first answer, and kept with the runs."""
    slow, quick = (act.run("submit", "--tag", f"lr={lr}", "sh", "-c", "for i in $(seq 1 100); do "
                           f"echo step $i loss $(({loss} - i)) acc 0.5; done; exit {status}").out.strip()
                   for lr, loss, status in (("0.1", 500, 3), ("1e-3", 300, 0)))
    none = act.run("submit", "--name", "none", "true").out.strip()
    act.run("wait", slow, quick, none, status=3)
    def numbers():
        runs = {run["id"]: run for run in read(ui, f"api/runs?since={len(asked)}")["runs"]}
        asked.append(1)
        return runs if runs[slow]["last"] and runs[quick]["last"] else None
    asked = [1]
    runs = act.until(numbers, "the numbers were read")
    assert runs[slow]["last"] == {"loss": 400, "acc": 0.5} and runs[quick]["last"]["loss"] == 200
    spark = runs[quick]["spark"]["loss"]
    assert len(spark) == 24 and (spark[0], spark[-1]) == (50, 0) and spark == sorted(spark, reverse=True)
    assert runs[none]["last"] == {} and runs[none]["spark"] == {}
    document = read(ui, "api/runs?sort=key:loss&key=acc")
    assert ids_of(document) == [quick, slow, none] and document["keys"] == ["loss", "acc"]
    assert list(document["runs"][0]["spark"]) == ["acc"]
    for asked_for, shown in {"sort=key:loss&order=desc": [slow, quick, none], "q=loss<250": [quick],
                             "q=lr%3D0.001": [quick], "q=lr%3D0.1+state:fail": [slow], "q=state:failed+lr<0.05": [],
                             "q=acc>%3D0.5": [quick, slow], "q=NONE": [none], "q=why:lab": [],
                             "q=cluster:aml&max=1&offset=1": [quick], "sort=tag:lr": [quick, slow, none],
                             "sort=name": [none, quick, slow], "sort=age&order=desc": [slow, quick, none],
                             "sort=state": [none, quick, slow], f"id={slow}&id={none}": [none, slow],
                             "q=no-such-word": []}.items():
        document = read(ui, f"api/runs?{asked_for}")
        assert ids_of(document) == shown, asked_for
    assert read(ui, "api/runs?q=cluster:aml&max=1")["total"] == 3
    for wrong in ("sort=luck", "sort=key:", "order=up", "&".join(["id=x"] * 65)):
        assert read(ui, f"api/runs?{wrong}", 400)["error"], wrong
    act.run("rm", "-y", f"{slow}:")
    with contextlib.closing(sqlite3.connect(act.home / "ledger.db")) as ledger:
        assert {row[0] for row in ledger.execute("SELECT run FROM notes")} == {quick, none}, "a note goes with its run"


def test_numbers_of_runs_on_machines_behind_ssh(act, hosts, host):
    """They are read when a list wants them, also of those that are not among its newest; until then it says to ask
    soon."""
    words = ("sh", "-c", "echo step 1 loss 9; echo step 2 loss 8")
    first, other = hosts.submit(*words), hosts.submit(*words)
    act.run("wait", first, other)
    with serving(act) as ui:
        host.stop()
        assert read(ui, "api/runs?max=1&offset=1")["next_s"] == 2
        host.start()
        def known(path):
            document = read(ui, path)
            return document["next_s"] == 10 and all(run["last"] == {"loss": 8} for run in document["runs"])
        act.until(lambda: known("api/runs?max=1&offset=1"), "the numbers of the first one are there")
        act.until(lambda: known("api/runs"), "and those of the other one")


def test_numbers_of_a_run_that_was_looked_at(act):
    run = act.finish(*print_lines("step 1 loss 3", "step 2 loss 2"), before=("-n", "1"))
    act.run("report", run, "-o", "run.html")
    with serving(act) as ui:
        assert read(ui, "api/runs")["runs"][0]["last"] == {"loss": 2}


def test_a_sweep_is_compared_by_its_tag(act, ui):
    runs = [act.run("submit", "--tag", "sweep=7", "echo", f"step {i} loss {i}").out.strip() for i in (1, 2)]
    act.run("wait", *runs)
    assert {curve["id"] for curve in read(ui, "api/series?tag=sweep%3D7&key=loss")["series"]} == set(runs)
    page = ui.page("compare?tag=sweep%3D7")
    assert all(run in page.text for run in runs)
    assert ui.ask("compare")[0] in (202, 400)
    assert read(ui, "api/series?tag=sweep%3D8")["series"] == []


def test_a_locked_ledger(act):
    run = act.finish("true")
    with serving(act) as ui, contextlib.closing(sqlite3.connect(act.home / "ledger.db")) as ledger:
        assert ids_of(read(ui, "api/runs")) == [run]
        ledger.execute("BEGIN EXCLUSIVE")
        assert ui.ask("api/runs?max=9")[2] == '{"wait_ms": 500}\n'
        ledger.rollback()
        assert ids_of(read(ui, "api/runs?max=9")) == [run]


def test_a_damaged_ledger_and_a_damaged_note(act, ui):
    run = act.finish("echo", "loss 1", before=("-n", "1"))
    with contextlib.closing(sqlite3.connect(act.home / "ledger.db")) as ledger:
        for n, note in enumerate(("[", "[]", '{"numbers": 7, "why": [], "looked": 3}',
                                  '{"numbers": {"a": 1, "b": [], "c": [{}, 7], "d": [1, "\\\\u0001"]}}')):
            ledger.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (run, note))
            ledger.commit()
            assert ids_of(read(ui, f"api/runs?since={n + 1}")) == [run], note
            assert ids_of(read(ui, f"api/runs?since={n + 1}&sort=key:b")) == [run], note
    (act.home / "ledger.db").write_bytes(b"no ledger" * 1000)
    said = []
    def told():
        document = read(ui, f"api/runs?max=99&since={len(said) + 1}")
        assert ids_of(document) == [run]
        said.append(document["said"])
        return any("damaged" in line for line in document["said"])
    act.until(told, f"whichever process found it, it is said: {said}")
    assert list(act.home.glob("ledger.db.damaged-*"))


def test_damage_that_is_found_behind_a_list(act, ui):
    """What reads the numbers after a list was answered says it to the next one."""
    run = act.finish("echo", "loss 1", before=("-n", "1"))
    assert ids_of(read(ui, "api/runs")) == [run]
    (act.home / "ledger.db").write_bytes(b"no ledger" * 1000)
    act.until(lambda: list(act.home.glob("ledger.db.damaged-*")), "it is found with nobody asking")
    asked = itertools.count(1)
    def said():
        return any("damaged" in line for line in read(ui, f"api/runs?since={next(asked)}")["said"])
    act.until(said, "it is said")


def test_a_sweep_larger_than_a_page(act, ui):
    """It is a line, with its best, whatever the size of the page; opened, all its runs are lines."""
    run = act.finish("echo", "step 1 loss 5", before=("-n", "1"))
    act.until(lambda: read(ui, f"api/runs?since={time.monotonic_ns() % 10 ** 6}")["runs"][0]["last"], "its numbers")
    with contextlib.closing(sqlite3.connect(act.home / "ledger.db")) as ledger:
        names = [column[1] for column in ledger.execute("PRAGMA table_info(runs)")]
        row = dict(zip(names, ledger.execute("SELECT * FROM runs").fetchone()))
        for n in range(250):
            # between runs of the sweep there is another one now and then
            tags = json.dumps({"sweep": "big"}) if n % 50 else None
            values = {**row, "id": f"exp_1_{n:08x}", "name": f"grid.{n}", "tags": tags,
                      "created_unix_s": row["created_unix_s"] - n - 1}
            ledger.execute(f"INSERT INTO runs VALUES ({', '.join('?' * len(names))})", [values[k] for k in names])
            note = {"numbers": {"loss": [n, "(("], "acc": [n, "(("]},
                    "looked": {"state": "Completed", "attempt": 1, "at": 1, "failed": False}}
            ledger.execute("INSERT INTO notes VALUES (?, ?)", (values["id"], json.dumps(note)))
        ledger.commit()
    document = read(ui, "api/runs?group=sweep&max=3")
    assert (document["total"], document["lines"]) == (251, 7)
    assert ids_of(document) == [run, "exp_1_00000000", "exp_1_00000001"]
    assert [r["group"] for r in document["runs"]] == [None, None, "big"]
    (sweep,) = document["groups"]
    assert (sweep["name"], sweep["title"], sweep["runs"], sweep["states"], sweep["open"]) == (
        "big", "grid", 245, {"Completed": 245}, False)
    assert {k: (v["name"], v["value"]) for k, v in sweep["best"].items()} == {
        "loss": ("grid.1", 1), "acc": ("grid.249", 249)}
    assert document["better"] == {"loss": "low", "acc": "high"}
    document = read(ui, "api/runs?group=sweep&max=100&offset=100&open=big")
    assert document["lines"] == 251 and len(ids_of(document)) == 100
    assert document["groups"][0]["open"] and document["groups"][0]["best"]["loss"]["name"] == "grid.1"
    document = read(ui, "api/runs?group=sweep&max=3&sort=key:loss&order=desc")
    assert ids_of(document) == ["exp_1_000000f9", "exp_1_000000c8", "exp_1_00000096"], "where its first run stands"
    document = read(ui, "api/runs?group=sweep&q=loss<60+tag:no&max=3")
    assert document["lines"] == 0
    document = read(ui, "api/runs?group=sweep&q=loss<60&max=9")
    assert document["groups"][0]["runs"] == 58
    for by in ("day", "tag:sweep"):
        assert read(ui, f"api/runs?group={by}&max=9")["total"] == 251
    assert read(ui, "api/runs?group=luck", 400)["error"]
    shown = json.loads(ui.page().scripts[0])
    assert shown["lines"] == 7 and len(shown["runs"]) == 7, "the page has the same"


def test_a_ledger_that_cannot_be_written(act):
    """The list says which numbers it lacks, and why, and is not asked for every two seconds."""
    act.finish("echo", "loss 1", before=("-n", "1"))
    with contextlib.closing(sqlite3.connect(act.home / "ledger.db")) as ledger:
        ledger.execute("CREATE TRIGGER full BEFORE INSERT ON notes BEGIN "
                       "SELECT RAISE(FAIL, 'database or disk is full'); END")
        ledger.commit()
    with serving(act) as ui:
        assert read(ui, "api/runs")["next_s"] == 2
        def said(n=[0]):
            n[0] += 1
            document = read(ui, f"api/runs?since={n[0]}")
            return document if document["said"] else None
        document = act.until(said, "it is said")
        assert "numbers of runs cannot be kept" in document["said"][0] and "disk is full" in document["said"][0]
        assert document["next_s"] == 10 and document["runs"][0]["last"] == {}
        assert "disk is full" in ui.page().text
        with contextlib.closing(sqlite3.connect(act.home / "ledger.db")) as ledger:
            ledger.execute("DROP TRIGGER full")
            ledger.commit()
        def mended(n=[0]):
            n[0] += 1
            document = read(ui, f"api/runs?since={n[0]}&max=9")
            return document["runs"][0]["last"] == {"loss": 1} and not document["said"]
        act.until(mended, "it is tried again, less often, and nothing is lacking then")


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


WRITER = '''
import pathlib, struct
def crc(data):
    value = 0xffffffff
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
    value ^= 0xffffffff
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xa282ead8) & 0xffffffff)
def record(data):
    length = struct.pack("<Q", len(data))
    return length + crc(length) + data + crc(data)
def scalar(time, step, tag, value):
    one = b"\\x0a" + bytes([len(tag)]) + tag + b"\\x15" + struct.pack("<f", value)
    summary = b"\\x0a" + bytes([len(one)]) + one
    place = b"\\x09" + struct.pack("<d", time) + b"\\x10" + bytes([step])
    return record(place + b"\\x2a" + bytes([len(summary)]) + summary)
for folder, value in FOLDERS:
    path = pathlib.Path("output", folder, "events.out.tfevents.1.host.1")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(record(b"\\x1a\\x0dbrain.Event:2") + b"".join(
        scalar(1.7e9 + i, i, tag, value / (i + 1)) for i in range(50) for tag in (b"loss", b"val acc")) + b"half")
print("step 1 loss 7")
'''


def test_a_part_of_a_curve(act, ui):
    """It has all the points of that part, and the epochs and times that the log says."""
    act.write("main.py", """
import time
print("Epoch 1/2")
for step in range(40000):
    if step == 20000:
        print("Epoch 2/2")
    print(time.strftime("%Y-%m-%d %H:%M:%S"), "INFO step", step, "loss", "nan" if step == 105 else 1 / (step + 1))
""")
    run = act.finish("python3", "main.py", before=("-n", "1"))
    (whole,) = read(ui, f"api/series?id={run}&key=loss")["series"]
    assert (len(whole["x"]), whole["points"]) == (601, 39999) and whole["e"][-1] == pytest.approx(3, abs=0.01)
    status = read(ui, f"api/run?id={run}")["run"]
    assert whole["t"] and whole["t"] == sorted(whole["t"])
    assert -60 <= whole["t"][0] - calendar.timegm(time.strptime(status["started"], "%Y-%m-%dT%H:%M:%SZ")) < 600
    (part,) = read(ui, f"api/series?id={run}&key=loss&from=100&to=149.5")["series"]
    assert part["x"] == list(range(100, 150)) and part["y"][5] is None and part["points"] == 39999
    assert len(part["t"]) == len(part["e"]) == 50
    assert read(ui, "api/runs")["runs"][0]["last"]["loss"] == pytest.approx(1 / 40000), "a part is not the whole"
    plant(act, run, {"metrics/n1.jsonl": report_data.metrics(1, 300, gpus=1)})
    use = read(ui, f"api/series?id={run}&use=1&from=1790000100&to=1790000200")["use"]
    assert use and all(1790000100 <= x <= 1790000200 for curve in use for x in curve["x"]), use
    for asked in ("from=1", "to=1", "from=2&to=1", "from=x&to=3", "from=nan&to=inf"):
        assert read(ui, f"api/series?id={run}&{asked}", 400)["error"], asked


def test_differences_of_many_runs(act, ui):
    runs = [act.run("submit", "echo", str(i)).out.strip() for i in range(18)]
    act.run("wait", *runs)
    diffs = read(ui, "api/diff?" + query(id=runs))["diffs"]
    assert [diff["to"] for diff in diffs] == runs[1:]
    page = ui.page("compare?" + query(id=runs))
    assert "the first 16 runs are shown" in page.text and runs[15] in page.text


def test_event_files_are_curves(act, ui):
    (act.store / "files/output").mkdir(parents=True)
    act.write("one.py", WRITER.replace("FOLDERS", '(("logs", 4),)'))
    act.write("two.py", WRITER.replace("FOLDERS", '(("logs/train", 4), ("logs/test", 2))'))
    one = act.finish("python3", "one.py", before=("-n", "1"))
    series = {curve["key"]: curve for curve in read(ui, f"api/series?id={one}")["series"]}
    assert set(series) == {"loss", "val_acc"} and series["loss"]["y"] == [7], "the log's values count"
    assert series["val_acc"]["x"] == list(range(50)) and series["val_acc"]["y"][0] == 4
    assert series["val_acc"]["t"] == [1_700_000_000 + i for i in range(50)] and series["loss"]["t"] is None
    two = act.finish("python3", "two.py", before=("-n", "1"))
    asked = query(id=two, key=["train/loss", "test/val_acc"])
    series = {curve["key"]: curve for curve in read(ui, f"api/series?{asked}")["series"]}
    assert series["train/loss"]["y"][0] == 4 and series["test/val_acc"]["y"][0] == 2
    assert act.run("plot", "--csv", "train/loss", two).out.count("\n") == 51


def test_use_of_nodes(act, ui):
    run = act.finish("echo", "loss 1", before=("-n", "1"))
    act.run("q", run)
    plant(act, run, {"metrics/n1.jsonl": report_data.metrics(1, 300, gpus=2)})
    document = read(ui, f"api/series?id={run}&use=1&points=100")
    assert document["series"] == []
    curves = {(curve["what"], curve["gpu"]): curve for curve in document["use"] if curve["node"] == "n1"}
    assert ("gpu_busy", 0) in curves and ("gpu_memory", 1) in curves and ("gpu_busy", 2) not in curves
    memory = curves["memory", None]
    assert (memory["label"], memory["chart"]) == ("memory used", "CPU, memory, disks")
    assert (curves["gpu_busy", 1]["label"], curves["gpu_busy", 1]["chart"]) == ("GPU 1", "GPUs, busy")
    assert len(memory["x"]) == len(memory["y"]) == 100 and memory["unit"] == "share" and memory["x"][0] == 1790000000
    assert curves["net_sent", None]["unit"] == "bytes_per_s"


def test_a_log(act, ui):
    run = act.finish("sh", "-c", "for i in $(seq 1 100); do echo line $i \u00e4\u20ac\U0001f600; done; "
                     "printf '\\377\\000bad'", before=("-n", "1"))
    name = read(ui, f"api/log?id={run}")["name"]
    log = act.run("cat", f"{run}:{name}").out.encode(errors="surrogateescape")
    whole, at, pieces = "", 0, 0
    while True:
        piece = read(ui, "api/log?" + query(id=run, rank=0, **{"from": at}, bytes=64))
        assert piece["from"] == at and piece["size"] == len(log) and at < piece["to"] <= at + 64, piece
        whole, at, pieces = whole + piece["text"], piece["to"], pieces + 1
        if piece["ended"]:
            break
    assert at == len(log) and pieces >= len(log) / 64
    assert whole == log.decode(errors="replace")
    tail = read(ui, f"api/log?id={run}&from=-100")
    assert tail["text"].startswith("line ") and log.decode(errors="replace").endswith(tail["text"]) and tail["ended"]
    behind = read(ui, f"api/log?id={run}&name={name}&from=100000")
    assert (behind["text"], behind["from"], behind["to"], behind["ended"]) == ("", len(log), len(log), True)
    for asked, status in {f"id={run}&name=no/such": 404, f"id={run}&rank=9": 404, f"id={run}&rank=-1": 400,
                          f"id={run}&bytes=63": 400, f"id={run}&bytes=99999999": 400, f"id={run}&from=x": 400,
                          f"id={run}&name=../../../etc/passwd": 404, "rank=0": 400}.items():
        assert read(ui, f"api/log?{asked}", status)["error"], asked


def download(ui, asked, method="GET"):
    """Status, headers and bytes of a file."""
    connection = http.client.HTTPConnection("127.0.0.1", ui.port, timeout=300)
    connection.request(method, f"{ui.base}api/file?{asked}")
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read()


def test_files_are_kept_by_the_browser(act, ui):
    """Logs and what the run wrote, of any size, bytes as they are; they are shown by nobody."""
    big = act.finish("sh", "-c", "printf '<script>\\303'; seq 1 2000000; mkdir -p output/sub; "
                     "head -c 20000000 /dev/urandom > output/sub/model.pt; echo hi > 'output/\u00e4 <b>.html'",
                     before=("-n", "1"))
    run = read(ui, f"api/run?id={big}")
    log = run["files"][0]["name"] if len(run["files"]) == 1 else read(ui, f"api/log?id={big}")["name"]
    assert sorted(f["name"] for f in run["outputs"]) == ["output/sub/model.pt", "output/\u00e4 <b>.html"]
    before, wrote = ui.memory_kib(), act.store / "files/output"
    for asked, path, name in ((query(name=log), act.run_dir(big) / log, log.rsplit("/", 1)[-1]),
                              (query(output="output/sub/model.pt"), wrote / "sub/model.pt", "model.pt"),
                              (query(output="output/\u00e4 <b>.html"), wrote / "\u00e4 <b>.html",
                               "%C3%A4%20%3Cb%3E.html")):
        status, headers, data = download(ui, f"id={big}&{asked}")
        assert status == 200 and data == path.read_bytes(), (asked, status, data[:200])
        assert headers["Content-Type"] == "application/octet-stream" and headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Content-Disposition"] == f"attachment; filename*=UTF-8''{name}"
        assert headers["Content-Security-Policy"] == "default-src 'none'"
        status, headers, data = download(ui, f"id={big}&{asked}", "HEAD")
        assert (status, int(headers["Content-Length"]), data) == (200, path.stat().st_size, b"")
    assert ui.memory_kib() < before + 2048, "no file is in memory as a whole"


def test_only_files_of_the_run(act, ui):
    store = act.store / "files"
    (store / "output").mkdir(parents=True)
    (store / "output/before.bin").write_bytes(b"x")
    os.utime(store / "output/before.bin", (1000, 1000))
    (store / "secret").write_text("x")
    run = act.finish("sh", "-c", "echo 1 > output/mine; ln -s /etc/passwd output/link", before=("-n", "1"))
    log = read(ui, f"api/log?id={run}")["name"]
    for asked, status in {query(output="output/before.bin"): 404, query(output="output"): 404, "output=": 400,
                          query(output="output/../secret"): 404, query(output="output/./mine"): 404,
                          query(output="/etc/passwd"): 404, query(output="output/sub/../mine"): 404,
                          query(output="other/mine"): 404, query(output="output/none"): 404,
                          query(output="outputmine"): 404, query(name="../run.json"): 404, query(name="none"): 404,
                          query(name=log, output="output/mine"): 400, "": 400}.items():
        got, headers, text = download(ui, f"id={run}&{asked}")
        assert got == status and headers["Content-Type"].startswith("text/html"), (asked, got, text)
    got, _, text = download(ui, f"id={run}&{query(output='output/link')}")
    assert b"root:" not in text, got


def test_files_that_nobody_takes(act, ui):
    """So many at once, and no more; whoever goes away ends what was read for him."""
    run = act.finish("sh", "-c", "head -c 50000000 /dev/zero > output/big", before=("-n", "1"))
    path, held = f"{ui.base}api/file?id={run}&output=output/big", []
    for _ in range(4):
        s = socket.create_connection(("127.0.0.1", ui.port), timeout=300)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert s.recv(12) == b"HTTP/1.1 200"
        held.append(s)
    assert download(ui, f"id={run}&output=output/big")[0] == 503
    assert read(ui, "api/runs")["total"] == 1, "all else goes on"
    for s in held:
        s.close()
    act.until(lambda: download(ui, f"id={run}&output=output/big")[0] == 200, "there is room again")


def test_a_log_that_grows(act, ui):
    act.write("main.sh", f"printf 'half \\303'; while [ ! -e {act.scratch}/stop ]; do sleep 0.1; done; "
              "printf '\\244 done'")
    run = act.submit("sh", "main.sh", before=("-n", "1"))
    act.until(lambda: "half" in act.run("logs", run, status=None).out, "it has begun")
    piece = read(ui, f"api/log?id={run}&from=0")
    assert piece["text"] == "half " and piece["to"] == 5 and not piece["ended"] and piece["next_s"]
    (act.scratch / "stop").touch()
    act.run("wait", run)
    act.until(lambda: read(ui, f"api/log?id={run}&from=5")["text"] == "\u00e4 done", "the character is whole")


def test_differences(act, ui):
    one = act.run("submit", "--tag", "lr=1", "echo", "1").out.strip()
    two = act.run("submit", "--tag", "lr=2", "echo", "2").out.strip()
    act.run("wait", one, two)
    document = read(ui, f"api/diff?id={one}&id={two}")
    (diff,) = document["diffs"]
    assert document["same"]["nodes"]["nodes"] == "1" and "code" in document["same"]["code"]
    assert "command" not in document["same"]
    said = json.loads(act.run("diff", "--json", one, two).out)
    assert {k: said[k] for k in diff} == diff and diff["differences"]
    assert len(read(ui, f"api/diff?id={one}&id={two}&id={one}")["diffs"]) == 1, "a run once"
    assert read(ui, f"api/diff?id={one}", 400)["error"]


def test_a_cluster_that_is_gone(act, ui):
    """What is known here is shown, with what is lacking."""
    run = act.finish("echo", "loss 1", before=("-n", "1"))
    read(ui, f"api/series?id={run}")
    shutil.rmtree(act.project / "aux_data")
    (act.home / "runs" / run).rename(act.scratch / "elsewhere")
    document = read(ui, f"api/run?id={run}")
    assert document["run"]["id"] == run and document["keys"][0]["last"] == 1, document
    assert read(ui, "api/runs")["runs"][0]["last"] == {"loss": 1}
    log = read(ui, f"api/log?id={run}")
    assert log["text"] == "loss 1\n" and "as it was fetched" in log["said"][0], log
    shutil.rmtree(act.project / "assets")
    assert read(ui, f"api/log?id={run}&bytes=99", 404)["error"]


def test_very_many_names(act, ui):
    """Of numbers with one value each a bounded number is kept, which is said; loss is one of them, although it comes
    last."""
    act.write("main.py", "import sys\nsys.stdout.writelines(f'n{i}=1\\n' for i in range(1000000))\n"
              "for i in range(9): print(f'step {i} loss {9 - i}')\n")
    run = act.finish("python3", "main.py", before=("-n", "1"))
    document = read(ui, f"api/run?id={run}")
    assert len(document["keys"]) <= 256
    (said,) = document["said"]
    assert f"'{run}' has more names of numbers than are shown: only {len(document['keys'])} are," in said
    assert "more names of numbers" in act.run("plot").err
    assert "more names of numbers" not in act.run("plot", "loss", run).err
    (loss,) = read(ui, f"api/series?id={run}&key=loss")["series"]
    assert loss["y"] == list(range(9, 0, -1))
    row = read(ui, "api/runs")["runs"][0]
    assert len(row["last"]) == 16 and row["last"]["loss"] == 1


def test_times_that_go_back(act, ui):
    """Steps and samples are in order in curves; what a step has of time stays with it."""
    act.write("main.py", """
for step, second in ((5, 50), (4, 40), (3, 30), (9, 20), (1, 10)):
    print(f"2026-11-29 12:00:{second} INFO step {step} loss {step}")
""")
    run = act.finish("python3", "main.py", before=("-n", "1"))
    (loss,) = read(ui, f"api/series?id={run}&key=loss")["series"]
    assert loss["x"] == [1, 3, 4, 5, 9]
    assert [t - min(loss["t"]) for t in loss["t"]] == [0, 20, 30, 40, 10], "each has its own"
    plant(act, run, {"metrics/n1.jsonl": "".join(reversed(report_data.metrics(1, 60, gpus=1).splitlines(True)))})
    for curve in read(ui, f"api/series?id={run}&use=1&points=50")["use"]:
        assert curve["x"] == sorted(curve["x"]), curve


def test_clusters(act, ui):
    run = act.submit("sleep", "300", before=("-n", "1"))
    act.until_state(run, "Running")
    document = read(ui, "api/clusters")
    (said,) = json.loads(act.run("top", "--json").out)["clusters"]
    (row,) = document["clusters"]
    assert {k: row[k] for k in said if k not in ("devices",)} == {k: v for k, v in said.items() if k != "devices"}
    assert [own["id"] for own in row["own_runs"]] == [run] and row["running"] == 1
    page = ui.page("clusters")
    assert said["name"] in page.text
    assert isinstance(read(ui, "api/clusters?cluster=aml&jobs=1")["jobs"], list)
    assert read(ui, "api/clusters?jobs=1", 400)["error"]
    assert read(ui, "api/clusters?cluster=no-such", 404)["error"]
    act.run("abort", "-y", run)


def test_the_key_and_the_host(act, ui):
    act.finish("true")
    assert ui.ask("/api/runs")[0] == 403
    assert ui.ask("api/runs", Host="evil.example")[0] == 421
    assert ui.ask("api/runs", method="POST")[0] == 405
    status, headers, text = ui.ask("api/runs", method="HEAD")
    assert status == 200 and text == "" and int(headers["Content-Length"]) > 100
