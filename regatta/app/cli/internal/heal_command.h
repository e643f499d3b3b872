// cli/internal/heal_command.h: `regatta heal`: keeps the routes of a fabric away from what is
// broken.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_heal_command(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
