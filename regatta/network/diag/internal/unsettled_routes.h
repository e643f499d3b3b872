// diag/internal/unsettled_routes.h: until which window the routes over each link may not be settled
// after a change of a cable: those over the cable, and those of the switches at its ends, which
// spread their flows anew. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/observation.h"

namespace regatta::diag {

class UnsettledRoutes {
 public:
  // The graph must outlive this.
  explicit UnsettledRoutes(const topo::Graph& graph);

  // Until `last`, the last such window: over the cable itself; at both of its ends.
  void add_cable(LinkId cable, Window last);
  void add_ends(LinkId cable, Window last);

  // The last such window for packets over these directed links; -1: none.
  Window until(std::span<const std::uint32_t> links) const;

 private:
  const topo::Graph& graph_;
  std::vector<Window> cables_;  // by link
  std::vector<Window> nodes_;
};

}  // namespace regatta::diag
