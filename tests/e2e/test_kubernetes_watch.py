"""Runs on Kubernetes that are watched, from pods that do not run: how often the server is asked, and for what."""
import collections
import contextlib
import os
import re
import sqlite3
import time

import pytest

import tmux
from act_tool import SANITIZER
from kubernetes_fixtures import ENDED, RUNNING

ALWAYS = 1 << 30
WHILE_S = 3  # in which a poller would have asked several times


def kind_of(request):
    """"watch pods", "list jobs", "get pods/x/log"."""
    path = re.sub(r".*/namespaces/default/", "", request["url"].split("?")[0])
    if "watch=1" in request["url"]:
        return f"watch {path}"
    return f"list {path}" if request["method"] == "GET" and "/" not in path else f"{request['method'].lower()} {path}"


def asked(still):
    return collections.Counter(map(kind_of, still.requests()))


def asks_nothing(still):
    """What is asked while nothing changes."""
    still.forget()
    time.sleep(WHILE_S)
    return dict(asked(still))


def versions(still):
    """Those that watches began from."""
    return [int(re.search(r"resourceVersion=(\d+)", request["url"])[1]) for request in still.requests()
            if "watch=1" in request["url"]]


def submit(act, still):
    """A run whose pod is there and waits, and the pod's name."""
    run = act.submit("true", before=("-c", "k8s"))
    job = next(job["metadata"]["name"] for job in still.objects("Job")
               if job["metadata"]["annotations"]["act/run"] == run)
    return run, act.until(lambda: still.pods_of(job), "the pod is made")[0]["metadata"]["name"]


def set_pod(still, name, status):
    still.tell("patch", kind="Pod", name=name, patch={"status": status})


def until_said(act, process, words):
    """What a program has said until it says these words."""
    os.set_blocking(process.stderr.fileno(), False)
    said = []

    def is_said():
        said.append(process.stderr.read() or b"")
        return words in b"".join(said)

    act.until(is_said, lambda: f"{words!r} is said, not {said}")
    os.set_blocking(process.stderr.fileno(), True)
    return b"".join(said).decode()


def watches(act, still, *lists):
    """Waits until these are watched."""
    act.until(lambda: all(asked(still)[f"watch {name}"] for name in lists), "it watches")


def end(process, status=0):
    """Its output, once it has ended."""
    out, err = process.communicate()
    assert process.returncode == status and not SANITIZER.search(err), (process.returncode, out, err)
    return out.decode()


# ---- nothing while nothing changes, and every change at once


def test_a_wait_asks_nothing_while_nothing_changes(act, still):
    run, pod = submit(act, still)
    waiter = act.start("wait", run)
    watches(act, still, "jobs", "pods", "events")
    assert asks_nothing(still) == {}
    set_pod(still, pod, RUNNING)
    act.until_state(run, "Running")
    assert asks_nothing(still) == {}
    set_pod(still, pod, ENDED)
    end(waiter)
    assert asked(still) == {"list pods": 1}  # as they are when the Job has ended
    assert act.state(run) == "Completed"


def test_events_of_what_waits_only(act, still):
    """Of the Job while it has no pod, then of the pod; never those of the whole namespace."""
    run, pod = submit(act, still)
    waiter = act.start("wait", run)
    watches(act, still, "jobs", "pods", "events")
    uid = still.objects("Pod")[0]["metadata"]["uid"]
    asked_for = {re.search(r"fieldSelector=([^&]*)", request["url"])[1] for request in still.requests()
                 if "/events?" in request["url"]}
    assert asked_for <= {f"involvedObject.uid%3D{uid}",
                         f"involvedObject.uid%3D{still.objects('Job')[0]['metadata']['uid']}"}, asked_for
    set_pod(still, pod, ENDED)
    end(waiter)


def state_in_ledger(act, run):
    """As the one who watches has written it, without asking the cluster."""
    with contextlib.closing(sqlite3.connect(act.home / "ledger.db")) as ledger:
        return ledger.execute("SELECT state FROM runs WHERE id = ?", (run,)).fetchone()[0]


def test_a_run_that_somebody_deletes(act, still):
    run, pod = submit(act, still)
    waiter = act.start("wait", run)
    watches(act, still, "jobs", "pods")
    set_pod(still, pod, RUNNING)
    act.until(lambda: state_in_ledger(act, run) == "Running", "it saw that")
    still.tell("delete", kind="Job", name=still.objects("Job")[0]["metadata"]["name"])
    waiter.communicate()
    assert act.state(run) == "Canceled"


def test_many_runs(act, still):
    runs = [submit(act, still) for _ in range(3)]
    still.forget()
    waiter = act.start("wait", *(run for run, _ in runs))
    watches(act, still, "jobs", "pods")
    for run, pod in runs:
        set_pod(still, pod, RUNNING)
    assert act.until(lambda: asks_nothing(still) == {}, "nothing is asked")
    for run, pod in runs[:2]:
        set_pod(still, pod, ENDED)
        until_said(act, waiter, run.encode())
    assert act.until(lambda: asks_nothing(still) == {}, "nothing is asked")
    set_pod(still, runs[2][1], ENDED)
    end(waiter)
    # the Job and its pods are listed and watched; its pods once more, where it is seen to have ended before they are
    assert sum(asked(still).values()) <= 5, asked(still)


def test_a_followed_log_asks_nothing_while_nothing_changes(act, still):
    run, pod = submit(act, still)
    follower = act.start("logs", "-f", run)
    watches(act, still, "jobs", "pods", "events")
    assert asks_nothing(still) == {}
    set_pod(still, pod, RUNNING)
    still.tell("log", name=pod, text="[0] one\n")
    act.until(lambda: any("follow=true" in request["url"] for request in still.requests()), "the log is followed")
    assert asks_nothing(still) == {}
    still.tell("log", name=pod, text="[0] two\n", end=True)
    set_pod(still, pod, ENDED)
    assert end(follower) == "one\ntwo\n"


@pytest.mark.skipif(tmux.MISSING is not None, reason=str(tmux.MISSING))
@pytest.mark.parametrize("words", [("top",), ("q", "--watch")], ids=" ".join)
def test_a_table_that_is_watched(act, still, terminal, words):
    """A table asks for the load of the cluster now and then, but not for its runs."""
    run, pod = submit(act, still)
    screen = terminal("-c", "k8s", *words, "-n" if words[0] == "top" else "--interval", "1s", columns=160)
    screen.until(rf"{run[-8:]}\s+Queued")
    watches(act, still, "jobs", "pods", "events")
    assert asks_nothing(still) == {}
    set_pod(still, pod, RUNNING)
    screen.until(rf"{run[-8:]}\s+Running")
    set_pod(still, pod, ENDED)
    screen.until(rf"{run[-8:]}\s+Completed")
    assert not asked(still)["list jobs"], asked(still)
    assert act.until(lambda: asks_nothing(still) == {}, "nothing is asked any more")


def test_a_watch_goes_on_where_it_was(act, still):
    """Bookmarks tell how far a watch has come, though it saw nothing."""
    still.tell("settings", bookmarkMs=20)
    run, pod = submit(act, still)
    waiter = act.start("wait", run)
    watches(act, still, "jobs", "pods")
    began = versions(still)
    other = still.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}})
    made = int(other["metadata"]["resourceVersion"])
    assert made > max(began)
    time.sleep(1)  # bookmarks come
    still.forget()
    still.tell("cut")
    act.until(lambda: asked(still)["watch pods"] and asked(still)["watch jobs"], "it watches again")
    assert not asked(still)["list pods"] and not asked(still)["list jobs"]
    assert min(versions(still)) >= made
    set_pod(still, pod, ENDED)
    end(waiter)


def test_a_version_that_is_forgotten(act, still):
    """Without bookmarks a watch may be too far behind: it begins anew with a list, and misses nothing."""
    still.tell("settings", bookmarkMs=0)
    run, pod = submit(act, still)
    waiter = act.start("wait", run)
    watches(act, still, "jobs", "pods")
    still.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}})
    still.tell("compact")
    still.forget()
    still.tell("cut")
    act.until(lambda: min(asked(still)["watch pods"], asked(still)["watch jobs"]) >= 2, "it watches again")
    assert asked(still)["list pods"] == asked(still)["list jobs"] == 1
    set_pod(still, pod, ENDED)
    end(waiter)


# ---- bad servers

ERROR = '{"type": "ERROR", "object": {"kind": "Status", "code": %d, "message": "%s"}}\n'
BAD = {
    "ends at once": ({"body": ""}, "the server ends each watch at once"),
    "410 as an event": ({"body": ERROR % (410, "too old")}, "the server ends the watch: too old"),
    "410 as a status": ({"status": 410, "json": {"kind": "Status", "code": 410, "reason": "Expired",
                                                 "message": "too old"}}, "HTTP 410: too old"),
    "an error": ({"body": ERROR % (500, "etcd is away")}, "the server ends the watch: etcd is away"),
    "half a line": ({"body": '{"type": "MODIF'}, "the server ends each watch at once"),
    "no JSON": ({"body": "<html>\n"}, "watch:"),
    "another JSON": ({"body": "[]\n"}, "the server does not send a watch"),
    "no object": ({"body": '{"type": "ADDED"}\n'}, "the server does not send a watch"),
    "an endless line": ({"body": "x", "fill": 9 << 20}, "the server sends a line of more than 8 MiB"),
    "a wrong event": ({"body": '{"type": "ADDED", "object": {"metadata": 7}}\n'}, "the server does not send a watch"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_server_that_cannot_watch(act, still, bad):
    """It is asked ever more rarely, which is said once, and what happens is seen nevertheless."""
    answer, words = BAD[bad]
    run, pod = submit(act, still)
    still.faults({"match": "watch=1", "times": ALWAYS, "answer": {"status": 200, **answer}})
    still.forget()
    waiter = act.start("wait", run)
    said = until_said(act, waiter, b"\n")
    assert re.search(rf"warning: the cluster cannot be watched, so it is asked again and again, in the end every 10 s: "
                     rf".*{re.escape(words)}", said), said
    counts = asked(still)
    for what in ("jobs", "pods", "events"):  # four failures in a row are told of
        assert counts[f"watch {what}"] <= 6 and counts[f"list {what}"] <= 7, counts
    set_pod(still, pod, ENDED)
    out, err = waiter.communicate()
    assert waiter.returncode == 0 and b"warning" not in err, err
    assert act.state(run) == "Completed"


def test_who_may_list_and_not_watch(act, still):
    run, pod = submit(act, still)
    still.forbid({"verb": "watch", "resource": "*"})
    still.forget()
    waiter = act.start("wait", run)
    said = until_said(act, waiter, b"\n")
    assert 'cannot watch resource "' in said and "in the end every 10 s ('a doctor' names" in said, said
    act.until(lambda: asked(still)["list pods"] >= 4, "it lists again and again")
    assert all(asked(still)[f"watch {what}"] == 1 for what in ("jobs", "pods", "events")), asked(still)
    set_pod(still, pod, ENDED)
    out, err = waiter.communicate()
    assert waiter.returncode == 0 and b"warning" not in err, err
    found = {c["what"]: c for c in act.run("-c", "k8s", "doctor", "--json", status=None).json["checks"]}
    assert found["rights"]["ok"] and found["watch"]["ok"]
    assert found["watch"]["text"].startswith("you may not: watch jobs, watch pods, watch events; ")


def test_who_may_get_a_job_and_not_list_any(act, still):
    run, pod = submit(act, still)
    still.forbid({"verb": "list", "resource": "jobs"}, {"verb": "watch", "resource": "jobs"},
                 {"verb": "*", "resource": "events"})
    waiter = act.start("wait", run)
    watches(act, still, "pods")
    set_pod(still, pod, ENDED)
    end(waiter)
    assert act.state(run) == "Completed"


def test_a_server_that_is_away_for_a_while(act, still):
    run, pod = submit(act, still)
    waiter = act.start("wait", run)
    watches(act, still, "jobs", "pods")
    still.away()
    until_said(act, waiter, b"the cluster does not answer")
    still.back()
    set_pod(still, pod, ENDED)
    end(waiter)
    assert act.state(run) == "Completed"
