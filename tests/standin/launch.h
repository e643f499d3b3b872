// tests/standin/launch.h: what a launch asks of the device.
#pragma once

#include "tests/standin/process.h"

namespace regatta::standin {

struct Shape {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;  // the parameters in one piece, instead
};

// Fails as the launch does. The parameters are read now. Under the lock.
CUresult kernel_work(CUfunction function, const Shape& shape, Work* work);

}  // namespace regatta::standin
