"""`a notebook`: Jupyter on a node, in the browser here."""
import contextlib
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

import browser as chromium

PYTHON = "/usr/bin/python3"
HAS_JUPYTER = importlib.util.find_spec("notebook")  # of PYTHON, which runs the tests as well
jupyter = pytest.mark.skipif(not HAS_JUPYTER, reason="jupyter-notebook is not installed: scripts/install-deps --test")

# Answers as Jupyter does where it matters here: at a socket, by a token, with a page.
DOUBLE = """
import http.server, os, socketserver, sys
given = dict(word[2:].split("=", 1) for word in sys.argv[1:])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = self.path.endswith("?token=" + given["ServerApp.token"])
        self.send_response(200 if known else 403)
        self.end_headers()
        self.wfile.write(b"the double of %s" % os.path.basename(os.path.dirname(__file__)).encode() if known else b"")
    def log_message(self, *words):
        pass
    def address_string(self):
        return "here"
with socketserver.ThreadingUnixStreamServer(given["ServerApp.sock"], Handler) as server:
    os.chmod(given["ServerApp.sock"], 0o600)
    server.serve_forever()
"""


@contextlib.contextmanager
def opened(act, *words):
    """The process, its address, and its run."""
    process = act.start(*words, start_new_session=True)
    try:
        address = process.stdout.readline().decode().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{48}", address), (address, process.stderr.read())
        yield process, address, act.run("q", "--json").json["runs"][0]["id"]
    finally:
        process.kill()
        process.communicate()


def ends(process):
    """By Ctrl-C on its terminal, which ends the ssh of its connections as well."""
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return said.decode()


def get(address):
    with urllib.request.urlopen(address, timeout=300) as answer:
        return answer.status, answer.read().decode()


def double(act, name="jupyterlab", at=None):
    """Jupyter as a package of the environment: the PYTHONPATH of the runs."""
    folder = at or act.scratch / "site"
    for path, text in ((f"{name}/__init__.py", ""), (f"{name}/__main__.py", DOUBLE), ("jupyter_server/__init__.py", ""),
                       ("jupyter_server/serverapp.py",
                        "class ServerApp:\n    def class_trait_names(): return ['sock']\n")):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    act.env["PYTHONPATH"] = str(folder)


def ended(act, run):
    act.until_state(run, "Completed", "Failed", "Canceled")
    return act.state(run)


@pytest.mark.smoke
def test_a_notebook(act):
    double(act)
    act.write("jupyterlab.py", "raise SystemExit('this is not Jupyter')\n")
    with opened(act, "notebook", "--name", "mine") as (process, address, run):
        assert get(address) == (200, "the double of jupyterlab")
        with pytest.raises(urllib.error.HTTPError, match="403"):
            get(address[:-1] + "x")
        assert run in act.run("q", "--name", "mine").out and "a notebook" in act.run("q", run).out
        said = ends(process)
        assert f"run {run} is ended" in said
        copy = re.search(r"what is saved there is in the run's copy of the project, '(.*)'; in a mapped", said)[1]
        assert os.path.exists(f"{copy}/jupyterlab.py") and run in copy
    assert ended(act, run) == "Canceled"
    act.fail("notebook", run, status=1, match="is Canceled: its notebook has ended")


def test_it_is_not_seen(act):
    """Neither the token nor the socket is another user's to have; nothing listens on the network of the node."""
    double(act)
    with opened(act, "notebook") as (process, address, run):
        token = address.partition("=")[2]
        lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        assert token not in lines
        path = re.search(r"(/\S+/act-service-\w{8}-\w{6})/socket", open("/proc/net/unix").read())[1]
        assert os.stat(path).st_mode & 0o777 == 0o700
        assert token not in act.run("logs", run).out
        ends(process)
    ended(act, run)
    act.until(lambda: not os.path.exists(path), "the folder of the socket is gone")


def test_kept(act):
    double(act)
    with opened(act, "notebook", "--keep") as (process, address, run):
        assert "comes back" in ends(process)
        assert act.state(run) == "Running"
        act.fail("notebook", "--keep", run, status=2, match="is there already")
        act.fail("attach", run, status=125, match="'a notebook")
        with opened(act, "notebook", run) as (again, other, _):
            assert other.partition("=")[2] == address.partition("=")[2]
            assert get(other)[0] == 200
            ends(again)
    act.run("abort", "-y", run)
    assert ended(act, run) == "Canceled"


def test_a_connection_that_is_lost(act):
    double(act)
    with opened(act, "notebook") as (process, address, run):
        children = open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        act.until(lambda: b"again" in process.stderr.readline(), "it is connected again")
        assert get(address)[0] == 200
        ends(process)


def test_a_machine_that_was_away(act, hosts, host):
    """The notebook and its address are what they were."""
    double(act)
    environment = json.dumps({"env": {"PYTHONPATH": act.env["PYTHONPATH"]}})
    with opened(act, "-c", "lab", "-p", environment, "notebook") as (process, address, run):
        assert get(address) == (200, "the double of jupyterlab")
        host.stop()
        act.until(lambda: b"is lost" in process.stderr.readline(), "it is said")
        host.start()
        act.until(lambda: b"connected to run" in process.stderr.readline(), "it is connected again")
        assert get(address) == (200, "the double of jupyterlab")
        ends(process)
    assert ended(act, run) == "Canceled"


def test_nobody_is_there_any_more(act):
    """The keeper ends what it has serve when nobody has been connected for as long as it is told."""
    double(act)
    program = ("import os, socket; s = socket.socket(socket.AF_UNIX); s.bind(os.environ['ACT_SERVICE_SOCKET']); "
               "s.listen(); s.accept(); s.accept()")
    keeper = subprocess.Popen([act.programs / "act-node", "host", "0", "0", "1", "ends", PYTHON, "-c", program],
                              env={**act.env, "ACT_RUN_ID": "keeper_1_00000002"}, cwd=act.project,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, _ = keeper.communicate(timeout=300)
    assert b"nobody has come back" in out


def test_the_run_ends(act):
    double(act)
    with opened(act, "notebook") as (process, address, run):
        act.run("abort", "-y", run)
        with contextlib.suppress(OSError):  # the next one that is not taken shows it
            get(address)
        assert process.wait(300) == 143
        assert f"run {run} has ended: Canceled" in process.stderr.read().decode()


def test_there_is_none(act):
    """What is missing is said, with what to do."""
    python = act.scratch / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {PYTHON} -S "$@"\n')
    python.chmod(0o755)
    act.env["PATH"] = f"{python.parent}:{act.env['PATH']}"
    act.fail("notebook", status=3, match="has none of jupyterlab, notebook and jupyter_server: write 'jupyterlab' into "
             "a line of requirements.txt, or choose an image.*'a logs .*' says which Python")
    log = act.run("logs", "@", status=None).out
    assert "Traceback" not in log and f"{PYTHON} has none of jupyterlab" in log


def test_what_cannot_be(act, azureml):
    act.fail("-c", "aml", "notebook", status=2, match="a notebook cannot be opened on the platform 'aml'")
    act.fail("notebook", "nothing", status=3, match="no run 'nothing'")
    act.fail("notebook", "--port", "70000", status=2, match="--port takes a")
    act.fail("notebook", act.finish("true"), status=2, match="is not of 'a notebook'")


def test_a_port_that_is_taken(act):
    """It is looked at before anything waits in a queue."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        act.fail("notebook", "--port", s.getsockname()[1], status=2, match="is taken: name another one, or none")
    assert act.run("q", "--json").json["runs"] == []


def test_a_dry_run(act):
    spec = act.run("-n", "2", "notebook", "--dry-run", "--time", "2h", "--idle", "10m", "--keep").json
    assert spec["title"] == "a notebook" and spec["processes_per_node"] == 1
    assert spec["command"][:6] == ["act-node", "host", "0", "7200", "300", "stays"]
    assert spec["command"][6:8] == ["python3", "-c"] and spec["command"][9:] == ["600"]


@jupyter
@pytest.mark.skipif(chromium.PROGRAM is None, reason="chromium is not installed: scripts/install-deps --test")
def test_jupyter_in_a_browser(act, place):
    """A cell is computed in the run, through the page, its WebSocket and the kernel."""
    cell = {"cell_type": "code", "source": "import os; print('computed in', os.environ['ACT_RUN_ID'], 6 * 7)",
            "metadata": {}, "outputs": [], "execution_count": None}
    act.write("sum.ipynb", json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
    with opened(act, *place, "notebook") as (process, address, run):
        page = chromium.Browser()
        try:
            page.open(address)
            page.open(address.replace("/?", "/notebooks/sum.ipynb?"))
            ready = "!!(window.Jupyter && Jupyter.notebook && Jupyter.notebook.kernel && " \
                    "Jupyter.notebook.kernel.is_connected() && Jupyter.notebook.get_cells().length)"
            act.until(lambda: page.evaluate(ready), "the kernel is connected")
            page.evaluate("Jupyter.notebook.execute_all_cells()")
            act.until(lambda: f"computed in {run} 42" in page.evaluate("document.body.innerText"), "the cell has run")
        finally:
            page.close()
        ends(process)
    assert ended(act, run) == "Canceled"
