#include <random>

#include <benchmark/benchmark.h>

#include "regatta/network/fabric/internal/packet/test_packet_setup.h"
#include "regatta/network/fabric/packet_simulation.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {
namespace {

void tell(benchmark::State& state, const TestPacketSetup& one, const PacketOptions& options) {
  double crossings = 0;
  double end = 0;
  for (auto _ : state) {
    const auto report = simulate_packets(one.setup(), one.traffic, options);
    crossings += static_cast<double>(report->crossings);
    end = report->end.value;
  }
  state.counters["simulated_ms"] = end * 1e3;
  state.counters["crossings/s"] = benchmark::Counter(crossings, benchmark::Counter::kIsRate);
}

void bm_packets_of_a_ring(benchmark::State& state) {
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  TestPacketSetup one(static_cast<int>(ranks), 8, {50e9});
  add_ring_all_reduce(one.traffic, ranks, {64LL << 20},
                      [&](std::uint32_t from, std::uint32_t to) { return one.pair(from, to); });
  tell(state, one, {});
}
BENCHMARK(bm_packets_of_a_ring)->Arg(16)->Arg(64)->Unit(benchmark::kMillisecond);

// The same, fast-forwarding; the second argument: servers of a leaf.
void bm_mixed_ring(benchmark::State& state) {
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  TestPacketSetup one(static_cast<int>(ranks), static_cast<int>(state.range(1)), {50e9});
  add_ring_all_reduce(one.traffic, ranks, {64LL << 20},
                      [&](std::uint32_t from, std::uint32_t to) { return one.pair(from, to); });
  double end = 0;
  for (auto _ : state)
    end = simulate_mixed(one.setup(), one.traffic)->end.value;
  state.counters["simulated_ms"] = end * 1e3;
}
BENCHMARK(bm_mixed_ring)
    ->Args({16, 8})
    ->Args({64, 8})
    ->Args({1024, 32})
    ->Unit(benchmark::kMillisecond);

// 128 servers, each sends 2 MB to another one, over three tiers of 4 links up each.
void bm_packets_of_a_permutation(benchmark::State& state) {
  TestPacketSetup one(TestFabric::three_tiers_of(128, 4, 4, 16, {50e9}));
  std::vector<std::uint32_t> to(128);
  std::iota(to.begin(), to.end(), 0U);
  std::ranges::shuffle(to, std::mt19937(1));
  for (std::uint32_t from = 0; from < 128; ++from)
    one.traffic.add(one.pair(from, to[from]), {2'000'000});
  tell(state, one, {});
}
BENCHMARK(bm_packets_of_a_permutation)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace regatta::fabric
