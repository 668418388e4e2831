"""act-node pod of a run whose size changes: the group is what is there."""
import pytest

import pods

SIZE = "echo rank $RANK of $WORLD_SIZE node $NODE_RANK; until test -e $GO; do sleep 0.1; done; echo end"


@pytest.fixture
def job(act, pod_bed):
    made = []

    def make(*command, least, procs=1, **members):
        members = {"launcher": "direct", "min_nodes": least, "max_nodes": 3, **members}
        made.append(pods.Job(pod_bed, act, 100 + len(made), command, 3, procs, **members))
        made[-1].env["ACT_POD_SETTLE"] = "1"
        return made[-1]
    yield make
    for one in made:
        one.close()


def says(run, attempt, pod, rank, world):
    """Until a pod has, in an attempt, this rank of so many."""
    wanted = f"rank {rank} of {world} node "
    run.until(lambda: wanted in run.pods[pod].logs(attempt).get(rank, b"").decode(), f"pod {pod}: {wanted}")


def finish(run, *others):
    """The first pod has the result, all that are there leave."""
    run.go.write_text("")
    run.pods[0].wait(0)
    for i in others:
        run.pods[i].wait(0)
    assert run.pods[0].message()["state"] == "Completed"
    return run.pods[0].message()["attempt"]


@pytest.mark.parametrize("launcher", ["direct", "mpirun"])
def test_it_grows_when_more_come(job, launcher):
    run = job("sh", "-c", SIZE, least=2, procs=2, launcher=launcher)
    for pod in run.pods[:2]:
        pod.start()
    says(run, 1, 1, 3, 4)
    run.pods[2].start()
    says(run, 2, 2, 5, 6)
    says(run, 2, 0, 0, 6)
    assert finish(run, 1, 2) == 2
    assert "act: 1 more pod(s) have come: attempt 1 ends" in run.pods[0].words()
    assert run.pods[2].logs(2)[5] == b"rank 5 of 6 node 2\nend\n"


@pytest.mark.parametrize("launcher", ["direct", "mpirun"])
def test_it_goes_on_with_those_that_are_left(job, launcher):
    run = job("sh", "-c", SIZE, least=2, launcher=launcher).start()
    for rank in range(3):
        says(run, 1, rank, rank, 3)
    run.pods[1].kill()
    says(run, 2, 0, 0, 2)
    says(run, 2, 2, 1, 2)
    assert finish(run, 2) == 2


def test_it_becomes_one_pod_and_several_again(job):
    run = job("sh", "-c", SIZE, least=1, launcher=None)
    run.pods[0].start()
    says(run, 1, 0, 0, 1)
    run.pods[2].start()
    says(run, 2, 2, 1, 2)
    run.pods[2].terminate()
    run.pods[2].wait(121)
    says(run, 3, 0, 0, 1)
    assert finish(run) == 3


def test_the_first_pod_is_lost(job):
    run = job("sh", "-c", SIZE, least=2)
    for i in (0, 2):
        run.pods[i].start()
    says(run, 1, 2, 1, 2)
    run.pods[0].kill()
    run.until(lambda: "act: the first pod was lost: the attempt ends" in run.pods[2].words(), "it has noticed")
    run.pods[0].start()
    says(run, 2, 2, 1, 2)
    assert finish(run, 2) == 2


def test_too_few_wait_for_more(job):
    run = job("sh", "-c", SIZE, least=2)
    for pod in run.pods[:2]:
        pod.start()
    says(run, 1, 1, 1, 2)
    run.pods[1].kill()
    waits = "act: waits for pods: 1 are there, at least 2 and at most 3 can be used"
    run.until(lambda: waits in run.pods[0].words()[1:], "it waits")
    run.pods[2].start()
    says(run, 2, 2, 1, 2)
    assert finish(run, 2) == 2


def test_a_command_that_fails_is_no_change_of_the_group(job):
    run = job("sh", "-c", "test $RANK = 1 && exit 7; sleep 600", least=2)
    for i in (0, 1):
        run.pods[i].start()
    run.pods[0].wait(7)
    message = run.pods[0].message()
    assert (message["state"], message["failed_rank"], message["attempt"]) == ("Failed", 1, 1)


def test_starters_follow_the_size(job, tmp_path):
    """torchrun is told how many nodes there are."""
    run = job("torchrun", "train.py", least=1, started_per_node=2,
              files={"train.py": "", "bin/torchrun": "#!/bin/sh\necho torchrun $*\n" + SIZE})
    run.env["PATH"] = f"{run.folder}/bin:/usr/bin:/bin"
    folder = run.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "torchrun").write_text("#!/bin/sh\necho torchrun $*\nuntil test -e $GO; do sleep 0.1; done\n")
    (folder / "torchrun").chmod(0o755)
    run.pods[0].start()
    run.until(lambda: b"torchrun" in run.pods[0].logs(1).get(0, b""), "it runs")
    run.pods[1].start()
    run.until(lambda: b"torchrun" in run.pods[1].logs(2).get(1, b""), "it runs on two")
    assert finish(run, 1) == 2
    assert "nnodes=2" in run.pods[1].logs(2)[1].decode().replace(" ", "="), run.pods[1].logs(2)
