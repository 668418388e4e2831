"""What is printed on a terminal of 80 columns, with long names: in lines that fit, where nothing is cut that tells two
apart."""
import re


def lines(act, *words):
    text = act.on_terminal(*words, columns=80).decode().replace("\r", "")
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


def test_doctor_wraps_its_findings(act):
    act.cluster("x" * 60)
    shown = lines(act, "-c", "x" * 60, "doctor")
    assert all(len(line) <= 80 or " " not in line[6:] for line in shown), shown
    assert [line for line in shown if re.match(r"      \S", line)], shown
