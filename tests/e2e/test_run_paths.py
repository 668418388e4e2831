"""The logs of a run as paths, RUN:PATH: ls, cat, du and d read them on every platform; nothing changes them."""
import json
import os
import re

import pytest

SCRIPT = "echo one; echo two; echo rank $RANK"
LOG = "user_logs/std_log_process_0.txt"


def names(act, *words):
    return act.run("ls", *words).out.splitlines()


def copies(act, run):
    """What is in assets/, without the files that are about the copies."""
    folder = act.project / f"assets/{run}"
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.name[0] != ".")


def check(act, run):
    """What is the same on all platforms, of a run that has ended and whose logs nobody has fetched yet."""
    check_looking(act, run, run[-8:])
    check_fetching(act, run, run[-8:])


def check_looking(act, run, piece):
    listed = names(act, "-r", f"{piece}:")
    assert LOG in listed and listed == sorted(listed)
    folders = {name.split("/")[0] + "/" for name in listed if "/" in name}
    assert names(act, f"{piece}:") == sorted(folders | {name for name in listed if "/" not in name})
    assert names(act, f"{run}:user_logs") == names(act, f"{run}:user_logs/") != []
    assert names(act, f"{run}:{LOG}") == [os.path.basename(LOG)]
    text = act.run("cat", f"{piece}:{LOG}").out
    assert text.startswith("one\ntwo\nrank 0\n")
    assert act.run("cat", "--first", 4, f"{piece}:{LOG}").out == "one\n"
    assert act.run("cat", "--last", 4, f"{piece}:{LOG}").out == text[-4:]
    rows = [json.loads(line) for line in act.run("ls", "--json", "-r", f"{piece}:").out.splitlines()]
    assert [row["path"] for row in rows] == [f"{piece}:{name}" for name in listed]
    assert (LOG, len(text)) in [(row["name"], row["size"]) for row in rows]
    total = act.run("du", "--bytes", "-d", 1, f"{piece}:").out.splitlines()
    assert total[-1].split()[1:] == [str(len(listed)), f"{piece}:"]
    assert f"{piece}:user_logs" in [line.split()[2] for line in total]
    act.fail("cat", f"{piece}:user_logs", status=2, match="is a folder")
    act.fail("cat", f"{piece}:user_logs/none", status=3, match=f"cannot find '{piece}:user_logs/none'")
    act.fail("ls", f"{piece}:user_log", status=3, match=f"names that begin like it: '{piece}:user_logs/'")
    assert not (act.project / "assets").exists()


def test_words_that_are_nearly_a_run(act):
    run = act.finish("echo", "hello", before=("-n", "1"))
    piece = run[-8:]
    act.fail("ls", piece, status=3, match=f"whose logs 'a ls {piece}:' lists")
    assert act.run("ls", f"{piece}:", f"{piece}:").out.startswith(f"{piece}:\n")
    assert "?" not in act.run("ls", "-l", f"{piece}:").out
    refused = act.run("verify", f"{piece}:", status=None)
    assert refused.status != 0 and "compared" not in refused.err


def check_fetching(act, run, piece):
    listed = names(act, "-r", f"{piece}:")
    plan = act.run("d", "--dry-run", f"{piece}:{LOG}")
    assert re.fullmatch(rf"copy .* {re.escape(piece)}:{re.escape(LOG)}  \(new\)\n", plan.out)
    assert not (act.project / "assets").exists()
    assert act.run("d", "--json", f"{piece}:{LOG}").json["objects"] == 1
    assert copies(act, run) == [LOG]
    assert (act.project / f"assets/{run}/{LOG}").read_text().startswith("one\ntwo\n")
    act.run("d", "--exclude", os.path.basename(LOG), f"{piece}:user_logs")
    user = [name for name in listed if name.startswith("user_logs/")]
    assert copies(act, run) == user
    rest = act.run("d", "--json", f"{run}:").json
    assert rest["objects"] < len(listed) == rest["objects"] + rest["same"]
    assert copies(act, run) == listed
    again = act.run("d", "--json", f"{run}:")
    assert again.json["same"] == len(listed) and f"assets/{run}'" in again.err
    act.fail("d", f"{run}:nothing", status=3, match="has no log 'nothing'")


@pytest.mark.smoke
def test_local(act, two_ranks):
    run = act.finish("sh", "-c", SCRIPT, before=("-n", 2))
    check(act, run)
    assert (act.project / f"assets/{run}/.complete").exists(), "as 'a q' leaves it"
    assert act.run("cat", f"{run}:user_logs/std_log_process_1.txt").out == "one\ntwo\nrank 1\n"


def test_slurm(lab):
    run = lab.shell(SCRIPT, n=2)
    lab.wait(run, "Completed", status=0)
    check(lab.act, run)
    (lab.act.home / "ledger.db").unlink()
    assert lab.act.run("-c", "lab", "cat", f"{run[-8:]}:{LOG}").out == "one\ntwo\nrank 0\n", "found on the cluster"


def test_azureml(act, azureml):
    azureml.cluster(azureml={"settle_seconds": 0})
    run = act.finish("sh", "-c", SCRIPT)
    check(act, run)
    act.until(lambda: act.run("d", f"{run}:") and (act.project / f"assets/{run}/.complete").exists(), "all is here")
    azureml.forget()
    act.run("d", f"{run}:")
    assert azureml.requests() == [], "the copies answer, as with 'a q'"


def test_while_it_runs(act):
    run = act.submit("sh", "-c", "echo begin; while [ ! -e go ]; do sleep 0.1; done; echo end", before=("-n", 1))
    log = f"{run}:{LOG}"
    act.until(lambda: act.run("cat", log, status=None).out == "begin\n", "the log begins")
    act.run("d", log)
    path = act.project / f"assets/{run}/{LOG}"
    assert path.read_text() == "begin\n"
    (act.run_dir(run) / "code/go").touch()
    act.run("wait", run)
    assert " (size)" in act.run("d", "--dry-run", log).out
    act.run("d", log)
    assert path.read_text() == "begin\nend\n"


def test_run_without_logs_yet(act):
    running = act.submit("sleep", "300", before=("-n", os.cpu_count()))
    waiting = act.submit("true", before=("-n", os.cpu_count()))
    act.until_state(waiting, "Queued")
    assert all(name == "system_logs/" for name in names(act, f"{waiting}:"))
    act.fail("d", f"{waiting}:user_logs", status=3, match="has no log 'user_logs'")
    act.run("abort", waiting, running)


# ---- what a word means


def test_data_with_colons(act):
    act.write("data/a:b", "x")
    act.write("data/c:/d", "y")
    act.run("u", "data")
    assert names(act, "data") == ["a:b", "c:/"]
    assert act.run("cat", "data/a:b", "data/c:/d").out == "xy"
    assert act.run("cat", "a:b", "./c:/d", cwd=act.project / "data").out == "xy"
    assert '"path":"data/c:/d"' in act.run("ls", "--json", "data/c:").out.replace(" ", "")


def test_run_before_data(act):
    """In a mapped folder a word may name both."""
    run = act.finish("echo", "log", before=("-n", 1))
    piece = run[-8:]
    act.write(f"data/{piece}:user_logs", "data")
    act.run("u", "data")
    inside = act.project / "data"
    assert act.run("ls", f"{piece}:user_logs", cwd=inside).out == "std_log_process_0.txt\n"
    assert act.run("cat", f"./{piece}:user_logs", cwd=inside).out == "data"
    act.fail("rm", "-y", f"{piece}:user_logs", status=2, match=f"'./{piece}:user_logs' is the path", cwd=inside)
    act.fail("rm", "-y", f"{piece}:", status=2, match=f"'./{piece}:' is the path, '{run}:' the run", cwd=inside)
    act.run("rm", "-y", f"./{piece}:user_logs", cwd=inside)


def test_neither_run_nor_data(act):
    act.fail("ls", "nope:x", status=3, match="no run 'nope'.*'nope:x' is in no mapped folder")
    act.fail("d", "nope:", status=3, match="no run 'nope'.*in no mapped folder")
    act.finish("true", before=("-n", 1))
    act.finish("true", before=("-n", 1))
    act.fail("cat", "_:x", status=2, match="'_' could be any of 2 runs")


# ---- what is refused


def test_only_read(act):
    run = act.finish("true", before=("-n", 1))
    act.fail("rm", f"{run}:user_logs", status=2, match=f"a run is removed as a whole, by 'a rm {run}:'")
    for verb in ("upload", "verify", "url"):
        act.fail(verb, f"{run}:user_logs", status=2, match=f"are only read: .*, not by 'a {verb}'")
    assert names(act, f"{run}:user_logs") == ["std_log_process_0.txt"]


def test_limits_without_requests(act):
    run = act.finish("true", before=("-n", 1))
    for verb in ("cat", "d"):
        assert "--bwlimit is not used" in act.run(verb, "--bwlimit", "1M", f"{run}:{LOG}").err


@pytest.mark.parametrize("verb, option", [
    ("d", "--delete"), ("d", "--checksum"), ("d", "--overwrite"), ("d", "--part-size=8M"), ("d", "--no-sync"),
    ("d", "--param=num_gpu: 1"), ("ls", "--leftovers"), ("ls", "--param=num_gpu: 1"), ("du", "--param=num_gpu: 1"),
    ("cat", "--param=num_gpu: 1")])
def test_options_that_do_nothing(act, verb, option):
    run = act.finish("true", before=("-n", 1))
    name = option.split("=")[0]
    act.fail(verb, option, f"{run}:user_logs", status=2, match=f"takes no '{name}' for '{run}:user_logs'")
    act.run(verb, f"{run}:user_logs", status=2 if verb == "cat" else 0)


def test_completion(act):
    run = act.finish("true", before=("-n", 1))
    for verb in ("ls", "cat", "du", "d"):
        assert act.run("__complete", verb, run[:3]).out == f"{run}:\n"
    assert run not in act.run("__complete", "ls", "").out
    assert act.run("__complete", "rm", run[:3]).out == f"{run}:\n"
    assert act.run("__complete", "rm", f"{run}:").out == "", "a run is removed as a whole"
    assert act.run("__complete", "files", run[:3]).out == f"{run}\n"
    assert act.run("__complete", "files", "-d", "ou").out == "output\n"
    assert act.run("__complete", "verify", run[:3]).out == ""
