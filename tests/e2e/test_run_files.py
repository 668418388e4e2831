"""What is left of a run, and what it has written: a rm RUN:, a files RUN, a cat -f RUN:PATH."""
import json

import pytest

from test_kubernetes import K8S
from test_many_runs import listed

LOG = "user_logs/std_log_process_0.txt"


def lines(result):
    return [json.loads(line) for line in result.out.splitlines()]


# ---- a rm RUN:


@pytest.mark.smoke
def test_rm_of_a_run(act):
    gone, stays = (act.finish("echo", "hello", before=("-n", "1")) for _ in range(2))
    act.info(gone)
    piece = gone[-8:]
    dry = lines(act.run("rm", "--dry-run", "--json", f"{piece}:"))
    assert dry[0]["run"] == gone and dry[0]["action"] == "delete" and dry[0]["size"] > 0 and dry[0]["copies"] is True
    assert dry[1]["summary"] == "rm" and dry[1]["runs"] == 1 and dry[1]["objects"] == 0 and dry[1]["dry_run"] is True
    assert "would remove 1 run (1 with logs here)" in act.run("rm", "--dry-run", f"{piece}:").err
    asked = act.run("rm", f"{piece}:", status=2)
    assert gone in asked.out and "Remove 1 run (1 with logs here)" in asked.err and "add -y" in asked.err
    shown = act.on_terminal("rm", f"{piece}:", typed=b"n\n").decode()
    assert "with all logs, for good?" in shown and "nothing was changed" in shown
    assert act.run_dir(gone).exists() and (act.project / f"assets/{gone}").exists()
    assert "removed 1 run" in act.run("rm", "-y", f"{piece}:").err
    assert listed(act, "q") == [stays] and not act.run_dir(gone).exists()
    assert not (act.project / f"assets/{gone}").exists() and act.run_dir(stays).exists()
    act.fail("rm", "-y", f"{piece}:", status=3, match=f"there is no run '{piece}'")
    assert act.run("resubmit", stays).status == 0, "its package is there"
    act.run("wait", "@")


def test_rm_of_a_run_that_goes_on(act):
    ended, running = act.finish("true", before=("-n", "1")), act.submit("sleep", "300", before=("-n", "1"))
    act.until_state(running, "Running")
    act.fail("rm", "-y", f"{running}:", status=2, match=f"is Running; 'a abort {running}' ends it")
    act.fail("rm", "-y", f"{ended}:", f"{running}:", match="nothing was removed", status=2)
    assert set(listed(act, "q")) == {ended, running} and act.run_dir(ended).exists()
    act.run("abort", running)
    last = lines(act.run("rm", "-y", "--json", f"{ended}:", "@:"))[-1]
    assert last["runs"] == 2 and last["errors"] == [] and listed(act, "q") == []
    assert list((act.home / "runs").iterdir()) == []


def test_rm_words_that_are_nearly_a_run(act):
    run = act.finish("true", before=("-n", "1"))
    piece = run[-8:]
    act.fail("rm", "-y", piece, status=2, match=f"'a rm {piece}:' removes the run")
    act.fail("rm", "-y", f"{piece}:{LOG}", status=2, match=f"as a whole, by 'a rm {piece}:'")
    act.fail("rm", "-y", "--leftovers", f"{piece}:", status=2, match="takes no '--leftovers' for .*, a run")
    act.fail("rm", "-y", "--include", "x", run, status=2, match="takes no '--include' for .*, a run")
    act.fail("rm", "-y", "nosuch:", status=3, match="there is no run 'nosuch'")
    act.write("data/a", b"1")
    act.run("u", "data")
    act.run("rm", "-y", "data")
    assert listed(act, "q") == [run] and act.run_dir(run).exists(), "a mapped path is no run"
    assert "removed 1 run" in act.run("rm", "-y", run).err and listed(act, "q") == []


def test_rm_of_a_path_that_is_named_like_a_run(act):
    act.cluster("both", folders=("data", "x:"))
    run = act.submit("true", before=("-c", "both", "-n", "1", ), env=None)
    act.run("wait", run)
    act.run("submit", "--name", "x", "-n", "1", "true")
    act.run("wait", "@")
    act.fail("-c", "both", "rm", "-y", "x:", status=2, match="a mapped path and a run: './x:' is the path")
    assert len(listed(act, "q")) == 2


def test_rm_of_paths_and_runs(act):
    run = act.finish("true", before=("-n", "1"))
    act.write("data/a", b"1")
    act.run("u", "data")
    dry = lines(act.run("rm", "--dry-run", "--json", f"{run}:", "data"))
    assert [row.get("path") for row in dry] == ["data/a", None, None] and dry[1]["run"] == run
    last = lines(act.run("rm", "-y", "--json", f"{run}:", "data"))[-1]
    assert (last["runs"], last["objects"], last["failed"]) == (1, 1, 0)
    assert listed(act, "q") == [] and not list(act.store.rglob("a"))


def test_rm_of_a_run_whose_platform_does_not_have_it_any_more(act):
    import shutil
    run = act.finish("true", before=("-n", "1"))
    shutil.rmtree(act.run_dir(run))
    assert "removed 1 run" in act.run("rm", "-y", f"{run}:").err and listed(act, "q") == []


def test_rm_of_a_run_of_slurm(lab):
    act = lab.act
    runs = [lab.submit("true") for _ in range(2)]
    act.run("wait", *runs)
    lab.until_over(runs[0])
    assert "removed 1 run" in act.run("rm", "-y", f"{runs[0]}:").err
    assert not lab.run_dir(runs[0]).exists() and lab.run_dir(runs[1]).exists() and listed(act, "q") == [runs[1]]


def test_rm_of_a_run_of_azure_machine_learning(act, azureml):
    runs = [act.run("submit", "true").out.strip() for _ in range(2)]
    act.run("wait", *runs)
    assert "removed 1 run" in act.run("rm", "-y", f"{runs[0]}:").err
    deleted = [r["url"].split("/jobs/")[1].split("?")[0] for r in azureml.requests() if r["method"] == "DELETE"]
    assert deleted == runs[:1] and listed(act, "q") == runs[1:]


def test_rm_of_a_run_on_kubernetes(act, kubernetes):
    runs = [act.run(*K8S, "submit", "true").out.strip() for _ in range(2)]
    act.run("wait", *runs)
    assert "removed 1 run" in act.run(*K8S, "rm", "-y", f"{runs[0]}:").err
    assert listed(act, *K8S, "q") == runs[1:] and len(kubernetes.objects("Job")) == 1
