#include <benchmark/benchmark.h>

#include "regatta/platform/monitoring/device_table.h"

namespace regatta::monitoring {
namespace {

constexpr int kDevicesOfNode = 8;

control::ClusterTables large_cluster(int nodes) {
  control::ClusterTables tables;
  for (int i = 0; i < nodes; ++i) {
    control::ManagedNode& node = tables.nodes.emplace_back();
    node.facts.devices = kDevicesOfNode;
    node.is_connected = true;
  }
  return tables;
}

void read_all(DeviceTable& table, int nodes, std::uint8_t use) {
  const node_protocol::DeviceReadings readings{
      .devices = 0xff,
      .use = std::vector<std::uint8_t>(kDevicesOfNode, use),
      .memory = std::vector<std::uint8_t>(kDevicesOfNode, use)};
  for (int node = 0; node < nodes; ++node)
    table.take(node, readings);
}

// A second of a cluster in which every device has changed.
void bm_second(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  DeviceTable table("e");
  table.update_layout(large_cluster(nodes));
  std::uint8_t use = 0;
  for (auto _ : state) {
    read_all(table, nodes, use = static_cast<std::uint8_t>((use + 1) % 100));
    table.end_second([](const JobSecond& second) { benchmark::DoNotOptimize(second.used); });
  }
}
BENCHMARK(bm_second)->Arg(10'000)->Unit(benchmark::kMillisecond);

void bm_step(benchmark::State& state) {
  DeviceTable table("e");
  table.update_layout(large_cluster(static_cast<int>(state.range(0))));
  for (auto _ : state)
    table.end_step(1);
}
BENCHMARK(bm_step)->Arg(10'000)->Unit(benchmark::kMillisecond);

void bm_changes(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  DeviceTable table("e");
  table.update_layout(large_cluster(nodes));
  const std::string cursor = table.cursor();
  for (int node = 0; node < nodes; node += 10)
    table.take(node, {.devices = 1, .use = {7}, .memory = {7}});
  for (auto _ : state)
    benchmark::DoNotOptimize(table.changes_since(cursor).use.size());
}
BENCHMARK(bm_changes)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace regatta::monitoring
