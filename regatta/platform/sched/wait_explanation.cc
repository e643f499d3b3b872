#include "regatta/platform/sched/wait_explanation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::sched {
namespace {

// Times that the queue is played forward: as many as take some seconds at most.
constexpr int kSamplesLeast = 8;
constexpr int kSamplesMost = 200;
constexpr int kSampledJobs = 40'000;  // jobs in all samples
constexpr std::size_t kNamedJobs = 3;

const SchedulingAction* start_in(const SchedulingDecision& decision, std::string_view job) {
  for (const SchedulingAction& action : decision.actions)
    if (action.kind == ActionKind::kStart && action.job == job) return &action;
  return nullptr;
}

const JobRequest* find_pending(const JobQueue& queue, std::string_view job) {
  for (const PendingJob& pending : queue.jobs)
    if (pending.request.name == job) return &pending.request;
  return nullptr;
}

// Why decisions may leave a job waiting that the queue played forward starts.
std::string left_out_of(const JobRequest& job) {
  const auto has_subgroups = [](const Role& role) { return role.subgroup_replicas > 1; };
  return std::any_of(job.roles.begin(), job.roles.end(), has_subgroups)
             ? "its subgroups are left out"
             : "the free parts of a node's devices count as one amount, and the next decision "
               "leaves the job waiting";
}

// "now", "less than 1 s", "25 min", "more than 60 days"
std::string wait_duration(Seconds time) {
  if (!std::isfinite(time.value)) return "more than 60 days";
  if (time.value <= 0) return "now";
  return time.value < 1 ? "less than 1 s" : format_duration(time);
}

// The jobs in the way of which `is_one` holds.
template <typename Filter>
std::vector<std::string> holders(const BlockingSet& blocking, Filter is_one) {
  std::vector<std::string> names;
  const auto add = [&](const std::vector<BlockingJob>& jobs) {
    for (const BlockingJob& job : jobs)
      if (is_one(job)) names.push_back(job.job);
  };
  for (const BlockingLimit& limit : blocking.limits)
    add(limit.jobs);
  add(blocking.jobs);
  return names;
}

// Jobs that have run for as long as they were to run.
std::vector<std::string> overdue_holders(const WaitExplanation& explanation) {
  return holders(explanation.blocking,
                 [&](const BlockingJob& job) { return job.ends <= explanation.now; });
}

std::string named_jobs(const std::vector<std::string>& names) {
  return (names.size() == 1 ? "job " : "jobs ") + shortened_list(names, kNamedJobs);
}

// Why no start is predicted.
std::string no_start_text(const WaitExplanation& explanation) {
  if (explanation.blocking.never_fits)
    return "no start is predicted: not even the empty cluster holds it";
  if (!explanation.blocking.nodes.empty())
    return "no start is predicted: when nodes return is not known";
  const std::vector<std::string> endless_holders = holders(
      explanation.blocking, [](const BlockingJob& job) { return !std::isfinite(job.ends.value); });
  if (!endless_holders.empty())
    return fmt::format("no start is predicted: when {} {} is not known",
                       named_jobs(endless_holders), endless_holders.size() == 1 ? "ends" : "end");
  const std::vector<std::string>& endless = explanation.endless;
  if (!endless.empty())
    return fmt::format("no start is predicted: {} {} before it, and {} run time is not known",
                       named_jobs(endless), endless.size() == 1 ? "goes" : "go",
                       endless.size() == 1 ? "its" : "their");
  return "no start is predicted within 60 days";
}

std::string no_finite_start_text(const WaitExplanation& explanation) {
  std::string text = no_start_text(explanation);
  if (explanation.may_share)
    text += "; it starts once a device in use admits it beside others, which is not predicted";
  else if (explanation.blocking.is_owed)
    text += "; it starts once its queue takes back what it is guaranteed, which is not predicted";
  return text;
}

}  // namespace

int forecast_samples(const ClusterSnapshot& snapshot, const JobQueue& queue) {
  const auto jobs = static_cast<int>(snapshot.running.size() + queue.jobs.size());
  return std::clamp(kSampledJobs / (jobs + 1), kSamplesLeast, kSamplesMost);
}

Result<WaitExplanation> explain_wait(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                     const SchedulingPolicy& policy,
                                     const SchedulingDecision& decision, std::string_view job) {
  WaitExplanation explanation;
  explanation.job = job;
  explanation.now = snapshot.now;
  if (const SchedulingAction* start = start_in(decision, job)) {
    explanation.start = *start;
    return explanation;
  }
  for (const WaitingJob& waiting : decision.waiting)
    if (waiting.job == job) explanation.causes.push_back(waiting);
  // Others that start at this moment take their places first.
  REGATTA_TRY(blocking, blocking_set(snapshot, queue, policy, job));
  explanation.blocking = std::move(blocking);
  const JobRequest* request = find_pending(queue, job);
  explanation.may_share = policy.mixes && request != nullptr && may_share_devices(*request);
  return explanation;
}

Status predict_wait(const ClusterSnapshot& snapshot, const JobQueue& queue,
                    const SchedulingPolicy& policy, WaitExplanation& explanation) {
  if (explanation.start) return {};
  if (explanation.blocking.never_fits) {
    const Seconds never{std::numeric_limits<double>::infinity()};
    explanation.prediction = {explanation.job, never, never, never};
    return {};
  }
  const StartForecastOptions forecast{.samples = forecast_samples(snapshot, queue)};
  REGATTA_TRY(predictions, predict_starts(snapshot, queue, policy, {explanation.job}, forecast));
  explanation.prediction = predictions.front();
  if (!std::isfinite(explanation.prediction->start.value)) {
    REGATTA_TRY(endless, endless_jobs_before(snapshot, queue, policy, explanation.job, forecast));
    explanation.endless = std::move(endless);
  } else if (explanation.prediction->start <= snapshot.now) {
    REGATTA_TRY(next, decide(snapshot, queue, policy));
    const JobRequest* request = find_pending(queue, explanation.job);
    if (start_in(next, explanation.job) == nullptr && request != nullptr)
      explanation.left_out = left_out_of(*request);
  }
  return {};
}

bool has_predicted_start(const WaitExplanation& explanation) {
  return explanation.left_out.empty() && explanation.prediction &&
         std::isfinite(explanation.prediction->start.value);
}

std::string start_sentence(const WaitExplanation& explanation) {
  const std::vector<std::string> overdue = overdue_holders(explanation);
  if (!explanation.left_out.empty() && !overdue.empty())
    return fmt::format("starts as soon as {} {}", named_jobs(overdue),
                       overdue.size() == 1 ? "ends" : "end");
  if (!explanation.left_out.empty()) return "no start is predicted: " + explanation.left_out;
  if (!has_predicted_start(explanation)) return no_finite_start_text(explanation);
  const Seconds start = explanation.prediction->start - explanation.now;
  std::string text = start.value <= 0 ? "starts with the next decision"
                                      : "starts in about " + wait_duration(start);
  if (explanation.prediction->latest > explanation.now)
    text += fmt::format(" (80 %: {} to {})",
                        wait_duration(explanation.prediction->earliest - explanation.now),
                        wait_duration(explanation.prediction->latest - explanation.now));
  if (start.value <= 0) return text;
  if (explanation.may_share)
    text += "; sooner where a device in use admits it beside others, which is not predicted";
  if (explanation.blocking.is_owed)
    text += "; sooner where its queue takes back what it is guaranteed, which is not predicted";
  return text;
}

}  // namespace regatta::sched
