"""The documents: their commands run, their options exist, their links lead somewhere, the generated one is current."""
import functools
import json
import pathlib
import re
import subprocess

import pytest

import azureml_double
import documents
from conftest import ROOT

ON_AZURE = ["docs/tutorials/azureml.md", "docs/tutorials/moving-over.md"]
ELSEWHERE = [*ON_AZURE, *(f"docs/tutorials/{name}.md" for name in ("slurm", "ssh", "kubernetes"))]  # in test_docs_*.py
TORCH = pathlib.Path("/usr/lib/python3/dist-packages/torch")
PLACEHOLDER = re.compile(r"VERB|\.\.\.$|^[<\[]")
LINK = re.compile(r"\]\(([^)\s]+)\)")
COLUMNS = 120


@pytest.fixture
def home(act):
    """That of somebody who has just installed the program, by scripts/install."""
    share = act.scratch / "home/.local/share/act"
    share.mkdir(parents=True)
    (share / "examples").symlink_to(ROOT / "aux_data")
    (share / "config").symlink_to(ROOT / "config")
    return act.scratch / "home"


def runs_commands(name):
    return any(language in ("sh", "console") for language, _ in documents.blocks(name))


@pytest.mark.parametrize("name", [n for n in documents.documents() if runs_commands(n) and n not in ELSEWHERE])
def test_commands(act, home, name):
    if "import torch" in (ROOT / name).read_text() and not TORCH.exists():
        pytest.skip("PyTorch is not installed: scripts/install-deps --torch")
    del act.env["ACT_TRUSTED_PROJECTS"]
    assert documents.Reader(name, act.env, home).read() > 0


@pytest.mark.parametrize("name", ON_AZURE)
def test_commands_on_azure(act, azureml, container, home, name):
    """In the workspace and the container of the doubles, whose names replace those of the document."""
    service = azureml.service
    names = {
        "00000000-0000-0000-0000-000000000000": azureml_double.SUBSCRIPTION, "mygroup": "rg", "myworkspace": "ws",
        "mycluster": "gpu", "mycontainer": container, "bm90IGEga2V5": service.key,
        "account_name: myaccount": f"account_name: {service.account}\nendpoint: {service.endpoint}",
        "platform: aml": "platform: aml\nazureml: " + json.dumps(
            {"endpoint": azureml.links["arm"], "history_endpoint": azureml.links["api"]}) + "\n"}

    def edit(text):
        return functools.reduce(lambda text, name: text.replace(name, names[name]), names, text)
    assert documents.Reader(name, act.env, home, edit).read() > 10


def test_words(act):
    """Every `a ...` and every script, also those that no test can run."""
    verbs = documents.Verbs(act)
    assert verbs.check("a -n 8 ls data".split()) and verbs.check("a submit --all x".split()), "finds what is wrong"
    assert not verbs.check("a -n 8 submit x --all".split())
    wrong, checked = [], 0
    for name in documents.documents():
        for words in documents.uses(name):
            if words[0] != "a":
                why = None if (ROOT / words[0]).exists() else "no such script"
            elif any(PLACEHOLDER.search(word) for word in words[1:2]):
                continue
            else:
                why = verbs.check(words)
            checked += 1
            if why:
                wrong.append(f"{name}: {' '.join(words)}: {why}")
    assert not wrong and checked > 100, "\n".join(wrong)


def test_each_verb_has_its_example(act):
    verbs = documents.Verbs(act)
    shown = {verbs.names[word] for word in re.findall(
        r"`a (?:-\S+ \w+ )*([a-z-]+)", (ROOT / "docs/reference/verbs.md").read_text()) if word in verbs.names}
    assert shown == set(verbs.names.values()), "docs/reference/verbs.md has a line of each verb"


def rows(text):
    """The tables of commands: each command, and the keys that it has."""
    for commands, keys in re.findall(r"^\| (`a [^|]*) \| ([^|]*) \|", text, re.MULTILINE):
        for command in re.findall(r"`a ([^`]*)`", commands):
            yield command, set(re.findall(r"`([^`]*)`", keys))


def test_json_keys(act):
    """The keys that the program prints are those in the tables, and every verb with --json is there."""
    act.write("data/x")
    act.run("u", "data")
    run = act.finish("sh", "-c", "echo loss 1; false", status=1)
    verbs, tested = documents.Verbs(act), set()
    elsewhere = {"initc", "login", "cluster", "fileserver", "scale"}  # an image, Azure, or Kubernetes
    for command, keys in rows((ROOT / "docs/reference/json.md").read_text()):
        words = command.replace("CMD", "true").replace("KEY", "loss").replace("RUN", run).split()
        if verbs.names[words[0]] in elsewhere:
            continue
        act.write("data/x", command)  # something to upload, and a difference
        options = ["--json"] + ["-y"] * (words[0] == "rm")
        out = act.run(words[0], *options, *words[1:], status=None).out
        assert set(json.loads(out if out.startswith("{\n") else out.splitlines()[-1])) == keys, command
        tested.add(verbs.names[words[0]])
    assert tested | elsewhere == {verb for verb in verbs.names.values() if "--json" in verbs.of(verb)}, \
        "docs/reference/json.md has a row of each verb with --json"


def anchors(path):
    """The names of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", documents.FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links():
    wrong = []
    for name in documents.documents():
        for link in LINK.findall(documents.FENCE.sub("", (ROOT / name).read_text())):
            if "://" in link:
                continue
            path, _, anchor = link.partition("#")
            target = ((ROOT / name).parent / path).resolve() if path else ROOT / name
            if not target.exists() or (anchor and anchor not in anchors(target)):
                wrong.append(f"{name}: {link}")
    assert not wrong


def test_what_follows_from_the_tables_of_keys(tmp_path):
    """The schemas and the list of keys are what scripts/reference would write."""
    subprocess.run([ROOT / "scripts/reference", tmp_path], check=True)
    assert subprocess.run([ROOT / "scripts/reference", "--check"], cwd=tmp_path, check=False).returncode != 0
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert len(written) == 4
    for path in written:
        assert (tmp_path / path).read_text() == (ROOT / path).read_text(), "run scripts/reference"



def test_paths():
    """Files of the project that the documents name are there, but for those of users' own projects."""
    named = {(name, path) for name in documents.documents() for path in re.findall(
        r"`((?:act|scripts|config|docs|tests)/[\w./-]+)`", (ROOT / name).read_text())}
    assert not {(name, path) for name, path in named if not any((top / path).exists() for top in (ROOT, ROOT / "act"))}


def test_variables():
    """The reference has every variable that a user may set, and no other, but for ACT's own that it keeps back."""
    inside = {"ACT_ATTEMPT", "ACT_LINK", "ACT_SITE_LOGIN", "ACT_SITE_ROOT", "ACT_SITE_STORE", "ACT_POD_FAILED",
              "ACT_POD_IGNORED", "ACT_POD_GANG_WAIT", "ACT_MAKES_ENVIRONMENT", "ACT_SERVICE_SOCKET",
              "ACT_SERVICE_TOKEN"}
    sources = "".join(path.read_text() for path in (ROOT / "act").rglob("*.c"))
    text = (ROOT / "docs/reference/environment.md").read_text()
    known = set(re.findall(r'"((?:ACT|AML)_[A-Z_]+)"', sources)) - inside
    told = set(re.findall(r"`((?:ACT|AML)_[A-Z_]+)`", text)) - inside
    assert told - {"ACT_NUM_GPU", "ACT_RUN_ID", "ACT_RUN_CODE"} == known - {"ACT_RUN_ID", "ACT_RUN_CODE"}


def test_exit_statuses(act):
    told = re.search(r"exit status: (.*?);", act.run("help").out, re.DOTALL).group(1)
    table = (ROOT / "docs/reference/exit-status.md").read_text()
    assert re.findall(r"\b(\d+)\s", told) == re.findall(r"^\| (\d+) \|", table, re.MULTILINE)


def test_changes(act):
    version = act.run("--version").out.split()[1]
    assert f"\n## {version}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_examples(act):
    """They name their schemas, and are valid."""
    for path in (ROOT / "aux_data").glob("*/*.example.yaml"):
        schema = path.read_text().splitlines()[0].removeprefix("# yaml-language-server: $schema=")
        assert (path.parent / schema).exists(), path
        copy = act.project / path.relative_to(ROOT).parent / path.name.replace(".example", "")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text())
        copy.chmod(0o600)
    for path in (ROOT / "aux_data/aml").glob("*.yaml"):
        name = path.name.split(".")[0]
        said = act.run("-c", name, "config", "check").err
        assert said.startswith(f"the configuration of cluster '{name}' is valid: ") and said.count("\n") == 1, said


def test_size():
    """The first page is short, and no line of prose is too long for users."""
    assert (ROOT / "README.md").stat().st_size <= 8192
    for name in set(documents.documents()) - {"act/README.md"}:
        long = [n for n, line in enumerate((ROOT / name).read_text().splitlines(), 1)
                if len(line) > COLUMNS and not line.startswith("|")]
        assert not long, (name, long)
