// cli/internal/probe_evidence.h: what `regatta probe` finds out besides probes: asks probers for
// traceroutes, retransmits and carriers (probe/inquiry.h), and tells what speaks for its verdicts.
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
#include "regatta/network/probe/door.h"
#include "regatta/network/probe/inquiry.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::cli {

class ProbeEvidence {
 public:
  // All must outlive this. Ways of `matrix` become what routers say they are.
  ProbeEvidence(const topo::Graph& graph, const fabric::Routes& routes,
                std::span<const std::uint32_t> seeds, probe::Matrix& matrix)
      : matrix_(matrix), inquiry_(graph, routes, seeds, matrix) {}

  // Asks a server that reports now, or again, how its NICs are.
  void greet(NodeId server, probe::Door& door);
  // A line of its prober, for which probe::is_evidence() holds.
  Status take(NodeId server, std::string_view line, probe::Collector& collector);
  // After each look of the collector: asks, and prints what is worth it.
  void go_on(const diag::FaultChanges& news, probe::Collector& collector, probe::Door& door,
             ProbeOutput& output, Seconds since_begin);

 private:
  struct Begun {
    diag::FaultVerdict verdict;
    Seconds tell_at;
  };
  void tell_ways(ProbeOutput& output, Seconds since_begin);

  probe::Matrix& matrix_;
  probe::Inquiry inquiry_;
  std::vector<Begun> begun_;  // verdicts without their evidence yet
  std::map<diag::Culprit, probe::Gathered> told_;
  bool is_surveyed_ = false;
};

}  // namespace regatta::cli
