// cli/internal/fabric_command.h: `regatta fabric`: the network of a cluster, looked at before it is
// built or used.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

// Adds the command and its own; when one of them runs, `exit_status` is set.
void add_fabric_command(CLI::App& app, int& exit_status);

// `regatta fabric design`: the fabric for a number of GPUs.
void add_fabric_design(CLI::App& fabric, int& exit_status);

// `regatta fabric check`: whether lossless links can wait for each other in a cycle.
void add_fabric_check(CLI::App& fabric, int& exit_status);

// `regatta fabric simulate`: a scenario over the network of a cluster.
void add_fabric_simulate(CLI::App& fabric, int& exit_status);

// `regatta fabric watch`: ports that pauses hold for good.
void add_fabric_watch(CLI::App& fabric, int& exit_status);

// `regatta fabric report`: what a prober finds, for the platform's controller.
void add_fabric_report(CLI::App& fabric, int& exit_status);

// `regatta fabric ports`: source ports that lead connections apart.
void add_fabric_ports(CLI::App& fabric, int& exit_status);

}  // namespace regatta::cli
