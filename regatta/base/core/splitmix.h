// core/splitmix.h: a number that looks drawn for each number, the same one each time. SplitMix64:
// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#pragma once

#include <cstdint>

namespace regatta {

inline constexpr std::uint64_t kSplitMixStep = 0x9e3779b97f4a7c15U;

// Its last part: 0 stays 0.
constexpr std::uint64_t splitmix_finish(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

constexpr std::uint64_t splitmix(std::uint64_t value) {
  return splitmix_finish(value + kSplitMixStep);
}

}  // namespace regatta
