"""What a long run leaves: metrics of many nodes, as act/node/metrics.h describes them."""
import json
import math


def sample(node, time, i, gpus, known=True):
    wave = (1 + math.sin(i / 300 + node)) / 2
    return {
        "time": round(time, 3), "node": f"n{node}",
        "cpu": {"cores": 96, "busy": round(0.2 + 0.5 * wave, 3) if known else None, "run": round(60 * wave, 3)},
        "memory": {"total": 1 << 40, "available": (1 << 39) + i * 1000, "run": (1 << 38) + i},
        "disk": {"code": {"total": 1 << 41, "free": (1 << 40) - i * 4096}, "run": {"total": 1 << 50, "free": 1 << 49},
                 "read_per_s": (i * 7919) % 100000000 if known else None,
                 "written_per_s": (i * 104729) % 10000000 if known else None},
        "network": {"received_per_s": (i * 15485863) % 900000000, "sent_per_s": (i * 32452843) % 900000000},
        "gpus": [{"index": g, "busy": round(min(1, 0.5 + 0.5 * wave + (i * (g + 3)) % 17 / 100), 3),
                  "memory_used": 30000000000 + (i * (g + 1)) % 5000000, "memory_total": 42949672960,
                  "celsius": 50 + i % 20, "watts": 250.5 + i % 100, "ecc_errors": 0} for g in range(gpus)]}


def metrics(node, samples, gpus=8, begin=1_790_000_000.0, every=10):
    """The text of metrics/n<node>.jsonl."""
    return "".join(json.dumps(sample(node, begin + i * every, i, gpus, i > 0), separators=(",", ":")) + "\n"
                   for i in range(samples))


def training(steps, first=0):
    """What a program prints."""
    return "".join(f"step {s}/{first + steps} loss {3 * math.exp(-s / 2000) + 0.1 * math.sin(s):.4f} "
                   f"lr {1e-3 / (1 + s / 1000):.3e}\n" for s in range(first, first + steps))
