#include "regatta/network/simulate/simulated_network.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/model/topo/graph_names.h"

namespace regatta::simulate {

SimulatedNetwork::SimulatedNetwork(topo::Cluster of)
    : cluster(std::move(of)),
      graph(topo::build_graph(cluster)),
      routes(graph),
      d_mod_k(graph),
      seeds(topo::hash_seeds(cluster, graph)),
      links(fabric::links_of(graph)),
      devices(topo::all_devices(cluster)),
      domain_of(topo::scale_up_domains(cluster)) {
  for (const int domain : domain_of)
    if (domain_ranks.size() <= static_cast<std::size_t>(domain)) domain_ranks.emplace_back();
  for (std::uint32_t rank = 0; rank < devices.size(); ++rank) {
    const topo::DeviceRef device = devices[rank];
    if (device.index == 0) first_device.push_back(rank);
    domain_ranks[static_cast<std::size_t>(domain_of[device.server.index()])].push_back(rank);
    const topo::ServerType& type = cluster.type_of(device.server);
    const bool is_joined = type.scale_up.servers > 1;
    const BytesPerSecond described = is_joined ? type.scale_up.bandwidth : type.intra.bandwidth;
    // A server of one device has no links inside; nothing is sent over these.
    const BytesPerSecond rate = described.value > 0 ? described : BytesPerSecond{1e12};
    links.add(rate, is_joined ? type.scale_up.latency : type.intra.latency);
    links.add(rate, {0});
  }
}

std::string SimulatedNetwork::link_name(std::uint32_t link) const {
  const std::size_t cables = 2 * graph.links.size();
  if (link >= cables) {
    const topo::DeviceRef device = devices[(link - cables) / 2];
    return to_string(cluster, device) + ((link - cables) % 2 == 0 ? " out" : " in");
  }
  return topo::directed_link_name(graph, link);
}

Result<LinkId> SimulatedNetwork::nic(topo::DeviceRef device) const {
  const int nic = topo::nic_of(cluster, device);
  if (nic >= 0 && cluster.fabric.tiers > 0) return topo::nic_link(graph, device.server, nic);
  return Error{Code::kInvalidInput,
               fmt::format("{}: its server is not connected to others; give the cluster a fabric",
                           to_string(cluster, device))};
}

Result<topo::DeviceRef> parse_device(const topo::Cluster& cluster, const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string name = text.substr(0, slash);
  const auto server = std::ranges::find(cluster.servers, name, &topo::Server::name);
  if (server == cluster.servers.end()) {
    std::vector<std::string> names;
    for (const topo::Server& one : cluster.servers)
      names.push_back(one.name);
    const std::string nearest = nearest_word(name, names);
    return Error{Code::kInvalidInput,
                 fmt::format("no server is called '{}'; {}", name,
                             nearest.empty() ? "write a device like " + names.front() + "/0"
                                             : "did you mean '" + nearest + "'?")};
  }
  const ServerId id{static_cast<int>(server - cluster.servers.begin())};
  const int devices = cluster.type_of(id).device_count;
  int index = -1;
  const char* const end = text.data() + text.size();
  if (slash != std::string::npos) {
    const auto [rest, error] = std::from_chars(text.data() + slash + 1, end, index);
    if (error != std::errc() || rest != end) index = -1;
  }
  if (index >= 0 && index < devices) return topo::DeviceRef{id, index};
  return Error{Code::kInvalidInput, fmt::format("'{}' is no device; those of {} are {}/0 to {}/{}",
                                                text, name, name, name, devices - 1)};
}

}  // namespace regatta::simulate
