// cli/internal/gpu_command.h: `regatta gpu`: shares the GPUs of this machine between tenants.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_gpu_command(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
