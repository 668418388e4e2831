"""The way to a cluster breaks, under all that leads to nodes: a relay before the machine, the login node or the server
of the cluster cuts it, or is away for a while."""
import place_fixtures
import test_at_the_node
import test_attach
import test_forward
import test_notebook
import test_shell


def is_reset(s):
    """Whether a connection that was open is over."""
    try:
        return s.recv(1) == b""
    except ConnectionResetError:
        return True


def test_ports_and_a_notebook(act, relayed):
    """Each says that the connection is lost, and makes it anew; only the connections that were open break."""
    before, relay = relayed
    run, port = test_forward.serve(act, *before)
    test_notebook.double(act, at=act.project / "site")  # in the code, for pods
    place_fixtures.change_cluster(act, before, setup="export PYTHONPATH=$PWD/site")
    with test_forward.forwarded(act, run, f"0:{port}") as (forward, here), \
            test_notebook.opened(act, *before, "notebook") as (notebook, page, own), \
            test_forward.connect(here) as s:
        s.sendall(b"echo\nx\n")
        assert s.recv(2) == b"x\n"
        relay.cut()
        for process, name in (forward, run), (notebook, own):
            both = rf"the connection to run '{name}' is lost(.|\n)*connected to run '{name}' again"
            test_at_the_node.until_said(process, both.encode())
        assert is_reset(s)
        test_forward.carries(here)
        assert test_notebook.get(page) == (200, "the double of jupyterlab")
        test_notebook.ends(notebook)
    assert test_notebook.ended(act, own) == "Canceled"
    act.run("abort", "-y", run)


def test_input_of_a_rank(act, relayed):
    """The output goes on, and what is typed later arrives; it is said that what was typed last may be lost."""
    before, relay = relayed
    run = test_attach.reads(act, *before)
    process = test_attach.typing(act, run)
    process.stdin.write(b"one\n")
    process.stdin.flush()
    test_attach.until_printed(process, b"read one")
    relay.cut()
    test_at_the_node.until_said(process, b"input of rank 0 is lost")
    out, err = process.communicate(b"two\n")
    assert out.endswith(b"read two\nno more\n"), (out, err)


@test_at_the_node.on_a_terminal
def test_a_kept_shell(act, relayed, terminal):
    """The same shell comes back by itself, and by 'a ssh' later; then the run goes on without one."""
    before, relay = relayed
    screen = test_shell.shell_on(terminal, *before, "shell", "--keep")
    run = test_shell.run_of(act)
    screen.type("mark=here; echo pid $$", "Enter")
    pid = screen.until(r"^pid (\d+)")[1]
    relay.cut()
    screen.until(f"the connection to run {run} broke; here is its shell again")
    screen.type("clear; echo $mark is $$", "Enter")
    screen.until(f"^here is {pid}")
    relay.cut(is_away=True)
    screen.until("broke; trying again for 5 minutes, Ctrl-C ends that")
    screen.type("C-c")
    screen.until(r"^status \d+")
    assert screen.mode(0) == screen.mode(1)
    relay.is_away = False
    again = terminal("ssh", run)
    again.until("the shell of run")
    again.type("clear; echo $mark is $$", "Enter")
    again.until(f"^here is {pid}")
    again.type("exit 4", "Enter")
    again.ends(4)
    assert f"run {run} goes on" in again.text("-J")
    another = test_shell.shell_on(terminal, "attach", run)
    another.type("clear; echo $mark is $$", "Enter")
    assert another.until(r"^is (\d+)")[1] != pid
    another.type("exit 0", "Enter")
    another.ends(0)
    act.run("abort", "-y", run)
    assert test_shell.ended(act, run)["state"] == "Canceled"


@test_at_the_node.on_a_terminal
def test_a_shell_that_nobody_uses(act, relayed, terminal):
    """Who waits for a GPU uses it. Later it is ended, after a warning in it. So is one to which nobody comes."""
    before, _ = relayed
    test_shell.make_gpu(act.project)  # in the code, for pods
    place_fixtures.change_cluster(act, before, setup="export PATH=$PWD/smi:$PATH")
    left = act.submit("act-node", "keep", "0", "0", "1", "ends", before=before)
    screen = test_shell.shell_on(terminal, *before, "shell", "--idle", "2s")
    test_shell.until_its_gpu_is_idle(act, screen)
    screen.until(r"^status \d+")
    assert screen.mode(0) == screen.mode(1)
    assert test_shell.ended(act, left)["state"] == "Completed"
    assert "nobody has come back: the run ends" in act.run("logs", left).out
