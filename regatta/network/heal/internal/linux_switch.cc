#include "regatta/network/heal/internal/linux_switch.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include <fmt/core.h>
#include <linux/rtnetlink.h>

#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::heal {
namespace {

constexpr std::size_t kBlockBytes = 32768;  // well below what a socket takes at once
// Each is answered, and all answers have to fit into the socket's buffer.
constexpr std::size_t kRemovalsAtOnce = 128;

// All that has arrived, also where more notices are lost meanwhile.
Status discard_notices(const RouteSocket& socket) {
  for (;;) {
    const Status read = socket.receive(false, [](const nlmsghdr&) { return true; });
    if (read || read.error().code != Code::kExhausted) return read;
  }
}

}  // namespace

Result<LinuxSwitch> LinuxSwitch::open(const topo::Graph& graph, NodeId node,
                                      const os::UniqueFd& space) {
  REGATTA_TRY(routes, RouteSocket::open(space, 0));
  REGATTA_TRY(link_notices, RouteSocket::open(space, RTMGRP_LINK));
  REGATTA_TRY(route_notices, RouteSocket::open(space, RTMGRP_IPV4_ROUTE));
  LinuxSwitch one(graph, node, std::move(routes), std::move(link_notices),
                  std::move(route_notices));
  std::map<std::uint32_t, int> interfaces;
  REGATTA_TRY_DO(one.routes_.dump(RTM_GETADDR, [&](const nlmsghdr& message) {
    if (const auto found = parse_address(message)) interfaces[found->address] = found->interface;
  }));
  for (const LinkId link : graph.links_of[node.index()]) {
    const std::uint32_t address = topo::address_of(link, graph.links[link.index()].b == node);
    const auto found = interfaces.find(address);
    if (found == interfaces.end()) {
      return Error{Code::kNotFound,
                   fmt::format("switch {}: no interface has the address {} of link {}; is this the "
                               "fabric that was described",
                               graph.nodes[node.index()].name, topo::address_text(address),
                               graph.links[link.index()].name)};
    }
    one.ports_.push_back({link, found->second, true, true});
  }
  return one;
}

LinuxSwitch::Port* LinuxSwitch::port_of(int interface) {
  const auto found = std::ranges::find(ports_, interface, &Port::interface);
  return found == ports_.end() ? nullptr : &*found;
}

const LinuxSwitch::Port& LinuxSwitch::port_of(LinkId link) const {
  return *std::ranges::find(ports_, link, &Port::link);
}

std::uint32_t LinuxSwitch::hop_of(const Port& port) const {
  return fabric::number_of({port.link, graph_->links[port.link.index()].a == node_});
}

void LinuxSwitch::note(const KernelLink& now, std::vector<CarrierChange>& changes) {
  Port* const port = port_of(now.interface);
  if (port == nullptr) return;
  if (port->carrier != now.carrier) changes.push_back({node_, port->link, now.carrier});
  port->on = now.on;
  port->carrier = now.carrier;
}

Status LinuxSwitch::read_links(std::vector<CarrierChange>& changes) {
  return routes_.dump(RTM_GETLINK, [&](const nlmsghdr& message) {
    if (message.nlmsg_type == RTM_NEWLINK) note(parse_link(message), changes);
  });
}

Status LinuxSwitch::read_link_notices(std::vector<CarrierChange>& changes) {
  const Status heard = link_notices_.receive(false, [&](const nlmsghdr& message) {
    if (message.nlmsg_type == RTM_NEWLINK || message.nlmsg_type == RTM_DELLINK)
      note(parse_link(message), changes);
    return true;
  });
  if (!heard && heard.error().code != Code::kExhausted) return heard;
  if (!heard) has_lost_notices_ = true;
  if (!has_lost_notices_) return {};
  // Those still waiting are older than what is read now.
  REGATTA_TRY_DO(discard_notices(link_notices_));
  const Status read = read_links(changes);
  has_lost_notices_ = !read;
  return read;
}

Status LinuxSwitch::read_route_notices() {
  const Status heard = route_notices_.receive(false, [&](const nlmsghdr& message) {
    if (message.nlmsg_pid != routes_.port_id() && is_single_main_route(message))
      has_foreign_change_ = true;
    return true;
  });
  if (heard || heard.error().code != Code::kExhausted) return heard;
  has_foreign_change_ = true;
  return discard_notices(route_notices_);
}

Status LinuxSwitch::read_notices(std::vector<CarrierChange>& changes) {
  const Status links = read_link_notices(changes);
  const Status routes = read_route_notices();
  return links ? routes : links;
}

Status LinuxSwitch::read_routes(const std::function<void(const Route&)>& handle) {
  return routes_.dump(RTM_GETROUTE, [&](const nlmsghdr& message) {
    const auto route = parse_route(message);
    if (!route) return;
    Route found{.destination = route->destination, .protocol = route->protocol, .parts = {}};
    found.parts.emplace();
    for (const KernelHop& hop : route->hops) {
      const Port* const port = port_of(hop.interface);
      if (port == nullptr) {
        found.parts.reset();
        break;
      }
      found.parts->push_back({hop_of(*port), hop.weight});
    }
    handle(found);
  });
}

std::vector<std::uint32_t> LinuxSwitch::hops_off() const {
  std::vector<std::uint32_t> hops;
  for (const Port& port : ports_)
    if (!port.on || !port.carrier) hops.push_back(hop_of(port));
  return hops;
}

KernelRoute LinuxSwitch::kernel_route(const RouteChange& change) const {
  KernelRoute route;
  for (const Part& part : change.parts) {
    const LinkId link{static_cast<int>(part.hop / 2)};
    const Port& port = port_of(link);
    const bool is_at_b = graph_->links[link.index()].a == node_;  // the gateway
    if (port.on)
      route.hops.push_back({port.interface, topo::address_of(link, is_at_b), part.weight});
  }
  return route;
}

Status LinuxSwitch::send_block(const std::string& block) {
  REGATTA_TRY_DO(routes_.send(block));
  awaited_.push_back(sequence_);
  return {};
}

Status LinuxSwitch::send_routes(std::span<const RouteChange> changes,
                                const LeafAddresses& addresses, std::uint8_t table) {
  std::vector<KernelRoute> routes;
  for (const RouteChange& change : changes) {
    KernelRoute route = kernel_route(change);
    if (route.hops.empty()) continue;
    for (const std::uint32_t address : addresses[change.leaf.index()]) {
      route.destination = address;
      routes.push_back(route);
    }
  }
  std::string block;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    const bool ends = i + 1 == routes.size() || block.size() > kBlockBytes;
    append_route(block, routes[i], ++sequence_, ends, table);
    if (!ends) continue;
    REGATTA_TRY_DO(send_block(block));
    block.clear();
  }
  return {};
}

Status LinuxSwitch::remove_routes(std::span<const NodeId> leaves, const LeafAddresses& addresses,
                                  std::uint8_t table) {
  Status first;
  std::string block;
  std::size_t removals = 0;
  const auto send = [&] {
    const Status sent = send_block(std::exchange(block, {}));
    const Status removed = sent ? await(ESRCH) : sent;  // there is none
    if (first) first = removed;
    removals = 0;
  };
  for (const NodeId leaf : leaves)
    for (const std::uint32_t address : addresses[leaf.index()]) {
      append_route_removal(block, address, ++sequence_, table);
      if (++removals == kRemovalsAtOnce) send();
    }
  if (removals > 0) send();
  return first;
}

Status LinuxSwitch::add_rule(std::uint8_t tos, std::uint8_t table) {
  std::string message;
  append_rule(message, tos, table, ++sequence_);
  const Status made = ask(message);
  if (!made && made.error().code == Code::kConflict) return {};
  return made;
}

Status LinuxSwitch::remove_rules(std::uint8_t tos, std::uint8_t table) {
  for (;;) {
    std::string message;
    append_rule_removal(message, tos, table, ++sequence_);
    const Status removed = ask(message);
    if (!removed && removed.error().code == Code::kNotFound) return {};
    REGATTA_TRY_DO(removed);
  }
}

Status LinuxSwitch::ask(const std::string& message) {
  REGATTA_TRY_DO(send_block(message));
  return await();
}

// Failures are told for each message, success for the last one of a block.
Status LinuxSwitch::await(int expected) {
  int failure = 0;
  while (!awaited_.empty()) {
    Status status = routes_.receive(true, [&](const nlmsghdr& message) {
      if (message.nlmsg_type != NLMSG_ERROR) return true;
      const auto* answer = static_cast<const nlmsgerr*>(NLMSG_DATA(&message));
      const bool is_failure = answer->error != 0 && -answer->error != expected;
      if (is_failure && failure == 0) failure = -answer->error;
      if (message.nlmsg_seq == awaited_.front()) awaited_.erase(awaited_.begin());
      return !awaited_.empty();
    });
    if (!status) {
      awaited_.clear();
      return status;
    }
  }
  if (failure == 0) return {};
  return os::errno_error(fmt::format("routes of switch {}", graph_->nodes[node_.index()].name),
                         failure);
}

}  // namespace regatta::heal
