// fabric/internal/packet/test_packet_setup.h: a small fabric and its traffic, for tests and
// comparisons of the packet level.
#pragma once

#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "regatta/network/fabric/packet_simulation.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::fabric {

inline constexpr BytesPerSecond kRate{50e9};  // of the links of most setups

// Draws numbers below a bound.
class RandomIndex {
 public:
  explicit RandomIndex(unsigned seed) : random_(seed) {}
  std::uint32_t operator()(std::uint32_t below) {
    return static_cast<std::uint32_t>(random_() % below);
  }

 private:
  std::mt19937 random_;
};

struct TestPacketSetup {
  // `servers` with one NIC, as many spines as servers to a leaf; each link has 1 us.
  TestPacketSetup(int servers, int servers_per_leaf, BytesPerSecond rate,
                  std::uint32_t connections = 1)
      : TestPacketSetup(TestFabric::cluster_of(servers, servers_per_leaf, rate), connections) {}

  explicit TestPacketSetup(const topo::Cluster& cluster, std::uint32_t connections = 1)
      : graph(build_graph(cluster)), routes(graph), links(links_of(graph)) {
    for (std::size_t server = 0; server < cluster.servers.size(); ++server)
      nics.push_back(nic_link(graph, ServerId{static_cast<int>(server)}, 0));
    pairs.connections = connections;
    draw_seeds(1);
  }

  // The seeds of the switches' hashes.
  void draw_seeds(std::uint32_t seed) {
    seeds.resize(graph.nodes.size());
    for (std::uint32_t& one : seeds)
      one = seed = seed * 1664525U + 1013904223U;
  }

  std::uint32_t pair(std::uint32_t from, std::uint32_t to) {
    return pairs.add(nics[from], nics[to]);
  }
  // Bytes that all servers received.
  double received(const FlowReport& report) const {
    double bytes = 0;
    for (const LinkId nic : nics)
      bytes += report.bytes_of_link[number_of({nic, false})];
    return bytes;
  }
  PacketSetup setup() const { return {graph, routes, seeds, pairs}; }

  topo::Graph graph;
  Routes routes;
  Links links;
  std::vector<LinkId> nics;  // per server
  std::vector<std::uint32_t> seeds;
  NicPairs pairs;
  FlowGraph traffic;
};

}  // namespace regatta::fabric
