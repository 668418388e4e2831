"""GPUs of a machine that are somebody's: those that are given, those that others use, those that are named."""
import contextlib
import ctypes
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import time

import pytest

from gpu_machine import UUID

SAY = ("sh", "-c", "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER $LOCAL_RANK")


def said(act, *before, n=1):
    """What the ranks of a run see."""
    run = act.finish(*SAY, before=before)
    return [act.lines(run, rank)[0] for rank in range(n)]


# ---- what is given


@pytest.mark.smoke
@pytest.mark.parametrize("by_driver", [True, False])
def test_the_gpus_that_are_given(act, gpu_machine, by_driver):
    gpu_machine(4, by_driver=by_driver)
    assert said(act, n=4) == [f"0,1,2,3 PCI_BUS_ID {rank}" for rank in range(4)]
    act.env["CUDA_VISIBLE_DEVICES"] = "3"
    assert said(act, "-n", "1") == ["3 PCI_BUS_ID 0"]
    assert said(act) == ["3 PCI_BUS_ID 0"]
    act.fail("-n", "2", "submit", "true", status=6,
             match=r"2 GPUs are asked for, but 'aml' has 1 \(CUDA_VISIBLE_DEVICES is '3'\); use at most -n 1")
    assert act.run("-n", "1", "local", *SAY).out == "3 PCI_BUS_ID 0\n"


def test_gpus_that_are_given_by_uuid(act, gpu_machine):
    gpu_machine(4)
    act.env["CUDA_VISIBLE_DEVICES"] = f"{UUID.format(2)},GPU-1"
    assert said(act, n=2) == ["1,2 PCI_BUS_ID 0", "1,2 PCI_BUS_ID 1"]


def test_no_gpu_is_given(act, gpu_machine):
    gpu_machine(2)
    act.env["CUDA_VISIBLE_DEVICES"] = ""
    assert said(act) == [" 0".strip()]
    assert not act.run("summary", "--json").json["has_gpus"]


def test_a_run_tried_again_has_the_same_to_choose_from(act, gpu_machine):
    gpu_machine(4)
    act.env |= {"CUDA_VISIBLE_DEVICES": "1,3", "ACT_RETRY_PAUSE": "0"}
    script = ("echo $CUDA_VISIBLE_DEVICES; [ $ACT_ATTEMPT = 2 ] || "
              "{ echo 'Watchdog caught collective operation timeout'; exit 3; }")
    run = act.submit("--retry", "1", "sh", "-c", script, before=("-n", "1", "-p", "gpus: [3]"))
    act.run("wait", run)
    assert act.lines(run) == ["3"]


def bpf(command, *words):
    """bpf(2) with attributes of so many 32-bit words and pointers, which are given as buffers."""
    attributes, kept = b"", []
    for word in words:
        is_pointer = isinstance(word, bytes)
        kept.append(ctypes.create_string_buffer(word) if is_pointer else word)
        attributes += struct.pack("=Q", ctypes.addressof(kept[-1])) if is_pointer else struct.pack("=I", word)
    attributes = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(BPF, command, attributes, 128)
    if result < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return result


BPF, LOAD, ATTACH, CGROUP_DEVICE_PROGRAM, CGROUP_DEVICE = 321, 5, 8, 15, 6
ONLY_195_2 = [  # operation, registers, offset, value (linux/bpf.h); bpf_cgroup_dev_ctx is access, major, minor
    (0x61, 0x12, 4, 0), (0x55, 0x02, 5, 195),  # major, other: allowed
    (0x61, 0x12, 8, 0), (0x15, 0x02, 3, 2), (0x25, 0x02, 2, 3),  # minor: 2, or more than 3
    (0xb7, 0x00, 0, 0), (0x95, 0x00, 0, 0),  # no
    (0xb7, 0x00, 0, 1), (0x95, 0x00, 0, 0)]  # yes


@contextlib.contextmanager
def cgroup_1(_):
    """A cgroup of version 1 in which only one of four GPUs may be opened."""
    controller = pathlib.Path("/sys/fs/cgroup/devices")
    if not (controller / "devices.deny").exists():
        pytest.skip("this kernel has no device controller of cgroup version 1")
    folder = controller / f"act-test-{os.getpid()}"
    folder.mkdir()
    try:
        for i in (0, 1, 3):
            (folder / "devices.deny").write_text(f"c 195:{i} rwm")
        yield folder
    finally:
        folder.rmdir()


@contextlib.contextmanager
def cgroup_2(scratch):
    """The same of version 2, where a program of the kernel decides."""
    if os.uname().machine != "x86_64":
        pytest.skip("the number of bpf(2) is another one here")
    mount = scratch / "cgroup2"
    mount.mkdir()
    subprocess.run(["mount", "-t", "cgroup2", "none", mount], check=True)
    folder = mount / f"act-test-{os.getpid()}"
    try:
        folder.mkdir()
        words = b"".join(struct.pack("=BBhi", *word) for word in ONLY_195_2)
        program = bpf(LOAD, CGROUP_DEVICE_PROGRAM, len(ONLY_195_2), words, b"GPL")
        place = os.open(folder, os.O_RDONLY)
        bpf(ATTACH, place, program, CGROUP_DEVICE, 0)
        os.close(place)
        os.close(program)
        yield folder
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()
        subprocess.run(["umount", "--lazy", mount], check=True)


@pytest.mark.parametrize("cgroup", [cgroup_1, cgroup_2])
def test_a_cgroup_that_allows_one_of_four(act, gpu_machine, cgroup):
    gpu_machine(4, real_devices=True)
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(cgroup(act.scratch))
        except (OSError, subprocess.CalledProcessError) as e:
            pytest.skip(f"no cgroup can be made: {e}")
        act.prefix = ("sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$@"', "sh", *act.prefix)
        assert said(act) == ["0 PCI_BUS_ID 0"], "as the driver numbers what may be opened"
        act.fail("-n", "2", "submit", "true", status=6, match=r"'aml' has 1 \(this process may open 1 of 4\)")


# ---- by name


def test_gpus_by_name(act, gpu_machine):
    gpu_machine(4)
    assert said(act, "-p", "gpus: [2,3]", n=2) == ["2,3 PCI_BUS_ID 0", "2,3 PCI_BUS_ID 1"]
    assert said(act, "-n", "1", "-p", f"gpus: [{UUID.format(2)}]") == ["2 PCI_BUS_ID 0"]
    for gpus, status, why in (("[7]", 7, "gpus has '7', and this machine has no such GPU: it has 0 to 3"),
                              ("[GPU-9999]", 7, "gpus has 'GPU-9999'"), ("[1, 1]", 2, "'gpus' names '1' twice"),
                              (f"[1, {UUID.format(1)}]", 7, "names that GPU twice")):
        act.fail("-p", f"gpus: {gpus}", "submit", "true", status=status, match=re.escape(why))
    act.fail("-n", "3", "-p", "gpus: [2,3]", "submit", "true", status=6, match="'aml' has 2")
    act.env["CUDA_VISIBLE_DEVICES"] = "0,1"
    act.fail("-p", "gpus: [2]", "submit", "true", status=7, match="'2', and that GPU is not given to this process")


def test_a_run_that_named_gpus_is_submitted_again(act, gpu_machine):
    gpu_machine(4)
    run = act.finish(*SAY, before=("-n", "1", "-p", "gpus: [2]"))
    again = act.run("resubmit", run).out.strip()
    act.run("wait", again)
    assert act.lines(again) == ["2 PCI_BUS_ID 0"]
    other = act.run("-p", "gpus: [1]", "resubmit", run).out.strip()
    act.run("wait", other)
    assert act.lines(other) == ["1 PCI_BUS_ID 0"]


# ---- who uses them


@pytest.fixture
def other_process():
    """A process of another user."""
    process = subprocess.Popen(["setpriv", "--reuid=nobody", "--clear-groups", "sleep", "600"])
    yield process
    process.kill()
    process.wait()


def reason(act, run):
    return act.info(run).get("reason") or ""


def test_a_busy_gpu_is_not_given_out(act, gpu_machine, other_process):
    machine = gpu_machine(2)
    machine.smi(g0=31744)
    machine.compute((0, other_process.pid, "/usr/bin/python", 31744))
    assert said(act, "-n", "1") == ["1 PCI_BUS_ID 0"]


def test_a_run_waits_for_a_gpu_of_another_user(act, gpu_machine, other_process):
    machine = gpu_machine(2)
    machine.smi(g1=31744)
    machine.compute((1, other_process.pid, "/usr/bin/python", 31744))
    run = act.submit(*SAY, before=("-n", "2"))
    why = r"waits for 1 of 2 GPUs: GPU 1 is used by another user \(nobody, python, 31 GiB, 0 min\)"
    act.until(lambda: re.search(why, reason(act, run)), lambda: reason(act, run))
    assert re.search(why, act.run("qq").out.replace("\n", " ")) or re.search("waits for 1 of 2 GPUs", act.run("qq").out)
    machine.compute()
    machine.smi()
    act.run("wait", run)
    assert act.lines(run, 1) == ["0,1 PCI_BUS_ID 1"]


def test_memory_in_use(act, gpu_machine):
    """Of a process that cannot be seen: outside of this container."""
    machine = gpu_machine(2)
    machine.smi(g0=8000)
    assert said(act, "-n", "1") == ["1 PCI_BUS_ID 0"]
    assert said(act, "-n", "1", "-p", "gpu_free_memory: 20") == ["0 PCI_BUS_ID 0"]


def test_the_driver_is_not_asked_on_the_way_to_a_prompt(act, gpu_machine):
    """nvidia-smi takes its time: only the agent of the run starts it."""
    gpu_machine(4).smi()
    program, asked = act.scratch / "smi-bin/nvidia-smi", act.scratch / "asked"
    program.rename(program.with_name("real"))
    program.write_text(f"#!/bin/sh\ntr '\\0' ' ' </proc/$PPID/cmdline >>{asked}; echo >>{asked}\n"
                       'exec "${0%/*}/real" "$@"\n')
    program.chmod(0o755)
    run = act.submit("true", before=("-n", "2"))
    act.run("wait", run)
    act.run("q")
    words = [line.split()[:2] for line in asked.read_text().splitlines() if line.strip()]
    assert words and all(program.endswith("act-node") for program, _ in words), words


@pytest.mark.parametrize("way", ["hangs", "fails"])
def test_a_driver_that_does_not_answer(act, gpu_machine, way):
    machine = gpu_machine(2)
    machine.smi()
    (machine.folder / way).touch()
    run = act.finish(*SAY, before=("-n", "1"))
    assert act.lines(run) == ["0 PCI_BUS_ID 0"]
    log = "".join(path.read_text() for path in (act.run_dir(run) / "system_logs").iterdir())
    assert re.search("nvidia-smi (hangs|fails), so nobody knows who else uses the GPUs", log), log


def test_gpus_near_one_another(act, gpu_machine):
    machine = gpu_machine(4)
    machine.smi()
    (machine.folder / "topology").write_text(
        "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\nGPU0\t X \tSYS\tNV12\tSYS\t0-7\nGPU1\tSYS\t X \tSYS\tPHB\t8-15\n"
        "GPU2\tNV12\tSYS\t X \tSYS\t0-7\nGPU3\tSYS\tPHB\tSYS\t X \t8-15\n")
    assert said(act, "-n", "2", n=2) == ["0,2 PCI_BUS_ID 0", "0,2 PCI_BUS_ID 1"]


# ---- what is shown


def test_gpus_are_listed(act, gpu_machine, other_process):
    machine = gpu_machine(2)
    machine.smi(g1=31744)
    machine.compute((1, other_process.pid, "/usr/bin/python", 31744))
    act.env["CUDA_VISIBLE_DEVICES"] = "0"
    shown = act.run("summary").out
    assert re.search(r"GPU 0 +NVIDIA H100 +0.0 of 79.6 GiB +-", shown), shown
    assert re.search(r"GPU 1, not given +NVIDIA H100 +31.0 of 79.6 GiB +nobody, python, 31 GiB, 0 min", shown), shown
    assert act.run("summary", "--json").json["devices"][1] == {
        "name": "GPU 1", "model": "NVIDIA H100", "memory": 81559 << 20, "used": 31744 << 20,
        "users": "nobody, python, 31 GiB, 0 min", "given": False}
    shown = act.run("top", "--once").out
    assert re.search(r"\nGPU 1, not given +NVIDIA H100 +31.0 of 79.6 GiB +nobody, python, 31 GiB", shown), shown
    cluster, = act.run("top", "--json").json["clusters"]
    assert [gpu["used"] for gpu in cluster["devices"]] == [4 << 20, 31744 << 20]
    checks = {c["what"]: c for c in act.run("doctor", "--json", status=None).json["checks"]}
    assert checks["GPU 1"]["text"] == ("NVIDIA H100, 31.0 of 79.6 GiB in use, by nobody, python, 31 GiB, 0 min, "
                                       "not given to this process")
    assert checks["GPUs"]["text"] == "not all are given: CUDA_VISIBLE_DEVICES is '0'"
    assert "GPU driver" not in checks
    (machine.folder / "hangs").touch()
    assert "does not answer" in act.run("top", "--once").out
    checks = {c["what"]: c for c in act.run("doctor", "--json", status=None).json["checks"]}
    assert not checks["GPU driver"]["ok"] and "does not answer" in checks["GPU driver"]["text"]


# ---- in a job of a batch system


def test_a_job_of_slurm(act, gpu_machine):
    """Its part of this node, and of its time; mpirun starts its processes here."""
    gpu_machine(4)
    node = os.uname().nodename
    act.env |= {"SLURM_JOB_ID": "4711", "SLURM_JOBID": "4711", "SLURM_NODELIST": f"{node},n9", "SLURM_NNODES": "2",
                "SLURM_JOB_NODELIST": f"{node},n9", "SLURM_TASKS_PER_NODE": "1(x2)", "SLURM_CPUS_ON_NODE": "1",
                "SLURMD_NODENAME": node, "CUDA_VISIBLE_DEVICES": "1,2",
                "SLURM_JOB_END_TIME": str(int(time.time()) + 3 * 3600 + 60)}
    assert said(act, "-n", "2", n=2) == ["1,2 PCI_BUS_ID 0", "1,2 PCI_BUS_ID 1"]
    assert "2 ranks" in act.run("-n", "2", "local", "sh", "-c", "[ $RANK = 1 ] || echo $WORLD_SIZE ranks").out
    checks = {c["what"]: c for c in act.run("doctor", "--json", status=None).json["checks"]}
    assert re.fullmatch(f"in job 4711 on {node}: 2 GPUs, 1 processor, 3 h left", checks["job of Slurm"]["text"])
    submitted = act.run("-n", "1", "submit", "true")
    assert "the run is part of job 4711 of Slurm, and ends with it at the latest, in 3 h" in submitted.err
    act.run("wait", submitted.out.strip())
    run = act.submit("sleep", "300", before=("-n", "1"))
    act.until_state(run, "Running")
    os.kill(int((act.run_dir(run) / "supervisor.lock").read_text()), 15)  # as Slurm ends a job
    act.run("wait", run, status=None)
    assert act.state(run) == "Failed" and "job 4711 of Slurm ends, of which the run is a part" in reason(act, run)
    act.fail("-n", "3", "submit", "true", status=6, match=r"'aml' has 2 \(CUDA_VISIBLE_DEVICES is '1,2'\)")


def test_the_processors_of_a_job(act):
    act.env |= {"SLURM_JOB_ID": "4711", "SLURM_CPUS_ON_NODE": "1", "SLURMD_NODENAME": os.uname().nodename}
    assert act.run("summary", "--json").json["total"]["gpus"]["total"] == 1
    act.fail("-n", "2", "submit", "true", status=6, match="'aml' has 1")


def test_a_run_in_a_run_has_its_gpus(act, gpu_machine):
    gpu_machine(4)
    outer = act.finish("sh", "-c", f"cd {act.project} && a -n 1 local sh -c 'echo inner $CUDA_VISIBLE_DEVICES'",
                       before=("-n", "1", "-p", "gpus: [2]"))
    assert "inner 2" in act.lines(outer)


# ---- several users of the machine


@pytest.fixture
def alice(programs, scratch, act, stranger):
    """Another user, with a project and a home of her own."""
    place = scratch / "alice"
    place.mkdir()
    scratch.chmod(0o755)
    hers = type(act)(programs, place)
    subprocess.run(["chown", "-R", stranger, place], check=True)
    hers.name = stranger
    yield hers
    hers.clean_up()


def as_user(machine, user):
    """From now on her programs run as she, on this machine."""
    may_run = subprocess.run(["setpriv", f"--reuid={user.name}", "--clear-groups", "test", "-x", user.programs / "a"])
    if may_run.returncode:
        pytest.skip(f"another user cannot run '{user.programs}/a'")
    user.prefix = (*machine.prefix[:-1], f"--wdns={user.project}", "setpriv", f"--reuid={user.name}", "--clear-groups")


def test_two_users_share_the_gpus(act, gpu_machine, alice):
    """Hers waits for his, and says whose it is. Who was killed holds none; what is cleaned up is made again."""
    machine = gpu_machine(2)
    as_user(machine, alice)
    his = act.submit("sleep", "300", before=("-n", "1"))
    act.until_state(his, "Running")
    assert said(alice, "-n", "1") == ["1 PCI_BUS_ID 0"]
    hers = alice.submit(*SAY, before=("-n", "2"))
    why = "waits for 1 of 2 GPUs: GPU 0 is held by a run of root"
    alice.until(lambda: why in reason(alice, hers), lambda: reason(alice, hers))
    in_place = [*machine.prefix, "sh", "-c"]
    subprocess.run([*in_place, "rm /run/lock/act-gpus-*"], check=True)
    there = "until ls /run/lock/act-gpus-* 2>/dev/null; do sleep 0.1; done"
    subprocess.run([*in_place, there], check=True, timeout=300,
                   stdout=subprocess.DEVNULL)
    assert why in reason(alice, hers)
    act.run("abort", his)
    alice.run("wait", hers)
    assert alice.lines(hers, 1) == ["0,1 PCI_BUS_ID 1"]


def test_a_killed_run_of_another_user_holds_nothing(act, gpu_machine, alice):
    machine = gpu_machine(1)
    as_user(machine, alice)
    hers = alice.submit("sleep", "300")
    alice.until_state(hers, "Running")
    his = act.submit(*SAY)
    act.until(lambda: f"held by a run of {alice.name}" in reason(act, his), lambda: reason(act, his))
    pid = int((alice.run_dir(hers) / "supervisor.lock").read_text())
    os.kill(pid, 9)
    act.run("wait", his)
    assert act.lines(his) == ["0 PCI_BUS_ID 0"]


HOLD = """
# Holds the GPUs of the run for a moment. It says so if a run holds one of them that nobody has killed.
[ $LOCAL_RANK = 0 ] || exit 0
for gpu in ${CUDA_VISIBLE_DEVICES//,/ }; do
    exec {fd}<>$1/gpu-$gpu
    until flock -n $fd; do
        holder=$(cat $1/holder-$gpu)
        [ -e $1/killed-$holder ] || echo "$ACT_RUN_ID has GPU $gpu of $holder" >>$1/twice
        sleep 0.02
    done
    echo $ACT_RUN_ID >$1/$ACT_RUN_ID && mv -f $1/$ACT_RUN_ID $1/holder-$gpu
done
sleep 0.$((RANDOM % 4))
"""
CARDS = 3
CLAIMS = ("/run/lock", "/dev/shm", "/tmp")  # a claim is in each of them


class Neighbours:
    """Two users of one machine, who submit, kill and clean up."""

    def __init__(self, machine, users, folder):
        self.machine, self.users, self.folder = machine, users, folder
        folder.mkdir()
        folder.chmod(0o777)
        for name in ("twice", *(f"gpu-{i}" for i in range(CARDS))):
            (folder / name).touch()
            (folder / name).chmod(0o666)
        for user in users:
            (user.project / "hold.sh").write_text(HOLD)

    def play(self, seed):
        """All runs that nobody kills end well, and all GPUs are free then."""
        dice = random.Random(seed)
        started = [(user, user.start("-n", str(dice.choice((1, 1, 2))), "submit", "bash", "hold.sh", self.folder))
                   for user in (*self.users, *self.users)]
        runs = []
        for user, process in started:
            out, err = process.communicate()
            assert process.returncode == 0, err
            runs.append((user, out.decode().strip()))
        killed = dice.sample(runs, dice.randint(0, 2))
        swept = dice.choice(CLAIMS)
        for user, run in killed:
            time.sleep(dice.random() * 0.5)
            self.kill(user, run, dice)
            subprocess.run([*self.machine.prefix, "sh", "-c", f"rm -f {swept}/act-gpus-*"], check=True)
        for user, run in runs:
            user.run("wait", run, status=None if (user, run) in killed else 0)
        assert not (self.folder / "twice").read_text()
        for user in self.users:
            user.run("-y", "prune", "--older", "1s")

    def kill(self, user, run, dice):
        """A process of the run, or all of them."""
        (self.folder / f"killed-{run}").touch()
        pids = [pid for pid, words in user.processes().items() if os.fsencode(run) in b" ".join(words)]
        for pid in pids if dice.random() < 0.5 else pids and [dice.choice(pids)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


ROUNDS, AT_ONCE = int(os.environ.get("ACT_GPU_ROUNDS", "4")), 25  # by hand: 500


@pytest.mark.parametrize("first", range(0, ROUNDS, AT_ONCE))
def test_two_users_submit_kill_and_clean(act, gpu_machine, alice, first):
    """No GPU is given twice, and none is lost."""
    machine = gpu_machine(CARDS)
    as_user(machine, alice)
    neighbours = Neighbours(machine, (act, alice), act.scratch / "held")
    for seed in range(first, min(first + AT_ONCE, ROUNDS)):
        neighbours.play(seed)
    for user in (act, alice):
        assert user.run("summary", "--json").json["total"]["gpus"]["idle"] == CARDS
        user.finish("bash", "hold.sh", neighbours.folder, before=("-n", CARDS))
