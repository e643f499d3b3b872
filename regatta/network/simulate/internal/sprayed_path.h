// simulate/internal/sprayed_path.h: the share of each byte on each link from one leaf to another
// where switches spray packets evenly over all next hops.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/simulate/simulated_network.h"

namespace regatta::simulate {

struct SprayedPath {
  std::vector<std::uint32_t> links;
  std::vector<double> amounts;  // beside links: of each byte
  double latency = 0;           // seconds: of the slowest link of each hop
};

class SprayedPathFinder {
 public:
  // `network` outlives it.
  explicit SprayedPathFinder(const SimulatedNetwork& network);

  // Writes the path to `into`, whose memory is reused. False: no path joins the leaves, and `into`
  // is invalid.
  bool find(const fabric::Routes& routes, NodeId from, NodeId to, SprayedPath& into);

 private:
  bool step(const fabric::Routes& routes, NodeId to, SprayedPath& into);

  const SimulatedNetwork& network_;
  std::vector<double> of_link_;  // of each byte; 0 where `into` does not have it
  std::vector<double> at_node_;
  std::vector<NodeId> nodes_;  // where some of it is, in order
  std::vector<NodeId> next_;
};

}  // namespace regatta::simulate
