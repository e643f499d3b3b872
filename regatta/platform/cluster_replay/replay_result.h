// cluster_replay/replay_result.h: what a replay found: waiting, utilisation, evictions, missed
// intervals of services, curves.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::cluster_replay {

// Intervals of a service, from its first start to its end, in which its demand was not served in
// full, by the first cause in each.
struct MissedIntervals {
  int away = 0;      // it waited after an eviction, restarted, or had lost a replica
  int replicas = 0;  // too few
  int devices = 0;   // one of its devices gave it too little

  int all() const { return away + replicas + devices; }
};

struct JobOutcome {
  std::string name;
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
  sched::JobClass job_class = sched::JobClass::kBatch;
  int intervals = 0;  // with demand, of a job with a latency target
  MissedIntervals missed;
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
  double used_share = 0;       // of the compute of all devices: at work, as used_share below
  double online_share = 0;     // of that: for jobs with a latency target
  double fragmentation = 0;    // of the free devices: those that the mean job cannot use
  double waiting_jobs = 0;
  double waiting_devices = 0;  // that they ask for
  double evictions = 0;        // in this time
  double missed = 0;           // intervals of services, in this time
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
  std::map<sched::JobClass, JobGroupSummary> by_class;
  // In the measured time.
  double allocated_share = 0;
  double busy_share = 0;
  // Compute at work over that of all devices. A job without a demand works as much as its rate,
  // in devices of its smallest size: what interference, restarts, checkpoints, slow links and
  // sizes that gain little take is not work. A job with a demand works as much of it as is served.
  double used_share = 0;
  double online_share = 0;
  double fragmentation = 0;
  double waiting_jobs = 0;
  long long service_intervals = 0;  // of jobs with a demand and a latency target
  MissedIntervals missed;
  double delayed_share = 0;  // of the demand of the other jobs: not served in its interval
  int mixes = 0;             // changes of the way in which devices are shared
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
