// Servers and fabrics as they are described or discovered.
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/fabric_report.h"
#include "regatta/app/report/internal/old_names.h"
#include "regatta/app/report/internal/scale_up_servers.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/presets.h"
#include "regatta/model/topo/server_matrix.h"

namespace regatta::report {
namespace {

using nlohmann::json;

std::string device_type_text(const topo::DeviceType& device) {
  const double share = topo::described_share(device);
  std::string text = device.name;
  if (device.cpu_share > 0) text += fmt::format(" with {} of a core", format_percent(share));
  text += fmt::format(", fp32 peak {}", format_flops_per_second(device.fp32_peak * share));
  if (device.bf16_peak.value > 0)
    text += fmt::format(", bf16 peak {}", format_flops_per_second(device.bf16_peak * share));
  return text + fmt::format(", {}", format_bytes(device.memory));
}

std::string server_type_text(const topo::ServerType& type, const topo::ServerMatrix& matrix) {
  std::string text = fmt::format("server type {}\n  {} x {}\n", type.name, type.device_count,
                                 device_type_text(type.device));
  if (type.nic_count > 0 && type.nic_rate.value > 0)
    text += fmt::format("  {} x nic {}\n", type.nic_count, format_bits_per_second(type.nic_rate));
  if (type.scale_up.servers > 1) {
    text += fmt::format("  scale-up: NVL to the devices of {} servers of a domain, {} a device\n",
                        type.scale_up.servers, format_bytes_per_second(type.scale_up.bandwidth));
  }
  if (!type.source.empty()) text += fmt::format("  source: {}\n", type.source);
  text += "\n" + format_table(topo::class_table(matrix));
  if (matrix.parts.size() > 1) text += "\n" + format_table(topo::bandwidth_table(matrix));
  return text + "\n";
}

std::string excess_text(double oversubscription) {
  return oversubscription <= 1 ? "none" : fmt::format("{:.2f} to 1", oversubscription);
}

std::string fabric_summary_text(const topo::FabricSummary& fabric, const std::string& domains) {
  if (fabric.tiers == 0) return "fabric: none; there is only one server\n";
  std::string text = fmt::format(
      "fabric: {}, {}, {}, {}\n"
      "  links: {} server to leaf, {} leaf to spine, {} spine to super-spine\n",
      pluralized(fabric.rails, "rail"), pluralized(fabric.leaves, "leaf", "leaves"),
      pluralized(fabric.spines, "spine"), pluralized(fabric.super_spines, "super-spine"),
      fabric.server_links, fabric.leaf_uplinks, fabric.spine_uplinks);
  if (!domains.empty()) text += "  scale-up: " + domains + "\n";
  if (fabric.planes > 1)
    text += fmt::format("  {} planes of {} each; no switch joins two planes\n", fabric.planes,
                        pluralized(fabric.rails / fabric.planes, "rail"));
  if (fabric.tiers >= 2)
    text += fmt::format("  oversubscription at the leaves: {}\n",
                        excess_text(fabric.leaf_oversubscription));
  if (fabric.tiers >= 3)
    text += fmt::format("  oversubscription at the spines: {}\n",
                        excess_text(fabric.spine_oversubscription));
  text += fmt::format("  bisection bandwidth: {}\n", format_bits_per_second(fabric.bisection));
  std::vector<std::vector<std::string>> rows = {{"from s0 to", "hops", "latency", "bottleneck"}};
  for (const topo::Distance& distance : fabric.distances)
    rows.push_back({distance.to, std::to_string(distance.hops), format_seconds(distance.latency),
                    format_bits_per_second(distance.narrowest)});
  return rows.size() > 1 ? text + "\n" + format_table(rows) : text;
}

json matrix_json(const topo::ServerMatrix& matrix) {
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

json server_type_json(const topo::ServerType& type, const topo::ServerMatrix& matrix) {
  const topo::DeviceType& device = type.device;
  return {{"name", type.name},
          {"device",
           {{"type", device.name},
            {"fp32_peak_flops", device.fp32_peak.value * topo::described_share(device)},
            {"bf16_peak_flops", device.bf16_peak.value * topo::described_share(device)},
            {"memory_bytes", device.memory.value},
            {"memory_bandwidth_Bps", device.memory_bandwidth.value},
            {"cpu_share", device.cpu_share},
            {"source", device.source}}},
          {"device_count", type.device_count},
          {"intra",
           {{"kind", topo::to_string(type.intra.kind)},
            {"bandwidth_Bps", type.intra.bandwidth.value},
            {"latency_s", type.intra.latency.value}}},
          {"scale_up",
           {{"servers", type.scale_up.servers},
            {"bandwidth_Bps", type.scale_up.bandwidth.value},
            {"latency_s", type.scale_up.latency.value},
            {"in_network_reduction", type.scale_up.in_network_reduction}}},
          {"nic_count", type.nic_count},
          {"nic_rate_Bps", type.nic_rate.value},
          {"numa_nodes", type.numa_nodes},
          {"source", type.source},
          {"matrix", matrix_json(matrix)},
          {"notes", topo::placement_notes(matrix)}};
}

json fabric_summary_json(const topo::FabricSummary& fabric) {
  json distances = json::array();
  for (const topo::Distance& distance : fabric.distances) {
    json one = {{"to", distance.to},
                {"hops", distance.hops},
                {"latency_s", distance.latency.value},
                {"bottleneck_Bps", distance.narrowest.value}};
    add_old_names(one, {{"bottleneck_Bps", "narrowest_Bps"}});
    distances.push_back(std::move(one));
  }
  return {{"tiers", fabric.tiers},
          {"rails", fabric.rails},
          {"planes", fabric.planes},
          {"servers", fabric.servers},
          {"devices", fabric.devices},
          {"domains", fabric.domains},
          {"domain_devices", fabric.domain_devices},
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

std::string caches_text(const std::vector<device::CacheLevel>& caches) {
  std::vector<std::string> levels;
  levels.reserve(caches.size());
  for (const device::CacheLevel& cache : caches)
    levels.push_back(
        fmt::format("L{} {} x {}", cache.level, cache.count, format_bytes(cache.size)));
  return join(levels, ", ");
}

}  // namespace

std::string cluster_text(const topo::Cluster& cluster) {
  const topo::FabricSummary fabric = topo::summarize_fabric(cluster, topo::build_graph(cluster));
  std::string text =
      fmt::format("cluster {}: {}, {}\n\n", cluster.name, pluralized(fabric.servers, "server"),
                  pluralized(fabric.devices, "device"));
  for (const auto& [name, type] : cluster.server_types) {
    const topo::ServerMatrix matrix = topo::server_matrix(type);
    text += server_type_text(type, matrix);
    const std::vector<std::string> notes = topo::placement_notes(matrix);
    for (const std::string& note : notes)
      text += fmt::format("note: {}: {}\n", name, note);
    if (!notes.empty()) text += "\n";
  }
  return text + fabric_summary_text(fabric, domains_text(cluster));
}

json cluster_json(const topo::Cluster& cluster) {
  json types = json::array();
  for (const auto& [name, type] : cluster.server_types)
    types.push_back(server_type_json(type, topo::server_matrix(type)));
  json domains = json::array();
  for (const DomainServers& domain : joined_servers(cluster)) {
    domains.push_back({{"first", cluster.servers[domain.first.index()].name},
                       {"servers", domain.count},
                       {"devices", domain.devices}});
  }
  return {
      {"cluster", cluster.name},
      {"server_types", types},
      {"scale_up_domains", domains},
      {"fabric", fabric_summary_json(topo::summarize_fabric(cluster, topo::build_graph(cluster)))}};
}

std::string machine_text(const device::DiscoveredServer& server) {
  std::string text =
      fmt::format("{}: {}, {} cores, {} threads, {}, {}\n",
                  server.cpu_model.empty() ? "this machine" : server.cpu_model,
                  pluralized(server.packages, "package"), server.cores, server.threads,
                  pluralized(server.type.numa_nodes, "NUMA node"), format_bytes(server.memory));
  if (!server.caches.empty()) text += fmt::format("caches: {}\n", caches_text(server.caches));
  text += "\n" + server_type_text(server.type, topo::matrix_of(server.parts, server.type.intra));
  for (const std::string& note : server.notes)
    text += fmt::format("note: {}\n", note);
  return text;
}

json machine_json(const device::DiscoveredServer& server) {
  json caches = json::array();
  for (const device::CacheLevel& cache : server.caches)
    caches.push_back(
        {{"level", cache.level}, {"size_bytes", cache.size.value}, {"count", cache.count}});
  const json type = server_type_json(server.type, topo::matrix_of(server.parts, server.type.intra));
  return {{"cpu_model", server.cpu_model},
          {"packages", server.packages},
          {"cores", server.cores},
          {"threads", server.threads},
          {"memory_bytes", server.memory.value},
          {"caches", caches},
          {"discovery_notes", server.notes},
          {"server_types", json::array({type})}};
}

}  // namespace regatta::report
