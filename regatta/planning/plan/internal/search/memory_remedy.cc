#include "regatta/planning/plan/internal/search/memory_remedy.h"

#include <fmt/core.h>

namespace regatta::plan {
namespace {

constexpr int kDevicesMax = 262'144;

PlanningProblem with_request(const PlanningProblem& problem,
                             const workload::StrategyRequest& request) {
  return {.model = problem.model,
          .global_batch = problem.global_batch,
          .precision = problem.precision,
          .request = request,
          .server = problem.server,
          .stack = problem.stack,
          .machine = problem.machine,
          .devices = problem.devices,
          .every_form = problem.every_form,
          .accepts = problem.accepts};
}

// The least tried number of devices that fits; 0: none.
int enough_devices(PlanningProblem problem, const FitsPredicate& fits) {
  const int devices = problem.devices;
  for (int doubled = 2; doubled <= kDevicesMax / devices; doubled *= 2) {
    for (const int times : {doubled, doubled + doubled / 2}) {
      if (times > kDevicesMax / devices) break;
      problem.devices = devices * times;
      if (fits(problem)) return problem.devices;
    }
  }
  return 0;
}

}  // namespace

std::string suggest_memory_remedy(const PlanningProblem& problem, const FitsPredicate& fits) {
  PlanningProblem wider = problem;
  wider.every_form = true;
  if (!problem.every_form && fits(wider)) return "with --extended-search a strategy fits";
  workload::StrategyRequest freed = problem.request;
  freed.zero.reset();
  freed.recompute.reset();
  freed.offload.reset();
  if (!(freed == problem.request) && fits(with_request(wider, freed)))
    return "leave zero, recompute and offload of the strategy free, with --extended-search";
  const int devices = enough_devices(problem, fits);
  if (devices > 0) return fmt::format("{} of these devices fit it", devices);
  return "more of these devices do not help; use devices with more memory, or a smaller model";
}

}  // namespace regatta::plan
