#include "regatta/app/cli/internal/plan_command.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/plan_diff.h"
#include "regatta/app/cli/internal/plan_gpu.h"
#include "regatta/app/cli/internal/plan_options.h"
#include "regatta/app/cli/internal/plan_replay.h"
#include "regatta/app/cli/internal/plan_what_if.h"
#include "regatta/app/cli/internal/planning_inputs.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/planning/plan/estimated_plan_metrics.h"
#include "regatta/planning/plan/placement.h"
#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::cli {
namespace {

using nlohmann::json;
using workload::Phase;

std::string percent_of(const plan::Prediction& prediction, Seconds part) {
  return fmt::format("{:.0f} %", 100 * (part / prediction.step_time));
}

Seconds compute_time(const workload::PhaseTimes& phases) {
  return phases[Phase::kForward] + phases[Phase::kBackward] + phases[Phase::kRecompute] +
         phases[Phase::kOptimizer];
}

void print_ranked(const plan::SimulatedSearchResult& result, int top) {
  std::vector<std::vector<std::string>> rows = {{"#", "strategy", "step time", "compute", "tp_comm",
                                                 "pp_comm", "dp_comm", "bubble", "memory",
                                                 "placement"}};
  int rank = 0;
  for (const plan::SimulatedPlan& plan : result.ranked) {
    if (++rank > top) break;
    const plan::Prediction& p = plan.prediction;
    rows.push_back(
        {std::to_string(rank), workload::to_string(plan.strategy), format_seconds(p.step_time),
         percent_of(p, compute_time(p.phases)), percent_of(p, p.phases[Phase::kTpComm]),
         percent_of(p, p.phases[Phase::kPpComm]), percent_of(p, p.phases[Phase::kDpComm]),
         percent_of(p, p.phases[Phase::kBubble]), format_bytes(p.memory.total()),
         plan.placement_name});
  }
  fmt::print("{}", format_table(rows));
}

std::string range_text(double least, double most) {
  const std::string low = fmt::format("{:.2f}x", least);
  const std::string high = fmt::format("{:.2f}x", most);
  return low == high ? fmt::format(" ({})", low) : fmt::format(" ({} to {})", low, high);
}

// Losers by what ruled them out: one line for each kind of reason.
void print_rejected(const plan::SimulatedSearchResult& result) {
  if (result.rejected.empty()) return;
  struct Group {
    int count = 0;
    const plan::RejectedStrategy* example = nullptr;
    double least = 0;
    double most = 0;
  };
  std::map<std::string, Group> groups;
  for (const plan::RejectedStrategy& one : result.rejected) {
    std::string name = one.reason;
    if (one.kind == plan::RejectionReason::kMemory) name = "too much memory per device";
    if (one.kind == plan::RejectionReason::kSlower) {
      const std::size_t start = one.reason.find(": ") + 2;
      name = "slower: " + one.reason.substr(start, one.reason.find(" takes") - start);
    }
    Group& group = groups[name];
    if (group.count++ == 0) {
      group.example = &one;
      group.least = one.excess;
    }
    group.least = std::min(group.least, one.excess);
    group.most = std::max(group.most, one.excess);
  }
  fmt::print("\nruled out, each at its best placement\n");
  std::vector<std::vector<std::string>> rows = {{"what", "strategies", "for instance"}};
  for (const auto& [name, group] : groups) {
    std::string what = name;
    if (group.example->kind != plan::RejectionReason::kDoesNotDivide)
      what += range_text(group.least, group.most);
    std::string example = workload::to_string(group.example->strategy);
    if (group.example->kind != plan::RejectionReason::kDoesNotDivide)
      example += " " + group.example->reason;
    rows.push_back({what, std::to_string(group.count), example});
  }
  fmt::print("{}", format_table(rows));
}

plan::PlacementScore score_of(const PlanningInputs& inputs, const plan::SimulatedPlan& plan) {
  return plan::score_placement(inputs.cluster, inputs.job.model, plan.strategy, plan.placement);
}

void print_breakdown(const PlanningInputs& inputs, const plan::SimulatedPlan& plan) {
  const plan::Prediction& p = plan.prediction;
  fmt::print("\nplan: {}\nplacement: {}\n", workload::to_string(plan.strategy),
             plan.placement_name);
  std::vector<std::string> devices;
  for (const topo::DeviceRef device : plan.placement)
    devices.push_back(topo::to_string(inputs.cluster, device));
  fmt::print("devices by rank: {}\n{}\n", join(devices, " "),
             plan::score_text(inputs.cluster, score_of(inputs, plan)));
  std::vector<std::vector<std::string>> rows = {{"phase", "time", "share"}};
  for (std::size_t i = 0; i < workload::kPhaseCount; ++i) {
    const Seconds time = p.phases.times[i];
    if (time.value <= 0) continue;
    rows.push_back({std::string(workload::to_string(static_cast<Phase>(i))), format_seconds(time),
                    percent_of(p, time)});
  }
  rows.push_back({"step", format_seconds(p.step_time), "100 %"});
  fmt::print("{}", format_table(rows));
  const plan::MemoryUse& m = p.memory;
  fmt::print(
      "\nmemory of the worst rank ({}): {}: weights {}, gradients {}, optimizer {}, activations "
      "{}, buffers {}\n",
      p.memory_rank.value, format_bytes(m.total()), format_bytes(m.weights),
      format_bytes(m.gradients), format_bytes(m.optimizer), format_bytes(m.activations),
      format_bytes(m.buffers));
  const double tokens = static_cast<double>(inputs.job.global_batch) * inputs.job.model.seq;
  fmt::print("tokens per second: {:.0f}\n", tokens / p.step_time.value);
}

json result_to_json(const PlanningInputs& inputs, const plan::SimulatedSearchResult& result,
                    double seconds, int top) {
  const topo::Graph graph = topo::build_graph(inputs.cluster);
  json all = {{"job", inputs.job.name},
              {"cluster", inputs.cluster.name},
              {"rates", inputs.rates.source},
              {"search_time_s", seconds},
              {"warnings", inputs.warnings}};
  const json best = plan::plan_to_json(result.ranked.front(), inputs.cluster, graph);
  all["predicted"] = best.at("predicted");
  all["plan"] = best;
  all["plan"]["placement_score"] = plan::score_json(score_of(inputs, result.ranked.front()));
  all["search"] = plan::search_to_json(result, inputs.cluster, top);
  return all;
}

int show_plans(const PlanOptions& options) {
  // Not left to the command line's library: `plan replay` needs neither.
  if (options.job.empty() || options.cluster.empty()) {
    return report_error({Code::kInvalidInput,
                         std::string(options.job.empty() ? "plan: JOB" : "plan: --cluster") +
                             " is missing; write it like: regatta plan JOB --cluster CLUSTER"});
  }
  const auto cluster = load_cluster(options.cluster);
  if (!cluster) return report_error(cluster.error());
  if (is_gpu_cluster(*cluster)) {
    const auto job = load_job_with(options.job, options.strategy);
    return job ? show_gpu_plans(options, *job, *cluster) : report_error(job.error());
  }
  if (const Status known = check_cpu_options(options); !known) return report_error(known.error());
  const auto inputs = load_planning_inputs(options.job, options.cluster, options.strategy);
  if (!inputs) return report_error(inputs.error());
  const auto start = std::chrono::steady_clock::now();
  const auto result = plan::search_simulated_plans(inputs->job, inputs->cluster, inputs->rates);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (!result) return report_error(result.error());
  if (!options.json) print_warnings(inputs->warnings);
  if (options.json) {
    fmt::print("{}\n", result_to_json(*inputs, *result, took.count(), options.top).dump(2));
    return 0;
  }
  fmt::print("job {} on cluster {}: {}, in {}; rates: {}\n\n", inputs->job.name,
             inputs->cluster.name, count_text(*result), format_seconds({took.count()}),
             inputs->rates.source);
  print_ranked(*result, options.top);
  print_rejected(*result);
  print_breakdown(*inputs, result->ranked.front());
  return 0;
}

}  // namespace

std::string count_text(const plan::SimulatedSearchResult& result) {
  // The best placement of every strategy but the fastest is among the rejected, as slower.
  const auto slower = std::count_if(
      result.rejected.begin(), result.rejected.end(),
      [](const plan::RejectedStrategy& one) { return one.kind == plan::RejectionReason::kSlower; });
  const auto ruled_out = static_cast<std::ptrdiff_t>(result.rejected.size()) - slower;
  std::string text =
      fmt::format("{} plans of {} strategies predicted", result.evaluated, slower + 1);
  if (ruled_out > 0) text += fmt::format(", {} strategies ruled out", ruled_out);
  return text;
}

void add_plan_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand("plan", "Find the fastest parallel plan for a job");
  command->add_option("JOB", options->job, "Job file")->check(not_empty());
  command->add_option("--cluster", options->cluster, "Cluster file")
      ->type_name("CLUSTER")
      ->check(not_empty());
  command
      ->add_option("--strategy", options->strategy,
                   "What it names is kept, before the job's own; the rest is searched: "
                   "'{tp: 2, pp: 4}'")
      ->type_name("MAP")
      ->check(not_empty());
  command->add_option("--top", options->top, "How many plans to show")
      ->type_name("N")
      ->check(whole_number(1, kMostPlans))
      ->capture_default_str();
  command
      ->add_option("--stack", options->stack,
                   "GPUs: the software that trains; a wrong name lists them")
      ->type_name("NAME")
      ->check(not_empty());
  command->add_flag("--every-form", options->every_form,
                    "GPUs: also schedules that split the backward, offload, hybrid sharding");
  command->add_flag("--exhaustive", options->exhaustive, "GPUs: predict every strategy");
  command->add_flag("--frontier", options->frontier,
                    "GPUs: also the plans that no other beats in both time and memory");
  auto* sizes = command->add_flag(
      "--sizes", options->sizes,
      "GPUs: the best plan on several numbers of servers: time, money and devices traded");
  sizes->excludes("--frontier")->excludes("--exhaustive");
  command
      ->add_option("--objective", options->objective,
                   "With --sizes: what picks one: time (the default), cost, devices or memory")
      ->type_name("WHAT")
      ->check(one_of(plan::objective_names()))
      ->needs(sizes);
  command
      ->add_option("--within", options->within,
                   "With --sizes: the cheapest size that ends in this time: 30d, 12h")
      ->type_name("TIME")
      ->check(not_empty())
      ->needs(sizes);
  command->add_option("--steps", options->steps, "With --sizes: of the job, not those of its file")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000'000))
      ->needs(sizes);
  command
      ->add_option("--price", options->price, "With --sizes: of a device and hour, in any currency")
      ->check(number_up_to(kHighestPrice))
      ->needs(sizes);
  command
      ->add_option("--without", options->without_text,
                   "GPUs: servers that may not be used: failed, or of others: s3,s7")
      ->type_name("NAMES")
      ->check(not_empty());
  command->add_option("--servers", options->servers, "GPUs: use so many servers of the cluster")
      ->type_name("N")
      ->check(whole_number(1, topo::kMaxServers));
  auto* launch = command->add_option(
      "--launch", options->launcher,
      "GPUs: print the best plan as a script of megatron, deepspeed or torchrun");
  launch->type_name("FRAMEWORK")->check(one_of({"megatron", "deepspeed", "torchrun"}));
  command->add_option("--html", options->html, "GPUs: write the plan and its timeline as a page")
      ->type_name("FILE")
      ->check(not_empty());
  command->add_option("--trace", options->trace, "GPUs: write the timeline for Perfetto")
      ->type_name("FILE")
      ->check(not_empty());
  command->add_flag("--json", options->json, "Print JSON")->excludes(launch);
  command->footer(
      "Examples:\n"
      "  regatta plan examples/job.yaml --cluster examples/cluster.yaml\n"
      "  regatta plan examples/job.yaml --cluster examples/cluster.yaml --strategy '{tp: 2}'\n"
      "  regatta plan examples/gpt3-175b.yaml --cluster examples/a100-1024.yaml "
      "--html plan.html\n"
      "  regatta plan examples/gpt3-175b.yaml --cluster examples/a100-1024.yaml "
      "--launch megatron\n"
      "  regatta plan examples/gpt3-175b.yaml --cluster examples/a100-1024.yaml --sizes "
      "--price 2 --steps 95367");
  command->callback([command, options, &exit_status] {
    if (!command->get_subcommands().empty()) return;
    const Status names = read_server_names(*options);
    exit_status = names ? show_plans(*options) : report_error(names.error());
  });
  add_plan_diff(*command, exit_status);
  add_plan_replay(*command, exit_status);
  add_plan_what_if(*command, exit_status);
}

}  // namespace regatta::cli
