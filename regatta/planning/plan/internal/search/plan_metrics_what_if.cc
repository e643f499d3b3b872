#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/model/topo/presets.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::plan {
namespace {

Error wrong_change(const std::string& change, const std::string& reason) {
  return {Code::kInvalidInput, fmt::format("{}: {}", printable(change, 60), reason)};
}

Result<int> count_of(const std::string& change, const std::string& value) {
  const auto count = parse_number<int>(value);
  if (!count || *count < 1 || *count > topo::kMaxServers)
    return wrong_change(change,
                        fmt::format("write a whole number from 1 to {}", topo::kMaxServers));
  return *count;
}

// As a cluster file must have it.
Status check_rails(const topo::Cluster& cluster, const std::string& change) {
  const int rails = cluster.fabric.rails;
  for (const auto& [name, server] : cluster.server_types) {
    const int nics = server.nic_count;
    if (rails <= 1 || (nics > 0 && nics % rails == 0)) continue;
    return wrong_change(change, fmt::format("the {} rails of cluster {} do not divide {} NICs; "
                                            "choose a multiple of {}",
                                            rails, cluster.name, nics, rails));
  }
  return {};
}

Status change_servers(topo::Cluster& cluster, const std::string& change, int count) {
  if (has_several_types(cluster))
    return wrong_change(change, fmt::format("the servers of cluster {} are of several types; name "
                                            "those of another cluster in a file of its own",
                                            cluster.name));
  const std::string type = cluster.servers.front().type;
  cluster.servers.clear();
  for (int i = 0; i < count; ++i)
    cluster.servers.push_back({.name = "s" + std::to_string(i), .type = type});
  return {};
}

Result<BytesPerSecond> rate_of(const std::string& change, const std::string& value) {
  const auto rate = parse_bytes_per_second(value);
  if (!rate) return wrong_change(change, rate.error().message);
  if (rate->value <= 0) return wrong_change(change, "the rate must be above 0, like 400Gbps");
  return *rate;
}

}  // namespace

Result<topo::Cluster> changed_cluster(topo::Cluster cluster, const std::string& change) {
  const std::size_t equals = change.find('=');
  if (equals == std::string::npos) return wrong_change(change, "write it like nic_rate=800Gbps");
  const std::string key = change.substr(0, equals);
  const std::string value = change.substr(equals + 1);
  const std::vector<std::string> keys = {"nic_rate", "nics", "servers", "uplink", "server"};
  if (key == "uplink") {
    REGATTA_TRY(rate, rate_of(change, value));
    cluster.fabric.uplink = rate;
  } else if (key == "nic_rate") {
    REGATTA_TRY(rate, rate_of(change, value));
    for (auto& [name, server] : cluster.server_types)
      server.nic_rate = rate;
  } else if (key == "nics") {
    REGATTA_TRY(count, count_of(change, value));
    for (auto& [name, server] : cluster.server_types)
      server.nic_count = count;
  } else if (key == "servers") {
    REGATTA_TRY(count, count_of(change, value));
    REGATTA_TRY_DO(change_servers(cluster, change, count));
  } else if (key == "server") {
    const topo::ServerType* preset = topo::find_server_preset(value);
    if (preset == nullptr)
      return wrong_change(change, "choose one of " + join(topo::server_preset_names(), ", "));
    for (auto& [name, server] : cluster.server_types)
      server = *preset;
  } else {
    const std::string nearest = nearest_word(key, keys);
    return wrong_change(change,
                        fmt::format("only {} can change{}", join(keys, ", "),
                                    nearest.empty() ? "" : "; did you mean " + nearest + "?"));
  }
  REGATTA_TRY_DO(check_rails(cluster, change));
  return cluster;
}

}  // namespace regatta::plan
