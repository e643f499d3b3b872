#include "regatta/platform/cluster_replay/internal/job_run.h"

#include <algorithm>
#include <cmath>

namespace regatta::cluster_replay {

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

}  // namespace regatta::cluster_replay
