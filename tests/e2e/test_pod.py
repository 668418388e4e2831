"""act-node pod: the main process of each pod of a run on Kubernetes, with real Open MPI between the pods."""
import pytest

import pods

REACH_MASTER = """
import os, socket, sys, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
print(f"rank {rank} of {world} local {os.environ['LOCAL_RANK']} node {os.environ['NODE_RANK']}", flush=True)
where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    with socket.create_server(("0.0.0.0", where[1])) as server:
        for _ in range(world - 1):
            server.accept()[0].sendall(b"well met")
while rank:
    try:
        print(socket.create_connection(where).recv(100).decode(), flush=True)
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def bed():
    why = pods.missing()
    if why:
        pytest.skip(why)
    made = pods.Bed()
    yield made
    made.close()


@pytest.fixture
def job(act, bed):
    made = []

    def make(*command, nodes=1, procs=1, **members):
        made.append(pods.Job(bed, act, len(made), command, nodes, procs, **members))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.mark.smoke
def test_one_pod_of_several_ranks(job):
    run = job("sh", "-c", "echo rank $RANK of $WORLD_SIZE; echo to stderr >&2; printf 'no end'", procs=2)
    message = run.run()
    assert (message["state"], message["exit_status"], message["attempt"]) == ("Completed", 0, 1)
    for rank in range(2):
        assert run.log(rank) == f"rank {rank} of 2\nto stderr\nno end"
    assert run.pods[0].words() == ["act: Completed"]


@pytest.mark.smoke
@pytest.mark.parametrize("launcher", [None, "direct"])
def test_every_rank_reaches_the_master(job, launcher):
    run = job("python3", "-c", REACH_MASTER, nodes=3, procs=2, launcher=launcher)
    run.run()
    for rank in range(6):
        assert run.log(rank) == (f"rank {rank} of 6 local {rank % 2} node {rank // 2}\n" + ("well met\n" if rank else ""))


@pytest.mark.parametrize("launcher", [None, "direct"])
def test_a_rank_that_fails_ends_the_run_with_its_status(job, launcher):
    run = job("sh", "-c", "test $RANK = 1 && exit 7; echo waits; sleep 600", nodes=2, launcher=launcher)
    message = run.run(7)
    assert (message["state"], message["exit_status"], message["failed_rank"]) == ("Failed", 7, 1)
    assert message["reason"] == "rank 1 exited with status 7"
    assert message["attempt"] == 1, "a command that fails is no lost pod"
    assert run.pods[0].words()[-1] == "act: Failed: rank 1 exited with status 7"


UNTIL_GO = "echo rank $RANK; until test -e $GO; do sleep 0.1; done; echo end"


@pytest.mark.parametrize("launcher", [None, "direct"])
@pytest.mark.parametrize("victim", [0, 1])
def test_a_pod_that_was_lost_costs_an_attempt(job, launcher, victim):
    run = job("sh", "-c", UNTIL_GO, nodes=2, procs=2, launcher=launcher)
    run.start()
    for rank in range(4):
        run.until_log(rank, f"rank {rank}")
    run.pods[victim].kill()
    other = run.pods[1 - victim]
    run.until(lambda: any("lost" in line for line in other.words()), "the other pod has noticed")
    run.pods[victim].start()
    run.until(lambda: all("act: attempt 2" in pod.words() for pod in run.pods), "another attempt begins")
    run.go.write_text("")
    message = run.wait()
    assert (message["state"], message["attempt"]) == ("Completed", 2)
    for rank in range(4):
        assert run.log(rank, 2) == f"rank {rank}\nend\n"
        assert run.log(rank, 1) in (f"rank {rank}\n", "")
    first = run.pods[0]
    if victim == 1:
        assert first.text("attempts/1/user_logs/std_log_process_0.txt") == "rank 0\n"
    assert other.text(f"user_logs/std_log_process_{2 * other.index}.txt").endswith("end\n")


@pytest.mark.parametrize("launcher", [None, "direct"])
def test_sigterm_gives_every_rank_time_to_save(job, launcher):
    run = job("bash", "-c", "trap 'echo saves; sleep 1; echo saved; exit 0' TERM; echo ready; "
              "while :; do sleep 0.1; done", nodes=2, launcher=launcher)
    run.start()
    for rank in range(2):
        run.until_log(rank, "ready")
    for pod in run.pods:
        pod.terminate()
    run.pods[0].wait(143)
    run.pods[1].wait(121)
    assert run.pods[0].message()["state"] == "Canceled"
    for rank in range(2):
        assert run.log(rank) == "ready\nsaves\nsaved\n"


def test_mpi_program(job):
    pytest.importorskip("mpi4py")
    program = ("from mpi4py import MPI\nimport socket\nworld = MPI.COMM_WORLD\n"
               "print(world.rank, world.allreduce(world.rank), sorted(set(world.allgather(socket.gethostname()))))\n")
    run = job("python3", "sum.py", nodes=3, procs=2, files={"sum.py": program})
    run.run()
    for rank in range(6):
        assert run.log(rank) == f"{rank} 15 {[pod.name for pod in run.pods]}\n"
