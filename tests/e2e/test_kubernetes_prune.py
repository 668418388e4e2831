"""The programs of other releases in the Secrets of a namespace, which no run owns."""
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
