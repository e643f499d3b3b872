// fuzz/pairs_fuzz.cc: any bytes as a file of pairs.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/test_fabric.h"
#include "regatta/network/fabric/traffic.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): one function
  static const topo::Cluster cluster = fabric::TestFabric::cluster_of(8, 2, {1e9});
  static const topo::Graph graph = build_graph(cluster);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto pairs = fabric::parse_pairs(cluster, graph, 2, text, "fuzz.txt");
  if (!pairs) {
    REGATTA_CHECK(pairs.error().message.rfind("fuzz.txt:", 0) == 0);
    return 0;
  }
  REGATTA_CHECK(!pairs->pairs.empty() && pairs->ports.size() == 2 * pairs->pairs.size());
  for (const fabric::NicPair& pair : pairs->pairs)
    REGATTA_CHECK(graph.links[pair.from.index()].a_nic >= 0 && pair.from != pair.to);
  return 0;
}
