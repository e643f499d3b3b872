// cli/internal/gpu_pool_command.h: `regatta gpu serve` and `regatta gpu pool`: GPUs of other
// servers.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_gpu_pool_commands(CLI::App& gpu, int& exit_status);

}  // namespace regatta::cli
