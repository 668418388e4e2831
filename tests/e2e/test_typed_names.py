"""What 'a ls' prints can be typed: every verb takes a name exactly as it is, or refuses it, and never means another."""
import urllib.parse
import urllib.request

import pytest

from test_data import raw_put

AZURITE = "actaccount"
SIZES = {"odd": 7, "plain": 11}

# Names below data/ that a container can have, each with the one it must not be taken for.
LITERAL = [("foo//bar", "foo/bar"), ("/lead", "lead"), ("a///b", "a/b"), ("foo//sub/x", "foo/sub/x")]
# Those of which a request would mean the other one.
AMBIGUOUS = [("a/./b", "a/b"), ("./b", "b"), ("a/../b", "b"), ("dot.", "dot"), ("in./b", "in/b"), ("x\\y", "x/y")]
CONTAINERS = ["azure", "double"]
PLAIN = ["folder", "share"]  # no name there has anything odd in it

READ = [("cat",), ("du",), ("ls",), ("ls", "-l"), ("ls", "-r"), ("url",)]
CHANGE = [("rm", "-y")]
MOVE = [("d", "--overwrite"), ("u", "--overwrite"), ("verify",), ("verify", "--deep")]


def content(which):
    return which.encode().ljust(SIZES[which], b".")


@pytest.fixture
def two(act, stored):
    """Puts the odd one and the plain one, and a local file in the place of both."""
    def put(odd, plain):
        stored.put(f"data/{plain}", content("plain"))
        if stored.kind == "azure":
            if "\\" in odd and stored.service.account == AZURITE:
                pytest.skip("Azurite itself takes '\\' for '/'")
            raw_put(stored, f"files/data/{odd}", content("odd"))
        act.write(f"data/{plain}", "here")
        return stored
    return put


def check_untouched(act, stored, plain):
    assert stored.get(f"data/{plain}") == content("plain")
    assert (act.project / "data" / plain).read_bytes() == b"here"


@pytest.mark.parametrize("stored", CONTAINERS, indirect=True)
@pytest.mark.parametrize("odd, plain", LITERAL)
def test_what_is_listed_can_be_typed(act, two, odd, plain):
    stored = two(odd, plain)
    assert odd in act.run("ls", "-r", "data").out.splitlines()
    typed = f"data/{odd}"
    assert act.run("cat", typed).out.encode() == content("odd")
    assert act.run("du", "--bytes", typed).out.split()[0] == str(SIZES["odd"])
    assert f"{SIZES['odd']} " in act.run("ls", "-l", "--bytes", typed).out
    with urllib.request.urlopen(act.run("url", typed).out.strip(), timeout=300) as answer:
        assert answer.read() == content("odd")
    assert act.run("rm", "-y", "--dry-run", typed).out == f"{typed}\n"
    act.run("rm", "-y", typed)
    assert f"data/{odd}" not in stored.keys()
    check_untouched(act, stored, plain)


@pytest.mark.parametrize("stored", ["double"], indirect=True)
@pytest.mark.parametrize("odd, plain", LITERAL)
def test_no_file_here_has_such_a_name(act, two, odd, plain):
    stored = two(odd, plain)
    for words in MOVE:
        message = act.fail(*words, f"data/{odd}", status=2, match="no file on this machine")
        assert f"data/{odd}" in message
    check_untouched(act, stored, plain)
    assert stored.get(f"data/{odd}") == content("odd")


@pytest.mark.parametrize("stored", ["double"], indirect=True)
@pytest.mark.parametrize("odd, plain", AMBIGUOUS)
def test_what_a_service_would_take_for_another_is_refused(act, two, odd, plain):
    stored = two(odd, plain)
    for words in READ + CHANGE + MOVE:
        act.fail(*words, f"data/{odd}", status=(1, 2, 3), match=odd.replace("\\", "."))
    check_untouched(act, stored, plain)


@pytest.mark.parametrize("stored", PLAIN, indirect=True)
def test_where_there_are_no_such_names(act, two):
    """Each verb refuses one of each kind, and one verb all of them."""
    names = LITERAL + AMBIGUOUS[:3]
    for odd, plain in names:
        stored = two(odd, plain)
        verbs = READ + CHANGE + MOVE if (odd, plain) in (LITERAL[0], AMBIGUOUS[0]) else READ[:1]
        for words in verbs:
            act.fail(*words, f"data/{odd}", status=(1, 2, 3), match=odd)
    for _, plain in names:
        check_untouched(act, stored, plain)


@pytest.mark.parametrize("stored", CONTAINERS, indirect=True)
def test_folder_of_an_empty_name(act, two):
    """Of what lies in it and beside it, the first alone is meant."""
    stored = two("foo//bar", "foo/bar")
    assert sorted(act.run("ls", "data/foo").out.splitlines()) == ["/", "bar"]
    assert act.run("ls", "data/foo//").out == "bar\n"
    assert act.run("du", "--bytes", "data/foo//").out.split()[0] == str(SIZES["odd"])
    assert act.run("rm", "-y", "--dry-run", "data/foo//").out == "data/foo//bar\n"
    act.run("rm", "-y", "data/foo//")
    check_untouched(act, stored, "foo/bar")
    assert "data/foo//bar" not in stored.keys()


@pytest.mark.parametrize("stored", CONTAINERS, indirect=True)
@pytest.mark.parametrize("odd, plain", LITERAL + AMBIGUOUS)
def test_whole_folders_with_such_names(act, two, odd, plain):
    """What can be copied or removed is; of anything else the name is said, and what is wrong with it."""
    stored = two(odd, plain)
    result = act.run("d", "--overwrite", "data", status=8)
    assert odd in result.err.replace("\\\\", "\\") and "the name" in result.err, result.err
    assert (act.project / "data" / plain).read_bytes() == content("plain")
    is_literal = (odd, plain) in LITERAL
    result = act.run("rm", "-y", "data", status=0 if is_literal else 8)
    assert sorted(stored.keys()) == ([] if is_literal else [f"data/{odd}"]), result


@pytest.mark.parametrize("odd, plain", LITERAL)
def test_from_store_to_store(act, azure_double, odd, plain):
    double, target = azure_double.service, azure_double.container + "-to"
    double.create(target)
    act.account("target", account_name=double.account, account_key=double.key, container_name=target,
                endpoint=double.endpoint)
    act.cluster("target", account="target")
    azure_double.put(f"data/{odd}", content("odd"))
    azure_double.put(f"data/{plain}", content("plain"))
    act.run("-c", "target", "-f", "aml", "u", f"data/{odd}")
    assert list(double.list(target)) == [f"files/data/{odd}"]
    act.run("-c", "target", "-f", "aml", "u", "data")
    assert sorted(double.list(target)) == sorted([f"files/data/{odd}", f"files/data/{plain}"])
    act.run("-c", "target", "-f", "aml", "verify", "data")
    double.remove(target)


@pytest.mark.parametrize("stored", ["double"], indirect=True)
def test_what_cannot_have_the_name_is_named(act, stored):
    stored.put("data/d//b", b"x")
    stored.put("data/d/b", b"y")
    message = act.run("d", "data/d", status=8).err
    assert "'files/data/d//b': the name '/b' is absolute" in message


def test_logs_of_a_run(act):
    run = act.finish("echo", "said")
    assert act.run("cat", f"{run}:user_logs/std_log_process_0.txt").out == "said\n"
    for odd in ("user_logs//std_log_process_0.txt", "./user_logs/std_log_process_0.txt",
                "/user_logs/std_log_process_0.txt", "system_logs/../user_logs/std_log_process_0.txt"):
        for verb in ("cat", "ls", "du", "d"):
            act.fail(verb, f"{run}:{odd}", status=(1, 2, 3), match=odd.replace("..", "[.][.]"))


def test_words_that_lead_to_the_folder(act):
    """What comes before the name of the folder is a way to it, as on any command line."""
    act.write("data/sub/x", "x")
    act.run("u", "data")
    for word in ("./data/sub/x", ".//data/sub/x", f"{act.project}/data/sub/x", f"{act.project}//./data/sub/x"):
        assert act.run("cat", word).out == "x", word
    inside = act.project / "data/sub"
    for word in ("x", "./x", "../sub/x", "../../data/sub/x", "./../../data/sub/x"):
        assert act.run("cat", word, cwd=inside).out == "x", word
    assert act.run("ls", ".", cwd=inside).out == act.run("ls", "../sub/", cwd=inside).out == "x\n"


def test_url_encoding_of_odd_names(act, azure_double):
    azure_double.put("data/a//b", b"odd")
    assert "a//b" in urllib.parse.unquote(act.run("url", "data/a//b").out)


# ---- names that begin like ACT's own temporary ones

PART = f".act-part-{'0' * 16}-{'1' * 32}"
USERS = (".act-part-x", ".act-part-", f"{PART}x", "sub/.act-part-y", ".act-part-z/in")


def test_files_named_like_temporary_ones(act, stored):
    for name in USERS:
        act.write(f"data/{name}", name)
    assert act.run("verify", "data", status=8).out.count("missing") == len(USERS)
    act.run("u", "data")
    assert sorted(stored.keys()) == sorted(f"data/{name}" for name in USERS)
    assert sorted(act.run("ls", "-r", "data").out.splitlines()) == sorted(USERS)
    act.run("verify", "data")
    act.run("d", "data", cwd=act.project)
    for name in USERS:
        (act.project / "data" / name).unlink()
    act.run("d", "data")
    assert all((act.project / "data" / name).read_text() == name for name in USERS)
    (act.project / "data/.act-part-x").unlink()
    act.run("u", "-y", "--delete", "data")
    assert sorted(stored.keys()) == sorted(f"data/{name}" for name in USERS if name != ".act-part-x")
    stored.put("data/.act-part-new", b"x")
    act.run("d", "-y", "--delete", "--overwrite", "data")
    assert (act.project / "data/.act-part-new").exists()
    act.run("rm", "-y", "data")
    assert not stored.keys()


def test_code_named_like_temporary_files(act):
    act.write(".act-part-x", "x")
    act.write("sub/.act-part-x", "x")
    act.write(f"sub/{PART}", "x")
    act.write(f"sub/{PART}.map", "x")
    run = act.submit("sh", "-c", "ls -a sub")
    act.run("wait", run)
    said = act.run("logs", run).out.splitlines()
    assert ".act-part-x" in said and not [name for name in said if name.startswith(PART)]
