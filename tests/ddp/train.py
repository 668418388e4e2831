"""Trains a small network with DistributedDataParallel on processors, and goes on from its checkpoint. See scripts/ddp.

train.py NAME STEPS HALF END: half way, a training that began anew ends as END says: "never" it goes on, "abort" it
waits for its end, "fail" its rank 1 breaks."""
import hashlib
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def load(path, model, optimizer):
    """The step to go on from."""
    if not path.exists():
        return 0
    saved = torch.load(path)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["step"]


def save(path, step, model, optimizer):
    """As a whole, or not at all."""
    part = path.with_suffix(".part")
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, part)
    os.replace(part, path)


def batch(step, rank):
    """Other numbers on every rank at every step, the same ones every time."""
    numbers = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(64, 8, generator=numbers)
    return x, x.sin().sum(dim=1, keepdim=True)


def digest(model):
    weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    return hashlib.sha256(weights).hexdigest()[:16]


def main():
    name, steps, half, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    path = pathlib.Path("output") / name / "checkpoint.pt"
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")  # env://
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    layers = torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    first = load(path, model, optimizer)
    dist.barrier()  # nobody saves before all have loaded
    if rank == 0:
        print(f"step {first} of {steps}, {world} ranks, gloo, PyTorch {torch.__version__}", flush=True)
    for step in range(first, steps):
        x, y = batch(step, rank)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()  # averages over the ranks
        optimizer.step()
        if rank == 0:
            save(path, step + 1, model, optimizer)
            print(f"step {step + 1} loss {loss.item():.4f}", flush=True)
        if first == 0 and step + 1 == half and end != "never":
            dist.barrier()
            print(f"rank {rank} is half way", flush=True)
            if end == "fail" and rank == 1:
                raise RuntimeError("rank 1 breaks half way")
            time.sleep(600)
    if rank == 0:
        print(f"trained, loss {loss.item():.4f}, weights {digest(model)}", flush=True)


main()
