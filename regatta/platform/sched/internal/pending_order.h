// sched/internal/pending_order.h: the order in which pending jobs are considered: by the fair share
// of their queues, or one order for all.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/fair_shares.h"
#include "regatta/platform/sched/internal/queue_order.h"

namespace regatta::sched {

// The amounts that each leaf uses and waits for, bounded by what the cluster holds.
std::vector<ResourceAmounts> queue_demands(const DecisionState& state);

// The state outlives it.
class PendingOrder {
 public:
  explicit PendingOrder(const DecisionState& state);

  // The next job, as an index into the pending jobs; -1 when all have been considered.
  int next();
  // After jobs were evicted.
  void reorder();
  // No further job of this job's line is considered: of its queue in a fair policy, else of all.
  // Returns the jobs that are left out by that, first to last.
  std::vector<int> close_line_of(int pending);

 private:
  struct Line {
    std::vector<int> jobs;  // first to last
    std::size_t next = 0;
  };
  int first_line();
  void add_lines();

  const DecisionState& state_;
  FairShares shares_;
  std::optional<QueueOrder> order_;  // of the leaves; nothing in one order of all jobs
  std::vector<int> line_of_;         // by pending job
  std::vector<int> line_of_leaf_;    // by queue; -1: no job waits there
  std::vector<Line> lines_;
};

}  // namespace regatta::sched
