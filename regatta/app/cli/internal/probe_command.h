// cli/internal/probe_command.h: `regatta probe`.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_probe_command(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
