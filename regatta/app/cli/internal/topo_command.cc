#include "regatta/app/cli/internal/topo_command.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/output_files.h"
#include "regatta/app/cli/internal/pluralized.h"
#include "regatta/app/report/pages.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/gpu/device/discover.h"
#include "regatta/model/topo/fabric_summary.h"
#include "regatta/model/topo/graph.h"
#include "regatta/model/topo/presets.h"
#include "regatta/model/topo/server_matrix.h"

namespace regatta::cli {
namespace {

using nlohmann::json;

struct TopoOptions {
  std::string cluster;  // empty: this machine
  std::string machine;  // a recorded one instead
  std::string svg;      // where the picture goes; empty: none
  bool json = false;
};

std::string describe_device(const topo::DeviceType& device) {
  std::string text = device.name;
  double share = 1;  // the peaks of a description are those of a whole core
  if (device.cpu_share > 0) {
    share = device.cpu_share;
    text += fmt::format(" at {} of a core", format_percent(share));
  }
  text += fmt::format(", fp32 {}", format_flops_per_second(device.fp32_peak * share));
  if (device.bf16_peak.value > 0)
    text += fmt::format(", bf16 {}", format_flops_per_second(device.bf16_peak * share));
  return text + fmt::format(", {}", format_bytes(device.memory));
}

void print_server_type(const topo::ServerType& type, const topo::ServerMatrix& matrix) {
  fmt::print("server type {}\n", type.name);
  fmt::print("  {} x {}\n", type.device_count, describe_device(type.device));
  if (type.nic_count > 0 && type.nic_rate.value > 0)
    fmt::print("  {} x nic {}\n", type.nic_count, format_bits_per_second(type.nic_rate));
  if (!type.source.empty()) fmt::print("  figures: {}\n", type.source);
  fmt::print("\n{}", format_table(topo::class_table(matrix)));
  if (matrix.parts.size() > 1) fmt::print("\n{}", format_table(topo::bandwidth_table(matrix)));
  fmt::print("\n");
}

std::string ratio_text(double ratio) {
  return ratio <= 1 ? "none" : fmt::format("{:.2f} to 1", ratio);
}

void print_fabric(const topo::FabricSummary& fabric) {
  if (fabric.tiers == 0) {
    fmt::print("fabric: none; the server stands alone\n");
    return;
  }
  fmt::print("fabric: {} rail{}, {} lea{}, {} spine{}, {} super-spine{}\n", fabric.rails,
             fabric.rails == 1 ? "" : "s", fabric.leaves, fabric.leaves == 1 ? "f" : "ves",
             fabric.spines, fabric.spines == 1 ? "" : "s", fabric.super_spines,
             fabric.super_spines == 1 ? "" : "s");
  fmt::print("  links: {} server to leaf, {} leaf to spine, {} spine to super-spine\n",
             fabric.server_links, fabric.leaf_uplinks, fabric.spine_uplinks);
  if (fabric.planes > 1)
    fmt::print("  {} planes of {} rail{} each, joined by no switch\n", fabric.planes,
               fabric.rails / fabric.planes, fabric.rails == fabric.planes ? "" : "s");
  if (fabric.tiers >= 2)
    fmt::print("  oversubscription at the leaves: {}\n", ratio_text(fabric.leaf_oversubscription));
  if (fabric.tiers >= 3)
    fmt::print("  oversubscription at the spines: {}\n", ratio_text(fabric.spine_oversubscription));
  fmt::print("  bisection bandwidth: {}\n", format_bits_per_second(fabric.bisection));
  std::vector<std::vector<std::string>> rows = {{"from s0 to", "hops", "latency", "narrowest"}};
  for (const topo::Distance& distance : fabric.distances) {
    rows.push_back({distance.to, std::to_string(distance.hops), format_seconds(distance.latency),
                    format_bits_per_second(distance.narrowest)});
  }
  if (rows.size() > 1) fmt::print("\n{}", format_table(rows));
}

json matrix_to_json(const topo::ServerMatrix& matrix) {
  json parts = json::array();
  json paths = json::array();
  json bandwidth = json::array();
  for (std::size_t i = 0; i < matrix.parts.size(); ++i) {
    const topo::ServerComponent& part = matrix.parts[i];
    parts.push_back({{"name", part.name}, {"nic", part.is_nic}, {"numa", part.numa}});
    json kinds = json::array();
    json rates = json::array();
    for (const topo::PairPath& path : matrix.paths[i]) {
      kinds.push_back(topo::to_string(path.kind));
      rates.push_back(path.bandwidth.value);
    }
    paths.push_back(std::move(kinds));
    bandwidth.push_back(std::move(rates));
  }
  return {{"parts", parts}, {"path", paths}, {"bandwidth_Bps", bandwidth}};
}

json server_type_to_json(const topo::ServerType& type, const topo::ServerMatrix& matrix) {
  const topo::DeviceType& device = type.device;
  return {{"name", type.name},
          {"device",
           {{"type", device.name},
            {"fp32_peak_flops", device.fp32_peak.value},
            {"bf16_peak_flops", device.bf16_peak.value},
            {"memory_bytes", device.memory.value},
            {"memory_bandwidth_Bps", device.memory_bandwidth.value},
            {"cpu_share", device.cpu_share},
            {"source", device.source}}},
          {"device_count", type.device_count},
          {"intra",
           {{"kind", topo::to_string(type.intra.kind)},
            {"bandwidth_Bps", type.intra.bandwidth.value},
            {"latency_s", type.intra.latency.value}}},
          {"nic_count", type.nic_count},
          {"nic_rate_Bps", type.nic_rate.value},
          {"numa_nodes", type.numa_nodes},
          {"source", type.source},
          {"matrix", matrix_to_json(matrix)},
          {"notes", topo::placement_notes(matrix)}};
}

json fabric_to_json(const topo::FabricSummary& fabric) {
  json distances = json::array();
  for (const topo::Distance& distance : fabric.distances) {
    distances.push_back({{"to", distance.to},
                         {"hops", distance.hops},
                         {"latency_s", distance.latency.value},
                         {"narrowest_Bps", distance.narrowest.value}});
  }
  return {{"tiers", fabric.tiers},
          {"rails", fabric.rails},
          {"planes", fabric.planes},
          {"servers", fabric.servers},
          {"devices", fabric.devices},
          {"leaves", fabric.leaves},
          {"spines", fabric.spines},
          {"super_spines", fabric.super_spines},
          {"server_links", fabric.server_links},
          {"leaf_uplinks", fabric.leaf_uplinks},
          {"spine_uplinks", fabric.spine_uplinks},
          {"leaf_oversubscription", fabric.leaf_oversubscription},
          {"spine_oversubscription", fabric.spine_oversubscription},
          {"bisection_Bps", fabric.bisection.value},
          {"distances", distances}};
}

std::string describe_caches(const std::vector<device::CacheLevel>& caches) {
  std::vector<std::string> levels;
  levels.reserve(caches.size());
  for (const device::CacheLevel& cache : caches)
    levels.push_back(
        fmt::format("L{} {} x {}", cache.level, cache.count, format_bytes(cache.size)));
  return join(levels, ", ");
}

json machine_to_json(const device::DiscoveredServer& server, const topo::ServerMatrix& matrix) {
  json caches = json::array();
  for (const device::CacheLevel& cache : server.caches) {
    caches.push_back(
        {{"level", cache.level}, {"size_bytes", cache.size.value}, {"count", cache.count}});
  }
  return {{"cpu_model", server.cpu_model},
          {"packages", server.packages},
          {"cores", server.cores},
          {"threads", server.threads},
          {"memory_bytes", server.memory.value},
          {"caches", caches},
          {"discovery_notes", server.notes},
          {"server_types", json::array({server_type_to_json(server.type, matrix)})}};
}

int show_this_machine(const TopoOptions& options) {
  const auto server = device::discover_server({.xml_file = options.machine, .sys_root = "/sys"});
  if (!server) return report_error(server.error());
  const topo::ServerMatrix matrix = topo::matrix_of(server->parts, server->type.intra);
  if (options.json) {
    fmt::print("{}\n", machine_to_json(*server, matrix).dump(2));
    return 0;
  }
  fmt::print("{}: {} package{}, {} cores, {} threads, {} NUMA node{}, {}\n",
             server->cpu_model.empty() ? "this machine" : server->cpu_model, server->packages,
             server->packages == 1 ? "" : "s", server->cores, server->threads,
             server->type.numa_nodes, server->type.numa_nodes == 1 ? "" : "s",
             format_bytes(server->memory));
  if (!server->caches.empty()) fmt::print("caches: {}\n", describe_caches(server->caches));
  fmt::print("\n");
  print_server_type(server->type, matrix);
  for (const std::string& note : server->notes)
    fmt::print("note: {}\n", note);
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
  const topo::Graph graph = topo::build_graph(*cluster);
  const topo::FabricSummary fabric = topo::summarize_fabric(*cluster, graph);
  if (options.json) {
    json types = json::array();
    for (const auto& [name, type] : cluster->server_types)
      types.push_back(server_type_to_json(type, topo::server_matrix(type)));
    const json all = {
        {"cluster", cluster->name}, {"server_types", types}, {"fabric", fabric_to_json(fabric)}};
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  fmt::print("cluster {}: {}, {}\n\n", cluster->name, pluralized(fabric.servers, "server"),
             pluralized(fabric.devices, "device"));
  for (const auto& [name, type] : cluster->server_types) {
    const topo::ServerMatrix matrix = topo::server_matrix(type);
    print_server_type(type, matrix);
    const std::vector<std::string> notes = topo::placement_notes(matrix);
    for (const std::string& note : notes)
      fmt::print("note: {}: {}\n", name, note);
    if (!notes.empty()) fmt::print("\n");
  }
  print_fabric(fabric);
  if (!options.svg.empty()) fmt::print("\nwritten: {}\n", options.svg);
  return 0;
}

}  // namespace

void add_topo_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<TopoOptions>();
  CLI::App* command =
      app.add_subcommand("topo", "Show what a cluster, or this machine, is made of");
  auto* cluster =
      command->add_option("CLUSTER", options->cluster, "Cluster file; without it, this machine")
          ->check(not_empty());
  auto* machine =
      command
          ->add_option("--machine", options->machine,
                       "Show a machine recorded by `lstopo FILE.xml` instead of this one")
          ->type_name("FILE");
  machine->excludes(cluster);
  command->add_option("--svg", options->svg, "Also draw the cluster: servers, switches and cables")
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
