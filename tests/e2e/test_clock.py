"""A machine whose clock stands before 1970."""
import os

import pytest


@pytest.fixture
def before_1970(programs):
    library = programs.parent / "tests/oldclock.so"
    if not library.exists():
        pytest.skip("this build has no tests, or its programs are static")
    asan = os.environ.get("ASAN_OPTIONS", "")
    return {"LD_PRELOAD": str(library), "ASAN_OPTIONS": f"{asan}:verify_asan_link_order=0"}


def test_no_run_is_submitted(act, before_1970):
    run = act.submit("true")
    act.run("wait", run)
    rows = act.run("q", "--json").out
    for words in (("submit", "true"), ("local", "true"), ("resubmit", "-y", run),
                  ("sweep", "--grid", "lr=1,2", "true", "{lr}")):
        message = act.fail(*words, env=before_1970, status=(1, 8, 125))
        assert "the clock of this machine is wrong, it says 1969-12-31T00:00:00Z: set it first" in message, words
    result = act.run("q", "--json")
    assert result.out == rows and result.err == ""
    assert not [p for p in (act.home / "runs").glob("*") if p.name != run]
