// probe/internal/connection_losses.h: requests the segments of the connections of servers while
// probes are lost, and evaluates the retransmits. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/probe/evidence.h"

namespace regatta::probe {

class ConnectionLosses {
 public:
  // As in EvidenceCollector.
  ConnectionLosses(const topo::Graph& graph, const fabric::Routes& routes,
                   std::span<const std::uint32_t> seeds);

  // Adds the requests that are due to `suspects`, the ends of lossy paths, and to a few servers
  // that lose nothing, for comparison.
  void request(std::set<NodeId> suspects, Seconds now, std::vector<EvidenceRequest>& requests);
  // Whether an answer of this server was awaited; it no longer is.
  bool consume_request(NodeId server);
  // Leaves out connections over links of `is_broken` (per directed link), which a healer may have
  // rerouted.
  std::vector<diag::PassiveCount> evaluate(NodeId server, const FlowCounts& counts,
                                           const std::vector<bool>& is_broken, Seconds now);
  void forget_before(Seconds oldest);
  // Adds the segments since `since` over the links of `is_its` (per directed link), and of others.
  void add_to(CollectedEvidence& sum, const std::vector<bool>& is_its, Seconds since) const;

 private:
  struct RecentFlow {
    Seconds at;
    std::vector<std::uint32_t> links;
    std::uint32_t segments = 0;
    std::uint32_t again = 0;
  };

  std::optional<std::vector<std::uint32_t>> round_trip(NodeId server,
                                                       const fabric::FiveTuple& flow) const;
  double usual_share() const;

  const topo::Graph& graph_;
  const fabric::Routes& routes_;
  std::span<const std::uint32_t> seeds_;
  Seconds next_request_{-1e9};
  Seconds pause_;
  std::deque<RecentFlow> flows_;
  double usual_share_;              // of retransmits; half of all connections stay below
  std::vector<bool> is_requested_;  // by node: an answer is awaited
};

}  // namespace regatta::probe
