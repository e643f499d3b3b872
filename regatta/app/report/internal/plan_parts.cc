#include "regatta/app/report/internal/plan_parts.h"

#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/text.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::report {

std::string share_of(Seconds part, Seconds whole) {
  return format_percent(part / whole);
}

std::string step_parts_table(const plan::Plan& plan) {
  const Seconds all = plan.estimate.step.total();
  std::vector<std::vector<std::string>> rows = {{"part", "time", "share"}};
  for (const plan::NamedStepPart& part : plan::plan_parts(plan)) {
    if (part.time.value <= 0) continue;
    rows.push_back({part.name, format_seconds(part.time), share_of(part.time, all)});
  }
  rows.push_back({"step", format_seconds(all), "100 %"});
  return format_table(rows);
}

std::string stage_memory_text(const plan::PlanningProblem& problem, const plan::Plan& plan) {
  const cost::GpuMemory& m = plan.estimate.memory;
  return fmt::format(
      "\nmemory per device of stage {}: {} of {} ({}): weights {}, gradients {}, optimizer {}, "
      "activations {}, working space {}, context {}\n",
      plan.estimate.worst_stage, format_bytes(m.total()),
      format_bytes(plan::capacity_of(problem, plan)), to_string(plan::memory_fit(problem, plan)),
      format_bytes(m.weights), format_bytes(m.gradients), format_bytes(m.optimizer),
      format_bytes(m.activations), format_bytes(m.working), format_bytes(m.context));
}

std::string stack_text(const cost::SoftwareStack& stack) {
  const bool is_calibrated = stack.own_dense.count + stack.own_experts.count > 0;
  return is_calibrated ? stack.name + " calibrated on " + stack.fitted_on : stack.name;
}

void add_calibration(nlohmann::json& plan, const cost::SoftwareStack& stack) {
  const int runs = stack.own_dense.count + stack.own_experts.count;
  if (runs > 0) plan["calibration"] = {{"runs", runs}, {"source", stack.fitted_on}};
}

nlohmann::json score_json(const replay::PredictionScore& score) {
  return {{"rows", score.rows},
          {"mape", score.mape},
          {"median", score.median},
          {"worst", score.worst},
          {"spearman", score.spearman ? nlohmann::json(*score.spearman) : nlohmann::json()},
          {"top1_regret", score.regret}};
}

}  // namespace regatta::report
