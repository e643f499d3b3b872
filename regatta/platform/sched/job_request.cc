#include "regatta/platform/sched/job_request.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace regatta::sched {
namespace {

constexpr double kSqrt2 = 1.4142135623730951;
constexpr double kLargest = 38;  // no double between 0 and 1 has a quantile beyond

// From the nearer tail, so that small probabilities keep their digits.
double normal_upper_tail(double x) {
  return 0.5 * std::erfc(x / kSqrt2);
}

Error invalid_job(const JobRequest& job, std::string_view what) {
  return {Code::kInvalidInput, fmt::format("job {}: {}", job.name, what)};
}

Status check_role(const JobRequest& job, const Role& role) {
  const auto fail = [&](std::string_view what) {
    return invalid_job(job, fmt::format("role {}: {}", role.name, what));
  };
  if (role.replicas_min < 0 || role.replicas_max < std::max(1, role.replicas_min))
    return fail("replicas_min is negative or above replicas_max, which is 1 or more");
  if (role.devices < 0 || role.devices > kNodeDevicesMax)
    return fail(fmt::format(
        "devices of a replica are 0 to {}, those of one node; use more replicas", kNodeDevicesMax));
  if (role.devices > 0 && (role.device_milli < 1 || role.device_milli > kDeviceMilli))
    return fail("the share of a device is above 0 and at most 100 %");
  if (role.device_memory_mib < 0 || role.cpu_milli < 0 || role.memory_mib < 0 || role.nic_milli < 0)
    return fail("an amount is negative; give 0 or more");
  if (role.devices == 0 && role.cpu_milli == 0 && role.memory_mib == 0 && role.nic_milli == 0)
    return fail("it asks for nothing; give devices or cpus");
  if (role.subgroup_replicas < 1) return fail("a subgroup has 1 replica or more");
  return {};
}

}  // namespace

Status check_job(const JobRequest& job) {
  if (job.name.empty()) return Error{Code::kInvalidInput, "a job has no name; give it one"};
  if (job.roles.empty()) return invalid_job(job, "it has no role; give one or more");
  int replicas = 0;
  for (const Role& role : job.roles) {
    REGATTA_TRY_DO(check_role(job, role));
    replicas += role.replicas_min;
  }
  if (replicas == 0) return invalid_job(job, "its gang is empty; give a role replicas_min of 1");
  if (job.topology.preferred > job.topology.required)
    return invalid_job(job, "the preferred level is wider than the required one; exchange them");
  for (std::size_t level = 0; level < job.slowdown.size(); ++level)
    if (!(job.slowdown[level] >= (level == 0 ? 1 : job.slowdown[level - 1])))
      return invalid_job(job, "slowdowns are at least 1 and do not fall from level to level");
  if (!(job.run_time.median.value >= 0) || !(job.run_time.log_spread >= 0))
    return invalid_job(job, "its run time or its spread is negative; leave it out where unknown");
  if (!(job.checkpointing.interval.value >= 0) || !(job.checkpointing.write.value >= 0) ||
      !(job.checkpointing.restart.value >= 0))
    return invalid_job(job, "a time of its checkpoints is negative; give 0 or more");
  for (std::size_t i = 0; i < job.throughput.size(); ++i)
    if (job.throughput[i].devices < 1 || !(job.throughput[i].throughput > 0) ||
        (i > 0 && job.throughput[i].devices <= job.throughput[i - 1].devices))
      return invalid_job(job, "its throughput is not above 0, or its devices do not rise");
  return {};
}

double devices_of(const JobRequest& job, const std::vector<int>& replicas) {
  double devices = 0;
  for (std::size_t role = 0; role < job.roles.size(); ++role)
    devices += replicas[role] * job.roles[role].devices *
               (job.roles[role].device_milli / static_cast<double>(kDeviceMilli));
  return devices;
}

double throughput_at(const JobRequest& job, double devices) {
  const auto& points = job.throughput;
  if (points.empty()) return devices;
  const auto next = std::find_if(points.begin(), points.end(), [&](const ThroughputPoint& point) {
    return point.devices >= devices;
  });
  if (next == points.end()) return points.back().throughput;
  if (next == points.begin()) return next->throughput * devices / next->devices;
  const ThroughputPoint& before = *(next - 1);
  const double part = (devices - before.devices) / (next->devices - before.devices);
  return before.throughput + part * (next->throughput - before.throughput);
}

double normal_quantile(double quantile) {
  const bool is_upper = quantile > 0.5;
  const double tail = is_upper ? 1 - quantile : quantile;
  double low = 0;
  double high = kLargest;
  for (int i = 0; i < 80 && low < high; ++i) {
    const double middle = 0.5 * (low + high);
    (normal_upper_tail(middle) > tail ? low : high) = middle;
  }
  return is_upper ? low : -low;
}

Seconds remaining_time(const RunTime& run_time, Seconds elapsed, double quantile) {
  if (run_time.median.value <= 0) return {std::numeric_limits<double>::infinity()};
  if (run_time.log_spread <= 0) return {std::max(0.0, run_time.median.value - elapsed.value)};
  double tail = 1;  // share of such jobs that run longer than `elapsed`
  if (elapsed.value > 0)
    tail = normal_upper_tail(std::log(elapsed / run_time.median) / run_time.log_spread);
  const double longer = tail * (1 - quantile);
  // A job far beyond what its estimate allows: its remaining time is as long as it has run.
  if (longer < std::numeric_limits<double>::min()) return elapsed;
  const double deviations = -normal_quantile(longer);
  const Seconds total = run_time.median * std::exp(run_time.log_spread * deviations);
  return {std::max(0.0, (total - elapsed).value)};
}

}  // namespace regatta::sched
