#include "regatta/network/diag/internal/unsettled_routes.h"

#include <algorithm>

namespace regatta::diag {

UnsettledRoutes::UnsettledRoutes(const topo::Graph& graph)
    : graph_(graph), cables_(graph.links.size(), -1), nodes_(graph.nodes.size(), -1) {}

void UnsettledRoutes::add_cable(LinkId cable, Window last) {
  cables_[cable.index()] = last;
}

void UnsettledRoutes::add_ends(LinkId cable, Window last) {
  const topo::Link& link = graph_.links[cable.index()];
  for (const NodeId end : {link.a, link.b})
    nodes_[end.index()] = last;
}

Window UnsettledRoutes::until(std::span<const std::uint32_t> links) const {
  Window last = -1;
  for (const std::uint32_t link : links) {
    const topo::Link& cable = graph_.links[link / 2];
    last = std::max({last, cables_[link / 2], nodes_[cable.a.index()], nodes_[cable.b.index()]});
  }
  return last;
}

}  // namespace regatta::diag
