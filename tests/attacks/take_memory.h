// tests/attacks/take_memory.h: takes memory until it is refused.
#pragma once

#include "tests/attacks/attack.h"

namespace regatta::attacks {

inline constexpr int kMostMib = 512;

// MiB that the driver's allocation `take` gave, of at most kMostMib.
template <typename Take>
int take_mebibytes(Take&& take) {
  constexpr int kStepMib = 8;
  for (int taken = 0; taken < kMostMib; taken += kStepMib) {
    CUdeviceptr address = 0;
    if (take(&address, std::size_t{kStepMib} << 20) != CUDA_SUCCESS) return taken;
  }
  return kMostMib;
}

}  // namespace regatta::attacks
