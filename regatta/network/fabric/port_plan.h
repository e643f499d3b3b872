// fabric/port_plan.h: source ports for connections, chosen so that the hash of the switches
// (ecmp.h) spreads them evenly over equally good links instead of by chance.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/network/fabric/ecmp.h"
#include "regatta/network/fabric/routes.h"

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

}  // namespace regatta::fabric
