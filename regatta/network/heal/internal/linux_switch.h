// heal/internal/linux_switch.h: one switch that is a network namespace of this machine: its ports,
// its routes and the notices of its kernel, by rtnetlink.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/heal/internal/route_messages.h"
#include "regatta/network/heal/internal/route_socket.h"
#include "regatta/network/heal/internal/switches.h"

namespace regatta::heal {

// Addresses of the NICs below each leaf, per node: the destinations of routes to it.
using LeafAddresses = std::vector<std::vector<std::uint32_t>>;

class LinuxSwitch {
 public:
  // Visits the namespace for a moment. Expects the addresses of topo/addresses.h at the ends of the
  // node's links; kNotFound names a link without one. `graph` must outlive this.
  static Result<LinuxSwitch> open(const topo::Graph& graph, NodeId node, const os::UniqueFd& space);

  NodeId node() const { return node_; }
  // Readable when read_notices() has work: notices of links, and of routes.
  std::array<int, 2> notices_fds() const { return {link_notices_.fd(), route_notices_.fd()}; }

  // Appends the changes of carriers that were heard, also when it fails: the kernel tells each only
  // once. Where notices were lost, the state of all links is read instead.
  Status read_notices(std::vector<CarrierChange>& changes);
  // Whether read_notices() could not make good for lost notices, and has to be called again.
  bool has_lost_notices() const { return has_lost_notices_; }
  // Whether another process has changed a route to a single address in the main table since the
  // last call, or may have.
  bool consume_foreign_change() { return std::exchange(has_foreign_change_, false); }
  // Carriers as they are now: appends those that differ from what was known.
  Status read_links(std::vector<CarrierChange>& changes);

  // Calls `handle` for each route to a single address in the main table, without those of a metric
  // or a type of service. No parts: a hop leaves by an interface that is none of the ports.
  // `protocol`: RTPROT_* of the program that installed it.
  struct Route {
    std::uint32_t destination = 0;
    std::uint8_t protocol = 0;
    std::optional<std::vector<Part>> parts;
  };
  Status read_routes(const std::function<void(const Route&)>& handle);
  // Links, by direction away from this switch, whose interface is off or has no carrier.
  std::vector<std::uint32_t> hops_off() const;

  // Sends the routes without waiting for answers. Hops whose interface is off are left out.
  Status send_routes(std::span<const RouteChange> changes, const LeafAddresses& addresses,
                     std::uint8_t table);
  // Removes all routes of a table that this node may have, and waits.
  Status remove_routes(std::span<const NodeId> leaves, const LeafAddresses& addresses,
                       std::uint8_t table);
  // A rule by which packets of this type of service use `table` first. Waits; success when the
  // rule is there, or is not there, already.
  Status add_rule(std::uint8_t tos, std::uint8_t table);
  Status remove_rules(std::uint8_t tos, std::uint8_t table);
  // Waits for the answers to all that was sent. The first failure, apart from the errno `expected`.
  Status await(int expected = 0);

 private:
  struct Port {
    LinkId link;
    int interface = 0;
    bool on = true;
    bool carrier = true;
  };
  LinuxSwitch(const topo::Graph& graph, NodeId node, RouteSocket routes, RouteSocket link_notices,
              RouteSocket route_notices)
      : graph_(&graph),
        node_(node),
        routes_(std::move(routes)),
        link_notices_(std::move(link_notices)),
        route_notices_(std::move(route_notices)) {}
  Status read_link_notices(std::vector<CarrierChange>& changes);
  Status read_route_notices();
  Port* port_of(int interface);
  const Port& port_of(LinkId link) const;
  std::uint32_t hop_of(const Port& port) const;
  KernelRoute kernel_route(const RouteChange& change) const;
  void note(const KernelLink& now, std::vector<CarrierChange>& changes);
  Status send_block(const std::string& block);
  Status ask(const std::string& message);

  const topo::Graph* graph_;
  NodeId node_;
  RouteSocket routes_;
  // Apart, so that many changes of routes, the healer's own too, displace no notice of a link.
  RouteSocket link_notices_;
  RouteSocket route_notices_;
  std::vector<Port> ports_;             // as in links_of
  std::vector<std::uint32_t> awaited_;  // the last message of each block that waits for an answer
  std::uint32_t sequence_ = 0;
  bool has_lost_notices_ = false;
  bool has_foreign_change_ = false;
};

}  // namespace regatta::heal
