// The strategies that a search of simulated steps left out, and the plan that is run.
#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/simulated_plan_parts.h"
#include "regatta/app/report/plan_report.h"
#include "regatta/base/core/text.h"

namespace regatta::report {
namespace {

constexpr std::size_t kNextPlans = 4;

// " (1.20x to 2.40x)"
std::string excess_range(double least, double most) {
  const std::string low = fmt::format("{:.2f}x", least);
  const std::string high = fmt::format("{:.2f}x", most);
  return low == high ? fmt::format(" ({})", low) : fmt::format(" ({} to {})", low, high);
}

// Strategies with the same kind of reason.
struct RejectedGroup {
  int count = 0;
  const plan::RejectedStrategy* example = nullptr;
  double least = 0;
  double most = 0;
};

// "slower: dp_comm" of "2.4x slower: dp_comm takes 71 % of the step".
std::string reason_group(const plan::RejectedStrategy& one) {
  if (one.kind == plan::RejectionReason::kMemory) return "too much memory per device";
  if (one.kind != plan::RejectionReason::kSlower) return one.reason;
  const std::size_t start = one.reason.find(": ") + 2;
  return "slower: " + one.reason.substr(start, one.reason.find(" takes") - start);
}

std::string chosen_plan_table(const plan::SimulatedSearchResult& result) {
  std::vector<std::vector<std::string>> rows{{"", "plan", "placement", "step", "memory"}};
  for (std::size_t i = 0; i < std::min(result.ranked.size(), kNextPlans + 1); ++i) {
    const plan::SimulatedPlan& plan = result.ranked[i];
    rows.push_back({i == 0 ? "chosen" : fmt::format("next {}", i),
                    workload::to_string(plan.strategy), plan.placement_name,
                    format_seconds(plan.prediction.step_time),
                    format_bytes(plan.prediction.memory.total())});
  }
  return format_table(rows);
}

// The names of placements, each once, in the order of the plans.
std::vector<std::string> placement_names(std::span<const plan::Plan> plans) {
  std::vector<std::string> names;
  for (const plan::Plan& plan : plans)
    if (std::ranges::find(names, plan.simulated->placement_name) == names.end())
      names.push_back(plan.simulated->placement_name);
  return names;
}

std::string label_of(std::size_t index) {
  return index < 26 ? std::string(1, static_cast<char>('A' + index)) : std::to_string(index + 1);
}

}  // namespace

std::string evaluation_count_text(const plan::SimulatedSearchResult& result) {
  // The best placement of every strategy but the fastest is among the rejected, as slower.
  const auto slower = std::ranges::count(result.rejected, plan::RejectionReason::kSlower,
                                         &plan::RejectedStrategy::kind);
  const auto ruled_out = static_cast<std::ptrdiff_t>(result.rejected.size()) - slower;
  std::string text = fmt::format("{} of {} evaluated", pluralized(result.evaluated, "plan"),
                                 pluralized(slower + 1, "strategy", "strategies"));
  if (ruled_out > 0)
    text += fmt::format(", {} ruled out", pluralized(ruled_out, "strategy", "strategies"));
  return text;
}

std::string placement_label(std::span<const plan::Plan> plans, const plan::Plan& plan) {
  const std::vector<std::string> names = placement_names(plans);
  const auto named = std::ranges::find(names, plan.simulated->placement_name);
  return named == names.end() ? "" : label_of(static_cast<std::size_t>(named - names.begin()));
}

std::string placement_legend(std::span<const plan::Plan> plans) {
  const std::vector<std::string> names = placement_names(plans);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("placement {}: {}\n", label_of(i), names[i]);
  return text;
}

std::string rejected_table(const plan::SimulatedSearchResult& result) {
  if (result.rejected.empty()) return "";
  std::map<std::string, RejectedGroup> groups;
  for (const plan::RejectedStrategy& one : result.rejected) {
    RejectedGroup& group = groups[reason_group(one)];
    if (group.count++ == 0) {
      group.example = &one;
      group.least = one.excess;
    }
    group.least = std::min(group.least, one.excess);
    group.most = std::max(group.most, one.excess);
  }
  std::vector<std::vector<std::string>> rows = {{"ruled out because", "strategies", "example"}};
  for (const auto& [name, group] : groups) {
    std::string reason = name;
    std::string example = workload::to_string(group.example->strategy);
    if (group.example->kind != plan::RejectionReason::kDoesNotDivide) {
      reason += excess_range(group.least, group.most);
      example += " " + group.example->reason;
    }
    rows.push_back({reason, std::to_string(group.count), example});
  }
  return "\n" + format_table(rows);
}

std::string chosen_plan_text(const ChosenPlanReport& chosen) {
  return fmt::format("job {} on cluster {}: {}; rates: {}\n\n{}\nports {}: {}\n", chosen.job.name,
                     chosen.cluster.name, evaluation_count_text(chosen.result), chosen.rates_source,
                     chosen_plan_table(chosen.result), chosen.ports_method, chosen.ports_reason);
}

}  // namespace regatta::report
