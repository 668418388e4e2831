"""What strangers can say by a kubeconfig, a cluster file, or an object in our namespace."""
import base64
import json
import pathlib
import shlex

import pytest
import yaml

K8S = ("-c", "k8s")
STRANGE = "exp_1700000000_deadbeef"


def kubeconfig(kubernetes, user=None, mark=None):
    """The usual one, for another user; mark: a plugin leaves it when it runs."""
    tree = yaml.safe_load(pathlib.Path(kubernetes.kubeconfig).read_text())
    if mark:
        user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh",
                         "args": ["-c", f"touch {mark}; false"], "interactiveMode": "Never"}}
    if user:
        tree["users"][0]["user"] = user
    return yaml.safe_dump(tree)


def plant(kubernetes, run=STRANGE, name=None, **members):
    """What a neighbour in the namespace can make: a Job and its Secret, with a run.json of their own."""
    meta = {"name": name or run.replace("_", "-"), "labels": {"app.kubernetes.io/managed-by": "act"},
            "annotations": {"act/run": run}}
    spec = {"version": 1, "id": run, "experiment": "exp", "cluster": "k8s", "platform": "k8s",
            "project_root": "/nonexistent", "created": 1700000000, "command": ["true"], "package_store": "blob:a/c",
            "package_key": "", "package_sha256": "", "package_bytes": 0, "folders": [], "nodes": 1,
            "processes_per_node": 1, "gpus_per_node": 0, "env": [], "sleep_if_fail": False,
            "sleep_if_succeed": False, **members}
    pod = {"restartPolicy": "Never",
           "containers": [{"name": "main", "image": "registry.example.com/act/test:1", "command": ["sleep", "100"]}]}
    kubernetes.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta,
                       "spec": {"completionMode": "Indexed", "completions": 1, "parallelism": 1, "suspend": True,
                                "template": {"spec": pod}}})
    kubernetes.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta,
                       "data": {"run.json": base64.b64encode(json.dumps(spec).encode()).decode()}})


# ---- runs of strangers


def test_the_record_of_a_run_does_not_say_where_it_is(act, kubernetes_api, scratch):
    kubernetes_api.use(act)
    mark = scratch / "ran"
    (scratch / "kc").write_text(kubeconfig(kubernetes_api, mark=mark))
    plant(kubernetes_api, config={"platform": "k8s", "k8s": {"kubeconfig": str(scratch / "kc"), "namespace": "other"}})
    assert act.run(*K8S, "q", "deadbeef", "--json").json["runs"][0]["id"] == STRANGE
    act.run("q")
    act.run("logs", STRANGE, status=None)
    assert not mark.exists()


def test_a_job_that_only_passes_for_a_run_is_left_alone(act, kubernetes_api):
    """Labels and annotation are a run's, the name is not."""
    kubernetes_api.use(act)
    plant(kubernetes_api, name="nightly-backup")
    assert all(r["id"] != STRANGE for r in act.run(*K8S, "q", "--json").json["runs"])
    for verb in ("abort", "logs", "nodes", "why"):
        act.fail(*K8S, verb, STRANGE, status=None)
    assert [job["metadata"]["name"] for job in kubernetes_api.objects("Job")] == ["nightly-backup"]
    assert all(r["method"] == "GET" for r in kubernetes_api.requests())


def test_the_record_of_a_run_does_not_say_which_platform_it_is_on(act, kubernetes_api, scratch):
    kubernetes_api.use(act)
    ssh = scratch / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text(f"#!/bin/sh\ntouch {scratch}/ran\nexit 255\n")
    ssh.chmod(0o755)
    act.env["PATH"] = f"{ssh.parent}:{act.env['PATH']}"
    plant(kubernetes_api, platform="slurm",
          config={"platform": "slurm", "slurm": {"login": "root@evil.example", "root": "/tmp/r"}})
    assert act.run(*K8S, "q", "deadbeef", "--json").json["runs"][0]["platform"] == "k8s"
    act.run("q")
    act.run("logs", STRANGE, status=None)
    assert not (scratch / "ran").exists()


@pytest.mark.parametrize("other", ["exp_1700000000_00000000", "../../evil_1700000000_00000000"])
def test_the_record_of_a_run_is_its_own(act, kubernetes_api, other):
    kubernetes_api.use(act)
    plant(kubernetes_api, id=other)
    act.fail(*K8S, "q", "deadbeef", status=None, match="deadbeef")
    assert other not in act.run("q", "--json").out


# ---- projects of strangers


@pytest.fixture
def project(act, kubernetes_api):
    """A project with a kubeconfig of its own, which nobody trusts yet."""
    kubernetes_api.use(act)
    act.account("store", folder="store")
    act.write("kc", kubeconfig(kubernetes_api))
    kubernetes_api.cluster(k8s={"kubeconfig": "kc"})
    del act.env["ACT_TRUSTED_PROJECTS"]
    return act


def untrusted(act):
    return act.run(*K8S, "trust", "--json").json["untrusted"]


@pytest.mark.parametrize("words", [("q",), ("q", "{run}"), ("logs", "{run}"), ("why", "{run}"), ("abort", "{run}")])
def test_a_run_does_not_make_a_changed_kubeconfig_trusted(project, kubernetes_api, scratch, words):
    project.run(*K8S, "trust", "-y")
    run = project.submit("sleep", "100", before=K8S)
    project.run("q", run)
    project.write("kc", kubeconfig(kubernetes_api, mark=scratch / "ran"))
    result = project.run(*(word.format(run=run) for word in words), status=None)
    assert not (scratch / "ran").exists()
    assert "'k8s.kubeconfig' is '" in result.err and "-c k8s trust" in result.err, result
    project.run(*K8S, "trust", "-y")
    project.run("q", run, status=None)
    assert (scratch / "ran").exists()


@pytest.mark.parametrize("words", [("q", "{run}"), ("logs", "{run}"), ("abort", "{run}")])
def test_a_kubeconfig_of_the_project_that_the_user_named(project, kubernetes_api, scratch, words):
    """It is the user's own word, also when the run is asked about; another content is not."""
    own = project.home / "config/own.yaml"
    own.parent.mkdir(parents=True)
    (project.project / "aux_data/aml/k8s.yaml").rename(own)
    run = project.submit("sleep", "100", env={"AML_CONFIG_PATH": str(own)})
    words = [word.format(run=run) for word in words]
    assert "reaches out" not in project.run(*words, status=None).err
    again = project.submit("sleep", "100", env={"AML_CONFIG_PATH": str(own)})
    project.write("kc", kubeconfig(kubernetes_api, mark=scratch / "ran"))
    said = project.run(*(again if word == run else word for word in words), status=None).err
    assert "has changed since it was trusted" in said and "answer at a terminal" in said
    assert not (scratch / "ran").exists()


def test_a_kubeconfig_of_the_project_that_was_typed(project, kubernetes_api):
    kubernetes_api.cluster(k8s={"kubeconfig": None})
    project.write("kc2", kubeconfig(kubernetes_api))
    typed = (*K8S, "-p", "k8s: {kubeconfig: kc2}")
    project.fail(*typed, "submit", "true", status=4, match="with 'a -c k8s -p ... trust' and what you gave -p now")
    project.run(*typed, "trust", "-y")
    run = project.submit("sleep", "100", before=typed)
    assert "reaches out" not in project.run("q", run, status=None).err


def test_what_a_kubeconfig_names_is_asked_about(project, kubernetes_api, scratch):
    token = scratch / "token"
    token.write_text("mine")
    (project.project / "link").symlink_to(token)
    project.write("kc", kubeconfig(kubernetes_api, user={"tokenFile": "link"}))
    assert any(f"the file '{token}'" in line for line in untrusted(project))
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "args": ["-c", "a b", "c'd"],
              "env": [{"name": "LD_PRELOAD", "value": "secret"}], "interactiveMode": "Never"}
    project.write("kc", kubeconfig(kubernetes_api, user={"exec": plugin}))
    lines = "\n".join(untrusted(project))
    assert "the program '/bin/sh' '-c' 'a b' " + shlex.quote("c'd") in lines and "'LD_PRELOAD'" in lines, lines
    assert "secret" not in lines
    project.run(*K8S, "trust", "-y")
    assert untrusted(project) == []
    plugin["env"][0]["value"] = "another"
    project.write("kc", kubeconfig(kubernetes_api, user={"exec": plugin}))
    assert len(untrusted(project)) == 1 and "SHA-256" in untrusted(project)[0]


def test_a_project_does_not_use_the_kubeconfig_of_the_user_unasked(project, kubernetes_api):
    project.env["KUBECONFIG"] = str(kubernetes_api.kubeconfig)
    kubernetes_api.cluster(k8s={"kubeconfig": None})
    project.fail(*K8S, "submit", "true", status=4, match=f"of the server '{kubernetes_api.url}', in the namespace")
    assert kubernetes_api.requests() == []
    project.run(*K8S, "trust", "-y")
    kubernetes_api.cluster(k8s={"kubeconfig": None, "service_account": "admin",
                                "volumes": [{"mount_path": "/host", "hostPath": {"path": "/etc"}}],
                                "pod": {"spec": {"hostPID": True}}})
    lines = "\n".join(untrusted(project))
    assert "'k8s.service_account' is 'admin'" in lines and "the path '/etc' of the nodes" in lines, lines
    assert "'k8s.pod' is 'spec.hostPID, with SHA-256" in lines, lines


def test_the_cluster_file_of_the_user_is_not_asked_about(project, kubernetes_api):
    own = project.home / "config/own.yaml"
    own.parent.mkdir(parents=True)
    kubernetes_api.cluster(k8s={"service_account": "admin"})
    (project.project / "aux_data/aml/k8s.yaml").rename(own)
    project.env["AML_CONFIG_PATH"] = str(own)
    project.run("q")
    assert project.run("trust", "--json").json["untrusted"] == []


def test_another_cluster_file_that_leads_out_is_named(act, kubernetes_api):
    kubernetes_api.use(act)
    kubernetes_api.cluster(k8s={"service_account": "admin"})
    del act.env["ACT_TRUSTED_PROJECTS"]
    assert "cluster 'k8s' reaches out of it: 'a -c k8s trust' shows how" in act.run("trust", "--dry-run").err
    assert "leads to the context '" in act.run("-c", "k8s", "trust", "--dry-run").out
