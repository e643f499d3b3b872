#include "regatta/network/heal/internal/linux_switches.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <linux/rtnetlink.h>
#include <sys/epoll.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/heal/internal/route_messages.h"
#include "regatta/network/heal/internal/route_socket.h"

namespace regatta::heal {
namespace {

constexpr std::size_t kBlockBytes = 32768;  // well below what a socket takes at once
constexpr std::uint8_t kProbeTable = 77;

}  // namespace

struct LinuxSwitches::Switch {
  NodeId node;
  RouteSocket routes;
  RouteSocket notices;
  struct Port {
    LinkId link;
    int interface = 0;
    bool on = true;
    bool carrier = true;
  };
  std::vector<Port> ports;           // as in links_of
  std::vector<std::uint32_t> asked;  // the last message of each block that waits for an answer
  std::uint32_t sequence = 0;
  bool has_lost_notices = false;

  Port* port_of(int interface) {
    const auto found = std::ranges::find(ports, interface, &Port::interface);
    return found == ports.end() ? nullptr : &*found;
  }
  const Port& port_of(LinkId link) const { return *std::ranges::find(ports, link, &Port::link); }

  // None where a hop leaves by an interface that is none of these ports.
  std::optional<std::vector<Part>> parts_of(const topo::Graph& graph, const KernelRoute& route) {
    std::vector<Part> parts;
    for (const KernelHop& hop : route.hops) {
      const Port* const port = port_of(hop.interface);
      if (port == nullptr) return std::nullopt;
      const bool forward = graph.links[port->link.index()].a == node;
      parts.push_back({fabric::number_of({port->link, forward}), hop.weight});
    }
    return parts;
  }

  void note(const KernelLink& now, std::vector<CarrierChange>& changes) {
    Port* const port = port_of(now.interface);
    if (port == nullptr) return;
    if (port->carrier != now.carrier) changes.push_back({node, port->link, now.carrier});
    port->on = now.on;
    port->carrier = now.carrier;
  }
};

LinuxSwitches::LinuxSwitches(const topo::Graph& graph, const FabricPaths& paths)
    : graph_(graph),
      paths_(paths),
      of_node_(graph.nodes.size(), nullptr),
      addresses_of_(graph.nodes.size()) {
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    if (graph.links[i].a_nic >= 0)
      addresses_of_[graph.links[i].b.index()].push_back(
          topo::address_of(LinkId{static_cast<int>(i)}));
  }
}

LinuxSwitches::~LinuxSwitches() = default;

Result<std::unique_ptr<LinuxSwitches>> LinuxSwitches::open(const topo::Graph& graph,
                                                           const FabricPaths& paths,
                                                           std::vector<SwitchSpace> spaces) {
  std::unique_ptr<LinuxSwitches> all(new LinuxSwitches(graph, paths));
  all->epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!all->epoll_) return os::errno_error("epoll");
  for (SwitchSpace& space : spaces)
    REGATTA_TRY_DO(all->add(std::move(space)));
  return all;
}

Status LinuxSwitches::add(SwitchSpace space) {
  const std::string& name = graph_.nodes[space.node.index()].name;
  REGATTA_TRY(routes, RouteSocket::open(space.space, 0));
  REGATTA_TRY(notices, RouteSocket::open(space.space, RTMGRP_LINK));
  auto one = std::make_unique<Switch>(
      Switch{space.node, std::move(routes), std::move(notices), {}, {}, 0, false});
  std::map<std::uint32_t, int> interfaces;
  REGATTA_TRY_DO(one->routes.dump(RTM_GETADDR, [&](const nlmsghdr& message) {
    if (const auto found = parse_address(message)) interfaces[found->address] = found->interface;
  }));
  for (const LinkId link : graph_.links_of[space.node.index()]) {
    const std::uint32_t address =
        topo::address_of(link, graph_.links[link.index()].b == space.node);
    const auto found = interfaces.find(address);
    if (found == interfaces.end()) {
      return Error{Code::kNotFound,
                   fmt::format("switch {}: no interface has the address {} of link {}; is this the "
                               "fabric that was described",
                               name, topo::address_text(address), graph_.links[link.index()].name)};
    }
    one->ports.push_back({link, found->second, true, true});
  }
  REGATTA_TRY_DO(learn_links(*one, first_));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = one.get();
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, one->notices.fd(), &event) != 0)
    return os::errno_error("epoll");
  of_node_[space.node.index()] = one.get();
  switches_.push_back(std::move(one));
  return {};
}

// As they are now: at the start, and after notices were lost.
Status LinuxSwitches::learn_links(Switch& one, std::vector<CarrierChange>& changes) {
  return one.routes.dump(RTM_GETLINK, [&](const nlmsghdr& message) {
    if (message.nlmsg_type == RTM_NEWLINK) one.note(parse_link(message), changes);
  });
}

Result<std::vector<Installed>> LinuxSwitches::installed() {
  std::map<std::uint32_t, NodeId> leaf_of;
  for (const NodeId leaf : paths_.routes.leaves())
    for (const std::uint32_t address : addresses_of_[leaf.index()])
      leaf_of[address] = leaf;
  std::vector<Installed> all;
  for (const auto& one : switches_) {
    // Per leaf: the parts, and for how many of its addresses they are so.
    std::map<NodeId, std::pair<std::optional<std::vector<Part>>, std::size_t>> found;
    REGATTA_TRY_DO(one->routes.dump(RTM_GETROUTE, [&](const nlmsghdr& message) {
      const auto route = parse_route(message);
      const auto leaf = route ? leaf_of.find(route->destination) : leaf_of.end();
      if (leaf == leaf_of.end()) return;
      const auto parts = one->parts_of(graph_, *route);
      if (!parts) return;
      auto& [known, count] = found[leaf->second];
      if (!known) known = parts;
      if (known == parts) ++count;
    }));
    for (const NodeId leaf : paths_.routes.leaves()) {
      if (paths_.routes.next_hops(one->node, leaf).empty()) continue;
      const auto& [known, count] = found[leaf];
      const bool is_whole = known && count == addresses_of_[leaf.index()].size();
      all.push_back({one->node, leaf, is_whole ? *known : std::vector<Part>()});
    }
  }
  return all;
}

Status LinuxSwitches::send(Switch& one, std::span<const RouteChange> changes, std::uint8_t table) {
  std::vector<KernelRoute> routes;
  for (const RouteChange& change : changes) {
    KernelRoute route;
    for (const Part& part : change.parts) {
      const LinkId link{static_cast<int>(part.hop / 2)};
      const Switch::Port& port = one.port_of(link);
      const bool is_at_b = graph_.links[link.index()].a == one.node;  // the gateway
      if (port.on)
        route.hops.push_back({port.interface, topo::address_of(link, is_at_b), part.weight});
    }
    if (route.hops.empty()) continue;
    for (const std::uint32_t address : addresses_of_[change.leaf.index()]) {
      route.destination = address;
      routes.push_back(route);
    }
  }
  std::string block;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    const bool ends = i + 1 == routes.size() || block.size() > kBlockBytes;
    append_route(block, routes[i], ++one.sequence, ends, table);
    if (!ends) continue;
    REGATTA_TRY_DO(one.routes.send(block));
    one.asked.push_back(one.sequence);
    block.clear();
  }
  return {};
}

// Failures are told for each message, success for the last one of a block.
Status LinuxSwitches::await(Switch& one) {
  int failure = 0;
  while (!one.asked.empty()) {
    Status status = one.routes.receive(true, [&](const nlmsghdr& message) {
      if (message.nlmsg_type != NLMSG_ERROR) return true;
      const auto* answer = static_cast<const nlmsgerr*>(NLMSG_DATA(&message));
      if (answer->error != 0 && failure == 0) failure = -answer->error;
      if (message.nlmsg_seq == one.asked.front()) one.asked.erase(one.asked.begin());
      return !one.asked.empty();
    });
    if (!status) {
      one.asked.clear();
      return status;
    }
  }
  if (failure == 0) return {};
  return os::errno_error(fmt::format("routes of switch {}", graph_.nodes[one.node.index()].name),
                         failure);
}

Status LinuxSwitches::apply(std::span<const RouteChange> changes) {
  std::map<NodeId, std::vector<RouteChange>> by_node;
  std::vector<NodeId> order;
  for (const RouteChange& change : changes) {
    if (of_node_[change.node.index()] == nullptr) continue;
    auto& of_node = by_node[change.node];
    if (of_node.empty()) order.push_back(change.node);
    of_node.push_back(change);
  }
  Status first;
  const auto keep = [&first](const Status& status) {
    if (first && !status) first = status;
  };
  for (const NodeId node : order)
    keep(send(*of_node_[node.index()], by_node[node], RT_TABLE_MAIN));
  for (const NodeId node : order)
    keep(await(*of_node_[node.index()]));
  return first;
}

Status LinuxSwitches::keep_probe_paths() {
  keeps_probe_paths_ = true;
  for (const auto& one : switches_) {
    std::string rule;
    append_rule(rule, topo::kProbeTos, kProbeTable, ++one->sequence);
    REGATTA_TRY_DO(one->routes.send(rule));
    one->asked.push_back(one->sequence);
    // A healer before may have made it.
    Status made = await(*one);
    if (!made && made.error().code != Code::kConflict) return made;
    std::vector<RouteChange> routes;
    for (const NodeId leaf : paths_.routes.leaves()) {
      const auto hops = paths_.routes.next_hops(one->node, leaf);
      if (!hops.empty()) routes.push_back({one->node, leaf, even_parts(hops), {}, {}});
    }
    REGATTA_TRY_DO(send(*one, routes, kProbeTable));
    REGATTA_TRY_DO(await(*one));
  }
  return {};
}

// The kernel forgot those through an interface that was off.
Status LinuxSwitches::restore_probe_paths(const CarrierChange& change) {
  Switch& one = *of_node_[change.node.index()];
  const bool forward = graph_.links[change.link.index()].a == change.node;
  const std::uint32_t link = fabric::number_of({change.link, forward});
  std::vector<RouteChange> routes;
  for (const NodeId leaf : paths_.routes.leaves()) {
    const auto hops = paths_.routes.next_hops(change.node, leaf);
    if (std::ranges::find(hops, link) != hops.end())
      routes.push_back({change.node, leaf, even_parts(hops), {}, {}});
  }
  REGATTA_TRY_DO(send(one, routes, kProbeTable));
  return await(one);
}

// `changes` gets all that was heard, also when this fails: a switch tells each only once.
Status LinuxSwitches::read_carriers(std::vector<CarrierChange>& changes) {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  if (count < 0 && errno != EINTR) return os::errno_error("epoll");
  Status first;
  for (int i = 0; i < count; ++i) {
    Switch& one = *static_cast<Switch*>(at(events, i).data.ptr);
    const Status status = one.notices.receive(false, [&](const nlmsghdr& message) {
      if (message.nlmsg_type == RTM_NEWLINK || message.nlmsg_type == RTM_DELLINK)
        one.note(parse_link(message), changes);
      return true;
    });
    if (!status && status.error().code == Code::kExhausted) one.has_lost_notices = true;
    if (!status && status.error().code != Code::kExhausted && first) first = status;
  }
  for (const auto& one : switches_) {
    if (!one->has_lost_notices) continue;
    const Status learnt = learn_links(*one, changes);
    one->has_lost_notices = !learnt;
    if (!learnt && first) first = learnt;
  }
  return first;
}

void LinuxSwitches::restore_all() {
  std::erase_if(unrestored_, [this](const CarrierChange& change) {
    const Status done = restore_probe_paths(change);
    if (!done && restored_) restored_ = done;
    return done.has_value();
  });
}

Result<std::vector<CarrierChange>> LinuxSwitches::carriers() {
  // Told apart from the changes, which count whatever becomes of the probes' paths.
  if (!restored_) return std::exchange(restored_, {}).error();
  REGATTA_TRY_DO(read_carriers(first_));
  std::vector<CarrierChange> changes = std::exchange(first_, {});
  for (const CarrierChange& change : changes) {
    std::erase_if(unrestored_, [&](const CarrierChange& older) {
      return older.node == change.node && older.link == change.link;
    });
    if (change.up && keeps_probe_paths_) unrestored_.push_back(change);
  }
  restore_all();
  return changes;
}

int LinuxSwitches::fd() const {
  return epoll_.get();
}

}  // namespace regatta::heal
