"""Environments that are made from what a project says that it needs: by the real venv and pip, against an index of our
own (wheel_index.py). uv, conda and the like are programs that play them by their documented behaviour."""
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import pytest
import slurm_bed
import slurm_fixtures
import waiting
import wheel_index
from environment_bed import SAY, environments, environments_in, index, rest, rest_in, said  # noqa: F401


def everything(folder):
    """What files there are, and when they changed, but for what Python keeps of modules that it has read."""
    return {path: path.lstat().st_mtime_ns for path in folder.rglob("*")
            if "__pycache__" not in str(path) and path.parent.name != "runs" and not path.is_dir()}


@pytest.mark.smoke
def test_made_once_and_used_again(act, index, two_ranks):
    """The environment is active for compile.aml.sh and the command, and nothing else changes."""
    act.write("requirements.txt", "toy==1.0\n")
    act.write("compile.aml.sh", "#!/bin/sh\npython -c 'import toy; print(toy.VERSION)' >compiled\n")
    wait = "until [ -s $ACT_RUN_CODE/../system_logs/environment.json ]; do sleep 0.1; done"
    first = act.finish("sh", "-c", f'cat compiled; python3 -c "{SAY}"; {wait}', before=("-n", "2"))
    (key, folder), = environments(act).items()
    for rank in range(2):
        assert act.lines(first, rank)[-2:] == ["1.0", said(folder)]
    assert act.lines(first)[0] == "act: making the environment from requirements.txt"
    downloads = index.downloads("toy-1.0-py3-none-any.whl")
    (act.project / "compile.aml.sh").unlink()
    second = act.finish("python", "-c", SAY)
    assert act.lines(second) == [said(folder)]
    assert index.downloads("toy-1.0-py3-none-any.whl") == downloads == 1 and list(environments(act)) == [key]
    assert {path.name for path in (folder / "runs").iterdir()} == {first, second}
    assert not rest(act)
    about = json.loads((folder / "about.json").read_text())
    assert about["from"] == "requirements.txt" and about["packages"] >= 1
    record = json.loads((act.run_dir(first) / "system_logs/environment.json").read_text())
    assert record["venv"] == str(folder / "env"), "runs are compared by what they share"
    assert record["python"] == str(folder / "env/bin/python3") and "toy==1.0" in record["packages"]


def test_what_a_run_installs_is_its_own(act, index):
    """By compile.aml.sh or the command, also another version of what is there; programs of packages see it."""
    index.add("extra")
    act.write("requirements.txt", "toy==1.0\n")
    plain = act.finish("toy")
    folder, = environments(act).values()
    before = everything(folder)
    act.write("compile.aml.sh", "#!/bin/sh\npip install extra\n")
    run = act.finish("sh", "-c",
                     "python3 -m pip install toy==2.0; python3 -c 'import extra, toy; print(toy.VERSION)'; toy")
    assert act.lines(plain)[-1] == "1.0" and act.lines(run)[-2:] == ["2.0", "2.0"]
    assert everything(folder) == before
    (act.project / "compile.aml.sh").unlink()
    again = act.finish("sh", "-c", "toy; python3 -c 'import extra'", status=1)
    assert act.lines(again)[0] == "1.0" and "No module named 'extra'" in act.lines(again)[-1]
    assert list(environments(act).values()) == [folder]


def test_what_a_run_installs_where_tmp_starts_nothing(act, index):
    """As where /tmp is mounted so that no program may be started from it (noexec)."""
    if not slurm_bed.has_namespaces():
        pytest.skip("no permission for mounts")
    temp = act.scratch / "noexec"
    temp.mkdir()
    act.env["TMPDIR"] = str(temp)
    act.prefix = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o noexec none "$TMPDIR" && exec "$@"', "sh"]
    index.add("extra")
    act.write("requirements.txt", "toy==1.0\n")
    act.write("compile.aml.sh", "#!/bin/sh\npip install extra\n")
    run = act.finish("sh", "-c", "extra; toy; cat $VIRTUAL_ENV/pyvenv.cfg >/dev/null && echo $VIRTUAL_ENV")
    assert act.lines(run)[-3:-1] == ["1.0", "1.0"]
    assert act.lines(run)[-1].startswith(str(act.run_dir(run)))


CONDA = """# Plays micromamba by its documented command: micromamba create --yes --prefix DIR --file FILE.
mkdir -p "$4/bin" "$4/conda-meta" "$4/lib/python3.11/site-packages"
echo "VERSION = 'conda'" >"$4/lib/python3.11/site-packages/toy.py"
ln -s /usr/bin/python3 "$4/bin/python3"
ln -s python3 "$4/bin/python"
"""


def test_nothing_is_installed_into_an_environment_of_conda(act):
    """Its folders are read-only, also for tools that know nothing of layers; and yet they can be removed."""
    program(act, "micromamba", CONDA)
    act.write("environment.yml", "dependencies: [toy]\n")
    run = act.finish("sh", "-c", "echo $CONDA_PREFIX")
    (folder,) = environments(act).values()
    assert act.lines(run)[-1] == str(folder / "env")
    folders = [folder / "env", *(path for path in (folder / "env").rglob("*") if path.is_dir())]
    assert len(folders) == 6 and all(path.stat().st_mode & 0o222 == 0 for path in folders)
    act.respect_modes()
    later = act.finish("sh", "-c", "touch $CONDA_PREFIX/conda-meta/new.json", status=1)
    assert "Permission denied" in act.lines(later)[-1]
    assert act.run("env", "rm", "-y", "--json", folder.name[:16]).json["bytes"] > 0
    assert not environments(act) and not rest(act)


def test_the_file_of_conda_is_chosen(act):
    """Where another file would count; a dry run says so, and one that is not there is not passed over."""
    program(act, "micromamba", CONDA)
    act.write("requirements.txt", "toy==1.0\n")
    act.write("environment.yml", "dependencies: [toy]\n")
    chosen = ("-p", "conda: environment.yml")
    spec = act.run(*chosen, "submit", "--dry-run", "true").json
    assert spec.get("run", spec)["setup"]["conda"] == "environment.yml"
    run = act.finish("sh", "-c", "echo $CONDA_PREFIX", before=chosen)
    (folder,) = environments(act).values()
    assert act.lines(run)[-1] == str(folder / "env")
    assert json.loads((folder / "about.json").read_text())["from"] == "environment.yml"
    program(act, "micromamba", "[ -e \"$6\" ] || { echo \"error no such file: $6\" >&2; exit 1; }")
    (act.project / "environment.yml").unlink()
    failed = act.finish("true", status=1, before=chosen)
    assert "error no such file: environment.yml" in act.run("wait", failed, status=None).err


def test_nothing_to_install(act):
    act.write("requirements.txt", "\n  # numpy\r\n\t\r\n#end")
    act.finish("true")
    assert not environments(act)


def test_other_content_is_another_environment(act, index):
    for text, said in (("toy==1.0\n", "1.0"), ("toy==2.0\n", "2.0"), ("-r base.txt\n", "1.0"), ("toy==1.0\n", "1.0")):
        act.write("base.txt", "toy==1.0")
        act.write("requirements.txt", text)
        assert act.lines(act.finish("python3", "-c", SAY))[-1].startswith(said)
    assert len(environments(act)) == 3
    act.write("requirements.txt", "-r base.txt\n")
    act.write("base.txt", "toy==2.0")
    assert act.lines(act.finish("python3", "-c", SAY))[-1].startswith("2.0"), "a file that it names counts, too"


def test_none(act, index):
    act.write("requirements.txt", "nosuch==1.0\n")
    run = act.finish("sh", "-c", "echo ${VIRTUAL_ENV-none}", before=("-p", "environment: none"))
    assert act.lines(run) == ["none"] and not environments(act)
    again = act.run("resubmit", run).out.split()[-1]
    act.run("wait", again)
    assert act.lines(again) == ["none"], "a repeated run keeps it"


def test_the_systems_python_takes_no_packages(act):
    """As Debian's pip refuses them (PEP 668), to who installs by himself."""
    act.write("compile.aml.sh", "#!/bin/sh\necho 'error: externally-managed-environment' >&2; exit 1\n")
    run = act.finish("true", status=1)
    assert "write the packages into requirements.txt" in " ".join(act.run("why", run).out.split())


def test_the_packages_of_a_virtual_environment_are_seen(act, index):
    """Those of a plain Python are not, unless the file says so; and what is there is not fetched again."""
    venv = act.scratch / "venv"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", venv], check=True)
    site, = venv.glob("lib/python3*/site-packages")
    (site / "mine.py").write_text("VERSION = 'mine'\n")
    before = {path for path in venv.rglob("*")}
    act.write("requirements.txt", "toy==1.0\n")
    run = act.finish("python3", "-c", "import mine, toy; print(mine.VERSION, toy.VERSION)",
                     before=("-p", f"venv: {venv}"))
    assert act.lines(run)[-1] == "mine 1.0"
    alone = act.finish("python3", "-c", "import toy, mine", status=1,
                       before=("-p", f"{{venv: {venv}, environment: {{system_packages: false}}}}"))
    assert "No module named 'mine'" in act.lines(alone)[-1]
    assert {path for path in venv.rglob("*") if "__pycache__" not in str(path)} == before, "it is as it was"


def test_from_a_folder_of_wheels(act, index):
    """Nothing asks an index then."""
    act.write("data/wheels/toy-3.0-py3-none-any.whl", wheel_index.wheel("toy", "3.0"))
    act.run("u", "data")
    act.write("requirements.txt", "toy\n")
    run = act.finish("python3", "-c", SAY, before=("-p", "environment: {wheels_folder: data/wheels}"))
    assert act.lines(run)[-1].startswith("3.0") and not index.asked
    act.fail("-p", "environment: {wheels_folder: ../wheels}", "submit", "true", status=7,
             match="must be a folder of the nodes")


@pytest.mark.parametrize("text, said, advice", [
    ("toy ==== one", "Invalid requirement", "read the lines before"),
    ("nosuch==1.0", "No matching distribution found for nosuch==1.0", "a package could not be found"),
    ("toy==9.9", "No matching distribution found for toy==9.9", "wheels_folder"),
    ("toy==1.0 --hash=sha256:" + "0" * 64, "DO NOT MATCH THE HASHES", "write its new hash"),
    ("tin==1.0\ntoy==2.0", "", "allow more versions"),
    ("old==1.0", "No matching distribution found for old==1.0", "another Python")])
def test_what_cannot_be_installed(act, index, text, said, advice):
    act.write("requirements.txt", text + "\n")
    run = act.finish("true", status=1)
    failed = act.run("wait", run, status=None).err
    assert f"cannot make the environment from requirements.txt: ERROR: " in failed and said in failed
    assert advice in " ".join(act.run("why", run).out.split())
    assert not environments(act) and not rest(act)


def test_without_python(act, index):
    act.without("python3", "python", "uv")
    act.write("requirements.txt", "toy==1.0\n")
    run = act.finish("true", status=1)
    said = act.run("wait", run, status=None).err
    assert "requirements.txt needs a Python, and there is neither python3 nor uv" in said


def program(act, name, text):
    """A program that comes first in PATH."""
    folder = act.scratch / "bin"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    act.env["PATH"] = f"{folder}:{act.env['PATH']}"


def test_a_python_that_is_too_old(act, index):
    program(act, "python3", "exit 1")
    act.write("requirements.txt", "toy==1.0\n")
    run = act.finish("true", status=1)
    assert "python3 is too old to make an environment for requirements.txt" in act.run("wait", run, status=None).err
    assert not environments(act) and not rest(act)


def test_a_lock_file_that_does_not_parse(act):
    """What uv says of it, as it says it."""
    program(act, "uv", "[ \"$1\" = sync ] || exit 0\necho 'error: Failed to parse `uv.lock`' >&2\n"
                       "echo '  Caused by: TOML parse error at line 1, column 3' >&2; exit 2")
    act.write("pyproject.toml", "[project]\nname = 'ours'\n")
    act.write("uv.lock", "no lock\n")
    run = act.finish("true", status=2)
    assert "cannot make the environment from uv.lock: " in act.run("wait", run, status=None).err
    assert "TOML parse error" in " ".join(act.run("logs", run).out.split())
    assert not environments(act) and not rest(act)


def test_what_breaks_off_is_made_anew(act, index):
    """A download that is cut ends the run; the next one finds nothing half made."""
    name = "toy-1.0-py3-none-any.whl"
    index.cut.add(name)
    act.write("requirements.txt", "toy==1.0\n")
    act.finish("true", status=1)
    assert not environments(act) and not rest(act)
    index.cut.clear()
    assert act.lines(act.finish("python3", "-c", SAY))[-1].startswith("1.0")


def one_makes_and_one_waits(act, index):
    """Two runs that need the same; the download of the first goes on when the event is set."""
    name = "toy-1.0-py3-none-any.whl"
    goes_on = index.hold(name)
    act.write("requirements.txt", "toy==1.0\n")
    first = act.submit("python3", "-c", SAY)
    waiting.until(lambda: index.downloads(name), "the first asks for the package")
    second = act.submit("python3", "-c", SAY)
    says = r"waiting for node '.+', which makes the environment from requirements.txt: \d+s so far"
    waiting.until(lambda: re.search(says, act.run("q", second).out), "the second says that it waits")
    return first, second, goes_on


def test_the_others_wait_and_say_so(act, index):
    first, second, goes_on = one_makes_and_one_waits(act, index)
    waiting.until(lambda: "making the environment from requirements.txt: 1 package" in act.run("q", first).out,
                  "the first says what it does")
    goes_on.set()
    for run in (first, second):
        act.run("wait", run)
        assert act.lines(run)[-1].startswith("1.0")
    assert index.downloads("toy-1.0-py3-none-any.whl") == 1 and len(environments(act)) == 1 and not rest(act)


def test_killed_while_it_is_made(act, index):
    """Who waits goes on in its place; what the tools of the first do later leads nowhere."""
    first, second, goes_on = one_makes_and_one_waits(act, index)
    agents = lambda words: first in " ".join(map(os.fsdecode, words)) and b"act-node" in words[0]
    kill([pid for pid, words in act.processes().items() if agents(words)])
    waiting.until(lambda: index.downloads("toy-1.0-py3-none-any.whl") == 2, "the second makes it")
    goes_on.set()
    act.run("wait", second)
    waiting.until(lambda: not processes_of(act, first), "nothing of the first is left")
    assert act.lines(second)[-1].startswith("1.0")
    assert len(environments(act)) == 1 and not rest(act)


def test_what_a_killed_maker_has_left_is_removed(act, index):
    """Also if it was killed before it had written down who it is, or while it removed what it had begun."""
    act.write("requirements.txt", "toy==1.0\n")
    act.finish("true")
    (key, folder), = environments(act).items()
    (folder.parent / key).unlink()
    (folder / "maker").unlink()
    folder.rename(f"{folder}.gone")
    folder.mkdir()
    assert len(rest(act)) == 2
    act.finish("true")
    assert len(environments(act)) == 1 and not rest(act)


def processes_of(act, run):
    """Those that work for a run: its agents, and what they have started."""
    def works_for(pid):
        with contextlib.suppress(OSError):
            return os.fsencode(run) in pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    return [pid for pid, words in act.processes().items() if os.fsencode(run) in b" ".join(words) or works_for(pid)]


def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


ROUNDS, AT_ONCE = int(os.environ.get("ACT_ENVIRONMENT_ROUNDS", "2")), 20  # by hand: 200
PARTS, REAL = 20, 10  # files that the tool writes; in one of so many rounds it is the real one

TOOL = """# Plays uv by its documented commands. It takes a second, and next to no processor time.
packages=lib/python3.{minor}/site-packages
case "$1 $2" in
--version*) echo "uv 0.0 (played)" ;;
venv*)
    for last; do :; done
    mkdir -p "$last/bin" "$last/$packages/pip"
    ln -s /usr/bin/python3 "$last/bin/python3" && ln -s python3 "$last/bin/python"
    echo "home = /usr/bin" >"$last/pyvenv.cfg"; : >"$last/$packages/pip/__init__.py" ;;
"pip install")
    echo x >>"{log}"
    for i in $(seq {parts}); do sleep 0.05; echo "N = $i" >"${{4%/bin/python}}/$packages/part$i.py" || exit; done
    cp "$6" "${{4%/bin/python}}/$packages/toy.py" ;;
esac
"""


def plays_tool(act):
    """Now uv is there. What is in the project's file is what becomes of the package "toy"."""
    program(act, "uv", TOOL.format(minor=sys.version_info.minor, parts=PARTS, log=act.scratch / "makers"))


def new_project(act, seed):
    """Says what the runs of a round need; returns the version of "toy" that they get."""
    if seed % REAL == 0:
        act.write("requirements.txt", f"toy==1.0  # {seed}\n")
        return "1.0"
    act.write("requirements.txt", f"VERSION = 'of {seed}'\n")
    return f"of {seed}"


@contextlib.contextmanager
def real_tool(act, seed):
    """The real venv and pip in some rounds."""
    uv = act.scratch / "bin/uv"
    aside = uv.with_name("uv.aside")
    if seed % REAL == 0:
        uv.rename(aside)
    yield
    if seed % REAL == 0:
        aside.rename(uv)


def strike(act, dice, victims):
    """Kills each of these runs, or one of its processes, at some moment."""
    for victim in victims:
        time.sleep(dice.random() * 1.5)
        pids = processes_of(act, victim)
        kill(pids if dice.random() < 0.5 else pids and [dice.choice(pids)])


def new_one(root, known, seed):
    """The folder of the one whole environment that a round has added, in which nothing is missing."""
    (key,) = set(environments_in(root)) - known
    known.add(key)
    folder = environments_in(root)[key]
    if seed % REAL:
        assert len(list(folder.glob("env/lib/python3*/site-packages/part*.py"))) == PARTS
    return folder


def play(act, seed, known):
    dice = random.Random(seed)
    version = new_project(act, seed)
    with real_tool(act, seed):
        runs = [act.submit("python3", "-c", SAY) for _ in range(3)]
        victim = dice.choice(runs[:2])
        strike(act, dice, [victim])
        for run in runs:
            act.run("wait", run, status=None)
    folder = new_one(act.home, known, seed)
    for run in runs:
        assert run == victim or act.lines(run)[-1] == said(folder, version)
    last = act.finish("python3", "-c", SAY)
    assert act.lines(last) == [said(folder, version)]
    assert not rest(act)


@pytest.mark.parametrize("first", range(0, ROUNDS, AT_ONCE))
def test_killed_at_any_moment(act, index, first):
    """Of runs that need the same, one is killed, or one of its processes is: there is one environment all the same, and
    nothing half made."""
    plays_tool(act)
    known = set()
    for seed in range(first, min(first + AT_ONCE, ROUNDS)):
        play(act, seed, known)


IMAGE = """# Plays docker: it runs the words behind the image's name, here, and knows the image's digest.
case "$1" in run|exec) ;; image) echo registry/image@sha256:abc; exit ;; *) exit 0 ;; esac
while case "$1" in *registry/image:1) false ;; esac; do shift; done; shift
IN_IMAGE=yes exec "$@"
"""


def test_in_the_containers_of_a_local_run(act, index):
    """It is made inside, once, and active in each container."""
    program(act, "docker", IMAGE)
    act.cluster("aml", extra={"docker": {"image": "registry/image:1"}})
    act.write("requirements.txt", "toy==1.0\n")
    for _ in range(2):
        out = act.run("local", "sh", "-c", f'echo $IN_IMAGE; python3 -c "{SAY}"').out.splitlines()
        (folder,) = environments(act).values()
        assert out[-2:] == ["yes", said(folder)]
    assert index.downloads("toy-1.0-py3-none-any.whl") == 1


def test_what_the_image_has_is_written_down(act, index):
    """By the Python in it, with the packages of the environment; and which image the name means."""
    program(act, "docker", IMAGE)
    act.cluster("aml", extra={"docker": {"image": "registry/image:1"}})
    act.write("requirements.txt", "toy==1.0\n")
    wait = "until grep -q toy $ACT_RUN_CODE/../system_logs/environment.json; do sleep 0.1; done"
    out = act.run("local", "sh", "-c", f"{wait}; cat $ACT_RUN_CODE/../system_logs/environment.json").out
    record = json.loads(out[out.index("{"):])
    (folder,) = environments(act).values()
    assert record["image"] == "registry/image:1" and record["image_digest"] == "sha256:abc"
    assert record["python"] == str(folder / "env/bin/python3") and "toy==1.0" in record["packages"]


def test_two_nodes_make_it_once(lab, index):
    """On Slurm it lies beside the runs, which all nodes see."""
    lab.configure(env={name: lab.act.env[name] for name in ("PIP_INDEX_URL", "PIP_RETRIES", "PIP_CACHE_DIR")})
    lab.act.write("requirements.txt", "toy==1.0\n")
    run = lab.shell(f'python3 -c "{SAY}"', n=4)
    lab.wait(run, "Completed", 0)
    home = lab.run_dir(run).parent.parent / "environments"
    link, = (path for path in home.iterdir() if path.is_symlink())
    assert {lab.rank_text(run, rank).splitlines()[-1] for rank in range(4)} == {said(link.resolve())}
    assert index.downloads("toy-1.0-py3-none-any.whl") == 1


@pytest.fixture(scope="module")
def wide_bed():
    yield from slurm_fixtures.start(nodes=2, gpus=8)


@pytest.fixture
def wide_lab(act, wide_bed):
    """Two nodes, on which sixteen runs run at once."""
    yield from slurm_fixtures.in_lab(act, wide_bed)


def play_on_two_nodes(lab, seed, known):
    act, dice = lab.act, random.Random(seed)
    version = new_project(act, seed)
    points = ",".join(map(str, range(16)))
    with real_tool(act, seed):
        act.run("-c", "lab", "-n", 1, "sweep", "--name", f"round{seed}", "--grid", f"x={points}", "--", "python3",
                "say.py", "{x}")
        runs = [run["id"] for run in act.run("q", "--json", "--max", 16).json["runs"]]
        victims = dice.sample(runs, dice.randint(1, 3))
        strike(act, dice, victims)
        act.run("wait", *runs, status=None)
    folder = new_one(lab.root, known, seed)
    for run in set(runs) - set(victims):
        assert lab.rank_text(run).splitlines()[-1:] == [said(folder, version)], act.run("why", run, status=None)
    last = lab.submit("python3", "say.py")
    lab.wait(last, "Completed", 0)
    assert lab.rank_text(last).splitlines() == [said(folder, version)]
    maker = json.loads((folder / "about.json").read_text())["node"]
    for name in rest_in(lab.root):  # who makes it removes what was left on its own node, and prune the others
        assert not name.startswith(folder.name[:16]) or (folder.parent / name / "maker").read_text() != maker


@pytest.mark.parametrize("first", range(0, ROUNDS, AT_ONCE))
def test_killed_on_two_nodes(wide_lab, index, first):
    """Sixteen runs need the same at once; up to three of them are killed, or a process of theirs, at any moment."""
    act = wide_lab.act
    plays_tool(act)
    wide_lab.configure(env={name: act.env[name] for name in ("PATH", "PIP_INDEX_URL", "PIP_RETRIES", "PIP_CACHE_DIR")})
    act.write("say.py", SAY)
    known = set()
    for seed in range(first, min(first + AT_ONCE, ROUNDS)):
        play_on_two_nodes(wide_lab, seed, known)


UV = """# Plays uv by its documented commands: venv, and pip install, which pip does here.
echo "$@" >>{log}
case "$1 $2" in
--version*) echo "uv 0.0 (played)" ;;
venv*) for last; do :; done; exec /usr/bin/python3 -m venv --without-pip "$last" ;;
"pip install") python=$4; shift 4; exec /usr/bin/python3 -m pip --python "$python" install "$@" ;;
esac
"""


def test_by_uv(act, index):
    log = act.scratch / "uv.log"
    program(act, "uv", UV.format(log=log))
    act.write("requirements.txt", "toy==1.0\n")
    assert act.lines(act.finish("python3", "-c", SAY))[-1].startswith("1.0")
    words = [line.split() for line in log.read_text().splitlines()]
    assert [line[0] for line in words] == ["--version", "venv", "pip"] and words[2][-2:] == ["-r", "requirements.txt"]


@pytest.mark.parametrize("file, said", [
    ("uv.lock", "uv.lock needs uv, which is not on this node"), ("pylock.toml", "pylock.toml needs uv"),
    ("poetry.lock", "poetry.lock needs poetry"), ("pixi.lock", "pixi.lock needs pixi"),
    ("conda-lock.yml", "needs micromamba, mamba or conda"), ("environment.yml", "needs micromamba, mamba or conda")])
def test_tools_that_are_missing(act, file, said):
    act.write("pyproject.toml", "[project]\nname = 'ours'\n")
    act.write(file, "version: 1\n")
    run = act.finish("true", status=1)
    assert said in act.run("wait", run, status=None).err
    assert not environments(act) and not rest(act)


@pytest.mark.smoke
def test_prune_removes_what_no_run_uses(act, index):
    """Nothing that was used lately, nothing that a run has which has not ended, and no link to nothing stays."""
    for version in ("1.0", "2.0"):
        act.write("requirements.txt", f"toy=={version}\n")
        run = act.finish("true") if version == "1.0" else act.submit("sleep", "1000")
    mine = lambda: [folder for folder in environments(act).values() if (folder / "runs" / run).exists()]
    waiting.until(mine, "the second environment is there")
    running, = mine()
    idle, = set(environments(act)) - {running.name.split("-")[0]}
    rows = {one["key"]: one for one in act.run("env", "list", "--json").json["environments"]}
    assert {key: pathlib.Path(one["path"]) for key, one in rows.items()} == {
        key: folder / "env" for key, folder in environments(act).items()}
    assert [one["key"] for one in rows.values() if one["in_use"]] == [running.name.split("-")[0]]
    assert all(one["from"] == "requirements.txt" and one["bytes"] > 0 and one["runs"] == 1 for one in rows.values())
    assert re.search(r"size .*\n(.*\n)*runs +1\n", act.run("env", "show", idle[:6]).out)
    act.fail("env", "rm", running.name[:16], "-y", status=1, match="used by a run that has not ended")
    act.fail("env", "show", "x", status=3, match="there is no environment 'x'")
    assert "would remove" in act.run("env", "rm", idle, "--dry-run").err and len(environments(act)) == 2
    prune = lambda *words: act.run("prune", "--older", "30d", "--json", *words).json["environments"]
    assert prune("-y") == 0 and len(environments(act)) == 2
    long_ago = time.time() - 40 * 86400
    for folder in environments(act).values():
        for path in (*(folder / "runs").iterdir(), folder):
            os.utime(path, (long_ago, long_ago))
    assert prune("--dry-run") == 1 and len(environments(act)) == 2
    home = act.home / "environments"
    (home / "cache/uv").mkdir(parents=True)
    (home / "cache/uv/wheel").write_bytes(b"x" * 100000)
    assert prune("-y") == 1
    assert {path.name for path in home.glob("*.lock")} == {f"{key}.lock" for key in rows}, "they were used today"
    assert (home / "cache/uv/wheel").exists()
    assert list(environments(act).values()) == [running] and (running / "env/bin/python").exists() and not rest(act)
    act.run("abort", run)
    act.run("wait", run, status=None)
    assert act.run("env", "rm", "-y", "--json", running.name[:16]).json["bytes"] > 0
    assert not environments(act) and not rest(act)
    for path in home.glob("*.lock"):
        os.utime(path, (long_ago, long_ago))
    assert prune("--dry-run") == 1 and (home / "cache").exists()
    assert prune("-y") == 1 and not list(home.iterdir()), "locks and what tools have cached go, too"


def here_has(act, **packages):
    """A virtual environment in which `a` is typed, with a module and what is said of each package: (version, lines of
    its metadata, its modules)."""
    venv = act.scratch / "here"
    site = venv / "lib/python3.11/site-packages"
    (venv / "bin").mkdir(parents=True)
    for name, (version, needs, modules) in packages.items():
        info = site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        lines = "".join(f"Requires-Dist: {one}\n" for one in needs)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\n{lines}\nRequires-Dist: nothing\n")
        (info / "top_level.txt").write_text("\n".join(modules) + "\n")
        for module in modules:
            (site / module).mkdir(exist_ok=True)
    act.env["VIRTUAL_ENV"] = str(venv)


HERE = {"torch": ("2.1.0", ["numpy (>=1.2)", "onlyextra; extra == 'x'"], ["torch"]), "numpy": ("1.26", [], ["numpy"]),
        "opencv_python": ("4.9", [], ["cv2"]), "scikit_learn": ("1.4", [], ["sklearn"]),
        "PyYAML": ("6.0", [], ["yaml", "_yaml"]), "onlyextra": ("1.0", [], ["onlyextra"]), "toy": ("1.0", [], ["toy"])}
WARNING = "train.py imports what the Python here has and {} does not name: "


def warned_of(act, words):
    said = act.run("-c", "away", "submit", "--dry-run", *words, status=None).err
    return [line for line in said.splitlines() if " imports what " in line]


@pytest.mark.parametrize("imports, file, text, said", [
    ("import torch, os\nimport numpy as np\n", "requirements.txt", "torch\n", ""),
    ("import cv2\nfrom sklearn.svm import SVC\nimport yaml, torch\n", "requirements.txt", "torch>=2  # cv2\nPyYAML\n",
     "cv2 (opencv-python 4.9) and sklearn (scikit-learn 1.4)"),
    ("import cv2\n", "requirements.txt", "opencv_python-headless\nOpenCV.python==4\n", ""),
    ("import onlyextra\n", "requirements.txt", "torch\n", "onlyextra (onlyextra 1.0)"),
    ("import torch\n", "requirements.txt", "-r base.txt\n", ""),
    ("import torch\n", "requirements.txt", "-e .\n", ""),
    ("import torch\n", "environment.yml", "dependencies:\n  - pytorch=2.1\n", ""),
    ("import toy\n", "environment.yml", "dependencies:\n  - pytorch=2.1\n", "toy (toy 1.0)"),
    ("'''\nimport toy\n'''\ndef f():\n    import toy\ntry:\n    import toy\nexcept ImportError:\n    pass\n",
     "requirements.txt", "x\n", ""),
    ("from lib.model import Net\n", "requirements.txt", "x\n", "toy (toy 1.0)"),
    ("import nosuch, sys\n", "requirements.txt", "x\n", "")])
def test_warns_of_what_is_only_here(act, imports, file, text, said):
    """What the project imports, the Python here has, and the environment will lack."""
    act.cluster("away", extra={"platform": "slurm", "slurm": {"root": str(act.scratch / "shared")}})
    here_has(act, **HERE)
    act.write("base.txt", "torch\n")
    act.write("lib/model.py", "from .parts import part\n")
    act.write("lib/parts.py", "import toy\n")
    act.write(file, text)
    act.write("train.py", imports)
    wanted = [f"act: warning: {WARNING.format(file)}{said}"] if said else []
    for words in (["python", "train.py"], ["torchrun", "train.py"], ["python3", "-m", "train"]):
        # on a busy machine the look, which takes 20 ms at most, may end without a word
        act.until(lambda: warned_of(act, words) == wanted, f"it warns: {wanted}")


@pytest.mark.parametrize("more", [
    "environment: none", "environment: {system_packages: true}", "setup: pip install toy", "modules: [toy]",
    "conda: toy", "venv: /toy"])
def test_says_nothing_of_what_may_come_otherwise(act, more):
    act.cluster("away", extra={"platform": "slurm", "slurm": {"root": str(act.scratch / "shared")}})
    here_has(act, **HERE)
    act.write("requirements.txt", "x\n")
    act.write("train.py", "import toy\n")
    assert " imports what " not in act.run("-c", "away", "-p", more, "submit", "--dry-run", "python", "train.py",
                                           status=None).err
