#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/planning/plan/internal/search/server_count.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::plan {
namespace {

constexpr EnumNames<4> kObjectives = {"time", "cost", "devices", "memory"};
constexpr double kBillion = 1e9;
constexpr int kFew = 8;

// A size is not worth a look when another one is as fast and as cheap, and one of both better.
void mark_optimal(std::vector<ClusterSize>& sizes) {
  for (ClusterSize& size : sizes) {
    size.is_optimal = std::none_of(sizes.begin(), sizes.end(), [&](const ClusterSize& other) {
      const bool is_slower = other.usage.time > size.usage.time;
      const bool is_dearer = other.usage.device_hours > size.usage.device_hours;
      const bool is_equal = other.usage.time == size.usage.time &&
                            other.usage.device_hours == size.usage.device_hours;
      return !is_slower && !is_dearer && !is_equal;
    });
  }
}

ClusterSize size_of(const PlanningProblem& problem, int servers, Plan plan, const ClusterSizes& all,
                    const ClusterSizesOptions& options) {
  const PlanningProblem sized = on_servers(problem, servers);
  const Seconds step = plan.estimate.step.total();
  ClusterSize size{.servers = servers, .devices = sized.devices, .plan = std::move(plan)};
  size.tokens_per_s = tokens_per_step(sized) / step.value;
  size.mfu = mfu(sized, size.plan);
  size.usage = resource_usage(sized, step, all.tokens, options.price);
  return size;
}

// A number of servers that a job divides badly uses its devices worse than a smaller number; all
// lose a little by their number.
constexpr double kUsualLoss = 0.97;

bool is_worse_used(const PlanningProblem& sized, const Plan& plan,
                   const std::vector<ClusterSize>& smaller) {
  return !smaller.empty() && mfu(sized, plan) < kUsualLoss * smaller.back().mfu;
}

// Whether fewer servers are worth a row beside `servers`: they are nearly as fast, or faster.
bool is_better_used(const SizedPlan& fewer, int servers, const Plan& plan) {
  const double ratio = plan.estimate.step.total() / fewer.plan.estimate.step.total();
  return ratio * servers > fewer.servers / kUsualLoss;
}

double measure(const ClusterSize& size, Objective objective) {
  switch (objective) {
    case Objective::kTime:
      return size.usage.time.value;
    case Objective::kCost:
      return size.usage.device_hours;
    case Objective::kDevices:
      return size.devices;
    case Objective::kMemory:
      break;
  }
  return size.plan.estimate.memory.total();
}

}  // namespace

std::vector<std::string> objective_names() {
  return {kObjectives.begin(), kObjectives.end()};
}
std::optional<Objective> objective_named(std::string_view name) {
  return parse_enum<Objective>(kObjectives, name);
}
std::string to_string(Objective objective) {
  return enum_name(kObjectives, objective);
}

std::vector<int> server_counts(int most) {
  std::vector<int> counts;
  for (int count = 1; count <= most; ++count) {
    const int odd = count >> std::countr_zero(static_cast<unsigned>(count));
    if (most <= kFew || odd == 1 || odd == 3 || count == most) counts.push_back(count);
  }
  return counts;
}

Result<ClusterSizes> plan_cluster_sizes(const PlanningProblem& problem,
                                        const ClusterSizesOptions& options) {
  ClusterSizes all;
  all.steps = options.steps;
  all.tokens = options.steps > 0 ? tokens_per_step(problem) * options.steps : kBillion;
  const int most = server_count(problem);
  int before = 0;
  for (const int servers : server_counts(most)) {
    const PlanningProblem sized = on_servers(problem, servers);
    auto plan = fastest_plan(sized, options.threads);
    const bool is_worse = plan && is_worse_used(sized, *plan, all.sizes);
    const bool has_smaller = servers - before > 1 && (!all.sizes.empty() || servers == most);
    if ((!plan || is_worse) && has_smaller) {
      const auto between = fastest_server_count(problem, before + 1, servers - 1, options.threads);
      if (between && (!plan || is_better_used(*between, servers, *plan)))
        all.sizes.push_back(size_of(problem, between->servers, between->plan, all, options));
    }
    if (plan)
      all.sizes.push_back(size_of(problem, servers, *std::move(plan), all, options));
    else
      all.left_out.push_back({servers, plan.error().message});
    before = servers;
  }
  if (all.sizes.empty()) return Error{Code::kInvalidInput, all.left_out.back().reason};
  const ClusterSize& smallest = all.sizes.front();
  for (ClusterSize& size : all.sizes)
    size.efficiency = size.tokens_per_s / size.devices * smallest.devices / smallest.tokens_per_s;
  mark_optimal(all.sizes);
  return all;
}

Result<std::size_t> select_size(const ClusterSizes& sizes, Objective objective,
                                std::optional<Seconds> within) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < sizes.sizes.size(); ++i) {
    const ClusterSize& size = sizes.sizes[i];
    if (within && size.usage.time > *within) continue;
    if (!best || measure(size, objective) < measure(sizes.sizes[*best], objective)) best = i;
  }
  if (best) return *best;
  const ClusterSize& fastest = *std::min_element(
      sizes.sizes.begin(), sizes.sizes.end(),
      [](const ClusterSize& a, const ClusterSize& b) { return a.usage.time < b.usage.time; });
  return Error{
      Code::kInvalidInput,
      fmt::format("--within {}: no size ends in it, the fastest, {} devices, takes {}; "
                  "give it more time, more servers or fewer steps",
                  format_duration(*within), fastest.devices, format_duration(fastest.usage.time))};
}

}  // namespace regatta::plan
