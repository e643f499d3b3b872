// probe/internal/connection_losses.h: requests the segments of the connections of servers, each
// server's every two seconds and those of some more often while probes are lost, and evaluates the
// retransmits. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/locator.h"
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
  // Adds the requests that are due to all servers, spread over time: of each one every two seconds.
  void request_all(Seconds now, std::vector<EvidenceRequest>& requests);
  // The purpose for which an answer of this server was requested; it is no longer awaited.
  enum class Purpose : std::uint8_t {
    kNone,       // was not requested
    kSuspicion,  // counts for totals() only
    kVerdict,    // because probes are lost
  };
  Purpose consume_request(NodeId server);
  // Notes an answer that is not evaluated: the next one is about what was sent since.
  void skip(NodeId server, Seconds now) { servers_[server.index()].counted_at = now; }
  // Leaves out connections over links of `is_broken` (per directed link), which a healer may have
  // rerouted, and counts that began before the server was suspected.
  std::vector<diag::PassiveCount> evaluate(NodeId server, const FlowCounts& counts,
                                           const std::vector<bool>& is_broken, Seconds now);
  void forget_before(Seconds oldest);
  // By connection: what it sent since `since`. Leaves out connections over links of `is_broken`.
  std::vector<diag::ConnectionLoss> totals(const std::vector<bool>& is_broken, Seconds since) const;
  // Adds the segments since `since` over the links of `is_its` (per directed link), and of others.
  void add_to(CollectedEvidence& sum, const std::vector<bool>& is_its, Seconds since) const;

 private:
  struct RecentFlow {
    Seconds from;  // the last count before it
    Seconds at;
    fabric::FiveTuple flow;
    std::vector<std::uint32_t> links;
    std::size_t there = 0;  // how many of them lead there
    std::uint32_t segments = 0;
    std::uint32_t again = 0;
  };

  struct Server {
    Purpose requested = Purpose::kNone;
    // From when on its next answer counts: its last answer, or the first request, which a prober
    // does not answer.
    Seconds counted_at{-1e9};
    Seconds suspected_since{-1e9};  // losses of probes since then, without a long pause
    Seconds suspected_at{-1e9};     // the last of these
  };
  struct RoundTripPath {
    std::vector<std::uint32_t> links;
    std::size_t there = 0;  // how many of them lead there
  };
  std::optional<RoundTripPath> round_trip(NodeId server, const fabric::FiveTuple& flow) const;
  double usual_share() const;

  const topo::Graph& graph_;
  const fabric::Routes& routes_;
  std::span<const std::uint32_t> seeds_;
  Seconds next_request_{-1e9};
  Seconds pause_;
  std::deque<RecentFlow> flows_;
  double usual_share_;           // of retransmits; half of all connections stay below
  std::vector<Server> servers_;  // by node
  Seconds next_turn_{-1e9};      // of some servers, of request_all()
  std::size_t turn_ = 0;
};

}  // namespace regatta::probe
