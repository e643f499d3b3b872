// Contexts and memory, also of pools and by mapping.
#include <numeric>
#include <vector>

#include "tests/standin/fixture.h"

namespace regatta::standin {
namespace {

class CudaMemory : public DriverTest {
 protected:
  static std::size_t free_bytes() {
    std::size_t bytes = 0;
    EXPECT_EQ(CU(cuMemGetInfo_v2)(&bytes, nullptr), CUDA_SUCCESS);
    return bytes;
  }
  static std::vector<unsigned> numbers(std::size_t count) {
    std::vector<unsigned> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 7U);
    return numbers;
  }
  static CUmemAllocationProp on_device() {
    return {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  }
};

TEST_F(CudaMemory, BringsBytesToTheDeviceAndBack) {
  const std::vector<unsigned> sent = numbers(100'000);
  std::vector<unsigned> got(sent.size());
  const std::size_t bytes = sent.size() * sizeof(unsigned);
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  ASSERT_EQ(CU(cuMemAlloc_v2)(&first, bytes), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAlloc_v2)(&second, bytes), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyHtoD_v2)(first, sent.data(), bytes), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyDtoD_v2)(second, first, bytes), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(got.data(), second, bytes), CUDA_SUCCESS);
  EXPECT_EQ(got, sent);
}

TEST_F(CudaMemory, SetsWordsWithinAnAllocation) {
  CUdeviceptr address = 0;
  unsigned got[4] = {};
  ASSERT_EQ(CU(cuMemAlloc_v2)(&address, sizeof got), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemsetD8_v2)(address, 0x11, sizeof got), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemsetD32_v2)(address + 4, 0xabcdef01, 2), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(got, address, sizeof got), CUDA_SUCCESS);
  EXPECT_THAT(got, testing::ElementsAre(0x11111111, 0xabcdef01, 0xabcdef01, 0x11111111));
  EXPECT_EQ(CU(cuMemsetD32_v2)(address + 1, 0, 1), CUDA_ERROR_INVALID_VALUE) << "not aligned";
}

TEST_F(CudaMemory, GivesLargeAllocationsBackInFull) {
  const std::size_t before = free_bytes();
  CUdeviceptr address = 0;
  ASSERT_EQ(CU(cuMemAlloc_v2)(&address, 32 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before - 32 * kMiB);
  ASSERT_EQ(CU(cuMemFree_v2)(address), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(CudaMemory, GivesBlocksOfSmallAllocationsBackWhenTheLastIsFree) {
  const std::size_t before = free_bytes();
  std::vector<CUdeviceptr> addresses(10'000);
  for (CUdeviceptr& address : addresses)
    ASSERT_EQ(CU(cuMemAlloc_v2)(&address, 700), CUDA_SUCCESS);
  EXPECT_LE(before - free_bytes(), 12 * kMiB);
  for (std::size_t i = 0; i < addresses.size(); ++i)  // in an order of their own
    ASSERT_EQ(CU(cuMemFree_v2)(addresses[i * 7919 % addresses.size()]), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(CudaMemory, PutsSmallAllocationsIntoOneBlockAndLargeOnesAtBlocks) {
  CUdeviceptr small[2] = {};
  CUdeviceptr large = 0;
  for (CUdeviceptr& address : small)
    ASSERT_EQ(CU(cuMemAlloc_v2)(&address, 700), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAlloc_v2)(&large, 3 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(small[0] / (2 * kMiB), small[1] / (2 * kMiB));
  EXPECT_EQ(large % (2 * kMiB), 0U);
  for (const CUdeviceptr address : {small[0], small[1], large})
    ASSERT_EQ(CU(cuMemFree_v2)(address), CUDA_SUCCESS);
}

TEST_F(CudaMemory, KeepsArraysUntilTheyAreDestroyed) {
  const std::size_t before = free_bytes();
  const CUDA_ARRAY_DESCRIPTOR square = {1024, 1024, CU_AD_FORMAT_FLOAT, 4};
  const CUDA_ARRAY3D_DESCRIPTOR cube = {128, 128, 128, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  CUarray flat = nullptr;
  CUmipmappedArray levels = nullptr;
  ASSERT_EQ(CU(cuArrayCreate_v2)(&flat, &square), CUDA_SUCCESS);
  EXPECT_LE(free_bytes(), before - 16 * kMiB);
  ASSERT_EQ(CU(cuMipmappedArrayCreate)(&levels, &cube, 3), CUDA_SUCCESS);
  EXPECT_LE(free_bytes(), before - 18 * kMiB);
  ASSERT_EQ(CU(cuArrayDestroy)(flat), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMipmappedArrayDestroy)(levels), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(CU(cuArrayCreate_v2)(&flat, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaMemory, RefusesMoreThanTheDeviceHasAndTakesNothing) {
  std::size_t total = 0;
  const std::size_t before = free_bytes();
  ASSERT_EQ(CU(cuMemGetInfo_v2)(nullptr, &total), CUDA_SUCCESS);
  CUdeviceptr address = 0;
  EXPECT_EQ(CU(cuMemAlloc_v2)(&address, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(CudaMemory, RefusesWhatIsNoAllocation) {
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  char byte = 0;
  EXPECT_EQ(CU(cuMemAlloc_v2)(&address, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemAllocPitch_v2)(&address, &pitch, 100, 10, 3), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(CU(cuMemAlloc_v2)(&address, 1000), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFree_v2)(address + 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemFree_v2)(address), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFree_v2)(0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(&byte, 0x10, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaMemory, PitchesRowsSoThatTheyAreAligned) {
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  ASSERT_EQ(CU(cuMemAllocPitch_v2)(&address, &pitch, 1000, 16, 4), CUDA_SUCCESS);
  EXPECT_GE(pitch, 1000U);
  EXPECT_EQ(pitch % 256, 0U);
  std::size_t bytes = 0;
  EXPECT_EQ(CU(cuMemGetAddressRange_v2)(nullptr, &bytes, address + 5), CUDA_SUCCESS);
  EXPECT_EQ(bytes, pitch * 16);
}

TEST_F(CudaMemory, LetsTheHostTouchManagedAndPinnedMemory) {
  CUdeviceptr managed = 0;
  void* pinned = nullptr;
  ASSERT_EQ(CU(cuMemAllocManaged)(&managed, 4096, 1), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAllocHost_v2)(&pinned, 4096), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemsetD8_v2)(managed, 5, 4096), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemcpy)(reinterpret_cast<CUdeviceptr>(pinned), managed, 4096), CUDA_SUCCESS);
  EXPECT_EQ(static_cast<char*>(pinned)[4095], 5);
  EXPECT_EQ(*reinterpret_cast<char*>(managed), 5);
  EXPECT_EQ(CU(cuMemFreeHost)(pinned), CUDA_SUCCESS);
}

TEST_F(CudaMemory, CopiesABatchInTheOrderOfItsStream) {
  const auto copy = CU(cuMemcpyBatchAsync);
  if (driver_symbol("cuMemcpyBatchAsync") == nullptr) GTEST_SKIP() << "an older driver";
  CUstream stream = nullptr;
  CUdeviceptr device = 0;
  ASSERT_EQ(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAlloc_v2)(&device, 8192), CUDA_SUCCESS);
  std::vector<unsigned> sent = numbers(1024);
  std::vector<unsigned> got(1024);
  const auto at = [](std::vector<unsigned>& words, std::size_t first) {
    return reinterpret_cast<CUdeviceptr>(words.data() + first);
  };
  CUdeviceptr up[2] = {device, device + 2048};
  CUdeviceptr from[2] = {at(sent, 0), at(sent, 512)};
  CUdeviceptr down[2] = {at(got, 512), at(got, 0)};
  CUdeviceptr back[2] = {device + 2048, device};
  std::size_t bytes[2] = {2048, 2048};
  CUmemcpyAttributes attributes{.srcAccessOrder = 1};
  std::size_t first = 0;
  std::size_t failed = 7;
  ASSERT_EQ(copy(up, from, bytes, 2, &attributes, &first, 1, &failed, stream), CUDA_SUCCESS);
  EXPECT_EQ(failed, SIZE_MAX);
  ASSERT_EQ(copy(down, back, bytes, 2, &attributes, &first, 1, nullptr, stream), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_EQ(got, sent);
  EXPECT_EQ(copy(up, from, bytes, 2, &attributes, &first, 1, &failed, nullptr),
            CUDA_ERROR_INVALID_VALUE)
      << "not in the default stream";
  EXPECT_EQ(copy(up, from, bytes, 2, nullptr, nullptr, 0, &failed, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(copy(up, from, bytes, 0, &attributes, &first, 1, &failed, stream),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaMemory, FreesWhatAContextHeldWhenItEnds) {
  const std::size_t before = free_bytes();
  CUcontext other = nullptr;
  CUdeviceptr address = 0;
  ASSERT_EQ(CU(cuCtxCreate_v4)(&other, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAlloc_v2)(&address, 10 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuCtxDestroy_v2)(other), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before) << "and the context before is current again";
  if (is_real_driver()) return;  // driver 580 takes what it has destroyed
  EXPECT_EQ(CU(cuCtxPushCurrent_v2)(other), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(CudaMemory, WantsAContextThatIsCurrent) {
  CUcontext mine = nullptr;
  CUdeviceptr address = 0;
  ASSERT_EQ(CU(cuCtxPopCurrent_v2)(&mine), CUDA_SUCCESS);
  EXPECT_EQ(mine, context_);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&address, 10), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(CU(cuCtxPopCurrent_v2)(&mine), CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_EQ(CU(cuCtxGetCurrent)(&mine), CUDA_SUCCESS);
  EXPECT_EQ(mine, nullptr);
  EXPECT_EQ(CU(cuCtxSetCurrent)(context_), CUDA_SUCCESS);
}

TEST_F(CudaMemory, KeepsThePrimaryContextWhileSomebodyRetainsIt) {
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  unsigned flags = 0;
  int active = -1;
  ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&first, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&second, 0), CUDA_SUCCESS);
  EXPECT_EQ(first, second);
  EXPECT_EQ(CU(cuDevicePrimaryCtxRelease_v2)(0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 1);
  EXPECT_EQ(CU(cuDevicePrimaryCtxRelease_v2)(0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 0);
  EXPECT_EQ(CU(cuDevicePrimaryCtxRelease_v2)(0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(CudaMemory, GivesThePoolsBytesBackAtASyncBeyondItsThreshold) {
  CUmemoryPool pool = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr address = 0;
  const std::size_t before = free_bytes();
  const CUmemPoolProps properties{.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  ASSERT_EQ(CU(cuMemPoolCreate)(&pool, &properties), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamCreate)(&stream, 0), CUDA_SUCCESS);
  for (std::uint64_t threshold : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    ASSERT_EQ(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
              CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemAllocFromPoolAsync)(&address, 10 * kMiB, pool, stream), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemsetD8Async)(address, 1, 10 * kMiB, stream), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemFreeAsync)(address, stream), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
    EXPECT_EQ(free_bytes() < before, threshold > 0);
  }
  ASSERT_EQ(CU(cuMemPoolTrimTo)(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(CudaMemory, MapsMemoryAndKeepsItsBytesWhenItMoves) {
  const CUmemAllocationProp properties = on_device();
  const std::size_t before = free_bytes();
  std::size_t step = 0;
  ASSERT_EQ(CU(cuMemGetAllocationGranularity)(&step, &properties, 0), CUDA_SUCCESS);
  CUmemGenericAllocationHandle handles[2] = {};
  for (auto& handle : handles)
    ASSERT_EQ(CU(cuMemCreate)(&handle, step, &properties, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemCreate)(&handles[0], step + 1, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(free_bytes(), before - 2 * step) << "handles are memory, mapped or not";
  CUdeviceptr range = 0;
  ASSERT_EQ(CU(cuMemAddressReserve)(&range, 4 * step, 0, 0, 0), CUDA_SUCCESS);
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const auto map = [&](CUdeviceptr address, CUmemGenericAllocationHandle handle) {
    ASSERT_EQ(CU(cuMemMap)(address, step, 0, handle, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemSetAccess)(address, step, &access, 1), CUDA_SUCCESS);
  };
  map(range, handles[0]);
  map(range + step, handles[1]);
  const std::vector<unsigned> sent = numbers(2 * step / sizeof(unsigned));
  ASSERT_EQ(CU(cuMemcpyHtoD_v2)(range, sent.data(), 2 * step), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemUnmap)(range, 2 * step), CUDA_SUCCESS);
  map(range + 2 * step, handles[1]);  // the other way round
  map(range + 3 * step, handles[0]);
  std::vector<unsigned> got(sent.size());
  ASSERT_EQ(CU(cuMemcpyDtoH_v2)(got.data(), range + 3 * step, step), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemcpyDtoH_v2)(got.data() + step / sizeof(unsigned), range + 2 * step, step),
            CUDA_SUCCESS);
  EXPECT_EQ(got, sent);
  for (const auto handle : handles)
    ASSERT_EQ(CU(cuMemRelease)(handle), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before - 2 * step) << "what is mapped lives on";
  EXPECT_EQ(CU(cuMemAddressFree)(range, 4 * step), CUDA_ERROR_INVALID_VALUE) << "still mapped";
  ASSERT_EQ(CU(cuMemUnmap)(range + 2 * step, 2 * step), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(CU(cuMemAddressFree)(range, 4 * step), CUDA_SUCCESS);
}

}  // namespace
}  // namespace regatta::standin
