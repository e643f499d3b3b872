// Modules, libraries, kernels and how they are launched.
#include <cstdio>
#include <string>

#include <unistd.h>

#include "tests/standin/fixture.h"

namespace regatta::standin {
namespace {

const char* const kCode = R"(.version 7.1
.target sm_75
.address_size 64
.visible .global .align 4 .u32 counter;
.global .align 8 .b8 table[1000];
.visible .entry spin_1us(.param .u32 a, .param .u64 b, .param .align 8 .b8 c[24], .param .u8 d) {
  .reg .u32 %r;
  ld.global.u32 %r, [counter];
  ret;
}
.visible .entry plain() { ret; }
)";

class CudaCode : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    ASSERT_EQ(CU(cuLibraryLoadData)(&library_, kCode, nullptr, nullptr, 0, nullptr, nullptr, 0),
              CUDA_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(CU(cuLibraryUnload)(library_), CUDA_SUCCESS);
    DriverTest::TearDown();
  }
  CUkernel library_kernel(const char* name) const {
    CUkernel kernel = nullptr;
    EXPECT_EQ(CU(cuLibraryGetKernel)(&kernel, library_, name), CUDA_SUCCESS);
    return kernel;
  }

  CUlibrary library_ = nullptr;
};

TEST_F(CudaCode, LoadsALibraryOnceForAllContexts) {
  CUkernel const plain = library_kernel("plain");
  CUfunction here = nullptr;
  CUfunction there = nullptr;
  CUcontext other = nullptr;
  ASSERT_EQ(CU(cuKernelGetFunction)(&here, plain), CUDA_SUCCESS);
  EXPECT_EQ(launch(here, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuCtxCreate_v2)(&other, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuKernelGetFunction)(&there, plain), CUDA_SUCCESS);
  EXPECT_NE(here, there);
  EXPECT_EQ(launch(reinterpret_cast<CUfunction>(plain), nullptr), CUDA_SUCCESS)
      << "a kernel can be launched as a function";
  ASSERT_EQ(CU(cuCtxDestroy_v2)(other), CUDA_SUCCESS);
  EXPECT_EQ(launch(here, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
}

TEST_F(CudaCode, RefusesTextsThatDoNotBeginWithTheirVersionAndTarget) {
  CUmodule module = nullptr;
  for (const auto& [text, result] :
       {std::pair(".visible .entry spin_1us() { ret; }\n", CUDA_ERROR_INVALID_IMAGE),
        std::pair(".version 6.4\n.visible .entry spin_1us() { ret; }\n", CUDA_ERROR_INVALID_PTX),
        std::pair(".target sm_75\n.version 6.4\n.visible .entry spin_1us() { ret; }\n",
                  CUDA_ERROR_INVALID_IMAGE)})
    EXPECT_EQ(CU(cuModuleLoadData)(&module, text), result) << text;
}

TEST_F(CudaCode, NamesAndListsKernels) {
  unsigned count = 0;
  CUkernel kernels[5] = {};
  const char* name = nullptr;
  CUlibrary library = nullptr;
  CUkernel missing = nullptr;
  ASSERT_EQ(CU(cuLibraryGetKernelCount)(&count, library_), CUDA_SUCCESS);
  EXPECT_EQ(count, 2U);
  ASSERT_EQ(CU(cuLibraryEnumerateKernels)(kernels, 5, library_), CUDA_SUCCESS);
  EXPECT_NE(kernels[1], nullptr);
  EXPECT_EQ(kernels[2], nullptr);
  ASSERT_EQ(CU(cuKernelGetName)(&name, library_kernel("plain")), CUDA_SUCCESS);
  EXPECT_STREQ(name, "plain");
  ASSERT_EQ(CU(cuKernelGetLibrary)(&library, kernels[0]), CUDA_SUCCESS);
  EXPECT_EQ(library, library_);
  EXPECT_EQ(CU(cuLibraryGetKernel)(&missing, library_, "nothing"), CUDA_ERROR_NOT_FOUND);
  ASSERT_EQ(CU(cuFuncGetName)(&name, kernel("spin_1us")), CUDA_SUCCESS);
  EXPECT_STREQ(name, "spin_1us");
  ASSERT_EQ(CU(cuModuleGetFunctionCount)(&count, module_), CUDA_SUCCESS);
  EXPECT_EQ(count, 7U);
}

TEST_F(CudaCode, TellsWhereTheParametersLie) {
  std::size_t offset = 0;
  std::size_t bytes = 0;
  const std::pair<std::size_t, std::size_t> expected[] = {{0, 4}, {8, 8}, {16, 24}, {40, 1}};
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(CU(cuKernelGetParamInfo)(library_kernel("spin_1us"), i, &offset, &bytes),
              CUDA_SUCCESS);
    EXPECT_EQ(std::pair(offset, bytes), expected[i]) << i;
  }
  EXPECT_EQ(CU(cuKernelGetParamInfo)(library_kernel("spin_1us"), 4, &offset, &bytes),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaCode, KeepsVariablesInDeviceMemory) {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  unsigned value = 77;
  ASSERT_EQ(CU(cuLibraryGetGlobal)(&address, &bytes, library_, "counter"), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 4U);
  ASSERT_EQ(CU(cuMemcpyDtoH_v2)(&value, address, 4), CUDA_SUCCESS);
  EXPECT_EQ(value, 0U);
  EXPECT_EQ(CU(cuMemsetD32_v2)(address, 5, 1), CUDA_SUCCESS);
  CUmodule module = nullptr;
  ASSERT_EQ(CU(cuLibraryGetModule)(&module, library_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuModuleGetGlobal_v2)(nullptr, &bytes, module, "table"), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 1000U);
  EXPECT_EQ(CU(cuModuleGetGlobal_v2)(&address, nullptr, module, "nothing"), CUDA_ERROR_NOT_FOUND);
}

TEST_F(CudaCode, LetsAKernelHaveMoreSharedMemoryOnlyWhenItAsks) {
  CUfunction const function = kernel("spin_1us");
  int value = 0;
  const auto launch_with = [&](unsigned shared_bytes) {
    return CU(cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, shared_bytes, nullptr, nullptr, nullptr);
  };
  ASSERT_EQ(CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, function), CUDA_SUCCESS);
  EXPECT_EQ(value, 75) << "the target, not the version of the text";
  EXPECT_EQ(launch_with(48 << 10), CUDA_SUCCESS);
  EXPECT_EQ(launch_with(100 << 10), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(
      CU(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 << 10),
      CUDA_SUCCESS);
  EXPECT_EQ(launch_with(100 << 10), CUDA_SUCCESS);
  EXPECT_EQ(
      CU(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 10 << 20),
      CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuFuncGetAttribute)(&value, 1000, function), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuFuncGetAttribute)(&value, 0, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(CudaCode, TakesParametersInOnePiece) {
  std::uint64_t nanoseconds = 1000;
  std::size_t bytes = sizeof nanoseconds;
  void* extra[] = {reinterpret_cast<void*>(std::uintptr_t{1}), &nanoseconds,
                   reinterpret_cast<void*>(std::uintptr_t{2}), &bytes, nullptr};
  EXPECT_EQ(CU(cuLaunchKernel)(kernel("spin_ns"), 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra),
            CUDA_SUCCESS);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
}

TEST_F(CudaCode, CooperatesByAttributeOnlyWhenAllBlocksFit) {
  CUlaunchAttribute attribute{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .pad = {}, .value = {}};
  attribute.value.cooperative = 1;
  CUlaunchConfig config{1 << 20, 1, 1, 1024, 1, 1, 0, nullptr, &attribute, 1};
  EXPECT_EQ(CU(cuLaunchKernelEx)(&config, kernel("spin_1us"), nullptr, nullptr),
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  config.gridDimX = 2;
  EXPECT_EQ(CU(cuLaunchKernelEx)(&config, kernel("spin_1us"), nullptr, nullptr), CUDA_SUCCESS);
  int blocks = 0;
  ASSERT_EQ(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, kernel("spin_1us"), 1024, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(blocks, 2);
}

TEST_F(CudaCode, LoadsAFileAndSaysWhenThereIsNone) {
  char path[] = "/tmp/standin-code-XXXXXX";
  const int fd = mkstemp(path);
  ASSERT_EQ(write(fd, kCode, std::string(kCode).size()),
            static_cast<ssize_t>(std::string(kCode).size()));
  close(fd);
  CUlibrary library = nullptr;
  EXPECT_EQ(CU(cuLibraryLoadFromFile)(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(CU(cuLibraryUnload)(library), CUDA_SUCCESS);
  if (!is_real_driver()) {  // driver 580 crashes
    EXPECT_EQ(CU(cuLibraryUnload)(library), CUDA_ERROR_INVALID_HANDLE);
  }
  std::remove(path);
  EXPECT_EQ(CU(cuLibraryLoadFromFile)(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_F(CudaCode, ClampsPrioritiesToTheRangeOfTheDevice) {
  int least = -1;
  int greatest = 1;
  ASSERT_EQ(CU(cuCtxGetStreamPriorityRange)(&least, &greatest), CUDA_SUCCESS);
  EXPECT_EQ(least, 0);
  EXPECT_LT(greatest, 0);
  CUstream stream = nullptr;
  int priority = 1;
  ASSERT_EQ(CU(cuStreamCreateWithPriority)(&stream, CU_STREAM_NON_BLOCKING, -1000), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamGetPriority)(stream, &priority), CUDA_SUCCESS);
  EXPECT_EQ(priority, greatest);
}

TEST_F(CudaCode, KeepsTheLimitsOfAContext) {
  std::size_t value = 0;
  constexpr int kStack = 0;
  ASSERT_EQ(CU(cuCtxSetLimit)(kStack, 4096), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuCtxGetLimit)(&value, kStack), CUDA_SUCCESS);
  EXPECT_EQ(value, 4096U);
  EXPECT_NE(CU(cuCtxGetLimit)(&value, 1000), CUDA_SUCCESS);
}

TEST_F(CudaCode, FindsADeviceByItsPlaceOnTheBus) {
  char id[20];
  CUdevice device = -1;
  ASSERT_EQ(CU(cuDeviceGetPCIBusId)(id, sizeof id, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuDeviceGetByPCIBusId)(&device, id), CUDA_SUCCESS);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(CU(cuDeviceGetPCIBusId)(id, 3, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_NE(CU(cuDeviceGetByPCIBusId)(&device, "0000:fe:1f.0"), CUDA_SUCCESS);
}

}  // namespace
}  // namespace regatta::standin
