// Asks for memory of sizes whose product is more than 64 bits, so that a product which wraps is
// small. Says for how many it got something.
#include <initializer_list>

#include <unistd.h>

#include "tests/attacks/attack.h"

using Sizes = std::initializer_list<std::uint64_t>;

int main() {
  regatta::attacks::open_context();
  constexpr std::uint64_t kHalf = 1ULL << 32;
  int got = 0;
  const auto try_one = [&](CUresult result) { got += result == CUDA_SUCCESS ? 1 : 0; };
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  for (const std::uint64_t width : Sizes{~0ULL, ~0ULL - 510, 1ULL << 63, kHalf * 512, kHalf})
    for (const std::uint64_t height : Sizes{~0ULL, (1ULL << 55) + 1, kHalf, 2}) {
      if (width == kHalf && height == 2) continue;  // only much too large
      try_one(CU(cuMemAllocPitch_v2)(&address, &pitch, width, height, 4));
    }
  for (const std::uint64_t side : Sizes{~0ULL, 1ULL << 63, kHalf, kHalf + 1, 1ULL << 21}) {
    CUarray array = nullptr;
    CUmipmappedArray levels = nullptr;
    const CUDA_ARRAY_DESCRIPTOR flat = {side, side, CU_AD_FORMAT_FLOAT, 4};
    const CUDA_ARRAY3D_DESCRIPTOR deep = {side, side, side, CU_AD_FORMAT_FLOAT, 4, 0};
    try_one(CU(cuArrayCreate_v2)(&array, &flat));
    try_one(CU(cuArray3DCreate_v2)(&array, &deep));
    try_one(CU(cuMipmappedArrayCreate)(&levels, &deep, ~0U));
  }
  for (const std::uint64_t bytes : Sizes{~0ULL, ~0ULL - 4095, 1ULL << 63, 1ULL << 48}) {
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp here = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    try_one(CU(cuMemAlloc_v2)(&address, bytes));
    try_one(CU(cuMemAllocManaged)(&address, bytes, 1));
    try_one(CU(cuMemAllocAsync)(&address, bytes, nullptr));
    try_one(CU(cuMemCreate)(&handle, bytes, &here, 0));
  }
  std::printf("got %d\n", got);
  std::fflush(stdout);
  ::pause();
}
