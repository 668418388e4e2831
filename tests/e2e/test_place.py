"""Folders of mode path: the nodes have them already."""
import json

import pytest


@pytest.fixture
def place(act):
    """A folder outside of the project, which is the mapped folder 'data'."""
    folder = act.scratch / "nfs/data"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/a.txt").write_text("already there")
    configure(act, folder)
    return folder


def configure(act, folder, **keys):
    config = json.loads(act.cluster("aml").read_text())
    config["config_param"]["data_folder"] = {"path": str(folder), "mode": "path", **keys}
    (act.project / "aux_data/aml/aml.yaml").write_text(json.dumps(config))


def test_a_run_uses_it_where_it_is(act, place):
    act.write("data/own.txt", "of the project")
    run = act.finish("sh", "-c", "cat data/sub/a.txt; readlink data; echo new >data/b.txt")
    assert act.lines(run) == ["already there" + str(place)]
    assert (place / "b.txt").read_text() == "new\n"


def test_the_data_verbs_work_on_it(act, place):
    assert act.run("ls", "data").out.split() == ["sub/"]
    act.write("data/c.txt", "from here")
    act.run("u", "data/c.txt")
    assert (place / "c.txt").read_text() == "from here"
    act.run("d", "data/sub")
    assert (act.project / "data/sub/a.txt").read_text() == "already there"
    act.run("rm", "-y", "data/c.txt")
    assert not (place / "c.txt").exists()
    act.run("rm", "-y", "data")
    assert place.exists() and act.run("ls", "data").out == ""
    shown = act.run("config", "show", "--json").json
    assert str(place) in json.dumps(shown)


def test_a_command_on_this_machine_uses_it_where_it_is(act, place):
    """Without one of the project."""
    command = ("sh", "-c", "readlink data; echo new >data/b.txt")
    assert act.run("local", *command).out == f"{place}\n" and (place / "b.txt").read_text() == "new\n"
    act.write("data/own.txt")
    assert act.run("local", *command).out == f"{act.project}/data\n"
    assert act.run("local", "--mount", *command).out == f"{place}\n"
    (act.project / "data/own.txt").unlink()
    (act.project / "data/b.txt").unlink()
    (act.project / "data").rmdir()
    configure(act, "/nowhere/data")
    act.fail("local", "true", status=125, match="is not there.*; a folder 'data' in the project would be used instead")


def test_one_that_is_not_there(act, place):
    configure(act, "/nowhere/data")
    for verb in (["ls", "data"], ["u", "data"]):
        act.write("data/x.txt", "x")
        act.fail(*verb, status=3, match="this machine does not see it")
    act.fail("submit", "true", status=3, match="'/nowhere/data' is not there, which the folder 'data' is")
    assert act.run("q", "--json").json["runs"] == []
    configure(act, place / "sub/a.txt")
    act.fail("submit", "true", status=7, match="is a file")
    act.fail("ls", "data", status=None, match="Not a directory")
    configure(act, "/nowhere/data")
    assert "'/nowhere/data' is not there, which the folder 'data' is" in act.run("doctor", status=None).out


def test_what_cannot_be_one(act, place):
    configure(act, "nfs/data")
    act.fail("ls", "data", status=7, match="an absolute one")
    configure(act, "/./")
    act.fail("ls", "data", status=7, match="below ./.")
    configure(act, place, datastore_name="x")
    act.fail("ls", "data", status=7, match="has no meaning")
    for name in ("aml", "k8s"):
        config = {"platform": name, "config_param": {"data_folder": {"path": "/x", "mode": "path"}}}
        act.write("aux_data/aml/other.yaml", json.dumps(config))
        act.fail("-c", "other", "ls", "data", status=7, match="only the platforms")


def test_a_project_of_others_is_asked_about(act, place):
    act.env.pop("ACT_TRUSTED_PROJECTS")
    act.fail("ls", "data", status=4, match="reaches out of its folder")
    assert f"'data' is '{place}', here and on the nodes" in repr(act.run("trust", "-y"))
    act.run("ls", "data")
