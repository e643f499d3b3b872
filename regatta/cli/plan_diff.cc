#include "regatta/cli/plan_diff.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/cli/arguments.h"
#include "regatta/cli/inputs.h"
#include "regatta/cli/load.h"
#include "regatta/cli/plan_gpu.h"
#include "regatta/core/text.h"
#include "regatta/core/units_text.h"
#include "regatta/os/file.h"
#include "regatta/plan/gpu_diff.h"
#include "regatta/workload/job_yaml.h"

namespace regatta::cli {
namespace {

using nlohmann::json;

struct DiffOptions {
  std::string a;
  std::string b;
  std::string job;
  std::string cluster;
  std::string stack;
  bool json = false;
};

// What `regatta plan --json` wrote.
Result<plan::Comparable> read_plan(const std::string& name, const std::string& path) {
  const auto text = os::read_file(path, os::kTextFileMost);
  if (!text) return Error{Code::kInvalidInput, text.error().message + "; check the path"};
  const json file = json::parse(*text, nullptr, false);
  if (!file.is_object() || !file.contains("breakdown") || !file["breakdown"].is_object() ||
      !file.contains("memory_per_device_bytes") || !file["memory_per_device_bytes"].is_number()) {
    return Error{Code::kInvalidInput,
                 path +
                     ": no plan for GPUs; write one with regatta plan JOB --cluster CLUSTER "
                     "--json > plan.json"};
  }
  plan::Comparable plan{.name = name, .memory = file["memory_per_device_bytes"].get<double>()};
  for (const auto& [key, value] : file["breakdown"].items()) {
    if (!value.is_number() || !key.ends_with("_s"))
      return Error{Code::kInvalidInput, path + ": breakdown: \"" + printable(key, 40) +
                                            "\" is no time; write the plan anew"};
    plan.parts.push_back({key.substr(0, key.size() - 2), Seconds{value.get<double>()}});
  }
  return plan;
}

// A strategy, completed by the search of what it leaves open.
Result<plan::Comparable> predict(const DiffOptions& options, const std::string& name,
                                 const std::string& strategy) {
  if (options.job.empty() || options.cluster.empty()) {
    return Error{Code::kInvalidInput, fmt::format("plan diff: {} is a strategy; say of what with "
                                                  "--job JOB --cluster CLUSTER",
                                                  printable(strategy, 60))};
  }
  REGATTA_TRY(cluster, load_cluster(options.cluster));
  REGATTA_TRY(job, load_job(options.job));
  REGATTA_TRY(request, workload::parse_strategy(strategy, name));
  job.strategy = workload::merged(request, job.strategy);
  REGATTA_TRY(stack, stack_of(options.stack, job, cluster));
  REGATTA_TRY(problem, gpu_problem(job, cluster, *stack));
  if (const auto fixed = plan::fixed_strategy(job.strategy, problem.devices)) {
    REGATTA_TRY(estimate, plan::estimate_on(problem, *fixed));
    return plan::comparable(name, {*fixed, estimate});
  }
  REGATTA_TRY(found, plan::gpu_search(problem, plan::SearchMode::kPruned, 1));
  return plan::comparable(name, found.ranked.front());
}

Result<plan::Comparable> side(const DiffOptions& options, const std::string& name,
                              const std::string& given) {
  return given.find('{') == std::string::npos ? read_plan(name, given)
                                              : predict(options, name, given);
}

json diff_to_json(const plan::Comparable& a, const plan::Comparable& b,
                  const plan::PlanDifference& is) {
  json parts = json::array();
  for (const plan::PartDifference& part : is.parts)
    parts.push_back({{"part", part.part}, {"a_s", part.a.value}, {"b_s", part.b.value}});
  return {{"a_step_time_s", a.step().value},
          {"b_step_time_s", b.step().value},
          {"a_memory_per_device_bytes", a.memory},
          {"b_memory_per_device_bytes", b.memory},
          {"parts", parts},
          {"why", is.sentence}};
}

int show_difference(const DiffOptions& options) {
  const auto a = side(options, "A", options.a);
  if (!a) return report_error(a.error());
  const auto b = side(options, "B", options.b);
  if (!b) return report_error(b.error());
  const plan::PlanDifference is = plan::difference(*a, *b);
  if (options.json) {
    fmt::print("{}\n", diff_to_json(*a, *b, is).dump(2));
    return 0;
  }
  const auto row = [](const std::string& name, Seconds in_a, Seconds in_b) {
    const Seconds more = in_b - in_a;
    return std::vector<std::string>{
        name, format_seconds(in_a), format_seconds(in_b),
        (more.value < 0 ? "-" : "+") + format_seconds(Seconds{std::abs(more.value)})};
  };
  std::vector<std::vector<std::string>> rows = {{"part", "A", "B", "B - A"}};
  for (const plan::PartDifference& part : is.parts)
    rows.push_back(row(part.part, part.a, part.b));
  rows.push_back(row("step", a->step(), b->step()));
  rows.push_back({"memory", format_bytes({static_cast<long long>(a->memory)}),
                  format_bytes({static_cast<long long>(b->memory)}), ""});
  fmt::print("{}\n{}\n", format_table(rows), is.sentence);
  return 0;
}

}  // namespace

void add_plan_diff(CLI::App& plan, int& exit_status) {
  const auto options = std::make_shared<DiffOptions>();
  CLI::App* command =
      plan.add_subcommand("diff", "Say why one plan for GPUs is faster than another");
  command->add_option("A", options->a, "A plan that --json wrote, or a strategy like '{tp: 8}'")
      ->required()
      ->check(not_empty());
  command->add_option("B", options->b, "Another")->required()->check(not_empty());
  command->add_option("--job", options->job, "Job file, for strategies")->check(not_empty());
  command->add_option("--cluster", options->cluster, "Cluster file, for strategies")
      ->type_name("CLUSTER")
      ->check(not_empty());
  command->add_option("--stack", options->stack, "The software that trains")
      ->type_name("NAME")
      ->check(not_empty());
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  regatta plan diff fast.json slow.json\n"
      "  regatta plan diff '{tp: 8, pp: 8}' '{tp: 4, pp: 16}' --job examples/gpt3-175b.yaml "
      "--cluster examples/a100-1024.yaml");
  command->callback([options, &exit_status] { exit_status = show_difference(*options); });
}

}  // namespace regatta::cli
