// sched/internal/pending_order.h: the order in which pending jobs are considered: by the fair share
// of their queues, or one order for all.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/internal/quota_usage.h"

namespace regatta::sched {

// The references outlive it.
class PendingOrder {
 public:
  PendingOrder(const ClusterSnapshot& snapshot, const JobQueue& queue,
               const SchedulingPolicy& policy, const ResourceAmounts& capacity,
               const QuotaUsage& usage);

  // The next job, as an index into the pending jobs; -1 when all have been considered. `usage` with
  // what has started since.
  int next(const QuotaUsage& usage);
  // No further job of this job's queue, or in one order of any queue, is considered.
  void close_queue_of(int pending);

 private:
  struct Line {
    std::vector<int> jobs;  // first to last
    std::size_t next = 0;
  };
  std::vector<Line> lines_;
};

}  // namespace regatta::sched
