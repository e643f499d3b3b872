// Plans of GPU clusters in closed form.
#include <algorithm>
#include <cstddef>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/number_text.h"
#include "regatta/app/report/internal/old_names.h"
#include "regatta/app/report/internal/plan_parts.h"
#include "regatta/app/report/plan_report.h"
#include "regatta/base/core/text.h"

namespace regatta::report {
namespace {

using nlohmann::json;
using plan::EstimatedPlan;
using plan::PlanningProblem;

std::span<const EstimatedPlan> first_plans(const std::vector<EstimatedPlan>& plans, int top) {
  return std::span(plans).first(std::min(plans.size(), static_cast<std::size_t>(top)));
}

std::string estimated_ranking(const PlanningProblem& problem,
                              std::span<const EstimatedPlan> plans) {
  std::vector<std::vector<std::string>> rows = {
      {"#", "strategy", "step time", "mfu", "exposed comm", "bubble", "memory"}};
  int rank = 0;
  for (const EstimatedPlan& plan : plans) {
    const plan::StepBreakdown& step = plan.estimate.step;
    const Seconds all = step.total();
    const Seconds comm = step.tp_comm + step.cp_comm + step.ep_comm + step.pp_comm + step.dp_comm;
    rows.push_back({std::to_string(++rank), to_string(plan.strategy), format_seconds(all),
                    format_percent(plan::mfu(problem, plan)), share_of(comm, all),
                    share_of(step.bubble, all), format_bytes(plan.estimate.memory.total())});
  }
  return format_table(rows);
}

std::string frontier_text(const EstimatedSearchReport& report) {
  if (!report.has_frontier) return "";
  const auto& frontier = report.result.frontier;
  const auto shown = first_plans(frontier, report.top);
  std::string text = "\nplans that no other beats in both time and memory";
  if (shown.size() < frontier.size())
    text += fmt::format(", the first {} of {} (--top shows more)", shown.size(), frontier.size());
  return text + "\n" + estimated_ranking(report.best.problem, shown);
}

std::string estimated_plan_text(const PlanningProblem& problem, const EstimatedPlan& plan) {
  const plan::PlanMetrics metrics = plan::plan_metrics(problem, plan);
  std::string text = fmt::format("\nplan: {}\n", to_string(plan.strategy));
  if (const std::string shortfall = plan::memory_shortfall(problem, plan); !shortfall.empty())
    text += fmt::format("the plan {}\n", shortfall);
  text += step_parts_table(plan.estimate.step);
  text += fmt::format(
      "\n80 % of such steps take {} to {}; {:.0f} TFLOPS per device for the model ({:.0f} with "
      "recomputation), mfu {:.1f} %, {:.0f} tokens per second\n",
      format_seconds(metrics.interval.low), format_seconds(metrics.interval.high),
      metrics.per_device.value / 1e12, metrics.hardware_per_device.value / 1e12, 100 * metrics.mfu,
      metrics.tokens_per_s);
  text += stage_memory_text(plan.estimate, problem.server.device.memory);
  text += fmt::format("bottleneck: {}\n", metrics.binding);
  std::vector<std::string> changes;
  for (const plan::Sensitivity& one : metrics.sensitivities)
    changes.push_back(fmt::format("{} {:+.1f} %", one.what, 100 * one.step_change));
  return text + fmt::format("change of the step time with 10 % more: {}\n", join(changes, ", "));
}

std::string placement_text(const EstimatedPlanReport& report) {
  if (!report.placement) return "";
  const plan::FabricPlacement& placement = report.placement->placement;
  return fmt::format(
             "placement: {}\nthe busiest links between servers are in use for {} of a step (in "
             "rank order {}, lower bound {}); the schedule may overlap part of it with "
             "computation\n",
             placement.sentence, format_seconds(placement.time.total),
             format_seconds(placement.rank_order.total), format_seconds(placement.lower_bound)) +
         plan::score_text(report.cluster, report.placement->score);
}

json placement_json(const EstimatedPlanReport& report) {
  const plan::FabricPlacement& placement = report.placement->placement;
  json all = {{"sentence", placement.sentence},
              {"network_time_s", placement.time.total.value},
              {"rank_order_time_s", placement.rank_order.total.value},
              {"lower_bound_s", placement.lower_bound.value},
              {"devices", plan::placement_to_json(placement.device_of_rank, report.cluster)},
              {"score", plan::score_json(report.placement->score)}};
  add_old_names(all, {{"lower_bound_s", "at_least_s"}});
  return all;
}

// "job gpt on cluster a100: 1024 x a100, stack megatron"
std::string problem_text(const EstimatedPlanReport& report) {
  const workload::ModelShape& model = report.problem.model;
  const std::string tuning = is_frozen(model)
                                 ? fmt::format("; {} of {} parameters are trained",
                                               thousands(workload::trained_parameters(model)),
                                               thousands(workload::total_parameters(model)))
                                 : "";
  return fmt::format("job {} on cluster {}: {} x {}, stack {}{}", report.job.name,
                     report.cluster.name, report.problem.devices, report.problem.server.device.name,
                     stack_text(report.problem.stack), tuning);
}

json plan_rows(const PlanningProblem& problem, std::span<const EstimatedPlan> plans) {
  json rows = json::array();
  for (const EstimatedPlan& plan : plans)
    rows.push_back(plan::estimated_plan_row(problem, plan));
  return rows;
}

}  // namespace

std::string fixed_plan_text(const EstimatedPlanReport& report) {
  return problem_text(report) + "; the job fixes the strategy\n" +
         estimated_plan_text(report.problem, report.plan) + placement_text(report);
}

json fixed_plan_json(const EstimatedPlanReport& report) {
  json all = plan::estimated_plan_to_json(report.problem, report.plan);
  all.update({{"job", report.job.name},
              {"cluster", report.cluster.name},
              {"stack", report.problem.stack.name},
              {"devices", report.problem.devices},
              {"device", report.problem.server.device.name}});
  if (is_frozen(report.problem.model)) {
    all["parameters"] = workload::total_parameters(report.problem.model);
    all["trained_parameters"] = workload::trained_parameters(report.problem.model);
  }
  add_calibration(all, report.problem.stack);
  if (report.placement) all["placement"] = placement_json(report);
  return all;
}

std::string estimated_search_text(const EstimatedSearchReport& report) {
  return fmt::format("{}; {} candidates evaluated in {}, {} fit\n\n", problem_text(report.best),
                     thousands(report.result.evaluated), format_seconds(report.search_time),
                     thousands(report.result.fitting)) +
         estimated_ranking(report.best.problem, report.result.ranked) + frontier_text(report) +
         estimated_plan_text(report.best.problem, report.best.plan) + placement_text(report.best);
}

json estimated_search_json(const EstimatedSearchReport& report) {
  const PlanningProblem& problem = report.best.problem;
  json all = fixed_plan_json(report.best);
  all["search_time_s"] = report.search_time.value;
  all["points"] = report.result.points;
  all["evaluated"] = report.result.evaluated;
  all["fitting"] = report.result.fitting;
  all["ranked"] = plan_rows(problem, report.result.ranked);
  if (report.has_frontier)
    all["frontier"] = plan_rows(problem, first_plans(report.result.frontier, report.top));
  return all;
}

}  // namespace regatta::report
