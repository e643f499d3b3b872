// Plans whose steps were simulated, on clusters of CPUs.
#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/plan_report.h"
#include "regatta/base/core/text.h"
#include "regatta/model/topo/graph.h"

namespace regatta::report {
namespace {

using workload::Phase;

constexpr std::size_t kNextPlans = 4;

std::string step_percent(const plan::Prediction& prediction, Seconds part) {
  return fmt::format("{:.0f} %", 100 * (part / prediction.step_time));
}

Seconds compute_time(const workload::PhaseTimes& phases) {
  return phases[Phase::kForward] + phases[Phase::kBackward] + phases[Phase::kRecompute] +
         phases[Phase::kOptimizer];
}

// "A", "B" ... "Z", "27".
std::string placement_label(std::size_t index) {
  return index < 26 ? std::string(1, static_cast<char>('A' + index)) : std::to_string(index + 1);
}

// Placements are long and few: the table has their labels, and a legend below their names.
std::string simulated_ranking(const plan::SimulatedSearchResult& result, int top) {
  std::vector<std::vector<std::string>> rows = {{"#", "strategy", "step time", "compute", "tp_comm",
                                                 "pp_comm", "dp_comm", "bubble", "memory",
                                                 "placement"}};
  std::vector<std::string> placements;
  int rank = 0;
  for (const plan::SimulatedPlan& plan : result.ranked) {
    if (++rank > top) break;
    auto named = std::ranges::find(placements, plan.placement_name);
    if (named == placements.end()) named = placements.insert(named, plan.placement_name);
    const plan::Prediction& p = plan.prediction;
    rows.push_back(
        {std::to_string(rank), workload::to_string(plan.strategy), format_seconds(p.step_time),
         step_percent(p, compute_time(p.phases)), step_percent(p, p.phases[Phase::kTpComm]),
         step_percent(p, p.phases[Phase::kPpComm]), step_percent(p, p.phases[Phase::kDpComm]),
         step_percent(p, p.phases[Phase::kBubble]), format_bytes(p.memory.total()),
         placement_label(static_cast<std::size_t>(named - placements.begin()))});
  }
  std::string text = format_table(rows);
  for (std::size_t i = 0; i < placements.size(); ++i)
    text += fmt::format("placement {}: {}\n", placement_label(i), placements[i]);
  return text;
}

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

plan::PlacementScore score_of(const SimulatedSearchReport& search,
                              const plan::SimulatedPlan& plan) {
  return plan::score_placement(search.cluster, search.job.model, plan.strategy, plan.placement);
}

std::string best_plan_text(const SimulatedSearchReport& search, const plan::SimulatedPlan& plan) {
  const plan::Prediction& p = plan.prediction;
  std::vector<std::string> devices;
  for (const topo::DeviceRef device : plan.placement)
    devices.push_back(topo::to_string(search.cluster, device));
  std::string text =
      fmt::format("\nplan: {}\nplacement: {}\ndevices by rank: {}\n{}\n",
                  workload::to_string(plan.strategy), plan.placement_name, join(devices, " "),
                  plan::score_text(search.cluster, score_of(search, plan)));
  std::vector<std::vector<std::string>> rows = {{"phase", "time", "share"}};
  for (std::size_t i = 0; i < workload::kPhaseCount; ++i) {
    const Seconds time = p.phases.times[i];
    if (time.value <= 0) continue;
    rows.push_back({std::string(workload::to_string(static_cast<Phase>(i))), format_seconds(time),
                    step_percent(p, time)});
  }
  rows.push_back({"step", format_seconds(p.step_time), "100 %"});
  const plan::MemoryUse& m = p.memory;
  const double tokens = static_cast<double>(search.job.global_batch) * search.job.model.seq;
  return text + format_table(rows) +
         fmt::format(
             "\nmemory of rank {}, the fullest: {}: weights {}, gradients {}, optimizer {}, "
             "activations {}, buffers {}\ntokens per second: {:.0f}\n",
             p.memory_rank.value, format_bytes(m.total()), format_bytes(m.weights),
             format_bytes(m.gradients), format_bytes(m.optimizer), format_bytes(m.activations),
             format_bytes(m.buffers), tokens / p.step_time.value);
}

// "420 plans of 35 strategies evaluated, 3 strategies ruled out".
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

}  // namespace

std::string simulated_search_text(const SimulatedSearchReport& search) {
  return fmt::format("job {} on cluster {}: {}, in {}; rates: {}\n\n", search.job.name,
                     search.cluster.name, evaluation_count_text(search.result),
                     format_seconds(search.search_time), search.rates_source) +
         simulated_ranking(search.result, search.top) + rejected_table(search.result) +
         best_plan_text(search, search.result.ranked.front());
}

nlohmann::json simulated_search_json(const SimulatedSearchReport& search) {
  const plan::SimulatedPlan& best = search.result.ranked.front();
  nlohmann::json all = {{"job", search.job.name},
                        {"cluster", search.cluster.name},
                        {"rates", search.rates_source},
                        {"search_time_s", search.search_time.value},
                        {"warnings", search.warnings}};
  all["plan"] = plan::plan_to_json(best, search.cluster, topo::build_graph(search.cluster));
  all["predicted"] = all["plan"].at("predicted");
  all["plan"]["placement_score"] = plan::score_json(score_of(search, best));
  all["search"] = plan::search_to_json(search.result, search.cluster, search.top);
  return all;
}

std::string chosen_plan_text(const ChosenPlanReport& chosen) {
  return fmt::format("job {} on cluster {}: {}; rates: {}\n\n{}\nports {}: {}\n", chosen.job.name,
                     chosen.cluster.name, evaluation_count_text(chosen.result), chosen.rates_source,
                     chosen_plan_table(chosen.result), chosen.ports_method, chosen.ports_reason);
}

}  // namespace regatta::report
