// cli/internal/probe_output.h: what `regatta probe` prints: the coverage proof, who reports,
// verdicts as they come, and how late and how lossy each pair of servers was.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/probe/collector.h"
#include "regatta/network/probe/evidence_collector.h"
#include "regatta/network/probe/matrix.h"
#include "regatta/network/probe/reporter_listener.h"

namespace regatta::cli {

// As text, or as a JSON object a line. Everything must outlive this.
class ProbeOutput {
 public:
  struct Options {
    bool json = false;
    bool lists_overlaps = false;  // as text, what probes alone cannot tell apart
  };
  ProbeOutput(const topo::Graph& graph, const probe::Matrix& matrix, Options options)
      : graph_(graph), matrix_(matrix), json_(options.json), lists_(options.lists_overlaps) {}

  void coverage(const probe::Coverage& coverage) const;
  // Where probers may report.
  void listens(const std::string& address) const;
  // Who does by now.
  void reporting(const probe::ReporterStatus& roll) const;
  // Somebody has fallen silent, or is heard again.
  void roll(const probe::ReporterChange& news, const probe::ReporterStatus& roll,
            Seconds since_begin) const;
  void refusal(const probe::RefusedReporter& refusal, Seconds since_begin) const;
  void news(const diag::FaultChanges& news, Seconds since_begin) const;
  // What routers and connections say about a verdict as it was told, and as it is since.
  void gathered(const diag::FaultVerdict& told, const diag::FaultVerdict& now,
                const probe::CollectedEvidence& gathered, Seconds since_begin) const;
  // Ways that do not lead where they should; as text the first few.
  void elsewhere(const std::vector<probe::DivergentPath>& ways, Seconds since_begin);
  // How many of all ways routers have confirmed.
  void surveyed(const probe::EvidenceCollector& evidence_collector, Seconds since_begin) const;
  // From now on ways are as they were measured.
  void remapped(const probe::EvidenceCollector& evidence_collector, Seconds since_begin) const;
  void pairs(const probe::Collector& collector) const;

 private:
  void verdict(const char* event, const diag::FaultVerdict& verdict, Seconds since_begin) const;
  void loss_and_latency(const probe::Collector& collector) const;
  void worst_pairs(const probe::Collector& collector) const;
  std::string path_text(std::uint32_t way) const;
  // Servers stand first in a graph.
  const std::string& server(std::size_t number) const { return graph_.nodes[number].name; }

  const topo::Graph& graph_;
  const probe::Matrix& matrix_;
  bool json_;
  bool lists_;
  std::size_t elsewhere_named_ = 0;
};

}  // namespace regatta::cli
