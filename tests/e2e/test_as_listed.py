"""What is replaced or removed is what was listed, and nothing that came there meanwhile; a removal that did not happen
is reported."""
import os

import pytest

from fault_proxy import Rule, cut

LARGE = 20_000_000  # several blocks


def meanwhile(what, **rule):
    """Does something right before the service gets the request."""
    def act(exchange):
        what()
        exchange.reply(*exchange.forward())
    return Rule(act, **rule)


def write_of(size):
    """The request that puts data/a in its place."""
    return {"method": "PUT", "path": "/data/a[?]comp=blocklist" if size == LARGE else "/data/a($|[?])"}


@pytest.mark.parametrize("listed", [None, b"as listed"])
@pytest.mark.parametrize("size", [5, LARGE])
def test_upload_replaces_what_was_listed(act, azure, proxy, size, listed):
    ours = os.urandom(size)
    act.write("data/a", ours)
    act.write("data/b", "goes on")
    if listed:
        azure.put("data/a", listed)
    proxy.add(meanwhile(lambda: azure.put("data/a", b"theirs"), **write_of(size)))
    result = act.run("u", "--overwrite", "data", status=8)
    assert "data/a'" in result.err and "was not replaced" in result.err
    assert azure.get("data/a") == b"theirs" and azure.get("data/b") == b"goes on"
    assert "was not replaced" not in act.run("u", "--overwrite", "data").err
    assert azure.get("data/a") == ours


@pytest.mark.parametrize("size", [5, LARGE])
def test_single_file_replaces_what_was_listed(act, azure, proxy, size):
    act.write("data/a", os.urandom(size))
    proxy.add(meanwhile(lambda: azure.put("data/a", b"theirs"), **write_of(size)))
    act.fail("u", "--overwrite", "data/a", status=8, match="was not replaced")
    proxy.add(meanwhile(lambda: azure.put("data/a", b"theirs, too"), **write_of(size)))
    act.fail("u", "--overwrite", "data/a", status=(5, 8), match="was not replaced")
    assert azure.get("data/a") == b"theirs, too"


@pytest.mark.parametrize("listed", [None, b"as listed"])
@pytest.mark.parametrize("size", [5, LARGE])
def test_what_is_ours_already_is_known(act, azure, proxy, size, listed):
    """The answer is lost, and the next try is refused."""
    ours = os.urandom(size)
    act.write("data/a", ours)
    if listed:
        azure.put("data/a", listed)
    proxy.add(cut("answer", **write_of(size)))
    act.run("u", "--overwrite", "data")
    assert azure.get("data/a") == ours
    assert not [name for name in azure.service.head(f"{azure.container}/files/data/a") if "act_upload" in name.lower()]


@pytest.mark.parametrize("listed", [None, b"as listed"])
@pytest.mark.parametrize("size", [5, LARGE])
def test_download_replaces_what_was_listed(act, azure, proxy, size, listed):
    ours = os.urandom(size)
    azure.put("data/a", ours)
    azure.put("data/b", b"goes on")
    if listed:
        act.write("data/a", listed, mtime=1_400_000_000)
    (act.project / "data").mkdir(exist_ok=True)

    def write():
        act.write("data/new", "theirs")
        (act.project / "data/new").rename(act.project / "data/a")
    proxy.add(meanwhile(write, method="GET", path="/data/a"))
    result = act.run("d", "--overwrite", "data", status=8)
    assert "/a'" in result.err and "was not replaced" in result.err
    assert (act.project / "data/a").read_bytes() == b"theirs"
    assert (act.project / "data/b").read_bytes() == b"goes on"
    act.run("d", "--overwrite", "data")
    assert (act.project / "data/a").read_bytes() == ours


def test_file_in_place_of_a_folder_marker(act, azure_double):
    azure_double.service.put(f"{azure_double.container}/files/data/a", headers={"x-ms-meta-hdi_isfolder": "true"})
    act.write("data/a", "a file now")
    act.run("u", "--overwrite", "data")
    assert azure_double.get("data/a") == b"a file now"


@pytest.mark.parametrize("size", [5, LARGE])
def test_copy_between_stores_replaces_what_was_listed(act, azure_double, size):
    """The service itself copies, the smaller in one request."""
    double, target = azure_double.service, azure_double.container + "-to"
    double.create(target)
    act.account("target", account_name=double.account, account_key=double.key, container_name=target,
                endpoint=double.endpoint)
    act.cluster("target", account="target")
    words = ("-c", "target", "-f", "aml", "u", "--overwrite", "data")
    ours, place = os.urandom(size), f"{target}/files/data/a"
    azure_double.put("data/a", ours)
    double.put(place, b"as listed")
    double.fault("replace", method="PUT", path=f"{place}[?]?")
    result = act.run(*words, status=None)
    assert result.status in (5, 8) and "was not replaced" in result.err, result
    assert len(double.get(place)) == len(b"as listed")
    double.fault("reset", where="answer", method="PUT", path=f"{place}[?]?")
    act.run(*words)
    assert double.get(place) == ours
    double.request("DELETE", target, {"restype": "container"})


# ---- removals


def test_blob_whose_name_ends_in_a_slash(act, azure_double):
    """It has content, so it is not a folder."""
    for words in (("rm", "-y", "data"), ("u", "-y", "--delete", "data")):
        act.write("data/a", "a")
        azure_double.put("data/dir/", b"content")
        azure_double.put("data/a", b"a")
        act.run(*words)
        assert "data/dir/" not in azure_double.keys()
    azure_double.put("data/dir/", b"content")
    act.fail("d", "--overwrite", "data/", status=8, match="only the name of a folder")
    assert not (act.project / "data/dir").is_file()


def test_parts_of_a_batch_that_are_refused(act, azure, proxy):
    for name in ("a", "b", "c"):
        azure.put(f"data/{name}", b"x")

    def refuse(exchange):
        status, headers, body = exchange.forward()
        first = body.replace(b"HTTP/1.1 202 Accepted", b"HTTP/1.1 409 Conflict\r\nx-ms-error-code: SnapshotsPresent", 1)
        exchange.reply(status, headers, first)
    proxy.add(Rule(refuse, method="POST", path="comp=batch", times=None))
    result = act.run("rm", "-y", "data", status=8)
    assert "data/a'" in result.err and "SnapshotsPresent" in result.err


def test_folder_that_cannot_be_removed(act):
    """It holds what is not an object."""
    act.write("data/a", "a")
    act.write("data/deep/b", "b")
    act.run("u", "--overwrite", "data")
    os.mkfifo(act.store / "files/data/deep/pipe")
    result = act.run("rm", "-y", "data", status=8)
    assert "data/deep/pipe': it is neither a file" in result.err
    assert [p.name for p in (act.store / "files/data").rglob("*")] == ["deep", "pipe"]
    (act.store / "files/data/deep/pipe").unlink()
    act.run("rm", "-y", "data")
    assert not (act.store / "files/data").exists()


def test_mirror_of_nothing_but_empty_folders(act, stored):
    stored.put("data/a", b"x")
    (act.project / "data/empty/deep").mkdir(parents=True)
    message = act.fail("u", "-y", "--delete", "data", status=2, match="nothing in the source")
    assert "empty folders" in message
    assert stored.get("data/a") == b"x"


# ---- listings that cannot be


def test_listing_without_end(act, azure_double):
    """Pages that bring nothing, each with the same marker."""
    for name in ("a", "b"):
        azure_double.put(f"data/{name}", b"x")
    azure_double.service.fault("page", page="empty", path="comp=list", times=0)
    for words in (("ls", "data/"), ("rm", "-y", "data/"), ("d", "data/")):
        act.fail(*words, match="again and again|without end")
    azure_double.service.no_faults()
    assert set(azure_double.keys()) == {"data/a", "data/b"}


@pytest.mark.parametrize("stored", ["double", "share"], indirect=True)
def test_listing_of_ever_new_names(act, stored):
    """Each page has a name and a marker that no earlier one had."""
    for name in ("a", "b"):
        stored.put(f"data/{name}", b"x")
    stored.service.fault("page", page="endless", path="comp=list", times=0)
    result = act.run("ls", "data/", status=1, timeout=300)
    assert "pages without end that bring next to nothing" in result.err
    stored.service.no_faults()
    assert set(stored.keys()) == {"data/a", "data/b"}


# ---- responses that cannot be


@pytest.mark.parametrize("stored", ["double", "share"], indirect=True)
@pytest.mark.parametrize("words", [("ls", "data/"), ("cat", "data/a"), ("d", "--overwrite", "data")])
def test_a_header_without_end(act, stored, words):
    stored.put("data/a", b"theirs")
    act.write("data/a", "ours")
    stored.service.fault("header", times=0)
    message = act.fail(*words, match="is not acceptable: a line of its head does not end")
    assert "memory" not in message
    assert (act.project / "data/a").read_text() == "ours"


@pytest.mark.parametrize("stored", ["double", "share"], indirect=True)
@pytest.mark.parametrize("size", [6, LARGE])
@pytest.mark.parametrize("words", [("ls", "data/"), ("cat", "data/a"), ("d", "--overwrite", "data"),
                                   ("verify", "--deep", "data")])
def test_a_body_that_contradicts_its_md5(act, stored, words, size):
    theirs = os.urandom(size)
    stored.put("data/a", theirs)
    act.write("data/a", b"x" * size, mtime=1_400_000_000)
    stored.service.fault("body-md5", method="GET", path="comp=list" if words[0] == "ls" else "/data/a", times=0)
    result = act.run(*words, status=(1, 8))
    assert "does not have its Content-MD5" in result.err and result.raw_out[:size] != theirs
    assert (act.project / "data/a").read_bytes() == b"x" * size
