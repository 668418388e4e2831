"""submit: the command reaches every rank as it was typed, with the code and the environment it should have."""
import hashlib
import json
import os
import pathlib
import re
import shlex
import socket
import subprocess

import pytest

PRINT_ARGV = "import os, sys, json; print(json.dumps([os.fsencode(a).hex() for a in sys.argv[1:]]))"
PRINT_ENV = "import json, os; print(json.dumps(dict(os.environ)))"

AWKWARD = [
    b"", b" ", b"two words", b"  leading and trailing  ", b"'", b'"', b"it's", b'say "hi"', b"\\", b"\\\\n", b"$HOME",
    b"${PATH}", b"$(id)", b"`id`", b"a;b", b"a&&b", b"a|b>c<d", b"*", b"?[a-z]{1,2}", b"~", b"#no comment", b"!!",
    b"line\nbreak\n", b"tab\tand\rreturn", b"-n", b"--", b"--json=1", b"key=value", "Grüße 世界 🚀".encode(),
    b"not utf-8: \xff\xfe\x80", b"-mca", b"%s%n", b"a" * 5000,
]


def rank_env(act, run, rank=0):
    return json.loads(act.lines(run, rank)[-1])


@pytest.mark.smoke
def test_arguments_reach_every_rank_byte_for_byte(act, two_ranks):
    assert len(AWKWARD) >= 30
    act.write("argv.py", PRINT_ARGV)
    run = act.finish("python3", "argv.py", *AWKWARD, before=("-n", "2"))
    for rank in (0, 1):
        assert json.loads(act.lines(run, rank)[-1]) == [a.hex() for a in AWKWARD]


def test_a_new_project_is_said(act, scratch):
    """The first time: its root, and what marks it or that nothing does; and the one above it that was meant."""
    plain = scratch / "plain"
    (plain / "sub").mkdir(parents=True)
    first = act.run("local", "true", cwd=plain).err
    assert f"project: '{plain}' (no aux_data, .git or act.yaml in it or above)\n" in first
    assert "project: " not in act.run("local", "true", cwd=plain).err
    inside = act.project / "inside"
    inside.mkdir()
    act.write("conf/c.yaml", "platform: local\n")
    said = act.run("local", "true", cwd=inside, env={"AML_CONFIG_PATH": "../conf/c.yaml"}).err
    none = "no aux_data, .git or act.yaml in it"
    assert f"project: '{inside}' ({none}; '{act.project}' above it has one, and is not used)" in said
    below = act.project / "src"
    below.mkdir()
    assert f"project: '{act.project}', as aux_data is in it\n" in act.run("local", "true", cwd=below).err
    assert "project: " not in act.run("local", "true").err
    said = act.run("local", "true", cwd=plain / "sub").err
    assert (f"project: '{plain}/sub' ({none}); runs were submitted from '{plain}' above it, whose "
            f"code and folders this one has not: 'cd {plain}' goes there") in said, said
    (plain / "marked/.git").mkdir(parents=True)
    said = act.run("submit", "--dry-run", "true", cwd=plain / "marked").err
    assert f"project: '{plain}/marked', as .git is in it\n" in said and "code  " in said


def test_arguments_without_mpirun(act):
    act.write("argv.py", PRINT_ARGV)
    run = act.finish("python3", "argv.py", *AWKWARD, before=("-n", "1"))
    assert json.loads(act.lines(run)[-1]) == [a.hex() for a in AWKWARD]


def test_words_after_the_command_are_the_commands(act):
    """-n after the verb belongs to ACT only as long as no word of the command has come."""
    act.write("argv.py", PRINT_ARGV)
    run = act.finish("--", "python3", "argv.py", "-n", "7", "--dry-run", "-c", "nowhere")
    assert json.loads(act.lines(run)[-1]) == [a.hex() for a in (b"-n", b"7", b"--dry-run", b"-c", b"nowhere")]


def test_environment_of_every_rank(act, two_ranks):
    act.cluster("aml", extra={"env": {"PLAIN": "a value with $DOLLAR and 'quotes'", "NUMBER": 0, "EMPTY": ""}})
    act.write("env.py", PRINT_ENV)
    run = act.finish("python3", "env.py", before=("-n", "2"))
    for rank in (0, 1):
        env = rank_env(act, run, rank)
        assert {k: env.get(k) for k in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK")} == {
            "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "NODE_RANK": "0"}
        assert env["ACT_RUN_ID"] == run
        assert (env["PLAIN"], env["NUMBER"], env["EMPTY"]) == ("a value with $DOLLAR and 'quotes'", "0", "")
        assert env["OMPI_COMM_WORLD_RANK"] == str(rank)
        assert env["AZ_BATCHAI_NUM_GPUS"].isdigit()
        for name in ("AZ_BATCH_HOST_LIST", "AZ_BATCHAI_JOB_MASTER_NODE_IP", "MASTER_ADDR"):
            assert socket.gethostbyname(env[name].split(",")[0]), name
        assert 1024 <= int(env["MASTER_PORT"]) <= 65535
        assert os.path.isfile(env["AZ_BATCHAI_MPI_HOST_FILE"])
        for name in ("AZ_BATCHAI_JOB_TEMP", "AZ_BATCHAI_STDOUTERR_DIR"):
            assert os.path.isdir(env[name]), name
    assert rank_env(act, run, 0)["MASTER_PORT"] == rank_env(act, run, 1)["MASTER_PORT"]


def test_the_path_is_the_users_with_and_without_mpirun(act, two_ranks):
    """A Python environment that is active stays the one that is found first."""
    act.env["PATH"] = f"{act.scratch / 'my env/bin'}:{act.env['PATH']}"
    act.write("path.sh", 'echo "$PATH"')
    for ranks in (1, 2):
        run = act.finish("sh", "path.sh", before=("-n", ranks))
        assert act.lines(run)[-1] == act.env["PATH"], f"{ranks} ranks"


def test_environment_of_a_single_process(act):
    act.write("env.py", PRINT_ENV)
    run = act.finish("python3", "env.py", before=("-n", "1"))
    env = rank_env(act, run)
    assert (env["RANK"], env["LOCAL_RANK"], env["WORLD_SIZE"], env["NODE_RANK"]) == ("0", "0", "1", "0")
    assert env["ACT_RUN_ID"] == run and env["MASTER_ADDR"] and env["MASTER_PORT"]
    assert {k.removeprefix("OMPI_COMM_WORLD_"): v for k, v in env.items() if k.startswith("OMPI_COMM")} == {
        "RANK": "0", "SIZE": "1", "LOCAL_RANK": "0", "LOCAL_SIZE": "1"}, "as under mpirun"
    assert env["TORCH_HOME"] == str(act.run_dir(run) / "code/output/torch_home")
    assert not any(k.startswith("PMIX_") for k in env), "one process needs no mpirun"


def test_scripts_in_any_folder_import_from_the_root(act):
    """As with the original ACT; what the user says of these variables counts."""
    act.write("model.py", "import os; print(os.environ['PYTHONPATH'], os.environ['TORCH_HOME'])")
    act.write("tools/train.py", "import model")
    act.env["PYTHONPATH"] = ""
    run = act.finish("python3", "tools/train.py", before=("-p", "env: {TORCH_HOME: /torch}"))
    assert act.lines(run) == ["/app/caffe/python: /torch"]
    run = act.finish("python3", "tools/train.py", before=("-p", "env: {TORCH_HOME: /torch, PYTHONPATH: 'lib:.'}"))
    assert act.lines(run) == ["/app/caffe/python:lib:. /torch"]


STARTER = """#!/bin/sh
printf '%s\\n' "$@"
env | grep -E '^(RANK|WORLD_SIZE|LOCAL_RANK|OMPI_COMM_WORLD_|PMIX_)'
true
"""


def test_a_starter_is_told_what_the_user_left_out(act, two_ranks):
    """One for the node, also when it is repeated with another size; what the user writes stays, and is said."""
    (act.write("torchrun", STARTER)).chmod(0o755)
    act.write("train.py")
    plain = act.run("-n", "2", "submit", "./torchrun", "train.py", "--nnodes", "7")
    assert "torchrun  one on each node, 2 processes each" in plain.err and "stays as" not in plain.err
    assert "1 node, 2 processes;" in plain.err
    run = plain.out.strip()
    act.run("wait", run)
    lines = act.lines(run)
    port = lines[4].removeprefix("--master_port=")
    assert lines == ["--nnodes=1", "--nproc_per_node=2", "--node_rank=0", "--master_addr=127.0.0.1",
                     f"--master_port={port}", "train.py", "--nnodes", "7"] and port.isdigit()
    again = act.run("-n", "1", "resubmit", run)
    assert "torchrun  one on each node, 1 process each" in again.err
    run = again.out.strip()
    act.run("wait", run)
    assert act.lines(run)[1] == "--nproc_per_node=1"

    own = act.run("-n", "2", "submit", "./torchrun", "--nproc-per-node", "4", "--nnodes", "2", "--standalone",
                  "train.py")
    assert "one on each node, 4 processes each" in own.err
    assert "'--nproc_per_node 4' stays as it is written, but the run has 2 processes on each node" in own.err
    assert "'--nnodes 2' stays as it is written, but the run has 1 node\n" in own.err
    act.run("wait", own.out.strip())
    assert act.lines(own.out.strip()) == ["--nproc-per-node", "4", "--nnodes", "2", "--standalone", "train.py"]


@pytest.mark.parametrize("ranks", [1, 2])
def test_command_not_found(act, ranks):
    if ranks > os.cpu_count():
        pytest.skip("this machine has one processor: no two ranks")
    run = act.finish("/no-such-command", "x", before=("-n", ranks), status=127)
    info = act.info(run)
    assert info["state"] == "Failed"
    assert "no-such-command" in act.log(run).decode() + info["reason"]


def test_log_of_any_bytes(act):
    act.write("bytes.py", "import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000 + b'no newline at the end')")
    run = act.finish("python3", "bytes.py", before=("-n", "1"))
    assert act.log(run) == bytes(range(256)) * 1000 + b"no newline at the end"


def test_mapped_folders_are_there(act):
    act.write("data/in.txt", "input\n")
    act.run("u", "data")
    run = act.finish("sh", "-c", "cat data/in.txt; mkdir -p output && echo result > output/out.txt", before=("-n", "1"))
    assert act.lines(run) == ["input"]
    act.run("d", "output")
    assert (act.project / "output/out.txt").read_text() == "result\n"


def test_works_in_a_subfolder_of_the_project(act):
    act.write("hello.sh", "echo hello from the root")
    (act.project / "sub/sub").mkdir(parents=True)
    run = act.run("submit", "sh", "hello.sh", cwd=act.project / "sub/sub").out.strip()
    act.run("wait", run)
    assert act.lines(run) == ["hello from the root"]


# ---- how many processes


def test_single_is_one_process_on_a_node(act, two_ranks):
    act.write("env.py", PRINT_ENV)
    run = act.finish("python3", "env.py", before=("-single", "-n", "2"))
    env = rank_env(act, run)
    assert (env["WORLD_SIZE"], env["RANK"]) == ("1", "0")


def test_no_gpus_is_one_process(act):
    act.write("env.py", PRINT_ENV)
    run = act.finish("python3", "env.py", before=("-n", "0"))
    assert "processes 1\n" in act.run("q", run).out
    env = rank_env(act, run)
    assert (env["WORLD_SIZE"], env["AZ_BATCHAI_NUM_GPUS"]) == ("1", "0")


@pytest.mark.parametrize("words, status", [
    (("-n", "-1"), 2), (("-n", "two"), 2), (("-n", "1.5"), 2), (("-n", ""), 2), (("-n", "99999999999999999999"), 2),
    (("-n", "3", "-p", "gpu_per_node: 2"), (2, 6)),
    (("-n", str(16 * os.cpu_count())), 6),
])
def test_impossible_numbers_start_nothing(act, words, status):
    act.fail(*words, "submit", "true", status=status)
    assert act.run("q", "--json").json["runs"] == []
    assert not act.store.exists() or not list(act.store.rglob("*.zip")), "uploaded before it was checked"


def test_nothing_to_submit(act):
    act.fail("submit", status=2, match="command")


def test_dry_run_starts_nothing(act):
    act.write("touch.sh", f"touch {shlex.quote(str(act.scratch / 'ran'))}")
    result = act.run("submit", "--dry-run", "sh", "touch.sh")
    act.run("-no-s", "submit", "sh", "touch.sh")
    assert act.run("q", "--json").json["runs"] == []
    assert "touch.sh" in result.out + result.err
    assert not (act.scratch / "ran").exists() and not act.processes()
    assert not act.store.exists() or not list(act.store.rglob("*.zip"))


# ---- the code that runs


@pytest.mark.smoke
def test_a_run_is_pinned_to_its_package(act):
    act.write("say.sh", "echo version 1")
    act.run("init")
    act.write("say.sh", "echo version 2")
    old = act.finish("--last-package", "sh", "say.sh")
    new = act.finish("sh", "say.sh")
    again = act.run("resubmit", old).out.strip()
    act.run("wait", again)
    assert [act.lines(run)[-1] for run in (old, new, again)] == ["version 1", "version 2", "version 1"]
    assert act.info(old)["package"] == act.info(again)["package"] != act.info(new)["package"]


def test_a_queued_run_is_pinned_as_well(act):
    act.write("say.sh", "echo version 1")
    act.run("init")
    blocker = act.submit("sleep", "60", before=("-n", os.cpu_count()))
    act.until_state(blocker, "Running")
    queued = act.submit("sh", "say.sh")
    assert act.state(queued) == "Queued"
    act.write("say.sh", "echo version 2")
    act.run("init")
    act.run("abort", blocker)
    act.run("wait", queued)
    assert act.lines(queued) == ["version 1"]


def test_the_code_that_runs_is_the_code_on_the_screen(act):
    """Packed when something changed, and said; with --last-package it is what was stored last."""
    act.fail("submit", "--last-package", "sh", "say.sh", status=3, match="without --last-package")
    act.write("say.sh", "echo one")
    act.write("lib/other.py", "1")
    first = act.run("submit", "sh", "say.sh")
    assert re.search(r"^code  3 files, \d+ B, packed for the first time\n", first.err, re.M)
    same = act.run("submit", "sh", "say.sh")
    assert re.match(r"code  3 files, \d+ B, as in the last package\n", same.err)
    act.write("say.sh", "echo three")
    (act.project / "lib/other.py").unlink()
    dry = act.run("submit", "--dry-run", "sh", "say.sh")
    changes = r"code  2 files, \d+ B, 2 changed: lib/other.py \(gone\), say.sh"
    assert re.fullmatch(changes + "; a dry run packs nothing\n", dry.err)
    assert "package" not in json.loads(dry.out)
    old = act.run("submit", "--last-package", "sh", "say.sh")
    assert "code" not in old.err
    new = act.run("submit", "sh", "say.sh")
    assert re.match(changes + "\n", new.err)
    for run, said in ((first, "one"), (same, "one"), (old, "one"), (new, "three")):
        act.run("wait", run.out.strip())
        assert act.lines(run.out.strip()) == [said]


def test_no_folder_of_the_project_is_missing_without_configuration(act):
    """models is code there; data is used where it is until the store has some of it."""
    (act.project / "aux_data/aml/aml.yaml").unlink()
    act.write("models/__init__.py", "")
    act.write("models/net.py", "depth = 18")
    act.write("data/coco.yaml", "from the project")
    words = ["submit", "python3", "-c", "import models.net; print(models.net.depth, open('data/coco.yaml').read())"]
    own = act.run(*words)
    assert "data  the project's own folder, as the store has none; 'a u data' stores it\n" in own.err
    assert "own folder" not in act.run("submit", "--dry-run", *words[1:]).err, "once is enough"
    act.run("wait", own.out.strip())
    again = act.run("resubmit", own.out.strip()).out.strip()
    act.run("wait", again)
    assert act.lines(again) == ["18 from the project"]
    act.run("u", "data")
    assert "own folder" not in act.run("submit", "--dry-run", *words[1:]).err
    act.write("data/coco.yaml", "changed after the upload")
    stored = act.run(*words)
    differs = ("data  as the store has it, from which the project's own folder differs (coco.yaml); "
               "'a u data' stores it\n")
    assert differs in stored.err
    assert "own folder" not in act.run("submit", "--dry-run", *words[1:]).err, "of one difference once"
    act.write("data/coco.yaml", "changed again, later", mtime=2_000_000_000)
    assert differs in act.run("submit", "--dry-run", *words[1:]).err
    act.write("data/a", "new")
    act.write("data/b", "new")
    act.write("data/coco.yaml", "the data verbs have not seen this either", mtime=2_000_000_001)
    assert re.search(r"differs \(\S+ and 2 more\); 'a u data'", act.run("submit", "--dry-run", *words[1:]).err)
    for run in (own, stored):
        act.run("wait", run.out.strip())
        assert act.lines(run.out.strip()) == ["18 from the project"]


@pytest.mark.parametrize("words, status, match", [
    (["python3 t.py --x 1"], 2, "leave out the quotes"),
    ([""], 2, "empty word"),
    (["./nosuch.sh"], 3, "there is no './nosuch.sh' in the project"),
    (["sub/t.sh"], 2, "'sub/t.sh' is not executable: chmod \\+x it, or name what runs it: sh sub/t.sh"),
    (["t.py"], 2, "not a program: name what runs it, as in 'python3 t.py'"),
    (["python3", "-u", "nosuch.py"], 3, "there is no 'nosuch.py' in the project"),
    (["python3", "out.py"], 3, ".actignore:1 '/out.py' leaves it out"),
    (["pyhton", "t.py"], 3, "there is no program 'pyhton' in PATH; did you mean 'python3'\\?$"),
    (["python3", "tt.py"], 3, "there is no 'tt.py' in the project '.*'; did you mean 't.py'\\?$"),
    (["python3", "../x.py"], 3, "'../x.py' is outside the project '.*', where commands start"),
    (["bash", "-ex", "sub/../../x.sh"], 3, "is outside the project"),
    (["../x.sh"], 3, "is outside the project"),
    (["python3", "-m", "torch.distributed.run", "--nnodes", "1", "../x.py"], 3, "'../x.py' is outside"),
    (["python3", "-u", "-m", "pkg.nosuch"], 3, "there is no 'pkg/nosuch.py' in the project"),
    (["python3", "-m", "torch.distributed.run", "-m", "pkg.out"], 3, ".actignore:2 'pkg/out.py' leaves it out"),
    (["python3", "-m", "t.main"], 3, "there is no 't/main.py' in the project"),
    (["{project}/sub/t.sh"], 2, "is the file here, .* the run has its own copy: write './sub/t.sh'"),
    (["python3", "{project}/t.py"], 2, "write './t.py'"),
])
@pytest.mark.parametrize("verb", ["submit", "local"])
def test_what_cannot_work_is_refused_before_it_is_queued(act, verb, words, status, match):
    for name in ("t.py", "sub/t.sh", "out.py", "pkg/__init__.py", "pkg/out.py", "../x.py", "../x.sh"):
        act.write(name, "")
    act.write(".actignore", "/out.py\npkg/out.py")
    words = [word.format(project=act.project) for word in words]
    act.fail(verb, *words, status=125 if verb == "local" else status, match=match)
    assert act.run("q").out.count("\n") <= 1 and not list(act.store.rglob("*.zip"))


@pytest.mark.parametrize("words", [
    ["python3", "-c", "1", "nosuch.py"], ["sh", "-c", "exit 0"], ["python3", "link/x.py"], ["python3", "data/tool.py"],
    ["env", "A=1", "true"], ["./with blank"], ["/bin/sh", "t.sh"], ["{project}/venv/tool"],
    ["python3", "-m", "pkg.mod"], ["python3", "-m", "pkg.sub"], ["python3", "-m", "open.nosuch"],
    ["python3", "-m", "folder.nosuch"], ["python3", "-m", "nosuch"], ["python3", "-I", "-m", "pkg.nosuch"],
    ["bash", "-c", "../x.sh"], ["bash", "-s", "nosuch"],
])
def test_what_may_work_is_not_refused(act, words):
    act.write("t.sh", "")
    act.write("with blank", "#!/bin/sh\n")
    (act.project / "with blank").chmod(0o755)
    (act.project / "link").symlink_to("/tmp")
    for name in ("pkg/__init__.py", "pkg/mod.py", "pkg/sub/__main__.py", "folder/x.py"):
        act.write(name, "")
    act.write("open/__init__.py", "__path__ = []")
    act.write("venv/tool", "").chmod(0o755)
    act.run("submit", "--dry-run", *(word.format(project=act.project) for word in words))


@pytest.mark.parametrize("source", ["requirements.txt", "uv.lock", "environment.yml"])
def test_packages_bring_programs_and_no_files(act, source):
    act.write(source, "")
    act.write("t.py", "")
    for words, status, match in ((["python3", "nosuch.py"], 3, "there is no 'nosuch.py'"),
                                 (["t.py"], 2, "name what runs it, as in 'python3 t.py'"),
                                 (["./t.py"], 2, "is not executable"), (["./nosuch.sh"], 3, "there is no './nosuch")):
        act.fail("submit", *words, status=status, match=match)
    act.run("submit", "--dry-run", "brought-by-a-package")
    act.run("-p", "setup: touch made.py", "submit", "--dry-run", "python3", "made.py")


def test_a_file_that_is_made_on_the_node_is_not_missed(act):
    act.write("compile.aml.sh", "echo echo made >made.sh; chmod +x made.sh")
    assert act.lines(act.finish("./made.sh"))[-1] == "made"


def test_local_runs_the_code_on_the_screen(act):
    for said in ("one", "two"):
        act.write("say.sh", f"echo {said}")
        assert act.run("local", "sh", "say.sh").out == f"{said}\n"
    act.write("say.sh", "echo three")
    assert act.run("local", "--last-package", "sh", "say.sh").out == "two\n"


def test_much_new_code_is_asked_about(act):
    """Without a terminal it is a warning that names the largest files; on one, 'n' packs nothing."""
    act.write("say.sh", "echo packed")
    with open(act.project / "last.pt", "wb") as big:
        big.truncate(101 << 20)
    what = "101.0 MiB of new code: last.pt 101.0 MiB, aux_data/aml/aml.yaml"
    shown = act.on_terminal("submit", "sh", "say.sh", typed=b"n\n").decode()
    assert what in shown and "Pack and upload it all? [y/N]" in shown and "not confirmed" in shown
    assert "A line in .gitignore or .actignore leaves a name out" in shown
    assert not list(act.store.rglob("*.zip"))
    for is_new in (True, False):
        result = act.run("submit", "true")
        assert (what in result.err) == is_new
        act.run("wait", result.out.strip())
    assert (act.store / "files/code/project.zip").is_file()


def test_links_that_lead_out_of_the_code(act):
    """Every Python environment has them."""
    (act.project / "py/bin").mkdir(parents=True)
    (act.project / "py/bin/python").symlink_to("/usr/bin/python3")
    (act.project / "dangling").symlink_to("/nowhere/at/all")
    run = act.finish("py/bin/python", "-c", "print('by the link')", before=("-n", "1"))
    assert act.lines(run) == ["by the link"]


def test_what_is_not_in_the_built_in_store_is_found(act):
    """It is in the project, or in the store of the project as it was called before, but not in that of another one."""
    old, new, other = (act.scratch / name for name in ("old", "new", "other"))
    for project in old, other:
        (project / "output").mkdir(parents=True)
        (project / "train.py").write_text("print('the same words')\n")
    (old / "output/before").touch()
    assert "no runs yet; 'a submit COMMAND' starts one" in act.run("q", cwd=old).err
    run = act.submit("-n", "1", "--", "sh", "-c", "echo result > output/result", cwd=old)
    act.run("wait", run, cwd=old)
    message = act.fail("d", "output/result", cwd=old, status=3)
    assert "it is in the project's own folder 'output', which runs use as the store has none" in message
    act.run("u", "output", cwd=old)
    old.rename(new)
    (new / "output").rename(act.scratch / "elsewhere")
    (other / "output").rmdir()
    assert str(old) not in act.run("ls", "output", cwd=other).err, "a project of its own"
    known = f"this project was at '{old}', and has a folder 'output' in the store"
    assert known in act.run("ls", "output", cwd=new).err and known in act.fail("d", "output", cwd=new, status=3)
    (new / "train.py").write_text("print('another file')\n")
    (new / "train.py").touch()
    assert known not in act.run("ls", "output", cwd=new).err, "nothing shows it"
    (new / "assets" / run).mkdir(parents=True)
    message, = [line for line in act.run("ls", "output", cwd=new).err.splitlines() if "is empty" in line]
    assert known in message, "it has the copies of a run's logs"
    subprocess.run(["sh", "-c", message.partition("take it over: ")[2]], check=True)
    assert act.run("ls", "output", cwd=new).out.split() == ["before", "result"]


def test_a_damaged_package_is_not_run(act):
    act.write("say.sh", "echo packed")
    act.run("init")
    stored = [p for p in (act.store / "files/code/project").glob("*.zip")]
    for path in [*stored, *(act.home / "cache/packages").glob("*.zip")]:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
    act.fail("submit", "--last-package", "sh", "say.sh", match="damaged")


def test_package_of_another_tool(act):
    """The original writes code_path alone, with zip."""
    import zipfile
    target = act.store / "files/code/project.zip"
    target.parent.mkdir(parents=True)
    with zipfile.ZipFile(target, "w") as z:
        z.writestr("say.sh", "echo from another tool\n")
    kept = act.home / f"cache/packages/{hashlib.sha256(target.read_bytes()).hexdigest()}.zip"
    kept.mkdir(parents=True)
    act.fail("submit", "--last-package", "sh", "say.sh", match=f"cannot write '{kept}': Is a directory")
    kept.rmdir()
    run = act.finish("--last-package", "sh", "say.sh")
    assert act.lines(run) == ["from another tool"]


def everything_logged(act, run):
    act.run("q", run)
    return b"".join(p.read_bytes() for p in (act.project / f"assets/{run}").rglob("*") if p.is_file()).decode()


# ---- the store is a service, and secrets stay secret


@pytest.mark.smoke
def test_code_from_azure_and_no_secrets_anywhere(act, azure):
    act.cluster("aml", folders=())
    sas = azure.service.container_sas(azure.container)
    act.account("store", account_name=azure.service.account, account_key=azure.service.key, sas_token="?" + sas,
                container_name=azure.container, endpoint=azure.service.endpoint)
    act.cluster("aml", folders=(), extra={"docker": {"image": "x", "password": "docker-pass-word"}})
    act.write("say.sh", "echo from azure; sleep 2")
    run = act.submit("sh", "say.sh", env={"ACT_TRACE": "all"})
    act.until_state(run, "Running", "Completed")
    command_lines = b"\n".join(b" ".join(words) for words in act.processes().values())
    act.run("wait", run)
    assert act.lines(run) == ["from azure"]
    assert azure.service.exists(f"{azure.container}/files/code/project.zip")

    shown = act.run("config", "show").raw_out + act.run("config", "show", "--json").raw_out
    files = [p for folder in (act.home, act.project / "assets") for p in folder.rglob("*") if p.is_file()]
    assert {"ledger.db", "say.sh"} < {p.name for p in files}, "the unpacked code is looked at as well"
    seen = b"".join(p.read_bytes() for p in files) + shown + command_lines
    signature = sas.split("sig=")[1]
    for secret in (azure.service.key, signature, sas, "docker-pass-word"):
        assert secret.encode() not in seen, "a secret got out"


def test_secret_environment_is_masked_where_it_is_shown(act):
    act.cluster("aml", extra={"env": {"WANDB_API_KEY": "env-secret-value"}})
    run = act.finish("sh", "-c", 'test "${#WANDB_API_KEY}" = 16', before=("-n", "1"))
    shown = [act.run("config", "show"), act.run("q", run), act.run("q", "--json"),
             act.run("submit", "--dry-run", "true")]
    for result in shown:
        assert "env-secret-value" not in result.out + result.err, result
    for log in pathlib.Path(act.project / f"assets/{run}").rglob("*.txt"):
        assert b"env-secret-value" not in log.read_bytes(), log


# ---- mapped folders that cannot be linked


def test_folders_of_a_blob_store_are_brought_and_sent(act, azure):
    config = json.loads(act.cluster("aml").read_text())
    config["config_param"]["data_folder"]["mode"] = "download"
    config["config_param"]["output_folder"]["mode"] = "upload"
    (act.project / "aux_data/aml/aml.yaml").write_text(json.dumps(config))
    act.write("data/in/x.txt", "from the store")
    act.run("u", "data")
    run = act.finish("sh", "-c", "cat data/in/x.txt > output/y.txt; test ! -L data")
    assert azure.get("output/y.txt") == b"from the store"
    act.finish("sh", "-c", "echo partial > output/z.txt; exit 3", status=3)
    assert azure.get("output/z.txt") == b"partial\n", "what is there is sent, however the run ends"
    assert "download of folder 'data' ended" in everything_logged(act, run)


def test_folders_of_a_blob_store_need_what_mounts_them(act, azure):
    act.without("rclone", "blobfuse2")
    message = act.fail("submit", "true", status=7, match="cannot be mounted")
    assert "mode: download" in message and "mode: upload" in message
    assert azure.service.list(azure.container, "") == {}, "nothing is uploaded for a run that cannot start"


def test_the_log_of_a_node_says_what_it_is(act, scratch):
    """With the packages that the command's own Python has after requirements.txt."""
    site = scratch / "venv/lib/python3.11/site-packages"
    (site / "toy-1.2.3.dist-info").mkdir(parents=True)
    (scratch / "venv/bin").mkdir()
    (scratch / "venv/pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    python = scratch / "venv/bin/python3"
    python.symlink_to(pathlib.Path("/usr/bin/python3").resolve())
    version = pathlib.Path("/usr/bin/python3").resolve().name
    site.parent.rename(site.parent.parent / version)
    run = act.finish(python, "-c", "print('it ran')", before=("-n", 1))
    log, = (act.home / "runs" / run / "system_logs").glob("node_*.txt")
    text = log.read_text()
    for said in ("rank 0: system: ", f"kernel {os.uname().release}", "rank 0: disk: / ",
                 "rank 0: packages: toy==1.2.3\n", f"rank 0: Python: {python}, 1 package\n"):
        assert said in text, said
    assert text.index("rank 0: system: ") < text.index("command started"), "before whatever the command does"
    assert act.run("logs", run).out == "it ran\n"
