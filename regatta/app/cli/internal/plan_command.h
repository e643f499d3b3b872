// cli/internal/plan_command.h: `regatta plan JOB --cluster CLUSTER`: the fastest plans, what each
// would take and what ruled out the rest.
#pragma once

#include <string>

#include <CLI/App.hpp>

#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::cli {

// "544 plans of 80 strategies predicted, 3 strategies ruled out": a plan is a strategy and a
// placement.
std::string count_text(const plan::SimulatedSearchResult& result);

void add_plan_command(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
