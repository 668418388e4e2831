"""'a submit --after': runs that begin when others have completed, and end when those do not."""
import json
import os
import signal

import pytest

HERE = ("-c", "local", "-n", "1")


class Chain:
    """Runs that write into one file when they begin and end; each waits for its gate first, if it has one."""

    def __init__(self, act, before=HERE, folder=None):
        self.act, self.before = act, before
        self.folder = folder or act.scratch / "chain"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.said = self.folder / "said"
        act.write("stage.sh", f'echo "begin $1" >>{self.said}\n'
                              f'[ -z "$3" ] || until [ -e {self.folder}/$1 ]; do sleep 0.1; done\n'
                              f'echo "end $1" >>{self.said}\nexit $2\n')

    def submit(self, name, *options, status=0, gate=False, before=()):
        words = ["sh", "stage.sh", name, str(status), *(["gate"] if gate else [])]
        return self.act.submit("--name", name, *options, *words, before=(*self.before, *before))

    def open(self, name):
        (self.folder / name).touch()

    def lines(self):
        return self.said.read_text().splitlines() if self.said.exists() else []

    def begun(self, name):
        self.act.until(lambda: f"begin {name}" in self.lines(), f"{name} has begun")

    def ends(self, run, state, reason=""):
        """Waits for the end of a run, and expects its state and a part of its reason."""
        self.act.run("wait", run, status=None)
        info = self.act.info(run)
        assert info["state"] == state and reason in (info["reason"] or ""), info
        return info

    def waits(self, run, *words):
        """Waits until all places that show the run say for what it waits."""
        def says():
            info = self.act.info(run)
            return info["state"] == "Queued" and all(word in (info["reason"] or "") for word in words)
        self.act.until(says, f"{run} waits for {words}")


@pytest.fixture
def chain(act):
    return Chain(act)


def one_after_the_other(chain):
    """Of all platforms: preprocessing, training, evaluation."""
    act = chain.act
    prep = chain.submit("prep", gate=True)
    train = chain.submit("train", "--after", "prep")
    best = chain.submit("best", "--after", f"{train},{prep[-8:]}")
    chain.begun("prep")
    chain.waits(train, f"waits for '{prep}'")
    chain.waits(best, "waits for ", f"'{train}'", f"'{prep}'")
    assert act.info(best)["after"] == [train, prep]
    assert "waits for" in act.run("q", train).out and f"after     {prep}\n" in act.run("q", train).out
    assert f"'{prep}'" in act.run("why", train).out
    assert "waits for" in act.run("top", "--once").out
    chain.open("prep")
    act.run("wait", prep, train, best)
    assert chain.lines() == ["begin prep", "end prep", "begin train", "end train", "begin best", "end best"]
    assert {act.state(run) for run in (prep, train, best)} == {"Completed"}


def down_the_chain(chain):
    act = chain.act
    prep = chain.submit("prep", gate=True, status=3)
    train = chain.submit("train", "--after", prep)
    best = chain.submit("best", "--after", train)
    clean = chain.submit("clean", "--after", prep, "--after-any")
    chain.begun("prep")
    chain.open("prep")
    chain.ends(clean, "Completed")
    assert chain.ends(train, "Canceled", f"'{prep}', which it was to run after, failed")["started"] is None
    chain.ends(best, "Canceled", f"'{train}', which it was to run after, was canceled")
    assert f"'{train}', which it was to run after, was canceled" in act.run("wait", best, status=143).err
    assert f"'{train}'" in act.run("why", best).out
    assert chain.lines() == ["begin prep", "end prep", "begin clean", "end clean"]


def aborted_while_it_waits(chain):
    act = chain.act
    prep = chain.submit("prep", gate=True)
    train = chain.submit("train", "--after", prep)
    chain.begun("prep")
    act.run("abort", train)
    chain.ends(train, "Canceled")
    assert act.state(prep) == "Running"
    chain.open("prep")
    chain.ends(prep, "Completed")
    assert chain.lines() == ["begin prep", "end prep"]


def what_has_ended(chain):
    """A run that has completed counts; one that failed is refused before anything is there."""
    act = chain.act
    good, bad = chain.submit("good"), chain.submit("bad", status=4)
    act.run("wait", good, bad, status=4)
    n = len(act.run("q", "--json").json["runs"])
    why = f"'{bad}', which it was to run after, failed: .*4; --after-any begins when it has ended"
    for words in (("--after", "bad"), ("--after", "good,bad"), ("--after", "bad", "--dry-run")):
        act.fail(*chain.before, "submit", *words, "true", match=why)
    assert len(act.run("q", "--json").json["runs"]) == n
    dry = act.run(*chain.before, "submit", "--after", "good", "--dry-run", "true").json
    assert "needs" not in dry
    chain.ends(chain.submit("next", "--after", "good"), "Completed")
    chain.ends(chain.submit("any", "--after", "bad", "--after-any"), "Completed")


# ---- this machine


@pytest.mark.smoke
def test_one_after_the_other(chain):
    one_after_the_other(chain)


def test_down_the_chain(chain):
    down_the_chain(chain)


def test_aborted_while_it_waits(chain):
    aborted_while_it_waits(chain)


def test_what_has_ended(chain):
    what_has_ended(chain)


def test_one_of_several_fails(chain):
    """Nobody waits for the others then."""
    act = chain.act
    long, short = chain.submit("long", gate=True), chain.submit("short", gate=True, status=1)
    run = chain.submit("both", "--after", long, "--after", short)
    chain.waits(run, f"waits for '{long}' and '{short}' to complete")
    chain.begun("short")
    chain.open("short")
    chain.ends(run, "Canceled", f"'{short}', which it was to run after, failed")
    assert act.state(long) == "Running"
    chain.open("long")
    chain.ends(long, "Completed")


def test_one_that_is_tried_again_has_not_ended(chain):
    act = chain.act
    act.env["ACT_RETRY_PAUSE"] = "0"
    timeout = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE)"
    first = act.submit("--retry", "3", "--retry-on", "nccl_timeout", "bash", "-c",
                       f"[ $ACT_ATTEMPT -gt 1 ] && exec sh stage.sh first 0; echo '{timeout}'; exit 3", before=HERE)
    second = chain.submit("second", "--after", first)
    chain.ends(second, "Completed")
    assert act.info(first)["attempt"] == 2
    assert chain.lines() == ["begin first", "end first", "begin second", "end second"]


def kill_agent(act, run):
    """The run's own processes end with it."""
    os.kill(int((act.run_dir(run) / "supervisor.lock").read_text()), signal.SIGKILL)


def test_after_one_whose_agent_is_killed(chain):
    """Nobody has asked about it meanwhile: its record still says that it runs."""
    act = chain.act
    prep = chain.submit("prep", gate=True)
    train = chain.submit("train", "--after", prep)
    clean = chain.submit("clean", "--after", prep, "--after-any")
    chain.begun("prep")
    chain.waits(train, prep)
    kill_agent(act, prep)
    act.until(lambda: act.state(train) == "Canceled", "it ends")
    assert f"'{prep}', which it was to run after, " in act.info(train)["reason"]
    chain.ends(clean, "Completed")
    assert "begin train" not in chain.lines()
    act.fail(*HERE, "submit", "--after", prep, "true", match="which it was to run after, failed: lost")


def test_a_restart_of_the_machine(chain):
    """Both agents are gone: neither has completed."""
    act = chain.act
    prep = chain.submit("prep", gate=True)
    train = chain.submit("train", "--after", prep)
    chain.waits(train, prep)
    chain.begun("prep")
    kill_agent(act, train)
    kill_agent(act, prep)
    act.until_state(prep, "Failed")
    act.until_state(train, "Failed")
    assert "begin train" not in chain.lines()
    act.fail(*HERE, "submit", "--after", train, "true", match="failed: lost")


def test_its_folder_is_removed(chain):
    """Of a run that completed before anybody looked nothing is left: nobody knows how it ended."""
    act = chain.act
    prep = chain.submit("prep", gate=True)
    train = chain.submit("train", "--after", prep)
    chain.waits(train, prep)
    chain.begun("prep")
    waiting = int((act.run_dir(train) / "supervisor.lock").read_text())
    os.kill(waiting, signal.SIGSTOP)
    chain.open("prep")
    chain.ends(prep, "Completed")
    act.run("rm", "-y", f"{prep}:")
    os.kill(waiting, signal.SIGCONT)
    act.run("wait", train, status=143)
    assert f"'{prep}', which it was to run after, is gone" in act.info(train)["reason"]


@pytest.mark.parametrize("words, status, match", [
    (("--after-any", "true"), 2, "--after-any says how the runs of --after may end"),
    (("--after", "nobody", "true"), 3, "no run 'nobody'"),
    (("--after", "@,", "true"), 2, "an empty run id"),
    (("--after", "", "true"), 2, "an empty run id"),
])
def test_refused(chain, words, status, match):
    run = chain.submit("first")
    chain.ends(run, "Completed")
    chain.act.fail(*HERE, "submit", *words, status=status, match=match)


def test_the_last_ones(chain):
    act = chain.act
    first, second = chain.submit("one", gate=True), chain.submit("two", gate=True)
    result = act.run(*HERE, "submit", "--after", "@,@2,two", "true")
    third = result.out.strip()
    assert f"it waits for '{second}' and '{first}' to complete" in result.err
    assert json.loads((act.run_dir(third) / "run.json").read_text())["needs"] == [second, first]
    assert first in act.run("__complete", "submit", "--after", "").out.split()
    assert act.run("__complete", "submit", "--after", f"{first},tw").out.split() == [f"{first},two"]
    chain.open("one")
    chain.open("two")
    chain.ends(third, "Completed")


def test_resubmitted(chain):
    """One that has not begun still waits; where that cannot be, it is refused and the old one goes on."""
    act = chain.act
    prep = chain.submit("prep", gate=True)
    train = chain.submit("train", "--after", prep)
    chain.waits(train, prep)
    again = act.run("resubmit", train).out.strip()
    act.until_state(train, "Canceled")
    chain.waits(again, prep)
    act.fail("resubmit", prep, "--after", again, status=2, match=f"'{again}' is to run after '{prep}'.*a circle")
    act.fail("resubmit", prep, "--after", prep, status=2, match="it replaces .*, which ends then")
    result = act.run("resubmit", prep)
    new = result.out.strip()
    assert f"'{again}' was to run after '{prep}', and ends with it; 'a resubmit {again}'" in result.err
    chain.ends(again, "Canceled", f"'{prep}', which it was to run after, was canceled")
    third = act.run("resubmit", again)
    assert f"'{prep}' was replaced by '{new}': it runs after that one" in third.err
    chain.waits(third.out.strip(), new)
    chain.open("prep")
    chain.ends(third.out.strip(), "Completed")
    last = act.run("resubmit", third.out.strip()).out.strip()
    assert act.info(last)["after"] == [], "one that had begun had what it needed"
    chain.ends(last, "Completed")


def test_resubmitted_when_what_it_needs_has_failed(chain):
    act = chain.act
    prep = chain.submit("prep", status=1)
    chain.ends(prep, "Failed")
    good = chain.submit("good", gate=True)
    train = chain.submit("train", "--after", good)
    chain.waits(train, good)
    act.run("abort", good)
    chain.ends(train, "Canceled", "was canceled")
    act.fail("resubmit", train, match="was canceled.*--after-any")
    act.fail("resubmit", "--after", prep, train, match="failed.*--after-any")
    chain.ends(act.run("resubmit", "--after-any", train).out.strip(), "Completed")


def test_a_sweep_waits(chain):
    act = chain.act
    prep = chain.submit("prep", gate=True)
    words = (*HERE, "sweep", "--after", prep, "--grid", "n=1,2", "--", "sh", "stage.sh", "{n}", "0")
    sweep = act.run(*words).out.strip()
    runs = [r["id"] for r in act.run("q", "--json", "--tag", f"sweep={sweep}").json["runs"]]
    for run in runs:
        chain.waits(run, prep)
    chain.open("prep")
    act.run("wait", "--tag", f"sweep={sweep}")
    assert chain.lines()[:2] == ["begin prep", "end prep"]
    assert act.run(*words).out.strip() == sweep, "it is the same sweep when nothing is left to wait for"


# ---- machines behind ssh


@pytest.fixture
def away(act, host):
    return Chain(act, ("-c", "lab", "-n", "1"))


def test_behind_ssh(away):
    one_after_the_other(away)


def test_behind_ssh_down_the_chain(away):
    down_the_chain(away)


def test_on_the_machine_where_the_other_one_is(act, pair):
    """It waits there, though another one has room."""
    chain = Chain(act, ("-c", "lab", "-n", "1"))
    first, second = (chain.submit(name, gate=True, before=("-n", "2")) for name in ("one", "two"))
    assert pair.runs("gpu1") == [first] and pair.runs("gpu2") == [second]
    third = chain.submit("three", "--after", second)
    assert third in pair.runs("gpu2")
    chain.waits(third, second)
    act.fail("-c", "lab", "-n", "1", "submit", "--after", f"{first},{second}", "true", status=2,
             match=f"'{first}' is on 'gpu1' and '{second}' on 'gpu2'.*a wait {first} {second} && a submit")
    here = act.submit("sleep", "300", before=HERE)
    act.fail("-c", "lab", "submit", "--after", here, "true", status=2,
             match=f"another place.*a wait {here} && a submit")
    act.run("abort", here)
    act.fail("-c", "lab", "-n", "1", "submit", "--after", here, "true", match="was canceled")
    for name in ("one", "two"):
        chain.open(name)
    chain.ends(third, "Completed")
    done = act.finish("true", before=HERE)
    act.finish("--after", f"{done},{first},{second}", "true", before=chain.before)


# ---- Slurm


@pytest.fixture
def batch(lab):
    return Chain(lab.act, ("-c", "lab", "-n", "1"))


def test_on_slurm(batch):
    one_after_the_other(batch)


def test_on_slurm_down_the_chain(batch):
    down_the_chain(batch)


def test_on_slurm_aborted_while_it_waits(batch):
    aborted_while_it_waits(batch)


def test_on_slurm_what_has_ended(batch):
    what_has_ended(batch)


def test_on_slurm_one_that_is_tried_again_has_not_ended(lab, batch):
    act = lab.act
    act.env["ACT_RETRY_PAUSE"] = "0"
    timeout = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE)"
    first = lab.submit("--retry", "3", "--retry-on", "nccl_timeout", "bash", "-c",
                       f"[ $ACT_ATTEMPT -gt 1 ] && exec sh stage.sh first 0; echo '{timeout}'; exit 3")
    second = batch.submit("second", "--after", first)
    batch.ends(second, "Completed")
    assert batch.lines() == ["begin first", "end first", "begin second", "end second"]


def test_on_slurm_a_sweep_waits(lab, batch):
    """All of its array, for one task of another."""
    act = lab.act
    one = ("-c", "lab", "-n", "1", "sweep")
    act.run(*one, "--name", "prep", "--grid", "n=1,2", "--", "sh", "stage.sh", "prep{n}", "0", "gate")
    batch.open("prep1")
    batch.begun("prep2")
    sweep = act.run(*one, "--after", "prep.1", "--grid", "n=3,4", "--", "sh", "stage.sh", "{n}", "0").out.strip()
    act.run("wait", "--tag", f"sweep={sweep}")
    assert "end prep1" in batch.lines() and "end prep2" not in batch.lines()
    batch.open("prep2")
    act.run("wait", "prep.2")


def test_on_slurm_besides_its_own_dependency(lab, batch):
    first = batch.submit("first", gate=True)
    batch.begun("first")
    job = lab.bed.job(first)
    lab.configure(slurm={"sbatch_options": [f"--dependency=afterany:{job}?afterok:{job}"]})
    lab.fail("--after", first, "true", status=2, match="of which any is enough")
    batch.open("first")
    batch.ends(first, "Completed")


# ---- services


def test_a_service_waits_for_nobody(act, azureml):
    azureml.cluster()
    here = act.submit("sleep", "300", before=HERE)
    act.fail("submit", "--after", here, "true", status=2,
             match=f"nothing waits for it on platform 'aml'.*a wait {here} && a submit")
    act.run("abort", here)
    assert azureml.requests() == []


def test_kubernetes_waits_for_nobody(act, kubernetes):
    kubernetes.cluster()
    here = act.submit("sleep", "300", before=HERE)
    act.fail("-c", "k8s", "submit", "--after", here, "true", status=2,
             match=f"nothing waits for it on platform 'k8s'.*a wait {here} && a submit")
    act.run("abort", here)
    assert not any(kubernetes.objects(kind) for kind in ("Job", "Service", "Pod"))
    act.fail("-c", "k8s", "submit", "--after", here, "true", match="which it was to run after, was canceled")
