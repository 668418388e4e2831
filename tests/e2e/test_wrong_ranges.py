"""Answers to ranges that are not what was asked for, in full or broken off, on blobs that no checksum guards."""
import base64
import functools
import random
import re

import pytest

from conftest import AzurePeer
from fault_proxy import FaultProxy, Rule


@functools.cache
def content():
    """Three parts of 8 MiB; it is made when a test wants it, and not by all workers that collect the tests."""
    return random.Random(1).randbytes(20_000_000)


def put_blocks(double, path):
    """As a client does that stores no MD5."""
    names = []
    for at in range(0, len(content()), 4_000_000):
        names.append(base64.b64encode(b"%08d" % at).decode())
        double.request("PUT", path, query={"comp": "block", "blockid": names[-1]}, body=content()[at : at + 4_000_000])
    latest = "".join(f"<Latest>{name}</Latest>" for name in names)
    double.request("PUT", path, query={"comp": "blocklist"}, body=f"<BlockList>{latest}</BlockList>".encode())


@pytest.fixture
def proxy(act, double):
    AzurePeer(act, double, double.container)
    server = FaultProxy(("127.0.0.1", double.port))
    act.account("store", account_name=double.account, account_key=double.key, container_name=double.container,
                endpoint=f"http://127.0.0.1:{server.port}/{double.account}")
    put_blocks(double, f"{double.container}/files/data/big.bin")
    yield server
    server.close()


def asked_from(exchange):
    headers = {name.lower(): value for name, value in exchange.headers.items()}
    match = re.match(r"bytes=(\d+)-", headers.get("x-ms-range", ""))
    return int(match[1]) if match else 0


def without(headers, *names):
    return {name: value for name, value in headers.items() if name.lower() not in names}


def ignored(headers, body):
    """The whole, from a proxy that knows no ranges."""
    whole = content()
    return 200, {**without(headers, "content-range", "content-length"), "Content-Length": str(len(whole))}, whole


def another_range(headers, body):
    """As many bytes from the beginning, which it says."""
    return 206, {**without(headers, "content-range"), "Content-Range": f"bytes 0-{len(body) - 1}/{len(content())}"}, \
        content()[: len(body)]


def another_version(headers, body):
    return 206, {**without(headers, "etag"), "ETag": '"0x8D0000000000000"'}, bytes(len(body))


def wrong(how, cut, once):
    """Ranges beyond the first part are answered so; the connection ends after `cut` bytes, None: after all."""
    seen = set()

    def answer(exchange):
        status, headers, body = exchange.forward()
        start = asked_from(exchange)
        if status != 206 or start == 0 or (once and start in seen):
            exchange.reply(status, headers, body)
            return
        seen.add(start)
        status, headers, body = how(headers, body)
        exchange.send_head(status, headers)
        exchange.send(body[:cut])
        exchange.keep = False
        if cut:
            exchange.reset()

    return Rule(answer, method="GET", path="big.bin", times=None)


@pytest.mark.parametrize("cut", [300_000, 2_000_000])
@pytest.mark.parametrize("how", [ignored, another_range, another_version])
def test_what_a_broken_try_brought_is_not_kept(act, proxy, how, cut):
    proxy.add(wrong(how, cut, once=True))
    act.run("d", "data")
    assert (act.project / "data/big.bin").read_bytes() == content()


@pytest.mark.parametrize("how", [ignored, another_range, another_version])
def test_what_was_refused_is_not_there_next_time(act, proxy, how):
    proxy.add(wrong(how, None, once=False))
    assert act.run("d", "data", status=None, env={"ACT_MAX_RETRIES": "2"}).status != 0
    assert not (act.project / "data/big.bin").exists()
    proxy.rules.clear()
    act.run("d", "data")
    assert (act.project / "data/big.bin").read_bytes() == content()
