"""All runs on one screen, live: what it shows, its keys, and that it leaves the terminal as it was. The lines that
follow from facts are in cli_test.c."""
import json
import os
import re
import signal
import sqlite3
import subprocess
import time

import pytest

import report_data
import tmux

pytestmark = pytest.mark.skipif(bool(tmux.MISSING), reason=str(tmux.MISSING))


class Speaker:
    """A run that says what it is told to."""

    def __init__(self, act, *before):
        self.act = act
        self.words = act.scratch / "words"
        self.words.write_bytes(b"")
        self.run = act.submit("tail", "-c", "+1", "-s", "0.05", "-f", str(self.words), before=("-n", "1", *before))
        self.id = self.run[-8:]

    def say(self, text):
        with self.words.open("ab") as words:
            words.write(text if isinstance(text, bytes) else text.encode())

    @property
    def log(self):
        return self.act.run_dir(self.run) / "user_logs/std_log_process_0.txt"

    def end(self):
        self.act.run("abort", self.run)


@pytest.fixture
def speaker(act):
    one = Speaker(act)
    act.until_state(one.run, "Running")
    yield one
    one.end()


# ---- what is shown


@pytest.mark.smoke
@pytest.mark.parametrize("columns", [40, 80, 200])
def test_runs_and_clusters(act, terminal, speaker, columns):
    failed = act.finish("sh", "-c", "exit 3", before=("-n", "1"), status=3)
    speaker.say(report_data.training(60))
    screen = terminal("top", columns=columns)
    screen.until(rf">?{speaker.id}\s+Running\s+\d")
    screen.until(rf"{failed[-8:]}\s+Failed")
    screen.until(r"aml\s+[\d/-]+")  # the cluster, with what is idle
    screen.until(r"loss")
    if columns >= 80:
        screen.until(r"loss 2\.\d+  [\u2581-\u2588]{4,}")
    if columns == 200:
        screen.until(r" 59/60\b")
        screen.until(r"rank 0 exited with status 3")
    assert all(len(line) <= columns for line in screen.lines())
    speaker.say("step 60 loss 7.125\n")
    screen.until(r"7\.125" if columns > 40 else "loss")
    screen.type("q")
    screen.ends()


def test_resize(terminal, speaker):
    screen = terminal("top", columns=120)
    screen.until(speaker.id)
    for columns, rows in ((40, 24), (200, 50), (40, 5), (20, 2), (13, 1), (80, 24)):
        screen.resize(columns, rows)
        screen.until(speaker.id)
        if rows == 1:
            continue
        screen.until(r"\n[^\n]+\n*$")
    screen.until("q quit")
    screen.type("q")
    screen.ends()


def test_no_runs(act, terminal):
    screen = terminal("top")
    screen.until("no runs yet")
    screen.type("a", "l", "w", "j", "k", "G", "g", "s", "q")
    screen.ends()
    act.run("submit", "true")
    assert "no run has this name or tag; 'a q' lists the runs" in act.run("top", "--once", "--tag", "lr=1").out


def test_use_of_gpus(act, terminal, speaker):
    """The last whole sample counts: the writer is in the middle of the next one."""
    folder = act.run_dir(speaker.run) / "metrics"
    act.until(folder.is_dir, "the agent writes samples")
    text = report_data.metrics(1, 3)
    busy = [gpu["busy"] for gpu in json.loads(text.splitlines()[1])["gpus"]]
    (folder / "other.jsonl").write_text(text[:text.rindex('"index":3')])
    screen = terminal("top", columns=120)
    screen.until(rf"[\u2588\u2591]{{5}}\s+{round(100 * sum(busy) / len(busy))}%\s+70%")
    screen.type("q")
    screen.ends()


def test_progress(act, terminal, speaker):
    """What a bar says, without the bar."""
    speaker.say("\r 20%|##        | 2/10 [00:02<00:08,  1.00it/s, loss=3]\r 30%|###       | 3/10 [00:03<00:07,  "
                "1.10it/s, loss=2]")
    screen = terminal("top", columns=160)
    screen.until(r"3/10, 1\.10it/s, 00:07 left")
    assert "###  " not in screen.text()
    screen.type("q")
    assert re.search(r"^progress +3/10, 1\.10it/s, 00:07 left$", act.run("q", speaker.run).out, re.MULTILINE)


def test_hostile_text(terminal, speaker):
    speaker.say(b"\x1b]0;pwned\x07\x1b[2J\x1b[1;1H\x1b[31mred \xff\xfe \xe8\xae\xad\xe7\xbb\x83 "
                + "\u202eback".encode() + b"\x1b[5;5H\x9b2J end\n")
    screen = terminal("top", columns=120)
    screen.until(r"red .* end")
    assert re.search(r"\d\d:\d\d:\d\d$", screen.lines()[0]) and "pwned" not in screen.show("pane_title")
    assert "\u8bad\u7ec3" in screen.text() and "\u202e" not in screen.text()
    screen.type("q")
    screen.ends()


def test_odd_numbers(terminal, speaker):
    """Not finite, cut in the middle, and steps that go back."""
    speaker.say("step 1 loss 2.5\nstep 2 loss 2.25\nstep 3 loss nan\n")
    screen = terminal("top", columns=160)
    screen.until("loss NaN")
    speaker.say("step 4 loss inf\n")
    screen.until("loss inf")
    speaker.say("step 1 loss 1.75\nstep 2 loss 1.5\nstep 3 lo")
    screen.until(r"loss 1\.5 ")
    speaker.say("ss 1.12")
    screen.until(r"step 3 loss 1\.12")
    assert re.search(r"loss 1\.5 ", screen.text())
    speaker.say("5\n")
    screen.until(r"loss 1\.125 ")
    os.utime(speaker.log, (2e9, 2e9))
    speaker.say("")
    screen.until(r"0s ago: step 3")
    screen.type("q")
    screen.ends()


def test_log_of_gigabytes(terminal, speaker):
    speaker.say("step 1 loss 3\n")
    screen = terminal("top", columns=120)
    screen.until("loss 3")
    os.truncate(speaker.log, 5 << 30)
    with speaker.log.open("ab") as log:
        log.write(b"\nstep 8 loss 0.5\nstep 9 loss 0.25\n")
    screen.until(r"loss 0\.25")
    screen.type("q")
    screen.ends()


def test_rank_that_is_waited_for(act, two_ranks, terminal):
    run = act.submit("sh", "-c", '[ $RANK = 1 ] && echo loading || echo waiting; exec sleep 1000', before=("-n", "2"))
    logs = [act.run_dir(run) / f"user_logs/std_log_process_{rank}.txt" for rank in (0, 1)]
    act.until(lambda: all(log.exists() and log.read_text() for log in logs), "both have said something")
    for rank, log in enumerate(logs):
        os.utime(log, (time.time() - 600 - rank * 60,) * 2)
    screen = terminal("top", columns=120)
    screen.until(r"silent for 10m\d\ds, rank 1 holds it up: waiting")
    screen.type("q")
    screen.ends()
    act.run("abort", run)


def far_away(act, ssh):
    """The cluster "away", whose login node is reached by these words of a shell."""
    program = act.scratch / "away"
    program.write_text(f"#!/bin/sh\n{ssh}\n")
    program.chmod(0o755)
    act.env["ACT_SSH"] = str(program)
    act.cluster("away", extra={"platform": "slurm", "gpu_per_node": 1,
                               "slurm": {"login": "me@away", "root": str(act.scratch / "there")}})


def run_away(act, state):
    """A run there, as the ledger has it."""
    run = act.finish("true", before=("-n", "1"))
    with sqlite3.connect(act.home / "ledger.db") as ledger:
        ledger.execute("UPDATE runs SET platform = 'slurm', cluster = 'away', state = ?, status = NULL, "
                       "place = json_object('config', json_object('slurm', json_object('login', 'me@away'))) "
                       "WHERE id = ?", (state, run))
    return run


def test_cluster_that_fails(act, terminal, speaker):
    """Its line says why; the others go on."""
    far_away(act, "echo 'ssh: connect to host away port 22: No route to host' >&2; exit 255")
    screen = terminal("-c", "away", "top", columns=160)
    screen.until(r"away .*No route to host")
    screen.type("q")
    screen.ends()
    frame = act.run("-c", "away", "top", "--once").out
    assert "No route to host" in frame


def test_cluster_that_hangs(act, terminal, speaker):
    """It holds up nobody, and not the end."""
    far_away(act, "exec cat > /dev/null")
    there = run_away(act, "Running")
    speaker.say("step 1 loss 2.5\nstep 2 loss 2.25\n")
    screen = terminal("top", columns=120)
    screen.until(r"away +- .*\.\.\.")
    screen.until(rf"{speaker.id} +Running .*loss 2\.25")
    screen.type("/", speaker.id, "Enter")
    screen.until_not(there[-8:])
    screen.type("q")
    screen.ends()


# ---- keys


@pytest.mark.smoke
def test_abort_asks(act, terminal, speaker):
    screen = terminal("top")
    screen.until(speaker.id)
    screen.type("a")
    screen.until(rf"Abort {speaker.run}\? \[y/N\]")
    screen.type("n")
    screen.until("not confirmed")
    assert act.state(speaker.run) == "Running"
    screen.type("a")
    screen.until(r"\[y/N\]")
    screen.type("y")
    screen.until(rf"{speaker.id}\s+Canceled")
    screen.until(f"aborted {speaker.run}")
    screen.type("a")
    screen.until("has ended")
    screen.type("q")
    screen.ends()


def test_logs_and_why(terminal, speaker):
    speaker.say("first words\n")
    screen = terminal("top")
    screen.until(speaker.id)
    screen.type("l")
    screen.until("^first words")
    speaker.say("second words\n")
    screen.until("second words")
    screen.type("C-c")
    screen.until("q quit")
    screen.type("w")
    screen.until("press a key")
    assert "second words" in screen.text()
    screen.type("Space")
    screen.until("q quit")
    screen.type("h")
    screen.until("follows if it runs")
    screen.type("Escape")
    screen.until(speaker.id)
    screen.type("q")
    screen.ends()


@pytest.mark.parametrize("columns", [40, 80])
def test_log_of_an_ended_run(act, terminal, columns):
    """Its end stays until a key comes, and Ctrl-C is one."""
    run = act.finish("seq", "2000", before=("-n", "1"))
    screen = terminal("top", columns=columns)
    screen.until(rf"{run[-8:]}\s+Completed")
    for n, key in enumerate(("C-c", "Space", "Down"), 1):
        screen.type("l")
        act.until(lambda n=n: screen.text("-S", "-").count("press a key to go back") == n, f"it asks {n} times")
        assert "\n2000\n" in screen.text()
        screen.type(key)
        screen.until("q quit")
    screen.type("j")
    screen.until("q quit")
    screen.type("q")
    screen.ends()


def test_log_of_a_run_that_said_nothing(act, terminal):
    run = act.finish("true", before=("-n", "1"))
    screen = terminal("top")
    screen.until(rf"{run[-8:]}\s+Completed")
    screen.type("l")
    screen.until(rf"^-- {run}, Completed: the end of its log --")
    screen.until("press a key to go back")
    screen.type("Space")
    screen.until("q quit")
    screen.type("q")
    screen.ends()


@pytest.mark.parametrize("columns", [40, 120])
def test_log_of_a_queued_run(act, terminal, columns):
    far_away(act, "exit 255")
    run = run_away(act, "Queued")
    screen = terminal("top", columns=columns)
    screen.until(rf"{run[-8:]}\s+Queued")
    screen.type("l")
    screen.until("no log yet" if columns > 40 else f"^{run[:20]}")
    screen.type("q")
    screen.ends()


def test_typing_a_filter(terminal, speaker):
    """Ctrl-W takes a word back, Ctrl-U all of them, Escape leaves."""
    screen = terminal("top")
    screen.until(speaker.id)
    screen.type("/", "tail nothing like it ")
    screen.until("no run has these words")
    screen.type("C-w")
    screen.until("^/tail nothing like _")
    screen.type("C-w", "C-w", "C-w", "C-w")
    screen.until("^/_")
    screen.until(speaker.id)
    screen.type("nothing like it")
    screen.until("no run has these words")
    screen.type("C-u")
    screen.until("^/_")
    screen.until(speaker.id)
    screen.type("nothing")
    screen.until("no run has these words")
    screen.type("Escape")
    screen.until("q quit")
    screen.until(speaker.id)
    screen.type("q")
    screen.ends()


def test_filter_and_sort(act, terminal, speaker):
    tagged = act.submit("sh", "-c", "exit 0", "", before=("-n", "1"))
    act.run("wait", tagged)
    screen = terminal("top")
    screen.until(tagged[-8:])
    screen.type("/", "Running".lower())
    screen.until_not(tagged[-8:])
    screen.until(speaker.id)
    screen.type("Enter")
    screen.until("q quit")
    screen.type("/")
    screen.until("^(.*\n)*/running_")
    screen.type(*["BSpace"] * 7, "nothing like it")
    screen.until("no run has these words")
    screen.type("Escape")
    screen.until(tagged[-8:])
    screen.type("s")
    screen.until("sorted by newest")
    screen.until(rf"(?s){tagged[-8:]}.*{speaker.id}")
    screen.type("G")
    screen.until(f">{speaker.id}")
    screen.type("Up")
    screen.until(f">{tagged[-8:]}")
    screen.type("q")
    screen.ends()


# ---- sweeps


@pytest.fixture
def swept(act):
    """The id of a sweep of three runs, of which one has failed and two run."""
    act.write("wait.py", "import os, sys, time\nn = int(sys.argv[1])\nfor step in range(9):\n"
                         "    print(f'step {step} loss {n + 1 / (step + 1):.3f}', flush=True)\n"
                         "if n == 0:\n    sys.exit(3)\nwhile True:\n    time.sleep(60)\n")
    found = act.run("-n", 1, "sweep", "--grid", "n=0,1,2", "--", "python3", "wait.py", "{n}").out.strip()

    def runs():
        return act.run("q", "--json", "--tag", f"sweep={found}").json["runs"]

    act.until(lambda: sorted(run["state"] for run in runs()) == ["Failed", "Running", "Running"], "they run")
    yield found
    for run in runs():
        if run["state"] == "Running":
            act.run("abort", run["id"])


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_sweep_is_one_line(act, terminal, swept, columns):
    screen = terminal("top", columns=columns)
    screen.until(rf"^>{swept}\s+0d 2r 1f\s")
    screen.until("^sweep .* 2 running  1 failed" if columns > 40 else f"^sweep {swept}")
    assert "Running" not in screen.text()
    if columns > 40:
        screen.until(r"loss 1\.111")
    screen.type("l")
    screen.until("has 3 runs")
    screen.type("f")
    screen.until(r"Running[^$]*Running[^$]*Failed")
    assert "2r" not in screen.text()
    screen.type("G", "f")
    screen.until(rf"^>{swept}\s+0d 2r 1f\s")
    screen.type("q")
    screen.ends()
    screen = terminal("top", "--tag", f"sweep={swept}", columns=columns)
    screen.until(r"Running[^$]*Running[^$]*Failed")
    screen.type("q")
    screen.ends()


def test_one_look_for_programs(act, swept):
    look = act.until(lambda: (lambda found: found["sweeps"][0]["best"] and found)(act.run("top", "--json").json),
                     "its numbers are known")
    assert list(look) == ["version", "clusters", "total", "runs", "sweeps"] and look["version"] == 1
    assert look["total"] == len(look["runs"]) == 3
    states = look["sweeps"][0].pop("states")
    assert look["sweeps"] == [{"id": swept, "runs": 3, "best": {"name": "loss", "value": 1.111}}]
    assert {state: n for state, n in states.items() if n} == {"Running": 2, "Failed": 1}
    cluster = look["clusters"][0]
    assert (cluster["name"], cluster["error"], cluster["running"], cluster["queued"]) == ("aml", None, 2, 0)
    running = [run for run in look["runs"] if run["state"] == "Running"]
    assert [run["live"] for run in look["runs"] if run["state"] == "Failed"] == [None]
    assert len(running) == 2 and all(run["command"][0] == "python3" for run in running)
    assert {"name": "loss", "last": 1.111} in [n for run in running for n in run["live"]["numbers"]]
    act.fail("top", "--json", "-n", "3s", status=2, match="--interval")


# ---- its end


@pytest.mark.parametrize("verb", ["top", "q --watch"])
@pytest.mark.parametrize("name", ["INT", "TERM", "HUP"])
def test_ends_by_signals(terminal, speaker, verb, name):
    screen = terminal(verb)
    screen.until(speaker.id)
    if name == "INT":
        screen.type("C-c")
    else:
        kill_program(screen, name)
    screen.ends(128 + getattr(signal, f"SIG{name}"))


def kill_program(screen, name):
    shell = screen.show("pane_pid")
    children = subprocess.run(["pgrep", "-P", shell], stdout=subprocess.PIPE, check=True).stdout.split()
    os.kill(int(children[-1]), getattr(signal, f"SIG{name}"))


def test_stops_and_goes_on(terminal, speaker):
    screen = terminal(shell=True)
    screen.until(r"bash-\S+[#$]")
    screen.type("PS1='prompt> '", "Enter")
    screen.until("^prompt>")
    screen.type("stty -g > before; a top", "Enter")
    screen.until(speaker.id)
    screen.type("C-z")
    screen.until("Stopped")
    assert screen.show("alternate_on") == "0" and screen.show("cursor_flag") == "1"
    screen.type("fg", "Enter")
    screen.until(rf">{speaker.id}")
    assert screen.show("alternate_on") == "1"
    screen.type("q")
    screen.until(r"^prompt>\s*\Z")
    screen.type("stty -g > after; cmp before after && echo all the same", "Enter")
    screen.until("^all the same")


# ---- without a screen


def test_one_frame(act, speaker):
    speaker.say("step 1 loss 2.5\nstep 2 loss 2.25\n")
    act.until(lambda: "2.25" in speaker.log.read_text(), "it said so")
    for words in (("top",), ("top", "--once")):
        frame = act.run(*words).out
        assert "\x1b" not in frame
        assert re.search(rf"{speaker.run} +Running .*loss 2\.25  \S+ .*step 2 loss 2\.25", frame), frame
    assert re.search(r"loss 2\.25  [_.~=+*#-]+ ", act.run("top", env={"LC_ALL": "C"}).out)


def test_terminals_that_cannot(act):
    assert b"TERM is 'dumb'; 'a top --once'" in act.on_terminal("top", TERM="dumb").replace(b")", b"")
    assert b"without --watch" in act.on_terminal("q", "--watch", TERM="")
    act.fail("q", "--watch", status=2, match="no terminal to redraw")
    act.fail("top", "-n", "3", status=2, match="--interval")
    act.fail("q", "-n", "3", status=2, match="--watch")
    act.fail("q", "--watch", "--json", status=2, match="which one")
    act.fail("top", "-n", "soon", status=2, match="time such as")
    assert b"\x1b[3" not in act.on_terminal("top", "--once", TERM="xterm", NO_COLOR="1")


def test_without_colours(terminal, speaker):
    screen = terminal("top", env={"NO_COLOR": "1"})
    screen.until(speaker.id)
    assert not re.search("\x1b\\[3[0-7]m", screen.text("-e"))
    screen.type("q")
    screen.ends()


def test_table_alone(act, terminal, speaker):
    screen = terminal("q", "--watch", columns=120)
    screen.until(rf"{speaker.run}\s+Running")
    done = act.finish("true", before=("-n", "1"))
    screen.until(rf"{done}\s+Completed")
    screen.until("^q quits")
    screen.resize(40, 3)
    screen.until(done[-8:])
    screen.until("^1 more, q quits")
    screen.type("q")
    screen.ends()


# ---- elsewhere


def abort_chosen(screen, run):
    screen.type("a")
    screen.until(r"\[y/N\]")
    screen.type("y")
    screen.until(rf"{run[-8:]}\s+Canceled")
    screen.type("q")
    screen.ends()


STEPS = 'for i in $(seq 1000); do echo "step $i loss $((1000 - i))"; sleep 0.2; done'


def test_slurm(lab, terminal):
    run = lab.shell(STEPS, n=4)
    lab.until_text(run, "step 3 ")
    screen = terminal("-c", "lab", "top", columns=160)
    screen.until(rf"{run[-8:]}\s+Running.*loss 9\d\d")
    screen.until(r"lab\s+\d/3\s+\d+/12")
    abort_chosen(screen, run)


def test_azureml(act, azureml, terminal):
    run = act.submit("sh", "-c", STEPS, before=("-n", "1"))
    screen = terminal("top", columns=160)
    screen.until(rf"{run[-8:]}\s+Running.*loss 9\d\d")
    abort_chosen(screen, run)
    assert act.state(run) == "Canceled"


def test_kubernetes(act, kubernetes, terminal):
    """Nobody is asked for the runs of a cluster that is watched; words and numbers come from the pods."""
    runs = [act.submit("sh", "-c", STEPS, before=("-c", "k8s", "-n", "1")) for _ in range(2)]
    for run in runs:
        act.until_state(run, "Running")
    screen = terminal("-c", "k8s", "top", "-n", "1s", columns=160)
    for run in runs:
        screen.until(rf"{run[-8:]}\s+Running.*loss 9\d\d")
    screen.until(r"k8s\s+[\d-]")
    act.until(lambda: sum("follow=true" in r["url"] for r in kubernetes.requests()) == 2, "both logs are followed")
    act.until(lambda: {"jobs", "pods"} <= {r["url"].split("?")[0].rsplit("/", 1)[1] for r in kubernetes.requests()
                                           if "watch=1" in r["url"]}, "jobs and pods are watched")
    kubernetes.forget()
    for _ in range(3):
        before = screen.until(r"loss (\d+)")[1]
        screen.until(rf"loss (?!{before})\d+")
    assert not [r for r in kubernetes.requests() if "/namespaces/default/" in r["url"]], kubernetes.requests()
    abort_chosen(screen, runs[1])
