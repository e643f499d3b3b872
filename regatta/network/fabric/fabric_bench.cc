#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/port_plan.h"
#include "regatta/network/fabric/test_fabric.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {
namespace {

// 2,048 servers of 8 NICs on 8 rails: 256 leaves, 256 spines, 1,024 super-spines.
topo::Graph graph_of_16k() {
  topo::Cluster cluster = TestFabric::three_tiers_of(2048, 64, 64, 1024, {50e9});
  cluster.server_types["one"].nic_count = 8;
  cluster.fabric.rails = 8;
  return build_graph(cluster);
}

void bm_routes(benchmark::State& state) {
  const topo::Graph graph = graph_of_16k();
  for (auto _ : state)
    benchmark::DoNotOptimize(Routes(graph));
}
BENCHMARK(bm_routes)->Unit(benchmark::kMillisecond);

void bm_find_dependency_cycle(benchmark::State& state) {
  const topo::Graph graph = graph_of_16k();
  const Routes routes(graph);
  for (auto _ : state)
    benchmark::DoNotOptimize(find_dependency_cycle(graph, routes));
}
BENCHMARK(bm_find_dependency_cycle)->Unit(benchmark::kMillisecond);

// Fails each link and each switch.
void bm_check_single_failures(benchmark::State& state) {
  const topo::Graph graph = graph_of_16k();
  std::size_t failures = 0;
  for (auto _ : state)
    failures = check_failures(graph).checked;
  state.counters["failures"] = static_cast<double>(failures);
}
BENCHMARK(bm_check_single_failures)->Unit(benchmark::kMillisecond);

// Each server of n leaves with n servers sends to another one, over n spines.
void bm_plan_ports(benchmark::State& state) {
  const auto n = static_cast<int>(state.range(0));
  const TestFabric fabric(n * n, n, {50e9});
  std::vector<std::uint32_t> seeds(fabric.graph.nodes.size());
  std::iota(seeds.begin(), seeds.end(), 1U);
  std::vector<std::uint32_t> to(fabric.nics.size());
  std::iota(to.begin(), to.end(), 0U);
  std::ranges::shuffle(to, std::mt19937(1));
  std::vector<PlannedConnection> all;
  for (std::uint32_t from = 0; from < to.size(); ++from)
    all.push_back({fabric.nics[from],
                   fabric.nics[to[from]],
                   {.from = from, .to = to[from], .from_port = 0, .to_port = 4791}});
  PortPlan plan;
  for (auto _ : state)
    plan = plan_ports(fabric.routes, seeds, all);
  state.counters["most"] = plan.most;
  state.counters["by_chance"] = plan.most_by_chance;
}
BENCHMARK(bm_plan_ports)->Arg(8)->Arg(16)->Arg(32)->Unit(benchmark::kMillisecond);

// All-to-all at once over paths that switches hash: nothing is symmetric, each flow ends by itself.
void bm_hashed_all_to_all(benchmark::State& state) {
  const auto n = static_cast<int>(state.range(0));
  const TestFabric fabric(n, 16, {50e9});
  std::vector<std::uint32_t> seeds(fabric.graph.nodes.size());
  std::iota(seeds.begin(), seeds.end(), 1U);
  Paths paths;
  FlowGraph traffic;
  NicPairs pairs;
  add_all_to_all(traffic, static_cast<std::uint32_t>(n), {64 << 20},
                 [&](std::uint32_t from, std::uint32_t to) {
                   const std::uint32_t pair = pairs.add(fabric.nics[from], fabric.nics[to]);
                   const auto path = fabric.routes.path(fabric.nics[from], fabric.nics[to],
                                                        EcmpNextHop{pairs.tuple(pair, 0), seeds});
                   return paths.add(*path);
                 });
  double end = 0;
  for (auto _ : state)
    end = simulate_flows(fabric.links, paths, traffic)->end.value;
  state.counters["end_ms"] = end * 1e3;
}
BENCHMARK(bm_hashed_all_to_all)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace regatta::fabric
