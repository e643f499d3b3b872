// packing/random_sequence.h: random numbers that are the same on every machine.
// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014
// (SplitMix64).
#pragma once

#include <cstddef>
#include <cstdint>

#include "regatta/base/core/stats.h"

namespace regatta::packing {

class RandomSequence {
 public:
  explicit RandomSequence(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += kSplitMixStep;
    return splitmix_finish(state_);
  }

  // At least 0, below 1.
  double uniform() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

  // A number from 0 to `count` - 1; `count` is far below 2^64, so that the bias is none to speak
  // of.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }

 private:
  std::uint64_t state_;
};

}  // namespace regatta::packing
