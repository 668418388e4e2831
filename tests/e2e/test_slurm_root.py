"""Slurm without an account file: code and folders are below slurm.root."""
from slurm_fixtures import configure_below_root


def test_code_and_folders_are_below_the_root(act, lab):
    configure_below_root(act, lab)
    assert "valid" in act.run("-c", "lab", "config", "check").err
    act.write("train.py",
              "print(open('data/words').read() + open('more').read())\nopen('output/model', 'w').write('m')")
    act.write("more", "1")
    act.write("data/words", "own")
    first = lab.submit("python3", "train.py")
    lab.wait(first, "Completed", status=0)
    assert lab.rank_text(first) == "own1\n"
    act.run("-c", "lab", "u", "data")
    act.write("data/words", "later")
    second = lab.submit("python3", "train.py")
    lab.wait(second, "Completed", status=0)
    assert act.lines(second) == ["own1"]
    act.run("-c", "lab", "d", "output")
    assert (act.project / "output/model").read_text() == "m"
    store = lab.root / "store"
    assert sorted(p.name for p in next(store.iterdir()).iterdir()) == ["code", "code.zip", "data", "output"]
    assert lab.root.stat().st_mode & 0o77 == store.stat().st_mode & 0o77 == 0
    assert not (act.home / "store").exists()


def test_code_comes_through_the_login_node(act, behind_ssh):
    lab = behind_ssh
    assert "valid" in act.run("-c", "lab", "config", "check").err
    act.write("train.py", "print(open('data/words').read())")
    act.write("data/words", "packed")
    for text in ("packed", "again"):
        act.write("data/words", text)
        run = lab.submit("python3", "train.py")
        act.run("wait", run)
        assert act.run("logs", run).out == act.run("q", run).out.splitlines()[0] + "\n" == f"{text}\n"
    assert len(list((lab.root / "packages").iterdir())) == 2
    act.write("data/words", "moved")
    act.run("-c", "lab", "u", "data")
    place = next((lab.root / "store").iterdir()) / "data"
    (place.parent / "output").mkdir()
    act.write("train.py", "open('output/model', 'w').write(open('data/words').read())")
    first = lab.submit("python3", "train.py")
    act.run("wait", first)
    assert (place.parent / "output/model").read_text() == "moved"
    act.write("data/words", "moved again")
    act.run("-c", "lab", "u", "data")
    act.run("wait", act.run("-c", "lab", "resubmit", first).out.strip())
    assert (place.parent / "output/model").read_text() == "moved again"
    act.run("-c", "lab", "d", "output")
    assert (act.project / "output/model").read_text() == "moved again"


def findings(act, *apart):
    """What the doctor says, while nothing becomes another here or there."""
    before = act.snapshot(*apart)
    checks = act.run("-c", "lab", "doctor", "--json").json["checks"]
    assert act.snapshot(*apart) == before
    return {c["what"]: c["text"] for c in checks}


def test_doctor_writes_nothing(act, lab):
    configure_below_root(act, lab)
    first = findings(act)
    assert "at the first submit" in first["agent"] and "answers" in first["controller"], first
    lab.until_over(lab.submit("true"))
    assert findings(act)["agent"].startswith(f"'{lab.root}/bin/")


def test_a_login_node_at_another_port(act, behind_ssh):
    """As ssh takes it: a URI."""
    lab = behind_ssh
    config = lab.server.folder / "ssh_config"
    config.write_text(config.read_text().replace(f" Port {lab.server.port}\n", " Port 1\n"))
    configure_below_root(act, lab, login=f"ssh://lab:{lab.server.port}")
    act.run("wait", lab.submit("echo", "hello"))
    configure_below_root(act, lab, login=f"lab:{lab.server.port}")
    act.fail("-c", "lab", "submit", "true", status=7, match=f"write 'ssh://lab:{lab.server.port}', or leave it out")


def test_doctor_brings_nothing_to_the_login_node(act, behind_ssh):
    lab = behind_ssh
    lab.server.shell(f"export SLURM_CONF={lab.bed.conf}; echo welcome")
    lab.server.commands.touch()
    apart = [lab.server.runtime, lab.server.log, lab.server.commands]
    first = findings(act, *apart)
    assert "at the first submit" in first["agent"] and "answers" in first["controller"], first
    assert "slurm" in first["sbatch"] and "main" in first["partition"] and "Open MPI" in first["mpirun"]
    assert first["slurm.root"].startswith(f"'{lab.root}'")
    lab.until_over(lab.submit("true"))
    assert findings(act, *apart)["agent"].startswith(f"'{lab.root}/bin/")
    configure_below_root(act, lab, login="lab", partition="nosuch")
    assert "partition" in act.run("-c", "lab", "doctor", status=1).out
