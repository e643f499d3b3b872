#include "regatta/app/cli/internal/rates_command.h"

namespace regatta::cli {

void add_rates_command(CLI::App& app, int& exit_status) {
  auto* rates = app.add_subcommand("rates", "Find the links that carry less than they should");
  rates->require_subcommand(1);
  rates->footer(
      "Example:\n"
      "  regatta lab up examples/cluster.yaml\n"
      "  regatta rates probe --lab lab-4x2");
  add_rates_probe(*rates, exit_status);
  add_rates_serve(*rates, exit_status);
  add_rates_counters(*rates, exit_status);
}

}  // namespace regatta::cli
