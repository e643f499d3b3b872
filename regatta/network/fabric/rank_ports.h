// fabric/rank_ports.h: source ports for the connections between the ranks of a job, by a plan that
// is the same wherever it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/network/fabric/port_plan.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::fabric {

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

}  // namespace regatta::fabric
