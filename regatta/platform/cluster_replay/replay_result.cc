#include "regatta/platform/cluster_replay/replay_result.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "regatta/base/core/stats.h"

namespace regatta::cluster_replay {
namespace {

WaitingSummary summary_of(std::vector<double> values) {
  WaitingSummary summary;
  summary.jobs = static_cast<int>(values.size());
  if (values.empty()) return summary;
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const double value : values)
    sum += value;
  summary.mean = {sum / static_cast<double>(values.size())};
  summary.median = {median(values)};
  summary.percentile_90 = {values[quantile_place(values.size(), 0.9)]};
  summary.percentile_99 = {values[quantile_place(values.size(), 0.99)]};
  summary.longest = {values.back()};
  return summary;
}

template <typename Accept>
JobGroupSummary group_of(const std::vector<JobOutcome>& jobs, const Accept& accept) {
  std::vector<double> pending;
  std::vector<double> delay;
  std::vector<double> first_wait;
  JobGroupSummary group;
  for (const JobOutcome& job : jobs) {
    if (!accept(job)) continue;
    group.evictions += job.evictions;
    if (job.ended.value < 0) continue;
    pending.push_back(job.pending.value);
    delay.push_back(job.delay.value);
    first_wait.push_back((job.first_start - job.submitted).value);
  }
  group.pending = summary_of(std::move(pending));
  group.delay = summary_of(std::move(delay));
  group.first_wait = summary_of(std::move(first_wait));
  return group;
}

int size_class(const JobOutcome& job) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(job.devices)));
}

}  // namespace

double FailureCosts::ettr() const {
  const Seconds all = held + requeued;
  return all.value > 0 ? (held - undone - restarting - degraded - saving) / all : 1;
}

void summarize_jobs(ReplayResult& result) {
  result.all = group_of(result.jobs, [](const JobOutcome&) { return true; });
  std::map<int, int> classes;
  std::map<int, int> priorities;
  std::map<sched::JobClass, int> job_classes;
  for (const JobOutcome& job : result.jobs) {
    ++classes[size_class(job)];
    ++priorities[job.priority];
    ++job_classes[job.job_class];
    result.service_intervals += job.intervals;
    result.missed.away += job.missed.away;
    result.missed.replicas += job.missed.replicas;
    result.missed.devices += job.missed.devices;
  }
  for (const auto& [devices, count] : classes)
    result.by_devices[devices] =
        group_of(result.jobs, [&](const JobOutcome& job) { return size_class(job) == devices; });
  for (const auto& [priority, count] : priorities)
    result.by_priority[priority] =
        group_of(result.jobs, [&](const JobOutcome& job) { return job.priority == priority; });
  for (const auto& [job_class, count] : job_classes)
    result.by_class[job_class] =
        group_of(result.jobs, [&](const JobOutcome& job) { return job.job_class == job_class; });
}

}  // namespace regatta::cluster_replay
