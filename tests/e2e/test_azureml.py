"""Azure Machine Learning, played by its double: a run from submit to resubmit, what is asked of the service for it, and
what the service can answer that is not what one hoped for."""
import json
import re
import threading

import pytest

import azureml_double

AWKWARD = ["a b", "", "$HOME", "it's", '"', "new\nline", "\\", "*", "-n", "ü", "{}", "~", "!x", "%s", "${{inputs.x}}"]
SHOW = "import json, os, sys; print(json.dumps([os.environ['RANK'], open('code.txt').read(), sys.argv[1:]]))"


def submit(act, *words, gpus=1, **options):
    return act.submit(*words, before=("-n", gpus), **options)


def finish(act, *words, gpus=1, status=0):
    return act.finish(*words, before=("-n", gpus), status=status)


def waits_for(gate):
    return ("sh", "-c", f"echo begun; while ! [ -e {gate} ]; do sleep 0.1; done; echo ended")


def puts(azureml):
    """The requests that made or changed something, as "<method> <kind>"."""
    kinds = re.compile(r"/workspaces/ws/(\w+)")
    return [f"{r['method']} {kinds.search(r['url'])[1]}" for r in azureml.requests("arm") if r["method"] != "GET"]


def requests_of(azureml, act, *words, **options):
    azureml.forget()
    result = act.run(*words, **options)
    return result, azureml.requests()


# ---- a run


@pytest.mark.smoke
def test_run_over_two_nodes(act, azureml, two_ranks):
    act.write("code.txt", "the code")
    run = finish(act, "python3", "-c", SHOW, *AWKWARD, gpus=4)
    for rank in range(4):
        assert json.loads(act.lines(run, rank)[-1]) == [str(rank), "the code", AWKWARD]
    job = azureml.job(run)["properties"]
    assert job["distribution"] == {"distributionType": "Mpi", "processCountPerInstance": 2}
    assert job["resources"]["instanceCount"] == 2
    assert "a b" not in job["command"], "the user's words belong into run.json"
    assert puts(azureml) == ["PUT datastores", "PUT environments", "PUT jobs"]


def test_page_of_a_run(act, azureml):
    run = finish(act, "true")
    workspace = f"/subscriptions/{azureml_double.SUBSCRIPTION}/resourcegroups/rg/workspaces/ws"
    page = f"https://ml.azure.com/runs/{run}?wsid={workspace}"
    assert re.search(rf"^page +{re.escape(page)}$", act.run("q", run).out, re.M)
    assert act.run("q", "--json", run).json["runs"][0]["page"] == page


def test_one_process_needs_no_mpi(act, azureml):
    run = finish(act, "sh", "-c", "echo $RANK of $WORLD_SIZE")
    assert "distribution" not in azureml.job(run)["properties"]
    assert act.run("logs", run).out == "0 of 1\n"
    act.run("q", run)
    assert (act.project / f"assets/{run}/user_logs/std_log.txt").read_text() == "0 of 1\n"


def test_second_run_finds_what_the_first_one_made(act, azureml):
    finish(act, "true")
    azureml.forget()
    finish(act, "true")
    assert puts(azureml) == ["PUT jobs"]


def test_mapped_folders(act, azureml, container):
    service = azureml.service
    for name in ("data", "output", "models", "inbox"):
        service.put(f"{container}/files/{name}/old.txt", name.encode())
    account = "aux_data/configs/store.yaml"
    rows = {f"{name}_folder": {"azure_blob_config_file": account, "path": f"files/{name}", "mode": mode}
            for name, mode in (("data", "ro_mount"), ("output", "rw_mount"), ("models", "download"),
                               ("inbox", "upload"))}
    azureml.cluster(config_param={"code_path": {"azure_blob_config_file": account, "path": "files/code/project.zip"},
                                  **rows})
    run = finish(act, "sh", "-c", "cat data/old.txt models/old.txt output/old.txt; echo new >output/new.txt; "
                 "mkdir -p inbox/deep; echo up >inbox/deep/up.txt")
    assert act.run("logs", run).out == "datamodelsoutput"
    assert service.get(f"{container}/files/output/new.txt") == b"new\n"
    assert service.get(f"{container}/files/inbox/deep/up.txt") == b"up\n"
    job = azureml.job(run)["properties"]
    modes = sorted(i["mode"] for i in job["inputs"].values() if i["jobInputType"] == "uri_folder")
    assert modes == ["Download", "ReadOnlyMount"]
    assert sorted(o["mode"] for o in job["outputs"].values()) == ["ReadWriteMount", "Upload"]


def test_environment_and_secrets(act, azureml, container):
    azureml.cluster(env={"COLOUR": "light blue", "MY_TOKEN": "pssst-1234"})
    run = finish(act, "sh", "-c", "echo $COLOUR, ${#MY_TOKEN}")
    assert act.run("logs", run).out == "light blue, 10\n"
    stored = azureml.service
    for key in stored.list(container):
        assert b"pssst-1234" not in stored.get(f"{container}/{key}"), key
    for request in azureml.requests("arm", "api", "login"):
        assert "pssst" not in request["url"] and azureml_double.SECRET not in request["url"]
        assert "pssst" not in request["body"] or "/jobs/" in request["url"]
    for file in act.home.rglob("*"):
        assert not file.is_file() or b"pssst-1234" not in file.read_bytes(), file


def test_secrets_are_not_shown(act, azureml, scratch):
    """The job has them, whoever may read the workspace too; what ACT prints has not."""
    azureml.cluster(env={"MY_TOKEN": "pssst-4321"})
    submitted = act.run("submit", "true", env={"ACT_TRACE": "all"})
    run = submitted.out.strip()
    assert azureml.job(run)["properties"]["environmentVariables"]["MY_TOKEN"] == "pssst-4321"
    other = {"ACT_HOME": str(scratch / "other")}  # which reads them back from the job
    shown = [submitted, act.run("config", "show"), act.run("q", run, "--json", env={"ACT_TRACE": "all"}),
             act.run("q", run, "--json", env={**other, "ACT_TRACE": "all"}),
             act.run("resubmit", "--dry-run", run, env=other)]
    for result in shown:
        for secret in ("pssst-4321", azureml_double.SECRET, azureml.service.key):
            assert secret not in result.out + result.err, result
    for file in (scratch / "other").rglob("*"):
        assert not file.is_file() or b"pssst-4321" not in file.read_bytes(), file


def test_a_run_found_in_a_cluster_of_another_name(act, azureml, scratch):
    run = submit(act, "true")
    (act.project / "aux_data/aml/aml.yaml").rename(act.project / "aux_data/aml/here.yaml")
    assert act.run("-c", "here", "q", run, "--json",
                   env={"ACT_HOME": str(scratch / "third")}).json["runs"][0]["cluster"] == "here"


def test_logs_are_followed(act, azureml, scratch):
    gate = scratch / "gate"
    run = submit(act, *waits_for(gate))
    follower = act.start("logs", "-f", run)
    watchdog = threading.Timer(60, follower.kill)
    watchdog.start()
    try:
        assert follower.stdout.readline() == b"begun\n"
        gate.touch()
        assert follower.stdout.read() == b"ended\n"
        assert follower.wait() == 0
    finally:
        watchdog.cancel()
        follower.kill()
        follower.communicate()


@pytest.mark.smoke
def test_failure_is_told(act, azureml):
    run = submit(act, "sh", "-c", "echo bad luck >&2; exit 7", gpus=2)
    act.run("wait", run, status=(1, 7))
    assert act.state(run) == "Failed"
    assert "bad luck" in act.run("why", run).out


def test_abort(act, azureml, scratch):
    run = submit(act, *waits_for(scratch / "never"), gpus=2)
    act.until_state(run, "Running")
    act.run("abort", run)
    act.until_state(run, "Canceled")
    assert puts(azureml)[-1] == "POST jobs"
    azureml.forget()
    act.run("abort", run, status=None)
    assert puts(azureml) == [], "it has ended"


def test_abort_leaves_the_ranks_time_to_save(act, azureml, scratch):
    """Open MPI would kill them a second after it has asked them to end."""
    act.write("save.sh", f"""
        trap 'sleep 3; for i in 1 2 3; do echo $i; done >{scratch}/saved.$RANK; exit 0' TERM
        echo begun >{scratch}/begun.$RANK
        while :; do sleep 0.1; done
    """)
    run = submit(act, "bash", "save.sh", gpus=2)
    act.until(lambda: len(list(scratch.glob("begun.*"))) == 2, "both ranks run")
    act.run("abort", run)
    act.until_state(run, "Canceled")
    for rank in range(2):
        assert (scratch / f"saved.{rank}").read_text() == "1\n2\n3\n"


def test_time_to_save_is_for_the_service(act, azureml):
    """The command's own mpirun has Open MPI's times, unless the user says so; who says so is believed."""
    show = ("sh", "-c", "echo ${OMPI_MCA_odls_base_sigkill_timeout-none} ${PRTE_MCA_odls_base_sigkill_timeout-none}")
    run = finish(act, *show, gpus=2)
    assert act.run("logs", run).out == "none none\n"
    assert azureml.job(run)["properties"]["environmentVariables"] == {
        "OMPI_MCA_odls_base_sigkill_timeout": "5", "PRTE_MCA_odls_base_sigkill_timeout": "5"}
    azureml.cluster(env={"OMPI_MCA_odls_base_sigkill_timeout": "2"})
    run = finish(act, *show, gpus=2)
    assert act.run("logs", run).out == "2 none\n"


def test_abort_of_a_run_that_waits(act, azureml):
    azureml.tell("hold", status="Queued")
    run = submit(act, "true")
    act.until(lambda: azureml.job(run)["status"] == "Queued", "it waits")
    assert act.state(run) == "Queued"
    assert "Running" not in act.run("abort", run).err
    act.until_state(run, "Canceled")
    assert act.info(run)["started"] is None and "elapsed" not in act.run("q", run, status=None).out


def test_abort_of_several(act, azureml):
    """The service answers none of three before it has all three."""
    azureml.tell("hold", status="Queued")
    runs = [submit(act, "true") for _ in range(3)]
    azureml.faults({"method": "POST", "match": "/cancel", "times": 3, "together": 3})
    act.run("abort", *runs)
    for run in runs:
        act.until_state(run, "Canceled")


def test_another_machine(act, azureml, scratch):
    """What is known of a run is in the service: a machine without the ledger can work on with it."""
    run = finish(act, "sh", "-c", "echo here; exit 3", status=None)
    other = {"ACT_HOME": str(scratch / "other-home")}
    assert act.run("logs", run, env=other).out.splitlines()[0] == "here"
    shown = act.run("q", run, env=other).out
    assert "Failed" in shown and "echo here" in shown
    again = act.run("resubmit", run, env=other).out.split()[-1]
    act.run("wait", again, env=other, status=None)
    assert act.run("logs", again, env=other).out.splitlines()[0] == "here"


def test_preempted_run_begins_again(act, azureml, scratch):
    gate = scratch / "gate"
    run = submit(act, *waits_for(gate))
    act.until(lambda: act.run("logs", run, status=None).out == "begun\n", "it runs")
    azureml.tell("hold", status="Queued")
    azureml.tell("job", id=run, preempt=True)
    act.until_state(run, "Queued")
    gate.touch()
    azureml.tell("release")
    act.run("wait", run)
    assert azureml.job(run)["attempt"] == 2
    assert act.run("logs", run).out == "begun\nended\n"


def test_runs_that_begin_at_once_on_the_same_nodes(act, azureml):
    """Each sweeps what others left, and nobody what others use."""
    act.write("copy.sh", "cat copy.sh >/dev/null; echo $RANK >output/$RANK.txt")
    runs = [submit(act, "sh", "copy.sh", gpus=4) for _ in range(8)]
    assert [act.run("wait", run).status for run in runs] == [0] * 8


def test_logs_of_the_old_runtime(act, azureml):
    azureml.tell("settings", runtime="old")
    run = finish(act, "sh", "-c", "echo rank $RANK", gpus=2)
    assert act.run("logs", run).out == "rank 0\n"
    act.run("q", run)
    assert (act.project / f"assets/{run}/azureml-logs/70_driver_log_1.txt").read_text() == "rank 1\n"


def test_status_words(act, azureml):
    """States and the old corrections for attached Kubernetes clusters."""
    run, = azureml.tell("seed", count=1)
    for word, tags, state in (
            ("NotStarted", {}, "Queued"), ("Provisioning", {}, "Queued"), ("Paused", {}, "Queued"),
            ("Running", {}, "Running"), ("Finalizing", {}, "Running"), ("CancelRequested", {}, "Running"),
            ("NotResponding", {}, "Running"), ("Queued", {"amlk8s status": "Running"}, "Running"),
            ("Canceled", {"amlk8s status": "killing"}, "Failed"), ("Sleeping", {}, "Unknown"),
            ("Completed", {}, "Completed")):
        azureml.tell("job", id=run, set={"status": word, "tags": tags})
        assert f"status    {state}\n" in act.run("q", run, env={"ACT_HOME": str(act.scratch / word)}).out, word


# ---- how much is asked


def test_requests_of_a_finished_run(act, azureml):
    run = finish(act, "echo", "done")
    act.run("q", run)
    _, asked = requests_of(azureml, act, "q", run)
    assert len(asked) <= 2, asked


def test_requests_of_a_table(act, azureml):
    """The runs of the experiment, of whatever machine: a request for each hundred, none for a single run."""
    names = azureml.tell("seed", count=300, status="Running")
    result, asked = requests_of(azureml, act, "q", "--max", "300", "--json")
    assert {r["id"] for r in result.json["runs"] if r["state"] == "Running"} == set(names)
    assert len(asked) <= 3 + 1, len(asked)
    act.run("q", "seeded", status=2)  # which could be any of them: all are in the ledger now
    for run in names:
        azureml.tell("job", id=run, set={"status": "Completed"})
    result, asked = requests_of(azureml, act, "q", "--max", "300", "--json")
    assert {r["state"] for r in result.json["runs"]} == {"Completed"} and len(asked) <= 3, len(asked)
    result, asked = requests_of(azureml, act, "q", "--max", "50", "--json")
    assert len(asked) == 1, len(asked)
    assert len({r["id"] for r in result.json["runs"]}) == 50 and result.json["total"] == 300, result


def test_requests_of_a_submission(act, azureml):
    finish(act, "true")
    azureml.forget()
    submit(act, "true")
    assert len(azureml.requests()) <= 4, azureml.requests()
    assert not azureml.requests("login"), "the token is kept"


# ---- bad input


def test_not_logged_in(act, azureml):
    for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"):
        del act.env[name]
    act.env["AZURE_POD_IDENTITY_AUTHORITY_HOST"] = "http://127.0.0.1:9"
    act.fail("submit", "true", status=4, match="log in|login")
    assert azureml.requests() == []


def test_expired_token_is_renewed(act, azureml):
    finish(act, "true")
    azureml.tell("revoke")
    finish(act, "true")
    refused = [r for r in azureml.requests() if r["status"] == 401]
    assert len(refused) == 1, "it is tried again once, with a new one"


def test_login_that_is_never_accepted(act, azureml):
    azureml.faults({"match": "^(arm|api) ", "times": 1000, "answer": {"status": 401, "json": {"error": {
        "code": "ExpiredAuthenticationToken", "message": "The access token expiry UTC time is in the past."}}}})
    act.fail("submit", "true", status=4, match="expir")
    assert len(azureml.requests()) <= 3


def test_no_permission(act, azureml):
    action = "Microsoft.MachineLearningServices/workspaces/jobs/write"
    azureml.faults({"method": "PUT", "match": "/jobs/", "times": 100, "forbidden": action})
    act.fail("submit", "true", status=4, match=re.escape(action))


def test_run_that_was_refused_says_why(act, azureml):
    """What no platform has ever had is not looked for there: neither its state nor its logs."""
    azureml.faults({"method": "PUT", "match": "/jobs/", "times": 100, "forbidden": "jobs/write"})
    act.fail("submit", "true", status=4)
    run = act.run("q", "--json").json["runs"][0]["id"]
    for verb in ("q", "why"):
        result, asked = requests_of(azureml, act, verb, run)
        assert "not submitted: " in result.out and "jobs/write" in result.out, result.out
        assert asked == []
    assert "not submitted: " in act.run("qf").out
    assert "jobs/write" in act.run("q", "--json", run).json["runs"][0]["reason"]
    act.fail("logs", run, status=3, match=f"'{run}' is Failed and has no log")


def test_unknown_workspace(act, azureml):
    azureml.cluster(aml_config={"workspace_name": "nowhere"})
    act.fail("submit", "true", status=3, match="nowhere")
    azureml.cluster(aml_config={"subscription_id": "none"})
    act.fail("submit", "true", status=3, match="subscription 'none'")


def test_unknown_compute(act, azureml):
    azureml.cluster(compute_target="nothing")
    act.fail("submit", "true", status=3, match="compute 'nothing'.* 'a cluster list' shows what is there")


def test_unknown_experiment(act, azureml):
    azureml.cluster(experiment_name="never-used")
    assert act.run("q", "--json").json["runs"] == []


def test_image_that_cannot_be_pulled(act, azureml):
    azureml.cluster(docker={"image": "unpullable/image:1"})
    run = submit(act, "true")
    act.run("wait", run, status=1)
    assert "unpullable/image:1" in act.run("why", run).out


def test_quota_is_exceeded(act, azureml):
    azureml.faults({"method": "PUT", "match": "/jobs/", "times": 100, "answer": {"status": 400, "json": {"error": {
        "code": "UserError", "message": "Request is not valid.", "innerError": {"code": "QuotaExceeded"}, "details": [
            {"code": "QuotaExceeded", "message": "The requested 192 cores exceed the quota of 96 of the family."}]}}}})
    act.fail("submit", "true", status=6, match="quota of 96")
    azureml.faults()
    act.fail("-n", "100", "submit", "true", status=6, match="needs 50 nodes, and 'gpu' has at most 4; use at most -n 8")


def test_run_ends_for_want_of_quota(act, azureml):
    run, = azureml.tell("seed", count=1, status="Failed")
    azureml.tell("job", id=run, set={"error": {"code": "UserError", "message": "The family has no cores left.",
                                               "inner": ["QuotaExceeded"]}})
    act.run("wait", run, status=6)
    assert "no cores left" in act.run("why", run).out


def test_more_in_the_second_try_of_the_same_name(act, azureml):
    """A lost answer never makes a second job."""
    azureml.faults({"method": "PUT", "match": "/jobs/", "cut": "after"})
    run = finish(act, "echo", "once")
    assert [job["name"] for job in azureml.tell("jobs")] == [run]
    assert act.run("logs", run).out == "once\n"


def test_service_is_down_in_the_middle_of_a_submission(act, azureml):
    azureml.faults({"method": "PUT", "match": "/jobs/", "times": 1000, "answer": {"status": 503, "body": ""}})
    act.fail("submit", "echo", "once", status=5, env={"ACT_MAX_RETRIES": "1"}, match="HTTP 503")
    azureml.faults()
    run = finish(act, "echo", "once")
    assert [job["name"] for job in azureml.tell("jobs")] == [run]


THROTTLED = {"method": "PUT", "match": "/jobs/", "times": 1000, "throttle": {"header": "Retry-After", "ms": 1000}}


def job_puts(azureml):
    return [r for r in azureml.requests("arm") if r["method"] == "PUT" and "/jobs/" in r["url"]]


def test_throttling_without_end(act, azureml):
    """It is waited for, that is said, and it has an end; the same command again is the same run."""
    azureml.faults(THROTTLED)
    result = act.run("submit", "echo", "once", status=5, env={"ACT_GIVE_UP": "3"})
    assert "the service asks to wait 1 s (throttled)\n" in result.err
    assert "HTTP 429" in result.err and "the same command again is the same run" in result.err
    asked = {r["url"] for r in job_puts(azureml)}
    assert len(asked) == 1 and len(job_puts(azureml)) > 1
    azureml.faults()
    run = act.finish("echo", "once")
    assert {r["url"] for r in job_puts(azureml)} == asked
    assert [job["name"] for job in azureml.tell("jobs")] == [run]
    assert act.finish("echo", "once") != run, "that one is done: this is another"


def test_answer_is_lost_and_the_service_too(act, azureml):
    """The job was made, and nobody can tell: the same command finds it."""
    down = {"status": 503, "body": ""}
    azureml.faults({"method": "PUT", "match": "/jobs/", "cut": "after"},
                   {"match": "/jobs/", "times": 1000, "answer": down})
    act.fail("submit", "echo", "once", status=5, env={"ACT_MAX_RETRIES": "1"},
             match="the same command again is the same run")
    made, = azureml.tell("jobs")
    azureml.faults()
    assert act.finish("echo", "once") == made["name"]
    assert len(azureml.tell("jobs")) == 1


def test_submission_that_is_killed(act, azureml):
    azureml.faults(THROTTLED)
    process = act.start("submit", "echo", "once")
    act.until(lambda: job_puts(azureml), "it asks for the job")
    process.kill()
    process.communicate()
    azureml.faults()
    run = act.finish("echo", "once")
    assert len({r["url"] for r in job_puts(azureml)}) == 1, "it has the id of the first"
    assert [job["name"] for job in azureml.tell("jobs")] == [run]


def test_same_command_twice_at_once_is_two_runs(act, azureml):
    azureml.faults({**THROTTLED, "times": 1, "throttle": {"header": "Retry-After", "ms": 3000}})
    first = act.start("submit", "echo", "twice")
    act.until(lambda: job_puts(azureml), "it asks for the job")
    azureml.faults()
    second = act.submit("echo", "twice")
    out, _ = first.communicate()
    assert first.returncode == 0 and out.decode().strip() != second
    assert len(azureml.tell("jobs")) == 2


def test_job_name_is_taken(act, azureml):
    """The run of a lost answer was not made by the service, but by somebody else under its name."""
    azureml.faults({"method": "PUT", "match": "/jobs/", "answer": {"status": 409, "json": {"error": {
        "code": "UserError", "message": "A job of that name exists already."}}}})
    act.fail("submit", "true", status=1, match="exists already|another job")


def test_logs_that_are_not_there_yet(act, azureml):
    azureml.tell("hold", status="Queued")
    run = submit(act, "echo", "late")
    act.until(lambda: azureml.job(run)["status"] == "Queued", "it waits")
    shown = act.run("logs", run)
    assert shown.out == "" and f"run '{run}' is Queued and has no log" in shown.err
    azureml.tell("release")
    act.run("wait", run)
    assert act.run("logs", run).out == "late\n"


def test_log_that_shrinks(act, azureml):
    run = finish(act, "echo", "a long first line")
    name = "user_logs/std_log.txt"
    assert act.run("logs", run).out == "a long first line\n"
    azureml.tell("job", id=run, set={"status": "Running"})
    azureml.tell("log", id=run, name=name, text="short\n")
    assert act.run("logs", run).out == "short\n"
    act.run("q", run)
    assert (act.project / f"assets/{run}/{name}").read_text() == "short\n"


def test_names_of_logs_stay_in_the_folder(act, azureml):
    run, = azureml.tell("seed", count=1)
    azureml.tell("log", id=run, name="user_logs/std_log.txt", text="fine\n")
    azureml.tell("log", id=run, name="../../../escaped.txt", key="escaped", text="bad\n")
    act.run("q", run)
    assert not list(act.scratch.rglob("escaped.txt"))


# ---- a service that has a bad day


@pytest.mark.parametrize("header", ["Retry-After", "retry-after-ms", "x-ms-retry-after-ms", "date"])
def test_throttling(act, azureml, header):
    azureml.faults({"method": "PUT", "match": "/jobs/", "throttle": {"header": header, "ms": 300}})
    finish(act, "true")
    assert [r["status"] for r in azureml.requests("arm") if r["method"] == "PUT" and "/jobs/" in r["url"]] == [429, 201]


@pytest.mark.parametrize("answer", [
    {"status": 502, "body": "<html><body><h1>502 Bad Gateway</h1></body></html>",
     "headers": {"Content-Type": "text/html"}},
    {"status": 500, "body": ""}, {"status": 503, "body": "", "headers": {"Retry-After": "0"}},
    {"status": 408, "json": {"error": {"code": "Timeout", "message": "It took too long."}}}])
def test_answers_that_are_tried_again(act, azureml, answer):
    azureml.faults({"method": "PUT", "match": "/jobs/", "answer": answer})
    run = finish(act, "true")
    assert [job["name"] for job in azureml.tell("jobs")] == [run]


@pytest.mark.parametrize("cut", ["before", "after", "within"])
def test_connections_that_break(act, azureml, cut):
    azureml.faults(*({"method": method, "match": kind, "cut": cut} for method in ("GET", "PUT")
                     for kind in ("/datastores/", "/environments/", "/jobs/", "/details")))
    run = finish(act, "echo", "done")
    assert act.run("logs", run).out == "done\n"
    assert [job["name"] for job in azureml.tell("jobs")] == [run]


@pytest.mark.parametrize("answer, match", [
    ({"status": 400, "body": "<html>no</html>", "headers": {"Content-Type": "text/html"}}, "400.*<html>no"),
    ({"status": 400, "body": ""}, "400"),
    ({"status": 400, "json": {"error": {"code": "UserError", "message": "Outer.", "details": [
        {"code": "Inner", "message": "The reason."}]}}}, "Outer.*The reason"),
    ({"status": 400, "json": []}, "400"), ({"status": 200, "body": "{"}, "not JSON")])
def test_errors_of_all_shapes(act, azureml, answer, match):
    azureml.faults({"method": "PUT", "match": "/jobs/", "times": 100, "answer": answer})
    act.fail("submit", "true", status=None, match=f"(?s){match}")


def test_token_goes_to_no_other_host(act, azureml):
    azureml.tell("settings", nextLinkBase=azureml.links["elsewhere"], pageSize=1, maxTop=1)
    azureml.tell("seed", count=3)
    act.run("q", "--max", "3", status=None)
    assert not [r for r in azureml.requests("elsewhere") if r["authorized"]]
    azureml.violations()
