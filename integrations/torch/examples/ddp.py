#!/usr/bin/python3
"""Trains a small network with DistributedDataParallel over Regatta's collectives, two processes on the CPU.

    PYTHONPATH=build/release/python /usr/bin/python3 integrations/torch/examples/ddp.py [RANKS]
"""
import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch.nn.parallel import DistributedDataParallel

import regatta_torch  # noqa: F401  registers the backend "regatta"

STEPS = 60


def train(rank, ranks, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(ranks))
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("regatta")
    model = DistributedDataParallel(torch.nn.Sequential(
        torch.nn.Linear(32, 256), torch.nn.Tanh(), torch.nn.Linear(256, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    weights = torch.randn(32, 1)  # the same on all ranks; each rank draws samples of its own
    generator = torch.Generator().manual_seed(100 + rank)
    for step in range(1, STEPS + 1):
        samples = torch.randn(64, 32, generator=generator)
        loss = torch.nn.functional.mse_loss(model(samples), samples @ weights)
        optimizer.zero_grad()
        loss.backward()  # gradients are summed over the ranks here
        optimizer.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    checksum = sum(parameter.detach().sum() for parameter in model.parameters()).reshape(1)
    sums = [torch.empty(1) for _ in range(ranks)]
    dist.all_gather(sums, checksum)
    if rank == 0:
        same = all(torch.equal(one, sums[0]) for one in sums)
        print(f"{ranks} ranks over {dist.get_backend()}: weights {'are equal' if same else 'DIFFER'}")
    dist.destroy_process_group()


def main():
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    multiprocessing.spawn(train, args=(ranks, port), nprocs=ranks)


if __name__ == "__main__":
    main()
