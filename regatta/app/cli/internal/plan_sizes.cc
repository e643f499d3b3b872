#include "regatta/app/cli/internal/plan_sizes.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/plan_gpu.h"
#include "regatta/app/cli/internal/plan_outputs.h"
#include "regatta/app/cli/internal/search_progress.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/planning/plan/estimated_plan_metrics.h"

namespace regatta::cli {
namespace {

using plan::ClusterSize;
using plan::ClusterSizes;
using plan::Objective;

// Which size is wanted.
struct SizeRequest {
  Objective objective = Objective::kTime;
  std::optional<Seconds> within;
};

Result<SizeRequest> size_request(const PlanOptions& options, int steps) {
  SizeRequest request;
  if (!options.within.empty()) {
    const auto within = parse_seconds(options.within);
    if (!within || within->value <= 0)
      return Error{Code::kInvalidInput,
                   fmt::format("--within: '{}' is not a time; write it like 30d or 12h",
                               printable(options.within, 60))};
    if (steps == 0)
      return Error{Code::kInvalidInput,
                   "--within: the job does not say how long it is; add steps to it, or --steps"};
    request = {.objective = Objective::kCost, .within = *within};
  }
  if (const auto objective = plan::objective_named(options.objective))
    request.objective = *objective;
  return request;
}

std::string whole(double value) {
  return fmt::format("{:.0f}", value);
}

void print_table(const PlanOptions& options, const ClusterSizes& sizes) {
  std::vector<std::vector<std::string>> rows = {
      {"devices", "best plan", "step time", "tokens/s", "mfu", "efficiency", "memory",
       sizes.steps > 0 ? "job" : "1e9 tokens", "device hours", "kWh"}};
  if (options.price > 0) rows.front().push_back("cost");
  rows.front().push_back("optimal");
  for (const ClusterSize& size : sizes.sizes) {
    const plan::ResourceUsage& usage = size.usage;
    rows.push_back({std::to_string(size.devices), to_string(size.plan.strategy),
                    format_seconds(size.plan.estimate.step.total()), whole(size.tokens_per_s),
                    format_percent(size.mfu), format_percent(size.efficiency),
                    format_bytes(size.plan.estimate.memory.total()), format_duration(usage.time),
                    whole(usage.device_hours),
                    usage.kilowatt_hours > 0 ? whole(usage.kilowatt_hours) : "-"});
    if (options.price > 0) rows.back().push_back(whole(usage.cost));
    rows.back().push_back(size.is_optimal ? "*" : "");
  }
  fmt::print("{}", format_table(rows));
}

// One sentence for all sizes that were left out, with the reason of the largest of them.
void print_left_out(const ClusterSizes& sizes) {
  if (sizes.left_out.empty()) return;
  std::vector<std::string> servers;
  for (const plan::SkippedSize& one : sizes.left_out)
    servers.push_back(std::to_string(one.servers));
  fmt::print("left out: {} server{}; {}: {}\n", join(servers, ", "),
             servers.size() == 1 && servers.front() == "1" ? "" : "s", servers.back(),
             sizes.left_out.back().reason);
}

std::string reason_of(const SizeRequest& request) {
  static constexpr const char* kWords[] = {"fastest", "cheapest", "smallest",
                                           "the least memory a device"};
  const std::string word = kWords[static_cast<std::size_t>(request.objective)];
  return request.within
             ? fmt::format("{} that ends within {}", word, format_duration(*request.within))
             : word;
}

}  // namespace

int show_gpu_sizes(const PlanOptions& options, const workload::Job& job,
                   const topo::Cluster& cluster, const plan::PlanningProblem& problem) {
  const int steps = options.steps > 0 ? options.steps : job.steps;
  const auto request = size_request(options, steps);
  if (!request) return report_error(request.error());
  const int threads = search_threads();
  const auto sizes = [&] {
    const SearchProgress progress(stderr, "searching on several numbers of servers");
    return plan::plan_cluster_sizes(problem,
                                    {.steps = steps, .price = options.price, .threads = threads});
  }();
  if (!sizes) return report_error(sizes.error());
  const auto index = plan::select_size(*sizes, request->objective, request->within);
  if (!index) return report_error(index.error());
  const ClusterSize& picked = sizes->sizes[*index];
  plan::PlanningProblem sized = problem;
  sized.devices = picked.devices;
  const auto is_printed =
      write_outputs(options, {job, cluster, sized, picked.plan, &*sizes, *index});
  if (!is_printed) return report_error(is_printed.error());
  if (*is_printed) return 0;
  if (options.json) {
    nlohmann::json all = plan::cluster_sizes_to_json(sized, *sizes, options.price);
    all.update({{"job", job.name},
                {"cluster", cluster.name},
                {"stack", problem.stack.name},
                {"device", problem.server.device.name},
                {"objective", to_string(request->objective)},
                {"picked", *index}});
    if (request->within) all["within_s"] = request->within->value;
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  fmt::print("job {} on cluster {}: up to {} x {}, stack {}\n\n", job.name, cluster.name,
             problem.devices, problem.server.device.name, problem.stack.name);
  print_table(options, *sizes);
  print_left_out(*sizes);
  fmt::print(
      "efficiency: tokens of a device beside those on {} devices; kWh: of servers under load; "
      "optimal: no other size is faster and as cheap, or cheaper and as fast\n"
      "picked: {} devices, {}: {}\n",
      sizes->sizes.front().devices, picked.devices, reason_of(*request),
      to_string(picked.plan.strategy));
  return 0;
}

}  // namespace regatta::cli
