// sharing/internal/client/launch_gaps.h: how long a process that has nothing in flight keeps its
// turn: a little longer than it usually takes to launch again after it has waited for its work. One
// that waits for each kernel before it launches the next would otherwise lose its turn with each.
// The time counts as the process's own. Pure; time is an argument.
#pragma once

#include <algorithm>
#include <cstdint>

namespace regatta::sharing {

class LaunchGaps {
 public:
  // Work began after a gap without any.
  void begin(std::uint64_t now_ns) {
    if (idle_since_ns_ != 0 && now_ns > idle_since_ns_)
      learn(gap_ns_, std::min(now_ns - idle_since_ns_, kLongNs));
    idle_since_ns_ = 0;
    busy_since_ns_ = now_ns;
  }
  // Nothing is in flight any more.
  void end(std::uint64_t now_ns) {
    if (busy_since_ns_ != 0 && now_ns > busy_since_ns_)
      learn(busy_ns_, std::min(now_ns - busy_since_ns_, kLongNs));
    busy_since_ns_ = 0;
    idle_since_ns_ = now_ns;
  }
  bool is_idle() const { return idle_since_ns_ != 0; }

  // How long to keep the turn from the last end on. Gaps that are long beside the work between them
  // are left to others.
  std::uint64_t keep_ns() const {
    const std::uint64_t expected = 2 * gap_ns_ + kLeastNs;
    const bool is_short = gap_ns_ <= std::max(kSwitchNs, busy_ns_ / 4);
    return is_short ? std::min(expected, kMostNs) : kLeastNs / 2;
  }

 private:
  static void learn(std::uint64_t& mean, std::uint64_t seen) { mean = (3 * mean + seen) / 4; }

  static constexpr std::uint64_t kLeastNs = 100'000;
  static constexpr std::uint64_t kMostNs = 1'500'000;
  // The cost of giving the device to another tenant and back.
  static constexpr std::uint64_t kSwitchNs = 150'000;
  static constexpr std::uint64_t kLongNs = 50'000'000;

  std::uint64_t gap_ns_ = 0;         // mean
  std::uint64_t busy_ns_ = 0;        // mean
  std::uint64_t busy_since_ns_ = 0;  // 0: idle
  std::uint64_t idle_since_ns_ = 0;  // 0: busy, or never busy
};

}  // namespace regatta::sharing
