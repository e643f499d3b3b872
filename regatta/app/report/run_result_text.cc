#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/number_text.h"
#include "regatta/app/report/run_result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/model/workload/timeline.h"

namespace regatta::report {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string phases_table(const PlanRun& run) {
  const auto& predicted = run.plan.prediction;
  const TimeFormat format(run.measured.step_time);
  Rows rows = {{"phase", "predicted", "measured", "difference"}};
  for (std::size_t i = 0; i < workload::kPhaseCount; ++i) {
    const auto phase = static_cast<workload::Phase>(i);
    if (predicted.phases[phase].value <= 0 && run.measured.phases[phase].value <= 0) continue;
    rows.push_back({std::string(workload::to_string(phase)), format(predicted.phases[phase]),
                    format(run.measured.phases[phase]),
                    format.difference(run.measured.phases[phase] - predicted.phases[phase])});
  }
  rows.push_back({"step", format(predicted.step_time), format(run.measured.step_time),
                  signed_percent(deviation(run))});
  return format_table(rows);
}

std::string sweep_table(const RunResult& result) {
  Rows rows = {{"plan", "predicted", "measured", "difference"}};
  const TimeFormat format(result.main.measured.step_time);
  for (const PlanRun& run : result.sweep)
    rows.push_back({workload::to_string(run.plan.strategy), format(run.plan.prediction.step_time),
                    format(run.measured.step_time), signed_percent(deviation(run))});
  return format_table(rows);
}

// The cost of choosing by prediction: the sweep's first plan is the one ranked first.
std::string choice_text(const RunResult& result) {
  if (result.sweep.size() < 2) return "";
  const Seconds first = result.sweep.front().measured.step_time;
  Seconds best = first;
  for (const PlanRun& run : result.sweep)
    best = std::min(best, run.measured.step_time);
  if (first == best) return "the plan ranked first is the fastest one measured\n";
  return fmt::format("the plan ranked first is {:.1f} % slower than the fastest one measured\n",
                     100 * (first / best - 1));
}

// "planned: data-parallel rings: 16 connections across switches, 1 at most on a link; ...".
std::string ports_text(const PortAssignment& ports) {
  if (ports.method != "planned") return fmt::format("{} ({})", ports.method, ports.why);
  std::vector<std::string> parts;
  for (const PortAssignmentSet& set : ports.sets)
    if (set.connections > 0)
      parts.push_back(fmt::format("{}: {} connections across switches, {} at most on a link",
                                  set.name, set.connections, set.most));
  if (parts.empty()) parts.push_back("no connections cross switches that have a choice");
  const std::string avoided =
      ports.avoided.empty() ? "" : fmt::format("; around {}", join(ports.avoided, ", "));
  return fmt::format("planned: {}{}", join(parts, "; "), avoided);
}

}  // namespace

std::string text_report(const RunResult& result) {
  const PlanRun& run = result.main;
  std::string text = fmt::format("plan {} ({})\n\n", workload::to_string(run.plan.strategy),
                                 run.plan.placement_name);
  text += phases_table(run);
  if (!run.measured.steps.empty())
    text +=
        fmt::format("\n{:.0f} tokens/s; loss {:.4f} after {} steps\n", run.measured.tokens_per_s,
                    run.measured.steps.back().loss, run.measured.steps.size());
  if (const auto ratio = speedup(result)) {
    const TimeFormat format(result.compare->measured.step_time);
    text += fmt::format(
        "\npure data parallelism ({}): predicted {}, measured {} ({})\nspeedup {:.2f}x, "
        "measured\n",
        workload::to_string(result.compare->plan.strategy),
        format(result.compare->plan.prediction.step_time),
        format(result.compare->measured.step_time), signed_percent(deviation(*result.compare)),
        *ratio);
  }
  if (!result.sweep.empty()) text += "\n" + sweep_table(result);
  if (const auto correlation = sweep_spearman(result))
    text += fmt::format("rank correlation (Spearman) {:.3f} over {} plans\n", *correlation,
                        result.sweep.size());
  return text + choice_text(result);
}

std::string progress_text(const TrainingProgress& run, const StepRecord& step) {
  const int done = step.step + 1;
  const Seconds left = run.mean_step * static_cast<double>(run.steps - done);
  return fmt::format("{}: step {}/{}  loss {:.4f}  {:.0f} tokens/s  {} a step  {:.0f} s left",
                     run.title, done, run.steps, step.loss,
                     static_cast<double>(run.tokens) / step.time.value, format_seconds(step.time),
                     left.value);
}

std::string resumed_text(const std::string& title, int steps, const std::string& folder) {
  return fmt::format("{}: resumed after step {} from the checkpoint in {}\n", title, steps, folder);
}

std::string trained_plan_text(const std::string& title, const PlanRun& run) {
  return fmt::format("{0}: {1} a step, predicted {2}\n{0}: ports {3}\n", title,
                     format_seconds(run.measured.step_time),
                     format_seconds(run.plan.prediction.step_time), ports_text(run.ports));
}

}  // namespace regatta::report
