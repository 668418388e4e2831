"""A run for each combination of values: submitted once whatever happens, and compared."""
import json
import os
import random
import time

import pytest

TRAIN = ("import sys\nlr, layers = float(sys.argv[1]), int(sys.argv[2])\n"
         "for step in range(1, 5):\n    print(f'step {step} loss {lr * layers + 1 / step:.4f} acc {layers / 10}')\n")
GRID = ("--grid", "lr=0.1,0.2", "--grid", "layers=2,4")
COMMAND = ("--", "python3", "train.py", "{lr}", "{layers}")


def sweep(act, *words, before=("-n", 1), **options):
    """The id of a sweep, which is all that is on stdout."""
    found = act.run(*before, "sweep", *words, **options).out
    assert len(found) == 9 and found.endswith("\n"), found
    return found.strip()


def runs_of(act, sweep_id):
    """In the order of the points."""
    found = act.run("q", "--json", "--max", 0, "--tag", f"sweep={sweep_id}").json["runs"]
    return sorted(found, key=lambda run: int(run["name"].rpartition(".")[2]))


def values_of(run, *names):
    return tuple(run["tags"][name] for name in names)


@pytest.fixture
def train(act):
    act.write("train.py", TRAIN)
    return act


# ---- a sweep from its submission to its comparison


@pytest.mark.smoke
def test_sweep(train):
    act = train
    result = act.run("-n", 1, "sweep", "--tag", "who=me", *GRID, *COMMAND)
    s = result.out.strip()
    assert f"'a wait {s}'" in result.err and "4 runs submitted" in result.err
    runs = runs_of(act, s)
    assert [values_of(run, "lr", "layers", "who") for run in runs] == [
        ("0.1", "2", "me"), ("0.1", "4", "me"), ("0.2", "2", "me"), ("0.2", "4", "me")]
    assert [run["name"] for run in runs] == [f"sweep-{s}.{n}" for n in (1, 2, 3, 4)]
    assert len({run["id"] for run in runs}) == 4 and len({run["package"] for run in runs}) == 1
    assert runs[3]["command"] == ["python3", "train.py", "0.2", "4"]
    assert act.run("wait", "--tag", f"sweep={s}").status == 0
    assert act.lines(runs[1]["id"])[0] == "step 1 loss 1.4000 acc 0.4"

    board = act.run("sweep", "--show", "@", "--metric", "loss", "--min", "--json").json
    assert (board["sweep"], board["metric"], board["by"], board["at"]) == (s, "loss", "min", "step")
    assert [run["id"] for run in board["runs"]] == [runs[i]["id"] for i in (0, 1, 2, 3)]
    assert board["runs"][0] == {"id": runs[0]["id"], "name": f"sweep-{s}.1", "state": "Completed",
                                "age_s": board["runs"][0]["age_s"], "parameters": {"lr": "0.1", "layers": "2"},
                                "best": 0.45, "best_at": 4.0, "last": 0.45}
    bare = act.run("sweep", "--show", "@", "--json").json["runs"]
    assert {(r["best"], r["best_at"], r["last"]) for r in bare} == {(None, None, None)}
    rows = [line.split() for line in act.run("sweep", "--show", s[:5], "--metric", "LOSS", "--max").out.splitlines()]
    assert rows[0] == ["ID", "NAME", "layers", "lr", "STATUS", "AGE", "MAX", "AT", "LAST"]
    assert [row[0] for row in rows[1:]] == [runs[i]["id"] for i in (3, 1, 2, 0)]
    plain = act.run("sweep", "--show", s).out.splitlines()
    assert [row.split()[0] for row in plain[1:]] == [run["id"] for run in runs]
    csv = act.run("sweep", "--show", s, "--metric", "acc", "--max", "--csv").out.splitlines()
    assert csv[0] == "ID,NAME,layers,lr,STATUS,AGE,MAX,AT,LAST"
    assert csv[1].startswith(f"{runs[1]['id']},sweep-{s}.2,4,0.1,Completed,") and csv[1].endswith(",0.4,1,0.4")
    act.fail("sweep", "--show", s, "--metric", "los", "--min", status=3,
             match="no 'los' in the log of sweep .*; did you mean 'loss'\\? it has loss, acc")


def test_numbers_that_are_missing_or_none_come_last(act):
    act.write("train.py", "import sys\nprint({'a': 'step 1 loss 3', 'b': 'step 1 loss 2\\nstep 2 loss nan', "
                          "'c': 'no number', 'd': 'step 1 loss 1\\nstep 2 loss inf\\nstep 3 loss 2'}[sys.argv[1]])\n")
    s = sweep(act, "--grid", "case=c,b,a,d", "--", "python3", "train.py", "{case}")
    act.run("wait", "--tag", f"sweep={s}")
    board = act.run("sweep", "--show", s, "--metric", "loss", "--min", "--json").json["runs"]
    assert [(r["parameters"]["case"], r["best"], r["last"]) for r in board] == [
        ("d", 1.0, 2.0), ("a", 3.0, 3.0), ("b", 2.0, None), ("c", None, None)]
    table = act.run("sweep", "--show", s, "--metric", "loss", "--min").out.splitlines()
    assert table[3].split()[-1] == "nan" and table[4].split()[-3:] == ["-", "-", "-"]
    act.fail("sweep", "--show", s, "--metric", "x", "--min", status=3, match="it has loss$")


def test_epochs_are_not_shown_as_steps(act):
    act.write("train.py", "import sys\nprint(f'Epoch 1:  50%|##  | 2/4 [00:01<00:01, 2.0it/s, loss={sys.argv[1]}]')\n")
    s = sweep(act, "--grid", "a=1,2", "--", "python3", "train.py", "{a}")
    act.run("wait", "--tag", f"sweep={s}")
    show = ("sweep", "--show", s, "--metric", "loss", "--min")
    assert act.run(*show).out.splitlines()[0].split()[-3:] == ["MIN", "EPOCH", "LAST"]
    board = act.run(*show, "--json").json
    assert board["at"] == "epoch" and board["runs"][0]["best_at"] == 1.5


def test_words_and_braces(act):
    s = sweep(act, "--grid", "a=x y,ä;$z", "--grid", "b.1=1", "--", "echo", "{{{a}}}={b.1}", "${{HOME}}", "{a}{a}")
    act.run("wait", "--tag", f"sweep={s}")
    assert [act.lines(run["id"]) for run in runs_of(act, s)] == [
        ["{x y}=1 ${HOME} x yx y"], ["{ä;$z}=1 ${HOME} ä;$zä;$z"]]


def test_dry_run(act):
    before = act.snapshot(act.home)
    result = act.run("-n", 1, "sweep", "--dry-run", "--grid", "a=x y,z", "--grid", "n=1,2", "--", "echo", "{a}", "{n}")
    assert result.out.splitlines() == ["echo 'x y' 1", "echo 'x y' 2", "echo z 1", "echo z 2"]
    assert "would be 4 runs on aml" in result.err
    assert act.run("q", "--json").json["runs"] == [] and act.snapshot(act.home) == before
    said = act.run("-n", 1, "sweep", "--dry-run", "--json", "--grid", "a=1,2", "echo", "{a}").json
    assert said == {"version": 1, "sweep": said["sweep"], "cluster": "aml", "points": 2, "kept": 0, "submitted": 0,
                    "parameters": {"a": ["1", "2"]}}


# ---- what is refused


@pytest.mark.parametrize("words, match", [
    (("echo", "{a}"), "a sweep needs a grid: --grid lr="),
    (("--grid", "a=1"), "no command to run; try: a sweep"),
    (("--grid", "a=1", "--", "echo", "x"), r"grid 'a' is not used: the command has no \{a\}"),
    (("--grid", "a=1", "--", "echo", "{a}", "{b}"), "'{b}': there is no grid 'b', only a; write '{{b}}'"),
    (("--grid", "a=1", "--grid", "a=2", "--", "echo", "{a}"), "grid 'a' is given twice"),
    (("--grid", "a=1,2,1", "--", "echo", "{a}"), "grid 'a' has the value '1' twice"),
    (("--grid", "a=1,,2", "--", "echo", "{a}"), "value 2 is empty"),
    (("--grid", "a=", "--", "echo", "{a}"), "value 1 is empty"),
    (("--grid", "a", "--", "echo", "{a}"), "is not a grid: it is NAME=VALUE,VALUE"),
    (("--grid", "=1", "--", "echo", "{a}"), "'' is not a name"),
    (("--grid", "a b=1", "--", "echo", "{a}"), "'a b' is not a name"),
    (("--grid", "sweep=1", "--", "echo", "{sweep}"), "'sweep' is the tag of the sweep itself"),
    (("--grid", "a=1\n", "--", "echo", "{a}"), "the value of tag 'a' must be UTF-8 without control characters"),
    (("--grid", "a=1", "--", "echo", "{a"),
     r"'\{a': a '\{' that is not part of a placeholder such as \{lr\}; write '\{\{'"),
    (("--grid", "a=1", "--", "echo", "{a}}"), r"a '}' that is not part of a placeholder"),
    (("--grid", "a=1", "--", "echo", "{}", "{a}"), "'{}': a '{' that is not part"),
    (("--grid", "a=1", "--tag", "a=2", "--", "echo", "{a}"), "the tag 'a' is that of the grid"),
    (("--grid", "a=1", "--tag", "sweep=2", "--", "echo", "{a}"), "the tag 'sweep' is the sweep's own"),
    (("--grid", "a=1", "--name", "n" * 57, "--", "echo", "{a}"), "has no room for the numbers of the runs"),
    (("--grid", "a=1", "--name", "a b", "--", "echo", "{a}"), "'a b' is not a name of a run"),
    (("--grid", "a=1", "--max-parallel", "0", "--", "echo", "{a}"), "--max-parallel 0 would run nothing"),
    (("--grid", "a=1", "--max-parallel", "x", "--", "echo", "{a}"), "--max-parallel takes a number, not 'x'"),
    (("--grid", "a=1", "--metric", "loss", "--", "echo", "{a}"), "go with --show SWEEP"),
    (("--grid", "a=1", "--min", "--", "echo", "{a}"), "go with --show SWEEP"),
    (("--show", "@", "--grid", "a=1"), "--show looks at a sweep, and --grid is for a new one"),
    (("--show", "@", "--retry", "1"), "--show looks at a sweep, and --retry is for a new one"),
    (("--show", "@", "--retry-on", "ecc"), "and --retry-on is for a new one"),
    (("--show", "@", "--use-bad-nodes"), "and --use-bad-nodes is for a new one"),
    (("--show", "@", "--hang", "5m"), "and --hang is for a new one"),
    (("--grid", "a=1", "--retry-on", "ecc", "--", "echo", "{a}"), "nothing says how often: add --retry N"),
    (("--grid", "a=1", "--retry", "1", "--retry-on", "eccc", "--", "echo", "{a}"), "did you mean 'ecc'"),
    (("--grid", "a=1", "--retry", "101", "--", "echo", "{a}"), "a whole number from 0 to 100"),
    (("--grid", "a=1", "--hang", "5", "--", "echo", "{a}"), "--hang"),
    (("--show", "@", "echo"), "--show looks at a sweep: there cannot be a command, 'echo'"),
    (("--show", "@", "--min"), "--min of which number\\? add --metric loss"),
    (("--show", "@", "--metric", "loss"), "needs either --min or --max"),
    (("--show", "@", "--metric", "loss", "--min", "--max"), "needs either --min or --max"),
    (("--show", "@", "--csv", "--json"), "--csv and --json exclude each other"),
])
def test_bad_input(act, words, match):
    before = act.snapshot(act.home)
    act.fail("sweep", *words, status=2, match=match)
    assert act.snapshot(act.home) == before, "nothing is packed or submitted"


def test_no_such_sweep(act):
    act.fail("sweep", "--show", "@", status=3, match="there are no sweeps yet")
    act.fail("sweep", "--show", "abc", status=3, match="no sweep 'abc'")
    one = sweep(act, "--grid", "a=1", "--", "true", "{a}")
    act.run("wait", "--tag", f"sweep={one}")
    assert act.run("sweep", "--show", "@", "--json").json["sweep"] == one
    act.fail("sweep", "--show", "", status=3, match="no sweep ''")
    act.fail("sweep", "--show", "seed", status=3, match="no sweep 'seed'")
    two = sweep(act, "--name", "seeds", "--grid", "a=1,2", "--", "true", "{a}")
    assert act.run("sweep", "--show", "seeds", "--json").json["sweep"] == two
    again = act.run("-n", 1, "sweep", "--name", "seeds", "--grid", "a=3", "--", "true", "{a}")
    three = again.out.strip()
    assert f"'a wait {three}'" in again.err # of the name it would be refused
    act.fail("sweep", "--show", "seeds", status=2, match=f"'seeds' could be any of 2 sweeps: {three}, {two}")
    act.fail("sweep", "--show", "@", "--metric", "loss", "--min", status=3,
             match="the log of sweep .* has no number with a name")


def test_a_command_that_the_package_lacks(act):
    act.fail("-n", 1, "sweep", "--grid", "a=1,2", "--", "python3", "none.py", "{a}", status=(1, 2, 3), match="none.py")
    assert act.run("q", "--json").json["runs"] == []


def grid(name, n):
    return f"{name}=" + ",".join(map(str, range(n)))


def test_many_runs_are_asked_about(act):
    hundred = ("--grid", grid("a", 101), "--", "true", "{a}")
    act.fail("-n", 1, "sweep", *hundred, status=2,
             match="Submit 101 runs\\? Without a terminal nobody can answer: add -y")
    shown = act.on_terminal("-n", "1", "sweep", *hundred, typed=b"n\n")
    assert b"Submit 101 runs? [y/N]" in shown and b"not confirmed: nothing was changed" in shown
    assert act.run("q", "--json").json["runs"] == []
    million = ("--grid", grid("a", 1000), "--grid", grid("b", 1000), "--", "true", "{a}", "{b}")
    act.fail("sweep", *million, status=2, match="Submit 1000000 runs\\?")
    more = ("--grid", grid("a", 1000), "--grid", grid("b", 1001), "--", "true", "{a}", "{b}")
    act.fail("sweep", "-y", *more, status=2, match="these grids are 1.001e\\+06 runs; a sweep has at most 1000000")
    act.fail("sweep", "-y", *(w for n in range(40) for w in ("--grid", grid(f"g{n}", 10))), "--", "true", status=2,
             match="these grids are 1e\\+40 runs")


# ---- once, whatever happens


def test_same_command_goes_on(train):
    act = train
    s = sweep(act, *GRID, *COMMAND)
    again = act.run("-n", 1, "sweep", *GRID, *COMMAND)
    assert again.out.strip() == s and "all 4 runs of this sweep were submitted before" in again.err
    assert len(runs_of(act, s)) == 4
    named = sweep(act, "--name", "two", *GRID, *COMMAND)
    assert named != s and [run["name"] for run in runs_of(act, named)] == ["two.1", "two.2", "two.3", "two.4"]
    assert sweep(act, *GRID[:3], "layers=4,2", *COMMAND) != s
    act.write("other.py", "1")
    assert sweep(act, *GRID, *COMMAND) not in (s, named), "other code"
    for one in act.run("q", "--json", "--max", 0).json["runs"]:
        act.run("wait", one["id"])


def test_killed_anywhere_nothing_is_doubled(act):
    """Each point runs once, however often and wherever the program is killed meanwhile."""
    done = act.scratch / "done"
    done.mkdir()
    act.write("point.sh", f'mktemp "{done}/$1.XXXXXX"\n')
    words = ("--grid", grid("n", 8), "--", "sh", "point.sh", "{n}")
    for seed in range(12):
        process = act.start("-n", 1, "sweep", *words)
        time.sleep(random.Random(seed).uniform(0.05, 1.2))  # anywhere: that is what is tested
        process.kill()
        process.communicate()
    s = sweep(act, *words)
    runs = runs_of(act, s)
    assert [run["tags"]["n"] for run in runs] == [str(n) for n in range(8)]
    act.run("wait", "--tag", f"sweep={s}")
    assert sorted(path.name.split(".")[0] for path in done.iterdir()) == [str(n) for n in range(8)]


@pytest.mark.parametrize("at", ["ledger", "folder", "record"])
def test_killed_at_a_place(act, at):
    """Killed when the third run is in the ledger, has a folder, or is written down as submitted."""
    words = ("--grid", grid("n", 5), "--", "true", "{n}")
    process = act.start("-n", 1, "sweep", *words)

    def come_so_far():
        if at == "folder":
            return len(list((act.home / "runs").glob("*"))) >= 3
        records = list((act.home / "sweeps").glob("*.json"))
        record = json.loads(records[0].read_text()) if records else {"done": 0, "step": 0}
        return record["done"] >= 3 or (at == "ledger" and record["done"] == 2 and record["step"] == 1)

    act.until(come_so_far, at)
    process.kill()
    process.communicate()
    s = sweep(act, *words)
    assert [run["tags"]["n"] for run in runs_of(act, s)] == [str(n) for n in range(5)]
    act.run("wait", "--tag", f"sweep={s}")


def test_damaged_record(act):
    words = ("--grid", "a=1", "--", "true", "{a}")
    s = sweep(act, *words)
    act.run("wait", "--tag", f"sweep={s}")
    record = act.home / f"sweeps/{s}.json"
    record.write_text('{"version": 1, "done": 7}')
    act.fail("-n", 1, "sweep", *words, match=f"is damaged: .*'a q --tag sweep={s}'")
    assert len(runs_of(act, s)) == 1


def test_at_most_so_many_at_once(act):
    act.write("point.sh", 'echo up; until [ -e "$1" ]; do sleep 0.02; done\n')
    gates = act.scratch / "gates"
    gates.mkdir()
    process = act.start("-n", 1, "sweep", "--max-parallel", "2", "--grid", grid("n", 4), "--", "sh", "point.sh",
                        f"{gates}/{{n}}")

    def states():
        return {run["tags"]["n"]: run["state"] for run in act.run("q", "--json").json["runs"]}

    act.until(lambda: states() == {"0": "Running", "1": "Running"}, "two run")
    assert process.poll() is None and len(states()) == 2
    (gates / "1").touch()
    act.until(lambda: states() == {"0": "Running", "1": "Completed", "2": "Running"}, "the third one")
    assert process.poll() is None, "it waits for room"
    for n in range(4):
        (gates / str(n)).touch()
    out, _ = process.communicate()
    assert process.returncode == 0
    act.run("wait", "--tag", f"sweep={out.decode().strip()}")


def test_the_table_tells_commands_apart(act):
    """What differs stands at the ends of the commands, which a narrow terminal has no room for."""
    act.run("-n", 1, "sweep", "--grid", "lr=0.1,0.2", "--", "true", "with many words " * 5, "--lr", "{lr}")
    shown = act.on_terminal("q", columns=100)
    assert all(f"--lr 0.{i}\r\n".encode() in shown for i in (1, 2)), shown


def test_waiting_for_room_is_drawn(act):
    act.write("point.sh", 'until [ -e "$1" ]; do sleep 0.02; done\n')
    gate = act.scratch / "gate"
    terminal, fd = os.openpty()
    process = act.start("-n", 1, "sweep", "--max-parallel", 1, "--grid", grid("n", 3), "--", "sh", "point.sh", gate,
                        "{n}", stderr=fd)
    os.close(fd)
    shown = b""
    while b"] 1/3 runs" not in shown:
        shown += os.read(terminal, 4096)
    assert b"submitting 33% [" in shown
    gate.touch()
    out, _ = process.communicate()
    os.close(terminal)
    assert process.returncode == 0 and act.run("wait", out.decode().strip()).status == 0


# ---- each run by itself is tried again, or ended

TIMEOUT = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)"
ONCE = f"[ $ACT_ATTEMPT -gt $1 ] && exit 0; echo '{TIMEOUT}'; exit 3\n"


def test_each_is_tried_again(act):
    act.env["ACT_RETRY_PAUSE"] = "0"
    act.write("point.sh", ONCE)
    s = sweep(act, "--retry", "1", "--retry-on", "nccl_timeout", "--grid", "fails=0,1,2", "--", "sh", "point.sh",
              "{fails}")
    act.run("wait", "--tag", f"sweep={s}", status=3)
    runs = runs_of(act, s)
    assert [(run["state"], run["attempt"]) for run in runs] == [("Completed", 1), ("Completed", 2), ("Failed", 2)]
    assert act.run("resubmit", "--dry-run", runs[2]["id"]).json["retry"] == {"times": 1, "on": ["nccl_timeout"]}


def test_one_hangs(act):
    s = sweep(act, "--hang", "2s", "--grid", "n=0,300", "--", "sleep", "{n}")
    act.run("wait", "--tag", f"sweep={s}", status=143)
    runs = runs_of(act, s)
    assert [run["state"] for run in runs] == ["Completed", "Failed"]
    assert "hang" in act.run("why", runs[1]["id"]).out


# ---- by their tag


def test_wait_abort_report_by_tag(train):
    act = train
    act.write("forever.sh", "echo step 1 loss $1; sleep 300\n")
    s = sweep(act, "--grid", "n=1,2", "--", "sh", "forever.sh", "{n}")
    act.fail("wait", "--tag", f"sweep={s}", "--timeout", "1s", status=125, match="after 1 s 0 of 2 runs have ended")
    assert act.run("abort", "-y", "--tag", f"sweep={s}").status == 0
    assert act.run("wait", "--tag", f"sweep={s}", status=143).status == 143
    page = act.run("report", "--tag", f"sweep={s}", "--metric", "loss", "--min").out
    ids = [run["id"] for run in runs_of(act, s)]
    assert "<h1>2 runs</h1>" in page and all(run in page for run in ids) and "<h2>Best loss</h2>" in page
    plot = act.run("plot", "loss", "--csv", "--tag", f"sweep={s}").out.splitlines()
    assert sorted(plot[1:]) == sorted([f"{ids[0]},1,1", f"{ids[1]},1,2"])
    named = act.run("report", s, "--metric", "loss", "--min").out
    assert "<h1>2 runs</h1>" in named and all(run in named for run in ids), "a word that is a sweep means its runs"
    act.fail("wait", "--tag", "sweep=none", status=125, match="no run of yours is tagged so")
    act.fail("report", "--tag", "sweep=none", status=3, match="no run of yours is tagged so")
    said = act.run("wait", "@", status=143).err  # the run submitted last
    assert any(f"{ids[i]} (sweep-{s}.{i + 1})  Canceled: " in said for i in range(2)), said
    act.fail("wait", "--tag", f"sweep={s}", ids[0], status=125, match="--tag say which runs")


def test_by_the_name_that_a_list_shows(train):
    """Wherever several runs are taken, the name of a sweep, or its id, stands for its runs."""
    act = train
    act.write("gate.sh", f'until [ -e "{act.scratch}/gate" ]; do sleep 0.1; done; echo "step 1 loss $1"\n')
    s = sweep(act, "--name", "s1", "--grid", "n=1,2", "--", "sh", "gate.sh", "{n}")
    ids = [run["id"] for run in runs_of(act, s)]
    for name in ("s1", s, s[:5], "@"):
        assert [run["id"] for run in runs_of(act, name)] == ids, name
    for words in (("wait", "--timeout", "1s", "s1"), ("wait", "--timeout", "1s", "--tag", "sweep=s1")):
        act.fail(*words, status=125, match="after 1 s 0 of 2 runs have ended")
    act.fail("abort", "s1", status=2, match="Abort the 2 runs of a sweep\\? Without a terminal nobody can answer")
    act.fail("logs", "s1", status=3, match="it is a sweep: name one of its runs, such as 's1.1'")
    act.until(lambda: {run["state"] for run in runs_of(act, s)} == {"Running"}, "both run")
    assert "queued" not in act.run("sweep", "--show", "s1").err
    (act.scratch / "gate").touch()
    assert act.run("wait", "s1").status == 0
    shown = act.run("sweep", "--show", "s1").out.splitlines()
    assert [line.split()[1] for line in shown] == ["NAME", "s1.1", "s1.2"]
    assert {line.split(":")[0] for line in act.run("grep", "loss", "s1").out.splitlines()} == set(ids)
    assert len(act.run("plot", "loss", "--csv", "s1").out.splitlines()) == 3
    assert len(act.run("resubmit", "s1").out.splitlines()) == 2
    again = [run["id"] for run in runs_of(act, s)]
    assert len(again) == 4 and act.run("wait", s).status == 0
    assert act.run("abort", "-y", "s1").err.count("it had ended already") == 4


def test_a_name_of_several_is_refused(act):
    """Each verb says so, and lists the ids: none takes the newest."""
    ids = []
    for value in ("1", "2"):
        ids.append(sweep(act, "--name", "twice", "--grid", f"a={value}", "--", "true", "{a}"))
        act.run("wait", ids[-1])
    several = f"'twice' could be any of 2 sweeps: {ids[1]}, {ids[0]}"
    for verb in ("q", "abort", "report"):
        act.fail(verb, "twice", status=2, match=several)
        act.fail(verb, "--tag", "sweep=twice", status=2, match=several)
    act.fail("resubmit", "twice", status=2, match=several)
    act.fail("wait", "twice", status=125, match=several)
    act.fail("wait", "--tag", "sweep=twice", status=125, match=several)
    assert [run["name"] for run in act.run("q", "--json", ids[0]).json["runs"]] == ["twice.1"]
    run = act.submit("--name", "twice", "--", "true")
    act.fail("q", "twice", status=2, match="'twice' could be a run or a sweep: name it by its id; "
             f"1 run: {run}; 2 sweeps: {ids[1]}, {ids[0]}")
    act.run("wait", run)


def test_a_sweep_whose_id_begins_another(act):
    """A tag that the user gave: its whole value comes before the beginnings of others."""
    s = sweep(act, "--grid", "a=1", "--", "true", "{a}")
    run = act.submit("--tag", f"sweep={s[0]}", "--", "true")
    assert [found["id"] for found in act.run("q", "--json", "--tag", f"sweep={s[0]}").json["runs"]] == [run]
    act.run("wait", run, s)


def test_a_sweep_that_waits_says_so(train):
    act = train
    act.write("gate.sh", f'until [ -e "{act.scratch}/gate" ]; do sleep 0.1; done; echo "step 1 loss $1"\n')
    first = act.run("-n", 1, "submit", "sh", "gate.sh").out.strip()
    s = sweep(act, "--after", first, "--grid", "n=1,2", "--", "sh", "gate.sh", "{n}")
    for more in ((), ("--metric", "loss", "--min")):
        shown = act.run("sweep", "--show", s, *more)
        assert f"all 2 runs are still queued; 'a qq --tag sweep={s}' says what they wait for" in shown.err
        assert len(shown.out.splitlines()) == 3
    (act.scratch / "gate").touch()
    act.run("wait", s)
