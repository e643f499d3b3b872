// cli/internal/run_command.h: `regatta run`.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

// Adds the command to `app`; `exit_status` is set when it runs, and must outlive the parse.
void add_run_command(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
