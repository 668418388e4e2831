"""Random trees, random edits on both sides, random faults, random kills; then the same command again, without them.

A round is a project of its own with two accounts of the test double and a store that is a folder. After every command,
however it ended: each object that was at the destination is there, as it was or as the source has it, and so it was at
every moment in between. After the same command again, in peace: the destination is what the command promises, byte for
byte, with modes and times; nothing unfinished is left; and the command once more moves nothing.

Everything random follows from the round's seed, but for the moment of a kill, which also depends on the machine."""
import collections
import datetime
import json
import os
import pathlib
import random
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
import xml.etree.ElementTree as ET

from act_tool import SANITIZER, Act

PART = 1 << 20  # the size of parts: a file of a few MiB is in blocks
PATIENCE = {"ACT_MAX_RETRIES": "3", "ACT_STALL_TIMEOUT": "5"}
ENDINGS = [signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM]
OLD_ENOUGH_S = 3.1
STALL_MS = 200
LEFTOVER = ".act-part-"

# kind: "file", "link" or "folder" (an empty one). mode and mtime_ns are None where nobody knows them.
Entry = collections.namedtuple("Entry", "kind data mode mtime_ns")


class Violation(AssertionError):
    """What must be true was not."""


def check(condition, *what):
    if not condition:
        raise Violation(" ".join(map(str, what)))


def agree(a, b, key, before=None):
    """Whether two sides have the same object. A download lets nobody in who could not read what was there before."""
    check(b is not None, key, "is missing")
    check(a.kind == b.kind, key, "is", b.kind, "and not", a.kind)
    check(a.data == b.data, key, "has other bytes:", len(b.data), "and not", len(a.data))
    if a.kind == "file":
        shut = before and before.kind == "file" and before.mode & 0o77 == 0
        modes = {None, a.mode, a.mode & 0o700 if shut else None}
        check(a.mode is None or b.mode in modes, key, "has mode", b.mode, "and not", a.mode)
    if a.kind != "folder":
        check(None in (a.mtime_ns, b.mtime_ns) or a.mtime_ns == b.mtime_ns, key, "has time", b.mtime_ns, "and not",
              a.mtime_ns)


# ---- the two kinds of sides


class Disk:
    """A folder on this machine."""

    def __init__(self, root):
        self.root = pathlib.Path(root)

    def path(self, key):
        return self.root / key.rstrip("/")

    def get(self, key):
        """None when there is no such object."""
        path = self.path(key)
        try:
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as f:
                state = os.fstat(f.fileno())
                if stat.S_ISDIR(state.st_mode):
                    return Entry("folder", b"", None, None)
                return Entry("file", f.read(), state.st_mode & 0o777, state.st_mtime_ns)
        except IsADirectoryError:
            return Entry("folder", b"", None, None)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:  # ELOOP: it is a link
            return Entry("link", os.fsencode(os.readlink(path)), None, path.lstat().st_mtime_ns)

    watch = get

    def keys(self):
        found = []
        for folder, folders, files in os.walk(self.root):
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            here = pathlib.Path(folder).relative_to(self.root)
            found += [str(here / name) for name in files + links if not name.startswith(LEFTOVER)]
            if not files and not folders and folder != str(self.root):
                found.append(f"{here}/")
        return found

    def leftovers(self):
        return [str(p) for p in self.root.rglob(LEFTOVER + "*")]

    def put(self, key, entry):
        self.delete(key)
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind == "folder":
            path.mkdir(exist_ok=True)
            return
        if entry.kind == "link":
            path.symlink_to(os.fsdecode(entry.data))
        else:
            path.write_bytes(entry.data)
            path.chmod(entry.mode)
        os.utime(path, ns=(entry.mtime_ns, entry.mtime_ns), follow_symlinks=False)

    def delete(self, key):
        path = self.path(key)
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        else:
            path.unlink(missing_ok=True)


class Blobs:
    """What lies below a prefix of a container."""

    def __init__(self, service, container, prefix):
        self.service, self.container, self.prefix = service, container, prefix

    def path(self, key):
        """A folder's marker has the name without a slash."""
        return f"{self.container}/{self.prefix}{key.rstrip('/')}"

    def watch(self, key):
        """get(), by a request that no fault is meant for."""
        return self.get(key, {"watch": "1"})

    def get(self, key, query=()):
        status, headers, data = self.service.request("GET", self.path(key), query, expect=(200, 404))
        if status == 404:
            return None
        if headers.get("x-ms-meta-hdi_isfolder") == "true":
            return Entry("folder", b"", None, None)
        mode = headers.get("x-ms-meta-permissions")
        return Entry("link" if headers.get("x-ms-meta-is_symlink") == "true" else "file", data,
                     mode and int(mode) & 0o777, from_iso(headers.get("x-ms-meta-mtime")))

    def list(self, include):
        """(name, metadata) of all blobs; the double gives them on one page."""
        page = self.service.request("GET", self.container, {"restype": "container", "comp": "list", "include": include,
                                                            "prefix": self.prefix})[2]
        for blob in ET.fromstring(page).iter("Blob"):
            found = blob.find("Metadata")
            yield blob.findtext("Name").removeprefix(self.prefix), {e.tag: e.text for e in found or ()}

    def keys(self):
        """Folder markers only where nothing is in the folder, as on a disk."""
        found = dict(self.list("metadata"))
        folders = {k: k.rstrip("/") + "/" for k, v in found.items() if v.get("hdi_isfolder") == "true"}
        return [folders.get(k, k) for k in found
                if k not in folders or not any(other.startswith(folders[k]) and other != k for other in found)]

    def leftovers(self):
        """Blobs that are nothing but blocks that wait, and blocks that wait for blobs that exist."""
        found = [key for key, _ in self.list("metadata,uncommittedblobs")]
        waiting = []
        for key in found:
            query = {"comp": "blocklist", "blocklisttype": "uncommitted"}
            _, _, data = self.service.request("GET", self.path(key), query, expect=(200, 404))
            if b"<Block>" in data:
                waiting.append(key)
        return waiting

    def put(self, key, entry):
        meta = {"x-ms-meta-mtime": to_iso(entry.mtime_ns)} if entry.kind != "folder" else {}
        if entry.kind == "link":
            meta["x-ms-meta-is_symlink"] = "true"
        if entry.kind == "folder":
            meta["x-ms-meta-hdi_isfolder"] = "true"
        if entry.kind == "file":
            meta["x-ms-meta-permissions"] = str(stat.S_IFREG | entry.mode)
        self.service.put(self.path(key), entry.data, meta)

    def delete(self, key):
        self.service.request("DELETE", self.path(key), expect=(202, 404))


def to_iso(ns):
    at = datetime.datetime.fromtimestamp(ns // 10**9, datetime.timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{ns % 10**9:09}Z"


def from_iso(text):
    if text is None:
        return None
    seconds, _, fraction = text.rstrip("Z").partition(".")
    at = datetime.datetime.fromisoformat(seconds + "+00:00")
    return int(at.timestamp()) * 10**9 + int(fraction.ljust(9, "0") or 0)


def snapshot(side):
    return {key: entry for key in side.keys() if (entry := side.get(key))}


# ---- what is random


FOLDERS = ["", "d0/", "d1/", "d0/d2/", "d é 1/", "d%41#/"]
NAMES = ["f0", "f1.bin", "f-2", "f 3.txt", "f+4&=?.x", "fé.dat", "f.tmp"]


def random_entry(rng):
    kind = rng.choices(["file", "link", "folder"], [16, 2, 1])[0]
    size = rng.choice([0, 1, 1000, 70_000, PART - 1, PART, 2 * PART + 17, 5 * PART + 1]) if rng.random() < 0.3 \
        else rng.randrange(20_000)
    data = {"file": lambda: rng.randbytes(size), "folder": lambda: b"",
            "link": lambda: rng.choice(["f0", "f1.bin", "nowhere"]).encode()}[kind]()
    return Entry(kind, data, rng.choice([0o644, 0o600, 0o755]), rng.randrange(10**18, 17 * 10**17))


def random_key(rng, kind):
    folder = rng.choice(FOLDERS)
    return folder + {"folder": "e%d/", "link": "l%d"}[kind] % rng.randrange(3) if kind != "file" \
        else folder + rng.choice(NAMES)


def edit(side, rng, n):
    for _ in range(n):
        entry = random_entry(rng)
        key = random_key(rng, entry.kind)
        if rng.random() < 0.25:
            side.delete(key)
        else:
            side.put(key, entry)


BLOB_PATH = "^[^?]*$"  # no listing, no blocks: the object itself
ANY_PATH = BLOB_PATH + "|[?&]comp="  # but not those of the watcher


def random_fault(rng):
    """Arguments for BlobDouble.fault(). None that no client could notice."""
    fault = rng.choice([
        ("answer", {"status": 503, "retry_after": 0}), ("answer", {"status": 500, "code": "InternalError"}),
        ("answer", {"status": 403, "code": "AuthenticationFailed"}),
        ("reset", {"where": rng.choice(["answer", "request", "upload", "headers", "body"])}),
        ("truncate", {"method": "GET"}), ("overlong", {"method": "GET"}), ("range", {"method": "GET"}),
        ("stall", {"ms": STALL_MS}), ("corrupt", {"method": "GET", "path": BLOB_PATH}),
        ("checksum", {}), ("page", {"page": rng.choice(["torn", "repeat", "empty"])}), ("throttle", {"rate": 30}),
    ])
    kind, values = fault
    paths = [ANY_PATH, ANY_PATH, ANY_PATH, BLOB_PATH, "comp=block&", "comp=blocklist", "comp=list"]
    return kind, {"times": rng.choice([1, 1, 2, 10]), "skip": rng.randrange(25), "path": rng.choice(paths), **values}


# ---- a round


class Watcher:
    """Reads objects of the destination all the time: they are old or new, never torn, never gone."""

    def __init__(self, side, old, new, may_go):
        self.side, self.old, self.new, self.may_go = side, old, new, may_go
        self.violations, self.end = [], threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.thread.join()

    def watch(self):
        keys = [key for key, entry in self.old.items() if entry.kind == "file"]
        while keys and not self.end.is_set():
            for key in keys:
                try:
                    old_or_new(key, self.side.watch(key), self.old, self.new, self.may_go)
                except AssertionError as found:
                    self.violations.append(found)
                    return
                self.end.wait(0.002)  # leave something of the machine to the program


def old_or_new(key, now, old, new, may_go):
    if now is None:
        check(key not in new and may_go, key, "is gone")
        return
    wanted = [entries[key] for entries in (old, new) if key in entries]
    check(any(now.kind == e.kind and now.data == e.data for e in wanted), key, "is torn:", len(now.data), "bytes, not",
          [len(e.data) for e in wanted])


class Round:
    """One project, four sides: its folder, a store that is a folder, and a container in each of two accounts."""

    def __init__(self, programs, double, seed, keep_in):
        self.rng = random.Random(seed)
        self.double, self.seed, self.keep_in = double, seed, keep_in
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="act-soak-"))
        self.act = Act(programs, self.scratch)
        self.log, self.seen = [], collections.Counter()
        self.act.cluster("vault", account="store")
        self.sides = {"disk": Disk(self.act.project / "data"), "vault": Disk(self.act.store / "files/data")}
        for name in ("disk", "vault"):
            self.sides[name].root.mkdir(parents=True)
        for name, account in (("aml", double.account), ("other", "actsecond")):
            service, container = double.other(account), f"soak-{seed & 0xffffffffff:x}"
            service.create(container)
            self.act.account(name, account_name=account, account_key=service.key, container_name=container,
                             endpoint=service.endpoint)
            self.act.cluster(name, account=name)
            self.sides[name] = Blobs(service, container, "files/data/")

    def close(self):
        self.double.no_faults()
        for name in ("aml", "other"):
            side = self.sides[name]
            side.service.request("DELETE", side.container, {"restype": "container"}, expect=None)
        left = self.act.clean_up()
        shutil.rmtree(self.scratch)
        check(not left, "processes were left running:", left)

    def keep(self, violation):
        """Puts aside what shows the violation, and says where."""
        folder = self.keep_in / f"seed-{self.seed}"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.scratch, folder, symlinks=True)
        requests = "".join(f"{' '.join(map(str, r))}\n" for r in self.double.log())
        (folder / "violation.txt").write_text(f"{violation}\n\n" + "\n".join(self.log) + f"\n\n{requests}")
        return folder

    # ---- commands

    def random_command(self):
        """The words, and the names of source and destination."""
        words, source, destination = self.rng.choice([
            (["u"], "disk", "aml"), (["u"], "disk", "aml"), (["d"], "aml", "disk"), (["d"], "aml", "disk"),
            (["-c", "other", "-f", "aml", "u"], "aml", "other"), (["-c", "vault", "-f", "aml", "u"], "aml", "vault"),
            (["-c", "aml", "-f", "vault", "u"], "vault", "aml"), (["-c", "vault", "u"], "disk", "vault")])
        words = [*words, "--overwrite", "--json", "--part-size", str(PART)]
        if self.rng.random() < 0.3:
            words += ["--transfers", str(self.rng.choice([1, 2, 64]))]
        if self.rng.random() < 0.4:
            words += ["--delete", "-y"]
        return [*words, "data"], source, destination

    def disturbed(self, words):
        """Runs the command among faults, and perhaps ends it at some moment."""
        for _ in range(self.rng.randrange(4)):
            kind, values = random_fault(self.rng)
            self.log.append(f"fault {kind} {values}")
            self.double.fault(kind, **values)
        process = self.act.start(*words, env=PATIENCE)
        killed = self.rng.random() < 0.6
        if killed:
            time.sleep(self.rng.random() ** 2 * 0.4)
            process.send_signal(self.rng.choice(ENDINGS))
        try:
            out, err = process.communicate()
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Violation("it hangs") from None
        self.log.append(f"status {process.returncode}\n{out.decode()}{err.decode()}")
        self.seen[f"status {process.returncode}"] += 1
        check(not SANITIZER.search(err), "a sanitizer speaks:", err.decode())
        check(process.returncode in (0, 1, 4, 5, 8, 130, 143, *(-s for s in ENDINGS)), "status", process.returncode)
        self.double.no_faults()
        if killed:
            time.sleep(STALL_MS / 1000)  # what the service has of a request, it may still do

    def peaceful(self, words):
        result = self.act.run(*words, env=PATIENCE, status=None)
        self.log.append(f"in peace: status {result.status}\n{result.out}{result.err}")
        check(result.status == 0, "the same command again fails:", result.err)
        return next(line for line in map(json.loads, result.out.splitlines()) if "summary" in line)

    # ---- what must be true

    def step(self):
        words, source, destination = self.random_command()
        deletes = "--delete" in words
        for name in (source, destination):
            edit(self.sides[name], self.rng, self.rng.randrange(12))
        if not self.sides[source].keys():
            self.sides[source].put("f0", Entry("file", b"never empty", 0o644, 10**18))
        if self.rng.random() < 0.2:  # what was just written may change again unnoticed, and is not resumed
            time.sleep(OLD_ENOUGH_S)
        new, old = snapshot(self.sides[source]), snapshot(self.sides[destination])
        self.log.append(f"a {' '.join(words)}: {len(new)} at the source, {len(old)} at the destination")
        with Watcher(self.sides[destination], old, new, deletes) as watcher:
            self.disturbed(words)
        check(not watcher.violations, *watcher.violations)
        for key, entry in old.items():
            if entry.kind != "folder":
                old_or_new(key, self.sides[destination].get(key), old, new, deletes)
        check(snapshot(self.sides[source]) == new, "the source has changed")
        summary = self.peaceful(words)
        self.seen["objects by the second run"] += summary["objects"]
        self.seen["bytes resumed"] += summary["resumed_bytes"]
        self.seen["deleted by the second run"] += summary["deleted"]
        self.recovered(new, old, destination, deletes)
        self.double.forget()
        summary = self.peaceful(words)
        check(summary["objects"] == 0 and summary["deleted"] == 0, "moved again:", summary)

    def recovered(self, new, old, destination, deletes):
        side = self.sides[destination]
        now = snapshot(side)
        for key, entry in new.items():
            filled = entry.kind == "folder" and any(k.startswith(key) for k in now)
            if not filled:
                agree(entry, now.get(key), key, destination == "disk" and old.get(key))
        for key in old.keys() - new.keys():
            if deletes:
                check(key not in now or any(k.startswith(key) for k in new), key, "should be deleted")
            elif old[key].kind != "folder":
                agree(old[key], now.get(key), key)
        extra = now.keys() - new.keys() - old.keys()
        check(not extra, "from nowhere:", extra)
        check(not side.leftovers(), "left over:", side.leftovers())

    def run(self, steps=2):
        """None, or the violation that was found."""
        try:
            try:
                edit(self.sides["disk"], self.rng, self.rng.randrange(30))
                edit(self.sides["aml"], self.rng, self.rng.randrange(10))
                for _ in range(steps):
                    self.step()
            except AssertionError as violation:
                self.log.append(f"kept in {self.keep(violation)}")
                return violation
        finally:
            self.close()
        return None
