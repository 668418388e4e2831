"""`a local --mount`: the command here, with the folders of the cluster's stores instead of the project's own."""
import signal

import pytest
from test_mount import fuse, keepers, kill, kill_all, mounts, points, use  # noqa: F401


def wait_for_go(act):
    return f"touch {act.scratch}/begun; until test -e {act.scratch}/gate; do sleep 0.1; done"


def begin(act, command, then="true"):
    """`a local --mount` of this, which has been done, and waits for the file 'gate'."""
    process = act.start("local", "--mount", "sh", "-c", f"{command}; {wait_for_go(act)}; {then}")
    act.until(lambda: (act.scratch / "begun").exists() or process.poll() is not None, "its command to begin")
    assert process.poll() is None, process.communicate()
    return process


def end(process, status):
    out, err = process.communicate()
    assert process.returncode == status, err
    return err.decode()


def test_the_configuration_of_a_cluster_elsewhere(act):
    """Its command runs on this machine, where it is found."""
    act.write("aux_data/aml/far.yaml", "platform: slurm\nslurm: {partition: x}\n")
    result = act.run("-c", "far", "local", "sh", "-c", "echo hello; exit 3", status=3)
    assert result.out == "hello\n" and "elsewhere" not in result.err


def test_folders_are_the_store_s(act, mounts):  # noqa: F811
    use(act, data="ro_mount")
    mounts.put("data/a.txt", b"from the store")
    act.write("data/own.txt", "of the project")
    shown = act.run("local", "--mount", "--dry-run", "true").json
    assert [(f["name"], f["mode"], f.get("link")) for f in shown["folders"]] == [
        ("data", "ro_mount", None), ("output", "rw_mount", None)] and shown["platform"] == "local"
    command = "ls data; cat data/a.txt; echo b >output/b.txt; touch data/c 2>&1; exit 3"
    out = act.run("local", "--mount", "sh", "-c", command, status=3).out
    assert out.startswith("a.txt\nfrom the store") and "Read-only" in out and "data/c" not in mounts.keys()
    assert mounts.get("output/b.txt") == b"b\n"
    assert not points(act) and not (act.project / "output").exists()


def test_without_it_they_are_the_project_s(act, mounts):  # noqa: F811
    use(act, data="ro_mount")
    mounts.put("data/a.txt", b"from the store")
    result = act.run("local", "sh", "-c", "ls data; echo b >output/b.txt")
    assert "output  not in the project, so an empty folder is made there; --mount" in result.err
    assert "data  not in the project, so the command goes without it; --mount" in result.err
    assert (act.project / "output/b.txt").exists() and "output/b.txt" not in mounts.keys()
    assert "output  not" not in act.run("local", "true").err


def test_ctrl_c_sends_and_unmounts(act, mounts):  # noqa: F811
    process = begin(act, "echo a >output/a.txt")
    process.send_signal(signal.SIGINT)
    end(process, 130)
    assert mounts.get("output/a.txt") == b"a\n" and not points(act)


def test_everything_is_killed(act, mounts):  # noqa: F811
    process = begin(act, "echo a >output/a.txt")
    kill_all(act)
    process.communicate()
    assert len(points(act)) == 2, "stale"
    act.run("q")
    assert not points(act)


@pytest.mark.parametrize("status, how", [(0, "status 125"), (3, "status 3"), (None, "was interrupted: aborted")])
def test_what_cannot_be_sent(act, mounts, status, how):  # noqa: F811
    process = begin(act, "true" if status is not None else "echo late >output/late.txt",
                    then=f"echo late >output/late.txt; exit {status}")
    mounts.service.request("DELETE", mounts.container, {"restype": "container"})
    process.send_signal(signal.SIGINT) if status is None else (act.scratch / "gate").touch()
    said = end(process, {0: 125, 3: 3, None: 130}[status])
    assert how in said and "1 file written to it is not in the store" in said and "ContainerNotFound" in said
    assert not points(act)
    mounts.service.create(mounts.container)


def test_nothing_that_mounts(act, mounts):  # noqa: F811
    act.without("rclone", "blobfuse2")
    act.fail("local", "--mount", "true", status=125, match="folder 'data' .*neither 'blobfuse2' nor 'rclone'.* fuse3")
    assert act.run("q", "--json").json["runs"] == [] and not mounts.keys()
    act.cluster("aml", extra={"mount": "copy"})
    mounts.put("data/a.txt", b"from the store")
    assert act.run("local", "--mount", "sh", "-c", "cat data/a.txt; echo b >output/b.txt").out == "from the store"
    assert mounts.get("output/b.txt") == b"b\n"
