#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/html_sections.h"
#include "regatta/app/report/internal/html_text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"

namespace regatta::report {
namespace {

using workload::Phase;

constexpr std::size_t kBest = 10;
constexpr std::size_t kRejectedShown = 40;

bool is_same_plan(const plan::SimulatedPlan& a, const plan::SimulatedPlan& b) {
  return a.strategy == b.strategy && a.placement == b.placement;
}

// The measured step time of a candidate that was trained; nullptr when it was not.
const MeasuredRun* measurement_of(const RunResult& result, const plan::SimulatedPlan& candidate) {
  if (is_same_plan(result.main.plan, candidate)) return &result.main.measured;
  if (result.compare && is_same_plan(result.compare->plan, candidate))
    return &result.compare->measured;
  for (const PlanRun& run : result.sweep)
    if (is_same_plan(run.plan, candidate)) return &run.measured;
  return nullptr;
}

// Why a candidate is slower than the best: the phase that grew the most.
std::string reason_of(const plan::Prediction& best, const plan::Prediction& loser) {
  const Phase worst = workload::largest_phase_increase(best.phases, loser.phases);
  const Seconds growth = loser.phases[worst] - best.phases[worst];
  if (growth.value <= 0) return "as fast";
  return color_key(workload::to_string(worst), workload::to_string(worst)) + " " +
         TimeFormat(best.step_time).difference(growth);
}

TableRow candidate_row(const RunResult& result, std::size_t index, Seconds full) {
  const plan::SimulatedPlan& best = result.search.ranked.front();
  const plan::SimulatedPlan& candidate = result.search.ranked[index];
  const TimeFormat format(best.prediction.step_time);
  const MeasuredRun* measured = measurement_of(result, candidate);
  const double factor = best.prediction.step_time.value > 0
                            ? candidate.prediction.step_time / best.prediction.step_time
                            : 1;
  const bool is_chosen = is_same_plan(result.main.plan, candidate);
  return {.cells = {fmt::format("{}", index + 1), strategy_html(candidate.strategy),
                    escape_html(candidate.placement_name), format(candidate.prediction.step_time),
                    fmt::format("{:.2f}x", factor),
                    measured != nullptr ? format(measured->step_time) : "",
                    phase_bar(candidate.prediction.phases, full, " small"),
                    format_bytes(candidate.prediction.memory.total()),
                    is_chosen    ? "chosen"
                    : index == 0 ? ""
                                 : reason_of(best.prediction, candidate.prediction)},
          .style = is_chosen ? "chosen" : ""};
}

std::string best_table(const RunResult& result) {
  const std::size_t count = std::min(kBest, result.search.ranked.size());
  Seconds full;
  for (std::size_t i = 0; i < count; ++i)
    full = std::max(full, result.search.ranked[i].prediction.phases.total());
  std::vector<TableRow> rows;
  rows.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    rows.push_back(candidate_row(result, i, full));
  return html_table({{"#", false},
                     {"Strategy", false},
                     {"Placement", false},
                     {"Predicted", true},
                     {"vs best", true},
                     {"Measured", true},
                     {"Phases", false},
                     {"Memory", true},
                     {"What costs more", false}},
                    rows);
}

std::string rejected_table(const RunResult& result) {
  const auto& rejected = result.search.rejected;
  if (rejected.empty()) return "";
  std::vector<TableRow> rows;
  for (std::size_t i = 0; i < std::min(kRejectedShown, rejected.size()); ++i)
    rows.push_back(
        {.cells = {strategy_html(rejected[i].strategy), escape_html(rejected[i].placement_name),
                   escape_html(rejected[i].reason)},
         .style = ""});
  std::string html = fmt::format("<details{}><summary>{} left out, and why</summary>\n",
                                 rejected.size() <= 8 ? " open" : "", rejected.size());
  html += html_table({{"Strategy", false}, {"Placement", false}, {"Ruled out by", false}}, rows);
  if (rejected.size() > kRejectedShown)
    html += fmt::format("<p class=\"hint\">and {} more, in result.json</p>\n",
                        rejected.size() - kRejectedShown);
  return html + "</details>\n";
}

std::string placement_text(const RunResult& result) {
  std::string text;
  const plan::Placement& placement = result.main.plan.placement;
  constexpr std::size_t kShown = 16;
  for (std::size_t rank = 0; rank < std::min(kShown, placement.size()); ++rank)
    text += fmt::format("{}{} on {}", rank == 0 ? "rank " : ", ", rank,
                        topo::to_string(result.cluster, placement[rank]));
  return text + (placement.size() > kShown ? ", ..." : "");
}

}  // namespace

std::string plan_section(const RunResult& result) {
  if (result.search.ranked.empty() && result.search.rejected.empty()) return "";
  std::string body;
  if (!result.search.ranked.empty()) body += best_table(result);
  body += rejected_table(result);
  return section(
      "How the plan was chosen",
      fmt::format("{} plans predicted; the fastest that fit. Chosen: {} ({}).",
                  result.search.evaluated, result.main.plan.placement_name, placement_text(result)),
      body);
}

}  // namespace regatta::report
