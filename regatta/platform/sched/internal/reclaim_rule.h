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
  bool was_evicted = false;  // a claimant that has been evicted before
};

// Whether a victim may leave its queues below their entitlements.
enum class ReclaimLoss {
  kSurplus,  // no: it takes no more than they borrow
  kWholeJob  // yes: a job that is borrowed in part goes as a whole
};

// Each queue is entitled to amounts: its guarantee, or what it deserves (FairShares). The tree
// outlives the rule. The fill of a queue is its largest part of an entitlement that is not 0; a
// queue that is entitled to nothing is above it with whatever it has. Devices of a type up to the
// queue's entitlement to that type do not count in the fill, nor in the entitlement to devices that
// it is a part of: a claim or a victim that they cover is within its queue's entitlement.
//
// The claimant may evict a victim below another child of the lowest queue that both are below, if
//   - a queue from the claimant's leaf up to that child is below its entitlement, and not above it
//     with the claim;
//   - the queues further down to the leaf are not above theirs with the claim, but for those that
//     are entitled to nothing. A claimant that was never evicted need not meet this: it may take
//     what a parent is guaranteed beyond its own queue;
//   - every queue from the victim's leaf up to the child on its side is above its entitlement and,
//     for kSurplus, not below it without the victim.
//
// This ends while no other job starts or ends. Each job makes at most one claim that lifts a queue
// above its entitlement. After the last of these, take a queue with an entitlement that has none
// such below it. Its usage rises by claims that leave it within its entitlement; once it is there
// it loses no job to others, and none to its own queues, which are entitled to nothing. So its
// claims end. The same then holds for the queues above, whose own queues claim no more. Among
// leaves of one parent no two jobs ever evict each other in turn: a leaf that claims is within its
// entitlement from then on.
class ReclaimRule {
 public:
  // `entitled` by queue.
  ReclaimRule(const QuotaTree& tree, std::vector<ResourceAmounts> entitled);
  // By what each queue is guaranteed.
  explicit ReclaimRule(const QuotaTree& tree);

  // `usage` is without the claim, and without the victims that were chosen before this one.
  bool allows(const QuotaUsage& usage, const QuotaClaim& claim, const QuotaClaim& victim,
              ReclaimLoss loss) const;

  // Whether the victim's queues are entitled to it against a claim by priority: one of those that
  // are not above the claimant too is not above its entitlement, and the claimant's own are not
  // entitled to the claim.
  bool protects(const QuotaUsage& usage, const QuotaClaim& claim, const QuotaClaim& victim) const;

  // Whether the claim is within the entitlement of a queue below `above` (-1: of any).
  bool is_entitled(const QuotaUsage& usage, const QuotaClaim& claim, int above) const {
    return entitled_distance(usage, claim, above) >= 0;
  }
  // How far above its leaf the lowest such queue is; -1: there is none.
  int entitled_distance(const QuotaUsage& usage, const QuotaClaim& claim, int above) const;

  // `used` as a part of the entitlement of the queue; infinite where that is nothing and `used` is
  // not. Both without devices that an entitlement by type covers.
  double fill(int queue, const ResourceAmounts& used) const;

  // Whether the queue has less than an entitlement of it, of any type or of one.
  bool is_below(int queue, const ResourceAmounts& used) const;

  // Whether any queue is entitled to something.
  bool is_any() const { return is_any_; }

 private:
  int common_queue(const QuotaClaim& claim, const QuotaClaim& victim) const;
  long long beyond_types(int queue, const ResourceAmounts& used) const;
  bool is_entitled_beyond_types(int queue) const;
  bool is_covered(int queue, const ResourceAmounts& used, const ResourceAmounts& more) const;
  bool is_above(int queue, const ResourceAmounts& used, const ResourceAmounts& victim) const;
  bool falls_below(int queue, const ResourceAmounts& used, const ResourceAmounts& victim) const;

  const QuotaTree* tree_;
  std::vector<ResourceAmounts> entitled_;
  bool is_any_ = false;
};

}  // namespace regatta::sched
