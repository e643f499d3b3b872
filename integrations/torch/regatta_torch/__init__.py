"""The backend "regatta" of torch.distributed: import this, then dist.init_process_group("regatta").

Ranks on one server share memory, others speak RDMA where both have it, else TCP. What can be set,
by environment variables:
  REGATTA_ADDRESS  the address of this rank's network interface, in numbers
                   (default: the one that leads to MASTER_ADDR)
  REGATTA_SERVER   ranks with the same text share memory (default: one text per kernel
                   and network namespace)
"""
import importlib

import torch
import torch.distributed as dist

try:
    _C = importlib.import_module("._C", __name__)
except ImportError as error:
    raise ImportError(f"regatta_torch in {__path__[0]} is incomplete ({error}): build the target torch_backend "
                      "(ninja -C build/release torch_backend) and run the Python that it was built for") from error
from . import rendezvous

NAME = "regatta"


def _connect(store, rank, size, timeout):
    return _C.connect(store=store, rank=rank, size=size, timeout_s=timeout.total_seconds(),
                      token=rendezvous.token(store, rank), server=rendezvous.server(),
                      address=rendezvous.address())


def _register():
    # From 2.0 on a backend names the devices that it serves.
    is_old = int(torch.__version__.split(".")[0]) < 2
    devices = {} if is_old else {"devices": ["cpu"]}
    dist.Backend.register_backend(NAME, _connect, **devices)


_register()
