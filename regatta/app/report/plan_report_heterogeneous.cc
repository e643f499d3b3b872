// Plans of clusters whose servers are of several types.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/number_text.h"
#include "regatta/app/report/internal/plan_parts.h"
#include "regatta/app/report/plan_report.h"
#include "regatta/base/core/text.h"

namespace regatta::report {
namespace {

using nlohmann::json;

std::string numbers_text(const std::vector<int>& values) {
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

json heterogeneous_plan_json(const plan::HeterogeneousProblem& problem,
                             const plan::HeterogeneousPlan& one) {
  const plan::HeterogeneousPlanMetrics metrics = plan::plan_metrics(problem, one);
  const plan::Estimate& estimate = one.plan.estimate;
  return {{"strategy", workload::strategy_to_json(one.plan.strategy)},
          {"step_time_s", estimate.step.total().value},
          {"interval",
           {{"low_s", metrics.interval.low.value}, {"high_s", metrics.interval.high.value}}},
          {"tokens_per_s", metrics.tokens_per_s},
          {"tflops_per_device", metrics.per_device.value / 1e12},
          {"hardware_tflops_per_device", metrics.hardware_per_device.value / 1e12},
          {"mfu", metrics.mfu},
          {"memory_per_device_bytes", plan::whole_bytes(estimate.memory.total())},
          {"memory", plan::memory_to_json(estimate.memory)},
          {"worst_stage", estimate.worst_stage},
          {"fits", metrics.fit == plan::MemoryFit::kFits},
          {"fit", to_string(metrics.fit)},
          {"breakdown", plan::breakdown_to_json(estimate.step)},
          {"layers_of_stages", one.split.layers},
          {"micro_batches_of_replicas", one.split.micro_batches},
          {"servers", server_names(problem.cluster, one.servers)}};
}

std::string heterogeneous_plan_text(const plan::HeterogeneousProblem& problem,
                                    const plan::HeterogeneousPlan& best) {
  const plan::HeterogeneousPlanMetrics metrics = plan::plan_metrics(problem, best);
  return fmt::format(
             "\nplan: {}\nlayers by stage: {}\nmicro-batches by replica: {}\nservers in rank "
             "order: {}\n",
             to_string(best.plan.strategy), numbers_text(best.split.layers),
             numbers_text(best.split.micro_batches), server_names(problem.cluster, best.servers)) +
         step_parts_table(best.plan.estimate.step) +
         fmt::format(
             "\n80 % of such steps take {} to {}; {:.0f} TFLOPS per device for the model ({:.0f} "
             "with recomputation), mfu {:.1f} % of all devices' peaks, {:.0f} tokens per second\n",
             format_seconds(metrics.interval.low), format_seconds(metrics.interval.high),
             metrics.per_device.value / 1e12, metrics.hardware_per_device.value / 1e12,
             100 * metrics.mfu, metrics.tokens_per_s) +
         stage_memory_text(best.plan.estimate, best.capacity);
}

}  // namespace

std::string heterogeneous_search_text(const HeterogeneousSearchReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {"#", "strategy", "step time", "mfu", "bubble", "memory", "layers by stage"}};
  int rank = 0;
  for (const plan::HeterogeneousPlan& one : report.result.ranked) {
    const plan::StepBreakdown& step = one.plan.estimate.step;
    rows.push_back(
        {std::to_string(++rank), to_string(one.plan.strategy), format_seconds(step.total()),
         format_percent(plan::plan_metrics(report.problem, one).mfu),
         share_of(step.bubble, step.total()), format_bytes(one.plan.estimate.memory.total()),
         numbers_text(one.split.layers)});
  }
  return fmt::format(
             "job {} on cluster {}: servers of several types, stack {}; {} of {} candidates "
             "evaluated (a candidate is a strategy and an order of the servers)\n\n",
             report.job.name, report.problem.cluster.name, stack_text(report.problem.stack),
             thousands(report.result.evaluated), thousands(report.result.points)) +
         format_table(rows) + heterogeneous_plan_text(report.problem, report.result.ranked.front());
}

json heterogeneous_search_json(const HeterogeneousSearchReport& report) {
  json all = heterogeneous_plan_json(report.problem, report.result.ranked.front());
  all["job"] = report.job.name;
  all["cluster"] = report.problem.cluster.name;
  all["stack"] = report.problem.stack.name;
  add_calibration(all, report.problem.stack);
  all["ranked"] = json::array();
  for (const plan::HeterogeneousPlan& one : report.result.ranked)
    all["ranked"].push_back(heterogeneous_plan_json(report.problem, one));
  return all;
}

}  // namespace regatta::report
