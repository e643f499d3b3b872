// cli/internal/platform_backup.h: `regatta backup` and `regatta restore`.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_platform_backup_commands(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
