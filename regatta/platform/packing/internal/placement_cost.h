// packing/internal/placement_cost.h: the cost of a pod on a node, and the GPUs that it would get
// there.
#pragma once

#include <cstdint>
#include <limits>

#include "regatta/platform/packing/internal/demand_tables.h"
#include "regatta/platform/packing/placement_policy.h"

namespace regatta::packing {

inline constexpr double kDoesNotFit = std::numeric_limits<double>::infinity();

struct PlacementCost {
  double cost = kDoesNotFit;  // the least is best
  std::uint32_t gpus = 0;
};

// The expected pods, as a policy sees them.
struct DemandSummary {
  DemandTables tables;
  double cpu_per_gpu = 1;  // cores that expected pods request for each GPU
};

bool fits(const PodClass& pod, const NodeState& node);

// The rule is not kRandom.
PlacementCost placement_cost(const PodClass& pod, const NodeState& node,
                             const DemandSummary& demand, const PlacementPolicy& policy);

// Takes the resources of a pod from a node (sign -1) or gives them back (+1).
void change(NodeState& node, const PodClass& pod, std::uint32_t gpus, int sign);

}  // namespace regatta::packing
