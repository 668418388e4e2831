"""What the agents do on the nodes of a cluster: each is prepared once, where it should be, with containers, folders."""
import json
import os

import pytest

from test_node import metrics, program  # noqa: F401


@pytest.fixture
def shared(lab):
    """A folder that all nodes see."""
    folder = lab.act.scratch / "notes"
    folder.mkdir()
    return folder


def test_every_node_is_prepared_once(lab, shared):
    lab.act.write("compile.aml.sh", f"pwd >> {shared}/$SLURMD_NODENAME; echo built > built\n")
    lab.act.run("-c", "lab", "init")
    run = lab.shell(f"cat built && pwd >> {shared}/roots", n=4)
    lab.wait(run, "Completed", 0)
    nodes = [lab.run_dir(run) / f"nodes/{rank}/code" for rank in range(2)]
    prepared = sorted(path.read_text().split() for path in shared.iterdir() if path.name != "roots")
    assert prepared == sorted([str(node)] for node in nodes)
    assert sorted((shared / "roots").read_text().split()) == sorted(map(str, nodes * 2))


def test_every_node_has_metrics(lab):
    run = lab.submit("true", n=4)
    lab.wait(run, "Completed", 0)
    samples = metrics(lab.run_dir(run))
    assert len(samples) == 2 and all(len(of_node) >= 2 for of_node in samples.values()), samples


def test_code_on_the_nodes_own_disk(lab, shared):
    scratch = lab.act.scratch / "nvme"
    scratch.mkdir()
    lab.act.write("code.txt", "code")
    lab.configure(slurm={"scratch": str(scratch)})
    lab.act.run("-c", "lab", "init")
    run = lab.shell(f"cat code.txt; pwd >> {shared}/roots", n=4)
    lab.wait(run, "Completed", 0)
    assert lab.rank_text(run, 3) == "code"
    base = scratch / f"act-{os.getuid()}"
    assert set((shared / "roots").read_text().split()) == {f"{base}/{run}/{rank}/code" for rank in range(2)}
    assert list(base.iterdir()) == [], "removed with the last rank of each node"


def test_what_an_attempt_left_is_there_for_the_next(lab, shared):
    """Checkpoints stay, and the package is whole again."""
    lab.act.write("train.sh", """
        if [ -e checkpoint ]; then cat train.sh checkpoint > $RANK.txt; cp $RANK.txt $NOTES; exit; fi
        echo half-way > checkpoint; echo broken > train.sh.new; mv train.sh.new train.sh
        sleep 1000
    """)
    code = (lab.act.project / "train.sh").read_text()
    lab.configure(preemption_allowed=True, env={"NOTES": str(shared)})
    lab.act.run("-c", "lab", "init")
    run = lab.submit("sh", "train.sh", n=4, before=("-p", "process_count_per_node: 1"))
    for rank in range(2):
        path = lab.run_dir(run) / f"nodes/{rank}/code/train.sh"
        lab.act.until(lambda path=path: path.exists() and path.read_text() == "broken\n", f"node {rank} is half-way")
    lab.bed.run("scontrol", "requeue", lab.bed.job(run))
    lab.wait(run, "Completed", 0)
    assert lab.record(run, "status.json")["attempt"] == 2
    for rank in range(2):
        assert (shared / f"{rank}.txt").read_text() == code + "half-way\n"


def test_commands_run_in_the_image(lab, program, shared):
    program("apptainer", f"for word; do printf '%s\\n' \"$word\"; done > {shared}/words.$$\n"
                         'while [ "$1" != docker://team/image:1 ]; do shift; done; shift\n'
                         'IN_IMAGE=yes exec "$@"')
    lab.act.write("compile.aml.sh", f"echo $IN_IMAGE > {shared}/compiled\n")
    lab.configure(docker={"image": "team/image:1"}, slurm={"container": "apptainer"})
    lab.act.run("-c", "lab", "init")
    run = lab.shell("echo in image: $IN_IMAGE, '$x'", n=2)
    lab.wait(run, "Completed", 0)
    assert lab.rank_text(run, 1) == "in image: yes, $x\n"
    assert (shared / "compiled").read_text() == "yes\n"
    words = [path.read_text().splitlines() for path in shared.glob("words.*")]
    asked = [one for one in words if "import glob, os, sys" in one]  # which packages it has: for environment.json
    assert len(words) - len(asked) == 4, "fetched once, compile.aml.sh once, and two ranks"
    folder = lab.run_dir(run)
    for one in words:
        assert one[:4] == ["exec", "--nv", "--bind", f"{folder}:{folder}"] and one[1:].count("--pwd") == 1, one
        assert one[one.index("--pwd") + 1] == str(folder / "code")
        assert f"{lab.act.store}/files/data:{lab.act.store}/files/data" in one


def test_srun_starts_the_ranks_in_the_image(lab, program, shared):
    program("srun", f"for word; do case $word in --container-*) echo \"$word\" >> {shared}/words; shift;;\n"
                    '*) shift; set -- "$@" "$word";; esac; done; exec /usr/bin/srun "$@"')
    lab.configure(docker={"image": "nvcr.io/team/image:1"},
                  slurm={"container": "pyxis", "launcher": "srun", "mpi": "none"})
    run = lab.shell("echo $RANK of $WORLD_SIZE", n=4)
    lab.wait(run, "Completed", 0)
    assert [lab.rank_text(run, rank) for rank in range(4)] == [f"{rank} of 4\n" for rank in range(4)]
    image, mounts = (shared / "words").read_text().splitlines()
    assert image == "--container-image=nvcr.io#team/image:1"
    seen = mounts.removeprefix("--container-mounts=").split(",")
    assert f"{lab.run_dir(run)}:{lab.run_dir(run)}" in seen
    assert any(one.startswith(f"{lab.root}/bin/") and one.endswith(":ro") for one in seen)


def test_image_without_a_program_for_it(lab):
    lab.configure(docker={"image": "team/image:1"}, slurm={"container": "apptainer"})
    run = lab.submit("true")
    info = lab.wait(run, "Failed", 125)
    assert "neither 'apptainer' nor 'singularity' is in PATH" in info["reason"], info
    assert "slurm.container" in info["reason"]


def test_image_that_cannot_be_fetched(lab, program):
    program("apptainer", "echo FATAL: no such image >&2; exit 255")
    lab.configure(docker={"image": "team/image:1"}, slurm={"container": "apptainer"})
    run = lab.submit("true")
    info = lab.wait(run, "Failed", 255)
    assert "image 'team/image:1'" in info["reason"] and "FATAL: no such image" in info["reason"], info


def test_store_that_the_nodes_do_not_see(lab):
    """Nothing is made in its place: what the run writes there would be lost."""
    path = lab.configure()
    lab.act.account("elsewhere", folder=str(lab.act.scratch / "elsewhere"))
    config = json.loads(path.read_text())
    config["config_param"]["output_folder"]["azure_blob_config_file"] = "aux_data/configs/elsewhere.yaml"
    path.write_text(json.dumps(config))
    run = lab.submit("true")
    info = lab.wait(run, "Failed", 125)
    assert "folder 'output'" in info["reason"] and "cannot be seen on node" in info["reason"], info
    assert not (lab.act.scratch / "elsewhere").exists()


def hold(lab, mode):
    """A cluster file where jobs wait until they are let go, with folders of a blob store in these modes."""
    path = lab.configure(slurm={"sbatch_options": ["--hold"]})
    config = json.loads(path.read_text())
    for folder, how in mode.items():
        config["config_param"][f"{folder}_folder"]["mode"] = how
    path.write_text(json.dumps(config))


def test_folders_of_a_blob_store_reach_the_nodes(lab, azure):
    """Also when the project with its account files is not there, and with no more rights than that takes."""
    act = lab.act
    act.write("data/in/x.txt", "from the store")
    hold(lab, {"data": "download", "output": "upload"})
    act.run("-c", "lab", "u", "data")
    run = lab.shell("cp data/in/x.txt output/$RANK.txt; echo more >> output/$RANK.txt", n=4)
    stores = lab.run_dir(run) / "stores.json"
    assert stores.stat().st_mode & 0o777 == 0o600
    assert azure.service.key not in stores.read_text() and '"sas_token"' in stores.read_text()
    (act.project / "aux_data/configs/store.yaml").rename(act.scratch / "away.yaml")
    lab.bed.run("scontrol", "release", lab.bed.job(run))
    act.run("wait", run, env={"AML_CONFIG_PATH": ""}, status=None)
    (act.scratch / "away.yaml").rename(act.project / "aux_data/configs/store.yaml")
    lab.wait(run, "Completed", 0)
    assert [azure.get(f"output/{rank}.txt") for rank in range(4)] == [b"from the storemore\n"] * 4
    for path in lab.run_dir(run).rglob("*.txt"):
        assert b"sig=" not in path.read_bytes(), path


def test_folder_that_cannot_be_fetched_fails_the_run(lab, azure):
    """Here because a library of the program that fetches it is missing, which is what the loader says."""
    hold(lab, {"data": "download", "output": "upload"})
    run = lab.submit("true")
    (brought,) = (lab.root / "bin").glob("*/act")
    brought.write_text("#!/bin/sh\necho 'act: error while loading shared libraries: libcurl.so.4' >&2\nexit 127\n")
    lab.bed.run("scontrol", "release", lab.bed.job(run))
    info = lab.wait(run, "Failed", 125)
    assert "folder 'data'" in info["reason"] and "libcurl.so.4" in info["reason"], info
