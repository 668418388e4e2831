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
