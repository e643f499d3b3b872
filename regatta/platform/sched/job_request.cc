#include "regatta/platform/sched/job_request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "regatta/base/core/text.h"

namespace regatta::sched {
namespace {

constexpr std::size_t kLongestName = 253;  // as in Kubernetes
constexpr double kDemandMax = 1e15;        // sums of it keep their digits
constexpr double kSqrt2 = 1.4142135623730951;

// Rational approximations of the quantile with a relative error below 1.2e-9, for the middle and
// for a tail. Source: P. J. Acklam, "An algorithm for computing the inverse normal cumulative
// distribution function", 2003.
constexpr double kTailBelow = 0.02425;
constexpr std::array<double, 6> kMiddleOver = {-3.969683028665376e+01, 2.209460984245205e+02,
                                               -2.759285104469687e+02, 1.383577518672690e+02,
                                               -3.066479806614716e+01, 2.506628277459239e+00};
constexpr std::array<double, 6> kMiddleUnder = {-5.447609879822406e+01, 1.615858368580409e+02,
                                                -1.556989798598866e+02, 6.680131188771972e+01,
                                                -1.328068155288572e+01, 1};
constexpr std::array<double, 6> kTailOver = {-7.784894002430293e-03, -3.223964580411365e-01,
                                             -2.400758277161838e+00, -2.549732539343734e+00,
                                             4.374664141464968e+00,  2.938163982698783e+00};
constexpr std::array<double, 5> kTailUnder = {7.784695709041462e-03, 3.224671290700398e-01,
                                              2.445134137142996e+00, 3.754408661907416e+00, 1};

// Highest power first.
template <std::size_t kCount>
double polynomial(const std::array<double, kCount>& factors, double x) {
  double value = 0;
  for (const double factor : factors)
    value = value * x + factor;
  return value;
}

double middle_estimate(double quantile) {
  const double q = quantile - 0.5;
  return q * polynomial(kMiddleOver, q * q) / polynomial(kMiddleUnder, q * q);
}

double tail_estimate(double quantile) {
  const double q = std::sqrt(-2 * std::log(quantile));
  return polynomial(kTailOver, q) / polynomial(kTailUnder, q);
}

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
    return fail(
        fmt::format("it starts with {} replicas and grows to at most {}; give 0 or more, and "
                    "replicas_max of 1 or more that is not less",
                    role.replicas_min, role.replicas_max));
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
  if (const Status duty = mixing::check_duty(role.duty); !duty) return fail(duty.error().message);
  return {};
}

Status check_throughput(const JobRequest& job) {
  const auto& points = job.throughput;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].devices < 1 || !(points[i].throughput > 0))
      return invalid_job(job, "devices and throughput of a point are not above 0; correct it");
    if (i > 0 && points[i].devices <= points[i - 1].devices)
      return invalid_job(job,
                         fmt::format("its throughput on {} devices is listed after that on {}; "
                                     "list each number once, by rising devices",
                                     points[i].devices, points[i - 1].devices));
  }
  return {};
}

Status check_demand(const JobRequest& job) {
  const ServiceDemand& demand = *job.demand;
  if (!mixing::has_latency_target(job.job_class))
    return invalid_job(job, "it has a demand; only online and tidal jobs follow one");
  if (job.roles.size() != 1 || job.roles.front().subgroup_replicas != 1)
    return invalid_job(job, "a service that follows its demand has one role without subgroups");
  if (!(demand.interval.value > 0) || !std::isfinite(demand.interval.value))
    return invalid_job(job, "the interval of its demand is not above 0; give 60 s for minutes");
  if (!(demand.per_replica > 0) || !std::isfinite(demand.per_replica))
    return invalid_job(job, "the demand that a replica serves is not above 0; give a number");
  for (std::size_t i = 0; i < demand.history.size(); ++i)
    if (!(demand.history[i] >= 0) || !(demand.history[i] <= kDemandMax))
      return invalid_job(job, fmt::format("value {} of its demand is {}; give numbers of 0 to {:g}",
                                          i + 1, demand.history[i], kDemandMax));
  return {};
}

}  // namespace

Status check_job(const JobRequest& job) {
  if (job.name.empty()) return Error{Code::kInvalidInput, "a job has no name; give it one"};
  if (job.name.size() > kLongestName ||
      std::any_of(job.name.begin(), job.name.end(),
                  [](char letter) { return static_cast<unsigned char>(letter) < ' '; }))
    return Error{Code::kInvalidInput,
                 fmt::format("job {}: the name is longer than {} bytes or has control characters; "
                             "write a plain one",
                             printable(job.name, 40), kLongestName)};
  if (job.roles.empty()) return invalid_job(job, "it has no role; give one or more");
  for (std::size_t i = 0; i < job.roles.size(); ++i)
    for (std::size_t j = 0; j < i && !job.roles[i].name.empty(); ++j)
      if (job.roles[i].name == job.roles[j].name)
        return invalid_job(job, fmt::format("two roles are called {}; give each a name of its own",
                                            printable(job.roles[i].name, 40)));
  long long replicas = 0;
  for (const Role& role : job.roles) {
    REGATTA_TRY_DO(check_role(job, role));
    replicas += role.replicas_min;
  }
  if (replicas == 0) return invalid_job(job, "its gang is empty; give a role 1 replica or more");
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
  if (job.demand) REGATTA_TRY_DO(check_demand(job));
  return check_throughput(job);
}

bool may_share_devices(const JobRequest& job) {
  int with_devices = 0;
  bool has_share = false;
  for (const Role& role : job.roles) {
    if (role.devices == 0) continue;
    if (!role.is_mixable()) return false;
    ++with_devices;
    has_share |= role.is_sliced();
  }
  return with_devices > 0 && (with_devices == 1 || !has_share);
}

std::vector<int> smallest_size(const JobRequest& job) {
  std::vector<int> size;
  for (const Role& role : job.roles)
    size.push_back(role.replicas_min);
  return size;
}

namespace {

double devices_of(const Role& role, int replicas) {
  return replicas * role.devices * (role.device_milli / static_cast<double>(kDeviceMilli));
}

}  // namespace

double devices_of(const JobRequest& job, const std::vector<int>& replicas) {
  double devices = 0;
  for (std::size_t role = 0; role < job.roles.size(); ++role)
    devices += devices_of(job.roles[role], replicas[role]);
  return devices;
}

double devices_min(const JobRequest& job) {
  double devices = 0;
  for (const Role& role : job.roles)
    devices += devices_of(role, role.replicas_min);
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
  double x = tail < kTailBelow ? tail_estimate(tail) : middle_estimate(tail);
  // One step of Halley's method takes the estimate to the precision of a double.
  const double error = normal_upper_tail(-x) - tail;
  const double step = error * std::sqrt(2 * M_PI) * std::exp(x * x / 2);
  x -= step / (1 + x * step / 2);
  return is_upper ? -x : x;
}

double working_share(const Checkpointing& checkpointing) {
  if (checkpointing.interval.value <= 0) return 1;
  return checkpointing.interval / (checkpointing.interval + checkpointing.write);
}

Seconds remaining_time(const RunTime& run_time, Seconds elapsed, double quantile) {
  if (run_time.median.value <= 0) return {std::numeric_limits<double>::infinity()};
  if (elapsed.value <= 0 && quantile == 0.5) return run_time.median;
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
