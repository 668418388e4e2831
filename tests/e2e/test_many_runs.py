"""Many runs: the last ones by @, names and tags, several at once."""
import pytest


def three(act):
    """The ids of three runs, the last one first."""
    return [act.finish("echo", f"number {n}", before=("-n", 1)) for n in (1, 2, 3)][::-1]


# ---- @


@pytest.mark.smoke
def test_last_runs(act):
    runs = three(act)
    for n, run in enumerate(runs, start=1):
        assert act.run("q", "--json", f"@{n}").json["runs"][0]["id"] == run
    assert act.run("q", "--json", "@").json["runs"][0]["id"] == runs[0]
    assert act.run("logs", "@").out == "number 3\n"
    assert act.run("logs", "-f", "@2").out == "number 2\n"
    assert act.run("wait", "@").status == 0
    assert runs[1] in act.run("abort", "@2").err
    assert act.run("why", "@3").out.startswith("completed")
    assert act.run("nodes", "--json", "@").json["id"] == runs[0]
    assert [r["id"] for r in act.run("q", "--json", "@", "@1", "@2").json["runs"]] == runs[:2]
    again = act.run("resubmit", "@3").out.strip()
    assert act.info(again)["resubmit_of"] == runs[2]
    act.run("wait", "@")


def test_logs_of_the_last_run_as_paths(act):
    three(act)
    log = "user_logs/std_log_process_0.txt"
    assert log in act.run("ls", "-r", "@:").out.splitlines()
    assert act.run("ls", "@:user_logs").out == "std_log_process_0.txt\n"
    assert act.run("cat", f"@2:{log}").out == "number 2\n"
    assert act.run("du", "@:").out.rstrip().endswith("@:")
    assert act.run("d", f"@:{log}").status == 0
    act.fail("cat", f"@9:{log}", status=3, match="there is no run '@9'")


def test_last_runs_of_a_cluster(act):
    act.cluster("eu")
    here, there = act.finish("true", before=("-n", 1)), act.finish("true", before=("-c", "eu", "-n", 1))
    assert act.run("-c", "aml", "q", "--json", "@").json["runs"][0]["id"] == here
    assert act.run("-c", "eu", "q", "--json", "@").json["runs"][0]["id"] == there
    again = act.run("-c", "eu", "resubmit", "@2").out.strip()
    assert act.info(again)["resubmit_of"] == here and act.info(again)["cluster"] == "eu", "-c is where it goes"
    act.run("wait", again)


def test_no_such_last_run(act):
    act.fail("q", "@", status=3, match="there are no runs yet; 'a submit COMMAND' starts one")
    act.fail("ls", "@:", status=3, match="there is no run '@'")
    run = act.finish("true", before=("-n", 1))
    assert act.run("q", "--json", "@1").json["runs"][0]["id"] == run
    act.fail("q", "@2", status=3, match="no run '@2': there is only 1;")
    act.fail("q", "@99", status=3, match="no run '@99': there is only 1;")
    act.cluster("eu")
    act.fail("-c", "eu", "q", "@", status=3, match="no runs yet on cluster 'eu'")
    for bad in ("@0", "@-1", "@x", "@@", "@1x", "@99999999999999999999"):
        act.fail("q", bad, status=2, match=f"'{bad}' is no run: @ is the one submitted last")
