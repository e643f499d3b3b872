// The parts and the capacity of a designed fabric.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/fabric_report.h"
#include "regatta/app/report/internal/old_names.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

std::string oversubscription_text(double ratio) {
  return ratio <= 0 ? "" : fmt::format("{:.4g} to 1", ratio);
}

std::string port_count_text(double count, BytesPerSecond rate) {
  return fmt::format("{:.0f} x {}", count, format_bits_per_second(rate));
}

// A full switch of each tier.
std::string tiers_table(const FabricDesignResult& drawn) {
  const fabric::Design& design = drawn.design;
  const topo::Fabric& fabric = design.fabric;
  const fabric::DesignRequest& request = design.request;
  const int nics =
      fabric.servers_per_leaf * request.gpus_per_server * request.planes / fabric.rails;
  std::vector<std::vector<std::string>> rows = {
      {"tier", "switches", "down", "up", "oversubscribed", "free ports"}};
  const bool has_spines = fabric.tiers >= 2;
  rows.push_back({"leaf", std::to_string(design.leaves), port_count_text(nics, request.port),
                  has_spines ? port_count_text(uplinks_of_leaf(fabric), request.uplink) : "-",
                  oversubscription_text(drawn.summary.leaf_oversubscription),
                  port_count_text(design.leaf_free, request.port)});
  if (has_spines) {
    const int leaves =
        (fabric.tiers == 3 ? fabric.leaves_per_group : design.leaves) / fabric.planes;
    const int up = fabric.tiers == 3 ? uplinks_of_group(fabric) / fabric.spines : 0;
    rows.push_back({"spine", std::to_string(design.spines),
                    port_count_text(leaves * fabric.uplink_cables, request.uplink),
                    up > 0 ? port_count_text(up, request.uplink) : "-",
                    oversubscription_text(drawn.summary.spine_oversubscription),
                    port_count_text(design.spine_free, request.uplink)});
  }
  if (fabric.tiers == 3)
    rows.push_back({"super-spine", std::to_string(design.super_spines),
                    port_count_text(design.groups * fabric.super_uplink_cables, request.uplink),
                    "-", "", port_count_text(design.super_free, request.uplink)});
  return format_table(rows);
}

struct CableKind {
  std::string kind;
  long long count;
  BytesPerSecond rate;
};

std::vector<CableKind> cables_of(const fabric::Design& design) {
  std::vector<CableKind> cables = {
      {"server to leaf", design.server_cables, design.request.port},
      {"leaf to spine", design.leaf_cables, design.request.uplink},
      {"spine to super-spine", design.spine_cables, design.request.uplink}};
  std::erase_if(cables, [](const CableKind& one) { return one.count == 0; });
  return cables;
}

long long switches_of(const fabric::Design& design) {
  return static_cast<long long>(design.leaves) + design.spines + design.super_spines;
}

std::string parts_table(const FabricDesignResult& drawn) {
  const fabric::Design& design = drawn.design;
  std::vector<std::vector<std::string>> rows = {{"part", "count", "rate", "transceivers"}};
  rows.push_back({"switch", std::to_string(switches_of(design)),
                  format_bits_per_second(design.request.chip), ""});
  for (const CableKind& one : cables_of(design))
    rows.push_back({"cable, " + one.kind, std::to_string(one.count),
                    format_bits_per_second(one.rate), std::to_string(2 * one.count)});
  return format_table(rows);
}

std::string distances_table(const FabricDesignResult& drawn) {
  std::vector<std::vector<std::string>> rows = {{"from s0 to", "links", "latency", "bottleneck"}};
  for (const topo::Distance& distance : drawn.summary.distances)
    rows.push_back({distance.to, std::to_string(distance.hops), format_seconds(distance.latency),
                    format_bits_per_second(distance.narrowest)});
  return rows.size() > 1 ? "\n" + format_table(rows) : "";
}

}  // namespace

std::string fabric_design_text(const FabricDesignResult& drawn) {
  const fabric::Design& design = drawn.design;
  const fabric::DesignRequest& request = design.request;
  const int in_block = design.fabric.servers_per_leaf * request.gpus_per_server;
  std::string text = fmt::format(
      "{}: {} of {}, {} of switches, {}{}\n{} of up to {} GPUs on {} each; {}\n\n",
      pluralized(request.gpus, "GPU"), pluralized(design.servers, "server"),
      request.gpus_per_server, pluralized(design.fabric.tiers, "tier"),
      pluralized(design.fabric.rails, "rail"),
      design.fabric.planes > 1 ? fmt::format(" in {} planes", design.fabric.planes) : "",
      pluralized(design.blocks, "block"), in_block,
      pluralized(design.fabric.rails, "leaf", "leaves"),
      design.fabric.tiers < 3
          ? "one group"
          : fmt::format("{} of up to {} blocks", pluralized(design.groups, "group"),
                        design.fabric.leaves_per_group / design.fabric.rails));
  if (drawn.summary.domains > 0)
    text += fmt::format("scale-up: {} of {}, whole below their leaves\n\n",
                        pluralized(drawn.summary.domains, "domain"),
                        pluralized(drawn.summary.domain_devices, "GPU"));
  if (!request.joins_rails)
    text += "no switch joins two rails: traffic changes rails inside servers\n\n";
  return text + tiers_table(drawn) + "\n" + parts_table(drawn) + distances_table(drawn) +
         fmt::format(
             "\nbisection bandwidth: {} in each direction\n"
             "grows to {} GPUs without moving a cable\n",
             format_bits_per_second(drawn.summary.bisection), design.gpus_most);
}

nlohmann::json fabric_design_json(const FabricDesignResult& drawn) {
  const fabric::Design& design = drawn.design;
  const fabric::DesignRequest& request = design.request;
  const topo::Fabric& fabric = design.fabric;
  nlohmann::json cables = nlohmann::json::array();
  for (const CableKind& one : cables_of(design))
    cables.push_back({{"kind", one.kind},
                      {"count", one.count},
                      {"rate_Bps", one.rate.value},
                      {"transceivers", 2 * one.count}});
  nlohmann::json distances = nlohmann::json::array();
  for (const topo::Distance& distance : drawn.summary.distances)
    distances.push_back({{"to", distance.to},
                         {"links", distance.hops},
                         {"latency_s", distance.latency.value},
                         {"bottleneck_Bps", distance.narrowest.value}});
  for (nlohmann::json& one : distances)
    add_old_names(one, {{"bottleneck_Bps", "narrowest_Bps"}});
  nlohmann::json document = {
      {"gpus", request.gpus},
      {"servers", design.servers},
      {"gpus_per_server", request.gpus_per_server},
      {"servers_per_domain", request.domain_servers},
      {"rails", fabric.rails},
      {"planes", fabric.planes},
      {"joins_rails", request.joins_rails},
      {"chip_Bps", request.chip.value},
      {"port_Bps", request.port.value},
      {"uplink_Bps", request.uplink.value},
      {"tiers", fabric.tiers},
      {"blocks", design.blocks},
      {"groups", design.groups},
      {"servers_per_leaf", fabric.servers_per_leaf},
      {"leaves", design.leaves},
      {"spines", design.spines},
      {"super_spines", design.super_spines},
      {"switches", switches_of(design)},
      {"uplink_cables", fabric.uplink_cables},
      {"super_uplink_cables", fabric.super_uplink_cables},
      {"leaf_oversubscription", drawn.summary.leaf_oversubscription},
      {"spine_oversubscription", drawn.summary.spine_oversubscription},
      {"bisection_Bps", drawn.summary.bisection.value},
      {"cables", cables},
      {"free_ports",
       {{"leaf", design.leaf_free}, {"spine", design.spine_free}, {"super", design.super_free}}},
      {"max_gpus", design.gpus_most},
      {"distances", distances}};
  add_old_names(document, {{"free_ports", "ports_free"}, {"max_gpus", "gpus_most"}});
  return document;
}

}  // namespace regatta::report
