// Which calls captures allow, in which threads, and which queries report about them.
#include <thread>

#include "tests/standin/fixture.h"

namespace regatta::standin {
namespace {

class CudaCapture : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    ASSERT_EQ(CU(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }
  CUresult begin(int mode) const { return CU(cuStreamBeginCapture_v2)(stream_, mode); }
  CUresult end() const {
    CUgraph graph = nullptr;
    return CU(cuStreamEndCapture)(stream_, &graph);
  }
  // The result of an allocation; a thread of its own has this context and this mode.
  CUresult allocate_elsewhere(int mode) const {
    CUresult result = CUDA_ERROR_UNKNOWN;
    std::thread([&] {
      EXPECT_EQ(CU(cuCtxSetCurrent)(context_), CUDA_SUCCESS);
      EXPECT_EQ(CU(cuThreadExchangeStreamCaptureMode)(&mode), CUDA_SUCCESS);
      EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL) << "what a thread starts with";
      result = allocate();
    }).join();
    return result;
  }
  static CUresult allocate() {
    CUdeviceptr address = 0;
    const CUresult result = CU(cuMemAlloc_v2)(&address, 16);
    return result;
  }

  CUstream stream_ = nullptr;
};

constexpr int kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
constexpr int kThreadLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
constexpr int kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

TEST_F(CudaCapture, ForbidsUnsafeCallsToWhomItsModeNames) {
  struct Case {
    int capture;
    int thread;
    bool own_is_forbidden;
    bool other_is_forbidden;
  };
  for (const Case& row :
       {Case{kGlobal, kGlobal, true, true}, Case{kGlobal, kThreadLocal, true, false},
        Case{kGlobal, kRelaxed, false, false}, Case{kThreadLocal, kGlobal, true, false},
        Case{kRelaxed, kGlobal, false, false}}) {
    ASSERT_EQ(begin(row.capture), CUDA_SUCCESS);
    EXPECT_EQ(allocate_elsewhere(row.thread),
              row.other_is_forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS)
        << row.capture << " in a thread of " << row.thread;
    EXPECT_EQ(end(), row.other_is_forbidden ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
    ASSERT_EQ(begin(row.capture), CUDA_SUCCESS);
    int mode = row.thread;
    ASSERT_EQ(CU(cuThreadExchangeStreamCaptureMode)(&mode), CUDA_SUCCESS);
    EXPECT_EQ(allocate(),
              row.own_is_forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS)
        << row.capture << " in its own thread of " << row.thread;
    ASSERT_EQ(CU(cuThreadExchangeStreamCaptureMode)(&mode), CUDA_SUCCESS);
    EXPECT_EQ(mode, row.thread);
    EXPECT_EQ(end(), row.own_is_forbidden ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
  }
}

TEST_F(CudaCapture, RefusesModesThatAreNone) {
  for (int mode : {-1, 3}) {
    EXPECT_EQ(begin(mode), CUDA_ERROR_INVALID_VALUE);
    if (is_real_driver()) continue;  // driver 580 takes any number for a thread's mode
    EXPECT_EQ(CU(cuThreadExchangeStreamCaptureMode)(&mode), CUDA_ERROR_INVALID_VALUE);
  }
}

TEST_F(CudaCapture, IsLostWhenAnotherThreadEndsItUnlessItIsRelaxed) {
  for (const bool is_relaxed : {false, true}) {
    ASSERT_EQ(begin(is_relaxed ? kRelaxed : kThreadLocal), CUDA_SUCCESS);
    CUresult result = CUDA_ERROR_UNKNOWN;
    std::thread([&] { result = end(); }).join();
    EXPECT_EQ(result, is_relaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    EXPECT_EQ(end(), CUDA_ERROR_ILLEGAL_STATE) << "it has ended, also where that was refused";
  }
}

TEST_F(CudaCapture, TellsWhatTheNextNodeComesAfter) {
  int status = -1;
  std::uint64_t first_id = 0;
  std::uint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* after = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  std::size_t count = 99;
  ASSERT_EQ(CU(cuStreamGetCaptureInfo_v2)(stream_, &status, &id, &graph, &after, &count),
            CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  ASSERT_EQ(begin(kGlobal), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamGetCaptureInfo)(stream_, &status, &first_id), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ASSERT_EQ(launch(kernel("spin_1us"), stream_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamGetCaptureInfo_v3)(stream_, &status, &id, &graph, &after, &edges, &count),
            CUDA_SUCCESS);
  EXPECT_EQ(id, first_id);
  ASSERT_EQ(count, 1U);
  CUgraphNode const kernel_node = after[0];
  CUgraphNode node = nullptr;  // a node that the program adds of its own
  ASSERT_EQ(CU(cuGraphAddEmptyNode)(&node, graph, &kernel_node, 1), CUDA_SUCCESS);
  ASSERT_EQ(
      CU(cuStreamUpdateCaptureDependencies)(stream_, &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES),
      CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamGetCaptureInfo_v2)(stream_, &status, nullptr, nullptr, &after, &count),
            CUDA_SUCCESS);
  ASSERT_EQ(count, 1U);
  EXPECT_EQ(after[0], node);
  CUgraph ended = nullptr;
  ASSERT_EQ(CU(cuStreamEndCapture)(stream_, &ended), CUDA_SUCCESS);
  EXPECT_EQ(ended, graph);
  ASSERT_EQ(CU(cuGraphGetNodes)(graph, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(CU(cuStreamUpdateCaptureDependencies)(stream_, nullptr, 0, 0),
            CUDA_ERROR_ILLEGAL_STATE);
}

TEST_F(CudaCapture, GoesIntoAGraphThatIsThere) {
  CUgraph graph = nullptr;
  CUgraph ended = nullptr;
  CUgraphNode first = nullptr;
  std::size_t count = 0;
  ASSERT_EQ(CU(cuGraphCreate)(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphAddEmptyNode)(&first, graph, nullptr, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamBeginCaptureToGraph)(stream_, graph, &first, nullptr, 1, kGlobal),
            CUDA_SUCCESS);
  ASSERT_EQ(launch(kernel("spin_1us"), stream_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamEndCapture)(stream_, &ended), CUDA_SUCCESS);
  EXPECT_EQ(ended, graph);
  ASSERT_EQ(CU(cuGraphGetNodes)(graph, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2U);
}

TEST_F(CudaCapture, CannotMakeTheDefaultStreamWaitForACapture) {
  CUstream blocking = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ(CU(cuStreamCreate)(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
  ASSERT_EQ(begin(kRelaxed), CUDA_SUCCESS);
  EXPECT_EQ(launch(kernel("spin_1us"), nullptr), CUDA_SUCCESS) << "that stream does not block";
  EXPECT_EQ(end(), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamBeginCapture_v2)(blocking, kRelaxed), CUDA_SUCCESS);
  EXPECT_EQ(launch(kernel("spin_1us"), nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(CU(cuStreamEndCapture)(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(launch(kernel("spin_1us"), nullptr), CUDA_SUCCESS);
}

TEST_F(CudaCapture, MakesQuestionsAboutEventsUnsafeToo) {
  CUevent event = nullptr;
  ASSERT_EQ(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventRecord)(event, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  ASSERT_EQ(begin(kGlobal), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventQuery)(event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_EQ(begin(kRelaxed), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventQuery)(event), CUDA_SUCCESS);
  EXPECT_EQ(end(), CUDA_SUCCESS);
}

}  // namespace
}  // namespace regatta::standin
