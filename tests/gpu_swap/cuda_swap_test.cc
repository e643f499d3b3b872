// Memory moves by the functions of a driver, and back, at the speed of the link.
#include <cstdlib>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>

#include "regatta/base/os/clock.h"
#include "regatta/gpu/sharing/internal/swap/swappable_memory.h"
#include "tests/gpu_swap/swap_calls.h"

// Nothing of this folder needs a client process of the stand-in's tests.
int regatta::standin::run_client(const std::string&, const std::string&) {
  return 2;
}

namespace regatta::gpu_swap {
namespace {

using sharing::CudaSwap;
using sharing::SwappableMemory;
using standin::kMiB;

class CudaSwapTest : public testing::Test {
 protected:
  void SetUp() override {
    if (standin::is_real_driver()) GTEST_SKIP() << "asks the stand-in device";
    ::setenv("REGATTA_STANDIN", device().socket().c_str(), 1);
    ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuCtxCreate_v2)(&context_, 0, 0), CUDA_SUCCESS);
  }
  void TearDown() override {
    if (context_ == nullptr) return;
    EXPECT_EQ(CU(cuCtxDestroy_v2)(context_), CUDA_SUCCESS);
  }
  // The driver of this process knows one, for good.
  static const standin::TestDevice& device() {
    static const standin::TestDevice only({"--memory", "256MiB", "--copy-speed", "400MB/s"});
    return only;
  }
  static std::uint64_t used_bytes() {
    std::uint64_t bytes = 0;
    for (const standin::Usage& one : device().usage())
      bytes += one.bytes;
    return bytes;
  }
  std::uint64_t allocate(SwappableMemory& swappable, std::uint64_t bytes) {
    const auto address = swappable.allocate(context_, bytes);
    EXPECT_TRUE(address && swappable.move_in(~0ULL));
    return *address;
  }
  static void write(std::uint64_t address, std::uint64_t bytes, unsigned first) {
    std::vector<unsigned> content(bytes / sizeof(unsigned));
    for (unsigned& word : content)
      word = first++;
    EXPECT_EQ(CU(cuMemcpyHtoD_v2)(address, content.data(), bytes), CUDA_SUCCESS);
  }
  static bool has(std::uint64_t address, std::uint64_t bytes, unsigned first) {
    std::vector<unsigned> content(bytes / sizeof(unsigned));
    if (CU(cuMemcpyDtoH_v2)(content.data(), address, bytes) != CUDA_SUCCESS) return false;
    for (const unsigned word : content)
      if (word != first++) return false;
    return true;
  }

  static constexpr double kLink = 400e6;
  CUcontext context_ = nullptr;
};

TEST_F(CudaSwapTest, MovesOutAndInAtTheSpeedOfTheLinkAndLosesNothing) {
  CudaSwap swap(swap_calls(), 0);
  SwappableMemory swappable(swap, 8 * kMiB);
  const std::uint64_t a = allocate(swappable, 100 * kMiB);
  const std::uint64_t b = allocate(swappable, 60 * kMiB + 4);
  write(a, 100 * kMiB, 7);
  write(b, 60 * kMiB + 4, 1'000'000'007);
  swappable.wrote(a);
  swappable.wrote(b);
  ASSERT_TRUE(swappable.move_out(0));  // pins the host's memory, too
  ASSERT_TRUE(swappable.move_in(~0ULL));
  swappable.wrote_all();
  const Seconds begin = os::monotonic_now();
  ASSERT_TRUE(swappable.move_out(0));
  const Seconds middle = os::monotonic_now();
  EXPECT_EQ(used_bytes(), 0U);
  ASSERT_TRUE(swappable.move_in(~0ULL));
  const Seconds end = os::monotonic_now();
  const auto bytes = static_cast<double>(swappable.totals().all);
  std::printf("out %.1f MB/s, in %.1f MB/s, of %.0f\n", bytes / (middle - begin).value / 1e6,
              bytes / (end - middle).value / 1e6, kLink / 1e6);
  EXPECT_GT(bytes / (middle - begin).value, 0.8 * kLink);
  EXPECT_GT(bytes / (end - middle).value, 0.8 * kLink);
  EXPECT_TRUE(has(a, 100 * kMiB, 7));
  EXPECT_TRUE(has(b, 60 * kMiB + 4, 1'000'000'007));
  EXPECT_EQ(used_bytes(), swappable.totals().all);
  EXPECT_TRUE(swappable.free(a));
  EXPECT_TRUE(swappable.free(b));
  EXPECT_EQ(used_bytes(), 0U);
  swap.forget(context_);
}

TEST_F(CudaSwapTest, StopsWhereTheDeviceIsFullAndGoesOnLater) {
  CudaSwap swap(swap_calls(), 0);
  SwappableMemory swappable(swap, 8 * kMiB);
  const std::uint64_t a = allocate(swappable, 200 * kMiB);
  write(a, 64, 1);
  swappable.wrote(a);
  ASSERT_TRUE(swappable.move_out(0));
  CUdeviceptr other = 0;
  ASSERT_EQ(CU(cuMemAlloc_v2)(&other, 100 * kMiB), CUDA_SUCCESS);
  EXPECT_FALSE(swappable.move_in(~0ULL));
  EXPECT_LE(used_bytes(), 256 * kMiB);
  ASSERT_EQ(CU(cuMemFree_v2)(other), CUDA_SUCCESS);
  EXPECT_TRUE(swappable.move_in(~0ULL));
  EXPECT_TRUE(has(a, 64, 1));
  EXPECT_TRUE(swappable.free(a));
}

TEST_F(CudaSwapTest, WaitsForWorkAndLeavesCapturesAlone) {
  CudaSwap swap(swap_calls(), 0);
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(CU(cuModuleLoadData)(&module, standin::kKernels), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuModuleGetFunction)(&function, module, "spin_20ms"), CUDA_SUCCESS);
  ASSERT_EQ(standin::launch(function, stream), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamQuery)(stream), CUDA_ERROR_NOT_READY);
  EXPECT_TRUE(swap.drain(context_));
  EXPECT_EQ(CU(cuStreamQuery)(stream), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_TRUE(swap.drain(context_));
  EXPECT_EQ(CU(cuStreamEndCapture)(stream, &graph), CUDA_SUCCESS) << "the capture goes on";
}

}  // namespace
}  // namespace regatta::gpu_swap
