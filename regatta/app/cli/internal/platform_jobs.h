// cli/internal/platform_jobs.h: `regatta submit`, `jobs`, `job`, `logs`, `cancel`, `hold` and
// `release`: jobs of the platform.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_platform_job_commands(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
