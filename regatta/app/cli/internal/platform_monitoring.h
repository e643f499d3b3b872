// cli/internal/platform_monitoring.h: the commands that show what the platform measures: `regatta
// alerts`, `regatta tenants`.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_platform_monitoring_commands(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
