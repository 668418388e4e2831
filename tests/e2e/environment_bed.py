"""For tests of environments: an index that pip asks, and what of environments is in a folder of runs."""
import contextlib

import pytest

import wheel_index


@pytest.fixture
def index(act):
    """An index with two packages, which pip asks."""
    with contextlib.closing(wheel_index.Index()) as index:
        index.add("toy", "1.0")
        index.add("toy", "2.0")
        index.add("tin", "1.0", requires=("toy<2",))
        index.add("old", "1.0", requires_python="<3")
        act.env.update(PIP_INDEX_URL=index.url, PIP_RETRIES="0", PIP_CACHE_DIR=str(act.scratch / "pip-cache"))
        yield index


def environments(act):
    """The whole ones: key to folder."""
    return environments_in(act.home)


def environments_in(root):
    home = root / "environments"
    return {path.name: path.resolve() for path in home.iterdir() if path.is_symlink()} if home.exists() else {}


def rest(act):
    """What else is there, which nobody may have left half made."""
    return rest_in(act.home)


def rest_in(root):
    folders = set(environments_in(root).values())
    return [path.name for path in (root / "environments").iterdir()
            if path.is_dir() and not path.is_symlink() and path not in folders and path.name != "cache"]


SAY = "import toy; print(toy.VERSION, toy.__file__)"


def said(folder, version="1.0"):
    """What SAY prints in an environment."""
    module, = (folder / "env").glob("lib/python3*/site-packages/toy.py")
    return f"{version} {module}"
