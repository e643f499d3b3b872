// probe/test_clusters.h: clusters for the tests of the prober and the locator.
#pragma once

#include <string>
#include <vector>

#include "regatta/model/topo/addresses.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::probe {

struct Shape {
  int servers = 4;
  int nics = 1;
  int rails = 1;
  int servers_per_leaf = 2;
  int spines = 2;  // 0: leaves only
  int leaves_per_group = 0;
  int super_spines = 0;
};

inline topo::Cluster cluster_of(const Shape& shape, const std::string& name = "shape") {
  topo::Cluster cluster;
  cluster.name = name;
  cluster.server_types["one"] = {.name = "one",
                                 .device = {},
                                 .device_count = shape.nics,
                                 .intra = {},
                                 .nic_count = shape.nics,
                                 .nic_rate = {1e9},
                                 .source = {}};
  cluster.fabric = {.tiers = shape.super_spines > 0 ? 3
                             : shape.spines > 0     ? 2
                                                    : 1,
                    .rails = shape.rails,
                    .servers_per_leaf = shape.servers_per_leaf,
                    .spines = shape.spines,
                    .leaves_per_group = shape.leaves_per_group,
                    .super_spines = shape.super_spines,
                    .uplink = {1e9},
                    .super_uplink = {1e9},
                    .hop_latency = {1e-6}};
  for (int server = 0; server < shape.servers; ++server)
    cluster.servers.push_back({.name = "s" + std::to_string(server), .type = "one", .address = {}});
  return cluster;
}

struct Fabric {
  explicit Fabric(const Shape& shape)
      : cluster(cluster_of(shape)),
        graph(build_graph(cluster)),
        routes(graph),
        seeds(topo::hash_seeds(cluster, graph)) {}

  topo::Cluster cluster;
  topo::Graph graph;
  fabric::Routes routes;
  std::vector<std::uint32_t> seeds;
};

}  // namespace regatta::probe
