"""How often a verb waits for answers of the login node: as often for many ranks, and many runs, as for one."""
import re

import pytest

import sshd
from test_at_the_node import until_said
from test_sweep import grid

RANKS = 12  # all GPUs of the bed
LONG = 2000  # lines, more than come with a list


def trips(act, *words, status=0):
    """What one command waited for, each time the names of the requests that were under way together."""
    said = act.run(*words, env={"ACT_TRACE": "site"}, status=status).err
    return re.findall(r" site: \S+ (\S+)", said)


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
    assert_few(act, 3, look(run))
    assert_few(act, 1, [("q",)])
    assert_few(act, 2, [("top", "--once")])
    assert_few(act, 3, [("nodes", run)])


def test_of_a_submit(act, many):
    many.until_over(many.submit("true"))
    assert_few(act, 4, [("-c", "lab", "-n", 1, "submit", "true")])
    act.write("more.txt", "a package that is new there, but for the other files")
    asked = trips(act, "-c", "lab", "-n", 1, "submit", "true")
    assert len(asked) <= 5 and "parts+create" in asked, asked


def test_of_many_runs(act, many):
    """As often for twelve as for two: more come into one window of requests."""
    act.write("train.sh", 'echo "step 1 loss $1"; sleep 300\n')
    words = ("sweep", "--grid", grid("loss", 12), "--", "bash", "train.sh", "{loss}")
    many.until_over(many.submit("true"))
    assert_few(act, 8, [("-c", "lab", "-n", 1, *words)])
    runs = [run["id"] for run in act.run("q", "--json", "--max", 0).json["runs"] if run["tags"]]
    for run in runs:
        many.until_text(run, "loss")
    assert_few(act, 2, [("sweep", "--show", "@", "--metric", "loss", "--min"), ("top", "--once")])
    few, all_of_them = (len(trips(act, "q", *some)) for some in (runs[:2], runs))
    assert all_of_them == few <= 3
    board = act.run("sweep", "--show", "@", "--metric", "loss", "--min", "--json").json["runs"]
    assert [run["parameters"]["loss"] for run in board] == [str(n) for n in range(12)]
    asked = trips(act, "abort", "--all", "-y")
    assert asked[:3] == ["states+run"] * 2 + ["run+run"], "the second request tells all of them to end"
    assert_few(act, 3, [("rm", "-y", *(f"{run}:" for run in runs))])
    assert not [run for run in runs if many.run_dir(run).exists()]


def test_of_several_that_are_named(act, many):
    """One request asks about all of them, and another one brings their logs."""
    runs = [many.submit("echo", "step 1 loss 2") for _ in range(4)]
    for run in runs:
        many.until_over(run)
    assert_few(act, 3, [("plot", "loss", *runs), ("report", *runs)])


def test_of_a_wait_for_several(act, many):
    runs = [many.submit("true") for _ in range(4)]
    for run in runs:
        many.until_over(run)
    asked = trips(act, "wait", *runs)
    assert 0 < len(asked) <= 2, asked


@pytest.fixture
def far(act, many):
    """The same by way of a relay, with connections that are not shared; nobody asks anything yet."""
    with sshd.Relay(many.server.port) as relay:
        act.env["ACT_SSH"] += relay.before(many.server)
        yield many, relay
        relay.is_away = False


def attempts(act, relay, *words):
    """How often a command that fails has tried to connect."""
    before = relay.taken
    act.run("--no-share", *words, status=5)
    return relay.taken - before


def test_of_several_while_the_login_node_is_away(act, far):
    """As many attempts as for one; only then it is said that nobody can tell."""
    lab, relay = far
    runs = [lab.submit("sleep", "300") for _ in range(4)]
    relay.cut(is_away=True)
    lab.server.end_shared()
    for verb in (("q",), ("plot", "loss"), ("report",)):
        one, all_of_them = (attempts(act, relay, *verb, *some) for some in (runs[:1], runs))
        assert all_of_them == one > 0, verb


def test_of_a_wait_that_begins_while_the_login_node_is_away(act, far):
    """What was said of all then is said once, and they are asked about together when it answers."""
    lab, relay = far
    runs = [lab.submit("true") for _ in range(4)]
    for run in runs:
        lab.until_over(run)
    relay.cut(is_away=True)
    lab.server.end_shared()
    process = act.start("--no-share", "wait", *runs, env={"ACT_TRACE": "site"})
    until_said(process, b"this goes on until it answers")
    relay.is_away = False
    said = process.communicate()[1].decode()
    assert process.returncode == 0
    assert (said.count("goes on until it answers"), said.count("it answers again")) == (0, 1), said
    assert len(re.findall(r" site: \S+ \S+", said.split("it answers again")[1])) <= 1, said


def test_of_a_prune(act, many):
    runs = [many.submit("true") for _ in range(4)]
    for run in runs:
        many.until_over(run)
    words = ("-c", "lab", "prune", "--older", "1s")
    act.until(lambda: all(run in act.run(*words, "--dry-run", "--json").out for run in runs), "they are old")
    asked = trips(act, *words, "--dry-run")
    assert len(asked) <= 6 and asked[0] == "run", "one request measures all runs"
    asked = trips(act, *words, "-y")
    assert "remove+remove+remove+remove" in asked
    assert not [run for run in runs if many.run_dir(run).exists()]


def test_whether_commands_share_a_connection(act, many):
    many.until_over(many.submit("true"))
    before = many.server.logins()
    said = act.run("-c", "lab", "doctor", status=None).out
    assert "commands share one, which ends 5 minutes after the last of them" in said
    assert many.server.logins() == before
    said = act.run("-c", "lab", "--no-share", "doctor", status=None).out
    assert "each command makes its own (--no-share)" in said
    assert many.server.logins() == before + 1
