#include "regatta/app/cli/internal/plan_heterogeneous.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/plan_gpu.h"
#include "regatta/app/cli/internal/plan_text.h"
#include "regatta/app/cli/internal/search_progress.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/estimated_plan_metrics.h"
#include "regatta/planning/plan/heterogeneous_search.h"

namespace regatta::cli {
namespace {

using nlohmann::json;

std::string numbers(const std::vector<int>& values) {
  std::vector<std::string> words;
  words.reserve(values.size());
  for (const int value : values)
    words.push_back(std::to_string(value));
  return join(words, " ");
}

std::string server_names(const topo::Cluster& cluster, const std::vector<ServerId>& servers) {
  std::vector<std::string> names;
  names.reserve(servers.size());
  for (const ServerId server : servers)
    names.push_back(cluster.servers[server.index()].name);
  return join(names, " ");
}

json to_json(const plan::HeterogeneousProblem& problem, const plan::HeterogeneousPlan& one) {
  const plan::HeterogeneousPlanMetrics is = plan::plan_metrics(problem, one);
  const plan::Estimate& estimate = one.plan.estimate;
  return {{"strategy", workload::strategy_to_json(one.plan.strategy)},
          {"step_time_s", estimate.step.total().value},
          {"interval", {{"low_s", is.interval.low.value}, {"high_s", is.interval.high.value}}},
          {"tokens_per_s", is.tokens_per_s},
          {"tflops_per_device", is.per_device.value / 1e12},
          {"hardware_tflops_per_device", is.hardware_per_device.value / 1e12},
          {"mfu", is.mfu},
          {"memory_per_device_bytes", plan::whole_bytes(estimate.memory.total())},
          {"memory", plan::memory_to_json(estimate.memory)},
          {"worst_stage", estimate.worst_stage},
          {"fits", is.fit == plan::MemoryFit::kFits},
          {"fit", to_string(is.fit)},
          {"breakdown", plan::breakdown_to_json(estimate.step)},
          {"layers_of_stages", one.split.layers},
          {"micro_batches_of_replicas", one.split.micro_batches},
          {"servers", server_names(problem.cluster, one.servers)}};
}

void print_best(const plan::HeterogeneousProblem& problem, const plan::HeterogeneousPlan& best) {
  const plan::HeterogeneousPlanMetrics is = plan::plan_metrics(problem, best);
  fmt::print(
      "\nplan: {}\nlayers of stages: {}\nmicro-batches of replicas: {}\nservers in rank order: "
      "{}\n",
      to_string(best.plan.strategy), numbers(best.split.layers), numbers(best.split.micro_batches),
      server_names(problem.cluster, best.servers));
  print_parts(best.plan.estimate.step);
  fmt::print(
      "\n80 % of such steps take {} to {}; {:.0f} TFLOPS a device of the model's operations "
      "({:.0f} with recomputation), mfu {:.1f} % of all devices' peaks, {:.0f} tokens per second\n",
      format_seconds(is.interval.low), format_seconds(is.interval.high), is.per_device.value / 1e12,
      is.hardware_per_device.value / 1e12, 100 * is.mfu, is.tokens_per_s);
  print_memory(best.plan.estimate, best.capacity);
}

void print_plans(const plan::HeterogeneousProblem& problem,
                 const std::vector<plan::HeterogeneousPlan>& ranked) {
  std::vector<std::vector<std::string>> rows = {
      {"#", "strategy", "step time", "mfu", "bubble", "memory", "layers of stages"}};
  int rank = 0;
  for (const plan::HeterogeneousPlan& one : ranked) {
    const plan::StepBreakdown& step = one.plan.estimate.step;
    rows.push_back({std::to_string(++rank), to_string(one.plan.strategy),
                    format_seconds(step.total()),
                    fmt::format("{:.1f} %", 100 * plan::plan_metrics(problem, one).mfu),
                    share_text(step.bubble, step.total()),
                    format_bytes(one.plan.estimate.memory.total()), numbers(one.split.layers)});
  }
  fmt::print("{}", format_table(rows));
  print_best(problem, ranked.front());
}

}  // namespace

bool has_heterogeneous_servers(const topo::Cluster& cluster) {
  return std::any_of(cluster.servers.begin(), cluster.servers.end(), [&](const topo::Server& one) {
    return one.type != cluster.servers.front().type;
  });
}

int show_heterogeneous_plans(const PlanOptions& options, const workload::Job& job,
                             const topo::Cluster& cluster, const cost::SoftwareStack& stack) {
  if (const Status known = check_heterogeneous_options(options, cluster.name); !known)
    return report_error(known.error());
  if (const Status known = check_gpu_job(job); !known) return report_error(known.error());
  const plan::HeterogeneousProblem problem{.model = job.model,
                                           .global_batch = job.global_batch,
                                           .precision = job.precision,
                                           .request = job.strategy,
                                           .cluster = cluster,
                                           .stack = stack};
  const auto result = [&] {
    const SearchProgress progress(stderr, "searching");
    return plan::search_heterogeneous_plans(problem, options.top);
  }();
  if (!result) return report_error(result.error());
  if (options.json) {
    json all = to_json(problem, result->ranked.front());
    all["job"] = job.name;
    all["cluster"] = cluster.name;
    all["stack"] = stack.name;
    json ranked = json::array();
    for (const plan::HeterogeneousPlan& one : result->ranked)
      ranked.push_back(to_json(problem, one));
    all["ranked"] = ranked;
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  fmt::print(
      "job {} on cluster {}: servers of several types, stack {}; {} of {} strategies and orders "
      "of servers predicted\n\n",
      job.name, cluster.name, stack.name, result->evaluated, result->points);
  print_plans(problem, result->ranked);
  return 0;
}

}  // namespace regatta::cli
