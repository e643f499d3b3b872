#include "regatta/model/cost/software_stack.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::plan {

namespace {

// A device's part of the power of its server, the mean of all of them; 0: one of them is not known.
double watts_of(const PlanningProblem& problem) {
  const auto watts = [](const topo::ServerType& server) {
    return cost::device_efficiency(server.device.name).server_watts;
  };
  if (problem.simulated) return 0;
  if (problem.cluster == nullptr) return watts(problem.server);
  double sum = 0;
  for (const ServerId server : problem.servers) {
    const topo::ServerType& type = problem.cluster->type_of(server);
    if (watts(type) <= 0) return 0;
    sum += watts(type) * type.device_count;
  }
  return sum / problem.devices;
}

}  // namespace

double tokens_per_step(const PlanningProblem& problem) {
  return static_cast<double>(problem.global_batch) * problem.model.seq;
}

ResourceUsage resource_usage(const PlanningProblem& problem, Seconds step, double tokens,
                             double price) {
  ResourceUsage usage;
  usage.time = step * (tokens / tokens_per_step(problem));
  usage.device_hours = usage.time.value * problem.devices / 3600;
  usage.kilowatt_hours = usage.device_hours * watts_of(problem) / 1000;
  usage.cost = usage.device_hours * price;
  return usage;
}

}  // namespace regatta::plan
