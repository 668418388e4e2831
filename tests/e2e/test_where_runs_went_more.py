"""A run is found where it went, on Slurm and on Kubernetes. What is said there of nodes is said of that place."""
import pathlib
import shutil

import pytest
import yaml

from test_kubernetes_folders import claim
from test_retry import ECC

K8S = ("-c", "k8s")


def file_of(act, name):
    return act.project / f"aux_data/aml/{name}.yaml"


def end(act, run):
    """It is found while it runs, ended, and found then."""
    act.until_state(run, "Running")
    act.until(lambda: "begun" in act.run("logs", run).out, "its log")
    act.run("files", run)
    act.run("abort", run)
    act.until_state(run, "Canceled")
    act.run("wait", run, status=143)
    assert "begun" in act.run("logs", run).out


@pytest.fixture(params=["here", "behind ssh"])
def site(request):
    return request.getfixturevalue("lab" if request.param == "here" else "behind_ssh")


COMMAND = ("sh", "-c", "echo begun; exec sleep 100")


def test_the_file_of_a_slurm_cluster_is_gone(act, site):
    run = site.submit(*COMMAND)
    file_of(act, "lab").unlink()
    end(act, run)
    again = act.run("resubmit", run)
    assert "the cluster file of 'lab' is gone" in again.err
    end(act, again.out.split()[-1])
    assert "removed" in act.run("rm", "-y", f"{run}:").err
    assert not site.run_dir(run).exists()


def test_the_file_of_a_slurm_cluster_leads_elsewhere(act, lab):
    run = lab.submit(*COMMAND)
    lab.configure(slurm={"root": str(act.scratch / "elsewhere")})
    said = act.run("q", run).err
    assert f"'{run}' went to '{lab.root}' on this machine; cluster 'lab' leads elsewhere today" in said
    act.fail("-c", "lab", "abort", run, status=3, match="cluster 'lab' has no run")
    end(act, run)
    act.until(lambda: act.run("prune", "--older", "1s", "-y") and not lab.run_dir(run).exists(), "it to be pruned")


def test_a_slurm_cluster_that_was_moved(act, lab):
    """The login node, or the root, has another name now: the run is where the user says, from then on."""
    run = lab.submit(*COMMAND)
    act.until_state(run, "Running")
    link = act.scratch / "new name"
    link.symlink_to(lab.root)
    lab.configure("new", slurm={"root": str(link)})
    lab.configure(slurm={"root": str(act.scratch / "elsewhere")})
    assert act.run("-c", "new", "q", run).status == 0
    assert act.info(run)["cluster"] == "new"
    assert "leads elsewhere" not in act.run("q", run).err
    end(act, run)


def kubeconfig(kubernetes, server=None):
    tree = yaml.safe_load(pathlib.Path(kubernetes.kubeconfig).read_text())
    if server:
        for cluster in tree["clusters"]:
            cluster["cluster"]["server"] = server
    return yaml.safe_dump(tree)


@pytest.fixture
def kube(act, kubernetes_api):
    kubernetes_api.use(act)
    return kubernetes_api


def test_the_file_of_a_kubernetes_cluster_is_gone(act, kube):
    run = act.submit("sleep", "100", before=K8S)
    file_of(act, "k8s").unlink()
    assert act.info(run)["state"] in ("Queued", "Running")
    act.run("abort", run)
    act.until_state(run, "Canceled")
    act.until(lambda: not kube.objects("Job"), "the Job is gone")


def test_a_claim_is_in_what_a_run_writes_down(act, kube, scratch):
    claim(kube, scratch / "claim")
    kube.cluster(config_param={"data_folder": "pvc:team/sets", "output_folder": "pvc:team"})
    shown = act.run(*K8S, "config", "show", "--json").json["values"]
    assert shown["config_param.data_folder.path"]["value"] == "pvc:team/sets"
    assert shown["config_param.output_folder.path"]["value"] == "pvc:team"
    run = act.submit("sleep", "100", before=K8S)
    act.run("abort", run)
    act.until_state(run, "Canceled")
    file_of(act, "k8s").unlink()
    again = act.run("resubmit", run).out.strip()
    claims = [v["persistentVolumeClaim"]["claimName"]
              for v in kube.objects("Job")[0]["spec"]["template"]["spec"]["volumes"] if "persistentVolumeClaim" in v]
    assert set(claims) == {"team"}
    act.run("abort", again)


def test_the_kubeconfig_of_the_environment_is_remembered(act, kube):
    own = act.scratch / "own"
    own.write_text(kubeconfig(kube))
    kube.cluster(k8s={"kubeconfig": None})
    run = act.submit("sleep", "100", before=K8S, env={"KUBECONFIG": str(own)})
    act.run("abort", run)
    act.until_state(run, "Canceled")
    act.until(lambda: not kube.objects("Job"), "the Job is gone")


def test_a_context_that_leads_to_another_server(act, kube):
    """The run is not said to be gone there, which it never was."""
    own = act.scratch / "own"
    own.write_text(kubeconfig(kube))
    kube.cluster(k8s={"kubeconfig": str(own)})
    run = act.submit("sleep", "100", before=K8S)
    own.write_text(kubeconfig(kube, "https://127.0.0.1:9"))
    told = ("went to namespace 'default' of .*, and what it wrote down of that leads to namespace 'default' of "
            "https://127.0.0.1:9 today; -c NAME asks a cluster that leads there")
    for verb in ("q", "logs", "abort"):
        act.fail(verb, run, status=None, match=told)
    assert act.info(run)["state"] in ("Queued", "Running")
    assert kube.objects("Job")
    kube.cluster()  # the file of this name leads there again, by another kubeconfig
    act.run("abort", run)
    act.until_state(run, "Canceled")
    act.until(lambda: not kube.objects("Job"), "the Job is gone")


def test_bad_nodes_are_those_of_the_place(act, lab):
    """Not of the name: another place has other nodes, and a file that was renamed has the same."""
    act.env["ACT_RETRY_PAUSE"] = "0"
    run = lab.shell(f"echo on $SLURMD_NODENAME; echo '{ECC}'; exit 3")
    lab.wait(run, "Failed", status=3)
    node = lab.rank_text(run).split()[1]
    assert node in act.run("-c", "lab", "nodes", "--bad").out
    shutil.copy(file_of(act, "lab"), file_of(act, "renamed"))
    assert node in act.run("-c", "renamed", "nodes", "--bad").out
    lab.configure(slurm={"root": str(act.scratch / "elsewhere")})
    assert node not in act.run("-c", "lab", "nodes", "--bad").out
    act.run("-c", "renamed", "nodes", "--bad", "--forget", node)
    assert node not in act.run("nodes", "--bad").out
