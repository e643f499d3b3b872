// diag/internal/carrier_states.h: cables without a carrier, and the paths that switches route
// around them. Pure.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/internal/unsettled_routes.h"
#include "regatta/network/diag/observation.h"

namespace regatta::diag {

class CarrierStates {
 public:
  explicit CarrierStates(const topo::Graph& graph);

  // `routes_back`: the last window in which the routes may not be back, when the carrier is.
  void add(const CarrierEvent& event, Window routes_back);

  // One for each cable without a carrier, without times.
  std::vector<FaultVerdict> verdicts() const;
  // Whether packets planned over these directed links may take another path: a switch spreads its
  // flows over the links that are left.
  bool is_rerouted(std::span<const std::uint32_t> links) const;
  // The last window in which the routes over these directed links may not have been back; -1: none.
  Window unsure_until(std::span<const std::uint32_t> links) const {
    return unsettled_.until(links);
  }

 private:
  const topo::Graph& graph_;
  bool has_no_carrier(std::size_t link) const { return lost_by_[link].any(); }

  std::vector<std::bitset<kCarrierSources>> lost_by_;  // per link: the sources that say so
  std::vector<int> missing_links_;  // per switch: its cables to switches without a carrier
  UnsettledRoutes unsettled_;       // until the routes over a returned cable are back
};

}  // namespace regatta::diag
