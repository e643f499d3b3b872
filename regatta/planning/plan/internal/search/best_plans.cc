#include "regatta/planning/plan/internal/search/best_plans.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace regatta::plan {
namespace {

using workload::Strategy;

constexpr double kNotYet = std::numeric_limits<double>::infinity();

bool needs_less(const Plan& a, const Plan& b) {
  const double left = a.estimate.memory.total();
  const double right = b.estimate.memory.total();
  return left != right ? left < right : a.strategy < b.strategy;
}

}  // namespace

bool BestPlans::offer(std::size_t family, const Strategy& strategy, const Estimate& estimate,
                      bool fits) {
  ++counts_.evaluated;
  if (!counts_.smallest || estimate.memory.total() <= counts_.smallest->estimate.memory.total()) {
    const Plan plan{strategy, estimate};
    if (!counts_.smallest || needs_less(plan, *counts_.smallest)) counts_.smallest = plan;
  }
  if (!fits) return false;
  ++counts_.fitting;
  if (keeps_frontier_) extend_frontier({strategy, estimate});
  FamilyBest& best = families_[family];
  const Seconds time = estimate.step.total();
  if (!best.is_near(time)) return false;
  const bool is_fastest = time.value < best.fastest();
  best.offer({strategy, estimate});
  return is_fastest;
}

void BestPlans::count(const Plan& plan, bool fits) {
  ++counts_.evaluated;
  if (!counts_.smallest || needs_less(plan, *counts_.smallest)) counts_.smallest = plan;
  if (!fits) return;
  ++counts_.fitting;
  if (keeps_frontier_) extend_frontier(plan);
}

void BestPlans::add(const BestPlans& other) {
  counts_.evaluated += other.counts_.evaluated;
  counts_.fitting += other.counts_.fitting;
  const auto& smallest = other.counts_.smallest;
  if (smallest && (!counts_.smallest || needs_less(*smallest, *counts_.smallest)))
    counts_.smallest = smallest;
  for (const Plan& plan : other.counts_.frontier)
    extend_frontier(plan);
  for (std::size_t family = 0; family < families_.size(); ++family)
    for (const Plan& plan : other.families_[family].near())
      families_[family].offer(plan);
}

PlanSearchResult BestPlans::result(std::size_t top) const {
  PlanSearchResult result = counts_;
  result.ranked = ranked_families(families_, top);
  return result;
}

// Kept in the order of time, so memory falls along it.
void BestPlans::extend_frontier(const Plan& plan) {
  auto& frontier = counts_.frontier;
  const double memory = plan.estimate.memory.total();
  const Seconds time = plan.estimate.step.total();
  const auto at = std::partition_point(frontier.begin(), frontier.end(), [&](const Plan& one) {
    const Seconds other = one.estimate.step.total();
    return other != time ? other < time : one.strategy < plan.strategy;
  });
  if (at != frontier.begin() && std::prev(at)->estimate.memory.total() <= memory) return;
  const auto end = std::find_if(at, frontier.end(), [memory](const Plan& one) {
    return one.estimate.memory.total() < memory;
  });
  frontier.insert(frontier.erase(at, end), plan);
}

TimeLimits::TimeLimits(std::vector<std::size_t> group_of, std::size_t top)
    : group_of_(std::move(group_of)), fastest_(group_of_.size()), last_(kNotYet), top_(top) {
  for (std::atomic<double>& time : fastest_)
    time = kNotYet;
}

// A plan stands for its family where it is as fast as its fastest, and families as fast as the last
// are ordered by other things than time: hence the allowance twice.
bool TimeLimits::is_beaten(std::size_t family, Seconds bound) const {
  const double last = last_.load() * (1 + kSameTime);
  return bound.value > std::min(last, fastest_[family].load()) * (1 + kSameTime);
}

void TimeLimits::lower(std::size_t family, Seconds time) {
  if (time.value >= fastest_[family].load()) return;
  const MutexLock lock(mutex_);
  if (time.value >= fastest_[family].load()) return;
  fastest_[family] = time.value;
  const std::size_t group = group_of_[family];
  const auto known = std::find_if(best_.begin(), best_.end(),
                                  [group](const auto& one) { return one.second == group; });
  if (known != best_.end() && known->first <= time.value) return;
  if (known != best_.end()) best_.erase(known);
  const std::pair entry(time.value, group);
  best_.insert(std::upper_bound(best_.begin(), best_.end(), entry), entry);
  if (best_.size() > top_) best_.pop_back();
  if (best_.size() == top_) last_ = best_.back().first;
}

}  // namespace regatta::plan
