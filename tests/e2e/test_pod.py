"""act-node pod: the main process of each pod of a run on Kubernetes, with real Open MPI between the pods."""
import re
import subprocess

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


# A pod that knows the token and says what none says: an attempt after which there is no other, and the ends of programs
# that nobody has started.
MEMBER = """
import base64, hashlib, hmac, json, socket, sys, time
where, token = sys.argv[1:]
while True:
    try:
        link = socket.create_connection((where, 6427))
        break
    except OSError:
        time.sleep(0.1)
lines = link.makefile("rb")
theirs, ours = json.loads(lines.readline())["nonce"], "ab" * 32
proof = base64.b64encode(hmac.digest(token.encode(), f"rank {theirs} {ours} 1".encode(), hashlib.sha256)).decode()
hello = {"type": "hello", "rank": 1, "nonce": ours, "proof": proof, "attempt": 2**31 - 1}
for message in (hello, *({"type": "done", "id": i} for i in (10**8, -5 * 10**6, 2**32 + 2)), {"type": "done"}):
    link.sendall(json.dumps(message).encode() + b"\\n")
assert [json.loads(lines.readline())["type"] for _ in range(2)] == ["accepted", "begin"]
"""


@pytest.fixture
def job(act, pod_bed):
    made = []

    def make(*command, nodes=1, procs=1, **members):
        made.append(pods.Job(pod_bed, act, len(made), command, nodes, procs, **members))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.mark.smoke
@pytest.mark.parametrize("launcher", [None, "direct"])
def test_one_pod_of_several_ranks(job, launcher):
    run = job("sh", "-c", "echo rank $RANK of $WORLD_SIZE; echo to stderr >&2; printf 'no end'", procs=2,
              launcher=launcher)
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
        met = "well met\n" if rank else ""
        assert run.log(rank) == f"rank {rank} of 6 local {rank % 2} node {rank // 2}\n{met}"


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
    run.pods[0].wait(121)
    run.pods[1].wait(121)
    assert run.pods[0].message()["state"] == "Canceled"
    for rank in range(2):
        assert run.log(rank) == "ready\nsaves\nsaved\n"


def test_what_a_pod_says_wrongly_harms_nobody(pod_bed, job):
    run = job("echo", "done", nodes=2, launcher="direct")
    run.pods[0].start()
    words = ["ip", "netns", "exec", pod_bed.space(1), "python3", "-c", MEMBER, pod_bed.address(0), "5a" * 32]
    said = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    assert said.returncode == 0, (said.stderr, run.pods[0].story())
    run.pods[1].start()
    assert run.wait()["attempt"] == 2


def test_mpi_program(job):
    pytest.importorskip("mpi4py")
    program = ("from mpi4py import MPI\nimport socket\nworld = MPI.COMM_WORLD\n"
               "print(world.rank, world.allreduce(world.rank), sorted(set(world.allgather(socket.gethostname()))))\n")
    run = job("python3", "sum.py", nodes=3, procs=2, files={"sum.py": program})
    run.run()
    for rank in range(6):
        assert run.log(rank) == f"{rank} 15 {[pod.name for pod in run.pods]}\n"


@pytest.mark.parametrize("launcher", [None, "direct"])
def test_image_of_an_ordinary_user(job, launcher):
    run = job("sh", "-c", "id -u; echo $RANK", nodes=2, procs=2, launcher=launcher)
    run.env.update(AS_USER="setpriv --reuid 4711 --regid 4711 --clear-groups", HOME="/nowhere")
    run.run()
    assert [run.log(rank) for rank in range(4)] == [f"4711\n{rank}\n" for rank in range(4)]


# ---- losses


def test_a_pod_that_is_told_to_end_costs_an_attempt(job):
    """Its node is drained."""
    run = job("sh", "-c", UNTIL_GO, nodes=3)
    run.start()
    for rank in range(3):
        run.until_log(rank, f"rank {rank}")
    run.pods[2].terminate()
    run.pods[2].wait(121)
    run.pods[2].start()
    run.until(lambda: all("act: attempt 2" in pod.words() for pod in run.pods), "another attempt begins")
    run.go.write_text("")
    assert run.wait()["attempt"] == 2
    assert [run.log(rank, 2) for rank in range(3)] == [f"rank {rank}\nend\n" for rank in range(3)]


def test_a_pod_that_is_back_before_the_attempt_has_ended(job):
    run = job("bash", "-c", "trap 'echo saves' TERM; " + UNTIL_GO, nodes=3, launcher="direct")
    run.start()
    for rank in range(3):
        run.until_log(rank, f"rank {rank}")
    run.pods[1].kill()
    run.pods[1].start()
    run.until(lambda: all("act: attempt 2" in pod.words() for pod in run.pods), "another attempt begins")
    run.go.write_text("")
    assert run.wait()["attempt"] == 2
    assert [run.log(rank, 1) for rank in (0, 2)] == ["rank 0\nsaves\n", "rank 2\nsaves\n"]
    assert [run.log(rank, 2) for rank in range(3)] == [f"rank {rank}\nend\n" for rank in range(3)]


def test_the_count_goes_on_whichever_pods_are_lost(job):
    run = job("sh", "-c", UNTIL_GO, nodes=2, launcher="direct")
    run.start()
    for attempt, victim in enumerate((1, 0, 0, 1), 2):
        run.until_log(1, "rank 1")
        run.until_log(0, "rank 0")
        run.pods[victim].kill()
        run.until(lambda: "lost" in "".join(run.pods[1 - victim].words()[-3:]), "the other pod has noticed")
        run.pods[victim].start()
        run.until(lambda: all(f"act: attempt {attempt}" in pod.words() for pod in run.pods), f"attempt {attempt}")
    run.go.write_text("")
    assert run.wait()["attempt"] == 5


def test_what_follows_from_a_lost_pod_is_no_failure(job):
    """The command on the first pod sees the end of its peer, and fails, before anybody knows that it was lost."""
    run = job("python3", "-c", (
              "import os, socket, sys, time\nrank = int(os.environ['RANK'])\n"
              "where = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))\n"
              "if rank == 0:\n"
              "    print('listens', flush=True)\n"
              "    peer = socket.create_server(('0.0.0.0', where[1])).accept()[0]\n"
              "    print('met', flush=True)\n"
              "    sys.exit(0 if peer.recv(1) else 9)\n"
              "for _ in range(600):\n"
              "    try:\n"
              "        peer = socket.create_connection(where)\n"
              "        break\n"
              "    except ConnectionRefusedError:\n"
              "        time.sleep(0.1)\n"
              "while not os.path.exists(os.environ['GO']):\n"
              "    time.sleep(0.1)\n"
              "peer.send(b'x')\n"), nodes=2)
    run.start()
    run.until_log(0, "met")
    run.pods[1].kill()
    run.go.write_text("")
    run.pods[1].start()
    message = run.wait()
    assert (message["state"], message["attempt"]) == ("Completed", 2)


def test_a_node_that_vanishes(job, pod_bed):
    """Nobody is told: its silence has to be noticed, first of all by its ranks' connections."""
    run = job("sh", "-c", UNTIL_GO, nodes=2)
    run.start()
    for rank in range(2):
        run.until_log(rank, f"rank {rank}")
    with pod_bed.cut_off(1):
        run.pods[1].kill()
        run.until(lambda: "lost" in "".join(run.pods[0].words()), "the first pod has noticed", timeout=300)
    run.pods[1].start()
    run.go.write_text("")
    message = run.wait()
    assert (message["state"], message["attempt"]) == ("Completed", 2)


def test_a_pod_that_does_not_find_its_group_gives_up(job):
    run = job("true", nodes=2)
    run.env["ACT_POD_PATIENCE"] = "1"
    run.pods[1].start().wait(121)
    assert run.pods[1].words() == ["act: looks for the first pod",
                                   f"act: cannot find the first pod, '{run.pods[0].name}.{run.name}'"]


def test_sigterm_while_the_group_gathers(job):
    run = job("true", nodes=2)
    run.pods[0].start()
    run.until(lambda: run.pods[0].words(), "the first pod waits")
    run.pods[0].terminate()
    run.pods[0].wait(121)
    assert run.pods[0].words()[-1] == "act: Canceled: aborted"
    assert run.pods[0].message()["state"] == "Canceled"


def test_nothing_outlives_a_pod_and_orphans_are_adopted(job):
    run = job("sh", "-c", "(setsid sleep 1000 & ) ; (setsid sh -c 'trap \"\" TERM; sleep 1000' &); echo $RANK", nodes=2)
    run.run()
    assert [run.log(rank) for rank in range(2)] == ["0\n", "1\n"]


# ---- names


@pytest.mark.parametrize("launcher", [None, "direct"])
def test_names_that_come_late(job, pod_bed, launcher):
    """The name server knows the pods some time after they have begun, as that of a cluster."""
    run = job("python3", "-c", REACH_MASTER, nodes=2, launcher=launcher)
    names = run.folder / "names"
    names.write_text("")
    with pod_bed.names_by_dns(names):
        run.start()
        run.until(lambda: "no address" in run.pods[1].text("system_logs/node_" + run.pods[1].name + ".txt"),
                  "the second pod has looked in vain")
        names.write_text("".join(f"{pod_bed.address(i)} {run.name}-{i}.{run.name}\n" for i in range(2)))
        run.wait()
    assert run.log(1) == "rank 1 of 2 local 0 node 1\nwell met\n"


# ---- words


def wrong(run, pod, pattern):
    """The pod ends with one clear line, which is also its message."""
    pod.start().wait(125)
    (line,) = pod.words()
    assert re.fullmatch(pattern, line), line
    assert (pod.message()["state"], "act: " + pod.message()["reason"]) == ("Failed", line)


@pytest.mark.parametrize("index, pattern", [
    (None, "act: cannot .*: JOB_COMPLETION_INDEX is not set: this is not a pod of an Indexed Job"),
    ("x", "act: cannot .*: JOB_COMPLETION_INDEX is 'x', which is not the number of a pod"),
    ("2", r"act: cannot .*: JOB_COMPLETION_INDEX is 2, but the run has 2 node\(s\)")])
def test_wrong_index(job, index, pattern):
    run = job("true", nodes=2)
    run.env["JOB_COMPLETION_INDEX"] = index
    wrong(run, run.pods[0], pattern)


@pytest.mark.parametrize("name", ["token", "run.json"])
@pytest.mark.parametrize("index", [0, 1])
def test_missing_file(job, name, index):
    run = job("true", nodes=2)
    (run.secret / name).unlink()
    wrong(run, run.pods[index], f"act: cannot take .* Secrets: .*'/run/act/secret/{name}': No such file.*")


def test_other_bad_files(job):
    run = job("true", nodes=2, files={"a": "b"})
    (run.secret / "package.zip").unlink()
    wrong(run, run.pods[1], "act: the run has a package, and its Secret is not mounted at '/run/act/secret'")
    (run.folder / "pod1/out").unlink()
    (run.secret / "package.zip.000").write_bytes(b"PK")
    (run.secret / "package.zip.001").mkdir()
    wrong(run, run.pods[1], "act: cannot take the run from its Secrets: .*package.zip.001.*")
    (run.folder / "pod1/out").unlink()
    (run.secret / "token").write_text("short")
    wrong(run, run.pods[1], "act: cannot take .*: the run's token is not 64 hex digits")
    (run.folder / "pod1/out").unlink()
    (run.secret / "run.json").write_text("{")
    (run.secret / "token").write_text("5a" * 32)
    (run.secret / "package.zip.001").rmdir()
    wrong(run, run.pods[1], "act: .*run.json.*")


def test_package_in_parts(job):
    run = job("cat", "a.txt", files={"a.txt": "content\n"})
    data = (run.secret / "package.zip").read_bytes()
    (run.secret / "package.zip").unlink()
    for i, at in enumerate(range(0, len(data), 50)):
        (run.secret / f"package.zip.{i:03}").write_bytes(data[at:at + 50])
    run.run()
    assert run.log(0) == "content\n"


def test_no_mpirun_in_the_image(job):
    run = job("true", nodes=2)
    run.env["PATH"] = run.bare_path()
    message = run.run(125)
    assert message["reason"] == ("mpirun not found in PATH; install Open MPI; or set 'k8s.launcher' to direct")


def test_the_port_is_taken(job, pod_bed):
    run = job("true", nodes=2)
    script = ("import socket, time\ns = socket.create_server(('0.0.0.0', 6427))\n"
              "print('ready', flush=True)\ntime.sleep(99)")
    words = ["ip", "netns", "exec", pod_bed.space(0), "python3", "-c", script]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as holder:
        try:
            holder.stdout.readline()
            wrong(run, run.pods[0], "act: cannot listen at port 6427: Address already in use")
        finally:
            holder.kill()


def test_words_of_a_daemon_that_does_not_start(job):
    """The second pod has another image, without Open MPI."""
    run = job("true", nodes=2)
    run.pods[0].start()
    run.pods[1].start(PATH=run.bare_path())
    message = run.wait(None)
    host = f"{run.pods[1].name}.{run.name}"
    assert message["state"] == "Failed"
    assert message["reason"] == (f"mpirun ended with status 127: the daemon of mpirun on '{host}' "
                                 "ended with status 127: /bin/sh: 1: orted: not found")


def test_secrets_and_environment(job):
    run = job("sh", "-c", "echo $PLAIN $MY_TOKEN; echo ${OMPI_MCA_plm_rsh_agent-none} $AZ_BATCH_HOST_LIST; "
              "cat $AZ_BATCHAI_MPI_HOST_FILE", nodes=2,
              env=[{"name": "PLAIN", "value": "a b"}, {"name": "MY_TOKEN"}])
    (run.secret / "secrets.json").write_text('{"MY_TOKEN": "hidden"}')
    run.run()
    hosts = [f"{pod.name}.{run.name}" for pod in run.pods]
    for rank in range(2):
        assert run.log(rank) == ("a b hidden\nnone " + ",".join(hosts) + "\n" +
                                 "".join(f"{host} slots=1\n" for host in hosts))
