// sched/internal/pending_order.h: the order in which pending jobs are considered: by the fair share
// of their queues, or one order for all.
#pragma once

#include <cstddef>
#include <set>
#include <tuple>
#include <vector>

#include "regatta/platform/sched/internal/decision_state.h"

namespace regatta::sched {

// The state outlives it.
class PendingOrder {
 public:
  explicit PendingOrder(const DecisionState& state);

  // The next job, as an index into the pending jobs; -1 when all have been considered.
  int next();
  // No further job of this job's line is considered: of its queue in a fair policy, else of all.
  void close_line_of(int pending);

 private:
  // Jobs first to last, and the leaf that they are of; -1: of any.
  struct Line {
    int leaf = -1;
    std::vector<int> jobs;
    std::size_t next = 0;
  };
  // A line in the order in which lines are served: queues below their guarantee first, then by what
  // they have over what they deserve.
  using Turn = std::tuple<bool, double, int, int>;  // is served, ratio, rank of its name, line

  Turn turn_of(int line) const;
  void add_lines();

  const DecisionState& state_;
  std::vector<ResourceAmounts> deserved_;  // by queue
  std::vector<int> line_of_;               // by pending job
  std::vector<Line> lines_;
  std::set<Turn> turns_;
  int served_ = -1;  // the line of the last job
};

}  // namespace regatta::sched
