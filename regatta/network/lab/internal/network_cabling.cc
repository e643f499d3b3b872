// Cables that are plugged in at the wrong port, and what each port hears of its neighbor.
#include <algorithm>
#include <chrono>
#include <thread>

#include <net/if.h>

#include "regatta/base/os/process.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/lab/internal/network.h"

namespace regatta::lab {
namespace {

// A frame is there when its sender has sent it, as a rule.
constexpr int kLooks = 3;
constexpr std::chrono::milliseconds kBetweenLooks{1};

}  // namespace

// Plugs the end b of `link` in where that of `other` belongs; both ports keep their settings and
// their indices in the kernel, as those of a real switch would.
Status Network::exchange_ends(std::size_t link, std::size_t other) {
  Cable cable = blueprint_.cables[link];
  cable.b = blueprint_.cables[other].b;
  // The cable that is there now goes with its ends.
  for (const Port* port : {&cable.a, &cable.b})
    static_cast<void>(node_of(*port).netlink.remove_link(port->interface).has_value());
  return make_cable(cable, {.own = node_of(cable.a).interfaces.at(cable.a.interface),
                            .peer = node_of(cable.b).interfaces.at(cable.b.interface)});
}

// The kernels forgot those through the ends. Servers run no routing protocol; where another program
// is that of the switches, it has to see to theirs.
Status Network::restore_routes() {
  knows_installed_ = false;
  if (converges_) return converge(std::nullopt);
  for (const Route& route : blueprint_.routes)
    if (!blueprint_.nodes[route.node.index()].is_switch) REGATTA_TRY_DO(install(route, route.hops));
  return {};
}

Status Network::swap(std::size_t link, std::size_t other) {
  if (link == other)
    return Error{Code::kInvalidInput, "link " + blueprint_.cables[link].name +
                                          ": cannot be swapped with itself; name two links"};
  for (const std::size_t one : {link, other})
    if (faults_[one].has_any())
      return Error{Code::kConflict,
                   "link " + blueprint_.cables[one].name + ": has a fault already; clear it first"};
  REGATTA_TRY_DO(exchange_ends(link, other));
  REGATTA_TRY_DO(exchange_ends(other, link));
  faults_[link].swapped_with = other;
  faults_[other].swapped_with = link;
  return restore_routes();
}

// Port by index of its interface, in the namespace that the calling thread is in. The address of an
// interface says which port it is; without one of the plan its name does.
std::map<int, std::uint32_t> Network::ports_of(std::size_t node) const {
  std::map<std::string, std::uint32_t> by_name;
  for (std::size_t i = 0; i < blueprint_.cables.size(); ++i)
    for (const bool is_end_b : {false, true}) {
      const Port& port = is_end_b ? blueprint_.cables[i].b : blueprint_.cables[i].a;
      if (port.node.index() == node)
        by_name[port.interface] = static_cast<std::uint32_t>(2 * i + (is_end_b ? 1 : 0));
    }
  for (const auto& [address, name] : os::interfaces_by_address()) {
    const auto link = topo::link_of(address);
    if (!link || link->index() >= blueprint_.cables.size() || !by_name.contains(name)) continue;
    const bool is_end_b = topo::address_of(*link, true) == address;
    const Cable& cable = blueprint_.cables[link->index()];
    // Another node's address says nothing about this port.
    if ((is_end_b ? cable.b : cable.a).node.index() != node) continue;
    by_name[name] = static_cast<std::uint32_t>(2 * link->index() + (is_end_b ? 1 : 0));
  }
  std::map<int, std::uint32_t> ports;
  for (const auto& [name, port] : by_name)
    if (const unsigned index = ::if_nametoindex(name.c_str()); index != 0)
      ports[static_cast<int>(index)] = port;
  return ports;
}

Result<std::vector<int>> Network::heard_ports() {
  std::vector<std::map<int, std::uint32_t>> ports(nodes_.size());
  std::size_t awaited = 0;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    REGATTA_TRY(scope, os::NetworkNamespaceScope::enter(nodes_[node].space));
    ports[node] = ports_of(node);
    awaited += ports[node].size();
    if (!nodes_[node].frames) {
      REGATTA_TRY(frames, NeighborFrames::open());
      nodes_[node].frames = std::move(frames);
    }
    nodes_[node].frames->receive([](int, std::uint32_t) {});  // what is older
  }
  for (std::size_t node = 0; node < nodes_.size(); ++node)
    for (const auto& [index, port] : ports[node])
      nodes_[node].frames->send(index, neighbor_frame(blueprint_.nodes[node].name, port));
  std::vector<int> heard(2 * blueprint_.cables.size(), -1);
  for (int look = 0; look < kLooks && awaited > 0; ++look) {
    if (look > 0) std::this_thread::sleep_for(kBetweenLooks);
    for (std::size_t node = 0; node < nodes_.size(); ++node)
      nodes_[node].frames->receive([&](int index, std::uint32_t port) {
        const auto own = ports[node].find(index);
        if (own == ports[node].end() || port >= heard.size()) return;
        if (std::exchange(heard[own->second], static_cast<int>(port)) < 0) --awaited;
      });
  }
  return heard;
}

}  // namespace regatta::lab
