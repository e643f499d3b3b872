// lab/internal/blueprint.h: what has to be built for a cluster: nodes, cables with addresses and
// shapes, routes, device shares. A function of the cluster alone; internal/network.h builds it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/netlink.h"
#include "regatta/model/topo/cluster.h"

namespace regatta::lab {

// One end of a cable.
struct Port {
  NodeId node;
  std::string interface;  // "nic0" on servers, "port3" on switches
  std::string address;    // IPv4; the two ends of a cable share a /31
};

struct Cable {
  std::string name;  // as topo::Link
  Port a;
  Port b;
  BytesPerSecond rate;
};

struct Hop {
  LinkId cable;
  std::string interface;
  std::string gateway;

  bool operator==(const Hop&) const = default;
};

struct Route {
  NodeId node;
  std::string destination;  // the address of one NIC
  LinkId last;              // that NIC's cable
  std::vector<Hop> hops;
};

struct BlueprintNode {
  std::string name;
  bool is_switch = false;
  std::uint32_t hash_seed = 0;     // different on every node: equal seeds polarise a CLOS
  std::vector<double> cpu_shares;  // per device of a server, of one core
};

struct Blueprint {
  std::string name;
  std::vector<BlueprintNode> nodes;  // as topo::Graph, servers first
  std::vector<Cable> cables;         // as topo::Graph
  std::vector<Route> routes;
  std::vector<std::vector<std::string>> nic_addresses;  // per server
  std::string description;  // equal for clusters that would be built alike
};

// `cores`: of this machine, divided among the devices that name no share of their own. Fails with
// kInvalidInput when the cluster has real servers, a name that is no file name, or more cables than
// there are addresses.
Result<Blueprint> make_blueprint(const topo::Cluster& cluster, int cores);

// The largest IP packet of a cable: large frames cost a software fabric less.
inline constexpr int kMtu = 9000;

// The shaping of a cable's end. The burst holds one packet, so that a message after a pause takes
// its size over the rate (with 64 KiB the first 64 KiB of each message would be free); the queue
// of 40 ms lets TCP fill the link without seconds of waiting.
os::EgressShape shape_for(BytesPerSecond rate);

}  // namespace regatta::lab
