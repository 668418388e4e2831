"""Runs that hang: --hang ends them, with the stacks of their processes."""
import json
import os
import re
import subprocess
import time

import pytest

import pods

SILENT = "echo begins; sleep 600"
COMPUTES = "import time; end = time.monotonic() + {}; n = 0\nwhile time.monotonic() < end: n += 1"
PY_SPY = """#!/bin/sh
echo "$@" >> "{log}"
echo 'Process 1: python3 train.py'
echo
echo 'Thread 1 (idle): "MainThread"'
echo '    wait (threading.py:320)'
echo '    main (train.py:12)'
"""


def by_rank(**scripts):
    """A command whose ranks run different shell scripts."""
    cases = " ".join(f"{name[1:]}) {script};;" for name, script in scripts.items())
    return ("sh", "-c", f"case $RANK in {cases} esac")


def hang(act, *words, n=1, after="3s", more=(), **options):
    """Submits a run that is watched, and waits for its end."""
    run = act.submit("--hang", after, *words, before=("-n", n, *more))
    act.run("wait", run, **options)
    return run


def stacks(act, run):
    found = list((act.run_dir(run) / "system_logs").glob("stacks_*.txt"))
    assert len(found) == 1, found
    return found[0].read_text()


def program(act, name, script):
    """Makes a program that runs find before others."""
    folder = act.scratch / "programs"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)
    act.env["PATH"] = f"{folder}:{act.env['PATH']}"


def check_hang(act, run, rank=None, where=r"\S.*"):
    """What is recorded of a run that hung, and what people read of it."""
    info = act.info(run)
    assert (info["state"], info["exit_status"]) == ("Failed", 143)
    reason = re.fullmatch(r"hang: no rank has written a line for \S+(, and .*|); "
                          r"rank (\d+) on (\S+) is silent longest, "
                          f"in ({where}); stacks: (system_logs/\\S+)", info["reason"])
    assert reason, info["reason"]
    assert rank is None or int(reason[2]) == rank
    answer = act.run("why", "--json", run).json
    assert answer["diagnosis"]["id"] == "hang" and answer["diagnosis"]["retry"] == "yes", answer
    assert answer["failure"]["rank"] == int(reason[2])
    said = act.run("why", run).out
    assert said.splitlines()[0] == info["reason"] and "class     hang" in said.splitlines(), said
    text = act.run("logs", "--name", reason[5], run).out
    assert re.search(rf"==== rank {reason[2]} on {reason[3]}, ", text), text
    return reason


@pytest.mark.smoke
def test_silent_ranks(act, two_ranks):
    run = hang(act, *by_rank(r0="echo 0 begins; sleep 600", r1="sleep 600"), n=2, status=143)
    check_hang(act, run, where=r"\S+ \(process \d+, sleep\)|process \d+, sleep, in state S")
    text = stacks(act, run)
    for rank in range(2):
        assert re.search(rf"^==== rank {rank} on ", text, re.M)
    assert len(re.findall(r"^---- process \d+, started by \d+: sleep 600$", text, re.M)) == 2, text
    assert re.search(r"^  thread \d+ \(sleep\): state S", text, re.M), text
    failure = json.loads((act.run_dir(run) / "system_logs/failure.json").read_text())
    assert failure["class"] == "hang" and failure["exit_status"] == 143
    assert json.loads((act.run_dir(run) / "status.json").read_text())["class"] == "hang"
    assert not [line for line in act.processes().values() if b"sleep" in line]


def test_the_rank_that_is_silent_longest(act, two_ranks):
    run = hang(act, *by_rank(r0="for i in 1 2 3 4; do echo $i; sleep 1; done; sleep 600", r1="sleep 600"), n=2,
               after="4s", status=143)
    check_hang(act, run, rank=1)


def test_who_computes_or_writes_now_and_then_is_left_alone(act, two_ranks):
    script = COMPUTES.format(8)
    run = hang(act, "sh", "-c", f"test $RANK = 1 && exec sleep 8; exec python3 -c '{script}'", n=2)
    assert act.state(run) == "Completed"
    run = hang(act, *by_rank(r0="for i in 1 2 3 4 5 6 7 8; do sleep 1; echo $i; done", r1="sleep 8"), n=2, after="4s")
    assert act.state(run) == "Completed"


def test_saves_when_it_is_ended(act):
    run = hang(act, "sh", "-c", "trap 'echo saved; exit 3' TERM; sleep 600 & wait", status=143)
    check_hang(act, run, rank=0)
    assert act.lines(run)[-1] == "saved"


def test_py_spy(act):
    log = act.scratch / "asked"
    program(act, "py-spy", PY_SPY.format(log=log))
    run = hang(act, "python3", "-c", "import time; time.sleep(600)", status=143)
    check_hang(act, run, where=re.escape("wait (threading.py:320), called by main (train.py:12)"))
    assert re.fullmatch(r"dump --nonblocking --pid \d+\n", log.read_text())
    assert "        main (train.py:12)\n" in stacks(act, run)


@pytest.mark.parametrize("script, said", [("echo Permission denied >&2; exit 1", "Permission denied"),
                                          ("exec sleep 600", "took too long")])
def test_py_spy_that_does_not_help(act, script, said):
    program(act, "py-spy", f"#!/bin/sh\n{script}\n")
    run = hang(act, "python3", "-c", "import time; time.sleep(600)", status=143)
    check_hang(act, run, where=r".*python3.*")
    assert said in stacks(act, run).split("py-spy:")[1]


GPU = "#!/bin/sh\necho 0, {}, 0, 1000, 30, 50, 0\n"


def test_gpus_that_are_busy(act):
    program(act, "nvidia-smi", GPU.format(100))
    run = hang(act, "sh", "-c", "sleep 9", after="2s")
    assert act.state(run) == "Completed"
    run = hang(act, "sh", "-c", SILENT, after="2s", more=("-p", "hang_gpus: any"), status=143)
    assert check_hang(act, run)[1] == ""


def test_gpus_that_are_idle(act):
    program(act, "nvidia-smi", GPU.format(0))
    run = hang(act, "python3", "-c", COMPUTES.format(600), after="2s", status=143)
    assert check_hang(act, run)[1] == ", and all GPUs were idle"


def test_what_somebody_holds_does_not_hang(act):
    run = hang(act, "sh", "-c", "sleep 9 & kill -STOP $!; (sleep 9; kill -CONT $!) & wait $!", after="2s")
    assert act.state(run) == "Completed"


def test_as_an_ordinary_user(act):
    if os.geteuid() != 0:
        pytest.skip("the other tests are of one already")
    act.prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    if subprocess.run([*act.prefix, act.programs / "a", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("another user cannot execute the programs where they are")
    subprocess.run(["chown", "-R", "65534:65534", act.scratch], check=True)
    run = hang(act, "sleep", "600", status=143)
    check_hang(act, run, where=r".*sleep.*")
    assert re.search(r"^  thread \d+ \(sleep\): state S", stacks(act, run), re.M)


ONCE = "test -e {0} && exit 0; touch {0}; sleep 600"


def test_is_tried_again(act):
    act.env["ACT_RETRY_PAUSE"] = "0"
    run = act.submit("--hang", "3s", "--retry", "1", "--retry-on", "hang", "sh", "-c",
                     ONCE.format(act.scratch / "hung"), before=("-n", "1"))
    act.run("wait", run)
    info = act.info(run)
    assert (info["state"], info["attempt"]) == ("Completed", 2)
    assert "attempt 1 failed" in info["retry"] and "hang" in info["retry"]
    earlier = act.run_dir(run) / "attempts/1"
    assert json.loads((earlier / "status.json").read_text())["class"] == "hang"
    assert json.loads((earlier / "system_logs/failure.json").read_text())["class"] == "hang"
    assert [path.name for path in earlier.glob("system_logs/stacks_*")]
    assert "class" not in json.loads((act.run_dir(run) / "status.json").read_text())


# ---- how it is asked for


def test_key_and_option(act):
    act.cluster("aml", extra={"hang": "20m", "hang_gpus": "any"})
    spec = act.run("submit", "--dry-run", "true").json
    assert spec["hang"] == {"silent_s": 1200, "gpus": "any"}
    result = act.run("submit", "--dry-run", "--hang", "30s", "true")
    assert result.json["hang"] == {"silent_s": 30, "gpus": "any"} and "very short" in result.err
    assert "hang" not in act.run("-p", "hang: ~", "submit", "--dry-run", "true").json
    run = act.finish("true")
    act.cluster("aml")
    assert act.run("resubmit", "--dry-run", run).json["hang"] == {"silent_s": 1200, "gpus": "any"}
    assert act.run("resubmit", "--dry-run", "--hang", "1h", run).json["hang"]["silent_s"] == 3600


@pytest.mark.parametrize("value, match", [("soon", "'hang' must be a duration such as 90s"),
                                          ("0", "'hang' must be a duration"), ("600", "may mean 600s or 600m"),
                                          ("31d", "at most 30d"), ("-3s", "'hang' must be a duration")])
def test_wrong_times(act, value, match):
    act.fail("-p", f"hang: {value}", "submit", "true", match=match, status=None)


def test_wrong_option(act):
    act.fail("submit", "--hang", "0", "true", match="--hang takes a time", status=2)
    act.fail("-p", "hang_gpus: none", "submit", "true", match="unknown hang_gpus 'none'; it is one of idle, any",
             status=None)


def test_in_the_foreground(act):
    result = act.run("-p", "hang: 1s", "local", "sleep", "3")
    assert "hang is not used" in result.err


# ---- elsewhere


def test_on_two_nodes_of_slurm(lab):
    script = "test $RANK = 2 && sleep 600; echo rank $RANK; sleep 600"
    run = lab.shell(script, n=4, before=("-p", "hang: 4s"))
    lab.wait(run, "Failed", status=143)
    check_hang(lab.act, run)
    names = {path.name for path in (lab.run_dir(run) / "system_logs").glob("stacks_*.txt")}
    assert len(names) == (2 if lab.bed.has_namespaces else 1)
    assert sum(lab.text(run, f"system_logs/{name}").count("==== rank") for name in names) == 4


def test_a_suspended_job_does_not_age(lab):
    run = lab.shell("echo begins; for i in 1 2 3 4 5 6; do sleep 1; echo $i; done", before=("-p", "hang: 4s"))
    lab.until_text(run, "1")
    job = lab.bed.job(run)
    lab.bed.run("scontrol", "suspend", job)
    log = lab.run_dir(run) / "user_logs/std_log_process_0.txt"
    lab.act.until(lambda: time.time() - log.stat().st_mtime > 9, "it was silent for longer than a hang takes")
    assert lab.bed.show(job)["JobState"] == "SUSPENDED"
    lab.bed.run("scontrol", "resume", job)
    lab.wait(run, "Completed", status=0)


@pytest.mark.parametrize("launcher", [None, "direct"])
def test_in_pods(act, pod_bed, launcher):
    run = pods.Job(pod_bed, act, 0, ("sh", "-c", "echo rank $RANK; sleep 600"), 2, 2, launcher=launcher,
                   hang={"silent_s": 3, "gpus": "idle"})
    try:
        message = run.run(143)
        assert (message["state"], message["class"], message["attempt"]) == ("Failed", "hang", 1)
        said = re.search(r"; rank (\d) on (\S+) is silent longest, in .*; stacks: system_logs/agent_(\d).txt$",
                         message["reason"])
        assert said and int(said[3]) == int(said[1]) // 2, message["reason"]
        for rank in range(4):
            assert run.log(rank) == f"rank {rank}\n"
            words = run.pods[rank // 2].words()
            assert any(line.startswith(f"act: stacks: ==== rank {rank} on ") for line in words), words
    finally:
        run.close()


def test_is_tried_again_in_the_same_pods(act, pod_bed):
    run = pods.Job(pod_bed, act, 1, ("sh", "-c", "test $ACT_ATTEMPT = 1 && sleep 600; echo done"), 2, 1,
                   hang={"silent_s": 3, "gpus": "idle"}, retry={"times": 1, "on": ["hang"]})
    try:
        message = run.run()
        assert (message["state"], message["attempt"]) == ("Completed", 2) and "class" not in message
        assert run.log(1, attempt=2) == "done\n"
    finally:
        run.close()


def test_on_kubernetes(act, kubernetes):
    kubernetes.cluster(gpu_per_node=1, k8s={"gpu_resource": "none", "launcher": "direct"})
    run = act.submit("--hang", "3s", "sh", "-c", SILENT, before=("-c", "k8s", "-n", "2"))
    act.run("wait", run, status=143)
    assert check_hang(act, run)[5].startswith("system_logs/agent_")


def test_not_on_azureml(act, azureml):
    words = "cannot be watched for hangs .*on platform 'aml' the service starts the ranks"
    act.fail("submit", "--hang", "20m", "true", match=words, status=2)
    act.fail("-p", "hang: 20m", "submit", "--dry-run", "true", match=words, status=2)
    act.cluster("here", folders=(), extra={"hang": "20m"})
    run = act.submit("true", before=("-c", "here"))
    act.run("wait", run)
    result = act.run("-rt", "aml", "resubmit", run)
    assert "this one is not, as nobody can on platform 'aml'" in result.err
