// cli/plan_command.h: `regatta plan JOB --cluster CLUSTER`: the fastest plans, what each would take
// and what ruled out the rest.
#pragma once

#include <CLI/App.hpp>

namespace regatta::cli {

void add_plan_command(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
