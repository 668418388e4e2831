"""Waiting for something to happen."""
import subprocess
import time

PATIENCE_S = 300  # what takes longer will not happen, however loaded the machine is


def until(condition, what, timeout=PATIENCE_S):
    """Waits until condition() gives something true, and returns it; what is text, or gives one. The longer it takes,
    the less often it looks: looking may start programs, which are in the way of what is waited for."""
    end, pause = time.monotonic() + timeout, 0.05
    while not (value := condition()):
        if time.monotonic() >= end:
            raise AssertionError(f"did not happen within {timeout} s: {what() if callable(what) else what}")
        time.sleep(pause)
        pause = min(1.25 * pause, 0.3)
    return value


def settled(path):
    """Waits until the file is so old that a later change must show in its times: only then can its upload go on."""
    while int(time.time()) - int(path.stat().st_ctime) <= 2:
        time.sleep(0.1)


class Process(subprocess.Popen):
    """A process that nobody waits for without end."""

    def communicate(self, input=None, timeout=PATIENCE_S):
        return super().communicate(input, timeout)

    def wait(self, timeout=PATIENCE_S):
        return super().wait(timeout)
