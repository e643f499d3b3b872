#include "regatta/workload/timeline.h"

#include <array>
#include <cstddef>
#include <string_view>

namespace regatta::workload {

std::string_view to_string(Phase phase) {
  static constexpr std::array<std::string_view, kPhaseCount> kNames{
      "forward", "backward", "recompute", "tp_comm", "pp_comm",
      "bubble",  "dp_comm",  "optimizer", "other"};
  return kNames[static_cast<std::size_t>(phase)];
}

Seconds PhaseTimes::total() const {
  Seconds sum;
  for (const Seconds time : times)
    sum += time;
  return sum;
}

}  // namespace regatta::workload
