// cli/internal/platform_audit.h: `regatta audit` and `regatta audit verify`: who changed what, and
// whether the records are those that were written.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_platform_audit_command(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
