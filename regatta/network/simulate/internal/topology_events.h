// simulate/internal/topology_events.h: failures of a scenario as events: when links are dead, and
// when which routes are in force.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/simulate/scenario.h"
#include "regatta/network/simulate/simulated_network.h"

namespace regatta::simulate {

// At a moment, links die or come back, or switches detect that.
struct TopologyEvent {
  double time = 0;                // seconds
  std::vector<LinkId> dead;       // from then on
  std::vector<LinkId> back;       // from then on
  bool routes_change = false;     // then:
  std::vector<LinkId> avoided;    // links that no switch uses any more
  std::vector<LinkId> withdrawn;  // links that only the switches at their ends do not use
};

// The link of a failure, or all links of its switch; none for a NIC that pauses. kInvalidInput
// naming the scenario's file and line where the graph has no such link or switch.
Result<std::vector<LinkId>> links_that_fail(const Scenario& scenario, const Failure& failure,
                                            const topo::Graph& graph);

// The link of a NIC that pauses; kInvalidInput naming the scenario's file and line where the
// graph has no link of that name, or it is not of a NIC.
Result<LinkId> pausing_nic_link(const Scenario& scenario, const Failure& failure,
                                const topo::Graph& graph);

// Events of links and switches, by time. Fails with kInvalidInput naming the scenario's file and
// line where the network has no such link or switch.
Result<std::vector<TopologyEvent>> topology_events_of(const Scenario& scenario,
                                                      const SimulatedNetwork& network);

// Shortest paths without the avoided links; the switches at the ends of withdrawn links choose
// among their other next hops, by the same hash.
fabric::Routes routes_without(const SimulatedNetwork& network, const TopologyEvent& outage);

}  // namespace regatta::simulate
