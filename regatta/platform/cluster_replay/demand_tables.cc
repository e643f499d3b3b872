#include "regatta/platform/cluster_replay/demand_tables.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/mixing/duty_profile.h"
#include "regatta/platform/mixing/duty_tables.h"

namespace regatta::cluster_replay {
namespace {

Error too_short(const std::string& file, Seconds past, std::string_view last) {
  return {Code::kInvalidInput,
          fmt::format("{}: {} is in the first {}, which is taken as known; give a longer trace, or "
                      "a shorter past",
                      file, last, format_duration(past))};
}

// Intervals of the past.
std::size_t intervals_of(Seconds past, Seconds interval) {
  return static_cast<std::size_t>(std::llround(past / interval));
}

std::vector<float> present(std::span<const float> demand) {
  std::vector<float> values;
  std::copy_if(demand.begin(), demand.end(), std::back_inserter(values),
               [](float value) { return value >= 0; });
  return values;
}

sched::JobClass class_of_past(const std::vector<float>& past, Seconds interval) {
  const mixing::DutyPattern pattern = mixing::find_duty_pattern(past, interval);
  const bool may_wait =
      pattern == mixing::DutyPattern::kShortSpike || pattern == mixing::DutyPattern::kPeriodic;
  return may_wait ? sched::JobClass::kIntermittent : sched::JobClass::kOnline;
}

// A job of a class that lives in the intervals from `first` to before `last`, of which those before
// `known` are its past.
struct Life {
  std::size_t first = 0;
  std::size_t known = 0;
  std::size_t last = 0;
};

TracedJob job_with_demand(std::span<const float> demand, Seconds interval, const Life& life,
                          const DemandTableOptions& options) {
  TracedJob job;
  const std::size_t begin = std::max(life.first, life.known);
  job.request.submitted = interval * static_cast<double>(begin - life.known);
  job.run_time = interval * static_cast<double>(life.last - begin);
  job.request.checkpointing.restart = options.restart;
  sched::Role role;
  role.devices = 1;
  role.device_memory_mib = options.pod_memory_mib;
  job.request.roles = {role};
  job.demand.interval = interval;
  job.demand.past = static_cast<int>(begin - std::min(begin, life.first));
  for (std::size_t i = life.first; i < life.last; ++i)
    job.demand.amounts.push_back(std::max(0.0F, demand[i]));
  return job;
}

}  // namespace

Result<std::vector<TracedJob>> read_duty_jobs(std::string_view text, const std::string& file,
                                              const DemandTableOptions& options) {
  REGATTA_TRY(trace, mixing::read_duty_trace(text, file));
  const std::size_t known = intervals_of(options.past, trace.interval);
  std::vector<float> pooled;
  for (const mixing::MixedWorkload& pod : trace.workloads) {
    const std::span<const float> demand(pod.demand);
    const std::vector<float> past = present(demand.first(std::min(known, demand.size())));
    pooled.insert(pooled.end(), past.begin(), past.end());
  }
  const Seconds start = trace.interval * -static_cast<double>(known);
  const mixing::DutyProfile unknown = mixing::profile_of(pooled, trace.interval, start);
  std::vector<TracedJob> jobs;
  for (const mixing::MixedWorkload& pod : trace.workloads) {
    const std::span<const float> demand(pod.demand);
    const auto is_there = [](float value) { return value >= 0; };
    Life life{.first = 0, .known = known, .last = demand.size()};
    while (life.first < demand.size() && !is_there(demand[life.first]))
      ++life.first;
    while (life.last > life.first && !is_there(demand[life.last - 1]))
      --life.last;
    if (life.last <= known || life.last <= life.first) continue;
    TracedJob job = job_with_demand(demand, trace.interval, life, options);
    std::vector<float> past;
    if (life.first < known) past = present(demand.subspan(life.first, known - life.first));
    sched::JobRequest& request = job.request;
    request.name = fmt::format("pod-{}", pod.name);
    request.job_class = class_of_past(past, trace.interval);
    const bool is_online = request.job_class == sched::JobClass::kOnline;
    request.queue = is_online ? "online" : "intermittent";
    request.is_preemptible = !is_online;
    request.roles.front().name = "pod";
    request.roles.front().duty =
        past.empty() ? unknown : mixing::profile_of(past, trace.interval, start);
    jobs.push_back(std::move(job));
  }
  if (jobs.empty()) return too_short(file, options.past, "every pod");
  std::stable_sort(jobs.begin(), jobs.end(), [](const TracedJob& a, const TracedJob& b) {
    return a.request.submitted < b.request.submitted;
  });
  return jobs;
}

Result<std::vector<TracedJob>> read_service_jobs(std::string_view text, const std::string& file,
                                                 const DemandTableOptions& options) {
  REGATTA_TRY(requests, mixing::read_request_types(text, file));
  constexpr Seconds kMinute{60};
  const std::size_t known = intervals_of(options.past, kMinute);
  std::vector<TracedJob> jobs;
  bool is_long_enough = false;
  for (const auto& [type, series] : requests) {
    if (series.size() <= known) continue;
    is_long_enough = true;
    const std::vector<float> demand(series.begin(), series.end());
    TracedJob job = job_with_demand(demand, kMinute,
                                    {.first = 0, .known = known, .last = demand.size()}, options);
    const double highest =
        *std::max_element(series.begin() + static_cast<std::ptrdiff_t>(known), series.end());
    if (highest <= 0) continue;
    job.demand.per_replica = highest / options.service_replicas;
    job.demand.full_share = options.service_full_share;
    sched::JobRequest& request = job.request;
    request.name = type.empty() ? "service" : fmt::format("service-{}", type);
    request.queue = "online";
    request.job_class = sched::JobClass::kTidal;
    request.is_preemptible = false;
    sched::Role& role = request.roles.front();
    role.name = "replica";
    role.replicas_max = options.service_replicas;
    request.demand.emplace();
    request.demand->interval = kMinute;
    request.demand->per_replica = job.demand.per_replica;
    request.demand->history.assign(series.begin(), series.begin() + job.demand.past);
    jobs.push_back(std::move(job));
  }
  if (jobs.empty() && is_long_enough)
    return Error{Code::kInvalidInput,
                 fmt::format("{}: qps: it is 0 at all times{}; give a trace with requests", file,
                             known > 0 ? " after the first " + format_duration(options.past) : "")};
  if (jobs.empty()) return too_short(file, options.past, "every request");
  return jobs;
}

}  // namespace regatta::cluster_replay
