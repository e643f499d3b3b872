// cluster_replay/internal/job_run.h: the work of a running job in simulated time.
#pragma once

#include <span>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::cluster_replay {

// From a start, or a change of its places, to the next. Work is time on the smallest size.
struct JobRun {
  double begun = 0;      // when it works: after its restart
  double full_rate = 1;  // work in a second where its devices give it all; 0: degraded
  double served = 1;     // share of that which they give it since `since`
  double since = 0;      // at least `begun`
  double completed = 0;  // work until `since`
  double kept = 0;       // of it, in its last checkpoint
  double devices = 0;    // that it has; shares count as parts
  double devices_min = 0;

  bool is_degraded() const { return full_rate <= 0; }
  double rate() const { return full_rate * served; }
};

// A run that works from `begun` on with `completed` work, all of which is kept.
JobRun run_of(double begun, double completed, double full_rate);
// From `now` on its devices give it another share.
void set_served(JobRun& run, const sched::Checkpointing& checkpointing, double now, double served);

// Work until `now`, and the part of it that its last checkpoint holds.
double work_at(const JobRun& run, double now);
double checkpointed_work(const JobRun& run, const sched::Checkpointing& checkpointing, double now);
// When its last checkpoint was; `begun` where there is none.
double checkpoint_time(const JobRun& run, const sched::Checkpointing& checkpointing, double now);

// Work in a second on these replicas, all of which work: by the throughput of the job's size, the
// domain that holds all of them, and the share of the time that writing checkpoints leaves.
double work_rate(const sched::JobRequest& job, std::span<const sched::ReplicaPlacement> replicas,
                 const std::vector<sched::ClusterNode>& nodes);

}  // namespace regatta::cluster_replay
