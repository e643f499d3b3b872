// sched/internal/queue_forecast.h: one possible future of a queue: jobs end and start in time.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/sched/internal/forecast_cluster.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::sched {

// A job that waits, or one that may come.
struct ForecastJob {
  int shape = 0;
  int priority = 0;  // with ageing
  double order = 0;  // by the policy; less goes first
  RunTime run_time;
  double elapsed = 0;  // work done before
  double devices = 0;
  double gap = 0;  // of one that may come: time since the one before
};

struct ForecastRun {
  std::vector<ForecastPlace> places;
  ForecastJob job;
  double started = 0;
};

struct ForecastInput {
  double now = 0;
  const ForecastCluster* cluster = nullptr;
  SchedulingPolicy policy;
  double decision_interval = 0;
  std::vector<ForecastRun> running;
  std::vector<ForecastJob> pending;
  std::vector<int> wanted;            // indices of pending jobs
  std::vector<ForecastJob> arrivals;  // the next ones; they come again and again
};

// When each wanted job starts in this future; infinite where it does not within 60 days.
std::vector<double> sample_starts(const ForecastInput& input, packing::RandomSequence& random);

// Where a job of this kind stands in the order of the policy; less goes first.
double forecast_order(JobOrder order, const JobRequest& job, double completed);

}  // namespace regatta::sched
