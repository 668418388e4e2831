"""What nodes set up before the command, and the environment of the project, where runs are those of a service: in pods
of the double of Kubernetes, and in jobs of that of Azure Machine Learning, which run on this machine."""
import json
import subprocess

import pytest

import wheel_index
from test_setup import conda, keys, modules  # noqa: F401

SAY = ("import os, sys, toy; print(toy.VERSION, *(os.environ.get(name, '-') for name in "
       "('NUMBERS', 'ACTIVATED', 'SEEN', 'OWN'))); print(sys.prefix != sys.base_prefix)")


@pytest.fixture(params=["kubernetes", "azureml"])
def service(request, act):
    """A cluster of that service is the only one of the project."""
    double = request.getfixturevalue(request.param)
    double.cluster(gpu_per_node=1)
    return double


def test_all_keys(act, service, modules, conda):  # noqa: F811
    """In the container, in their order; then the environment is made of wheels that are in the package."""
    venv = act.scratch / "venv"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", "--system-site-packages", venv], check=True)
    torch = conda("torch")
    act.write("wheels/toy-1.0-py3-none-any.whl", wheel_index.wheel("toy"))
    act.write("requirements.txt", "toy==1.0\n")
    act.write("say.py", SAY)
    run = act.submit("python3", "say.py", before=keys(
        env={"MODULEPATH": str(modules), "HOME": act.env["HOME"]}, modules=["numbers/1.0"], modules_purge=True,
        conda=str(torch), venv=str(venv), setup="export SEEN=$NUMBERS,${VIRTUAL_ENV##*/}",
        setup_rank="export OWN=$RANK", setup_timeout="5m", environment={"wheels_folder": "wheels"}))
    act.run("wait", run, status=None)
    assert act.state(run) == "Completed", act.run("why", run, status=None)
    assert act.lines(run)[-2:] == [f"1.0 one {torch} one,venv 0", "True"]


@pytest.mark.parametrize("settings, said", [
    ({"modules": ["numbres"]}, "cannot load the module 'numbres'"),
    ({"conda": "/nowhere"}, "there is no conda environment '/nowhere'"),
    ({"venv": "/nowhere"}, "'/nowhere' is not a virtual environment"),
    ({"setup": "true\nfalse"}, "line 2 of 'setup' ended with status 1: false"),
], ids=lambda value: next(iter(value)) if isinstance(value, dict) else "")
def test_what_fails_says_so(act, service, modules, settings, said):  # noqa: F811
    run = act.submit("true", before=keys(env={"MODULEPATH": str(modules), "HOME": act.env["HOME"]}, **settings))
    act.run("wait", run, status=None)
    assert said in act.info(run)["reason"], act.run("why", run, status=None)


def test_what_is_not_for_a_service(act, service):
    """There is no login node; and none of it switches off what is made."""
    act.fail(*keys(environment={"where": "login"}), "submit", "true", status=7, match="has none")
    act.write("requirements.txt", "nosuch==1.0\n")
    run = act.submit("true", before=keys(environment={"make": "none"}))
    act.run("wait", run)
    assert json.loads(act.run("q", "--json", run).out)["runs"][0]["state"] == "Completed"
