#include "regatta/model/cost/software_stack.h"
#include "regatta/planning/plan/estimated_plan_metrics.h"

namespace regatta::plan {

double tokens_per_step(const PlanningProblem& problem) {
  return static_cast<double>(problem.global_batch) * problem.model.seq;
}

ResourceUsage resource_usage(const PlanningProblem& problem, Seconds step, double tokens,
                             double price) {
  ResourceUsage usage;
  usage.time = step * (tokens / tokens_per_step(problem));
  usage.device_hours = usage.time.value * problem.devices / 3600;
  usage.kilowatt_hours =
      usage.device_hours * cost::device_efficiency(problem.server.device.name).server_watts / 1000;
  usage.cost = usage.device_hours * price;
  return usage;
}

}  // namespace regatta::plan
