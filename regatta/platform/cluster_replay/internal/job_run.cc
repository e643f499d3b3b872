#include "regatta/platform/cluster_replay/internal/job_run.h"

#include <algorithm>
#include <cmath>

namespace regatta::cluster_replay {

double work_at(const JobRun& run, double now) {
  return run.completed + std::max(0.0, now - run.begun) * run.rate;
}

double checkpoint_time(const JobRun& run, const sched::Checkpointing& checkpointing, double now) {
  const double cycle = (checkpointing.interval + checkpointing.write).value;
  if (checkpointing.interval.value <= 0 || now <= run.begun || run.rate <= 0) return run.begun;
  return run.begun + std::floor((now - run.begun) / cycle) * cycle;
}

double checkpointed_work(const JobRun& run, const sched::Checkpointing& checkpointing, double now) {
  if (checkpointing.interval.value <= 0) return 0;
  return work_at(run, checkpoint_time(run, checkpointing, now));
}

}  // namespace regatta::cluster_replay
