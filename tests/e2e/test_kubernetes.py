"""Runs on Kubernetes, from the command to its logs, on the double."""
import base64
import gzip
import hashlib
import json
import random
import re
import shutil
import subprocess

import pytest

from kubernetes_double import IMAGE

K8S = ("-c", "k8s")


def several(kubernetes, per_node=1, **keys):
    """The cluster's nodes have processes instead of GPUs."""
    kubernetes.cluster(gpu_per_node=per_node, k8s={"gpu_resource": "none", "launcher": "direct", **keys})


@pytest.mark.smoke
def test_a_command_from_submit_to_logs(act, kubernetes):
    act.write("hello.py", "print('hello from the pod')\n")
    run = act.submit("python3", "hello.py", before=K8S)
    act.run("wait", run)
    assert act.info(run)["state"] == "Completed"
    assert act.run("logs", run).out == "hello from the pod\n"


def test_a_submit_is_five_requests_and_the_first_one_three_more(act, kubernetes):
    """The version, the agent's Secret, and whether the pods would be let in."""
    act.run(*K8S, "init")
    kubernetes.forget()
    act.finish("true", before=K8S)
    first = kubernetes.requests()
    until = next(i for i, r in enumerate(first) if r["method"] == "PATCH") + 1
    assert [r["method"] for r in first[:until]] == ["GET", "GET", "POST", "POST", "POST", "POST", "POST", "PATCH"]
    kubernetes.forget()
    run = act.submit("true", before=K8S)
    assert len(kubernetes.requests()) == 5
    act.run("wait", run)


def test_a_submit_does_not_ask_about_the_runs_that_have_not_ended(act, kubernetes):
    """With GPUs it looks at the nodes, too."""
    earlier = act.submit("sleep", "300", before=K8S)
    kubernetes.forget()
    later = act.submit("true", before=K8S)
    assert [r["method"] for r in kubernetes.requests()] == ["GET", "POST", "POST", "POST", "PATCH"]
    kubernetes.cluster(k8s={"gpu_resource": "nvidia.com/gpu"})
    kubernetes.forget()
    runs = [act.submit("true", before=K8S)]
    assert [r["url"] for r in kubernetes.requests() if "dryRun" in r["url"]], "they are other pods"
    kubernetes.forget()
    runs.append(act.submit("true", before=K8S))
    assert [r["method"] for r in kubernetes.requests()] == ["GET", "GET", "POST", "POST", "POST", "PATCH"]
    act.run("abort", earlier)
    act.run("wait", later, *runs)


def test_a_program_that_somebody_else_put_there_does_not_run(act, kubernetes):
    """Also where its labels say that ACT has made it."""
    act.finish("true", before=K8S)
    secret = next(s for s in kubernetes.objects("Secret") if s["metadata"]["name"].startswith("act-program-"))
    name, labels = secret["metadata"]["name"], secret["metadata"]["labels"]

    def plant(labels):
        kubernetes.call("DELETE", f"/api/v1/namespaces/default/secrets/{name}")
        script = base64.b64encode(gzip.compress(b"#!/bin/sh\necho planted\n")).decode()
        kubernetes.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels},
                           "data": {"act-node.gz": script}})

    plant({})
    refused = act.run(*K8S, "submit", "true", status=1).err
    assert f"the namespace has a Secret '{name}' that ACT has not made" in refused and "delete secret" in refused
    plant(labels)
    run = act.submit("echo", "hello", before=K8S)
    act.run("wait", run, status=124)
    assert "found another program than the submitted one in a Secret 'act-program-...'" in act.info(run)["reason"]
    said = act.run("cat", f"{run}:system_logs/agent_0.txt").out
    assert "planted" not in said and f"the Secret '{name}' does not hold the program that was submitted" in said
    kubernetes.call("DELETE", f"/api/v1/namespaces/default/secrets/{name}")
    act.finish("true", before=K8S)


@pytest.mark.parametrize("launcher", ["direct", "mpirun"])
def test_processes_on_several_nodes(act, kubernetes, launcher):
    several(kubernetes, per_node=2, launcher=launcher)
    run = act.submit("sh", "-c", "echo rank $RANK of $WORLD_SIZE at $MASTER_ADDR", before=("-c", "k8s", "-n", "4"))
    act.run("wait", run)
    name = kubernetes.objects("Job")[0]["metadata"]["name"]
    for rank in range(4):
        assert act.run("logs", "--rank", str(rank), run).out == f"rank {rank} of 4 at {name}-0.{name}\n"
    assert act.log(run, 3).decode() == f"rank 3 of 4 at {name}-0.{name}\n"


def test_the_exit_status_and_the_rank_of_a_failure(act, kubernetes):
    several(kubernetes)
    run = act.submit("sh", "-c", "test $RANK = 0 || exit 7; sleep 60", before=("-c", "k8s", "-n", "2"))
    act.run("wait", run, status=7)
    info = act.info(run)
    assert (info["state"], info["exit_status"], info["failed_rank"]) == ("Failed", 7, 1)


def test_abort(act, kubernetes):
    run = act.submit("sh", "-c", "echo up; sleep 1000", before=K8S)
    act.until(lambda: act.run("logs", run, status=None).out == "up\n", "it says so")
    assert run in act.run(*K8S, "blame").out, "also a run that asks for no resources"
    assert act.run(*K8S, "summary", "--json").json["total"]["jobs"]["running"] == 1
    act.run("abort", run)
    assert act.state(run) != "Queued"
    act.until_state(run, "Canceled")
    assert act.run("logs", run).out == "up\n"
    act.until(lambda: kubernetes.objects("Job") == [], "the Job is gone")
    assert kubernetes.objects("Secret")[0]["metadata"]["name"].startswith("act-program-")
    assert len(kubernetes.objects("Secret")) == 1 and kubernetes.objects("Service") == []
    assert "Canceled" in act.run("abort", run).err
    shutil.rmtree(act.project / "assets")
    act.fail("logs", run, status=3, match="went with its pods: its Job is not in the namespace 'default' any more")


def test_abort_of_several(act, kubernetes):
    """Each question is asked of all of them at once: the cluster answers none of three before it has all three. One
    that has ended is in nobody's way."""
    runs = [act.submit("sleep", "1000", before=K8S) for _ in range(3)]
    ended = act.submit("true", before=K8S)
    act.run("wait", ended)
    kubernetes.faults({"method": "DELETE", "match": "/jobs/", "times": 3, "together": 3})
    assert act.run("abort", *runs, ended).err.count("Completed") == 1
    for run in runs:
        act.until_state(run, "Canceled")


def test_a_job_that_somebody_deletes_is_cancelled(act, kubernetes):
    run = act.submit("sleep", "1000", before=K8S)
    act.until_state(run, "Running")
    name = kubernetes.objects("Job")[0]["metadata"]["name"]
    kubernetes.tell("delete", kind="Job", name=name, namespace="default", options={"propagationPolicy": "Background"})
    act.until_state(run, "Canceled")
    assert act.info(run)["reason"] == "somebody deleted it from the cluster"


def test_a_resubmit_keeps_the_image_and_says_so_only_if_it_is_another(act, kubernetes):
    run = act.finish("true", before=K8S)
    same = act.run("resubmit", run)
    assert "that of the first run" not in same.err
    act.run("wait", same.out.strip())
    kubernetes.cluster(k8s={"image": "registry.example.com/act/other:1"})
    kept = act.run("resubmit", run)
    assert f"the image is that of the first run, '{IMAGE}', and not 'registry.example.com/act/other:1'" in kept.err
    act.run("wait", kept.out.strip())
    images = [j["spec"]["template"]["spec"]["containers"][0]["image"] for j in kubernetes.objects("Job")]
    assert images == [IMAGE] * 3
    named = act.run("-p", "k8s: {image: registry.example.com/act/new:1}", "resubmit", run)
    assert "that of the first run" not in named.err
    act.run("wait", named.out.strip())


def test_a_dry_run_of_a_resubmit_is_that_of_a_submit(act, kubernetes):
    run = act.finish("echo", "hello", before=K8S)
    kubernetes.forget()
    printed = act.run("resubmit", "--dry-run", run)
    assert [i["kind"] for i in printed.json["items"]] == ["Job", "Secret", "Service"]
    assert kubernetes.changes() == []


def test_code_that_is_too_much_is_refused_before_it_is_stored(act, kubernetes):
    act.write("data/big.bin", random.Random(1).randbytes(34 << 20))
    for words in (["--dry-run"], []):
        act.fail(*K8S, "submit", *words, "true", match="34.0 MiB packed, but Secrets bring at most 32.0 MiB")
        assert not list(act.store.rglob("*.zip")) and act.run("q", "--json").json["runs"] == []
    act.write("data/big.bin", bytes(34 << 20))
    act.run(*K8S, "submit", "--dry-run", "true")


def test_nodes(act, kubernetes):
    several(kubernetes)
    run = act.submit("sleep", "1000", before=("-c", "k8s", "-n", "2"))
    act.until_state(run, "Running")
    nodes = act.run("nodes", "--json", run).json["nodes"]
    assert [n["node"] for n in nodes] == [0, 1]
    assert all(n["state"].startswith("Running on gpu-") for n in nodes), nodes
    addresses = [pod["status"]["podIP"] for pod in kubernetes.objects("Pod")]
    assert sorted(n["address"] for n in nodes) == sorted(addresses) and all(n["port"] is None for n in nodes)
    act.run("abort", run)


def test_a_dry_run_prints_what_kubectl_takes(act, kubernetes):
    kubernetes.cluster(docker={"username": "me", "password": "hunter2"}, env={"A_TOKEN": "hunter3"})
    act.run(*K8S, "init")
    kubernetes.forget()
    printed = act.run(*K8S, "submit", "--dry-run", "echo", "hello")
    assert "hunter" not in printed.out
    assert printed.json["kind"] == "List"
    assert [i["kind"] for i in printed.json["items"]] == ["Job", "Secret", "Secret", "Service"]
    spec = json.loads(printed.json["items"][2]["stringData"]["run.json"])
    assert spec["command"] == ["echo", "hello"]
    assert kubernetes.changes() == []
    for item in printed.json["items"]:
        kubernetes.create(item)


def test_doctor(act, kubernetes):
    found = {c["what"]: c for c in act.run(*K8S, "doctor", "--json", status=None).json["checks"]}
    for what in ("server", "namespace", "rights", "image", "GPUs"):
        assert found[what]["ok"], found
    kubernetes.forbid({"verb": "create", "resource": "services"}, {"verb": "get", "resource": "secrets"})
    found = {c["what"]: c for c in act.run(*K8S, "doctor", "--json", status=None).json["checks"]}
    assert "you may not: get secrets, create services;" in found["rights"]["text"] and not found["rights"]["ok"]
    for tool in ("/bin/sh", "gzip", "sha256sum", "chmod", "cat"):
        assert tool in found["image"]["text"]
    kubernetes.forbid({"verb": "list", "resource": "nodes"})
    kubernetes.cluster(k8s={"gpu_resource": "nvidia.com/gpu", "namespace": "nowhere"})
    found = {c["what"]: c for c in act.run(*K8S, "doctor", "--json", status=None).json["checks"]}
    assert found["GPUs"]["ok"] and found["GPUs"]["text"].startswith("not known: you may not list the nodes")
    assert not found["namespace"]["ok"] and "rights" not in found


def test_doctor_asks_for_what_only_some_verbs_need(act, kubernetes):
    def rights():
        found = act.run(*K8S, "doctor", "--json", status=None).json["checks"]
        assert all(c["ok"] for c in found if "rights" in c["what"]), found
        return [c["text"] for c in found if c["what"] == "other rights"]

    assert rights() == []
    kubernetes.forbid({"verb": "create", "resource": "pods/exec"})
    assert rights() == [], "this server does not ask for it"
    kubernetes.tell("settings", version="1.35")
    assert rights() == ["you may not create pods/exec, which only 'a ssh' needs"]
    kubernetes.forbid({"verb": "get", "resource": "pods/exec"}, {"verb": "delete", "resource": "secrets"})
    text, = rights()
    assert text.startswith("you may not get pods/exec, which only 'a ssh' needs; delete secrets, which only 'a prune'")


def test_a_log_that_grows_and_is_rotated_has_no_line_twice(act, kubernetes):
    kubernetes.tell("settings", logBytes=200000, keptLogs=100)
    count = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i + 1)); done"
    run = act.submit("sh", "-c", count, before=K8S)
    lines = act.run("logs", "-f", run).out.splitlines()
    numbers = [int(line.split()[1]) for line in lines if line.startswith("line ")]
    assert numbers == sorted(set(numbers))
    gone = [line for line in lines if not line.startswith("line ")]
    assert len(numbers) == 20000 or any("bytes are gone: the node rotated its log" in line for line in gone)


def test_a_pod_that_is_taken_away_is_an_attempt(act, kubernetes, tmp_path):
    several(kubernetes, volumes=[{"mount_path": str(tmp_path), "hostPath": {"path": str(tmp_path)}}])
    gate = tmp_path / "gate"
    script = f"echo attempt $ACT_ATTEMPT; while [ ! -e {gate} ]; do sleep 0.1; done"
    run = act.submit("sh", "-c", script, before=("-c", "k8s", "-n", "2"))
    act.until_state(run, "Running")
    act.until(lambda: act.run("logs", "--rank", "1", run, status=None).out, "rank 1 runs")
    pod = kubernetes.pods_of(kubernetes.objects("Job")[0]["metadata"]["name"])[1]
    kubernetes.pod(pod["metadata"]["name"], "preempt")
    act.until(lambda: "attempt 2" in act.run("logs", run, status=None).out, "rank 0 runs again")
    gate.touch()
    act.run("wait", run)
    assert act.info(run)["attempt"] == 2
    assert act.run("logs", "--attempt", "1", run).out == "attempt 1\n"


def test_what_the_pod_before_said_is_an_attempt_of_its_own(act, kubernetes, tmp_path):
    """Where nobody is left who knows how many attempts there were: live, and when all is over."""
    several(kubernetes, volumes=[{"mount_path": str(tmp_path), "hostPath": {"path": str(tmp_path)}}])
    gate = tmp_path / "gate"
    script = (f"echo life $(ls {tmp_path} | wc -l); touch {tmp_path}/$$-$(date +%N); "
              f"until [ -e {gate} ]; do sleep 0.1; done")
    run = act.submit("sh", "-c", script, before=K8S)
    for life in (0, 1):
        act.until(lambda: act.run("logs", run, status=None).out == f"life {life}\n", "the command says so")
        name = kubernetes.objects("Job")[0]["metadata"]["name"]
        pod = next(p for p in kubernetes.pods_of(name) if p["status"]["phase"] == "Running")
        kubernetes.pod(pod["metadata"]["name"], "evict")
    act.until(lambda: act.run("logs", run, status=None).out == "life 2\n", "it runs again")
    assert act.run("logs", "--attempt", "1", run).out == "life 0\n"
    gate.touch()
    act.run("wait", run)
    assert [act.run("logs", "--attempt", str(n), run).out for n in (1, 2, 3)] == ["life 0\n", "life 1\n", "life 2\n"]
    assert act.run("cat", f"{run}:system_logs/agent_0.txt").out == "act: attempt 3\nact: Completed\n"
    assert act.info(run)["attempt"] == 3


def test_a_first_pod_that_somebody_deletes_is_an_attempt(act, kubernetes, tmp_path):
    """The cluster does not say why, so that by its exit status alone the run goes on."""
    several(kubernetes, volumes=[{"mount_path": str(tmp_path), "hostPath": {"path": str(tmp_path)}}])
    gate = tmp_path / "gate"
    script = f"echo attempt $ACT_ATTEMPT; while [ ! -e {gate} ]; do sleep 0.1; done"
    run = act.submit("sh", "-c", script, before=("-c", "k8s", "-n", "2"))
    act.until(lambda: act.run("logs", run, status=None).out, "rank 0 runs")
    pod = kubernetes.pods_of(kubernetes.objects("Job")[0]["metadata"]["name"])[0]
    kubernetes.tell("delete", kind="Pod", name=pod["metadata"]["name"])
    act.until(lambda: "attempt 2" in act.run("logs", run, status=None).out, "rank 0 runs again")
    gate.touch()
    act.run("wait", run)
    assert act.info(run)["attempt"] == 2


@pytest.mark.parametrize("launcher", ["direct", "mpirun"])
@pytest.mark.parametrize("index", [0, 1])
def test_a_pod_that_is_deleted_by_force_is_one_attempt(act, kubernetes, tmp_path, index, launcher):
    """The cluster makes another one at once, while the old one still has its time to end."""
    several(kubernetes, volumes=[{"mount_path": str(tmp_path), "hostPath": {"path": str(tmp_path)}}], launcher=launcher)
    gate = tmp_path / "gate"
    script = f"trap 'sleep 0.5; exit 1' TERM; echo attempt $ACT_ATTEMPT; while [ ! -e {gate} ]; do sleep 0.1; done"
    run = act.submit("sh", "-c", script, before=("-c", "k8s", "-n", "2"))
    act.until(lambda: act.run("logs", "--rank", "1", run, status=None).out, "rank 1 runs")
    pod = kubernetes.pods_of(kubernetes.objects("Job")[0]["metadata"]["name"])[index]
    kubernetes.tell("delete", kind="Pod", name=pod["metadata"]["name"], options={"gracePeriodSeconds": 0})
    act.until(lambda: "attempt 2" in act.run("logs", "--rank", "1", run, status=None).out, "rank 1 runs again")
    if index == 1:  # the first pod is still there to say it
        said = act.run("why", run).out
        assert re.search("attempt 1: pod 1 was (lost|told to end): attempt 1 ends", said) and "lost pod" in said, said
    gate.touch()
    act.run("wait", run)
    assert act.info(run)["attempt"] == 2, act.run("cat", f"{run}:system_logs/agent_0.txt").out
    assert act.info(run)["state"] == "Completed"


def test_a_pod_that_is_deleted_by_force_and_needs_longer_ends_its_run(act, kubernetes):
    """It is killed as one is that needs too much memory: the rules of a Job cannot tell them apart, but people can."""
    kubernetes.tell("settings", forcedMs=200)
    run = act.submit("sh", "-c", "trap '' TERM; echo begun; while :; do sleep 0.1; done", before=K8S)
    act.until(lambda: act.run("logs", run, status=None).out, "it runs")
    pod = kubernetes.objects("Pod")[0]["metadata"]["name"]
    kubernetes.tell("delete", kind="Pod", name=pod, options={"gracePeriodSeconds": 0})
    act.run("wait", run, status=137)
    info = act.info(run)
    assert info["state"] == "Failed" and info["exit_status"] == 137, info
    assert info["reason"].startswith(f"pod '{pod}' was killed (exit status 137) and deleted"), info
    said = act.run("why", run, status=None).out
    assert "deleted pod" in said and "kubectl delete pod" in said, said


def test_the_agent_has_the_variables_that_are_for_it(act, kubernetes):
    kubernetes.cluster(env={"ACT_ABORT_GRACE": "2", "ACT_POD_PATIENCE": "900", "MINE": "1"})
    act.finish("true", before=K8S)
    pod = kubernetes.objects("Job")[0]["spec"]["template"]["spec"]
    given = [variable for variable in pod["containers"][0]["env"] if "value" in variable]
    assert given == [{"name": "ACT_ABORT_GRACE", "value": "2"},
                     {"name": "ACT_POD_PATIENCE", "value": "900"}]
    assert pod["terminationGracePeriodSeconds"] == 22


def test_a_submission_that_died_half_way_is_completed(act, kubernetes):
    kubernetes.faults({"method": "POST", "match": "services", "status": 503, "times": 50})
    act.run(*K8S, "submit", "echo", "hello", status=5, env={"ACT_MAX_RETRIES": "0"})
    assert kubernetes.objects("Job")[0]["spec"]["suspend"]
    kubernetes.faults()
    run = act.submit("echo", "hello", before=K8S)
    act.run("wait", run)
    assert len(kubernetes.objects("Job")) == 1


def test_a_secret_that_somebody_else_made_for_a_run_is_refused(act, kubernetes):
    """Who sees the suspended Job knows all names, and that of the run."""
    kubernetes.faults({"method": "POST", "match": "services", "status": 503, "times": 50})
    act.run(*K8S, "submit", "echo", "hello", status=5, env={"ACT_MAX_RETRIES": "0"})
    name = kubernetes.objects("Job")[0]["metadata"]["name"]
    secret = next(s for s in kubernetes.objects("Secret") if s["metadata"]["name"] == name)
    spec = json.loads(base64.b64decode(secret["data"]["run.json"]))
    planted = {**secret["data"],
               "run.json": base64.b64encode(json.dumps({**spec, "command": ["echo", "planted"]}).encode()).decode()}
    kubernetes.call("DELETE", f"/api/v1/namespaces/default/secrets/{name}")
    meta = {key: secret["metadata"][key] for key in ("name", "labels", "annotations", "ownerReferences")}
    kubernetes.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "immutable": True, "data": planted})
    kubernetes.faults()
    refused = act.run(*K8S, "submit", "echo", "hello", status=1)
    assert f"there is a Secret '{name}' already whose content differs from this run's" in refused.err
    assert not kubernetes.objects("Job")
    run = act.submit("echo", "hello", before=K8S)
    act.run("wait", run)
    assert act.run("logs", run).out == "hello\n"


def test_summary_and_blame(act, kubernetes):
    kubernetes.node("wide", "add", gpus=4)
    kubernetes.cluster(gpu_per_node=4, k8s={"gpu_resource": "nvidia.com/gpu", "launcher": "direct"})
    run = act.submit("sleep", "1000", before=K8S)
    act.until_state(run, "Running")
    greedy = {"name": "x", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "9007199254740993"}}}
    kubernetes.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "greedy", "namespace": "default"},
                       "spec": {"containers": [greedy, {**greedy, "name": "y"}]}})
    total = act.run(*K8S, "summary", "--json").json["total"]
    assert total["gpus"]["busy"] == 4 and total["jobs"]["queued_gpus"] == 1 << 24, "whatever others ask for"
    assert run in act.run(*K8S, "blame").out
    act.run("abort", run)


def test_a_table_of_runs_is_three_requests(act, kubernetes):
    runs = [act.submit("sleep", "1000", before=K8S) for _ in range(3)]
    for run in runs:
        act.until_state(run, "Running")
    kubernetes.forget()
    found = act.run(*K8S, "q", "--json").json["runs"]
    assert {r["id"] for r in found if r["state"] == "Running"} == set(runs)
    assert len(kubernetes.requests()) <= 3, kubernetes.requests()
    act.run("abort", *runs)


def test_runs_of_another_machine_are_found(act, kubernetes):
    run = act.finish("echo", "hello", before=K8S)
    act.env["ACT_HOME"] = str(act.scratch / "other-home")
    found = act.run(*K8S, "q", "--json").json["runs"]
    assert [(r["id"], r["state"]) for r in found] == [(run, "Completed")]
    assert act.run(*K8S, "logs", run).out == "hello\n"
    again = act.run(*K8S, "resubmit", run).out.strip()
    act.run("wait", again)
    act.env["ACT_HOME"] = str(act.scratch / "third-home")
    job = next(j for j in kubernetes.objects("Job") if j["metadata"]["labels"]["act/run"] == run)
    act.run(*K8S, "rm", "-y", f"{job['metadata']['name']}:")
    assert [r["id"] for r in act.run(*K8S, "q", "--json").json["runs"]] == [again]


def test_kubectl_shows_what_act_made(act, kubernetes):
    kubectl = shutil.which("kubectl")
    if not kubectl:
        pytest.skip("kubectl is not installed")
    run = act.finish("echo", "hello", before=K8S)
    name = kubernetes.objects("Job")[0]["metadata"]["name"]
    said = subprocess.run([kubectl, f"--kubeconfig={kubernetes.kubeconfig}", "logs", f"job/{name}"], text=True,
                          check=True, stdout=subprocess.PIPE).stdout
    assert "[0] hello\n" in said
    kept = subprocess.run([kubectl, f"--kubeconfig={kubernetes.kubeconfig}", "get", "jobs", "-o", "name", "-l",
                           f"act/run={run}"], text=True, check=True, stdout=subprocess.PIPE).stdout
    assert kept == f"job.batch/{name}\n"


def test_a_package_in_parts(act, kubernetes):
    content = random.Random(1).randbytes(2_000_000)
    act.write("model.bin", content)
    run = act.finish("sha256sum", "model.bin", before=K8S)
    assert act.run("logs", run).out.split()[0] == hashlib.sha256(content).hexdigest()
    parts = [s["metadata"]["name"] for s in kubernetes.objects("Secret") if "-package-" in s["metadata"]["name"]]
    assert len(parts) == 3


def test_secrets_reach_the_command_and_nobody_else(act, kubernetes):
    kubernetes.cluster(env={"MY_TOKEN": "hush-hush"})
    run = act.finish("sh", "-c", "test ${#MY_TOKEN} = 9", before=K8S)
    name = kubernetes.objects("Job")[0]["metadata"]["name"]
    secret = next(s for s in kubernetes.objects("Secret") if s["metadata"]["name"] == name)
    assert b"hush-hush" not in base64.b64decode(secret["data"]["run.json"])
    assert "hush-hush" not in json.dumps([kubernetes.objects("Job"), kubernetes.objects("Pod")])
    kubernetes.cluster()
    again = act.run("resubmit", run).out.strip()
    act.run("wait", again)


def test_a_server_without_failure_policies(act, kubernetes):
    kubernetes.tell("settings", version="1.24")
    said = act.run(*K8S, "submit", "sh", "-c", "exit 3").err
    assert "losing a pod fails the run" in said
    run = act.run(*K8S, "q", "--json").json["runs"][0]["id"]
    act.run("wait", run, status=3)


def test_why_a_run_failed(act, kubernetes):
    several(kubernetes, per_node=2)
    run = act.submit("sh", "-c", "test $RANK = 1 || sleep 60; echo the disk is on fire; exit 9",
                     before=("-c", "k8s", "-n", "2"))
    act.run("wait", run, status=9)
    why = act.run("why", "--json", run).json["failure"]
    assert (why["rank"], why["exit_status"]) == (1, 9)
    assert "the disk is on fire" in act.run("why", run).out


def test_a_queue_of_kueue(act, kubernetes):
    kubernetes.tell("settings", kueue=True)
    kubernetes.cluster(k8s={"queue": "team"})
    act.fail(*K8S, "submit", "true", status=7, match="there is no queue 'team'")
    assert act.run("q", "--json").json["runs"] == []


# ---- the time limit


@pytest.mark.parametrize("gpus", [1, 8])
def test_a_run_whose_time_is_over_keeps_its_logs(act, kubernetes, gpus):
    """At the deadline of a Job its pods are deleted, and their logs with them; so the agent ends the run before."""
    kubernetes.cluster(k8s={"time": "6s", "warn_seconds": 3})
    script = "trap 'echo save now' USR1; echo begun; while :; do sleep 0.1; done"
    run = act.submit("--retry", "2", "--", "sh", "-c", script, before=(*K8S, "-n", gpus))
    act.run("wait", run, status=143)
    info = act.info(run)
    assert info["state"] == "Failed" and "time limit reached: it may run for 6s" in info["reason"]
    text = act.run("logs", "--all", run).out
    for rank in range(gpus):
        assert f"[{rank}] begun" in text and f"[{rank}] save now" in text, text
    answer = act.run("why", "--json", run).json
    assert answer["diagnosis"]["id"] == "time_limit", answer
    assert info["attempt"] == 1, "with another attempt it would only begin anew"
    deadline = kubernetes.objects("Job")[0]["spec"]["activeDeadlineSeconds"]
    assert deadline > 7 * 86400, "the last resort leaves the logs for a week"
