// Nodes that are told anew, graphs within graphs, memory that captures allocate.
#include <vector>

#include "tests/standin/fixture.h"

namespace regatta::standin {
namespace {

class CudaGraphUpdate : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    ASSERT_EQ(CU(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemAlloc_v2)(&address_, 64), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemsetD8_v2)(address_, 0, 64), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuGraphCreate)(&graph_, 0), CUDA_SUCCESS);
  }
  unsigned value(int place = 0) const {
    unsigned value = 0;
    EXPECT_EQ(CU(cuMemcpyDtoH_v2)(&value, address_ + static_cast<unsigned>(place) * 4, 4),
              CUDA_SUCCESS);
    return value;
  }
  CUDA_MEMSET_NODE_PARAMS set_to(unsigned value, int place = 0) const {
    return {address_ + static_cast<unsigned>(place) * 4, 0, value, 4, 1, 1};
  }
  CUDA_MEMCPY3D copy_word(int to, int from) const {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = address_ + static_cast<unsigned>(from) * 4;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = address_ + static_cast<unsigned>(to) * 4;
    copy.WidthInBytes = 4;
    copy.Height = 1;
    copy.Depth = 1;
    return copy;
  }
  CUgraphNode add_set(unsigned value, int place = 0,
                      const std::vector<CUgraphNode>& after = {}) const {
    CUgraphNode node = nullptr;
    const CUDA_MEMSET_NODE_PARAMS set = set_to(value, place);
    EXPECT_EQ(CU(cuGraphAddMemsetNode)(&node, graph_, after.data(), after.size(), &set, context_),
              CUDA_SUCCESS);
    return node;
  }
  CUgraphExec instantiate(unsigned long long flags = 0) const {
    CUgraphExec executable = nullptr;
    EXPECT_EQ(CU(cuGraphInstantiateWithFlags)(&executable, graph_, flags), CUDA_SUCCESS);
    return executable;
  }
  void run(CUgraphExec executable) const {
    ASSERT_EQ(CU(cuGraphLaunch)(executable, stream_), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_SUCCESS);
  }

  CUstream stream_ = nullptr;
  CUdeviceptr address_ = 0;
  CUgraph graph_ = nullptr;
};

TEST_F(CudaGraphUpdate, CopiesAfterItSets) {
  CUgraphNode const set = add_set(6);
  CUgraphNode copy = nullptr;
  const CUDA_MEMCPY3D word = copy_word(1, 0);
  ASSERT_EQ(CU(cuGraphAddMemcpyNode)(&copy, graph_, &set, 1, &word, context_), CUDA_SUCCESS);
  CUgraphExec const executable = instantiate();
  run(executable);
  EXPECT_EQ(value(1), 6U);
  CUDA_MEMCPY3D got{};
  ASSERT_EQ(CU(cuGraphMemcpyNodeGetParams)(copy, &got), CUDA_SUCCESS);
  EXPECT_EQ(got.dstDevice, word.dstDevice);
  const CUDA_MEMCPY3D elsewhere = copy_word(2, 0);
  ASSERT_EQ(CU(cuGraphExecMemcpyNodeSetParams)(executable, copy, &elsewhere, context_),
            CUDA_SUCCESS);
  run(executable);
  EXPECT_EQ(value(2), 6U);
}

TEST_F(CudaGraphUpdate, TellsNodesOfAnExecutableAnewAndLeavesTheGraph) {
  CUgraphNode const set = add_set(6);
  CUgraphExec const executable = instantiate();
  const CUDA_MEMSET_NODE_PARAMS other = set_to(7);
  ASSERT_EQ(CU(cuGraphExecMemsetNodeSetParams)(executable, set, &other, context_), CUDA_SUCCESS);
  run(executable);
  EXPECT_EQ(value(), 7U);
  CUDA_MEMSET_NODE_PARAMS own{};
  ASSERT_EQ(CU(cuGraphMemsetNodeGetParams)(set, &own), CUDA_SUCCESS);
  EXPECT_EQ(own.value, 6U);
  ASSERT_EQ(CU(cuGraphMemsetNodeSetParams)(set, &other), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphMemsetNodeGetParams)(set, &own), CUDA_SUCCESS);
  EXPECT_EQ(own.value, 7U);
  const CUDA_KERNEL_NODE_PARAMS launch{kernel("spin_1us"), 4, 1, 1, 32, 1, 1, 0};
  EXPECT_EQ(CU(cuGraphExecKernelNodeSetParams_v2)(executable, set, &launch),
            CUDA_ERROR_INVALID_VALUE)
      << "it is no kernel";
  ASSERT_EQ(CU(cuGraphNodeSetEnabled)(executable, set, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemsetD32_v2)(address_, 1, 1), CUDA_SUCCESS);
  run(executable);
  EXPECT_EQ(value(), 1U) << "the node is left out";
}

TEST_F(CudaGraphUpdate, TakesOverAGraphOfTheSameShapeOnly) {
  CUgraphNode const first = add_set(1, 0);
  add_set(1, 1, {first});
  CUgraphExec const executable = instantiate();
  CUgraphExecUpdateResultInfo info{};
  CUgraph const old = graph_;
  ASSERT_EQ(CU(cuGraphCreate)(&graph_, 0), CUDA_SUCCESS);
  CUgraphNode const again = add_set(5, 0);
  CUgraphNode const second = add_set(5, 1, {again});
  ASSERT_EQ(CU(cuGraphExecUpdate_v2)(executable, graph_, &info), CUDA_SUCCESS);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  ASSERT_EQ(CU(cuGraphDestroy)(old), CUDA_SUCCESS);
  run(executable);
  EXPECT_EQ(value(1), 5U);
  ASSERT_EQ(CU(cuGraphRemoveDependencies)(graph_, &again, &second, 1), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuGraphExecUpdate_v2)(executable, graph_, &info),
            CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  CUgraphNode empty = nullptr;
  ASSERT_EQ(CU(cuGraphAddEmptyNode)(&empty, graph_, &again, 1), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphDestroyNode)(second), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuGraphExecUpdate_v2)(executable, graph_, &info),
            CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  EXPECT_EQ(info.errorNode, empty);
}

TEST_F(CudaGraphUpdate, RunsAGraphWithinAGraph) {
  CUgraph outer = nullptr;
  CUgraph inner = nullptr;
  CUgraphNode node = nullptr;
  std::size_t count = 0;
  add_set(8);
  ASSERT_EQ(CU(cuGraphCreate)(&outer, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphAddChildGraphNode)(&node, outer, nullptr, 0, graph_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphDestroy)(graph_), CUDA_SUCCESS) << "the node has one of its own";
  ASSERT_EQ(CU(cuGraphChildGraphNodeGetGraph)(node, &inner), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphGetNodes)(inner, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1U);
  graph_ = outer;
  run(instantiate());
  EXPECT_EQ(value(), 8U);
}

TEST_F(CudaGraphUpdate, ClonesAndKnowsItsEdges) {
  CUgraphNode const first = add_set(1, 0);
  CUgraphNode const second = add_set(2, 1, {first});
  CUgraph clone = nullptr;
  CUgraphNode twin = nullptr;
  CUgraphNode got = nullptr;
  std::size_t count = 1;
  int type = -1;
  ASSERT_EQ(CU(cuGraphClone)(&clone, graph_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphNodeFindInClone)(&twin, second, clone), CUDA_SUCCESS);
  EXPECT_NE(twin, second);
  ASSERT_EQ(CU(cuGraphNodeGetType)(twin, &type), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEMSET);
  ASSERT_EQ(CU(cuGraphNodeGetDependencies)(second, &got, &count), CUDA_SUCCESS);
  EXPECT_EQ(got, first);
  ASSERT_EQ(CU(cuGraphNodeGetDependentNodes)(first, &got, &count), CUDA_SUCCESS);
  EXPECT_EQ(got, second);
  ASSERT_EQ(CU(cuGraphGetRootNodes)(graph_, &got, &count), CUDA_SUCCESS);
  EXPECT_EQ(got, first);
  ASSERT_EQ(CU(cuGraphGetEdges)(graph_, nullptr, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1U);
  ASSERT_EQ(CU(cuGraphAddDependencies)(graph_, &second, &first, 1), CUDA_SUCCESS);
  CUgraphExec executable = nullptr;
  EXPECT_EQ(CU(cuGraphInstantiateWithFlags)(&executable, graph_, 0), CUDA_ERROR_INVALID_VALUE)
      << "the nodes wait for each other";
}

TEST_F(CudaGraphUpdate, KeepsTheParametersOfLaunchesAlsoOfCapturedOnes) {
  std::uint64_t nanoseconds = 1234;
  void* parameters[] = {&nanoseconds};
  CUgraph captured = nullptr;
  CUgraphNode node = nullptr;
  std::size_t count = 1;
  ASSERT_EQ(CU(cuStreamBeginCapture_v2)(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(launch(kernel("spin_ns"), stream_, parameters), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamEndCapture)(stream_, &captured), CUDA_SUCCESS);
  nanoseconds = 0;
  ASSERT_EQ(CU(cuGraphGetNodes)(captured, &node, &count), CUDA_SUCCESS);
  CUDA_KERNEL_NODE_PARAMS got{};
  ASSERT_EQ(CU(cuGraphKernelNodeGetParams_v2)(node, &got), CUDA_SUCCESS);
  EXPECT_EQ(got.func, kernel("spin_ns"));
  EXPECT_EQ(got.gridDimX, 1024U);
  EXPECT_EQ(*static_cast<std::uint64_t*>(got.kernelParams[0]), 1234U);
  got.gridDimX = 0;
  EXPECT_EQ(CU(cuGraphKernelNodeSetParams_v2)(node, &got), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaGraphUpdate, AllocatesByCaptureAndFreesByItself) {
  CUdeviceptr memory = 0;
  CUgraph captured = nullptr;
  std::vector<CUgraphNode> nodes(3);
  std::size_t count = 3;
  ASSERT_EQ(CU(cuStreamBeginCapture_v2)(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAllocAsync)(&memory, 4096, stream_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemsetD32Async)(memory, 3, 10, stream_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemcpyDtoDAsync_v2)(address_, memory, 4, stream_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamEndCapture)(stream_, &captured), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphGetNodes)(captured, nodes.data(), &count), CUDA_SUCCESS);
  int type = -1;
  ASSERT_EQ(CU(cuGraphNodeGetType)(nodes[0], &type), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  graph_ = captured;
  CUgraphExec const strict = instantiate();
  run(strict);
  EXPECT_EQ(value(), 3U);
  EXPECT_EQ(CU(cuGraphLaunch)(strict, stream_), CUDA_ERROR_INVALID_VALUE) << "nobody freed it";
  ASSERT_EQ(CU(cuMemFreeAsync)(memory, stream_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphExecDestroy)(strict), CUDA_SUCCESS);
  CUgraphExec const lenient = instantiate(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  run(lenient);
  run(lenient);
  ASSERT_EQ(CU(cuMemFreeAsync)(memory, stream_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_SUCCESS);
  CUgraph clone = nullptr;
  EXPECT_EQ(CU(cuGraphClone)(&clone, captured), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(CudaGraphUpdate, RecordsAndWaitsForEvents) {
  CUevent event = nullptr;
  CUgraphNode record = nullptr;
  CUgraphNode wait = nullptr;
  ASSERT_EQ(CU(cuEventCreate)(&event, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  CUgraphNode const set = add_set(2);
  ASSERT_EQ(CU(cuGraphAddEventRecordNode)(&record, graph_, &set, 1, event), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphAddEventWaitNode)(&wait, graph_, &record, 1, event), CUDA_SUCCESS);
  run(instantiate());
  EXPECT_EQ(CU(cuEventQuery)(event), CUDA_SUCCESS);
  float milliseconds = 1;
  EXPECT_EQ(CU(cuEventElapsedTime)(&milliseconds, event, event), CUDA_SUCCESS);
}

}  // namespace
}  // namespace regatta::standin
