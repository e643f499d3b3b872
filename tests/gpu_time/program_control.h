// tests/gpu_time/program_control.h: a file that a test and the program that it started have both
// mapped: what the program tells, and when it is to end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace regatta::gpu_time {

struct ProgramControl {
  static constexpr std::size_t kMostLatencies = 1 << 15;

  std::atomic<int> ready = 0;
  std::atomic<bool> stop = false;
  // With pauses between launches: ns from a launch until its end was seen.
  std::atomic<std::size_t> latency_count = 0;
  std::uint64_t latency_ns[kMostLatencies] = {};
};

}  // namespace regatta::gpu_time
