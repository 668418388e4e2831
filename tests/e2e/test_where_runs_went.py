"""A run is found where it went, whatever the cluster file is called, and wherever that leads today."""
import json
import shutil
import sqlite3

import pytest

import azureml_double
from test_azureml import submit, waits_for


@pytest.fixture(scope="module")
def other_server(azurite, tmp_path_factory):
    if azureml_double.missing():
        pytest.skip(azureml_double.missing())
    server = azureml_double.AzureML(azurite, tmp_path_factory.mktemp("other"), workspace="other")
    yield server
    server.stop()


@pytest.fixture
def other(other_server):
    """Another workspace."""
    other_server.tell("reset")
    yield other_server
    other_server.check()


def leads_to(server, workspace):
    """What a cluster file says to be in a workspace."""
    return {"aml_config": {"subscription_id": azureml_double.SUBSCRIPTION, "resource_group": "rg",
                           "workspace_name": workspace},
            "azureml": {"endpoint": server.links["arm"], "history_endpoint": server.links["api"]}}


def file_of(act, name="aml"):
    return act.project / f"aux_data/aml/{name}.yaml"


def lead(act, keys, name="aml"):
    """The cluster file leads there from now on; None takes a key away."""
    config = json.loads(file_of(act, name).read_text())
    for key, value in keys.items():
        config[key] = value
        if value is None:
            del config[key]
    file_of(act, name).write_text(json.dumps(config))


def elsewhere(act):
    return act.project / "conf/abc.yaml"


def move_away(act):
    """The only cluster file is one that AML_CONFIG_PATH names."""
    elsewhere(act).parent.mkdir()
    file_of(act).rename(elsewhere(act))
    return {"AML_CONFIG_PATH": "conf/abc.yaml"}


def ask_all(act, run, env=None, cwd=None):
    """Every verb that asks for a run which waits, is ended, and has ended."""
    def ask(*verb, status=0):
        done = act.run(*verb, env=env, cwd=cwd, status=status)
        assert "no cluster" not in done.err, done
        return done

    act.until(lambda: ask("q", run, "--json", "--no-logs").json["runs"][0]["state"] == "Running", "it to run")
    assert ask("q", "--json").json["runs"][0]["state"] == "Running"
    act.until(lambda: "begun" in ask("logs", run).out, "its log")
    ask("wait", "--timeout", "1s", run, status=125)
    assert ask("files", run).out
    assert ask("top", "--once").out.count(run[-8:]) == 1
    assert ask("abort", run).err.startswith(f"{run}  ") or run in ask("q", run).out
    act.until(lambda: ask("q", run, "--json", "--no-logs").json["runs"][0]["state"] == "Canceled", "it to end")
    ask("wait", run, status=143)
    ask("why", run)
    return ask


def begun(scratch):
    """A command that says so, and waits for ever."""
    return waits_for(scratch / "never")


@pytest.mark.parametrize("with_variable", [True, False])
def test_a_cluster_file_elsewhere(act, azureml, scratch, with_variable):
    env = move_away(act)
    run = submit(act, *begun(scratch), env=env)
    ask = ask_all(act, run, env=env if with_variable else None)
    again = ask("resubmit", run).out.split()[-1]
    ask("abort", again)
    assert act.info(again)["cluster"] == "abc"
    for name in (run, again):
        assert azureml.job(name)["status"] in ("CancelRequested", "Canceled")


def test_a_file_of_the_same_name_in_the_project(act, azureml, other, scratch):
    """It leads elsewhere, where there is no such job; the run's own file counts."""
    env = move_away(act)
    run = submit(act, *begun(scratch), env=env)
    shutil.copy(elsewhere(act), file_of(act, "abc"))
    lead(act, leads_to(other, "other"), "abc")
    ask = ask_all(act, run)
    again = ask("resubmit", run).out.split()[-1]
    ask("abort", again)
    assert azureml.job(again)
    assert not other.tell("jobs")


def test_said_on_the_command_line(act, azureml, other, scratch):
    lead(act, leads_to(other, "other"))
    run = act.submit("-p", json.dumps(leads_to(azureml, "ws")), *begun(scratch))
    done = act.run("q", run)
    assert f"'{run}' went to workspace 'ws' of 'rg'" in done.err
    assert "cluster 'aml' leads elsewhere today, to workspace 'other' of 'rg'" in done.err
    ask = ask_all(act, run)
    done = ask("resubmit", run)
    again = done.out.split()[-1]
    assert f"the new run has the configuration that '{run}' wrote down" in done.err
    assert azureml.job(again)
    ask("abort", again)
    assert not other.tell("jobs")


def test_a_resubmit_goes_where_the_user_says(act, azureml, other, scratch):
    run = submit(act, *begun(scratch))
    act.run("abort", run)
    act.until_state(run, "Canceled")
    lead(act, leads_to(other, "other"))
    there = act.run("-c", "aml", "resubmit", run, env=other.login_env()).out.split()[-1]
    assert [job["name"] for job in azureml.tell("jobs")] == [run]
    assert other.job(there)
    act.run("abort", there, env=other.login_env())


def test_the_file_was_renamed(act, azureml, scratch):
    run = submit(act, *begun(scratch))
    file_of(act).rename(file_of(act, "new"))
    ask = ask_all(act, run)
    done = ask("resubmit", run)
    assert "the cluster file of 'aml' is gone or leads elsewhere" in done.err
    ask("abort", done.out.split()[-1])
    assert act.run("-c", "new", "q", run).status == 0
    named = act.run("-c", "new", "resubmit", "-y", run)
    assert "gone" not in named.err
    act.run("abort", named.out.split()[-1])
    assert act.info(run)["cluster"] == "new"


def test_the_project_was_moved(act, azureml, scratch):
    run = submit(act, *begun(scratch))
    moved = act.project.rename(scratch / "moved")
    ask_all(act, run, cwd=moved)
    act.project = moved
    file_of(act).rename(file_of(act, "new"))
    act.fail("resubmit", run, status=None, match="cannot find the configuration|cannot enter")
    assert act.run("-c", "new", "logs", run).out
    again = act.run("-c", "new", "resubmit", run).out.split()[-1]
    act.run("abort", again)
    assert act.info(run)["project"] == str(moved)


def test_the_platform_of_the_file_was_changed(act, azureml, scratch):
    run = submit(act, *begun(scratch))
    lead(act, {"platform": "local", "aml_config": None, "azureml": None})
    act.age_runs()
    assert "leads elsewhere today, to this machine" in act.run("q", run).err
    ask_all(act, run)
    assert "never submitted" not in act.run("q", run).out


def test_it_is_asked_where_the_user_says(act, azureml, other, scratch):
    """A cluster that does not have it says so, and ends nothing."""
    run = submit(act, *begun(scratch))
    lead(act, {})
    shutil.copy(file_of(act), file_of(act, "there"))
    lead(act, leads_to(other, "other"), "there")
    act.until_state(run, "Running")
    for verb in ("q", "logs", "wait", "abort", "why", "nodes", "ssh", "files", "report"):
        act.fail("-c", "there", verb, run, status=(3, 125), env=other.login_env(),
                 match=f"cluster 'there' has no run '{run}'; without -c")
    act.fail("-c", "there", "rm", "-y", f"{run}:", status=3, env=other.login_env(), match="cluster 'there' has no run")
    act.fail("-c", "local", "abort", run, status=3, match="has no run .* platform 'aml', in workspace 'ws'")
    assert act.state(run) == "Running"
    assert azureml.job(run)["status"] == "Running"
    assert act.info(run)["cluster"] == "aml"
    act.run("abort", run)


def test_a_ledger_of_an_older_program(act, azureml, other, scratch):
    """It has no places, but what the runs were submitted with."""
    run = submit(act, *begun(scratch))
    path, = act.home.rglob("ledger.db")
    ledger = sqlite3.connect(path)
    with ledger:
        ledger.executescript(
            "CREATE TABLE old AS SELECT id, cluster, platform, experiment, project, state, created_unix_s, num_gpu,"
            " command, status, name, tags, found, json_remove(spec, '$.config.file') AS spec FROM runs;"
            "DROP TABLE runs; ALTER TABLE old RENAME TO runs; DROP TABLE notes; DROP TABLE bad_nodes;"
            "CREATE TABLE bad_nodes (cluster TEXT NOT NULL, node TEXT NOT NULL, class TEXT NOT NULL,"
            " run TEXT NOT NULL, unix_s INTEGER NOT NULL, forgotten INTEGER NOT NULL DEFAULT 0,"
            " PRIMARY KEY (cluster, node, run, unix_s)); PRAGMA user_version = 3")
    ledger.close()
    lead(act, leads_to(other, "other"))
    ask_all(act, run)


def test_a_run_of_this_machine_whose_file_is_one_of_a_service_today(act):
    run = act.submit("sleep", "100")
    file_of(act).write_text(json.dumps({"platform": "k8s"}))
    act.until_state(run, "Running")
    act.run("abort", run)
    assert act.state(run) == "Canceled"


@pytest.mark.usefixtures("azure")
def test_folders_of_a_run_whose_cluster_file_is_elsewhere(act):
    """What the nodes fetch of a folder follows from the run's own cluster file."""
    act.write("data/a.txt", "content")
    act.run("u", "data")
    shutil.rmtree(act.project / "data")
    config = json.loads(file_of(act).read_text())
    config["config_param"]["data_folder"]["mode"] = "download"
    file_of(act).write_text(json.dumps(config))
    env = move_away(act)
    run = act.submit("cat", "data/a.txt", env=env)
    assert act.run("wait", run).status == 0
    assert act.lines(run) == ["content"]


@pytest.mark.parametrize("row", [{"path": "{shared}", "mode": "path"}, {"path": "files/data", "mode": "download"}])
def test_what_a_run_wrote_down_is_a_whole_configuration(act, row):
    """Its cluster file is gone: the folders are mapped as they were, and only what was secret is lost."""
    shared = act.scratch / "shared"
    shared.mkdir()
    config = json.loads(file_of(act).read_text())
    account = {} if row["mode"] == "path" else {"azure_blob_config_file": "aux_data/configs/store.yaml"}
    config["config_param"]["data_folder"] = {**account, **row, "path": row["path"].format(shared=shared)}
    config |= {"env": {"PLAIN": "plain"}, "retry": 2, "zip_options": ["-x", "*.log"], "hang": "20m"}
    file_of(act).write_text(json.dumps(config))
    first = act.finish("sh", "-c", "ls -d data; echo $PLAIN", before=("-n", 1))
    file_of(act).unlink()
    again = act.run("resubmit", first)
    assert "wrote down" in again.err
    run = again.out.split()[-1]
    act.run("wait", run)
    assert act.lines(run) == act.lines(first) == ["data", "plain"]
    act.run("diff", first, run, status=None)
