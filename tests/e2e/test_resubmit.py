"""A run that goes on is replaced only by one that the platform has taken: whatever refuses, the old run still runs."""
import json
import os
import random
import resource
import shutil
import signal
import subprocess

import pytest

from fault_proxy import FaultProxy

BIG = 11 << 30
WITH = ("-n", "1")


def start(act, *before, words=None):
    """A run that goes on. Without words its command runs: a run is Running while its folders are brought, too."""
    begun = act.scratch / "begun"
    begun.unlink(missing_ok=True)
    run = act.submit(*(words or ("sh", "-c", f"echo >{begun}; exec sleep 1000")), before=before or WITH)
    act.until_state(run, "Running")
    if not words:
        act.until(begun.exists, "its command runs")
    return run


def goes_on(act, run):
    """Nothing was done: the old run runs, and no other one is there."""
    rows = act.run("q", "--json").json["runs"]
    if [r["id"] for r in rows if r["state"] in ("Running", "Queued")] != [run]:
        pytest.fail(json.dumps(rows, indent=1)) # whole: what became of it is in there
    assert act.state(run) == "Running"


def refuses(act, run, *words, status=None, match="", **options):
    """A resubmission is refused, and the old run goes on. The dry run refuses as well, and says the same."""
    message = act.fail(*words, "resubmit", run, status=status, match=match, **options)
    goes_on(act, run)
    return message


def both_refuse(act, run, *words, match="", **options):
    dry = act.fail(*words, "resubmit", "--dry-run", run, status=None, match=match, **options)
    assert dry == refuses(act, run, *words, match=match, **options)


def files_of(size):
    """No file may grow beyond that, as on a full disk."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return {"preexec_fn": limit}


# ---- on this machine


@pytest.fixture
def slow(act):
    """A run that ends only when the gate is there: the run, the gate, and what this run and the next ones say."""
    act.env["ACT_ABORT_GRACE"] = "300"
    gate, said = act.scratch / "gate", act.scratch / "said"
    act.write("stay.sh", f'say() {{ echo "$1 $ACT_RUN_ID" >>{said}; }}\n'
                         f'trap "until [ -e {gate} ]; do sleep 0.1; done; say end; exit 0" TERM\n'
                         "say begin; while :; do sleep 0.1; done\n")
    run = start(act, words=("sh", "stay.sh"))
    act.until(said.exists, "it listens")
    return run, gate, said


def test_the_new_run_begins_when_the_old_one_has_ended(act, slow):
    """It is there before the old one is told to end."""
    old, gate, said = slow
    replacing = act.start("resubmit", old)
    try:
        act.until(lambda: [r["reason"] for r in act.run("qq", "--json").json["runs"]] ==
                  [f"waits for the end of '{old}'"], "the new one waits")
        assert said.read_text() == f"begin {old}\n"
    finally:
        gate.touch()
        new = replacing.communicate()[0].decode().strip()
    act.until(lambda: f"begin {new}\n" in said.read_text(), "the new one begins")
    assert said.read_text() == f"begin {old}\nend {old}\nbegin {new}\n"
    assert act.state(old) == "Canceled"
    act.run("abort", new)


def test_one_that_waits_for_the_old_one_can_be_aborted(act, slow):
    old, gate, said = slow
    replacing = act.start("resubmit", old)
    try:
        new = act.until(lambda: act.run("qq", "--json").json["runs"], "the new one waits")[0]["id"]
        act.run("abort", new)
        assert act.state(new) == "Canceled"
    finally:
        gate.touch()
        replacing.communicate()
    act.until_state(old, "Canceled")
    assert new not in said.read_text()


def reasons(act):
    return {r["id"]: r["reason"] for r in act.run("qq", "--json").json["runs"]}


def waiting_one(act, *others):
    """The only one that waits besides those."""
    return act.until(lambda: [r for r in reasons(act) if r not in others], "the new one waits")[0]


@pytest.mark.parametrize("aborted", [False, True])
def test_in_place_of_one_that_waits(act, slow, aborted):
    """It waits for all that the other one waited for, also when that was aborted before it began."""
    old, gate, said = slow
    replacing = act.start("resubmit", old)
    try:
        second = waiting_one(act)
        if aborted:
            act.run("abort", second)
        third = act.run("resubmit", second).out.strip()
        act.until(lambda: reasons(act) == {third: f"waits for the end of '{old}'"}, "the third one waits")
        assert act.state(second) == "Canceled" and said.read_text() == f"begin {old}\n"
        spec = json.loads((act.run_dir(third) / "run.json").read_text())
        assert spec["after"] == ([old] if aborted else [old, second])
    finally:
        gate.touch()
        replacing.communicate()
    act.until(lambda: f"begin {third}\n" in said.read_text(), "the third one begins")
    assert said.read_text() == f"begin {old}\nend {old}\nbegin {third}\n"
    act.run("abort", third)


def test_a_run_is_replaced_once(act, slow):
    """As long as it goes on; what was replaced and has ended can be repeated by whoever says so."""
    old, gate, said = slow
    replacing = act.start("resubmit", old)
    try:
        new = waiting_one(act)
        for dry in ((), ("--dry-run",)):
            assert act.fail("resubmit", *dry, old, status=2, match="cannot resubmit") == (
                f"act: cannot resubmit '{old}': '{new}' takes its place already; 'a resubmit {new}' replaces that one")
        assert list(reasons(act)) == [new]
    finally:
        gate.touch()
        replacing.communicate()
    act.until(lambda: f"begin {new}\n" in said.read_text(), "the new one begins")
    act.fail("resubmit", old, status=2, match=f"was replaced by '{new}', which goes on")
    another = act.run("resubmit", "-y", old).out.strip()
    act.until(lambda: f"begin {another}\n" in said.read_text(), "another one begins")
    act.run("abort", new)
    act.run("abort", another)


def test_two_resubmissions_at_once(act, slow):
    """One of them is refused, however close they are."""
    old, gate, said = slow
    both = [act.start("resubmit", old) for _ in range(2)]
    try:
        new = waiting_one(act)
        act.until(lambda: [p for p in both if p.poll() is not None], "one is refused")
        assert list(reasons(act)) == [new]
    finally:
        gate.touch()
        ends = [(*p.communicate(), p.returncode) for p in both]
    out, err, _ = sorted(ends, key=lambda end: end[2])[1]
    assert sorted(end[2] for end in ends) == [0, 2] and not out
    assert f"'{new}' takes its place already" in err.decode() and "goes on" not in err.decode()
    act.until(lambda: f"begin {new}\n" in said.read_text(), "the new one begins")
    assert said.read_text() == f"begin {old}\nend {old}\nbegin {new}\n"
    act.run("abort", new)


def test_a_full_disk(act):
    """The ledger cannot be written."""
    old = start(act)
    refuses(act, old, match="cannot write to the ledger.*goes on", **files_of(0))
    act.run("abort", old)


def test_no_room_where_the_folders_of_runs_are(act):
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    act.write("big.bin", random.Random(1).randbytes(1 << 20))
    old = start(act)
    new = next(act.home.rglob("new"))
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", new], capture_output=True).returncode != 0:
        pytest.skip("no permission for mounts")
    try:
        refuses(act, old, match="No space left on device")
    finally:
        subprocess.run(["umount", "--lazy", new], check=True)
    act.run("abort", old)


def test_an_agent_that_is_not_there(act):
    """The folder of the new run is made, and it cannot be started."""
    old = start(act)
    alone = act.scratch / "alone"
    alone.mkdir()
    shutil.copy(act.programs / "a", alone)
    there, act.programs = act.programs, alone
    refuses(act, old, match="act-node", env={"PATH": "/usr/bin:/bin"})
    act.programs = there
    act.run("abort", old)


@pytest.fixture
def copied(act, azure):
    """A run whose folders are copied to its node, from a store that can be broken."""
    act.cluster("aml", folders=("data",), extra={"mount": "copy"})
    azure.put("data/a.txt", b"text")
    return azure


def test_a_lot_to_copy_is_asked_about(act, copied):
    """As a submit asks."""
    old = start(act)
    copied.service.request("PUT", f"{copied.container}/files/data/big", headers={
        "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(BIG)})
    message = refuses(act, old, status=2, match="'mount: copy' brings 11.* in 2 files to each of 1 node")
    assert "add -y" in message
    assert "Go on? [y/N]" in act.on_terminal("resubmit", old, typed=b"y\nn\n").decode()
    goes_on(act, old)
    act.run("abort", old)


def test_a_store_that_cannot_be_reached(act, copied):
    proxy = FaultProxy(("127.0.0.1", copied.service.port))
    keys = copied.service.account_keys(copied.container)
    act.account("store", **{**keys, "endpoint": f"http://127.0.0.1:{proxy.port}/{copied.service.account}"})
    old = start(act)
    proxy.close()
    both_refuse(act, old, match="cannot|refused")
    act.run("abort", old)


@pytest.mark.parametrize("words", [
    ("submit", "true"), ("sweep", "--grid", "n=1,2", "echo", "{n}"), ("local", "--mount", "true"), ("resubmit", None),
    ("-rt", "other", "resubmit", None)])
def test_a_dry_run_of_every_verb_refuses_what_is_refused(act, copied, words):
    """Nothing is submitted or stored by either, and both say the same."""
    old = start(act)
    act.write("new.txt", "code that no package has")
    act.account("gone", **{**copied.service.account_keys(copied.container), "endpoint": "http://127.0.0.1:9/gone"})
    path = act.cluster("other" if words[0] == "-rt" else "aml", account="code", folders=(), extra={"mount": "copy"})
    act.account("code", folder=str(act.store))
    keys = json.loads(path.read_text())
    keys["config_param"]["data_folder"] = {"azure_blob_config_file": "aux_data/configs/gone.yaml", "path": "files/data"}
    path.write_text(json.dumps(keys))
    words = [word or old for word in words]
    verb = 3 if words[0] == "-rt" else 1
    said = [act.fail(*words[:verb], *dry, *words[verb:], status=None, match="127.0.0.1:9")
            for dry in (("--dry-run",), ())]
    assert said[0] == said[1]
    goes_on(act, old)
    assert not list(act.store.rglob("*.zip"))
    act.run("abort", old)


def test_a_login_that_fails(act, double, login):
    """The folders of the run are reached by it. It is another identity, because the run that goes on keeps the token of
    its own in the cache."""
    act.account("store", account_name=double.account, container_name=double.container, endpoint=double.endpoint)
    act.cluster("aml", folders=("data",), extra={"mount": "copy"})
    act.env |= login.principal()
    double.put(f"{double.container}/files/data/a.txt", b"text")
    old = start(act)
    both_refuse(act, old, match="AADSTS|client secret",
                env={"AZURE_CLIENT_ID": "bbbbbbbb-0000-4000-8000-000000000001", "AZURE_CLIENT_SECRET": "wrong"})
    act.run("abort", old)


def test_a_project_that_is_not_trusted(act):
    old = start(act, words=("sleep", "1001"))
    act.cluster("aml", extra={"trusted_hosts": ["somewhere.example.com"]})
    both_refuse(act, old, match="trust", env={"ACT_TRUSTED_PROJECTS": ""})
    act.run("abort", old)


# ---- its code


def test_which_code_it_has(act):
    """The old run's, and it says so; the project's as it is now only with --code."""
    act.write("code.txt", "first\n")
    old = act.finish("cat", "code.txt", before=WITH)
    act.write("code.txt", "second\n")
    same = act.run("resubmit", old)
    assert f"submitted to aml as a repeat of {old}, with the package of that run; --code takes the code" in same.err
    new = act.run("resubmit", "-y", "--code", old)
    assert "--code" not in new.err and "1 changed: code.txt" in new.err, "as a submit says it"
    for result, line in ((same, "first"), (new, "second")):
        run = result.out.strip()
        act.run("wait", run)
        assert act.lines(run) == [line]
    assert act.info(new.out.strip())["resubmit_of"] == old


def test_whose_code_it_has(act, scratch):
    """Typed in another project, --code may mean either: it says which."""
    act.write("code.txt", "of the run\n")
    old = act.finish("cat", "code.txt", before=WITH)
    other = scratch / "other"
    (other / "aux_data/aml").mkdir(parents=True)
    (other / "aux_data/aml/there.yaml").write_text("platform: local\n")
    (other / "code.txt").write_text("of another\n")
    assert "with the code of" not in act.run("resubmit", "--code", "--dry-run", old).err
    assert "with the code of" not in act.run("resubmit", "--dry-run", old, cwd=other).err
    first = act.run("resubmit", "--code", old, cwd=other)
    assert f"with the code of '{act.project}', the project of '{old}'" in first.err
    second = act.run("-c", "there", "resubmit", "-y", "--code", old, cwd=other)
    assert f"with the code of '{other}', which is not the project of '{old}': that is '{act.project}'" in second.err
    for result, line in ((first, "of the run"), (second, "of another")):
        run = result.out.strip()
        act.run("wait", run)
        assert act.run("logs", run).out == line + "\n"


def test_todays_code_is_checked_before_the_old_run_is_lost(act):
    act.write("train.sh", "sleep 1000\n")
    old = start(act, words=("sh", "train.sh"))
    (act.project / "train.sh").unlink()
    act.write("other.txt")
    for dry in ((), ("--dry-run",)):
        act.fail("resubmit", "--code", *dry, old, status=None, match="train.sh")
        goes_on(act, old)
    before = sorted(act.store.rglob("*.zip"))
    act.write("train.sh", "echo today\n")
    act.run("resubmit", "--code", "--dry-run", old)
    assert sorted(act.store.rglob("*.zip")) == before, "nothing is stored"
    act.run("wait", act.run("resubmit", "--code", old).out.strip())
    assert act.state(old) == "Canceled"


# ---- on Slurm


def started_there(lab, *words):
    run = lab.submit(*(words or ("sleep", "1000")))
    lab.act.until_state(run, "Running")
    return run


def test_slurm_begins_it_when_the_old_one_has_ended(lab):
    """And a job that its user lets wait for others waits for them as well."""
    said = lab.act.scratch / "said"
    before = lab.bed.run("sbatch", "--parsable", "--output=/dev/null", "--wrap", "true").strip()
    lab.configure(slurm={"sbatch_options": [f"--dependency=afterany:{before}"]})
    lab.act.write("stay.sh", f'say() {{ echo "$1 $ACT_RUN_ID" >>{said}; }}; trap "say end; exit 0" TERM\n'
                             "say begin; while :; do sleep 0.1; done\n")
    old = started_there(lab, "bash", "stay.sh")
    lab.act.until(said.exists, "it has begun")
    new = lab.act.run("-c", "lab", "resubmit", old).out.strip()
    job, first = lab.bed.job(new), lab.bed.job(old)
    waits = lab.bed.show(job)["Dependency"]
    assert waits == "(null)" or f"afterany:{first}" in waits, waits
    lab.act.until(lambda: f"begin {new}\n" in said.read_text(), "the new one begins")
    assert said.read_text() == f"begin {old}\nend {old}\nbegin {new}\n"
    assert lab.act.state(old) == "Canceled"
    lab.act.run("abort", new)


@pytest.mark.parametrize("aborted", [False, True])
def test_slurm_in_place_of_one_that_waits(lab, aborted):
    """It waits for all that the other one waited for, also when that was aborted before it began."""
    gate, said = lab.act.scratch / "gate", lab.act.scratch / "said"
    lab.act.write("stay.sh", f'say() {{ echo "$1 $ACT_RUN_ID" >>{said}; }}\n'
                             f'trap "until [ -e {gate} ]; do sleep 0.1; done; say end; exit 0" TERM\n'
                             "say begin; while :; do sleep 0.1; done\n")
    lab.act.env["ACT_ABORT_GRACE"] = "300"
    old = started_there(lab, "bash", "stay.sh")
    lab.act.until(said.exists, "it has begun")
    replacing = lab.act.start("-c", "lab", "resubmit", old)
    try:
        second = lab.act.until(lambda: lab.act.run("qq", "--json").json["runs"], "the new one waits")[0]["id"]
        if aborted:
            lab.act.run("abort", second)
        third = lab.act.run("-c", "lab", "resubmit", second).out.strip()
        assert f"afterany:{lab.bed.job(old)}" in lab.bed.show(lab.bed.job(third))["Dependency"]
        assert said.read_text() == f"begin {old}\n"
    finally:
        gate.touch()
        replacing.communicate()
    lab.act.until(lambda: f"begin {third}\n" in said.read_text(), "the third one begins")
    assert said.read_text() == f"begin {old}\nend {old}\nbegin {third}\n"
    lab.act.run("abort", third)


def test_slurm_refuses_the_new_job(lab):
    """Whether ACT or sbatch says so."""
    old = started_there(lab)
    before = set(lab.bed.jobs())
    for slurm in ({"partition": "nowhere"}, {"sbatch_options": ["--no-such-option"]}, {"constraint": "gold"}):
        lab.configure(slurm=slurm)
        message = lab.act.fail("resubmit", old, status=None, match="nowhere|no-such-option|gold|feature")
        assert set(lab.bed.jobs()) <= before or "goes on" in message, message
        assert lab.act.state(old) == "Running" and lab.bed.show(lab.bed.job(old))["JobState"] == "RUNNING"
    lab.configure()
    lab.act.run("abort", old)


def test_a_task_of_an_array_alone_is_waited_for(lab):
    """The others go on."""
    lab.act.run("-c", "lab", "sweep", "--grid", "n=1,2", "sleep", "100{n}")
    runs = [r["id"] for r in lab.act.run("q", "--json").json["runs"]]
    for run in runs:
        lab.act.until_state(run, "Running")
    new = lab.act.run("resubmit", runs[0]).out.strip()
    lab.act.until_state(new, "Running")
    assert [lab.act.state(run) for run in runs] == ["Canceled", "Running"]
    for run in (new, runs[1]):
        lab.act.run("abort", run)


# ---- on services


def test_a_workspace_that_refuses(act, azureml):
    """The login fails, the store of the code is away, the service says no: the old job goes on."""
    act.write("code.txt")
    old = act.submit("sleep", "1000", before=("-n", "1"))
    act.until_state(old, "Running")
    azureml.faults({"method": "PUT", "match": "/jobs/", "times": 9, "forbidden": "x/jobs/write"})
    assert f"'{old}' goes on" in refuses(act, old, status=4, match="x/jobs/write")
    azureml.faults()
    shutil.rmtree(act.home / "cache", ignore_errors=True)
    account = act.project / "aux_data/configs/store.yaml"
    text = account.read_text()
    account.write_text(text.replace("account_key: \"", "account_key: \"AAAA"))
    assert account.read_text() != text
    message = act.fail("resubmit", old, status=None)
    dry = act.fail("resubmit", "--dry-run", old, status=None)
    account.write_text(text)
    goes_on(act, old)
    assert message and dry
    act.run("abort", old)


def test_a_cluster_that_refuses(act, kubernetes):
    old = act.submit("sleep", "1000", before=("-c", "k8s"))
    act.until_state(old, "Running")
    kubernetes.forbid({"verb": "create", "resource": "jobs"})
    message = refuses(act, old, match="jobs")
    assert f"'{old}' goes on" in message
    kubernetes.forbid()
    kubernetes.cluster(docker={"address": "registry.example.com", "username": "me",
                               "password": "keyvault:https://127.0.0.1:9/secrets/x"})
    both_refuse(act, old, match="the password of the registry")
    kubernetes.cluster()
    act.run("abort", old)
