// cli/internal/up_command.h: `regatta up`, `down` and `join`: the platform on this machine.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_up_commands(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
