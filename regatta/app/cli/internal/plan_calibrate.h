// cli/internal/plan_calibrate.h: `regatta plan calibrate FILE...`: fits the scalars of a software
// stack to the user's own runs, and keeps them beside the cluster file.
#pragma once

#include <CLI/App.hpp>

namespace regatta::cli {

void add_plan_calibrate(CLI::App& plan, int& exit_status);

}  // namespace regatta::cli
