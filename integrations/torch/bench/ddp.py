#!/usr/bin/env python3
"""Times the gradient sync of DistributedDataParallel on "regatta" and on Gloo, interleaved in one run.

  integrations/torch/bench/ddp.py [--ranks 2] [--mib 64] [--rounds 15] [--views] [--json]

Each round times a backward pass whose work is next to nothing: once without sync, once with each
backend, in turn, then an all_reduce of as many bytes. The slowest rank counts; medians over the
rounds. "sync" is the pass with sync less the one without. With --views the gradients lie in the
buckets (gradient_as_bucket_view); else torch copies them in and out, whatever the backend. Run it on
an otherwise idle machine, with PYTHONPATH=build/dev/python.
"""
import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import regatta_torch  # noqa: F401 (registers the backend)

BACKENDS = ("gloo", "regatta")


class Weights(torch.nn.Module):
    """Eight matrices whose gradients cost little more than their memory."""

    def __init__(self, count):
        super().__init__()
        self.parts = torch.nn.ParameterList(torch.zeros(count // 8) for _ in range(8))

    def forward(self, x):
        return sum(part.sum() for part in self.parts) * x


def slowest(seconds):
    tensor = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return tensor.item()


def timed(action):
    dist.barrier()
    begin = time.monotonic()
    action()
    return slowest(time.monotonic() - begin)


def check_gradients(net, value):
    for part in net.parameters():
        if not torch.all(part.grad == value):
            raise SystemExit("wrong gradients")


def measure(rank, arguments, store, results):
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=arguments.ranks)
    count = arguments.mib * 2**20 // 4
    groups = {name: dist.new_group(backend=name) for name in BACKENDS}
    nets = {name: DistributedDataParallel(Weights(count), process_group=group,
                                           gradient_as_bucket_view=arguments.views)
            for name, group in groups.items()}
    plain = Weights(count)
    data = torch.ones(count)
    x = torch.tensor(float(rank))
    times = {}

    def note(what, seconds):
        times.setdefault(what, []).append(seconds)

    for _ in range(arguments.rounds + 2):
        loss = plain(x)
        note("none", timed(loss.backward))
        for name in BACKENDS:
            nets[name].zero_grad(set_to_none=False)
            loss = nets[name](x)
            note(name, timed(loss.backward))
            check_gradients(nets[name], (arguments.ranks - 1) / 2)
            data.fill_(1)
            note("all_reduce " + name, timed(lambda: dist.all_reduce(data, group=groups[name])))
    if rank == 0:
        # The first two rounds touch memory and rebuild the buckets.
        results.put({what: [1000 * t for t in seconds[2:]] for what, seconds in times.items()})
    dist.barrier()
    dist.destroy_process_group()


def report(times, arguments):
    medians = {what: statistics.median(values) for what, values in times.items()}
    line = {"ranks": arguments.ranks, "mib": arguments.mib, "views": arguments.views, "torch": torch.__version__}
    for what, median in medians.items():
        line[f"{what} ms".replace(" ", "_")] = round(median, 2)
    line["backward_ratio"] = round(medians["gloo"] / medians["regatta"], 2)
    line["sync_ratio"] = round((medians["gloo"] - medians["none"]) / (medians["regatta"] - medians["none"]), 2)
    line["all_reduce_ratio"] = round(medians["all_reduce gloo"] / medians["all_reduce regatta"], 2)
    if arguments.json:
        print(json.dumps(line))
        return
    print(f"{arguments.ranks} ranks, {arguments.mib} MiB of gradients, median of {arguments.rounds} rounds (min to max), ms")
    for what, values in times.items():
        print(f"  {what:20} {medians[what]:8.1f}  ({min(values):.1f} to {max(values):.1f})")
    print(f"  gloo / regatta: backward {line['backward_ratio']}x, sync {line['sync_ratio']}x, "
          f"all_reduce {line['all_reduce_ratio']}x")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--views", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=measure, args=(rank, arguments, os.path.join(folder, "store"), results))
                 for rank in range(arguments.ranks)]
        for process in ranks:
            process.start()
        times = results.get(timeout=600)
        for process in ranks:
            process.join()
    report(times, arguments)


if __name__ == "__main__":
    main()
