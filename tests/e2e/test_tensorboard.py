"""`a tensorboard`. Debian has no TensorBoard, so a package of the tests plays the part of it that is used, as its
program.py documents it: configure(argv), launch(), --logdir, --host, --port 0, --path_prefix."""
import contextlib
import json
import os
import re
import signal
import socket
import urllib.error
import urllib.request

import pytest

import place_fixtures

DOUBLE = """
import argparse, http.server, json, os, threading
class TensorBoard:
    def configure(self, argv):
        words = argparse.ArgumentParser()
        for name in ("logdir", "host", "port", "path_prefix", "reload_interval", "load_fast"):
            words.add_argument("--" + name)
        self.flags = words.parse_args(argv[1:])
    def launch(self):
        flags = self.flags
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                known = self.path.startswith(flags.path_prefix + "/")
                found = {}
                for folder, _, names in os.walk(flags.logdir):
                    for name in names:
                        path = os.path.join(folder, name)
                        found[os.path.relpath(path, flags.logdir)] = open(path).read()
                self.send_response(200 if known else 404)
                self.end_headers()
                self.wfile.write(json.dumps(found).encode() if known else b"")
            def log_message(self, *words):
                pass
        server = http.server.ThreadingHTTPServer((flags.host, int(flags.port)), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return "http://%s:%d%s/" % (flags.host, server.server_address[1], flags.path_prefix)
"""

WRITES = ("mkdir -p output/{0}; printf one > output/{0}/events.out.tfevents.1.n.1; "
          "printf other > output/{0}/model.pt")


def package(act):
    """The folder that has it, for PYTHONPATH."""
    folder = act.scratch / "site" / "tensorboard"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "program.py").write_text(DOUBLE)
    return str(folder.parent)


@pytest.fixture
def board(act):
    act.write("tensorboard.py", "raise SystemExit('this is not TensorBoard')\n")
    act.env["PYTHONPATH"] = package(act)


@contextlib.contextmanager
def shown(act, *words):
    process = act.start("tensorboard", *words)
    try:
        address = process.stdout.readline().decode().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{48}/", address), (address, process.stderr.read())
        yield process, address
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 0, process.stderr.read()
    finally:
        process.kill()
        process.communicate()
    assert not list(act.scratch.rglob("tensorboard-*")), "the copies are gone"


def files(address):
    with urllib.request.urlopen(address, timeout=300) as answer:
        return json.loads(answer.read())


def writes(act, folder, name):
    return act.finish("--name", name, "sh", "-c", WRITES.format(folder))


@pytest.mark.smoke
def test_runs(act, board):
    """Each run has its name, or its id where two have one name; only event files are there, and they grow."""
    (act.store / "files/output").mkdir(parents=True)
    first = writes(act, "a", "base")
    with shown(act) as (_, address):
        assert files(address) == {"base/a/events.out.tfevents.1.n.1": "one"}
        with pytest.raises(urllib.error.HTTPError, match="404"):
            files(re.sub(r"/\w+/$", "/x/", address))
    second = writes(act, "b", "base")
    third = writes(act, "c", "other")
    with shown(act, first, second, third) as (_, address):
        own = {f"{first}/a/events.out.tfevents.1.n.1", f"{second}/b/events.out.tfevents.1.n.1",
               "other/c/events.out.tfevents.1.n.1"}
        found = files(address)  # runs of the same second may have written each other's, as far as can be known
        assert own <= set(found) and set(found.values()) == {"one"}, found


def test_it_grows(act, board):
    (act.store / "files/output").mkdir(parents=True)
    writes(act, "a", "base")
    path = act.store / "files/output/a/events.out.tfevents.1.n.1"
    with shown(act, "output") as (_, address):
        with path.open("a") as f:
            f.write(" two")
        act.until(lambda: files(address)["output/a/events.out.tfevents.1.n.1"] == "one two", "it has grown")
        path.write_text("new")
        act.until(lambda: files(address)["output/a/events.out.tfevents.1.n.1"] == "new", "it is another one")
        path.with_name("events.out.tfevents.2.n.2").write_text("more")
        act.until(lambda: len(files(address)) == 2, "a new one is found")


def test_in_blob_storage(act, azure, board):
    """Only what is new comes over the network."""
    path = act.write("output/events/events.out.tfevents.1.n.1", "a" * 100)
    act.write("output/events/model.pt", "b" * 100)
    act.run("u", "output")
    with shown(act, "output/events") as (_, address):
        name = "output-events/events.out.tfevents.1.n.1"
        assert files(address) == {name: "a" * 100}
        path.write_text("a" * 100 + "c" * 50)
        act.run("u", "output")
        act.until(lambda: files(address) == {name: "a" * 100 + "c" * 50}, "it has grown")


def test_of_runs_elsewhere(act, relayed, azure_double, board, request):
    """Two runs of a machine behind ssh, of Slurm behind a login node, of Kubernetes: one that has ended, and whose node
    sent its files; and one that goes on, whose files grow in the container as its node sends them."""
    before, _ = relayed
    folder = {"azure_blob_config_file": "aux_data/configs/store.yaml", "path": "files/output", "mode": "upload"}
    place_fixtures.change_cluster(act, before, config_param={"output_folder": folder})
    if before == place_fixtures.K8S:
        request.getfixturevalue("kubernetes").tell("settings", forward=[azure_double.service.port])
    act.run("wait", act.submit("--name", "base", "sh", "-c", WRITES.format("a"), before=before))
    run = act.submit("--name", "other", "sleep", "1000", before=before)
    act.until_state(run, "Running")
    azure_double.put("output/b/events.out.tfevents.2", b"one")
    azure_double.put("output/b/model.pt", b"a model")
    with shown(act, "base", "other") as (_, address):
        found = {"base/a/events.out.tfevents.1.n.1": "one", "other/b/events.out.tfevents.2": "one"}
        shown_now = files(address)  # of runs that are so near in time one may have written the other's
        assert found.items() <= shown_now.items() and set(shown_now.values()) == {"one"}
        azure_double.put("output/b/events.out.tfevents.2", b"one two")
        grown = {**found, "other/b/events.out.tfevents.2": "one two"}
        act.until(lambda: grown.items() <= files(address).items(), "it has grown")
    act.run("abort", "-y", run)


def test_a_file_that_cannot_be_copied(act, azure, board):
    """In a container an object may have the name of a folder. The other files come, and each source says it once."""
    for folder in ("a", "b"):
        azure.put(f"output/{folder}/events.out.tfevents.1", b"one")
        azure.put(f"output/{folder}/events.out.tfevents.1/events.out.tfevents.2", b"two")
        azure.put(f"output/{folder}/last/events.out.tfevents.3", b"three")
    with shown(act, "output/a", "output/b") as (process, address):
        expected = {f"output-{folder}/{name}": text for folder in ("a", "b") for name, text in
                    (("events.out.tfevents.1", "one"), ("last/events.out.tfevents.3", "three"))}
        assert files(address) == expected
        for times in (1, 2):
            name = f"output/b/more/events.out.tfevents.{times}"
            azure.put(name, b"more")
            act.until(lambda: len(files(address)) == len(expected) + times, "it is copied")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert err.decode().count("not all event files") == 2, err


def test_folders_of_one_name(act, board):
    for folder in ("output/a/b", "output/a-b"):
        act.write(f"{folder}/events.out.tfevents.1", folder)
    act.run("u", "output")
    with shown(act, "output/a/b", "output/a-b") as (_, address):
        assert sorted(files(address).values()) == ["output/a-b", "output/a/b"]


@pytest.mark.smoke
def test_it_is_not_installed(act):
    act.write("tensorboard.py", "")
    run = act.finish("true")
    act.fail("tensorboard", run, status=3, match="TensorBoard is not installed on this machine: 'pip install")
    assert not list(act.scratch.rglob("tensorboard-*"))


def test_what_cannot_be_shown(act, board):
    act.write("output/file", "x")
    act.run("u", "output")
    act.fail("tensorboard", "nothing", status=3, match="no run 'nothing'")
    act.fail("tensorboard", "output/file", status=2, match="is a file: name the folder")
    act.fail("tensorboard", "output/none", status=3)
    act.fail("tensorboard", "--port", "0", "output", status=2, match="--port takes a number")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        act.fail("tensorboard", "--port", str(s.getsockname()[1]), "output", status=2, match="is taken")


def test_it_ends_with_the_command(act, board):
    """TensorBoard does not stay when the command is killed."""
    run = act.finish("true")
    with contextlib.suppress(AssertionError):
        with shown(act, run) as (process, address):
            child, = open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()
            process.send_signal(signal.SIGKILL)
            act.until(lambda: not os.path.exists(f"/proc/{child}"), "it has ended")
    left, = act.scratch.rglob("tensorboard-*")  # its copies, which the next start removes
    os.utime(left, (0, 0))
    with shown(act, run):
        assert not left.exists()
