"""The programs of other releases in the Secrets of a namespace, which no run owns."""
import pytest

K8S = ("-c", "k8s")
DAY_S = 24 * 3600


def program(kubernetes, name, mark, **labels):
    kubernetes.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": {
        "app.kubernetes.io/managed-by": "act", "act/program": mark, **labels}}, "data": {"act-node.gz": "AAAA"}})


def job(kubernetes, name, volumes, **status):
    """A run of another release, of somebody else."""
    kubernetes.tell("create", kind="Job", object={
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {
            "name": name, "namespace": "default", "labels": {"app.kubernetes.io/managed-by": "act"}},
        "spec": {"suspend": True, "completionMode": "Indexed", "completions": 1, "parallelism": 1,
                 "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}],
                                       "volumes": volumes}}}, **status})


def names(kubernetes):
    return {s["metadata"]["name"] for s in kubernetes.objects("Secret")}


def prune(act, *words):
    return act.run(*K8S, "prune", "--older", "30d", "--json", *words).json


def test_programs_of_other_releases_go_unless_a_run_needs_them(act, kubernetes):
    act.finish("true", before=K8S)
    own = names(kubernetes)
    kubernetes.clock(-40 * DAY_S)
    for name in ("act-program-aaaaaaaaaaaa", "act-program-bbbbbbbbbbbb", "act-client-cccccccccccc-0"):
        program(kubernetes, name, name.split("-")[2])
    program(kubernetes, "act-program-dddddddddddd", "dddddddddddd")
    kubernetes.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "act-program-of-mine"}})
    kubernetes.clock(0)
    program(kubernetes, "act-program-eeeeeeeeeeee", "eeeeeeeeeeee")  # it is young
    job(kubernetes, "running", [
        {"name": "p", "secret": {"secretName": "act-program-bbbbbbbbbbbb"}},
        {"name": "c", "projected": {"sources": [{"secret": {"name": "act-client-cccccccccccc-0"}}]}}])
    job(kubernetes, "ended", [{"name": "p", "secret": {"secretName": "act-program-dddddddddddd"}}], status={
        "conditions": [{"type": "Failed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    before = names(kubernetes)
    assert prune(act, "--dry-run")["agents"] == 2 and names(kubernetes) == before
    assert prune(act, "-y")["agents"] == 2
    assert before - names(kubernetes) == {"act-program-aaaaaaaaaaaa", "act-program-dddddddddddd"}
    assert own & names(kubernetes) == own, "this release has its own"
    assert prune(act, "-y")["agents"] == 0


def test_whoever_may_not_look_at_secrets_prunes_the_rest(act, kubernetes):
    program(kubernetes, "act-program-aaaaaaaaaaaa", "aaaaaaaaaaaa")
    kubernetes.forbid({"verb": "list", "resource": "secrets"})
    said = act.run(*K8S, "prune", "--older", "30d", "-y")
    assert 'agents on k8s stay: cannot list the Secrets of programs: ' in said.err and "for this right" in said.err


# ---- who prunes while a run of another release is submitted


@pytest.fixture
def slow(act, still):
    """A cluster that has the programs, takes seconds to make a Job, and whose pods do not run. One of the folders is
    sent by act in the pods."""
    act.account("blob", account_name="account", account_key="a2V5", container_name="files",
                endpoint="http://127.0.0.1:9/account")
    folder = {"azure_blob_config_file": "aux_data/configs/blob.yaml", "path": "out", "mode": "upload"}
    still.cluster(config_param={"output_folder": folder})
    act.submit("true", before=K8S)
    still.faults({"method": "POST", "match": "/jobs", "delayMs": 6000})
    still.forget()
    return still


def asked(cluster, method, word):
    return [r for r in cluster.requests() if r["method"] == method and word in r["url"]]


def test_programs_that_go_before_the_job_is_there_are_made_again(act, slow):
    """Its Job was not there when the other one looked which programs are needed."""
    before = {name for name in names(slow) if name.startswith(("act-program-", "act-client-"))}
    assert {name.split("-")[1] for name in before} == {"program", "client"}
    submission = act.start(*K8S, "submit", "true")
    act.until(lambda: asked(slow, "POST", "/jobs"), "the Job is on its way")
    for name in before:
        slow.tell("delete", kind="Secret", name=name)
    out, err = submission.communicate()
    assert submission.returncode == 0, err
    assert before < names(slow)
    assert [job["spec"]["suspend"] for job in slow.objects("Job")] == [False, False]


def test_programs_that_are_still_there_cost_a_look_alone(act, slow):
    act.submit("true", before=K8S)
    assert len(asked(slow, "GET", "/secrets/act-program-")) == len(asked(slow, "GET", "/secrets/act-client-")) == 2
    assert not [r for r in asked(slow, "POST", "/secrets") if "act-program-" in r["body"]]
