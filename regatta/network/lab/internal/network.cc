#include "regatta/network/lab/internal/network.h"

#include <map>

#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/network/lab/internal/drops.h"
#include "regatta/network/lab/internal/routing.h"

namespace regatta::lab {
namespace {

Status set_sysctl(const std::string& name, const std::string& value) {
  Status status = os::write_file("/proc/sys/net/" + name, value);
  if (status) return status;
  Error error = status.error();
  error.message += "; the lab needs to set the network of its own namespaces";
  return error;
}

// Settings of the namespace that the calling thread is in; they hold for interfaces made later.
Status configure(const BlueprintNode& node) {
  for (const std::string where : {"all", "default"}) {
    REGATTA_TRY_DO(set_sysctl("ipv4/conf/" + where + "/rp_filter", "0"));  // paths are asymmetric
    REGATTA_TRY_DO(set_sysctl("ipv4/conf/" + where + "/ignore_routes_with_linkdown", "1"));
    // Without IPv6 on a host there is nothing to switch off.
    static_cast<void>(set_sysctl("ipv6/conf/" + where + "/disable_ipv6", "1").has_value());
  }
  // Addresses, protocol and ports, as switches hash them. Policy 1 names the same fields, but takes
  // the hash that came with a packet first: here the random one of the sender's socket, which would
  // send a connection over the same link at every switch, whatever its ports, and another after a
  // timeout. Kernels before 5.14 have policy 1 only.
  const bool has_fields = set_sysctl("ipv4/fib_multipath_hash_fields", "0x37").has_value();
  REGATTA_TRY_DO(set_sysctl("ipv4/fib_multipath_hash_policy", has_fields ? "3" : "1"));
  // Kernels before 6.11 have one key for all namespaces and no such file.
  static_cast<void>(
      set_sysctl("ipv4/fib_multipath_hash_seed", std::to_string(node.hash_seed)).has_value());
  if (node.is_switch) {
    // As switches do: the address of the port where a packet came in answers that its time is
    // exceeded, and no limit for hosts holds the answers back.
    REGATTA_TRY_DO(set_sysctl("ipv4/icmp_errors_use_inbound_ifaddr", "1"));
    REGATTA_TRY_DO(set_sysctl("ipv4/icmp_ratemask", "0"));
    return set_sysctl("ipv4/ip_forward", "1");
  }
  // Traffic of training comes in bursts: each must find the window that the last one left, and no
  // connection may inherit what another one measured before.
  REGATTA_TRY_DO(set_sysctl("ipv4/tcp_slow_start_after_idle", "0"));
  return set_sysctl("ipv4/tcp_no_metrics_save", "1");
}

}  // namespace

Result<Network> Network::build(const Blueprint& blueprint) {
  Network network(blueprint);
  network.faults_.resize(blueprint.cables.size());
  REGATTA_TRY(home, os::open_network_namespace());
  const Status made = network.make_nodes();
  REGATTA_TRY_DO(os::enter_network_namespace(home));
  if (!made) return made.error();
  for (const Cable& cable : blueprint.cables)
    REGATTA_TRY_DO(network.make_cable(cable));
  REGATTA_TRY_DO(network.learn_interfaces());
  network.installed_.resize(blueprint.routes.size());
  REGATTA_TRY_DO(network.converge(std::nullopt));
  return network;
}

Status Network::make_nodes() {
  for (const BlueprintNode& node : blueprint_.nodes) {
    REGATTA_TRY_DO(os::enter_new_network_namespace());
    REGATTA_TRY(space, os::open_network_namespace());
    REGATTA_TRY_DO(configure(node));
    REGATTA_TRY(netlink, os::Netlink::open());
    REGATTA_TRY_DO(netlink.set_up("lo", true));
    nodes_.push_back({std::move(space), std::move(netlink)});
  }
  return {};
}

Status Network::make_cable(const Cable& cable, const os::VethIndices& indices) {
  REGATTA_TRY_DO(node_of(cable.a).netlink.add_veth(cable.a.interface, cable.b.interface,
                                                   node_of(cable.b).space, indices));
  REGATTA_TRY_DO(prepare_port(cable.a, cable));
  return prepare_port(cable.b, cable);
}

Status Network::prepare_port(const Port& port, const Cable& cable) {
  os::Netlink& netlink = node_of(port).netlink;
  REGATTA_TRY_DO(netlink.set_sizes(port.interface, kMtu, 0));
  REGATTA_TRY_DO(netlink.add_address(port.interface, port.address, 31));
  REGATTA_TRY_DO(netlink.set_shape(port.interface, shape_for(cable.rate)));
  return netlink.set_up(port.interface, true);
}

Status Network::learn_interfaces() {
  for (Node& node : nodes_) {
    REGATTA_TRY(interfaces, node.netlink.interfaces());
    for (const os::Interface& interface : interfaces)
      node.interfaces[interface.name] = interface.index;
  }
  return {};
}

void Network::set_converging(bool on) {
  converges_ = on;
  if (!on) knows_installed_ = false;
}

Status Network::converge(std::optional<NodeId> forgetful) {
  if (!converges_) return {};
  std::vector<bool> down;
  for (const LinkFaults& faults : faults_)
    down.push_back(faults.down);
  auto left = hops_left(blueprint_, down);
  for (std::size_t i = 0; i < left.size(); ++i) {
    const Route& route = blueprint_.routes[i];
    const bool is_same = left[i] == installed_[i] && knows_installed_;
    if (is_same && (left[i].empty() || route.node != forgetful)) continue;
    REGATTA_TRY_DO(install(route, left[i]));
    installed_[i] = std::move(left[i]);
  }
  knows_installed_ = true;
  return {};
}

Status Network::install(const Route& route, const std::vector<Hop>& hops) {
  Node& node = nodes_[route.node.index()];
  if (hops.empty()) return node.netlink.remove_route(route.destination);
  std::vector<os::NextHop> next;
  next.reserve(hops.size());
  for (const Hop& hop : hops)
    next.push_back({node.interfaces.at(hop.interface), hop.gateway});
  return node.netlink.set_route(route.destination, next);
}

Result<std::vector<LinkState>> Network::states() {
  std::vector<std::map<std::string, os::Interface>> by_name(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    REGATTA_TRY(interfaces, nodes_[i].netlink.interfaces());
    for (os::Interface& interface : interfaces) {
      by_name[i].emplace(interface.name, std::move(interface));
    }
  }
  std::vector<LinkState> states;
  for (std::size_t i = 0; i < blueprint_.cables.size(); ++i) {
    const Cable& cable = blueprint_.cables[i];
    const os::Interface& a = by_name[cable.a.node.index()][cable.a.interface];
    const os::Interface& b = by_name[cable.b.node.index()][cable.b.interface];
    LinkState state;
    state.name = cable.name;
    state.a = blueprint_.nodes[cable.a.node.index()].name + " " + cable.a.interface;
    state.b = blueprint_.nodes[cable.b.node.index()].name + " " + cable.b.interface;
    state.up = a.carrier && b.carrier;
    state.rate = faults_[i].rate.value_or(cable.rate);
    state.described_rate = cable.rate;
    state.drop_share = faults_[i].drop_share;
    state.has_fault = faults_[i].has_any();
    state.sent_by_a = a.sent;
    state.sent_by_b = b.sent;
    states.push_back(std::move(state));
  }
  return states;
}

// The switch end goes off: the other end keeps its routes and sees the carrier go, as when the far
// side of a cable dies. The switches then agree on routes around it at once.
Status Network::take_down(std::size_t link) {
  const Port& port = blueprint_.cables[link].b;
  faults_[link].down = true;
  REGATTA_TRY_DO(node_of(port).netlink.set_up(port.interface, false));
  return converge(port.node);
}

Status Network::slow(std::size_t link, BytesPerSecond rate) {
  faults_[link].rate = rate;
  return shape(blueprint_.cables[link], rate);
}

Status Network::drop(std::size_t link, double share) {
  faults_[link].drop_share = share;
  return set_drops(blueprint_.cables[link], share);
}

Status Network::clear(std::size_t link) {
  const Cable& cable = blueprint_.cables[link];
  LinkFaults& faults = faults_[link];
  if (faults.swapped_with) {
    const std::size_t other = *faults.swapped_with;
    REGATTA_TRY_DO(exchange_ends(link, link));
    REGATTA_TRY_DO(exchange_ends(other, other));
    faults_[other] = {};
    faults = {};
    return restore_routes();
  }
  if (faults.drop_share > 0) REGATTA_TRY_DO(set_drops(cable, 0));
  if (faults.rate) REGATTA_TRY_DO(shape(cable, cable.rate));
  if (faults.down) {
    REGATTA_TRY_DO(node_of(cable.b).netlink.set_up(cable.b.interface, true));
    faults.down = false;
    REGATTA_TRY_DO(converge(cable.b.node));
  }
  faults = {};
  return {};
}

std::optional<std::size_t> Network::find(const std::string& link) const {
  for (std::size_t i = 0; i < blueprint_.cables.size(); ++i) {
    if (blueprint_.cables[i].name == link) return i;
  }
  return std::nullopt;
}

Status Network::shape(const Cable& cable, BytesPerSecond rate) {
  for (const Port* port : {&cable.a, &cable.b}) {
    REGATTA_TRY_DO(node_of(*port).netlink.set_shape(port->interface, shape_for(rate)));
  }
  return {};
}

Status Network::set_drops(const Cable& cable, double share) {
  for (const Port* port : {&cable.a, &cable.b}) {
    REGATTA_TRY(scope, os::NetworkNamespaceScope::enter(node_of(*port).space));
    REGATTA_TRY_DO(share > 0 ? start_drops(port->interface, share) : stop_drops(port->interface));
  }
  return {};
}

}  // namespace regatta::lab
