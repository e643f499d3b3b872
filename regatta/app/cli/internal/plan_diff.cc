#include "regatta/app/cli/internal/plan_diff.h"

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/plan_show.h"
#include "regatta/app/cli/internal/planning_inputs.h"
#include "regatta/app/report/plan_report.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/file.h"
#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::cli {
namespace {

struct DiffOptions {
  std::string a;
  std::string b;
  std::string job;
  std::string cluster;
  std::string stack;
  bool json = false;
};

struct Side {
  plan::ComparedPlan plan;
  report::PlanPurpose purpose;
};

// Longer than any step, more than any device holds: beyond, figures overflow.
constexpr double kStepMost = 1e9;
constexpr double kBytesMost = 1e15;

// The parts of "breakdown" make the step.
Status check_sum(const std::string& path, const plan::ComparedPlan& plan, Seconds step) {
  constexpr double kRounding = 1e-3;
  if (std::abs(plan.step() / step - 1) <= kRounding) return {};
  return Error{Code::kInvalidInput,
               fmt::format("{}: the parts of \"breakdown\" make {}, \"step_time_s\" is {}; write "
                           "the plan anew",
                           path, format_seconds(plan.step()), format_seconds(step))};
}

// Reads the output of `regatta plan --json`.
Result<Side> read_plan(const std::string& name, const std::string& path) {
  const auto text = os::read_text_file(path, JsonLimits{}.size_max);
  if (!text) return Error{Code::kInvalidInput, text.error().message + "; check the path"};
  const auto file = JsonReader::parse(*text, path);
  if (!file || !file->has("breakdown") || !file->has("memory_per_device_bytes")) {
    return Error{Code::kInvalidInput,
                 path +
                     ": no plan; write one with regatta plan JOB --cluster CLUSTER "
                     "--json > plan.json"};
  }
  Side side{.plan = {.name = name}, .purpose = {}};
  Seconds step;
  file->read("memory_per_device_bytes", side.plan.memory,
             NumberRange{.low = kPositive.low, .high = kBytesMost});
  file->read("step_time_s", step, NumberRange{.low = kPositive.low, .high = kStepMost});
  for (const auto& [key, value] : file->at("breakdown").members()) {
    if (!key.ends_with("_s")) value.fail("not a time: its name does not end in _s");
    side.plan.parts.push_back({key.substr(0, key.size() - 2),
                               value.as<Seconds>(NumberRange{.low = 0, .high = kStepMost})});
  }
  file->read_if("job", side.purpose.job);
  file->read_if("cluster", side.purpose.cluster);
  file->read_if("stack", side.purpose.stack);
  file->read_if("fits", side.plan.fits);
  if (file->has("strategy")) side.plan.strategy = workload::read_strategy(file->at("strategy"));
  REGATTA_TRY_DO(file->status());
  REGATTA_TRY_DO(check_sum(path, side.plan, step));
  return side;
}

bool is_strategy(const std::string& given) {
  return given.find('{') != std::string::npos;
}

// The job and the cluster of strategies.
struct DiffProblem {
  topo::Cluster cluster;
  std::string cluster_path;
  workload::Job job;
  std::string stack;  // empty: the usual one
};

Result<DiffProblem> load_problem(const DiffOptions& options) {
  const std::string& strategy = is_strategy(options.a) ? options.a : options.b;
  if (options.job.empty() || options.cluster.empty()) {
    return Error{Code::kInvalidInput, fmt::format("plan diff: {} is a strategy; say of what with "
                                                  "--job JOB --cluster CLUSTER",
                                                  printable(strategy, 60))};
  }
  REGATTA_TRY(cluster, load_cluster(options.cluster));
  REGATTA_TRY(job, load_job(options.job));
  return DiffProblem{std::move(cluster), options.cluster, std::move(job), options.stack};
}

Result<workload::Job> job_of(const DiffProblem& problem, const std::string& name,
                             const std::string& strategy) {
  workload::Job job = problem.job;
  REGATTA_TRY(request, workload::parse_strategy(strategy, name));
  job.strategy = workload::merged(request, job.strategy);
  REGATTA_TRY_DO(workload::check_request(job.strategy));
  return job;
}

// One stack for both strategies, else a difference would be that of stacks: the usual one of
// either where it is the same, else that of the job without them.
Status choose_stack(const DiffOptions& options, DiffProblem& problem) {
  if (!problem.stack.empty() || !is_strategy(options.a) || !is_strategy(options.b) ||
      !plan::is_gpu_cluster(problem.cluster))
    return {};
  REGATTA_TRY(a, job_of(problem, "A", options.a));
  REGATTA_TRY(b, job_of(problem, "B", options.b));
  REGATTA_TRY(stack_a, plan::choose_software_stack("", a, problem.cluster));
  REGATTA_TRY(stack_b, plan::choose_software_stack("", b, problem.cluster));
  if (stack_a == stack_b) return {};
  REGATTA_TRY(usual, plan::choose_software_stack("", problem.job, problem.cluster));
  problem.stack = usual->name;
  return {};
}

// The strategy, completed by the search of what it leaves open.
Result<Side> predict(const DiffProblem& options, const std::string& name,
                     const std::string& strategy) {
  REGATTA_TRY(job, job_of(options, name, strategy));
  REGATTA_TRY(predictor, step_predictor(options.stack, job, options.cluster, options.cluster_path));
  REGATTA_TRY(problem, problem_of(job, options.cluster, predictor));
  auto found = plan::search_plans(problem, plan::SearchMode::kPruned, 1, search_threads());
  if (!found) return Error{found.error().code, name + ": " + found.error().message};
  return Side{plan::compared_plan(name, found->ranked.front()),
              {job.name, options.cluster.name, problem.stack.name}};
}

struct Sides {
  Side a;
  Side b;
};

// A strategy beside a file has the stack of the file.
Result<Sides> read_sides(const DiffOptions& options) {
  if (!is_strategy(options.a) && !is_strategy(options.b)) {
    REGATTA_TRY(a, read_plan("A", options.a));
    REGATTA_TRY(b, read_plan("B", options.b));
    return Sides{std::move(a), std::move(b)};
  }
  REGATTA_TRY(problem, load_problem(options));
  REGATTA_TRY_DO(choose_stack(options, problem));
  std::optional<Side> file;
  if (!is_strategy(options.a) || !is_strategy(options.b)) {
    REGATTA_TRY(side,
                is_strategy(options.a) ? read_plan("B", options.b) : read_plan("A", options.a));
    if (problem.stack.empty()) problem.stack = side.purpose.stack;
    file = std::move(side);
  }
  if (!is_strategy(options.a)) {
    REGATTA_TRY(b, predict(problem, "B", options.b));
    return Sides{*std::move(file), std::move(b)};
  }
  REGATTA_TRY(a, predict(problem, "A", options.a));
  if (file) return Sides{std::move(a), *std::move(file)};
  REGATTA_TRY(b, predict(problem, "B", options.b));
  return Sides{std::move(a), std::move(b)};
}

// Rejects options that only strategies need.
Status check_options(const DiffOptions& options) {
  if (is_strategy(options.a) || is_strategy(options.b)) return {};
  for (const auto& [flag, value] : {std::pair{"--job", &options.job},
                                    {"--cluster", &options.cluster},
                                    {"--stack", &options.stack}}) {
    if (value->empty()) continue;
    return Error{
        Code::kInvalidInput,
        fmt::format("plan diff: {} is for strategies, and {} and {} are files; leave it out", flag,
                    printable(options.a, 60), printable(options.b, 60))};
  }
  return {};
}

int show_difference(const DiffOptions& options) {
  if (const Status known = check_options(options); !known) return report_error(known.error());
  const auto sides = read_sides(options);
  if (!sides) return report_error(sides.error());
  const auto& [a, b] = *sides;
  const report::ComparedPlans plans{a.plan, b.plan, a.purpose, b.purpose};
  fmt::print("{}", options.json ? report::compared_plans_json(plans).dump(2) + "\n"
                                : report::compared_plans_text(plans));
  return 0;
}

}  // namespace

void add_plan_diff(CLI::App& plan, int& exit_status) {
  const auto options = std::make_shared<DiffOptions>();
  CLI::App* command = plan.add_subcommand("diff", "Explain why one plan is faster than another");
  command
      ->add_option("A", options->a, "A plan that plan --json wrote, or a strategy like '{tp: 8}'")
      ->required()
      ->check(not_empty());
  command->add_option("B", options->b, "The other plan or strategy")
      ->required()
      ->check(not_empty());
  command->add_option("--job", options->job, "Job file, for strategies")->check(not_empty());
  command->add_option("--cluster", options->cluster, "Cluster file, for strategies")
      ->type_name("CLUSTER")
      ->check(not_empty());
  command->add_option("--stack", options->stack, "The software stack that trains")
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
