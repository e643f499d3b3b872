// diag/internal/candidates.h: who could be to blame for the losses on known ways: each component
// that a way with losses leads over, with what went over it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "regatta/network/diag/internal/components.h"
#include "regatta/network/diag/internal/explain.h"
#include "regatta/network/diag/verdict.h"

namespace regatta::diag {

// Of one way.
struct Sums {
  std::uint32_t sent = 0;
  std::uint32_t lost = 0;
  std::uint64_t windows = 0;  // a bit for each with losses
  // In the last window that something was sent in all was lost, or nothing is sent any more, as
  // answers to probes that do not arrive.
  bool is_dark = false;
  bool is_probe = true;  // else it only helps to choose

  explicit Sums(const WayCount& way);
};

// Of all ways over a component.
struct Totals {
  std::uint64_t lost = 0;
  std::uint32_t ways = 0;
  std::uint32_t ways_hit = 0;
  std::uint64_t signature = 0;  // of all ways, and of those that probes take
  std::uint64_t probes = 0;

  void add(const Totals& other) {
    lost += other.lost;
    ways += other.ways;
    ways_hit += other.ways_hit;
    signature += other.signature;
    probes += other.probes;
  }
};

// A way with losses that leads over a component: there and back, it may do so twice.
struct Crossed {
  std::uint32_t lossy = 0;  // by its place in the list of those
  int times = 1;

  // What comes through of `share` that one crossing lets through.
  double all_of(double share) const { return times == 1 ? share : std::pow(share, times); }
};

struct Candidate {
  std::uint32_t component = 0;
  bool some_flows = false;
  bool is_worse = false;  // beside the same one in a set: it has come to lose more
  Culprit culprit;
  std::vector<Culprit> same;  // other components with the same ways
  double prior = 0;
  Totals totals;
  std::uint64_t group = 0;      // the same for all whose probes take the very same ways
  std::vector<double> arrived;  // in each window and all later ones, where it would drop
  std::vector<Crossed> lossy;   // ways with losses
};

struct Candidates {
  std::vector<Sums> sums;            // per way
  std::vector<std::uint32_t> lossy;  // ways with losses
  std::vector<Candidate> all;
};

// `standing`: who is known to be broken.
Candidates make_candidates(const Components& components, std::span<const WayCount> ways,
                           std::span<const Standing> standing, const ExplainOptions& options);

}  // namespace regatta::diag
