#include "regatta/platform/cluster_replay/internal/job_run.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "regatta/base/core/ids.h"

namespace regatta::cluster_replay {
namespace {

sched::TopologyLevel spanned_level(std::span<const sched::ReplicaPlacement> replicas,
                                   const std::vector<sched::ClusterNode>& nodes) {
  auto level = sched::TopologyLevel::kServer;
  for (const sched::ReplicaPlacement& replica : replicas) {
    const sched::ClusterNode& first = at(nodes, replicas.front().node);
    const sched::ClusterNode& node = at(nodes, replica.node);
    if (node.group != first.group) return sched::TopologyLevel::kCluster;
    if (node.leaf != first.leaf)
      level = std::max(level, sched::TopologyLevel::kGroup);
    else if (replica.node != replicas.front().node)
      level = std::max(level, sched::TopologyLevel::kLeaf);
  }
  return level;
}

}  // namespace

JobRun run_of(double begun, double completed, double full_rate) {
  JobRun run;
  run.begun = begun;
  run.full_rate = full_rate;
  run.since = begun;
  run.completed = completed;
  run.kept = completed;
  return run;
}

void set_served(JobRun& run, const sched::Checkpointing& checkpointing, double now, double served) {
  run.kept = checkpointed_work(run, checkpointing, now);
  run.completed = work_at(run, now);
  run.since = std::max(run.begun, now);
  run.served = served;
}

double work_at(const JobRun& run, double now) {
  return run.completed + std::max(0.0, now - run.since) * run.rate();
}

double checkpoint_time(const JobRun& run, const sched::Checkpointing& checkpointing, double now) {
  const double cycle = (checkpointing.interval + checkpointing.write).value;
  if (checkpointing.interval.value <= 0 || now <= run.begun || run.is_degraded()) return run.begun;
  return run.begun + std::floor((now - run.begun) / cycle) * cycle;
}

double checkpointed_work(const JobRun& run, const sched::Checkpointing& checkpointing, double now) {
  if (checkpointing.interval.value <= 0) return 0;
  const double time = checkpoint_time(run, checkpointing, now);
  return time > run.since ? work_at(run, time) : run.kept;
}

double work_rate(const sched::JobRequest& job, std::span<const sched::ReplicaPlacement> replicas,
                 const std::vector<sched::ClusterNode>& nodes) {
  double rate = 1;
  const double least = sched::devices_min(job);
  const double held = sched::devices_of(job, replicas);
  if (least > 0 && held != least)
    rate = sched::throughput_at(job, held) / sched::throughput_at(job, least);
  rate /= job.slowdown[static_cast<std::size_t>(spanned_level(replicas, nodes))];
  const sched::Checkpointing& checkpointing = job.checkpointing;
  if (checkpointing.interval.value > 0)
    rate *= checkpointing.interval / (checkpointing.interval + checkpointing.write);
  return rate;
}

}  // namespace regatta::cluster_replay
