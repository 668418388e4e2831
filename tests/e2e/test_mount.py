"""Mapped folders that are mounted on the nodes of a run: rclone mount, a container of Azurite, and what goes wrong."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request

import pytest

FUSE = pathlib.Path("/dev/fuse")


@pytest.fixture
def fuse(act):
    """What is private to nodes is in the test's folder, and no mount is left at the end."""
    if not FUSE.exists() or not shutil.which("rclone") or not shutil.which("fusermount3"):
        pytest.skip("no FUSE here: scripts/install-deps --test")
    (act.scratch / "tmp").mkdir()
    act.env["TMPDIR"] = str(act.scratch / "tmp")
    yield
    left = points(act)
    for point in left:
        subprocess.run(["fusermount3", "-uz", point], check=False)
    assert not left


@pytest.fixture
def mounts(fuse, azure):
    """The project with its folders mounted from Azurite."""
    return azure


def points(act):
    """What is mounted below the test's folder."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4] for line in lines if str(act.scratch) in line.split()[4]]


def use(act, **modes):
    """The cluster file, whose folders have these modes; a mode None is the default."""
    path = act.cluster("aml")
    text = path.read_text()
    for folder, mode in modes.items():
        if mode:
            text = text.replace(f'"path": "files/{folder}"', f'"path": "files/{folder}", "mode": "{mode}"')
    path.write_text(text)


def test_the_default_mode_reads_and_writes_the_container(act, mounts):
    mounts.put("data/a.txt", b"from the store")
    act.finish("sh", "-c", "mkdir -p output/deep; echo result >output/deep/b.txt; cp data/a.txt output/")
    run = act.finish("sh", "-c", "cat output/deep/b.txt")
    assert act.lines(run) == ["result"]
    assert mounts.get("output/deep/b.txt") == b"result\n" and mounts.get("output/a.txt") == b"from the store"
    assert not points(act) and not list((act.scratch / "tmp").glob("act-*/*"))


@pytest.fixture
def without_root(act, mounts):
    """Everything is done by another user, from whom even root cannot read what FUSE shows."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    if FUSE.stat().st_mode & 0o006 != 0o006:
        pytest.skip("not everybody may use /dev/fuse: chmod 666 /dev/fuse, as udev does")
    subprocess.run(["chown", "-R", "65534:65534", act.scratch], check=True)
    act.prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    return mounts


def test_without_root(act, without_root):
    without_root.put("data/a.txt", b"from the store")
    run = act.finish("sh", "-c", "id -u; cat data/a.txt; echo b >output/b.txt; mv output/b.txt output/c.txt")
    assert act.log(run) == b"65534\nfrom the store"
    assert without_root.get("output/c.txt") == b"b\n" and not points(act)


def test_the_tool_is_killed_without_root(act, without_root):
    test_the_tool_is_killed(act, without_root)


def test_read_only(act, mounts):
    use(act, data="ro_mount")
    mounts.put("data/a.txt", b"original")
    act.finish("sh", "-c", "cat data/a.txt && ! echo new >data/a.txt && ! rm data/a.txt && ! touch data/b.txt")
    assert mounts.get("data/a.txt") == b"original"
    assert "data/b.txt" not in mounts.keys()


def test_all_ranks_of_a_node_share_one_mount(act, mounts, two_ranks):
    run = begin(act, 'echo rank $RANK >output/$RANK.txt', "-n", 2)
    assert len(points(act)) == 2, "data and output"
    go(act, run)
    assert mounts.get("output/0.txt") == b"rank 0\n" and mounts.get("output/1.txt") == b"rank 1\n"


def test_changes_and_removals_reach_the_store(act, mounts):
    mounts.put("output/old.txt", b"old")
    mounts.put("output/gone.txt", b"gone")
    act.finish("sh", "-c", "echo more >>output/old.txt; rm output/gone.txt; mv output/old.txt output/new.txt")
    assert mounts.get("output/new.txt") == b"oldmore\n"
    assert not {"output/old.txt", "output/gone.txt"} & mounts.keys().keys()


def test_what_a_failed_run_wrote_is_sent(act, mounts):
    act.finish("sh", "-c", "echo partial >output/a.txt; exit 3", status=3)
    assert mounts.get("output/a.txt") == b"partial\n"


# ---- a run that waits until it may go on


def begin(act, command, *options, then="true"):
    """A run that does this, says so, and then waits for go()."""
    gate, ranks = act.scratch / "gate", options[-1] if options else 1
    run = act.submit(*options, "sh", "-c", f"{command}; touch {act.scratch}/begun.$RANK; until test -e {gate}; do "
                     f"sleep 0.1; done; {then}")
    act.until(lambda: len(list(act.scratch.glob("begun.*"))) == ranks, "its command to begin")
    return run


def go(act, run, status=0):
    (act.scratch / "gate").touch()
    act.run("wait", run, status=status)


def process(act, *words):
    """The processes whose command lines have all these words."""
    return [pid for pid, line in act.processes().items() if all(w in b" ".join(line) for w in words)]


def name_of(pid):
    with contextlib.suppress(OSError):  # it has just ended
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def keepers(act):
    return [pid for pid in act.processes() if name_of(pid) == "act-mount"]


def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # with one that was killed before it
            os.kill(pid, signal.SIGKILL)


def test_no_secret_is_seen(act, mounts):
    run = begin(act, "echo a >output/a.txt")
    words = b" ".join(b" ".join(line) for line in act.processes().values())
    assert b"rclone" in words and b"sig=" not in words
    key = mounts.service.key.encode()
    for path in [p for p in act.scratch.rglob("*") if p.is_file() and "aux_data" not in str(p)]:
        content = path.read_bytes()
        assert key not in content and b"sig=" not in content, path
    assert "sig=" not in act.log(run).decode()
    go(act, run)


def test_abort_sends_and_unmounts(act, mounts):
    run = begin(act, "echo a >output/a.txt")
    act.run("abort", run)
    act.until_state(run, "Canceled")
    assert mounts.get("output/a.txt") == b"a\n" and not points(act)


def test_the_tool_is_killed(act, mounts):
    run = begin(act, "echo a >output/a.txt")
    tools = process(act, b"rclone mount")
    assert len(tools) == 2
    kill(tools)
    act.until(lambda: len(process(act, b"rclone mount")) == 2 and not set(tools) & act.processes().keys()
              and len(points(act)) == 2, "new ones")
    go(act, run)
    assert mounts.get("output/a.txt") == b"a\n"


def test_the_tool_is_killed_while_it_writes_its_notes(act, mounts):
    run = begin(act, "echo a >output/a.txt")
    act.until(lambda: "output/a.txt" in mounts.keys(), "what is closed to be sent")
    keeper, = [pid for pid in keepers(act) if b"output" in act.processes()[pid]]
    note, = [p for p in (act.scratch / "tmp").rglob("a.txt") if "/vfsMeta/" in str(p)]
    os.kill(keeper, signal.SIGSTOP)
    kill(process(act, b"rclone mount", b"files/output"))
    note.write_bytes(note.read_bytes()[:20])
    mounts.service.request("DELETE", f"{mounts.container}/files/output/a.txt")
    os.kill(keeper, signal.SIGCONT)
    act.until(lambda: process(act, b"rclone mount", b"files/output") and len(points(act)) == 2, "a new one")
    go(act, run)
    assert mounts.get("output/a.txt") == b"a\n"


def test_the_keeper_is_killed(act, mounts):
    run = begin(act, "echo a >output/a.txt")
    kill(keepers(act))
    act.until(lambda: not process(act, b"rclone mount"), "rclone to end with it")
    go(act, run, status=(1, 125))
    assert "was killed" in act.info(run)["reason"]
    assert not points(act)


def test_the_rank_is_killed(act, mounts):
    run = begin(act, "echo a >output/a.txt")
    kill(process(act, b"act-node", b"rank"))
    act.run("wait", run, status=None)
    assert mounts.get("output/a.txt") == b"a\n" and not points(act)


def test_the_supervisor_is_killed(act, mounts):
    run = begin(act, "echo a >output/a.txt")
    kill(process(act, b"act-node", b"supervise"))
    act.until(lambda: not points(act), "everything to be unmounted")
    assert mounts.get("output/a.txt") == b"a\n"
    assert act.state(run) == "Failed"


def kill_all(act):
    for sig in signal.SIGSTOP, signal.SIGKILL:  # so that rclone does not hear of the end of its keeper,
        for pid in sorted(act.processes(), reverse=True):  # and is not continued as one that lost its parent
            with contextlib.suppress(ProcessLookupError):  # its parent was killed a moment ago
                os.kill(pid, sig)


def test_everything_is_killed(act, mounts):
    run = begin(act, "echo a >output/a.txt")
    kill_all(act)
    assert len(points(act)) == 2, "stale"
    assert act.state(run) == "Failed"
    assert not points(act)


def test_everything_is_killed_without_root(act, without_root):
    test_everything_is_killed(act, without_root)


def test_the_container_vanishes(act, mounts):
    run = begin(act, "echo a >output/a.txt", then="echo late >output/late.txt")
    act.until(lambda: "output/a.txt" in mounts.keys(), "what is closed to be sent")
    mounts.service.request("DELETE", mounts.container, {"restype": "container"})
    go(act, run, status=125)
    reason = act.info(run)["reason"]
    assert "1 file written to it is not in the store" in reason and "ContainerNotFound" in reason
    assert not points(act)
    kept, = [p for p in (act.scratch / "tmp").rglob("late.txt") if "/vfs/" in str(p)]
    assert kept.read_text() == "late\n"
    mounts.service.create(mounts.container)
    act.finish("true")
    assert kept.exists(), "no other run removes it"


# ---- a full disk


@pytest.fixture
def small_disk(act, mounts):
    """The node's own disk has 8 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a small disk")
    disk = act.scratch / "tmp"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", disk], check=True)
    yield mounts
    act.until(lambda: points(act) == [str(disk)], "nothing else to be mounted")
    subprocess.run(["umount", disk], check=True)


def test_the_disk_of_the_cache_is_full(act, small_disk):
    run = act.submit("sh", "-c", "dd if=/dev/zero of=output/big.bin bs=1M count=16 || true")
    act.run("wait", run, status=125)
    assert "no space left on device" in act.info(run)["reason"]


def test_a_copy_does_not_fit(act, small_disk):
    small_disk.put("data/big.bin", bytes(16 << 20))
    act.cluster("aml", extra={"mount": "copy"})
    act.finish("true", status=(1, 125))


# ---- copies


@pytest.fixture
def copies(act, mounts):
    """The cluster has 'mount: copy', which needs no FUSE."""
    act.cluster("aml", extra={"mount": "copy"})
    act.without("fusermount3", "fusermount", "rclone", "blobfuse2")
    return mounts


def test_a_folder_is_copied(act, copies):
    copies.put("data/a.txt", b"from the store")
    copies.put("output/old.txt", b"old")
    run = begin(act, "cat data/a.txt; echo new >output/deep.txt; echo more >>output/old.txt", "-n", 1)
    assert not points(act) and "output/deep.txt" not in copies.keys()
    go(act, run)
    assert "from the store" in act.log(run).decode()
    assert copies.get("output/deep.txt") == b"new\n" and copies.get("output/old.txt") == b"oldmore\n"
    assert not list((act.scratch / "tmp").glob("act-*/*"))


def test_only_changes_are_sent_and_the_newest_is_kept(act, copies):
    copies.put("output/a.txt", b"a")
    copies.put("output/b.txt", b"b")
    run = begin(act, "echo mine >output/a.txt; sleep 1.1; echo mine >output/c.txt")
    copies.put("output/a.txt", b"written later by another one")
    copies.put("output/b.txt", b"likewise")
    go(act, run)
    assert copies.get("output/a.txt") == b"written later by another one" and copies.get("output/b.txt") == b"likewise"
    assert copies.get("output/c.txt") == b"mine\n"


def test_a_change_with_an_old_time_is_sent(act, copies):
    """As 'cp -p', tar and wget put it there."""
    copies.put("output/a.txt", b"from the store")
    go(act, begin(act, "echo mine >mine; touch -d 2001-01-01 mine; cp -p mine output/a.txt"))
    assert copies.get("output/a.txt") == b"mine\n"


def test_what_others_put_there_meanwhile_with_an_old_time_stays(act, copies):
    copies.put("output/a.txt", b"a")
    run = begin(act, "echo mine >output/c.txt")
    began = int(time.time())
    act.until(lambda: int(time.time()) > began + 1, "a later second")
    act.write("output/a.txt", "written later by another one", mtime=1_000_000_000)
    act.run("u", "--overwrite", "output/a.txt")
    go(act, run)
    assert copies.get("output/a.txt") == b"written later by another one" and copies.get("output/c.txt") == b"mine\n"


def test_what_only_got_another_mode_is_not_sent(act, copies):
    for name in "abc":
        copies.put(f"output/{name}.txt", b"as it was")
    run = begin(act, "true", then="chmod -R g+w output; echo mine >output/d.txt; mv output/c.txt output/e.txt")
    copies.put("output/a.txt", b"written meanwhile by another one")
    act.run("rm", "-y", "output/b.txt")
    go(act, run)
    assert copies.get("output/a.txt") == b"written meanwhile by another one"
    assert {k for k in copies.keys() if "output/" in k} == {f"output/{n}.txt" for n in "acde"}
    assert copies.get("output/e.txt") == b"as it was" and copies.get("output/d.txt") == b"mine\n"


def test_a_copy_on_a_node_whose_clock_is_behind(act, azure_double):
    """What nobody else has written since is sent, although the store says that it is from later."""
    act.cluster("aml", extra={"mount": "copy"})
    azure_double.service.clock(600)
    azure_double.put("output/log.txt", b"old")
    azure_double.put("output/other.txt", b"old")
    run = begin(act, "echo more | tee -a output/log.txt >>output/other.txt", "-n", 1)
    azure_double.put("output/other.txt", b"of others")
    go(act, run)
    assert azure_double.get("output/log.txt") == b"oldmore\n"
    assert azure_double.get("output/other.txt") == b"of others"


def test_what_a_read_only_copy_gets_is_not_sent(act, copies):
    copies.put("data/a.txt", b"original")
    path = act.cluster("aml", extra={"mount": "copy"})
    path.write_text(path.read_text().replace('"path": "files/data"', '"path": "files/data", "mode": "ro_mount"'))
    act.finish("sh", "-c", "echo changed >data/a.txt; cat data/a.txt")
    assert copies.get("data/a.txt") == b"original"


def test_changes_that_cannot_be_sent_are_kept(act, copies):
    run = begin(act, "echo late >output/late.txt")
    copies.service.request("DELETE", copies.container, {"restype": "container"})
    go(act, run, status=125)
    assert "what was written to it is in '" in act.info(run)["reason"]
    kept, = (act.scratch / "tmp").rglob("copy/late.txt")
    copies.service.create(copies.container)
    act.finish("true")
    assert kept.read_text() == "late\n", "no other run removes it"


def test_changes_of_killed_ranks_are_sent(act, copies):
    run = begin(act, "echo a >output/a.txt")
    kill(process(act, b"act-node", b"rank"))
    act.run("wait", run, status=None)
    assert copies.get("output/a.txt") == b"a\n"


def test_a_lot_to_copy_is_asked_about(act, copies):
    copies.service.request("PUT", f"{copies.container}/files/data/big", headers={
        "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(11 << 30)})
    message = act.fail("submit", "true", status=2, match="'mount: copy' brings 11.* in 1 file to each of 1 node")
    assert "add -y" in str(message)
    act.run("submit", "--dry-run", "true")


def test_where_nothing_can_be_chosen(act, copies):
    act.fail("mount", "data", act.scratch, status=7, match="'mount: copy', so nothing is mounted")
    assert "neither" not in act.run("doctor", status=None).out
    where = "'mount' is for the platforms 'local' and 'slurm'"
    act.fail("-p", "platform: k8s", "submit", "true", status=7, match=where)


# ---- what opens the store, and ends


def open_for(act, azure, name="store", **life):
    """An account file has nothing but a SAS for this long."""
    sas = azure.service.container_sas(azure.container, **life)
    act.account(name, account_name=azure.service.account, container_name=azure.container,
                endpoint=azure.service.endpoint, sas_token=sas)
    return sas


def is_open(azure, sas):
    url = f"{azure.service.endpoint}/{azure.container}?restype=container&comp=list&{sas}"
    try:
        return urllib.request.urlopen(url).status == 200
    except urllib.error.HTTPError:
        return False


def test_the_sas_ends_while_the_run_works(act, mounts):
    sas = open_for(act, mounts, hours=20 / 3600)
    run = begin(act, "echo a >output/a.txt", then="echo late >output/late.txt")
    act.until(lambda: not is_open(mounts, sas), "the SAS to end")
    go(act, run, status=125)
    reason = act.info(run)["reason"]
    assert "1 file written to it is not in the store" in reason and "the SAS of its store ended at 20" in reason
    kept, = [p for p in (act.scratch / "tmp").rglob("late.txt") if "/vfs/" in str(p)]
    assert kept.read_text() == "late\n"


def give_sas(act, mounts, permissions, folder, **row):
    """One folder has no more than this, all others the key."""
    open_for(act, mounts, permissions=permissions)
    act.account("whole", account_name=mounts.service.account, account_key=mounts.service.key,
                container_name=mounts.container, endpoint=mounts.service.endpoint)
    config = json.loads(act.cluster("aml", account="whole").read_text())
    config["config_param"][folder] |= {"azure_blob_config_file": "aux_data/configs/store.yaml", **row}
    act.cluster("aml").write_text(json.dumps(config))


def test_a_sas_that_only_reads(act, mounts):
    give_sas(act, mounts, "rl", "data_folder")
    why = "'data': the SAS of its store permits 'sp=rl', and 'mode: rw_mount' needs 'w' too"
    act.fail("submit", "true", status=4, match=why)
    act.fail("local", "--mount", "true", status=125, match=why)
    (act.scratch / "at").mkdir()
    act.fail("mount", "data", act.scratch / "at", status=4, match=why)


def test_a_sas_with_which_an_upload_cannot_look_what_is_there(act, mounts):
    give_sas(act, mounts, "rw", "output_folder", mode="upload")
    act.fail("submit", "true", status=4, match="'output': the SAS of its store permits 'sp=rw', and 'mode: upload' "
             "needs 'l' too")
    give_sas(act, mounts, "rwl", "output_folder", mode="upload")
    act.finish("sh", "-c", "echo a >output/a.txt")
    assert mounts.get("output/a.txt") == b"a\n"


def test_what_was_written_after_the_sas_ended_is_sent_with_another_one(act, mounts):
    sas = open_for(act, mounts, hours=20 / 3600)
    run = begin(act, "echo a >output/a.txt", then="echo late >output/late.txt; cat output/a.txt output/late.txt")
    act.until(lambda: not is_open(mounts, sas), "the SAS to end")
    open_for(act, mounts, hours=1)
    go(act, run, status=None)
    assert mounts.get("output/late.txt") == b"late\n" and not points(act)
    assert act.state(run) == "Completed", act.info(run)["reason"]


def test_a_sas_that_has_ended(act, mounts):
    open_for(act, mounts, name="old", hours=-1)
    config = json.loads(act.cluster("aml").read_text())
    config["config_param"]["data_folder"]["azure_blob_config_file"] = "aux_data/configs/old.yaml"
    act.cluster("aml").write_text(json.dumps(config))
    act.fail("submit", "true", status=4, match="folder 'data': the SAS of its store ended at 20")


# ---- a mount


def mount(act, path, *words):
    """`a mount` of a path, once it is there."""
    at = act.scratch / "at"
    with contextlib.suppress(OSError):  # something stale is mounted there
        at.mkdir(exist_ok=True)
    tool = act.start("mount", *words, path, at)
    act.until(lambda: (str(at) in points(act) and os.access(at, os.F_OK)) or tool.poll() is not None,
              "it to be mounted")
    assert tool.poll() is None, tool.communicate()
    return at, tool


def end(tool, status=0):
    tool.send_signal(signal.SIGINT)
    _, err = tool.communicate()
    assert tool.returncode == status, err
    return err.decode()


@pytest.mark.smoke
def test_people_mount_a_path(act, mounts):
    mounts.put("data/sub/a.txt", b"from the store")
    at, tool = mount(act, "data/sub")
    assert (at / "a.txt").read_bytes() == b"from the store"
    (at / "b.txt").write_text("new")
    assert "Ctrl-C" in end(tool)
    assert mounts.get("data/sub/b.txt") == b"new" and not points(act)
    assert not list((act.home / "cache/mounts").glob("*/"))


def test_people_are_told_that_a_mount_is_slow(act, mounts):
    """A tool that takes as long as the test wants: it begins when the line was printed."""
    real, go = shutil.which("rclone"), act.scratch / "go"
    bin_folder = act.scratch / "bin"
    bin_folder.mkdir()
    (bin_folder / "rclone").write_text(f"#!/bin/sh\nuntil [ -e {go} ]; do sleep 0.1; done\nexec {real} \"$@\"\n")
    (bin_folder / "rclone").chmod(0o755)
    (act.scratch / "at").mkdir()
    tool = act.start("mount", "data", act.scratch / "at",
                     env={"PATH": f"{bin_folder}:{os.environ['PATH']}"})
    assert b"data  waits for rclone to mount it" in tool.stderr.readline()
    go.touch()
    assert b"data  at '" in tool.stderr.readline()
    assert "Ctrl-C" not in end(tool)


def test_people_are_told_what_the_end_waits_for(act, mounts):
    at, tool = mount(act, "data")
    with (at / "a.txt").open("w") as file:
        print("text", file=file, flush=True)
        tool.send_signal(signal.SIGINT)
        assert any(b"waits for files that are still open" in line for line in tool.stderr)
    assert tool.wait(60) == 0 and mounts.get("data/a.txt") == b"text\n"


def test_a_mount_of_people_is_killed(act, mounts):
    """It is ended by the next one there, which says what is not in the store."""
    at, tool = mount(act, "data")
    with (at / "a.txt").open("w") as file:
        print("text", file=file, flush=True)
        kill_all(act)
        tool.communicate()
        assert points(act) == [str(at)], "stale"
        with contextlib.suppress(OSError):
            file.close()
    at, tool = mount(act, "data")
    assert list(at.iterdir()) == []
    left = re.search("1 file written to an earlier mount is not in the store but in '(.*)'; ", end(tool)).group(1)
    kept, = [p for p in pathlib.Path(left).rglob("a.txt") if "/vfs/" in str(p)]
    assert kept.read_text() == "text\n"
    shutil.rmtree(left)
    at, tool = mount(act, "data")
    kill_all(act)
    tool.communicate()
    at, tool = mount(act, "data")
    assert "earlier" not in end(tool) and not list((act.home / "cache/mounts").glob("*/"))


def test_people_mount_read_only(act, mounts):
    mounts.put("data/a.txt", b"original")
    at, tool = mount(act, "data", "--read-only")
    with pytest.raises(OSError):
        (at / "a.txt").write_text("changed")
    said = end(tool)
    assert "read-only, by rclone; Ctrl-C unmounts it\n" in said and "when its SAS ends" in said
    assert mounts.get("data/a.txt") == b"original"


def test_what_cannot_be_a_mount_point(act, mounts):
    at, tool = mount(act, "data")
    act.fail("mount", "data", at, status=2, match="something is mounted at")
    end(tool)
    act.fail("mount", "data", act.project, status=2, match="not empty")
    act.fail("mount", "data", act.scratch / "none", status=3, match="no such folder; make it first")
    act.fail("mount", "nodata", at, status=3, match="nodata")


@pytest.mark.smoke
def test_a_store_that_is_a_folder(act):
    (act.scratch / "at").mkdir()
    act.fail("mount", "data", act.scratch / "at", status=7, match="it is the folder '.*/data', which needs no mount")


def test_nothing_that_mounts(act, mounts):
    (act.scratch / "at").mkdir()
    act.without("fusermount3", "fusermount")
    act.fail("mount", "data", act.scratch / "at", status=3, match="'fusermount3' is not in PATH")
    act.fail("submit", "true", status=7, match="'fusermount3' is not in PATH")


def test_a_container_that_is_not_there(act, mounts):
    (act.scratch / "at").mkdir()
    mounts.service.request("DELETE", mounts.container, {"restype": "container"})
    act.fail("mount", "data", act.scratch / "at", status=None, match="container")
    assert list((act.scratch / "at").iterdir()) == []
    mounts.service.create(mounts.container)


def test_doctor_says_what_mounts(act, mounts):
    assert "by '/usr/bin/rclone'" in act.run("doctor", status=None).out
    act.without("rclone", "blobfuse2")
    assert "neither 'blobfuse2' nor 'rclone'" in act.run("doctor", status=1).out


# ---- blobfuse2, for which a script stands


def install_blobfuse2(act):
    act.without()
    (act.scratch / "bin/blobfuse2").symlink_to(pathlib.Path(__file__).parent / "blobfuse2")


@pytest.fixture
def blobfuse2(act, mounts):
    install_blobfuse2(act)
    return mounts


def test_blobfuse2_is_preferred(act, blobfuse2):
    use(act, data="ro_mount")
    blobfuse2.put("data/a.txt", b"from the store")
    run = begin(act, "cat data/a.txt; ! touch data/b.txt; echo new >output/b.txt")
    words = b" ".join(b" ".join(line) for line in act.processes().values())
    assert b" blob:" in words and b" act:" not in words and b"sig=" not in words
    go(act, run)
    assert "from the store" in act.log(run).decode() and blobfuse2.get("output/b.txt") == b"new\n"
    assert "by '" + str(act.scratch / "bin/blobfuse2") in act.run("doctor", status=None).out


def left_in_caches(act, name):
    """The files of this name that were left in caches of blobfuse2."""
    return [p for p in (act.scratch / "tmp").rglob(name) if "cache/blobfuse2." in str(p) and "/vfs/" in str(p)]


HOLD = "exec 3>>output/open.txt; echo unsent >&3"  # a file that is open for writing


def test_a_file_that_was_open_when_blobfuse2_was_killed(act, blobfuse2):
    run = begin(act, f"echo a >output/a.txt; {HOLD}", then="exec 3>&-; echo b >output/b.txt")
    act.until(lambda: "output/a.txt" in blobfuse2.keys(), "what is closed to be sent")
    kill(process(act, b"bin/blobfuse2"))
    act.until(lambda: len(process(act, b"bin/blobfuse2")) == 2 and len(points(act)) == 2, "new ones")
    go(act, run, status=125)
    reason = act.info(run)["reason"]
    assert "may be not in the store but in" in reason and "/output/cache' on this node" in reason
    assert blobfuse2.get("output/a.txt") == b"a\n" and blobfuse2.get("output/b.txt") == b"b\n"
    kept, = left_in_caches(act, "open.txt")
    assert kept.read_text() == "unsent\n"
    act.finish("true")
    assert kept.exists(), "no other run removes it"


def test_blobfuse2_and_everything_else_is_killed(act, blobfuse2):
    run = begin(act, HOLD)
    kill_all(act)
    assert act.state(run) == "Failed"
    assert not points(act)
    kept, = left_in_caches(act, "open.txt")
    act.finish("true")
    assert kept.read_text() == "unsent\n", "no other run removes it"


def test_the_keeper_of_blobfuse2_is_killed(act, blobfuse2):
    run = begin(act, HOLD)
    kill(keepers(act))
    act.until(lambda: not process(act, b"bin/blobfuse2"), "blobfuse2 to end with it")
    go(act, run, status=(1, 125))
    assert "was killed" in act.info(run)["reason"] and "may not be in the store, but in" in act.info(run)["reason"]
    assert left_in_caches(act, "open.txt")


def test_what_blobfuse2_could_not_send_is_kept(act, blobfuse2):
    log = "$(readlink output | sed 's/at$/tool.txt/')"
    wait = f"until grep -q 'upload failed' {log}; do sleep 0.1; done"
    run = begin(act, "true", then=f"echo late >output/late.txt; {wait}")
    blobfuse2.service.request("DELETE", blobfuse2.container, {"restype": "container"})
    go(act, run, status=125)
    assert "may be not in the store" in act.info(run)["reason"]
    kept, = left_in_caches(act, "late.txt")
    assert kept.read_text() == "late\n"
    blobfuse2.service.create(blobfuse2.container)


def test_blobfuse2_gets_a_new_sas(act, blobfuse2):
    sas = open_for(act, blobfuse2, hours=20 / 3600)
    run = begin(act, "echo a >output/a.txt", then="echo late >output/late.txt")
    at, tool = mount(act, "data")
    open_for(act, blobfuse2, hours=1)
    act.until(lambda: not is_open(blobfuse2, sas), "the first SAS to end")
    (at / "late.txt").write_text("late, too")
    end(tool)
    go(act, run)
    assert act.state(run) == "Completed"
    assert blobfuse2.get("output/late.txt") == b"late\n" and blobfuse2.get("data/late.txt") == b"late, too"


def test_a_login_of_the_node_signs_where_the_project_is_not_seen(act, fuse, azure_double, login):
    """The first run keeps the second one waiting, which gets a SAS that ends soon, as on a cluster."""
    install_blobfuse2(act)
    account = {"account_name": azure_double.service.account, "container_name": azure_double.container,
               "endpoint": azure_double.service.endpoint}
    act.env |= {**login.principal(), "ACT_LOCAL_SLOTS": "1"}
    act.account("store", **account)
    first = act.run("-p", "mount: rclone", "submit", "sh", "-c", f"until test -e {act.scratch}/gate; do sleep .1; done")
    assert re.search(r"'data', 'output' +open for the run until 20.*if it works for longer, it may fail", first.err)
    second = act.run("submit", "sh", "-c", f"until test -e {act.scratch}/late; do sleep .1; done; echo a >output/a.txt")
    assert "open for the run" not in second.err, "blobfuse2 gets another one"
    sas = azure_double.service.container_sas(azure_double.container, hours=20 / 3600)
    given = {name: {**account, "path": f"files/{name}", "sas_token": sas, "by_login": True} for name in
             ("data", "output")}
    (act.run_dir(second.out.strip()) / "stores.json").write_text(json.dumps({"version": 1, "folders": given}))
    hidden = (act.project / "aux_data").rename(act.scratch / "hidden")
    (act.scratch / "gate").touch()
    act.until(lambda: len(process(act, b"bin/blobfuse2", b"mounts/")) == 2, "the second one's mounts")
    act.until(lambda: not is_open(azure_double, sas), "the first SAS to end")
    (act.scratch / "late").touch()
    act.run("wait", second.out.strip())
    assert azure_double.get("output/a.txt") == b"a\n"
    hidden.rename(act.project / "aux_data")


def test_a_login_that_does_not_answer_keeps_the_keeper_from_nothing(act, blobfuse2, login):
    open_for(act, blobfuse2, hours=12 / 3600)
    act.env |= login.principal()
    login.delay = 1000
    run = begin(act, "echo a >output/a.txt")
    act.account("store", account_name=blobfuse2.service.account, container_name=blobfuse2.container,
                endpoint=blobfuse2.service.endpoint)
    act.until(lambda: login.asked("token"), "it to be asked")
    tool = process(act, b"bin/blobfuse2", b"mounts/data/")  # nothing was written there
    kill(tool)
    act.until(lambda: process(act, b"bin/blobfuse2", b"mounts/data/") not in ([], tool) and len(points(act)) == 2,
              "a new one")
    go(act, run)
    assert not points(act) and not keepers(act)


def test_the_cluster_file_chooses(act, blobfuse2):
    path = act.cluster("aml", extra={"mount": "rclone"})
    run = begin(act, "true")
    words = b" ".join(b" ".join(line) for line in act.processes().values())
    assert b" act:" in words and b" blob:" not in words
    go(act, run)
    path.write_text(path.read_text().replace('"mount": "rclone"', '"mount": "s3fs"'))
    act.fail("submit", "true", status=7, match="it is one of blobfuse2, rclone, copy")
