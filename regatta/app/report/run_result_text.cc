#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/number_text.h"
#include "regatta/app/report/run_result.h"
#include "regatta/base/core/text.h"
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
  return text;
}

}  // namespace regatta::report
