// simulate/test_cluster.h: a small cluster, for tests.
#pragma once

#include <string>

#include "regatta/model/topo/cluster.h"

namespace regatta::simulate {

// Servers with `devices` devices and as many NICs of 50 GB/s, each on its own rail; two servers to
// a leaf, two spines, 1 us for each link; 200 GB/s and 1 us inside a server.
inline topo::Cluster test_cluster(int servers, int devices) {
  topo::Cluster cluster;
  cluster.name = "test";
  topo::ServerType type{
      .name = "one", .device_count = devices, .nic_count = devices, .nic_rate = {50e9}};
  type.intra = {.kind = topo::IntraKind::kNvlink, .bandwidth = {200e9}, .latency = {1e-6}};
  cluster.server_types["one"] = type;
  cluster.fabric = {.tiers = 2,
                    .rails = devices,
                    .servers_per_leaf = 2,
                    .spines = 2,
                    .uplink = {50e9},
                    .hop_latency = {1e-6}};
  for (int server = 0; server < servers; ++server)
    cluster.servers.push_back({.name = "s" + std::to_string(server), .type = "one"});
  return cluster;
}

}  // namespace regatta::simulate
