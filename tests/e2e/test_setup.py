"""What nodes set up before the command: modules, conda, virtual environments, lines for bash."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest


@pytest.fixture
def modules(act):
    """A folder of modules, which Environment Modules find: numbers/1.0, numbers/2.0, letters/a, which conflicts."""
    folder = act.scratch / "modules"
    for name, text in {"numbers/1.0": "setenv NUMBERS one\nprepend-path PATH /numbers",
                       "numbers/2.0": "setenv NUMBERS two\nprepend-path LD_LIBRARY_PATH /two/lib",
                       "letters/a": "conflict numbers\nsetenv LETTERS a"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"#%Module1.0\n{text}\n")
    return folder


@pytest.fixture
def conda(act):
    """conda(name): an environment of conda in a home where no shell knows conda; its Python is Debian's."""
    base = act.scratch / "home/miniforge3"

    def make(name):
        prefix = base if name == "base" else base / "envs" / name
        for folder in ("bin", "conda-meta", "etc/conda/activate.d"):
            (prefix / folder).mkdir(parents=True, exist_ok=True)
        (prefix / "bin/python").symlink_to("/usr/bin/python3")
        (prefix / "etc/conda/activate.d/one.sh").write_text("export ACTIVATED=$CONDA_PREFIX\n")
        (prefix / "conda-meta/state").write_text(json.dumps({"env_vars": {"FROM_STATE": "it's so"}}))
        return prefix
    return make


def keys(**settings):
    """Options that give these keys."""
    return [word for key, value in settings.items() for word in ("-p", f"{key}: {json.dumps(value)}")]


@pytest.mark.smoke
def test_all_of_it_in_order(act, modules, conda):
    torch = conda("torch")
    venv = act.scratch / "venv"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", venv], check=True)
    settings = keys(env={"MODULEPATH": str(modules), "MINE": "1"}, modules=["numbers"], conda="torch", venv=str(venv),
                    setup="echo loud; export SEEN=$NUMBERS,$ACTIVATED,${VIRTUAL_ENV##*/},$MINE MINE=2\nunset HELD\n"
                          "say() { echo said $1; }\nexport -f say",
                    setup_rank="export OWN=$RANK")
    run = act.finish("bash", "-c", "echo $SEEN $MINE $OWN $FROM_STATE ${HELD-gone} ${ACT_SETUP-}; say so; "
                     "command -v python; echo $CONDA_DEFAULT_ENV $LD_LIBRARY_PATH; pwd; tr '\\0' ' ' </proc/$$/cmdline",
                     before=settings)
    assert act.lines(run)[:5] == [f"two,{torch},venv,1 2 0 it's so gone", "said so", str(venv / "bin/python"),
                                  "torch /two/lib", str(act.run_dir(run) / "code")]
    assert act.lines(run)[5].startswith("bash -c echo"), "what the user typed is the process that ps shows"
    assert "loud" in next(act.run_dir(run).glob("system_logs/prepare_*")).read_text()
    assert not list(act.run_dir(run).rglob(".setup*"))
    for before, seen in (((), act.lines(run)[0]), (keys(setup="export SEEN=now"), "now 1 0 it's so")):
        again = act.run(*before, "resubmit", run).out.split()[-1]
        act.run("wait", again)
        assert act.lines(again)[0].startswith(seen)
        differs = [d["name"] for d in act.run("diff", run, again, "--json").json["differences"] if d["part"] != "nodes"]
        assert differs == ["run.setup.lines"] * len(before and [1]), "once, not also as a key of the configuration"


@pytest.mark.parametrize("settings, said", [
    ({"modules": ["numbers", "letters"]}, r"cannot load the module 'letters';"),
    ({"modules": ["numbres"]}, r"cannot load the module 'numbres'; near it there are: numbers/1.0 numbers/2.0"),
    ({"conda": "troch"}, r"there is no conda environment 'troch' on this node; it has: torch"),
    ({"conda": "/nowhere"}, r"there is no conda environment '/nowhere' on this node"),
    ({"venv": "/nowhere"}, r"'/nowhere' is not a virtual environment on this node: it has no pyvenv.cfg"),
    ({"setup": "true\ncd /nowhere\necho never"}, r"line 2 of 'setup' ended with status 1: cd /nowhere"),
    ({"setup": "true\nread answer"}, r"line 2 of 'setup' ended with status 1: read answer"),
    ({"setup": "exit 0"}, r"'setup' ended the shell, with 'exit 0'"),
    ({"setup": "exit 7"}, r"'setup' ended the shell, with 'exit 7'"),
    ({"setup": "exec true"}, r"'setup' ended the shell"),
    ({"setup": "export PATH=/nowhere; nothing"}, r"line 1 of 'setup' ended with status 127: nothing"),
    ({"setup": "export WORLD_SIZE=9"}, r"'setup' sets WORLD_SIZE, which each rank has for itself"),
    ({"setup": "if true\n"}, r"bash cannot read 'setup'"),
    ({"setup": "set -u\necho $NOPE"}, r"bash ended 'setup' at an error: see its message in the log"),
    ({"setup": "sleep 1000", "setup_timeout": "1s"}, r"had not ended after 1 s; 'setup_timeout' gives it longer")])
def test_what_fails(act, modules, conda, settings, said):
    conda("torch")
    run = act.submit("echo", "never", before=keys(env={"MODULEPATH": str(modules)}, **settings))
    act.run("wait", run, status=None)
    assert "never" not in act.lines(run)
    assert re.search(said, act.run("wait", run, status=None).err)


@pytest.fixture(params=[0, 1], ids=["old", "new"])
def tool(act, request):
    """A tool of modules that notes how it is called. Old releases return 0 also when they cannot load a module. The
    module mpi is another name of openmpi."""
    calls = act.write("calls", "")
    act.write("modules/init/bash", f"""
        module() {{
            local name status=0
            echo "$@" >>{calls}
            [[ $1 != unload ]] || export LOADEDMODULES=
            [[ $1 == load ]] || return 0
            for name in "${{@:2}}"; do
                [[ $name != mpi ]] || name=openmpi
                [[ $name != no* ]] || {{ echo "no $name" >&2; status={request.param}; continue; }}
                [[ :$LOADEDMODULES: == *:$name/1:* ]] || export LOADEDMODULES=${{LOADEDMODULES:+$LOADEDMODULES:}}$name/1
                export M_$name=1
            done
            return $status
        }}""")
    return calls


def tool_settings(act):
    """What a shell of another tool has left is no word on this one."""
    return {"env": {"MODULESHOME": f"{act.project}/modules", "MODULES_CMD": "/nowhere", "LMOD_CMD": "/nowhere"},
            "modules_purge": True}


def test_one_start_of_the_tool_loads_all_modules(act, tool):
    """Nothing loaded is not unloaded."""
    run = act.finish("sh", "-c", "echo $M_a$M_b", before=keys(modules=["a", "b"], **tool_settings(act)))
    assert act.lines(run) == ["11"]
    assert tool.read_text() == "load a b\n"


@pytest.mark.parametrize("names", [["nosuch"], ["a", "nosuch", "b"], ["mpi", "nosuch"]])
def test_a_module_that_is_not_loaded_is_named(act, tool, names):
    run = act.submit("true", before=keys(modules=names, **tool_settings(act)))
    assert "cannot load the module 'nosuch'" in act.run("wait", run, status=None).err
    assert "load b\n" not in tool.read_text().split("nosuch")[-1]


@pytest.mark.parametrize("names", [["mpi"], ["a", "mpi"], ["mpi", "a"]])
def test_a_module_may_have_another_name(act, tool, names):
    run = act.finish("sh", "-c", "echo $M_openmpi", before=keys(modules=names, **tool_settings(act)))
    assert act.lines(run) == ["1"]


def test_a_capture_has_what_the_kernel_keeps(tmp_path):
    """Also where 'cat' is a function; one that cannot be written fails."""
    def capture(folder):
        program = pathlib.Path(__file__).parents[2] / "act/run/setup.sh"
        env = os.environ | {"BASH_FUNC_cat%%": "() { :; }", "SEEN": "1"}
        return subprocess.run(["bash", program, "capture", folder, "", "", "", "", ""], env=env, check=False).returncode
    assert capture(tmp_path) == 0
    assert "SEEN=1" in (tmp_path / "after").read_text().split("\0")
    assert capture(tmp_path / "nowhere") == 1


def test_modules_in_a_posix_shell(act, modules):
    """POSIXLY_CORRECT makes bash refuse names of functions that it takes otherwise."""
    env = {"MODULEPATH": str(modules), "POSIXLY_CORRECT": "1"}
    assert act.lines(act.finish("sh", "-c", "echo $NUMBERS", before=keys(env=env, modules=["numbers/1.0"]))) == ["one"]


def test_a_conda_environment_of_another_user(act):
    act.respect_modes()
    theirs = act.scratch / "theirs"
    (theirs / "envs/torch/conda-meta").mkdir(parents=True)
    theirs.chmod(0)
    try:
        run = act.finish("true", before=keys(conda=str(theirs / "envs/torch")), status=1)
        said = act.run("wait", run, status=None).err
    finally:
        theirs.chmod(0o700)
    assert f"cannot be read: you may not look into '{theirs}', which belongs to " in said


def test_a_log_says_once_what_failed(act):
    """With the lines of 'setup' under their name, where bash has a message of its own."""
    for lines, said in (("true\nfalse", ["act: preparation failed: line 2 of 'setup' ended with status 1: false"]),
                        ("set -u\necho $NOPE",
                         ["act: the preparation has printed:", "setup: line 2: NOPE: unbound variable",
                          "act: preparation failed: bash ended 'setup' at an error: see its message in the log"])):
        run = act.submit("true", before=keys(setup=lines))
        act.run("wait", run, status=None)
        assert [re.sub(r"^/.*/", "", line) for line in act.lines(run)] == said


@pytest.mark.parametrize("lines, said", [
    ("exit 0", "'setup_rank' ended the shell, with 'exit 0'"),
    ("true\nfalse", "line 2 of 'setup_rank' ended with status 1")])
def test_what_a_rank_sets_up_fails(act, lines, said):
    run = act.finish("echo", "never", before=keys(setup_rank=lines), status=1)
    assert act.lines(run) == [f"act: {said}" if "line" not in said else f"act: {said}: false"]
    assert "setup_line" in act.run("why", run).out or "mend 'setup'" in act.run("why", run).out


@pytest.mark.parametrize("settings, advice", [
    ({"setup": "sleep 1000", "setup_timeout": "1s"}, "setup_timeout: 30m"), ({"modules": ["nosuch"]}, "module avail"),
    ({"conda": "nosuch"}, "conda: NAME"), ({"setup": "exit 0"}, "mend 'setup'")])
def test_why_it_failed(act, settings, advice):
    run = act.submit("true", before=keys(**settings))
    act.run("wait", run, status=None)
    assert advice in " ".join(act.run("why", run).out.split())


def test_a_path_without_programs(act):
    run = act.finish("/bin/sh", "-c", "echo $PATH", before=keys(setup="export PATH=/nix"))
    assert act.lines(run) == ["/nix"]


def test_much_output(act):
    """It is cut, and escape sequences in it do nothing."""
    run = act.finish("pwd", before=keys(setup="printf '\\033[2J'; head -c 40000000 /dev/zero | tr '\\0' x; cd /"))
    assert act.lines(run) == [str(act.run_dir(run) / "code")]
    log = next(act.run_dir(run).glob("system_logs/prepare_*"))
    assert log.stat().st_size < 17 << 20 and "the output of 'setup' is cut here" in log.read_text()[-200:]


def test_what_it_prints_does_nothing_to_a_terminal(act):
    """Also where it is shown as the reason."""
    lines = "printf '\\033[2J\\033]0;title\\007\\n'\nprintf '\\033[2J\\033]0;title\\007 end\\n'; (exit 3)"
    run = act.submit("true", before=keys(setup=lines))
    act.run("wait", run, status=None)
    for words in (("logs", run), ("why", run), ("q", run), ("wait", run)):
        shown = act.on_terminal(*words)
        assert b"\x1b[2J" not in shown and b"\x1b]0" not in shown, (words, shown)


@pytest.mark.usefixtures("two_ranks")
def test_once_for_all_ranks(act):
    notes = act.scratch / "notes"
    run = act.finish("sh", "-c", "echo $SHARED", before=[*keys(setup=f"echo once >>{notes}; export SHARED=yes"),
                                                           "-n", "2"])
    assert notes.read_text() == "once\n"
    assert {act.lines(run, rank)[0] for rank in range(2)} == {"yes"}


@pytest.mark.parametrize("settings, said", [
    ({"modules": ["a b"]}, "'modules' must be a list of names such as cuda/12.1, not 'a b'"),
    ({"modules": ["--force"]}, "'modules' must be a list of names such as cuda/12.1, not '--force'"),
    ({"conda": "env.yml"}, "'conda' must name an environment that is there.*conda env create -f env.yml"),
    ({"conda": "a/b"}, "'conda' must be the name of an environment or its folder"),
    ({"venv": "here"}, "'venv' must be the folder of a virtual environment on the nodes"),
    ({"setup": "#" * 70000}, "'setup' must be at most 64 KiB"),
    ({"setup_timeout": "soon"}, "'setup_timeout' must be a time such as 90s or 20m")])
def test_what_is_refused(act, settings, said):
    act.fail(*keys(**settings), "submit", "true", match=said, status=None)
    assert act.run("q", "--json").json["runs"] == []


def test_a_dry_run_shows_it(act):
    spec = act.run(*keys(modules=["cuda/12.1"], conda="torch"), "submit", "--dry-run", "true").json
    spec = spec.get("run", spec)
    assert spec["setup"] == {"modules": ["cuda/12.1"], "conda": "torch", "timeout_s": 600}


@pytest.mark.parametrize("said, packages", [("true", "system"), ("false", "own")])
def test_a_project_says_what_its_environment_sees(act, said, packages):
    act.write("act.yaml", f"environment: {{system_packages: {said}}}\n")
    spec = act.run("submit", "--dry-run", "true").json
    assert spec.get("run", spec)["environment"] == {"packages": packages}


def test_on_every_node_of_slurm(lab, modules):
    lab.configure(env={"MODULEPATH": str(modules)}, modules=["numbers/1.0"],
                  setup="echo x >>$ACT_NOTES.$SLURMD_NODENAME; export WHERE=$SLURMD_NODENAME")
    notes = lab.act.scratch / "notes"
    run = lab.shell("echo $NUMBERS; "
                    "[[ $WHERE = $SLURMD_NODENAME ]] && echo same; [[ $PATH = /numbers:* ]] && echo first",
                    n=4, before=("-p", f"env: {{MODULEPATH: {modules}, ACT_NOTES: {notes}}}"))
    lab.wait(run, "Completed", 0)
    assert [lab.rank_text(run, rank).split() for rank in range(4)] == [["one", "same", "first"]] * 4
    assert [path.read_text() for path in lab.act.scratch.glob("notes.*")] == ["x\n", "x\n"]


def test_in_a_container(lab):
    """apptainer gives its commands the image's PATH, unless APPTAINERENV_PATH says otherwise."""
    folder = lab.act.scratch / "bin"
    folder.mkdir()
    (folder / "apptainer").write_text("#!/bin/sh\nwhile [ \"$1\" != docker://team/image:1 ]; do shift; done; shift\n"
                                      "PATH=${APPTAINERENV_PATH:-/usr/bin:/bin} IN=${APPTAINERENV_IN:-} exec \"$@\"\n")
    (folder / "apptainer").chmod(0o755)
    lab.configure(docker={"image": "team/image:1"}, slurm={"container": "apptainer"},
                  env={"PATH": f"{folder}:/usr/bin:/bin"}, setup="export PATH=/tools:$PATH IN=image")
    lab.act.env["PATH"] = f"{folder}:{lab.act.env['PATH']}"
    run = lab.shell("echo $PATH $IN", n=2)
    lab.wait(run, "Completed", 0)
    assert lab.rank_text(run, 1) == "/tools:/usr/bin:/bin image\n"


def test_in_the_container_of_a_local_run(act):
    """Each docker container begins anew: bash stands before the command there."""
    folder = act.scratch / "bin"
    folder.mkdir()
    (folder / "docker").write_text("#!/bin/sh\n[ \"$1\" = run ] || exit 0\n"
                                   "while [ \"$1\" != registry/image:1 ]; do shift; done; shift\nexec \"$@\"\n")
    (folder / "docker").chmod(0o755)
    act.cluster("aml", extra={"platform": "local", "docker": {"image": "registry/image:1"}})
    act.env["PATH"] = f"{folder}:{act.env['PATH']}"
    out = act.run("-c", "aml", *keys(setup="export A=1\ncd /", setup_rank="export B=$A$A"), "local", "sh", "-c",
                  "echo $A $B; pwd").out
    assert out.splitlines()[0] == "1 11" and out.splitlines()[1] != "/"



# ---- the project's own file


def test_a_project_says_it_for_all_clusters(act):
    """The file of the cluster comes before it, and -p before both; each key counts for itself."""
    act.write("act.yaml", "setup: export FROM=project\nsetup_rank: export OWN=project\nsetup_timeout: 5m\n")
    command = ("sh", "-c", "echo $FROM $OWN")
    spec = act.run("submit", "--dry-run", *command).json
    assert spec.get("run", spec)["setup"] == {"lines": "export FROM=project", "rank_lines": "export OWN=project",
                                              "timeout_s": 300}
    assert act.lines(act.finish(*command)) == ["project project"], "also where there is no cluster file"
    act.cluster("aml", extra={"platform": "local", "setup": "export FROM=cluster"})
    assert act.lines(act.finish(*command)) == ["cluster project"]
    assert act.lines(act.finish(*command, before=keys(setup_rank="export OWN=typed"))) == ["cluster typed"]
    shown = {row.split()[0]: row for row in act.run("config", "show").out.splitlines() if row.strip()}
    assert "aux_data/aml/aml.yaml" in shown["setup"] and "act.yaml:2" in shown["setup_rank"], shown


@pytest.mark.parametrize("text, said", [
    ("setup: true\nplatform: slurm\n",
     "act.yaml:2:1: 'platform' has no place in 'act.yaml', which is for all clusters: it has modules, modules_purge, "
     "conda, venv, setup, setup_rank, setup_timeout and environment; what is of one cluster stands in its own file, "
     "'aux_data/aml/CLUSTER.yaml'"),
    ("env: {A: 1}\n", "act.yaml:1:1: 'env' has no place in 'act.yaml'"),
    ("_base_: other.yaml\n", "act.yaml:1:1: '_base_' has no place in 'act.yaml'"),
    ("module: [cuda]\n", "act.yaml:1:1: unknown key 'module'; did you mean 'modules'?"),
    ("setup: {a: b}\n", "act.yaml:1:1: 'setup' must be text"),
    ("venv: here\n", "'venv' must be the folder of a virtual environment on the nodes"),
    ("- setup\n", "act.yaml:1:1: must be a map of keys and values"),
    ("setup: [\n", "act.yaml:2:1: ")])
def test_what_a_project_cannot_say(act, text, said):
    act.write("act.yaml", text)
    for words in (("submit", "true"), ("config", "check")):
        result = act.run(*words, status=None)
        assert result.status != 0 and said in result.out + result.err, result


# ---- a doctor


def doctor(act, *words, status=None):
    return [(check["ok"], check["text"]) for check in act.run(*words, "doctor", "--json", status=status).json["checks"]
            if check["what"] == "setup"]


def test_the_doctor_tries_it_here(act, modules, conda):
    act.env["MODULEPATH"] = str(modules)
    assert doctor(act) == []
    torch = conda("torch")
    (_, text), = doctor(act, *keys(modules=["numbers/1.0"], conda="torch"))
    assert re.fullmatch(r"on this machine: modules numbers/1.0, Python 3\.\d+\.\d+, '.*/python3'", text), text
    (ok, text), = doctor(act, *keys(venv="/nowhere"), status=1)
    assert not ok and text.startswith("on this machine: '/nowhere' is not a virtual environment on this node")
    (ok, text), = doctor(act, *keys(setup=f"touch {act.scratch}/tried"))
    assert ok and text.endswith("the lines of 'setup' were not tried") and not (act.scratch / "tried").exists()
    shown = act.run(*keys(conda="nosuch"), "doctor", status=1).out
    assert "there is no conda environment 'nosuch' on this node; it has: torch" in " ".join(shown.split())
    assert torch.exists()


@pytest.mark.parametrize("below", [".", "sub"])
def test_the_doctor_runs_nothing_of_the_project(act, conda, below):
    """Whose environment would be activated; a repository may have several projects."""
    prefix, ran = act.project / "env", act.scratch / "ran"
    (prefix / "conda-meta").mkdir(parents=True)
    (prefix / "etc/conda/activate.d").mkdir(parents=True)
    (prefix / "etc/conda/activate.d/x.sh").write_text(f"touch {ran}\n")
    (act.project / ".git").mkdir(exist_ok=True)
    project = act.project / below
    if below != ".":
        shutil.copytree(act.project / "aux_data", project / "aux_data")
    (project / "act.yaml").write_text(f"conda: {prefix}\n")
    found = act.run("doctor", "--json", cwd=project, status=None).json["checks"]
    assert [c["text"] for c in found if c["what"] == "setup"] == ["not tried: the environment is in the project"]
    assert not ran.exists()


def test_the_doctor_gives_bash_nothing_that_a_project_says(act, modules):
    """Neither variables, some of which bash executes, nor the file of a module, which is a program."""
    ran = act.scratch / "ran"
    act.env["MODULEPATH"] = str(modules)
    given = keys(modules=["numbers/1.0"], env={"BASH_ENV": f"$(touch {ran})", "PATH": str(act.project)})
    act.write("bash", f"#!/bin/sh\ntouch {ran}\n").chmod(0o755)
    (ok, text), = doctor(act, *given)
    assert ok and "modules numbers/1.0" in text and not ran.exists(), text
    for module in (f"{act.project}/evil", "./evil", "../evil", "a/../../evil"):
        assert doctor(act, *keys(modules=[module])) == [(True, "not tried: a module is named by the path of its file")]


def test_the_doctor_tries_it_on_the_login_node(lab, modules):
    lab.configure(env={"MODULEPATH": str(modules)}, modules=["nosuch/1"])
    (ok, text), = doctor(lab.act, "-c", "lab")
    assert not ok and text.startswith("on the login node: cannot load the module 'nosuch/1'")
