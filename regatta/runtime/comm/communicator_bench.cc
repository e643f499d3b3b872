// Bandwidth and latency of collectives between threads of one process: busbw as nccl-tests defines
// it, all_reduce S/t * 2(p-1)/p, send S/t. Beside them a plain copy.
#include <cstddef>
#include <optional>
#include <vector>

#include <benchmark/benchmark.h>

#include "regatta/model/collective/streamed_copy.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {
namespace {

// Tells that not all ranks could connect.
void note(const std::vector<std::optional<Error>>& errors, benchmark::State& state) {
  for (const auto& error : errors)
    if (error) state.SkipWithError(error->message.c_str());
}

// The limit of the memory: every thread copies its own 64 MiB past the caches.
void copy(benchmark::State& state) {
  const std::vector<std::byte> from(std::size_t{64} << 20, std::byte{1});
  std::vector<std::byte> to(from.size());
  for ([[maybe_unused]] auto _ : state)
    move_bytes(to.data(), from.data(), from.size(), StoreMode::kNonTemporal);
}
BENCHMARK(copy)->Threads(1)->Threads(2)->UseRealTime()->Unit(benchmark::kMillisecond);

// args: layout, ranks, bytes, whether in the deterministic mode.
void all_reduce(benchmark::State& state) {
  const auto layout = static_cast<TestLayout>(state.range(0));
  const auto ranks = static_cast<int>(state.range(1));
  const auto bytes = static_cast<std::size_t>(state.range(2));
  const auto rounds = static_cast<long long>(state.max_iterations);
  const bool is_deterministic = state.range(3) != 0;
  const auto body = [&](Communicator& world) {
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
  };
  note(run_ranks(
           layout, ranks, body,
           [&](int, CommunicatorOptions& options) { options.deterministic = is_deterministic; }),
       state);
  const double moved = 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes);
  state.counters["busbw_Bps"] =
      benchmark::Counter(moved * static_cast<double>(rounds), benchmark::Counter::kIsRate);
}

// With S bytes per rank, algbw is S/t.
template <typename Exchange>
void exchange(benchmark::State& state, const Exchange& once) {
  const auto layout = static_cast<TestLayout>(state.range(0));
  const auto ranks = static_cast<int>(state.range(1));
  const auto bytes = static_cast<std::size_t>(state.range(2));
  const auto rounds = static_cast<long long>(state.max_iterations);
  const auto body = [&](Communicator& world) {
    std::vector<std::byte> in(bytes, std::byte{1});
    std::vector<std::byte> out(bytes);
    const std::vector<std::size_t> counts(static_cast<std::size_t>(ranks),
                                          bytes / static_cast<std::size_t>(ranks));
    const auto move = [&] {
      const Status status = once(world, in.data(), out.data(), counts).wait();
      if (!status) state.SkipWithError(status.error().message.c_str());
    };
    move();
    if (world.rank().value == 0) {
      for ([[maybe_unused]] auto _ : state)
        move();
    } else {
      for (long long i = 0; i < rounds; ++i)
        move();
    }
  };
  note(run_ranks(layout, ranks, body), state);
  state.SetBytesProcessed(rounds * static_cast<long long>(bytes));
}

using Counts = std::vector<std::size_t>;

void all_to_all(benchmark::State& state) {
  exchange(state, [](Communicator& world, const void* in, void* out, const Counts& counts) {
    return world.all_to_all(in, out, counts[0], DataType::kU8);
  });
}

void all_to_all_v(benchmark::State& state) {
  exchange(state, [](Communicator& world, const void* in, void* out, const Counts& counts) {
    return world.all_to_all_v(in, {counts}, out, {counts}, DataType::kU8);
  });
}

// The sends that all_to_all_v replaces.
void grouped_sends(benchmark::State& state) {
  exchange(state, [](Communicator& world, const void* in, void* out, const Counts& counts) {
    return group_calls([&] {
      for (int peer = 0; peer < world.world_size(); ++peer) {
        const std::size_t at = counts[0] * static_cast<std::size_t>(peer);
        send_recv(world, {static_cast<const std::byte*>(in) + at, counts[0], Rank{peer}},
                  {static_cast<std::byte*>(out) + at, counts[0], Rank{peer}}, DataType::kU8);
      }
    });
  });
}

constexpr long long kShm = static_cast<long long>(TestLayout::kShm);
constexpr long long kTcp = static_cast<long long>(TestLayout::kTcp);

BENCHMARK(all_reduce)
    ->ArgNames({"tcp", "ranks", "bytes", "deterministic"})
    ->ArgsProduct({{kShm, kTcp}, {2, 4}, {1 << 10, 64 << 10, 1 << 20}, {0, 1}})
    ->Iterations(300)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(all_reduce)
    ->ArgNames({"tcp", "ranks", "bytes", "deterministic"})
    ->ArgsProduct({{kShm, kTcp}, {2, 4}, {64 << 20}, {0, 1}})
    ->Iterations(8)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void with_exchange_sizes(benchmark::internal::Benchmark* one) {
  one->ArgNames({"tcp", "ranks", "bytes"});
  for (const long long layout : {kShm, kTcp})
    for (const long long bytes : {1LL << 10, 64LL << 10, 4LL << 20})
      one->Args({layout, 4, bytes});
  one->Iterations(200)->UseRealTime()->Unit(benchmark::kMicrosecond);
}
BENCHMARK(all_to_all)->Apply(with_exchange_sizes);
BENCHMARK(all_to_all_v)->Apply(with_exchange_sizes);
BENCHMARK(grouped_sends)->Apply(with_exchange_sizes);

}  // namespace
}  // namespace regatta::comm
