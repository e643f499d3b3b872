// cli/internal/plan_replay.h: regatta plan replay.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

// Adds `replay` to the command `plan`.
void add_plan_replay(CLI::App& plan, int& exit_status);

}  // namespace regatta::cli
