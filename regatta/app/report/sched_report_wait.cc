#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/sched_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

const sched::SchedulingAction* start_of(const WaitExplanation& explanation) {
  for (const sched::SchedulingAction& action : explanation.decision.actions)
    if (action.kind == sched::ActionKind::kStart && action.job == explanation.job) return &action;
  return nullptr;
}

// The entry of a job that not even the empty cluster holds; nullptr where it does.
const sched::WaitingJob* other_cause(const WaitExplanation& explanation) {
  for (const sched::WaitingJob& job : explanation.decision.waiting)
    if (job.job == explanation.job && job.cause == sched::WaitCause::kNeverFits) return &job;
  return nullptr;
}

nlohmann::json seconds_or_null(Seconds time) {
  return std::isfinite(time.value) ? nlohmann::json(time.value) : nlohmann::json(nullptr);
}

nlohmann::json holders_json(const std::vector<sched::BlockingJob>& jobs) {
  nlohmann::json holders = nlohmann::json::array();
  for (const sched::BlockingJob& job : jobs)
    holders.push_back(
        {{"job", job.job}, {"devices", job.devices}, {"ends_in_s", seconds_or_null(job.ends)}});
  return holders;
}

nlohmann::json limits_json(const std::vector<sched::BlockingLimit>& limits) {
  nlohmann::json list = nlohmann::json::array();
  for (const sched::BlockingLimit& limit : limits)
    list.push_back({{"queue", limit.queue},
                    {"user", limit.user},
                    {"device_type", limit.device_type},
                    {"limit", sched::amount_text(limit.resource, limit.limit)},
                    {"missing", sched::amount_text(limit.resource, limit.missing)},
                    {"blocking", holders_json(limit.jobs)}});
  return list;
}

constexpr std::size_t kNamedJobs = 3;

// "now", "less than 1 s", "25 min", "more than 60 days"
std::string wait_duration(Seconds time) {
  if (!std::isfinite(time.value)) return "more than 60 days";
  if (time.value <= 0) return "now";
  return time.value < 1 ? "less than 1 s" : format_duration(time);
}

std::vector<std::string> holders_without_end(const sched::BlockingSet& blocking) {
  std::vector<std::string> names;
  const auto add = [&](const std::vector<sched::BlockingJob>& jobs) {
    for (const sched::BlockingJob& job : jobs)
      if (!std::isfinite(job.ends.value)) names.push_back(job.job);
  };
  for (const sched::BlockingLimit& limit : blocking.limits)
    add(limit.jobs);
  add(blocking.jobs);
  return names;
}

// Jobs that have run for as long as they were to run.
std::vector<std::string> overdue_holders(const sched::BlockingSet& blocking) {
  std::vector<std::string> names;
  const auto add = [&](const std::vector<sched::BlockingJob>& jobs) {
    for (const sched::BlockingJob& job : jobs)
      if (job.ends.value <= 0) names.push_back(job.job);
  };
  for (const sched::BlockingLimit& limit : blocking.limits)
    add(limit.jobs);
  add(blocking.jobs);
  return names;
}

std::string named_jobs(const std::vector<std::string>& names) {
  return (names.size() == 1 ? "job " : "jobs ") + shortened_list(names, kNamedJobs);
}

// Why no start is predicted.
std::string no_start_text(const WaitExplanation& explanation) {
  if (!explanation.blocking.nodes.empty())
    return "no start is predicted: when nodes return is not known";
  const std::vector<std::string> holders = holders_without_end(explanation.blocking);
  if (!holders.empty())
    return fmt::format("no start is predicted: when {} {} is not known", named_jobs(holders),
                       holders.size() == 1 ? "ends" : "end");
  const std::vector<std::string>& endless = explanation.endless;
  if (!endless.empty())
    return fmt::format("no start is predicted: {} {} before it, and {} run time is not known",
                       named_jobs(endless), endless.size() == 1 ? "goes" : "go",
                       endless.size() == 1 ? "its" : "their");
  return "no start is predicted within 60 days";
}

std::string start_text(const WaitExplanation& explanation) {
  const sched::StartPrediction& prediction = explanation.prediction;
  const std::vector<std::string> overdue = overdue_holders(explanation.blocking);
  if (!explanation.left_out.empty() && !overdue.empty())
    return fmt::format("starts as soon as {} {}", named_jobs(overdue),
                       overdue.size() == 1 ? "ends" : "end");
  if (!explanation.left_out.empty()) return "no start is predicted: " + explanation.left_out;
  if (!std::isfinite(prediction.start.value))
    return no_start_text(explanation) +
           (explanation.may_share ? "; it starts once a device in use admits it beside others, "
                                    "which is not predicted"
            : explanation.blocking.is_owed
                ? "; it starts once its queue takes back what it is guaranteed, which is not "
                  "predicted"
                : "");
  std::string text = prediction.start.value <= 0
                         ? "starts with the next decision"
                         : "starts in about " + wait_duration(prediction.start);
  if (prediction.latest.value > 0)
    text += fmt::format(" (80 %: {} to {})", wait_duration(prediction.earliest),
                        wait_duration(prediction.latest));
  if (prediction.start.value <= 0) return text;
  if (explanation.may_share)
    text += "; sooner where a device in use admits it beside others, which is not predicted";
  if (explanation.blocking.is_owed)
    text += "; sooner where its queue takes back what it is guaranteed, which is not predicted";
  return text;
}

}  // namespace

std::string wait_text(const WaitExplanation& explanation) {
  if (const sched::SchedulingAction* const start = start_of(explanation))
    return fmt::format("job {} {}\n", explanation.job, start->reason);
  if (const sched::WaitingJob* const other = other_cause(explanation)) {
    const std::string why = other->detail.empty() ? wait_cause_text(other->cause) : other->detail;
    return fmt::format("job {} waits: {}\n", explanation.job, why);
  }
  std::string text = fmt::format("job {} {}\n", explanation.job, explanation.blocking.sentence);
  if (explanation.blocking.never_fits) return text;
  for (const sched::WaitingJob& job : explanation.decision.waiting) {
    if (job.job != explanation.job || job.cause == sched::WaitCause::kNoRoom ||
        job.cause == sched::WaitCause::kQuota)
      continue;
    text += (job.cause == sched::WaitCause::kReservation && !job.detail.empty()
                 ? fmt::format("would delay job {}, which goes before it", job.detail)
                 : wait_cause_text(job.cause)) +
            "\n";
  }
  return text + start_text(explanation) + "\n";
}

nlohmann::json wait_json(const WaitExplanation& explanation) {
  nlohmann::json result = {{"job", explanation.job},
                           {"starts_now", start_of(explanation) != nullptr},
                           {"sentence", explanation.blocking.sentence},
                           {"devices", explanation.blocking.devices},
                           {"free_devices", explanation.blocking.free_devices},
                           {"startable_devices", explanation.blocking.startable_devices},
                           {"never_fits", explanation.blocking.never_fits},
                           {"blocking", holders_json(explanation.blocking.jobs)},
                           {"limits", limits_json(explanation.blocking.limits)},
                           {"nodes", explanation.blocking.nodes},
                           {"start_in_s", seconds_or_null(explanation.prediction.start)},
                           {"earliest_in_s", seconds_or_null(explanation.prediction.earliest)},
                           {"latest_in_s", seconds_or_null(explanation.prediction.latest)}};
  if (start_of(explanation) == nullptr && !explanation.blocking.never_fits)
    result["start"] = start_text(explanation);
  for (const sched::WaitingJob& job : explanation.decision.waiting)
    if (job.job == explanation.job) {
      result["cause"] = wait_cause_name(job.cause);
      if (!job.detail.empty()) result["detail"] = job.detail;
    }
  return result;
}

}  // namespace regatta::report
