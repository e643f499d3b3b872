#include "regatta/cli/plan_mixed.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/cli/load.h"
#include "regatta/core/text.h"
#include "regatta/core/units_text.h"
#include "regatta/plan/gpu_answer.h"
#include "regatta/plan/mixed_search.h"
#include "regatta/workload/job_json.h"

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

json to_json(const workload::Job& job, const topo::Cluster& cluster, const plan::MixedPlan& one) {
  const Seconds step = one.plan.estimate.step.total();
  json parts = json::object();
  for (const plan::NamedPart& part : plan::named_parts(one.plan.estimate.step))
    parts[part.name + "_s"] = part.time.value;
  return {{"strategy", workload::strategy_to_json(one.plan.strategy)},
          {"step_time_s", step.value},
          {"tokens_per_s", static_cast<double>(job.global_batch) * job.model.seq / step.value},
          {"memory_per_device_bytes", one.plan.estimate.memory.total()},
          {"breakdown", parts},
          {"layers_of_stages", one.split.layers},
          {"micro_batches_of_replicas", one.split.micro_batches},
          {"servers", server_names(cluster, one.servers)}};
}

void print_plans(const topo::Cluster& cluster, const std::vector<plan::MixedPlan>& ranked) {
  std::vector<std::vector<std::string>> rows = {
      {"#", "strategy", "step time", "bubble", "memory", "layers of stages"}};
  int rank = 0;
  for (const plan::MixedPlan& one : ranked) {
    const plan::StepBreakdown& step = one.plan.estimate.step;
    rows.push_back({std::to_string(++rank), to_string(one.plan.strategy),
                    format_seconds(step.total()),
                    fmt::format("{:.1f} %", 100 * (step.bubble / step.total())),
                    format_bytes({static_cast<long long>(one.plan.estimate.memory.total())}),
                    numbers(one.split.layers)});
  }
  const plan::MixedPlan& best = ranked.front();
  fmt::print("{}\nlayers of stages: {}\nmicro-batches of replicas: {}\nservers in rank order: {}\n",
             format_table(rows), numbers(best.split.layers), numbers(best.split.micro_batches),
             server_names(cluster, best.servers));
}

}  // namespace

bool has_mixed_servers(const topo::Cluster& cluster) {
  return std::any_of(cluster.servers.begin(), cluster.servers.end(), [&](const topo::Server& one) {
    return one.type != cluster.servers.front().type;
  });
}

int show_mixed_plans(const PlanOptions& options, const workload::Job& job,
                     const topo::Cluster& cluster, const cost::Stack& stack) {
  if (!options.html.empty() || !options.trace.empty() || !options.launcher.empty() ||
      !options.without.empty() || options.servers > 0 || options.sizes) {
    return report_error(
        {Code::kInvalidInput,
         fmt::format("cluster {}: its servers are of several types: --html, --trace, "
                     "--launch, --without, --servers and --sizes need one type",
                     cluster.name)});
  }
  const auto result = plan::mixed_search({.model = job.model,
                                          .global_batch = job.global_batch,
                                          .precision = job.precision,
                                          .request = job.strategy,
                                          .cluster = cluster,
                                          .stack = stack},
                                         options.top);
  if (!result) return report_error(result.error());
  if (options.json) {
    json all = to_json(job, cluster, result->ranked.front());
    all["job"] = job.name;
    all["cluster"] = cluster.name;
    all["stack"] = stack.name;
    json ranked = json::array();
    for (const plan::MixedPlan& one : result->ranked)
      ranked.push_back(to_json(job, cluster, one));
    all["ranked"] = ranked;
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  fmt::print(
      "job {} on cluster {}: servers of several types, stack {}; {} of {} strategies and orders "
      "of servers predicted\n\n",
      job.name, cluster.name, stack.name, result->evaluated, result->points);
  print_plans(cluster, result->ranked);
  return 0;
}

}  // namespace regatta::cli
