"""What the policies of a namespace have against a run: Pod Security, LimitRanges, quotas, webhooks. It is said before
anything is made, with the key to set."""
import pytest

from test_kubernetes_errors import K8S, nothing_is_left, refused_at_once, waits

RESTRICTED = {"securityContext": {"runAsNonRoot": True, "runAsUser": 65534,
                                  "seccompProfile": {"type": "RuntimeDefault"}},
              "containers": [{"name": "main", "securityContext": {"allowPrivilegeEscalation": False,
                                                                  "capabilities": {"drop": ["ALL"]}}}]}


def label(kubernetes, **modes):
    kubernetes.tell("patch", kind="Namespace", name="default", patch={"metadata": {"labels": {
        f"pod-security.kubernetes.io/{mode}": level for mode, level in modes.items()}}})


def limit(kubernetes, **item):
    kubernetes.tell("create", kind="LimitRange", object={
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", **item}]}})


def quota(kubernetes, **hard):
    kubernetes.tell("create", kind="ResourceQuota", object={
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": {key.replace("_", "/"): value for key, value in hard.items()}}})


def dry_runs(kubernetes):
    return [r for r in kubernetes.requests() if "dryRun" in r["url"]]


@pytest.mark.parametrize("launcher", ["direct", "mpirun"])
def test_pod_security_is_told_at_once(act, kubernetes, launcher):
    label(kubernetes, enforce="restricted")
    kubernetes.cluster(k8s={"launcher": launcher})
    said = ('violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false .*seccompProfile.*; set '
            "securityContext in k8s.pod")
    refused_at_once(act, kubernetes, said, status=7)
    kubernetes.forget()
    act.fail(*K8S, "submit", "--dry-run", "true", status=7, match=said)
    assert len(dry_runs(kubernetes)) == 1 and kubernetes.objects("Secret") == []
    kubernetes.cluster(k8s={"launcher": launcher, "pod": {"spec": RESTRICTED}})
    act.finish("true", before=K8S)


def test_what_the_namespace_only_warns_of(act, kubernetes):
    label(kubernetes, enforce="baseline", warn="restricted")
    run = act.run(*K8S, "submit", "true")
    assert run.err.count('the cluster says: would violate PodSecurity "restricted:latest"') == 1
    act.run("wait", run.out.strip())


def test_a_limit_range_is_told_at_once(act, kubernetes):
    limit(kubernetes, max={"memory": "1Gi", "cpu": "2"}, min={"memory": "64Mi"})
    kubernetes.cluster(k8s={"memory": "64Gi"})
    refused_at_once(act, kubernetes, "maximum memory usage per Container is 1Gi, but limit is 64Gi; set k8s.memory", 7)
    kubernetes.cluster(k8s={"memory": "16Mi"})
    refused_at_once(act, kubernetes, "minimum memory usage per Container is 64Mi.*; set k8s.memory", 7)
    kubernetes.cluster(k8s={"cpu": "16"})
    refused_at_once(act, kubernetes, "maximum cpu usage per Container is 2, but limit is 16; set k8s.cpu", 7)
    kubernetes.cluster(k8s={"memory": "512Mi"})
    act.finish("true", before=K8S)


def test_a_quota_that_wants_limits(act, kubernetes):
    quota(kubernetes, **{"limits.memory": "8Gi"})
    refused_at_once(act, kubernetes, "must specify limits.memory for: main; set k8s.cpu and k8s.memory", 7)
    kubernetes.cluster(k8s={"memory": "1Gi"})
    act.finish("true", before=K8S)


def test_a_quota_that_is_full_is_waited_for(act, kubernetes):
    quota(kubernetes, pods="1")
    first = act.submit("sleep", "1000", before=K8S)
    act.until_state(first, "Running")
    second = act.submit("true", before=K8S)
    waits(act, second, "room in the namespace's quota")
    act.run("abort", first)
    act.run("wait", second)


def test_the_same_pod_is_asked_about_once(act, kubernetes):
    """Who may not ask asks each time: the right may be given at any moment."""
    kubernetes.forget()
    runs = [act.submit("true", before=K8S) for _ in range(3)]
    assert len(dry_runs(kubernetes)) == 1
    kubernetes.cluster(k8s={"memory": "1Gi"})
    kubernetes.forbid({"verb": "create", "resource": "pods"})
    kubernetes.forget()
    runs += [act.submit("true", before=K8S) for _ in range(2)]
    assert len(dry_runs(kubernetes)) == 2
    kubernetes.forbid()
    label(kubernetes, enforce="restricted")
    act.fail(*K8S, "submit", "true", status=7, match="violates PodSecurity")
    act.run("wait", *runs)


def test_a_webhook_that_denies_is_told_at_once(act, kubernetes):
    kubernetes.tell("settings", webhooks=[{"name": "owners.example.com", "resources": ["pods"],
                                           "denies": "pods need the label owner"}])
    refused_at_once(act, kubernetes, 'forbids its pods: .*"owners.example.com" denied the request: pods need the label '
                    "owner; set in k8s.pod", 7)


@pytest.mark.parametrize("kind", ["jobs", "secrets", "services"])
def test_a_webhook_that_is_down_is_no_interruption(act, kubernetes, kind):
    """It says that nothing was made, and nothing is left, now and later."""
    act.finish("true", before=K8S)
    kubernetes.tell("delete", kind="Job", name=kubernetes.objects("Job")[0]["metadata"]["name"])
    act.until(lambda: nothing_is_left(kubernetes), "the first one is gone")
    kubernetes.tell("settings", webhooks=[{"name": "gate.example.com", "resources": [kind]}])
    message = act.fail(*K8S, "submit", "true", status=5, match='failed calling webhook "gate.example.com"')
    assert "does not answer" in message and "interrupted" not in message and "will tell whether" not in message
    act.until(lambda: nothing_is_left(kubernetes), "what was made is gone")  # the pods of a Job go after it
    table = act.run("q", "--json").json["runs"]
    reasons = [run["reason"] for run in table if run["state"] != "Completed"]
    assert all("not submitted: " in reason and "webhook" in reason for reason in reasons) and len(reasons) == 1


def test_a_webhook_for_pods_that_is_down_is_what_a_run_waits_for(act, kubernetes):
    kubernetes.tell("settings", webhooks=[{"name": "gate.example.com", "resources": ["pods"]}])
    asked = act.run(*K8S, "submit", "true")
    assert "the run's pods have to wait: " in asked.err and "gate.example.com" in asked.err
    run = asked.out.strip()
    reason = waits(act, run, "a webhook of the cluster does not answer")
    assert "quota" not in reason and "gate.example.com" in reason
    kubernetes.tell("settings", webhooks=[])
    act.run("wait", run)


def test_a_quota_of_secrets_is_no_missing_right(act, kubernetes):
    quota(kubernetes, **{"count/secrets": "1"})
    message = act.fail(*K8S, "submit", "true", status=6, match="exceeded quota: team, requested: count/secrets=1")
    assert "right" not in message and "kubectl describe quota" in message and "a prune" in message
    assert nothing_is_left(kubernetes)
