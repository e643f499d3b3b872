// cli/internal/platform_cluster.h: `regatta nodes`, `cordon`, `drain`, `resume`, `queues` and
// `events`: the servers and the quotas of the platform, and what changes.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_platform_cluster_commands(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
