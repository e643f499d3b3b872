// sched/internal/job_progress.h: what running jobs have done, when they end, and what they lose
// when they are evicted.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "regatta/platform/reliability/expected_loss.h"
#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::sched {

// Work since it began, as time on its smallest size; none in the time in which it is degraded is
// known of, so that this is an upper bound then.
Seconds work_done(const ClusterSnapshot& snapshot, const RunningJob& job);

// The part of that work that its last checkpoint holds; none of a job without checkpoints.
Seconds kept_work(const ClusterSnapshot& snapshot, const RunningJob& job);

// The way it goes on elsewhere: "continues from its checkpoint", or "starts again" where none keeps
// work.
std::string resume_text(const ClusterSnapshot& snapshot, const RunningJob& job);
// The loss of an eviction: "12 min since its checkpoint", "all its work, for it makes no
// checkpoints", "no work".
std::string lost_work_text(const ClusterSnapshot& snapshot, const RunningJob& job);
// "12 min"; "nothing" of 0.
std::string lost_time_text(Seconds time);

// When it ends: the `quantile` of its distribution; infinite where its run time is not known.
Seconds end_time(const ClusterSnapshot& snapshot, const RunningJob& job, double quantile);

// How long a pending job will run on its smallest size within the smallest domain, restart
// included: the `quantile`.
Seconds expected_run_time(const JobRequest& job, Seconds completed, double quantile);

// The device time of all its work, of devices of its smallest size, and how many of `levels` it has
// reached.
int service_level(const std::vector<Seconds>& levels, const JobRequest& job, Seconds work);

// The terms by which failures and stops cost it; without checkpoints they undo all that it has done
// since it started. A job without devices counts as a small part of one.
reliability::JobAtRisk job_at_risk(const ClusterSnapshot& snapshot, const RunningJob& job);

// Device-seconds that an eviction, or a move, loses: work since the checkpoint and the restart.
double eviction_loss(const ClusterSnapshot& snapshot, const RunningJob& job);

}  // namespace regatta::sched
