// Times a collective of an MPI library: built once with OpenMPI's compiler wrapper, once with
// MPICH's.
//
//   mpirun -np N regatta-peer-openmpi OP BATCHES BYTES...
//
// Rank 0 prints a line a size, as regatta/runtime/bench/peers.h describes it.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <mpi.h>

#include "peer_report.h"
#include "regatta/runtime/bench/collective.h"
#include "regatta/runtime/bench/internal/batches.h"

namespace {

using regatta::bench::CollectiveOp;
using regatta::bench::CollectiveShape;

int call(const CollectiveShape& shape, const float* in, float* out) {
  const int count = static_cast<int>(shape.count);
  MPI_Comm world = MPI_COMM_WORLD;
  switch (shape.op) {
    case CollectiveOp::kAllReduce:
      return MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, world);
    case CollectiveOp::kReduceScatter:
      return MPI_Reduce_scatter_block(in, out, count, MPI_FLOAT, MPI_SUM, world);
    case CollectiveOp::kAllGather:
      return MPI_Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, world);
    case CollectiveOp::kBroadcast:
      return MPI_Bcast(out, count, MPI_FLOAT, 0, world);
    case CollectiveOp::kReduce:
      return MPI_Reduce(in, out, count, MPI_FLOAT, MPI_SUM, 0, world);
    case CollectiveOp::kGather:
      return MPI_Gather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, world);
    case CollectiveOp::kScatter:
      return MPI_Scatter(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, world);
    case CollectiveOp::kAllToAll:
      return MPI_Alltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, world);
  }
  return MPI_ERR_OTHER;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto op = argc < 4 ? std::nullopt : regatta::bench::collective_op_named(argv[1]);
  if (!op) return peer::kUsage;
  for (int i = 3; i < argc; ++i) {
    const CollectiveShape shape =
        collective_shape(*op, std::strtoull(argv[i], nullptr, 10), ranks, rank);
    std::vector<float> in(shape.in_count());
    std::vector<float> out(shape.out_count());
    fill(shape, in.data(), out.data());
    call(shape, in.data(), out.data());
    long long wrong = count_wrong(shape, out.data());
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    const auto times = regatta::bench::time_batches(
        std::atoi(argv[2]), [&] { return call(shape, in.data(), out.data()) == MPI_SUCCESS; },
        [] { return MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS; },
        [](double seconds) {
          double largest = 0;
          MPI_Allreduce(&seconds, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
          return largest;
        });
    if (rank == 0) peer::print_line(argv[i], wrong, times);
  }
  MPI_Finalize();
  return 0;
}
