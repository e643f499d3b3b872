// sched/internal/forecast_input.h: what a forecast of the queue starts from.
#pragma once

#include <vector>

#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/fair_shares.h"
#include "regatta/platform/sched/internal/forecast_cluster.h"
#include "regatta/platform/sched/internal/job_rank.h"
#include "regatta/platform/sched/start_prediction.h"

namespace regatta::sched {

// A job on one of the device types that it may get: where quotas name types, each of them counts
// alone.
struct ForecastVariant {
  int shape = 0;
  ResourceAmounts amounts;  // of its quota
};

// Jobs of one kind start and wait alike, but for their rank.
struct ForecastKind {
  int shape = 0;    // on any type that it may get
  int account = 0;  // in the usage
  int leaf = 0;
  std::vector<ForecastVariant> variants;  // in the order in which they are tried; at least one
  bool never_fits = false;  // not even the empty cluster holds it, with all its nodes ready
};

// A job that waits, or runs, or may come.
struct ForecastJob {
  const JobRequest* request = nullptr;
  int kind = 0;
  RunTime run_time;      // that its end is drawn by
  double devices = 0;    // of its smallest size
  double elapsed = 0;    // work done before it waits or runs
  double submitted = 0;  // of one that may come: in this future
  double gap = 0;        // of one that may come: time since the one before
};

struct ForecastRun {
  std::vector<ForecastPlace> places;
  ForecastJob job;  // `elapsed`: until now
  double started = 0;
  ForecastVariant held;  // its shape, and what it takes of its quota
};

struct ForecastInput {
  double now = 0;
  double decision_interval = 0;
  const ClusterSnapshot* snapshot = nullptr;
  SchedulingPolicy policy;
  NodePrecautions precautions;
  const QuotaTree* quotas = nullptr;
  ForecastCluster cluster;
  std::vector<ForecastKind> kinds;
  QuotaUsage usage;  // of the running jobs
  bool has_limits = false;
  FairShares shares;  // where the policy is fair
  ResourceAmounts capacity;
  int lowest_priority = 0;  // of all jobs that run or wait
  std::vector<ForecastRun> running;
  std::vector<ForecastJob> pending;
  std::vector<int> wanted;            // indices of pending jobs
  std::vector<ForecastJob> arrivals;  // the next ones; they come again and again
};

// All arguments outlive it. Fails with kInvalidInput where a job names a queue that is no leaf.
Result<ForecastInput> make_forecast_input(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                          const SchedulingPolicy& policy,
                                          const StartForecastOptions& options);

}  // namespace regatta::sched
