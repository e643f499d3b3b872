// tests/standin/launch.h: what a launch asks of the device.
#pragma once

#include "tests/standin/process.h"

namespace regatta::standin {

struct Shape {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  void** parameters = nullptr;
};

// Fails as the launch does. The parameters are read now.
CUresult kernel_work(CUfunction function, const Shape& shape, Work* work);

}  // namespace regatta::standin
