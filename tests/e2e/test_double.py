"""The test double of the Blob service: each fault does what it says, seen with a plain HTTP client; what only it can
do, beside Azurite; and azcopy and rclone as peers."""
import base64
import email.utils
import hashlib
import http.client
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import xml.etree.ElementTree as ET

import pytest

from authority import Authority
from blob_double import BlobDouble
from conftest import MODULES

BODY = bytes(range(256)) * 40


@pytest.fixture
def sas(double):
    return double.container_sas(double.container)


@pytest.fixture
def ask(double, sas):
    """One request on a connection of its own: status, headers, body. Raises what http.client raises."""
    def ask(method, key, query="", headers=(), body=None, connection=None):
        own = connection or http.client.HTTPConnection("127.0.0.1", double.port, timeout=300)
        try:
            url = f"/{double.account}/{double.container}{'/' + urllib.parse.quote(key) if key else ''}?{query}&{sas}"
            own.request(method, url, body, {"x-ms-version": "2023-11-03", **dict(headers)})
            answer = own.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            if not connection:
                own.close()
    return ask


def put(ask, key, body=BODY, **headers):
    status, answer, data = ask("PUT", key, headers={"x-ms-blob-type": "BlockBlob", **headers}, body=body)
    assert status == 201, data
    return answer


def put_block(ask, key, name, body, **headers):
    block = urllib.parse.quote(base64.b64encode(name).decode(), safe="")
    return ask("PUT", key, f"comp=block&blockid={block}", headers, body)


def commit(ask, key, *names):
    ids = "".join(f"<Latest>{base64.b64encode(n).decode()}</Latest>" for n in names)
    return ask("PUT", key, "comp=blocklist", body=f"<BlockList>{ids}</BlockList>".encode())


# ---- faults


@pytest.mark.parametrize("status, code, after", [(500, "InternalError", None), (503, "ServerBusy", "7"),
                                                 (429, "TooManyRequests", "0"), (503, "ServerBusy", None)])
def test_answers(double, ask, status, code, after):
    put(ask, "x")
    values = {"retry_after": after} if after else {}
    double.fault("answer", status=status, code=code, method="GET", path="/x[?]", times=2, skip=1, **values)
    seen = [ask("GET", "x") for _ in range(4)]
    assert [s for s, _, _ in seen] == [200, status, status, 200]
    assert seen[1][1]["x-ms-error-code"] == code and code.encode() in seen[1][2]
    assert seen[1][1].get("retry-after") == after
    assert put(ask, "other")["etag"]  # another method and path


def test_an_answer_does_nothing(double, ask):
    double.fault("answer", status=500, code="InternalError", method="PUT")
    assert ask("PUT", "x", headers={"x-ms-blob-type": "BlockBlob"}, body=b"x")[0] == 500
    assert ask("GET", "x")[0] == 404


@pytest.mark.parametrize("where, done, status", [("request", False, 0), ("upload", False, 0), ("answer", True, 201)])
def test_resets_of_an_upload(double, ask, where, done, status):
    double.fault("reset", where=where, method="PUT")
    with pytest.raises(ConnectionError):
        ask("PUT", "x", headers={"x-ms-blob-type": "BlockBlob"}, body=bytes(8 << 20))
    assert ask("GET", "x")[0] == (200 if done else 404)
    assert [r.status for r in double.log() if r.method == "PUT"] == [status]


@pytest.mark.parametrize("where, head, part",
                         [("answer", False, False), ("headers", True, False), ("body", True, True)])
def test_resets_of_a_download(double, ask, where, head, part):
    put(ask, "x", bytes(100000))
    double.fault("reset", where=where, method="GET")
    got = receive(double, ask, "x")
    assert (b"\r\n\r\n" in got) == head
    assert (len(got.partition(b"\r\n\r\n")[2]) > 0) == part
    assert len(got) < 60000


def receive(double, ask, key):
    """Everything that comes for a GET until the connection ends."""
    query = double.container_sas(double.container)
    with socket.create_connection(("127.0.0.1", double.port), 30) as s:
        s.sendall(f"GET /{double.account}/{double.container}/{key}?{query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        got = b""
        try:
            while data := s.recv(65536):
                got += data
        except ConnectionResetError:
            pass
        return got


def test_truncated(double, ask):
    put(ask, "x")
    double.fault("truncate", method="GET")
    head, _, body = receive(double, ask, "x").partition(b"\r\n\r\n")
    assert f"Content-Length: {len(BODY)}".encode() in head
    assert body == BODY[:len(BODY) // 2]


def test_overlong(double, ask):
    put(ask, "x")
    double.fault("overlong", method="GET")
    head, _, body = receive(double, ask, "x").partition(b"\r\n\r\n")
    assert f"Content-Length: {len(BODY)}".encode() in head
    assert body[:len(BODY)] == BODY and len(body) > len(BODY)


def test_wrong_range(double, ask):
    put(ask, "x")
    double.fault("range", method="GET")
    wrong, right = (ask("GET", "x", headers={"x-ms-range": "bytes=100-199"}) for _ in range(2))
    assert right[1]["content-range"] == f"bytes 100-199/{len(BODY)}"
    assert wrong[1]["content-range"] != right[1]["content-range"]
    assert wrong[2] == right[2] == BODY[100:200]


def test_closed_without_an_answer(double, ask):
    put(ask, "x")
    double.fault("truncate", where="answer", method="GET")
    with pytest.raises(http.client.RemoteDisconnected):
        ask("GET", "x")


def test_trickle(double, ask):
    put(ask, "x")
    double.fault("trickle", rate=50000, method="GET")
    started = time.monotonic()
    assert ask("GET", "x")[2] == BODY
    assert time.monotonic() - started >= len(BODY) / 50000 * 0.9  # it cannot be sooner, whatever the machine does


def test_pending_copy(double):
    double.put(f"{double.container}/x", BODY)
    double.fault("pending", ms=300, method="PUT")
    source = {"x-ms-copy-source": f"{double.endpoint}/{double.container}/x"}
    started = time.monotonic()
    assert double.request("PUT", f"{double.container}/y", headers=source)[1]["x-ms-copy-status"] == "pending"
    while double.head(f"{double.container}/y")["x-ms-copy-status"] == "pending":
        time.sleep(0.01)
    assert time.monotonic() - started >= 0.3
    assert double.get(f"{double.container}/y") == BODY


@pytest.mark.parametrize("where", ["answer", "body"])
def test_stall(double, ask, where):
    put(ask, "x")
    double.fault("stall", where=where, ms=300, method="GET")
    started = time.monotonic()
    assert ask("GET", "x")[2] == BODY
    assert time.monotonic() - started >= 0.3  # it cannot be sooner, whatever the machine does


def test_wrong_checksum(double, ask):
    crc = {"x-ms-content-crc64": "vo7q9sPVKY0="}
    double.fault("checksum", method="PUT", times=1)
    assert put(ask, "x", b"hello world", **crc)["x-ms-content-crc64"] != "vo7q9sPVKY0="
    assert put(ask, "x", b"hello world", **crc)["x-ms-content-crc64"] == "vo7q9sPVKY0="


def test_corrupt(double, ask):
    put(ask, "x")
    double.fault("corrupt", method="GET")
    body = ask("GET", "x")[2]
    assert len(body) == len(BODY) and sum(a != b for a, b in zip(body, BODY)) == 1
    assert ask("GET", "x")[2] == BODY


def test_replaced_between_ranges(double, ask):
    etag = put(ask, "x")["etag"]
    first = {"x-ms-range": "bytes=0-99", "If-Match": etag}
    double.fault("replace", method="GET", skip=1)
    assert ask("GET", "x", headers=first)[0] == 206
    status, headers, _ = ask("GET", "x", headers=first)
    assert status == 412 and headers["x-ms-error-code"] == "ConditionNotMet"
    status, headers, body = ask("GET", "x")
    assert status == 200 and headers["etag"] != etag and len(body) == len(BODY) and body != BODY


def test_throttled_by_rate(double, ask):
    put(ask, "x")
    double.fault("throttle", rate=2, times=0, method="HEAD")
    statuses = [ask("HEAD", "x")[0] for _ in range(40)]
    assert statuses[0] == 200 and set(statuses) == {200, 503}
    assert ask("GET", "x")[0] == 200


def test_expired_credentials(double, ask):
    put(ask, "x")
    double.fault("answer", status=403, code="AuthenticationFailed", times=0, skip=2)
    assert [ask("GET", "x")[0] for _ in range(5)] == [200, 200, 403, 403, 403]


def test_torn_page(double, ask):
    put(ask, "x")
    double.fault("page", page="torn", path="comp=list")
    with pytest.raises(ET.ParseError):
        ET.fromstring(ask("GET", "", "restype=container&comp=list")[2])
    ET.fromstring(ask("GET", "", "restype=container&comp=list")[2])


def test_pages_that_repeat_or_are_empty(double, ask):
    def page(marker=""):
        xml = ET.fromstring(ask("GET", "", "restype=container&comp=list&maxresults=1&marker="
                                + urllib.parse.quote(marker, safe=""))[2])
        return [b.findtext("Name") for b in xml.iter("Blob")], xml.findtext("NextMarker")
    for key in "abc":
        put(ask, key)
    names, marker = page()
    assert names == ["a"] and marker != "b"  # it is opaque
    double.fault("page", page="repeat", path="comp=list")
    assert page(marker) == (["b"], marker)
    double.fault("page", page="empty", path="comp=list")
    assert page(marker) == ([], marker)
    names, last = page(marker)
    assert names == ["b"] and page(last) == (["c"], "")


def test_rules_that_are_none(double):
    for rule in ("what", "answer status", "answer status=x", "reset where=here", "answer path=%5B", "page page=odd"):
        with pytest.raises(AssertionError, match="line 1 is no rule"):
            double.control("POST", "/-/faults", rule)


def test_log(double, ask):
    put(ask, "x")
    ask("HEAD", "x")
    assert [(r.method, r.status, r.received) for r in double.log()] == [("PUT", 201, len(BODY)), ("HEAD", 200, 0)]
    double.forget()
    assert double.log() == []


def test_several_requests_on_a_connection(double, ask):
    connection = http.client.HTTPConnection("127.0.0.1", double.port, timeout=300)
    for i in range(50):
        body = bytes([i]) * (i * 3000)
        status, _, _ = ask("PUT", "x", headers={"x-ms-blob-type": "BlockBlob"}, body=body, connection=connection)
        assert status == 201
        assert ask("GET", "x", connection=connection)[2] == body
    connection.close()


# ---- credentials


def test_signatures(double, ask, sas):
    path = f"{double.container}/x"
    double.put(path, b"x")
    for change, code in (("sig=", "AuthenticationFailed"), ("se=2", "AuthenticationFailed")):
        wrong = re.sub(f"({change})(.)", lambda found: found[1] + ("B" if found[2] == "A" else "A"), sas)
        assert raw(double, f"/{double.account}/{path}?{wrong}")[1] == code
    assert raw(double, f"/{double.account}/{path}?{double.container_sas(double.container, hours=-1)}")[0] == 403
    assert raw(double, f"/{double.account}/{path}?{double.container_sas(double.container, 'wl')}") == (
        403, "AuthorizationPermissionMismatch")
    assert raw(double, f"/{double.account}/{path}?{double.account_sas()}")[0] == 200
    assert raw(double, f"/{double.account}/{path}") == (409, "PublicAccessNotPermitted")
    assert raw(double, f"/{double.account}/{path}", Authorization="Bearer x") == (401, "InvalidAuthenticationInfo")


def raw(double, url, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", double.port, timeout=300)
    try:
        connection.request("GET", url, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.getheader("x-ms-error-code")
    finally:
        connection.close()


@pytest.mark.parametrize("ahead, status", [(0, 200), (14 * 60, 200), (-14 * 60, 200), (20 * 60, 403), (-20 * 60, 403)])
def test_clock(double, ahead, status):
    path = f"{double.container}/x"
    double.put(path, b"x")
    double.clock(ahead)
    got, headers, _ = double.request("GET", path, expect=None)
    assert got == status
    there = email.utils.parsedate_to_datetime(headers["date"]).timestamp()
    assert abs(there - time.time() - ahead) < 60


# ---- what the service does and Azurite does not


def test_checksums_are_verified(double, ask):
    for header, good, bad, code in (("Content-MD5", md5(b"hello"), md5(b"other"), "Md5Mismatch"),
                                    ("x-ms-content-crc64", "iJh5CoYUi64=", "AAAAAAAAAAA=", "Crc64Mismatch")):
        body = b"hello" if "MD5" in header else b"123456789"
        assert put_block(ask, "x", b"1", body, **{header: good})[1][header.lower()] == good
        status, headers, _ = put_block(ask, "x", b"1", body, **{header: bad})
        assert (status, headers["x-ms-error-code"]) == (400, code)


def md5(data):
    return base64.b64encode(hashlib.md5(data).digest()).decode()


def test_attributes_leave_blocks_alone(double, ask):
    put(ask, "x")
    put_block(ask, "x", b"aa", b"one")
    assert ask("PUT", "x", "comp=metadata", {"x-ms-meta-who": "me"})[0] == 200
    assert ask("PUT", "x", "comp=properties", {"x-ms-blob-content-type": "text/plain"})[0] == 200
    headers = ask("HEAD", "x")[1]
    assert headers["x-ms-meta-who"] == "me" and headers["content-type"] == "text/plain"
    assert "content-md5" not in headers  # it was not given with the others
    assert commit(ask, "x", b"aa")[0] == 201
    assert ask("GET", "x")[2] == b"one"


def test_append_blobs(double, ask):
    assert ask("PUT", "log", headers={"x-ms-blob-type": "AppendBlob"})[0] == 201
    for i in range(3):
        status, headers, _ = ask("PUT", "log", "comp=appendblock", {"x-ms-blob-condition-appendpos": str(4 * i)},
                                 b"line")
        assert status == 201 and headers["x-ms-blob-append-offset"] == str(4 * i)
    assert ask("PUT", "log", "comp=appendblock", {"x-ms-blob-condition-appendpos": "4"}, b"x")[0] == 412
    status, headers, body = ask("GET", "log")
    assert body == b"line" * 3 and headers["x-ms-blob-type"] == "AppendBlob" and "content-md5" not in headers
    assert put_block(ask, "log", b"1", b"x")[1]["x-ms-error-code"] == "InvalidBlobType"


def test_pages_of_preloaded_blobs(blobserver):
    server = BlobDouble(blobserver, "--preload", "big:p/:12345:7", "--threads", 1)
    try:
        assert server.list("big", "p/") == {f"p/{i:07}": 7 for i in range(12345)}
    finally:
        server.stop()


def test_discard(blobserver):
    """Large bodies are not kept; they read as the pattern, from the position in the blob."""
    server = BlobDouble(blobserver, "--discard")
    try:
        server.create("box")
        pattern = bytes((i * 7 + (i >> 8)) & 0xff for i in range(65536))
        whole = pattern * 50
        server.put("box/one", whole)
        for name, part in ((b"a", whole[:200000]), (b"b", whole[200000:])):
            block = {"comp": "block", "blockid": base64.b64encode(name).decode()}
            server.request("PUT", "box/two", block, body=part)
        server.request("PUT", "box/two", {"comp": "blocklist"},
                       body=b"<BlockList><Latest>YQ==</Latest><Latest>Yg==</Latest></BlockList>")
        server.put("box/small", b"kept")
        assert [server.get(f"box/{key}") == whole for key in ("one", "two")] == [True, True]
        assert server.get("box/small") == b"kept"
        part = server.request("GET", "box/two", headers={"x-ms-range": "bytes=199990-3000000"},
                              expect=(206,))[2]
        assert (part == whole[199990:3000001]) is True  # not shown
    finally:
        server.stop()


def test_tls(blobserver, scratch, act):
    """Bytes come whole; ACT verifies who sends them, uses connections again, and opens further ones with the session of
    an earlier one."""
    server = BlobDouble(blobserver, authority=Authority(scratch))
    try:
        server.create("box")
        act.account("store", account_name=server.account, account_key=server.key, container_name="box",
                    endpoint=server.endpoint)
        act.write("data/large", os.urandom(20 << 20))
        for i in range(60):
            act.write(f"data/{i}", f"{i}")
        act.fail("u", "data", status=None, match="certificate", env={"ACT_MAX_RETRIES": "0"})
        assert not server.list("box")
        before, _, _ = server.tls()
        act.run("u", "data", env={"SSL_CERT_FILE": str(server.ca)})
        accepted, resumed, cipher = server.tls()
        assert cipher == "TLS_AES_256_GCM_SHA384"
        assert accepted - before < len(server.log()) / 2, "connections are used again"
        large = (act.project / "data/large").read_bytes()
        shutil.rmtree(act.project / "data")
        act.run("d", "data", env={"ACT_CA_FILE": str(server.ca)})
        assert (act.project / "data/large").read_bytes() == large == server.get("box/files/data/large")
        assert (act.project / "data/59").read_text() == "59"
        assert server.tls()[1] > resumed
    finally:
        server.stop()


# ---- the peers


@pytest.fixture
def tree(scratch):
    folder = scratch / "tree"
    (folder / "sub").mkdir(parents=True)
    for i in range(40):
        (folder / f"sub/file {i}").write_bytes(os.urandom(i * 100))
    (folder / "large").write_bytes(os.urandom(20 << 20))
    for path in folder.rglob("*"):
        os.utime(path, (1700000000, 1700000000))  # not in the second of the upload: azcopy compares dates
    return folder


def same(one, other):
    subprocess.run(["diff", "-r", one, other], check=True)


def peer(scratch, *words, **env):
    home = {"PATH": "/usr/bin:/bin", "HOME": str(scratch), "RCLONE_CONFIG": str(scratch / "rclone.conf"),
            "AZCOPY_LOG_LOCATION": str(scratch / "azcopy"), "AZCOPY_JOB_PLAN_LOCATION": str(scratch / "azcopy"),
            "AZCOPY_DISABLE_SYSLOG": "true", **env}
    done = subprocess.run(list(map(str, words)), env=home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_azcopy(double, scratch, sas, tree):
    found = sorted(MODULES.glob("@azure-tools/azcopy-linux/dist/bin/azcopy_linux_*"))
    if not found:
        pytest.skip("azcopy is not installed: scripts/install-deps --test")

    def azcopy(verb, *words):
        return peer(scratch, found[0], verb, *words, "--skip-version-check")
    there = f"{double.endpoint}/{double.container}"
    azcopy("copy", f"{tree}/*", f"{there}/up?{sas}", "--recursive", "--from-to", "LocalBlob")
    azcopy("copy", f"{there}/up/*?{sas}", scratch / "down", "--recursive", "--from-to", "BlobLocal")
    same(tree, scratch / "down")
    assert azcopy("list", f"{there}/up?{sas}", "--location", "Blob").count("Content Length") == 41
    nothing = azcopy("sync", tree, f"{there}/up?{sas}", "--from-to", "LocalBlob", "--recursive")
    assert "Total Number of Copy Transfers: 0" in nothing
    azcopy("copy", f"{there}/up/*?{sas}", f"{there}/again?{sas}", "--recursive", "--from-to", "BlobBlob")
    assert double.get(f"{double.container}/again/large") == (tree / "large").read_bytes()
    azcopy("remove", f"{there}/up?{sas}", "--recursive", "--from-to", "BlobTrash")
    assert len(double.list(double.container)) == 41


def test_rclone(double, scratch, sas, tree):
    if not shutil.which("rclone"):
        pytest.skip("rclone is not installed: scripts/install-deps --test")
    remote = f"x:{double.container}"

    def rclone(*words):
        return peer(scratch, "rclone", *words, RCLONE_CONFIG_X_TYPE="azureblob",
                    RCLONE_CONFIG_X_SAS_URL=f"{double.endpoint}/{double.container}?{sas}")
    rclone("copy", tree, f"{remote}/up")
    rclone("check", tree, f"{remote}/up")
    rclone("copy", f"{remote}/up", scratch / "down")
    same(tree, scratch / "down")
    assert len(rclone("lsf", "-R", "--files-only", f"{remote}/up").splitlines()) == 42  # and the notice of no config
    assert "There was nothing to transfer" in rclone("sync", "-v", tree, f"{remote}/up")
    rclone("copy", f"{remote}/up", f"{remote}/again")
    rclone("check", f"{remote}/up", f"{remote}/again")
    rclone("delete", f"{remote}/up")
    assert len(double.list(double.container)) == 41
