// measure/test_clusters.h: clusters for the tests of measure.
#pragma once

#include <string>

#include "regatta/model/topo/cluster.h"

namespace regatta::measure {

inline topo::Cluster cpu_cluster(int servers, int devices) {
  using namespace regatta::literals;
  topo::Cluster cluster;
  cluster.name = "test";
  topo::ServerType type;
  type.name = "cpu-server";
  type.device.name = "cpu";
  type.device.kind = topo::DeviceKind::kCpu;
  type.device_count = devices;
  type.intra = {topo::IntraKind::kShm, 1_GBps, 1.0_us};
  type.nic_count = 1;
  type.nic_rate = 200_Mbps;
  cluster.server_types[type.name] = type;
  for (int i = 0; i < servers; ++i)
    cluster.servers.push_back({"s" + std::to_string(i), type.name, ""});
  return cluster;
}

// One server of two devices, no network.
inline topo::Cluster two_devices() {
  return cpu_cluster(1, 2);
}

// Four servers of one device, two to a leaf, two spines.
inline topo::Cluster two_leaves() {
  using namespace regatta::literals;
  topo::Cluster cluster = cpu_cluster(4, 1);
  cluster.fabric = {.tiers = 2,
                    .rails = 1,
                    .servers_per_leaf = 2,
                    .spines = 2,
                    .uplink = 100_Mbps,
                    .hop_latency = 5.0_us};
  return cluster;
}

}  // namespace regatta::measure
