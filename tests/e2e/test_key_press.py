"""A key press is seen after one round trip to the node: in a shell, as input of a rank, through a forwarded port. A
relay before the machine, the login node or the server of the cluster counts how often the sides take turns until then.
What else they say now and then may come in between, but no press can do with less than it needs: one that does with a
single trip is enough."""
import test_attach
import test_forward
import test_shell

PRESSES = 50  # at most
ROUND_TRIP = 2  # turns


def assert_one_trip(relay, press):
    """press sends its number and waits until that is seen."""
    turns = []
    for number in range(PRESSES):
        relay.turns, relay.speaker = 0, None
        press(number)
        turns.append(relay.turns)
        if turns[-1] == ROUND_TRIP:
            return
    raise AssertionError(turns)


def test_through_a_forwarded_port(act, relayed):
    before, relay = relayed
    run, port = test_forward.serve(act, *before)
    with test_forward.forwarded(act, run, f"0:{port}") as (_, here), test_forward.connect(here) as s:
        lines = s.makefile("rwb", 0)
        lines.write(b"echo\n")

        def press(number):
            lines.write(b"%d\n" % number)
            assert lines.readline() == b"%d\n" % number
        assert_one_trip(relay, press)
    act.run("abort", "-y", run)


def test_as_input_of_a_rank(act, relayed):
    before, relay = relayed
    run = test_attach.reads(act, *before)
    process = test_attach.typing(act, run)

    def press(number):
        process.stdin.write(b"%d\n" % number)
        process.stdin.flush()
        test_attach.until_printed(process, b"read %d\n" % number)
    press(PRESSES)  # the way is there
    assert_one_trip(relay, press)
    out, err = process.communicate()
    assert out.endswith(b"no more\n"), (out, err)


@test_attach.on_a_terminal
def test_in_a_shell(act, relayed, terminal):
    before, relay = relayed
    screen = test_shell.shell_on(terminal, *before, "shell")

    def press(number):
        screen.type(str(number))
        screen.until("".join(map(str, range(number + 1))) + "$")
    assert_one_trip(relay, press)
    screen.type("C-u", "exit 0", "Enter")
    screen.ends(0)
