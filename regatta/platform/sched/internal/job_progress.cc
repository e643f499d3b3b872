#include "regatta/platform/sched/internal/job_progress.h"

#include <algorithm>

#include "regatta/base/core/units.h"
#include "regatta/platform/sched/internal/job_rank.h"

namespace regatta::sched {
namespace {

// Jobs without devices lose something too: a node's CPU counts as a small part of a device.
constexpr double kCpuJobDevices = 0.01;

double rate(const ClusterSnapshot& snapshot, const RunningJob& job) {
  return work_rate(snapshot.nodes, job.request, job.replicas);
}

Seconds work_until(const ClusterSnapshot& snapshot, const RunningJob& job, Seconds time) {
  return job.completed + (time - job.started) * rate(snapshot, job);
}

}  // namespace

Seconds work_done(const ClusterSnapshot& snapshot, const RunningJob& job) {
  return work_until(snapshot, job, snapshot.now);
}

Seconds kept_work(const ClusterSnapshot& snapshot, const RunningJob& job) {
  if (job.request.checkpointing.interval.value <= 0) return {};
  return work_until(snapshot, job, std::min(snapshot.now, job.checkpointed));
}

std::string resume_text(const ClusterSnapshot& snapshot, const RunningJob& job) {
  return kept_work(snapshot, job).value > 0 ? "continues from its checkpoint" : "starts again";
}

std::string lost_work_text(const ClusterSnapshot& snapshot, const RunningJob& job) {
  if (work_done(snapshot, job).value <= 0) return "no work";
  if (job.request.checkpointing.interval.value <= 0)
    return "all its work, for it makes no checkpoints";
  if (kept_work(snapshot, job).value <= 0) return "all its work, for it has made no checkpoint yet";
  const Seconds lost = snapshot.now - job.checkpointed;
  if (lost.value <= 0) return "no work";
  return format_duration(lost) +
         (job.checkpointed > job.started ? " since its checkpoint" : " since it started");
}

std::string lost_time_text(Seconds time) {
  return time.value > 0 ? format_duration(time) : "nothing";
}

Seconds end_time(const ClusterSnapshot& snapshot, const RunningJob& job, double quantile) {
  const Seconds left = remaining_time(job.request.run_time, work_done(snapshot, job), quantile);
  return snapshot.now + left / rate(snapshot, job);
}

Seconds expected_run_time(const JobRequest& job, Seconds completed, double quantile) {
  return remaining_time(job.run_time, completed, quantile) / working_share(job.checkpointing) +
         job.checkpointing.restart;
}

int service_level(const std::vector<Seconds>& levels, const JobRequest& job, Seconds work) {
  return levels.empty() ? 0 : service_level(levels, work * devices_min(job));
}

reliability::JobAtRisk job_at_risk(const ClusterSnapshot& snapshot, const RunningJob& job) {
  const Checkpointing& checkpoints = job.request.checkpointing;
  const bool has_checkpoints = checkpoints.interval.value > 0;
  return {.devices = std::max(kCpuJobDevices, devices_of(job.request, job.replicas)),
          // A failure is taken to strike in the middle of an interval: here at the end of all work.
          .interval = has_checkpoints ? checkpoints.interval : (snapshot.now - job.started) * 2,
          .save = checkpoints.write,
          .restart = checkpoints.restart,
          .planned_restart = checkpoints.restart,
          .since_checkpoint =
              (work_done(snapshot, job) - kept_work(snapshot, job)) / rate(snapshot, job)};
}

double eviction_loss(const ClusterSnapshot& snapshot, const RunningJob& job) {
  return reliability::stop_loss(job_at_risk(snapshot, job));
}

}  // namespace regatta::sched
