// cli/internal/topo_command.h: `regatta topo [CLUSTER]`: what a cluster, or this machine, is made
// of.
#pragma once

#include <CLI/App.hpp>

namespace regatta::cli {

void add_topo_command(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
