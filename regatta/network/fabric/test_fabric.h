// fabric/test_fabric.h: a CLOS of one NIC per server, for tests and comparisons.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {

struct TestFabric {
  // `servers` with one NIC, `servers_per_leaf` spines; each link has 1 us.
  TestFabric(int servers, int servers_per_leaf, BytesPerSecond rate)
      : graph(build_graph(cluster_of(servers, servers_per_leaf, rate))),
        routes(graph),
        d_mod_k(graph),
        links(links_of(graph)) {
    for (int server = 0; server < servers; ++server)
      nics.push_back(nic_link(graph, ServerId{server}, 0));
  }

  static topo::Cluster cluster_of(int servers, int servers_per_leaf, BytesPerSecond rate) {
    topo::Cluster cluster;
    topo::ServerType type{.name = "one", .device_count = 1, .nic_count = 1, .nic_rate = rate};
    cluster.server_types["one"] = type;
    cluster.fabric = {.tiers = 2,
                      .servers_per_leaf = servers_per_leaf,
                      .spines = servers_per_leaf,
                      .uplink = rate,
                      .hop_latency = {1e-6}};
    for (int server = 0; server < servers; ++server)
      cluster.servers.push_back({.name = "s" + std::to_string(server), .type = "one"});
    return cluster;
  }

  // The same with a third tier: groups of `leaves` leaves, and super-spines above them.
  static topo::Cluster three_tiers_of(int servers, int servers_per_leaf, int leaves,
                                      int super_spines, BytesPerSecond rate) {
    topo::Cluster cluster = cluster_of(servers, servers_per_leaf, rate);
    cluster.fabric.tiers = 3;
    cluster.fabric.leaves_per_group = leaves;
    cluster.fabric.super_spines = super_spines;
    cluster.fabric.super_uplink = rate;
    return cluster;
  }

  // A path, with the spine chosen by the destination.
  std::uint32_t path(std::uint32_t from, std::uint32_t to) {
    const auto path = routes.path(nics[from], nics[to], d_mod_k.to(to));
    REGATTA_CHECK(path.has_value());
    return paths.add(*path);
  }

  topo::Graph graph;
  Routes routes;
  DModKNextHop d_mod_k;
  Links links;
  Paths paths;
  std::vector<LinkId> nics;  // per server
};

}  // namespace regatta::fabric
