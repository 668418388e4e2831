#!/usr/bin/env python3
"""Trains a small character model on the texts in data/ and writes it to output/model.npz.

Start it as one process, or as many with an MPI: every rank trains on its own share of the texts, the ranks
average their gradients in every step, and rank 0 prints the loss after each epoch.
"""
import argparse
import os
import pathlib
import traceback

import numpy as np

CONTEXT, WIDTH, HIDDEN, BATCH = 6, 12, 96, 384

RANK = int(os.environ.get("RANK", 0))
WORLD_SIZE = int(os.environ.get("WORLD_SIZE", 1))
if WORLD_SIZE > 1:
    from mpi4py import MPI


def average(arrays):
    """The mean over all ranks of each of some arrays, which travel as one."""
    if WORLD_SIZE == 1:
        return arrays
    mine = np.concatenate([a.ravel() for a in arrays.values()])
    total = np.empty_like(mine)
    MPI.COMM_WORLD.Allreduce(mine, total)
    parts = np.split(total / WORLD_SIZE, np.cumsum([a.size for a in arrays.values()])[:-1])
    return {name: part.reshape(arrays[name].shape) for name, part in zip(arrays, parts)}


def examples(folder):
    """Every run of CONTEXT characters of the texts, with the character that follows it."""
    files = sorted(p for p in pathlib.Path(folder).glob("*") if p.is_file())
    if not files:
        raise SystemExit(f"train.py: there is no text in {folder}/; copy some files there")
    text = np.frombuffer(b"\n".join(p.read_bytes() for p in files), np.uint8)
    text = np.where(text < 128, text, 127)
    windows = np.lib.stride_tricks.sliding_window_view(text, CONTEXT + 1)
    return windows[:, :-1], windows[:, -1]


def start_values(rng):
    return {
        "letters": rng.normal(0, 0.3, (128, WIDTH)),
        "hidden": rng.normal(0, (CONTEXT * WIDTH) ** -0.5, (CONTEXT * WIDTH, HIDDEN)),
        "hidden_bias": np.zeros(HIDDEN),
        "out": rng.normal(0, HIDDEN**-0.5, (HIDDEN, 128)),
        "out_bias": np.zeros(128),
    }


def loss_and_gradient(model, context, target):
    rows = np.arange(len(target))
    seen = model["letters"][context].reshape(len(target), -1)
    hidden = np.tanh(seen @ model["hidden"] + model["hidden_bias"])
    scores = hidden @ model["out"] + model["out_bias"]
    scores -= scores.max(axis=1, keepdims=True)
    p = np.exp(scores)
    p /= p.sum(axis=1, keepdims=True)
    loss = -np.log(p[rows, target]).mean()

    p[rows, target] -= 1
    p /= len(target)
    d_hidden = (p @ model["out"].T) * (1 - hidden**2)
    d_letters = np.zeros_like(model["letters"])
    np.add.at(d_letters, context, (d_hidden @ model["hidden"].T).reshape(*context.shape, WIDTH))
    return loss, {
        "letters": d_letters,
        "hidden": seen.T @ d_hidden,
        "hidden_bias": d_hidden.sum(axis=0),
        "out": hidden.T @ p,
        "out_bias": p.sum(axis=0),
    }


class Adam:
    def __init__(self, model, rate=3e-3):
        self.rate, self.steps = rate, 0
        self.mean = {k: np.zeros_like(v) for k, v in model.items()}
        self.square = {k: np.zeros_like(v) for k, v in model.items()}

    def step(self, model, gradient):
        self.steps += 1
        rate = self.rate * (1 - 0.999**self.steps) ** 0.5 / (1 - 0.9**self.steps)
        for k, g in gradient.items():
            self.mean[k] += 0.1 * (g - self.mean[k])
            self.square[k] += 0.001 * (g * g - self.square[k])
            model[k] -= rate * self.mean[k] / (np.sqrt(self.square[k]) + 1e-8)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="data")
    parser.add_argument("--output", default="output")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60, help="per epoch")
    args = parser.parse_args()

    context, target = examples(args.data)
    mine = np.arange(RANK, len(target), WORLD_SIZE)
    model = start_values(np.random.default_rng(0))  # the same on every rank
    adam = Adam(model)
    rng = np.random.default_rng(1 + RANK)
    print(f"rank {RANK} of {WORLD_SIZE}: {len(mine):,} of {len(target):,} examples", flush=True)

    for epoch in range(1, args.epochs + 1):
        losses = []
        for _ in range(args.steps):
            pick = rng.choice(mine, BATCH)
            loss, gradient = loss_and_gradient(model, context[pick], target[pick])
            adam.step(model, average(gradient))
            losses.append(loss)
        mean = average({"loss": np.array(np.mean(losses))})
        if RANK == 0:
            print(f"epoch {epoch}: loss {mean['loss']:.3f}", flush=True)

    if RANK == 0:
        folder = pathlib.Path(args.output)
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(folder / "model.npz", **model)
        print(f"wrote {folder / 'model.npz'}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Exception:
        # With MPI a process that fails would wait at its end for the others, and they for its gradients.
        traceback.print_exc()
        os._exit(1)
