"""What Kubernetes refuses, and why a run waits there: one clear line each, and nothing left in the cluster."""
import json

import pytest

from kubernetes_double import IMAGE

K8S = ("-c", "k8s")


def nothing_is_left(kubernetes):
    return not any(kubernetes.objects(kind) for kind in ("Job", "Service", "Pod")) and all(
        "act/program" in s["metadata"].get("labels", {}) for s in kubernetes.objects("Secret"))


def refused(act, kubernetes, match, status=1, env=None):
    message = act.fail(*K8S, "submit", "true", status=status, match=match, env=env)
    assert nothing_is_left(kubernetes)
    return message


def refused_at_once(act, kubernetes, match, status):
    """Refused without a trace: no run is recorded."""
    refused(act, kubernetes, match, status=status)
    assert act.run("q", "--json").json["runs"] == []


def waits(act, run, what):
    """The reason why a run waits, once it has one."""
    return act.until(lambda: what in (act.info(run)["reason"] or "") and act.info(run)["reason"], what)


@pytest.mark.parametrize("image", [None, ""])
def test_no_image(act, kubernetes, image):
    kubernetes.cluster(k8s={"image": image})
    refused_at_once(act, kubernetes, "needs 'k8s.image' or 'docker.image'", status=7)


def test_no_kubeconfig(act, kubernetes):
    kubernetes.cluster(k8s={"kubeconfig": "nowhere/config"})
    refused(act, kubernetes, "nowhere/config", status=(3, 7))


def test_an_unknown_context(act, kubernetes):
    kubernetes.cluster(k8s={"context": "moon"})
    refused(act, kubernetes, "moon", status=7)


def test_an_unknown_namespace(act, kubernetes):
    kubernetes.cluster(k8s={"namespace": "nowhere"})
    refused_at_once(act, kubernetes, "there is no namespace 'nowhere' in the cluster of 'k8s'", status=7)
    act.fail(*K8S, "submit", "--dry-run", "true", status=7, match="there is no namespace 'nowhere'")
    act.fail(*K8S, "sweep", "--grid", "x=1,2", "--", "echo", "{x}", status=7, match="there is no namespace 'nowhere'")
    assert act.run("q", "--json").json["runs"] == []


@pytest.mark.parametrize("keys", [{"service_account": "runner"}, {"queue": "team"}])
def test_what_an_unknown_namespace_does_not_have(act, kubernetes, keys):
    """The namespace is what is missing."""
    if "queue" in keys:
        kubernetes.tell("settings", kueue=True)
    kubernetes.cluster(k8s={"namespace": "nowhere", **keys})
    refused_at_once(act, kubernetes, "there is no namespace 'nowhere' in the cluster of 'k8s'", status=7)


def test_whoever_may_not_look_at_namespaces_submits(act, kubernetes):
    kubernetes.forbid({"verb": "get", "resource": "namespaces"})
    assert act.state(act.finish("true", before=K8S)) == "Completed"


def test_a_token_that_is_not_accepted(act, kubernetes):
    kubernetes.tell("tokens", revoke=True)
    refused(act, kubernetes, "cannot look for the agent's Secret: ", status=4)


@pytest.mark.parametrize("verb, resource", [("create", "jobs"), ("create", "services"), ("create", "secrets"),
                                            ("patch", "jobs")])
def test_what_the_user_may_not_do_is_named(act, kubernetes, verb, resource):
    kubernetes.forbid({"verb": verb, "resource": resource})
    message = refused(act, kubernetes, resource, status=4)
    assert verb in message


def test_a_plugin_that_fails(act, kubernetes, tmp_path):
    plugin = tmp_path / "login"
    plugin.write_text("#!/bin/sh\necho 'your card has expired' >&2\nexit 3\n")
    plugin.chmod(0o755)
    config = json.loads(json.dumps(kube_json(kubernetes)))
    config["users"][0]["user"] = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin),
                                           "interactiveMode": "Never"}}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    kubernetes.cluster(k8s={"kubeconfig": str(path)})
    refused(act, kubernetes, "your card has expired", status=(1, 4))


def kube_json(kubernetes):
    """A kubeconfig for the double."""
    import yaml
    with open(kubernetes.kubeconfig) as file:
        return yaml.safe_load(file)


def test_an_old_server(act, kubernetes):
    kubernetes.tell("settings", version="1.20")
    refused_at_once(act, kubernetes, "older than Kubernetes 1.24", status=1)
    act.fail(*K8S, "submit", "--dry-run", "true", match="older than Kubernetes 1.24")
    assert kubernetes.objects("Secret") == []


@pytest.mark.parametrize("kind, said, title", [
    ("StartError", "the image has no /bin/sh; use", "image without a shell"),
    ("exec format", "the image is for another processor than the node's; use", "image for another processor")])
def test_an_image_that_cannot_start(act, kubernetes, kind, said, title):
    kubernetes.tell("settings", images={IMAGE: kind})
    run = act.submit("true", before=K8S)
    act.run("wait", run, status=None)
    assert act.info(run)["state"] == "Failed" and act.info(run)["reason"].startswith(said)
    assert said in act.run("q", run).out
    assert title in act.run("why", run).out


def test_an_agent_that_somebody_kills(act, kubernetes):
    run = act.submit("sleep", "1000", before=K8S)
    act.until_state(run, "Running")
    pod = kubernetes.pods_of(kubernetes.objects("Job")[0]["metadata"]["name"])[0]["metadata"]["name"]
    kubernetes.pod(pod, "kill")
    act.run("wait", run, status=137)
    assert f"pod '{pod}' ended with exit status 137" in act.info(run)["reason"]
    said = act.run("why", run).out
    assert "pod killed" in said and "not known" not in said, said


@pytest.mark.parametrize("index", [0, 1])
def test_a_pod_that_used_too_much_memory(act, kubernetes, index):
    kubernetes.cluster(gpu_per_node=1, k8s={"gpu_resource": "none", "launcher": "direct"})
    run = act.submit("sleep", "1000", before=("-c", "k8s", "-n", "2"))
    act.until_state(run, "Running")
    act.until(lambda: len(act.run("nodes", "--json", run).json["nodes"]) == 2, "both run")
    pod = kubernetes.pods_of(kubernetes.objects("Job")[0]["metadata"]["name"])[index]
    kubernetes.pod(pod["metadata"]["name"], "oom")
    act.run("wait", run, status=None)
    assert "used more memory than it may and was killed" in act.info(run)["reason"], act.info(run)
    assert "out of memory on the host" in act.run("why", run).out


def test_a_pod_whose_node_is_lost(act, kubernetes):
    """What there is of the logs is shown with the run, and what could not be had is named."""
    kubernetes.cluster(gpu_per_node=1, k8s={"gpu_resource": "none", "launcher": "direct"})
    run = act.submit("sh", "-c", "echo I am $RANK; sleep 1000", before=("-c", "k8s", "-n", "2"))
    act.until(lambda: act.run("logs", "--rank", "1", run, status=None).out, "rank 1 runs")
    lost, kept = kubernetes.pods_of(kubernetes.objects("Job")[0]["metadata"]["name"])[::-1]
    kubernetes.node(lost["spec"]["nodeName"], "lose", evict=False)
    asked = act.run("q", run)
    assert "I am 0" in asked.out and "\nelapsed " in asked.out
    assert f"the logs are not complete: cannot read the log of the pod '{lost['metadata']['name']}'" in asked.err
    kubernetes.node(kept["spec"]["nodeName"], "lose", evict=False)
    nothing = act.run("q", run, status=None)
    assert nothing.status != 0 and "\nelapsed " in nothing.out and "cannot fetch the logs" in nothing.err
    act.run("abort", run, status=None)


def test_an_image_that_is_not_there(act, kubernetes):
    kubernetes.tell("settings", images={IMAGE: "ErrImagePull"})
    run = act.submit("true", before=K8S)
    waits(act, run, "the image cannot be pulled")
    assert act.info(run)["state"] == "Queued"
    act.run("abort", run)
    act.until_state(run, "Canceled")


@pytest.mark.parametrize("who", ["a abort", "kubectl"])
def test_a_run_that_never_began_has_no_time(act, kubernetes, who):
    """Its Job waits for its pods to go, which never ran."""
    kubernetes.tell("settings", images={IMAGE: "ErrImagePull"})
    run = act.submit("true", before=K8S)
    waits(act, run, "the image cannot be pulled")
    name = kubernetes.objects("Job")[0]["metadata"]["name"]
    kubernetes.tell("patch", kind="Job", name=name, patch={"metadata": {"finalizers": ["example.com/slow"]}})
    if who == "a abort":
        assert f"{run}  Canceled\n" in act.run("abort", run).err
    else:
        kubernetes.call("DELETE", f"/apis/batch/v1/namespaces/default/jobs/{name}?propagationPolicy=Foreground")
    for _ in range(2):
        info = act.info(run)
        assert (info["state"], info["started"]) == ("Canceled", None), info
        assert info["reason"] == ("aborted" if who == "a abort" else "somebody deleted it from the cluster")
        act.until(lambda: kubernetes.objects("Pod") == [], "its pods are gone")
    assert kubernetes.objects("Job") and "elapsed" not in act.run("q", run, status=None).out


def test_a_run_that_waits_and_is_deleted_was_no_interruption(act, kubernetes):
    kubernetes.tell("settings", images={IMAGE: "ErrImagePull"})
    run = act.submit("true", before=K8S)
    waits(act, run, "the image cannot be pulled")
    kubernetes.tell("delete", kind="Job", name=kubernetes.objects("Job")[0]["metadata"]["name"])
    act.until(lambda: kubernetes.objects("Job") == [], "it is gone")
    info = act.info(run)
    assert (info["state"], info["reason"]) == ("Canceled", "somebody deleted it from the cluster")


def test_a_selector_that_no_node_has(act, kubernetes):
    kubernetes.cluster(k8s={"node_selector": {"disk": "fast"}})
    run = act.submit("true", before=K8S)
    reason = waits(act, run, "no node takes it")
    assert "nodes are available" in reason and "k8s.node_selector" in reason and "a summary" not in reason
    follows = act.start("logs", "-f", run)
    act.until(lambda: b"is queued: no node takes it" in follows.stderr.readline(), "it says what it waits for")
    act.run("abort", run)
    follows.communicate()


def test_more_gpus_than_any_node_has(act, kubernetes):
    kubernetes.tell("node", name="big", do="add", gpus=8)
    kubernetes.cluster(gpu_per_node=16, k8s={"gpu_resource": "nvidia.com/gpu"})
    refused(act, kubernetes, r"a pod with 16 'nvidia.com/gpu' fits no node .* the largest has 8; .*k8s.larger_nodes",
            status=6)
    kubernetes.cluster(gpu_per_node=16, k8s={"gpu_resource": "nvidia.com/gpu", "larger_nodes": True})
    asked = act.run(*K8S, "submit", "true")
    assert "a pod with 16 'nvidia.com/gpu' fits no node that 'k8s' has now, of which the largest has 8: it waits " \
        "for a larger one" in asked.err
    act.run("abort", asked.out.strip())


@pytest.mark.parametrize("key, what", [("priority_class", "priority class"), ("service_account", "service account")])
def test_what_the_configuration_names_and_is_not_there(act, kubernetes, key, what):
    kubernetes.cluster(k8s={key: "golden"})
    refused_at_once(act, kubernetes, f"there is no {what} 'golden'", status=7)


def test_a_queue_without_kueue(act, kubernetes):
    kubernetes.cluster(k8s={"queue": "team"})
    refused_at_once(act, kubernetes, "k8s.queue", status=7)


def test_a_volume_claim_that_is_not_there(act, kubernetes):
    kubernetes.cluster(k8s={"volumes": [{"mount_path": "/data", "persistentVolumeClaim": {"claimName": "none"}}]})
    run = act.submit("true", before=K8S)
    reason = waits(act, run, "none")
    assert "create or look at the claim" in reason and "a summary" not in reason


def test_folders_that_pods_cannot_have(act, kubernetes):
    params = {"code_path": {"azure_blob_config_file": "aux_data/configs/store.yaml", "path": "code.zip"},
              "data_folder": {"azure_blob_config_file": "aux_data/configs/store.yaml", "path": "data"}}
    kubernetes.cluster(config_param=params)
    refused(act, kubernetes, "folder 'data' is .*, which the pods do not have", status=7)


@pytest.mark.parametrize("keys, match", [
    ({"time": "soon"}, "'k8s.time' must be a duration"),
    ({"memory": "much"}, "'k8s.memory' must be a quantity"),
    ({"tolerations": "all"}, "'k8s.tolerations' must be a list of maps"),
    ({"pod": {"containers": []}}, "put it below 'spec'"),
    ({"pod": {"spec": {"containers": []}}}, "needs a 'name'"),
    ({"volumes": [{"mount_path": "data", "emptyDir": {}}]}, "needs 'mount_path'"),
    ({"volumes": [{"mount_path": "/data"}]}, "needs one source"),
])
def test_settings_that_cannot_be(act, kubernetes_api, keys, match):
    kubernetes_api.use(act)
    kubernetes_api.cluster(k8s=keys)
    refused(act, kubernetes_api, match, status=7)
    assert kubernetes_api.requests() == []


def test_a_typing_error_in_the_pod_is_told(act, kubernetes_api):
    """A server drops what it does not know without an error."""
    kubernetes_api.use(act)
    kubernetes_api.cluster(k8s={"pod": {"spec": {"tolerationz": [], "hostNetwork": True}}})
    message = act.fail(*K8S, "submit", "true", status=7, match="no field 'tolerationz', which 'k8s.pod' in .*k8s.yaml")
    assert "kubectl explain pod.spec" in message
    assert kubernetes_api.objects("Job") == [] and "Run" not in act.run("q").out


def test_a_server_that_drops_fields_in_silence(act, kubernetes):
    """Whatever version it says it is: what it made of the Job is looked at."""
    kubernetes.tell("settings", strict=False, contract=False)
    pod = {"metadata": {"labels": {"team": "a"}}, "spec": {
        "hostNetwork": False, "tolerations": [], "priority": None, "securityContext": {"fsGroup": 100},
        "containers": [{"name": "main", "env": [{"name": "A", "value": "b"}], "securityContext": {"privilegd": True}}]}}
    kubernetes.cluster(k8s={"pod": pod})
    message = act.fail(*K8S, "submit", "true", status=7, match="no field 'privilegd', which 'k8s.pod' in .*k8s.yaml")
    assert "kubectl explain" in message and nothing_is_left(kubernetes)
    assert len(kubernetes.requests()) < 12
    del pod["spec"]["containers"][0]["securityContext"]
    kubernetes.cluster(k8s={"pod": pod})
    act.finish("true", before=K8S)


@pytest.mark.parametrize("version", ["1.24", "1.25"])
def test_a_server_that_lacks_what_is_ours(act, kubernetes, version):
    """It does without: only what the user has written must be known."""
    kubernetes.tell("settings", version=version)
    run = act.submit("true", before=K8S)
    act.run("wait", run)
    assert "replacement" not in str(kubernetes.objects("Job")[0]["spec"])


def test_warnings_of_the_server(act, kubernetes):
    """Each is shown once, and not all of many."""
    pods = 'would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false'
    kubernetes.tell("settings", warnings=[pods, pods, "old\t\\ thing"])
    said = act.run(*K8S, "submit", "true").err
    assert said.count(f"act: warning: the cluster says: {pods}\n") == 1 and said.count("the cluster says") == 2
    assert "the cluster says: old \\ thing\n" in said
    kubernetes.tell("settings", warnings=[f"thing {i} is deprecated" for i in range(1000)])
    said = act.run(*K8S, "submit", "true").err
    assert said.count("the cluster says") == 10
    for run in [r["id"] for r in act.run("q", "--json").json["runs"]]:
        act.run("wait", run)


def test_a_server_that_is_away(act, kubernetes):
    run = act.submit("sleep", "1000", before=K8S)
    act.until_state(run, "Running")
    kubernetes.tell("away")
    try:
        act.run("q", run, status=None)
        assert act.info(run)["state"] == "Running"
    finally:
        kubernetes.tell("back")
    act.run("abort", run)


def test_a_name_that_somebody_else_has(act, kubernetes):
    run = act.submit("true", before=K8S)
    act.run("wait", run)
    job = kubernetes.objects("Job")[0]
    assert job["metadata"]["annotations"]["act/run"] == run


def test_a_project_may_not_name_a_kubeconfig_without_being_trusted(act, kubernetes_api):
    kubernetes_api.use(act)
    inside = act.write("conf/kube", open(kubernetes_api.kubeconfigs["exec"], "rb").read())
    kubernetes_api.cluster(k8s={"kubeconfig": str(inside)})
    del act.env["ACT_TRUSTED_PROJECTS"]
    act.fail(*K8S, "submit", "true", status=None, match="reaches out of its folder")
    assert kubernetes_api.requests() == []
    asked = act.on_terminal(*K8S, "trust", typed=b"n\n").decode()
    assert "k8s.kubeconfig" in asked and "the program" in asked and kubernetes_api.url in asked
