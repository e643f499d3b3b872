// The cost of the watch file: two worlds of the same two threads, one watched and one not, take
// turns. The result is the ratio of the medians of their batches, as the median of several such
// pairs, because a world also chooses at its start how it writes its stages.
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "regatta/base/core/stats.h"
#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {
namespace {

constexpr int kRanks = 2;
constexpr int kBatches = 101;
constexpr int kPairs = 7;
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
  const void* input() const {
    return shared_in ? shared_in.get() : static_cast<const void*>(in.data());
  }
  void* output() { return shared_out ? shared_out.get() : static_cast<void*>(out.data()); }
};

// The mean time of one call.
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

struct TunedCall {
  TestLayout layout = TestLayout::kShm;
  std::size_t bytes = 0;
  bool is_registered = false;
};

struct Medians {
  double on_s = 0;
  double off_s = 0;
};

// The measurement of one rank in a pair of worlds.
Medians take_turns(Communicator& watched, Communicator& bare, const TunedCall& given) {
  Buffers ones = Buffers::make(watched, given.bytes, given.is_registered);
  Buffers others = Buffers::make(bare, given.bytes, given.is_registered);
  // The ranks agree on how many calls a batch has.
  double once = time_batch(watched, ones, given.bytes, 20).value;
  (void)watched.all_reduce(&once, &once, 1, DataType::kF64, ReduceOp::kMax).wait();
  const int calls = std::clamp(static_cast<int>(kBatchTime.value / once), 1, 1000);
  std::vector<double> on;
  std::vector<double> off;
  for (int batch = 0; batch < kBatches; ++batch) {
    if (batch % 2 == 0) on.push_back(time_batch(watched, ones, given.bytes, calls).value);
    off.push_back(time_batch(bare, others, given.bytes, calls).value);
    if (batch % 2 != 0) on.push_back(time_batch(watched, ones, given.bytes, calls).value);
  }
  return {median(on), median(off)};
}

// args: layout, bytes, registered.
void watch_overhead(benchmark::State& state) {
  const TunedCall given{.layout = static_cast<TestLayout>(state.range(0)),
                        .bytes = static_cast<std::size_t>(state.range(1)),
                        .is_registered = state.range(2) != 0};
  std::vector<double> on;
  std::vector<double> off;
  std::vector<double> ratios;
  for ([[maybe_unused]] auto _ : state) {
    LocalExchange exchange(kRanks);
    const auto errors = run_ranks(
        given.layout, kRanks,
        [&](Communicator& watched) {
          const int rank = watched.rank().value;
          CommunicatorOptions options = test_options(given.layout, rank);
          options.watch = false;
          options.measure = Measure::kNothing;
          auto bare = Communicator::connect(watched.rank(), kRanks, exchange.of(rank), options);
          if (!bare) return state.SkipWithError(bare.error().message.c_str());
          const Medians seen = take_turns(watched, *bare, given);
          if (rank != 0) return;
          on.push_back(seen.on_s);
          off.push_back(seen.off_s);
          ratios.push_back(seen.on_s / seen.off_s);
        },
        [](int, CommunicatorOptions& options) { options.measure = Measure::kNothing; });
    for (const auto& error : errors)
      if (error) state.SkipWithError(error->message.c_str());
  }
  if (ratios.empty()) return;
  state.counters["on_us"] = median(on) * 1e6;
  state.counters["off_us"] = median(off) * 1e6;
  state.counters["overhead_percent"] = (median(ratios) - 1) * 100;
}

void sizes(benchmark::internal::Benchmark* bench) {
  for (const long long registered : {0, 1})
    for (const long long bytes : {1LL << 10, 64LL << 10, 256LL << 10, 1LL << 20, 16LL << 20})
      bench->Args({static_cast<long long>(TestLayout::kShm), bytes, registered});
  for (const long long bytes : {64LL << 10, 1LL << 20})
    bench->Args({static_cast<long long>(TestLayout::kTcp), bytes, 0});
}

BENCHMARK(watch_overhead)
    ->ArgNames({"tcp", "bytes", "registered"})
    ->Apply(sizes)
    ->Iterations(kPairs)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace regatta::comm
