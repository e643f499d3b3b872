// fabric/group_score.h: how well servers lie together on a fabric, whatever they run: what a
// scheduler compares sets of free servers by, and chooses them with. Below one set of leaves first,
// then in one group, then across groups: Baidu AIPod's network-aware scheduling. Where the traffic
// is known, plan/fabric_placement.h does better.
#pragma once

#include <span>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/cluster.h"

namespace regatta::fabric {

struct ServerGroupScore {
  // Of all pairs of servers: below the same leaves, below others of the same group, across groups.
  double same_leaf = 1;
  double same_group = 0;
  double across = 0;
  double links = 0;  // that a pair crosses from rail to the same rail, mean: 2, 4, 6
  // Of the hops of a ring over the servers in this order.
  int leaf_hops = 0;   // that leave a set of leaves
  int group_hops = 0;  // of these, that leave a group
  // Of the ring's connections, one for each NIC of a hop: how many share an uplink of a leaf, or
  // one of the spines of a group, with another one when each takes any of them by chance.
  double collisions = 0;
};

// Lower is better: fewer links between pairs first, then fewer collisions.
bool is_better(const ServerGroupScore& one, const ServerGroupScore& other);

// Of servers of the cluster, in the order of a ring; each once.
ServerGroupScore score_servers(const topo::Cluster& cluster, std::span<const ServerId> servers);

// Of hops from server to server that are sent over at the same time, one connection each.
struct ServerHop {
  ServerId from;
  ServerId to;
};
struct HopScore {
  int hops = 0;
  // Of these: inside a server, below one set of leaves, in one group beyond that, across groups.
  int in_server = 0;
  int in_leaf = 0;
  int in_group = 0;
  int across = 0;
  double links = 0;       // that a hop crosses, mean: 0, 2, 4, 6
  double collisions = 0;  // hops that share an uplink of a leaf, or of a group, as above

  int near() const { return in_server + in_leaf + in_group; }  // without leaving a group
};
HopScore score_hops(const topo::Cluster& cluster, std::span<const ServerHop> hops);

// Lower is better: fewer links first, then fewer collisions.
bool is_better(const HopScore& one, const HopScore& other);

// `count` of the `free` servers, as close together as can be found, in the order in which a ring
// leaves leaves and groups least. They come out of the leaves that they fit best, so that larger
// holes are left for others. Empty when there are fewer; of `free` each server once.
std::vector<ServerId> choose_servers(const topo::Cluster& cluster, std::span<const ServerId> free,
                                     std::size_t count);

}  // namespace regatta::fabric
