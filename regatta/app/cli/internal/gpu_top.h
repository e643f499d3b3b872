// cli/internal/gpu_top.h: `regatta gpu top`.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_gpu_top(CLI::App& gpu, int& exit_status);

}  // namespace regatta::cli
