"""The command line itself: help, versions, what is typed wrongly, and what goes where."""
import ast
import json
import os
import pathlib
import re
import subprocess

import pytest

import documents
from conftest import ROOT, SANITIZED

VERBS = {
    "init": ["initi"], "initc": ["initic"], "submit": [], "sweep": [], "local": [], "query": ["q"], "qr": [], "qq": [],
    "qf": ["f", "failed"], "top": [], "logs": [], "files": [], "wait": [], "why": [], "grep": [], "diff": [],
    "parse": [], "report": [], "plot": [], "tensorboard": [], "ui": [], "abort": ["a"], "scale": [], "prune": [],
    "resubmit": [], "nodes": [], "shell": [], "notebook": [], "attach": [], "ssh": [], "forward": [], "ssh-config": [],
    "summary": ["s"], "cluster": [], "fileserver": [], "env": [], "blame": [], "upload": ["u"], "download": ["d"],
    "ls": [], "rm": [], "du": [], "mount": [], "cat": [], "verify": [], "url": [], "login": [], "logout": [],
    "config": [], "trust": [], "doctor": [], "completion": [], "help": [],
}
ALL = [name for verb, aliases in VERBS.items() for name in (verb, *aliases)]


def smoke_tests():
    """The files and functions of the tests that are marked so, themselves or in their place (place_fixtures.py)."""
    for path in sorted(pathlib.Path(__file__).parent.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and (any("smoke" in ast.unparse(d) for d in node.decorator_list) or
                                                      any(a.arg == "place" for a in node.args.args)):
                yield path, node


def typed_words(test):
    """The first words that a test gives to what it calls, or has in a list, and those after "a " in its texts."""
    for node in ast.walk(test):
        if isinstance(node, (ast.Call, ast.List, ast.Tuple)):
            words = node.args if isinstance(node, ast.Call) else node.elts
            yield from (word.value for word in words[:2] if isinstance(word, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\ba ([a-z-]+)", node.value)


def test_the_loop_types_every_verb():
    """`scripts/test --quick` runs what is marked smoke. The tests in test_ui.py type theirs by a fixture."""
    tests = list(smoke_tests())
    typed = {word for _, test in tests for word in typed_words(test)}
    typed |= {path.stem.removeprefix("test_") for path, _ in tests}
    assert not [verb for verb, aliases in VERBS.items() if not typed & {verb, *aliases}]


def test_what_runs_with_the_sanitizers_is_there():
    assert {name for name in SANITIZED if not (pathlib.Path(__file__).parent / f"{name}.py").exists()} == set()


@pytest.mark.parametrize("word", ["abort", "act/cli/runs/abort.c"])
def test_a_verb_is_covered_by_the_tests_that_type_it(word):
    """As `scripts/test abort` finds them."""
    found = subprocess.run([ROOT / "scripts/covering", word], capture_output=True, text=True, check=True).stdout
    files = [line.split()[1] for line in found.splitlines() if line.startswith("e2e ")]
    assert sum('"abort"' in (ROOT / name).read_text() for name in files) >= 3, found


def test_the_verbs_are_those_of_the_program(act):
    names = documents.Verbs(act).names
    found = {verb: [name for name in names if names[name] == verb != name] for verb in names.values()}
    assert found == VERBS, "VERBS in this file has a row of each verb, with its other names"


@pytest.mark.smoke
@pytest.mark.parametrize("verb", ALL)
def test_help_of_every_verb(act, verb):
    """On stdout, with status 0, examples first, even where there is no valid configuration."""
    (act.project / "aux_data/aml/aml.yaml").write_text("{broken")
    result = act.run(verb, "--help")
    assert result.err == ""
    lines = result.out.splitlines()
    example = next(i for i, line in enumerate(lines) if re.match(r"\s+(id=\$\()?a ", line))
    options = next((i for i, line in enumerate(lines) if re.match(r"\s+-", line)), len(lines))
    assert example < options and example < 8, "examples come first"
    assert max(map(len, lines)) <= 80
    assert act.run("help", verb).out == result.out
    assert act.run(verb, "-h").out == result.out


@pytest.mark.smoke
def test_overview(act, scratch):
    result = act.run("help", cwd=scratch)
    assert result.err == ""
    for verb in VERBS:
        assert re.search(rf"\b{verb}\b", result.out), verb
    assert act.run("--help").out == result.out


def test_a_alone_fills_one_screen(act, scratch):
    """All verbs by their names, at 80 columns; what each does is in the help."""
    shown = act.on_terminal(columns=80, cwd=scratch).decode().replace("\r", "").splitlines()
    assert len(shown) < 24 and "'a help' says what each does" in shown[-1], shown
    assert set(VERBS) <= set(re.split(r"\W*\s+", "\n".join(shown)))


def test_help_fits_the_terminal(act, scratch):
    """Where it is narrower than a command that can be copied, only that is longer."""
    assert max(map(len, act.run("help").out.splitlines())) <= 80
    for columns in (60, 100, 160):
        for words in (("--help",), ("upload", "--help"), ("cluster", "--help"), ("q", "--help"), ("logs", "--help")):
            lines = act.on_terminal(*words, columns=columns).decode().splitlines()
            long = [line for line in lines if len(line) > columns]
            assert all(re.match(r"  a \S+", line) and "   " not in line.strip() for line in long), long
            assert any(len(line) > columns - 20 for line in lines), "the width is used"


def test_usage_says_whether_a_run_must_be_named(act):
    """RUN in brackets may be left out, and stands for the run submitted last; else it is asked for."""
    for verb in sorted(set(VERBS) - {"query", "ssh", "notebook", "ls"}):  # these do another thing without a run
        usage = re.search(r"^usage: .*?\n\n", act.run(verb, "--help").out, re.MULTILINE | re.DOTALL)[0]
        if not re.search(r"\bRUN\b(?!:)", usage):
            continue
        bare = act.run(verb, *["x"] * ("KEY " in usage or " RE " in usage), status=None)
        assert bool(re.search("needs more|takes one run|which runs", bare.err)) != ("[RUN" in usage), (usage, bare.err)


# Those that each verb checks by itself; for what all verbs check there is cli_test.
TYPED_WRONGLY = [
    ("submit",), ("sweep",), ("local",), ("abort",), ("prune",), ("nodes", "a", "b"), ("ssh",), ("forward",),
    ("config", "set"), ("config", "set", "num_gpu"), ("config", "show", "a"), ("config", "frob"),
    ("cluster", "use"), ("cluster", "frob"), ("fileserver", "show"), ("env", "frob"), ("nodes", "--bad", "--forget"),
    ("ssh", "a", "b", "c")]


def test_usage_errors_name_the_help(act):
    for words in TYPED_WRONGLY:
        own = 125 if words[0] in ("wait", "local") else 2
        assert f"'a {words[0]} --help'" in act.fail(*words, status=own), words


def test_usage_errors_fit_the_terminal(act):
    wrong = ("cluster", "list", "a", "b", "c")
    flat = act.fail(*wrong, status=2, match="does not take 'c': a cluster .list")
    for columns in (40, 80, 200):
        shown = act.on_terminal(*wrong, columns=columns).decode().replace("\r", "").rstrip("\n").splitlines()
        assert max(map(len, shown)) <= columns and " ".join(line.strip() for line in shown) == flat


def test_help_after_the_command_is_the_commands(act):
    run = act.finish("echo", "--help", "--version", before=("-n", "1"))
    assert act.lines(run) == ["--help --version"]


@pytest.mark.smoke
def test_version(act, scratch):
    result = act.run("--version", cwd=scratch)
    version, commit, libraries = result.out.splitlines()
    assert re.fullmatch(r"act \d+\.\d+\.\d+\S*", version) and result.err == ""
    assert re.fullmatch(r"commit (unknown|[0-9a-f]{12}(-dirty)?), \w+", commit)
    for name in ("libcurl", "OpenSSL", "zlib", "SQLite", "jansson", "libyaml", "expat", "libdeflate", "libunistring"):
        assert re.search(rf"(^| ){name}/\d+\.\d+", libraries), name
    assert act.run("--version", env={"HOME": "/nonexistent", "ACT_HOME": "/nonexistent"}).out == result.out


def test_the_program_by_its_long_name(act):
    done = subprocess.run([act.programs / "act", "--version"], env=act.env, stdout=subprocess.PIPE)
    assert done.stdout == act.run("--version").raw_out


@pytest.mark.parametrize("typed, meant", [
    (["sumbit", "x"], "submit"), (["dowload", "x"], "download"), (["quer"], "query"),
    (["--clutser", "x", "q"], "--cluster"),
    (["q", "--jsno"], "--json"), (["-c", "aml", "uplod", "x"], "upload"),
])
def test_did_you_mean(act, typed, meant):
    assert meant in act.fail(*typed, status=2)


def test_did_you_mean_a_folder(act):
    act.write("dta/x", "x")
    assert "data" in act.fail("u", "dta/x", status=3)


@pytest.mark.parametrize("words", [
    ["q", "--max"], ["-n", "submit", "true"], ["-c"], ["grep"], ["wait"], ["abort"], ["resubmit"], ["u"], ["d"],
    ["cat"], ["rm"], ["url"], ["config", "shwo"], ["wait", "a", "b"], ["--no-such-option"], ["q", "--max", "x"],
    ["help", "nothing"], ["submit", "--follow", "x"], ["completion", "tcsh"], ["init", "extra"], [""],
])
def test_usage_errors(act, words):
    act.run(*words, status=125 if words[0] == "wait" else 2)
    act.fail(*words, status=None)


@pytest.mark.parametrize("words", [["q", "--json"], ["qr", "--json"], ["ls", "--json", "data"],
                                   ["config", "show", "--json"], ["--json", "q"]])
def test_json_is_versioned(act, words):
    act.write("data/a", "a")
    act.run("u", "data")
    result = act.run(*words)
    assert json.loads(result.out)["version"] == 1
    assert result.err == ""


def test_no_colour_into_a_pipe(act):
    act.finish("true", before=("-n", "1"))
    act.finish("false", before=("-n", "1"), status=1)
    for words in (["q"], ["help"], ["submit", "--help"], ["config", "show"]):
        assert b"\x1b" not in act.run(*words, env={"TERM": "xterm-256color", "FORCE_COLOR": "1"}).raw_out


def test_colour_on_a_terminal_unless_no_color(act):
    act.finish("false", before=("-n", "1"), status=1)
    assert b"\x1b[" in act.on_terminal("q")
    assert b"\x1b[" not in act.on_terminal("q", NO_COLOR="1")
    assert b"\x1b[" not in act.on_terminal("q", "--json")


def test_hostile_log_on_a_terminal(act):
    act.write("evil.py", r"import sys; sys.stdout.buffer.write(b'\x1b]0;title\x07\x1b[2J\x9bxx plain\n')")
    run = act.finish("python3", "evil.py", before=("-n", "1"))
    shown = act.on_terminal("logs", run)
    assert b"plain" in shown and b"\x1b]" not in shown and b"\x1b[2J" not in shown and b"\x07" not in shown
    assert act.run("logs", run).raw_out == b"\x1b]0;title\x07\x1b[2J\x9bxx plain\n", "into a pipe it goes as it is"


HOSTILE = b"\x1b[2J\x1b]0;t\x07 \xc2\x9b5n \x9b6n \xe2\x80\xaegpj.exe \xe2\x80\x8b.\xff \x00\x08 e" + 9 * b"\xcc\x81"
BAD = [b"\x1b[2J", b"\x1b]", b"\x07", b"\xc2\x9b", b"\x9b6n", b"\xe2\x80\xae", b"\xe2\x80\x8b", b"\xff", b"\x00",
       b"\x08",
       7 * b"\xcc\x81"]


def assert_harmless(shown, *words):
    assert b"gpj.exe" in shown, (words, shown)
    assert not [bad for bad in BAD if bad in shown], (words, shown)


def test_hostile_text_of_a_run_on_a_terminal(act):
    """Its log, as it is followed, asked for and explained; colours stay, but nothing that hides a line."""
    act.write("evil.py",
              f"import sys; sys.stdout.buffer.write(b'\x1b[32mgreen\x1b[0m over\\rwritten\\r\\n' + {HOSTILE!r} + "
                         "b'\\nCUDA out of memory ' + " f"{HOSTILE!r} + b'\\n'); sys.exit(1)")
    run = act.finish("python3", "evil.py", before=("-n", "1"), status=1)
    for words in (("logs", run), ("logs", "-f", run), ("logs", "--all", run), ("q", run), ("why", run)):
        shown = re.sub(rb"\r[^\r\n]*\x1b\[K", b"", act.on_terminal(*words))  # without progress, also of the log's own
        assert_harmless(shown, *words)
        assert b"\r" not in shown.replace(b"\r\r\n", b"\n").replace(b"\r\n", b"\n"), (words, shown)
        assert (b"\x1b[32mgreen\x1b[0m" in shown) == (words[0] != "why" and "--all" not in words), (words, shown)
    assert HOSTILE in act.run("logs", run).raw_out
    act.on_terminal("parse", run)


def test_a_progress_bar_on_a_terminal_is_one_line(act):
    """As it ends, as 'tail -f' leaves it; a pipe gets the bytes."""
    act.write("bar.py", "import sys; sys.stdout.write(''.join(f'\\r{n}0%' for n in range(1, 11)) + "
                        "'\\nend\\r\\nlast\\r')")
    run = act.finish("python3", "bar.py", before=("-n", "1"))
    for words in (("logs", run), ("logs", "-f", run), ("logs", "--all", run)):
        screen = [re.sub(rb".*\r\x1b\[K", b"", line.rstrip(b"\r")) for line in act.on_terminal(*words).split(b"\n")]
        screen = [re.sub(rb"^.*\[0\].*? ", b"", line) for line in screen]
        assert screen[:3] == [b"100%", b"end", b"last"], (words, screen)
    assert act.run("logs", run).raw_out.endswith(b"\r100%\nend\r\nlast\r")


def test_hostile_names_on_a_terminal(act):
    name = b"x\x1b[2J\x1b[31m\xc2\x9b5n\xe2\x80\xaegpj.exe\xe2\x80\x8b" + 9 * b"\xcc\x81"
    folder = os.fsencode(act.store) + b"/files/data/" + name
    os.makedirs(folder)
    with open(folder + b"/f", "wb") as f:
        f.write(b"x")
    (act.project / "data").mkdir()
    for words in (("ls", "data"), ("ls", "-l", "-r", "data"), ("ls", "--json", "data"), ("du", "-d", "2", "data"),
                  ("verify", "data"),
                  ("d", "--dry-run", "data"), ("cat", b"data/" + name), ("url", b"data/" + name),
                  ("cat", b"data/no" + name)):
        shown = act.on_terminal(*words)
        assert_harmless(shown.replace(b"\x1b[K", b""), *words)
        assert b"\x1b[31m" not in shown, (words, shown)
    assert name.split(b"\x1b[31m")[1] in act.run("ls", "data").raw_out, "a pipe gets the bytes"


def test_verbs_that_alone_look(act):
    for verb, choice in (("config", "show"), ("env", "list"), ("cluster", "list")):
        alone, named = act.run(verb), act.run(verb, choice)
        assert (alone.out, alone.err) == (named.out, named.err), verb
        assert choice in act.run("__complete", verb, "").out.split(), verb
    assert act.run("cluster", "--json").json["own"]
    assert "--max says how many runs" in act.fail("q", "-n", "3s", status=2)


# What each verb prints on stdout, of a run and its project.
PRINTED = [
    "--version", "help", "help submit", "completion bash", "q", "q @", "q --json", "qf", "qf --json", "logs @",
    "why @", "why --json @", "wait --json @", "nodes @", "nodes --json @", "files @", "files --json @",
    "grep printed @", "diff @ @2", "diff --json @ @2", "report @", "plot loss @", "plot --csv loss @", "top --once",
    "top --json", "ls data", "ls @:", "ls --json data", "cat data/a", "cat @:user_logs/std_log_process_0.txt", "du",
    "du data", "du --json data", "url data/a", "u --dry-run data/new", "u --json data", "d --dry-run --json data",
    "rm --dry-run data", "config", "config get", "config get platform", "config check --json", "env --json",
    "cluster", "summary", "s --json", "blame", "blame --json", "doctor", "ssh-config",
    "prune --dry-run --json --older 1d", "init --dry-run", "submit --dry-run true",
    "sweep --dry-run --grid x=1 -- echo {x}", "abort --json @", "local echo a"]


def test_full_stdout_is_an_error(act):
    """And the reason is that of the write, whatever failed before or after it."""
    act.write("data/a", "a")
    act.run("u", "data")
    act.write("data/new", "b")
    act.run("wait", act.submit("sh", "-c", "echo printed; echo loss 0.5"), act.submit("sh", "-c", "exit 1"), status=1)
    act.run("wait", act.submit("sh", "-c", "echo printed; echo loss 0.5; echo loss 0.4"))
    wrong = []
    with open("/dev/full", "wb") as full:
        for line in PRINTED:
            done = subprocess.run([act.programs / "a", *line.split()], stdout=full, stderr=subprocess.PIPE, env=act.env,
                                  cwd=act.project, text=True, check=False)
            said = re.findall("cannot write the output: (No space left|not all of it was taken)", done.stderr)
            if done.returncode == 0 or len(said) != 1:
                wrong.append((line, done.returncode, done.stderr))
    assert not wrong


def test_home_that_cannot_be_written(act):
    """What only looks says so and goes on; a run that could not be written down is not begun."""
    looked = act.run("q", env={"ACT_HOME": "/proc/nowhere"})
    assert "cannot open the ledger '/proc/nowhere/ledger.db'" in looked.err
    act.fail("submit", "true", match="(?i)/proc/nowhere", status=None, env={"ACT_HOME": "/proc/nowhere"})


@pytest.mark.smoke
@pytest.mark.parametrize("shell, check", [("bash", ["bash", "-n"]), ("zsh", None), ("fish", None)])
def test_completion_scripts(act, shell, check):
    script = act.run("completion", shell).out
    assert "__complete" in script
    if check:
        subprocess.run(check, input=script.encode(), check=True)


def test_completion_never_runs_what_a_project_names(act):
    """bash puts what is offered on its command line, where Enter runs it."""
    act.cluster("aml", folders=("data;touch${IFS}PWNED;:", "da*", "data"), account="store")
    act.account("store", folder=str(act.store))
    act.write("aux_data/aml/$(touch PWNED).yaml", "platform: local\n")
    script = act.run("completion", "bash").out + """
COMP_LINE="a d "; COMP_POINT=4; COMP_WORDS=(a d ""); COMP_CWORD=2
_act_complete 2>/dev/null; printf '%s\\n' "${COMPREPLY[@]}"
COMP_LINE="a -c "; COMP_POINT=5; COMP_WORDS=(a -c ""); COMP_CWORD=2
_act_complete 2>/dev/null; printf '%s\\n' "${COMPREPLY[@]}"
"""
    done = subprocess.run(["bash", "-c", script], cwd=act.project,
                          env=act.env | {"PATH": f"{act.programs}:/usr/bin:/bin"},
                          capture_output=True, text=True, check=True)
    offered = done.stdout.split("\n")
    assert "data/" in offered and not [word for word in offered if "PWNED" in word or "*" in word], done
    assert not (act.project / "PWNED").exists()


def complete_in_bash(act, words):
    """What is offered behind the last of the words; bash takes them apart at colons."""
    line = "a " + " ".join(words)
    parts = " ".join(f"'{part}'" for part in line.replace(":", " : ").split(" ") if part or line.endswith(" "))
    script = act.run("completion", "bash").out + f"""
COMP_LINE='{line}'; COMP_POINT={len(line)}; COMP_WORDS=({parts}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_act_complete 2>/dev/null; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return subprocess.run(["bash", "-c", script], cwd=act.project, env=act.env, capture_output=True, text=True,
                          check=True).stdout.split()


def test_completion_of_the_logs_of_a_run(act):
    run = act.finish("true", before=("-n", "1"))
    act.run("q", run)
    assert complete_in_bash(act, ["ls", run[:-1]]) == [f"{run}:"]
    assert "user_logs/" in complete_in_bash(act, ["ls", f"{run}:"])
    assert complete_in_bash(act, ["ls", f"{run}:user"]) == ["user_logs/"]
    logs = [log.name for log in (act.project / f"assets/{run}/user_logs").iterdir()]
    assert sorted(complete_in_bash(act, ["ls", f"{run}:user_logs/"])) == sorted(f"user_logs/{log}" for log in logs)
    assert act.run("__complete", "ls", f"{run}:../").out == ""


def test_completion_knows_verbs_runs_and_folders(act):
    run = act.finish("true", before=("-n", "1"))
    assert "submit" in act.run("__complete", "su").out.split()
    assert run in act.run("__complete", "wait", "").out
    assert act.run("__complete", "-c", "").status == 0
    for words, offered in ((["config", ""], ["show", "check", "get", "set", "unset"]), (["completion", "b"], ["bash"]),
                           (["cluster", "de"], ["delete"]), (["config", "show", ""], []),
                           (["-p", "num_"], ["num_gpu:"])):
        assert act.run("__complete", *words).out.split() == offered, words
