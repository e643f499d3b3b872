"""FullyShardedDataParallel of torch.distributed.fsdp, made to run where torch 1.13 alone cannot.

  from regatta_torch.fsdp import FullyShardedDataParallel

From torch 2.0 on this is torch's own, untouched. Torch 1.13 stops in two ways: Python 3.11 refuses its
dataclasses, and FSDP insists on a CUDA device. Importing this module lifts both; on a machine without
CUDA every stream of FSDP is then the one and only order of the CPU. Afterwards a plain import of
torch.distributed.fsdp gives the same.
"""
import contextlib
import copy
import dataclasses
import sys

import torch


@contextlib.contextmanager
def _mutable_defaults():
    """Lets dataclasses take a default that cannot be hashed, as Python up to 3.10 did; each object
    gets a copy of it."""
    make = dataclasses._get_field

    def get_field(cls, name, *more):
        given = getattr(cls, name, None)
        default = given.default if isinstance(given, dataclasses.Field) else given
        if default.__class__.__hash__ is None and not isinstance(default, (list, dict, set)):
            setattr(cls, name, dataclasses.field(default_factory=lambda: copy.copy(default)))
        return make(cls, name, *more)

    dataclasses._get_field = get_field
    try:
        yield
    finally:
        dataclasses._get_field = make


class _Stream:
    """The order of the CPU: whoever waits for it has nothing to wait for."""

    def wait_stream(self, stream):
        pass

    def synchronize(self):
        pass

    def record(self):
        pass


class _Cuda:
    """What FSDP asks of torch.cuda, on the CPU."""
    Stream = Event = _Stream

    def __getattr__(self, name):
        return getattr(torch.cuda, name)

    def is_available(self):
        return True

    def current_device(self):
        return 0

    def current_stream(self):
        return _Stream()

    def stream(self, stream):
        return contextlib.nullcontext()

    def synchronize(self):
        pass


class _Device(type):
    """torch.device, for which "cuda" is the CPU."""

    def __call__(cls, *arguments, **named):
        device = torch.device(*arguments, **named)
        return torch.device("cpu") if device.type == "cuda" else device

    def __instancecheck__(cls, thing):
        return isinstance(thing, torch.device)


class _device(metaclass=_Device):
    pass


class _Torch:
    """The module torch as FSDP's own modules see it."""
    cuda = _Cuda()
    device = _device

    def __getattr__(self, name):
        return getattr(torch, name)


def _record_stream(record):
    def record_stream(tensor, stream):
        # On the CPU memory is not given back while it is used.
        return None if isinstance(stream, _Stream) else record(tensor, stream)
    return record_stream


def _load():
    if int(torch.__version__.split(".")[0]) >= 2:
        return
    with _mutable_defaults() if sys.version_info >= (3, 11) else contextlib.nullcontext():
        from torch.distributed.fsdp import flat_param, fully_sharded_data_parallel
    if not torch.cuda.is_available():
        for module in (flat_param, fully_sharded_data_parallel):
            module.torch = _Torch()
        torch.Tensor.record_stream = _record_stream(torch.Tensor.record_stream)


_load()

from torch.distributed.fsdp import FullyShardedDataParallel  # noqa: E402 (after it can be imported)

__all__ = ["FullyShardedDataParallel"]
