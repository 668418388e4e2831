"""The tutorial for machines behind ssh, typed with three of them, of which it uses two."""
import documents


def test_tutorial(act, rack):
    rack.use("gpu1", "gpu2")
    act.env["SHELL"] = "/bin/bash"
    assert documents.Reader("docs/tutorials/ssh.md", act.env, act.scratch / "home").read() > 8
