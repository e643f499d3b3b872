#include "regatta/planning/plan/gpu_usage.h"

#include "regatta/model/cost/stack.h"

namespace regatta::plan {

double tokens_per_step(const GpuProblem& problem) {
  return static_cast<double>(problem.global_batch) * problem.model.seq;
}

Usage usage_of(const GpuProblem& problem, Seconds step, double tokens, double price) {
  Usage usage;
  usage.time = step * (tokens / tokens_per_step(problem));
  usage.device_hours = usage.time.value * problem.devices / 3600;
  usage.kilowatt_hours =
      usage.device_hours * cost::device_shares(problem.server.device.name).server_watts / 1000;
  usage.cost = usage.device_hours * price;
  return usage;
}

}  // namespace regatta::plan
