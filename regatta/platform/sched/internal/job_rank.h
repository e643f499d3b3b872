// sched/internal/job_rank.h: the order of pending jobs that wait in one line.
#pragma once

#include <compare>
#include <vector>

#include "regatta/platform/sched/job_request.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::sched {

// The place of a job in its line depends on these.
struct RankedJob {
  int priority = 0;
  double order = 0;  // by the policy; less goes first
  Seconds submitted;
  Seconds service;  // device time of all its work so far
};

RankedJob ranked_job(JobOrder order, const JobRequest& job, Seconds completed);

// The place in a line; smaller goes first.
struct JobRank {
  double priority = 0;  // with ageing, negative
  int level = 0;        // of service
  double order = 0;
  double submitted = 0;
  int index = 0;  // of equal jobs the first

  friend auto operator<=>(const JobRank&, const JobRank&) = default;
};

JobRank rank_of(const SchedulingPolicy& policy, const RankedJob& job, Seconds now, int index);

// How many of `levels` this device time has reached.
int service_level(const std::vector<Seconds>& levels, Seconds service);

}  // namespace regatta::sched
