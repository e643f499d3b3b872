// Capture and graphs.
#include <unistd.h>

#include "tests/standin/fixture.h"

namespace regatta::standin {
namespace {

class CudaGraph : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    ASSERT_EQ(CU(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemAlloc_v2)(&address_, 16), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemsetD8_v2)(address_, 0, 16), CUDA_SUCCESS);
  }
  unsigned value() const {
    unsigned value = 0;
    EXPECT_EQ(CU(cuMemcpyDtoH_v2)(&value, address_, 4), CUDA_SUCCESS);
    return value;
  }
  CUresult begin(int mode = CU_STREAM_CAPTURE_MODE_GLOBAL) const {
    return CU(cuStreamBeginCapture_v2)(stream_, mode);
  }
  void run(CUgraph graph, int times) const {
    CUgraphExec executable = nullptr;
    ASSERT_EQ(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuGraphUpload)(executable, stream_), CUDA_SUCCESS);
    for (int i = 0; i < times; ++i)
      ASSERT_EQ(CU(cuGraphLaunch)(executable, stream_), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuGraphExecDestroy)(executable), CUDA_SUCCESS);
  }

  CUstream stream_ = nullptr;
  CUdeviceptr address_ = 0;
};

TEST_F(CudaGraph, CapturesWithoutRunningAndReplays) {
  int calls = 0;
  const auto count = [](void* data) { ++*static_cast<int*>(data); };
  CUgraph graph = nullptr;
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  ASSERT_EQ(launch(kernel("spin_1us"), stream_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemsetD32Async)(address_, 5, 1, stream_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuLaunchHostFunc)(stream_, count, &calls), CUDA_SUCCESS);
  int status = -1;
  ASSERT_EQ(CU(cuStreamIsCapturing)(stream_, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ASSERT_EQ(CU(cuStreamEndCapture)(stream_, &graph), CUDA_SUCCESS);
  std::size_t nodes = 0;
  ASSERT_EQ(CU(cuGraphGetNodes)(graph, nullptr, &nodes), CUDA_SUCCESS);
  EXPECT_EQ(nodes, 3U);
  EXPECT_EQ(value(), 0U);
  run(graph, 3);
  EXPECT_EQ(value(), 5U);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(CU(cuGraphDestroy)(graph), CUDA_SUCCESS);
}

TEST_F(CudaGraph, CountsEveryKernelOfEveryReplay) {
  if (is_real_driver()) GTEST_SKIP() << "asks the stand-in device, which a real driver has not";
  CUgraph graph = nullptr;
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  for (int i = 0; i < 10; ++i)
    ASSERT_EQ(launch(kernel("spin_200us"), stream_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamEndCapture)(stream_, &graph), CUDA_SUCCESS);
  const auto count = [] {
    Usage sum;
    for (const Usage& usage : own_device()->usage()) {
      sum.kernels += usage.kernels;
      sum.busy += usage.busy;
    }
    return sum;
  };
  const Usage before = count();
  run(graph, 5);
  EXPECT_EQ(count().kernels - before.kernels, 50U);
  EXPECT_EQ(count().busy - before.busy, std::chrono::milliseconds(10));
}

TEST_F(CudaGraph, IsMadeByTheFunctionsOfBeforeCuda11) {
  for (const auto instantiate : {CU(cuGraphInstantiate), CU(cuGraphInstantiate_v2)}) {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    CUgraphNode wrong = nullptr;
    char log[8] = "before";
    ASSERT_EQ(CU(cuStreamBeginCapture)(stream_), CUDA_SUCCESS);
    ASSERT_EQ(launch(kernel("spin_1us"), stream_), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuStreamEndCapture)(stream_, &graph), CUDA_SUCCESS);
    ASSERT_EQ(instantiate(&executable, graph, &wrong, log, sizeof log), CUDA_SUCCESS);
    EXPECT_STREQ(log, "");
    EXPECT_EQ(CU(cuGraphLaunch)(executable, stream_), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuGraphExecDestroy)(executable), CUDA_SUCCESS);
    EXPECT_EQ(instantiate(nullptr, graph, nullptr, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CU(cuGraphDestroy)(graph), CUDA_SUCCESS);
  }
}

TEST_F(CudaGraph, IsSpoiltByAWaitDuringTheCapture) {
  CUgraph graph = nullptr;
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  int status = -1;
  ASSERT_EQ(CU(cuStreamIsCapturing)(stream_, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  EXPECT_EQ(CU(cuStreamEndCapture)(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_SUCCESS) << "the stream is free again";
}

TEST_F(CudaGraph, ForbidsUnsafeCallsUnlessTheCaptureIsRelaxed) {
  CUgraph graph = nullptr;
  CUdeviceptr address = 0;
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&address, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(CU(cuStreamEndCapture)(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_EQ(begin(CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&address, 16), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamEndCapture)(stream_, &graph), CUDA_SUCCESS);
}

TEST_F(CudaGraph, TakesStreamsInThatWaitAndWantsThemBack) {
  CUstream other = nullptr;
  CUevent fork = nullptr;
  CUevent join = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ(CU(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventCreate)(&fork, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventCreate)(&join, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  for (const bool is_joined : {false, true}) {
    ASSERT_EQ(begin(), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemsetD32Async)(address_, 9, 1, stream_), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuEventRecord)(fork, stream_), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuStreamWaitEvent)(other, fork, 0), CUDA_SUCCESS);
    ASSERT_EQ(launch(kernel("spin_1us"), other), CUDA_SUCCESS);
    if (is_joined) {
      ASSERT_EQ(CU(cuEventRecord)(join, other), CUDA_SUCCESS);
      ASSERT_EQ(CU(cuStreamWaitEvent)(stream_, join, 0), CUDA_SUCCESS);
    }
    constexpr CUresult kUnjoined = 904;
    EXPECT_EQ(CU(cuStreamEndCapture)(stream_, &graph), is_joined ? CUDA_SUCCESS : kUnjoined);
  }
  run(graph, 1);
  EXPECT_EQ(value(), 9U);
}

TEST_F(CudaGraph, RunsNodesThatWereMadeOneByOne) {
  CUgraph graph = nullptr;
  CUgraphNode first = nullptr;
  CUgraphNode second = nullptr;
  CUgraphNode third = nullptr;
  ASSERT_EQ(CU(cuGraphCreate)(&graph, 0), CUDA_SUCCESS);
  const CUDA_KERNEL_NODE_PARAMS kernel_node{kernel("spin_1us"), 4, 1, 1, 32, 1, 1, 0};
  const CUDA_MEMSET_NODE_PARAMS set{address_, 0, 3, 4, 1, 1};
  ASSERT_EQ(CU(cuGraphAddEmptyNode)(&first, graph, nullptr, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphAddKernelNode_v2)(&second, graph, &first, 1, &kernel_node), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphAddMemsetNode)(&third, graph, &second, 1, &set, context_), CUDA_SUCCESS);
  run(graph, 2);
  EXPECT_EQ(value(), 3U);
}

TEST_F(CudaGraph, KeepsTheMemoryItAllocatesUntilItIsTrimmed) {
  CUgraph graph = nullptr;
  CUgraphNode allocate = nullptr;
  CUgraphNode set = nullptr;
  CUgraphNode free = nullptr;
  std::size_t before = 0;
  std::size_t now = 0;
  std::uint64_t reserved = 0;
  ASSERT_EQ(CU(cuMemGetInfo_v2)(&before, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphCreate)(&graph, 0), CUDA_SUCCESS);
  CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
  wanted.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  wanted.bytesize = 20 * kMiB;
  ASSERT_EQ(CU(cuGraphAddMemAllocNode)(&allocate, graph, nullptr, 0, &wanted), CUDA_SUCCESS);
  const CUDA_MEMSET_NODE_PARAMS fill{wanted.dptr, 0, 3, 4, 100, 1};
  ASSERT_EQ(CU(cuGraphAddMemsetNode)(&set, graph, &allocate, 1, &fill, context_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphAddMemFreeNode)(&free, graph, &set, 1, wanted.dptr), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemGetInfo_v2)(&now, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(now, before) << "a node takes nothing before it is launched";
  run(graph, 3);
  ASSERT_EQ(CU(cuMemGetInfo_v2)(&now, nullptr), CUDA_SUCCESS);
  EXPECT_LE(now, before - 20 * kMiB);
  ASSERT_EQ(CU(cuDeviceGetGraphMemAttribute)(0, 2, &reserved), CUDA_SUCCESS);
  EXPECT_GE(reserved, 20 * kMiB);
  ASSERT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuDeviceGraphMemTrim)(0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemGetInfo_v2)(&now, nullptr), CUDA_SUCCESS);
  EXPECT_LE(before - now, is_real_driver() ? 2 * kMiB : 0);  // driver 580 keeps a block
}

TEST_F(CudaGraph, SaysWhatItsNodesAre) {
  CUgraph graph = nullptr;
  CUgraphNode allocate = nullptr;
  CUgraphNode release = nullptr;
  CUgraphNode empty = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
  CUDA_MEM_ALLOC_NODE_PARAMS got{};
  int type = -1;
  wanted.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  wanted.bytesize = 3 * kMiB;
  ASSERT_EQ(CU(cuGraphCreate)(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphAddMemAllocNode)(&allocate, graph, nullptr, 0, &wanted), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphAddMemFreeNode)(&release, graph, &allocate, 1, wanted.dptr), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphAddEmptyNode)(&empty, graph, &release, 1), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphNodeGetType)(allocate, &type), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  ASSERT_EQ(CU(cuGraphNodeGetType)(release, &type), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEM_FREE);
  ASSERT_EQ(CU(cuGraphNodeGetType)(empty, &type), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_EMPTY);
  ASSERT_EQ(CU(cuGraphMemAllocNodeGetParams)(allocate, &got), CUDA_SUCCESS);
  EXPECT_EQ(got.bytesize, 3 * kMiB);
  EXPECT_EQ(got.dptr, wanted.dptr);
  EXPECT_EQ(CU(cuGraphMemAllocNodeGetParams)(release, &got), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(CU(cuGraphDestroy)(graph), CUDA_SUCCESS);
}

TEST_F(CudaGraph, CannotAllocateAgainWhatNobodyFreed) {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  CUgraphNode allocate = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
  wanted.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  wanted.bytesize = kMiB;
  ASSERT_EQ(CU(cuGraphCreate)(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphAddMemAllocNode)(&allocate, graph, nullptr, 0, &wanted), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphLaunch)(executable, stream_), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuGraphLaunch)(executable, stream_), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(CU(cuMemsetD8Async)(wanted.dptr, 1, kMiB, stream_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemFreeAsync)(wanted.dptr, stream_), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuGraphLaunch)(executable, stream_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemFreeAsync)(wanted.dptr, stream_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_SUCCESS);
}

TEST_F(CudaGraph, CannotCaptureTheDefaultStreamOrAStreamTwice) {
  CUgraph graph = nullptr;
  EXPECT_EQ(CU(cuStreamBeginCapture_v2)(nullptr, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(CU(cuStreamEndCapture)(stream_, &graph), CUDA_ERROR_ILLEGAL_STATE);
  ASSERT_EQ(begin(), CUDA_SUCCESS);
  EXPECT_EQ(begin(), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(CU(cuStreamEndCapture)(stream_, &graph), CUDA_SUCCESS);
}

}  // namespace
}  // namespace regatta::standin
