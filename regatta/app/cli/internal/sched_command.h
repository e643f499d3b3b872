// cli/internal/sched_command.h: `regatta sched`: decisions of the scheduler, and replays of traces.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_sched_command(CLI::App& app, int& exit_status);

// Arguments that commands on a state share.
void add_state_argument(CLI::App& command, std::string& state);
void add_policy_options(CLI::App& command, std::string& policy, bool& json);

// Its commands, one file each.
void add_sched_decide(CLI::App& sched, int& exit_status);
void add_sched_why(CLI::App& sched, int& exit_status);
void add_sched_request(CLI::App& sched, int& exit_status);
void add_sched_replay(CLI::App& sched, int& exit_status);
void add_sched_simulate(CLI::App& sched, int& exit_status);

}  // namespace regatta::cli
