#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/print_now.h"
#include "regatta/app/cli/internal/sched_command.h"
#include "regatta/app/cli/internal/sched_inputs.h"
#include "regatta/app/report/sched_report.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/start_prediction.h"

namespace regatta::cli {
namespace {

// Times that the queue is played forward: as many as take some seconds at most.
constexpr int kSamplesLeast = 8;
constexpr int kSamplesMost = 200;
constexpr int kSampledJobs = 40'000;  // jobs in all samples

int samples_for(const sched::SchedulerState& state) {
  const auto jobs = static_cast<int>(state.snapshot.running.size() + state.queue.jobs.size());
  return std::clamp(kSampledJobs / (jobs + 1), kSamplesLeast, kSamplesMost);
}

struct SchedWhyOptions {
  std::string state;
  std::string job;
  std::string policy = "regatta";
  bool json = false;
};

// The error for a job that is not pending.
Error not_pending(const SchedWhyOptions& options, const sched::SchedulerState& state) {
  const auto& running = state.snapshot.running;
  const bool runs = std::any_of(running.begin(), running.end(), [&](const sched::RunningJob& job) {
    return job.request.name == options.job;
  });
  std::vector<std::string> names;
  for (const sched::PendingJob& job : state.queue.jobs)
    names.push_back(job.request.name);
  const std::string nearest = runs ? "" : nearest_word(options.job, names);
  return {
      Code::kInvalidInput,
      fmt::format("job {}: it {}; {}", printable(options.job, 64), runs ? "runs" : "is not pending",
                  nearest.empty() ? "name one of pending in " + options.state
                                  : fmt::format("did you mean '{}'?", nearest))};
}

bool starts(const sched::SchedulingDecision& decision, const std::string& job) {
  return std::any_of(decision.actions.begin(), decision.actions.end(),
                     [&](const sched::SchedulingAction& action) {
                       return action.kind == sched::ActionKind::kStart && action.job == job;
                     });
}

// Why decisions may leave a job waiting that the queue played forward starts.
std::string left_out_of(const sched::JobRequest& job) {
  const auto has_subgroups = [](const sched::Role& role) { return role.subgroup_replicas > 1; };
  return std::any_of(job.roles.begin(), job.roles.end(), has_subgroups)
             ? "its subgroups are left out"
             : "the free parts of a node's devices count as one amount, and the next decision "
               "leaves the job waiting";
}

// When the job starts in this state, or why that is not predicted.
Status predict_start(const sched::SchedulerState& state, const sched::SchedulingPolicy& policy,
                     report::WaitExplanation& explanation) {
  const sched::StartForecastOptions forecast{.samples = samples_for(state)};
  REGATTA_TRY(predictions, sched::predict_starts(state.snapshot, state.queue, policy,
                                                 {explanation.job}, forecast));
  explanation.prediction = predictions.front();
  const auto job = std::find_if(
      state.queue.jobs.begin(), state.queue.jobs.end(),
      [&](const sched::PendingJob& pending) { return pending.request.name == explanation.job; });
  explanation.may_share = policy.mixes && may_share_devices(job->request);
  if (!std::isfinite(explanation.prediction.start.value)) {
    REGATTA_TRY(endless, sched::endless_jobs_before(state.snapshot, state.queue, policy,
                                                    explanation.job, forecast));
    explanation.endless = std::move(endless);
  } else if (explanation.prediction.start <= state.snapshot.now) {
    REGATTA_TRY(next, sched::decide(state.snapshot, state.queue, policy));
    if (!starts(next, explanation.job)) explanation.left_out = left_out_of(job->request);
  }
  return {};
}

// Fails with kInvalidInput where the job is not pending.
Result<report::WaitExplanation> explain_wait(const SchedWhyOptions& options,
                                             const sched::SchedulerState& state,
                                             const sched::SchedulingPolicy& policy) {
  REGATTA_TRY(decision, sched::decide(state.snapshot, state.queue, policy));
  const auto& pending = state.queue.jobs;
  if (std::none_of(pending.begin(), pending.end(),
                   [&](const sched::PendingJob& job) { return job.request.name == options.job; }))
    return not_pending(options, state);
  report::WaitExplanation explanation{.job = options.job, .decision = std::move(decision)};
  // Others that start at this moment take their places first.
  sched::SchedulerState later = state;
  sched::apply_decision(explanation.decision, later.snapshot, later.queue);
  if (starts(explanation.decision, options.job)) {
    explanation.prediction.job = options.job;
    return explanation;
  }
  REGATTA_TRY(blocking, sched::blocking_set(later.snapshot, later.queue, policy, options.job));
  explanation.blocking = std::move(blocking);
  if (explanation.blocking.never_fits) {
    const Seconds never{std::numeric_limits<double>::infinity()};
    explanation.prediction = {options.job, never, never, never};
    return explanation;
  }
  REGATTA_TRY_DO(predict_start(later, policy, explanation));
  return explanation;
}

Status run_sched_why(const SchedWhyOptions& options) {
  REGATTA_TRY(policy, load_policy(options.policy));
  REGATTA_TRY(state, load_state(options.state));
  REGATTA_TRY(explanation, explain_wait(options, state, policy));
  print_now(options.json ? report::wait_json(explanation).dump(2) + "\n"
                         : report::wait_text(explanation));
  return {};
}

}  // namespace

void add_sched_why(CLI::App& sched, int& exit_status) {
  auto options = std::make_shared<SchedWhyOptions>();
  auto* command =
      add_command(sched, "why", "Say why a job waits, for what, and when it will start",
                  "regatta sched why examples/sched_state.yaml finetune", [options, &exit_status] {
                    const Status status = run_sched_why(*options);
                    exit_status = status ? 0 : report_error(status.error());
                  });
  add_state_argument(*command, options->state);
  command->add_option("job", options->job, "Name of a pending job")
      ->required()
      ->type_name("JOB")
      ->check(not_empty());
  add_policy_options(*command, options->policy, options->json);
}

}  // namespace regatta::cli
