// cli/internal/measure_command.h: `regatta measure`.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

// Adds the command to `app`; `exit_status` is set when it runs, and must outlive the parse.
void add_measure_command(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
