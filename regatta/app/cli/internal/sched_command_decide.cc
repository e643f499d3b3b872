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

namespace regatta::cli {
namespace {

struct SchedDecideOptions {
  std::string state;
  std::string policy = "regatta";
  bool json = false;
};

Status run_sched_decide(const SchedDecideOptions& options) {
  REGATTA_TRY(policy, load_policy(options.policy));
  REGATTA_TRY(state, load_state(options.state));
  REGATTA_TRY(decision, sched::decide(state.snapshot, state.queue, policy));
  if (options.json)
    print_now(report::decision_json(state.snapshot, state.queue, policy, decision).dump(2) + "\n");
  else
    print_now(report::decision_text(state.snapshot, policy, decision));
  return {};
}

}  // namespace

void add_sched_decide(CLI::App& sched, int& exit_status) {
  auto options = std::make_shared<SchedDecideOptions>();
  auto* command = add_command(sched, "decide", "Decide once: actions with their reasons",
                              "regatta sched decide examples/sched_state.yaml --policy backfill",
                              [options, &exit_status] {
                                const Status status = run_sched_decide(*options);
                                exit_status = status ? 0 : report_error(status.error());
                              });
  add_state_argument(*command, options->state);
  add_policy_options(*command, options->policy, options->json);
}

}  // namespace regatta::cli
