"""What the network, the service and the disk can do: one clear message, the right exit status, nothing half-written."""
import functools
import os
import re
import resource
import shutil
import socket
import subprocess
import threading

import pytest

from fault_proxy import Rule, answer, change_body, cut, truncate

QUICK = {"ACT_MAX_RETRIES": "2"}


@functools.cache
def noise():
    """Several blocks; it is made when a test wants it, and not by all workers that collect the tests."""
    return os.urandom(20_000_000)


@pytest.fixture
def data(act, azure):
    """A file on each side."""
    act.write("data/up.txt", "going up", mtime=1_500_000_000)
    azure.put("data/down.txt", b"coming down")


@pytest.fixture
def big(data, azure):
    """There also one of several blocks."""
    azure.put("data/big.bin", noise())


def nothing_half_written(act, azure):
    """Here and there are whole files, or none."""
    for path in (act.project / "data").rglob("*"):
        if path.is_file():
            assert path.name in ("up.txt", "down.txt", "big.bin", "huge.bin"), f"{path} was left behind"
    for name, good in (("down.txt", b"coming down"), ("big.bin", noise())):
        path = act.project / "data" / name
        assert not path.exists() or path.read_bytes() == good
    assert azure.get("data/down.txt") == b"coming down"
    for key in azure.keys():
        assert key in ("data/down.txt", "data/big.bin", "data/up.txt"), key


# ---- what may be tried again


PASSING = {
    "503": lambda: [answer(503, "ServerBusy", times=2)],
    "503 with Retry-After": lambda: [answer(503, "ServerBusy", {"Retry-After": "1"}, times=1)],
    "503 with x-ms-retry-after-ms": lambda: [answer(503, "ServerBusy", {"x-ms-retry-after-ms": "10"}, times=3)],
    "500": lambda: [answer(500, "InternalError", times=2)],
    "500 OperationTimedOut": lambda: [answer(500, "OperationTimedOut", times=1)],
    "502 without a body": lambda: [answer(502, "", times=1)],
    "504": lambda: [answer(504, "GatewayTimeout", times=1)],
    "408": lambda: [answer(408, "RequestTimeout", times=1)],
    "429": lambda: [answer(429, "TooManyRequests", {"Retry-After": "0"}, times=2)],
    "reset before": lambda: [cut("request", times=2)],
    "reset instead of an answer": lambda: [cut("answer", times=2)],
    "reset after the head": lambda: [cut("headers", times=1)],
    "reset in the body": lambda: [cut("body", times=1)],
    "truncated": lambda: [truncate(times=1)],
    "many kinds": lambda: [cut("answer"), answer(503), truncate(), cut("body"), answer(500)],
}


@pytest.mark.parametrize("fault", list(PASSING))
def test_passing_faults_do_not_show(act, azure, proxy, data, fault):
    for direction in ("u", "d"):
        proxy.rules[:] = PASSING[fault]()
        act.run(direction, {"u": "data/up.txt", "d": "data/down.txt"}[direction])
    assert azure.get("data/up.txt") == b"going up"
    assert (act.project / "data/down.txt").read_bytes() == b"coming down"
    proxy.rules[:] = PASSING[fault]()
    assert "down.txt" in act.run("ls", "data").out
    proxy.rules[:] = PASSING[fault]()
    act.run("rm", "-y", "data/up.txt")
    assert set(azure.keys()) == {"data/down.txt"}


def test_passing_faults_in_blocks(act, azure, proxy, big):
    act.write("data/huge.bin", noise())
    proxy.add(answer(503, "ServerBusy", method="PUT", path="comp=block&", skip=1))
    proxy.add(cut("answer", method="PUT", path="comp=block&", skip=1))
    proxy.add(cut("answer", method="PUT", path="comp=blocklist"))
    act.run("u", "data/huge.bin")
    assert azure.get("data/huge.bin") == noise()
    proxy.rules[:] = [cut("body", method="GET", path="/data/big"), truncate(method="GET", path="/data/big", skip=1)]
    act.run("d", "data/big.bin")
    assert (act.project / "data/big.bin").read_bytes() == noise()


# ---- what is final


FINAL = {
    "403": (lambda: answer(403, "AuthenticationFailed", times=None), 4, "AuthenticationFailed"),
    "403 for the wrong rights": (lambda: answer(403, "AuthorizationPermissionMismatch", times=None), 4,
                                 "AuthorizationPermissionMismatch"),
    "404 of the container": (lambda: answer(404, "ContainerNotFound", times=None), 3, "container"),
    "409": (lambda: answer(409, "BlobArchived", times=None), (1, 5, 8), "BlobArchived"),
    "412": (lambda: answer(412, "ConditionNotMet", times=None), (1, 5, 8), "ConditionNotMet|changed"),
    "429 for ever": (lambda: answer(429, "TooManyRequests", {"Retry-After": "0"}, times=None), 5, "TooManyRequests"),
    "503 for ever": (lambda: answer(503, "ServerBusy", {"Retry-After": "0"}, times=None), 5, "ServerBusy"),
    "500 for ever": (lambda: answer(500, "InternalError", {"Retry-After": "0"}, times=None), 5, "InternalError"),
    "reset for ever": (lambda: cut("request", times=None), 5, "127.0.0.1"),
    "400": (lambda: answer(400, "InvalidHeaderValue", times=None), 1, "InvalidHeaderValue"),
}


@pytest.mark.parametrize("fault", list(FINAL))
@pytest.mark.parametrize("words", [("u", "data/up.txt"), ("d", "data/down.txt"), ("ls", "data/"),
                                   ("rm", "-y", "data/down.txt"), ("init",)], ids=lambda w: w[0])
def test_lasting_faults_are_one_clear_message(act, azure, proxy, data, fault, words):
    make, status, match = FINAL[fault]
    proxy.add(make())
    message = act.fail(*words, status=status, match=f"(?i){match}", env=QUICK)
    if fault != "reset for ever" and "container" not in fault:
        assert "injected-request-id" in message, "for the service's support"
    assert azure.service.key not in message
    proxy.rules.clear()
    nothing_half_written(act, azure)


@pytest.mark.parametrize("rule", [truncate, lambda **kw: cut("body", **kw)], ids=["truncated", "reset"])
def test_bodies_that_never_arrive_whole(act, azure, proxy, big, rule):
    proxy.add(rule(method="GET", path="/data/(down|big)", times=None))
    for path in ("data/down.txt", "data/big.bin"):
        act.fail("d", path, status=(1, 5), env=QUICK)
    nothing_half_written(act, azure)
    proxy.rules.clear()
    act.run("d", "data")
    assert (act.project / "data/big.bin").read_bytes() == noise()


def test_one_file_of_many_fails(act, azure, proxy, big):
    proxy.add(answer(409, "BlobArchived", method="GET", path="/data/big", times=None))
    result = act.run("d", "data", status=8, env=QUICK)
    assert "data/big.bin" in result.err and "BlobArchived" in result.err
    assert (act.project / "data/down.txt").read_bytes() == b"coming down", "the others arrive"
    nothing_half_written(act, azure)


def test_refused_credentials_stop_at_once(act, azure, proxy, data):
    for i in range(200):
        act.write(f"data/many/{i}", str(i))
    proxy.add(answer(403, "AuthenticationFailed", method="PUT", times=None))
    act.run("u", "data/many", status=4, env=QUICK)
    assert sum(method == "PUT" for method, _ in proxy.seen) < 100


def test_source_that_changes_while_it_is_read(act, azure, proxy, big):
    def overwrite(exchange):
        azure.put("data/big.bin", b"new" * 5_000_000)
        exchange.reply(*exchange.forward())
    proxy.add(Rule(overwrite, method="GET", path="/data/big.bin", skip=1))
    result = act.run("d", "data/big.bin", status=None, env=QUICK)
    path = act.project / "data/big.bin"
    if result.status == 0:
        assert path.read_bytes() == b"new" * 5_000_000
    else:
        assert result.status in (1, 5, 8) and not path.exists()


@pytest.mark.parametrize("body", [b"", b"<EnumerationResults>", b"not xml at all",
                                  b"<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'b'>"
                                  b"]><EnumerationResults>&a;</EnumerationResults>", b"<a>" * 100_000],
                         ids=["nothing", "no end", "no XML", "entities", "deep"])
def test_broken_listing_is_never_an_empty_one(act, azure, proxy, data, body):
    proxy.add(change_body(lambda _: body, method="GET", path="comp=list", times=None))
    act.fail("ls", "data/", status=(1, 5), env=QUICK)
    act.fail("d", "data/", status=(1, 5), env=QUICK)
    act.fail("rm", "-y", "data/", status=(1, 5), env=QUICK)
    proxy.rules.clear()
    assert set(azure.keys()) == {"data/down.txt"}


# ---- no such service, no such rights


# Blob folders are not mounted on this platform: another mode, so that the service is asked.
SUBMIT = ("-p", "config_param: {data_folder: {mode: download}, output_folder: {mode: download}}", "submit", "true")


@pytest.mark.parametrize("endpoint, host", [
    ("http://127.0.0.1:{closed}/actaccount", "127.0.0.1"),
    ("http://no-such-host.invalid/actaccount", "no-such-host.invalid"),
])
def test_unreachable(act, azure, data, endpoint, host):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        closed = s.getsockname()[1]
    act.env["ACT_TRUSTED_HOSTS"] = host
    act.account("store", account_name="actaccount", account_key=azure.service.key, container_name="container",
                endpoint=endpoint.format(closed=closed))
    for words in (("u", "data/up.txt"), ("ls", "data"), ("init",), SUBMIT):
        message = act.fail(*words, status=5, match=re.escape(host), env=QUICK)
        assert re.search("(?i)connect|resolve", message), message


def test_silent_service(act, azure, data):
    """It accepts the connection and says nothing."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(16)
        act.account("store", account_name="actaccount", account_key=azure.service.key, container_name="container",
                    endpoint=f"http://127.0.0.1:{s.getsockname()[1]}/actaccount")
        act.fail("ls", "data", status=(5, 10), match="127.0.0.1",
                 env={"ACT_MAX_RETRIES": "1", "ACT_STALL_TIMEOUT": "1", "ACT_CONNECT_TIMEOUT": "1"})


def test_babbling_service(act, azure, data):
    """Something that is no web server."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(16)
        stop = threading.Event()

        def babble():
            s.settimeout(0.2)
            while not stop.is_set():
                try:
                    connection, _ = s.accept()
                    connection.sendall(b"\x00\xff220 hello\r\n" * 100)
                    connection.close()
                except OSError:
                    pass
        thread = threading.Thread(target=babble)
        thread.start()
        try:
            act.account("store", account_name="actaccount", account_key=azure.service.key, container_name="container",
                        endpoint=f"http://127.0.0.1:{s.getsockname()[1]}/actaccount")
            act.fail("ls", "data", status=(1, 5), env=QUICK)
        finally:
            stop.set()
            thread.join()


def with_account(act, azure, **keys):
    act.account("store", **{"account_name": azure.service.account, "container_name": azure.container,
                            "endpoint": azure.service.endpoint, **keys})


@pytest.mark.parametrize("words", [("u", "data/up.txt"), ("d", "data/down.txt"), ("ls", "data"), ("init",)],
                         ids=lambda w: w[0])
def test_wrong_key_and_expired_sas(act, azure, data, words):
    with_account(act, azure, account_key="d3Jvbmcga2V5")
    act.fail(*words, status=4, match="403")
    with_account(act, azure, sas_token="?" + azure.service.container_sas(azure.container, hours=-1))
    message = act.fail(*words, status=4)
    assert "sig=" not in message
    assert re.search("(?i)expired", message), message
    nothing_half_written(act, azure)


def test_sas_without_the_right(act, azure, data):
    with_account(act, azure, sas_token=azure.service.container_sas(azure.container, "rl"))
    act.run("d", "data/down.txt")
    act.fail("u", "data/up.txt", status=4)
    act.fail("rm", "-y", "data/down.txt", status=4)
    nothing_half_written(act, azure)


def test_no_such_container(act, azure, data):
    with_account(act, azure, account_key=azure.service.key, container_name="no-such-container")
    for words in (("u", "data/up.txt"), ("d", "data/down.txt"), ("ls", "data"), ("init",), SUBMIT):
        act.fail(*words, status=3, match="no-such-container")


# ---- the disk


def limited(size):
    """For a child: no file may grow beyond size bytes."""
    import signal

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return limit


def test_file_too_large_for_the_disk(act, azure, proxy, big):
    act.write("data/big.bin", b"old", mtime=1_400_000_000)
    act.fail("d", "data/big.bin", match="(?i)file too large|no space", status=None, preexec_fn=limited(5_000_000))
    assert (act.project / "data/big.bin").read_bytes() == b"old"
    visible = [p.name for p in (act.project / "data").iterdir() if not p.name.startswith(".act-part-")]
    assert sorted(visible) == ["big.bin", "up.txt"]
    act.run("d", "data/big.bin")
    assert not list((act.project / "data").glob(".act-part-*"))
    act.write("noise.bin", noise())
    act.fail("init", match="(?i)file too large|no space", status=None, preexec_fn=limited(5_000_000))
    assert not [k for k in azure.service.list(azure.container) if "/code/" in k]
    left = [p for p in (act.home / "cache").rglob("*") if p.is_file() and p.suffix != ".lock"]
    assert not left, "a half-written package was left behind"


@pytest.fixture
def tiny_disk(scratch):
    """A file system of 6 MB."""
    folder = scratch / "tiny"
    folder.mkdir()
    mounted = shutil.which("mount") and os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", folder], capture_output=True).returncode == 0
    if not mounted:
        pytest.skip("mounting a small file system needs root and the right to mount")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_full_disk(act, azure, proxy, data, tiny_disk):
    (act.project / "output").symlink_to(tiny_disk)
    azure.put("output/big.bin", noise())
    act.env["ACT_HOME"] = str(tiny_disk / "home")
    act.home = tiny_disk / "home"
    act.fail("d", "output/big.bin", match="(?i)no space", status=None)
    assert not [p for p in tiny_disk.rglob("*") if p.is_file()]
    act.write("noise.bin", noise())
    act.fail("init", match="(?i)no space", status=None)
    (act.project / "noise.bin").unlink()
    (act.project / "output").unlink()
    act.cluster("aml", folders=())
    run = act.finish("true", before=("-n", "1"))
    filler = tiny_disk / "filler"
    with open(filler, "wb", buffering=0) as f:
        try:
            while f.write(bytes(65536)):
                pass
        except OSError:
            pass
    act.fail("submit", "true", status=None)
    filler.unlink()
    assert [r["id"] for r in act.run("q", "--json").json["runs"] if r["state"] == "Completed"] == [run]
    act.finish("true", before=("-n", "1"))


def test_full_temporary_folder(act, tiny_disk):
    """That of a node, where a run keeps what is its own."""
    (tiny_disk / "filler").write_bytes(bytes(6 << 20))
    act.env["TMPDIR"] = str(tiny_disk)
    run = act.submit("true", before=("-n", "1"))
    message = act.run("wait", run, status=None).err
    assert "No space left on device; TMPDIR names another folder" in message, message
    assert "TMPDIR" in act.run("why", run).out
    (tiny_disk / "filler").unlink()
    act.finish("true", before=("-n", "1"))


def test_interrupted_upload_can_simply_be_run_again(act, azure, proxy, data):
    act.write("data/huge.bin", noise() * 2)
    stall = threading.Event()

    def keep_waiting(exchange):
        stall.wait(30)
        exchange.reset()

    proxy.add(Rule(keep_waiting, method="PUT", path="comp=block&", skip=2, times=None))
    client = act.start("u", "data/huge.bin")
    act.until(lambda: sum("comp=block" in p for _, p in proxy.seen) >= 3, "blocks are under way")
    client.terminate()
    client.communicate()
    assert client.returncode in (143, -15)
    stall.set()
    assert "data/huge.bin" not in azure.keys()
    proxy.rules.clear()
    act.run("u", "data/huge.bin")
    assert azure.get("data/huge.bin") == noise() * 2
