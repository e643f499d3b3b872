// plan/internal/search/plan_families.h: plans that differ in what matters: families of strategies
// with the same degrees, and the order of plans that are as fast as each other.
#pragma once

#include <compare>
#include <vector>

#include "regatta/model/workload/strategy.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::plan {

// Times that differ by less are the same: predictions are not that exact.
inline constexpr double kSameTime = 1e-3;

// All strategies with these degrees.
struct PlanFamily {
  int tp = 1;
  int pp = 1;
  int dp = 1;
  int cp = 1;
  int ep = 1;
  int etp = 0;

  friend auto operator<=>(const PlanFamily&, const PlanFamily&) = default;
};
PlanFamily family_of(const workload::Strategy& strategy);
// The same for families that split the samples and tokens of a step over ranks in another way
// alone.
PlanFamily without_replicas(PlanFamily family);

// The order of two plans that are as fast: fewer parallel forms (degrees above 1 beside dp), then
// more replicas, then fewer departures from the plain step (1F1B, at most the optimizer shared,
// overlap, no offload), then less memory, then the order of strategies. Total and strict.
bool is_simpler(const Plan& a, const Plan& b);

// The plans of one family that may stand for it: none is slower and less simple than another, and
// all are as fast as the fastest. In the order of time.
class FamilyBest {
 public:
  // Whether the plan is as fast as the fastest so far.
  bool is_near(Seconds time) const { return time.value <= fastest_ * (1 + kSameTime); }
  void offer(const Plan& plan);

  bool is_empty() const { return near_.empty(); }
  double fastest() const { return fastest_; }  // seconds; infinite where it is empty
  const std::vector<Plan>& near() const { return near_; }
  // The simplest. Requires that it is not empty.
  const Plan& best() const { return near_.back(); }

 private:
  double fastest_ = kNever;
  std::vector<Plan> near_;

  static constexpr double kNever = 1e300;
};

// The best of the `top` fastest families: in the order of their fastest plans, those that are as
// fast as the first of them in the order of is_simpler(), and of these only the first of each
// without_replicas().
std::vector<Plan> ranked_families(std::vector<FamilyBest> families, std::size_t top);

}  // namespace regatta::plan
