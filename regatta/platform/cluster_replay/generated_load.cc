#include "regatta/platform/cluster_replay/generated_load.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "regatta/platform/cluster_replay/internal/random_draws.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::cluster_replay {
namespace {

constexpr int kJobsMax = 1'000'000;

using packing::RandomSequence;

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

}  // namespace regatta::cluster_replay
