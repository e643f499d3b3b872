// Sizes of a cluster, clusters and plans beside each other.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/plan_parts.h"
#include "regatta/app/report/plan_report.h"
#include "regatta/base/core/text.h"

namespace regatta::report {
namespace {

using nlohmann::json;

std::string rounded(double value) {
  return fmt::format("{:.0f}", value);
}

std::string energy_text(const plan::ResourceUsage& usage) {
  return usage.kilowatt_hours > 0 ? rounded(usage.kilowatt_hours) : "-";
}

// The plans, and what they use: together they would not fit a terminal.
std::string sizes_tables(const ClusterSizesReport& report) {
  std::vector<std::vector<std::string>> plans = {
      {"devices", "best plan", "step time", "mfu", "memory", "optimal"}};
  std::vector<std::vector<std::string>> usage = {{"devices", "tokens/s", "efficiency",
                                                  report.sizes.steps > 0 ? "job" : "1e9 tokens",
                                                  "device hours", "kWh"}};
  if (report.price > 0) usage.front().push_back("cost");
  for (const plan::ClusterSize& size : report.sizes.sizes) {
    plans.push_back({std::to_string(size.devices), to_string(size.plan.strategy),
                     format_seconds(size.plan.estimate.step.total()), format_percent(size.mfu),
                     format_bytes(size.plan.estimate.memory.total()), size.is_optimal ? "*" : ""});
    usage.push_back({std::to_string(size.devices), rounded(size.tokens_per_s),
                     format_percent(size.efficiency), format_duration(size.usage.time),
                     rounded(size.usage.device_hours), energy_text(size.usage)});
    if (report.price > 0) usage.back().push_back(rounded(size.usage.cost));
  }
  return format_table(plans) + "\n" + format_table(usage);
}

// One sentence for all sizes that were left out, with the reason for the largest.
std::string left_out_text(const plan::ClusterSizes& sizes) {
  if (sizes.left_out.empty()) return "";
  std::vector<std::string> servers;
  for (const plan::SkippedSize& one : sizes.left_out)
    servers.push_back(std::to_string(one.servers));
  const bool is_one = servers.size() == 1 && servers.front() == "1";
  return fmt::format("left out: {} server{}; {}: {}\n", join(servers, ", "), is_one ? "" : "s",
                     servers.back(), sizes.left_out.back().reason);
}

std::string selection_text(const ClusterSizesReport& report) {
  static constexpr const char* kWords[] = {"fastest", "cheapest", "fewest devices",
                                           "least memory per device"};
  const std::string word = kWords[static_cast<std::size_t>(report.objective)];
  return report.within
             ? fmt::format("{} that ends within {}", word, format_duration(*report.within))
             : word;
}

std::vector<std::string> cluster_cells(const ComparedCluster& one, double reference,
                                       bool has_price) {
  if (!one.plan) {
    std::vector<std::string> cells = {one.name, std::to_string(one.devices), "none: see below"};
    cells.resize(has_price ? 9 : 8, "-");
    return cells;
  }
  std::vector<std::string> cells = {one.name,
                                    std::to_string(one.devices),
                                    to_string(one.plan->strategy),
                                    format_seconds(one.plan->estimate.step.total()),
                                    rounded(one.tokens_per_s),
                                    fmt::format("{:.2f}x", one.tokens_per_s / reference),
                                    rounded(one.usage.device_hours),
                                    energy_text(one.usage)};
  if (has_price) cells.push_back(rounded(one.usage.cost));
  return cells;
}

// Zero has no unit.
std::string part_time(Seconds time) {
  return time.value == 0 ? "0" : format_seconds(time);
}

std::vector<std::string> difference_row(const std::string& name, Seconds a, Seconds b) {
  const Seconds more = b - a;
  const char* const sign = more.value < 0 ? "-" : more.value > 0 ? "+" : "";
  return {name, part_time(a), part_time(b), sign + part_time(Seconds{std::abs(more.value)})};
}

// "A is of job x, B of y"; "" where both are for the same, or it is not known.
std::string purpose_differences(const PlanPurpose& a, const PlanPurpose& b) {
  std::vector<std::string> words;
  const auto compare = [&](const char* what, const std::string& in_a, const std::string& in_b) {
    if (!in_a.empty() && !in_b.empty() && in_a != in_b)
      words.push_back(
          fmt::format("A is of {} {}, B of {}", what, printable(in_a, 64), printable(in_b, 64)));
  };
  compare("job", a.job, b.job);
  compare("cluster", a.cluster, b.cluster);
  compare("stack", a.stack, b.stack);
  return join(words, "; ");
}

// "A: tp8 pp8 ... 1f1b": the strategies in full, and the keys in which they differ; "" where one
// of them is not known.
std::string strategies_text(const ComparedPlans& plans) {
  if (!plans.a.strategy || !plans.b.strategy) return "";
  const json a = workload::strategy_to_json(*plans.a.strategy);
  const json b = workload::strategy_to_json(*plans.b.strategy);
  std::vector<std::string> differences;
  // Keys at a default that follows from others are left out of a strategy's JSON.
  const auto word = [](const json& all, const std::string& key) {
    const json one = all.value(key, json("by default"));
    return one.is_string() ? one.get<std::string>() : one.dump();
  };
  json keys = a;
  keys.update(b);
  for (const auto& [key, value] : keys.items()) {
    const std::string in_a = word(a, key);
    const std::string in_b = word(b, key);
    if (in_a == in_b) continue;
    differences.push_back(key == "stage_layers" ? "the layers of stages"
                                                : fmt::format("{} {} and {}", key, in_a, in_b));
  }
  const auto in_full = [](const workload::Strategy& strategy) {
    std::string text = to_string(strategy);
    if (strategy.schedule == workload::PipelineSchedule::k1F1B) text += " 1f1b";
    return strategy.zero == 0 ? text + " zero0" : text;
  };
  return fmt::format("A: {}\nB: {}\n{}", in_full(*plans.a.strategy), in_full(*plans.b.strategy),
                     differences.empty()
                         ? "the strategies are the same\n"
                         : fmt::format("they differ in {}\n", join(differences, ", ")));
}

}  // namespace

std::string cluster_sizes_text(const ClusterSizesReport& report) {
  const plan::ClusterSize& picked = report.sizes.sizes.at(report.picked);
  return fmt::format(
             "job {} on cluster {}: up to {} x {}, stack {}\n"
             "selected, {}: {} devices with {}\n\n",
             report.job.name, report.cluster.name, report.problem.devices,
             plan::device_names(report.problem), stack_text(report.problem.stack),
             selection_text(report), picked.devices, to_string(picked.plan.strategy)) +
         sizes_tables(report) + left_out_text(report.sizes) +
         fmt::format(
             "efficiency: tokens per device, relative to {} devices; kWh: servers under load; "
             "optimal: no other size is both faster and cheaper\n",
             report.sizes.sizes.front().devices);
}

json cluster_sizes_json(const ClusterSizesReport& report) {
  json all = plan::cluster_sizes_to_json(report.problem, report.sizes, report.price);
  all.update({{"job", report.job.name},
              {"cluster", report.cluster.name},
              {"stack", report.problem.stack.name},
              {"device", plan::device_names(report.problem)},
              {"objective", to_string(report.objective)},
              {"picked", report.picked}});
  add_calibration(all, report.problem.stack);
  if (report.within) all["within_s"] = report.within->value;
  return all;
}

double reference_rate(const std::vector<ComparedCluster>& clusters) {
  const auto first =
      std::ranges::find_if(clusters, [](const auto& one) { return one.plan.has_value(); });
  return first == clusters.end() ? 0 : first->tokens_per_s;
}

std::string compared_clusters_text(const std::vector<ComparedCluster>& clusters, bool has_price) {
  std::vector<std::vector<std::string>> rows = {
      {"cluster", "devices", "best plan", "step time", "tokens/s", "speed", "device hours", "kWh"}};
  if (has_price) rows.front().push_back("cost");
  for (const ComparedCluster& one : clusters)
    rows.push_back(cluster_cells(one, reference_rate(clusters), has_price));
  std::string text =
      fmt::format("{}\ndevice hours, kWh (servers under load){} are for a billion tokens\n",
                  format_table(rows), has_price ? " and cost" : "");
  for (const ComparedCluster& one : clusters)
    if (!one.note.empty()) text += fmt::format("{}: {}\n", one.name, one.note);
  return text;
}

json compared_clusters_json(const std::vector<ComparedCluster>& clusters, bool has_price) {
  json all = json::array();
  for (const ComparedCluster& one : clusters) {
    json row = {{"cluster", one.name}, {"devices", one.devices}};
    if (!one.note.empty()) row["note"] = one.note;
    if (one.plan) {
      row.update({{"strategy", to_string(one.plan->strategy)},
                  {"step_time_s", one.plan->estimate.step.total().value},
                  {"tokens_per_s", one.tokens_per_s},
                  {"device_hours_per_1e9_tokens", one.usage.device_hours},
                  {"kwh_per_1e9_tokens", one.usage.kilowatt_hours}});
      if (has_price) row["cost_per_1e9_tokens"] = one.usage.cost;
    }
    all.push_back(std::move(row));
  }
  return {{"clusters", all}};
}

std::string compared_plans_text(const ComparedPlans& plans) {
  const plan::PlanDifference difference = plan::compare_plans(plans.a, plans.b);
  std::vector<std::vector<std::string>> rows = {{"part", "A", "B", "B - A"}};
  for (const plan::PartDifference& part : difference.parts)
    rows.push_back(difference_row(part.part, part.a, part.b));
  rows.push_back(difference_row("step", plans.a.step(), plans.b.step()));
  rows.push_back({"memory", format_bytes(Bytes{plan::whole_bytes(plans.a.memory)}),
                  format_bytes(Bytes{plan::whole_bytes(plans.b.memory)}), ""});
  std::string text = difference.sentence + "\n";
  text += strategies_text(plans) + "\n" + format_table(rows);
  for (const plan::ComparedPlan* one : {&plans.a, &plans.b})
    if (!one->fits) text += fmt::format("note: {} does not fit its devices\n", one->name);
  if (const std::string note = purpose_differences(plans.a_purpose, plans.b_purpose); !note.empty())
    text += fmt::format("note: the plans are not for the same problem: {}\n", note);
  return text;
}

json compared_plans_json(const ComparedPlans& plans) {
  const plan::PlanDifference difference = plan::compare_plans(plans.a, plans.b);
  json parts = json::array();
  for (const plan::PartDifference& part : difference.parts)
    parts.push_back({{"part", part.part}, {"a_s", part.a.value}, {"b_s", part.b.value}});
  json all = {{"a_step_time_s", plans.a.step().value},
              {"b_step_time_s", plans.b.step().value},
              {"a_memory_per_device_bytes", plan::whole_bytes(plans.a.memory)},
              {"b_memory_per_device_bytes", plan::whole_bytes(plans.b.memory)},
              {"parts", parts},
              {"a_fits", plans.a.fits},
              {"b_fits", plans.b.fits},
              {"why", difference.sentence}};
  if (plans.a.strategy) all["a_strategy"] = workload::strategy_to_json(*plans.a.strategy);
  if (plans.b.strategy) all["b_strategy"] = workload::strategy_to_json(*plans.b.strategy);
  if (const std::string note = purpose_differences(plans.a_purpose, plans.b_purpose); !note.empty())
    all["note"] = note;
  return all;
}

}  // namespace regatta::report
