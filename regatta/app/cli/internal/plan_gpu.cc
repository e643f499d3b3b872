#include "regatta/app/cli/internal/plan_gpu.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/plan_heterogeneous.h"
#include "regatta/app/cli/internal/plan_outputs.h"
#include "regatta/app/cli/internal/plan_sizes.h"
#include "regatta/app/cli/internal/plan_text.h"
#include "regatta/app/cli/internal/planning_inputs.h"
#include "regatta/app/cli/internal/search_progress.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/estimated_plan_metrics.h"
#include "regatta/planning/plan/placement.h"
#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::cli {
namespace {

using nlohmann::json;
using plan::EstimatedPlan;
using plan::PlanningProblem;

void print_ranked(const PlanningProblem& problem, const std::vector<EstimatedPlan>& plans) {
  std::vector<std::vector<std::string>> rows = {
      {"#", "strategy", "step time", "mfu", "exposed comm", "bubble", "memory"}};
  int rank = 0;
  for (const EstimatedPlan& plan : plans) {
    const plan::StepBreakdown& step = plan.estimate.step;
    const Seconds all = step.total();
    const Seconds comm = step.tp_comm + step.cp_comm + step.ep_comm + step.pp_comm + step.dp_comm;
    rows.push_back({std::to_string(++rank), to_string(plan.strategy), format_seconds(all),
                    fmt::format("{:.1f} %", 100 * plan::mfu(problem, plan)), share_text(comm, all),
                    share_text(step.bubble, all), format_bytes(plan.estimate.memory.total())});
  }
  fmt::print("{}", format_table(rows));
}

void print_plan(const PlanningProblem& problem, const EstimatedPlan& plan) {
  const plan::PlanMetrics answer = plan::plan_metrics(problem, plan);
  fmt::print("\nplan: {}\n", to_string(plan.strategy));
  if (const std::string shortfall = plan::memory_shortfall(problem, plan); !shortfall.empty())
    fmt::print("the plan {}\n", shortfall);
  print_parts(plan.estimate.step);
  fmt::print(
      "\n80 % of such steps take {} to {}; {:.0f} TFLOPS a device of the model's operations "
      "({:.0f} "
      "with recomputation), mfu {:.1f} %, {:.0f} tokens per second\n",
      format_seconds(answer.interval.low), format_seconds(answer.interval.high),
      answer.per_device.value / 1e12, answer.hardware_per_device.value / 1e12, 100 * answer.mfu,
      answer.tokens_per_s);
  print_memory(plan.estimate, problem.server.device.memory);
  fmt::print("binding: {}\n", answer.binding);
  std::string changes;
  for (const plan::Sensitivity& one : answer.sensitivities)
    changes +=
        fmt::format("{}{} {:+.1f} %", changes.empty() ? "" : ", ", one.what, 100 * one.step_change);
  fmt::print("the step with 10 % more of: {}\n", changes);
}

json header_json(const workload::Job& job, const topo::Cluster& cluster,
                 const PlanningProblem& problem) {
  return {{"job", job.name},
          {"cluster", cluster.name},
          {"stack", problem.stack.name},
          {"devices", problem.devices},
          {"device", problem.server.device.name}};
}

// Where the ranks go, on fabrics where it matters; nothing where the strategy does not fill
// servers.
std::optional<plan::FabricPlacement> placement_of(const PlanOptions& options,
                                                  const topo::Cluster& cluster,
                                                  const PlanningProblem& problem,
                                                  const EstimatedPlan& plan) {
  if (cluster.fabric.tiers < 2) return std::nullopt;
  const auto servers = plan::servers_without(cluster, options.without);
  if (!servers) return std::nullopt;
  const plan::EstimateInput input = plan::input_of(problem, plan.strategy);
  const plan::StrategyTraffic traffic =
      plan::strategy_traffic(input, plan::micro_batch_work(input, problem.machine),
                             plan::micro_batches_of(problem, plan.strategy));
  const auto placement =
      plan::place_on_fabric({.cluster = cluster,
                             .strategy = plan.strategy,
                             .traffic = traffic,
                             .servers = *servers,
                             .network_efficiency = problem.stack.calibration.network_efficiency});
  return placement ? std::optional(*placement) : std::nullopt;
}

plan::PlacementScore score_of(const plan::FabricPlacement& placement, const topo::Cluster& cluster,
                              const workload::Job& job, const EstimatedPlan& plan) {
  return plan::score_placement(cluster, job.model, plan.strategy, placement.device_of_rank);
}

void print_placement(const plan::FabricPlacement& placement, const topo::Cluster& cluster,
                     const plan::PlacementScore& score) {
  fmt::print(
      "placement: {}\nthe busiest links between servers take {} of a step, {} in rank order, at "
      "least "
      "{}; a schedule may hide more of it than computation beside it does\n",
      placement.sentence, format_seconds(placement.time.total),
      format_seconds(placement.rank_order.total), format_seconds(placement.lower_bound));
  fmt::print("{}", plan::score_text(cluster, score));
}

json placement_json(const plan::FabricPlacement& placement, const topo::Cluster& cluster,
                    const plan::PlacementScore& score) {
  return {{"sentence", placement.sentence},
          {"network_time_s", placement.time.total.value},
          {"rank_order_time_s", placement.rank_order.total.value},
          {"at_least_s", placement.lower_bound.value},
          {"devices", plan::placement_to_json(placement.device_of_rank, cluster)},
          {"score", plan::score_json(score)}};
}

int show_fixed(const PlanOptions& options, const workload::Job& job, const topo::Cluster& cluster,
               const PlanningProblem& problem, const workload::Strategy& strategy) {
  const auto estimate = plan::estimate_on(problem, strategy);
  if (!estimate) return report_error(estimate.error());
  const EstimatedPlan plan{strategy, *estimate};
  if (const std::string shortfall = plan::memory_shortfall(problem, plan); !shortfall.empty())
    print_warnings({"the plan " + shortfall});
  const auto is_printed = write_outputs(options, {job, cluster, problem, plan});
  if (!is_printed) return report_error(is_printed.error());
  if (*is_printed) return 0;
  if (options.json) {
    json all = plan::estimated_plan_to_json(problem, plan);
    all.update(header_json(job, cluster, problem));
    if (const auto placement = placement_of(options, cluster, problem, plan))
      all["placement"] =
          placement_json(*placement, cluster, score_of(*placement, cluster, job, plan));
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  fmt::print("job {} on cluster {}: {} x {}, stack {}; the strategy is fixed\n", job.name,
             cluster.name, problem.devices, problem.server.device.name, problem.stack.name);
  print_plan(problem, plan);
  if (const auto placement = placement_of(options, cluster, problem, plan))
    print_placement(*placement, cluster, score_of(*placement, cluster, job, plan));
  return 0;
}

int show_search(const PlanOptions& options, const workload::Job& job, const topo::Cluster& cluster,
                const PlanningProblem& problem) {
  const auto start = std::chrono::steady_clock::now();
  const auto mode = options.exhaustive || options.frontier ? plan::SearchMode::kExhaustive
                                                           : plan::SearchMode::kPruned;
  const int threads = search_threads();
  const auto result = [&] {
    const SearchProgress progress(stderr, "searching");
    return plan::search_estimated_plans(problem, mode, options.top, threads);
  }();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (!result) return report_error(result.error());
  const auto is_printed = write_outputs(options, {job, cluster, problem, result->ranked.front()});
  if (!is_printed) return report_error(is_printed.error());
  if (*is_printed) return 0;
  if (options.json) {
    json all = plan::estimated_plan_to_json(problem, result->ranked.front());
    all.update(header_json(job, cluster, problem));
    all["search_time_s"] = took.count();
    all["points"] = result->points;
    all["evaluated"] = result->evaluated;
    all["fitting"] = result->fitting;
    json ranked = json::array();
    for (const EstimatedPlan& plan : result->ranked)
      ranked.push_back(plan::estimated_plan_row(problem, plan));
    all["ranked"] = ranked;
    if (options.frontier) {
      json frontier = json::array();
      for (const EstimatedPlan& plan : result->frontier)
        frontier.push_back(plan::estimated_plan_row(problem, plan));
      all["frontier"] = frontier;
    }
    if (const auto placement = placement_of(options, cluster, problem, result->ranked.front()))
      all["placement"] = placement_json(*placement, cluster,
                                        score_of(*placement, cluster, job, result->ranked.front()));
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  fmt::print("job {} on cluster {}: {} x {}, stack {}; {} strategies {} in {}, {} of them fit\n\n",
             job.name, cluster.name, problem.devices, problem.server.device.name,
             problem.stack.name, result->evaluated,
             options.exhaustive ? "predicted" : "that bounds could not rule out predicted",
             format_seconds({took.count()}), result->fitting);
  print_ranked(problem, result->ranked);
  if (options.frontier) {
    fmt::print("\nplans that no other beats in both time and memory\n");
    print_ranked(problem, result->frontier);
  }
  print_plan(problem, result->ranked.front());
  if (const auto placement = placement_of(options, cluster, problem, result->ranked.front()))
    print_placement(*placement, cluster,
                    score_of(*placement, cluster, job, result->ranked.front()));
  return 0;
}

}  // namespace

int search_threads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

bool is_gpu_cluster(const topo::Cluster& cluster) {
  return std::any_of(
      cluster.server_types.begin(), cluster.server_types.end(),
      [](const auto& type) { return type.second.device.kind == topo::DeviceKind::kGpu; });
}

Result<const cost::SoftwareStack*> stack_of(const std::string& name, const workload::Job& job,
                                            const topo::Cluster& cluster) {
  if (name.empty()) {
    return &cost::default_software_stack(job.model, job.precision, job.strategy,
                                         cluster.type_of(ServerId{0}).device);
  }
  if (const cost::SoftwareStack* stack = cost::find_software_stack(name)) return stack;
  const std::string nearest = nearest_word(name, cost::software_stack_names());
  return Error{
      Code::kInvalidInput,
      fmt::format("--stack: there is no software stack '{}'; {}choose one of {}",
                  printable(name, 60), nearest.empty() ? "" : fmt::format("write {}, or ", nearest),
                  join(cost::software_stack_names(), ", "))};
}

Status check_gpu_job(const workload::Job& job) {
  if (job.placement.empty()) return {};
  return Error{Code::kInvalidInput,
               fmt::format("job {}: placement: on a cluster of GPUs the plan says where ranks go; "
                           "write placement: auto, or leave the key out",
                           job.name)};
}

Result<PlanningProblem> planning_problem(const workload::Job& job, const topo::Cluster& cluster,
                                         const cost::SoftwareStack& stack) {
  REGATTA_TRY_DO(check_gpu_job(job));
  const topo::ServerType& server = cluster.type_of(ServerId{0});
  for (const topo::Server& one : cluster.servers) {
    if (one.type == cluster.servers.front().type) continue;
    return Error{Code::kInvalidInput,
                 fmt::format("cluster {}: its servers are of several types ({}, {}); name servers "
                             "of one type",
                             cluster.name, cluster.servers.front().type, one.type)};
  }
  const workload::Strategy none;
  plan::MachineModel machine = plan::machine_model({.model = job.model,
                                                    .strategy = none,
                                                    .precision = job.precision,
                                                    .server = server,
                                                    .stack = stack});
  machine.network = cost::cluster_network(cluster, stack);
  REGATTA_TRY_DO(plan::check_machine_model(machine, server.device, job.precision));
  if (cluster.servers.size() > 1 && machine.network.reach.back().rate.value <= 0) {
    return Error{
        Code::kInvalidInput,
        fmt::format("cluster {}: nothing carries data between its servers; give server type "
                    "{} NICs with a rate, and the fabric uplinks",
                    cluster.name, cluster.servers.front().type)};
  }
  return PlanningProblem{.model = job.model,
                         .global_batch = job.global_batch,
                         .precision = job.precision,
                         .request = job.strategy,
                         .server = server,
                         .stack = stack,
                         .machine = machine,
                         .devices = static_cast<int>(cluster.servers.size()) * server.device_count};
}

int show_gpu_plans(const PlanOptions& options, const workload::Job& job,
                   const topo::Cluster& cluster) {
  if (const Status outputs = check_plan_outputs(options); !outputs)
    return report_error(outputs.error());
  const auto stack = stack_of(options.stack, job, cluster);
  if (!stack) return report_error(stack.error());
  if (has_heterogeneous_servers(cluster))
    return show_heterogeneous_plans(options, job, cluster, **stack);
  auto problem = planning_problem(job, cluster, **stack);
  if (!problem) return report_error(problem.error());
  problem->every_form = options.every_form;
  const auto left = plan::servers_without(cluster, options.without);
  if (!left) return report_error(left.error());
  if (left->empty()) {
    return report_error({Code::kInvalidInput,
                         fmt::format("--without: it names all servers of cluster {}; leave some in",
                                     cluster.name)});
  }
  const int servers = options.servers > 0 ? options.servers : static_cast<int>(left->size());
  if (servers > static_cast<int>(left->size())) {
    return report_error(
        {Code::kInvalidInput,
         fmt::format("cluster {}: {} servers are left, {} are asked for; take fewer", cluster.name,
                     left->size(), servers)});
  }
  problem->devices = servers * problem->server.device_count;
  if (options.sizes) return show_gpu_sizes(options, job, cluster, *problem);
  if (const auto strategy = plan::fixed_strategy(job.strategy, problem->devices))
    return show_fixed(options, job, cluster, *problem, *strategy);
  return show_search(options, job, cluster, *problem);
}

}  // namespace regatta::cli
