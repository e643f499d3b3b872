// cli/internal/hang_watch.h: whether a process that counts its rounds has stopped counting them.
// Pure: times are those of os::monotonic_now() and are arguments.
#pragma once

#include <cstdint>

#include "regatta/base/core/units.h"

namespace regatta::cli {

// The longest pause between two looks at the process, and the longest wait of a process between two
// of its rounds.
inline constexpr Seconds kLongestPause{0.5};

struct HangLimits {
  Seconds first;    // from the start of the process to its first beat
  Seconds between;  // from one beat to the next
};

class HangWatch {
 public:
  // Call hangs() several times within `limits.between`: the time that the caller itself was away
  // counts as kLongestPause, because the process may have been stopped or starved with it.
  HangWatch(const HangLimits& limits, Seconds now) : limits_(limits), looked_(now) {}

  // The process was started again, and so is its count.
  void restart(Seconds now) { *this = HangWatch(limits_, now); }
  // From now on it has as long as this for each beat, and from now on for the next one.
  void set_limit(Seconds between);
  // `beats`: the count by now. True as long as it has been the same for longer than the limit.
  bool hangs(std::uint64_t beats, Seconds now);

  // For how long the count has been the same.
  Seconds silence() const { return silence_; }

 private:
  HangLimits limits_;
  Seconds looked_;
  Seconds silence_;
  std::uint64_t beats_ = 0;
};

}  // namespace regatta::cli
