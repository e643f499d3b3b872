// cli/internal/probe_evidence.h: what `regatta probe` finds out besides probes: asks probers for
// traceroutes, retransmits and carriers (probe/evidence_collector.h), and tells what speaks for its
// verdicts.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "regatta/app/cli/internal/probe_output.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/probe/collector.h"
#include "regatta/network/probe/evidence_collector.h"
#include "regatta/network/probe/matrix.h"
#include "regatta/network/probe/reporter_listener.h"

namespace regatta::cli {

class ProbeEvidence {
 public:
  // All must outlive this. Ways of `matrix` become what routers say they are.
  ProbeEvidence(const topo::Graph& graph, const fabric::Routes& routes,
                std::span<const std::uint32_t> seeds, probe::Matrix& matrix)
      : matrix_(matrix), evidence_collector_(graph, routes, seeds, matrix) {}

  // Asks a server that reports now, or again, how its NICs are.
  void request_carriers(NodeId server, probe::ReporterListener& listener);
  // A line of its prober, for which probe::is_evidence() holds.
  Status take(NodeId server, std::string_view line, probe::Collector& collector);
  // After each look of the collector: asks, and prints what is worth it.
  void update(const diag::FaultChanges& news, probe::Collector& collector,
              probe::ReporterListener& listener, ProbeOutput& output, Seconds since_begin);

 private:
  struct PendingVerdict {
    diag::FaultVerdict verdict;
    Seconds tell_at;
  };
  void report_paths(ProbeOutput& output, Seconds since_begin);

  probe::Matrix& matrix_;
  probe::EvidenceCollector evidence_collector_;
  std::vector<PendingVerdict> pending_;  // verdicts without their evidence yet
  std::map<diag::Culprit, probe::CollectedEvidence> told_;
  bool is_surveyed_ = false;
};

}  // namespace regatta::cli
