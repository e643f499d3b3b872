// sched/internal/forecast_lines.h: the jobs that wait in a forecast, and the order in which a
// decision considers them.
#pragma once

#include <functional>
#include <optional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "regatta/platform/sched/internal/forecast_input.h"
#include "regatta/platform/sched/internal/queue_order.h"

namespace regatta::sched {

// The input and the usage outlive it.
class ForecastLines {
 public:
  ForecastLines(const ForecastInput& input, const QuotaUsage& usage);

  void add(const ForecastJob& job, int index, double now);
  void remove(int index);

  // A decision begins: all waiting jobs are considered again.
  void begin_decision(double now);
  // The next job; -1: none is left.
  int next();
  // No further job of this kind is considered, or of its line, until reopen().
  void close_kind(int kind);
  void close_line(int kind);
  // After jobs were evicted: kinds that were closed are considered from where they were left.
  void reopen();

 private:
  struct Kind {
    std::set<JobRank> jobs;
    std::set<JobRank>::iterator cursor;  // the next to consider
    bool is_closed = false;
  };
  struct Line {  // of a leaf, or of all
    std::vector<int> kinds;
  };
  struct Waiting {
    JobRank rank;
    RankedJob job;
    int kind = -1;  // it does not wait
  };
  int line_of(int kind) const;
  int first_of_line(int line) const;
  void age_until(double now);

  const ForecastInput& input_;
  const QuotaUsage& usage_;
  std::vector<Kind> kinds_;
  std::vector<Line> lines_;
  std::vector<Waiting> waiting_;  // by index of the job
  std::optional<QueueOrder> order_;
  using Ageing = std::pair<double, int>;  // when a job moves up
  std::priority_queue<Ageing, std::vector<Ageing>, std::greater<>> ageing_;
};

}  // namespace regatta::sched
