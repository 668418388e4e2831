"""Stands for the JSON of `a ui`: many runs, curves and nodes that no test could wait for. The pages are real."""
import calendar
import json
import math
import re
import time
import urllib.parse

from threaded_server import Handler, ThreadedServer

NOW = 1_795_000_000
STATES = ("Completed", "Running", "Failed", "Queued", "Canceled")
EVIL = "</script><img src=x onerror=alert(1)>\"'&amp; <b>"


def iso(unix):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix)) if unix else None


def unix(text):
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def row(i, **more):
    """A run as api/runs has it."""
    state = STATES[i % 5]
    loss = round(0.2 + (i * 7919 % 97) / 100, 4)
    created = NOW - 600 * i - 30
    known = state != "Queued"
    base = {
        "id": f"proj_{1_795_000_000 - i}_{i:08x}", "state": state, "name": f"train-{i}" if i % 3 else None, "tags": {},
        "cluster": ("lab", "aml")[i % 2], "platform": "slurm", "project": "proj", "command": ["python3", "train.py"],
        "command_line": "python3 train.py --lr 0.1", "created": iso(created),
        "started": iso(created + 20) if known else None,
        "ended": iso(created + 500) if state not in ("Queued", "Running") else None,
        "exit_status": {"Completed": 0, "Failed": 1}.get(state), "failed_rank": 3 if state == "Failed" else None,
        "reason": "rank 3 exited with status 1" if state == "Failed" else "", "attempt": 1, "attempts": None,
        "after": [f"proj_{1_795_000_001 - i}_{i - 1:08x}"] if state == "Queued" else [], "nodes": 2,
        "processes_per_node": 4, "num_gpu": 8, "gpus": 8, "gpu_busy": 0.93 if state == "Running" else None,
        "why": "out of memory on the GPU" if state == "Failed" else None, "sweep": None, "resubmit_of": None,
        "replaced_by": None, "retry": "",
        "last": {"loss": loss, "acc": round(1 - loss / 2, 4), "lr": 1e-3} if known else {},
        "spark": {"loss": [3 * math.exp(-k / 6) + loss for k in range(24)],
                  "acc": [1 - math.exp(-k / 6) for k in range(24)]} if known else {}}
    return {**base, **more}


def sweep(n=64):
    """The runs of a grid."""
    rows = []
    for i in range(n):
        lr, width = (0.1, 0.01, 0.001, 0.0001)[i % 4], (64, 128, 256, 512)[i // 4 % 4]
        kind = ("adam", "sgd")[i // 16 % 2]
        loss = abs(math.log10(lr) + 2) * 0.3 + 100 / width + (0.1 if kind == "sgd" else 0) + (i // 32) * 0.01
        rows.append(row(5 * i, name=f"grid-{i}", sweep="a73d6d0a", last={"loss": round(loss, 4), "acc": 1 - loss / 4},
                        tags={"sweep": "a73d6d0a", "lr": str(lr), "width": str(width), "optimizer": kind,
                              "seed": str(i // 32)}))
    return rows


class Data:
    """What is answered; tests change it."""

    def __init__(self):
        self.rows = [row(i) for i in range(20)]
        self.keys = ["loss", "acc", "lr"]
        self.points, self.x_name, self.not_finite = 300, "step", 0
        self.said, self.next_s = [], 10
        self.log = {}
        self.asked = []
        self.broken = False
        self.has_times = True

    def runs(self, query):
        ids, words = query.get("id", []), query.get("q", [""])[0].split()
        rows = [r for r in self.rows if not ids or r["id"] in ids]
        for word in words + [f"tag:{t}" for t in query.get("tag", [])]:
            if word.startswith("state:"):
                rows = [r for r in rows if r["state"].lower() == word[6:]]
            elif word.startswith("tag:"):
                rows = [r for r in rows if word[4:] in [f"{k}={v}" for k, v in r["tags"].items()]]
            else:
                rows = [r for r in rows if word in json.dumps(r)]
        sort, order = query.get("sort", ["age"])[0], query.get("order", [""])[0]
        if sort.startswith("key:"):
            sign = -1 if order == "desc" else 1
            rows.sort(key=lambda r: sign * r["last"].get(sort[4:], sign * math.inf))
        elif sort != "age":
            rows.sort(key=lambda r: str(r[sort]), reverse=order == "desc")
        offset, most = int(query.get("offset", ["0"])[0]), int(query.get("max", ["200"])[0])
        lines, groups = self.lines(rows, query.get("group", [""])[0], query.get("open", []))
        better = {"acc": "high", "lr": None}
        return {"now": NOW, "total": len(rows), "said": self.said, "next_s": self.next_s, "keys": self.keys,
                "lines": len(lines), "runs": lines[offset:offset + most], "groups": groups,
                "better": {k: better.get(k, "low") for k in self.keys}}

    def lines(self, rows, by, opened):
        """The lines of a list in groups, and the groups."""
        def name_of(r):
            return r["created"][:10] if by == "day" else r["tags"].get(by.removeprefix("tag:"))
        groups, lines = {}, []
        for r in rows:
            groups.setdefault(name_of(r), []).append(r)
        named = {k: v for k, v in groups.items() if by and k is not None and len(v) > 1}
        for r in rows:
            name = name_of(r) if name_of(r) in named else None
            if name is None or name in opened or named[name][0] is r:
                lines.append({**r, "group": name})
        return lines, [self.group(k, v, k in opened) for k, v in named.items()]

    def group(self, name, rows, is_open):
        states = [r["state"] for r in rows]
        stems = {(r["name"] or "").rpartition(".")[0] for r in rows}
        best = {}
        for key in self.keys:
            those = [r for r in rows if key in r["last"]]
            if those and key != "lr" and not any(key in r["tags"] for r in rows):
                r = (max if key == "acc" else min)(those, key=lambda r, k=key: r["last"][k])
                best[key] = {"id": r["id"], "name": r["name"], "value": r["last"][key]}
        return {"name": name, "title": stems.pop() or None if len(stems) == 1 else None, "runs": len(rows),
                "states": {s: states.count(s) for s in set(states)}, "gpus": 8 * states.count("Running"),
                "cluster": None, "created_s": max(unix(r["created"]) for r in rows), "open": is_open, "best": best}

    def find(self, wanted):
        return next(r for r in self.rows if r["id"] == wanted)

    def why(self):
        return {"class": "out of memory on the GPU", "explanation": "A GPU has too little memory for the batch.",
                "advice": "make the batch smaller", "lines": ["RuntimeError: CUDA out of memory.", EVIL], "notes": [],
                "failure": {"attempt": 1, "rank": 3, "node": "n1", "reason": "exited with status 1"}}

    def run(self, query):
        run = self.find(query["id"][0])
        failed = run["state"] == "Failed"
        return {
            "now": NOW, "said": self.said, "next_s": self.next_s if run["state"] in ("Running", "Queued") else 0,
            "run": run, "status": {}, "reason": run["reason"],
            "why": self.why() if failed else None,
            "attempts": [{"attempt": 1, "state": run["state"], "started_s": NOW - 4000}],
            "events": [{"unix_s": NOW - 4000, "what": "created", "attempt": None, "text": None},
                       {"unix_s": NOW - 3000, "what": "started", "attempt": 2, "text": None}],
            "ranks": [{"rank": k, "node": f"n{k // 4}", "state": run["state"], "exit_status": None, "silent_s": None,
                       "log": f"user_logs/{k}.txt",
                       "failed_first": failed and k == 3, "last_line": "step 9 loss 1"} for k in range(8)],
            "files": [{"name": "user_logs/std_log_process_0.txt", "size": 12345}], "outputs": [
                {"name": "output/model.pt", "size": 5 << 20}], "outputs_total": 1, "outputs_bytes": 5 << 20,
            "environment": {"python": "3.11.2", "packages.torch": "2.1"},
            "spec": {f"env.VALUE_{k}": str(k) for k in range(20)}, "command": f"a resubmit {run['id']}",
            "progress": {"text": "400/1000", "done": 0.4} if run["state"] == "Running" else None, "gpu_hours": 1.25,
            "keys": [{"name": k, "by": "step", "points": self.points, "not_finite": self.not_finite,
                      "last": 1, "min": 0, "max": 3}
                     for k in self.keys]}

    def series(self, query):
        if "use" in query:
            return {"now": NOW, "said": [], "next_s": 10, "series": [], "use": self.use(query)}
        series = []
        for n, wanted in enumerate(query["id"]):
            run = self.find(wanted)
            for key in query["key"]:
                base = run["last"].get(key)
                if base is None:
                    continue
                x = list(range(0, (self.points + self.not_finite) * 10, 10))
                if "from" in query:
                    x = [k for k in range(self.points * 10) if self.inside(k, query)]
                y = [base + 2 * math.exp(-k / 900) + 0.05 * math.sin(k * (n + 1)) for k in x]
                if key == "loss" and len(y) > 100 and "from" not in query:
                    y[70] = 4.7
                    y[100] = None
                y[len(y) - self.not_finite:] = [None] * self.not_finite
                series.append({"id": wanted, "key": key, "x": x, "y": y,
                               "t": [NOW - 4000 + k for k in x] if self.has_times else None,
                               "e": [k / 100 for k in x] if self.has_times else None,
                               "points": 10 * self.points if self.points > 1 else 1,
                               "not_finite": self.not_finite, "x_name": self.x_name})
        return {"now": NOW, "said": [], "next_s": 10, "series": series}

    def inside(self, x, query):
        self.asked.append((query["from"][0], query["to"][0]))
        return float(query["from"][0]) <= x <= float(query["to"][0])

    def use(self, query):
        use, x, wanted = [], [NOW - 4000 + 10 * k for k in range(200) if not 90 < k < 120], query["id"][0]
        if "from" in query:
            x = [NOW - 4000 + k for k in range(2000) if self.inside(NOW - 4000 + k, query)]
        for node in ("n0", "n1"):
            def add(what, chart, label, f, gpu=None, node=node):
                unit = "bytes_per_s" if chart in ("Disk", "Network") else "share"
                use.append({"id": wanted, "node": node, "gpu": gpu, "what": what, "chart": chart, "label": label,
                            "unit": unit, "points": 2000, "x": x, "y": [f(k) for k in range(len(x))]})
            for gpu in range(4):
                add("gpu_busy", "GPUs, busy", f"GPU {gpu}", lambda k, g=gpu: 0.6 + 0.3 * math.sin(k / 9 + g), gpu)
                add("gpu_memory", "GPUs, memory", f"GPU {gpu}", lambda k, g=gpu: 0.2 + 0.1 * g, gpu)
            add("cpu_busy", "CPU, memory, disks", "CPU busy", lambda k: 0.3 + 0.1 * math.sin(k))
            add("memory", "CPU, memory, disks", "memory used", lambda k: 0.5)
            add("net_received", "Network", "received", lambda k: 0)
            add("net_sent", "Network", "sent", lambda k: 0)
            add("disk_read", "Disk", "read", lambda k: 1e8 * (1 + math.sin(k / 20)))
        return use

    def logs(self, query):
        name = query.get("rank", query.get("name"))[0]
        data = self.log.get(name, f"rank {name}\n" + "".join(f"step {k} loss {k}\n" for k in range(3000))).encode()
        start = int(query["from"][0])
        start = max(0, len(data) + start) if start < 0 else start
        end = min(len(data), start + int(query["bytes"][0]))
        return {"name": name, "from": start, "to": end, "size": len(data), "text": data[start:end].decode(),
                "ended": False}

    def clusters(self, query):
        none = {"nodes": None, "nodes_idle": None, "gpus": None, "gpus_idle": None, "queue": None, "running": 0,
                "queued": 0, "devices": [], "own_runs": [], "partitions": [], "node_states": None, "load": None}
        pool = {"nodes": {"total": 2, "idle": 1}, "gpus": {"total": 16, "idle": 4}, "jobs": {"running": 3, "queued": 1}}
        jobs = [{"job": "17", "user": "somebody", "name": "bert", "gpus": 16, "running_s": 3600}]
        return {"now": NOW, "said": [], "next_s": 10, **({"jobs": jobs} if "jobs" in query else {}), "clusters": [
            {**none, "name": "aml", "error": "it does not answer", "has_gpus": None},
            {**none, "name": "lab", "error": None, "has_gpus": True, "nodes": 4, "nodes_idle": 1, "gpus": 32,
             "gpus_idle": 8, "queue": 3, "running": 2, "queued": 1, "own_runs": self.rows[1:4],
             "partitions": [{"name": "long", **pool}, {"name": "short", **pool}],
             "node_states": {"idle": 1, "mixed": 3},
             "devices": [{"name": "0", "model": "NVIDIA H100", "memory": 80 << 30, "used": 40 << 30, "users": "me",
                          "given": True}]}]}

    def diff(self, query):
        first, *others = query["id"]
        same = {"configuration": {"retry": "3", "timeout": "1d"}, "code": {}}
        return {"now": NOW, "said": [], "next_s": 0, "same": same, "diffs": [
            {"from": first, "to": other, "differences": [
                {"part": "command", "name": "", "from": "train.py --lr 0.0", "to": f"train.py --lr 0.{k}",
                 "lines": None},
                {"part": "environment", "name": "OMP_NUM_THREADS", "from": "4", "to": None, "lines": None}]}
            for k, other in enumerate(others, 1)]}

    def answer(self, path, query):
        self.asked.append(path)
        return {"api/runs": self.runs, "api/run": self.run, "api/series": self.series, "api/log": self.logs,
                "api/clusters": self.clusters, "api/diff": self.diff}[path](query)


class PageDouble(ThreadedServer):
    """Serves the page of `a ui` as each of its pages. html and policy: a real page of runs, and its header."""

    def __init__(self, html, policy):
        self.html = re.sub('<script type="application/json".*?</script>', "", html)  # the real one's data
        self.policy, self.data = policy, Data()
        double = self

        class Answer(Handler):
            def do_GET(self):
                path, _, query = self.path.lstrip("/").partition("?")
                status, kind, body = double.answer(path, urllib.parse.parse_qs(query, keep_blank_values=True))
                self.send_response(status)
                self.send_header("Content-Type", f"{kind}; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Content-Security-Policy", double.policy)
                self.end_headers()
                self.wfile.write(body)

        self.serve(Answer)

    def answer(self, path, query):
        if not path.startswith("api/"):
            page = self.html.replace('data-page="runs"', f'data-page="{path or "runs"}"')
            return 200, "text/html", page.encode()
        if self.data.broken:
            return 500, "application/json", json.dumps({"error": "the ledger is locked"}).encode()
        return 200, "application/json", json.dumps(self.data.answer(path, query)).encode()
