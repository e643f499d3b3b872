// diag/internal/explain.h: which components of a network explain the losses on known paths: the
// likeliest set of few, each with a loss rate of its own.
//
// A packet is lost when one component of its path drops it; what no component drops is lost with a
// small background rate. Each member of a set pays for a prior. The likeliest few sets of each size
// are kept (internal/fault_sets.h), and a culprit is as sure as the sets that hold it are likely
// among all of them. Idea: Harsh et al., "Flock: accurate network fault localization at scale",
// CoNEXT 2023; Peng et al., "deTector", ATC 2017.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"

namespace regatta::diag {

inline bool is_cable(const Culprit& culprit) {
  return culprit.kind == CulpritKind::kLink || culprit.kind == CulpritKind::kNic;
}

// Packets sent over one path, probes or others, in a span of time.
struct PathCounts {
  std::span<const std::uint32_t> links;  // directed, by fabric::number_of
  // In each window of that time, as many for all paths.
  std::span<const std::uint16_t> sent;
  std::span<const std::uint16_t> lost;
  // Share of packets other than probes that is lost without a fault; 0 for probes. Only losses of
  // probes make a culprit and show that it lasts; other packets only select among the culprits.
  double background = 0;
  // The packets turn back at this switch, which is not to blame for it; invalid: at none.
  NodeId answered_by;
};

struct ExplainOptions {
  double background = 1e-5;  // share of packets that are lost without a fault
  // Logarithms of how likely each is to be broken just now, before anything is known.
  double prior_link = -12;  // also a NIC
  double prior_switch = -13;
  double prior_server = -14;
  double prior_some_flows = -3;   // on top, that it drops all of some flows and nothing of others
  double prior_known_fault = -1;  // of a known fault
  double prior_look_alike = -3;   // on top, of others that probes cannot tell from it
  double prior_settled = -12;     // the same if other packets have told them apart before
  // On top, of a cable over which packets arrive broken: more than looks alike, less than other
  // packets show.
  double prior_errors = 6;
  double prior_onset = -4;  // that it began in exactly that window
  std::size_t most_faults = 8;
  // Conditions of a sure verdict, because a short disturbance is no fault: so many windows with
  // losses, the last so long after the first...
  int windows_least = 3;
  int windows_apart = 16;
  // ... and this share of the windows in which as many losses would fall by chance: losses of a
  // busy host come in bursts.
  double spread_least = 0.65;
  int windows_black_hole = 2;       // the only condition if all packets are lost
  int windows_some_black_hole = 7;  // and if all packets of some flows are lost
};

struct Explanation {
  FaultVerdict verdict;   // without times
  std::size_t onset = 0;  // the window since which it is so
};

// A known fault.
struct KnownFault {
  Culprit culprit;
  bool is_settled = false;     // other packets have told it from those that look the same to probes
  bool is_of_variant = false;  // it takes packets of one variant only
};

// Likeliest first; `known_faults`: of earlier ones. Confidence is the share of the likelihood
// that sets with the culprit have among all sets that were found; culprits with the very same paths
// are named as alternatives and count as one. `with_errors`: directed links whose counters show
// errors (internal/counter_evidence.h), ascending; they come first among the alternatives.
std::vector<Explanation> explain(const topo::Graph& graph, std::span<const PathCounts> paths,
                                 std::span<const KnownFault> known_faults = {},
                                 const ExplainOptions& options = {},
                                 std::span<const std::uint32_t> with_errors = {});

}  // namespace regatta::diag
