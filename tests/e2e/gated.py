"""Runs on the double of Kubernetes that say their rank, and end when the test lets them: its cluster has a "gate"."""


def submit(act, cluster, size):
    script = f"echo $RANK of $WORLD_SIZE; until [ -e {cluster.gate} ]; do sleep 0.1; done; echo end"
    return act.submit("sh", "-c", script, before=("-c", "k8s", "-n", size))


def job_of(cluster):
    return cluster.objects("Job")[0]


def says(act, run, rank, world):
    """Until the last attempt has this rank of so many."""
    act.until(lambda: act.run("logs", "--rank", str(rank), run, status=None).out == f"{rank} of {world}\n",
              f"rank {rank} of {world}")


def finish(act, cluster, run):
    cluster.gate.touch()
    act.run("wait", run)
    assert act.info(run)["state"] == "Completed"
