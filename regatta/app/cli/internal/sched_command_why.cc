#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/print_now.h"
#include "regatta/app/cli/internal/sched_command.h"
#include "regatta/app/cli/internal/sched_inputs.h"
#include "regatta/app/report/sched_report.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/start_prediction.h"

namespace regatta::cli {
namespace {

constexpr int kSamples = 200;  // of the queue played forward

struct SchedWhyOptions {
  std::string state;
  std::string job;
  std::string policy = "regatta";
  bool json = false;
};

// Fails with kNotFound where the job is not pending.
Result<report::WaitExplanation> explain_wait(const SchedWhyOptions& options,
                                             const sched::SchedulerState& state,
                                             const sched::SchedulingPolicy& policy) {
  REGATTA_TRY(decision, sched::decide(state.snapshot, state.queue, policy));
  REGATTA_TRY(blocking, sched::blocking_set(state.snapshot, state.queue, options.job));
  REGATTA_TRY(starts, sched::predict_starts(state.snapshot, state.queue, policy, {options.job},
                                            {.samples = kSamples}));
  return report::WaitExplanation{.job = options.job,
                                 .decision = std::move(decision),
                                 .blocking = std::move(blocking),
                                 .prediction = starts.front()};
}

Status run_sched_why(const SchedWhyOptions& options) {
  REGATTA_TRY(policy, load_policy(options.policy));
  REGATTA_TRY(state, load_state(options.state));
  auto explanation = explain_wait(options, state, policy);
  if (!explanation && explanation.error().code == Code::kNotFound)
    return Error{Code::kInvalidInput, explanation.error().message};
  if (!explanation) return explanation.error();
  print_now(options.json ? report::wait_json(*explanation).dump(2) + "\n"
                         : report::wait_text(*explanation));
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
  command
      ->add_option("state", options->state, "Nodes, queues and jobs: docs/formats/sched_state.md")
      ->required()
      ->type_name("FILE");
  command->add_option("job", options->job, "Name of a pending job")->required()->type_name("JOB");
  command
      ->add_option(
          "--policy", options->policy,
          "fifo, backfill, regatta, attained_service, or a file: docs/formats/sched_policy.md")
      ->type_name("POLICY")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
}

}  // namespace regatta::cli
