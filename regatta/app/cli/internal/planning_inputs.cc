#include "regatta/app/cli/internal/planning_inputs.h"

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "regatta/app/cli/internal/calibrated_stack.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/base/core/json.h"
#include "regatta/base/os/file.h"
#include "regatta/model/cost/rates.h"
#include "regatta/model/workload/job.h"

namespace regatta::cli {
namespace {

// The user removes a path that blocks a measurement: it may be somebody's folder.
Result<cost::Rates> read_rates(const std::string& path, const std::string& cluster_path) {
  const Result<std::string> text = os::read_text_file(path, JsonLimits{}.size_max);
  if (text) return cost::parse_rates(*text, path);
  return Error{Code::kInvalidInput, fmt::format("{}; remove it and run `regatta measure {}` again",
                                                text.error().message, cluster_path)};
}

}  // namespace

std::string measured_path(const std::string& cluster_path) {
  std::filesystem::path path(cluster_path);
  return path.replace_extension(".measured.json").string();
}

Result<cost::Rates> load_rates(const std::string& cluster_path, const topo::Cluster& cluster,
                               std::vector<std::string>& warnings) {
  const std::string path = measured_path(cluster_path);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    warnings.push_back(
        "cluster " + cluster.name +
        " was never measured: rates come from its description; run `regatta measure " +
        cluster_path + "` for better predictions");
    return cost::described_rates(cluster);
  }
  REGATTA_TRY(rates, read_rates(path, cluster_path));
  if (const std::string change = cost::changed_since(rates, cluster); !change.empty()) {
    warnings.push_back(fmt::format("{} is out of date: {}; run `regatta measure {}` again", path,
                                   change, cluster_path));
  }
  if (rates.shared_cores) {
    warnings.push_back(path +
                       ": the devices share cores without fixed shares: predictions are rough");
  }
  return rates;
}

Result<workload::Job> load_job_with(const std::string& job_path, const std::string& strategy,
                                    const std::vector<std::string>& constraints) {
  REGATTA_TRY(job, load_job(job_path));
  if (!strategy.empty()) {
    REGATTA_TRY(request, workload::parse_strategy(strategy, "--strategy"));
    job.strategy = workload::merged(request, job.strategy);
  }
  for (const std::string& text : constraints) {
    REGATTA_TRY(constraint, workload::parse_constraint(text, "--constraint"));
    job.strategy.constraints.push_back(std::move(constraint));
  }
  REGATTA_TRY_DO(workload::check_request(job.strategy));
  return job;
}

Result<PlanningInputs> load_planning_inputs(const std::string& job_path,
                                            const std::string& cluster_path,
                                            const std::string& strategy,
                                            const std::vector<std::string>& constraints) {
  PlanningInputs inputs;
  REGATTA_TRY(cluster, load_cluster(cluster_path));
  REGATTA_TRY(job, load_job_with(job_path, strategy, constraints));
  REGATTA_TRY(rates, load_rates(cluster_path, cluster, inputs.warnings));
  inputs.cluster = std::move(cluster);
  inputs.job = std::move(job);
  inputs.rates = std::move(rates);
  return inputs;
}

Result<StepPredictor> step_predictor(const std::string& stack, const workload::Job& job,
                                     const topo::Cluster& cluster, const std::string& cluster_path,
                                     bool is_changed) {
  StepPredictor predictor;
  if (plan::is_gpu_cluster(cluster)) {
    REGATTA_TRY(found, stack_of(stack, job, cluster, cluster_path));
    predictor.stack = std::move(found);
    return predictor;
  }
  if (!stack.empty() && stack != "regatta") {
    return Error{Code::kInvalidInput,
                 fmt::format("--stack: {} has no GPUs, and Regatta's own trainer runs there; leave "
                             "it out, or write regatta",
                             cluster_path)};
  }
  if (is_changed) {
    predictor.rates = cost::described_rates(cluster);
    return predictor;
  }
  REGATTA_TRY(rates, load_rates(cluster_path, cluster, predictor.warnings));
  predictor.rates = std::move(rates);
  return predictor;
}

Result<plan::PlanningProblem> problem_of(const workload::Job& job, const topo::Cluster& cluster,
                                         const StepPredictor& predictor) {
  if (predictor.stack) return plan::planning_problem(job, cluster, *predictor.stack);
  return plan::planning_problem(job, cluster, predictor.rates);
}

Status check_devices_run_here(const topo::Cluster& cluster, const std::string& command) {
  for (const auto& [name, type] : cluster.server_types) {
    if (type.device.kind != topo::DeviceKind::kGpu) continue;
    return Error{
        Code::kInvalidInput,
        fmt::format("{}: cluster {} has GPUs ({}), and this build runs jobs on CPU devices "
                    "only; predict the job with regatta plan JOB --cluster CLUSTER, and "
                    "start it there with the script of --launch FRAMEWORK",
                    command, cluster.name, type.device.name)};
  }
  return {};
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    std::fprintf(stderr, "regatta: warning: %s\n", warning.c_str());
}

}  // namespace regatta::cli
