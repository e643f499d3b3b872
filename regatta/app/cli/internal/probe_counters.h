// cli/internal/probe_counters.h: counters and neighbors of switches for the verdicts of `regatta
// probe`, from a file or a pipe that a collector writes (docs/formats/switch_counters.md).
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "regatta/app/cli/internal/followed_lines.h"
#include "regatta/app/report/network_report.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/link_rates/switch_stream.h"
#include "regatta/network/probe/collector.h"

namespace regatta::cli {

class ProbeCounters {
 public:
  // `graph` outlives it. kInvalidInput for a file that cannot be followed.
  static Result<ProbeCounters> open(const std::string& path, const topo::Graph& graph);

  // Gives what has come to the collector. Never waits.
  Status read(probe::Collector& collector);
  // After each evaluation of the collector: prints what counters show of the verdicts, suspicions,
  // lines that were left out, and switches whose counters have stopped.
  void update(const diag::FaultChanges& news, probe::Collector& collector,
              const report::ProbeEventFormat& format, Seconds since_begin);

  const link_rates::SwitchStream& stream() const { return stream_; }

 private:
  ProbeCounters(FollowedLines lines, const topo::Graph& graph)
      : stream_(graph, lines.leaves_out_lines() ? lines.name() + " (lines since the start)"
                                                : lines.name()),
        lines_(std::move(lines)) {}
  void report_stream(probe::Collector& collector, const report::ProbeEventFormat& format,
                     Seconds since_begin);
  void report_findings(probe::Collector& collector, const report::ProbeEventFormat& format,
                       Seconds since_begin);

  // The last event of a verdict: another opinion and more alternatives with errors are printed,
  // too.
  struct Told {
    diag::CounterOpinion opinion = diag::CounterOpinion::kNone;
    std::size_t others_with_errors = 0;
  };

  link_rates::SwitchStream stream_;
  FollowedLines lines_;
  std::map<diag::Culprit, Told> told_;
  bool has_readings_ = false;  // that were not compared with the verdicts yet
  bool has_told_beginning_ = false;
  bool has_told_end_ = false;
  bool has_told_silence_ = false;
  Seconds next_look_;
};

}  // namespace regatta::cli
