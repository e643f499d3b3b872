// diag/internal/candidates.h: who could be to blame for the losses on known paths: each component
// that a path with losses leads over, with what went over it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/internal/components.h"
#include "regatta/network/diag/internal/explain.h"

namespace regatta::diag {

// Counts of one path.
struct PathSums {
  std::uint32_t sent = 0;
  std::uint32_t lost = 0;
  std::uint64_t windows = 0;  // a bit for each with losses
  // In the last window that something was sent in all was lost, or nothing is sent any more, as
  // answers to probes that do not arrive.
  bool is_black_hole = false;
  std::uint32_t lost_at_last = 0;  // since the last window in which any arrived
  bool is_probe = true;            // else it only helps to choose

  explicit PathSums(const PathCounts& path);
};

// Counts of all paths over a component.
struct ComponentTotals {
  std::uint64_t lost = 0;
  std::uint32_t paths = 0;
  std::uint32_t paths_hit = 0;
  std::uint64_t signature = 0;  // of all paths, and of those that probes take
  std::uint64_t probes = 0;

  void add(const ComponentTotals& other) {
    lost += other.lost;
    paths += other.paths;
    paths_hit += other.paths_hit;
    signature += other.signature;
    probes += other.probes;
  }
};

// A path with losses that leads over a component: there and back, it may do so twice.
struct PathCrossing {
  std::uint32_t lossy = 0;  // by its place in the list of those
  int times = 1;

  // Share that all crossings together pass if one crossing passes `share`.
  double all_of(double share) const { return times == 1 ? share : std::pow(share, times); }
};

struct FaultCandidate {
  std::uint32_t component = 0;
  bool some_flows = false;
  bool is_worse = false;  // beside the same one in a set: its loss has increased
  bool is_known = false;  // to be broken
  Culprit culprit;
  std::vector<Culprit> same;  // other components with the same paths
  double prior = 0;
  ComponentTotals totals;
  std::uint64_t group = 0;          // the same for all whose probes take the very same paths
  std::vector<double> arrived;      // in each window and all later ones, where it would drop
  std::vector<PathCrossing> lossy;  // paths with losses
};

struct FaultCandidates {
  std::vector<PathSums> sums;        // per path
  std::vector<std::uint32_t> lossy;  // paths with losses
  std::vector<FaultCandidate> all;
};

// Knowledge besides the paths, as in explain().
struct KnownState {
  std::span<const KnownFault> faults;
  std::span<const std::uint32_t> with_errors;
};

FaultCandidates make_candidates(const Components& components, std::span<const PathCounts> paths,
                                const KnownState& known, const ExplainOptions& options);

}  // namespace regatta::diag
