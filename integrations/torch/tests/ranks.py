"""What the tests share: a function run by the ranks of a group, which are forked processes."""
import datetime
import multiprocessing
import os
import sys
import tempfile
import traceback
import unittest

SKIPPED = 77  # what CTest takes for "skipped"


def _skip(reason):
    print("skipped: " + reason, file=sys.stderr)
    raise SystemExit(SKIPPED)


try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    _skip(f"this python has no torch ({error}): install python3-torch")
try:
    import regatta_torch  # noqa: F401 (registers the backend)
except ImportError as error:
    _skip(f"the torch backend is not there ({error}): install libtorch-dev and pybind11-dev, build torch_backend")

SIZES = (2, 4)
TRANSPORTS = ("shm", "tcp")
PATIENCE_S = 60


def _run_rank(body, rank, size, options, results):
    # Forked: PyTorch's own threads must begin here.
    torch.set_num_threads(1)
    if options["way"] == "tcp":
        os.environ["REGATTA_SERVER"] = f"server {rank}"
    try:
        dist.init_process_group(options["backend"], init_method="file://" + options["store"], rank=rank,
                                world_size=size, timeout=datetime.timedelta(seconds=60))
        value = body(rank, size)
        dist.barrier()
        dist.destroy_process_group()
        results.put((rank, value, None))
    except BaseException:
        results.put((rank, None, traceback.format_exc()))
        raise SystemExit(1)


def run(size, body, transport="shm", backend="regatta"):
    """body(rank, size) in `size` processes that are a group; returns what each gave, in rank order.
    Only plain values: tensors would need their process to live on."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        options = {"way": transport, "backend": backend, "store": os.path.join(folder, "store")}
        processes = [context.Process(target=_run_rank, args=(body, rank, size, options, results))
                     for rank in range(size)]
        for process in processes:
            process.start()
        try:
            gathered = [results.get(timeout=PATIENCE_S) for _ in range(size)]
        finally:
            for process in processes:
                process.join(5)
                if process.is_alive():
                    process.kill()
                    process.join()
    failures = [f"rank {rank}: {trace}" for rank, _, trace in gathered if trace]
    if failures:
        raise AssertionError("\n".join(failures))
    return [value for _, value, _ in sorted(gathered)]


class RankCase(unittest.TestCase):
    def everywhere(self, body, sizes=SIZES, transports=TRANSPORTS):
        """body(rank, size) in every size of group, through shared memory and over TCP."""
        for size in sizes:
            for transport in transports:
                with self.subTest(ranks=size, transport=transport):
                    run(size, body, transport)


def same(actual, expected):
    """The tensors hold the same numbers."""
    expected = torch.as_tensor(expected, dtype=actual.dtype)
    if not torch.equal(actual, expected.expand_as(actual)):
        raise AssertionError(f"got {actual.flatten()[:8].tolist()}, not {expected.flatten()[:8].tolist()}")
