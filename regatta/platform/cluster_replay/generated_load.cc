#include "regatta/platform/cluster_replay/generated_load.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::cluster_replay {
namespace {

constexpr double kDaySeconds = 86400;
constexpr int kJobsMax = 1'000'000;

using packing::RandomSequence;

// At least 0; of mean `mean`.
double exponential(RandomSequence& random, double mean) {
  return -mean * std::log1p(-random.uniform());
}

Seconds log_normal(RandomSequence& random, Seconds median, double log_spread) {
  const double quantile = std::clamp(random.uniform(), 1e-12, 1 - 1e-12);
  return median * std::exp(log_spread * sched::normal_quantile(quantile));
}

// Sizes in devices, and how often each comes.
struct SizeMix {
  std::vector<int> devices;
  std::vector<double> share;

  double mean() const {
    double sum = 0;
    for (std::size_t i = 0; i < devices.size(); ++i)
      sum += devices[i] * share[i];
    return sum;
  }

  int draw(RandomSequence& random) const {
    double left = random.uniform();
    for (std::size_t i = 0; i < devices.size(); ++i) {
      left -= share[i];
      if (left < 0) return devices[i];
    }
    return devices.back();
  }
};

SizeMix sizes_up_to(int most) {
  SizeMix mix;
  double share = 1;
  double sum = 0;
  for (int devices = 1; devices <= std::max(1, most); devices *= 2) {
    mix.devices.push_back(devices);
    mix.share.push_back(share);
    sum += share;
    share /= 2;
  }
  for (double& each : mix.share)
    each /= sum;
  return mix;
}

Error invalid(const char* message) {
  return {Code::kInvalidInput, message};
}

}  // namespace

Result<std::vector<TracedJob>> generate_jobs(const std::vector<sched::ClusterNode>& nodes,
                                             const LoadShape& shape) {
  int devices = 0;
  int server_devices = 0;
  for (const sched::ClusterNode& node : nodes) {
    devices += node.devices;
    server_devices = std::max(server_devices, node.devices);
  }
  if (devices == 0) return invalid("no node has a device; give a cluster with some");
  if (!(shape.load > 0) || !(shape.duration.value > 0) || !(shape.run_time_median.value > 0) ||
      !(shape.run_time_log_spread >= 0))
    return invalid("load, duration and run time of generated jobs are above 0; correct them");
  const SizeMix sizes = sizes_up_to(devices / 4);
  const double mean_run_time = shape.run_time_median.value *
                               std::exp(shape.run_time_log_spread * shape.run_time_log_spread / 2);
  const double between = sizes.mean() * mean_run_time / (shape.load * devices);
  if (shape.duration.value / between > kJobsMax)
    return invalid("more than 1000000 jobs would come; give fewer days, or longer jobs");
  RandomSequence random(shape.seed);
  std::vector<TracedJob> jobs;
  for (double at = exponential(random, between); at < shape.duration.value;
       at += exponential(random, between)) {
    TracedJob job;
    job.request.name = "job" + std::to_string(jobs.size());
    job.request.roles = {whole_device_role(sizes.draw(random), server_devices)};
    job.request.submitted = {at};
    job.request.run_time = {shape.run_time_median, shape.run_time_log_spread};
    job.request.checkpointing = {
        .interval = shape.checkpoint_interval, .write = {}, .restart = shape.restart};
    job.run_time = log_normal(random, shape.run_time_median, shape.run_time_log_spread);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::vector<NodeEvent> generate_failures(const std::vector<sched::ClusterNode>& nodes,
                                         const FailureShape& shape) {
  std::vector<NodeEvent> events;
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    const double own = at(nodes, node).failures_per_day;
    const double per_day = own > 0 ? own : shape.failures_per_day;
    if (per_day <= 0) continue;
    RandomSequence random(shape.seed * 1'000'003 + as_index(node));
    double time = exponential(random, kDaySeconds / per_day);
    while (time < shape.duration.value) {
      events.push_back({{time}, node, sched::NodeHealth::kFailed});
      time += exponential(random, shape.repair.value);
      events.push_back({{time}, node, sched::NodeHealth::kReady});
      time += exponential(random, kDaySeconds / per_day);
    }
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const NodeEvent& a, const NodeEvent& b) { return a.at < b.at; });
  return events;
}

}  // namespace regatta::cluster_replay
