// Converts a design to a cluster, and lists the published designs.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/presets.h"
#include "regatta/network/fabric/design.h"

namespace regatta::fabric {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace): 400_Gbps reads as the papers

struct Published {
  const char* name;
  DesignRequest request;
};

// Rates and shapes; what follows from them is computed.
const Published kPublished[] = {
    // Baidu AIPod: leaf, spine and super-spine without oversubscription of 51.2 Tbps chips, the 8
    // GPUs of a server on 8 leaves, which makes blocks of 64 servers, 512 GPUs.
    {"aipod", {.chip = 51'200_Gbps, .port = 400_Gbps, .least_tiers = 3}},
    // Alibaba HPN 7.0, SIGCOMM 2024: 2 x 200 Gbps of each NIC to two leaves of two planes, 128
    // servers below a leaf and 60 uplinks of 400 Gbps above it; the leaf keeps 8 ports for spares.
    {"dual-plane",
     {.planes = 2,
      .chip = 51'200_Gbps,
      .port = 200_Gbps,
      .uplink = 400_Gbps,
      .oversubscription = 16.0 / 15,
      .servers_per_leaf = 128}},
    // Wang et al., arXiv 2307.12169: no switch joins two rails.
    {"rail-only", {.joins_rails = false, .chip = 51'200_Gbps, .port = 400_Gbps}},
    // ByteDance MegaScale, NSDI 2024: Tomahawk 4; a downlink port of 400 Gbps is split for two
    // NICs, so that an uplink carries two flows at full rate.
    {"megascale", {.chip = 25'600_Gbps, .port = 200_Gbps, .uplink = 400_Gbps, .least_tiers = 3}},
};

std::string rate_text(BytesPerSecond rate) {
  return fmt::format("{}Gbps", rate.value * 8 / 1e9);
}

topo::ScaleUp scale_up_of(const Design& design, const topo::DevicePreset& preset) {
  if (design.request.domain_servers <= 1) return {};
  return {.servers = design.request.domain_servers,
          .bandwidth = preset.intra.bandwidth,
          .latency = preset.intra.latency,
          .in_network_reduction = true};
}

}  // namespace

topo::Cluster cluster_of(const Design& design, const std::string& name, const std::string& device) {
  const topo::DevicePreset* preset = topo::find_device_preset(device);
  REGATTA_CHECK(preset != nullptr);
  topo::Cluster cluster{.name = name, .server_types = {}, .fabric = design.fabric, .servers = {}};
  cluster.server_types["server"] = {
      .name = "server",
      .device = preset->device,
      .device_count = design.request.gpus_per_server,
      .intra = preset->intra,
      .nic_count = design.request.gpus_per_server * design.request.planes,
      .nic_rate = design.request.port,
      .scale_up = scale_up_of(design, *preset),
      .source = {}};
  for (int server = 0; server < design.servers; ++server)
    cluster.servers.push_back(
        {.name = fmt::format("s{}", server), .type = "server", .address = {}});
  return cluster;
}

std::string cluster_text(const Design& design, const std::string& name, const std::string& device) {
  const topo::Fabric& fabric = design.fabric;
  std::string text =
      fmt::format("name: {}\nserver_types:\n  server:\n    devices: {{count: {}, type: {}}}\n",
                  name, design.request.gpus_per_server, device);
  if (design.request.planes > 1)
    text += fmt::format(
        "    # {} ports of each NIC, written as NICs of their own: of each {} NICs first all first "
        "ports\n",
        design.request.planes, fabric.rails / design.request.planes);
  text += fmt::format("    nics: {{count: {}, rate: {}}}\n",
                      design.request.gpus_per_server * design.request.planes,
                      rate_text(design.request.port));
  if (design.request.domain_servers > 1)
    text += fmt::format("    scale_up: {{servers: {}, in_network_reduction: true}}\n",
                        design.request.domain_servers);
  text += "fabric:\n";
  constexpr const char* kTiers[] = {"[leaf]", "[leaf, spine]", "[leaf, spine, super-spine]"};
  text += fmt::format("  tiers: {}\n  rails: {}\n", kTiers[fabric.tiers - 1], fabric.rails);
  if (fabric.planes > 1) text += fmt::format("  planes: {}\n", fabric.planes);
  text += fmt::format("  servers_per_leaf: {}\n", fabric.servers_per_leaf);
  if (fabric.tiers >= 2)
    text += fmt::format("  spines: {}\n  uplink: {}\n  uplink_cables: {}\n", fabric.spines,
                        rate_text(fabric.uplink), fabric.uplink_cables);
  if (fabric.tiers == 3)
    text += fmt::format(
        "  leaves_per_group: {}\n  super_spines: {}\n  super_uplink: {}\n"
        "  super_uplink_cables: {}\n",
        fabric.leaves_per_group, fabric.super_spines, rate_text(fabric.super_uplink),
        fabric.super_uplink_cables);
  return text + fmt::format("servers: {{count: {}, type: server}}\n", design.servers);
}

DesignRequest published_design(const std::string& name) {
  const auto* at = std::ranges::find(kPublished, name, &Published::name);
  REGATTA_CHECK(at != std::end(kPublished));
  return at->request;
}

std::vector<std::string> published_designs() {
  std::vector<std::string> names;
  for (const Published& one : kPublished)
    names.emplace_back(one.name);
  return names;
}

}  // namespace regatta::fabric
