// fabric/rank_ports.h: source ports for the connections between the ranks of a job, by a plan that
// every rank makes for itself and that is the same on all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/core/ids.h"
#include "regatta/core/result.h"
#include "regatta/fabric/port_plan.h"
#include "regatta/fabric/routes.h"

namespace regatta::fabric {

// Where a rank listens: the address of its NIC (topo/addresses.h) and a port.
struct RankPlace {
  std::uint32_t address = 0;
  std::uint16_t port = 0;
};

struct RankPorts {
  // Of the connections from one rank to another: [(from * ranks + to) * connections, ...); 0 where
  // both have the same address.
  std::vector<std::uint16_t> ports;
  std::size_t ranks = 0;
  std::uint32_t connections = 1;
  std::uint32_t most_in_ring = 0;  // connections of the ring 0, 1, ..., 0 on one link

  std::span<const std::uint16_t> between(std::size_t from, std::size_t to) const {
    return std::span(ports).subspan((from * ranks + to) * connections, connections);
  }
};

// First the connections of the ring in rank order are led apart, which send at the same time, then
// all others. Over TCP. Fails with kInvalidInput where an address is that of no NIC of the routes'
// graph. `seeds` by NodeId.
Result<RankPorts> plan_rank_ports(const topo::Graph& graph, const Routes& routes,
                                  std::span<const std::uint32_t> seeds,
                                  std::span<const RankPlace> ranks, std::uint32_t connections,
                                  const PortOptions& options = {});

}  // namespace regatta::fabric
