// fabric/port_plan.h: source ports for connections, chosen so that the hash of the switches
// (ecmp.h) spreads them evenly over equally good links instead of by chance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {

// A connection that is to be made; what its flow says of the source port is not looked at.
struct PlannedConnection {
  LinkId from;  // of the NICs
  LinkId to;
  FiveTuple flow;
  std::uint32_t set = 0;   // connections of different sets do not send at the same time
  std::uint32_t turn = 0;  // in its set: led apart after those of lower turns, which stay
};

struct PortRange {
  std::uint16_t first = 49152;  // those that the IANA leaves to programs
  std::uint16_t last = 65535;
};

struct PortPlan {
  std::vector<std::uint16_t> ports;        // per connection
  std::vector<std::uint32_t> flows;        // over each directed link
  std::uint32_t most = 0;                  // of one set over one link between two switches
  std::vector<std::uint32_t> most_of_set;  // the same by set
  std::uint32_t most_by_chance = 0;        // the same with the first ports of the range in turn
};

struct PortPlanOptions {
  PortRange range;
  HashPolicy policy = HashPolicy::kFields;
  // Of a connection, that are chosen among; three tiers have thousands, of which the first ones
  // that come up do.
  std::size_t most_paths = 256;
  std::uint64_t seed = 1;              // of the search
  std::uint32_t most_steps = 200'000;  // of the search: connections that are rerouted
};

// Ports for all connections together, so that the link between two switches that most of them take
// has as few as possible of each set, and no two connections with the same addresses and target
// port have the same. `seeds` by NodeId, of the switches. A connection that no path leads for keeps
// the first port. First each takes the path with the least on it, then those on links with too many
// are rerouted, and those that were there before them in turn (an ejection chain; with as
// many connections as links this colours the edges of a bipartite graph, which a plan without
// collisions is). Where sets have turns, those of the first ones together are spread as evenly as
// all of them.
PortPlan plan_ports(const Routes& routes, std::span<const std::uint32_t> seeds,
                    std::span<const PlannedConnection> connections,
                    const PortPlanOptions& options = {});

// Source ports for the connections between the ranks of a job, by a plan that
// is the same wherever it is made.

// Where a rank listens: the address of its NIC (topo/addresses.h) and a port.
struct RankEndpoint {
  std::uint32_t address = 0;
  std::uint16_t port = 0;
};

// Ranks that send, and to whom.
struct RankPair {
  std::size_t from = 0;
  std::size_t to = 0;
};
using RankPairs = std::vector<RankPair>;

// Each of the ranks to the next one, and the last to the first.
RankPairs ring_of(std::span<const std::size_t> ranks);

struct RankPorts {
  // Of the connections from one rank to another: [(from * ranks + to) * connections, ...); 0, any,
  // where no switch has a choice: in one server, below one leaf, and where no path leads.
  std::vector<std::uint16_t> ports;
  std::size_t ranks = 0;
  std::uint32_t connections = 1;
  std::uint32_t paths = 1;           // that those of one pair take, at most
  std::vector<std::uint32_t> most;   // by set: its connections on one link between two switches
  std::vector<std::uint32_t> flows;  // by set: its connections that cross the fabric

  std::span<const std::uint16_t> between(std::size_t from, std::size_t to) const {
    return std::span(ports).subspan((from * ranks + to) * connections, connections);
  }
};

// Pairs of one set send at the same time: their connections are led apart, the first ones of all
// pairs, then the second ones and so on, since a message takes as many as it is large. A pair
// belongs to the first set that names it; those that none names come last, as they are. Over TCP.
// Fails with kInvalidInput where an address is that of no NIC of the routes' graph. `seeds` by
// NodeId.
Result<RankPorts> plan_rank_ports(const topo::Graph& graph, const Routes& routes,
                                  std::span<const std::uint32_t> seeds,
                                  std::span<const RankEndpoint> ranks, std::uint32_t connections,
                                  std::span<const RankPairs> sets,
                                  const PortPlanOptions& options = {});

// How well servers lie together on a fabric, whatever they run: what a
// scheduler compares sets of free servers by, and chooses them with. Below one set of leaves first,
// then in one group, then across groups: Baidu AIPod's network-aware scheduling. Where the traffic
// is known, plan/placement.h does better.

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
