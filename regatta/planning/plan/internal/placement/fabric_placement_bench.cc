// Placements on thousands of servers with failed ones among them: the time on one core, what the
// step waits for the network against the bound, rank order and a random order.
#include <algorithm>
#include <random>

#include <benchmark/benchmark.h>

#include "regatta/planning/plan/placement.h"
#include "regatta/planning/plan/test_placement_fabrics.h"

namespace regatta::plan {
namespace {

// Argument 0: servers, of which 5 % failed; 1: oversubscription of leaves; 2: of groups, 0: two
// tiers; 3: which job.
struct Setting {
  topo::Cluster cluster;
  workload::Strategy strategy;
  TestBytes bytes;
};

Setting setting_of(const benchmark::State& state) {
  const int servers = static_cast<int>(state.range(0));
  PlacementTestFabric test{.servers = servers, .per_leaf = 16};
  test.leaf_share = 1.0 / static_cast<double>(state.range(1));
  if (state.range(2) > 0) {
    test.per_group = 8;
    test.group_share = test.leaf_share / static_cast<double>(state.range(2));
  }
  Setting setting{.cluster = placement_test_cluster(test)};
  const int used = servers * 15 / 16;
  workload::Strategy& strategy = setting.strategy;
  strategy.tp = 8;
  if (state.range(3) == 0) {  // dense: gradients and boundaries
    strategy.pp = 16;
    strategy.dp = used / strategy.pp;
  } else if (state.range(3) == 1) {  // long sequences: a ring of four servers besides
    strategy.pp = 8;
    strategy.cp = 4;
    strategy.dp = used / strategy.pp / strategy.cp;
    setting.bytes.cp = 8e9;
  } else {  // experts on eight servers
    strategy.pp = 8;
    strategy.tp = 1;
    strategy.ep = 64;
    strategy.dp = used * 8 / strategy.pp;
    setting.bytes.ep = 8e9;
  }
  return setting;
}

double random_time(const PlacementProblem& network, std::mt19937& random) {
  double sum = 0;
  constexpr int kDraws = 10;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<int> places;
    for (std::size_t leaf = 0; leaf < network.leaves.size(); ++leaf)
      places.insert(places.end(), static_cast<std::size_t>(network.leaves[leaf].capacity()),
                    static_cast<int>(leaf));
    std::shuffle(places.begin(), places.end(), random);
    places.resize(static_cast<std::size_t>(network.slots));
    sum += placement_time(network, places).total.value;
  }
  return sum / kDraws;
}

void bm_place_on_fabric(benchmark::State& state) {
  std::mt19937 random(2);
  const Setting setting = setting_of(state);
  const StrategyTraffic traffic = test_traffic(setting.strategy, setting.bytes);
  const auto servers =
      remaining_servers(setting.cluster, static_cast<int>(state.range(0)) / 20, random);
  const FabricPlacementInput input{.cluster = setting.cluster,
                                   .strategy = setting.strategy,
                                   .traffic = traffic,
                                   .servers = servers};
  FabricPlacement placed;
  for (auto _ : state)
    placed = *place_on_fabric(input);
  const int slots = setting.strategy.world_size() / 8;
  const double time = placed.time.total.value;
  state.counters["ms"] = time * 1e3;
  state.counters["of_bound"] = time / placed.lower_bound.value;
  state.counters["rank_order"] = placed.rank_order.total.value / time;
  state.counters["random"] =
      random_time(placement_problem(setting.cluster, servers, traffic, slots, 1), random) / time;
  state.counters["tried"] = static_cast<double>(placed.evaluations);
}
BENCHMARK(bm_place_on_fabric)
    ->Unit(benchmark::kMillisecond)
    ->ArgsProduct({{1024}, {1, 2, 4, 8}, {0, 2}, {0, 1, 2}})
    ->Args({4096, 4, 2, 0});

}  // namespace
}  // namespace regatta::plan
