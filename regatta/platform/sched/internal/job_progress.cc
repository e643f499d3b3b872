#include "regatta/platform/sched/internal/job_progress.h"

#include <algorithm>
#include <cstddef>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/gang_placement.h"

namespace regatta::sched {
namespace {

// Jobs without devices lose something too: a node's CPU counts as a small part of a device.
constexpr double kCpuJobDevices = 0.01;

}  // namespace

namespace {

// Work in a second, as time on the smallest size.
double rate(const RunningJob& job) {
  const double smallest = devices_min(job.request);
  const double devices = devices_of(job.request, job.replicas);
  if (smallest <= 0 || devices == smallest) return 1;
  return throughput_at(job.request, devices) / throughput_at(job.request, smallest);
}

}  // namespace

Seconds work_done(const RunningJob& job, Seconds now) {
  return job.completed + (now - job.started) * rate(job);
}

Seconds kept_work(const RunningJob& job, Seconds now) {
  if (job.request.checkpointing.interval.value <= 0) return {};
  return work_done(job, std::min(now, job.checkpointed));
}

Seconds end_time(const RunningJob& job, Seconds now, double quantile) {
  return now + remaining_time(job.request.run_time, work_done(job, now), quantile) / rate(job);
}

Seconds expected_run_time(const JobRequest& job, Seconds completed, double quantile) {
  return remaining_time(job.run_time, completed, quantile) + job.checkpointing.restart;
}

int service_level(const std::vector<Seconds>& levels, const JobRequest& job, Seconds work) {
  if (levels.empty()) return 0;
  const Seconds service = work * devices_min(job);
  return static_cast<int>(std::upper_bound(levels.begin(), levels.end(), service) - levels.begin());
}

reliability::JobAtRisk job_at_risk(const RunningJob& job, Seconds now) {
  const Checkpointing& checkpoints = job.request.checkpointing;
  const bool has_checkpoints = checkpoints.interval.value > 0;
  return {.devices = std::max(kCpuJobDevices, devices_of(job.request, job.replicas)),
          // A failure is taken to strike in the middle of an interval: here at the end of all work.
          .interval = has_checkpoints ? checkpoints.interval : (now - job.started) * 2,
          .save = checkpoints.write,
          .restart = checkpoints.restart,
          .planned_restart = checkpoints.restart,
          .since_checkpoint = (work_done(job, now) - kept_work(job, now)) / rate(job)};
}

double eviction_loss(const RunningJob& job, Seconds now) {
  return reliability::stop_loss(job_at_risk(job, now));
}

}  // namespace regatta::sched
