// Clusters and traffic for the tests of placements.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/planning/plan/internal/placement/placement_problem.h"

namespace regatta::plan {

// Servers of `devices` GPUs and as many NICs of 50 GB/s, one rail each; leaves of `per_leaf`
// servers whose uplinks carry `leaf_share` of what the servers send, groups of `per_group` leaves
// on each rail (0: two tiers), whose uplinks carry `group_share`.
struct PlacementTestFabric {
  int servers = 8;
  int devices = 8;
  int per_leaf = 4;
  double leaf_share = 0.25;
  int per_group = 0;
  double group_share = 0.25;
};

inline topo::Cluster placement_test_cluster(const PlacementTestFabric& test) {
  topo::Cluster cluster;
  cluster.name = "test";
  const BytesPerSecond nic{50e9};
  topo::ServerType& type = cluster.server_types["gpu"];
  type.name = "gpu";
  type.device_count = test.devices;
  type.nic_count = test.devices;
  type.nic_rate = nic;
  topo::Fabric& fabric = cluster.fabric;
  fabric.tiers = test.servers <= test.per_leaf ? 1 : test.per_group > 0 ? 3 : 2;
  fabric.rails = fabric.tiers == 1 ? 1 : test.devices;
  fabric.servers_per_leaf = test.per_leaf;
  if (fabric.tiers >= 2) {
    fabric.spines = 2;
    fabric.uplink = nic * (test.per_leaf * test.leaf_share / fabric.spines);
  }
  if (fabric.tiers == 3) {
    fabric.leaves_per_group = test.per_group * fabric.rails;
    fabric.super_spines = 4;
    const double servers = test.per_leaf * test.per_group;
    fabric.super_uplink = nic * (test.devices * servers * test.group_share / fabric.super_spines);
  }
  for (int i = 0; i < test.servers; ++i)
    cluster.servers.push_back({.name = "s" + std::to_string(i), .type = "gpu", .address = ""});
  return cluster;
}

// Bytes of a rank in a step, by axis.
struct TestBytes {
  double tp = 1e9;
  double cp = 0;
  double ep = 0;
  double pp = 1e9;
  double dp = 4e9;
};

inline StrategyTraffic test_traffic(const workload::Strategy& strategy, const TestBytes& bytes) {
  StrategyTraffic traffic;
  const auto add = [&](ParallelAxis axis, GroupPattern pattern, int ranks, int stride,
                       double sent) {
    if (ranks > 1 && sent > 0)
      traffic[static_cast<std::size_t>(axis)].lines.push_back({pattern, ranks, stride, sent});
  };
  const int copies = strategy.dp * strategy.cp;
  add(ParallelAxis::kTp, GroupPattern::kRing, strategy.tp, 1, bytes.tp);
  add(ParallelAxis::kCp, GroupPattern::kRing, strategy.cp, strategy.tp, bytes.cp);
  add(ParallelAxis::kEp, GroupPattern::kExchange, strategy.ep, strategy.tp, bytes.ep);
  add(ParallelAxis::kPp, GroupPattern::kChain, strategy.pp, strategy.tp * copies, bytes.pp);
  add(ParallelAxis::kDp, GroupPattern::kRing, copies, strategy.tp, bytes.dp);
  if (strategy.ep > 1)
    add(ParallelAxis::kDp, GroupPattern::kRing, copies / strategy.ep, strategy.tp * strategy.ep,
        bytes.dp);
  return traffic;
}

// All servers but `failed` of them, drawn at random.
inline std::vector<ServerId> remaining_servers(const topo::Cluster& cluster, int failed,
                                               std::mt19937& random) {
  std::vector<ServerId> servers(cluster.servers.size());
  for (std::size_t i = 0; i < servers.size(); ++i)
    servers[i] = {static_cast<int>(i)};
  for (; failed > 0; --failed)
    servers.erase(servers.begin() + static_cast<std::ptrdiff_t>(random() % servers.size()));
  return servers;
}

}  // namespace regatta::plan
