// simulate/internal/bundles.h: an all-to-all as bundles of messages that move alike: ranks that a
// sprayed fabric does not distinguish send the same at the same time.
//
// The groups of rank_classes.h divide messages so that all of a bundle cross links of the same
// kinds, and each such link carries equally many of each bundle. So the max-min fair rates with one
// flow for each bundle, which takes of a link what all its messages take, are also fair with one
// flow for each message: the bottlenecks are the same (an equitable partition).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/simulate/internal/scenario_workload.h"
#include "regatta/network/simulate/scenario.h"

namespace regatta::simulate {

// Which items of the scenario may be sent in bundles: all-to-alls that overlap only with other such
// items. None where switches hash.
std::vector<bool> items_to_aggregate(const Scenario& scenario);

// Adds an all-to-all: each of `ranks`, which are all in groups of ScenarioWorkload::rank_classes,
// sends `part` to each other one at once.
void add_bundles(ScenarioWorkload& workload, std::span<const std::uint32_t> ranks, Bytes part);
// The number of bundles that add_bundles() would add.
std::size_t count_bundles(const RankClasses& rank_classes, std::span<const std::uint32_t> ranks);

// Calls use(from, to) with the ranks of each message of a bundle.
template <typename Use>
void for_each_message(const ScenarioWorkload& workload, const Bundle& bundle, Use&& use) {
  for (const std::uint32_t from : workload.rank_classes.classes[bundle.from])
    for (const std::uint32_t to : workload.rank_classes.classes[bundle.to])
      if (from != to && workload.network.are_joined(from, to) == bundle.is_inside) use(from, to);
}

}  // namespace regatta::simulate
