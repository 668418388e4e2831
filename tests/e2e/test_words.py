"""No word is ignored: what is typed is honoured, or refused with one line before anything happened."""
import json
import re
import subprocess

import pytest


def keys_of(value):
    """All names of members in a JSON document, but those below 'values' and 'package'."""
    if isinstance(value, list):
        return set().union(*map(keys_of, value), set())
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(keys_of(v) for k, v in value.items() if k != "values"), set())


def documented(act, verb, text):
    """Each member of what --json printed is in the verb's help, or in that of the verb it points at."""
    result = act.run(verb, "--help").out
    if "'a q" in result:
        result += act.run("q", "--help").out
    for line in [text] if text.startswith("{\n") else text.splitlines():
        missing = {k for k in keys_of(json.loads(line)) if not re.search(rf"\b{k}\b", result)}
        assert not missing, (verb, missing)


@pytest.mark.parametrize("words, taken", [
    (["-f", "nosuch", "d", "data"], "'a download' takes no '-f'; it takes .*-c, -p"),
    (["-f", "we", "rm", "data/w"], "'a rm' takes no '-f'; it takes .*-y"), (["-foo", "q"], "unknown option '-foo'"),
    (["-rt", "eu", "submit", "touch", "F"], "'a submit' takes no '-rt'"),
    (["local", "--json", "touch", "F"], "'a local' takes no '--json'"),
    (["-n", "2", "init"], "'a init' takes no '-n'"), (["-ca", "x", "u", "data"], "'a upload' takes no '-ca'"),
    (["logout", "--json"], "'a logout' takes no '--json'; it takes --dry-run"),
    (["-n", "5", "logs", "x"], "the '-n' of 'a logs' comes after the verb"),
])
def test_options_of_other_verbs_are_refused(act, words, taken):
    act.write("data/w", "w")
    act.fail(*words, status=125 if "local" in words else 2, match=taken)
    assert not act.home.exists() and not act.store.exists() and not (act.project / "F").exists()


@pytest.mark.parametrize("words, why", [
    (["q", "--no-details"], "--no-details is about a run"),
    (["q", "--no-details", "--json", "@"], "--no-details is for people"),
    (["q", "--no-logs", "--refresh", "@"], "--no-logs fetches none"),
    (["q", "--max", "3", "@"], "--max is about the table"),
    (["submit", "--retry", "0", "--retry-on", "bogus", "touch", "F"], "--retry 0 that it is not"),
    (["submit", "--use-bad-nodes", "touch", "F"], "changes nothing on the platform 'local'"),
    (["-ca", "x", "submit", "touch", "F"], "there is no '.*/compile.aml.sh'"),
    (["-n", "2:1", "submit", "touch", "F"], "2 is more than 1; did you mean '1:2'"),
    (["config", "shwo"], "did you mean 'show'"), (["cluster", "lits"], "did you mean 'list'"),
])
def test_what_would_change_nothing_is_refused(act, words, why):
    act.fail(*words, status=2, match=why)
    assert not (act.home / "runs").exists() and not (act.project / "F").exists()


def test_a_key_of_another_platform_is_not_ignored_in_silence(act):
    said = act.run("-p", "slurm: {partition: x}", "submit", "--dry-run", "true").err
    assert "'slurm' has no effect here: cluster 'aml' is of platform 'local'" in said


@pytest.mark.parametrize("words", [["submit", "true"], ["submit", "--json", "true"], ["-q", "submit", "true"],
                                   ["sweep", "--grid", "x=1", "--", "true", "{x}"]])
def test_the_id_of_a_run_is_not_lost_with_the_output(act, words):
    """What was started can still be found."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        said = subprocess.run([act.programs / "a", *words], cwd=act.project, env=act.env, stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False)
    run, = act.run("q", "--json", "--max", "0").json["runs"]
    names = [run["id"], run["tags"].get("sweep")]
    assert said.returncode == 1 and any(f"is '{name}', and goes on" in said.stderr for name in names), said.stderr
    assert act.run("wait", run["id"]).status == 0


def test_words_of_a_shell_are_named(act):
    said = act.run("submit", "--dry-run", "echo", "a", "|", "cat").err
    assert "'|' is passed to 'echo' as a word" in said
    assert "as a word" not in act.run("submit", "--dry-run", "find", ".", "-exec", "ls", "{}", ";").err


@pytest.mark.parametrize("words", [["submit"], ["local"], ["sweep", "--grid", "x=1", "--"]])
def test_words_of_a_shell_are_asked_about(act, words):
    command = ["echo", "{x}" if words[0] == "sweep" else "a", ">", "b"]
    act.fail(*words, *command, status=(2, 125), match="'>' is passed to 'echo' as a word.* add -y")
    assert not act.run("q", "--json").json["runs"]
    act.run(words[0], "-y", *words[1:], *command)
    act.run("wait", "@")


@pytest.mark.parametrize("typed, match", [
    ("stauts", "'status', 'a q' is the table"), ("up", "did you mean 'upload'"), ("lgos", "did you mean 'logs'"),
    ("sumbit", "did you mean 'submit'"), ("kil", "'kill', 'a abort RUN' cancels")])
def test_verbs_that_are_typed_often_come_first(act, typed, match):
    act.fail(typed, status=2, match=match)


def test_runs_are_suggested_by_names_and_tags(act):
    act.run("submit", "--name", "ddp1", "--tag", "kind=first", "true")
    act.fail("logs", "ddp", status=3, match="no run 'ddp'; did you mean 'ddp1'")
    act.fail("logs", "dpd1", status=3, match="no run 'dpd1'; did you mean 'ddp1'")
    act.fail("logs", "first", status=3, match="it is a tag: 'a q --tag kind=first' lists")
    act.fail("logs", "nothing-like-it", status=3, match="no run 'nothing-like-it'; 'a q' lists the runs")
    act.fail("report", "--tag", "kind=frist", status=3, match="did you mean 'kind=first'")
    act.fail("report", "--name", "ddp2", status=3, match="did you mean 'ddp1'")
    assert act.run("__complete", "q", "--tag", "ki").out == "kind=first\n"
    assert act.run("wait", "@").status == 0


def test_the_last_run_is_meant_where_none_is_named(act):
    """By verbs that change nothing; the others say how it is named."""
    act.run("wait", act.run("submit", "sh", "-c", "echo loss 1; echo loss 2; exit 3").out.strip(), status=3)
    assert "loss 2" in act.run("logs").out
    assert "exited with status 3" in act.run("why").out
    act.run("q", "@")
    assert act.run("plot", "--csv", "loss").out.count("\n") == 3
    assert act.run("__complete", "plot", "l").out == "loss\n"
    assert "<html" in act.run("report").out
    for verb in ("files", "parse", "nodes"):
        act.run(verb)
    for words in (["abort"], ["resubmit"], ["ssh"], ["wait"]):
        act.fail(*words, status=125 if words == ["wait"] else 2,
                 match="needs more" if words == ["ssh"] else "@ is the run submitted last")


def test_a_script_and_its_options_in_quotes(act):
    act.write("train.py", "")
    act.fail("submit", "python3", "train.py --lr 1", status=3, match="leave out the quotes, which make one word")
    act.fail("submit", "python3", "other.py --lr 1", status=3, match="there is no 'other.py --lr 1' in the project")


@pytest.mark.parametrize("words, match", [
    (["env", "remove"], "'a env' cannot 'remove'; did you mean 'rm'"),
    (["env", "ls"], "did you mean 'list'"),
    (["cluster", "rm", "x"], "'a cluster' cannot 'rm'; did you mean 'remove'"),
    (["cluster", "new", "x"], "did you mean 'add'"),
    (["cluster", "switch", "x"], "did you mean 'use'"),
])
def test_verbs_of_verbs_by_other_words(act, words, match):
    act.fail(*words, status=2, match=match)


def test_what_there_is_none_of_is_said(act):
    """An empty table alone leaves open whether it is one."""
    for verb, said in (("qr", "no run is running"), ("qq", "no run is queued"), ("qf", "no run has failed")):
        assert act.run(verb).err == said + "\n"
        assert act.run(verb, "--json").err == ""
    assert act.run("q", "--failed", "--name", "x").err == "no failed run is named 'x'\n"
    assert act.run("-c", "aml", "qr").err == "no run on cluster 'aml' is running\n"
    assert act.run("trust", "--list").err == "no project is trusted to reach out of its folder\n"
    assert act.run("blame").err == "nothing is running on cluster 'aml'\n"


def test_the_mapped_folders_are_listed(act):
    listed = act.run("ls")
    assert listed.out == "data/\noutput/\n" and "2 mapped folders of cluster 'aml'" in listed.err
    assert [row["name"] for row in map(json.loads, act.run("ls", "--json").out.splitlines())] == ["data", "output"]
    act.fail("ls", "--leftovers", status=2, match="needs more")
    act.fail("u", "models", status=3, match="'config_param' maps one more")


def test_states_as_options_of_the_table(act):
    act.run("wait", act.run("submit", "false").out.strip(), status=1)
    act.run("wait", act.run("submit", "true").out.strip())
    assert act.run("q", "--failed").out == act.run("qf").out
    assert [run["state"] for run in act.run("q", "--failed", "--json").json["runs"]] == ["Failed"]
    act.fail("q", "--failed", "--queued", status=2, match="exclude each other")
    act.fail("q", "--running", "@", status=2, match="about the table of runs, and a run is named")


def test_help_of_what_is_no_verb(act):
    create = act.run("help", "cluster", "create").out
    assert "a cluster create gpu" in create and "--vm-size" in create and "--hosts" not in create
    assert act.run("cluster", "create", "--help").out == create
    page = act.run("help", "cluster").out
    assert "'a help cluster VERB' has the options of each" in page and "--vm-size SIZE" not in page
    act.fail("help", "cluster", "creat", status=2, match="did you mean 'create'")
    act.fail("help", "submit", "create", status=2, match="'a submit' has no verb 'create'")
    assert "a sweep --retry-on CLASSES" in act.run("help", "class").out
    assert "a plot --svg" in act.run("help", "--", "--svg").out
    act.fail("help", "claster", status=2, match="did you mean 'cluster'")


def test_a_path_that_is_named_twice_counts_once(act):
    act.write("data/w", "w")
    assert "the same" not in act.run("u", "data", "./data/").err


def test_dry_runs_change_nothing(act):
    spec = act.run("local", "--dry-run", "touch", act.scratch / "F").json
    assert spec["command"] == ["touch", str(act.scratch / "F")] and spec["platform"] == "local"
    assert not (act.scratch / "F").exists() and not (act.home / "runs").exists()
    assert "no login" in act.run("logout", "--dry-run").err
    tokens = act.home / "cache/tokens.json"
    tokens.parent.mkdir(parents=True, exist_ok=True)
    tokens.write_text("{}")
    assert "would forget" in act.run("--dry-run", "logout").err and tokens.exists()
    assert "forgotten" in act.run("logout").err and not tokens.exists()
    assert "would log in to tenant T" in act.run("login", "--device-code", "--tenant", "T", "--dry-run").err


def test_json_is_described_by_the_help(act):
    act.write("data/w", "w")
    for verb, words in (("init", []), ("init", ["--dry-run"]), ("upload", ["data"]), ("ls", ["data"]),
                        ("du", ["data"]), ("doctor", []), ("config", ["check"]), ("config", ["show"]),
                        ("verify", ["data"]), ("summary", [])):
        documented(act, verb, act.run(verb, "--json", *words).out)
    submitted = act.run("-n", "1", "submit", "--json", "sh", "-c", "exit 3").out
    documented(act, "submit", submitted)
    run = json.loads(submitted)["id"]
    waited = act.run("wait", "--json", run, status=3)
    assert waited.json["run"]["exit_status"] == 3
    for verb, words in (("query", []), ("query", [run]), ("qf", []), ("why", [run]), ("parse", [run])):
        documented(act, verb, act.run(verb, "--json", *words).out)
    aborted = act.run("abort", "--json", run).out
    documented(act, "abort", aborted)
    assert json.loads(aborted)["runs"] == [{"id": run, "state": "Failed", "had_ended": True}]
    again = act.run("resubmit", "--json", run).out
    documented(act, "resubmit", again)
    new, = json.loads(again)["runs"]
    assert new["resubmit_of"] == run
    act.run("wait", new["id"], status=3)


@pytest.mark.parametrize("words",
                         [["q"], ["qr"], ["logs", "x"], ["wait", "x"], ["why", "x"], ["abort", "x"], ["nodes", "x"],
                                   ["ls", "data"], ["config", "show"], ["login"], ["submit", "true"]])
def test_an_unknown_cluster_is_an_error_for_every_verb(act, words):
    status = 125 if words[0] == "wait" else 3
    act.fail("-c", "nope", *words, status=status, match="no cluster 'nope'.*there are: 'aml', 'local'")
    act.fail(*words, status=status, match="AML_CONFIG_PATH", env={"AML_CONFIG_PATH": "nowhere.yaml"})


def test_a_cluster_of_another_project_is_known_by_its_runs(act):
    act.cluster("eu")
    run = act.finish("true", before=("-c", "eu", "-n", "1"))
    (act.project / "aux_data/aml/eu.yaml").unlink()
    assert [r["id"] for r in act.run("-c", "eu", "q", "--json").json["runs"]] == [run]


@pytest.mark.parametrize("param, words", [
    ("num_gpus: 3", "unknown key 'num_gpus'; did you mean 'num_gpu'"),
    ("docker: {imag: x}", "unknown key 'imag'; did you mean 'image'"),
    ("config_param: {data_folder: {pth: x}}", "unknown key 'pth'; did you mean 'path'"),
    ("config_param: {dta: {path: x}}", "unknown key 'dta'"), ("with_log: true", "'with_log' has no effect"),
])
def test_misspelt_keys_of_the_command_line(act, param, words):
    act.fail("-p", param, "submit", "true", status=2, match=words)
    assert not act.home.exists()


def test_names_of_other_tools(act):
    for typed, meant in (("ps", "'a q'"), ("run", "'a submit COMMAND'"), ("cancel", "'a abort RUN'"),
                         ("stop", "'a abort RUN'"),
                         ("status", "'a q'"), ("cp", "'a u PATH'"), ("tail", "'a logs -f RUN'"),
                         ("version", "--version")):
        assert meant in act.fail(typed, status=2)
        assert meant in act.fail("help", typed, status=2)
    act.fail("help", "sumbit", status=2, match="did you mean 'submit'")


def test_what_a_run_has_no_use_for_is_said_once(act):
    act.cluster("aml", extra={"elastic_num_gpu": [2, 4], "use_custom_docker": False, "docker": {"image": "img"}})
    err = act.run("-n", "1", "submit", "--dry-run", "true").err
    assert err.count("elastic_num_gpu is not used") == 1 and err.count("docker.image is not used") == 1, err
    assert "use_custom_docker" not in err, "there is no image it could be about"
    err = act.run("local", "--dry-run", "--no-container", "true").err
    assert err.count("elastic_num_gpu is not used") == 1, err


def test_a_limit_that_does_not_hold_is_said_once(act):
    act.write("data/w", "w")
    act.write("output/w", "w")
    assert act.run("u", "--bwlimit", "1M", "data", "output").err.count("--bwlimit is not used") == 1
    assert "--bwlimit and --transfers are not used" in act.run("d", "--bwlimit", "1M", "--transfers", "2", "data").err
    assert act.run("ls", "--transfers", "2", "data", "output").err.count("--transfers is not used") == 1
    assert "--" not in act.run("u", "data").err


def test_logs_go_where_the_original_put_them(act):
    run = act.finish("echo", "here", before=("-n", "1"))
    logs = f"{run}/user_logs/std_log.txt", f"{run}/user_logs/std_log_process_0.txt"
    act.run("q", run, env={"AML_LOG_FOLDER": "my/logs"})
    assert any((act.project / "my/logs" / log).exists() for log in logs) and not (act.project / "assets").exists()
    plan = act.run("init", "--dry-run", "--json", env={"AML_LOG_FOLDER": "my/logs"}).json
    assert not [e for e in plan["content"] if e["path"].startswith("my/logs/")], "they are no code"
    elsewhere = act.scratch / "logs"
    assert str(elsewhere) in act.run("q", run, env={"AML_LOG_FOLDER": str(elsewhere)}).out
    assert any((elsewhere / log).exists() for log in logs)


def test_copies_of_logs_that_were_changed_here_are_fetched_anew(act):
    run = act.finish("echo", "here", before=("-n", "1"))
    log = act.project / f"assets/{run}/user_logs/std_log_process_0.txt"
    act.run("q", run)
    whole = log.read_text()
    log.write_text(whole.swapcase())
    act.run("q", run)
    assert log.read_text() == whole
    log.write_text(whole[:2].swapcase())
    (act.project / f"assets/{run}/.complete").unlink()
    act.run("q", "--refresh", run)
    assert log.read_text() == whole


def test_a_size_that_this_machine_has_not_is_not_suggested(act):
    slots = {"ACT_LOCAL_SLOTS": "2"}
    act.fail("-n", "3", "submit", "true", status=6, match="has 2; use at most -n 2$", env=slots)
    act.run("-n", "2", "submit", "--dry-run", "true", env=slots)


def test_a_refusal_is_not_called_missing(act, azure_double):
    act.account("store", account_name=azure_double.service.account, account_key="d3Jvbmc=",
                container_name=azure_double.container, endpoint=azure_double.service.endpoint)
    message = act.fail("ls", "data", status=4, match="cannot look at 'data': .*403")
    assert "cannot find" not in message


@pytest.mark.parametrize("typed", ["lab.yaml", "aux_data/aml/lab.yaml", "./aux_data/aml/lab.yaml", "lav"])
def test_the_cluster_that_was_meant(act, typed):
    act.cluster("lab")
    act.fail("-c", typed, "ls", "data", status=3, match="did you mean 'lab'\\? there are: 'aml', 'lab', 'local'$")


def test_options_of_act_behind_the_command(act):
    """They are the command's; where its script does not know them, that is said, and asked where nothing would seem to
    be started."""
    act.write("t.py", "print('ran')")
    act.write("knows.py", "ap.add_argument('--dry_run'); retry = 1")
    act.write("bytes", b"\0--retry")
    said = act.run("submit", "--dry-run", "python3", "t.py", "--retry=3", "--lr", "1", "--quiet").err
    assert "'--retry=3' comes after the command, so it is passed to 't.py'; " in said and "a submit --retry ..." in said
    assert said.count("comes after the command") == 1
    for words in [["--", "python3", "t.py", "--retry", "3"], ["python3", "knows.py", "--retry", "3", "--dry-run"],
                  ["true", "--retry"], ["env", "--", "python3", "t.py", "--retry"], ["./bytes", "--retry"]]:
        assert "comes after" not in act.run("submit", "--dry-run", *words, status=None).err, words
    shown = act.on_terminal("submit", "python3", "t.py", "--dry-run", typed=b"n\n").decode()
    assert "which would start" in shown and "not confirmed" in shown and not (act.home / "runs").exists()
    assert "passed to 't.py'" in act.on_terminal("sweep", "--grid", "x=1", "python3", "t.py", "{x}", "--dry-run",
                                                 typed=b"n\n").decode().replace("\r\n", " ")
    assert not (act.home / "runs").exists()
    for verb, status in (("submit", 2), ("local", 125)):
        act.fail(verb, "python3", "t.py", "--dry-run", status=status,
                 match=f"passed to 't.py', which would start; .*before: a {verb} --dry-run ...; to pass it to 't.py': "
                       f"a {verb} -- python3 ...$")
    assert not (act.home / "runs").exists()
    assert act.run("local", "--", "python3", "t.py", "--dry-run").status == 0
    assert "comes after" not in act.run("local", "-y", "python3", "t.py", "--dry-run").err
