// fabric/port_plan.h: source ports for connections, chosen so that the ECMP hash of the switches
// (traffic.h) spreads them evenly over equal-cost links instead of by chance.
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

// A connection to plan; the source port of its flow is ignored.
struct PlannedConnection {
  LinkId from;  // of the NICs
  LinkId to;
  FiveTuple flow;
  std::uint32_t set = 0;   // connections of different sets do not send at the same time
  std::uint32_t turn = 0;  // in its set: planned after lower turns, which keep their paths
};

struct PortRange {
  std::uint16_t first = 49152;  // the dynamic ports of the IANA
  std::uint16_t last = 65535;
};

struct PortPlan {
  std::vector<std::uint16_t> ports;        // per connection
  std::vector<std::uint32_t> flows;        // over each directed link
  std::uint32_t most = 0;                  // of one set over one link between two switches
  std::vector<std::uint32_t> most_of_set;  // the same by set
  std::uint32_t most_by_chance = 0;        // `most` with the ports of the range in turn
};

struct PortPlanOptions {
  PortRange range;
  HashPolicy policy = HashPolicy::kFields;
  // Candidate paths of a connection; three tiers have thousands, of which the first ones found are
  // enough.
  std::size_t most_paths = 256;
  std::uint64_t seed = 1;              // of the search
  std::uint32_t most_steps = 200'000;  // of the search: connections that are rerouted
};

// Plans the ports of all connections together, so that the fullest link between two switches has as
// few connections of each set as possible, and connections with the same addresses and target port
// have different ports. `seeds`: of the switches, by NodeId. A connection without a path gets the
// first port. First each takes the least loaded path; then connections on overloaded links are
// rerouted, and in turn those that they displace (an ejection chain; with as many connections as
// links, a plan without collisions is an edge colouring of a bipartite graph). Where sets have
// turns, the first turns together are spread as evenly as all of them.
PortPlan plan_ports(const Routes& routes, std::span<const std::uint32_t> seeds,
                    std::span<const PlannedConnection> connections,
                    const PortPlanOptions& options = {});

// Source ports for the connections between the ranks of a job. All machines compute the same plan.

// A rank listens at the address of its NIC (topo/addresses.h) and a port.
struct RankEndpoint {
  std::uint32_t address = 0;
  std::uint16_t port = 0;
};

// A sending rank and its receiver.
struct RankPair {
  std::size_t from = 0;
  std::size_t to = 0;
};
using RankPairs = std::vector<RankPair>;

// Each rank sends to the next one, and the last to the first.
RankPairs ring_of(std::span<const std::size_t> ranks);

struct RankPorts {
  // Per connection, from (from * ranks + to) * connections on; 0: any, where no switch has a
  // choice: in one server, below one leaf, or without a path.
  std::vector<std::uint16_t> ports;
  std::size_t ranks = 0;
  std::uint32_t connections = 1;
  std::uint32_t paths = 1;           // of the connections of one pair, at most
  std::vector<std::uint32_t> most;   // by set: its connections on one link between two switches
  std::vector<std::uint32_t> flows;  // by set: its connections that cross the fabric

  std::span<const std::uint16_t> between(std::size_t from, std::size_t to) const {
    return std::span(ports).subspan((from * ranks + to) * connections, connections);
  }
};

// Pairs of one set send at the same time: their connections are spread, first connections of all
// pairs first, then second ones and so on, since larger messages use more of them. A pair belongs
// to the first set that names it; pairs in no set come last, all at once. Over TCP. Fails with
// kInvalidInput where an address is not that of a NIC of the graph. `seeds` by NodeId.
Result<RankPorts> plan_rank_ports(const topo::Graph& graph, const Routes& routes,
                                  std::span<const std::uint32_t> seeds,
                                  std::span<const RankEndpoint> ranks, std::uint32_t connections,
                                  std::span<const RankPairs> sets,
                                  const PortPlanOptions& options = {});

// How close servers are on a fabric, for any traffic: a scheduler compares and chooses sets of free
// servers by it. Below one set of leaves is best, then in one group, then across groups: Baidu
// AIPod's network-aware scheduling. Where the traffic is known, plan/placement.h does better.

struct ServerGroupScore {
  // Shares of all pairs of servers: below the same leaves, else in the same group, across groups.
  double same_leaf = 1;
  double same_group = 0;
  double across = 0;
  double links = 0;  // mean, between NICs of a pair on the same rail: 2, 4, 6
  // Hops of a ring over the servers in this order.
  int leaf_hops = 0;   // that leave a set of leaves
  int group_hops = 0;  // of these, that leave a group
  // Connections of the ring, one for each NIC of a hop, that are expected to share an uplink of a
  // leaf, or of the spines of a group, when each takes one of them by chance.
  double collisions = 0;
};

// Lower is better: fewer links between pairs first, then fewer collisions.
bool is_better(const ServerGroupScore& one, const ServerGroupScore& other);

// Scores servers of the cluster, in the order of a ring; each once.
ServerGroupScore score_servers(const topo::Cluster& cluster, std::span<const ServerId> servers);

// A hop from server to server; hops send at the same time, one connection each.
struct ServerHop {
  ServerId from;
  ServerId to;
};
struct HopScore {
  int hops = 0;
  // Parts of `hops`: inside a server, below one set of leaves, else in one group, across groups.
  int in_server = 0;
  int in_leaf = 0;
  int in_group = 0;
  int across = 0;
  double links = 0;       // of a hop, mean: 0, 2, 4, 6
  double collisions = 0;  // hops that share an uplink of a leaf or a group, as above

  int near() const { return in_server + in_leaf + in_group; }  // without leaving a group
};
HopScore score_hops(const topo::Cluster& cluster, std::span<const ServerHop> hops);

// Lower is better: fewer links first, then fewer collisions.
bool is_better(const HopScore& one, const HopScore& other);

// `count` of the `free` servers (each listed once), as close together as can be found, in the order
// in which a ring leaves leaves and groups least. They are taken best fit, so that larger gaps are
// left for other jobs. Empty when `free` has fewer.
std::vector<ServerId> choose_servers(const topo::Cluster& cluster, std::span<const ServerId> free,
                                     std::size_t count);

}  // namespace regatta::fabric
