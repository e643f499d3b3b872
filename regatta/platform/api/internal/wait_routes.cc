#include "regatta/platform/api/internal/wait_routes.h"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/api/internal/job_routes.h"
#include "regatta/platform/api/internal/json_object.h"
#include "regatta/platform/api/problem.h"
#include "regatta/platform/sched/wait_explanation.h"

namespace regatta::api {
namespace {

using controller::ControllerRuntime;

// The answer as it is written: one for jobs that the scheduler considers, and for all others.
struct WaitText {
  store::Revision revision = 0;
  int position = 0;
  int ahead = 0;
  std::string reason;
  std::string blocking;  // JSON items
  std::string start;     // JSON
  bool fits = true;
};

std::string blocking_item(std::string_view kind, std::string_view name, std::string_view text) {
  JsonObject item;
  item.add("kind", kind);
  item.add("name", name);
  item.add("text", text);
  return item.take();
}

std::string unknown_start(std::string_view text) {
  JsonObject start;
  start.add("known", false);
  start.add("text", text);
  return start.take();
}

void respond_wait(ControllerRuntime& runtime, const ApiRequest& request, std::string_view handle,
                  WaitText text) {
  JsonObject object;
  object.add_revision("rev", text.revision);
  object.add("job", handle);
  object.add("position", text.position);
  object.add("ahead", text.ahead);
  object.add("reason", text.reason);
  object.add_raw("blocking", finished_list(std::move(text.blocking)));
  object.add_raw("start", text.start);
  object.add("fits", text.fits);
  respond_json(runtime, request, object.take());
}

// Reasons that keep the job from the scheduler; nothing where the scheduler considers it.
std::string own_blocking(const control::ClusterTables& tables, const control::ManagedJob& job,
                         Seconds now) {
  std::string blocking;
  if (job.is_held)
    append_item(blocking,
                blocking_item("hold", job.user, "it is held; let it start with regatta release"));
  for (const control::JobId id : job.after) {
    const control::ManagedJob* before = tables.find_job(id);
    if (before == nullptr || before->phase == control::JobPhase::kSucceeded) continue;
    const std::string name = handle_of(*before);
    append_item(
        blocking,
        blocking_item("dependency", name,
                      fmt::format("it starts when job {}, which is {}, has succeeded", name,
                                  at(control::kJobPhaseNames, static_cast<int>(before->phase)))));
  }
  if (job.not_before > now)
    append_item(blocking, blocking_item("pause", handle_of(job),
                                        fmt::format("it pauses for {} after a failure",
                                                    format_duration(job.not_before - now))));
  return blocking;
}

std::string holder_text(const sched::BlockingJob& job, Seconds now) {
  const std::string devices =
      fmt::format("holds {} {}", job.devices, job.devices == 1 ? "device" : "devices");
  if (job.is_degraded) return devices + " and waits for nodes to return";
  if (!std::isfinite(job.ends.value)) return devices + "; when it ends is not known";
  return job.ends <= now ? devices + "; it was to have ended"
                         : fmt::format("{} for about {}", devices, format_duration(job.ends - now));
}

std::string blocking_json(const sched::WaitExplanation& explanation) {
  std::string items;
  const auto add_jobs = [&](const std::vector<sched::BlockingJob>& jobs) {
    for (const sched::BlockingJob& job : jobs)
      append_item(items, blocking_item("job", job.job, holder_text(job, explanation.now)));
  };
  for (const sched::BlockingLimit& limit : explanation.blocking.limits) {
    append_item(items,
                blocking_item("limit", limit.queue,
                              fmt::format("limit of {}{}; {} more would be needed",
                                          sched::amount_text(limit.resource, limit.limit),
                                          limit.user.empty() ? "" : " for user " + limit.user,
                                          sched::amount_text(limit.resource, limit.missing))));
    add_jobs(limit.jobs);
  }
  add_jobs(explanation.blocking.jobs);
  for (const std::string& node : explanation.blocking.nodes)
    append_item(items, blocking_item("node", node, "it is not ready, or has failed devices"));
  return items;
}

std::string start_json(const sched::WaitExplanation& explanation, const control::Moment& moment) {
  if (explanation.start) {
    JsonObject start;
    start.add("known", true);
    for (const char* key : {"early_ms", "likely_ms", "late_ms"})
      start.add(key, moment.unix_ms);
    start.add("text", "it starts now");
    return start.take();
  }
  if (!explanation.prediction)
    return unknown_start("the prediction takes longer; ask again in some seconds");
  const std::string text = sched::start_sentence(explanation);
  if (!has_predicted_start(explanation)) return unknown_start(text);
  const auto unix_ms = [&](Seconds time) {
    return moment.unix_ms + std::llround((time - moment.now).value * 1000);
  };
  JsonObject start;
  start.add("known", true);
  start.add("early_ms", unix_ms(explanation.prediction->earliest));
  start.add("likely_ms", unix_ms(explanation.prediction->start));
  // Where a tenth of the samples does not start it, no latest time is known.
  if (std::isfinite(explanation.prediction->latest.value))
    start.add("late_ms", unix_ms(explanation.prediction->latest));
  start.add("text", text);
  return start.take();
}

std::string reason_of(const sched::WaitExplanation& explanation, const std::string& known) {
  if (explanation.start) return explanation.start->reason;
  return explanation.blocking.sentence.empty() ? known : explanation.blocking.sentence;
}

void take_answer(const controller::WaitAnswer& answer, const control::Moment& moment,
                 WaitText& text) {
  text.revision = answer.revision;
  text.position = answer.position;
  text.ahead = answer.ahead;
  text.reason = reason_of(answer.explanation, text.reason);
  text.blocking = blocking_json(answer.explanation);
  text.start = start_json(answer.explanation, moment);
  text.fits = !answer.explanation.blocking.never_fits;
}

}  // namespace

void explain_submission(ControllerRuntime& runtime, const ApiRequest& request) {
  auto job = runtime.change([&](const auto& core, const control::Moment& moment) {
    return core.check_submission({request.http().body, request.caller.user}, moment);
  });
  if (!job) return respond(runtime, request, problem(job.error()));
  const std::string name = job->name;
  runtime.explain_new(std::move(*job),
                      [&runtime, request, name](const Result<controller::WaitAnswer>& answer) {
                        if (!answer) return refuse(request, answer.error());
                        WaitText text;
                        take_answer(*answer, runtime.moment(), text);
                        respond_wait(runtime, request, name, std::move(text));
                      });
}

void explain_wait(ControllerRuntime& runtime, const ApiRequest& request) {
  const auto job = find_job(runtime, request);
  if (!job) return refuse(request, job.error());
  const std::string handle = handle_of(**job);
  WaitText text{.revision = runtime.tables().last_revision, .reason = (*job)->reason};
  if ((*job)->phase != control::JobPhase::kPending) {
    text.start = unknown_start("it does not wait");
    return respond_wait(runtime, request, handle, std::move(text));
  }
  text.blocking = own_blocking(runtime.tables(), **job, runtime.moment().now);
  if (!text.blocking.empty()) {
    text.start = unknown_start("the scheduler considers it once nothing of this keeps it");
    return respond_wait(runtime, request, handle, std::move(text));
  }
  runtime.explain_wait(snapshot_name(**job), [&runtime, request, handle, text = std::move(text)](
                                                 Result<controller::WaitAnswer> answer) mutable {
    if (answer) {
      take_answer(*answer, runtime.moment(), text);
    } else if (answer.error().code == Code::kNotFound) {
      const std::string& failure = runtime.decision_stats().last_error;
      text.start = unknown_start(
          failure.empty()
              ? fmt::format("the scheduler looks at the first {} jobs of each queue, and this one "
                            "is behind them",
                            runtime.options().decision_depth)
              : "the scheduler cannot decide: " + failure);
    } else {
      return refuse(request, answer.error());
    }
    respond_wait(runtime, request, handle, std::move(text));
  });
}

}  // namespace regatta::api
