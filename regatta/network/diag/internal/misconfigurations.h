// diag/internal/misconfigurations.h: cables that are plugged in at each other's ports and addresses
// that two servers have, from what ports hear of their neighbors and what servers say of
// themselves. The losses behind them are explained: they accuse no link or switch. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/internal/unsettled_routes.h"
#include "regatta/network/diag/observation.h"

namespace regatta::diag {

class Misconfigurations {
 public:
  explicit Misconfigurations(const topo::Graph& graph);

  // `settled`: the last window in which packets may still suffer from what has been corrected.
  // Ignores ports that no cable has.
  void add(const HeardPort& port, Window settled);
  void add(const ServerAddresses& addresses, Window settled);

  // One for each two swapped cables and for each address of two servers, without times. Each two
  // neighbors of more cables that are swapped in a ring.
  std::vector<FaultVerdict> verdicts() const;
  // Whether a path over these directed links crosses a swapped cable or ends at a NIC whose address
  // two servers have.
  bool is_affected(std::span<const std::uint32_t> links) const;
  // The last window in which packets over these directed links may still suffer: from what was
  // corrected, and from switches that spread their flows anew while cables are exchanged. -1: none.
  Window unsure_until(std::span<const std::uint32_t> links) const {
    return unsettled_.until(links);
  }

 private:
  void evaluate(Window settled);
  void note_changes(const std::vector<bool>& was_affected, Window settled);
  void find_swaps();
  void find_conflicts();
  void find_conflicts_of(NodeId server);

  const topo::Graph& graph_;
  std::vector<PortNumber> heard_;           // by port: the port at its other end
  std::vector<ServerAddresses> addresses_;  // by node
  std::vector<Culprit> culprits_;           // ascending
  std::vector<bool> is_affected_;           // per cable
  UnsettledRoutes unsettled_;               // after changes
};

}  // namespace regatta::diag
