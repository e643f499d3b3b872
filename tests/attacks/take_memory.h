// tests/attacks/take_memory.h: takes memory until it is refused.
#pragma once

#include <unistd.h>

#include "tests/attacks/attack.h"

namespace regatta::attacks {

inline constexpr int kMostMib = 512;

// MiB that the driver's allocation `take` gave, of at most `most`.
template <typename Take>
int take_mebibytes(Take&& take, int most) {
  constexpr int kStepMib = 8;
  for (int taken = 0; taken < most; taken += kStepMib) {
    CUdeviceptr address = 0;
    if (take(&address, std::size_t{kStepMib} << 20) != CUDA_SUCCESS) return taken;
  }
  return most;
}

// Says how many MiB the program got. With a second word, which is how many it wants, it keeps them
// until it is ended.
inline void say_mebibytes(int mebibytes, int argc) {
  std::printf("%d\n", mebibytes);
  std::fflush(stdout);
  while (argc > 2)
    ::pause();
}

}  // namespace regatta::attacks
