"""ACT where something of it, or of its user's home, is missing or does not fit: one line says so, and what to do."""
import os
import shutil
import subprocess

import pytest


@pytest.fixture
def act_alone(act, scratch):
    """The program without its agent."""
    folder = scratch / "alone"
    folder.mkdir()
    shutil.copy(act.programs / "act", folder)
    (folder / "a").symlink_to("act")
    act.env["PATH"] = f"{folder}:/usr/bin:/bin"
    act.programs = folder
    return act


def agent(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_without_the_agent(act_alone):
    act = act_alone
    assert "'act-node' beside this one" in act.fail("submit", "true", status=3, match="install ACT again")
    assert "fail  agent: cannot find the program 'act-node'" in act.run("doctor", status=1).out
    assert act.run("q", "--json").json["runs"][0]["state"] == "Failed", "no run is waited for"


def test_agent_of_another_version_in_path(act_alone, scratch):
    act = act_alone
    agent(scratch / "old/act-node", "echo act-node 0.0.9")
    act.env["PATH"] += f":{scratch}/old"
    message = act.fail("submit", "true", status=7,
                       match="but says 'act-node 0.0.9'; install ACT again, all of one version")
    assert str(scratch / "old/act-node") in message
    assert "fail  agent: " in act.run("doctor", status=1).out


def test_agent_of_another_version_beside_the_program(act_alone, programs):
    """It does not know the form of the run that this program has written."""
    act = act_alone
    newer = f"sed -i 's/\"version\": *1/\"version\": 2/' {act.home}/runs/*/run.json"
    agent(act.programs / "act-node", f"{newer}; exec {programs}/act-node \"$@\"")
    run = act.submit("true", before=("-n", "1"))
    act.until(lambda: act.run("q", "--json").json["runs"][0]["state"] == "Failed", "it has ended")
    reason = act.run("wait", run, status=None).err
    assert "its agent ended before it began: " in reason and "has version 2, this program knows version 1" in reason
    assert "update ACT" in reason


def test_home_that_cannot_be_written(act, scratch):
    act.respect_modes()
    del act.env["ACT_HOME"]
    home = scratch / "home"
    home.chmod(0o555)
    shutil.rmtree(act.project / "aux_data")  # its store is in the home folder, too
    act.write("data/a", "a")
    way_out = "set ACT_HOME to a folder that can be written"
    try:
        for words in (["submit", "true"], ["init"], ["u", "data"], ["local", "true"]):
            message = act.fail(*words, status=None, match=way_out)
            assert message.count(way_out) == 1 and f"'{home}/." in message, message
        result = act.run("q")
        assert result.err.count("warning: ") == 1 and way_out in result.err, result
        act.run("init", env={"ACT_HOME": str(scratch / "elsewhere")})
    finally:
        home.chmod(0o755)
    act.run("init")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_home_on_a_read_only_file_system(act, scratch):
    """What was done before is still told."""
    run = act.finish("true", before=("-n", "1"))
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && shift && exec "$@"'
    inside = ("unshare", "--mount", "sh", "-c", script, str(act.home), "--")
    if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody mount")
    act.prefix = inside
    assert [(r["id"], r["state"]) for r in act.run("q", "--json").json["runs"]] == [(run, "Completed")]
    act.write("new.py", "1\n")
    message = act.fail("init", status=4, match="Read-only file system; set ACT_HOME to a folder that can be written")
    assert str(act.home) in message
