#include "regatta/model/topo/internal/scale_up_yaml.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/model/topo/cluster_yaml.h"

namespace regatta::topo {
namespace {

constexpr NumberRange kDomainRates{.low = 125, .high = 1e14};
constexpr NumberRange kDomainLatencies{.low = 0, .high = 1};

int servers_of_type(const Cluster& cluster, const std::string& type) {
  return static_cast<int>(std::ranges::count(cluster.servers, type, &Server::type));
}

void check_given_domain(const YamlMap& domain, const ServerType& type, int count) {
  const int size = type.scale_up.servers;
  if (size > count) {
    domain.fail("servers", fmt::format("a domain of {} servers is larger than the {} of type {}; "
                                       "set servers: {}",
                                       size, count, type.name, count));
  }
}

// As few domains of the preset's size as hold the servers, as equal as they can be.
void fit_preset_domain(ServerType& type, int count) {
  type.scale_up.servers = domain_parts(type.scale_up, count).servers;
}

}  // namespace

void read_scale_up(const YamlMap& server_type, ServerType& type) {
  const YamlMap map = server_type.map("scale_up");
  map.allow({"servers", "bandwidth", "latency", "in_network_reduction"});
  ScaleUp& domain = type.scale_up;
  const bool has_preset = domain.servers > 1;
  domain.servers = has_preset ? map.integer_or("servers", domain.servers, {1, kMaxServers})
                              : map.integer("servers", {1, kMaxServers});
  if (type.intra.kind != IntraKind::kNvlink && domain.servers > 1) {
    map.fail("servers",
             "only nvlink joins devices of several servers; set intra.kind: nvlink, or "
             "remove scale_up");
  }
  domain.bandwidth =
      map.rate("bandwidth", has_preset ? domain.bandwidth : type.intra.bandwidth, kDomainRates);
  domain.latency =
      map.seconds_or("latency", has_preset ? domain.latency : type.intra.latency, kDomainLatencies);
  domain.in_network_reduction = map.boolean_or("in_network_reduction", domain.in_network_reduction);
}

void fit_domains(const YamlMap& root, Cluster& cluster) {
  const bool has_types = root.has("server_types");
  for (auto& [name, type] : cluster.server_types) {
    const int count = servers_of_type(cluster, name);
    if (type.scale_up.servers <= 1 || count == 0) continue;
    const auto written = has_types ? root.map("server_types").keys() : std::vector<std::string>{};
    const bool is_written = std::ranges::find(written, name) != written.end();
    const bool is_given = is_written && root.map("server_types").map(name).has("scale_up") &&
                          root.map("server_types").map(name).map("scale_up").has("servers");
    if (is_given)
      check_given_domain(root.map("server_types").map(name).map("scale_up"), type, count);
    else
      fit_preset_domain(type, count);
    const int per_leaf = cluster.fabric.servers_per_leaf;
    if (cluster.fabric.tiers >= 2 && per_leaf % type.scale_up.servers != 0) {
      root.map("fabric").fail(
          "servers_per_leaf",
          fmt::format("{} divides domains of {} servers between leaves; set a multiple of {}",
                      per_leaf, type.scale_up.servers, type.scale_up.servers));
    }
  }
}

}  // namespace regatta::topo
