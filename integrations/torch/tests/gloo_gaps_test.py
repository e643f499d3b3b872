"""What Debian's torch cannot do on the CPU with Gloo, done with "regatta": one line for each."""
import unittest

import ranks
from ranks import dist, torch


def reduce_scatter_base(rank, size):
    output = torch.empty(4)
    dist.reduce_scatter_tensor(output, torch.ones(4 * size))
    return output, size


def all_gather_base(rank, size):
    output = torch.empty(4 * size)
    dist.all_gather_into_tensor(output, torch.ones(4))
    return output, 1


def reduce_scatter(rank, size):
    output = torch.empty(4)
    dist.reduce_scatter(output, [torch.ones(4) for _ in range(size)])
    return output, size


def all_to_all(rank, size):
    outputs = [torch.empty(4) for _ in range(size)]
    dist.all_to_all(outputs, [torch.ones(4) for _ in range(size)])
    return torch.cat(outputs), 1


def all_reduce_ones(size, dtype):
    tensor = torch.ones(4, dtype=dtype)
    dist.all_reduce(tensor)
    return tensor, size


def all_reduce_bf16(rank, size):
    return all_reduce_ones(size, torch.bfloat16)


def all_reduce_average(rank, size):
    tensor = torch.ones(4)
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    return tensor, 1


def all_to_all_single(rank, size):
    output = torch.empty(4 * size)
    dist.all_to_all_single(output, torch.ones(4 * size))
    return output, 1


def all_reduce_f16(rank, size):
    return all_reduce_ones(size, torch.float16)


def reduce(rank, size):
    tensor = torch.ones(4)
    dist.reduce(tensor, dst=0)
    return tensor, size if rank == 0 else 1


CALLS = [reduce_scatter_base, all_gather_base, reduce_scatter, all_to_all, all_reduce_bf16,
         all_reduce_average, all_to_all_single, all_reduce_f16, reduce]


class GlooGaps(unittest.TestCase):
    def test_every_call_that_gloo_lacks_works(self):
        for call in CALLS:
            for size in ranks.SIZES:
                with self.subTest(call=call.__name__, ranks=size):
                    def body(rank, world_size, call=call):
                        tensor, expected = call(rank, world_size)
                        ranks.same(tensor, expected)
                    ranks.run(size, body)
            print(f"{call.__name__}: OK", flush=True)


if __name__ == "__main__":
    unittest.main()
