// probe/evidence_collector.h: requests evidence from probers and evaluates it: traceroutes of every
// path at first and every ten minutes, compared with the plan; while probes are lost, traceroutes
// of those paths and the retransmits of connections. Pure: the caller sends the requests and passes
// the time of the clock that numbers the windows.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/probe/evidence.h"
#include "regatta/network/probe/internal/connection_losses.h"
#include "regatta/network/probe/internal/measured_paths.h"
#include "regatta/network/probe/internal/router_answers.h"
#include "regatta/network/probe/internal/trace_schedule.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {

// Within this time traceroutes show whether a switch hashes differently: the value of
// diag::LocatorOptions::confirmation_delay with an EvidenceCollector.
inline constexpr Seconds kDoubt{1};

class EvidenceCollector {
 public:
  // `seeds` by NodeId, as of the planned matrix. All must outlive this.
  EvidenceCollector(const topo::Graph& graph, const fabric::Routes& routes,
                    std::span<const std::uint32_t> seeds, const Matrix& matrix);

  // Requests that are due. `lossy`: paths with losses; `standing`: active faults; `doubted`:
  // culprits that may have another hash instead (diag::Locator::unconfirmed()).
  std::vector<EvidenceRequest> due_requests(std::span<const std::uint32_t> lossy,
                                            std::span<const diag::FaultVerdict> standing,
                                            std::span<const diag::Culprit> doubted, Seconds now);
  // The sender of the packets on this path.
  NodeId server_of(std::uint32_t path) const { return schedule_.server_of(path); }
  // A prober reports for this server now: requests its unconfirmed paths.
  void add_reporter(NodeId server) { schedule_.add_reporter(server, known_); }
  // The request had no recipient.
  void postpone(const EvidenceRequest& request) { schedule_.postpone(request); }

  // Evaluates an answer of `server` about known paths. kInvalidInput for one that it cannot give.
  Result<std::vector<diag::PassiveCount>> accept(NodeId server, const Trace& trace, Seconds now);
  Result<std::vector<diag::PassiveCount>> accept(NodeId server, const FlowCounts& counts,
                                                 Seconds now);
  Result<diag::CarrierEvent> accept(NodeId server, const NicCarrier& nic) const;

  // A loss that retransmits of connections make likely and probes do not see, each once a minute at
  // most. Nothing while something is broken that probes see.
  std::optional<diag::LossSuspicion> consume_suspicion(Seconds now);

  // From answers since `since`.
  CollectedEvidence about(const diag::Culprit& culprit, Seconds since) const;
  // The paths that routers have confirmed.
  const MeasuredPaths& known() const { return known_; }
  std::vector<DivergentPath> consume_divergent_paths() { return known_.consume_divergent_paths(); }
  std::optional<std::vector<bool>> consume_unknown_paths() {
    return known_.consume_unknown_paths();
  }
  // As in MeasuredPaths, once no path waits for its second traceroute.
  std::optional<fabric::Paths> consume_measured_paths();
  // Whether every path has an answer, or was given up.
  bool is_discovery_complete() const { return schedule_.is_discovery_complete(); }

 private:
  struct RecentTrace {
    Seconds at;
    std::uint32_t path = 0;
    std::vector<TraceHop> hops;
  };

  std::set<NodeId> ends_of(std::span<const std::uint32_t> paths) const;
  void forget(Seconds now);

  const topo::Graph& graph_;
  const Matrix& matrix_;  // its paths may be replaced by consume_measured_paths()
  MeasuredPaths known_;
  TraceSchedule schedule_;
  RouterAnswers routers_;
  ConnectionLosses connections_;
  std::deque<RecentTrace> traces_;
  std::vector<bool> is_lossy_;  // per path, at the last call of due_requests()
  bool has_broken_ = false;
  std::vector<bool> is_broken_;  // per directed link
  Seconds next_suspicion_{-1e9};
  std::optional<diag::LossSuspicion> suspicion_;     // as of the last evaluation
  std::map<diag::Culprit, Seconds> told_suspected_;  // when
};

}  // namespace regatta::probe
