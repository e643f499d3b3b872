// cli/internal/lab_command.h: `regatta lab up|down|status|exec|fault`.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

// Adds the command to `app`; `exit_status` is set when it runs, and must outlive the parse.
void add_lab_command(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
