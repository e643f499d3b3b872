// cluster_replay/internal/run_time_estimator.h: learns from ended jobs how long others run.
// Source: shrinkage of a group's moments to its parent's, as in James and Stein, 1961; older jobs
// count less, as in exponential smoothing (Brown, 1959).
#pragma once

#include <map>
#include <string>

#include "regatta/base/core/units.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::cluster_replay {

// A log-normal distribution for each group of jobs: same queue, user and devices; its parents are
// the jobs of as many devices, then all jobs. Not thread-safe.
class RunTimeEstimator {
 public:
  // `prior`: the estimate before any job has ended.
  explicit RunTimeEstimator(sched::RunTime prior = {{1000}, 2.0});

  // A job that ran to its end in `run_time` > 0, without interruptions.
  void add(const sched::JobRequest& job, Seconds run_time);

  sched::RunTime estimate(const sched::JobRequest& job) const;

 private:
  struct Moments {
    double weight = 0;
    double sum = 0;  // of logarithms
    double squares = 0;
  };
  static std::string owner_key(const sched::JobRequest& job);

  sched::RunTime prior_;
  Moments all_;
  std::map<int, Moments> by_devices_;
  std::map<std::string, Moments> by_owner_;
};

}  // namespace regatta::cluster_replay
