// What it costs that the ranks are watched: two worlds of the same two threads, one watched and one
// not, take turns; the medians of their batches stand beside each other.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "regatta/coll/communicator.h"
#include "regatta/coll/test_world.h"
#include "regatta/os/clock.h"

namespace regatta::coll {
namespace {

constexpr int kRanks = 2;
constexpr int kBatches = 201;
constexpr Seconds kBatchTime{2e-3};

struct Buffers {
  std::shared_ptr<std::byte> shared_in;
  std::shared_ptr<std::byte> shared_out;
  std::vector<float> in;
  std::vector<float> out;

  static Buffers make(Communicator& world, std::size_t bytes, bool is_registered) {
    Buffers buffers;
    if (is_registered) {
      buffers.shared_in = *world.allocate(bytes);
      buffers.shared_out = *world.allocate(bytes);
    } else {
      buffers.in.assign(bytes / sizeof(float), 1.0F);
      buffers.out.assign(bytes / sizeof(float), 1.0F);
    }
    return buffers;
  }
  const void* input() const { return shared_in ? shared_in.get() : static_cast<const void*>(in.data()); }
  void* output() { return shared_out ? shared_out.get() : static_cast<void*>(out.data()); }
};

// Of one call.
Seconds time_batch(Communicator& world, Buffers& buffers, std::size_t bytes, int calls) {
  (void)world.barrier().wait();
  const Seconds start = os::monotonic_now();
  for (int i = 0; i < calls; ++i)
    (void)world
        .all_reduce(buffers.input(), buffers.output(), bytes / sizeof(float), DataType::kF32,
                    ReduceOp::kSum)
        .wait();
  return (os::monotonic_now() - start) / calls;
}

double median_of(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// args: layout, bytes, registered.
void watch_overhead(benchmark::State& state) {
  const auto layout = static_cast<Layout>(state.range(0));
  const auto bytes = static_cast<std::size_t>(state.range(1));
  std::vector<double> on;
  std::vector<double> off;
  for ([[maybe_unused]] auto _ : state) {
    LocalExchange exchange(kRanks);
    run_ranks(layout, kRanks, [&](Communicator& watched) {
      Options options = test_options(layout, watched.rank().value);
      options.watch = false;
      auto bare = Communicator::connect(watched.rank(), kRanks,
                                        exchange.of(watched.rank().value), options);
      if (!bare) return state.SkipWithError(bare.error().message.c_str());
      Buffers ones = Buffers::make(watched, bytes, state.range(2) != 0);
      Buffers others = Buffers::make(*bare, bytes, state.range(2) != 0);
      // The ranks agree on how many calls a batch has.
      double once = time_batch(watched, ones, bytes, 20).value;
      (void)watched.all_reduce(&once, &once, 1, DataType::kF64, ReduceOp::kMax).wait();
      const int calls = std::clamp(static_cast<int>(kBatchTime.value / once), 1, 1000);
      for (int batch = 0; batch < kBatches; ++batch) {
        const bool is_first = batch % 2 == 0;
        const double a = time_batch(is_first ? watched : *bare, is_first ? ones : others, bytes,
                                    calls).value;
        const double b = time_batch(is_first ? *bare : watched, is_first ? others : ones, bytes,
                                    calls).value;
        if (watched.rank().value != 0 || batch < kBatches / 10) continue;
        on.push_back(is_first ? a : b);
        off.push_back(is_first ? b : a);
      }
    });
  }
  if (on.empty()) return;
  state.counters["on_us"] = median_of(on) * 1e6;
  state.counters["off_us"] = median_of(off) * 1e6;
  state.counters["overhead_percent"] = (median_of(on) / median_of(off) - 1) * 100;
}

void sizes(benchmark::internal::Benchmark* bench) {
  for (const long long registered : {0, 1})
    for (const long long bytes : {1LL << 10, 64LL << 10, 256LL << 10, 1LL << 20, 16LL << 20})
      bench->Args({static_cast<long long>(Layout::kShm), bytes, registered});
  for (const long long bytes : {64LL << 10, 1LL << 20})
    bench->Args({static_cast<long long>(Layout::kTcp), bytes, 0});
}

BENCHMARK(watch_overhead)
    ->ArgNames({"tcp", "bytes", "registered"})
    ->Apply(sizes)
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace regatta::coll
