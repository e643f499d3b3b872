// sharing/internal/client/launch_pace.h: how many times longer a process's work takes than it was
// learned to take, so that it launches so much less at a time. Kernels are timed at random, but
// their arguments may change between two samples; the ends of spans say how long everything took.
// Less than kGross times is left alone: it is what the random samples miss and later ones mend.
// Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace regatta::sharing {

class LaunchPace {
 public:
  // Work that was expected to take `expected_ns` kept the device for `took_ns`.
  void learn(std::uint64_t expected_ns, std::uint64_t took_ns) {
    // Short spans say little beside the time of a launch.
    if (took_ns < kLeastNs || expected_ns == 0) {
      decay();
      return;
    }
    const std::uint64_t seen = std::clamp(took_ns * kOne / expected_ns / kGross, kOne, kMost);
    // At once up, slowly down: what was too long once may be again.
    if (seen >= stretch_)
      stretch_ = seen;
    else
      decay();
  }

  // How many times longer its work takes than it was learned to take, in parts of kOne; at least 1.
  static constexpr std::uint64_t kOne = 64;
  std::uint64_t stretch() const { return stretch_; }

 private:
  static constexpr std::uint64_t kMost = 4096 * kOne;
  static constexpr std::uint64_t kGross = 4;
  static constexpr std::uint64_t kLeastNs = 200'000;
  static constexpr std::uint64_t kDecayParts = 32;

  void decay() { stretch_ -= (stretch_ - kOne + kDecayParts - 1) / kDecayParts; }

  std::uint64_t stretch_ = kOne;
};

}  // namespace regatta::sharing
