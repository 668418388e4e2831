"""A terminal that a test looks at and types on: tmux, with a server of its own."""
import pathlib
import re
import shutil
import subprocess
import uuid

from act_tool import SANITIZER

MISSING = None if shutil.which("tmux") else "tmux is not installed: scripts/install-deps --test"


class Tmux:
    """Runs `a words...` in a pane, and then says "status N" there. shell: an interactive shell instead."""

    def __init__(self, act, *words, columns=80, rows=24, shell=False, env=None):
        self.act, self.socket = act, f"act-{uuid.uuid4().hex[:8]}"
        self.env = {**act.env, "TMUX_TMPDIR": str(act.scratch), "ACT_TEST_TERMINAL": self.socket,
                    **(env or {})}
        self.modes = act.scratch / self.socket
        # Ctrl-C is for the program, not for this shell
        command = (f"trap : INT; stty -g > {self.modes}.0; a {' '.join(words)}; echo status $?; "
                   f"stty -g > {self.modes}.1; exec cat")
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(act.project),
                  "bash --norc --noprofile -i" if shell else f"sh -c '{command}'")

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-u", "-L", self.socket, "-f", "/dev/null", *words], env=self.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False)
        assert done.returncode == 0, (words, done)
        return done.stdout.decode()

    def lines(self, *options):
        return self.tmux("capture-pane", "-p", *options).split("\n")

    def text(self, *options):
        return "\n".join(self.lines(*options))

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def show(self, what):
        """A value that tmux knows of the pane."""
        return self.tmux("display-message", "-p", f"#{{{what}}}").strip()

    def until(self, pattern, timeout=300):
        """Waits until the screen matches; returns the match."""
        try:
            self.act.until(lambda: re.search(pattern, self.text(), re.M), f"{pattern!r} is on the screen", timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.text()}") from None
        return re.search(pattern, self.text(), re.M)

    def until_not(self, pattern):
        self.act.until(lambda: not re.search(pattern, self.text(), re.M), f"{pattern!r} is not on the screen")

    def ends(self, status=0):
        """The program has ended, and the terminal is what it was before."""
        self.until(rf"status {status}\b")
        assert not SANITIZER.search(self.text("-S", "-").encode()), self.text("-S", "-")
        assert self.show("alternate_on") == "0" and self.show("cursor_flag") == "1"
        self.act.until(lambda: (self.act.scratch / f"{self.socket}.1").exists(), "the modes are known")
        self.act.until(lambda: self.mode(1) and self.mode(0) == self.mode(1), "the modes of the terminal are restored")

    def mode(self, n):
        return (self.act.scratch / f"{self.socket}.{n}").read_text()

    def processes(self):
        """Everything that was started on this terminal."""
        marker, found = f"ACT_TEST_TERMINAL={self.socket}".encode(), []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and marker in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(entry.name)
            except OSError:
                continue
        return found

    def close(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], env=self.env, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.act.until(lambda: not self.processes(), "the terminal is gone")
