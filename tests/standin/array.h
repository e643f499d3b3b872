// tests/standin/array.h: arrays: device memory whose layout is the driver's, here rows one after
// the other.
#pragma once

#include <vector>

#include "tests/standin/process.h"

namespace regatta::standin {

// Under the lock.
bool is_array(CUarray array);
void drop_arrays(CUcontext context);

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
struct CUarray_st {
  CUcontext context = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  CUdeviceptr address = 0;
  std::uint64_t pitch = 0;
  CUmipmappedArray whole = nullptr;  // that it is a level of
};
struct CUmipmappedArray_st {
  std::vector<CUarray> levels;
};
// NOLINTEND(readability-identifier-naming)
