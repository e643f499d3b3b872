// cli/internal/bench_command.h: `regatta bench coll OP`.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_bench_command(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
