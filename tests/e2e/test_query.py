"""What has become of runs: q, logs, wait, abort, resubmit, local; and that it is true whatever is killed."""
import base64
import calendar
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import re
import zipfile
import resource
import shutil
import signal
import sqlite3
import subprocess
import time
import unicodedata

import pytest

from waiting import Process


def table_ids(result):
    """The ids in a table, in its order."""
    return [line.split()[0] for line in result.out.splitlines()[1:] if line.strip()]


def fill_slots(act):
    """A run that takes the whole machine."""
    run = act.submit("sleep", "300", before=("-n", os.cpu_count()))
    act.until_state(run, "Running")
    return run


# ---- tables


def test_empty_ledger(act):
    whole = act.run("q", "--json").json
    assert (whole["version"], whole["runs"]) == (1, [])
    assert act.run("q").status == 0


@pytest.mark.smoke
def test_tables_by_state(act):
    done = act.finish("true", before=("-n", "1"))
    failed = act.finish("false", before=("-n", "1"), status=1)
    running = fill_slots(act)
    queued = act.submit("echo", "later", before=("-n", "1"))
    act.until_state(queued, "Queued")

    result = act.run("q")
    header = result.out.splitlines()[0].split()
    assert header == ["ID", "STATUS", "CLUSTER", "GPUS", "CREATED", "ELAPSED", "COMMAND"]
    assert table_ids(result) == [queued, running, failed, done], "newest first"
    for verb, wanted in (("qr", running), ("qq", queued), ("qf", failed), ("f", failed), ("failed", failed)):
        assert table_ids(act.run(verb)) == [wanted], verb
        assert [r["id"] for r in act.run(verb, "--json").json["runs"]] == [wanted], verb
    assert len(act.run("q", "--max", "2", "--json").json["runs"]) == 2
    assert "echo later" in result.out

    act.run("abort", running)
    act.run("wait", queued)
    assert act.lines(queued) == ["later"]


def columns_of(line):
    """As a terminal counts them."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def test_tables_fit_the_terminal(act):
    act.env["ACT_LOCAL_SLOTS"] = "4"
    words = ("sh", "-c", "exit 3", "训练", "e\u0301😀" * 60)
    run = act.finish(*words, before=("-n", "1"), status=3)
    act.write("data/a file of the data", "x")
    act.run("u", "data")
    for columns in (40, 80, 100, 200):
        for verb in (("q",), ("qf",), ("nodes", run), ("s",), ("blame",), ("ls", "-l", "data"), ("config", "show")):
            text = re.sub(r"\x1b\[[0-9;]*m", "", act.on_terminal(*verb, columns=columns, LANG="C").decode())
            lines = [line for line in text.splitlines() if not line.startswith(("act: ", "#"))]
            assert lines and max(map(columns_of, lines)) <= columns, (verb, columns, text)
            if verb[0] in ("q", "qf"):
                shown = run if columns >= 120 else run.rsplit("_", 1)[1]
                assert lines[1].startswith(f"{shown}  Failed"), text
                assert "..." not in lines[1] or "GPUS" not in lines[0], text
                time = "CREATED" if columns >= 120 else "AGE"
                assert (f" {time} " in lines[0]) == (columns >= 80), text
    heads = re.split(r"\s{2,}", act.run("s").out.splitlines()[1].strip())
    assert len(set(heads)) == len(heads) == 12, heads
    assert words[-1] in act.run("q").out and words[-1] in act.run("qf").out, "nothing is cut in a pipe"


@pytest.mark.parametrize("columns", [40, 80])
def test_little_room_has_short_ids_and_names(act, columns):
    """And any of these ids names its run."""
    runs = [act.run("submit", "--name", name, "true").out.strip() for name in ("base", "wide-3")]
    act.run("wait", *runs)
    text = re.sub(r"\x1b\[[0-9;]*m", "", act.on_terminal("q", columns=columns).decode()).replace("\r", "")
    rows = [line.split() for line in text.splitlines()]
    heads = ["ID", "STATUS", "NAME,", "COMMAND"] if columns == 40 else ["ID", "NAME", "STATUS"]
    assert rows[0][:len(heads)] == heads and ("GPUS" in rows[0]) == (columns == 80), text
    assert [row[2 if columns == 40 else 1] for row in rows[1:]] == ["wide-3", "base"], text
    for row, run in zip(rows[1:], reversed(runs)):
        assert run.endswith(row[0]) and act.run("q", "--no-logs", row[0], "--json").json["runs"][0]["id"] == run


def test_commands_that_differ_look_different(act):
    """Those of a sweep differ at their ends."""
    for value in ("0.1", "0.2"):
        act.finish("true", *["--a-long-option=and-its-value"] * 4, "--lr", value)
    text = re.sub(r"\x1b\[[0-9;]*m", "", act.on_terminal("q", columns=80).decode()).replace("\r", "")
    assert [line.rsplit(None, 1)[1] for line in text.splitlines()[1:3]] == ["0.2", "0.1"], text


def test_processors_are_not_shown_as_gpus(act):
    """This machine has none: the slots of its runs are processors."""
    run = act.finish("true", before=("-n", "2"))
    row, = [line.split() for line in act.run("q").out.splitlines()[1:]]
    assert row[:4] == [run, "Completed", "aml", "-"]
    assert act.run("q", "--json").json["runs"][0]["num_gpu"] == 0
    page = act.run("q", run).out
    assert "processes 2\n" in page and "gpus" not in page
    again = act.run("resubmit", run).out.strip()
    act.run("wait", again)
    assert act.info(again)["num_gpu"] == 0 and act.info(again)["processes_per_node"] == 2


def test_reasons_are_not_cut(act):
    act.write("script", "#!/no/such/interpreter\n").chmod(0o755)
    run = act.finish("./script", before=("-n", "1"), status=None)
    reason = act.info(run)["reason"]
    assert len(reason) > 60
    for columns in (40, 80, 200):
        shown = re.sub(r"\x1b\[[0-9;]*m", "", act.on_terminal("qf", columns=columns).decode())
        assert reason in re.sub(r"\s+", " ", shown), shown


def test_query_in_a_project_that_cannot_be_written(act):
    if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("no mount namespaces here")
    runs = [act.finish("echo", word, before=("-n", "1")) for word in ("first words", "second words")]
    act.prefix = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && '
                  'exec "$@"', str(act.project))
    for had_copies in (False, True):
        result = act.run("q", *runs)
        assert "first words" in result.out and "second words" in result.out and "Completed" in result.out
        assert result.err.count("copies of logs cannot be kept") == 1, result
        assert f"'{act.project}/assets': Read-only file system" in result.err
        assert [r["logs"] for r in act.run("q", "--json", *runs).json["runs"]] == [[], []]
        for verb, word in (("parse", runs[0]), ("d", f"{runs[0]}:")):
            act.fail(verb, word, status=4, match="cannot fetch the logs.*Read-only file system")
        elsewhere = {"AML_LOG_FOLDER": str(act.scratch / "logs")}
        assert "warning" not in act.run("q", runs[0], env=elsewhere).err
        if not had_copies:
            prefix, act.prefix = act.prefix, ()
            act.run("q", *runs)
            act.prefix = prefix


def test_json_of_a_run(act):
    before = int(time.time())
    run = act.finish("echo", "two words", before=("-n", "1"))
    whole = act.run("q", "--json").json
    info = whole["runs"][0]
    assert whole["version"] == 1
    assert (info["id"], info["state"], info["cluster"], info["command"]) == (run, "Completed", "aml",
                                                                           ["echo", "two words"])
    assert info["exit_status"] == 0 and info["package"]
    assert {"created", "started", "ended", "failed_rank", "reason"} <= info.keys()
    times = [calendar.timegm(time.strptime(info[k], "%Y-%m-%dT%H:%M:%SZ")) for k in ("created", "started", "ended")]
    assert before <= times[0] <= times[1] <= times[2] <= time.time()


def test_table_prints_hostile_commands_safely(act):
    act.finish("true", "\x1b[31mred\x07", "line\nbreak", b"\xff", before=("-n", "1"))
    out = act.run("q").raw_out
    assert b"\x1b" not in out and b"\x07" not in out
    assert len(out.splitlines()) == 2, "one line for each run"
    out.decode("utf-8")


# ---- one run


@pytest.mark.smoke
def test_query_fetches_prints_and_describes(act, two_ranks):
    act.write("talk.sh", 'seq -f "rank $RANK line %g" 250')
    run = act.finish("sh", "talk.sh", before=("-n", "2"))
    result = act.run("q", run)
    folder = act.project / f"assets/{run}"
    wanted = [f"rank 0 line {i}" for i in range(151, 251)]
    assert [line for line in result.out.splitlines() if line.startswith("rank 0 line")] == wanted
    assert "rank 1 line" not in result.out
    for rank in (0, 1):
        path = folder / f"user_logs/std_log_process_{rank}.txt"
        assert path.read_text() == "".join(f"rank {rank} line {i}\n" for i in range(1, 251))
        assert str(path) in result.out
    for word in (run, "Completed", "aml", "sh talk.sh", act.info(run)["package"]):
        assert str(word) in result.out, word


def test_query_fetches_only_what_is_new(act):
    gate = act.scratch / "gate"
    first = "first" * 100  # longer than what is compared to know another log
    act.write("slow.sh", f"echo {first}; while [ ! -e {gate} ]; do sleep 0.1; done; echo second")
    run = act.submit("sh", "slow.sh", before=("-n", "1"))
    copy = act.project / f"assets/{run}/user_logs/std_log_process_0.txt"
    act.until(lambda: act.run("q", run) and copy.exists() and copy.read_text() == f"{first}\n", "the first line")
    inode = copy.stat().st_ino
    copy.write_text(f"F{first[1:]}\n")  # would be put right if it were fetched again
    gate.touch()
    act.run("wait", run)
    act.run("q", run)
    assert copy.read_text() == f"F{first[1:]}\nsecond\n"
    assert copy.stat().st_ino == inode


def test_pieces_of_ids(act):
    first, second = (act.finish("true", before=("-n", "1")) for _ in range(2))
    assert first in act.run("q", first[-8:]).out
    assert act.run("wait", second[-6:]).status == 0
    message = act.fail("q", "exp_", status=2)
    assert first in message and second in message
    act.fail("abort", "exp_", status=2)
    act.fail("resubmit", "exp_", status=2)
    act.fail("q", "nothing-like-this", status=3, match="nothing-like-this")
    act.fail("q", "", status=2)
    act.fail("q", "100%_", status=3)


def test_several_ids_at_once(act):
    runs = [act.finish("echo", f"run {i}", before=("-n", "1")) for i in range(2)]
    out = act.run("q", *runs).out
    assert "run 0" in out and "run 1" in out
    assert all((act.project / f"assets/{run}").is_dir() for run in runs)


def test_query_of_a_run_without_logs_yet(act):
    blocker = fill_slots(act)
    queued = act.submit("true", before=("-n", "1"))
    result = act.run("q", queued)
    assert "Queued" in result.out
    act.run("abort", queued, blocker)


def test_behind_another_run(act):
    """Runs are served in order of arrival: one that waits behind another says so, and what that waits for."""
    cores = os.cpu_count()
    if cores < 2:
        pytest.skip("one of two runs must fit beside what runs")
    running = act.submit("sleep", "300", before=("-n", "1"))
    act.until_state(running, "Running")
    first = act.submit("sleep", "300", before=("-n", cores))
    missing = f"waits for 1 of {cores} processors, held by '{running}'"
    one = f"waits for 1 processor, held by '{first}'"
    act.until(lambda: act.info(first)["reason"] == missing, "it waits for one that is taken")
    second, third = (act.submit("sleep", "300", before=("-n", "1")) for _ in range(2))
    for run in (second, third):
        act.until(lambda run=run: act.info(run)["reason"] == f"waits behind '{first}', which {missing}", "it is behind")
    assert f"waits behind '{first}', which {missing}" in act.run("q", second).out
    assert f"waits behind '{first}', which {missing}" in act.run("qq").out
    act.run("abort", running)
    act.until_state(first, "Running")
    next_one = act.until(lambda: [run for run in (second, third) if act.info(run)["reason"] == one],
                         "one of the others is next")[0]
    last = second if next_one == third else third
    act.until(lambda: act.info(last)["reason"] == f"waits behind '{next_one}', which {one}",
              "the last one is behind that")
    act.run("abort", first, second, third)


# ---- logs and wait


def test_logs_prints_a_rank(act, two_ranks):
    act.write("talk.sh", 'echo "this is $RANK"')
    run = act.finish("sh", "talk.sh", before=("-n", "2"))
    assert act.run("logs", run).out == "this is 0\n"
    assert act.run("logs", run, "--rank", "1").out == "this is 1\n"
    act.fail("logs", run, "--rank", "7", status=(2, 3))
    assert act.run("logs", "--name", "user_logs/std_log_process_1.txt").out == "this is 1\n"  # of the last run


def test_logs_follow_until_the_run_ends(act):
    gate = act.scratch / "gate"
    act.write("slow.sh", f"echo first; while [ ! -e {gate} ]; do sleep 0.1; done; echo second; exit 3")
    run = act.submit("sh", "slow.sh", before=("-n", "1"))
    follower = act.start("logs", "-f", run)
    assert follower.stdout.readline() == b"first\n"
    assert follower.poll() is None
    gate.touch()
    out, err = follower.communicate()
    assert out == b"second\n", err
    assert follower.returncode == 3
    assert err.decode().splitlines()[-1] == f"Failed: rank 0 exited with status 3; 'a why {run}' explains it"
    assert act.state(run) == "Failed"


def test_logs_follow_gives_the_end_of_the_run(act):
    run = act.finish("echo", "well", before=("-n", "1"))
    result = act.run("logs", "-f", run)
    assert (result.out, result.err) == ("well\n", "Completed\n")
    assert act.run("logs", run).err == "", "only who follows"
    run = act.submit("sleep", "300", before=("-n", "1"))
    act.run("abort", run)
    assert act.run("logs", "-f", run, status=(3, 143)).err.splitlines()[-1].startswith(("Canceled", "act: "))


def test_logs_tail_of_an_open_line(act):
    run = act.finish("printf", "one\\ntwo", before=("-n", "1"))
    shown = [act.run("logs", "--tail", str(n), run).out.strip("\n") for n in range(4)]
    assert shown == ["", "two", "one\ntwo", "one\ntwo"]


@pytest.mark.parametrize("words", [("wait",), ("logs", "-f")])
def test_who_watches_may_leave(act, words):
    run = act.submit("sh", "-c", "echo up; exec sleep 300", before=("-n", "1"))
    act.until_state(run, "Running")
    watch = act.start(*words, run)
    act.until(lambda: sigint_is_caught(watch.pid), "it watches")
    watch.send_signal(signal.SIGINT)
    _, err = watch.communicate()
    assert watch.returncode == 130
    assert f"the run goes on: 'a logs -f {run}' follows it again, 'a abort {run}' ends it" in err.decode()
    assert act.state(run) == "Running"
    act.run("abort", run)


def sigint_is_caught(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        caught = next(line.split()[1] for line in status if line.startswith("SigCgt"))
    return int(caught, 16) >> (signal.SIGINT - 1) & 1


def test_wait_on_a_terminal(act):
    gate = act.scratch / "gate"
    run = act.submit("sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.1; done", before=("-n", "1"))
    act.until_state(run, "Running")
    ours, theirs = os.openpty()
    waiting = Process(["a", "wait", run], env=act.env, cwd=act.project, stderr=theirs)
    os.close(theirs)
    shown = b""
    while b"Running" not in shown:
        shown += os.read(ours, 4096)
    assert f"\r{run}  Running  ".encode() in shown
    gate.touch()
    assert waiting.wait() == 0
    os.close(ours)


def test_logs_into_a_closed_pipe(act):
    act.write("many.sh", "seq 1 200000")
    run = act.finish("sh", "many.sh", before=("-n", "1"))
    done = subprocess.run(f"a logs {run} | head -n 1", shell=True, env=act.env, cwd=act.project, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.stdout, done.stderr) == (b"1\n", b"")


def test_wait_gives_the_runs_status_and_its_own(act):
    run = act.submit("sh", "-c", "sleep 0.5; exit 42", before=("-n", "1"))
    act.run("wait", run, status=42)
    act.run("wait", run, status=42)
    act.fail("wait", "no-such-run", status=125)
    act.fail("wait", status=None, match="'a wait' needs more")  # as $(a submit ...) that failed would have it


def test_wait_can_be_interrupted(act):
    run = act.submit("sleep", "300", before=("-n", "1"))
    waiting = act.start("wait", run)
    act.until(lambda: sigint_is_caught(waiting.pid), "it waits")
    waiting.send_signal(signal.SIGINT)
    waiting.communicate()
    assert waiting.returncode == 130
    assert act.state(run) in ("Running", "Queued"), "waiting less does not end the run"
    act.run("abort", run)


# ---- abort and resubmit


@pytest.mark.smoke
def test_abort_running(act, two_ranks):
    act.write("stay.sh", 'trap "echo asked to stop; exit 0" TERM; echo up; while :; do sleep 0.1; done')
    run = act.submit("sh", "stay.sh", before=("-n", "2"))
    act.until(lambda: act.state(run) == "Running" and "up" in act.run("logs", run, status=None).out, "it runs")
    act.run("a", run)
    assert act.state(run) == "Canceled"
    act.until(lambda: not act.processes(), "nothing is left of it")
    assert "asked to stop" in act.log(run).decode()
    act.run("wait", run, status=143)


def test_abort_of_what_will_not_stop(act):
    act.env["ACT_ABORT_GRACE"] = "2"
    act.write("stay.sh", 'trap "" TERM INT HUP; echo up; while :; do sleep 0.1; done')
    run = act.submit("sh", "stay.sh", before=("-n", "1"))
    act.until(lambda: "up" in act.run("logs", run, status=None).out, "it runs")
    act.run("abort", run)
    act.until_state(run, "Canceled")
    act.until(lambda: not act.processes(), "nothing is left of it")


def test_abort_queued(act):
    blocker = fill_slots(act)
    queued = act.submit("echo", "must not run", before=("-n", "1"))
    act.run("abort", queued)
    assert act.state(queued) == "Canceled"
    act.run("abort", blocker)
    assert act.state(blocker) == "Canceled"
    assert "must not run" not in act.run("logs", queued, status=None).out


def test_abort_finished_changes_nothing(act):
    run = act.finish("true", before=("-n", "1"))
    result = act.run("abort", run, status=None)
    assert act.state(run) == "Completed"
    assert "Completed" in result.out + result.err or "ended" in result.err


def test_abort_dry_run(act):
    run = act.submit("sleep", "300", before=("-n", "1"))
    act.until_state(run, "Running")
    act.run("abort", "--dry-run", run)
    assert act.state(run) == "Running"
    act.run("abort", run)


def test_resubmit_asks_on_a_terminal_before_it_aborts(act):
    old = act.submit("sleep", "300", before=("-n", "1"))
    act.until_state(old, "Running")
    shown = act.on_terminal("resubmit", old, typed=b"n\n").decode()
    assert f"'{old}' is running: abort it and submit it again? [y/N]" in shown, shown
    assert f"not confirmed: '{old}' goes on" in shown and "nothing was changed" not in shown, shown
    assert act.state(old) == "Running" and len(act.run("q", "--json").json["runs"]) == 1
    assert "[y/N]" in act.on_terminal("resubmit", old, typed=b"y\n").decode()
    assert act.state(old) == "Canceled"
    new = act.run("qr", "--json").json["runs"] + act.run("qq", "--json").json["runs"]
    act.until_state(new[0]["id"], "Running")
    assert "[y/N]" not in act.on_terminal("resubmit", "-y", new[0]["id"]).decode()
    assert act.state(new[0]["id"]) == "Canceled"
    shown = act.on_terminal("resubmit", old, typed=b"n\n").decode()
    assert f"'{old}' was replaced by '" in shown and "once more? [y/N]" in shown, shown
    for run in act.run("q", "--json").json["runs"]:
        if run["state"] in ("Running", "Queued"):
            act.run("abort", run["id"])


def test_a_replaced_run_says_by_which(act):
    def asked(word):
        return act.run("q", "--json", word).json["runs"][0]

    old = act.run("-n", 1, "submit", "--name", "base", "sleep", "300").out.strip()
    act.until_state(old, "Running")
    new = act.run("resubmit", old).out.strip()
    assert asked(old)["replaced_by"] == act.run("why", "--json", old).json["replaced_by"] == new
    assert f"replaced  {new}" in act.run("q", "--no-logs", old).out and f"by {new}" in act.run("why", old).out
    assert asked("base")["id"] == new and asked(new)["replaced_by"] is None
    act.fail("resubmit", old, status=2, match=f"'{old}' was replaced by '{new}', which goes on: submit it once more?")
    act.run("resubmit", "--dry-run", old)
    again = act.run("resubmit", "-y", old).out.strip()
    act.run("abort", again)
    act.run("abort", new)
    act.run("abort", act.run("resubmit", old).out.strip())


def test_resubmit_to_another_cluster(act):
    act.cluster("other", below="elsewhere", extra={"env": {"WHERE": "other"}})
    act.write("where.sh", 'echo "on ${WHERE:-aml}"')
    old = act.finish("sh", "where.sh", before=("-n", "1"))
    new = act.run("-rt", "other", "resubmit", old).out.strip()
    act.run("wait", new)
    assert act.lines(old) == ["on aml"]
    assert act.lines(new) == ["on other"]
    assert act.info(new)["cluster"] == "other"
    act.fail("-rt", "nowhere", "resubmit", old, status=(3, 7), match="nowhere")


def test_resubmit_stays_on_the_runs_own_cluster(act):
    """Wherever it is typed."""
    act.cluster("other", below="elsewhere", extra={"env": {"WHERE": "other"}})
    old = act.finish("sh", "-c", 'echo "on ${WHERE:-aml}"', before=("-c", "other"))
    new = act.run("resubmit", old, cwd=act.scratch).out.strip()
    act.run("wait", new)
    assert act.info(new)["cluster"] == "other"
    assert act.lines(new) == ["on other"]


def test_queue_is_first_come_first_served_enough(act):
    """Runs that wait for the machine all get it."""
    blocker = fill_slots(act)
    waiting = [act.submit("echo", f"turn {i}", before=("-n", "1")) for i in range(4)]
    act.run("abort", blocker)
    for i, run in enumerate(waiting):
        act.run("wait", run)
        assert act.lines(run) == [f"turn {i}"]


# ---- local


FAKE_DOCKER = """#!/bin/sh
# Keeps its words, and runs the command here. The daemon is away when there is a file "away".
line=$(printf '[%s]' "$@"); printf '%s\\n' "$line" >>"$0.words" # at once: another one may write at this moment
[ ! -e "$0.away" ] || { echo "Cannot connect to the Docker daemon" >&2; exit 1; }
[ "$1" = run ] || exit 0
shift
while [ "${1#--}" != "$1" ]; do
    case $1 in
    --workdir=*) at=${1#*=};;
    --volume=*:/tmp/code) code=${1#*=} code=${code%:*};;
    esac
    shift
done
cd "${code:-$at}"
IN_IMAGE=$1; export IN_IMAGE; shift
exec "$@"
"""


def with_image(act):
    """The cluster has an image, and PATH a docker; the docker."""
    act.cluster("aml", folders=(), extra={"docker": {"image": "registry/image:1"}, "env": {"WHERE": "there"}})
    act.env["PATH"] = f"{act.scratch}/bin:{act.env['PATH']}"
    docker = act.write("../bin/docker", FAKE_DOCKER)
    docker.chmod(0o755)
    return docker


def in_image(act):
    """The same, with folders as in the files of the original."""
    act.account("blob", account_name="acct", account_key="c2VjcmV0", container_name="cont")
    folder = {"azure_blob_config_file": "aux_data/configs/blob.yaml", "path": "me/x"}
    docker = with_image(act)
    params = json.loads((act.project / "aux_data/aml/aml.yaml").read_text())
    params["config_param"] |= {"data_folder": folder, "output_folder": folder,
                               "more_folder": {**folder, "mode": "ro_mount"}}
    act.write("aux_data/aml/aml.yaml", json.dumps(params))
    return docker


def test_local_in_the_image_of_the_cluster(act):
    docker = in_image(act)
    act.write("data/words", "own")
    act.write("show.sh", 'echo "$IN_IMAGE $1 $(cat data/words)"; echo m >output/model; ls')
    out = act.run("local", "sh", "show.sh", "two words").out
    assert out.splitlines()[0] == "registry/image:1 two words own" and "more" not in out.split()
    assert (act.project / "output/model").read_text() == "m\n"
    words = [line for line in docker.with_name("docker.words").read_text().splitlines() if "[show.sh]" in line][-1]
    assert words.startswith("[run][--rm]") and words.endswith("[registry/image:1][sh][show.sh][two words]")
    for word in ("[--env=RANK]", "[--env=WHERE]", f"[--volume={act.project}/data:{act.project}/data]", "/code]"):
        assert word in words
    row = act.run("q", "--json").json["runs"][0]
    assert row["command"] == ["sh", "show.sh", "two words"] and f"[--name=act-{row['id']}-0]" in words
    act.write("train.py")
    act.run("-n", "1", "local", "torchrun", "train.py", status=None)
    words = [line for line in docker.with_name("docker.words").read_text().splitlines() if "[torchrun]" in line][-1]
    assert "[registry/image:1][torchrun][--nnodes=1][--nproc_per_node=1][--node_rank=0]" in words
    assert words.endswith("[train.py]")
    assert act.run("local", "--no-container", "printenv", "IN_IMAGE", status=1).out == ""


def test_containers_of_killed_clients_are_removed(act):
    """A container is the daemon's: it does not end with the client that started it."""
    docker = in_image(act)
    act.run("-n", "2", "local", "sh", "-c", "kill -9 $$", status=137)
    run = act.run("q", "--json").json["runs"][0]["id"]
    assert docker.with_name("docker.words").read_text().endswith(f"\n[rm][-f][act-{run}-0][act-{run}-1]\n")


# A Python as far as an environment is made by it, which is in bin/python of the new folder then.
PLAYED_PYTHON = """#!/bin/sh
case "$*" in
*"-m venv "*) for dir; do :; done; mkdir -p "$dir/bin" && cp "$0" "$dir/bin/python" ;;
*"-m pip install"*) echo "installed in $IN_IMAGE: $*" >installed ;;
esac
"""


def test_local_prepares_in_the_image(act):
    in_image(act)
    act.write("../bin/python3", PLAYED_PYTHON).chmod(0o755)
    act.write("requirements.txt", "thing")
    act.write("compile.aml.sh", '#!/bin/sh\necho "compiled in $IN_IMAGE for $*"; [ ! -e bad ] || exit 3\n')
    out = act.run("-ca", "'a b' c", "local", "cat", "installed").out
    assert re.fullmatch("act: made the environment from requirements.txt\ncompiled in registry/image:1 for a b c\n"
                        "installed in registry/image:1: .*-r requirements.txt\n", out), out
    assert act.run("-n", "2", "local", "echo", "here").out.endswith("in registry/image:1 for \nhere\n")
    act.write("bad")
    out = act.run("local", "echo", "here", status=3).out
    assert "act: preparation failed: compile.aml.sh ended with status 3\n" in out and "here" not in out


def test_local_without_docker(act):
    docker = in_image(act)
    docker.with_name("docker.away").touch()
    message = act.fail("local", "echo", "x", status=125, match="--no-container",
                       env={"PATH": f"{act.scratch}/bin:/bin"})
    assert "registry/image:1" in message and "docker does not answer: Cannot connect to the Docker daemon" in message
    act.fail("local", "echo", "x", status=125, match="neither docker nor podman is here; --no-container",
             env={"PATH": str(act.programs)})
    assert act.run("local", "--no-container", "echo", "x").out == "x\n"
    docker.with_name("podman").symlink_to("/bin/true")
    assert act.run("local", "--dry-run", "echo", "x").json["container"] == "podman"


@pytest.mark.smoke
def test_initc_compiles_here_and_submit_takes_that_while_nothing_changes(act):
    with_image(act)
    act.write(".gitignore", "tool")
    act.write("compile.aml.sh", 'echo "for $*"; [ ! -e bad ] || exit 3; mkdir -p build/lib.x; cp src build/lib.x/m.so; '
                                'echo $IN_IMAGE >tool')
    act.write("src", "one")
    raw = act.run("init").out.strip()
    result = act.run("-ca", "fast", "initc", "--json")
    assert "compiling in the image 'registry/image:1' by docker" in result.err and "for fast\n" in result.err
    def package(sha256):
        with zipfile.ZipFile(next(act.store.rglob(f"{sha256}.zip"))) as z:
            return {name: z.read(name) for name in z.namelist()}
    files = package(result.json["sha256"])
    assert files["tool"] == b"registry/image:1\n" and files["build/lib.x/m.so"] == b"one" and files["src"] == b"one"
    assert files == package(act.run("initic").out.strip())
    assert "tool" not in package(raw)
    compiled = result.json["sha256"]

    def dry_run_knows_it():
        act.run("local", "true")  # files of this very moment are read again
        return act.run("submit", "--dry-run", "true").json["package_sha256"] == compiled
    act.until(dry_run_knows_it, "a dry run knows the package")
    run = act.run("submit", "--json", "cat", "tool")
    assert re.search(r"code  compiled package of \d+ files, .*, nothing changed\n", run.err)
    assert run.json["package"] == compiled
    assert act.run("submit", "--last-package", "--json", "true").json["package"] == compiled
    other = act.run("-p", "docker: {image: other}", "submit", "--dry-run", "true")
    assert other.json["package_sha256"] == raw and "; not compiled, as the last package was: 'a initc'" in other.err
    act.write("src", "two")
    assert "1 changed: src; not compiled, as the last package was" in act.run("submit", "true").err
    assert act.run("submit", "--last-package", "--json", "true").json["package"] not in (raw, compiled)
    act.write("bad")
    act.fail("initc", status=1, match="cannot compile in the image 'registry/image:1': docker ended with status 3")
    assert not [p for p in act.scratch.rglob("compile-*")]


def test_initc_does_nothing_else(act):
    act.write("compile.aml.sh", "")
    act.fail("initc", status=2, match="has no 'docker.image' to compile in; 'a init' leaves that to the nodes")
    with_image(act).with_name("docker.away").touch()
    act.fail("initic", status=2, match="docker does not answer: Cannot connect",
             env={"PATH": f"{act.scratch}/bin:/bin"})
    act.fail("initc", status=2, match="neither docker nor podman is here", env={"PATH": str(act.programs)})
    (act.project / "compile.aml.sh").unlink()
    act.fail("initc", status=2, match="nothing to compile")
    assert not list(act.store.rglob("*.zip"))


def test_local_runs_here_and_gives_the_status(act):
    act.write("say.sh", 'echo "out $1"; exit 5')
    result = act.run("local", "sh", "say.sh", "two words", status=5)
    assert result.out == "out two words\n"
    assert act.run("local", "true").status == 0
    act.run("local", "/no-such-command", status=127)
    act.run("local", status=125)


def test_local_interrupted_aborts_the_run(act):
    saves = "trap 'echo saved; exit 1' TERM; echo ready; while :; do sleep 0.1; done"
    process = act.start("local", "-n", "1", "bash", "-c", saves)
    assert process.stdout.readline() == b"ready\n"
    run = act.run("q", "--json").json["runs"][0]["id"]
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert out == b"saved\n", "what it says at its end is shown as well"
    assert f"run {run} was interrupted".encode() in err and b"ended with status" not in err, err
    assert act.state(run) == "Canceled"


def test_local_interrupted_twice_kills_the_run(act):
    stubborn = "trap '' TERM INT; echo ready; while :; do sleep 0.1; done"
    process = act.start("local", "-n", "1", "bash", "-c", stubborn, env={"ACT_ABORT_GRACE": "1000"})
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    said = next(line for line in process.stderr if b"Ctrl-C" in line)
    assert said == b"act: the run is asked to end; Ctrl-C again kills it\n"
    act.until(lambda: process.send_signal(signal.SIGINT) or process.poll() is not None, "it is killed")
    out, err = process.communicate()
    assert process.returncode == 130 and b"act: the run is killed\n" in err, err
    assert [run["state"] for run in act.run("q", "--json").json["runs"]] == ["Canceled"]


# ---- several at once, and kill -9


def test_two_at_once_on_one_ledger(act):
    act.run("init")
    starts = [act.start("submit", "true") if i % 2 else act.start("q", "--json") for i in range(16)]
    ids = set()
    for i, process in enumerate(starts):
        out, err = process.communicate()
        assert process.returncode == 0, err
        if i % 2:
            ids.add(out.decode().strip())
        else:
            json.loads(out)
    assert len(ids) == 8
    for run in ids:
        act.run("wait", run)
    assert {r["id"]: r["state"] for r in act.run("q", "--json").json["runs"]} == dict.fromkeys(ids, "Completed")


def supervisor_of(act, run):
    """The process ids of the run's agent, the oldest first."""
    pids = [pid for pid, words in act.processes().items() if b"act-node" in words[0]]
    return sorted(pids)


@pytest.mark.smoke
def test_supervisor_killed(act):
    run = act.submit("sleep", "300", before=("-n", "1"))
    act.until_state(run, "Running")
    os.kill(supervisor_of(act, run)[0], signal.SIGKILL)
    act.until_state(run, "Failed")
    assert "lost" in act.info(run)["reason"]
    shown = act.run("q", run).out
    assert "lost" in shown and "elapsed" not in shown, "nobody saw its end"
    assert act.run("q").out.splitlines()[1].split("  sleep 300")[0].endswith("  -"), "nor does the table count on"
    act.run("wait", run, status=None)
    act.run("abort", run, status=None)
    again = act.run("resubmit", run).out.strip()
    act.until_state(again, "Running")
    act.run("abort", again)
    act.until(lambda: not act.processes(), "no process of a lost run stays for ever", timeout=300)


def test_machine_that_rebooted(act):
    """Everything gone at once, state files as they were."""
    run = act.submit("sleep", "300", before=("-n", "1"))
    act.until_state(run, "Running")
    act.until(lambda: not act.clean_up(), "all killed")
    assert act.state(run) == "Failed"
    assert "lost" in act.info(run)["reason"]
    assert act.finish("true", before=("-n", os.cpu_count())), "its slots are free again"


def words_of(pid):
    """None: there is no such process any more."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1] or None
    except OSError:
        return None


@pytest.fixture
def daemon(act):
    """daemon(command, n=1): a run whose ranks start a process with another parent, session and environment, and then do
    what the command says. Returns the run and the daemons' process ids, once they run."""
    script = act.write("daemon.sh", "(setsid env -i sh -c 'trap \"\" TERM; echo $$ > $0.new; mv $0.new $0; "
                                    "exec sleep 54321' $1 &)\n")
    started = []

    def submit(command, n=1):
        files = [act.scratch / f"daemon-{rank}" for rank in range(n)]
        run = act.submit("sh", "-c", f"sh {script.name} {act.scratch}/daemon-$RANK; {command}", before=("-n", n))
        pids = [int(act.until(lambda path=path: path.exists() and path.read_text(), f"{path} is there"))
                for path in files]
        started.extend(pids)
        act.until(lambda: all(words_of(pid) == [b"sleep", b"54321"] for pid in pids), "the daemons run")
        return run, pids
    yield submit
    for pid in started:
        if words_of(pid) == [b"sleep", b"54321"]:
            os.kill(pid, signal.SIGKILL)


def cgroup_of(act, run, pid):
    """The folder of the run's cgroup that a process is in; the test is skipped where users may make none, or the kernel
    starts no process in one."""
    group = re.search(r"^0::(.*)$", pathlib.Path(f"/proc/{pid}/cgroup").read_text(), re.M)
    mount = re.search(r"^\S+ \S+ \S+ / (\S+) .* - cgroup2 ", pathlib.Path("/proc/self/mountinfo").read_text(), re.M)
    if not group or not mount or not group[1].endswith(f"/act-{run}"):
        act.run("abort", run)
        pytest.skip("a run has no cgroup here")
    return pathlib.Path(mount[1] + group[1])


@pytest.mark.parametrize("ranks", [1, 2])
def test_daemons_end_with_their_run(act, daemon, ranks):
    if ranks > os.cpu_count():
        pytest.skip("this machine has one processor: no two ranks")
    run, pids = daemon("until [ -e go ]; do sleep 0.1; done", n=ranks)
    there = pathlib.Path(f"/proc/{pids[0]}/cgroup").read_text()
    (act.run_dir(run) / "code/go").touch()
    act.run("wait", run)
    assert [pid for pid in pids if words_of(pid)] == []
    if f"act-{run}" in there:
        assert not (act.run_dir(run) / "cgroup").exists(), "it is removed"


def test_daemons_end_with_an_abort(act, daemon):
    run, (pid,) = daemon("exec sleep 300")
    act.run("abort", run)
    assert words_of(pid) is None


def test_daemons_of_a_run_whose_agents_are_killed(act, daemon):
    """Nobody is left who knows of them, but the cgroup."""
    run, (pid,) = daemon("exec sleep 300")
    cgroup = cgroup_of(act, run, pid)
    supervisor = int((act.run_dir(run) / "supervisor.lock").read_text())
    for sig in (signal.SIGSTOP, signal.SIGKILL):  # none has time to end the others; a parent's end would wake them
        for agent in sorted(supervisor_of(act, run), key=supervisor.__eq__):
            with contextlib.suppress(ProcessLookupError):  # some end with their parents
                os.kill(agent, sig)
    act.until(lambda: not act.processes(), "all that the agents protect is gone")
    assert words_of(pid), "the daemon is not"
    assert cgroup.is_dir()
    assert act.state(run) == "Failed"
    assert "lost" in act.info(run)["reason"]
    assert words_of(pid) is None
    assert not cgroup.exists() and not (act.run_dir(run) / "cgroup").exists()


@pytest.mark.parametrize("seed", range(6))
def test_client_killed_while_it_submits(act, seed):
    """Either the run is known and goes on, or it does not exist; never something in between."""
    act.write("say.sh", "echo ran")
    act.run("init")
    delay = random.Random(seed).uniform(0, 0.25)
    client = act.start("submit", "sh", "say.sh", start_new_session=True)
    time.sleep(delay)
    client.kill()
    out = client.communicate()[0].decode().strip()
    runs = {r["id"]: r["state"] for r in act.run("q", "--json").json["runs"]}
    if out:
        assert out in runs
    for run in runs:
        act.until_state(run, "Completed", "Failed", "Canceled")
        if act.state(run) == "Completed":
            assert act.lines(run) == ["ran"]
        else:
            assert act.info(run)["reason"]
    assert act.lines(act.finish("sh", "say.sh")) == ["ran"], "the next one works"


@pytest.mark.parametrize("seed", range(4))
def test_anything_killed_at_random_points(act, seed):
    """After any number of kills, q says what is the case."""
    rng = random.Random(100 + seed)
    act.write("step.sh", "for i in $(seq 20); do echo step $i; sleep 0.05; done")
    run = act.submit("sh", "step.sh", before=("-n", str(rng.choice([1, min(2, os.cpu_count())]))))
    time.sleep(rng.uniform(0, 1.0))
    for pid in rng.sample(sorted(act.processes()), k=min(1, len(act.processes()))):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    state = act.until_state(run, "Completed", "Failed", "Canceled")
    if state == "Completed":
        assert act.lines(run)[-1] == "step 20"
    else:
        info = act.info(run)
        assert info["reason"] or info["exit_status"], info
    act.until(lambda: not act.processes(), "nothing is left behind", timeout=300)


# ---- the ledger itself


def states(result):
    return {r["id"]: r["state"] for r in result.json["runs"]}


def garbage(ledger):
    ledger.write_bytes(b"this is not a database at all, but long enough to look like a file" * 100)


def truncated(ledger):
    os.truncate(ledger, ledger.stat().st_size // 2)


def emptied(ledger):
    os.truncate(ledger, 0)


def of_something_else(ledger):
    ledger.unlink()
    with contextlib.closing(sqlite3.connect(ledger)) as db:
        db.execute("create table runs (name text)")
        db.execute("pragma user_version = 1")
        db.commit()


@pytest.mark.parametrize("damage", [garbage, truncated, emptied, of_something_else, os.unlink])
def test_lost_ledger_is_made_anew(act, damage):
    """From the folders of the runs; what it was is kept."""
    done = act.finish("sh", "-c", "echo hello; exit 3", status=3)
    running = act.submit("sleep", "300", before=("-n", "1"))
    act.until_state(running, "Running")
    ledger = act.home / "ledger.db"
    damage(ledger)
    bad = ledger.read_bytes() if ledger.exists() else b""
    first = act.run("q", "--json")
    assert states(first) == {done: "Failed", running: "Running"}
    assert "warning: " in first.err and "new one" in first.err
    aside = list(act.home.glob("ledger.db.damaged-*"))
    assert [p.read_bytes() for p in aside] == ([bad] if bad else [])
    assert not aside or str(aside[0]) in first.err
    assert "ledger" not in act.run("q").err
    act.run("wait", done, status=3)
    assert "hello" in act.run("logs", done[-8:]).out
    act.run("abort", running)
    assert states(act.run("q", "--json")) == {done: "Failed", running: "Canceled"}
    act.fail("q", "no-such-run", status=3)


def test_submit_with_a_damaged_ledger(act):
    """There is a new one by then, so the run is written down."""
    done = act.finish("true", before=("-n", "1"))
    garbage(act.home / "ledger.db")
    run = act.finish("true", before=("-n", "1"))
    assert states(act.run("q", "--json")) == {done: "Completed", run: "Completed"}


def test_damaged_row_is_one_row(act):
    good, bad = act.finish("true", before=("-n", "1")), act.finish("true", before=("-n", "1"))
    with contextlib.closing(sqlite3.connect(act.home / "ledger.db")) as db:
        db.execute("update runs set spec = '{', status = 'x', created_unix_s = 'long ago' where id = ?", [bad])
        db.execute("insert into runs (id, cluster, platform, experiment, project, state, created_unix_s, num_gpu,"
                   " command, found, spec) select '', cluster, platform, experiment, project, state, 0, 0, '', 0, ''"
                   " from runs limit 1")
        db.commit()
    for words in (("q",), ("q", "--json")):
        result = act.run(*words)
        assert good in result.out and bad in result.out
        assert "a row of the ledger is damaged" in result.err
    assert bad in result.err, "what is shown of it is said to be a part"
    act.run("wait", good)
    act.fail("q", bad, status=None, match=bad)


def test_runs_that_the_ledger_lacks_are_taken_from_the_cluster(act):
    runs = [act.finish("sh", "-c", f"exit {n}", status=n, before=("-n", "1")) for n in (0, 3)]
    with contextlib.closing(sqlite3.connect(act.home / "ledger.db", isolation_level=None)) as db:
        db.execute("delete from runs where id = ?", (runs[1],))
    assert states(act.run("q", "--json")) == {runs[0]: "Completed"}
    result = act.run("q", "--rebuild", "--json")
    assert states(result) == {runs[0]: "Completed", runs[1]: "Failed"}, result
    assert result.err.startswith("1 run of cluster"), result
    assert act.run("q", "--rebuild").err.startswith("0 runs of cluster")
    act.fail("q", "--rebuild", runs[0], status=2, match="is about all runs")
    (act.run_dir(runs[1]) / "run.json").write_text("garbage")
    with contextlib.closing(sqlite3.connect(act.home / "ledger.db", isolation_level=None)) as db:
        db.execute("delete from runs where id = ?", (runs[1],))
    act.fail("q", "--rebuild", status=8, match="1 of 2 runs could not be taken")


def locked(act):
    """Another process holds the ledger and does not go on."""
    db = sqlite3.connect(act.home / "ledger.db", isolation_level=None)
    db.execute("begin exclusive")
    return contextlib.closing(db)


def not_to_be_written(act):
    """As on a full disk or a read-only file system, also for root: no file may grow."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    return {"preexec_fn": limit}


def test_ledger_that_cannot_be_written(act):
    """What is known is shown, with one warning; nothing is submitted."""
    done = act.submit("sh", "-c", "echo hello; exit 3", before=("-n", "1"))
    act.until(lambda: (act.run_dir(done) / "status.json").exists() and not act.processes(), "it has ended")
    full = not_to_be_written(act)
    for words, status in ((("q", "--json"), 0), (("wait", done), 3), (("logs", done), 0)):
        result = act.run(*words, status=status, **full)
        assert result.err.count("warning: ") == 1 and "ledger" in result.err, result
        if words[0] == "q":
            assert states(result) == {done: "Failed"}
        if words[0] == "logs":
            assert "hello" in result.out
    act.fail("submit", "true", status=None, **full)
    assert states(act.run("q", "--json")) == {done: "Failed"}


def test_ledger_that_stays_locked(act):
    """Each of these waits for as long as its patience lasts, all at the same time."""
    done = act.finish("sh", "-c", "exit 3", status=3)
    with locked(act), concurrent.futures.ThreadPoolExecutor() as pool:
        shown = pool.submit(act.run, "q", "--json")
        others = [pool.submit(act.run, "wait", done, status=3),
                  pool.submit(act.fail, "submit", "true", status=5, match="locked")]
        result = shown.result()
        assert states(result) == {done: "Failed"} and result.err.count("warning: ") == 1
        assert result.err.startswith(f"waiting for the ledger '{act.home}/ledger.db', which another process keeps "
                                     f"locked"), result
        for other in others:
            other.result()
    assert states(act.run("q", "--json")) == {done: "Failed"}


@pytest.mark.parametrize("name", ["ledger.db", "ledger.db-journal"])
def test_ledger_that_is_no_file(act, name):
    """A pipe would never answer."""
    done = act.finish("sh", "-c", "exit 3", status=3)
    (act.home / name).unlink(missing_ok=True)
    os.mkfifo(act.home / name)
    result = act.run("q", "--json", timeout=300)
    assert states(result) == {done: "Failed"}, result
    assert f"'{act.home}/{name}' is not a regular file; move it away" in result.err, result
    act.fail("submit", "true", status=4, match="is not a regular file", timeout=300)


def test_a_thousand_runs(act):
    run = act.finish("true", before=("-n", "1"))
    db = sqlite3.connect(act.home / "ledger.db")
    assert db.execute("pragma journal_mode").fetchone()[0] == "delete"
    columns = [row[1] for row in db.execute("pragma table_info(runs)")]
    row = dict(zip(columns, db.execute("select * from runs").fetchone()))
    assert row["id"] == run
    for i in range(999):
        values = {**row, "id": f"exp_{1600000000 + i}_{i:08x}"}
        db.execute(f"insert into runs ({','.join(columns)}) values ({','.join('?' * len(columns))})",
                   [values[c] for c in columns])
    db.commit()
    db.close()
    shown = act.run("q", "--json", "--max", "0").json
    assert len(shown["runs"]) == shown["total"] == 1000
    newest = act.run("q", "--json", "--max", "7").json
    assert newest["runs"] == shown["runs"][:7] and newest["total"] == 1000
    assert "30 of 1000 runs" in act.run("q").err


@pytest.mark.parametrize("procs", [1, 2])
def test_abort_of_a_run_whose_folder_was_removed(act, procs, two_ranks):
    run = act.submit("sh", "-c", "setsid sleep 300 & echo up; exec sleep 300", before=("-n", str(procs)))
    logs = act.run_dir(run) / "user_logs"
    act.until(lambda: sum("up" in log.read_text() for log in logs.glob("*")) == procs, "the ranks are up")
    shutil.rmtree(act.run_dir(run), ignore_errors=True)
    info = act.info(run)
    assert info["state"] == "Running" and "folder was removed" in info["reason"], info
    act.run("abort", run)
    act.until(lambda: not act.processes(), "no process is left")
    assert act.info(run)["state"] != "Running"


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_nobody_else_sees_what_is_in_acts_own_folder(act, umask):
    shutil.rmtree(act.home, ignore_errors=True)
    before = os.umask(umask)
    try:
        run = act.finish("sh", "-c", "echo x > output/x")
    finally:
        os.umask(before)
    assert [p for p in (act.home, act.run_dir(run)) if p.stat().st_mode & 0o777 != 0o700] == []
    act.home.chmod(0o777)
    act.run("q")
    assert act.home.stat().st_mode & 0o777 == 0o700


# ---- several runs, and a cluster that is not there


def test_verbs_of_several_runs(act):
    """Every name is looked up first; what exists is done, what does not is named."""
    runs = [act.submit("sleep", "1000", before=("-n", "1")) for _ in range(2)]
    result = act.run("abort", runs[0], "nosuch", runs[1], runs[0][-8:], "other", status=8)
    assert re.findall(r"act: no run '(\w+)'", result.err) == ["nosuch", "other"]
    assert [act.state(run) for run in runs] == ["Canceled"] * 2
    assert result.err.count(f"{runs[0]}  Canceled") == 1, "two names of one run"
    result = act.run("q", "--json", "nosuch", runs[1], status=8)
    assert [run["id"] for run in result.json["runs"]] == [runs[1]]
    act.fail("resubmit", runs[0], "nosuch", status=3, match="no run 'nosuch'.*nothing was done")
    act.fail("resubmit", "nosuch", status=3, match="no run 'nosuch'; 'a q' lists the runs$")
    assert len(act.run("q", "--json").json["runs"]) == 2
    again = act.run("resubmit", *runs).out.split()
    assert len(again) == 2
    act.run("abort", *again)


def test_a_cluster_that_is_not_there(act):
    """What certainly was not submitted has failed at once; what may have been can be forgotten."""
    ssh = act.write("ssh", "#!/bin/sh\necho 'ssh: Could not resolve hostname gone: Name or service not known' "
                           ">&2\nexit 255\n")
    ssh.chmod(0o755)
    act.env["ACT_SSH"] = str(ssh)
    act.cluster("lab", extra={"platform": "slurm", "gpu_per_node": 1, "slurm": {"login": "me@gone"}})
    message = act.fail("-c", "lab", "-n", "1", "submit", "true", status=5, match="Could not resolve hostname")
    assert "will tell" not in message
    row, = act.run("q", "--json").json["runs"]
    assert row["state"] == "Failed" and "Could not resolve hostname gone" in row["reason"]
    with sqlite3.connect(act.home / "ledger.db") as ledger:  # as if it had been submitted when the cluster was there
        ledger.execute("update runs set state = 'Running', status = null")
    act.fail("abort", row["id"], status=5, match=f"if its cluster is gone for good: a abort --forget {row['id']}")
    assert "would forget" in act.run("abort", "--forget", "--dry-run", row["id"]).err
    assert "forgotten here" in act.run("abort", "--forget", row["id"]).err
    row, = act.run("q", "--json").json["runs"]
    assert row["state"] == "Canceled" and "forgotten" in row["reason"]
    act.fail("abort", "--forget", "nosuch", status=3, match="no run 'nosuch'")


def test_what_can_be_asked_is_not_forgotten(act):
    run = act.submit("sleep", "300", before=("-n", "1"))
    act.fail("abort", "--forget", run, status=2, match=f"its cluster answers, and 'a abort {run}' ends it")
    act.run("abort", run)
    before = act.info(run)
    assert before["state"] == "Canceled"
    for words, said in ((("--forget",), f"{run}  Canceled: it had ended already, so nothing was changed\n"),
                        (("--forget", "--dry-run"), f"would not forget {run}: it has ended (Canceled)\n"),
                        (("--dry-run",), f"would not abort {run}: it has ended (Canceled)\n")):
        assert act.run("abort", *words, run).err == said
    assert act.run("abort", "--forget", "--json", run).json["runs"] == [
        {"id": run, "state": "Canceled", "had_ended": True}]
    assert act.info(run)["reason"] == before["reason"]


def test_batch_parameters_are_decoded(act):
    """As the original's queries did: 'python src/....py -bp BASE64' is YAML."""
    text = "param:\n  base_lr: 0.02\n  net: e2e_faster_rcnn\ntype: pipeline_train\n"
    act.write("src/pipeline.py", "")
    run = act.finish("python3", "src/pipeline.py", "-bp", base64.b64encode(text.encode()).decode(), before=("-n", "1"))
    shown = act.run("q", run).out
    assert "param\n" in shown and "  net: e2e_faster_rcnn\n" in shown, shown
    row, = act.run("q", "--json", run).json["runs"]
    assert row["param"] == text.rstrip()
    plain = act.finish("true", before=("-n", "1"))
    assert act.run("q", "--json", plain).json["runs"][0]["param"] is None


# ---- several runs


def test_several_runs_are_compared(act):
    """What they have in common is said once; the logs of all are here then."""
    good = act.finish("--tag", "lr=0.1", "--", "echo", "fine", before=("-n", 1))
    bad = act.finish("--tag", "lr=0.2", "--", "sh", "-c", "echo \"ModuleNotFoundError: No module named 'x'\"; exit 3",
                     before=("-n", 1), status=3)
    text = act.run("q", good, bad).out
    common, table = text.split("\n\n")
    assert "cluster   aml\n" in common and "nodes     1\n" in common and "status" not in common
    head, first, second = table.splitlines()
    columns = head.split()
    assert columns[:2] == ["ID", "STATUS"] and {"CAUSE", "EXIT", "TAGS", "COMMAND"} <= set(columns)
    assert "CLUSTER" not in columns
    assert first.startswith(good) and "Completed" in first and "lr=0.1" in first
    assert second.startswith(bad) and "Failed" in second and "module_missing" in second and " 3 " in second
    for run in good, bad:
        assert (act.project / f"assets/{run}/user_logs/std_log_process_0.txt").exists()


def test_of_several_runs_one_is_unknown(act):
    run = act.finish("echo", "fine", before=("-n", 1))
    result = act.run("q", run, "nosuchrun", status=8)
    assert f"id        {run}\n" in result.out and "no run 'nosuchrun'" in result.err


def test_the_logs_of_many_ranks_are_a_few_lines(act):
    """What one came for stays visible; programs get every path."""
    run = act.finish("echo", "done", before=("-n", "1"))
    logs = act.run_dir(run)
    for rank in range(1, 512):
        (logs / f"user_logs/std_log_process_{rank}.txt").write_text("done\n")
    for node in range(64):
        (logs / f"system_logs/prepare_n{node}.txt").write_text("ready\n")
    (logs / "system_logs/odd.txt").write_text("x\n")
    lines = act.run("q", run).out.splitlines()
    listed = [line.strip() for line in lines[lines.index("log files:") + 1:] if line.startswith("  ")]
    assert len(listed) < 25, listed
    folder = f"assets/{run}"
    for shown in (f"{folder}/user_logs/std_log_process_0.txt", f"{folder}/system_logs/odd.txt",
                  f"{folder}/user_logs/std_log_process_*.txt  (512 files)",
                  f"{folder}/system_logs/prepare_n*.txt  (64 files)"):
        assert any(line.endswith(shown) for line in listed), (shown, listed)
    paths = act.run("q", "--json", run).json["runs"][0]["logs"]
    assert len([path for path in paths if "std_log_process_" in path]) == 512
    for name in range(40):
        (logs / f"system_logs/{'x' * (name + 1)}.txt").write_text("x\n")
    shown = act.run("q", "--refresh", run).out
    assert re.search(r"^  and [0-9]+ more: --json lists all$", shown, re.M), shown


def test_logs_of_a_run_that_has_none(act):
    """Nothing is not a log: whoever reads it must hear that there is none."""
    run = act.finish("echo", "fine", before=("-n", 1))
    shutil.rmtree(act.home / "runs" / run / "user_logs")
    act.fail("logs", "--all", run, status=3, match=f"run '{run}' is Completed and has no log of a rank")
    act.fail("logs", run, status=3, match="has no log 'user_logs/std_log_process_0.txt'")


def test_a_project_that_was_moved_is_not_made_again(act):
    """Else its data would be looked for there, and code would be packed there."""
    old, new = act.scratch / "moved", act.scratch / "there"
    old.mkdir()
    (old / "say.sh").write_text("echo moved\n")
    run = act.run("-n", 1, "submit", "sh", "say.sh", cwd=old).out.strip()
    act.run("wait", run, cwd=old)
    old.rename(new)
    result = act.run("q", run, cwd=new)
    assert result.out.startswith("moved\n") and f"cannot be kept in '{old}/assets': No such file" in result.err
    act.fail("d", f"{run}:", cwd=new, status=3, match="AML_LOG_FOLDER names another folder")
    assert not old.exists()


def test_parse_names_what_is_missing(act):
    act.fail("parse", "assets/nowhere", status=3, match="cannot read the folder of logs 'assets/nowhere': No such file")
    act.fail("parse", "nowhere", status=3, match="no run 'nowhere'.*nor is there a folder of logs 'nowhere'")
    act.write("log.txt", "x")
    act.fail("parse", "./log.txt", status=2, match="'./log.txt' is not a folder: 'a parse' takes a run, or a folder")
