#include <benchmark/benchmark.h>

#include "regatta/network/fabric/test_fabric.h"
#include "regatta/network/heal/internal/decide.h"
#include "regatta/network/heal/internal/tables.h"

namespace regatta::heal {
namespace {

// 2,048 servers of 8 NICs on 8 rails: 256 leaves, 256 spines, 1,024 super-spines.
topo::Graph graph_of_16k() {
  topo::Cluster cluster = fabric::TestFabric::three_tiers_of(2048, 64, 64, 1024, {50e9});
  cluster.server_types["one"].nic_count = 8;
  cluster.fabric.rails = 8;
  return build_graph(cluster);
}

// A spine's link to a leaf breaks: the decision, and what changes at every switch.
void bm_decide(benchmark::State& state) {
  const topo::Graph graph = graph_of_16k();
  const FabricPaths paths(graph);
  const Tables tables(paths);
  std::uint32_t link = 0;
  while (graph.nodes[paths.start_of[link].index()].kind != topo::NodeKind::kSpine)
    ++link;
  const std::vector<Fault> faults = {{Place::kLink, link, {}, Harm::kBlackHole}};
  for (auto _ : state)
    benchmark::DoNotOptimize(tables.changes(decide(paths, faults)));
}
BENCHMARK(bm_decide)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace regatta::heal
