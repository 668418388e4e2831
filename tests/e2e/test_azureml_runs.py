"""Many runs on Azure Machine Learning: how few requests tell of them, and what a run history can answer that is not
what one hoped for: then the jobs of the workspace tell."""
import threading
import time

import pytest

from test_azureml import requests_of, submit

NO_RETRY = {"ACT_MAX_RETRIES": "0"}
QUERY, BATCH = "runs:query", "/batchrundata"


def known(act, azureml, count, experiment="exp"):
    """Runs of the ledger that are, for all that it knows, running."""
    names = azureml.tell("seed", count=count, status="Running", experiment=experiment, prefix=experiment + "-seeded")
    act.run("q", experiment + "-seeded", status=2)  # which could be any of them: all are in the ledger now
    return names


def end(azureml, names, status="Completed", **more):
    for run in names:
        azureml.tell("job", id=run, set={"status": status, "ended": 1000 * time.time(), **more})


def table(act, azureml, *words, **options):
    """The runs of the table by their ids, the requests for it as "<method> <last part of the path>", and its words."""
    result, asked = requests_of(azureml, act, *(words or ("q", "--max", "0")), "--json", **options)
    kinds = [f"{r['method']} {r['url'].split('?')[0].rsplit('/', 1)[1]}" for r in asked]
    return {r["id"]: r for r in result.json["runs"]}, kinds, result.err


def refuse(*kinds, status=400, json=None, **answer):
    """The requests of these kinds are refused from now on."""
    body = json if json is not None else {"error": {"code": "UserError", "message": "The request is not understood."}}
    return [{"match": kind, "times": 10000, "answer": {"status": status, "json": body, **answer}} for kind in kinds]


# ---- how much is asked


def test_runs_of_other_experiments(act, azureml):
    names = known(act, azureml, 150, "another") + known(act, azureml, 50, "third")
    end(azureml, names, "Failed", error={"code": "UserError", "message": "It broke"})
    runs, asked, _ = table(act, azureml)
    assert {runs[n]["state"] for n in names} == {"Failed"} and all("It broke" in runs[n]["reason"] for n in names)
    assert asked == ["POST runs:query"] + 2 * ["POST batchrundata"]
    assert table(act, azureml)[1] == ["POST runs:query"], "they have ended"


def test_clusters_of_one_service(act, azureml):
    """A command has one connection to a service, however many clusters are on it."""
    known(act, azureml, 2)
    folder = act.project / "aux_data/aml"
    (folder / "twin.yaml").write_text((folder / "aml.yaml").read_text())
    azureml.tell("seed", count=2, status="Running", experiment="twin", prefix="twin-seeded")
    act.run("-c", "twin", "q", "twin-seeded", status=2)
    result, asked = requests_of(azureml, act, "q", "--json", "--max", "0")
    assert {r["cluster"] for r in result.json["runs"]} == {"aml", "twin"}
    assert len(asked) > 2 and len({(r["server"], r["connection"]) for r in asked}) == len({r["server"] for r in asked})


def test_active_runs(act, azureml):
    names = known(act, azureml, 201, "another")
    runs, asked, _ = table(act, azureml)
    assert {runs[n]["state"] for n in names} == {"Running"}
    assert len(asked) == 1 + 3, asked


def test_runs_that_are_gone(act, azureml):
    """What the history does not have is not asked for one by one, but for what is so new that it may lack it."""
    names = known(act, azureml, 60)
    azureml.tell("reset")
    runs, asked, _ = table(act, azureml)
    assert not {runs[n]["state"] for n in names} & {"Running", "Completed"}
    assert asked.count("POST batchrundata") == 1
    assert asked.count("GET details") <= 10 and len(asked) <= 3 + 2 * 10, asked  # 3: the token is no longer good


def test_filters_are_the_services(act, azureml):
    """Only what is wanted is asked for, and a maximum ends the pages."""
    azureml.tell("seed", count=500)
    running = azureml.tell("seed", count=120, status="Running", prefix="busy")
    waiting = azureml.tell("seed", count=3, status="Preparing", prefix="waiting")
    failed = azureml.tell("seed", count=2, status="Failed", prefix="broken")
    for verb, names, pages in (("qr", running, 2), ("qq", waiting, 1), ("qf", failed, 1)):
        runs, asked, _ = table(act, azureml, verb)
        assert sorted(runs) == sorted(names) and asked == pages * ["POST runs:query"], (verb, asked)
    runs, asked, _ = table(act, azureml, "qr", "--max", "7")
    assert len(runs) == 7 and len(asked) == 1
    assert len(table(act, azureml, "q")[0]) == 30 and len(table(act, azureml, "q", "--max", "250")[1]) == 3


def test_filters_of_attached_kubernetes(act, azureml):
    """There, the service's word is not the last one."""
    azureml.cluster(platform="itp", compute_target="itpgpu")
    queued = azureml.tell("seed", count=2, status="Queued")
    azureml.tell("job", id=queued[0], set={"tags": {"amlk8s status": "running"}})
    assert list(table(act, azureml, "qr")[0]) == [queued[0]]
    assert list(table(act, azureml, "qq")[0]) == [queued[1]]


def test_table_of_very_many_runs(act, azureml):
    azureml.tell("seed", count=1200)
    runs, asked, _ = table(act, azureml)
    assert len(runs) == 1200 and len(asked) == 12
    assert len(table(act, azureml, "q")[1]) == 1


# ---- runs of others


def theirs(azureml, name, experiment="exp", **properties):
    """A run of another tool, which has a name but no id of ACT's."""
    run, = azureml.tell("seed", count=1, experiment=experiment)
    azureml.tell("job", id=run, set={"properties": {
        "displayName": name, "command": "echo theirs", "properties": {}, "tags": {}, **properties}})
    return run


def test_names_of_other_tools(act, azureml):
    """The name that their pages show is enough, or a piece of it."""
    apple, pear = theirs(azureml, "brave_apple_x1y2z3"), theirs(azureml, "brave_pear_a4b5c6")
    for piece in ("brave_apple_x1y2z3", "brave_ap", "apple_x1", apple):
        assert act.run("q", piece, "--json").json["runs"][0]["id"] == apple, piece
    message = act.fail("q", "brave", status=2, match="any of 2 runs")
    assert f"{apple} (brave_apple_x1y2z3)" in message and f"{pear} (brave_pear_a4b5c6)" in message
    act.fail("q", "brave_x", status=3, match="no run 'brave_x'")

    elsewhere = azureml.tell("adopt", name="sharp_pipe_0k1m2n", experiment="another")
    assert act.run("q", "sharp_pipe_0k1m2n", "--json").json["runs"][0]["id"] == elsewhere
    listed = azureml.tell("adopt", name="quiet_leaf_p9q8r7", experiment="exp")
    assert act.run("q", "quiet_le", "--json").json["runs"][0]["id"] == listed


def test_each_run_has_its_own_cluster(act, azureml):
    """Clusters of one workspace share its runs: each is shown with the cluster where it ran."""
    azureml.cluster("vc")
    there = act.submit("echo", "there", before=("-c", "vc", "-n", "1"))
    mine, other = submit(act, "echo", "here"), theirs(azureml, "theirs")
    far = theirs(azureml, "far", computeId="/subscriptions/s/x/computes/elsewhere")
    default = act.info(mine)["cluster"]
    for words in (("q",), ("-c", "vc", "q")):
        runs = {r["id"]: r["cluster"] for r in act.run(*words, "--json").json["runs"]}
        assert (runs[there], runs[mine]) == ("vc", default), words
        assert runs[far] == "elsewhere" and runs[other] == (default if words == ("q",) else "vc"), words


def test_summary_counts_own_runs_alone(act, azureml, scratch):
    """A workspace is everybody's, and so are its computes."""
    theirs(azureml, "theirs", status="Running")
    theirs(azureml, "far", status="Queued", computeId="/subscriptions/s/x/computes/elsewhere")
    azureml.tell("seed", count=3, status="Running", prefix="busy")
    assert act.run("s", "--json").json["own_runs"] == {"running": 0, "queued": 0}
    mine = submit(act, "sh", "-c", f"until test -e {scratch}/end; do sleep 0.1; done")
    act.until_state(mine, "Running")
    act.run("q", "--rebuild")
    assert "your runs: 1 running, 0 queued" in act.run("s").out
    (scratch / "end").touch()
    act.run("wait", mine)


# ---- a run history that answers otherwise

SHAPES = [
    refuse(QUERY, status=400), refuse(QUERY, status=405, json={}), refuse(QUERY, status=404, json={}),
    refuse(QUERY, status=500), refuse(QUERY, status=200, json={"value": None}), refuse(QUERY, status=200, json=[]),
    refuse(QUERY, status=200, json={"runs": []}),
    refuse(QUERY, status=200, json={"value": [], "nextLink": "https://x/"}),
    refuse(QUERY, status=200, json={"value": [{"runId": "exp_1700000000_0123abcd", "status": "Running"}],
                                    "continuationToken": "for ever"}),
]


@pytest.mark.parametrize("faults", SHAPES)
def test_query_that_is_refused(act, azureml, faults):
    """The jobs of the workspace tell which runs there are, without times; the rest comes from each run's own record."""
    other = azureml.tell("seed", count=2, experiment="another")
    names = azureml.tell("seed", count=60)
    azureml.faults(*faults)
    runs, asked, said = table(act, azureml, env=NO_RETRY)
    assert set(names) <= set(runs) and not set(other) & set(runs)
    assert {runs[n]["state"] for n in names} == {"Completed"}
    assert "listed by the jobs of the workspace" in said and "GET jobs" in asked
    assert len(asked) <= 4, asked


def test_filter_that_is_refused(act, azureml):
    azureml.tell("seed", count=5)
    busy = azureml.tell("seed", count=5, status="Running", prefix="busy")
    azureml.faults({"match": QUERY, "answer": {"status": 400,
                                               "json": {"error": {"code": "UserError", "message": "filter"}}}})
    runs, asked, said = table(act, azureml, "qr")
    assert sorted(runs) == sorted(busy) and asked == 2 * ["POST runs:query"] and not said


def test_filter_that_means_nothing_there(act, azureml):
    """Nothing comes back, though there is something: the newest runs are looked at without a filter."""
    busy = azureml.tell("seed", count=5, status="Running", prefix="busy")
    azureml.faults({"match": QUERY, "answer": {"status": 200, "json": {"value": [], "continuationToken": None}}})
    assert sorted(table(act, azureml, "qr")[0]) == sorted(busy)
    assert table(act, azureml, "qf")[:2] == ({}, 2 * ["POST runs:query"])


def test_filter_that_is_ignored(act, azureml):
    """Too much comes back: it is looked at here."""
    azureml.tell("settings", ignoreFilters=True)
    azureml.tell("seed", count=150)
    busy = azureml.tell("seed", count=5, status="Running", prefix="busy")
    runs, asked, _ = table(act, azureml, "qr")
    assert sorted(runs) == sorted(busy) and asked == 2 * ["POST runs:query"]


@pytest.mark.parametrize("status, answer", [
    (400, None), (404, {}), (405, {}), (500, {}), (200, {}), (200, {"successfulResults": None}), (200, [])])
def test_batch_that_is_refused(act, azureml, status, answer):
    """The pages of the experiment tell; then the jobs."""
    names = known(act, azureml, 40) + known(act, azureml, 40, "another")
    azureml.tell("settings", maxTop=20)
    azureml.faults(*refuse(BATCH, status=status, json=answer))
    end(azureml, names[:3])
    runs, asked, _ = table(act, azureml, env=NO_RETRY)
    assert [runs[n]["state"] for n in names[:4]] == 3 * ["Completed"] + ["Running"]
    assert all(runs[n]["ended"] for n in names[:3])
    assert len(asked) <= 14, asked


def test_run_history_that_is_away(act, azureml):
    """Jobs tell what goes on. How a run ended they do not: that is not taken for known."""
    names = known(act, azureml, 10)
    end(azureml, names[:1], "Failed", error={"code": "UserError", "message": "It broke"})
    azureml.faults({"match": "^api ", "times": 10000, "answer": {"status": 503, "body": ""}})
    runs, asked, _ = table(act, azureml, env=NO_RETRY)
    assert [runs[n]["state"] for n in names[:2]] == ["Unknown", "Running"]
    assert "the job is Failed" in runs[names[0]]["reason"]
    azureml.faults()
    runs, _, _ = table(act, azureml)
    assert runs[names[0]]["state"] == "Failed" and "It broke" in runs[names[0]]["reason"]


def test_cluster_that_cannot_be_asked(act, azureml):
    """The ledger is shown, with a warning."""
    names = known(act, azureml, 5)
    azureml.faults({"match": "^(api|arm) ", "times": 10000, "answer": {"status": 503, "body": ""}})
    runs, _, said = table(act, azureml, env=NO_RETRY)
    assert set(runs) == set(names)
    assert "only runs of this machine are shown" in said and "may be old" in said
    azureml.faults({"match": "^(api|arm) ", "times": 10000,
                    "forbidden": "Microsoft.MachineLearningServices/workspaces/read"})
    runs, asked, said = table(act, azureml)
    assert set(runs) == set(names) and "workspaces/read" in said and len(asked) == 2


# ---- a run that begins again


def test_following_a_preempted_run(act, azureml, scratch):
    """The service begins it anew under the same names: the log that is shorter then is read from its start."""
    gate, marker = scratch / "gate", scratch / "marker"
    run = submit(act, "sh", "-c", f"[ -e {marker} ] && echo second || echo the first attempt says more; "
                                  f"touch {marker}; "
                 f"while ! [ -e {gate} ]; do sleep 0.1; done; echo ended")
    follower = act.start("logs", "-f", run)
    watchdog = threading.Timer(100, follower.kill)
    watchdog.start()
    waiting = act.start("wait", run)
    try:
        assert follower.stdout.readline() == b"the first attempt says more\n"
        azureml.tell("hold", status="Queued")
        azureml.tell("job", id=run, preempt=True)
        act.until_state(run, "Queued")
        azureml.tell("release")
        assert follower.stdout.readline() == b"second\n"
        gate.touch()
        assert follower.stdout.read() == b"ended\n" and follower.wait() == 0
        assert waiting.wait() == 0
        assert b"begins anew" in follower.stderr.read()
    finally:
        watchdog.cancel()
        follower.kill()
        follower.communicate()
        waiting.kill()
        waiting.communicate()
