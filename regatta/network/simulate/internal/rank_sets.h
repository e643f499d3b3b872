// simulate/internal/rank_sets.h: the ranks that take part in an item of a scenario, and the memory
// that its simulation needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/network/simulate/scenario.h"
#include "regatta/network/simulate/simulated_network.h"

namespace regatta::simulate {

using Ranks = std::vector<std::uint32_t>;

// The error kInvalidInput at a line of the scenario.
Error wrong_at(const Scenario& scenario, int line, std::string_view what);

// The rank of a device such as "s0/1" in a scenario.
Result<std::uint32_t> find_rank(const Scenario& scenario, int line, const SimulatedNetwork& network,
                                const std::string& text);

// The groups of ranks that run the pattern of an item, each by itself.
Result<std::vector<Ranks>> groups_of(const Scenario& scenario, const TrafficItem& item,
                                     const SimulatedNetwork& network);

// The approximate number of flows of a pattern over so many ranks; it may exceed any memory.
double flows_of(const TrafficItem& item, double ranks);

// Fails with kInvalidInput, naming the largest item, where the items that are sent message by
// message (`aggregates` is false) take more than `memory`; 0: no limit.
Status check_memory(const Scenario& scenario, const SimulatedNetwork& network,
                    const std::vector<bool>& aggregates, Bytes memory);

}  // namespace regatta::simulate
