"""What scripts/package made in the folder ACT_RELEASE, as who installs it gets it."""
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = pathlib.Path(os.environ["ACT_RELEASE"])
TOLD = json.loads((FOLDER / "act-cluster.spdx.json").read_text())


def only(pattern):
    found = list(FOLDER.glob(pattern))
    assert len(found) == 1, found
    return found[0]


def run(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, **more).stdout


# What a processor is called in names of archives and RPM, in packages of Debian, and in the head of a program.
KINDS = {"x86_64": ("amd64", "Advanced Micro Devices X86-64"), "aarch64": ("arm64", "AArch64")}
PROCESSOR = re.search(r"-linux-(\w+)\.tar\.gz$", only("act-*.tar.gz").name).group(1)
IS_THIS = PROCESSOR == platform.machine()


def files(root):
    return {str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir()}


@pytest.fixture
def unpacked(tmp_path):
    run("tar", "-C", tmp_path, "-xzf", only("act-*.tar.gz"))
    return next(tmp_path.iterdir())


def unpack_deb(root):
    run("dpkg-deb", "-x", only("*.deb"), root)


def unpack_rpm(root):
    subprocess.run(f"rpm2archive - <'{only('*.rpm')}' | tar -C '{root}' -xz", shell=True, check=True)


@pytest.mark.parametrize("unpack", [unpack_deb, unpack_rpm])
def test_packages_have_what_the_archive_has(unpack, unpacked, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    unpack(root)
    own = {"CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md", "install", "share/act/install"}
    assert files(root / "usr") == files(unpacked) - own
    assert {"bin/a", "bin/act", "bin/act-node", "share/man/man1/a-submit.1", "share/act/config/cluster.schema.json",
            "share/act/examples/example/train.py", "share/doc/act-cluster/docs/tutorials/local.md",
            "share/bash-completion/completions/a"} <= files(root / "usr")
    assert not IS_THIS or run(root / "usr/bin/a", "--version").startswith("act ")
    for name in ("act", "act-node"):
        head = run("readelf", "--file-header", root / "usr/bin" / name)
        assert re.search(r"Machine: +(.*)", head).group(1) == KINDS[PROCESSOR][1], head
    assert run("readelf", "--wide", "--sections", root / "usr/bin/act").count(".symtab") == 0, "not stripped"


def test_documents_and_examples_find_what_they_name(unpacked):
    """The schema of each example; the links of the documents, but for those into the sources."""
    for path in unpacked.glob("share/act/examples/*/*.example.yaml"):
        name = re.match(r"# yaml-language-server: \$schema=(\S+)\n", path.read_text()).group(1)
        assert name.endswith(".schema.json") and (path.parent / name).exists(), path
    for path in [unpacked / "README.md", *unpacked.glob("share/doc/act-cluster/**/*.md")]:
        links = set(re.findall(r"\]\(([^)#:]+)[)#]", path.read_text())) - {"CONTRIBUTING.md"}
        assert not [link for link in links if not (path.parent / link).exists()], path


def test_the_readme_names_nothing_that_the_archive_lacks(unpacked):
    text = (unpacked / "README.md").read_text()
    assert "./install" in text and "scripts/" not in text
    assert all((unpacked / name).exists() for name in ("install", "docs/install.md", "docs/tutorials/coming-from.md"))


def test_packages_need_nothing():
    deb = run("dpkg-deb", "-f", only("*.deb"))
    assert f"Architecture: {KINDS[PROCESSOR][0]}\n" in deb and run("rpm", "-qp", "--qf", "%{ARCH}",
                                                                   only("*.rpm")) == PROCESSOR
    assert "Package: act-cluster\n" in deb and "\nDepends:" not in deb and "openmpi-bin" in deb
    assert run("rpm", "-qp", "--qf", "%{NAME} [%{RECOMMENDS} ]",
               only("*.rpm")) == "act-cluster ca-certificates openmpi "
    assert all(line.startswith("rpmlib(") for line in run("rpm", "-qp", "--requires", only("*.rpm")).splitlines())


@pytest.fixture
def signed_repository(tmp_path):
    """What scripts/repository makes of the .rpm, signed by a key of its own."""
    packages, folder, home = tmp_path / "packages", tmp_path / "repository", tmp_path / "gpg"
    packages.mkdir()
    home.mkdir(mode=0o700)
    shutil.copy(only("*.rpm"), packages)
    env = {**os.environ, "GNUPGHOME": str(home), "ACT_GPG_KEY": "act@localhost"}
    try:
        run("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "act@localhost", "rsa2048", "sign", "never",
            env=env)
        run(ROOT / "scripts/repository", packages, folder, env=env)
    finally:
        run("gpgconf", "--kill", "all", env=env)
    return folder


def dnf(folder, repository, *words):
    """dnf with folders of its own, and nothing but this repository, as docs/install.md writes it down."""
    for name in ("repos", "log", "root"):
        (folder / name).mkdir(parents=True)
    (folder / "repos/act.repo").write_text(f"[act]\nname=ACT\nbaseurl=file://{repository}/rpm\ngpgcheck=0\n"
                                           f"repo_gpgcheck=1\ngpgkey=file://{repository}/act.asc\n")
    at = {"reposdir": "repos", "logdir": "log", "cachedir": "cache"}
    return subprocess.run(["dnf", "-y", "--releasever", "1", "--installroot", folder / "root",
                           *(f"--setopt={key}={folder / name}" for key, name in at.items()), *words],
                          capture_output=True, text=True)


@pytest.mark.skipif(not IS_THIS or os.geteuid() != 0, reason="dnf installs as root, for this processor")
@pytest.mark.skipif(not all(map(shutil.which, ("dnf", "createrepo_c", "gpg"))), reason="no dnf, createrepo_c or gpg")
def test_dnf_installs_what_is_signed_and_nothing_else(signed_repository, tmp_path):
    done = dnf(tmp_path / "one", signed_repository, "install", "act-cluster")
    assert done.returncode == 0, done
    assert run(tmp_path / "one/root/usr/bin/a", "--version").startswith("act ")
    listed = signed_repository / "rpm/repodata/repomd.xml"
    listed.write_text(listed.read_text().replace("</repomd>", "<!-- changed --></repomd>"))
    done = dnf(tmp_path / "two", signed_repository, "install", "act-cluster")
    assert done.returncode != 0 and "signature" in done.stderr, done


def test_list_of_contents(unpacked):
    """Names, versions, licences and their texts, of all that was linked."""
    assert TOLD["spdxVersion"] == "SPDX-2.3" and TOLD["SPDXID"] == "SPDXRef-DOCUMENT"
    packages = {p["name"]: p for p in TOLD["packages"]}
    assert {"act-cluster", "curl", "openssl", "glibc", "gcc-12", "sqlite3", "zlib"} <= set(packages)
    for name, package in packages.items():
        assert re.match(r"\d", package["versionInfo"]) and package["licenseDeclared"], name
        assert re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", package["SPDXID"])
        text = unpacked / f"share/doc/act-cluster/licenses/{name}.txt"
        assert name == "act-cluster" or text.stat().st_size > 500
    inside = {r["relatedSpdxElement"] for r in TOLD["relationships"] if r["relationshipType"] != "DESCRIBES"}
    assert inside == {p["SPDXID"] for p in packages.values()} - {"SPDXRef-act-cluster"}
    assert (unpacked / "share/doc/act-cluster/act-cluster.spdx.json").read_bytes() == only("*.spdx.json").read_bytes()


@pytest.mark.skipif(not IS_THIS, reason="it refuses what is for another processor")
@pytest.mark.parametrize("name", ["elsewhere", "my own's"])
def test_installed_copy_removes_itself_and_nothing_else(unpacked, tmp_path, name):
    """The command that an installation with --prefix prints, while another one is in ~/.local; then that one."""
    home, other = tmp_path / "home", tmp_path / name
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    home.mkdir()
    run("sh", unpacked / "install", env=env)
    there = files(home)
    said = run("sh", unpacked / "install", "--prefix", other, env=env)
    uninstall = re.search("; (.* --uninstall) removes it$", said, re.M).group(1)
    assert run("sh", "-c", uninstall, env=env, cwd=tmp_path) == f"removed from {other}\n"
    assert not other.exists() and files(home) == there
    run("sh", "./install", "--uninstall", env=env, cwd=home / ".local/share/act")
    assert files(home) == set()


@pytest.mark.skipif(not IS_THIS, reason="it refuses what is for another processor")
def test_installer(unpacked, tmp_path):
    """Into an empty home; again; and nothing is left, but what is not its own."""
    home = tmp_path / "home"
    home.mkdir()
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    for source in ([unpacked / "install"], [unpacked / "install", only("act-*.tar.gz")]):
        said = run("sh", *source, env=env)
        assert "not in PATH: " in said and run(home / ".local/bin/a", "--version").splitlines()[0] in said
    assert files(home / ".local/share") >= files(unpacked / "share")
    (home / ".local/bin/own").touch()
    run("sh", home / ".local/share/act/install", "--uninstall", env=env)
    assert files(home) == {".local/bin/own"} and not (home / ".local/share").exists()

    (home / ".local/bin/a").write_text("somebody's own")
    other = unpacked.rename(tmp_path / "act-1-linux-vax")
    for source, why in (("act-1-linux-vax", "is for vax"), ("renamed", "bin/a' is there already")):
        other = other.rename(tmp_path / source)
        refused = subprocess.run(["sh", other / "install"], env=env, capture_output=True, text=True)
        assert refused.returncode == 1 and why in refused.stderr
    assert files(home) == {".local/bin/own", ".local/bin/a"}
