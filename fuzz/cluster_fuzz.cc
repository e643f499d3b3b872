// fuzz/cluster_fuzz.cc: any bytes as a cluster file.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/model/topo/fabric_summary.h"
#include "regatta/model/topo/graph.h"
#include "regatta/model/topo/server_matrix.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto cluster = topo::parse_cluster(text, "fuzz.yaml");
  if (!cluster) {
    REGATTA_CHECK(cluster.error().message.rfind("fuzz.yaml:", 0) == 0);
    return 0;
  }
  constexpr std::size_t kSmall = 64;  // larger fabrics are valid but make the fuzzer slow
  if (cluster->servers.size() > kSmall || cluster->fabric.spines > 64) return 0;
  const topo::Graph graph = topo::build_graph(*cluster);
  static_cast<void>(topo::summarize_fabric(*cluster, graph));
  for (const auto& [name, type] : cluster->server_types)
    static_cast<void>(topo::placement_notes(topo::server_matrix(type)));
  if (cluster->fabric.tiers == 0) return 0;
  const ServerId last{static_cast<int>(cluster->servers.size()) - 1};
  REGATTA_CHECK(topo::ecmp_shares(graph, ServerId{0}, 0, last, 0).has_value());
  return 0;
}
