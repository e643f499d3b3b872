#include "regatta/model/topo/cluster_yaml.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/model/topo/internal/scale_up_yaml.h"
#include "regatta/model/topo/presets.h"

namespace regatta::topo {
namespace {

constexpr Seconds kHopLatency{1e-6};  // a switch, a cable and its ends
// Simulations and plans reckon with these values exactly, and no real network lies outside of them:
// in seconds, bytes and bytes per second.
constexpr NumberRange kLatencies{.low = 0, .high = 1};
constexpr NumberRange kLinkRates{.low = 125, .high = 1e14};
constexpr NumberRange kMemoryRates{.low = 1e3, .high = 1e15};
constexpr NumberRange kMemories{.low = 1, .high = 0x1p50};
constexpr NumberRange kSpeeds{.low = 0, .high = 1e21};  // operations per second
constexpr std::size_t kLongestName = 32;

const Choices<IntraKind>& intra_kinds() {
  static const Choices<IntraKind> kinds = {
      {"shm", IntraKind::kShm}, {"pcie", IntraKind::kPcie}, {"nvlink", IntraKind::kNvlink}};
  return kinds;
}

// Names become namespaces, host names and parts of "s0/1" and "s0.nic0-leaf0".
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
         });
}

bool is_switch_name(std::string_view name) {
  for (const std::string_view prefix : {"leaf", "spine", "super"}) {
    if (name.size() > prefix.size() && name.substr(0, prefix.size()) == prefix &&
        name.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos)
      return true;
  }
  return false;
}

std::string read_name(const YamlMap& map) {
  std::string name = map.text("name");
  if (!name.empty() && !is_plain_name(name)) {
    map.fail("name", fmt::format("not a plain name; use up to {} letters, digits, '-' and '_'",
                                 kLongestName));
  }
  return name;
}

void read_devices(const YamlMap& map, ServerType& type, bool has_preset) {
  map.allow({"count", "type", "cpu_share", "memory", "memory_bandwidth", "fp32_peak", "bf16_peak",
             "fp16_peak", "fp8_peak", "mxfp8_peak", "nvfp4_peak", "processors"});
  type.device_count = has_preset
                          ? map.integer_or("count", type.device_count, {1, kMaxDevicesPerServer})
                          : map.integer("count", {1, kMaxDevicesPerServer});
  if (!has_preset || map.has("type")) {
    const std::string name = map.text("type");
    const DevicePreset* preset = find_device_preset(name);
    if (preset == nullptr) {
      const std::vector<std::string> names = device_preset_names();
      const std::string nearest = nearest_word(name, names);
      map.fail("type", fmt::format("no device is called '{}'; {}", name,
                                   nearest.empty() ? "choose one of " + join(names, ", ")
                                                   : "did you mean '" + nearest + "'?"));
      return;
    }
    type.device = preset->device;
    type.intra = preset->intra;
  }
  DeviceType& device = type.device;
  if (map.has("cpu_share") && device.kind != DeviceKind::kCpu)
    map.fail("cpu_share", "only devices of type cpu have a share of a core; remove it");
  device.cpu_share = map.ratio_or("cpu_share", device.cpu_share);
  device.memory = map.bytes("memory", device.memory, kMemories);
  device.memory_bandwidth = map.rate("memory_bandwidth", device.memory_bandwidth, kMemoryRates);
  device.fp32_peak = map.flops_or("fp32_peak", device.fp32_peak, kSpeeds);
  device.bf16_peak = map.flops_or("bf16_peak", device.bf16_peak, kSpeeds);
  device.fp16_peak = map.flops_or("fp16_peak", device.fp16_peak, kSpeeds);
  device.fp8_peak = map.flops_or("fp8_peak", device.fp8_peak, kSpeeds);
  device.mxfp8_peak = map.flops_or("mxfp8_peak", device.mxfp8_peak, kSpeeds);
  device.nvfp4_peak = map.flops_or("nvfp4_peak", device.nvfp4_peak, kSpeeds);
  device.processors = map.integer_or("processors", device.processors, {1, 10'000});
}

void read_intra(const YamlMap& map, ServerType& type) {
  map.allow({"kind", "bandwidth", "latency"});
  const IntraKind kind = map.choice("kind", intra_kinds(), std::optional(type.intra.kind));
  if (kind != type.intra.kind) type.intra = default_intra(kind);
  if (type.intra.bandwidth.value <= 0 && !map.has("bandwidth")) {
    map.fail("kind", fmt::format("'nvlink' on {} has no usual bandwidth; add bandwidth: 300GB/s",
                                 type.device.name));
  }
  type.intra.bandwidth = map.rate("bandwidth", type.intra.bandwidth, kLinkRates);
  type.intra.latency = map.seconds_or("latency", type.intra.latency, kLatencies);
}

void read_nics(const YamlMap& map, ServerType& type, bool has_preset) {
  map.allow({"count", "rate"});
  constexpr IntRange kCount{0, kMaxDevicesPerServer};
  type.nic_count =
      has_preset ? map.integer_or("count", type.nic_count, kCount) : map.integer("count", kCount);
  if (type.nic_count > 0)
    type.nic_rate =
        map.rate("rate", has_preset ? std::optional(type.nic_rate) : std::nullopt, kLinkRates);
}

ServerType read_server_type(const YamlMap& map, const std::string& name) {
  map.allow({"preset", "devices", "intra", "nics", "numa_nodes", "scale_up"});
  ServerType type;
  const bool has_preset = map.has("preset");
  if (has_preset) {
    const std::string wanted = map.text("preset");
    const ServerType* preset = find_server_preset(wanted);
    if (preset == nullptr) {
      const std::string nearest = nearest_word(wanted, server_preset_names());
      map.fail("preset",
               fmt::format("no server is called '{}'; {}", wanted,
                           nearest.empty() ? "choose one of " + join(server_preset_names(), ", ")
                                           : "did you mean '" + nearest + "'?"));
      return type;
    }
    type = *preset;
  }
  type.name = name;
  if (!has_preset || map.has("devices")) read_devices(map.map("devices"), type, has_preset);
  if (map.has("intra")) read_intra(map.map("intra"), type);
  if (!has_preset || map.has("nics")) read_nics(map.map("nics"), type, has_preset);
  type.numa_nodes = map.integer_or("numa_nodes", type.numa_nodes, {1, 64});
  if (map.has("scale_up")) read_scale_up(map, type);
  return type;
}

// The type that `key` of `map` names: one of the file, or a whole-server preset.
std::string read_type_name(const YamlMap& map, Cluster& cluster) {
  const bool only_one = cluster.server_types.size() == 1;
  if (!map.has("type") && only_one) return cluster.server_types.begin()->first;
  std::string name = map.text("type");
  if (cluster.server_types.contains(name)) return name;
  if (const ServerType* preset = find_server_preset(name)) {
    cluster.server_types.emplace(name, *preset);
    return name;
  }
  std::vector<std::string> known;
  for (const auto& [known_name, type] : cluster.server_types)
    if (find_server_preset(known_name) == nullptr) known.push_back(known_name);
  for (std::string& preset : server_preset_names())
    known.push_back(std::move(preset));
  map.fail("type", fmt::format("no server type is called '{}'; add it to server_types or choose "
                               "one of {}",
                               name, join(known, ", ")));
  return name;
}

bool is_address(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string port(address.substr(colon + 1));
  if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos)
    return false;
  const int number = std::atoi(port.c_str());
  return number >= 1 && number <= 65535;
}

void read_server_list(const YamlMap& root, Cluster& cluster) {
  std::set<std::string> names;
  const std::vector<YamlMap> items = root.maps("servers");
  if (items.empty()) root.fail("servers", "empty; list at least one server");
  if (items.size() > static_cast<std::size_t>(kMaxServers))
    root.fail("servers", fmt::format("more than {} servers", kMaxServers));
  for (const YamlMap& item : items) {
    item.allow({"name", "type", "address"});
    Server server{.name = read_name(item), .type = {}, .address = item.text("address", "")};
    if (is_switch_name(server.name))
      item.fail("name", "leaf, spine and super with a number name switches; choose another");
    if (!names.insert(server.name).second)
      item.fail("name", fmt::format("'{}' is given twice; server names are unique", server.name));
    if (!server.address.empty() && !is_address(server.address)) {
      item.fail("address",
                fmt::format("'{}' is not an address; write it like 10.0.0.5:7070", server.address));
    }
    server.type = read_type_name(item, cluster);
    cluster.servers.push_back(std::move(server));
  }
  const auto with_address =
      std::count_if(cluster.servers.begin(), cluster.servers.end(),
                    [](const Server& server) { return !server.address.empty(); });
  if (with_address != 0 && with_address != static_cast<long>(cluster.servers.size())) {
    root.fail("servers", fmt::format("{} of {} servers have an address; give it to all (real "
                                     "servers) or to none (the lab)",
                                     with_address, cluster.servers.size()));
  }
}

void read_servers(const YamlMap& root, Cluster& cluster) {
  if (root.kind("servers") == YamlKind::kList) {
    read_server_list(root, cluster);
    return;
  }
  const YamlMap servers = root.map("servers");
  servers.allow({"count", "type"});
  const int count = servers.integer("count", {1, kMaxServers});
  const std::string type = read_type_name(servers, cluster);
  for (int i = 0; i < count; ++i)
    cluster.servers.push_back({.name = fmt::format("s{}", i), .type = type, .address = {}});
}

// 1 to 3, 0 on error.
int read_tiers(const YamlMap& map) {
  static const std::vector<std::string> known = {"leaf", "spine", "super-spine"};
  const std::vector<std::string> tiers = map.texts("tiers");
  if (tiers.empty() || tiers.size() > known.size() ||
      !std::equal(tiers.begin(), tiers.end(), known.begin())) {
    map.fail("tiers", "not a fabric; write [leaf], [leaf, spine] or [leaf, spine, super-spine]");
    return 0;
  }
  return static_cast<int>(tiers.size());
}

// Keys of a tier that the fabric does not have would be silently ignored: say so instead.
void refuse_keys_of_missing_tiers(const YamlMap& map, int tiers) {
  for (const char* key : {"spines", "uplink", "uplink_cables"}) {
    if (tiers < 2 && map.has(key))
      map.fail(key, "the fabric has no spine; remove it or add spine to tiers");
  }
  for (const char* key :
       {"leaves_per_group", "super_spines", "super_uplink", "super_uplink_cables"}) {
    if (tiers < 3 && map.has(key))
      map.fail(key, "the fabric has no super-spine; remove it or add super-spine to tiers");
  }
}

void read_upper_tiers(const YamlMap& map, Fabric& fabric) {
  if (fabric.tiers >= 2) {
    fabric.spines = map.integer("spines", {1, 4096});
    fabric.uplink = map.rate("uplink", {}, kLinkRates);
    fabric.uplink_cables = map.integer_or("uplink_cables", 1, {1, 1024});
    if (fabric.spines % fabric.planes != 0) {
      map.fail("spines", fmt::format("{} is not a multiple of planes {}; every plane needs the "
                                     "same number of them",
                                     fabric.spines, fabric.planes));
    }
  }
  if (fabric.tiers < 3) return;
  fabric.leaves_per_group = map.integer("leaves_per_group", {1, 65536});
  fabric.super_spines = map.integer("super_spines", {1, 65536});
  fabric.super_uplink = map.rate("super_uplink", fabric.uplink, kLinkRates);
  fabric.super_uplink_cables = map.integer_or("super_uplink_cables", 1, {1, 1024});
  if (fabric.leaves_per_group % fabric.rails != 0) {
    map.fail("leaves_per_group", fmt::format("{} is not a multiple of rails {}; a group holds all "
                                             "the rails of its servers",
                                             fabric.leaves_per_group, fabric.rails));
  }
  if (fabric.super_spines % fabric.spines != 0) {
    map.fail("super_spines", fmt::format("{} is not a multiple of spines {}; every spine of a "
                                         "group has its own column of super-spines",
                                         fabric.super_spines, fabric.spines));
  }
}

void check_servers_fit(const YamlMap& map, const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric;
  const long long servers = static_cast<long long>(cluster.servers.size());
  if (fabric.tiers == 1 && servers > fabric.servers_per_leaf) {
    map.fail("servers_per_leaf", fmt::format("{} servers do not fit on one leaf of {}; set it to "
                                             "{} or add spine to tiers",
                                             servers, fabric.servers_per_leaf, servers));
  }
  if (fabric.tiers == 1 && fabric.rails > fabric.planes) {
    map.fail("rails", fmt::format("{0} rails of one tier do not reach each other; add spine to "
                                  "tiers, set rails: 1, or say that they need not with planes: {0}",
                                  fabric.rails));
  }
  for (const Server& server : cluster.servers) {
    const ServerType& type = cluster.server_types.at(server.type);
    if (type.nic_count == 0 || type.nic_count % fabric.rails != 0) {
      map.fail("rails", fmt::format("{} rails do not divide the {} NICs of server type {}; every "
                                    "rail needs the same number of them",
                                    fabric.rails, type.nic_count, type.name));
      return;
    }
  }
}

void check_size(const YamlMap& map, const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric;
  const auto servers = static_cast<long long>(cluster.servers.size());
  const long long blocks = (servers + fabric.servers_per_leaf - 1) / fabric.servers_per_leaf;
  const long long leaves = blocks * fabric.rails;
  const long long groups =
      fabric.tiers == 3 ? (leaves + fabric.leaves_per_group - 1) / fabric.leaves_per_group : 1;
  long long links = fabric.tiers >= 2 ? leaves * uplinks_of_leaf(fabric) : 0;
  if (fabric.tiers == 3) links += groups * uplinks_of_group(fabric);
  for (const Server& server : cluster.servers)
    links += cluster.server_types.at(server.type).nic_count;
  if (links > kMaxLinks) {
    map.fail("servers_per_leaf",
             fmt::format("{} leaves and the NICs of {} servers make more than {} links; put more "
                         "servers on a leaf, or use fewer spines, NICs or servers",
                         leaves, servers, kMaxLinks));
  }
}

void read_fabric(const YamlMap& root, Cluster& cluster) {
  const int servers = static_cast<int>(cluster.servers.size());
  if (!root.has("fabric") && servers <= 1) return;
  if (!root.has("fabric")) {
    root.fail("fabric", fmt::format("missing; connect the {} servers, for one switch write "
                                    "fabric: {{tiers: [leaf]}}",
                                    servers));
    return;
  }
  const YamlMap map = root.map("fabric");
  map.allow({"tiers", "rails", "planes", "servers_per_leaf", "spines", "uplink", "uplink_cables",
             "leaves_per_group", "super_spines", "super_uplink", "super_uplink_cables",
             "hop_latency"});
  Fabric& fabric = cluster.fabric;
  fabric.tiers = read_tiers(map);
  fabric.rails = map.integer_or("rails", 1, {1, kMaxDevicesPerServer});
  fabric.planes = map.integer_or("planes", 1, {1, kMaxDevicesPerServer});
  if (fabric.rails % fabric.planes != 0) {
    map.fail("planes", fmt::format("{} planes do not divide {} rails; every plane needs the same "
                                   "number of them",
                                   fabric.planes, fabric.rails));
  }
  fabric.servers_per_leaf = fabric.tiers == 1
                                ? map.integer_or("servers_per_leaf", servers, {1, kMaxServers})
                                : map.integer("servers_per_leaf", {1, kMaxServers});
  fabric.hop_latency = map.seconds_or("hop_latency", kHopLatency, kLatencies);
  refuse_keys_of_missing_tiers(map, fabric.tiers);
  read_upper_tiers(map, fabric);
}

}  // namespace

Result<Cluster> parse_cluster(std::string_view text, const std::string& file) {
  REGATTA_TRY(document, YamlDocument::parse(text, file));
  const YamlMap root = document.root();
  Cluster cluster;
  root.allow({"name", "server_types", "fabric", "servers"});
  cluster.name = read_name(root);
  if (root.has("server_types")) {
    const YamlMap types = root.map("server_types");
    for (const std::string& name : types.keys())
      cluster.server_types.emplace(name, read_server_type(types.map(name), name));
  }
  read_servers(root, cluster);
  REGATTA_TRY_DO(document.status());  // names and types hold from here on
  read_fabric(root, cluster);
  REGATTA_TRY_DO(document.status());
  fit_domains(root, cluster);
  if (cluster.fabric.tiers > 0) {
    check_servers_fit(root.map("fabric"), cluster);
    check_size(root.map("fabric"), cluster);
  }
  REGATTA_TRY_DO(document.status());
  return cluster;
}

}  // namespace regatta::topo
