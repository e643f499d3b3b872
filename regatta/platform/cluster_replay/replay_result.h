// cluster_replay/replay_result.h: what a replay found: waiting, utilisation, evictions, curves.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "regatta/base/core/units.h"

namespace regatta::cluster_replay {

struct JobOutcome {
  Seconds submitted;
  Seconds first_start;  // negative: it never started
  Seconds ended;        // negative: it never ended
  Seconds pending;      // time in the queue, also after evictions
  Seconds delay;        // from submission to its end, less its run time in the trace
  Seconds lost;         // work that evictions and failures undid
  Seconds restarting;   // after evictions, moves and failures
  Seconds degraded;     // without a replica that it lost
  int evictions = 0;
  int devices = 0;
  int priority = 0;
};

// Over jobs that ended.
struct WaitingSummary {
  int jobs = 0;
  Seconds mean;
  Seconds median;
  Seconds percentile_90;
  Seconds percentile_99;
  Seconds longest;
};

struct JobGroupSummary {
  WaitingSummary pending;
  WaitingSummary delay;
  WaitingSummary first_wait;  // from submission to the first start
  int evictions = 0;
};

// Means between `from` and the next point.
struct CurvePoint {
  Seconds from;
  double allocated_share = 0;  // of all devices
  double busy_share = 0;       // of all devices: allocated, and neither restarting nor degraded
  double fragmentation = 0;    // of the free devices: those that the mean job cannot use
  double waiting_jobs = 0;
  double waiting_devices = 0;  // that they ask for
  double evictions = 0;        // in this time
};
inline constexpr int kCurvePointsMax = 1000;

struct DecisionTimes {
  long long decisions = 0;
  Seconds total;
  Seconds longest;
};

// Where the device time of jobs goes that is no work, over the whole replay.
struct FailureCosts {
  int failures = 0;  // of nodes, without planned ones
  int restarts = 0;  // of jobs, also after evictions, moves and changes of size
  Seconds held;      // by jobs that run
  Seconds undone;    // by failures, evictions and moves: ReplayResult's lost_device_time
  Seconds restarting;
  Seconds degraded;  // jobs that lost a replica and wait for another
  Seconds saving;    // checkpoints
  Seconds requeued;  // of the smallest sizes of jobs that wait after an eviction

  // Effective training time ratio: the part of the device time from the first starts of jobs to
  // their ends in which they work and nothing undoes that. 1 where no job ran. Source: Kokolis et
  // al., HPCA 2025.
  double ettr() const;
};

struct ReplayResult {
  std::vector<JobOutcome> jobs;  // as in the trace
  int unfinished = 0;            // jobs that never ended
  JobGroupSummary all;
  std::map<int, JobGroupSummary> by_devices;  // key: the next power of two
  std::map<int, JobGroupSummary> by_priority;
  // In the measured time.
  double allocated_share = 0;
  double busy_share = 0;
  double fragmentation = 0;
  double waiting_jobs = 0;
  int evictions = 0;
  int moves = 0;
  int resizes = 0;
  Seconds lost_device_time;
  FailureCosts failure_costs;
  Seconds work_device_time;  // of the jobs that ended, on their smallest sizes
  Seconds last_end;
  std::vector<CurvePoint> curves;  // up to kCurvePointsMax
  DecisionTimes decision_times;
  long long logged_events = 0;
  std::uint64_t log_hash = 0;  // of all lines
};

// Fills the summaries from `jobs`.
void summarize_jobs(ReplayResult& result);

}  // namespace regatta::cluster_replay
