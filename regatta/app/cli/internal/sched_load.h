// cli/internal/sched_load.h: the load and the cluster of `regatta sched replay` and `simulate`.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "regatta/base/core/result.h"
#include "regatta/platform/cluster_replay/cluster_replay.h"
#include "regatta/platform/cluster_replay/traced_job.h"
#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::cli {

// Flags that shape the jobs of some traces alone.
struct TraceFlags {
  std::string past;  // --past; "": 6h
  int replicas = 0;  // --replicas; 0: 20
};

// The jobs of a trace, which its columns name: Philly, openb, instances of online services, GPU use
// of pods, requests of services. At most `jobs` of them; 0: all. kInvalidInput lists what is known,
// and names flags that are not for the trace.
Result<std::vector<cluster_replay::TracedJob>> load_trace(const std::string& path, int jobs,
                                                          const TraceFlags& flags);

// The factor of interference that fits the measured pairs of jobs in a table best
// (mixing/interference.h): on the device with the most pairs, with none held out.
Result<double> load_interference(const std::string& path);

// The nodes of a cluster file, of a state file, or of a table of nodes (openb, spot). Where the
// file does not say CPUs and memory, nodes have more than jobs ask for.
Result<std::vector<sched::ClusterNode>> load_nodes(const std::string& path);

// --failures, --failures-from and --repair.
struct FailureFlags {
  std::string trace;   // "": none
  std::string from;    // "": 0s
  std::string repair;  // "": 4h
};
void add_failure_options(CLI::App& command, FailureFlags& flags);
Result<Seconds> repair_time(const FailureFlags& flags);

// kInvalidInput where a flag says something about failures that do not come: of a trace, or, where
// `are_drawn`, at random.
Status check_failure_flags(const FailureFlags& flags, bool are_drawn);

// Adds the failures of the trace to the events of `input`, the first job of which is submitted at
// the trace's --failures-from; for twice as long as jobs come, as they end after that. Appends what
// was read to `load`.
Status add_traced_failures(const FailureFlags& flags, cluster_replay::ReplayInput& input,
                           std::string& load);

}  // namespace regatta::cli
