#include "regatta/model/workload/timeline.h"

#include <array>
#include <cstddef>
#include <string_view>

namespace regatta::workload {

namespace {

constexpr std::array<std::string_view, kPhaseCount> kNames{"forward", "backward",  "recompute",
                                                           "tp_comm", "pp_comm",   "bubble",
                                                           "dp_comm", "optimizer", "other"};

}  // namespace

std::string_view to_string(Phase phase) {
  return kNames[static_cast<std::size_t>(phase)];
}

Seconds PhaseTimes::total() const {
  Seconds sum;
  for (const Seconds time : times)
    sum += time;
  return sum;
}

Phase largest_phase_increase(const PhaseTimes& best, const PhaseTimes& loser) {
  std::size_t worst = 0;
  for (std::size_t i = 1; i < kPhaseCount; ++i) {
    if (loser.times[i] - best.times[i] > loser.times[worst] - best.times[worst]) worst = i;
  }
  return kPhases[worst];
}

}  // namespace regatta::workload
