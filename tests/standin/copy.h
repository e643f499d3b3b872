// tests/standin/copy.h: copies of rows between any two places.
#pragma once

#include "tests/standin/process.h"

namespace regatta::standin {

enum class Place : std::uint8_t { kHost, kDevice, kAny };

// Rows `pitch` bytes apart, in slices `slice` bytes apart.
struct Side {
  Place place = Place::kAny;
  CUdeviceptr address = 0;
  std::uint64_t pitch = 0;
  std::uint64_t slice = 0;
};
struct Copy {
  Side to;
  Side from;
  std::uint64_t width = 0;  // bytes
  std::uint64_t height = 1;
  std::uint64_t depth = 1;
};

// Under the lock: the work on the device. An address that is named device memory has to be some.
CUresult copy_work(const Copy& copy, Work* work);
// The work to set rows to a value of 1, 2 or 4 bytes; widths count values.
CUresult set_work(CUdeviceptr to, unsigned value, unsigned value_bytes, const Copy& rows,
                  Work* work);

CUresult copy_box(const CUDA_MEMCPY3D& box, Copy* copy);
// The copy that a description of two dimensions means.
CUDA_MEMCPY3D box_of(const CUDA_MEMCPY2D& plane);

// To a stream, and to the default stream and waited for.
CUresult enqueue_copy(const Copy& copy, CUstream stream);
CUresult copy_now(const Copy& copy);

}  // namespace regatta::standin
