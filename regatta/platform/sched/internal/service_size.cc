#include "regatta/platform/sched/internal/service_size.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "regatta/platform/mixing/demand_forecast.h"

namespace regatta::sched {
namespace {

constexpr double kQuotientRounding = 1e-9;
constexpr double kHoldIntervalsMax = 10'000;

int replicas_for(const JobRequest& job, double forecast) {
  const Role& role = job.roles.front();
  const double replicas = std::ceil(forecast / job.demand->per_replica - kQuotientRounding);
  if (!(replicas < role.replicas_max)) return role.replicas_max;  // also where it is infinite
  return std::max(role.replicas_min, static_cast<int>(replicas));
}

}  // namespace

bool follows_demand(const SchedulingPolicy& policy, const JobRequest& job) {
  return policy.sizes_services && job.demand.has_value();
}

ServiceSize service_size(const SchedulingPolicy& policy, const JobRequest& job) {
  const ServiceDemand& demand = *job.demand;
  const int hold = static_cast<int>(
      std::clamp(std::ceil(policy.service_hold / demand.interval), 1.0, kHoldIntervalsMax));
  const std::vector<double> forecasts =
      mixing::latest_forecasts(demand.history,
                               mixing::forecast_options(demand.interval, policy.budget.reclaim_lead,
                                                        policy.service_quantile),
                               hold);
  const int most = job.roles.front().replicas_max;
  ServiceSize size{.forecast = {}, .wanted = most, .held = most};
  if (forecasts.empty() || std::isinf(forecasts.back())) return size;
  size.forecast = forecasts.back();
  size.wanted = replicas_for(job, forecasts.back());
  if (static_cast<int>(forecasts.size()) == hold)
    size.held = replicas_for(job, *std::max_element(forecasts.begin(), forecasts.end()));
  return size;
}

}  // namespace regatta::sched
