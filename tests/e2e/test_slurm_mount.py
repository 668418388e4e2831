"""Mounted folders on the nodes of a Slurm cluster."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
from test_mount import process


def points(lab):
    """What is mounted below the test's folder on any node."""
    found = []
    for node in ("n1", "n2", "n3"):
        lines = pathlib.Path(f"/proc/{lab.bed.pid(f'slurmd.{node}')}/mountinfo").read_text().splitlines()
        found += [line.split()[4] for line in lines if str(lab.act.scratch) in line.split()[4]]
    return found


@pytest.fixture
def mounted(lab, azure):
    """The cluster's folders mounted from Azurite."""
    if not os.path.exists("/dev/fuse") or not shutil.which("rclone") or not shutil.which("fusermount3"):
        pytest.skip("no FUSE here: scripts/install-deps --test")
    act = lab.act
    (act.scratch / "tmp").mkdir()
    rows = {f"{f}_folder": {"path": f"files/{f}"} for f in ("data", "output")}
    store = "aux_data/configs/store.yaml"
    lab.configure(azure_blob_config_file=store, config_param={"code_path": {"path": "files/code/project.zip"}, **rows},
                  env={"TMPDIR": str(act.scratch / "tmp")})
    act.env["TMPDIR"] = str(act.scratch / "tmp")
    yield azure
    assert not points(lab)


def test_two_nodes_write_different_files_of_one_folder(lab, mounted):
    mounted.put("data/a.txt", b"from the store")
    run = lab.submit("sh", "-c", "cat data/a.txt; for i in $(seq 50); do echo $RANK.$i >output/$RANK.$i.txt; done", n=4)
    lab.wait(run, "Completed", 0)
    assert lab.rank_text(run, 3).strip() == "from the store"
    found = {k: mounted.get(k) for k in mounted.keys() if k.startswith("output/")}
    assert found == {f"output/{r}.{i}.txt": b"%d.%d\n" % (r, i) for r in range(4) for i in range(1, 51)}


def test_every_agent_of_a_node_is_killed(lab, mounted):
    run = lab.submit("sh", "-c", f"echo a >output/$RANK.txt; touch {lab.act.scratch}/begun.$RANK; sleep 1000", n=4)
    lab.act.until(lambda: len(list(lab.act.scratch.glob("begun.*"))) == 4, "the ranks")
    for pid in process(lab.act, b"act-node", b"rank"):
        with contextlib.suppress(ProcessLookupError):  # the end of another one may have ended it
            os.kill(pid, signal.SIGKILL)
    lab.act.run("-c", "lab", "wait", run, status=None)
    assert lab.act.state(run) == "Failed"
    lab.act.until(lambda: not points(lab), "all to be unmounted")


def test_a_node_without_the_tool_says_so(lab, mounted):
    lab.configure(mount="blobfuse2", azure_blob_config_file="aux_data/configs/store.yaml")
    run = lab.submit("true")
    assert "'blobfuse2', which 'mount' names, is not in PATH" in lab.wait(run, "Failed")["reason"]


def test_doctor_looks_at_a_node(lab, mounted):
    assert "by 'rclone' on a node" in lab.act.run("-c", "lab", "doctor", status=None).out


@pytest.mark.parametrize("how", ["moved", "copied"])
def test_folders_in_a_share(lab, shares, how):
    act = lab.act
    (act.scratch / "tmp").mkdir()
    modes = [{"mode": "download"}, {"mode": "upload"}] if how == "moved" else [{}, {}]
    rows = {f"{name}_folder": shares.folder(act, name, **mode) for name, mode in zip(("data", "output"), modes)}
    code = {"azure_blob_config_file": "aux_data/configs/store.yaml", "path": "files/code/project.zip"}
    lab.configure(config_param={"code_path": code, **rows}, env={"TMPDIR": str(act.scratch / "tmp")},
                  **({} if how == "moved" else {"mount": "copy"}))
    shares.put(f"{shares.share}/files/data/in", b"from the share")
    run = lab.submit("sh", "-c", "cat data/in >output/$RANK.txt", n=4)
    lab.wait(run, "Completed", 0)
    assert shares.list(shares.share, "files/output/") == {f"files/output/{rank}.txt": 14 for rank in range(4)}


def test_two_nodes_copy_a_folder_and_send_their_changes(lab, mounted):
    mounted.put("output/old.txt", b"old")
    lab.configure(mount="copy", azure_blob_config_file="aux_data/configs/store.yaml",
                  config_param={"code_path": {"path": "files/code/project.zip"},
                                "output_folder": {"path": "files/output"}},
                  env={"TMPDIR": str(lab.act.scratch / "tmp")})
    run = lab.submit("sh", "-c", "cat output/old.txt; echo $RANK >output/$RANK.txt", n=4)
    lab.wait(run, "Completed", 0)
    assert lab.rank_text(run, 3).strip() == "old"
    assert {k: mounted.get(k) for k in mounted.keys() if k.startswith("output/")} == {
        "output/old.txt": b"old", **{f"output/{r}.txt": b"%d\n" % r for r in range(4)}}


@pytest.fixture
def own_disk(lab, mounted):
    """The second node has a disk of its own, which the others do not see."""
    if not lab.bed.has_namespaces:
        pytest.skip("all nodes see the same")
    inside, disk = ("nsenter", "-m", "-t", str(lab.bed.pid("slurmd.n2"))), lab.act.scratch / "tmp"
    subprocess.run([*inside, "mount", "-t", "tmpfs", "-o", "mode=777", "none", disk], check=True)
    yield mounted
    subprocess.run([*inside, "umount", disk], check=True)


@pytest.mark.parametrize("status", [0, 3])
def test_what_another_node_cannot_send(lab, own_disk, status):
    lab.configure(mount="copy", azure_blob_config_file="aux_data/configs/store.yaml",
                  config_param={"code_path": {"path": "files/code/project.zip"},
                                "output_folder": {"path": "files/output"}},
                  env={"TMPDIR": str(lab.act.scratch / "tmp")}, slurm={"sbatch_options": ["--nodelist=n1,n2"]})
    gate = lab.act.scratch / "gate"
    run = lab.submit("sh", "-c", f"touch {lab.act.scratch}/begun.$RANK; until test -e {gate}; do sleep 0.1; done; "
                     f"test $RANK != 3 || {{ echo late >output/late.txt; exit {status}; }}", n=4)
    lab.act.until(lambda: len(list(lab.act.scratch.glob("begun.*"))) == 4, "the ranks")
    own_disk.service.request("DELETE", own_disk.container, {"restype": "container"})
    gate.touch()
    reason = lab.wait(run, "Failed", status or 125)["reason"]
    assert "folder 'output': what was written to it is in '" in reason
    assert reason.startswith("rank 3 exited with status 3; folder" if status else "folder")
    own_disk.service.create(own_disk.container)
