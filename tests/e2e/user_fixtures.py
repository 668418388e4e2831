"""A second user of this machine."""
import os
import subprocess

import pytest


@pytest.fixture
def stranger():
    """The name of a user who is made for the test, and has nothing."""
    if os.geteuid() != 0:
        pytest.skip("only root can be two users")
    name = f"act{os.getpid()}"
    made = subprocess.run(["useradd", "--no-create-home", "--shell", "/bin/sh", name], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no user can be made: {made.stderr.strip()}")
    yield name
    subprocess.run(["userdel", name], check=True, capture_output=True)


def as_user(name, *words):
    """Words that run a program as this user."""
    return ["setpriv", f"--reuid={name}", "--regid=65534", "--clear-groups", *words]
