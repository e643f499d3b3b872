// sched/internal/random_sequence.h: random numbers that are the same on every machine.
// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014
// (SplitMix64).
#pragma once

#include <cstddef>
#include <cstdint>

namespace regatta::sched {

class RandomSequence {
 public:
  explicit RandomSequence(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
  }

  // A number from 0 to `count` - 1; `count` is far below 2^64, so that the bias is none to speak
  // of.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }

 private:
  std::uint64_t state_;
};

}  // namespace regatta::sched
