"""DistributedDataParallel and FullyShardedDataParallel on the backend "regatta" train as one process does."""
import unittest

import ranks
from ranks import dist, torch

import torch.nn.functional as F  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

STEPS, BATCH = 6, 16
# Sums in another order: float32 losses of about 1 that drift apart by rounding over the steps.
TOLERANCE = 1e-4


def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 64),
                               torch.nn.GELU(), torch.nn.Linear(64, 8))


def batch():
    generator = torch.Generator().manual_seed(2)
    return (torch.randn(BATCH, 32, generator=generator),
            torch.randint(0, 8, (BATCH,), generator=generator))


def train(net, rank, size, steps=STEPS):
    """The loss over the whole batch at each step; this rank works on its share of it."""
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        inputs, labels = (tensor.chunk(size)[rank] for tensor in batch())
        optimizer.zero_grad()
        loss = F.cross_entropy(net(inputs), labels)
        loss.backward()
        optimizer.step()
        whole = loss.detach().clone()
        if size > 1:
            dist.all_reduce(whole, op=dist.ReduceOp.AVG)
        losses.append(whole.item())
    return losses


def alone():
    return ranks.run(1, lambda rank, size: train(model(), 0, 1))[0]


def data_parallel(rank, size):
    return train(DistributedDataParallel(model(), bucket_cap_mb=0.005), rank, size)


def data_parallel_with_hook(rank, size):
    def average(state, bucket):
        work = dist.all_reduce(bucket.buffer(), op=dist.ReduceOp.AVG, async_op=True)
        return work.get_future().then(lambda done: done.value()[0])

    net = DistributedDataParallel(model())
    net.register_comm_hook(None, average)
    return train(net, rank, size)


def data_parallel_in_f16(rank, size):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    net = DistributedDataParallel(model())
    net.register_comm_hook(None, default_hooks.fp16_compress_hook)
    return train(net, rank, size)


def fully_sharded(rank, size):
    from regatta_torch.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy
    import functools

    policy = functools.partial(size_based_auto_wrap_policy, min_num_params=2000)
    net = FullyShardedDataParallel(model(), auto_wrap_policy=policy, device_id=torch.device("cpu"))
    parts = sum(isinstance(part, FullyShardedDataParallel) for part in net.modules())
    if parts < 3:
        raise AssertionError(f"the model is sharded in {parts} parts")
    return train(net, rank, size)


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.expected = alone()

    def check(self, body, tolerance=TOLERANCE, transports=ranks.TRANSPORTS):
        for size in ranks.SIZES:
            for transport in transports:
                with self.subTest(ranks=size, transport=transport):
                    for losses in ranks.run(size, body, transport):
                        for actual, expected in zip(losses, self.expected, strict=True):
                            self.assertAlmostEqual(actual, expected, delta=tolerance)

    def test_training_lowers_the_loss(self):
        self.assertLess(self.expected[-1], self.expected[0])

    def test_data_parallel_has_the_losses_of_one_process(self):
        self.check(data_parallel)

    def test_a_communication_hook_awaits_the_future_of_the_backend(self):
        self.check(data_parallel_with_hook, transports=("shm",))

    def test_gradients_may_be_halved_to_f16(self):
        self.check(data_parallel_in_f16, tolerance=5e-2, transports=("shm",))

    def test_fully_sharded_has_the_losses_of_one_process(self):
        self.check(fully_sharded)


if __name__ == "__main__":
    unittest.main()
