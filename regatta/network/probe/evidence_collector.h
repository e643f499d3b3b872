// probe/evidence_collector.h: requests evidence from probers and evaluates it: traceroutes of every
// path at first and every ten minutes, compared with the plan; while probes are lost, traceroutes
// of those paths and the retransmits of connections. Pure: the caller sends the requests and passes
// the time of the clock that numbers the windows.
//
// Routers answer few requests a second, so requests are spread over time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/probe/evidence.h"
#include "regatta/network/probe/internal/measured_paths.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {

// Within this time traceroutes show whether a switch hashes differently: the value of
// diag::LocatorOptions::confirmation_delay with an EvidenceCollector.
inline constexpr Seconds kDoubt{1};

struct EvidenceRequest {
  NodeId server;
  Order order;
};

// Evidence about a culprit: packets of traceroutes over it that should end at the last router
// before it and at the routers behind it, and segments of connections that cross it and of others.
struct CollectedEvidence {
  std::uint32_t before_sent = 0;
  std::uint32_t before_answered = 0;
  std::uint32_t behind_sent = 0;
  std::uint32_t behind_answered = 0;
  std::uint64_t segments = 0;
  std::uint64_t again = 0;
  std::uint64_t other_segments = 0;
  std::uint64_t other_again = 0;

  bool has_traces() const { return before_sent + behind_sent > 0; }
  bool has_connections() const { return segments > 0; }
  friend bool operator==(const CollectedEvidence&, const CollectedEvidence&) = default;
};

class EvidenceCollector {
 public:
  // `seeds` by NodeId, as of the planned matrix. All must outlive this.
  EvidenceCollector(const topo::Graph& graph, const fabric::Routes& routes,
                    std::span<const std::uint32_t> seeds, const Matrix& matrix);

  // Requests that are due. `lossy`: paths with losses; `standing`: active faults; `doubted`:
  // culprits that may have another hash instead (diag::Locator::unconfirmed()).
  std::vector<EvidenceRequest> ask(std::span<const std::uint32_t> lossy,
                                   std::span<const diag::FaultVerdict> standing,
                                   std::span<const diag::Culprit> doubted, Seconds now);
  // The sender of the packets on this path.
  NodeId server_of(std::uint32_t path) const;
  // A prober reports for this server now: requests its unconfirmed paths.
  void heard(NodeId server);
  // The request had no recipient.
  void put_off(const EvidenceRequest& question);

  // Evaluates an answer of `server` about known paths. kInvalidInput for one that it cannot give.
  Result<std::vector<diag::PassiveCount>> take(NodeId server, const Trace& trace, Seconds now);
  Result<std::vector<diag::PassiveCount>> take(NodeId server, const FlowCounts& counts,
                                               Seconds now);
  Result<diag::CarrierEvent> take(NodeId server, const NicCarrier& nic) const;

  // From answers since `since`.
  CollectedEvidence about(const diag::Culprit& culprit, Seconds since) const;
  // The paths that routers have confirmed.
  const MeasuredPaths& known() const { return known_; }
  std::vector<DivergentPath> take_elsewhere() { return known_.take_elsewhere(); }
  std::optional<std::vector<bool>> take_unknown() { return known_.take_unknown(); }
  // As in MeasuredPaths, once no path waits for its second traceroute.
  std::optional<fabric::Paths> take_measured();
  // Whether every path has an answer, or was given up.
  bool has_surveyed() const;

 private:
  struct Path {
    Seconds next{-1e9};  // of its traceroutes on suspicion
    Seconds pause;
    int surveys = 0;  // questions of this survey about it
  };
  struct RecentTrace {
    Seconds at;
    std::uint32_t path = 0;
    std::vector<TraceHop> hops;
  };
  struct RecentFlow {
    Seconds at;
    std::vector<std::uint32_t> links;
    std::uint32_t segments = 0;
    std::uint32_t again = 0;
  };
  struct Answers {
    std::uint64_t asked = 0;
    std::uint64_t answered = 0;
  };

  int routers_on(std::uint32_t path) const;
  std::size_t hops_back_alike(std::uint32_t path) const;
  struct Asked {
    Seconds at;
    std::uint32_t path = 0;
  };
  void begin_path_discovery(Seconds now);
  void path_discovery(Seconds now, std::vector<EvidenceRequest>& questions);
  void ask_again(Seconds now);
  void suspect(std::span<const std::uint32_t> lossy, Seconds now,
               std::vector<EvidenceRequest>& questions);
  void check(std::span<const diag::Culprit> doubted, Seconds now,
             std::vector<EvidenceRequest>& questions);
  void ask_for_flows(std::span<const std::uint32_t> lossy, Seconds now,
                     std::vector<EvidenceRequest>& questions);
  void forget(Seconds now);
  std::optional<std::vector<std::uint32_t>> round_trip(NodeId server,
                                                       const fabric::FiveTuple& flow) const;
  void find_usual();
  bool crosses_broken(std::span<const std::uint32_t> links) const;

  const topo::Graph& graph_;
  const fabric::Routes& routes_;
  std::span<const std::uint32_t> seeds_;
  const Matrix& matrix_;  // its paths may be replaced by take_measured()
  MeasuredPaths known_;
  std::vector<Path> paths_;
  std::vector<bool> is_lossy_;  // per path, at the last call of ask()
  bool has_broken_ = false;
  std::vector<bool> is_broken_;                         // per directed link
  std::vector<std::deque<std::uint32_t>> to_discover_;  // by server: paths
  std::deque<Asked> surveyed_;                          // not answered yet, oldest first
  std::deque<Asked> to_check_;                          // that lead elsewhere: when to ask again
  std::size_t phase_ = 0;                               // which servers are asked next
  Seconds surveyed_at_{-1e9};                           // when a survey began
  Seconds next_path_discovery_{-1e9};                   // the next paths of it
  Seconds next_suspicion_{-1e9};
  Seconds next_check_{-1e9};
  Seconds next_flows_{-1e9};
  Seconds flows_pause_;
  std::vector<Answers> answers_;  // by node: of routers on paths that lost nothing
  std::deque<RecentTrace> traces_;
  std::deque<RecentFlow> flows_;
  double usually_again_;              // the share that half of all connections stay below
  std::vector<bool> is_flows_asked_;  // by node: an answer is awaited
};

}  // namespace regatta::probe
