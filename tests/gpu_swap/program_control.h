// tests/gpu_swap/program_control.h: what the programs of a test tell it: shared memory whose
// descriptor they inherit.
#pragma once

#include <atomic>

namespace regatta::gpu_swap {

struct ProgramControl {
  std::atomic<bool> stop = false;
  std::atomic<int> ready = 0;
  std::atomic<bool> idle[16] = {};    // the program of this number pauses
  std::atomic<int> shows[16] = {};    // 1: one that pauses is to show memory to others; 2: it has
  std::atomic<long> rounds[16] = {};  // in which it found its memory as it had left it
};

}  // namespace regatta::gpu_swap
