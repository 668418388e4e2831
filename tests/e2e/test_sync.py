"""What the same is, mirrors, filters, plans and verify: both sides after a transfer are what was asked for."""
import base64
import hashlib
import json
import os
import re

import pytest

from conftest import one_store
from fault_proxy import Rule
from test_data import away, content, on_a_terminal, tree


def here(act, path="data"):
    return set(tree(act.project / path))


def there(stored, below="data/"):
    return {key.removeprefix(below) for key in stored.keys()}


def two_sides(act):
    """The same three files on both sides, and one more on each."""
    for name in ("a", "sub/b", "sub/deep/c"):
        act.write(f"data/{name}", name, mtime=1_500_000_000)
    act.write("data/gone here", "x")
    act.run("u", "data")
    (act.project / "data/gone here").unlink()
    act.write("data/new", "new here", mtime=1_500_000_000)


@pytest.fixture
def both(act, azure):
    """What a mirror says and asks, which is the same whatever the store; what stores do, the next one shows."""
    two_sides(act)
    return azure


@pytest.fixture
def both_anywhere(act, stored):
    two_sides(act)
    return stored


# ---- what the same is


@one_store
def test_size_and_time_decide(act, stored):
    act.write("data/f", "12345", mtime=1_500_000_000)
    act.run("u", "data")
    act.write("data/f", "54321", mtime=1_500_000_000)
    assert "1 already the same" in act.run("u", "data").err
    assert "1 already the same" not in act.run("u", "--checksum", "data").err
    assert stored.get("data/f") == b"54321"
    act.write("data/f", "54321", mtime=1_600_000_000)
    assert "1 already the same" in act.run("u", "--checksum", "data").err, "times do not count"
    act.write("data/f", "54321!", mtime=1_600_000_000)
    act.run("u", "data")
    assert stored.get("data/f") == b"54321!"


@one_store
def test_checksum_downwards(act, stored):
    data = content(300_000)
    act.write("data/big", data, mtime=1_500_000_000)
    act.run("u", "--part-size", "100k", "data")
    act.write("data/big", bytes(len(data)), mtime=1_500_000_000)
    assert "1 already the same" in act.run("d", "data").err
    act.run("d", "--checksum", "data")
    assert (act.project / "data/big").read_bytes() == data


# ---- what is newer at the destination


def summary_of(result):
    return json.loads(result.out.splitlines()[-1])


@one_store
@pytest.mark.smoke
def test_an_edit_is_not_overwritten_by_a_download(act, stored):
    for name in ("edited", "older", "fresh"):
        act.write(f"data/{name}", "stored", mtime=1_500_000_000)
    act.run("u", "data")
    act.write("data/edited", "an edit", mtime=1_600_000_000)
    act.write("data/older", "an older one", mtime=1_400_000_000)
    (act.project / "data/fresh").unlink()
    plan = act.run("d", "--dry-run", "data")
    assert re.search(r"^leave .*data/edited.*\(newer\)", plan.out, re.M), plan.out
    result = act.run("d", "data")
    assert "1 newer" in result.err and "'data/edited'" in result.err and "--overwrite" in result.err, result.err
    assert tree(act.project / "data") == {"edited": b"an edit", "older": b"stored", "fresh": b"stored"}
    summary = summary_of(act.run("d", "--json", "data/edited"))
    assert (summary["newer"], summary["left"], summary["failed"]) == (1, ["data/edited"], 0)
    act.run("d", "--overwrite", "data")
    assert (act.project / "data/edited").read_bytes() == b"stored"


@one_store
def test_an_edit_in_the_store_is_not_overwritten_by_an_upload(act, stored):
    act.write("data/f", "mine", mtime=1_500_000_000)
    act.write("data/extra", "x")
    act.run("u", "data")
    (act.project / "data/extra").unlink()
    stored.put("data/f", b"theirs is longer")
    for words in (["data"], ["data/f"], ["--checksum", "data"], ["--delete", "-y", "data"]):
        assert "'data/f'" in act.run("u", *words).err
        assert stored.get("data/f") == b"theirs is longer"
    assert there(stored) == {"f"}, "what is extra goes all the same"
    act.run("u", "--overwrite", "data")
    assert stored.get("data/f") == b"mine"


def test_what_is_only_touched_is_the_same(act, azure):
    act.write("data/f", "12345", mtime=1_500_000_000)
    act.run("u", "data")
    act.write("data/f", "12345", mtime=1_600_000_000)
    assert "1 already the same" in act.run("d", "data").err
    act.write("data/f", "54321", mtime=1_600_000_000)
    assert "1 newer" in act.run("d", "data").err
    assert (act.project / "data/f").read_bytes() == b"54321"


@one_store
def test_a_copy_between_clusters_leaves_what_is_newer(act, stored):
    act.account("second", folder=str(act.home / "second"))
    act.cluster("second", account="second")
    act.write("data/f", "old", mtime=1_500_000_000)
    act.run("u", "data")
    act.write("data/f", "new here", mtime=1_600_000_000)
    act.run("-c", "second", "u", "data")
    result = act.run("-c", "second", "-f", "aml", "u", "data")
    assert "'data/f'" in result.err
    act.run("-c", "second", "d", "--overwrite", "data")
    assert (act.project / "data/f").read_bytes() == b"new here"
    act.run("-c", "second", "-f", "aml", "u", "--overwrite", "data")
    act.run("-c", "second", "d", "--overwrite", "data")
    assert (act.project / "data/f").read_bytes() == b"old"


# ---- links that lead out


@pytest.fixture
def linked(act, azure):
    """A folder with a link inside, a link to a disk beside the project, and what that disk holds in the store."""
    disk = act.project.parent / "disk"
    (disk / "deep").mkdir(parents=True)
    (disk / "a").write_text("on the disk")
    (disk / "deep/b").write_text("deeper")
    act.write("data/f", "f")
    act.write("data/link-z", "sorts between the link and what is below it")
    (act.project / "data/inside").symlink_to("f")
    (act.project / "data/link").symlink_to(disk)
    return azure


def test_a_link_that_leads_out_is_named_and_not_stored(act, linked):
    result = act.fail("u", "data", status=8, match="'link': the link leads out.*--follow.*--skip-links")
    assert there(linked) == {"f", "link-z", "inside"}, "the others are stored"
    result = act.run("u", "--skip-links", "data")
    assert "1 left out (--skip-links)" in result.err and "link" not in there(linked)
    (act.project / "data/climbs").symlink_to("../output/x")
    (act.project / "data/link").unlink()
    act.fail("u", "data", status=8, match="'climbs'")
    act.run("u", "--exclude", "climbs", "data")


def test_verify_leaves_out_what_an_upload_leaves_out(act, linked):
    act.run("u", "--skip-links", "data")
    assert act.run("verify", "data", status=8).out.startswith("missing data/link  (a link that leads out")
    result = act.run("verify", "--skip-links", "data")
    assert result.out == "" and "0 differences; 1 left out (--skip-links)" in result.err
    linked.put("data/link/a", b"what another upload has followed")
    assert act.run("verify", "--skip-links", "data").out == ""
    (act.project / "data/f").write_text("changed")
    assert act.run("verify", "--skip-links", "data", status=8).out.split()[1] == "data/f"
    act.fail("verify", "--skip-links", "--follow", "data", status=2, match="exclude each other")


def test_a_mirror_spares_what_a_link_stands_for(act, linked):
    act.run("u", "data/link")
    held = {"link/a", "link/deep/b"}
    assert there(linked) == held, "a link's own name stores what it leads to"
    linked.put("data/extra", b"x")
    linked.put("data/link.extra", b"x")
    assert "2 to delete" in act.run("u", "--skip-links", "--delete", "--dry-run", "data").err
    act.fail("u", "--delete", "-y", "data", status=8)
    assert there(linked) >= held | {"extra"}, "nothing is deleted when one failed"
    act.run("u", "--skip-links", "--delete", "-y", "data")
    assert there(linked) == held | {"f", "link-z", "inside"}
    for words in (["--skip-links"], ["--exclude", "link"], ["--skip-links", "--include", "*b", "--include", "f"]):
        act.run("u", *words, "--delete", "-y", "data")
        assert held < there(linked), words


def test_a_folder_of_nothing_but_such_links_empties_nothing(act, linked):
    act.run("u", "--skip-links", "data")
    before = linked.keys()
    for name in ("f", "link-z", "inside"):
        (act.project / "data" / name).unlink()
    act.fail("u", "--skip-links", "--delete", "-y", "data", status=2, match="nothing in the source")
    assert linked.keys() == before


# ---- mirrors


@pytest.mark.smoke
def test_delete_upwards(act, both_anywhere):
    act.run("u", "data")
    assert there(both_anywhere) == {"a", "sub/b", "sub/deep/c", "gone here", "new"}, "nothing is deleted unasked"
    result = act.run("u", "-y", "--delete", "data")
    assert "1 deleted" in result.err and there(both_anywhere) == here(act)
    assert "1 deleted" not in act.run("u", "-y", "--delete", "data").err


@pytest.mark.smoke
def test_delete_downwards(act, both_anywhere):
    result = act.run("d", "-y", "--delete", "data")
    assert "1 deleted" in result.err and here(act) == there(both_anywhere) == {"a", "sub/b", "sub/deep/c", "gone here"}


def test_delete_needs_a_word_without_a_terminal(act, both):
    before = both.keys()
    for direction in ("u", "d"):
        act.fail(direction, "--delete", "data", status=2, match="1 object.*-y")
    assert both.keys() == before and here(act) == {"a", "sub/b", "sub/deep/c", "new"}, "nothing was begun"


def test_delete_asks_on_a_terminal(act, both):
    stopped = on_a_terminal(act, ["rm", "data"], b"\x03")
    assert b"interrupted before the answer: it was not done" in stopped and b"goes on" not in stopped
    shown = on_a_terminal(act, ["u", "--delete", "data"], b"n\n")
    assert b"1 object" in shown and b"nothing was changed" in shown, shown
    assert "gone here" in there(both) and "new" not in there(both)
    on_a_terminal(act, ["u", "--delete", "data"], b"y\n")
    assert there(both) == here(act)


def test_max_delete(act, both):
    act.write("data/second", "2")
    act.run("u", "data")
    (act.project / "data/second").unlink()
    before = both.keys()
    act.fail("u", "-y", "--delete", "--max-delete", "1", "data", status=None, match="2")
    assert both.keys() == before
    act.run("u", "-y", "--delete", "--max-delete", "2", "data")
    assert there(both) == here(act)


def test_an_empty_source_empties_nothing(act, both):
    before = both.keys()
    act.run("u", "-y", "--delete", "--exclude", "*", "data")
    assert both.keys() == before
    away(act, "data")
    (act.project / "data").mkdir()
    act.fail("u", "-y", "--delete", "data", status=None, match="(?i)empty|nothing")
    assert both.keys() == before


def test_delete_leaves_a_folder_that_is_empty_at_the_source(act, both_anywhere):
    for path in (act.project / "data/sub/b", act.project / "data/sub/deep/c"):
        path.unlink()
    act.run("u", "-y", "--delete", "data")
    assert there(both_anywhere) - {"sub/deep"} == {"a", "new"}, "a folder's marker is a blob"
    (act.project / "data/sub/deep").rmdir()
    act.run("d", "-y", "--delete", "data")
    assert (act.project / "data/sub/deep").is_dir()
    assert "0 objects" in act.run("u", "-y", "--delete", "data").err, "all was done at once"


def test_delete_leaves_what_is_filtered_out(act, both):
    both.put("data/keep.log", b"log")
    act.run("u", "-y", "--delete", "--exclude", "*.log", "data")
    assert there(both) == here(act) | {"keep.log"}


def test_delete_only_when_all_was_copied(act, both):
    act.write("data/secret", "x").chmod(0)
    act.respect_modes()
    said = act.run("u", "-y", "--delete", "data", status=8).err
    assert "gone here" in there(both)
    assert "nothing was deleted from the store's 'data', as 1 object failed" in said


def test_counts_of_what_failed_agree(act, both):
    """A plan names all failures, as the transfer does; verify counts what it compared once."""
    both.put("data/new", b"new here")
    for name in ("one", "two"):
        (act.project / "data" / name).symlink_to("/etc/hostname")
    said = act.run("u", "--delete", "--dry-run", "data", status=8).err
    assert all(f"'{name}'" in said for name in ("one", "two")), said
    assert "nothing would be deleted from the store's 'data', as 2 objects failed" in said
    for name in ("one", "two"):
        (act.project / "data" / name).unlink()
        act.write(f"data/{name}", "same")
        both.put(f"data/{name}", b"same")
        (act.project / "data" / name).chmod(0)
    act.respect_modes()
    said = act.run("verify", "data", status=8).err
    assert "compared 4 objects" in said and "2 could not be compared" in said and "2 of 6 objects failed" in said, said


def test_rm_says_in_json_what_became_of_it(act, both):
    *plan, summary = map(json.loads, act.run("rm", "--dry-run", "--json", "data/sub").out.splitlines())
    assert sorted(step["path"] for step in plan) == ["data/sub/b", "data/sub/deep/c"]
    assert (summary["summary"], summary["dry_run"], summary["objects"]) == ("rm", True, 2)
    gone = act.run("rm", "-y", "--json", "data/a").json
    assert (gone["version"], gone["dry_run"], gone["objects"], gone["bytes"], gone["failed"]) == (1, False, 1, 1, 0)


def test_delete_spares_what_changed_after_the_listing(act, azure, proxy):
    act.write("data/a", "a")
    act.write("data/b", "b")
    act.run("u", "data")
    (act.project / "data/b").unlink()

    def overwrite(exchange):
        azure.put("data/b", b"somebody else's")
        exchange.reply(*exchange.forward())
    proxy.add(Rule(overwrite, method="POST"))
    proxy.add(Rule(overwrite, method="DELETE"))
    act.run("u", "-y", "--delete", "data", status=None)
    assert any(rule.hits for rule in proxy.rules)
    assert azure.get("data/b") == b"somebody else's"


# ---- filters


def test_filters(act, azure):
    for name in ("a.py", "a.tmp", "cache/x.py", "deep/cache/y.py", "deep/z.txt", "top"):
        act.write(f"data/{name}", name)
    rules = act.write("rules", "*.tmp\n# a comment\n/top\n")
    act.run("u", "--filter-from", "rules", "--exclude", "/cache/", "data")
    assert there(azure) == {"a.py", "deep/cache/y.py", "deep/z.txt"}
    act.run("rm", "-y", "data")
    act.run("u", "--include", "*.py", "--exclude", "a.*", "data")
    assert there(azure) == {"cache/x.py", "deep/cache/y.py"}
    away(act, "data")
    act.run("d", "--include", "/deep/", str(act.project / "data"))
    assert here(act) == {"deep/cache/y.py"}
    act.fail("u", "--filter-from", "nothing", "data", status=3, match="nothing")
    rules.write_text("ok\n[\n")
    result = act.run("u", "--filter-from", "rules", "data", status=None)
    assert result.status in (0, 7)


def test_patterns_that_match_nothing_are_named(act, azure):
    act.write("data/a.py", "x")
    result = act.run("u", "--exclude", "*.log", "--include", "*.py", "data")
    warnings = [line for line in result.err.splitlines() if line.startswith("act: warning: ")]
    assert len(warnings) == 1 and "*.log" in warnings[0], result
    assert there(azure) == {"a.py"}


# ---- the plan


def test_the_plan_of_a_mirror(act, both):
    result = act.run("u", "--dry-run", "--delete", "data")
    lines = {re.sub(r"  +", " ", line) for line in result.out.splitlines()}
    assert lines == {"copy 8 B data/new (new)", "delete 1 B data/gone here (not at the source)"}
    assert "would upload 1 object, 8 B; 3 already the same; 1 to delete" in result.err
    *steps, summary = map(json.loads, act.run("d", "--dry-run", "--delete", "--json", "data").out.splitlines())
    assert {(s["action"], s["path"]) for s in steps} == {("copy", "data/gone here"), ("delete", "data/new")}
    assert summary["objects"] == 1 and summary["deleted"] == 1 and summary["dry_run"]
    assert "gone here" in there(both) and here(act) == {"a", "sub/b", "sub/deep/c", "new"}


# ---- verify


def test_verify_of_equal_sides(act, both):
    act.run("u", "data")
    act.run("d", "data")
    for words in (["verify", "data"], ["verify", "--deep", "data"], ["verify", "data/a", "data/sub/"]):
        result = act.run(*words)
        assert result.out == "" and "0 differences" in result.err
    os.utime(act.project / "data/a", (1, 1))
    act.run("verify", "data")


def test_verify_lists_every_difference(act, both_anywhere):
    act.write("data/sub/b", "longer")
    act.write("data/a", "A", mtime=1_500_000_000)
    result = act.run("verify", "data", status=8)
    assert sorted(result.out.splitlines()) == ["content data/a", "extra data/gone here", "missing data/new",
                                               "size data/sub/b"]
    assert re.search(r"compared \d+ objects in \S+ s\nact: 4 differences\n$", result.err), result
    rows = [json.loads(line) for line in act.run("verify", "--json", "data", status=8).out.splitlines()]
    by_path = {row["path"]: row for row in rows}
    assert by_path["data/sub/b"]["from"]["size"] == 6 and by_path["data/sub/b"]["to"]["size"] == 5
    assert by_path["data/new"]["to"] is None and by_path["data/gone here"]["from"] is None
    assert act.run("verify", "data/sub", "data/a", status=8).out == "size data/sub/b\ncontent data/a\n"
    assert act.run("verify", "--exclude", "new", "--exclude", "gone*", "--exclude", "/a", "--exclude", "b",
                   "data").out == ""


def test_verify_finds_damage_in_large_files(act, azure):
    data = content(300_000)
    act.write("data/big", data, mtime=1_500_000_000)
    act.run("u", "--part-size", "100k", "data")
    act.run("verify", "data")
    act.write("data/big", data[:150_000] + b"!" + data[150_001:], mtime=1_500_000_000)
    assert act.run("verify", "data", status=8).out == "content data/big\n"
    assert act.run("verify", "--deep", "data", status=8).out == "content data/big\n"


def test_verify_deep_trusts_no_stored_checksum(act, azure):
    act.write("data/f", b"1234", mtime=1_500_000_000)
    act.run("u", "data")
    block = base64.b64encode(b"0" * 20).decode()
    path = f"{azure.container}/files/data/f"
    md5 = base64.b64encode(hashlib.md5(b"1234").digest()).decode()
    azure.service.request("PUT", path, {"comp": "block", "blockid": block}, body=b"4321")
    azure.service.request("PUT", path, {"comp": "blocklist"}, {"x-ms-blob-content-md5": md5},
                          f"<BlockList><Latest>{block}</Latest></BlockList>".encode())
    act.run("verify", "data")
    assert act.run("verify", "--deep", "data", status=8).out == "content data/f\n"


@one_store
def test_verify_of_two_stores(act, stored):
    act.account("second", folder=str(act.scratch / "second"))
    act.cluster("second", account="second")
    act.write("data/a", "a")
    act.write("data/b", "b")
    act.run("u", "data")
    act.run("-c", "second", "-f", "aml", "u", "data/a")
    away(act, "data")
    assert act.run("-c", "second", "-f", "aml", "verify", "data", status=8).out == "missing data/b\n"
    act.run("-c", "second", "-f", "aml", "u", "data")
    act.run("-c", "second", "-f", "aml", "verify", "data")
    act.fail("verify", "data", status=3, match="data")


# ---- links that are followed


@pytest.fixture
def outside(act, linked):
    """... with links of every kind in what it leads to."""
    disk = act.project.parent / "disk"
    (disk / "inner").symlink_to("deep/b")
    (disk / "beside").symlink_to("../beside")
    (act.project.parent / "beside").write_text("beside the disk")
    (act.project / "data/one").symlink_to("../../beside")
    return linked


def test_follow_stores_what_links_lead_to(act, outside):
    act.run("u", "--follow", "data")
    assert there(outside) == {"f", "link-z", "inside", "one", "link/a", "link/deep/b", "link/inner", "link/beside"}
    assert outside.get("data/one") == outside.get("data/link/beside") == b"beside the disk"
    assert "8 already the same" in act.run("u", "--follow", "data").err
    act.run("verify", "--follow", "--deep", "data")
    act.run("verify", "data", status=8)
    (act.project.parent / "disk/deep/b").unlink()
    act.run("u", "--follow", "--delete", "-y", "data")
    assert "link/deep/b" not in there(outside)
    for words in (["--skip-links"], ["-f", "aml"]):
        act.fail("u", *words, "--follow", "data", status=2, match="--follow")


def test_a_download_writes_nothing_through_a_link(act, outside):
    act.run("u", "--follow", "data")
    disk = act.project.parent / "disk"
    before = tree(disk)
    (disk / "deep/b").write_text("mine")
    os.utime(act.project / "data/one", (1, 1), follow_symlinks=False)
    result = act.run("d", "data", status=8)
    assert "'link' leads through a symbolic link; what is behind it was left as it is" in result.err
    assert "a link out of the folder, here: 'data/one'; --overwrite" in result.err
    assert (act.project / "data/one").is_symlink()
    act.run("d", "--overwrite", "data", status=8)
    assert not (act.project / "data/one").is_symlink() and (act.project.parent / "beside").exists()
    assert (disk / "deep/b").read_text() == "mine" and set(tree(disk)) == set(before)


def test_links_that_cannot_be_followed_are_named(act, linked):
    data, disk = act.project / "data", act.project.parent / "disk"
    (disk / "up").symlink_to(data)
    (disk / "near").symlink_to(disk / "deep")
    (disk / "deep/far").symlink_to(disk)
    (data / "gone").symlink_to("/nowhere/disk")
    (data / "self").symlink_to(data / "self")
    (data / "parent").symlink_to(act.project)
    linked.put("data/gone/x", b"held")
    result = act.run("u", "--follow", "--exclude", "parent/aux_data", "--exclude", "parent/[!d]*", "data", status=8)
    for text in ("'link/up/'", "'link/near/far/'", "'link/deep/far/'", "'self'", "'parent/data/'",
                 "leads back to itself",
                 "cannot follow the link 'gone': No such file"):
        assert text in result.err, (text, result.err)
    held = there(linked)
    assert {"f", "link/a", "link/near/b", "gone/x"} <= held and not any("up/" in name or "far" in name for name in held)
    linked.put("data/extra", b"x")
    loops = [word for name in ("up/", "far/", "self", "parent") for word in ("--exclude", name)]
    act.run("u", "--follow", *loops, "--exclude", "/gone", "--delete", "-y", "data")
    assert "gone/x" in there(linked) and "extra" not in there(linked)


def test_folders_that_are_reached_by_too_many_ways(act):
    """Each of five folders has twelve links to the next one: 12^5 ways lead to the last one."""
    web = act.project.parent / "web"
    for i in range(6):
        (web / str(i)).mkdir(parents=True)
        for link in "abcdefghijkl" if i < 5 else "":
            (web / str(i) / link).symlink_to(web / str(i + 1))
    act.write("data/f", "f")
    (act.project / "data/web").symlink_to(web / "0")
    result = act.run("u", "--follow", "--dry-run", "data", status=8)
    assert "too many links lead on behind links" in result.err, result.err


def test_special_files_are_named_once_and_cost_nothing(act, linked):
    data, disk = act.project / "data", act.project.parent / "disk"
    (disk / "more").write_text("stays")
    act.run("u", "--follow", "data")
    (disk / "deep/b").unlink()
    (disk / "deep").rmdir()
    for place in (data / "f", disk / "deep"):
        place.unlink(missing_ok=True)
        os.mkfifo(place)
    (disk / "a").unlink()
    (disk / "a").symlink_to("/dev/null")
    linked.put("data/extra", b"x")
    before = linked.keys()
    result = act.run("u", "--follow", "--delete", "-y", "data", status=8)
    assert linked.keys() == before
    for name in ("f", "link/a", "link/deep"):
        assert result.err.rsplit("act: ", 1)[0].count(f"'{name}'") == 1, result.err
    assert "neither a file, nor a folder, nor a link" in result.err and "left out" not in result.err
    act.run("verify", "--follow", "data", status=8)
    act.run("d", "--overwrite", "data", status=8)
    assert (data / "f").is_fifo()


def test_a_followed_folder_with_nothing_in_it_empties_nothing(act, linked):
    act.run("u", "--follow", "data")
    disk = act.project.parent / "disk"
    (disk / "a").unlink()
    (disk / "deep/b").unlink()
    linked.put("data/extra", b"x")
    before = linked.keys()
    refusal = {"status": 2, "match": "nothing in 'link/'.*nothing was changed"}
    act.fail("u", "--follow", "--delete", "-y", "data", **refusal)
    (disk / "deep").rmdir()
    act.fail("u", "--follow", "--delete", "-y", "data", **refusal)
    assert linked.keys() == before
    act.run("u", "--follow", "--delete", "-y", "--exclude", "link/", "data")
    assert there(linked) == {"f", "link-z", "inside", "link/a", "link/deep/b"}
