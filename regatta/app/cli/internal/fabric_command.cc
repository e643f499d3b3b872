#include "regatta/app/cli/internal/fabric_command.h"

namespace regatta::cli {

void add_fabric_command(CLI::App& app, int& exit_status) {
  auto* fabric =
      app.add_subcommand("fabric", "Design, check and simulate the network of a cluster");
  fabric->require_subcommand(1);
  fabric->footer(
      "Example:\n"
      "  regatta fabric design --gpus 1024 --out cluster.yaml\n"
      "  regatta fabric check examples/cluster.yaml --failures 2");
  add_fabric_design(*fabric, exit_status);
  add_fabric_check(*fabric, exit_status);
  add_fabric_simulate(*fabric, exit_status);
  add_fabric_ports(*fabric, exit_status);
  add_fabric_watch(*fabric, exit_status);
  add_fabric_report(*fabric, exit_status);
}

}  // namespace regatta::cli
