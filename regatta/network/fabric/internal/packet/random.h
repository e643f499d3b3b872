// fabric/internal/packet/random.h: pseudo-random numbers, the same for a seed.
#pragma once

#include <cstdint>

#include "regatta/base/core/stats.h"

namespace regatta::fabric::packet {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    const std::uint64_t drawn = splitmix(state_);
    state_ += kSplitMixStep;
    return drawn;
  }
  // In [0, below).
  std::uint32_t below(std::uint32_t limit) {
    return static_cast<std::uint32_t>((next() >> 32U) * limit >> 32U);
  }
  // In [0, 1).
  double part() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace regatta::fabric::packet
