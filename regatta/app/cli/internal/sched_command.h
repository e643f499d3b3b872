// cli/internal/sched_command.h: `regatta sched`: decisions of the scheduler, and replays of traces.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_sched_command(CLI::App& app, int& exit_status);

// Its commands, one file each.
void add_sched_decide(CLI::App& sched, int& exit_status);
void add_sched_why(CLI::App& sched, int& exit_status);
void add_sched_request(CLI::App& sched, int& exit_status);
void add_sched_replay(CLI::App& sched, int& exit_status);
void add_sched_simulate(CLI::App& sched, int& exit_status);

}  // namespace regatta::cli
