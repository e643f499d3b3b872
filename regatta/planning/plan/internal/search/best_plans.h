// plan/internal/search/best_plans.h: the best plans of a search so far, and what a strategy must
// beat to be among them.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "regatta/base/core/mutex.h"
#include "regatta/planning/plan/internal/search/plan_families.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::plan {

// The best plans that one thread has seen, and the counts.
class BestPlans {
 public:
  // Families are numbers below `families`.
  BestPlans(std::size_t families, bool keeps_frontier)
      : families_(families), keeps_frontier_(keeps_frontier) {}

  // Whether the plan is now the fastest of its family.
  bool offer(std::size_t family, const workload::Strategy& strategy, const Estimate& estimate,
             bool fits);
  // Counts a plan without a family, in the frontier as well.
  void count(const Plan& plan, bool fits);
  void add(const BestPlans& other);
  // The counts, the frontier and the `top` best.
  PlanSearchResult result(std::size_t top) const;

 private:
  void extend_frontier(const Plan& plan);

  std::vector<FamilyBest> families_;
  bool keeps_frontier_;
  PlanSearchResult counts_;
};

// The times that a strategy must reach, shared by all threads. They fall while a search goes on.
class TimeLimits {
 public:
  // `group_of`: by family, the number of its without_replicas(), of which one alone is listed where
  // families are as fast.
  TimeLimits(std::vector<std::size_t> group_of, std::size_t top);

  // Whether no plan of the family that takes at least `bound` changes the best of the `top` groups:
  // it is slower than the last of them, or than its own family's fastest.
  bool is_beaten(std::size_t family, Seconds bound) const;
  void lower(std::size_t family, Seconds time);

 private:
  std::vector<std::size_t> group_of_;
  std::vector<std::atomic<double>> fastest_;  // by family, seconds
  std::atomic<double> last_;                  // of the `top` fastest groups
  std::size_t top_;
  Mutex mutex_;
  // The `top` fastest groups, fastest first.
  std::vector<std::pair<double, std::size_t>> best_ REGATTA_GUARDED_BY(mutex_);
};

}  // namespace regatta::plan
