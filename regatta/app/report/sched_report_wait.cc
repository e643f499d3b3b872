#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/sched_report.h"
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

std::string start_text(const sched::StartPrediction& prediction) {
  if (!std::isfinite(prediction.start.value)) return "no start is in sight within 60 days";
  std::string text = "starts in about " + format_duration(prediction.start);
  const std::string latest = std::isfinite(prediction.latest.value)
                                 ? format_duration(prediction.latest)
                                 : std::string("more than 60 days");
  return text + fmt::format(" (80 %: {} to {})", format_duration(prediction.earliest), latest);
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
  for (const sched::WaitingJob& job : explanation.decision.waiting) {
    if (job.job != explanation.job || job.cause == sched::WaitCause::kNoRoom ||
        job.cause == sched::WaitCause::kQuota)
      continue;
    text += wait_cause_text(job.cause) + "\n";
  }
  return text + start_text(explanation.prediction) + "\n";
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
                           {"start_in_s", seconds_or_null(explanation.prediction.start)},
                           {"earliest_in_s", seconds_or_null(explanation.prediction.earliest)},
                           {"latest_in_s", seconds_or_null(explanation.prediction.latest)}};
  for (const sched::WaitingJob& job : explanation.decision.waiting)
    if (job.job == explanation.job) {
      result["cause"] = wait_cause_name(job.cause);
      if (!job.detail.empty()) result["detail"] = job.detail;
    }
  return result;
}

}  // namespace regatta::report
