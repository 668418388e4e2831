"""The clock of the server and this machine's differ, on the double."""
import calendar
import time

import pytest

K8S = ("-c", "k8s")


def iso(unix_s):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix_s))


def seconds(text):
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


@pytest.fixture(params=[-600, 600])
def skewed(request, kubernetes):
    """The cluster whose clock is ten minutes behind or ahead."""
    kubernetes.clock(request.param)
    kubernetes.ahead = request.param
    return kubernetes


def test_ages_are_those_of_this_machine(act, skewed):
    before = int(time.time())
    run = act.submit("sh", "-c", "echo begun; sleep 1000", before=K8S)
    act.until(lambda: "begun" in act.run("logs", run, status=None).out, "the command runs")
    info = act.info(run)
    assert before - 60 < seconds(info["started"]) < time.time() + 60, info
    assert [r["id"] for r in act.run("-c", "k8s", "q", "--json").json["runs"]] == [run]
    act.run("abort", run)
    act.until_state(run, "Canceled")


def test_logs_are_whole_and_the_end_is_seen(act, skewed):
    run = act.submit("sh", "-c", "for i in 1 2 3 4 5; do echo line $i; sleep 0.3; done", before=K8S)
    assert act.run("logs", "-f", run).out == "".join(f"line {i}\n" for i in range(1, 6))
    act.run("wait", run)
    assert act.info(run)["state"] == "Completed"


def test_a_token_of_a_plugin_is_used_until_the_server_refuses_it(act, skewed):
    """It ends by the right clock, which is the server's or this machine's."""
    skewed.cluster(k8s={"kubeconfig": str(skewed.kubeconfigs["exec"])})
    for now in (time.time(), time.time() + skewed.ahead):
        skewed.new_token(f"token-{int(now)}", iso(now + 3000))
        runs = skewed.plugin_runs()
        assert act.run(*K8S, "summary").status == 0
        assert skewed.plugin_runs() == runs + 1
    skewed.new_token("short", iso(time.time() + skewed.ahead + 120))
    runs = skewed.plugin_runs()
    assert act.run(*K8S, "summary").status == 0
    assert skewed.plugin_runs() <= runs + 3
