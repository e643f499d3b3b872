// cli/internal/plan_command.h: `regatta plan JOB --cluster CLUSTER`: the fastest plans, their
// predicted times, and what ruled out the others.
#pragma once

#include <CLI/App.hpp>

namespace regatta::cli {

void add_plan_command(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
