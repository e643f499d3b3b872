// cli/internal/gpu_drain.h: `regatta gpu drain`: devices that shall take nothing new.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_gpu_drain(CLI::App& gpu, int& exit_status);

}  // namespace regatta::cli
