"""The manual: pages that man(1) and mandoc(1) take, made of the tables that the program itself goes by."""
import json
import re
import subprocess

from conftest import ROOT

MAN = """#!/bin/sh
[ "$*" = "-l -" ] && sed -n 's/^\\.TH/shown as/p'
"""


def test_pages(act, scratch):
    """One for each verb, one for the files, and nothing in them that mandoc has to warn of."""
    act.run("__man", scratch / "man")
    pages = {p.name: p for p in (scratch / "man").rglob("*.[15]")}
    verbs = act.run("__complete", "").out.split()
    assert set(pages) == {"a.1", "act.yaml.5"} | {f"a-{verb}.1" for verb in verbs}
    lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages.values()], capture_output=True, text=True)
    assert lint.stdout + lint.stderr == ""

    for page in pages.values():
        assert max(map(len, text(page).splitlines())) <= 80, page

    shown = {name: text(pages[name]) for name in ("a.1", "a-submit.1", "act.yaml.5")}
    assert all(f"a {verb}" in shown["a.1"] or f"\n       {verb}" in shown["a.1"] for verb in verbs)
    assert all("share/doc/act-cluster/docs" in shown[name] for name in ("a.1", "act.yaml.5"))
    for words in ("run a command on the cluster", "-f, --file FILE", "a submit python3 train.py --lr 0.1"):
        assert words in shown["a-submit.1"]
    for name in ("cluster", "account"):
        schema = json.loads((ROOT / f"config/{name}.schema.json").read_text())
        for key, what in schema["properties"].items():
            assert what["description"].startswith("legacy") or re.search(rf"\n       {key}\s", shown["act.yaml.5"]), key


def text(page):
    return subprocess.run(f"mandoc -T ascii {page} | col -b", shell=True, capture_output=True, text=True).stdout


def test_help_of_a_verb_is_its_page(act, scratch):
    """By man(1) on a terminal; else, and where that cannot, what --help says."""
    man = scratch / "bin/man"
    man.parent.mkdir()
    man.write_text(MAN)
    man.chmod(0o755)
    path = f"{man.parent}:{act.env['PATH']}"
    assert b"shown as A-SUBMIT 1" in act.on_terminal("help", "submit", PATH=path)
    assert act.run("help", "submit", env={"PATH": path}).out == act.run("submit", "--help").out
    man.write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    assert act.on_terminal("help", "submit", PATH=path).startswith(b"examples:")


def test_help_of_the_files(act, scratch):
    """The page of its keys, as those of the verbs."""
    man = scratch / "bin/man"
    man.parent.mkdir()
    man.write_text(MAN)
    man.chmod(0o755)
    assert b"shown as ACT.YAML 5" in act.on_terminal("help", "act.yaml", PATH=f"{man.parent}:{act.env['PATH']}")
    plain = act.run("help", "act.yaml").out
    project = plain[plain.index("\nFILE OF THE PROJECT\n"):plain.index("\nCLUSTER FILE\n")]
    assert "\n    venv: /shared" in project and "\n  setup_rank " in project and "num_gpu" not in project
    assert "\n  num_gpu " in plain and "ACCOUNT FILE" in plain and "trusted_hosts" in plain
    assert max(map(len, plain.splitlines())) <= 80
