// sched/internal/fair_shares.h: how much each queue deserves: guarantees first, then hierarchical
// dominant-resource fairness by weighted water-filling.
// Source: Ghodsi et al., "Dominant resource fairness", NSDI 2011, with finite demands, weights and
// a tree.
#pragma once

#include <vector>

#include "regatta/platform/sched/quota_tree.h"

namespace regatta::sched {

// By queue of a tree.
struct FairShares {
  std::vector<ResourceAmounts> deserved;  // of a parent: the sum of its children
  std::vector<double> dominant;           // dominant share of `deserved` in the capacity
};

// `demand`: by queue, what the jobs of each leaf use and wait for, as far as the cluster could ever
// hold it; those of other queues are not read. A leaf gets a part x from 0 to 1 of its demand, the
// same of each resource. Water is poured in rounds:
//   1. into all leaves at once, each up to its guarantee, at the same part of it;
//   2. so too into parents, the lower first, up to their guarantees: what a queue leaves goes to
//      its cohort before it goes elsewhere;
//   3. into the tree, up to the capacity.
// In a parent the water always goes to the child whose dominant share of what it got in this round,
// over its weight, is least; at the same level to the first. A leaf is full when it has its demand,
// when a queue above it, or itself, is at a limit in a resource that it demands, or when such a
// resource is used up. Guarantees of the top that exceed the capacity in demand are lowered to a
// common part of them. Where several children take something at the same level and the share of
// none rises, as after a resource that they have most of is used up, the first gets all until its
// share rises: other rules are as fair. Cost: O(queues * (levels + log queues)) a round.
FairShares fair_shares(const QuotaTree& tree, const std::vector<ResourceAmounts>& demand,
                       const ResourceAmounts& capacity);

}  // namespace regatta::sched
