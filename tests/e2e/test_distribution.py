"""What scripts/repository and scripts/image make of packages and an archive: read by apt, by digests, and by the
programs for images that are there. No release is built: what is inside does not matter here."""
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROCESSOR = platform.machine()
needs_apt = pytest.mark.skipif(not all(map(shutil.which, ("apt-get", "dpkg-scanpackages", "dpkg-deb"))),
                               reason="no apt, or no dpkg-dev")
needs_gpg = pytest.mark.skipif(not shutil.which("gpg"), reason="no gpg")


def run(*words, status=0, **env):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env={**os.environ, **env})
    assert done.returncode == status, done
    return done.stdout + done.stderr


# ---- repositories


def package(folder, version):
    tree = folder / version
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(f"Package: act-cluster\nVersion: {version}\nArchitecture: all\n"
                                         "Maintainer: nobody <nobody@localhost>\nDescription: a test\n")
    (tree / "usr").mkdir()
    (tree / "usr/said").write_text(version)
    run("dpkg-deb", "--build", "--root-owner-group", tree, folder / f"act-cluster_{version}_all.deb")
    shutil.rmtree(tree)


class Apt:
    """apt-get with folders of its own, and nothing but this repository."""

    def __init__(self, folder, options, repository):
        self.folder = folder
        for name in ("lists/partial", "cache/archives/partial", "trusted", "parts"):
            (folder / name).mkdir(parents=True)
        (folder / "status").touch()
        (folder / "sources.list").write_text(f"deb [{options}] file:{repository}/deb stable main\n")

    def __call__(self, *words, status=0):
        at = {"Dir::Etc::sourcelist": "sources.list", "Dir::Etc::sourceparts": "parts",
              "Dir::Etc::trustedparts": "trusted", "Dir::State::lists": "lists", "Dir::State::status": "status",
              "Dir::Cache": "cache"}
        options = [word for key, name in at.items() for word in ("-o", f"{key}={self.folder / name}")]
        done = subprocess.run(["apt-get", *options, "-o", "APT::Sandbox::User=", *words], capture_output=True,
                              text=True, cwd=self.folder)
        assert done.returncode == status, done
        return done.stdout + done.stderr


@needs_apt
def test_apt_has_what_the_repository_has(scratch):
    packages, repository = scratch / "packages", scratch / "repository"
    packages.mkdir()
    package(packages, "1.0")
    assert "not signed" in run(ROOT / "scripts/repository", packages, repository)
    apt = Apt(scratch / "apt", "trusted=yes", repository)
    apt("update")
    assert "act-cluster_1.0_all.deb" in apt("download", "--print-uris", "act-cluster")
    (packages / "act-cluster_1.0_all.deb").unlink()
    package(packages, "1.1")
    run(ROOT / "scripts/repository", packages, repository)
    apt("update")
    apt("download", "act-cluster")
    assert (apt.folder / "act-cluster_1.1_all.deb").exists(), "the newest"
    apt("download", "act-cluster=1.0")
    assert run("dpkg-deb", "-f", apt.folder / "act-cluster_1.0_all.deb", "Version") == "1.0\n", "the older one stays"


@needs_apt
@needs_gpg
def test_apt_believes_the_signature_alone(scratch):
    packages, repository, home = scratch / "packages", scratch / "repository", scratch / "gpg"
    packages.mkdir()
    home.mkdir(mode=0o700)
    package(packages, "1.0")
    key = {"GNUPGHOME": str(home), "ACT_GPG_KEY": "act@localhost"}
    try:
        run("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "act@localhost", "rsa2048", "sign", "never",
            **key)
        assert "signed by the key in act.asc" in run(ROOT / "scripts/repository", packages, repository, **key)
    finally:
        run("gpgconf", "--kill", "all", **key)
    apt = Apt(scratch / "apt", f"signed-by={repository}/act.asc", repository)
    apt("update")
    apt("download", "act-cluster")
    release = repository / "deb/dists/stable/InRelease"
    release.write_text(release.read_text().replace("Label: ACT", "Label: BAD"))
    (repository / "deb/dists/stable/Release.gpg").unlink()
    assert "signature" in Apt(scratch / "other", f"signed-by={repository}/act.asc", repository)("update", status=100)


def test_a_folder_without_packages(scratch):
    assert "there is no folder" in run(ROOT / "scripts/repository", scratch / "none", status=1)


# ---- an image


def archive(folder):
    path = folder / f"act-1.2.3-linux-{PROCESSOR}.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, content in (("bin/act", b"\x7fELF"), ("bin/act-node", b"node"), ("share/act/x", b"x"),
                              ("README.md", b"no"), ("install", b"no")):
            info = tarfile.TarInfo(f"act-1.2.3/{name}")
            info.size, info.mode, info.mtime = len(content), 0o755, 1_700_000_000
            tar.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("act-1.2.3/bin/a")
        link.type, link.linkname, link.mtime = tarfile.SYMTYPE, "act", 1_700_000_000
        tar.addfile(link)
    return path


def blobs_of(image):
    with tarfile.open(image) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar.getmembers() if member.isreg()}


def blob(blobs, descriptor):
    content = blobs["blobs/sha256/" + descriptor["digest"].removeprefix("sha256:")]
    assert len(content) == descriptor["size"] and hashlib.sha256(content).hexdigest() == descriptor["digest"][7:]
    return content


@pytest.mark.skipif(PROCESSOR not in ("x86_64", "aarch64"), reason="no release for this processor")
def test_an_image_is_what_its_digests_say(scratch):
    (scratch / "ca.crt").write_text("a certificate")
    certificates = {"SSL_CERT_FILE": str(scratch / "ca.crt")}
    image, again = scratch / "image.tar", scratch / "again.tar"
    assert "act:1.2.3 for linux/" in run(ROOT / "scripts/image", archive(scratch), image, **certificates)
    run(ROOT / "scripts/image", archive(scratch), again, **certificates)
    assert image.read_bytes() == again.read_bytes()

    blobs = blobs_of(image)
    assert json.loads(blobs["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    entry, = json.loads(blobs["index.json"])["manifests"]
    assert entry["annotations"]["org.opencontainers.image.ref.name"] == "act:1.2.3"
    manifest = json.loads(blob(blobs, entry))
    config = json.loads(blob(blobs, manifest["config"]))
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", config["created"])
    assert config["config"]["Entrypoint"] == ["/usr/bin/a"] and config["architecture"] in ("amd64", "arm64")
    layer, = manifest["layers"]
    with tarfile.open(fileobj=io.BytesIO(blob(blobs, layer))) as tar:
        names = {member.name: member for member in tar.getmembers()}
        assert names["usr/bin/a"].linkname == "act" and names["usr/bin/act"].mode == 0o755
        assert names["tmp"].mode == 0o1777 and {"project", "root", "usr/share/act/x"} <= set(names)
        assert tar.extractfile("etc/ssl/certs/ca-certificates.crt").read() == b"a certificate"
        assert not any("install" in name or "README" in name for name in names)
    raw = subprocess.run(["gzip", "-dc"], input=blob(blobs, layer), capture_output=True, check=True).stdout
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(raw).hexdigest()}"]
    if shutil.which("skopeo"):
        assert "sha256:" in run("skopeo", "inspect", f"oci-archive:{image}")


def test_no_image_of_something_else(scratch):
    assert "is not act-VERSION-linux-PROCESSOR.tar.gz" in run(ROOT / "scripts/image", "x.tar.gz", status=1)
