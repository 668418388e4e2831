"""Modes of folders with something in them: kept by u, d and copies, without ever counting as objects."""
import json
import os
import shutil
import signal
import stat
import time

import pytest

from conftest import one_store

MODES = {"private": 0o700, "ro": 0o555, "ro/sub": 0o750, "open": 0o777, "plain": 0o755}
KEPT = {**MODES, "open": 0o755}  # that others may write is not, and the umask takes the group's
SENT = 4  # to a service: all but "plain"
SET = 3  # on a disk: and but "open"


@pytest.fixture(autouse=True)
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def make(act):
    for folder in MODES:
        act.write(f"data/{folder}/f", folder, mtime=1_500_000_000)
    for folder, mode in sorted(MODES.items(), reverse=True):
        (act.project / "data" / folder).chmod(mode)


def modes(root):
    return {str(p.relative_to(root)): stat.S_IMODE(p.stat().st_mode) for p in root.rglob("*") if p.is_dir()}


def here(act):
    return modes(act.project / "data")


def summary(act, *words, **options):
    lines = act.run(*words[:1], "--json", *words[1:], **options).out.splitlines()
    return next(line for line in map(json.loads, lines) if "summary" in line)


def counts(act, *words, **options):
    """What was moved, what is the same, and whose modes were set."""
    found = summary(act, *words, **options)
    return found["objects"], found["same"], found["folder_modes"]


def away(act):
    shutil.rmtree(act.project / "data")


def test_modes_go_up_and_come_back(act, stored):
    act.respect_modes()
    make(act)
    n = len(MODES)
    sent = SET if stored.kind == "folder" else SENT
    plan, modes = act.run("u", "--dry-run", "data"), f"; {sent} folder modes"
    assert plan.out.count("(mode)") == sent and f"would upload {n} objects" in plan.err and modes in plan.err
    result = act.run("u", "data")
    assert f"uploaded {n} objects" in result.err and modes in result.err
    assert act.run("ls", "-r", "data").out.split() == ["open/f", "plain/f", "private/f", "ro/f", "ro/sub/f"]
    assert f"{n} objects" in act.run("ls", "-r", "data").err
    act.run("verify", "data")
    assert counts(act, "u", "data") == counts(act, "d", "data") == (0, n, 0)
    away(act)
    assert counts(act, "d", "data") == (n, 0, SET)
    assert here(act) == KEPT
    assert counts(act, "d", "data") == counts(act, "u", "data") == (0, n, 0)


def test_a_mode_alone_goes_both_ways(act, stored):
    make(act)
    act.run("u", "data")
    plain, private = act.project / "data/plain", act.project / "data/private"
    plain.chmod(0o2750)
    private.chmod(0o755)  # and back to what needs no word
    assert counts(act, "u", "data") == (0, len(MODES), 2)
    plain.chmod(0o755)
    private.chmod(0o1700)  # nobody else is let in
    assert counts(act, "d", "data") == (0, len(MODES), 1)
    assert stat.S_IMODE(plain.stat().st_mode) == 0o750 and stat.S_IMODE(private.stat().st_mode) == 0o1700


@one_store
def test_what_is_left_out_has_no_mode(act, stored):
    make(act)
    rest = counts(act, "u", "--exclude", "private", "--exclude", "/ro/sub", "data")
    assert rest == (3, 0, 1 + (stored.kind != "folder"))
    assert counts(act, "u", "--include", "ro", "data") == (1, 1, 1)
    assert counts(act, "u", "data/private/f") == (1, 0, 0)


@one_store
def test_read_only_folders_are_filled(act, stored):
    act.respect_modes()
    make(act)
    act.run("u", "data")
    ro = act.project / "data/ro"
    for command in ("d", "u"):  # the store may be a folder as well
        ro.chmod(0o755)
        if command == "d":
            (ro / "f").unlink()
        else:
            act.write("data/ro/new/f", "new")
        ro.chmod(0o555)
        assert summary(act, command, "data")["objects"] == 1
        assert here(act)["ro"] == 0o555
    ro.chmod(0o755)
    (ro / "f").unlink()  # as after a kill
    assert counts(act, "d", "data")[2] == 1
    assert here(act)["ro"] == 0o555
    shutil.rmtree(ro / "new")
    assert summary(act, "d", "data")["objects"] == 1
    ro.chmod(0o555)
    (ro / "sub").chmod(0o755)
    shutil.rmtree(ro / "sub")
    act.run("u", "--delete", "-y", "data")
    act.write("data/plain/mine", "x")
    (ro / "mine").write_text("x")
    assert summary(act, "d", "--delete", "-y", "data")["deleted"] == 2
    assert here(act)["ro"] == 0o555


def test_a_download_that_was_killed_is_mended(act, azure_double):
    act.respect_modes()
    make(act)
    act.run("u", "data")
    away(act)
    azure_double.service.fault("stall", ms=3000, method="GET", path="ro/sub/f")
    process = act.start("d", "data")
    ro = act.project / "data/ro"
    for _ in range(1500):
        if (ro / "f").exists() and here(act)["ro"] & 0o200:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    azure_double.service.no_faults()
    assert here(act)["ro"] == 0o755, "it was being filled"
    act.run("d", "data")
    assert here(act) == KEPT
    assert counts(act, "d", "data") == (0, len(MODES), 0)


def test_another_process_closes_the_folder(act, azure_double):
    """Two downloads fill one read-only folder, and the first to end makes it read-only again."""
    act.respect_modes()
    make(act)
    act.run("u", "data")
    away(act)
    azure_double.service.fault("stall", ms=2000, method="GET", path="data/ro/f")
    process = act.start("d", "data")
    ro = act.project / "data/ro"
    for _ in range(1500):
        if (ro / "sub/f").exists():
            break
        time.sleep(0.02)
    ro.chmod(0o555)
    assert process.wait() == 0, process.stderr.read()
    process.communicate()
    assert here(act) == KEPT and (ro / "f").read_text() == "ro"


def test_modes_of_folders_are_listed(act):
    make(act)
    act.run("u", "data")
    rows = {line.split()[-1]: line.split() for line in act.run("ls", "-l", "data").out.splitlines()}
    assert rows["private/"][0] == "drwx------" and rows["ro/"][0] == "dr-xr-xr-x", rows
    assert rows["ro/"][1] == "-" and rows["ro/"][2][:2] == "20", rows


def test_removals_leave_no_folder_behind(act, stored):
    act.respect_modes()
    make(act)
    act.run("u", "data")
    (act.project / "data/ro").chmod(0o755)
    shutil.rmtree(act.project / "data/ro")
    shutil.rmtree(act.project / "data/private")
    assert "would upload 0 objects" in act.run("u", "--delete", "--dry-run", "data").err
    found = summary(act, "u", "--delete", "-y", "data")
    assert found["objects"] == 0 and found["deleted"] >= 3
    assert summary(act, "u", "--delete", "-y", "data")["deleted"] == 0
    assert act.run("ls", "data").out.split() == ["open/", "plain/"]
    act.run("-y", "rm", "--exclude", "plain", "data")
    assert act.run("ls", "data").out.split() == ["plain/"]
    make(act)
    act.run("u", "data")
    assert f"{len(MODES)} objects" in act.run("rm", "--dry-run", "data").err
    act.run("-y", "rm", "data")
    assert not any(key.startswith("data") for key in stored.keys())
    if stored.kind == "folder":
        assert not (stored.root / "data").exists()


def test_a_copy_between_clusters(act, azure_double):
    act.account("folder", folder=str(act.store))
    act.cluster("vault", account="folder")
    make(act)
    n = len(MODES)
    act.run("u", "data")
    first = act.run("-c", "vault", "-f", "aml", "u", "--json", "data")
    assert json.loads(first.out.splitlines()[-1])["folder_modes"] == SET
    assert modes(act.store / "files/data") == KEPT
    act.run("-y", "rm", "data")
    again = json.loads(act.run("-c", "aml", "-f", "vault", "u", "--json", "data").out.splitlines()[-1])
    assert (again["objects"], again["folder_modes"]) == (n, SET)
    away(act)
    act.run("d", "data")
    assert here(act) == KEPT


def test_ordinary_folders_cost_no_request(act, azure_double):
    service = azure_double.service
    for i in range(30):
        act.write(f"data/{i}/f", str(i))
    for mode, puts in ((0o755, 0), (0o700, 30), (0o700, 0)):
        for i in range(30):
            (act.project / f"data/{i}").chmod(mode)
        act.run("u", "data")
        service.forget()
        act.run("u", "data")
        assert not [r for r in service.log() if r.method == "PUT"]
        steady = len(service.log())
        assert steady <= 3, service.log()
    assert len(azure_double.keys()) == 60


def test_markers_of_others(act, azure_double):
    def marker(name, **meta):
        azure_double.service.put(f"{azure_double.container}/files/data/{name}",
                                 headers={f"x-ms-meta-{k}": v for k, v in {"hdi_isfolder": "true", **meta}.items()})

    for name in ("azcopy", "rclone", "adls", "sticky", "none"):
        azure_double.put(f"data/{name}/f", name.encode())
    marker("azcopy", permissions=str(0o40750), modtime="1500000000000000000")
    marker("rclone/", mtime="2020-01-01T00:00:00Z")
    marker("adls")
    marker("sticky", permissions=str(0o47777))
    marker("none", permissions=str(0o40000))
    assert counts(act, "d", "data") == (5, 0, 2)
    assert here(act) == {"azcopy": 0o750, "rclone": 0o755, "adls": 0o755, "sticky": 0o755, "none": 0o500}
    assert counts(act, "d", "data") == counts(act, "u", "data") == (0, 5, 0)
    for name in ("rclone", "adls"):
        (act.project / "data" / name).chmod(0o700)
    assert counts(act, "u", "data") == (0, 5, 2)
    assert counts(act, "u", "data") == (0, 5, 0)


def test_a_marker_with_a_slash_stays_the_only_one(act, azure_double):
    def mark(name, mode):
        azure_double.service.put(f"{azure_double.container}/files/data/{name}",
                                 headers={"x-ms-meta-hdi_isfolder": "true",
                                          "x-ms-meta-permissions": str(0o40000 | mode)})

    mark("i/", 0o555)
    azure_double.put("data/i/f", b"1")
    act.run("d", "data")
    (act.project / "data/i").chmod(0o700)
    assert counts(act, "u", "data") == (0, 1, 1)
    assert counts(act, "u", "data") == counts(act, "d", "data") == (0, 1, 0)
    assert set(azure_double.keys()) == {"data/i/", "data/i/f"}
    act.run("-y", "rm", "data")
    assert not azure_double.keys()
    mark("i/", 0o700)
    mark("i", 0o755)  # as both were left by two tools
    azure_double.put("data/i/f", b"1")
    assert counts(act, "d", "data") == (0, 1, 0)
    assert counts(act, "u", "data") == (0, 1, 0)
    act.run("-y", "rm", "data")
    assert not azure_double.keys()


def test_a_file_of_a_folders_name_is_not_replaced(act, azure_double):
    azure_double.put("data/private", b"a file")
    azure_double.put("data/extra", b"x")
    make(act)
    result = act.run("u", "data")
    assert "data/private/' is not kept: there is an object of this name" in result.err, result.err
    assert azure_double.get("data/private") == b"a file" and azure_double.get("data/private/f") == b"private"
    (act.project / "data/none").mkdir()
    azure_double.put("data/none", b"a file")
    assert "there is an object of this name without the '/'" in act.run("u", "data", status=8).err
    act.run("u", "--delete", "-y", "--exclude", "none", "data")
    assert set(azure_double.keys()) >= {"data/none"} and not {"data/extra", "data/private"} & set(azure_double.keys())


def test_the_private_store_gives_its_mode_to_nobody(act):
    act.account("store", folder=str(act.home / "store"))
    make(act)
    act.run("u", "data")
    assert stat.S_IMODE((act.home / "store").stat().st_mode) == 0o700
    away(act)
    act.run("d", "data")
    assert here(act) == KEPT


def file_modes(root):
    return {p.name: stat.S_IMODE(p.stat().st_mode) for p in root.rglob("*") if p.is_file()}


@one_store
def test_the_umask_holds_for_what_comes(act, stored):
    for name, mode in {"all": 0o777, "shared": 0o664, "tool": 0o755, "mine": 0o600, "kept": 0o666}.items():
        act.write(f"data/sub/{name}", name).chmod(mode)
    sub = act.project / "data/sub"
    sub.chmod(0o775)
    os.umask(0)
    act.run("u", "data")
    away(act)
    os.umask(0o027)
    act.write("data/sub/kept", "before", mtime=1_500_000_000).chmod(0o666)  # what the user gave stays
    act.run("d", "--overwrite", "data")
    assert file_modes(sub) == {"all": 0o750, "shared": 0o640, "tool": 0o750, "mine": 0o600, "kept": 0o666}
    assert here(act)["sub"] == 0o750
    assert counts(act, "d", "data") == (0, 5, 0)
    assert counts(act, "d", "data/sub/all") == counts(act, "u", "data/sub/all") == (0, 1, 0)
    assert counts(act, "u", "data") == (0, 5, 0), "what the umask took is not taken from the store"
    os.umask(0o022)
    assert counts(act, "d", "data")[2] == 0 and here(act)["sub"] == 0o750, "a folder was opened that was there"
    (sub / "tool").chmod(0o600)
    (sub / "all").chmod(0o640)
    sub.chmod(0o700)
    assert counts(act, "d", "data")[2] == 0
    assert file_modes(sub)["tool"] == 0o700 and file_modes(sub)["all"] == 0o750 and here(act)["sub"] == 0o700
