#include "regatta/platform/sched/internal/job_rank.h"

#include <algorithm>
#include <cmath>

namespace regatta::sched {
namespace {

double order_value(JobOrder order, const JobRequest& job, Seconds completed) {
  switch (order) {
    case JobOrder::kSubmitted:
      return 0;
    case JobOrder::kShortest:
      return remaining_time(job.run_time, completed, 0.5).value;
    case JobOrder::kLeastService:
      return devices_min(job) * (completed + remaining_time(job.run_time, completed, 0.5)).value;
    case JobOrder::kDeadline:
      return job.deadline ? job.deadline->value : HUGE_VAL;
  }
  return 0;
}

}  // namespace

RankedJob ranked_job(JobOrder order, const JobRequest& job, Seconds completed) {
  return {.priority = job.priority,
          .order = order_value(order, job, completed),
          .submitted = job.submitted,
          .service = completed * devices_min(job)};
}

JobRank rank_of(const SchedulingPolicy& policy, const RankedJob& job, Seconds now, int index) {
  const double ageing =
      policy.ageing.value > 0 ? std::floor((now - job.submitted) / policy.ageing) : 0;
  return {.priority = -(job.priority + ageing),
          .level = service_level(policy.service_levels, job.service),
          .order = job.order,
          .submitted = job.submitted.value,
          .index = index};
}

int service_level(const std::vector<Seconds>& levels, Seconds service) {
  return static_cast<int>(std::upper_bound(levels.begin(), levels.end(), service) - levels.begin());
}

}  // namespace regatta::sched
