#include "regatta/app/cli/internal/topo_command.h"

#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/output_files.h"
#include "regatta/app/report/fabric_report.h"
#include "regatta/app/report/pages.h"
#include "regatta/gpu/device/discover.h"

namespace regatta::cli {
namespace {

struct TopoOptions {
  std::string cluster;  // empty: this machine
  std::string machine;  // a recorded one instead
  std::string svg;      // where the picture goes; empty: none
  bool json = false;
};

int show_this_machine(const TopoOptions& options) {
  const auto server = device::discover_server({.xml_file = options.machine, .sys_root = "/sys"});
  if (!server) return report_error(server.error());
  fmt::print("{}", options.json ? report::machine_json(*server).dump(2) + "\n"
                                : report::machine_text(*server));
  return 0;
}

Status draw_cluster(const topo::Cluster& cluster, const TopoOptions& options) {
  const OutputFile svg{"--svg", options.svg};
  REGATTA_TRY_DO(check_outputs({svg}, {options.cluster}));
  OutputFiles outputs;
  outputs.add(svg, [&] { return report::fabric_svg(cluster); });
  return outputs.write();
}

int show_cluster(const TopoOptions& options) {
  const auto cluster = load_cluster(options.cluster);
  if (!cluster) return report_error(cluster.error());
  if (const Status drawn = draw_cluster(*cluster, options); !drawn)
    return report_error(drawn.error());
  if (options.json) {
    fmt::print("{}\n", report::cluster_json(*cluster).dump(2));
    return 0;
  }
  fmt::print("{}", report::cluster_text(*cluster));
  if (!options.svg.empty()) fmt::print("\nwritten: {}\n", options.svg);
  return 0;
}

}  // namespace

void add_topo_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<TopoOptions>();
  CLI::App* command =
      app.add_subcommand("topo", "Show the servers and the fabric of a cluster, or this machine");
  auto* cluster =
      command->add_option("CLUSTER", options->cluster, "Cluster file; without it, this machine")
          ->check(not_empty());
  auto* machine =
      command
          ->add_option("--machine", options->machine,
                       "Show a machine recorded by `lstopo FILE.xml` instead of this one")
          ->type_name("FILE");
  machine->excludes(cluster);
  command->add_option("--svg", options->svg, "Write a drawing of servers, switches and cables")
      ->type_name("FILE")
      ->check(not_empty())
      ->needs(cluster);
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  regatta topo examples/cluster.yaml\n"
      "  regatta topo examples/cluster.yaml --svg fabric.svg\n"
      "  regatta topo");
  command->callback([options, &exit_status] {
    exit_status = options->cluster.empty() ? show_this_machine(*options) : show_cluster(*options);
  });
}

}  // namespace regatta::cli
