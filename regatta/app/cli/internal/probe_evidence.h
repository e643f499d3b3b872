// cli/internal/probe_evidence.h: evidence for the verdicts of `regatta probe` besides probes:
// requests traceroutes, retransmits and carriers from probers (probe/evidence_collector.h).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "regatta/app/cli/internal/print_now.h"
#include "regatta/app/report/network_report.h"
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
  // The arguments outlive this. Paths of `matrix` are replaced by measured ones.
  ProbeEvidence(const topo::Graph& graph, const fabric::Routes& routes,
                std::span<const std::uint32_t> seeds, probe::Matrix& matrix)
      : matrix_(matrix), evidence_collector_(graph, routes, seeds, matrix) {}

  // Requests the state of the NICs of a server that has begun to report.
  void request_carriers(NodeId server, probe::ReporterListener& listener);
  // Handles a line of a prober for which probe::is_evidence() holds.
  Status accept(NodeId server, std::string_view line, probe::Collector& collector);
  // After each evaluation of the collector: requests evidence, and prints new evidence.
  void update(const diag::FaultChanges& news, probe::Collector& collector,
              probe::ReporterListener& listener, report::ProbeEventFormat& format,
              Seconds since_begin);

 private:
  struct PendingVerdict {
    diag::FaultVerdict verdict;
    Seconds tell_at;
  };
  void report_paths(report::ProbeEventFormat& format, Seconds since_begin);

  probe::Matrix& matrix_;
  probe::EvidenceCollector evidence_collector_;
  std::vector<PendingVerdict> pending_;  // verdicts without their evidence yet
  std::map<diag::Culprit, probe::CollectedEvidence> told_;
  bool is_surveyed_ = false;
};

}  // namespace regatta::cli
