#include "regatta/app/cli/internal/sched_command.h"

#include "regatta/app/cli/internal/arguments.h"

namespace regatta::cli {

void add_state_argument(CLI::App& command, std::string& state) {
  command.add_option("state", state, "Nodes, queues and jobs: docs/formats/sched_state.md")
      ->required()
      ->type_name("FILE")
      ->check(not_empty("write it"));
}

void add_policy_options(CLI::App& command, std::string& policy, bool& json) {
  command
      .add_option(
          "--policy", policy,
          "fifo, backfill, regatta, attained_service, or a file: docs/formats/sched_policy.md")
      ->type_name("POLICY")
      ->capture_default_str();
  command.add_flag("--json", json, "Print JSON");
}

void add_sched_command(CLI::App& app, int& exit_status) {
  auto* sched = app.add_subcommand("sched", "Decide which jobs run where");
  sched->require_subcommand(1);
  sched->footer(
      "Example:\n"
      "  regatta sched decide examples/sched_state.yaml");
  add_sched_decide(*sched, exit_status);
  add_sched_why(*sched, exit_status);
  add_sched_request(*sched, exit_status);
  add_sched_replay(*sched, exit_status);
  add_sched_simulate(*sched, exit_status);
}

}  // namespace regatta::cli
