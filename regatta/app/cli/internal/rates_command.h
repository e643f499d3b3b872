// cli/internal/rates_command.h: `regatta rates` and its members.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_rates_command(CLI::App& app, int& exit_status);

void add_rates_probe(CLI::App& rates, int& exit_status);
void add_rates_serve(CLI::App& rates, int& exit_status);
void add_rates_counters(CLI::App& rates, int& exit_status);

}  // namespace regatta::cli
