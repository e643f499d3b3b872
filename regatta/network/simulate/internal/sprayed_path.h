// simulate/internal/sprayed_path.h: the share of each byte on each link from one leaf to another
// where switches spray packets evenly over all next hops. Packets sent over a dead link are lost
// and sent again, so that more than a byte is sent for each that arrives.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/simulate/simulated_network.h"

namespace regatta::simulate {

struct SprayedPath {
  std::vector<std::uint32_t> links;
  std::vector<double> amounts;  // beside links: for each byte that arrives
  double sent = 1;              // bytes for each that arrives
  double latency = 0;           // seconds: of the slowest link of each hop
};

class SprayedPathFinder {
 public:
  // `network` outlives it.
  explicit SprayedPathFinder(const SimulatedNetwork& network);

  // Links, by cable, that lose all packets from now on although routes may lead over them.
  void set_dead(std::vector<bool> is_dead) { is_dead_ = std::move(is_dead); }
  // Writes the path to `into`, whose memory is reused. False: no packet gets from leaf to leaf, and
  // `into` is invalid.
  bool find(const fabric::Routes& routes, NodeId from, NodeId to, SprayedPath& into);

 private:
  bool step(const fabric::Routes& routes, NodeId to, SprayedPath& into);

  bool is_dead(std::uint32_t link) const { return !is_dead_.empty() && is_dead_[link / 2]; }

  const SimulatedNetwork& network_;
  std::vector<bool> is_dead_;    // by cable; empty: none
  std::vector<double> of_link_;  // of each byte; 0 where `into` does not have it
  std::vector<double> at_node_;
  std::vector<NodeId> nodes_;  // where some of it is, in order
  std::vector<NodeId> next_;
};

}  // namespace regatta::simulate
