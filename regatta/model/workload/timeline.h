// workload/timeline.h: the timeline of a rank in phases; prediction and measurement share the
// types.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"

namespace regatta::workload {

// The phases of a step of one rank: disjoint and complete, so that their sum is the step time.
// Communication counts only where the compute thread waits for it ("exposed").
enum class Phase {
  kForward,
  kBackward,
  kRecompute,
  kTpComm,  // waiting for tensor-parallel collectives
  kPpComm,  // waiting for a pipeline transfer after the peer had sent it
  kBubble,  // waiting for a pipeline peer that has not yet sent
  kDpComm,  // waiting for the data-parallel reduction (and the tied-embedding and norm reductions)
  kOptimizer,
  kOther,  // data loading, loss reporting, gaps
};
inline constexpr std::array kPhases = {Phase::kForward, Phase::kBackward,  Phase::kRecompute,
                                       Phase::kTpComm,  Phase::kPpComm,    Phase::kBubble,
                                       Phase::kDpComm,  Phase::kOptimizer, Phase::kOther};
inline constexpr std::size_t kPhaseCount = kPhases.size();

// "forward", "backward", "recompute", "tp_comm", "pp_comm", "bubble", "dp_comm", "optimizer",
// "other". JSON keys append "_s".
std::string_view to_string(Phase phase);

// Seconds per phase.
struct PhaseTimes {
  std::array<Seconds, kPhaseCount> times{};

  Seconds& operator[](Phase phase) { return times[static_cast<std::size_t>(phase)]; }
  Seconds operator[](Phase phase) const { return times[static_cast<std::size_t>(phase)]; }
  Seconds total() const;
};

// The phase with the largest increase from `best` to `loser`; the first of several.
Phase largest_phase_increase(const PhaseTimes& best, const PhaseTimes& loser);

// One interval of a rank's compute thread (background = false) or of a communication in the
// background (true: drawn on its own row, not counted in PhaseTimes).
struct Span {
  Rank rank;
  Phase phase = Phase::kOther;
  int step = 0;
  int micro_batch = -1;  // -1: none
  int layer = -1;        // -1: the whole stage
  bool background = false;
  Seconds start;  // predicted: from the start of the step; measured: of the run
  Seconds duration;
};
using Timeline = std::vector<Span>;

}  // namespace regatta::workload
