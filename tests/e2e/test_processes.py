"""What the processes of ACT keep to themselves, and that commands are as free as without ACT: as a user who is not
root."""
import os
import pathlib
import platform
import re
import resource
import subprocess

import pytest

NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
HIDING_PROC = ("unshare", "--mount", "sh", "-c", 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', "sh")


@pytest.fixture
def user(act, scratch):
    """The project of a user who is not root. Gives the user's id."""
    if os.geteuid() != 0:
        return os.geteuid()
    if subprocess.run([*AS_NOBODY, act.programs / "a", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("another user cannot execute the programs where they are")
    subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", scratch], check=True)
    act.prefix = AS_NOBODY
    return NOBODY


def words_of(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]


def find(act, verb, run):
    """The process id of the run's agent with this verb."""
    ends = os.fsencode(verb), os.fsencode(act.run_dir(run))
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = words_of(entry.name)
        except OSError:
            continue
        if len(words) > 2 and (words[1], words[-1]) == ends:
            return int(entry.name)
    raise AssertionError(f"no process has {ends}")


def owner(pid):
    """Whom the kernel lets look into a process."""
    return os.stat(f"/proc/{pid}/environ").st_uid


def soft_core_limit(pid):
    text = pathlib.Path(f"/proc/{pid}/limits").read_text()
    return re.search(r"Max core file size +(\S+)", text)[1]


def said(act, run):
    try:
        return act.lines(run)
    except FileNotFoundError:  # the rank has not begun its log
        return []


def run_for_a_look(act, **options):
    """A command that says what it may do and stays; what it said, its process id, and the run."""
    run = act.submit("sh", "-c", "grep NoNewPrivs /proc/self/status; ulimit -S -c; echo pid $$; exec sleep 600",
                     **options)
    act.until(lambda: len(said(act, run)) == 3, "the command has said all")
    lines = said(act, run)
    return lines, int(lines[2].removeprefix("pid ")), run


@pytest.mark.smoke
def test_only_processes_of_act_are_hidden(act, user):
    unlimited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_CORE, (4096000, resource.RLIM_INFINITY)),
                 "env": {"ASAN_OPTIONS": "detect_leaks=1:disable_coredump=0"}}
    lines, command, run = run_for_a_look(act, **unlimited)
    waiting = act.start("wait", run)
    program = [os.fsencode(act.programs / "a")]
    act.until(lambda: words_of(waiting.pid)[:1] == program and owner(waiting.pid) == 0, "`a` is hidden")
    supervisor, rank = find(act, "supervise", run), find(act, "rank", run)
    assert owner(supervisor) == 0
    assert (owner(rank), soft_core_limit(rank)) == (user, "0")
    assert (owner(command), soft_core_limit(command)) == (user, "4096000")
    assert lines[0].split() == ["NoNewPrivs:", "0"]
    assert int(lines[1]) in (4096000 // 512, 4096000 // 1024)  # in the blocks of the shell
    act.run("abort", run)
    waiting.communicate()
    assert act.state(run) == "Canceled"
    assert not pathlib.Path(f"/proc/{command}").exists()


def test_a_debugger_is_let_in_when_asked(act, user):
    env = {"ACT_DUMPABLE": "1"}
    run = act.submit("sleep", "600", env=env)
    act.until_state(run, "Running")
    waiting = act.start("wait", run, env=env)
    assert owner(find(act, "supervise", run)) == user
    assert act.run("abort", run, env=env).status == 0
    waiting.communicate()


def test_nothing_needs_to_see_what_is_hidden(act, user):
    """Where /proc shows a user only the processes that he may trace."""
    if tuple(map(int, platform.release().split(".")[:2])) < (5, 8):
        pytest.skip("this kernel has one set of options for all mounts of /proc")
    if os.geteuid() != 0 or subprocess.run([*HIDING_PROC, "true"], capture_output=True, check=False).returncode:
        pytest.skip("it takes a mount of /proc")
    act.prefix = (*HIDING_PROC, *act.prefix)
    _, command, run = run_for_a_look(act)
    act.run("abort", run)
    assert act.state(run) == "Canceled"
    assert not pathlib.Path(f"/proc/{command}").exists()
