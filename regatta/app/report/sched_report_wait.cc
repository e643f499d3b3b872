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

// The entry of a job that not even the empty cluster holds; nullptr where it does.
const sched::WaitingJob* other_cause(const sched::WaitExplanation& explanation) {
  for (const sched::WaitingJob& job : explanation.causes)
    if (job.cause == sched::WaitCause::kNeverFits) return &job;
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

}  // namespace

std::string wait_text(const sched::WaitExplanation& explanation) {
  if (explanation.start)
    return fmt::format("job {} {}\n", explanation.job, explanation.start->reason);
  if (const sched::WaitingJob* const other = other_cause(explanation)) {
    const std::string why = other->detail.empty() ? wait_cause_text(other->cause) : other->detail;
    return fmt::format("job {} waits: {}\n", explanation.job, why);
  }
  std::string text = fmt::format("job {} {}\n", explanation.job, explanation.blocking.sentence);
  if (explanation.blocking.never_fits) return text;
  for (const sched::WaitingJob& job : explanation.causes) {
    if (job.cause == sched::WaitCause::kNoRoom || job.cause == sched::WaitCause::kQuota) continue;
    text += (job.cause == sched::WaitCause::kReservation && !job.detail.empty()
                 ? fmt::format("would delay job {}, which goes before it", job.detail)
                 : wait_cause_text(job.cause)) +
            "\n";
  }
  return text + start_sentence(explanation) + "\n";
}

nlohmann::json wait_json(const sched::WaitExplanation& explanation) {
  const sched::StartPrediction prediction =
      explanation.prediction.value_or(sched::StartPrediction{});
  nlohmann::json result = {{"job", explanation.job},
                           {"starts_now", explanation.start.has_value()},
                           {"sentence", explanation.blocking.sentence},
                           {"devices", explanation.blocking.devices},
                           {"free_devices", explanation.blocking.free_devices},
                           {"startable_devices", explanation.blocking.startable_devices},
                           {"never_fits", explanation.blocking.never_fits},
                           {"blocking", holders_json(explanation.blocking.jobs)},
                           {"limits", limits_json(explanation.blocking.limits)},
                           {"nodes", explanation.blocking.nodes},
                           {"start_in_s", seconds_or_null(prediction.start)},
                           {"earliest_in_s", seconds_or_null(prediction.earliest)},
                           {"latest_in_s", seconds_or_null(prediction.latest)}};
  if (!explanation.start && !explanation.blocking.never_fits)
    result["start"] = start_sentence(explanation);
  for (const sched::WaitingJob& job : explanation.causes) {
    result["cause"] = wait_cause_name(job.cause);
    if (!job.detail.empty()) result["detail"] = job.detail;
  }
  return result;
}

}  // namespace regatta::report
