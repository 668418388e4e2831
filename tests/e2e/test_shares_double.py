"""The test double of the File service: Microsoft's client drives it; its faults, its limits and tokens, seen with a
plain client."""
import http.client
import os
import pathlib
import subprocess

import pytest

from conftest import MODULES

CLIENT = pathlib.Path(__file__).resolve().parent.parent / "shares/client.mjs"


def test_the_official_client(shares):
    said = subprocess.run(["node", "--test", CLIENT], capture_output=True, text=True, timeout=300, env={
        **os.environ, "PORT": str(shares.port), "ACCOUNT": shares.account, "KEY": shares.key})
    assert said.returncode == 0, said.stdout + said.stderr


def ask(shares, method, path, **headers):
    """One request with a token or without: status, code of the error."""
    connection = http.client.HTTPConnection("127.0.0.1", shares.port, timeout=300)
    try:
        connection.request(method, f"/{shares.account}/{path}", headers={
            "x-ms-version": "2022-11-02", **{name.replace("_", "-"): value for name, value in headers.items()}})
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.getheader("x-ms-error-code")
    finally:
        connection.close()


def test_tokens_say_what_they_intend(shares, login):
    shares.put(f"{shares.share}/x", b"data")
    path, token = f"{shares.share}/x", "Bearer " + login.token("https://storage.azure.com")
    assert ask(shares, "GET", path, authorization=token) == (400, "MissingRequiredHeader")
    intent = {"authorization": token, "x_ms_file_request_intent": "backup"}
    assert ask(shares, "GET", path, **intent) == (200, None)
    assert ask(shares, "GET", path, **{**intent, "x_ms_version": "2021-12-02"}) == (400, "UnsupportedHeader")
    assert ask(shares, "GET", path, authorization="Bearer x.y.z", x_ms_file_request_intent="backup")[0] == 401


@pytest.mark.parametrize("name", ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"])
def test_there_are_no_conditions(shares, login, name):
    shares.put(f"{shares.share}/x", b"data")
    token = {"authorization": "Bearer " + login.token("https://storage.azure.com")}
    assert ask(shares, "GET", f"{shares.share}/x", x_ms_file_request_intent="backup", **token,
               **{name: "*"}) == (400, "ConditionHeadersNotSupported")


def test_a_share_that_is_full(shares):
    shares.limit(shares.share, 10)
    shares.put(f"{shares.share}/a", b"12345678")
    with pytest.raises(AssertionError, match="ShareSizeLimitReached"):
        shares.put(f"{shares.share}/b", b"123")
    shares.delete(f"{shares.share}/a")
    shares.put(f"{shares.share}/b", b"123")


def test_a_range_that_is_too_large(shares):
    shares.put(f"{shares.share}/x", b"")
    size = (4 << 20) + 1
    shares.request("PUT", f"{shares.share}/x", {"comp": "properties"}, {"x-ms-content-length": str(size)})
    status, headers, _ = shares.request("PUT", f"{shares.share}/x", {"comp": "range"}, {
        "x-ms-range": f"bytes=0-{size - 1}", "x-ms-write": "update"}, b"x" * size, expect=None)
    assert (status, headers["x-ms-error-code"]) == (413, "RequestBodyTooLarge")


def test_faults(shares):
    shares.put(f"{shares.share}/x", b"some data")
    shares.fault("answer", status=503, code="ServerBusy", method="GET", path="/x")
    assert shares.request("GET", f"{shares.share}/x", expect=None)[0] == 503
    shares.fault("corrupt", method="GET", path="/x")
    assert shares.get(f"{shares.share}/x") != b"some data"
    shares.fault("replace", method="GET", path="/x")
    assert shares.get(f"{shares.share}/x") == b"!" * 9
    assert shares.log()[-1].status == 200


def test_preloaded_files(shares):
    shares.control("POST", "/-/preload", f"{shares.share}:deep/er/f:3:1000")
    assert shares.list(shares.share) == {f"deep/er/f000000{i}": 1000 for i in range(3)}
    assert len(shares.get(f"{shares.share}/deep/er/f0000001")) == 1000


def test_azcopy(shares, scratch):
    """The other client that people have: a tree there and back, listed and removed."""
    azcopy = sorted(MODULES.glob("@azure-tools/azcopy-linux/dist/bin/azcopy_linux_*"))[-1]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(scratch), "AZCOPY_LOG_LOCATION": str(scratch / "log"),
           "AZCOPY_JOB_PLAN_LOCATION": str(scratch / "plan"), "AZCOPY_DISABLE_SYSLOG": "true"}
    here, back = scratch / "here", scratch / "back"
    (here / "a/b").mkdir(parents=True)
    (here / "a/b/small").write_bytes(b"small")
    (here / "a/empty").touch()
    (here / "large").write_bytes(os.urandom(9 << 20))

    def run(*words):
        said = subprocess.run([azcopy, *words, "--skip-version-check"], env=env, capture_output=True, text=True,
                              timeout=300)
        assert said.returncode == 0, said.stdout + said.stderr
        return said.stdout

    def url(path):
        return f"{shares.endpoint}/{shares.share}/{path}?{shares.share_sas(shares.share)}"

    run("copy", f"{here}/*", url("dir"), "--from-to", "LocalFile", "--recursive")
    assert shares.list(shares.share) == {"dir/a/b/small": 5, "dir/a/empty": 0, "dir/large": 9 << 20}
    run("copy", url("dir/*"), back, "--from-to", "FileLocal", "--recursive")
    assert subprocess.run(["diff", "-r", here, back]).returncode == 0
    assert "a/b/small" in run("list", url("dir"), "--location", "File")
    run("remove", url("dir"), "--from-to", "FileTrash", "--recursive")
    assert not shares.list(shares.share)
