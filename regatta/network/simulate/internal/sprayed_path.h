// simulate/internal/sprayed_path.h: what crosses which links from one leaf to another where each
// switch spreads its packets evenly over all next hops.
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
  // It must outlive this.
  explicit SprayedPathFinder(const SimulatedNetwork& network);

  // False where no path leads from one leaf to the other; `into` makes no sense then. Its memory is
  // used again.
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
