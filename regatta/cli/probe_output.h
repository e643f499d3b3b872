// cli/probe_output.h: what `regatta probe` prints: the coverage proof, verdicts as they come, and
// how late and how lossy each pair of servers was.
#pragma once

#include "regatta/core/units.h"
#include "regatta/diag/locator.h"
#include "regatta/probe/collector.h"
#include "regatta/probe/matrix.h"
#include "regatta/topo/cluster.h"
#include "regatta/topo/graph.h"

namespace regatta::cli {

// As text, or as a JSON object a line. Everything must outlive this.
class ProbeOutput {
 public:
  ProbeOutput(const topo::Cluster& cluster, const topo::Graph& graph, const probe::Matrix& matrix,
              bool json)
      : cluster_(cluster), graph_(graph), matrix_(matrix), json_(json) {}

  void coverage(const probe::Coverage& coverage) const;
  void news(const diag::News& news, Seconds since_begin) const;
  void pairs(const probe::Collector& collector) const;

 private:
  void verdict(const char* event, const diag::Verdict& verdict, Seconds since_begin) const;

  const topo::Cluster& cluster_;
  const topo::Graph& graph_;
  const probe::Matrix& matrix_;
  bool json_;
};

}  // namespace regatta::cli
