// Kernels, streams and events.
#include <atomic>

#include <unistd.h>

#include "tests/standin/fixture.h"

namespace regatta::standin {
namespace {

class CudaStream : public DriverTest {
 protected:
  static CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream stream = nullptr;
    EXPECT_EQ(CU(cuStreamCreate)(&stream, flags), CUDA_SUCCESS);
    return stream;
  }
  // Later work in the stream waits until the gate is open.
  static void hold(CUstream stream, std::atomic<bool>& is_open) {
    const auto wait = [](void* gate) {
      while (!*static_cast<std::atomic<bool>*>(gate))
        usleep(100);
    };
    EXPECT_EQ(CU(cuLaunchHostFunc)(stream, wait, &is_open), CUDA_SUCCESS);
  }
  static CUevent record(CUstream stream) {
    CUevent event = nullptr;
    EXPECT_EQ(CU(cuEventCreate)(&event, CU_EVENT_DEFAULT), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuEventRecord)(event, stream), CUDA_SUCCESS);
    return event;
  }
};

TEST_F(CudaStream, FindsKernelsByName) {
  CUfunction function = nullptr;
  CUmodule module = nullptr;
  EXPECT_EQ(CU(cuModuleGetFunction)(&function, module_, "spin_1us"), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuFuncGetModule)(&module, function), CUDA_SUCCESS);
  EXPECT_EQ(module, module_);
  EXPECT_EQ(CU(cuModuleGetFunction)(&function, module_, "spin"), CUDA_ERROR_NOT_FOUND);
}

TEST_F(CudaStream, TakesAsLongAsTheKernelsNamesAndParametersSay) {
  if (is_real_driver()) GTEST_SKIP() << "its kernels do nothing";
  CUstream const own = stream();
  std::uint64_t nanoseconds = 3'000'000;
  void* parameters[] = {&nanoseconds};
  Time before{};
  for (const Usage& usage : own_device()->usage())
    before += usage.busy;
  CUevent const start = record(own);
  ASSERT_EQ(launch(kernel("spin_5ms"), own), CUDA_SUCCESS);
  ASSERT_EQ(launch(kernel("spin_ns"), own, parameters), CUDA_SUCCESS);
  nanoseconds = 0;  // it was read at the launch
  CUevent const end = record(own);
  ASSERT_EQ(CU(cuEventSynchronize)(end), CUDA_SUCCESS);
  float milliseconds = 0;
  ASSERT_EQ(CU(cuEventElapsedTime)(&milliseconds, start, end), CUDA_SUCCESS);
  EXPECT_GE(milliseconds, 8.0F);
  Time busy{};
  for (const Usage& usage : own_device()->usage())
    busy += usage.busy;
  EXPECT_EQ(busy - before, std::chrono::milliseconds(8));
}

TEST_F(CudaStream, IsNotReadyUntilItsWorkIsDone) {
  CUstream const own = stream();
  std::atomic<bool> is_open = false;
  CUevent const start = record(own);
  hold(own, is_open);
  CUevent const end = record(own);
  float milliseconds = 0;
  EXPECT_EQ(CU(cuEventElapsedTime)(&milliseconds, start, end), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(CU(cuEventQuery)(end), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(CU(cuStreamQuery)(own), CUDA_ERROR_NOT_READY);
  is_open = true;
  ASSERT_EQ(CU(cuEventSynchronize)(end), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamQuery)(own), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventElapsedTime)(&milliseconds, start, end), CUDA_SUCCESS);
}

TEST_F(CudaStream, RunsThousandsOfShortKernelsWithoutLosingTime) {
  if (is_real_driver()) GTEST_SKIP() << "asks the stand-in device, which a real driver has not";
  CUstream const own = stream();
  const auto before = own_device()->usage();
  constexpr int kLaunches = 20'000;
  for (int i = 0; i < kLaunches; ++i)
    ASSERT_EQ(launch(kernel("spin_1us"), own), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamSynchronize)(own), CUDA_SUCCESS);
  for (const Usage& usage : own_device()->usage())
    if (usage.pid == static_cast<std::uint32_t>(getpid()) && usage.kernels > 0) {
      std::uint64_t earlier = 0;
      Time busy{};
      for (const Usage& old : before)
        if (old.kernels > 0) {
          earlier = old.kernels;
          busy = old.busy;
        }
      EXPECT_EQ(usage.kernels - earlier, static_cast<std::uint64_t>(kLaunches));
      EXPECT_EQ(usage.busy - busy, std::chrono::microseconds(kLaunches));
    }
}

TEST_F(CudaStream, RefusesLaunchesThatNoDeviceCanRun) {
  const auto launch_as = [&](unsigned grid, unsigned block, CUfunction function) {
    return CU(cuLaunchKernel)(function, grid, 1, 1, block, 1, 1, 0, nullptr, nullptr, nullptr);
  };
  EXPECT_EQ(launch_as(0, 32, kernel("spin_1us")), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch_as(1, 2048, kernel("spin_1us")), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch_as(1, 32, kernel("spin_ns")), CUDA_ERROR_INVALID_VALUE) << "no parameter";
  EXPECT_EQ(CU(cuLaunchCooperativeKernel)(kernel("spin_1us"), 1 << 20, 1, 1, 1024, 1, 1, 0, nullptr,
                                          nullptr),
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

TEST_F(CudaStream, LaunchesByAConfiguration) {
  const CUlaunchConfig config{8, 1, 1, 32, 1, 1, 0, stream(), nullptr, 0};
  EXPECT_EQ(CU(cuLaunchKernelEx)(&config, kernel("spin_1us"), nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
}

TEST_F(CudaStream, CallsHostFunctionsInTheStreamsOrder) {
  CUstream const own = stream();
  std::atomic<int> calls = 0;
  CUdeviceptr address = 0;
  unsigned got = 0;
  ASSERT_EQ(CU(cuMemAlloc_v2)(&address, 4), CUDA_SUCCESS);
  ASSERT_EQ(launch(kernel("spin_5ms"), own), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemsetD32Async)(address, 77, 1, own), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemcpyDtoHAsync_v2)(&got, address, 4, own), CUDA_SUCCESS);
  struct Seen {
    std::atomic<int>* calls;
    const unsigned* got;
    unsigned value;
  } seen{&calls, &got, 0};
  const auto note = [](void* data) {
    auto* const into = static_cast<Seen*>(data);
    into->value = *into->got;
    ++*into->calls;
  };
  ASSERT_EQ(CU(cuLaunchHostFunc)(own, note, &seen), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamSynchronize)(own), CUDA_SUCCESS);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(seen.value, 77U);
}

TEST_F(CudaStream, WaitsForAnEventOfAnotherStream) {
  CUstream const first = stream();
  CUstream const second = stream();
  ASSERT_EQ(launch(kernel("spin_20ms"), first), CUDA_SUCCESS);
  CUevent const done = record(first);
  ASSERT_EQ(CU(cuStreamWaitEvent)(second, done, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamSynchronize)(second), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventQuery)(done), CUDA_SUCCESS);
}

TEST_F(CudaStream, HasNoTimeOfEventsThatDoNotMeasureOrWereNotRecorded) {
  CUevent silent = nullptr;
  CUevent fresh = nullptr;
  ASSERT_EQ(CU(cuEventCreate)(&silent, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventCreate)(&fresh, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  CUevent const good = record(nullptr);
  ASSERT_EQ(CU(cuEventRecord)(silent, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  float milliseconds = 0;
  EXPECT_EQ(CU(cuEventElapsedTime)(&milliseconds, good, silent), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuEventElapsedTime)(&milliseconds, good, fresh), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuEventElapsedTime_v2)(&milliseconds, good, good), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventQuery)(fresh), CUDA_SUCCESS) << "nothing was recorded: nothing is open";
}

TEST_F(CudaStream, TakesTheThreadsOwnStreamAsTheDefaultInTheTwins) {
  const auto call_own =
      reinterpret_cast<decltype(&cuLaunchHostFunc)>(driver_symbol("cuLaunchHostFunc_ptsz"));
  const auto query_own =
      reinterpret_cast<decltype(&cuStreamQuery)>(driver_symbol("cuStreamQuery_ptsz"));
  std::atomic<bool> is_open = false;
  const auto wait = [](void* gate) {
    while (!*static_cast<std::atomic<bool>*>(gate))
      usleep(100);
  };
  ASSERT_EQ(call_own(nullptr, wait, &is_open), CUDA_SUCCESS);
  EXPECT_EQ(query_own(nullptr), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(CU(cuStreamQuery)(nullptr), CUDA_ERROR_NOT_READY) << "the legacy stream waits for it";
  is_open = true;
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  EXPECT_EQ(query_own(nullptr), CUDA_SUCCESS);
}

}  // namespace
}  // namespace regatta::standin
