#include "regatta/network/diag/internal/carrier_states.h"

#include <algorithm>

namespace regatta::diag {

CarrierStates::CarrierStates(const topo::Graph& graph)
    : graph_(graph),
      lost_by_(graph.links.size()),
      missing_links_(graph.nodes.size()),
      unsettled_(graph) {}

void CarrierStates::add(const CarrierEvent& event, Window routes_back) {
  const std::size_t link = event.link.index();
  const bool was_up = !has_no_carrier(link);
  lost_by_[link].set(static_cast<std::size_t>(event.source), !event.up);
  const bool is_up = !has_no_carrier(link);
  if (is_up == was_up) return;
  if (is_up) unsettled_.add_cable(event.link, routes_back);
  const topo::Link& cable = graph_.links[link];
  if (cable.a_nic >= 0) return;
  for (const NodeId end : {cable.a, cable.b})
    missing_links_[end.index()] += is_up ? -1 : 1;
  if (is_up) unsettled_.add_ends(event.link, routes_back);
}

std::vector<FaultVerdict> CarrierStates::verdicts() const {
  std::vector<FaultVerdict> found;
  for (std::size_t i = 0; i < lost_by_.size(); ++i)
    if (has_no_carrier(i))
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
    return has_no_carrier(link / 2) || missing_links_[cable.a.index()] > 0 ||
           missing_links_[cable.b.index()] > 0;
  });
}

}  // namespace regatta::diag
