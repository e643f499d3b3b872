// simulate/simulated_network.h: a cluster in the simulator: cables, routes, and the links inside
// its servers and its scale-up domains.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::simulate {

struct SimulatedNetwork {
  topo::Cluster cluster;
  topo::Graph graph;
  fabric::Routes routes;
  fabric::DModKNextHop d_mod_k;
  std::vector<std::uint32_t> seeds;  // of hashing, by NodeId
  // Both directions of every cable (fabric::number_of()), then out of each device and into it, in
  // rank order.
  fabric::Links links;
  std::vector<topo::DeviceRef> devices;                  // in rank order
  std::vector<std::uint32_t> first_device;               // of each server, as a rank
  std::vector<int> domain_of;                            // by server: topo::scale_up_domains()
  std::vector<std::vector<std::uint32_t>> domain_ranks;  // by domain, ascending

  explicit SimulatedNetwork(topo::Cluster of);

  std::uint32_t rank_of(topo::DeviceRef device) const {
    return first_device[device.server.index()] + static_cast<std::uint32_t>(device.index);
  }
  // Those of the rank's server, or of all servers that links join to it.
  const std::vector<std::uint32_t>& ranks_joined_to(std::uint32_t rank) const {
    return domain_ranks[static_cast<std::size_t>(domain_of[devices[rank].server.index()])];
  }
  bool are_joined(std::uint32_t a, std::uint32_t b) const {
    return domain_of[devices[a].server.index()] == domain_of[devices[b].server.index()];
  }
  std::uint32_t link_out_of(std::uint32_t rank) const {
    return static_cast<std::uint32_t>(2 * graph.links.size()) + 2 * rank;
  }
  std::uint32_t link_into(std::uint32_t rank) const { return link_out_of(rank) + 1; }
  // The link's name in messages and pages: "leaf0-spine1 down", "s0/1 out".
  std::string link_name(std::uint32_t link) const;
  // The NIC that a device sends through; kInvalidInput where its server has none.
  Result<LinkId> nic(topo::DeviceRef device) const;
};

// Parses "s0/1". Fails with kInvalidInput naming the nearest server.
Result<topo::DeviceRef> parse_device(const topo::Cluster& cluster, const std::string& text);

}  // namespace regatta::simulate
