// cluster_replay/internal/job_run.h: the work of a running job in simulated time.
#pragma once

#include "regatta/platform/sched/job_request.h"

namespace regatta::cluster_replay {

// From a start, or a change of its places, to the next. Work is time on the smallest size.
struct JobRun {
  double begun = 0;      // when it works: after its restart
  double completed = 0;  // work before that
  double rate = 1;       // sched::work_rate(); 0: degraded
};

// Work until `now`, and the part of it that its last checkpoint holds.
double work_at(const JobRun& run, double now);
double checkpointed_work(const JobRun& run, const sched::Checkpointing& checkpointing, double now);
// When its last checkpoint was; `begun` where there is none.
double checkpoint_time(const JobRun& run, const sched::Checkpointing& checkpointing, double now);

}  // namespace regatta::cluster_replay
