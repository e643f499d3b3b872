// probe/internal/trace_schedule.h: when each path gets a traceroute: every path at first and every
// ten minutes; while probes are lost, the paths that lose them and those that may have moved. Pure.
//
// Routers answer few requests a second, so requests are spread over time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/probe/evidence.h"
#include "regatta/network/probe/internal/measured_paths.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {

class TraceSchedule {
 public:
  // All must outlive this.
  TraceSchedule(const topo::Graph& graph, const Matrix& matrix);

  // The sender of the packets on this path.
  NodeId server_of(std::uint32_t path) const;
  int routers_on(std::uint32_t path) const;

  // A discovery of all paths begins.
  void restart_discovery(Seconds now);
  // Each of these adds the requests that are due. Discovery starts by itself when it is due.
  void discover(const MeasuredPaths& known, Seconds now, std::vector<EvidenceRequest>& requests);
  // Paths with losses, the one traced longest ago first.
  void trace_lossy(std::span<const std::uint32_t> lossy, Seconds now,
                   std::vector<EvidenceRequest>& requests);
  // Paths without losses through the switches that would choose the links of `doubted`: their
  // routers show where the paths lead.
  void trace_doubted(std::span<const diag::Culprit> doubted, const std::vector<bool>& is_lossy,
                     Seconds now, std::vector<EvidenceRequest>& requests);

  void accept_answer(std::uint32_t path) { paths_[path].requests = 0; }
  // A path that leads elsewhere is traced again after kCheckAfter.
  void recheck(std::uint32_t path, Seconds now);
  bool has_rechecks() const { return !to_recheck_.empty(); }
  // A prober reports for this server now: requests its unconfirmed paths.
  void add_reporter(NodeId server, const MeasuredPaths& known);
  // The request had no recipient.
  void postpone(const EvidenceRequest& request);
  // Whether every path has an answer, or was given up.
  bool is_discovery_complete() const;

 private:
  struct Path {
    Seconds next{-1e9};  // of its traceroutes on suspicion
    Seconds pause;
    int requests = 0;  // about it in this discovery
  };
  struct Due {
    Seconds at;
    std::uint32_t path = 0;
  };

  bool is_traceable(std::uint32_t path) const { return routers_on(path) <= kHopsMost; }
  EvidenceRequest request_for(std::uint32_t path, int tries) const;
  void repeat_requests(Seconds now);

  const topo::Graph& graph_;
  const Matrix& matrix_;
  std::vector<Path> paths_;
  std::vector<std::deque<std::uint32_t>> to_discover_;  // by server: paths
  std::deque<Due> unanswered_;                          // when each was requested, oldest first
  std::deque<Due> to_recheck_;                          // paths that lead elsewhere
  std::size_t phase_ = 0;                               // which servers get the next requests
  Seconds discovery_began_{-1e9};
  Seconds next_discovery_{-1e9};  // the next paths of it
  Seconds next_lossy_{-1e9};
  Seconds next_doubted_{-1e9};
};

}  // namespace regatta::probe
