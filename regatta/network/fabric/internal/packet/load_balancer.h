// fabric/internal/packet/load_balancer.h: chooses among equal-cost next hops where switches choose
// for each packet.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/network/fabric/internal/packet/link_queues.h"
#include "regatta/network/fabric/internal/packet/packet.h"
#include "regatta/network/fabric/internal/packet/random.h"
#include "regatta/network/fabric/packet_simulation.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::fabric::packet {

class LoadBalancer {
 public:
  LoadBalancer(const PacketNetwork& network, const PacketSetup& setup, const PacketOptions& options,
               const LinkQueues& link_queues, Random& random)
      : network_(network),
        routes_(&setup.routes),
        per_pair_(setup.pairs.connections),
        load_balancing_(options.load_balancing),
        gap_(static_cast<Picoseconds>(options.flowlet_gap.value * 1e12)),
        link_queues_(link_queues),
        random_(random) {
    if (load_balancing_ == LoadBalancing::kRoundRobin) turns_.resize(setup.graph.nodes.size());
    if (load_balancing_ == LoadBalancing::kFlowlets)
      flowlets_.resize(network.path_of.size() * kDepths);
  }

  // Whether switches choose at all; otherwise packets follow PacketNetwork::paths.
  bool is_by_packet() const {
    return load_balancing_ != LoadBalancing::kHash &&
           load_balancing_ != LoadBalancing::kConnections;
  }

  void set_routes(const Routes& routes) { routes_ = &routes; }

  // The link that a packet at `node` takes; kNone: no path leads on.
  std::uint32_t next(std::uint32_t node, const Packet& packet, Picoseconds now) {
    const PacketNetwork::Target& target = network_.targets[packet.connection / per_pair_];
    if (node == target.leaf) return target.link;
    const auto hops =
        routes_->next_hops(NodeId{static_cast<int>(node)}, NodeId{static_cast<int>(target.leaf)});
    if (hops.empty()) return kNone;
    if (hops.size() == 1) return hops.front();
    switch (load_balancing_) {
      case LoadBalancing::kRoundRobin:
        return round_robin(turns_[node], hops);
      case LoadBalancing::kShortestQueue:
        return least_loaded(hops, now);
      case LoadBalancing::kFlowlets:
        return flowlet_hop(node, hops, packet, now);
      default:
        return hops[random_.below(static_cast<std::uint32_t>(hops.size()))];
    }
  }

 private:
  static constexpr std::size_t kDepths = 8;
  struct Turn {
    std::uint32_t left = 0;  // of a round
    std::uint32_t next = 0;
  };
  struct Flowlet {
    Picoseconds last = 0;
    std::uint32_t node = kNone;
    std::uint32_t link = kNone;
  };

  // Each round begins anywhere, or senders in step would always meet the same hop.
  std::uint32_t round_robin(Turn& turn, std::span<const std::uint32_t> hops) {
    const auto count = static_cast<std::uint32_t>(hops.size());
    if (turn.left == 0) {
      turn.left = count;
      turn.next = random_.below(count);
    }
    --turn.left;
    return hops[turn.next++ % count];
  }

  std::uint32_t least_loaded(std::span<const std::uint32_t> hops, Picoseconds now) {
    const auto count = static_cast<std::uint32_t>(hops.size());
    const std::uint32_t from = random_.below(count);  // of equal ones, any
    std::uint32_t best = kNone;
    Picoseconds least = kNever;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t link = hops[from + i < count ? from + i : from + i - count];
      const Picoseconds wait = link_queues_.backlog(link, now);
      if (wait >= least) continue;
      least = wait;
      best = link;
    }
    return best;
  }

  std::uint32_t flowlet_hop(std::uint32_t node, std::span<const std::uint32_t> hops,
                            const Packet& packet, Picoseconds now) {
    const std::size_t depth = std::min<std::size_t>(packet.hops, kDepths - 1);
    Flowlet& flowlet = flowlets_[packet.connection * kDepths + depth];
    if (flowlet.node != node || now - flowlet.last >= gap_) {
      flowlet.node = node;
      flowlet.link = least_loaded(hops, now);
    }
    flowlet.last = now;
    return flowlet.link;
  }

  const PacketNetwork& network_;
  const Routes* routes_;
  const std::uint32_t per_pair_;  // connections
  const LoadBalancing load_balancing_;
  const Picoseconds gap_;
  const LinkQueues& link_queues_;
  Random& random_;
  std::vector<Turn> turns_;        // per node
  std::vector<Flowlet> flowlets_;  // per connection and links crossed
};

}  // namespace regatta::fabric::packet
