// Bandwidth and latency of collectives between threads of one process: busbw as nccl-tests defines
// it, all_reduce S/t * 2(p-1)/p, send S/t.
#include <cstddef>
#include <vector>

#include <benchmark/benchmark.h>

#include "regatta/coll/communicator.h"
#include "regatta/coll/test_world.h"

namespace regatta::coll {
namespace {

// args: layout, ranks, bytes.
void all_reduce(benchmark::State& state) {
  const auto layout = static_cast<Layout>(state.range(0));
  const auto ranks = static_cast<int>(state.range(1));
  const auto bytes = static_cast<std::size_t>(state.range(2));
  const auto rounds = static_cast<long long>(state.max_iterations);
  run_ranks(layout, ranks, [&](Communicator& world) {
    std::vector<float> in(bytes / sizeof(float), 1.0F);
    std::vector<float> out(in.size());
    const auto once = [&] {
      const Status status =
          world.all_reduce(in.data(), out.data(), in.size(), DataType::kF32, ReduceOp::kSum).wait();
      if (!status) state.SkipWithError(status.error().message.c_str());
    };
    once();
    if (world.rank().value == 0) {
      for ([[maybe_unused]] auto _ : state)
        once();
    } else {
      for (long long i = 0; i < rounds; ++i)
        once();
    }
  });
  const double moved = 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes);
  state.counters["busbw_Bps"] =
      benchmark::Counter(moved * static_cast<double>(rounds), benchmark::Counter::kIsRate);
}

constexpr long long kShm = static_cast<long long>(Layout::kShm);
constexpr long long kTcp = static_cast<long long>(Layout::kTcp);

BENCHMARK(all_reduce)
    ->ArgNames({"tcp", "ranks", "bytes"})
    ->Args({kShm, 2, 1 << 10})
    ->Args({kShm, 2, 64 << 10})
    ->Args({kShm, 2, 1 << 20})
    ->Args({kShm, 4, 1 << 20})
    ->Args({kTcp, 2, 1 << 10})
    ->Args({kTcp, 2, 1 << 20})
    ->Iterations(300)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(all_reduce)
    ->ArgNames({"tcp", "ranks", "bytes"})
    ->Args({kShm, 2, 64 << 20})
    ->Args({kShm, 4, 64 << 20})
    ->Args({kTcp, 2, 64 << 20})
    ->Args({kTcp, 4, 64 << 20})
    ->Iterations(8)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace regatta::coll
