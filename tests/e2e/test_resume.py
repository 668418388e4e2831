"""What was interrupted goes on when the same command is run again, and what goes wrong in the middle costs nothing.

Against the test double, which keeps a log of what was asked for and goes wrong on command."""
import hashlib
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

import pytest

import waiting
from fault_proxy import Rule
from test_data import away, content, tree

MIB = 1 << 20
SIZE, PART, MEMORY = 100 * MIB, 2 * MIB, 8 * MIB
OPTIONS = ("--part-size", "2M", "--transfers", "4", "--memory", "8M")


def block_ids(log, status=201):
    """The ids of the blocks that arrived, as often as they did."""
    found = []
    for request in log:
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(request.target).query)
        if request.method == "PUT" and query.get("comp") == ["block"] and request.status == status:
            found.append(query["blockid"][0])
    return found


def kill_after(act, double, words, more, is_one):
    """Starts a command and kills it when so many more requests that is_one() names were answered. Waits until the
    server is done with what was under way."""
    target = sum(map(is_one, double.log())) + more
    client = act.start(*words)
    act.until(lambda: sum(map(is_one, double.log())) >= target or client.poll() is not None, "enough was answered")
    assert client.poll() is None, "it ended too early"
    client.kill()
    client.communicate()
    quiet(double)


def quiet(double):
    last = None
    while last != (last := len(double.log())):
        time.sleep(0.25)


def is_block(request):
    return request.method == "PUT" and "comp=block&" in request.target and request.status == 201


def is_range(request):
    return request.method == "GET" and "/data/big" in request.target and request.sent > 1000


# ---- resume


def test_upload_goes_on_after_kill(act, azure_double):
    data = content(SIZE)
    azure_double.put("data/big", b"the old one")
    waiting.settled(act.write("data/big", data))
    double = azure_double.service
    double.fault("stall", ms=200, times=0, method="PUT", path="comp=block&")
    chance = random.Random(1)
    for _ in range(3):
        kill_after(act, double, ["u", *OPTIONS, "data/big"], chance.randrange(1, 12), is_block)
        assert azure_double.get("data/big") == b"the old one"
    double.no_faults()
    result = act.run("u", *OPTIONS, "data/big")
    assert azure_double.get("data/big") == data
    everything = block_ids(double.log())
    assert len(set(everything)) == len(everything) == SIZE // PART, "no block was sent twice"
    assert "from an interrupted transfer" in result.err
    double.forget()
    assert "1 already the same" in act.run("u", "data/big").err
    assert not block_ids(double.log())


def test_download_goes_on_after_kill(act, azure_double):
    data = content(SIZE)
    azure_double.put("data/big", data)
    act.write("data/big", "the old one", mtime=1)
    double = azure_double.service
    double.fault("stall", ms=200, times=0, method="GET", path="/data/big")
    chance = random.Random(2)
    for _ in range(3):
        kill_after(act, double, ["d", *OPTIONS, "data/big"], chance.randrange(12, 16), is_range)
        assert (act.project / "data/big").read_bytes() == b"the old one"
    double.no_faults()
    result = act.run("d", *OPTIONS, "data/big")
    assert (act.project / "data/big").read_bytes() == data
    assert "from an interrupted transfer" in result.err
    sent = sum(r.sent for r in double.log() if r.method == "GET" and "/data/big" in r.target)
    assert sent <= SIZE + 3 * MEMORY + len(double.log()) * 1000, "only what was in memory at a kill came twice"
    assert set(tree(act.project / "data")) == {"big"}, "nothing is left beside it"


@pytest.mark.parametrize("status", [500, 502])
def test_download_goes_on_after_the_service_gave_up(act, azure_double, status):
    azure_double.put("data/big", data := content(10 * MIB))
    double = azure_double.service
    double.fault("answer", status=status, code="InternalError", method="GET", path="/data/big", skip=3, times=0)
    message = act.fail("d", "--part-size", "1M", "--transfers", "1", "--memory", "1M", "data/big", status=5,
                       env={"ACT_MAX_RETRIES": "1"})
    assert f"HTTP {status}" in message
    double.no_faults()
    assert act.run("d", "--json", "--part-size", "1M", "data/big").json["resumed_bytes"] > 0
    assert (act.project / "data/big").read_bytes() == data


@pytest.mark.parametrize("direction", ["u", "d"])
def test_nothing_stale_is_taken_for_new(act, azure_double, direction):
    """The source changes between the interruption and the next run."""
    double = azure_double.service
    first, second = content(20 * MIB, 1), content(20 * MIB, 2)
    path = act.write("data/big", first, mtime=1_500_000_000)
    if direction == "d":
        azure_double.put("data/big", first)
        away(act, "data/big")
    else:
        waiting.settled(path)
    double.fault("stall", ms=200, times=0, path="/data/big")
    kill_after(act, double, [direction, *OPTIONS, "data/big"], 4, is_block if direction == "u" else is_range)
    double.no_faults()
    if direction == "u":
        act.write("data/big", second, mtime=1_500_000_000)
    else:
        azure_double.put("data/big", second)
    act.run(direction, *OPTIONS, "data/big")
    assert azure_double.get("data/big") == second == (act.project / "data/big").read_bytes()
    assert set(tree(act.project / "data")) == {"big"}, "nothing is left beside it"


def test_many_files_go_on(act, azure_double):
    for i in range(200):
        act.write(f"data/{i % 5}/{i}", content(2000, i))
    double = azure_double.service
    double.fault("stall", ms=20, times=0, method="PUT")

    def is_put(request):
        return request.method == "PUT" and request.status == 201
    kill_after(act, double, ["u", "--transfers", "4", "data"], 30, is_put)
    double.no_faults()
    before = {r.target for r in double.log() if is_put(r)}
    double.forget()
    act.run("u", "data")
    after = {r.target for r in double.log() if is_put(r)}
    assert not before & after and len(before | after) == 200
    assert {k.removeprefix("data/") for k in azure_double.keys()} == set(tree(act.project / "data"))


def test_two_uploads_at_once(act, azure_double):
    for i in range(3):
        act.write(f"data/{i}", content(6 * MIB, i))
    double = azure_double.service
    double.fault("stall", ms=20, times=0, method="PUT")
    clients = [act.start("u", "--part-size", "1M", "data") for _ in range(2)]
    for client in clients:
        out, err = client.communicate()
        assert client.returncode == 0, err
    double.no_faults()
    for i in range(3):
        assert azure_double.get(f"data/{i}") == content(6 * MIB, i)


# ---- from store to store, inside the service


@pytest.mark.parametrize("second", ["same account", "other account"])
def test_the_service_copies_by_itself(act, azure_double, second):
    double = azure_double.service
    other = double if second == "same account" else double.other("actsecond")
    other.create(target := double.container + "-to")
    act.account("target", account_name=other.account, account_key=other.key, container_name=target,
                endpoint=other.endpoint)
    act.cluster("target", account="target")
    act.env["ACT_TRUSTED_HOSTS"] = "127.0.0.1"  # else no service there is given a signed URL to copy from
    files = {f"data/{name}": content(size, size) for name, size in
             (("small", 100), ("a b+c%", 5000), ("empty", 0), ("large", 3 * MIB + 17))}
    for path, data in files.items():
        act.write(path, data, mtime=1_500_000_000)
    act.run("u", "data")
    away(act, "data")
    double.forget()
    act.run("-c", "target", "-f", "aml", "u", "--part-size", "1M", "data")
    bodies = [r for r in double.log() if "comp=list" not in r.target and "comp=blocklist" not in r.target]
    assert bodies and all(r.received == 0 for r in bodies), bodies
    assert not [r for r in bodies if r.method == "GET" and r.sent > 2000], "no bytes come to the client"
    assert {k.removeprefix("files/"): other.get(f"{target}/{k}") for k in other.list(target)} == files
    double.forget()
    assert "4 already the same" in act.run("-c", "target", "-f", "aml", "u", "data").err
    assert not [r for r in double.log() if r.method == "PUT"]
    other.request("DELETE", target, {"restype": "container"})


# ---- in the middle


def test_expired_sas_in_the_middle(act, azure_double):
    double = azure_double.service
    act.account("store", account_name=double.account, container_name=azure_double.container, endpoint=double.endpoint,
                sas_token=double.container_sas(azure_double.container))
    for i in range(60):
        act.write(f"data/{i:02}", content(1000, i))
    double.fault("stall", ms=50, times=0, method="PUT")
    client = act.start("u", "--transfers", "2", "data")
    act.until(lambda: sum(r.method == "PUT" for r in double.log()) >= 5, "it is under way")
    double.clock(2 * 3600)
    out, err = client.communicate()
    double.clock(0)
    double.no_faults()
    assert client.returncode in (4, 8), err
    assert b"expired" in err.lower() or b"403" in err, err
    assert b"sig=" not in err
    before = set(azure_double.keys())
    assert 5 <= len(before) < 60
    double.forget()
    act.run("u", "data")
    again = {urllib.parse.urlsplit(r.target).path.rsplit("/", 1)[1] for r in double.log() if r.method == "PUT"}
    assert not again & {key.rsplit("/", 1)[1] for key in before}
    assert len(azure_double.keys()) == 60


class Resolver(threading.Thread):
    """A name server that knows one name, until it is told to fail."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.77", 53))
        self.socket.settimeout(0.1)
        self.works, self.stop, self.asked = True, False, 0
        self.start()

    def run(self):
        while not self.stop:
            try:
                query, peer = self.socket.recvfrom(512)
            except TimeoutError:
                continue
            end = query.index(b"\0", 12) + 5
            is_a = query[end - 4:end - 2] == b"\0\1"
            self.asked += 1
            head = query[:2] + (b"\x81\x80" if self.works else b"\x81\x82")
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\x7f\0\0\1" if self.works and is_a else b""
            self.socket.sendto(head + b"\0\1\0" + bytes([bool(answer)]) + b"\0\0\0\0" + query[12:end] + answer, peer)

    def close(self):
        self.stop = True
        self.join()
        self.socket.close()


@pytest.fixture
def resolver(act, scratch):
    """Names are asked for here; act has a view of /etc of its own."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("a name server of one's own needs root and the right to mount")
    (scratch / "resolv.conf").write_text("nameserver 127.0.0.77\noptions timeout:1 attempts:1\n")
    act.prefix = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"',
                  str(scratch / "resolv.conf"))
    server = Resolver()
    yield server
    server.close()


def test_names_cannot_be_resolved_in_the_middle(act, azure_double, resolver):
    double = azure_double.service
    act.env["ACT_TRUSTED_HOSTS"] = "blob.act.test"
    act.account("store", account_name=double.account, account_key=double.key, container_name=azure_double.container,
                endpoint=f"http://blob.act.test:{double.port}/{double.account}")
    for i in range(60):
        act.write(f"data/{i:02}", str(i))
    double.fault("reset", method="PUT", times=10, skip=20)
    double.fault("stall", method="PUT", ms=20, times=0)
    client = act.start("u", "--transfers", "2", "data")
    act.until(lambda: sum(r.method == "PUT" for r in double.log()) > 5, "it is under way")
    resolver.works = False
    out, err = client.communicate()
    assert resolver.asked and client.returncode in (0, 5, 8), err
    double.no_faults()
    act.fail("u", "data", status=5, match="(?i)resolve.*blob.act.test|blob.act.test.*resolve",
             env={"ACT_MAX_RETRIES": "1"})
    resolver.works = True
    act.run("u", "data")
    assert len(azure_double.keys()) == 60


@pytest.mark.parametrize("ahead", [-1200, 1200])
def test_a_clock_that_is_wrong(act, azure_double, ahead):
    azure_double.service.clock(ahead)
    for i in range(20):
        act.write(f"data/{i}", str(i))
    act.run("u", "data")
    away(act, "data")
    act.run("d", "data")
    assert len(tree(act.project / "data")) == 20


def test_a_file_that_vanishes(act, azure_double):
    double = azure_double.service
    for i in range(30):
        act.write(f"data/{i:02}", content(1000, i))
    double.fault("stall", ms=100, times=0, method="PUT")
    client = act.start("u", "--transfers", "1", "--memory", "1M", "--part-size", "1M", "data")
    act.until(lambda: any(r.method == "PUT" for r in double.log()), "it is under way")
    (act.project / "data/29").unlink()
    out, err = client.communicate()
    if client.returncode != 0:  # it was not read before it went
        assert client.returncode == 8 and b"data/29" in err or b"'29'" in err, err
        assert "data/29" not in azure_double.keys()
    assert len(azure_double.keys()) >= 29
    double.no_faults()
    double.fault("answer", status=404, code="BlobNotFound", times=0, method="GET", path="/data/07")
    away(act, "data")
    result = act.run("d", "data", status=8)
    assert "07" in result.err and "BlobNotFound" in result.err
    assert set(tree(act.project / "data")) == {f"{i:02}" for i in range(30)
                                               if f"data/{i:02}" in azure_double.keys()} - {"07"}


def test_a_source_that_changes_while_it_is_sent(act, azure_double):
    double = azure_double.service
    act.write("data/big", content(8 * MIB))
    double.fault("stall", ms=200, times=0, method="PUT", path="comp=block&")
    client = act.start("u", "--part-size", "1M", "--transfers", "1", "--memory", "1M", "data/big")
    act.until(lambda: block_ids(double.log()), "it is under way")
    act.write("data/big", content(8 * MIB, 1))
    out, err = client.communicate()
    double.no_faults()
    assert client.returncode != 0 and b"changed" in err, err
    assert azure_double.keys() == {}
    act.run("u", "data/big")
    assert azure_double.get("data/big") == content(8 * MIB, 1)


def test_a_blob_that_is_replaced_while_it_is_fetched(act, azure_double):
    azure_double.put("data/big", content(8 * MIB))
    azure_double.service.fault("replace", method="GET", path="/data/big", skip=2)
    result = act.run("d", "--part-size", "1M", "--transfers", "1", "data/big", status=None)
    path = act.project / "data/big"
    assert path.read_bytes() == azure_double.get("data/big") if result.status == 0 else not path.exists(), result


def test_damage_on_the_way(act, azure_double):
    data = content(3 * MIB)
    act.write("data/f", data)
    act.run("u", "--part-size", "1M", "data")
    away(act, "data")
    azure_double.service.fault("corrupt", method="GET", path="/data/f", times=0)
    act.fail("d", "--part-size", "1M", "data", status=None, match="(?i)checksum|crc|md5|differ")
    assert not (act.project / "data/f").exists()
    azure_double.service.no_faults()
    act.run("d", "--part-size", "1M", "data")
    assert (act.project / "data/f").read_bytes() == data


def test_throttling_does_not_fail(act, azure_double):
    for i in range(150):
        act.write(f"data/{i}", str(i))
    azure_double.service.fault("throttle", times=0, rate=60, method="PUT")
    act.run("u", "data")
    assert len(azure_double.keys()) == 150


def test_bwlimit(act, azure_double):
    """A limit that lets the whole take three seconds cannot be done in one."""
    act.write("data/f", content(3 * MIB))
    start = time.monotonic()
    act.run("u", "--bwlimit", "1M", "--part-size", "256k", "data")
    assert time.monotonic() - start > 1
    assert azure_double.get("data/f") == content(3 * MIB)


def test_transfers_bounds_what_is_under_way(act, azure, proxy):
    for i in range(12):
        act.write(f"data/{i}", str(i))
    now, most, lock = 0, 0, threading.Lock()

    def count(exchange):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.05)
        answer = exchange.forward()
        with lock:
            now -= 1
        exchange.reply(*answer)
    proxy.add(Rule(count, method="PUT", times=None))
    act.run("u", "--transfers", "2", "data")
    assert most == 2 and len(azure.keys()) == 12
    act.run("rm", "-y", "data")
    act.run("u", "data")
    assert most > 2 and len(azure.keys()) == 12


# ---- the local side


def test_a_folder_where_a_file_should_be(act, azure_double):
    azure_double.put("data/x", b"a file")
    azure_double.put("data/y", b"another")
    act.write("data/x/inside", "mine")
    result = act.run("d", "data", status=8)
    assert "x" in result.err and "folder" in result.err
    assert tree(act.project / "data") == {"x/inside": b"mine", "y": b"another"}


def test_a_link_that_was_not_finished(act, azure_double):
    act.write("data/f", "x")
    link = act.project / "data/l"
    link.symlink_to("f")
    act.run("u", "data")
    link.unlink()
    name = hashlib.sha256(b"l").hexdigest()[:16]
    (act.project / f"data/.act-part-{name}-{'0' * 32}").symlink_to("old")  # what a kill leaves there
    act.run("d", "data")
    assert os.readlink(link) == "f"
    assert sorted(os.listdir(link.parent)) == ["f", "l"]


def test_a_target_that_cannot_be_written(act, azure_double):
    azure_double.put("data/sub/x", b"a file")
    azure_double.put("data/y", b"another")
    act.write("data/sub/keep", "mine")
    act.respect_modes()
    (act.project / "data/sub").chmod(0o555)
    result = act.run("d", "data", status=8)
    assert "sub/x" in result.err and "ermission" in result.err
    assert tree(act.project / "data") == {"sub/keep": b"mine", "y": b"another"}


def test_interrupted_by_hand(act, azure_double):
    double = azure_double.service
    waiting.settled(act.write("data/big", content(20 * MIB)))
    double.fault("stall", ms=50, times=0, method="PUT")
    client = act.start("u", *OPTIONS, "data/big")
    act.until(lambda: block_ids(double.log()), "blocks arrived")
    client.send_signal(signal.SIGINT)
    out, err = client.communicate()
    assert client.returncode == 130 and re.search(rb"goes on where it stopped", err), err
    double.no_faults()
    quiet(double)
    arrived = block_ids(double.log())
    act.run("u", *OPTIONS, "data/big")
    everything = block_ids(double.log())
    assert len(everything) == len(set(everything)) == 10 and set(arrived) <= set(everything)
