// fabric/design.h: a fabric for a number of GPUs: its tiers, switches and cables, computed from the
// capacity of a switch chip. Rail-optimised CLOS: each GPU has a NIC, GPU i of all servers of a
// block is cabled to leaf i of the block. Shapes: Leiserson, "Fat-trees", 1985 (tiers); Qian et
// al., "Alibaba HPN", SIGCOMM 2024 (planes); Wang et al., "Rail-only", arXiv 2307.12169 (rails
// alone).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"

namespace regatta::fabric {

struct DesignRequest {
  int gpus = 0;
  int gpus_per_server = 8;
  int domain_servers = 1;       // joined to a scale-up domain; a block holds whole domains
  int rails = 8;                // divides gpus_per_server
  int planes = 1;               // ports of a NIC, each into a fabric of its own
  bool joins_rails = true;      // false: servers forward between rails, switches do not
  BytesPerSecond chip;          // of every switch, per direction
  BytesPerSecond port;          // of a NIC, per direction
  BytesPerSecond uplink;        // between switches; 0: as `port`
  double oversubscription = 1;  // of leaves, at most: capacity below over capacity above
  double spine_oversubscription = 1;
  int servers_per_leaf = 0;  // 0: as many as fit, evenly spread
  int least_tiers = 1;       // 1 to 3
};

struct Design {
  DesignRequest request;  // with defaults filled in
  topo::Fabric fabric;    // for a cluster of one NIC for each port (docs/formats/cluster.md)
  int servers = 0;
  int blocks = 0;  // of servers that share their leaves
  int groups = 1;  // of blocks that share their spines
  // In all blocks and groups.
  int leaves = 0;
  int spines = 0;
  int super_spines = 0;
  // Cables from servers to leaves, leaves to spines, spines to super-spines.
  long long server_cables = 0;
  long long leaf_cables = 0;
  long long spine_cables = 0;
  // Free ports of full switches: of leaves at the rate of NICs, else of uplinks.
  int leaf_free = 0;
  int spine_free = 0;
  int super_free = 0;
  // The most GPUs that this shape can grow to by new switches and cables, with all present cables
  // kept, while its own switches have free ports.
  long long gpus_most = 0;
};

// The fewest tiers that carry so many GPUs, then the fewest switches with the same cabling for all
// switches of a tier. Fails with kInvalidInput, naming the value and the nearest possible one.
Result<Design> design_fabric(const DesignRequest& request);

// The design as a cluster named `name`, whose servers have GPUs of `device` (a name of
// topo/presets.h), and as the text of a cluster file.
topo::Cluster cluster_of(const Design& design, const std::string& name, const std::string& device);
std::string cluster_text(const Design& design, const std::string& name, const std::string& device);

// A published fabric as a request without the number of GPUs. `name` is one of "aipod",
// "dual-plane", "rail-only" and "megascale".
DesignRequest published_design(const std::string& name);
std::vector<std::string> published_designs();

// The cable map, by which a fabric is built: which port is cabled to which.

struct CableEnd {
  std::string_view device;  // "s0", "leaf3"
  std::string port;         // "nic2" of a server; "17" of a switch: from 1, downlinks first
};

struct CableEntry {
  CableEnd low;
  CableEnd high;
  BytesPerSecond rate;
  std::string_view kind;   // "server-leaf", "leaf-spine", "spine-super"
  std::string_view label;  // unique: the name of the link
};

// Calls `take` for each cable of the graph in the order of its links. The entry lives until `take`
// returns.
void for_each_cable(const topo::Graph& graph, const std::function<void(const CableEntry&)>& take);

// The heading of the table and a line of it: device,port,device,port,rate,kind,label.
std::string cable_heading();
std::string cable_line(const CableEntry& cable);

}  // namespace regatta::fabric
