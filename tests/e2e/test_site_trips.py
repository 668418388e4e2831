"""How often a verb waits for an answer of the login node: as often for many ranks as for one."""
import re

import pytest

RANKS = 12  # all GPUs of the bed
LONG = 2000  # lines, more than come with a list


def trips(act, *words, status=0):
    """The names of the requests that one command waited for, but for the one that opens the connection."""
    said = act.run(*words, env={"ACT_TRACE": "site"}, status=status).err
    names = re.findall(r" site: \S+ (\S+)", said)
    return [name for name in names if name != "open"]


@pytest.fixture
def many(behind_ssh):
    """Its runs may have all GPUs of the bed."""
    behind_ssh.configure(slurm={"login": "lab"}, gpu_per_node=4)
    return behind_ssh


def failed(lab, script=""):
    run = lab.shell(f'echo "rank $RANK says so"; {script} touch {lab.root}/said.$RANK; '
                    f"until [ $(ls {lab.root}/said.* | wc -l) = {RANKS} ]; do sleep 0.1; done; "
                    '[ $RANK = 3 ] && echo "RuntimeError: boom" >&2 && exit 3; sleep 300', n=RANKS)
    lab.act.run("wait", run, status=3)
    return run


def look(run):
    """The verbs that look at one run."""
    return [("q", run), ("logs", run), ("logs", "--all", run), ("grep", "says", run), ("report", run), ("why", run),
            ("files", run), ("ls", "-r", f"{run}:")]


def assert_few(act, most, verbs):
    asked = {words: trips(act, *words) for words in verbs}
    assert {words: names for words, names in asked.items() if len(names) > most} == {}


def test_of_a_run_that_has_failed(act, many):
    run = failed(many)
    assert_few(act, 2, look(run))
    assert act.run("grep", "^rank .* says so$", run).out.count("says so") == RANKS
    lines = act.run("logs", "--all", run).out.splitlines()
    assert [line for line in lines if "says so" in line] == [f"[{n:2}] rank {n} says so" for n in range(RANKS)]
    assert trips(act, "wait", run, status=3) == trips(act, "q") == []  # its end is known here


def test_of_logs_that_do_not_come_with_the_list(act, many):
    run = failed(many, f"seq {LONG} | sed 's/$/ and more words, so that the logs are long/';")
    assert_few(act, 3, look(run))
    for rank in range(RANKS):
        assert act.run("logs", "--rank", rank, run).out == many.rank_text(run, rank)
    found = act.run("grep", "^1999 and", run).out
    assert found.count("1999 and more words") == RANKS


def test_of_a_run_that_runs(act, many):
    run = many.shell('echo "rank $RANK says so"; sleep 300', n=RANKS)
    act.until(lambda: all("says so" in many.rank_text(run, rank) for rank in range(RANKS)), "all ranks speak")
    assert_few(act, 6, look(run))
    assert_few(act, 2, [("q",)])
    assert_few(act, 8, [("top", "--once")])


def test_of_a_submit(act, many):
    many.until_over(many.submit("true"))
    assert_few(act, 7, [("-c", "lab", "-n", 1, "submit", "true")])
