#include <algorithm>
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
#include "regatta/platform/sched/wait_explanation.h"

namespace regatta::cli {
namespace {

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

// Fails with kInvalidInput where the job is not pending.
Result<sched::WaitExplanation> explain(const SchedWhyOptions& options, sched::SchedulerState state,
                                       const sched::SchedulingPolicy& policy) {
  REGATTA_TRY(decision, sched::decide(state.snapshot, state.queue, policy));
  const auto& pending = state.queue.jobs;
  if (std::none_of(pending.begin(), pending.end(),
                   [&](const sched::PendingJob& job) { return job.request.name == options.job; }))
    return not_pending(options, state);
  sched::apply_decision(decision, state.snapshot, state.queue);
  REGATTA_TRY(explanation,
              sched::explain_wait(state.snapshot, state.queue, policy, decision, options.job));
  REGATTA_TRY_DO(sched::predict_wait(state.snapshot, state.queue, policy, explanation));
  return explanation;
}

Status run_sched_why(const SchedWhyOptions& options) {
  REGATTA_TRY(policy, load_policy(options.policy));
  REGATTA_TRY(state, load_state(options.state));
  REGATTA_TRY(explanation, explain(options, std::move(state), policy));
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
