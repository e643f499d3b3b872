// cli/internal/traffic_command.h: `regatta traffic`: what goes over the network, for which job,
// collective and step.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_traffic_command(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
