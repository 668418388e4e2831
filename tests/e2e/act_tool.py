"""Runs the real program in a scratch project, and looks at what it left behind."""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import sqlite3
import struct
import subprocess
import termios

import waiting

RUN_ID = re.compile(r"[A-Za-z0-9_-]+_\d+_[0-9a-f]{8}")
SANITIZER = re.compile(rb"AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:")
FINAL = ("Completed", "Failed", "Canceled")
ASAN_OPTIONS = os.environ.get("ASAN_OPTIONS", "detect_leaks=1")  # of scripts/test


class Result:
    """What one command did. out and err are text in which bytes that are not UTF-8 survive."""

    def __init__(self, words, done):
        self.words, self.status = words, done.returncode
        self.raw_out, self.raw_err = done.stdout, done.stderr
        self.out = done.stdout.decode("utf-8", "surrogateescape")
        self.err = done.stderr.decode("utf-8", "surrogateescape")

    @property
    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"a {' '.join(map(repr, self.words))}\nstatus {self.status}\n{self.out}\n{self.err}"


class Act:
    """The program `a` in one project, with an ACT_HOME of its own."""

    def __init__(self, programs, scratch):
        self.programs = pathlib.Path(programs)
        self.scratch = scratch
        self.project = scratch / "project"
        self.home = scratch / "act-home"
        self.store = scratch / "store"
        self.prefix = ()  # words before `a`
        self.env = {
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "HOME": str(scratch / "home"),
            "ACT_HOME": str(self.home),
            "LANG": "C.UTF-8",
            "ACT_TRUSTED_PROJECTS": "*",  # test_trust.py does without
            "AZURE_POD_IDENTITY_AUTHORITY_HOST": "http://127.0.0.1:9",  # not this machine's own: nobody listens there
            "ASAN_OPTIONS": ASAN_OPTIONS,
        }
        for folder in (self.project / "aux_data/aml", self.project / "aux_data/configs", scratch / "home"):
            folder.mkdir(parents=True)
        self.account("store", folder=str(self.store))
        self.cluster("aml")

    def snapshot(self, *apart):
        """What is in the scratch folder, apart from what lies below these: path, kind, mode, time and content."""
        found = {}
        for path in sorted(self.scratch.rglob("*")):
            if not any(path.is_relative_to(a) for a in apart):
                s = path.lstat()
                found[str(path)] = (s.st_mode, s.st_mtime_ns, s.st_size, path.read_bytes() if path.is_file() else b"")
        return found

    def respect_modes(self):
        """From now on what a file's mode forbids is forbidden, to root as well."""
        if os.geteuid() == 0:
            self.prefix = ("setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search")

    # ---- configuration

    def account(self, name, **keys):
        path = self.project / f"aux_data/configs/{name}.yaml"
        path.write_text("".join(f"{k}: {json.dumps(v)}\n" for k, v in keys.items()))
        path.chmod(0o600)
        return path

    def cluster(self, name, account="store", folders=("data", "output"), below="files", extra=None, keys=None):
        """A cluster file of platform local; extra is merged into its top level, keys are of each folder."""
        account = f"aux_data/configs/{account}.yaml"
        params = {"code_path": {"azure_blob_config_file": account, "path": f"{below}/code/project.zip"}}
        for folder in folders:
            params[f"{folder}_folder"] = {"azure_blob_config_file": account, "path": f"{below}/{folder}",
                                          **(keys or {})}
        config = {"platform": "local", "experiment_name": "exp", "config_param": params, **(extra or {})}
        path = self.project / f"aux_data/aml/{name}.yaml"
        path.write_text(json.dumps(config, indent=2))  # JSON is YAML
        return path

    def write(self, path, content=b"", mtime=None):
        """A file of the project."""
        path = self.project / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        if mtime is not None:
            os.utime(path, (mtime, mtime))
        return path

    def without(self, *programs):
        """From now on these programs are not in PATH."""
        folder = self.scratch / "bin"
        folder.mkdir()
        for path in [*pathlib.Path("/usr/bin").iterdir(), *self.programs.iterdir()]:
            if path.name not in programs and not (folder / path.name).is_symlink():
                (folder / path.name).symlink_to(path)
        self.env["PATH"] = str(folder)

    # ---- running

    def start(self, *words, env=None, cwd=None, stderr=subprocess.PIPE, **popen):
        return waiting.Process(
            [*self.prefix, self.programs / "a", *map(os.fsencode, map(as_word, words))],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
            env={**self.env, **(env or {})}, cwd=cwd or self.project, **popen)

    def run(self, *words, status=0, env=None, cwd=None, timeout=waiting.PATIENCE_S, **popen):
        """Runs `a words...` and expects an exit status (a number, a tuple of them, or None for any)."""
        process = self.start(*words, env=env, cwd=cwd, **popen)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"a {words} did not end within {timeout} s\n{out}\n{err}") from None
        result = Result(words, subprocess.CompletedProcess(words, process.returncode, out, err))
        assert not SANITIZER.search(err), result
        wanted = status if isinstance(status, tuple) else (status,)
        assert status is None or result.status in wanted, result
        return result

    def fail(self, *words, status=1, match="", **options):
        """Expects a failure with one clear message: a last line 'act: ...', nothing on stdout."""
        result = self.run(*words, status=status, **options)
        assert result.status != 0, result
        lines = result.err.splitlines()
        messages = [line for line in lines if line.startswith("act: ") and not line.startswith("act: warning: ")]
        assert len(messages) == 1 and messages[0] == lines[-1], result
        assert result.out == "", result
        assert re.search(match, messages[0]), (match, result)
        assert not re.search(r"[^.]\.$", messages[0]), result
        return messages[0]

    def on_terminal(self, *words, typed=b"", cwd=None, columns=0, **env):
        """What a command shows on a terminal (columns: so wide), as bytes, while `typed` is what its user types."""
        pid, fd = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
            os.chdir(cwd or self.project)
            os.execve(self.programs / "a", ["a", *words], {**self.env, "TERM": "xterm-256color", **env})
        os.write(fd, typed)
        text = b""
        while True:
            try:
                data = os.read(fd, 65536)
            except OSError:
                break
            if not data:
                break
            text += data
        os.waitpid(pid, 0)
        os.close(fd)
        return text

    def submit(self, *words, before=(), **options):
        """Submits a command and returns the run id, which must be all there is on stdout."""
        result = self.run(*before, "submit", *words, **options)
        assert RUN_ID.fullmatch(result.out.rstrip("\n")) and result.out.count("\n") == 1, result
        return result.out.strip()

    def finish(self, *words, before=(), status=0):
        """Submits a command, waits for its end, and returns its run id."""
        run = self.submit(*words, before=before)
        self.run("wait", run, status=status)
        return run

    # ---- looking

    def info(self, run):
        runs = [r for r in self.run("q", "--json").json["runs"] if r["id"] == run]
        assert len(runs) == 1, (run, runs)
        return runs[0]

    def state(self, run):
        return self.info(run)["state"]

    def until(self, condition, what, timeout=waiting.PATIENCE_S):
        """Waits until condition() gives something true, and returns it."""
        return waiting.until(condition, what, timeout)

    def until_state(self, run, *states):
        return self.until(lambda: self.state(run) in states and self.state(run), f"{run} is {states}")

    def age_runs(self, seconds=86400):
        """As if that long ago all runs had been submitted: who killed a submission need not wait to be sure of it."""
        with contextlib.closing(sqlite3.connect(self.home / "ledger.db")) as db, db:
            db.execute("UPDATE runs SET created_unix_s = created_unix_s - ?", (seconds,))

    def log(self, run, rank=0):
        """The log of a rank, fetched by `a q`; bytes."""
        self.run("q", run)
        logs = self.project / f"assets/{run}/user_logs"
        alone = logs / "std_log.txt"  # as Azure Machine Learning calls the log of a single process
        return (alone if alone.exists() else logs / f"std_log_process_{rank}.txt").read_bytes()

    def lines(self, run, rank=0):
        return self.log(run, rank).decode("utf-8", "surrogateescape").splitlines()

    def run_dir(self, run):
        """The run's folder on this machine."""
        found = [p for p in self.home.rglob(run) if p.is_dir()]
        assert len(found) == 1, found
        return found[0]

    def processes(self):
        """Process ids of everything that runs with this ACT_HOME, and their command lines."""
        marker = b"ACT_HOME=" + os.fsencode(self.home)
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if marker in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().split(b"\0")[:-1]
            except OSError:
                continue
        return {pid: words for pid, words in found.items() if words}

    def await_ends(self):
        """Waits some time for runs that a test did not wait for. Returns whether all have ended."""
        with contextlib.suppress(AssertionError):
            return waiting.until(lambda: not self.processes(), "all processes have ended", timeout=30)

    def clean_up(self):
        """Ends whatever a test left running. Returns what that was."""
        left = self.processes()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if left:
            waiting.until(lambda: not left.keys() & self.processes().keys(), "all processes are gone")
        return left


def as_word(word):
    return word if isinstance(word, (bytes, str)) else str(word)
