// topo/fabric_summary.h: a fabric in figures: its parts and its capacity.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"

namespace regatta::topo {

// From server 0 to the nearest server of a kind, on rail 0.
struct Distance {
  std::string to;  // "same domain", "same leaf", "other leaf", "other group"
  int hops = 0;    // links crossed
  Seconds latency;
  BytesPerSecond narrowest;  // the slowest link of the path, per direction
};

struct FabricSummary {
  int tiers = 0;
  int rails = 1;
  int planes = 1;
  int servers = 0;
  int devices = 0;
  int domains = 0;         // whose links join several servers; 0: there are none
  int domain_devices = 0;  // of the largest
  int leaves = 0;
  int spines = 0;
  int super_spines = 0;
  int groups = 0;
  int server_links = 0;
  int leaf_uplinks = 0;
  int spine_uplinks = 0;
  // Capacity below the worst switch of a tier over its capacity upwards; 1 = none, 0 = no uplinks.
  double leaf_oversubscription = 0;
  double spine_oversubscription = 0;
  // Between two halves of the servers, per direction: half of what the narrowest tier carries
  // (all NICs; all leaf uplinks when there are two or more blocks of leaves; all spine uplinks when
  // there are two or more groups). Exact for an even number of full leaves.
  BytesPerSecond bisection;
  std::vector<Distance> distances;
};

FabricSummary summarize_fabric(const Cluster& cluster, const Graph& graph);

}  // namespace regatta::topo
