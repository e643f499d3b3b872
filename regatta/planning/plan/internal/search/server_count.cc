#include "regatta/planning/plan/internal/search/server_count.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <numeric>
#include <optional>

#include "regatta/planning/plan/internal/search/strategy_space.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::plan {
namespace {

constexpr int kLargest = 8;  // of the numbers of servers that are tried
constexpr int kDivisible = 24;

// How much better a smaller number of servers may use its devices.
constexpr double kBetterUse = 7.0 / 6;

// The largest odd factor of the ranks that every replica has at least.
int odd_rest(int devices, int global_batch) {
  const int rest = devices / std::gcd(devices, global_batch);
  return rest >> std::countr_zero(static_cast<unsigned>(rest));
}

}  // namespace

bool has_strategy(const PlanningProblem& problem) {
  const StrategySpaceInput space{.model = problem.model,
                                 .global_batch = problem.global_batch,
                                 .request = problem.request,
                                 .devices = problem.devices,
                                 .server_devices = problem.machine.network.devices,
                                 .every_form = problem.every_form};
  const auto works = work_strategies(space);
  return std::any_of(works.begin(), works.end(), [&](const workload::Strategy& work) {
    return !stage_counts(space, work).empty();
  });
}

std::vector<int> counts_to_try(int least, int most, int devices, int global_batch) {
  std::vector<int> all;
  for (int count = most; count >= std::max(1, least); --count)
    all.push_back(count);
  if (all.size() <= static_cast<std::size_t>(kLargest + kDivisible)) return all;
  std::stable_sort(all.begin() + kLargest, all.end(), [&](int a, int b) {
    return odd_rest(a * devices, global_batch) < odd_rest(b * devices, global_batch);
  });
  all.resize(kLargest + kDivisible);
  std::sort(all.begin(), all.end(), std::greater<>());
  return all;
}

std::optional<SizedPlan> fastest_server_count(const PlanningProblem& problem, int least, int most,
                                              int threads) {
  std::optional<SizedPlan> best;
  // Fewer than half are looked at only where no more than half have a plan.
  for (int high = most; high >= least && !best; high = (high - 1) / 2) {
    const int low = std::max(least, (high + 1) / 2);
    for (const int servers :
         counts_to_try(low, high, problem.server.device_count, problem.global_batch)) {
      if (best && servers * kBetterUse < best->servers) break;
      const PlanningProblem sized = on_servers(problem, servers);
      if (!has_strategy(sized)) continue;
      const auto plan = fastest_plan(sized, threads);
      if (plan && (!best || plan->estimate.step.total() < best->plan.estimate.step.total()))
        best = SizedPlan{servers, *plan};
    }
  }
  return best;
}

}  // namespace regatta::plan
