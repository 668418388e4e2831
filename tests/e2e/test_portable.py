"""The static program where there is nothing: in a root of its own with /proc, /dev/null, certificates and names alone.
The same in other distributions: ACT_ROOTS names roots of theirs, as scripts/test-roots makes them, between colons."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import elf
import pytest
from authority import Authority
from blob_double import BlobDouble

pytestmark = pytest.mark.smoke

NAME = "blobs.act.test"
BIN = "usr/local/bin"  # /bin is a link in distributions
ROOTS = [pathlib.Path(path) for path in os.environ.get("ACT_ROOTS", "").split(":") if path]

# Becomes the root's first process, runs one command after the other there, and tells what became of them. RUN is what
# the last submit printed; "read" is a command of its own. Where there is a base, the root lies over it, and what is
# written is forgotten.
INSIDE = """
import json, os, subprocess, sys
root, base, commands = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
def mount(*words):
    subprocess.run(["mount", *words], check=True)
if base:
    top = root + ".top"
    os.makedirs(top, exist_ok=True)
    mount("-t", "tmpfs", "tmpfs", top)
    os.mkdir(top + "/upper")
    os.mkdir(top + "/work")
    mount("-t", "overlay", "-o", f"lowerdir={root}:{base},upperdir={top}/upper,workdir={top}/work", "overlay", root)
mount("-t", "proc", "proc", root + "/proc")
mount("--bind", "/dev/null", root + "/dev/null")
os.chroot(root)
os.chdir("/home/project")
done, run = [], ""
for words in commands:
    if words[0] == "read":
        done.append((0, open(words[1]).read(), ""))
        continue
    if words[0] == "cd":
        os.chdir(words[1])
        continue
    d = subprocess.run([run if w == "RUN" else w for w in words], capture_output=True, text=True,
                       env={"HOME": "/home", "PATH": "/usr/local/bin"}, timeout=300)
    run = d.stdout.strip() if "submit" in words else run
    done.append((d.returncode, d.stdout, d.stderr))
print(json.dumps(done))
"""


@pytest.fixture(params=["", *ROOTS], ids=["empty", *(root.name for root in ROOTS)])
def base(request):
    """The root of a distribution; "": none."""
    return request.param


@pytest.fixture
def root(programs, scratch):
    """With ACT and a project in it."""
    if elf.DT_NEEDED in elf.Elf(programs / "act").dynamic:
        pytest.skip("this build loads shared libraries: scripts/build release")
    try:
        subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "true"], check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine lets nobody make a root of his own")
    root = scratch / "root"
    for folder in (BIN, "dev", "etc/ssl/certs", "home/project/data", "home/elsewhere", "proc", "tmp"):
        (root / folder).mkdir(parents=True)
    for name in ("act", "act-node"):
        shutil.copy(programs / name, root / BIN)
    (root / BIN / "a").symlink_to("act")
    (root / "dev/null").touch()
    return root


def run_inside(root, base, *commands):
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child",
                           sys.executable, "-c", INSIDE, root, base, json.dumps(commands)], capture_output=True,
                          check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.fixture
def double_by_name(blobserver, scratch):
    """The double speaks TLS, as NAME."""
    server = BlobDouble(blobserver, authority=Authority(scratch), hosts=[NAME])
    server.container = "test"
    server.create(server.container)
    yield server
    server.stop()


def use_double(root, double):
    """The project's code and data are in the double, behind NAME; so are those of a second one without files."""
    project = root / "home/project"
    for folder in ("aux_data/aml", "aux_data/configs"):
        (project / folder).mkdir(parents=True)
    (project / "aux_data/configs/store.yaml").write_text(
        f"account_name: {double.account}\naccount_key: {double.key}\ncontainer_name: {double.container}\n"
        f"endpoint: https://{NAME}:{double.port}/{double.account}\n")
    (project / "aux_data/configs/store.yaml").chmod(0o600)
    (project / "aux_data/aml/aml.yaml").write_text(
        "platform: local\n"
        "azure_blob_config_file: aux_data/configs/store.yaml\n"
        "config_param:\n  code_path:\n    azure_blob_config_file: aux_data/configs/store.yaml\n    path: code/p.zip\n"
        "  data_folder:\n    azure_blob_config_file: aux_data/configs/store.yaml\n    path: files/data\n"
        "    mode: download\n")
    shutil.copytree(project / "aux_data", root / "home/elsewhere/aux_data")
    (root / "etc/hosts").write_text(f"127.0.0.1 {NAME}\n")
    (root / "home/.config/act").mkdir(parents=True)
    (root / "home/.config/act/config.yaml").write_text(f"trusted_hosts: [{NAME}]\n")


def test_all_verbs(root, base, double_by_name):
    use_double(root, double_by_name)
    (root / "home/project/data/x").write_text("by TLS\n")
    _, stranger = run_inside(root, base, ["a", "trust", "-y"], ["a", "ls", "data"])
    shutil.copy(double_by_name.ca, root / "etc/ssl/certs/ca-certificates.crt")
    _, doctor, *verbs = run_inside(
        root, base, ["a", "trust", "-y"], ["a", "doctor"], ["a", "init"], ["a", "u", "data"], ["a", "ls", "data"],
        ["a", "submit", f"/{BIN}/act", "--version"], ["a", "wait", "RUN"], ["a", "q", "RUN"], ["a", "logs", "RUN"],
        ["cd", "/home/elsewhere"], ["a", "trust", "-y"], ["a", "d", "data"], ["read", "data/x"])
    assert stranger[0] != 0 and "no certificates of authorities here" in stranger[2], stranger
    assert [line for line in doctor[1].splitlines() if not line.startswith("ok ")] == [
        "fail  mpirun: not found, so runs have one process at most; install Open MPI (Debian: openmpi-bin)"]
    assert [v[0] for v in verbs] == [0] * len(verbs), verbs
    out = [v[1] for v in verbs]
    assert out[2].startswith("x\n") and "Completed" in out[5] and "act " in out[6] and out[-1] == "by TLS\n", verbs


def test_nothing_of_glibc_that_needs_its_modules(programs):
    act = elf.Elf(programs / "act")
    if elf.DT_NEEDED in act.dynamic:
        pytest.skip("this build loads shared libraries")
    assert not act.of_type(elf.PT_INTERP)
    assert not {"getpwuid", "getpwuid_r", "getpwnam", "getgrgid", "__nss_database_get",
                "__nss_lookup_function"} & act.symbols.keys()
