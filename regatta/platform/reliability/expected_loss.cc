#include "regatta/platform/reliability/expected_loss.h"

#include <algorithm>
#include <cmath>

namespace regatta::reliability {

double failure_loss(const JobAtRisk& job) {
  return job.devices * (job.interval / 2 + job.restart).value;
}

double expected_loss(const JobAtRisk& job, FailureRate rate, Seconds horizon) {
  return rate * horizon * failure_loss(job);
}

double stop_loss(const JobAtRisk& job) {
  return job.devices * (job.since_checkpoint + job.planned_restart).value;
}

double saved_stop_loss(const JobAtRisk& job) {
  return job.devices * (job.save + job.planned_restart).value;
}

DrainDecision decide_drain(const JobAtRisk& job, FailureRate rate, Seconds horizon,
                           double drained) {
  DrainDecision decision;
  decision.now = std::min(stop_loss(job), saved_stop_loss(job)) + drained;
  const Seconds until = std::max(Seconds{0}, job.interval - job.since_checkpoint);
  const double failed = -std::expm1(-(rate * until));
  const Seconds undone = job.since_checkpoint + until / 2;
  decision.next_checkpoint =
      job.devices * (failed * (undone + job.restart) + (1 - failed) * job.planned_restart).value +
      drained;
  decision.later = expected_loss(job, rate, horizon);
  const double least = std::min({decision.now, decision.next_checkpoint, decision.later});
  if (decision.later <= least)
    decision.time = DrainTime::kLater;
  else
    decision.time =
        decision.next_checkpoint <= least ? DrainTime::kNextCheckpoint : DrainTime::kNow;
  return decision;
}

}  // namespace regatta::reliability
