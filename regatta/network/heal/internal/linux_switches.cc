#include "regatta/network/heal/internal/linux_switches.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include <linux/rtnetlink.h>
#include <sys/epoll.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::heal {
namespace {

constexpr std::uint8_t kProbeTable = 77;

// The addresses of one leaf's NICs, as one switch routes them.
struct FoundRoute {
  std::optional<std::vector<Part>> parts;  // of the first
  std::size_t found = 0;                   // addresses with a route
  std::size_t alike = 0;                   // addresses with these parts
  std::uint8_t protocol = RTPROT_STATIC;   // of one that this healer did not install, if any
};

}  // namespace

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
  REGATTA_TRY(opened, LinuxSwitch::open(graph_, space.node, space.space));
  auto one = std::make_unique<LinuxSwitch>(std::move(opened));
  REGATTA_TRY_DO(one->read_links(first_));
  for (const int fd : one->notices_fds()) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = one.get();
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return os::errno_error("epoll");
  }
  of_node_[space.node.index()] = one.get();
  switches_.push_back(std::move(one));
  return {};
}

Result<std::vector<Installed>> LinuxSwitches::installed() {
  std::map<std::uint32_t, NodeId> leaf_of;
  for (const NodeId leaf : paths_.routes.leaves())
    for (const std::uint32_t address : addresses_of_[leaf.index()])
      leaf_of[address] = leaf;
  std::vector<Installed> all;
  for (const auto& one : switches_) {
    waits();
    std::map<NodeId, FoundRoute> found;
    REGATTA_TRY_DO(one->read_routes([&](const LinuxSwitch::Route& route) {
      const auto leaf = leaf_of.find(route.destination);
      if (leaf == leaf_of.end()) return;
      FoundRoute& known = found[leaf->second];
      ++known.found;
      if (route.protocol != RTPROT_STATIC) known.protocol = route.protocol;
      if (!route.parts) return;
      if (!known.parts) known.parts = route.parts;
      if (known.parts == route.parts) ++known.alike;
    }));
    const std::vector<std::uint32_t> off = one->hops_off();
    for (const NodeId leaf : paths_.routes.leaves()) {
      if (paths_.routes.next_hops(one->node(), leaf).empty()) continue;
      const FoundRoute& known = found[leaf];
      const std::size_t addresses = addresses_of_[leaf.index()].size();
      const bool is_whole = known.parts && known.alike == addresses;
      all.push_back({.node = one->node(),
                     .leaf = leaf,
                     .parts = is_whole ? *known.parts : std::vector<Part>(),
                     .off = off,
                     .protocol = known.found == addresses ? known.protocol : std::uint8_t{0}});
    }
  }
  return all;
}

std::vector<Status> LinuxSwitches::apply(std::span<const RouteChange> changes) {
  std::map<NodeId, std::vector<RouteChange>> by_node;
  std::vector<NodeId> order;
  for (const RouteChange& change : changes) {
    if (of_node_[change.node.index()] == nullptr) continue;
    auto& of_node = by_node[change.node];
    if (of_node.empty()) order.push_back(change.node);
    of_node.push_back(change);
  }
  std::map<NodeId, Status> made;
  for (const NodeId node : order)
    made[node] = of_node_[node.index()]->send_routes(by_node[node], addresses_of_, RT_TABLE_MAIN);
  for (const NodeId node : order) {
    waits();
    const Status answer = of_node_[node.index()]->await();
    if (made[node]) made[node] = answer;
  }
  std::vector<Status> of_change;
  of_change.reserve(changes.size());
  for (const RouteChange& change : changes)
    of_change.push_back(made[change.node]);
  return of_change;
}

Status LinuxSwitches::keep_probe_paths() {
  keeps_probe_paths_ = true;
  for (const auto& one : switches_) {
    waits();
    // An earlier healer that was killed left some, and an older version one for each start.
    REGATTA_TRY_DO(one->remove_rules(topo::kProbeTos, kProbeTable));
    std::vector<RouteChange> routes;
    for (const NodeId leaf : paths_.routes.leaves()) {
      const auto hops = paths_.routes.next_hops(one->node(), leaf);
      if (!hops.empty()) routes.push_back({one->node(), leaf, even_parts(hops), {}, {}});
    }
    REGATTA_TRY_DO(one->send_routes(routes, addresses_of_, kProbeTable));
    REGATTA_TRY_DO(one->await());
    REGATTA_TRY_DO(one->add_rule(topo::kProbeTos, kProbeTable));
  }
  return {};
}

Status LinuxSwitches::remove_probe_paths() {
  keeps_probe_paths_ = false;
  Status first;
  for (const auto& one : switches_) {
    waits();
    std::vector<NodeId> leaves;
    for (const NodeId leaf : paths_.routes.leaves())
      if (!paths_.routes.next_hops(one->node(), leaf).empty()) leaves.push_back(leaf);
    Status removed = one->remove_rules(topo::kProbeTos, kProbeTable);
    if (removed) removed = one->remove_routes(leaves, addresses_of_, kProbeTable);
    if (first && !removed) first = removed;
  }
  return first;
}

// The kernel forgot those through an interface that was off.
Status LinuxSwitches::restore_probe_paths(const CarrierChange& change) {
  LinuxSwitch& one = *of_node_[change.node.index()];
  const bool forward = graph_.links[change.link.index()].a == change.node;
  const std::uint32_t link = fabric::number_of({change.link, forward});
  std::vector<RouteChange> routes;
  for (const NodeId leaf : paths_.routes.leaves()) {
    const auto hops = paths_.routes.next_hops(change.node, leaf);
    if (std::ranges::find(hops, link) != hops.end())
      routes.push_back({change.node, leaf, even_parts(hops), {}, {}});
  }
  REGATTA_TRY_DO(one.send_routes(routes, addresses_of_, kProbeTable));
  return one.await();
}

// `changes` gets all that was heard, also when this fails: a switch tells each only once.
Status LinuxSwitches::read_carriers(std::vector<CarrierChange>& changes) {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  if (count < 0 && errno != EINTR) return os::errno_error("epoll");
  Status first;
  for (int i = 0; i < count; ++i) {
    const Status status = static_cast<LinuxSwitch*>(at(events, i).data.ptr)->read_notices(changes);
    if (!status && first) first = status;
  }
  for (const auto& one : switches_) {
    if (!one->has_lost_notices()) continue;
    const Status status = one->read_notices(changes);
    if (!status && first) first = status;
  }
  return first;
}

bool LinuxSwitches::consume_foreign_change() {
  bool is_changed = false;
  for (const auto& one : switches_)
    is_changed = one->consume_foreign_change() || is_changed;
  return is_changed;
}

void LinuxSwitches::restore_all() {
  std::erase_if(unrestored_, [this](const CarrierChange& change) {
    waits();
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
