// cluster_replay/internal/job_run.h: the work of a running job in simulated time.
#pragma once

#include "regatta/platform/sched/job_request.h"

namespace regatta::cluster_replay {

// From a start, or a change of its places, to the next. Work is time on the smallest size.
struct JobRun {
  double begun = 0;  // when it works: after its restart
  // sched::work_rate(), where its devices give it all that it needs; 0: degraded.
  double full_rate = 1;
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

}  // namespace regatta::cluster_replay
