// cli/internal/platform_why.h: `regatta why`: why a job of the platform waits, and until when.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_platform_why_command(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
