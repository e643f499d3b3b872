"""Every call of torch.distributed on the backend "regatta", against the values that it must give."""
import datetime
import unittest

import ranks
from ranks import RankCase, dist, same, torch

COUNTS = (1, 1000, 300_000)


def rows(rank, size, count=3):
    """A tensor of each rank; every element tells whose it is and for whom."""
    return [torch.full((count,), 100.0 * rank + peer) for peer in range(size)]


class Reductions(RankCase):
    def test_all_reduce_sums_every_size(self):
        def body(rank, size):
            for count in COUNTS:
                tensor = torch.arange(count, dtype=torch.float32) % 1000 + rank
                dist.all_reduce(tensor)
                same(tensor, (torch.arange(count) % 1000) * size + size * (size - 1) // 2)
        self.everywhere(body)

    def test_all_reduce_knows_every_type_and_operation(self):
        kinds = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8,
                 torch.int32, torch.int64]

        def body(rank, size):
            values = [2.0 + peer % 2 for peer in range(size)]
            product = 1.0
            for value in values:
                product *= value
            expected = {dist.ReduceOp.SUM: sum(values), dist.ReduceOp.PRODUCT: product,
                        dist.ReduceOp.MIN: 2, dist.ReduceOp.MAX: 3}
            for kind in kinds:
                average = sum(values) / size if kind.is_floating_point else sum(values) // size
                for op, value in [*expected.items(), (dist.ReduceOp.AVG, average)]:
                    tensor = torch.full((5, 7), 2.0 + rank % 2).to(kind)
                    dist.all_reduce(tensor, op=op)
                    same(tensor, value)
        self.everywhere(body)

    def test_all_reduce_takes_truth_values_and_complex_numbers(self):
        def body(rank, size):
            flags = torch.tensor([rank == 0, True, False])
            dist.all_reduce(flags)
            same(flags, [True, True, False])
            flags = torch.tensor([rank == 0, True, False])
            dist.all_reduce(flags, op=dist.ReduceOp.MIN)
            same(flags, [False, True, False])
            numbers = torch.full((4,), complex(1, rank))
            dist.all_reduce(numbers)
            same(numbers, complex(size, size * (size - 1) // 2))
        self.everywhere(body, sizes=(2,), transports=("shm",))

    def test_reduce_gives_the_result_to_the_root_alone(self):
        def body(rank, size):
            for root in range(size):
                tensor = torch.full((1000,), float(rank + 1))
                dist.reduce(tensor, dst=root)
                same(tensor, size * (size + 1) // 2 if rank == root else rank + 1)
        self.everywhere(body)

    def test_reduce_scatter_gives_each_rank_its_part(self):
        def body(rank, size):
            output = torch.empty(3)
            dist.reduce_scatter(output, rows(rank, size))
            same(output, 100 * (size * (size - 1) // 2) + size * rank)
            whole = torch.cat(rows(rank, size))
            dist.reduce_scatter_tensor(output, whole, op=dist.ReduceOp.AVG)
            same(output, 100 * (size - 1) / 2 + rank)
        self.everywhere(body)

    def test_coalesced_calls_reduce_each_tensor(self):
        def body(rank, size):
            tensors = [torch.full((count,), float(rank)) for count in COUNTS]
            dist.all_reduce_coalesced(tensors)
            for tensor in tensors:
                same(tensor, size * (size - 1) // 2)
        self.everywhere(body)


class Movements(RankCase):
    def test_broadcast_takes_any_root_and_type(self):
        def body(rank, size):
            for root in range(size):
                for kind in (torch.float32, torch.bfloat16, torch.int16, torch.bool, torch.complex64):
                    tensor = torch.full((2, 50), rank == root).to(kind)
                    dist.broadcast(tensor, src=root)
                    same(tensor, True)
        self.everywhere(body)

    def test_all_gather_fills_lists_and_whole_tensors(self):
        def body(rank, size):
            for count in COUNTS:
                mine = torch.full((count,), float(rank))
                parts = [torch.empty(count) for _ in range(size)]
                dist.all_gather(parts, mine)
                whole = torch.empty(size * count)
                dist.all_gather_into_tensor(whole, mine)
                for peer in range(size):
                    same(parts[peer], peer)
                    same(whole[peer * count:(peer + 1) * count], peer)
                views = list(torch.empty(size, count).unbind())
                dist.all_gather(views, mine)
                same(views[size - 1], size - 1)
        self.everywhere(body)

    def test_all_gather_coalesced_fills_every_list(self):
        def body(rank, size):
            mine = [torch.full((2,), float(rank)), torch.full((3, 3), 10.0 + rank)]
            lists = [[torch.empty(2), torch.empty(3, 3)] for _ in range(size)]
            dist.all_gather_coalesced(lists, mine)
            for peer in range(size):
                same(lists[peer][0], peer)
                same(lists[peer][1], 10 + peer)
        self.everywhere(body, sizes=(2,))

    def test_gather_and_scatter_work_at_the_root(self):
        def body(rank, size):
            root = size - 1
            mine = torch.full((3,), float(rank))
            parts = [torch.empty(3) for _ in range(size)] if rank == root else None
            dist.gather(mine, parts, dst=root)
            if rank == root:
                for peer in range(size):
                    same(parts[peer], peer)
            dist.scatter(mine, rows(root, size) if rank == root else None, src=root)
            same(mine, 100 * root + rank)
        self.everywhere(body)

    def test_all_to_all_takes_equal_and_varying_parts(self):
        def body(rank, size):
            outputs = [torch.empty(3) for _ in range(size)]
            dist.all_to_all(outputs, rows(rank, size))
            whole = torch.empty(3 * size)
            dist.all_to_all_single(whole, torch.cat(rows(rank, size)))
            for peer in range(size):
                same(outputs[peer], 100 * peer + rank)
                same(whole[3 * peer:3 * peer + 3], 100 * peer + rank)
            # Rank r gives k rows to rank k, so none to rank 0, and gets r rows from each.
            given = torch.cat([torch.full((peer, 2), float(rank)) for peer in range(size)])
            taken = torch.empty(rank * size, 2)
            dist.all_to_all_single(taken, given, [rank] * size, list(range(size)))
            same(taken, torch.arange(size).repeat_interleave(rank).unsqueeze(1))
        self.everywhere(body)

    def test_sends_and_receives_meet_in_their_order(self):
        def body(rank, size):
            right, left = (rank + 1) % size, (rank - 1) % size
            for count in COUNTS:
                incoming = [torch.empty(count), torch.empty(count)]
                requests = [dist.isend(torch.full((count,), float(rank)), right),
                            dist.isend(torch.full((count,), rank + 0.5), right),
                            dist.irecv(incoming[0], left), dist.irecv(incoming[1], left)]
                total = torch.ones(1)
                dist.all_reduce(total)  # between them, without meeting them
                for request in requests:
                    request.wait()
                same(incoming[0], left)
                same(incoming[1], left + 0.5)
        self.everywhere(body)

    def test_a_dropped_send_still_arrives(self):
        def body(rank, size):
            if rank == 0:
                dist.isend(torch.full((1_000_000,), 7.0), 1)
            dist.barrier()
            if rank == 1:
                incoming = torch.empty(1_000_000)
                dist.recv(incoming, 0)
                same(incoming, 7)
        self.everywhere(body, sizes=(2,))

    def test_objects_travel_between_the_ranks(self):
        def body(rank, size):
            objects = [None] * size
            dist.all_gather_object(objects, {"rank": rank})
            if objects != [{"rank": peer} for peer in range(size)]:
                raise AssertionError(objects)
        self.everywhere(body, sizes=(2,), transports=("shm",))


class Tensors(RankCase):
    def test_tensors_that_are_not_contiguous_get_the_result(self):
        def body(rank, size):
            transposed = torch.full((4, 6), float(rank)).t()
            dist.all_reduce(transposed)
            same(transposed, size * (size - 1) // 2)
            columns = torch.zeros(5, size * 2)
            dist.all_gather([columns[:, 2 * peer] for peer in range(size)], torch.full((5,), rank + 1.0))
            same(columns[:, ::2], torch.arange(1, size + 1).expand(5, size))
            same(columns[:, 1::2], 0)
            lazy = torch.full((3,), complex(0, 1)).conj()
            dist.broadcast(lazy, src=0)
            same(lazy, complex(0, -1))
        self.everywhere(body, transports=("shm",))

    def test_empty_tensors_are_fine(self):
        def body(rank, size):
            dist.all_reduce(torch.empty(0))
            dist.all_gather_into_tensor(torch.empty(0), torch.empty(0))
            dist.broadcast(torch.empty(0, 3), src=0)
        self.everywhere(body, sizes=(2,))

    def test_wrong_arguments_are_refused_before_anything_moves(self):
        def body(rank, size):
            cases = [(lambda: dist.all_reduce(torch.zeros(2, dtype=torch.int16)), "does not reduce Short"),
                     (lambda: dist.all_reduce(torch.zeros(2), op=dist.ReduceOp.BXOR), "the average; not BXOR"),
                     (lambda: dist.all_gather_into_tensor(torch.zeros(3), torch.zeros(2)), "is not 2 times"),
                     (lambda: dist.send(torch.zeros(1), 1 - rank, tag=3), "use tag 0"),
                     (lambda: dist.all_reduce(torch.zeros(2).to_sparse()), "make it dense")]
            for call, text in cases:
                try:
                    call()
                except RuntimeError as error:
                    if text not in str(error):
                        raise
                else:
                    raise AssertionError(f"no error with '{text}'")
        self.everywhere(body, sizes=(2,), transports=("shm",))


class Groups(RankCase):
    def test_groups_of_some_ranks_work_side_by_side(self):
        def body(rank, size):
            groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
            tensor = torch.tensor([float(rank)])
            dist.all_reduce(tensor, group=groups[rank // 2])
            same(tensor, 1 if rank < 2 else 5)
        self.everywhere(body, sizes=(4,))

    def test_a_handle_completes_without_its_caller(self):
        def body(rank, size):
            seen = []
            tensor = torch.full((1_000_000,), float(rank))
            work = dist.all_reduce(tensor, async_op=True)
            future = work.get_future().then(lambda done: seen.append(done.value()[0][0].item()))
            future.wait()
            if seen != [size * (size - 1) / 2] or not work.is_completed():
                raise AssertionError(seen)
            work = dist.broadcast(tensor, src=0, async_op=True)
            while not work.is_completed():
                pass
            same(work.result()[0], size * (size - 1) / 2)
            message = torch.full((1,), float(rank))
            pair = dist.isend(message, 1) if rank == 0 else dist.irecv(message, 0) if rank == 1 else None
            if pair:
                same(pair.get_future().wait()[0], 0)
        self.everywhere(body)

    def test_a_wait_may_end_before_the_operation(self):
        def body(rank, size):
            tensor = torch.ones(1)
            if rank == 0:
                work = dist.all_reduce(tensor, async_op=True)
                try:
                    work.wait(datetime.timedelta(milliseconds=200))
                    raise AssertionError("the other rank has not called")
                except RuntimeError as error:
                    if "did not end within 200 ms" not in str(error):
                        raise
                dist.distributed_c10d._get_default_group().monitored_barrier(datetime.timedelta(seconds=30))
                work.wait()
            else:
                dist.distributed_c10d._get_default_group().monitored_barrier(datetime.timedelta(seconds=30))
                dist.all_reduce(tensor)
            same(tensor, size)
        self.everywhere(body, sizes=(2,))

    def test_a_monitored_barrier_names_who_is_missing(self):
        def body(rank, size):
            group = dist.distributed_c10d._get_default_group()
            if rank != 2:
                try:
                    group.monitored_barrier(datetime.timedelta(seconds=1), True)
                    raise AssertionError("rank 2 did not come")
                except RuntimeError as error:
                    if "no word from rank 2 within 1000 ms" not in str(error):
                        raise
        self.everywhere(body, sizes=(4,), transports=("shm",))

    def test_ranks_that_call_different_operations_are_told(self):
        def body(rank, size):
            # In a group of its own: it fails for good.
            group = dist.new_group([0, 1])
            try:
                dist.all_reduce(torch.ones(2 + rank), group=group)
            except RuntimeError as error:
                if "call the same on all ranks" not in str(error):
                    raise
            else:
                raise AssertionError("no error")
        self.everywhere(body, sizes=(2,), transports=("shm",))


if __name__ == "__main__":
    ranks.unittest.main()
