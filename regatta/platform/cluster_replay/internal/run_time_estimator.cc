#include "regatta/platform/cluster_replay/internal/run_time_estimator.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace regatta::cluster_replay {
namespace {

// Ended jobs after which an older one counts half: chosen on the jobs of Philly.
constexpr double kHalfLifeAll = 1000;
constexpr double kHalfLifeDevices = 100;
constexpr double kHalfLifeOwner = 30;
// A group weighs as much as its parent when its jobs add up to this weight.
constexpr double kParentWeight = 2;
constexpr double kLeastVariance = 0.05;

int devices_of_job(const sched::JobRequest& job) {
  int devices = 0;
  for (const sched::Role& role : job.roles)
    devices += role.replicas_min * role.devices;
  return devices;
}

}  // namespace

RunTimeEstimator::RunTimeEstimator(sched::RunTime prior) : prior_(prior) {}

std::string RunTimeEstimator::owner_key(const sched::JobRequest& job) {
  return fmt::format("{}/{}/{}", job.queue, job.user, devices_of_job(job));
}

void RunTimeEstimator::add(const sched::JobRequest& job, Seconds run_time) {
  const double logarithm = std::log(run_time.value);
  const auto count = [&](Moments& moments, double half_life) {
    const double kept = std::exp2(-1 / half_life);
    moments.weight = moments.weight * kept + 1;
    moments.sum = moments.sum * kept + logarithm;
    moments.squares = moments.squares * kept + logarithm * logarithm;
  };
  count(all_, kHalfLifeAll);
  count(by_devices_[devices_of_job(job)], kHalfLifeDevices);
  count(by_owner_[owner_key(job)], kHalfLifeOwner);
}

sched::RunTime RunTimeEstimator::estimate(const sched::JobRequest& job) const {
  double mean = std::log(prior_.median.value);
  double variance = prior_.log_spread * prior_.log_spread;
  // The mixture of a group and its parent: its variance holds the distance of their means too.
  const auto shrink = [&](const Moments& moments) {
    if (moments.weight <= 0) return;
    const double share = moments.weight / (moments.weight + kParentWeight);
    const double own = moments.sum / moments.weight;
    const double own_variance =
        std::max(kLeastVariance, moments.squares / moments.weight - own * own);
    const double distance = own - mean;
    variance = share * own_variance + (1 - share) * (variance + share * distance * distance);
    mean += share * distance;
  };
  shrink(all_);
  if (const auto found = by_devices_.find(devices_of_job(job)); found != by_devices_.end())
    shrink(found->second);
  if (const auto found = by_owner_.find(owner_key(job)); found != by_owner_.end())
    shrink(found->second);
  return {{std::exp(mean)}, std::sqrt(variance)};
}

}  // namespace regatta::cluster_replay
