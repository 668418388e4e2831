"""Azure Machine Learning, played by its double: the nodes of runs, a shell on them, what the cluster is doing."""
import os
import pwd
import shlex
import signal
import subprocess
import time

import pytest

import sshd as private_sshd
from test_azureml import requests_of, submit
from test_cluster import table

USER = os.environ.get("USER") or subprocess.getoutput("id -un")
ODD_WORDS = ["a b", "", "$HOME", "'\"", "-n", "--", "é\n", "*"]


def seed(azureml, **members):
    """A job that nobody runs: of another tool, or on a compute that the double has none of."""
    name, = azureml.tell("seed", count=1, **members)
    return name


def running(act, azureml, *words, gpus=2):
    azureml.tell("hold", status="Running")
    run = submit(act, *words, gpus=gpus)
    act.until_state(run, "Running")
    return run


@pytest.fixture
def ssh_server(act, scratch):
    """Where the nodes of the double are: this machine, whose user is the administrator of the cluster."""
    if not private_sshd.is_installed():
        pytest.skip("there is no sshd")
    server = private_sshd.Sshd(scratch / "ssh")
    act.env.update(server.env)
    yield server
    server.stop()


@pytest.fixture
def nodes_here(azureml, ssh_server):
    azureml.tell("settings", sshPort=ssh_server.port)
    azureml.tell("compute", name="gpu", shown={"userAccountCredentials": {"adminUserName": USER}})


# ---- nodes


def test_nodes_of_a_run(act, azureml, two_ranks):
    run = running(act, azureml, "true", gpus=4)
    answer = act.run("nodes", run, "--json").json
    assert [(n["node"], n["state"], n["first_rank"], n["ranks"], n["gpus"]) for n in answer["nodes"]] == [
        (0, "running", 0, 2, 2), (1, "running", 2, 2, 2)]
    assert [row["RANKS"] for row in table(act.run("nodes", run))] == ["0-1", "2-3"]
    azureml.tell("release")
    act.until_state(run, "Completed")
    act.fail("nodes", run, status=3, match="is Completed and has no nodes")


def test_states_of_nodes(act, azureml):
    run = seed(azureml, status="Running")
    nodes = [{"nodeId": f"tvm-{n}", "nodeState": state, "runId": run if n else "another"}
             for n, state in enumerate(("running", "preempted", "unusable"))]
    azureml.tell("compute", name="gpu", idle=nodes)
    azureml.tell("job", id=run, set={"properties": {"resources": {"instanceCount": 0}}})
    assert [(row["NAME"], row["STATE"]) for row in table(act.run("nodes", run))] == [
        ("tvm-1", "preempted"), ("tvm-2", "unusable")]


def test_addresses_of_nodes(act, azureml):
    run = seed(azureml, status="Running")
    nodes = [{"nodeId": "a", "publicIpAddress": "13.84.190.134", "privateIpAddress": "10.0.0.4", "port": 50000},
             {"nodeId": "b", "privateIpAddress": "10.0.0.5", "port": 50001}, {"nodeId": "c"}]
    azureml.tell("compute", name="gpu", idle=[{"nodeState": "running", "runId": run, **node} for node in nodes])
    azureml.tell("job", id=run, set={"properties": {"resources": {"instanceCount": 0}}})
    answer = act.run("nodes", run, "--json").json["nodes"]
    assert [(n["address"], n["port"]) for n in answer] == [("13.84.190.134", 50000), ("10.0.0.5", None), (None, None)]
    assert [(row["ADDRESS"], row["PORT"]) for row in table(act.run("nodes", run))] == [
        ("13.84.190.134", "50000"), ("10.0.0.5", "-"), ("-", "-")]


@pytest.mark.parametrize("cluster", [{"platform": "itp", "compute_target": "itpgpu"},
                                     {"platform": "singularity", "compute_target": "vc"}, {"compute_target": None}])
def test_nodes_that_are_only_numbers(act, azureml, cluster):
    """Where the service does not list nodes, there are as many as the job asks for, while it runs."""
    azureml.cluster(**cluster)
    run = seed(azureml, status="Running")
    azureml.tell("job", id=run, set={"properties": {"resources": {"instanceCount": 2}}})
    nodes = act.run("nodes", run, "--json").json["nodes"]
    assert [(n["name"], n["state"]) for n in nodes] == [("0", None), ("1", None)]
    assert [row["STATE"] for row in table(act.run("nodes", run))] == ["-", "-"]
    azureml.tell("job", id=run, set={"status": "Completed"})
    act.fail("nodes", run, status=3, match="is Completed and has no nodes")


# ---- ssh


def test_a_command_on_a_node(act, azureml, nodes_here):
    run = running(act, azureml, "true")
    out = act.run("ssh", run, "--", "printf", "%s|", *ODD_WORDS).out
    assert out == "".join(f"{w}|" for w in ODD_WORDS)
    act.run("ssh", run, "0", "--", "sh", "-c", "exit 7", status=7)
    act.run("ssh", run, "--", "test", "-t", "0", status=1)  # no terminal here, none there
    act.fail("ssh", run, "1", "--", "true", status=3, match="no node '1'")


def test_a_shell_on_a_node(act, azureml, nodes_here):
    run = running(act, azureml, "true")
    done = subprocess.run([act.programs / "a", "ssh", run], input=b"pwd; exit 5\n", stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=act.env, cwd=act.project, timeout=300)
    assert (done.returncode, done.stdout.decode().strip()) == (5, pwd.getpwuid(os.getuid()).pw_dir), done


def test_the_code_root_of_a_container(act, azureml, ssh_server):
    """Where ssh leads into the container of the run, its code is there, and the command begins in it."""
    azureml.cluster(platform="itp", compute_target="itpgpu")
    run = seed(azureml, status="Running")
    azureml.tell("job", id=run, set={"tags": {"ssh": f"ssh://{USER}@127.0.0.1:{ssh_server.port}"}})
    code = act.scratch / f"tmp/act-{os.getuid()}/{run}/0-abc/code"
    code.mkdir(parents=True)
    ssh_server.shell(f"export TMPDIR={shlex.quote(str(act.scratch / 'tmp'))}")
    assert act.run("ssh", run, "--", "pwd").out == f"{code}\n"


def test_the_code_of_a_run_that_runs(act, azureml, nodes_here):
    """The double's nodes are no containers: what the agent has made is found."""
    act.write("here.txt", "the code")
    run = submit(act, "sleep", "300")
    act.until_state(run, "Running")
    act.until(lambda: act.run("ssh", run, "--", "cat", "here.txt", status=None).out == "the code", "the code is there")
    act.run("abort", run)


@pytest.mark.parametrize("before", ["user and scheme", "scheme", "nothing"])
def test_ssh_by_the_tag_of_the_cluster(act, azureml, ssh_server, before):
    azureml.cluster(platform="itp", compute_target="itpgpu")
    run = seed(azureml, status="Running")
    start = {"user and scheme": f"ssh://{USER}@", "scheme": "ssh://", "nothing": ""}[before]
    azureml.tell("job", id=run, set={"tags": {"ssh": f"{start}127.0.0.1:{ssh_server.port}"}})
    assert act.run("ssh", run, "--", "printf", "%s|", *ODD_WORDS).out == "".join(f"{w}|" for w in ODD_WORDS)


def test_ssh_by_a_service_of_the_job(act, azureml, ssh_server):
    azureml.cluster(platform="singularity", compute_target="vc")
    run = seed(azureml, status="Running")
    service = {"type": "SSH", "port": 22, "status": "Running", "endpoint": f"ssh://127.0.0.1:{ssh_server.port}"}
    azureml.tell("job", id=run, set={"properties": {"resources": {"instanceCount": 2}},
                                     "instances": {"1": {"tb": {"type": "TensorBoard"}, "my": service}}})
    assert act.run("ssh", run, "1", "--", "echo", "here").out == "here\n"
    act.fail("ssh", run, "0", "--", "true", match="node 0 .*no ssh service")
    azureml.tell("job", id=run, set={"instances": {"1": {"my": {**service, "status": "Failed"}}}})
    act.fail("ssh", run, "1", "--", "true", status=5, match="ssh service of node 1 .*'Failed'")


@pytest.mark.parametrize("service", [{"endpoint": "wss://ssh-x.eastus.nodes.azureml.ms"},
                                     {"endpoint": None,
                                      "properties": {"ProxyEndpoint": "wss://ssh-x.nodes.azureml.ms"}}])
def test_ssh_behind_a_websocket(act, azureml, service):
    azureml.cluster(platform="singularity", compute_target="vc")
    run = seed(azureml, status="Running")
    azureml.tell("job", id=run, set={"instances": {"0": {"my": {"type": "SSH", "status": "Running", **service}}}})
    said = act.fail("ssh", run, match="websocket")
    assert (f"az ml job connect-ssh --name {run} --node-index 0 --private-key-file-path ~/.ssh/id_rsa --workspace-name "
            f"ws --resource-group rg --subscription ") in said


@pytest.mark.parametrize("tag", ["ssh://-oProxyCommand=x@h:1", "ssh://h:99999", "ssh://h;x:1", "ssh://h:1/x",
                                 "ssh://h:x", ""])
def test_ssh_to_what_is_no_address(act, azureml, tag):
    azureml.cluster(platform="itp", compute_target="itpgpu")
    run = seed(azureml, status="Running")
    azureml.tell("job", id=run, set={"tags": {"ssh": tag}})
    act.fail("ssh", run, env={"ACT_SSH": "echo"}, match="nobody can log in .*no tag 'ssh'")


def test_ssh_without_public_addresses(act, azureml):
    azureml.tell("settings", privateNodes=True)
    run = running(act, azureml, "true")
    done = act.run("ssh", run, "--", "true", env={"ACT_SSH": "echo"})
    assert " azureuser@127.0.0.1 " in done.out and "only from the network of the cluster" in done.err


def test_ssh_to_an_address(act, azureml, nodes_here, ssh_server):
    """As in the original: a private address, whatever runs there."""
    node = {"nodeId": "tvm-9", "privateIpAddress": "10.0.0.4", "publicIpAddress": "127.0.0.1", "port": ssh_server.port,
            "nodeState": "idle"}
    azureml.tell("compute", name="gpu", idle=[node], shown={"userAccountCredentials": {"adminUserName": USER}})
    assert act.run("ssh", "10.0.0.4", "--", "echo", "a b").out == "a b\n"
    act.fail("ssh", "10.0.0.5", status=3, match="no node with the address 10.0.0.5")
    act.fail("ssh", "10.0.0.4", "1", status=2, match="too much")
    azureml.cluster(platform="singularity", compute_target="vc")
    act.fail("ssh", "10.0.0.4", status=3, match="does not tell the addresses")
    act.cluster("here")
    act.fail("-c", "here", "ssh", "10.0.0.4", status=3, match="platform 'local'")


# ---- summary


def summary(act, *words):
    return act.run("summary", "--json", *words).json


def test_summary_counts_as_the_original(act, azureml):
    azureml.tell("compute", name="gpu", shown={"currentNodeCount": 4, "nodeStateCounts": {
        "preparingNodeCount": 1, "runningNodeCount": 1, "idleNodeCount": 0, "unusableNodeCount": 1,
        "leavingNodeCount": 1, "preemptedNodeCount": 2}})
    for status, n in (("Running", 2), ("Queued", 1), ("Preparing", 1), ("Completed", 3)):
        azureml.tell("seed", count=n, status=status, experiment=status)
    found, asked = requests_of(azureml, act, "summary", "--json")
    total = found.json["total"]
    assert total["nodes"] == {"total": 4, "idle": 1, "busy": 2, "down": 1}
    assert total["gpus"] == {"total": 8, "idle": 2, "busy": 4, "down": 2}, \
        "the maximum less unusable, running, preparing"
    assert total["jobs"] == {"running": 2, "queued": 2, "queued_gpus": None}
    assert found.json["node_states"] == {"running": 1, "preparing": 1, "idle": 0, "unusable": 1, "leaving": 1,
                                         "preempted": 2}
    assert len([r for r in asked if "/computes/" in r["url"]]) == 2, asked
    assert not [r for r in asked if "/jobs?" in r["url"]], asked
    assert len(asked) <= 3, "and one for the runs of the experiment"
    assert "nodes: 1 running, 1 preparing, 0 idle, 1 unusable, 1 leaving, 2 preempted\n" in act.run("summary").out


def test_summary_by_the_id_of_a_compute(act, azureml):
    base = next(iter(azureml.tell("objects")["computes"]))
    assert base == "gpu"
    azureml.cluster(compute_target="/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/rg/providers/"
                    "Microsoft.MachineLearningServices/workspaces/ws/computes/gpu")
    azureml.tell("seed", count=2, status="Running")
    assert summary(act)["total"]["gpus"]["total"] == 8
    assert summary(act)["total"]["jobs"]["running"] == 2
    assert act.run("cluster", "show", "--json").json["cluster"]["name"] == "gpu"


def test_summary_of_attached_kubernetes(act, azureml):
    """It does not tell its nodes: nothing is not none."""
    azureml.cluster(platform="itp", compute_target="itpgpu")
    found = summary(act)
    assert set(found["total"]["nodes"].values()) == set(found["total"]["gpus"].values()) == {None}
    assert found["total"]["jobs"]["running"] == 0 and found["node_states"] is None
    assert act.run("summary").out.splitlines()[2].split() == ["total", *"--------", "0", "0", "-"]


def test_quota_of_a_virtual_cluster(act, azureml):
    azureml.cluster(platform="singularity", compute_target="vc", singularity_sla_tier="premium")
    assert summary(act)["total"]["gpus"] == {"total": 32, "idle": 24, "busy": 8, "down": 0}
    rows = [("Dv3", "Premium", "Family vCPUs", 320, 0), ("NDv4", "Premium", "GPUs", 16, 8),
            ("NCv3", "Basic", "GPUs", 2, 1)]
    azureml.tell("settings", virtualClusters={"vc": {
        "eastus": {"limits": [{"id": family, "slaTier": tier, "name": f"Singularity {family} {unit}", "limit": limit,
                               "used": used} for family, tier, unit, limit, used in rows]},
        "westus2": {"limits": [{"slaTier": "Premium", "used": 40, "limit": 32}]}}})
    found = summary(act)
    assert [(p["name"], p["gpus"]["total"], p["gpus"]["busy"], p["gpus"]["idle"]) for p in found["partitions"]] == [
        ("eastus/NDv4", 16, 8, 8), ("westus2", 32, 40, 0)]
    assert found["total"]["gpus"] == {"total": 48, "idle": 8, "busy": 48, "down": 0}


def test_no_quota_of_the_tier(act, azureml):
    azureml.cluster(platform="singularity", compute_target="vc", singularity_sla_tier="Standard")
    done = act.run("summary", "--json")
    assert set(done.json["total"]["gpus"].values()) == {None}
    assert "'vc' tells no quota of the SLA tier 'Standard'" in done.err


def test_pages_of_runs_that_go_round_in_a_circle(act, azureml):
    """What was counted until then would be several times what there is."""
    run = {"runId": "exp_1700000000_0123abcd", "status": "Running"}
    azureml.faults(*({"match": "/computes/gpu/runs", "answer": {
        "status": 200, "json": {"value": [run], "continuationToken": token}}} for token in 2 * ["a", "b"]))
    act.fail("summary", match="cannot list the runs on the compute: the service names the same pages again and again")


# ---- blame


def blame(act, *words):
    return act.run("blame", "--json", *words).json["jobs"]


@pytest.mark.smoke
def test_blame_goes_by_the_start(act, azureml):
    """Not by the submission: who waited longest has not run longest."""
    waited = seed(azureml, status="Running", prefix="waited", experiment="one", properties={"act.num_gpu": "6"})
    started = seed(azureml, status="Running", prefix="started", experiment="two")
    queued = seed(azureml, status="Queued", prefix="queued")
    now = time.time() * 1000
    azureml.tell("job", id=waited, set={"created": now - 9000e3, "started": now - 100e3})
    azureml.tell("job", id=started, set={"created": now - 500e3, "started": now - 400e3})
    found, asked = requests_of(azureml, act, "blame", "--json")
    jobs = found.json["jobs"]
    assert [j["job"] for j in jobs] == [started, waited] and queued not in found.out
    assert 400 <= jobs[0]["running_s"] < 500 and 100 <= jobs[1]["running_s"] < 400
    assert [(j["nodes"], j["gpus"], j["user"]) for j in jobs] == [(1, None, "Jane"), (1, 6, "Jane")]
    assert len(asked) <= 2, asked
    assert [(row["GPUS"], row["EXPERIMENT"], row["ON"]) for row in table(act.run("blame"))] == [
        ("-", "two", "gpu"), ("6", "one", "gpu")]


def test_blame_looks_at_the_whole_workspace(act, azureml):
    """As the original did: at every compute, with exact times in one request more."""
    here = seed(azureml, status="Running", experiment="one")
    there = seed(azureml, status="Running", experiment="two")
    seed(azureml, status="Failed")
    now = time.time() * 1000
    azureml.tell("job", id=here, set={"created": now - 900e3, "started": now - 100e3})
    azureml.tell("job", id=there, set={"created": now - 900e3, "started": now - 400e3,
                                       "properties": {"computeId": "/subscriptions/s/computes/elsewhere"}})
    found, asked = requests_of(azureml, act, "blame", "--json")
    jobs = found.json["jobs"]
    told = [(j["job"], j["experiment"], j["node_names"]) for j in jobs]
    assert told == [(there, "two", "elsewhere"), (here, "one", "gpu")]
    assert 400 <= jobs[0]["running_s"] < 500 and all(j["user"] == "Jane" for j in jobs), jobs
    assert len(asked) <= 3 and "submitted" not in found.err, asked


def test_blame_without_the_list_of_the_history(act, azureml):
    """Refused: the list of jobs answers, and it is said that it has no better times."""
    run = seed(azureml, status="Running")
    azureml.faults(*({"match": match, "answer": {"status": 404, "json": {"error": {"code": "NotFound"}}}}
                     for match in ("/computes/gpu/runs", "/batchrundata")))
    done = act.run("blame", "--json")
    assert [j["job"] for j in done.json["jobs"]] == [run]
    assert "times are since it was submitted" in done.err


def test_blame_of_a_virtual_cluster(act, azureml):
    azureml.cluster(platform="singularity", compute_target="vc")
    run = seed(azureml, status="Running")
    base = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.MachineLearningServices/virtualclusters"
    azureml.tell("job", id=run, set={"properties": {"computeId": f"{base}/vc"}})
    done = act.run("blame", "--json")
    assert [(j["job"], j["node_names"]) for j in done.json["jobs"]] == [(run, "vc")]
    huge = {"resources": {"instanceCount": 1 << 23}, "distribution": {"processCountPerInstance": 1 << 23}}
    azureml.tell("job", id=run, set={"properties": {"computeId": f"{base}/vc", **huge}})
    assert [j["gpus"] for j in blame(act)] == [None]


def test_serverless_compute(act, azureml):
    azureml.cluster(compute_target=None)
    run = seed(azureml, status="Running")
    azureml.tell("job", id=run, set={"properties": {"computeId": None}})
    seed(azureml, status="Running")
    assert run in [j["job"] for j in blame(act)]
    total = summary(act)["total"]
    assert total["jobs"]["running"] == 1 and set(total["nodes"].values()) == {None}
    azureml.cluster(platform="itp", compute_target=None)
    act.fail("summary", match="has no compute_target", status=7)


@pytest.mark.parametrize("refused", [False, True])
def test_a_very_long_queue(act, azureml, refused):
    """A bounded number of requests, and it is said that there is more."""
    azureml.tell("seed", count=2500, status="Running")
    azureml.tell("settings", pageSize=100)
    if refused:
        azureml.faults({"match": "/computes/gpu/runs",
                        "answer": {"status": 404, "json": {"error": {"code": "NotFound"}}}})
    done, asked = requests_of(azureml, act, "blame", "--json", "--max", "1")
    assert done.json["total"] == 2000 and "only 2000 jobs were looked at" in done.err
    assert len(asked) <= 25, len(asked)


# ---- what leads into the container


def test_nothing_leads_into_the_container(act, azureml):
    """What that means is said at once, and by Ctrl-C."""
    run = running(act, azureml, "true")
    for words in (("forward", run, "0:80"), ("ssh", "-L", "0:80", run, "--", "true")):
        act.fail(*words, status=2, match="no port of run .* can be forwarded: on the platform 'aml' nothing leads")
    for verb in ("shell", "notebook"):
        act.fail("-c", "aml", verb, *(("--", "true") if verb == "shell" else ()), status=None,
                 match=f"a {verb} cannot be opened on the platform 'aml'")
    attached = act.start("attach", run)
    attached.stderr.readline()
    attached.send_signal(signal.SIGINT)
    line = attached.stderr.readline().decode()
    assert "Ctrl-C cannot be sent to rank 0: on the platform 'aml' nothing leads" in line, line
    attached.send_signal(signal.SIGTERM)
    assert attached.wait() == 0
    azureml.tell("release")
