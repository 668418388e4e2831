"""Mapped folders of runs on Kubernetes: brought and sent by act in the pods, or mounted; and the logs that outlive the
pods. On the double, with the double of the Blob service at the loopback of each pod."""
import base64
import os

import pytest

import kubernetes_double
from test_many_runs import age

K8S = ("-c", "k8s")
STORE = "aux_data/configs/store.yaml"


@pytest.fixture
def blobs(act, kubernetes, azure_double):
    """The project with its folders in a container that pods reach, and the container."""
    kubernetes.tell("settings", forward=[azure_double.service.port])
    return azure_double


def folder(mode, path):
    return {"azure_blob_config_file": STORE, "path": f"files/{path}", "mode": mode}


def use(kubernetes, nodes=1, code=None, k8s=None, **folders):
    """Where the folders are, and how they come; code: the store of the code, if it is not on this machine; k8s: more
    keys of that part."""
    rows = {f"{name}_folder": row for name, row in folders.items()}
    if code:
        rows["code_path"] = {"azure_blob_config_file": code, "path": "files/code/project.zip"}
    kubernetes.cluster(gpu_per_node=1, config_param=rows,
                       k8s={"gpu_resource": "none", "launcher": "direct", **(k8s or {})})


def client_secrets(kubernetes):
    return [o["metadata"]["name"] for o in kubernetes.objects("Secret")
            if o["metadata"]["name"].startswith("act-client-")]


def test_folders_are_brought_and_sent(act, kubernetes, blobs):
    blobs.put("data/in", b"from the store")
    use(kubernetes, data=folder("download", "data"), output=folder("upload", "output"))
    run = act.submit("sh", "-c", "cat data/in > output/from-$RANK", before=("-c", "k8s", "-n", "2"))
    act.run("wait", run)
    assert blobs.get("output/from-0") == blobs.get("output/from-1") == b"from the store"


def test_folders_in_a_share_are_brought_and_sent(act, kubernetes, shares):
    kubernetes.tell("settings", forward=[shares.port])
    shares.put(f"{shares.share}/files/data/in", b"from the share")
    use(kubernetes, data=shares.folder(act, "data"))
    act.fail(*K8S, "submit", "true", status=7, match="it takes 'mode: download' or 'mode: upload'$")
    use(kubernetes, data=shares.folder(act, "data", mode="download"),
        output=shares.folder(act, "output", mode="upload"))
    run = act.submit("sh", "-c", "cat data/in > output/from-$RANK", before=("-c", "k8s", "-n", "2"))
    act.run("wait", run)
    for rank in (0, 1):
        assert shares.get(f"{shares.share}/files/output/from-{rank}") == b"from the share"


def test_act_comes_by_secrets_that_are_made_once(act, kubernetes, blobs):
    use(kubernetes, output=folder("upload", "output"))
    act.run(*K8S, "init")
    act.finish("sh", "-c", "echo 1 > output/1", before=K8S)
    made = client_secrets(kubernetes)
    assert made and len({name.rsplit("-", 1)[0] for name in made}) == 1
    kubernetes.forget()
    run = act.submit("sh", "-c", "echo 2 > output/2", before=K8S)
    assert [r["method"] for r in kubernetes.requests()] == ["GET", "GET", "POST", "POST", "POST", "PATCH"]
    act.run("wait", run)
    assert client_secrets(kubernetes) == made
    assert blobs.get("output/2") == b"2\n"


def test_what_a_run_has_made_is_sent_however_it_ends(act, kubernetes, blobs):
    use(kubernetes, output=folder("upload", "output"))
    act.finish("sh", "-c", "echo half > output/half; exit 7", before=K8S, status=7)
    assert blobs.get("output/half") == b"half\n"
    run = act.submit("sh", "-c", "echo some > output/some; echo begun; sleep 1000", before=K8S)
    act.until(lambda: "begun" in act.run("logs", run, status=None).out, "the command runs")
    act.run("abort", run)
    act.until(lambda: "output/some" in blobs.keys(), "it was sent")
    act.until_state(run, "Canceled")


def test_who_may_not_get_secrets_sends_act_once_too(act, kubernetes, blobs):
    use(kubernetes, output=folder("upload", "output"))
    kubernetes.forbid({"verb": "get", "resource": "secrets"})
    act.run(*K8S, "init")
    act.finish("true", before=K8S)
    made = client_secrets(kubernetes)
    kubernetes.forget()
    act.finish("true", before=K8S)
    posts = [r for r in kubernetes.requests() if r["method"] == "POST" and "secrets" in r["url"]]
    assert max(len(r["body"]) for r in posts) < 100_000 and client_secrets(kubernetes) == made


# ---- logs


def gone(act, kubernetes, run):
    """Somebody deletes the Job of a run, and its pods go."""
    name = kubernetes.objects("Job")[0]["metadata"]["name"]
    kubernetes.tell("delete", kind="Job", name=name, namespace="default", options={"propagationPolicy": "Background"})
    act.until(lambda: not kubernetes.objects("Job") and not kubernetes.objects("Pod"), "it is gone")


def test_logs_outlive_the_pods(act, kubernetes, blobs):
    use(kubernetes, code=STORE)
    run = act.submit("sh", "-c", "echo words of rank $RANK; test $RANK = 0 || exit 7", before=("-c", "k8s", "-n", "2"))
    act.run("wait", run, status=7)
    live = act.run("logs", "--rank", "1", run).out
    keys = [k for k in blobs.keys() if k.startswith(f"code/project/runs/{run}/attempts/1/")]
    assert any(k.endswith("user_logs/std_log_process_1.txt") for k in keys), keys
    assert not any("secret" in k or "token" in k or "stores" in k for k in keys), keys
    gone(act, kubernetes, run)
    assert act.run("logs", "--rank", "1", run).out == live == "words of rank 1\n"
    assert "words of rank 1" in act.run("why", run, status=None).out


def test_each_pod_has_its_own_log_of_what_was_moved(act, kubernetes, blobs):
    use(kubernetes, code=STORE, output=folder("upload", "output"))
    run = act.submit("sh", "-c", "echo 1 > output/$RANK", before=("-c", "k8s", "-n", "2"))
    act.run("wait", run)
    name = kubernetes.objects("Job")[0]["metadata"]["name"]
    logs = [k for k in blobs.keys() if k.startswith(f"code/project/runs/{run}/") and "/folders" in k]
    assert sorted(k.rsplit("/", 1)[1] for k in logs) == [f"folders_{name}-{i}.txt" for i in (0, 1)]


def test_how_a_run_ended_is_known_without_its_job(act, kubernetes, blobs):
    use(kubernetes, code=STORE)
    run = act.submit("sh", "-c", "echo gone; exit 3", before=K8S)
    kubernetes.until("Job", kubernetes.objects("Job")[0]["metadata"]["name"], lambda job: job["status"].get("failed"))
    gone(act, kubernetes, run)
    info = act.info(run)
    assert (info["state"], info["exit_status"]) == ("Failed", 3)
    assert act.run("logs", run).out == "gone\n"


def test_a_submit_that_was_interrupted_goes_on(act, kubernetes, blobs):
    """Also where the place of the run's logs in the store has its id."""
    use(kubernetes, code=STORE)
    kubernetes.faults({"method": "POST", "match": "/services", "status": 503, "times": 10})
    result = act.run(*K8S, "submit", "true", status=5, env={"ACT_MAX_RETRIES": "1"})
    assert "the same command again is the same run" in result.err
    kubernetes.faults()
    run = act.submit("true", before=K8S)
    assert [r["id"] for r in act.run("q", "--json").json["runs"]] == [run]
    act.run("wait", run)
    assert len(kubernetes.objects("Job")) == 1


def test_the_log_of_an_aborted_run(act, kubernetes, blobs):
    use(kubernetes, code=STORE)
    run = act.submit("sh", "-c", "echo begun; sleep 1000", before=K8S)
    act.until(lambda: "begun" in act.run("logs", run, status=None).out, "the command runs")
    act.run("abort", run)
    act.until(lambda: not kubernetes.objects("Pod"), "its pods are gone")
    assert act.state(run) == "Canceled"
    assert act.run("logs", run).out.startswith("begun\n")


def test_the_logs_of_a_pod_that_was_replaced_are_kept(act, kubernetes, blobs):
    use(kubernetes, code=STORE)
    run = act.submit("sh", "-c", "echo attempt $ACT_ATTEMPT; test $ACT_ATTEMPT = 2 || sleep 1000", before=K8S)
    act.until(lambda: act.run("logs", run, status=None).out == "attempt 1\n", "the command runs")
    name = kubernetes.objects("Job")[0]["metadata"]["name"]
    kubernetes.pod(kubernetes.pods_of(name)[0]["metadata"]["name"], "preempt")
    act.run("wait", run)
    gone(act, kubernetes, run)
    assert act.run("logs", "--attempt", "1", run).out.startswith("attempt 1\n")
    assert act.run("logs", run).out == "attempt 2\n" and act.info(run)["attempt"] == 2


def test_attempts_are_counted_on_when_a_queue_took_all_pods(act, kubernetes, blobs):
    """No pod is left that knows of the first one, but its logs are there."""
    kubernetes.tell("settings", kueue=True)
    kubernetes.tell("create", kind="LocalQueue", object={"metadata": {"name": "team", "namespace": "default"},
                                                         "spec": {"clusterQueue": "cluster"}})
    use(kubernetes, code=STORE, k8s={"queue": "team"})
    run = act.submit("sh", "-c", "echo attempt $ACT_ATTEMPT; test $ACT_ATTEMPT = 2 || sleep 1000", before=K8S)
    act.until(lambda: act.run("logs", run, status=None).out == "attempt 1\n", "the command runs")
    kubernetes.tell("settings", kueueAdmit=False)
    kubernetes.tell("kueue", name=kubernetes.objects("Job")[0]["metadata"]["name"])
    act.until(lambda: not kubernetes.objects("Pod"), "its pods are gone")
    kubernetes.tell("settings", kueueAdmit=True)
    act.run("wait", run)
    assert act.info(run)["attempt"] == 2
    assert act.run("logs", run).out == "attempt 2\n"
    assert act.run("logs", "--attempt", "1", run).out.startswith("attempt 1\n")


def test_a_report(act, kubernetes, blobs):
    """Its curves, why it failed, and what it wrote; after its pods are gone, too."""
    use(kubernetes, code=STORE, output=folder("upload", "output"))
    run = act.submit("sh", "-c", "seq -f 'step %g loss 2' 9; head -c 3000 /dev/zero > output/model.pt; exit 3",
                     before=("-c", "k8s", "-n", "1"))
    act.run("wait", run, status=3)
    for when in ("before", "after"):
        if when == "after":
            gone(act, kubernetes, run)
        page = act.run("report", run).out
        assert "<figcaption>loss</figcaption>" in page and "<h2>Why it failed</h2>" in page and "<h2>Nodes</h2>" in page
        assert "1 file in its folders, written while it ran, 2.9 KiB" in page and "output/model.pt" in page, when


def test_logs_that_were_sent_are_pruned(act, kubernetes, blobs):
    use(kubernetes, code=STORE)
    runs = [act.submit("true", before=("-c", "k8s", "-n", "1")) for _ in range(2)]
    act.run("wait", *runs)
    age(act, runs[0])
    sent = lambda run: [k for k in blobs.keys() if k.startswith(f"code/project/runs/{run}/")]
    assert sent(runs[0]) and sent(runs[1])
    result = act.run("-c", "k8s", "prune", "--older", "30d", "-y")
    assert "1 run (1 with logs in the store)" in result.err
    assert not sent(runs[0]) and sent(runs[1]), result


def test_logs_are_sent_while_the_run_goes_on(act, kubernetes, blobs):
    use(kubernetes, code=STORE)
    run = act.submit("sh", "-c", "echo begun; sleep 1000", before=K8S)
    key = f"code/project/runs/{run}/attempts/1/user_logs/std_log_process_0.txt"
    act.until(lambda: blobs.keys().get(key) == 6, "its first words are there", 120)
    assert blobs.get(key) == b"begun\n" and act.state(run) == "Running"
    act.run("abort", run)


# ---- large packages


def test_a_large_package_is_fetched_and_verified(act, kubernetes, blobs):
    use(kubernetes, code=STORE)
    act.write("large.bin", os.urandom(1_000_000))
    run = act.submit("wc", "-c", "large.bin", before=("-c", "k8s", "-n", "2"))
    assert not [s for s in kubernetes.objects("Secret") if "-package-" in s["metadata"]["name"]]
    act.run("wait", run)
    assert act.run("logs", run).out == "1000000 large.bin\n"
    kubernetes.tell("settings", images={kubernetes_double.IMAGE: "ErrImagePull"})
    run = act.submit("wc", "-c", "large.bin", before=K8S)
    key = next(k for k in blobs.keys() if k.startswith("code/project/") and k.endswith(".zip"))
    blobs.put(key, os.urandom(1_000_000))
    kubernetes.tell("settings", images={})
    act.run("wait", run, status=125)
    assert "SHA-256" in act.info(run)["reason"]


# ---- mounts


@pytest.mark.parametrize("credential", ["account_key", "sas_token"])
def test_containers_are_mounted(act, kubernetes, azure_double, scratch, credential):
    service, container = azure_double.service, azure_double.container
    value = service.key if credential == "account_key" else service.container_sas(container)
    act.account("store", account_name=service.account, container_name=container, endpoint=service.endpoint,
                **{credential: value})
    (scratch / "blobs/files/data").mkdir(parents=True)
    (scratch / "blobs/files/data/in").write_text("mounted")
    kubernetes.tell("settings", blobs={container: str(scratch / "blobs")})
    use(kubernetes, data=folder("ro_mount", "data"), output=folder("rw_mount", "output"))
    script = "cat data/in > output/out; touch data/x 2>/dev/null || echo read-only"
    run = act.submit("sh", "-c", script, before=K8S)
    secret = next(s for s in kubernetes.objects("Secret") if s["metadata"]["name"].endswith("-folder-0"))
    key = {"account_key": "azurestorageaccountkey", "sas_token": "azurestorageaccountsastoken"}[credential]
    assert {k: base64.b64decode(v).decode() for k, v in secret["data"].items()} == {
        "azurestorageaccountname": service.account, key: value}
    act.run("wait", run)
    assert act.run("logs", run).out == "read-only\n"
    assert (scratch / "blobs/files/output/out").read_text() == "mounted"


def claim(kubernetes, folder, name="team", modes=("ReadWriteMany",)):
    """A claim, for which a folder of this machine stands."""
    folder.mkdir(exist_ok=True)
    kubernetes.tell("create", kind="PersistentVolumeClaim", object={
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": list(modes), "resources": {"requests": {"storage": "1Gi"}}}})
    kubernetes.tell("settings", claims={name: str(folder)})
    return folder


def test_folders_on_a_claim_are_mounted(act, kubernetes, scratch):
    there = claim(kubernetes, scratch / "claim")
    (there / "sets/voc").mkdir(parents=True)
    (there / "sets/voc/in").write_text("of the claim")
    use(kubernetes, data={"path": "pvc:team/sets/voc", "mode": "ro_mount"}, output="pvc:team/made")
    assert act.run(*K8S, "config", "check").status == 0
    kubernetes.forget()
    script = "cat data/in > output/out-$RANK; touch data/x 2>/dev/null || echo read-only"
    run = act.submit("sh", "-c", script, before=("-c", "k8s", "-n", "2"))
    asked = [r["url"] for r in kubernetes.requests() if "persistentvolumeclaims" in r["url"]]
    assert len(asked) == 1 and asked[0].endswith("/team"), asked
    act.run("wait", run)
    assert act.run("logs", run).out == "read-only\n"
    assert [(there / f"made/out-{rank}").read_text() for rank in (0, 1)] == ["of the claim"] * 2
    again = act.run("resubmit", run).out.strip()
    act.run("wait", again)


def test_a_claim_for_one_node_is_doubted(act, kubernetes, scratch):
    claim(kubernetes, scratch / "claim", modes=["ReadWriteOnce"])
    use(kubernetes, output="pvc:team")
    said = act.run("-c", "k8s", "-n", "2", "submit", "--dry-run", "true").err
    assert "the claim 'team' is for one node (ReadWriteOnce), and the run has 2" in said
    assert "for one node" not in act.run(*K8S, "submit", "--dry-run", "true").err


def test_a_claim_that_is_not_there_is_refused(act, kubernetes):
    use(kubernetes, data="pvc:nowhere/x")
    act.fail(*K8S, "submit", "true", status=7, match="has no PersistentVolumeClaim 'nowhere', which the path of the "
                                                     "folder 'data' names")
    assert kubernetes.objects("Job") == []
    kubernetes.forbid({"verb": "get", "resource": "persistentvolumeclaims"})
    run = act.submit("true", before=K8S)
    act.until(lambda: "nowhere" in (act.info(run)["reason"] or ""), "it says what it waits for")
    act.run("abort", run)


@pytest.mark.parametrize("words", [("u", "data"), ("d", "data"), ("ls", "data/x"), ("du", "data"), ("cat", "data/x"),
                                   ("verify", "data"), ("rm", "-y", "data/x"), ("url", "data/x")])
def test_data_verbs_do_not_see_a_claim(act, kubernetes, words):
    use(kubernetes, data="pvc:team/x", models="pvc:team/y")
    kubernetes.forget()
    act.fail(*K8S, *words, status=7, match="'data' is on the PersistentVolumeClaim 'team', which pods see and this "
                                           "machine does not")
    assert kubernetes.requests() == [] and not (act.project / "data").exists()


def test_a_claim_of_somebodys_project_is_asked_about(act, kubernetes_api):
    kubernetes_api.use(act)
    kubernetes_api.cluster(config_param={"data_folder": "pvc:team/x"})
    del act.env["ACT_TRUSTED_PROJECTS"]
    asked = act.on_terminal(*K8S, "trust", typed=b"n\n").decode()
    assert "'data' is 'x' on the claim 'team' of the cluster" in asked


# ---- what goes wrong


def test_a_folder_that_cannot_be_sent_fails_the_run(act, kubernetes, blobs):
    use(kubernetes, output=folder("upload", "output"))
    for method in ("PUT", "POST"):
        blobs.service.fault("answer", status=403, method=method)
    run = act.submit("sh", "-c", "echo 1 > output/1", before=("-c", "k8s", "-n", "2"))
    act.run("wait", run, status=125)
    assert "not all folders could be sent" in act.info(run)["reason"]


def test_a_dry_run_shows_how_act_comes(act, kubernetes, blobs):
    use(kubernetes, code=STORE, data=folder("download", "data"))
    act.run(*K8S, "init")
    kubernetes.forget()
    printed = act.run(*K8S, "submit", "--dry-run", "true")
    assert blobs.service.key not in printed.out and "sig=" not in printed.out
    job, secret = printed.json["items"][:2]
    assert secret["stringData"]["stores.json"] == "***"
    assert any(v["name"] == "act-client" for v in job["spec"]["template"]["spec"]["volumes"])
    assert kubernetes.changes() == [] and not client_secrets(kubernetes)
