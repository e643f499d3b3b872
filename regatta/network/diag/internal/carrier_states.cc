#include "regatta/network/diag/internal/carrier_states.h"

#include <algorithm>

namespace regatta::diag {

CarrierStates::CarrierStates(const topo::Graph& graph)
    : graph_(graph),
      has_no_carrier_(graph.links.size()),
      missing_links_(graph.nodes.size()),
      unsettled_(graph) {}

void CarrierStates::add(const CarrierEvent& event, Window routes_back) {
  const std::size_t link = event.link.index();
  if (has_no_carrier_[link] == !event.up) return;
  has_no_carrier_[link] = !event.up;
  if (event.up) unsettled_.add_cable(event.link, routes_back);
  const topo::Link& cable = graph_.links[link];
  if (cable.a_nic >= 0) return;
  for (const NodeId end : {cable.a, cable.b})
    missing_links_[end.index()] += event.up ? -1 : 1;
  if (event.up) unsettled_.add_ends(event.link, routes_back);
}

std::vector<FaultVerdict> CarrierStates::verdicts() const {
  std::vector<FaultVerdict> found;
  for (std::size_t i = 0; i < has_no_carrier_.size(); ++i)
    if (has_no_carrier_[i])
      found.push_back({.culprit = cable_culprit(graph_, LinkId{static_cast<int>(i)}),
                       .symptom = Symptom::kNoCarrier,
                       .loss_share = 1,
                       .evidence = {},
                       .confidence = 1,
                       .since = {},
                       .at = {},
                       .alternatives = {}});
  return found;
}

bool CarrierStates::is_rerouted(std::span<const std::uint32_t> links) const {
  return std::ranges::any_of(links, [&](std::uint32_t link) {
    const topo::Link& cable = graph_.links[link / 2];
    return has_no_carrier_[link / 2] || missing_links_[cable.a.index()] > 0 ||
           missing_links_[cable.b.index()] > 0;
  });
}

}  // namespace regatta::diag
