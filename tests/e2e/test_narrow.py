"""What is printed on a terminal of 80 columns, with long names: in lines that fit, where nothing is cut that tells two
apart."""
import re


def lines(act, *words, columns=80):
    text = act.on_terminal(*words, columns=columns).decode().replace("\r", "")
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).splitlines()


def test_config_show_names_each_key(act):
    """Also where the part that differs comes last."""
    shown = lines(act, "config", "show")
    keys = [line.split()[0] for line in shown if not line.startswith((" ", "#"))]
    assert len(keys) == len(set(keys)) and "config_param.output_folder.azure_blob_config_file" in keys
    assert not [key for key in keys if "..." in key]
    assert all(len(line) <= 80 for line in shown if not line.startswith("# "))
    piped = act.run("config", "show").out
    assert set(keys) <= {line.split()[0] for line in piped.splitlines() if not line.startswith("#")}


def test_why_wraps_what_is_its_own(act):
    act.write("train.py", "raise RuntimeError('CUDA out of memory. Tried to allocate 20.00 GiB')")
    run = act.finish("python3", "train.py", status=1)
    shown = lines(act, "why", run)
    at = next(i for i, line in enumerate(shown) if line.startswith("why "))
    assert shown[at + 1].startswith(" " * 10) and shown[at + 1][10] != " "
    for line in shown[at:]:
        assert len(line) <= 80 or line.startswith("evidence "), line
    piped = act.run("why", run).out
    assert re.sub(r"\s+", " ", " ".join(shown[at:])).strip() in re.sub(r"\s+", " ", piped)


def test_why_in_40_columns(act):
    act.write("train.py", "import no_such_module")
    run = act.finish("python3", "train.py", status=1)
    shown = lines(act, "why", run, columns=40)
    assert " ".join(shown[:2]).endswith("failed first: exited with status 1") and len(shown[0]) <= 40
    own = [line for line in shown if not line.startswith("  ") or line.startswith(" " * 10)]
    assert all(len(line) <= 40 or " " not in line[10:].strip() for line in own), own


def test_runs_in_40_columns(act):
    """There is room for what tells runs apart: their names, or the commands of those that have none."""
    act.finish("sh", "-c", "echo some words; true")
    act.run("wait", act.run("submit", "--name", "first", "sh", "-c", "exit 3").out.strip(), status=3)
    for verb in ("q", "qf"):
        shown = lines(act, verb, columns=40)
        assert re.search(r"^\S+ +Failed .*first$", "\n".join(shown), re.MULTILINE), shown
        assert all(len(line) <= 40 for line in shown), shown
    assert any("Completed" in line and "some" in line for line in lines(act, "q", columns=40))


def test_what_a_du_says_in_40_columns(act):
    act.finish("true")
    shown = lines(act, "du", columns=40)
    assert all(len(line) <= 40 or line.startswith("    /") for line in shown), shown
    assert any(line.strip().startswith("/") for line in shown), shown


def test_help_in_40_columns(act):
    for words in (("help",), ("q", "--help"), ("cluster", "--help")):
        shown = lines(act, *words, columns=40)
        long = [line for line in shown if len(line) > 40 and not line.startswith("  a ")]  # an example is whole
        assert not long


def test_a_run_names_the_folder_of_its_logs_once(act):
    run = act.finish("sh", "-c", "echo said; exit 3", status=3)
    shown = lines(act, "q", run)
    at = shown.index(f"log files in {act.project}/assets/{run}:")
    assert "  user_logs/std_log_process_0.txt" in shown[at:]
    assert f"  {act.project}/assets/{run}/user_logs/std_log_process_0.txt" in act.run("q", run).out.splitlines()


def test_paths_are_whole(act):
    """Below their rows, where they do not fit beside them."""
    name = "x" * 24
    act.run("cluster", "add", name, "--kind", "local")
    file = next(own["file"] for own in act.run("cluster", "list", "--json").json["own"] if own["name"] == name)
    assert file in [line.strip() for line in lines(act, "cluster", "list")]
    run = act.finish("true")
    places = [line for line in act.run("files", run).out.splitlines() if " folder:" in line]
    assert places and all(place.split()[-1] in " ".join(lines(act, "files", run)) for place in places)


def test_a_note_does_not_follow_the_progress_in_its_line(act):
    """Where the copies of logs go is said when the first of them are there."""
    run = act.finish("true")
    shown = act.on_terminal("q", run, columns=80).decode()
    before = shown[:shown.index("logs of runs are copied to")]
    assert before.endswith(("\r\x1b[K", "\n")), before


def test_doctor_wraps_its_findings(act):
    act.cluster("x" * 60)
    shown = lines(act, "-c", "x" * 60, "doctor")
    assert all(len(line) <= 80 or " " not in line[6:] for line in shown), shown
    assert [line for line in shown if re.match(r"      \S", line)], shown
