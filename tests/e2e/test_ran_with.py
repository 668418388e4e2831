"""What a run ran with: system_logs/environment.json, and what 'a diff', 'a report' and 'a why' make of it."""
import json
import pathlib
import re
import subprocess
import sys

import pytest

WAIT = "until grep -q python_version $ACT_RUN_CODE/../system_logs/environment.json 2>/dev/null; do sleep 0.05; done; "


@pytest.fixture
def venv(act):
    """venv(**packages): a virtual environment that has these packages, as far as their names tell; its path."""
    def make(name, **packages):
        folder = act.scratch / name
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", folder], check=True)
        site, = folder.glob("lib/python3.*/site-packages")
        for package, version in packages.items():
            (site / f"{package}-{version}.dist-info").mkdir()
        return folder
    return make


def setup(**settings):
    """Options that give these keys."""
    return [word for key, value in settings.items() for word in ("-p", f"{key}: {json.dumps(value)}")]


def ran_with(act, run):
    """The record of a run."""
    return json.loads((act.run_dir(run) / "system_logs/environment.json").read_text())


@pytest.mark.smoke
def test_it_is_written_beside_the_command(act, venv):
    folder = venv("one", torch="2.2.0", My_Tool="1")
    run = act.finish("sh", "-c", f"{WAIT}echo went on", before=setup(venv=str(folder)))
    record = ran_with(act, run)
    assert record["packages"] == ["my-tool==1", "torch==2.2.0"]
    assert record["python"] == str(folder / "bin/python3") and record["venv"] == str(folder)
    assert re.fullmatch(r"3\.\d+\.\d+", record["python_version"])
    assert record["attempt"] == 1 and record["system"]
    assert "environment.json" in act.run("ls", f"{run}:system_logs/").out


def test_what_it_cannot_find_out_stops_nothing(act):
    """A Python that never says who it is, and ends with the run."""
    python = act.write("bin/python3", "#!/bin/sh\n[ \"$1\" = -I ] || exit 3\nsleep 1000\n")
    python.chmod(0o755)
    run = act.finish("sh", "-c", "until [ -s $ACT_RUN_CODE/../system_logs/environment.json ]; do sleep 0.05; done",
                     before=setup(env={"PATH": f"{python.parent}:/usr/bin:/bin"}))
    assert ran_with(act, run)["python"] == str(python) and "python_version" not in ran_with(act, run)


def test_a_failed_preparation_leaves_none(act):
    run = act.submit("true", before=setup(setup="exit 3"))
    act.run("wait", run, status=None)
    assert not (act.run_dir(run) / "system_logs/environment.json").exists()
