// Cost of one window of all servers for their collector: all report lines, and one evaluation. The
// parameter is the number of servers; at a period of 10 ms there are 33 such windows a second.
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "regatta/base/core/result.h"
#include "regatta/network/probe/collector.h"
#include "regatta/network/probe/test_clusters.h"

namespace regatta::probe {
namespace {

constexpr Seconds kWindow{0.03};

void bm_window_of_all_servers(benchmark::State& state) {
  const int servers = static_cast<int>(state.range(0));
  const Fabric fabric({.servers = servers, .servers_per_leaf = 32, .spines = 16});
  const Matrix matrix = plan_matrix(fabric.graph, fabric.routes, fabric.seeds);
  Collector collector(fabric.graph, matrix, Seconds{0.01});
  diag::Window window = 1'000'000;
  const auto now = [&] { return static_cast<double>(window + 2) * kWindow; };
  collector.begin(now());
  for (auto _ : state) {
    ++window;
    const std::string line = "w " + std::to_string(window) + " 120 1 0 0";
    for (int server = 0; server < servers; ++server)
      REGATTA_CHECK(collector.accept(NodeId{server}, line, now()).has_value());
    benchmark::DoNotOptimize(collector.locate(now()));
  }
  state.SetItemsProcessed(state.iterations() * servers);
}
BENCHMARK(bm_window_of_all_servers)->Arg(64)->Arg(512)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace regatta::probe
