// sched/internal/queue_order.h: which leaf of a tree of queues is served next.
#pragma once

#include <vector>

#include "regatta/platform/sched/internal/fair_shares.h"
#include "regatta/platform/sched/internal/quota_usage.h"
#include "regatta/platform/sched/internal/reclaim_rule.h"

namespace regatta::sched {

// Leaves below their own guarantee come first, then those below a guarantee of their parent, and so
// on upwards, then the rest; among equals the least dominant share over the fair share; then the
// name. Tree, shares and usage outlive it; usage may change at any time.
class QueueOrder {
 public:
  // All of `leaves` take part.
  QueueOrder(const QuotaTree& tree, const FairShares& shares, const QuotaUsage& usage,
             const ResourceAmounts& capacity, const std::vector<int>& leaves);

  // The leaf that is next; -1 when none is left. Cost: O(log leaves) for each leaf whose place fell
  // since the last call.
  int next();
  // The leaf next() gave takes part no more.
  void remove_next();
  // After the usage of a queue fell. Cost: O(leaves).
  void reorder();

 private:
  struct Place {
    int distance = 0;  // to the lowest queue above that is below its guarantee
    double ratio = 0;
    int name_rank = 0;
    int leaf = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  Place place_of(int leaf) const;

  const QuotaTree* tree_;
  const FairShares* shares_;
  const QuotaUsage* usage_;
  ResourceAmounts capacity_;
  ReclaimRule guarantees_;
  std::vector<Place> heap_;  // the first place on top
};

}  // namespace regatta::sched
