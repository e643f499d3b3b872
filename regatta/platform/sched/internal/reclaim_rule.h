// sched/internal/reclaim_rule.h: which queue may take back what which other queue borrows.
#pragma once

#include <vector>

#include "regatta/platform/sched/internal/quota_usage.h"
#include "regatta/platform/sched/quota_tree.h"

namespace regatta::sched {

// The amounts that a job takes, or would take, in a leaf.
struct QuotaClaim {
  int leaf = 0;
  ResourceAmounts amounts;
};

// Each queue is entitled to amounts: its guarantee, or what it deserves (FairShares). The tree
// outlives the rule.
//
// A claimant and a victim are below two different children of the queue that both are below. The
// claimant may evict the victim where
//   - the claimant's child is below its entitlement, and not above it with the claim;
//   - the victim's child, and every queue from it down to the victim's leaf, is above its
//     entitlement, and not below it without the victim.
// The fill of a queue is its largest part of an entitlement that is not 0; a queue that is entitled
// to nothing is above it with whatever it has.
//
// Nothing goes in circles: while no other job starts or ends, a queue that is not above its
// entitlement loses jobs only to queues below itself, and one that is not below it stays so, except
// for those. A leaf has none below, so its claims end; hence those below its parent's children end,
// and so on to the top. Among leaves of one parent no two jobs ever evict each other in turn.
class ReclaimRule {
 public:
  // `entitled` by queue.
  ReclaimRule(const QuotaTree& tree, std::vector<ResourceAmounts> entitled);
  // By what each queue is guaranteed.
  explicit ReclaimRule(const QuotaTree& tree);

  // `usage` is without the claim, and without the victims that were chosen before this one.
  bool allows(const QuotaUsage& usage, const QuotaClaim& claim, const QuotaClaim& victim) const;

  // `used` as a part of the entitlement of the queue; infinite where that is nothing and `used` is
  // not.
  double fill(int queue, const ResourceAmounts& used) const;

 private:
  const QuotaTree* tree_;
  std::vector<ResourceAmounts> entitled_;
};

}  // namespace regatta::sched
