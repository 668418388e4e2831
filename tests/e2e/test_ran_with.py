"""What a run ran with: system_logs/environment.json, and what 'a diff', 'a report' and 'a why' make of it."""
import json
import re
import subprocess

import pytest

WAIT = "until grep -q python_version $ACT_RUN_CODE/../system_logs/environment.json 2>/dev/null; do sleep 0.1; done; "


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


@pytest.mark.usefixtures("two_ranks")
def test_one_rank_of_all_writes_it(act):
    """With the release of what started them."""
    run = act.finish("sh", "-c", f"{WAIT}echo went on", before=("-n", "2"))
    assert ran_with(act, run)["mpi"].startswith("Open MPI ")


def test_what_it_cannot_find_out_stops_nothing(act):
    """A Python that never says who it is, and ends with the run."""
    python = act.write("bin/python3", "#!/bin/sh\n[ \"$1\" = -I ] || exit 3\nsleep 1000\n")
    python.chmod(0o755)
    run = act.finish("sh", "-c", "until [ -s $ACT_RUN_CODE/../system_logs/environment.json ]; do sleep 0.1; done",
                     before=setup(env={"PATH": f"{python.parent}:/usr/bin:/bin"}))
    assert ran_with(act, run)["python"] == str(python) and "python_version" not in ran_with(act, run)


def test_a_failed_preparation_leaves_none(act):
    run = act.submit("true", before=setup(setup="exit 3"))
    act.run("wait", run, status=None)
    assert not (act.run_dir(run) / "system_logs/environment.json").exists()


@pytest.fixture
def two(act, venv):
    """Two runs in environments that differ in some packages, and then a repetition of the second one."""
    runs = [act.finish("sh", "-c", f"{WAIT}true", before=setup(venv=str(folder)))
            for folder in (venv("one", torch="2.1.0", numpy="1.26.4", tqdm="4"),
                           venv("two", torch="2.2.0", numpy="1.26.4", Wandb="0.16"))]
    again = act.run("resubmit", runs[1]).out.split()[-1]
    act.run("wait", again)
    return (*runs, again)


def test_a_diff_says_what_else_ran(act, two):
    one, second, again = two
    out = act.run("diff", one, second).out
    software = out[out.index("@@ software\n"):].splitlines()[1:]
    before, now = act.scratch / "one", act.scratch / "two"
    assert software == ["- packages.torch: 2.1.0", "+ packages.torch: 2.2.0", "- packages.tqdm: 4",
                        "+ packages.wandb: 0.16", f"- python: {before}/bin/python3", f"+ python: {now}/bin/python3",
                        f"- venv: {before}", f"+ venv: {now}"]
    differences = act.run("diff", one, second, "--json").json["differences"]
    assert {"part": "software", "name": "packages.torch", "from": "2.1.0", "to": "2.2.0",
            "lines": None} in differences
    assert "@@ software" not in act.run("diff", second, again).out, "it ran with the same"


def test_a_diff_says_nothing_of_what_is_not_known(act, two):
    one, second, _ = two
    path = act.run_dir(one) / "system_logs/environment.json"
    record = json.loads(path.read_text())
    for member in ("python_version", "packages"):
        del record[member]
    path.write_text(json.dumps(record))
    assert [d["name"] for d in act.run("diff", one, second, "--json").json["differences"] if d["part"] == "software"] \
        == ["python", "venv"]
    path.write_text("{ half")
    assert "@@ software" not in act.run("diff", one, second).out


def test_a_diff_of_many_packages_is_short(act, two):
    one, second, _ = two
    path = act.run_dir(one) / "system_logs/environment.json"
    record = json.loads(path.read_text())
    record["packages"] = [f"p{n}==1" for n in range(300)]
    path.write_text(json.dumps(record))
    out = act.run("diff", one, second).out
    assert out.count("\n- packages.p") == 99 and out.endswith("  and 205 more, which --json has\n")


def test_a_report_shows_it(act, two):
    _, second, again = two
    act.run("q", again)
    page = act.run("report", again).out
    page = re.sub(r"<script.*?</script>", "", page[page.index("<h2>Software</h2>"):], flags=re.DOTALL)
    page = re.sub(r"<[^>]*>", " ", page)
    assert re.search(r"packages\.wandb\s+0\.16", page)
    assert "What differs" not in page, "nothing of the other run is here"
    act.run("q", second)
    page = act.run("report", again).out
    assert re.search(rf"What differs from {second}\s*</h3>\s*<p>nothing", page[page.index("<h2>Software</h2>"):])


@pytest.mark.parametrize("missing, said", [
    ("torchaudio", "the environment has torchvision 0.17 and torch 2.2.0, not torchaudio"),
    ("torhc.nn", "the environment has torch 2.2.0, not torhc"),
    ("My_Tool", "my-tool 1 is there for .*/bin/python3: another Python ran, or its files are not whole"),
    ("nothing", None)])
def test_why_says_what_is_near(act, venv, missing, said):
    folder = venv("one", torch="2.2.0", torchvision="0.17", my_tool="1")
    run = act.finish("sh", "-c", f"{WAIT}echo \"ModuleNotFoundError: No module named '{missing}'\"; exit 1",
                     before=setup(venv=str(folder)), status=1)
    notes = act.run("why", run, "--json").json["notes"]
    assert len(notes) == (said is not None) and (said is None or re.fullmatch(said, notes[0])), notes
