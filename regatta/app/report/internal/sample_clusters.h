// report/internal/sample_clusters.h: clusters of many shapes, for the tests of the picture of a
// fabric.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/cluster_yaml.h"

namespace regatta::report {

inline topo::Cluster cluster_of(const std::string& yaml) {
  auto cluster = topo::parse_cluster("name: sample\n" + yaml, "sample.yaml");
  REGATTA_CHECK(cluster.has_value());
  return *std::move(cluster);
}

struct SampleCluster {
  std::string name;
  std::string yaml;  // after its name

  friend std::ostream& operator<<(std::ostream& out, const SampleCluster& sample) {
    return out << sample.name;
  }
};

inline const std::string kTwoCpus =
    "server_types: {cpu-2: {devices: {count: 2, type: cpu}, intra: {kind: shm}, nics: {count: 1, "
    "rate: 200Mbps}}}\n";

// Clusters with every server and every switch drawn.
inline std::vector<SampleCluster> drawn_clusters() {
  return {
      {"one_server", "servers: {count: 1, type: dgx-v100}\n"},
      {"pair", "fabric: {tiers: [leaf]}\nservers: {count: 2, type: dgx-a100-80g}\n"},
      {"lab",
       kTwoCpus +
           "fabric: {tiers: [leaf, spine], servers_per_leaf: 2, spines: 2, uplink: 100Mbps}\n"
           "servers: {count: 4}\n"},
      {"three_tiers",
       kTwoCpus +
           "fabric: {tiers: [leaf, spine, super-spine], servers_per_leaf: 2, leaves_per_group: 2, "
           "spines: 2, uplink: 100Mbps, super_spines: 4, super_uplink: 50Mbps}\n"
           "servers: {count: 8}\n"},
      {"clos_16",
       "fabric: {tiers: [leaf, spine], rails: 8, servers_per_leaf: 8, spines: 8, uplink: 400Gbps}\n"
       "servers: {count: 16, type: dgx-h100}\n"},
      {"uneven",
       "fabric: {tiers: [leaf, spine], rails: 4, servers_per_leaf: 16, spines: 3, uplink: 1Tbps}\n"
       "servers: {count: 37, type: dgx-v100}\n"},
      {"rails_128",
       "fabric: {tiers: [leaf, spine], rails: 8, servers_per_leaf: 16, spines: 16, uplink: "
       "400Gbps}\nservers: {count: 128, type: dgx-h100}\n"},
      {"mixed",
       "fabric: {tiers: [leaf, spine], rails: 2, servers_per_leaf: 3, spines: 2, uplink: 400Gbps}\n"
       "servers:\n"
       "  - {name: a, type: dgx-a100-80g}\n"
       "  - {name: a-server-with-a-very-long-name, type: dgx-v100}\n"
       "  - {name: another-one-with-a-long-name, type: l20-8}\n"
       "  - {name: b, type: l20-8}\n"},
      {"many_devices",
       "server_types: {fat: {devices: {count: 64, type: t4}, nics: {count: 2, rate: 100Gbps}}}\n"
       "fabric: {tiers: [leaf]}\nservers: {count: 3}\n"},
      {"tall", kTwoCpus + "fabric: {tiers: [leaf]}\nservers: {count: 100}\n"},
      {"racks",
       "fabric: {tiers: [leaf, spine], rails: 4, servers_per_leaf: 36, spines: 8, uplink: "
       "400Gbps}\nservers: {count: 70, type: gb200-nvl72}\n"},
      {"no_nics",
       "server_types: {none: {devices: {count: 3, type: t4}, nics: {count: 0}}}\n"
       "servers: {count: 1}\n"},
  };
}

// Clusters with some servers counted.
inline std::vector<SampleCluster> counted_clusters() {
  return {
      {"many_blocks",
       "fabric: {tiers: [leaf, spine], rails: 8, servers_per_leaf: 32, spines: 64, uplink: "
       "200Gbps}\nservers: {count: 1024, type: dgx-a100-80g}\n"},
      {"one_server_a_leaf",
       "fabric: {tiers: [leaf, spine], rails: 8, servers_per_leaf: 1, spines: 4, uplink: 400Gbps}\n"
       "servers: {count: 128, type: dgx-h100}\n"},
      {"many_groups",
       "fabric: {tiers: [leaf, spine, super-spine], rails: 8, servers_per_leaf: 16, "
       "leaves_per_group: 64, spines: 16, uplink: 400Gbps, super_spines: 256}\n"
       "servers: {count: 2048, type: dgx-h100}\n"},
      {"one_leaf_of_many", "fabric: {tiers: [leaf]}\nservers: {count: 32768, type: l20-8}\n"},
      {"many_spines",
       kTwoCpus + "fabric: {tiers: [leaf, spine], servers_per_leaf: 4, spines: 300, uplink: "
                  "1Gbps}\nservers: {count: 8}\n"},
  };
}

}  // namespace regatta::report
