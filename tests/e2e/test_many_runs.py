"""Many runs: the last ones by @, names and tags, several at once."""
import contextlib
import difflib
import json
import os
import pty
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from test_kubernetes import K8S


def three(act):
    """The ids of three runs, the last one first."""
    return [act.finish("echo", f"number {n}", before=("-n", 1)) for n in (1, 2, 3)][::-1]


# ---- @


@pytest.mark.smoke
def test_last_runs(act):
    runs = three(act)
    for n, run in enumerate(runs, start=1):
        assert act.run("q", "--json", f"@{n}").json["runs"][0]["id"] == run
    assert act.run("q", "--json", "@").json["runs"][0]["id"] == runs[0]
    assert act.run("logs", "@").out == "number 3\n"
    assert act.run("logs", "-f", "@2").out == "number 2\n"
    assert act.run("wait", "@").status == 0
    assert runs[1] in act.run("abort", "@2").err
    assert act.run("why", "@3").out.startswith("completed")
    assert act.run("nodes", "--json", "@").json["id"] == runs[0]
    assert [r["id"] for r in act.run("q", "--json", "@", "@1", "@2").json["runs"]] == runs[:2]
    again = act.run("resubmit", "@3").out.strip()
    assert act.info(again)["resubmit_of"] == runs[2]
    act.run("wait", "@")


def test_logs_of_the_last_run_as_paths(act):
    three(act)
    log = "user_logs/std_log_process_0.txt"
    assert log in act.run("ls", "-r", "@:").out.splitlines()
    assert act.run("ls", "@:user_logs").out == "std_log_process_0.txt\n"
    assert act.run("cat", f"@2:{log}").out == "number 2\n"
    assert act.run("du", "@:").out.rstrip().endswith("@:")
    assert act.run("d", f"@:{log}").status == 0
    act.fail("cat", f"@9:{log}", status=3, match="there is no run '@9'")


def test_last_runs_of_a_cluster(act):
    act.cluster("eu")
    here, there = act.finish("true", before=("-n", 1)), act.finish("true", before=("-c", "eu", "-n", 1))
    assert act.run("-c", "aml", "q", "--json", "@").json["runs"][0]["id"] == here
    assert act.run("-c", "eu", "q", "--json", "@").json["runs"][0]["id"] == there
    again = act.run("-c", "eu", "resubmit", "@2").out.strip()
    assert act.info(again)["resubmit_of"] == here and act.info(again)["cluster"] == "eu", "-c is where it goes"
    act.run("wait", again)


def test_no_such_last_run(act):
    act.fail("q", "@", status=3, match="there are no runs yet; 'a submit COMMAND' starts one")
    act.fail("ls", "@:", status=3, match="there is no run '@'")
    run = act.finish("true", before=("-n", 1))
    assert act.run("q", "--json", "@1").json["runs"][0]["id"] == run
    act.fail("q", "@2", status=3, match="no run '@2': there is only 1;")
    act.fail("q", "@99", status=3, match="no run '@99': there is only 1;")
    act.cluster("eu")
    act.fail("-c", "eu", "q", "@", status=3, match="no runs yet on cluster 'eu'")
    for bad in ("@0", "@-1", "@x", "@@", "@1x", "@99999999999999999999"):
        act.fail("q", bad, status=2, match=f"'{bad}' is not a run: @ is the one submitted last")


# ---- names and tags


def named(act, name, *tags, before=("-n", 1)):
    """The id of a run that has ended."""
    words = [w for tag in tags for w in ("--tag", tag)]
    run = act.run(*before, "submit", "--name", name, *words, "true").out.strip()
    act.run("wait", run)
    return run


def listed(act, *words):
    return [r["id"] for r in act.run(*words, "--json").json["runs"]]


def test_names_and_tags(act):
    plain = act.finish("true", before=("-n", 1))
    assert "NAME" not in act.run("q").out.splitlines()[0]
    one = named(act, "base", "lr=0.1", "sweep=7")
    two = named(act, "base", "lr=0.2", "sweep=7", "note=two words")
    three_ = named(act, "other", "sweep=7")
    header, *rows = act.run("q").out.splitlines()
    assert header.split()[:3] == ["ID", "NAME", "STATUS"]
    assert [row.split()[:2] for row in rows] == [[three_, "other"], [two, "base"], [one, "base"], [plain, "-"]]
    info = act.info(two)
    assert info["name"] == "base" and info["tags"] == {"lr": "0.2", "sweep": "7", "note": "two words"}
    page = act.run("q", two).out
    assert "name      base\n" in page and "tag       note=two words\n" in page
    assert act.info(plain)["name"] is None and act.info(plain)["tags"] == {}

    assert listed(act, "q", "--name", "base") == [two, one]
    assert listed(act, "q", "--tag", "sweep=7") == [three_, two, one]
    assert listed(act, "q", "--tag", "sweep=7", "--tag", "lr=0.1") == [one]
    assert listed(act, "q", "--tag", "sweep=7", "--name", "other") == [three_]
    assert listed(act, "q", "--tag", "sweep=8") == []
    for verb in ("qr", "qq", "qf"):
        assert listed(act, verb, "--tag", "sweep=7") == listed(act, verb, "--name", "base") == []
    result = act.run("q", "--tag", "sweep=7", "--max", 1)
    assert three_ in result.out and two not in result.out and "1 of 3 runs" in result.err

    assert act.run("q", "--json", "other").json["runs"][0]["id"] == three_
    assert act.run("logs", "other").status == 0 and "user_logs/" in act.run("ls", "other:").out
    message = act.fail("q", "base", status=2, match="'base' could be any of 2 runs")
    assert f"{two}, {one}" in message


def test_names_of_failed_runs(act):
    run = act.run("-n", 1, "submit", "--tag", "a=b", "false").out.strip()
    act.run("wait", run, status=1)
    named(act, "base", "a=b")
    assert listed(act, "qf", "--tag", "a=b") == [run]


def test_resubmitted_runs_keep_their_names(act):
    first = named(act, "base", "lr=0.1", "a=b")
    again = act.run("resubmit", first).out.strip()
    told = act.run("resubmit", "-y", "--json", "--name", "new", "--tag", "lr=0.2", "--tag", "c=d", first).json
    other, = told["runs"]
    assert (other["name"], other["tags"]) == ("new", {"lr": "0.2", "a": "b", "c": "d"})
    assert act.info(again)["name"] == "base" and act.info(again)["tags"] == {"lr": "0.1", "a": "b"}
    act.run("wait", again)
    act.run("wait", other["id"])


def test_wrong_names_and_tags(act):
    for words, match in (((("--name", "a:b")), "'a:b' is not a name"), (("--name", "@"), "is not a name"),
                         (("--name", ""), "'' is not a name"),
                         (("--tag", "alone"), "'alone' is not a tag: a tag is KEY=VALUE"),
                         (("--tag", "=x"), "'' is not a key"), (("--tag", "a=1", "--tag", "a=2"), "given twice")):
        act.fail("submit", *words, "true", status=2, match=match)
        act.fail("q", *words, status=2, match=match)
        act.fail("qq", *words, status=2, match=match)
    run = act.finish("true", before=("-n", 1))
    act.fail("resubmit", "--tag", "alone", run, status=2, match="'alone' is not a tag")
    act.fail("q", "--name", "a", run, status=2, match="--name is about the table of runs")
    assert len(listed(act, "q")) == 1


def test_names_come_back_after_a_lost_ledger(act):
    run = named(act, "base", "lr=0.1")
    (act.home / "ledger.db").unlink()
    assert listed(act, "q", "--name", "base", "--tag", "lr=0.1") == [run]


def test_names_on_slurm(lab):
    act = lab.act
    run = act.run("-c", "lab", "-n", 1, "submit", "--name", "base", "--tag", "lr=0.1", "true").out.strip()
    act.run("wait", "base")
    other = {"ACT_HOME": str(act.scratch / "other")}
    act.run("-c", "lab", "q", "--rebuild", env=other)
    assert act.run("q", "--json", "--tag", "lr=0.1", env=other).json["runs"][0]["name"] == "base"
    assert act.run("q", "--json", "base", env=other).json["runs"][0]["id"] == run


def test_names_at_services(act, azureml):
    run = act.run("submit", "--name", "base", "--tag", "lr=0.1", "true").out.strip()
    act.run("wait", run)
    other = {"ACT_HOME": str(act.scratch / "other")}
    found, = act.run("q", "--json", "--name", "base", "--tag", "lr=0.1", env=other).json["runs"]
    assert (found["id"], found["name"], found["tags"]) == (run, "base", {"lr": "0.1"})
    found, = act.run("q", "--json", "base", env=other).json["runs"]
    assert (found["id"], found["name"], found["tags"]) == (run, "base", {"lr": "0.1"})


def test_names_on_kubernetes(act, kubernetes):
    run = act.run(*K8S, "submit", "--name", "base", "--tag", "lr=0.1", "true").out.strip()
    act.run("wait", run)
    other = {"ACT_HOME": str(act.scratch / "other")}
    found, = act.run(*K8S, "q", "--json", "--name", "base", "--tag", "lr=0.1", env=other).json["runs"]
    assert (found["id"], found["name"], found["tags"]) == (run, "base", {"lr": "0.1"})
    assert act.run(*K8S, "q", "--json", "base", env=other).json["runs"][0]["tags"] == {"lr": "0.1"}


# ---- waiting for several


def test_wait_for_several(act):
    good, bad, worse = (act.run("-n", 1, "submit", "sh", "-c", f"exit {n}").out.strip() for n in (0, 3, 4))
    result = act.run("wait", good, bad, worse, bad[-8:], status=3)
    assert result.out == "" and result.err.count(f"{bad}  ") == 1
    assert {line.split()[0] for line in result.err.splitlines()} == {good, bad, worse}
    assert act.run("wait", worse, bad, status=4).status == 4
    assert act.run("wait", good, good).status == 0
    assert act.run("wait", "--json", good).json["run"]["id"] == good
    assert [r["id"] for r in act.run("wait", "--json", good, bad, status=3).json["runs"]] == [good, bad]
    act.fail("wait", good, "nothing", status=125, match="no run 'nothing'")


def test_wait_for_any(act):
    long = act.run("-n", 1, "submit", "sleep", "300").out.strip()
    short = act.finish("sh", "-c", "exit 3", before=("-n", 1), status=3)
    result = act.run("wait", "--any", long, short, status=3)
    assert short in result.err and long not in result.err
    assert [r["id"] for r in act.run("wait", "--any", "--json", long, short, status=3).json["runs"]] == [short]
    later = act.finish("true", before=("-n", 1))
    age(act, short)
    for words in ((later, long, short), (short, later)):
        result = act.run("wait", "--any", *words, status=3)
        assert short in result.err and later not in result.err, "that of the first one"
        found = act.run("wait", "--any", "--json", *words, status=3).json["runs"]
        assert [r["id"] for r in found] == [short]
    act.fail("wait", "--timeout", "1s", long, short, status=125, match="1 of 2 runs has ended")
    act.fail("wait", "--any", "--timeout", "1s", long, status=125, match="is still")
    process = act.start("wait", long)
    act.run("abort", long)
    assert process.wait(60) == 143
    process.communicate()


def test_wait_says_for_what_and_why(act):
    gate = act.scratch / "gate"
    first = act.run("-n", 1, "submit", "sh", "-c", f"until [ -e {gate} ]; do sleep 0.1; done; exit 3").out.strip()
    then = act.run("-n", 1, "submit", "--name", "then", "--after", first, "true").out.strip()
    act.until(lambda: act.info(then)["reason"], "it is known what it waits for")
    shown = act.on_terminal("wait", "--timeout", "1s", "then").decode()
    assert f"{then} (then)  Queued  " in shown and act.info(then)["reason"][:20] in shown, shown
    gate.touch()
    said = act.run("wait", first, status=3).err
    assert said == f"{first}  Failed: rank 0 exited with status 3; 'a why {first}' explains it\n"
    assert act.run("wait", "then", status=143).err.startswith(f"{then} (then)  Canceled: ")


def test_notify(act):
    runs = [act.run("-n", 1, "submit", "--name", f"n{n}", "sh", "-c", f"exit {n}").out.strip() for n in (0, 5)]
    say = 'echo "$ACT_RUN_ID $ACT_RUN_STATE $ACT_RUN_EXIT_STATUS $ACT_RUN_NAME"'
    result = act.run("wait", "--notify", say, *runs, status=5)
    assert sorted(result.out.splitlines()) == sorted([f"{runs[0]} Completed 0 n0", f"{runs[1]} Failed 5 n5"])
    result = act.run("wait", "--json", "--notify", say, runs[0])
    assert result.json["run"]["id"] == runs[0] and f"{runs[0]} Completed 0 n0" in result.err
    result = act.run("wait", "--notify", "exit 9", runs[0])
    assert "warning: the command of --notify exited with status 9" in result.err
    act.fail("wait", "--notify", "", runs[0], status=125, match="--notify needs a command")
    act.fail("wait", "--notify", "touch nothing", "none", status=125)
    assert not (act.project / "nothing").exists()


def test_wait_for_several_on_two_clusters(lab):
    act = lab.act
    runs = [lab.submit("sh", "-c", f"exit {n}") for n in (0, 2)] + [act.submit("true", before=("-n", 1))]
    assert act.run("wait", *runs, status=2).status == 2
    assert {r["state"] for r in act.run("q", "--json", *runs).json["runs"]} == {"Completed", "Failed"}


# ---- aborting many


def states(act, *runs):
    return [r["state"] for r in act.run("q", "--json", *runs).json["runs"]]


def test_abort_by_tag(act):
    ended = named(act, "base", "sweep=7")
    a, b = (act.run("-n", 1, "submit", "--tag", f"sweep={n}", "sleep", "300").out.strip() for n in (7, 8))
    act.fail("abort", "--tag", "sweep=7", status=2, match="Abort this 1 run.*add -y")
    assert states(act, a)[0] != "Canceled"
    assert "would abort" in act.run("abort", "--dry-run", "--tag", "sweep=7").err and states(act, a)[0] != "Canceled"
    assert act.run("abort", "-y", "--json", "--tag", "sweep=7").json["runs"][0]["id"] == a
    assert states(act, ended, a) == ["Completed", "Canceled"] and states(act, b)[0] != "Canceled"
    result = act.run("abort", "-y", "--tag", "sweep=7")
    assert "no such run of yours is active; 'a qr' and 'a qq' list those that are" in result.err
    assert "is active; did you mean 'base'?" in act.run("abort", "-y", "--name", "bsae").err
    act.run("abort", "-y", "--name", "base")
    assert "is active; the runs of that name have ended" in act.run("abort", "-y", "--name", "base").err
    act.run("abort", b)


def test_abort_all(act):
    act.cluster("eu")
    assert "no such run" in act.run("abort", "--all").err
    here = [act.submit("sleep", "300", before=("-n", 1)) for _ in range(2)]
    long = "sleep 300 # " + "x " * 200
    there = act.run("-c", "eu", "-n", 1, "submit", "--name", "long", "sh", "-c", long).out.strip()
    shown = act.on_terminal("abort", "--all", typed=b"n\n", columns=80).decode().splitlines()
    assert any("Abort these 3 runs? [y/N]" in line for line in shown)
    assert {line.split()[0] for line in shown if line.startswith("exp_")} == {*here, there}
    assert max(map(len, shown)) <= 80 and any(f"{there} (long)" in line for line in shown)
    assert "Canceled" not in states(act, *here, there)
    act.run("-c", "eu", "abort", "--all", "-y")
    assert states(act, there) == ["Canceled"] and "Canceled" not in states(act, *here)
    act.run("abort", "--all", "-y")
    assert states(act, *here) == ["Canceled", "Canceled"]


def pair(scratch):
    """The scripts of two runs of which each ends when the other one has been told to, too, and the gate is there."""
    wait = "until [ -e {other} ] && [ -e {gate} ]; do sleep 0.1; done; exit 0"
    told = [scratch / "told0", scratch / "told1"]
    return told, [f"trap 'touch {mine}; {wait.format(other=other, gate=scratch / 'gate')}' TERM; echo up\n"
                  "while :; do sleep 0.1; done" for mine, other in (told, told[::-1])]


def begin_pair(act, scratch):
    act.env["ACT_ABORT_GRACE"] = "300"
    told, scripts = pair(scratch)
    runs = [act.submit("bash", "-c", script, before=("-n", 1)) for script in scripts]
    for run in runs:
        act.until(lambda run=run: "up" in act.run("logs", run, status=None).out, "it runs")
    return told, runs


def test_all_are_told_before_one_is_waited_for(act):
    (act.scratch / "gate").touch()
    _, runs = begin_pair(act, act.scratch)
    act.run("abort", runs[0], *runs)
    assert states(act, *runs) == ["Canceled", "Canceled"]


def interrupt_abort(act, told, runs):
    """Both runs, which take their time, end all the same."""
    process = act.start("abort", *runs)
    act.until(lambda: all(path.exists() for path in told), "both have been told")
    process.send_signal(signal.SIGINT)
    process.communicate()
    (act.scratch / "gate").touch()
    for run in runs:
        act.until_state(run, "Canceled")


def test_an_interrupted_abort_has_told_all(act):
    told, runs = begin_pair(act, act.scratch)
    interrupt_abort(act, told, runs)


def test_an_interrupted_abort_has_told_all_clusters(lab):
    """Each of the two, one here and one on Slurm, ends when the other one has been told to, too."""
    act = lab.act
    act.env["ACT_ABORT_GRACE"] = "300"
    told, scripts = pair(act.scratch)
    runs = [act.submit("bash", "-c", scripts[0], before=("-n", 1)), lab.submit("bash", "-c", scripts[1])]
    for run in runs:
        act.until(lambda run=run: "up" in act.run("logs", run, status=None).out, "it runs")
    interrupt_abort(act, told, runs)


def test_abort_of_nothing_in_particular(act):
    act.fail("abort", status=2, match=r"'a abort' needs more: a abort RUN\.\.\. .* --name NAME .*'a abort --help'")
    act.fail("abort", "--all", "one", status=2, match="'one' cannot be named as well")
    act.fail("abort", "--all", "--forget", status=2, match="--forget is for runs that are named")
    act.fail("abort", "--tag", "alone", status=2, match="'alone' is not a tag")


def test_abort_all_leaves_what_others_may_own(act, azureml):
    run = act.run("submit", "sleep", "300").out.strip()
    other = {"ACT_HOME": str(act.scratch / "other")}
    assert act.run("q", "--json", run, env=other).json["runs"][0]["id"] == run, "in its ledger now"
    assert "no such run" in act.run("abort", "--all", "-y", env=other).err
    act.run("abort", "--all", "-y")
    assert act.run("wait", run, status=143).status == 143


# ---- searching logs

LOG = "user_logs/std_log_process_{}.txt"


@pytest.mark.smoke
def test_grep(act, two_ranks):
    script = "echo 2026-11-24 10:20:30,123 begin; echo rank $RANK loss=nan; echo other; printf 'Loss=NaN\\n'"
    run = act.finish("sh", "-c", script, before=("-n", 2))
    other = act.finish("echo", "nothing of the kind", before=("-n", 1))
    result = act.run("grep", "loss=(nan|inf)", run)
    assert result.out == "".join(f"{run}:{LOG.format(r)}:2: [{r}] 2026-11-24 10:20:30 rank {r} loss=nan\n"
                                 for r in (0, 1))
    path = result.out.split(":2:")[0]
    assert "loss=nan" in act.run("cat", path).out
    assert len(act.run("grep", "-i", "loss=nan", run).out.splitlines()) == 4
    assert act.run("grep", "loss=nan").out == result.out
    assert act.run("grep", "loss=nan", other, status=1).out == ""
    assert act.run("grep", "loss=nan", other, run).out == result.out
    assert act.run("grep", "^other$", "@2").out.count(":3: [") == 2
    line, = act.run("grep", "of the kind", "@").out.splitlines()
    assert line.startswith(f"{other}:{LOG.format(0)}:1: [0] <20") and line.endswith(" nothing of the kind")
    first = act.run("grep", "--json", "loss=nan").out.splitlines()[0]
    found = json.loads(first)
    assert (found["run"], found["log"], found["rank"], found["line"]) == (run, LOG.format(0), 0, 2)
    assert (found["time"], found["text"], found["attempt"]) == ("2026-11-24 10:20:30", "rank 0 loss=nan", 1)


def test_grep_on_a_terminal(act):
    """What is before a line leaves room for it, also at 80 columns."""
    run = act.finish("sh", "-c", "echo hello; echo 2020-01-02 03:04:05 hello", before=("-n", "1"))
    shown = re.sub(r"\x1b\[[0-9;]*m", "", act.on_terminal("grep", "hello", run, columns=80).decode())
    late, early = shown.splitlines()
    assert re.fullmatch(rf"{run[-8:]}:1: \[0\] (<?[\d-]+ )?\d\d:\d\d:\d\d hello", late), shown
    assert early == f"{run[-8:]}:2: [0] 2020-01-02 03:04:05 2020-01-02 03:04:05 hello"
    assert len(late) < 50


def test_grep_of_odd_lines(act):
    run = act.finish("python3", "-c", "print('x' * 200000 + 'END'); print('a\\0bEND'); print('tail', end='')",
                     before=("-n", 1))
    found = [line.split(": [0] ")[0] for line in act.run("grep", "END$", run).out.splitlines()]
    assert found == [f"{run}:{LOG.format(0)}:{n}" for n in (1, 2)]
    assert act.run("grep", "^tail$", run).out.startswith(f"{run}:{LOG.format(0)}:3: ")


WRITE_LINES = """
import random
rng = random.Random(3)
for i in range(60000):
    time = f"2026-01-02 03:{i // 60 % 60:02}:{i % 60:02} " if rng.random() < 0.3 else ""
    print(time + rng.choice(["", "loss: 0.5", "rank 3: out of memory", "12:34:56", "x" * 300, "warning .*"]),
          rng.choice(["", "", "", "y" * 600, "error 7"]), sep="")
"""


def test_grep_finds_what_grep_does(act, tmp_path):
    """In a log that comes in several parts, for expressions with and without a text that all matches have."""
    run = act.finish("python3", "-c", WRITE_LINES, before=("-n", 1))
    log = tmp_path / "log"
    log.write_bytes(act.run("cat", f"{run}:{LOG.format(0)}").raw_out)
    assert log.stat().st_size > 8 << 20
    for pattern in ("out of memory.*error", "^$|out of memory$|error [0-9]$", "e(rr|xx)or", "y{600}$", "^ ?$",
                    "\\.\\*"):
        found = [line.split(": ")[0].rpartition(":")[2] for line in act.run("grep", pattern, run).out.splitlines()]
        peer = subprocess.run(["grep", "-nE", pattern, log], stdout=subprocess.PIPE, text=True, check=True)
        assert found == [line.split(":")[0] for line in peer.stdout.splitlines()] and found, pattern
    times = [line.split(": [0] ")[1][:19] for line in act.run("grep", "out of memory$", run).out.splitlines()]
    lines, last, wanted = log.read_text().splitlines(), "-", []
    for line in lines:
        last = line[:19] if line.startswith("2026-") else last
        wanted += [last] if line.endswith("out of memory") else []
    assert [time for time in times if time.startswith("2026")] == [time for time in wanted if time != "-"]


def test_grep_of_many(act):
    runs = [named(act, "base", f"n={n}") for n in range(3)]
    act.run("q", *runs)
    assert act.run("grep", "--tag", "n=1", "mpirun|.", status=(0, 1)).status in (0, 1)
    said = [act.run("-n", 1, "submit", "--tag", "say=1", "echo", "hello").out.strip() for _ in range(3)]
    act.run("wait", *said)
    lines = act.run("grep", "--tag", "say=1", "^hello$").out.splitlines()
    assert [line.split(":")[0] for line in lines] == said[::-1]
    result = act.run("grep", "--max", 2, "^hello$")
    assert len(result.out.splitlines()) == 2 and "2 of 6 runs were searched" in result.err
    some = act.run("grep", "^hello$", said[0], "nothing", status=8)
    assert said[0] in some.out and "no run 'nothing'" in some.err


def test_grep_of_copies(act):
    """The run's own folder is gone: what was fetched is searched."""
    run = act.finish("echo", "hello", before=("-n", 1))
    act.run("q", run)
    shutil.rmtree(act.home / f"runs/{run}")
    assert act.run("grep", "hello", run).out.startswith(f"{run}:{LOG.format(0)}:1: [0] ")
    shutil.rmtree(act.project / "assets")
    assert act.run("grep", "hello", run, status=1).out == ""


def test_grep_of_attempts(act):
    run = act.finish("echo", "attempt here", before=("-n", 1))
    folder = act.home / f"runs/{run}"
    first = folder / "attempts/1" / LOG.format(0)
    first.parent.mkdir(parents=True)
    first.write_text("attempt here\n")
    found = [line.split(": ")[0] for line in act.run("grep", "attempt here", run).out.splitlines()]
    assert found == [f"{run}:attempts/1/{LOG.format(0)}:1", f"{run}:{LOG.format(0)}:1"]
    rows = [json.loads(line) for line in act.run("grep", "--json", "attempt here", run).out.splitlines()]
    assert [(row["rank"], row["log"].startswith("attempts/1/")) for row in rows] == [(0, True), (0, False)]


def test_nothing_of_that_name(act):
    assert "no runs yet; 'a submit COMMAND' starts one" in act.run("grep", "x", status=1).err
    act.finish("true", before=("-n", 1))
    for verb, status in ((("q",), 0), (("grep", "."), 1)):
        for words, said in ((("--name", "nosuch"), "no run is named 'nosuch'\n"),
                            (("--tag", "a=b", "--tag", "c=d"), "no run is tagged 'a=b, c=d'\n"),
                            (("--name", "n", "--tag", "a=b"), "no run is named 'n' and tagged 'a=b'\n")):
            assert act.run(*verb, *words, status=status).err == said
    assert act.run("-c", "local", "q", "--name", "n").err == "no run on cluster 'local' is named 'n'\n"
    assert act.run("q", "--json", "--name", "nosuch").err == ""


def test_wrong_greps(act):
    for bad in ("(", "[a", "a{2,1}", "*("):
        act.fail("grep", bad, status=2, match="is not a regular expression")
    assert act.run("grep", "x", status=1).out == ""
    act.fail("grep", status=2, match="needs more")
    act.fail("grep", "x", "none", status=3, match="no run 'none'")
    act.fail("grep", "x", "none:", status=3, match="no run 'none:'; leave out the colon")
    act.fail("grep", "--max", 3, "x", "none", status=2, match="'none' cannot be named as well")


# ---- comparing runs


def differences(act, *words):
    return [(d["part"], d["name"], d["from"], d["to"]) for d in act.run("diff", "--json", *words).json["differences"]]


@pytest.mark.smoke
def test_diff(act):
    act.write("train.py", "print(1)\n")
    act.write("gone.py", "x\n")
    act.write("bytes", b"\0\1")
    first = act.finish("python3", "train.py", "--lr", "0.1", before=("-n", 1))
    same = act.finish("python3", "train.py", "--lr", "0.1", before=("-n", 1))
    assert differences(act, first, same) == []
    assert act.run("diff", first, same).out == ""
    act.write("train.py", "print(12)\n")
    act.write("bytes", b"\0\2")
    act.write("new.py", "y\n").chmod(0o755)
    (act.project / "gone.py").unlink()
    words = ("-n", 2, "-p", "env: {LEVEL: '2', PASSWORD: geheim}", "-p", "sleep_if_fail: false")
    second = act.run(*words, "submit", "python3", "train.py", "--lr", "0.2").out.strip()
    act.run("wait", second)
    found = differences(act, first, "@")
    assert ("command", None, "python3 train.py --lr 0.1", "python3 train.py --lr 0.2") in found
    code = {name: (a, b) for part, name, a, b in found if part == "code"}
    assert set(code) == {"bytes", "gone.py", "new.py", "train.py"}
    assert code["gone.py"][1] is None and code["new.py"][0] is None and code["new.py"][1].endswith("mode 755")
    assert code["train.py"][0].startswith("9 B, CRC ") and code["train.py"][1].startswith("10 B, CRC ")
    assert ("environment", "LEVEL", None, "2") in found and ("environment", "PASSWORD", None, "(a secret)") in found
    assert ("nodes", "processes_per_node", "1", "2") in found
    assert "geheim" not in str(found)
    shown = act.run("diff", first, second).out
    assert shown.startswith(f"--- {first}\n+++ {second}\n@@ command\n- python3 train.py --lr 0.1\n+ python3 train")
    changed = "@@ -1,1 +1,1 @@\n-print(1)\n+print(12)\n"
    lines = {d["name"]: d["lines"] for d in act.run("diff", "--json", first, second).json["differences"]}
    assert lines["train.py"] == changed and not (lines["bytes"] or lines["new.py"] or lines["LEVEL"]), lines
    assert f"mode 644\n    {changed[:-1]}\n".replace("\n-", "\n    -").replace("\n+", "\n    +") in shown, shown
    assert [line for line in shown.splitlines() if line.startswith("@@")][:2] == ["@@ command", "@@ code"]
    assert {part for part, *_ in found} <= {"command", "code", "configuration", "environment", "nodes"}
    assert not [d for d in found if d[0] == "configuration" and d[1].startswith("run.")], found


def test_a_run_and_its_repetition_differ_in_nothing(act):
    """What the first command said of the run holds for both."""
    words = ("-n", 2, "-p", "multi_process: false", "-p", "hang: 1h", "-p", "retry: 1", "-p", "sleep_if_fail: true")
    first = act.finish("true", before=words)
    again = act.run("resubmit", first).out.strip()
    act.run("wait", again)
    assert differences(act, first, again) == []


def test_a_setting_that_a_run_has_as_its_own_differs_once(act):
    first, second = (act.finish("true", before=("-p", f"gpu_free_memory: {free}")) for free in (5, 20))
    assert differences(act, first, second) == [("configuration", "run.gpu_free_memory", "5", "20")]


def test_diff_shows_hunks(act):
    """As difflib does; of many lines the first, and of very many none."""
    texts = [[f"line {n}\n" for n in range(60)] for _ in range(2)]
    texts[1][5:6], texts[1][30:32], texts[1][58:] = ["a\n", "b\n", "c\n"], [], ["line 58\n", "end"]
    small = [f"{n}\n" for n in range(8)], [f"{n}\n" for n in (0, 1, 3, 2, 4, 5, 5, 6, 7)]
    runs = []
    for text, other, many, more in zip(texts, small, ("1\n" * 900, "2\n" * 900), ("1\n" * 2001, "2\n")):
        for name, content in (("a.txt", text), ("b.txt", other), ("c.txt", many), ("d.txt", more)):
            act.write(name, "".join(content))
        runs.append(act.finish("true", before=("-n", 1)))
    lines = {d["name"]: d["lines"] for d in act.run("diff", "--json", *runs).json["differences"] if d["part"] == "code"}
    wanted = "".join(list(difflib.unified_diff(*texts))[2:]) + "\n"
    assert lines["a.txt"] == wanted, lines["a.txt"]
    patched = [line for line in lines["b.txt"].splitlines(True)[1:]]
    for sides, text in zip((" -", " +"), small):
        assert [line[1:] for line in patched if line[0] in sides] == text, lines["b.txt"]
    assert lines["c.txt"].splitlines()[1:] == ["-1"] * 200 + ["..."] and lines["d.txt"] is None


def test_what_a_diff_shows_cannot_play_with_a_terminal(act):
    """Neither in a name nor in a line, coloured or not, do characters come through that turn text round or steer."""
    act.write("t.py", "print(1)\n")
    first = act.finish("python3", "t.py", before=("-n", 1))
    act.write("t.py", "print(2)  # \u202egnp.exe \x9b31mred\n")
    act.write("a\u202eb.py", "\u2066x\n")
    second = act.finish("python3", "t.py", "\u202eword", before=("-n", 1))
    shown = act.on_terminal("diff", first, second).decode()
    assert "print(2)" in shown and "?gnp.exe" in shown and "?word" in shown, shown
    assert not set(shown) & {"\u202e", "\u2066", "\x9b"}, shown


def test_diff_fetches_packages(act):
    act.write("a.py", "1\n")
    first = act.finish("true", before=("-n", 1))
    act.write("a.py", "22\n")
    act.finish("true", before=("-n", 1))
    for package in act.home.rglob("packages/*.zip"):
        package.unlink()
    assert [d[:2] for d in differences(act, first, "@")] == [("code", "a.py")]
    for package in act.home.rglob("packages/*.zip"):
        package.unlink()
    shutil.rmtree(act.store)
    result = act.run("diff", first, "@")
    assert "warning: the code differs, but cannot be compared by file" in result.err and "@@ code" in result.out


def test_diff_across_clusters(lab):
    act = lab.act
    here, there = act.finish("true", before=("-n", 1)), lab.submit("true")
    act.run("wait", there)
    found = differences(act, here, there)
    assert ("nodes", "cluster", "aml", "lab") in found and ("nodes", "platform", "local", "slurm") in found
    assert [d for d in found if d[:2] == ("nodes", "names") and d[3].startswith("n")]


def test_wrong_diffs(act):
    act.fail("diff", "one", status=2, match="needs more: a diff RUN RUN")
    act.fail("diff", "one", "two", status=3, match="no run 'one'")
    act.fail("diff", "@", "@2", status=3, match="there are no runs yet")


# ---- what ACT keeps


def age(act, *runs, days=40, home=None):
    """Lets runs have ended so many days ago, for all that ACT knows."""
    db = sqlite3.connect((home or act.home) / "ledger.db")
    for run in runs:
        (status, created), = db.execute("select status, created_unix_s from runs where id = ?", (run,))
        status = json.loads(status)
        status["ended"] = status["started"] = int(time.time()) - days * 86400
        db.execute("update runs set status = ?, created_unix_s = ? where id = ?",
                   (json.dumps(status), created - days * 86400, run))
    db.commit()
    db.close()


@pytest.mark.smoke
def test_prune(act):
    act.write("a.py", "1\n")
    old = act.finish("true", *["word"] * 60, before=("-n", 1))
    shared = act.finish("false", before=("-n", 1), status=1)
    act.write("a.py", "2\n")
    other_code = act.finish("true", before=("-n", 1))
    young = act.finish("true", before=("-n", 1))
    running = act.submit("sleep", "300", before=("-n", 1))
    act.until_state(running, "Running")
    for run in (old, shared, running):
        act.info(run)
    assert "nothing to remove" in act.run("prune", "--older", "30d").err
    act.fail("prune", "--older", "30", status=2, match="--older takes a time such as 90s, 15m, 24h or 7d, not '30'")
    age(act, old, shared, other_code)
    packages = len(list(act.home.rglob("packages/*.zip")))

    dry = act.run("prune", "--older", "30d", "--dry-run", "--json").json
    assert {r["id"] for r in dry["runs"]} == {old, shared, other_code} and dry["dry_run"] is True
    assert all(r["bytes"] > 0 for r in dry["runs"]) and dry["removed"] == 0 and dry["packages"] >= 1
    assert listed(act, "q") != [] and all((act.home / f"runs/{run}").exists() for run in (old, shared, other_code))
    message = act.run("prune", "--older", "30d", status=2)
    assert old in message.out and "add -y" in message.err
    assert "Remove what ended more than 30d ago for good: 3 runs" in message.err
    assert (act.home / f"runs/{old}").exists()
    shown = act.on_terminal("prune", "--older", "30d", typed=b"n\n", columns=80).decode()
    assert all(len(line) <= 80 for line in shown.splitlines() if "word" in line) and f"\n{old}  " in f"\n{shown}"
    assert "for good: 3 runs" in shown and "nothing was changed" in shown and (act.home / f"runs/{old}").exists()

    done = act.run("prune", "--older", "30d", "-y")
    assert "removed 3 runs" in done.err
    assert set(listed(act, "q")) == {young, running}
    assert sorted(p.name for p in (act.home / "runs").iterdir()) == sorted([young, running])
    assert len(list(act.home.rglob("packages/*.zip"))) == packages - dry["packages"], "others have the second one"
    assert act.run("logs", young).status == 0
    again = act.run("resubmit", young).out.strip()
    act.run("wait", again)
    act.run("abort", running)


def test_prune_removes_the_locks_of_jobs_that_are_over(act):
    """A job, and a run that submits others, has a folder of locks; they go with what else is removed."""
    old = [act.finish("true") for _ in range(2)]
    slots, = (act.home / "slots").iterdir()
    folders = [slots / name for name in ("job-4711", "run-exp_1_00000000", "job-4712")]
    for folder in folders:
        folder.mkdir()
        (folder / "0.lock").touch()
    for folder in folders[:2]:
        os.utime(folder, (time.time() - 3 * 86400,) * 2)
    running = act.submit("sleep", "300")
    act.until_state(running, "Running")
    age(act, old[0])
    act.run("prune", "--older", "30d", "-y")
    assert all(folder.exists() for folder in folders), "a run may be in one of them"
    act.run("abort", running)
    age(act, old[1])
    act.run("prune", "--older", "30d", "-y")
    assert [folder.exists() for folder in folders] == [False, False, True]


def packages_of(act):
    """The packages that are kept anywhere, by their place."""
    places = (act.home / "packages", act.home / "cache/packages", act.home / "store")
    return {str(place.relative_to(act.home)): {p.stem for p in place.rglob("*.zip") if len(p.stem) == 64}
            for place in places}


def old_files(act, days=40):
    for path in [*act.home.rglob("*.zip")]:
        os.utime(path, (time.time() - days * 86400,) * 2)


def test_prune_finds_what_an_interrupted_one_left(act):
    """It was killed when the runs had gone, and their packages had not."""
    run = act.finish("true", before=("-n", 1))
    act.write("a.py", "2\n")
    other = act.finish("true", before=("-n", 1))
    package, used = act.info(run)["package"], act.info(other)["package"]
    shutil.rmtree(act.home / f"runs/{run}")
    db = sqlite3.connect(act.home / "ledger.db")
    db.execute("delete from runs where id = ?", (run,))
    db.commit()
    db.close()
    assert "nothing to remove" in act.run("prune", "--older", "30d").err
    old_files(act)
    assert "for good: 0 runs" in act.run("prune", "--older", "30d", status=2).err
    assert act.run("prune", "--older", "30d", "-y", "--json").json["packages"] >= 1
    for place, found in packages_of(act).items():
        assert package not in found and (used in found or not found), place


def test_prune_killed_anywhere_is_finished_by_the_next(act):
    """Whatever it has done, the next one does the rest."""
    for n in range(3):
        act.write("a.py", f"{n}\n")
        run = act.finish("true", before=("-n", 1))
        act.run("q", run)
    age(act, *listed(act, "q"))
    old_files(act)
    assert any(packages_of(act).values())
    first, second, _ = listed(act, "q")
    shutil.rmtree(act.home / f"runs/{first}")
    shutil.rmtree(act.home / f"runs/{second}")
    shutil.rmtree(act.project / f"assets/{second}")
    done = act.run("prune", "--older", "30d", "-y")
    assert "removed 3 runs" in done.err and listed(act, "q") == []
    assert not list((act.home / "runs").iterdir()) and not list((act.project / "assets").glob("[!.]*"))
    assert not any(packages_of(act).values())


def test_prune_takes_the_copies_of_logs(act, scratch):
    old, young = (act.finish("echo", "x", before=("-n", 1)) for _ in range(2))
    act.run("q", old, young)
    (act.project / "assets/mine").mkdir()
    age(act, old)
    dry = act.run("prune", "--older", "30d", "--dry-run")
    assert "1 run (1 with logs here)" in dry.err and (act.project / f"assets/{old}").exists()
    assert act.run("prune", "--older", "30d", "-y", "--json").json["copies"] == 1
    assert sorted(p.name for p in (act.project / "assets").glob("[!.]*")) == sorted([young, "mine"])
    elsewhere = scratch / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    shutil.rmtree(act.project / f"assets/{young}")
    (act.project / f"assets/{young}").symlink_to(elsewhere)
    age(act, young)
    assert act.run("prune", "--older", "30d", "-y", "--json").json["removed"] == 1
    assert (elsewhere / "precious").exists(), "no link is followed"


def test_prune_leaves_packages_that_runs_of_others_may_need(act):
    """The root may be shared; what cannot be read may need any of them."""
    old = act.finish("true", before=("-n", 1))
    package = act.info(old)["package"]
    theirs = act.home / "runs/theirs_1700000000_00000001"
    shutil.copytree(act.home / f"runs/{old}", theirs)
    age(act, old)
    kept = act.home / f"packages/{package}.zip"
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(b"package")
    act.run("prune", "--older", "30d", "-y")
    assert kept.exists() and not (act.home / f"runs/{old}").exists()
    (theirs / "run.json").unlink()
    old_files(act)
    result = act.run("prune", "--older", "30d", "-y")
    assert kept.exists() and "left: packages, because there are runs of others" in result.err
    shutil.rmtree(theirs)
    act.run("prune", "--older", "30d", "-y")
    assert not kept.exists()


def test_prune_looks_again_after_its_question(act):
    old = act.finish("true", before=("-n", 1))
    act.info(old)
    age(act, old)
    package, = act.home.rglob(f"packages/{act.info(old)['package']}.zip")
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(act.project)
        os.execve(act.programs / "a", ["a", "prune", "--older", "30d"], {**act.env, "TERM": "xterm"})
    text = b""
    while b"[y/N]" not in text:
        text += os.read(fd, 65536)
    new = act.finish("true", before=("-n", 1))
    assert act.info(new)["package"] == act.info(old)["package"]
    os.write(fd, b"y\n")
    with contextlib.suppress(OSError):
        while os.read(fd, 65536):
            pass
    assert os.waitpid(pid, 0)[1] == 0
    os.close(fd)
    assert package.exists() and not (act.home / f"runs/{old}").exists()


def test_prune_leaves_what_runs_and_what_is_another_projects(act, scratch):
    running = act.submit("sleep", "300", before=("-n", 1))
    act.until_state(running, "Running")
    old = act.finish("true", before=("-n", 1))
    age(act, old)
    db = sqlite3.connect(act.home / "ledger.db")
    db.execute("update runs set created_unix_s = 1000 where id = ?", (running,))
    db.commit()
    db.close()
    other = scratch / "other"
    shutil.copytree(act.project, other)
    assert "nothing to remove" in act.run("prune", "--older", "30d", "-y", cwd=other).err
    assert (act.home / f"runs/{old}").exists()
    result = act.run("prune", "--older", "1d", "-y", "--json")
    assert result.json["removed"] == 1 and [r["id"] for r in result.json["runs"]] == [old]
    assert act.info(running)["state"] == "Running" and (act.home / f"runs/{running}").exists()
    act.run("abort", running)


def test_prune_on_slurm(lab):
    act = lab.act
    runs = [lab.submit("true") for _ in range(2)]
    act.run("wait", *runs)
    lab.until_over(runs[0])
    agent = lab.root / "bin/0123456789abcdef"
    agent.mkdir(parents=True)
    (agent / "act-node").write_text("old")
    os.utime(agent, (1000, 1000))
    age(act, runs[0])
    result = act.run("prune", "--older", "30d", "-y", "--json").json
    assert result["removed"] == 1 and not lab.run_dir(runs[0]).exists() and lab.run_dir(runs[1]).exists()
    assert result["agents"] == 1 and not agent.exists() and len(list((lab.root / "bin").iterdir())) == 1
    run = lab.submit("true")
    assert act.run("wait", run).status == 0


def test_prune_asks_the_platform_once_more(act):
    """For all that the ledger knows it has ended."""
    running = act.submit("sleep", "300", before=("-n", 1))
    act.until_state(running, "Running")
    age(act, running)
    db = sqlite3.connect(act.home / "ledger.db")
    db.execute("update runs set state = 'Completed'")
    db.commit()
    db.close()
    result = act.run("prune", "--older", "30d", "-y")
    assert "left: 1 run, not ended" in result.err and (act.home / f"runs/{running}").exists()
    db = sqlite3.connect(act.home / "ledger.db")
    db.execute("update runs set state = 'Running'")
    db.commit()
    db.close()
    act.run("abort", running)


def test_prune_of_another_users_folder(act):
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    old = act.finish("true", before=("-n", 1))
    age(act, old)
    os.chown(act.home / f"runs/{old}", 65534, 65534)
    result = act.run("prune", "--older", "30d", "-y")
    assert "left: 1 run, another user's" in result.err and (act.home / f"runs/{old}").exists()


def test_prune_of_jobs_of_azure_machine_learning(act, azureml):
    runs = [act.run("submit", "true").out.strip() for _ in range(3)]
    act.run("wait", *runs)
    age(act, *runs[:2])
    act.run("prune", "--older", "30d", "--dry-run")
    assert len([r for r in azureml.requests() if r["method"] == "DELETE"]) == 0
    assert act.run("prune", "--older", "30d", "-y", "--json").json["removed"] == 2
    deleted = [r["url"].split("/jobs/")[1].split("?")[0] for r in azureml.requests() if r["method"] == "DELETE"]
    assert sorted(deleted) == sorted(runs[:2]) and listed(act, "q") == [runs[2]]


def test_prune_on_kubernetes(act, kubernetes):
    runs = [act.run(*K8S, "submit", "true").out.strip() for _ in range(2)]
    act.run("wait", *runs)
    age(act, runs[0])
    assert act.run(*K8S, "prune", "--older", "30d", "-y", "--json").json["removed"] == 1
    assert listed(act, *K8S, "q") == [runs[1]]
    assert len(kubernetes.objects("Job")) == 1


def test_wrong_prunes(act):
    act.fail("prune", status=2, match="how old. 'a prune --older 30d'")
    for bad in ("0", "0d", "-1d", "soon"):
        act.fail("prune", "--older", bad, status=2, match="--older takes a time such as")
    assert "nothing to remove" in act.run("prune", "--older", "1s").err


def test_du_of_what_act_keeps(act):
    act.write("a.py", "1\n")
    run = act.finish("true", before=("-n", 1))
    act.run("q", run)
    rows = {r["what"]: r for r in map(json.loads, act.run("du", "--json").out.splitlines())}
    assert rows["runs"]["n"] == 1 and rows["runs"]["where"] == str(act.home / "runs") and rows["runs"]["bytes"] > 0
    assert rows["copies of logs"]["where"] == str(act.project / "assets") and rows["copies of logs"]["n"] == 1
    assert rows["package cache"]["n"] >= 1 and rows["ledger"]["bytes"] > 0
    act.write("../elsewhere/data/a", b"1" * 100000)
    act.run("u", "data", cwd=act.scratch / "elsewhere")
    [kept] = [r for r in map(json.loads, act.run("du", "--json").out.splitlines()) if r["what"] == "built-in store"]
    assert kept["where"] == str(act.home / "store") and kept["n"] == 1 and kept["bytes"] > 100000
    assert "copies of logs" in act.run("du").out and str(rows["runs"]["bytes"]) in act.run("du", "--bytes").out
    act.fail("du", "-d", 1, status=2, match="--depth is about the folders of a path")


def test_names_are_completed(act):
    run = named(act, "base-one")
    for _ in range(2):
        named(act, "twice")
    found = act.run("__complete", "logs", "").out.splitlines()
    assert run in found and "base-one" in found and "twice" not in found
    assert act.run("__complete", "wait", "bas").out == "base-one\n"
    assert act.run("__complete", "ls", "bas").out == "base-one:\n"
