"""The tutorial for machines behind ssh, typed with two of them."""
import documents


def test_tutorial(act, pair):
    act.env["SHELL"] = "/bin/bash"
    assert documents.Reader("docs/tutorials/ssh.md", act.env, act.scratch / "home").read() > 8
