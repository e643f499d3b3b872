#include "regatta/cli/plan_outputs.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "regatta/cli/load.h"
#include "regatta/core/check.h"
#include "regatta/os/file.h"
#include "regatta/plan/gpu_timeline.h"
#include "regatta/plan/launch.h"
#include "regatta/report/gpu_plan_html.h"

namespace regatta::cli {

namespace {

bool are_one_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  const auto whole = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(path, ignored);
  };
  // A device takes what both write.
  return std::filesystem::is_regular_file(a, ignored) || !std::filesystem::exists(a, ignored)
             ? whole(a) == whole(b)
             : false;
}

}  // namespace

Status check_outputs(const PlanOptions& options) {
  for (const auto& [path, flag] : {std::pair{options.html, "--html"}, {options.trace, "--trace"}}) {
    if (path.empty()) continue;
    REGATTA_TRY_DO(check_writable(std::filesystem::path(path).parent_path().string(), flag));
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored))
      return Error{Code::kInvalidInput, fmt::format("{}: {} is a folder; name a file", flag, path)};
  }
  if (!options.html.empty() && !options.trace.empty() &&
      are_one_file(options.html, options.trace)) {
    return Error{Code::kInvalidInput,
                 fmt::format("--html and --trace: both name {}; name two files", options.html)};
  }
  return {};
}

Result<bool> write_outputs(const PlanOptions& options, const PlanToWrite& one) {
  const auto& [job, cluster, problem, plan, sizes, picked] = one;
  if (!options.html.empty() || !options.trace.empty()) {
    const plan::EstimateInput input = plan::input_of(problem, plan.strategy);
    REGATTA_TRY(timeline, plan::gpu_timeline(input, problem.machine));
    const report::GpuPlanPage page{.job_name = job.name,
                                   .cluster_name = cluster.name,
                                   .stack_name = problem.stack.name,
                                   .model = problem.model,
                                   .strategy = plan.strategy,
                                   .precision = problem.precision,
                                   .global_batch = problem.global_batch,
                                   .server = problem.server,
                                   .timeline = timeline,
                                   .sizes = sizes,
                                   .picked = picked};
    if (!options.html.empty())
      REGATTA_TRY_DO(os::write_file_atomically(options.html, report::gpu_plan_html(page)));
    if (!options.trace.empty())
      REGATTA_TRY_DO(os::write_file_atomically(options.trace, report::gpu_plan_trace(timeline)));
  }
  if (options.launcher.empty()) return false;
  const auto launcher = plan::launcher_named(options.launcher);
  REGATTA_CHECK(launcher.has_value());
  REGATTA_TRY(script, plan::launch_arguments(
                          *launcher, {.model = problem.model,
                                      .strategy = plan.strategy,
                                      .precision = problem.precision,
                                      .global_batch = problem.global_batch,
                                      .servers = problem.devices / problem.server.device_count,
                                      .devices_per_server = problem.server.device_count,
                                      .job_name = job.name,
                                      .optimizer = job.optimizer,
                                      .steps = job.steps > 0 ? job.steps : plan::kUsualSteps}));
  fmt::print("{}", script);
  return true;
}

}  // namespace regatta::cli
