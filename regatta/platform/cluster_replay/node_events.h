// cluster_replay/node_events.h: when nodes fail and return in a replay: drawn at random, or read
// from a trace of failures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/cluster_replay/cluster_replay.h"
#include "regatta/platform/reliability/gang_simulation.h"
#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::cluster_replay {

// Events of one replay; more are refused.
inline constexpr int kNodeEventsMax = 2'000'000;

// Each node fails on its own, exponentially, and returns after an exponential time of repair with
// that mean. By rising time; a node that fails last may stay away beyond `duration`.
struct FailureShape {
  double failures_per_day = 0;  // of a node that does not say its own
  Seconds repair{4 * 3600.0};
  Seconds duration;
  std::uint64_t seed = 1;
};
// Fails with kInvalidInput where more than kNodeEventsMax events would come.
Result<std::vector<NodeEvent>> generate_failures(const std::vector<sched::ClusterNode>& nodes,
                                                 const FailureShape& shape);

// The causes of a mix as reliability::simulate_gang() has them, but on all nodes, whether a job
// holds them or not: lemons fail more often, repairs are log-normal and may not hold, causes that
// only restart a job make a node fail and return at once, and are not in its history.
struct MixedFailures {
  reliability::FailureMix mix;  // with rates
  reliability::LemonNodes lemons;
  reliability::NodeRepair repair;
  Seconds warm_up;  // before 0: what fails then is in the histories and may still be in repair
  Seconds duration;
  std::uint64_t seed = 1;
};
struct DrawnFailures {
  std::vector<sched::ClusterNode> nodes;  // at the time 0
  std::vector<NodeEvent> events;          // from then on, by rising time
};
// Fails with kInvalidInput where the mix has no rates, and where more than kNodeEventsMax would
// come.
Result<DrawnFailures> draw_failures(std::vector<sched::ClusterNode> nodes,
                                    const MixedFailures& shape);

// The part of a trace of failures to replay.
struct FailureTraceCut {
  Seconds from;                // time of the trace that becomes 0
  Seconds duration;            // above 0
  Seconds repair{4 * 3600.0};  // where the trace does not say when a unit returned
};
struct TracedFailures {
  std::vector<NodeEvent> events;  // by rising time, from 0 to the duration
  std::string trace;              // "400 servers for 232 d"
  bool needs_repair = false;      // it does not say when units returned
  int failures = 0;
  int failed_nodes = 0;
};
// Reads lives of GPUs (Titan: columns SN, location, insert, remove, event) or faults of servers
// (InfiniteHBD: node, start_d, end_d) as events of `nodes`; docs/formats/sched_replay.md says which
// unit of the trace stands for which node. Fails with kInvalidInput that names `file`, line, column
// and remedy, or a cut that the trace does not have.
Result<TracedFailures> read_node_failures(std::string_view text, const std::string& file,
                                          const std::vector<sched::ClusterNode>& nodes,
                                          const FailureTraceCut& cut);

}  // namespace regatta::cluster_replay
