#include "regatta/network/lab/internal/blueprint.h"

#include <algorithm>
#include <cctype>

#include <fmt/core.h>

#include "regatta/model/topo/addresses.h"
#include "regatta/model/topo/graph.h"

namespace regatta::lab {
namespace {

constexpr double kUsableCores = 0.8;  // the rest is for communication and the fabric itself
constexpr double kQueueSeconds = 0.040;
constexpr double kLeastQueueBytes = 64 * 1024;
constexpr double kBurstSeconds = 100e-6;  // what a late timer may cost at high rates
constexpr double kLeastBurstBytes = 10 * 1024;

bool is_file_name(const std::string& name) {
  const auto is_good = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 48 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), is_good);
}

Status check(const topo::Cluster& cluster) {
  if (!is_file_name(cluster.name)) {
    return Error{Code::kInvalidInput,
                 fmt::format("cluster name \"{}\": the lab needs at most 48 letters, digits, '-', "
                             "'_' or '.', the first no dot",
                             cluster.name)};
  }
  for (const topo::Server& server : cluster.servers) {
    if (server.address.empty()) continue;
    return Error{Code::kInvalidInput,
                 fmt::format("server {}: has the address {}, so it is real; the lab emulates only "
                             "servers without an address",
                             server.name, server.address)};
  }
  return {};
}

void add_nodes(Blueprint& blueprint, const topo::Cluster& cluster, const topo::Graph& graph,
               int cores) {
  const auto devices = static_cast<double>(all_devices(cluster).size());
  const double even_share = std::min(1.0, kUsableCores * cores / std::max(1.0, devices));
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    BlueprintNode node;
    node.name = graph.nodes[i].name;
    node.is_switch = graph.nodes[i].kind != topo::NodeKind::kServer;
    node.hash_seed = topo::hash_seed(cluster.name, node.name);
    if (!node.is_switch) {
      const topo::ServerType& type = cluster.type_of(ServerId{static_cast<int>(i)});
      const double given = type.device.cpu_share;
      node.cpu_shares.assign(static_cast<std::size_t>(type.device_count),
                             given > 0 ? given : even_share);
    }
    blueprint.nodes.push_back(std::move(node));
  }
}

void add_cables(Blueprint& blueprint, const topo::Graph& graph) {
  std::vector<int> next_port(graph.nodes.size(), 0);
  const auto interface_of = [&](NodeId node, int nic) {
    return nic >= 0 ? fmt::format("nic{}", nic) : fmt::format("port{}", next_port[node.index()]++);
  };
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    const topo::Link& link = graph.links[i];
    const LinkId id{static_cast<int>(i)};
    Cable cable;
    cable.name = link.name;
    cable.rate = link.rate;
    cable.a = {link.a, interface_of(link.a, link.a_nic), topo::address_text(topo::address_of(id))};
    cable.b = {link.b, interface_of(link.b, -1), topo::address_text(topo::address_of(id, true))};
    blueprint.cables.push_back(std::move(cable));
  }
}

// A server sends to NIC i from its own NIC i, or from one on the same rail: what a rail-optimised
// fabric is built for, also where the graph has other paths of equal length.
std::vector<LinkId> keep_rail(const topo::Graph& graph, std::vector<LinkId> hops, int to_nic,
                              int rails) {
  for (const int modulus : {0, std::max(1, rails)}) {
    std::vector<LinkId> kept;
    for (const LinkId hop : hops) {
      const int nic = graph.links[hop.index()].a_nic;
      const bool fits = modulus == 0 ? nic == to_nic : nic % modulus == to_nic % modulus;
      if (fits) kept.push_back(hop);
    }
    if (!kept.empty()) return kept;
  }
  return hops;
}

// The hops of `node` over `links`; none to the neighbour itself, whose /31 is a connected route.
std::vector<Hop> hops_over(const Blueprint& blueprint, NodeId node,
                           const std::vector<LinkId>& links, LinkId last) {
  std::vector<Hop> hops;
  for (const LinkId link : links) {
    if (link == last) continue;
    const Cable& cable = blueprint.cables[link.index()];
    const bool forward = cable.a.node == node;
    hops.push_back({link, forward ? cable.a.interface : cable.b.interface,
                    forward ? cable.b.address : cable.a.address});
  }
  return hops;
}

void add_routes_to(Blueprint& blueprint, const topo::Graph& graph, ServerId server, LinkId last,
                   int rails) {
  const int nic = graph.links[last.index()].a_nic;
  const std::string address = blueprint.cables[last.index()].a.address;
  blueprint.nic_addresses[server.index()].push_back(address);
  for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
    const NodeId node{n};
    auto links = next_hops(graph, node, server, nic);
    if (!blueprint.nodes[node.index()].is_switch) {
      links = keep_rail(graph, std::move(links), nic, rails);
    }
    auto hops = hops_over(blueprint, node, links, last);
    if (!hops.empty()) blueprint.routes.push_back({node, address, last, std::move(hops)});
  }
}

void add_routes(Blueprint& blueprint, const topo::Cluster& cluster, const topo::Graph& graph) {
  for (int s = 0; s < static_cast<int>(cluster.servers.size()); ++s) {
    // NICs of a server without a fabric have no cable.
    for (const LinkId cable : graph.links_of[as_index(s)])
      add_routes_to(blueprint, graph, ServerId{s}, cable, cluster.fabric.rails);
  }
}

std::string describe(const Blueprint& blueprint) {
  std::string text = blueprint.name;
  for (const BlueprintNode& node : blueprint.nodes) {
    text += "\n" + node.name;
    for (const double share : node.cpu_shares)
      text += fmt::format(" {:.4f}", share);
  }
  for (const Cable& cable : blueprint.cables) {
    text += fmt::format("\n{} {:.0f}", cable.name, cable.rate.value);
  }
  return text;
}

}  // namespace

Result<Blueprint> make_blueprint(const topo::Cluster& cluster, int cores) {
  REGATTA_TRY_DO(topo::check_can_start(cluster));
  REGATTA_TRY_DO(check(cluster));
  const topo::Graph graph = build_graph(cluster);
  if (graph.links.size() > topo::kMaxAddressedLinks) {
    return Error{Code::kInvalidInput,
                 fmt::format("cluster {}: {} cables, more than the lab has addresses for ({})",
                             cluster.name, graph.links.size(), topo::kMaxAddressedLinks)};
  }
  Blueprint blueprint;
  blueprint.name = cluster.name;
  blueprint.nic_addresses.resize(cluster.servers.size());
  add_nodes(blueprint, cluster, graph, cores);
  add_cables(blueprint, graph);
  add_routes(blueprint, cluster, graph);
  blueprint.description = describe(blueprint);
  return blueprint;
}

os::EgressShape shape_for(BytesPerSecond rate) {
  const double burst = std::max(kLeastBurstBytes, rate.value * kBurstSeconds);
  const double queue = std::max(kLeastQueueBytes, rate.value * kQueueSeconds);
  return {rate, Bytes{static_cast<long long>(std::min(burst, 1e8))},
          Bytes{static_cast<long long>(std::min(queue, 1e9))}};
}

}  // namespace regatta::lab
