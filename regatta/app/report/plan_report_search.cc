// Plans of any cluster: the ranking, the best plan in full, its placement.
#include <algorithm>
#include <cstddef>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/number_text.h"
#include "regatta/app/report/internal/old_names.h"
#include "regatta/app/report/internal/plan_parts.h"
#include "regatta/app/report/internal/simulated_plan_parts.h"
#include "regatta/app/report/plan_report.h"
#include "regatta/base/core/text.h"
#include "regatta/model/topo/graph.h"

namespace regatta::report {
namespace {

using nlohmann::json;
using plan::Plan;
using plan::PlanningProblem;

std::span<const Plan> first_plans(const std::vector<Plan>& plans, int top) {
  return std::span(plans).first(std::min(plans.size(), static_cast<std::size_t>(top)));
}

// "zero2, zero2 overlap=off": in what the others differ from `plan`.
std::string same_text(const Plan& plan, const std::vector<workload::Strategy>& same) {
  std::vector<std::string> others;
  for (const workload::Strategy& other : same) {
    std::vector<std::string> words;
    if (other.cp != plan.strategy.cp)
      words.push_back(fmt::format("cp{} dp{} mb{}", other.cp, other.dp, other.micro_batch));
    if (other.zero != plan.strategy.zero) words.push_back(fmt::format("zero{}", other.zero));
    if (other.overlap != plan.strategy.overlap)
      words.push_back(other.overlap ? "overlap=on" : "overlap=off");
    others.push_back(join(words, " "));
  }
  return join(others, ", ");
}

std::string interval_text(const plan::PredictionInterval& interval) {
  return fmt::format("{} to {}", format_seconds(interval.low), format_seconds(interval.high));
}

// Why an interval is wide; "" where runs of the kind were compared.
std::string kind_text(const PlanningProblem& problem, const plan::PredictionInterval& interval) {
  if (interval.is_compared) return "";
  return fmt::format(
      " (no published run of this kind was compared: {} in {} on {}; so twice as wide)",
      has_experts(problem.model) ? "a mixture of experts" : "a dense model",
      to_string(problem.precision), plan::device_names(problem));
}

std::vector<std::string> ranking_row(const PlanningProblem& problem, const std::string& rank,
                                     const Plan& plan) {
  const plan::StepBreakdown& step = plan.estimate.step;
  const Seconds all = step.total();
  const Seconds comm = step.tp_comm + step.cp_comm + step.ep_comm + step.pp_comm + step.dp_comm;
  return {rank,
          to_string(plan.strategy),
          format_seconds(all),
          interval_text(plan::prediction_interval(problem, plan)),
          format_percent(plan::mfu(problem, plan)),
          share_of(comm, all),
          share_of(step.bubble, all),
          format_bytes(plan.estimate.memory.total())};
}

// `own` stand below the ranks; one of them may not fit. Simulated plans of the same strategy differ
// in their placement.
std::string ranking_table(const PlanningProblem& problem, std::span<const Plan> plans,
                          std::span<const Plan> own = {}) {
  std::vector<std::vector<std::string>> rows = {
      {"#", "strategy", "step time", "80 % within", "mfu", "exposed comm", "bubble", "memory"}};
  const std::size_t columns = rows.front().size();
  for (const Plan& plan : plans)
    rows.push_back(ranking_row(problem, std::to_string(rows.size()), plan));
  for (const Plan& plan : own) {
    rows.push_back(ranking_row(problem, "yours", plan));
    const auto fit = plan::memory_fit(problem, plan);
    if (fit != plan::MemoryFit::kFits) rows.back().back() += ", " + to_string(fit);
  }
  if (!problem.simulated) return format_table(rows);
  rows.front().emplace_back("placement");
  for (std::size_t i = 0; i < plans.size(); ++i)
    rows[i + 1].push_back(placement_label(plans, plans[i]));
  for (std::vector<std::string>& row : rows)
    row.resize(columns + 1);
  return format_table(rows) + placement_legend(plans);
}

// The rank of a strategy, from 1; 0: it is not among the plans.
std::size_t rank_of(std::span<const Plan> plans, const workload::Strategy& strategy) {
  const auto found = std::find_if(plans.begin(), plans.end(),
                                  [&](const Plan& plan) { return plan.strategy == strategy; });
  return found == plans.end() ? 0 : static_cast<std::size_t>(found - plans.begin()) + 1;
}

// How the user's own strategies stand to the best.
std::string own_text(const PlanSearchReport& report) {
  std::string text;
  for (const Plan& own : report.compared) {
    const double ratio = own.estimate.step.total() / report.best.plan.estimate.step.total();
    const std::size_t rank = rank_of(report.result.ranked, own.strategy);
    const std::string shortfall = plan::memory_shortfall(report.best.problem, own);
    text +=
        fmt::format("yours, {}: {:+.1f} % to the step of the plan{}{}\n", to_string(own.strategy),
                    100 * (ratio - 1), rank == 0 ? "" : fmt::format("; it is rank {}", rank),
                    shortfall.empty() ? "" : "; it " + shortfall);
  }
  return text;
}

// The plans of a row that are as fast, below the table: a line for each row that has some.
std::string same_plans_text(const PlanningProblem& problem, std::span<const Plan> plans) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::string same = same_text(plans[i], plan::same_plans(problem, plans[i]));
    if (!same.empty()) words.push_back(fmt::format("{}: {}", i + 1, same));
  }
  if (words.empty()) return "";
  return fmt::format("as fast: {}\n", join(words, "; "));
}

std::string frontier_text(const PlanSearchReport& report) {
  if (!report.has_frontier) return "";
  const auto& frontier = report.result.frontier;
  const auto shown = first_plans(frontier, report.top);
  std::string text = "\nplans that no other beats in both time and memory";
  if (shown.size() < frontier.size())
    text += fmt::format(", the first {} of {} (--top shows more)", shown.size(), frontier.size());
  return text + "\n" + ranking_table(report.best.problem, shown);
}

// "16 x 1, 16 x 3", "24 8"; equal ones in a row are counted where there are many.
std::string numbers_text(const std::vector<int>& values) {
  constexpr std::size_t kFew = 8;
  std::vector<std::string> words;
  for (auto at = values.begin(); at != values.end();) {
    const auto end = std::find_if(at, values.end(), [&](int value) { return value != *at; });
    if (values.size() > kFew) {
      words.push_back(fmt::format("{} x {}", end - at, *at));
    } else {
      words.insert(words.end(), static_cast<std::size_t>(end - at), std::to_string(*at));
    }
    at = end;
  }
  return join(words, values.size() > kFew ? ", " : " ");
}

// The split and the servers of a plan on servers of several types, the devices of a simulated one.
std::string where_text(const PlanningProblem& problem, const Plan& plan) {
  std::vector<std::string> names;
  if (plan.simulated) {
    for (const topo::DeviceRef device : plan.simulated->placement)
      names.push_back(topo::to_string(*problem.cluster, device));
    const plan::PlacementScore score = plan::score_placement(
        *problem.cluster, problem.model, plan.strategy, plan.simulated->placement);
    return fmt::format("placement: {}\ndevices by rank: {}\n{}\n", plan.simulated->placement_name,
                       join(names, " "), plan::score_text(*problem.cluster, score));
  }
  if (plan.servers.empty()) return "";
  for (const ServerId server : plan.servers)
    names.push_back(problem.cluster->servers[server.index()].name);
  return fmt::format(
      "layers by stage: {}\nmicro-batches by replica: {}\nservers in rank order: {}\n",
      numbers_text(plan::layers_of_stages(problem, plan)), numbers_text(plan.micro_batches),
      join(names, " "));
}

// Given weights that replicas share have a stack of their own, so that the plan would be priced
// anew.
std::string stack_note(const PlanningProblem& problem, const workload::Strategy& strategy) {
  if (problem.simulated || strategy.zero < 3 || problem.request.zero == 3) return "";
  workload::StrategyRequest given = problem.request;
  given.zero = 3;
  const cost::SoftwareStack& usual =
      cost::default_software_stack(problem.model, problem.precision, given, problem.server.device);
  if (usual.name == problem.stack.name) return "";
  return fmt::format(
      "where zero 3 is given, the usual stack is {}; --stack {} keeps these figures\n", usual.name,
      problem.stack.name);
}

std::string plan_text(const PlanningProblem& problem, const Plan& plan) {
  const plan::PlanMetrics metrics = plan::plan_metrics(problem, plan);
  const std::string shortfall = plan::memory_shortfall(problem, plan);
  std::string text = fmt::format("\n{}: {}\n", shortfall.empty() ? "plan" : "no plan, a strategy",
                                 to_string(plan.strategy));
  if (!shortfall.empty()) text += fmt::format("it {}\n", shortfall);
  text += stack_note(problem, plan.strategy) + where_text(problem, plan);
  text += step_parts_table(plan);
  text += fmt::format(
      "\n80 % of such steps take {}; {} per device for the model ({} with "
      "recomputation), mfu {:.1f} %{}, {:.0f} tokens per second\n",
      interval_text(metrics.interval) + kind_text(problem, metrics.interval),
      format_flops_per_second(metrics.per_device),
      format_flops_per_second(metrics.hardware_per_device), 100 * metrics.mfu,
      is_heterogeneous(problem) ? " of all devices' peaks" : "", metrics.tokens_per_s);
  text += stage_memory_text(problem, plan);
  text += fmt::format("bottleneck: {}\n", metrics.binding);
  std::vector<std::string> changes;
  for (const plan::Sensitivity& one : metrics.sensitivities)
    changes.push_back(fmt::format("{} {:+.1f} %", one.what, 100 * one.step_change));
  return text + fmt::format("change of the step time with 10 % more: {}\n", join(changes, ", "));
}

std::string placement_text(const PlanReport& report) {
  if (!report.placement) return "";
  const plan::FabricPlacement& placement = report.placement->placement;
  return fmt::format(
             "placement: {}\na step waits {} for the busiest links between servers (in rank order "
             "{}, "
             "lower bound {})\n",
             placement.sentence, format_seconds(placement.time.total),
             format_seconds(placement.rank_order.total), format_seconds(placement.lower_bound)) +
         plan::score_text(report.cluster, report.placement->score);
}

json placement_json(const PlanReport& report) {
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

// The stack and what it assumes.
std::string assumptions_text(const PlanningProblem& problem) {
  const cost::SoftwareStack& stack = problem.stack;
  if (problem.simulated) return "";
  return fmt::format("stack {} assumes {}; its scalars: {}; --stack takes another\n", stack.name,
                     stack.assumes, stack.fitted_on);
}

// "job gpt on cluster a100: 1024 x a100, stack megatron"
std::string problem_text(const PlanReport& report) {
  const workload::ModelShape& model = report.problem.model;
  const std::string tuning = is_frozen(model)
                                 ? fmt::format("; {} of {} parameters are trained",
                                               thousands(workload::trained_parameters(model)),
                                               thousands(workload::total_parameters(model)))
                                 : "";
  return fmt::format("job {} on cluster {}: {} x {}, stack {}{}", report.job.name,
                     report.cluster.name, report.problem.devices,
                     plan::device_names(report.problem), stack_text(report.problem.stack), tuning);
}

json plan_rows(const PlanningProblem& problem, std::span<const Plan> plans) {
  json rows = json::array();
  for (const Plan& plan : plans)
    rows.push_back(plan::plan_row(problem, plan));
  return rows;
}

// The best of each family, with the strategies that are as fast.
json family_rows(const PlanningProblem& problem, std::span<const Plan> plans) {
  json rows = plan_rows(problem, plans);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    rows[i]["same"] = json::array();
    for (const workload::Strategy& other : plan::same_plans(problem, plans[i]))
      rows[i]["same"].push_back(workload::strategy_to_json(other));
  }
  return rows;
}

}  // namespace

std::string exact_plan_text(const PlanReport& report) {
  return problem_text(report) + "; the strategy as it stands, nothing was searched\n" +
         assumptions_text(report.problem) + plan_text(report.problem, report.plan) +
         placement_text(report);
}

json exact_plan_json(const PlanReport& report) {
  json all = plan::plan_to_json(report.problem, report.plan);
  all.update({{"job", report.job.name},
              {"cluster", report.cluster.name},
              {"stack", report.problem.stack.name},
              {"stack_assumes", report.problem.stack.assumes},
              {"devices", report.problem.devices},
              {"device", plan::device_names(report.problem)}});
  if (is_frozen(report.problem.model)) {
    all["parameters"] = workload::total_parameters(report.problem.model);
    all["trained_parameters"] = workload::trained_parameters(report.problem.model);
  }
  add_calibration(all, report.problem.stack);
  if (report.placement) all["placement"] = placement_json(report);
  if (!report.plan.simulated) return all;
  const topo::Graph graph = topo::build_graph(report.cluster);
  all["rates"] = report.problem.simulated->rates.source;
  all["warnings"] = report.warnings;
  all["plan"] = plan::plan_to_json(*report.plan.simulated, report.cluster, graph);
  all["predicted"] = all["plan"].at("predicted");
  all["plan"]["placement_score"] = plan::score_json(
      plan::score_placement(report.cluster, report.problem.model, report.plan.strategy,
                            report.plan.simulated->placement));
  return all;
}

std::string plan_search_text(const PlanSearchReport& report) {
  const auto& simulated = report.result.simulated;
  const std::string took = format_seconds(report.search_time);
  const std::string head =
      simulated
          ? fmt::format("job {} on cluster {}: {}, in {}; rates: {}\n", report.best.job.name,
                        report.best.cluster.name, evaluation_count_text(*simulated), took,
                        report.best.problem.simulated->rates.source)
          : fmt::format("{}; {} candidates evaluated in {}, {} fit\n", problem_text(report.best),
                        thousands(report.result.evaluated), took, thousands(report.result.fitting));
  return head + assumptions_text(report.best.problem) + "\n" +
         ranking_table(report.best.problem, report.result.ranked, report.compared) +
         same_plans_text(report.best.problem, report.result.ranked) + own_text(report) +
         frontier_text(report) + (simulated ? rejected_table(*simulated) : "") +
         plan_text(report.best.problem, report.best.plan) + placement_text(report.best);
}

json plan_search_json(const PlanSearchReport& report) {
  const PlanningProblem& problem = report.best.problem;
  json all = exact_plan_json(report.best);
  all["search_time_s"] = report.search_time.value;
  all["points"] = report.result.points;
  all["evaluated"] = report.result.evaluated;
  all["fitting"] = report.result.fitting;
  all["ranked"] = family_rows(problem, report.result.ranked);
  if (!report.compared.empty()) all["compared"] = plan_rows(problem, report.compared);
  for (std::size_t i = 0; i < report.compared.size(); ++i) {
    const std::size_t rank = rank_of(report.result.ranked, report.compared[i].strategy);
    if (rank > 0) all["compared"][i]["rank"] = rank;
    if (rank > 0) all["ranked"][rank - 1]["yours"] = true;
  }
  if (report.result.simulated)
    all["search"] = plan::search_to_json(*report.result.simulated, report.best.cluster, report.top);
  if (report.has_frontier)
    all["frontier"] = plan_rows(problem, first_plans(report.result.frontier, report.top));
  return all;
}

}  // namespace regatta::report
