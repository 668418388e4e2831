"""The site behind ssh: the agent is brought once, one connection serves all, and what goes wrong is told."""
import concurrent.futures
import contextlib
import os
import pathlib
import pty
import select
import signal
import subprocess
import time

import pytest

import sshd as private_sshd
from sshd import LOGIN, Busy, SiteTool
from waiting import until

DENIED, TEMPORARY, CONFIG = -4, -5, -7
AWKWARD, AWKWARD_OUT = """printf '[%s]' "it's" '$HOME' '' 'a  b'""", "[it's][$HOME][][a  b]"


@pytest.fixture
def server(scratch):
    if not private_sshd.is_installed():
        pytest.skip("OpenSSH is not installed: scripts/install-deps --test")
    s = private_sshd.Sshd(scratch / "ssh")
    yield s
    s.stop()
    until(lambda: not s.agents(), "no agent is left")  # the end of the connection is theirs


def built_test(programs, name):
    """That of the build under test, or of build/dev where that has no tests."""
    places = [programs.parent / "tests" / name, pathlib.Path(__file__).resolve().parents[2] / "build/dev/tests" / name]
    return next(path for path in places if path.exists())


@pytest.fixture
def tool(programs, scratch, server):
    """tool(login, root, *words, **env): sitetool on that site."""
    def start(login=LOGIN, root="~/.act", *words, **env):
        base = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(scratch / "client"), "ACT_HOME": str(scratch / "a"),
                "ASAN_OPTIONS": "detect_leaks=1"}
        return SiteTool(built_test(programs, "sitetool"), login, root, {**base, **server.env, **env},
                        *words)
    (scratch / "client").mkdir()
    return start


def refused(tool, rc, *parts, **how):
    """The site cannot be opened; one line says why."""
    with tool(**how) as site:
        assert site.opened["rc"] == rc, site.opened
        for part in parts:
            assert part in site.opened["error"], site.opened
        assert not site.opened["error"].endswith("."), site.opened


def test_first_connection_brings_the_agent(tool, server):
    with tool() as site:
        assert site.opened["rc"] == 0, site.opened
        assert server.sessions() == 3  # it is not there; bring it; start it
        path = pathlib.Path(site.ask("agent")["path"])
    assert path.parent.parent == server.home / ".act/bin"
    assert list(path.parent.parent.iterdir()) == [path.parent]
    assert sorted(p.name for p in path.parent.iterdir()) == ["act", "act-node", "version"]
    assert path.stat().st_mode & 0o777 == 0o700
    before = path.stat()
    with tool() as site:
        assert site.opened["rc"] == 0
        assert site.ask("agent")["path"] == str(path)
        assert site.ask("run echo $((6 * 7))")["out"] == "42\n"
    assert server.sessions() == 4
    assert path.stat() == before


def test_one_connection_for_all(tool, server):
    for _ in range(3):
        with tool() as site:
            site.ask("list")
    assert server.logins() == 1
    sockets = [p for p in (server.runtime / "act").iterdir() if p.is_socket()]
    assert len(sockets) == 1
    assert (server.runtime / "act").stat().st_mode & 0o777 == 0o700


def sockets(folder):
    return [path for path in folder.iterdir() if path.is_socket()]


def test_socket_of_a_dead_connection(tool, server):
    """Who held it open was killed: the socket is still there, and nobody listens on it."""
    with tool() as site:
        site.ask("list")
    path, = sockets(server.runtime / "act")
    words = ["ssh", "-F", server.folder / "ssh_config", "-o", f"ControlPath={path}", "-O", "check", LOGIN]
    said = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stderr
    master = int(said.partition("pid=")[2].partition(")")[0])
    os.kill(master, signal.SIGKILL)
    until(lambda: not pathlib.Path(f"/proc/{master}/fd").exists() or not os.listdir(f"/proc/{master}/fd"), "it is gone")
    assert path.is_socket()
    with tool() as site:
        assert site.opened["rc"] == 0, site.opened
    assert server.logins() == 2


def test_connection_of_the_users_own(tool, server):
    """His ssh says where connections are shared: ACT uses that, and makes no socket of its own."""
    config = server.folder / "ssh_config"
    config.write_text(f"ControlMaster auto\nControlPath {server.runtime}/his-%C\nControlPersist 60\n"
                      f"{config.read_text()}")
    for _ in range(2):
        with tool() as site:
            site.ask("list")
    assert server.logins() == 1
    path, = sockets(server.runtime)
    assert path.name.startswith("his-") and not sockets(server.runtime / "act")
    subprocess.run(["ssh", "-F", config, "-O", "exit", LOGIN], stdin=subprocess.DEVNULL, capture_output=True,
                   check=True)


def test_many_at_once(tool, server):
    """More than the server takes at once, of new connections and of commands in one connection."""
    server.stop()
    server.extra = "MaxStartups 2\nMaxSessions 3"
    server.start()
    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor(12) as pool:
        tools = [stack.enter_context(t) for t in pool.map(lambda _: tool(), range(12))]
        assert [t.opened["rc"] for t in tools] == [0] * 12, [t.opened for t in tools]
        for t in tools:
            t.ask("list")
    assert len(list((server.home / ".act/bin").iterdir())) == 1


def test_busy_server(tool, server):
    """Who is hung up on tries again, after growing pauses, and not for ever."""
    with tool() as site:  # brings the agent
        assert site.opened["rc"] == 0, site.opened
    alone = {"XDG_RUNTIME_DIR": "", "ACT_HOME": ""}  # nothing is shared
    with Busy(server, refuses=2) as busy, tool(**alone, **busy.env) as site:
        assert site.opened["rc"] == 0, site.opened
        assert busy.taken == 3
    with Busy(server, refuses=99) as busy:
        refused(tool, TEMPORARY, "cannot connect to 'lab': Connection ",
                "it may have too many connections at once; try again later", **alone, **busy.env)
        assert busy.taken == 5


@pytest.mark.parametrize("name", ["x" * 80, "a blank", "100%", "$HOME"])
def test_no_room_for_sockets(tool, server, scratch, name):
    """A path that a socket cannot have, or that ssh would read in its own way: every ssh connects by itself."""
    odd = scratch / name
    odd.mkdir()
    for _ in range(2):
        with tool(XDG_RUNTIME_DIR=str(odd), ACT_HOME=str(odd)) as site:
            site.ask("list")
    assert server.logins() == 4


def test_folder_of_others_is_not_used_for_sockets(tool, server):
    (server.runtime / "act").mkdir(mode=0o777)
    (server.runtime / "act").chmod(0o777)
    with tool(ACT_HOME="") as site:
        site.ask("list")
    assert list((server.runtime / "act").iterdir()) == []


def test_every_case_of_the_unit_test(programs, server, scratch):
    env = {"PATH": "/usr/bin:/bin", "HOME": str(server.home), "ACT_HOME": str(scratch / "a"), **server.env}
    done = subprocess.run([built_test(programs, "site_test")], env={**env, "ACT_TEST_LOGIN": LOGIN}, timeout=300,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    assert server.sessions() > 10


# ---- login shells


def run_words(words):
    """What the words print that run something on the site in a terminal."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=300)
    assert done.returncode == 0, done
    return done.stdout


def test_login_shell_that_talks(tool, server):
    server.shell("echo Welcome to the cluster; for i in $(seq 500); do echo noise $i; done; echo more >&2")
    with tool() as site:
        assert site.ask("run echo fine")["out"] == "fine\n"


NOISES = {
    "a title": r"printf '\033]0;me@lab: ~\007'",
    "a NUL": r"printf 'a\0b\0'",
    "no UTF-8": r"printf '\377\376\r\n\n\r'",
    "what looks like the mark": "printf 'act-site/act-site/0 act-act-site/1'",
    "much without a line end": r"head -c 300000 /dev/zero | tr '\0' x",
    "pieces": "for i in 1 2 3; do printf 'piece '; sleep 0.05; done",
    "the command": 'printf "%s" "$SSH_ORIGINAL_COMMAND"; set -v',
    "much on stderr": r"head -c 300000 /dev/zero | tr '\0' x >&2",
}


@pytest.mark.parametrize("noise", NOISES)
def test_login_shell_that_prints_anything(tool, server, noise):
    """Nothing it prints before a command is taken for what ACT asked: not at first, not later, not without an agent."""
    server.shell(NOISES[noise])
    with tool(LOGIN, "~/elsewhere", "look") as site:
        assert site.opened["rc"] == 0, site.opened
        assert site.ask("run echo fine")["out"] == "fine\n"
    for _ in range(2):
        with tool() as site:
            assert site.opened["rc"] == 0, site.opened
            assert site.ask("run echo fine")["out"] == "fine\n"


def test_login_shell_that_never_stops_talking(tool, server):
    for command in ("cat /dev/zero", "yes"):
        server.shell(f"exec {command}")
        refused(tool, -1, "cannot start the agent", "the login shell prints too much, more than 1024 KiB",
                "let ~/.bashrc")
        refused(lambda **_: tool(LOGIN, "~/.act", "look"), -1, "the login shell prints too much")


def test_login_shell_that_fails(tool, server):
    for noise in ("", r"printf 'a\0b\n' >&2; "):
        server.shell(f"{noise}echo this account is closed >&2; exit 3")
        refused(tool, -1, "this account is closed", "exit status 3")


@pytest.mark.parametrize("shell", [name for name in ("dash", "bash", "csh", "fish", "ksh", "tcsh", "zsh")
                                   if pathlib.Path("/bin", name).exists()])
def test_any_login_shell(tool, server, shell):
    server.shell(f"export ACT_TEST_SHELL=/bin/{shell}")
    root = str(server.home / 'a "b" $c;d')
    with tool(root=root) as site:
        assert site.opened["rc"] == 0, site.opened
        assert site.ask("run pwd")["out"] == root + "\n"
        words = site.ask("shell " + AWKWARD)["words"]
    assert run_words(words) == AWKWARD_OUT


def bin_without_sbatch(server):
    """A PATH in which sbatch is only found by a login shell."""
    bin_folder = server.folder / "bin"
    bin_folder.mkdir()
    for name in ("sh", "bash", "cat", "mkdir", "mv", "rm", "chmod", "wc", "uname", "id"):
        (bin_folder / name).symlink_to(f"/bin/{name}")
    slurm = server.folder / "slurm"
    slurm.mkdir()
    (slurm / "sbatch").write_text("#!/bin/sh\necho here\n")
    (slurm / "sbatch").chmod(0o755)
    (server.home / ".bash_profile").write_text(f"echo a word of the profile; PATH={slurm}:$PATH\n")
    server.shell(f"export PATH={bin_folder} SHELL=/bin/bash")


def test_programs_that_only_login_shells_find(tool, server):
    bin_without_sbatch(server)
    with tool() as site:
        assert site.ask("run sbatch")["out"] == "here\n"
        words = site.ask("shell sbatch")["words"]
        awkward = site.ask("shell " + AWKWARD)["words"]
    assert run_words(words).splitlines() == ["a word of the profile", "here"]
    assert run_words(awkward) == "a word of the profile\n" + AWKWARD_OUT


def test_shell_words(tool, server):
    with tool() as site:
        words = site.ask("shell " + AWKWARD)["words"]
    assert run_words(words) == AWKWARD_OUT
    assert server.logins() == 1  # through the shared connection


# ---- machines


def fake_machine(server, system, machine):
    folder = server.folder / "fake"
    folder.mkdir()
    (folder / "uname").write_text(f'#!/bin/sh\n[ "$1" = -s ] && echo {system} || echo {machine}\n')
    (folder / "uname").chmod(0o755)
    server.shell(f"export PATH={folder}:$PATH")


def test_machine_of_another_kind(tool, server):
    fake_machine(server, "Linux", "aarch64")
    refused(tool, CONFIG, "aarch64", "act-node-aarch64")
    assert not (server.home / ".act").exists()


def test_agent_for_a_machine_of_another_kind(tool, server, programs, scratch):
    """What is installed for it is taken."""
    fake_machine(server, "Linux", "mips65")
    others = scratch / "others"
    others.mkdir()
    agent = (programs / "act-node").read_bytes() + b"other"  # bytes behind a program do not matter
    (others / "act-node-mips65").write_bytes(agent)
    (others / "act-node-mips65").chmod(0o755)
    with tool(PATH=f"{others}:{programs}:/usr/bin:/bin") as site:
        path = pathlib.Path(site.ask("agent")["path"])
    assert path.read_bytes() == agent


def test_no_linux(tool, server):
    fake_machine(server, "Darwin", "arm64")
    refused(tool, CONFIG, "Darwin")


# ---- on a terminal


def on_terminal(program, env, typed):
    """What sitetool shows on a terminal where somebody types when ssh asks."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(program, [program, LOGIN, "~/.act"], env)
    shown = b""
    try:
        while b'"rc"' not in shown:
            assert select.select([terminal], [], [], 60)[0], shown
            shown += os.read(terminal, 4096)
            if typed and b"(yes/no" in shown:
                os.write(terminal, typed)
                typed = b""
    finally:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        os.close(terminal)
    return shown.decode()


def test_questions_on_the_terminal(programs, server, scratch):
    """ssh asks for what it needs, and what it has to say is seen."""
    (server.folder / "banner").write_text("Choose your second factor\n")
    server.stop()
    server.extra = f"Banner {server.folder}/banner"
    server.start()
    server.trust("\n")
    env = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(scratch), "ACT_HOME": str(scratch / "a"), **server.env}
    tool = str(built_test(programs, "sitetool"))
    shown = on_terminal(tool, env, b"no\n")
    assert "not known" in shown and '"rc":-4' in shown
    server.shell("sleep 0.3")  # it is shown while the answer is waited for
    shown = on_terminal(tool, env, b"yes\n")
    assert "Choose your second factor" in shown and '"rc":0' in shown


# ---- what ssh cannot do


def test_nobody_listens(tool, server):
    server.stop()
    refused(tool, TEMPORARY, f"cannot connect to '{LOGIN}'", "Connection refused", "try again")


def test_no_such_host(tool):
    refused(tool, TEMPORARY, "Could not resolve hostname", "check its name", login="someone@no-such-host.invalid")


def test_not_allowed(tool, server):
    (server.folder / "authorized").write_text("")
    refused(tool, DENIED, "Permission denied")


def test_unknown_key(tool, server):
    server.trust("\n")
    refused(tool, DENIED, "not known", "by hand")
    assert (server.folder / "known").read_text() == "\n"  # nobody was trusted on the way


def test_changed_key(tool, server):
    server.stop()
    server.new_host_key()
    server.start()
    refused(tool, DENIED, "host key has changed", "ssh-keygen -R")


def test_no_ssh(tool):
    refused(tool, -3, "no-such-ssh", "install the OpenSSH client", ACT_SSH="no-such-ssh")


@pytest.mark.parametrize("root", ["it's", "back\\slash", "bang!", "two\nlines"])
def test_root_that_no_shell_takes(tool, root):
    refused(tool, CONFIG, "the root", root=root)


@pytest.mark.parametrize("login", ["-oProxyCommand=touch /tmp/x", "two words", "", "ssh://user@host:port",
                                   "ssh://user@host:22/folder"])
def test_login_that_is_none(tool, login):
    refused(tool, CONFIG, "user@host", login=login)


def test_root_that_cannot_be_made(tool, server):
    (server.home / "file").write_text("")
    refused(tool, -1, "cannot bring the agent", "~/file/root", root="~/file/root")


def test_agent_that_does_not_arrive_whole(tool, server):
    """What cannot be written whole is not left behind."""
    server.shell("ulimit -f 100")
    refused(tool, -1, "cannot bring the agent")
    assert [p for p in (server.home / ".act").rglob("*") if p.is_file()] == []


# ---- connections that break


def test_connection_breaks_in_a_call(tool, server, scratch):
    mark = scratch / "mark"
    with tool() as site:
        site.tell(f"run echo $$ >{mark}.new; mv {mark}.new {mark}; exec sleep 1000")
        until(mark.exists, "it was begun")
        server.drop()
        answer = site.answer()
        os.kill(int(mark.read_text()), signal.SIGKILL)  # what was begun there goes on
        assert answer["rc"] == TEMPORARY, answer
        assert LOGIN in answer["error"] and "lost" in answer["error"], answer
        assert site.ask("run echo again")["out"] == "again\n"
    assert server.logins() == 2


def test_connection_breaks_while_a_package_is_brought(tool, server, scratch):
    """Nothing of it is left, and the next time it goes over."""
    slowly = "import os, time\nwhile d := os.read(0, 65536): os.write(1, d); time.sleep(.02)"
    package, new = scratch / "package.zip", server.home / ".act/new"
    package.write_bytes(os.urandom(20_000_000))
    with tool() as site:
        site.ask("list")
    server.shell(f"/usr/bin/python3 -c '{slowly}' | bash -c \"$SSH_ORIGINAL_COMMAND\"; exit")
    with tool() as site:
        site.tell(f"create {package}")
        until(lambda: new.exists() and any(p.stat().st_size > 100_000 for p in new.iterdir()),
              "some of it has come")
        server.drop()
        assert site.answer()["rc"] == TEMPORARY
        until(lambda: not [p for p in new.iterdir() if not p.name.startswith(".")], "nothing is left of it")
        server.shell("")
        run = site.ask(f"create {package}")["id"]
    assert (server.home / f".act/runs/{run}/package.zip").read_bytes() == package.read_bytes()
    assert len(list((server.home / ".act/runs").iterdir())) == 1


def test_connection_breaks_between_calls(tool, server):
    with tool() as site:
        site.ask("list")
        server.drop()
        for _ in range(2):  # it may be noticed by the first call only
            site.tell("list")
            answer = site.answer()
        assert answer["rc"] == 0, answer


def test_server_is_gone_for_a_while(tool, server):
    with tool() as site:
        site.ask("list")
        server.stop()
        site.ask("list", rc=TEMPORARY)
        site.ask("list", rc=TEMPORARY)
        server.start()
        site.ask("list")
