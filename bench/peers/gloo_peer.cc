// Times a collective of Gloo over TCP on the loopback, the only transport that its packages have
// for CPU memory. One process a rank:
//
//   regatta-peer-gloo FOLDER RANK RANKS OP BATCHES BYTES...
//
// FOLDER is empty at first; the ranks meet in it. Rank 0 prints a line a size, as
// regatta/runtime/bench/peers.h describes it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include "peer_report.h"
#include "regatta/runtime/bench/collective.h"
#include "regatta/runtime/bench/internal/batches.h"

namespace {

using regatta::bench::CollectiveOp;
using regatta::bench::CollectiveShape;
using World = std::shared_ptr<gloo::rendezvous::Context>;
using Combine = void (*)(void*, const void*, const void*, std::size_t);

template <typename T>
T all_reduce(const World& world, T value, Combine combine) {
  gloo::AllreduceOptions options(world);
  options.setOutput(&value, 1);
  options.setReduceFunction(combine);
  gloo::allreduce(options);
  return value;
}

// The options of the operations that have one input, one output and no reduction.
template <typename Options>
Options moving(const World& world, const CollectiveShape& shape, float* in, float* out) {
  Options options(world);
  options.setInput(in, shape.in_count());
  options.setOutput(out, shape.out_count());
  return options;
}

template <typename Options>
Options reducing(const World& world, const CollectiveShape& shape, float* in, float* out) {
  auto options = moving<Options>(world, shape, in, out);
  options.setReduceFunction(static_cast<Combine>(&gloo::sum<float>));
  return options;
}

void scatter(const World& world, const CollectiveShape& shape, float* in, float* out) {
  gloo::ScatterOptions options(world);
  if (shape.rank == 0) {
    std::vector<float*> parts;
    parts.reserve(static_cast<std::size_t>(shape.ranks));
    for (int rank = 0; rank < shape.ranks; ++rank)
      parts.push_back(in + shape.count * static_cast<std::size_t>(rank));
    options.setInputs(parts, shape.count);
  }
  options.setOutput(out, shape.count);
  options.setRoot(0);
  gloo::scatter(options);
}

// False when Gloo has no such operation.
bool call(const World& world, const CollectiveShape& shape, float* in, float* out) {
  switch (shape.op) {
    case CollectiveOp::kAllReduce: {
      auto options = reducing<gloo::AllreduceOptions>(world, shape, in, out);
      gloo::allreduce(options);
      return true;
    }
    case CollectiveOp::kAllGather: {
      auto options = moving<gloo::AllgatherOptions>(world, shape, in, out);
      gloo::allgather(options);
      return true;
    }
    case CollectiveOp::kBroadcast: {
      gloo::BroadcastOptions options(world);
      options.setOutput(out, shape.count);
      options.setRoot(0);
      gloo::broadcast(options);
      return true;
    }
    case CollectiveOp::kReduce: {
      auto options = reducing<gloo::ReduceOptions>(world, shape, in, out);
      options.setRoot(0);
      gloo::reduce(options);
      return true;
    }
    case CollectiveOp::kGather: {
      gloo::GatherOptions options(world);
      options.setInput(in, shape.count);
      if (shape.rank == 0) options.setOutput(out, shape.out_count());
      options.setRoot(0);
      gloo::gather(options);
      return true;
    }
    case CollectiveOp::kScatter:
      scatter(world, shape, in, out);
      return true;
    case CollectiveOp::kAllToAll: {
      auto options = moving<gloo::AlltoallOptions>(world, shape, in, out);
      gloo::alltoall(options);
      return true;
    }
    case CollectiveOp::kReduceScatter:
      return false;
  }
  return false;
}

World connect(const char* folder, int rank, int ranks) {
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
  auto world = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  gloo::rendezvous::FileStore store(folder);
  world->connectFullMesh(store, device);
  return world;
}

}  // namespace

int main(int argc, char** argv) {
  const auto op = argc < 7 ? std::nullopt : regatta::bench::collective_op_named(argv[4]);
  if (!op) return peer::kUsage;
  if (*op == CollectiveOp::kReduceScatter) {
    std::fprintf(stderr, "Gloo has no reduce_scatter for any number of ranks\n");
    return peer::kNoSuchOperation;
  }
  const int rank = std::atoi(argv[2]);
  const int ranks = std::atoi(argv[3]);
  const World world = connect(argv[1], rank, ranks);
  for (int i = 6; i < argc; ++i) {
    const CollectiveShape shape =
        collective_shape(*op, std::strtoull(argv[i], nullptr, 10), ranks, rank);
    std::vector<float> in(shape.in_count());
    std::vector<float> out(shape.out_count());
    fill(shape, in.data(), out.data());
    call(world, shape, in.data(), out.data());
    const auto wrong = all_reduce<std::int64_t>(world, count_wrong(shape, out.data()),
                                                static_cast<Combine>(&gloo::sum<std::int64_t>));
    const auto times = regatta::bench::time_batches(
        std::atoi(argv[5]), [&] { return call(world, shape, in.data(), out.data()); },
        [&] {
          gloo::BarrierOptions options(world);
          gloo::barrier(options);
          return true;
        },
        [&](double seconds) {
          return all_reduce<double>(world, seconds, static_cast<Combine>(&gloo::max<double>));
        });
    if (rank == 0) peer::print_line(argv[i], wrong, times);
  }
  return 0;
}
