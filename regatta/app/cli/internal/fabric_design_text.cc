#include "regatta/app/cli/internal/fabric_design_text.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/cli/internal/pluralized.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::cli {
namespace {

std::string ratio_text(double ratio) {
  return ratio <= 0 ? "" : fmt::format("{:.4g} to 1", ratio);
}

std::string ports_text(double count, BytesPerSecond rate) {
  return fmt::format("{:.0f} x {}", count, format_bits_per_second(rate));
}

// Of a full switch of each tier.
void print_tiers(const FabricDesignResult& drawn) {
  const fabric::Design& design = drawn.design;
  const topo::Fabric& fabric = design.fabric;
  const fabric::DesignRequest& request = design.request;
  const int nics =
      fabric.servers_per_leaf * request.gpus_per_server * request.planes / fabric.rails;
  std::vector<std::vector<std::string>> rows = {
      {"tier", "switches", "down", "up", "oversubscribed", "ports free"}};
  const bool has_spines = fabric.tiers >= 2;
  rows.push_back({"leaf", std::to_string(design.leaves), ports_text(nics, request.port),
                  has_spines ? ports_text(uplinks_of_leaf(fabric), request.uplink) : "-",
                  ratio_text(drawn.summary.leaf_oversubscription),
                  ports_text(design.leaf_free, request.port)});
  if (has_spines) {
    const int leaves =
        (fabric.tiers == 3 ? fabric.leaves_per_group : design.leaves) / fabric.planes;
    const int up = fabric.tiers == 3 ? uplinks_of_group(fabric) / fabric.spines : 0;
    rows.push_back({"spine", std::to_string(design.spines),
                    ports_text(leaves * fabric.uplink_cables, request.uplink),
                    up > 0 ? ports_text(up, request.uplink) : "-",
                    ratio_text(drawn.summary.spine_oversubscription),
                    ports_text(design.spine_free, request.uplink)});
  }
  if (fabric.tiers == 3)
    rows.push_back({"super-spine", std::to_string(design.super_spines),
                    ports_text(design.groups * fabric.super_uplink_cables, request.uplink), "-", "",
                    ports_text(design.super_free, request.uplink)});
  fmt::print("{}", format_table(rows));
}

struct Cables {
  std::string kind;
  long long count;
  BytesPerSecond rate;
};

std::vector<Cables> cables_of(const fabric::Design& design) {
  std::vector<Cables> cables = {
      {"server to leaf", design.server_cables, design.request.port},
      {"leaf to spine", design.leaf_cables, design.request.uplink},
      {"spine to super-spine", design.spine_cables, design.request.uplink}};
  std::erase_if(cables, [](const Cables& one) { return one.count == 0; });
  return cables;
}

long long switches_of(const fabric::Design& design) {
  return static_cast<long long>(design.leaves) + design.spines + design.super_spines;
}

void print_parts(const FabricDesignResult& drawn) {
  const fabric::Design& design = drawn.design;
  std::vector<std::vector<std::string>> rows = {{"part", "count", "rate", "transceivers"}};
  rows.push_back({"switch", std::to_string(switches_of(design)),
                  format_bits_per_second(design.request.chip), ""});
  for (const Cables& one : cables_of(design))
    rows.push_back({"cable, " + one.kind, std::to_string(one.count),
                    format_bits_per_second(one.rate), std::to_string(2 * one.count)});
  fmt::print("{}", format_table(rows));
}

void print_distances(const FabricDesignResult& drawn) {
  std::vector<std::vector<std::string>> rows = {{"from s0 to", "links", "latency", "narrowest"}};
  for (const topo::Distance& distance : drawn.summary.distances)
    rows.push_back({distance.to, std::to_string(distance.hops), format_seconds(distance.latency),
                    format_bits_per_second(distance.narrowest)});
  if (rows.size() > 1) fmt::print("\n{}", format_table(rows));
}

}  // namespace

void print_design(const FabricDesignResult& drawn) {
  const fabric::Design& design = drawn.design;
  const fabric::DesignRequest& request = design.request;
  fmt::print("{}: {} of {}, {} of switches, {}{}\n", pluralized(request.gpus, "GPU", "GPUs"),
             pluralized(design.servers, "server", "servers"), request.gpus_per_server,
             pluralized(design.fabric.tiers, "tier", "tiers"),
             pluralized(request.rails, "rail", "rails"),
             request.planes > 1 ? fmt::format(", {} planes", request.planes) : "");
  const int in_block = design.fabric.servers_per_leaf * request.gpus_per_server;
  fmt::print(
      "{} of up to {} GPUs on {} each; {}\n\n", pluralized(design.blocks, "block", "blocks"),
      in_block, pluralized(design.fabric.rails, "leaf", "leaves"),
      design.fabric.tiers < 3
          ? "one group"
          : fmt::format("{} of up to {} blocks", pluralized(design.groups, "group", "groups"),
                        design.fabric.leaves_per_group / design.fabric.rails));
  if (!request.joins_rails)
    fmt::print("no switch joins two rails: servers hand traffic from one to another inside\n\n");
  print_tiers(drawn);
  fmt::print("\n");
  print_parts(drawn);
  print_distances(drawn);
  fmt::print("\nbisection bandwidth: {} in each direction\n",
             format_bits_per_second(drawn.summary.bisection));
  fmt::print("grows to {} GPUs with the cables that are there left as they are\n",
             design.gpus_most);
}

nlohmann::json design_json(const FabricDesignResult& drawn) {
  const fabric::Design& design = drawn.design;
  const fabric::DesignRequest& request = design.request;
  const topo::Fabric& fabric = design.fabric;
  nlohmann::json cables = nlohmann::json::array();
  for (const Cables& one : cables_of(design))
    cables.push_back({{"kind", one.kind},
                      {"count", one.count},
                      {"rate_Bps", one.rate.value},
                      {"transceivers", 2 * one.count}});
  nlohmann::json distances = nlohmann::json::array();
  for (const topo::Distance& distance : drawn.summary.distances)
    distances.push_back({{"to", distance.to},
                         {"links", distance.hops},
                         {"latency_s", distance.latency.value},
                         {"narrowest_Bps", distance.narrowest.value}});
  return {
      {"gpus", request.gpus},
      {"servers", design.servers},
      {"gpus_per_server", request.gpus_per_server},
      {"rails", request.rails},
      {"planes", request.planes},
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
      {"ports_free",
       {{"leaf", design.leaf_free}, {"spine", design.spine_free}, {"super", design.super_free}}},
      {"gpus_most", design.gpus_most},
      {"distances", distances}};
}

}  // namespace regatta::cli
