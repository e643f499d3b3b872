// Launches where a gate has to keep its hands off, and where it has to follow.
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/hook/program.h"

namespace regatta::hook_test {
namespace {

const char* const kKernels =
    ".version 6.4\n.target sm_75\n.address_size 64\n"
    ".visible .entry spin_100us() { ret; }\n"
    ".visible .entry spin_20us() { ret; }\n";

CUfunction kernel(const char* name) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  if (CU(cuModuleLoadData)(&module, kKernels) != CUDA_SUCCESS ||
      CU(cuModuleGetFunction)(&function, module, name) != CUDA_SUCCESS)
    return nullptr;
  return function;
}

std::atomic<std::uint64_t> launched = 0;

CUresult launch(CUfunction function, CUstream stream) {
  ++launched;
  return CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
}

std::size_t count_nodes(CUgraph graph) {
  std::size_t count = 0;
  return CU(cuGraphGetNodes)(graph, nullptr, &count) == CUDA_SUCCESS ? count : ~std::size_t{0};
}

bool begin_capture(CUstream stream, int way) {
  if (way < 3) return CU(cuStreamBeginCapture_v2)(stream, way) == CUDA_SUCCESS;
  CUgraph graph = nullptr;
  return CU(cuGraphCreate)(&graph, 0) == CUDA_SUCCESS &&
         CU(cuStreamBeginCaptureToGraph)(stream, graph, nullptr, nullptr, 0,
                                         CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS;
}

// A capture in each mode, while another thread launches into its own stream: as many nodes as
// launches, and no error.
int capture_in_mode(CUcontext context, CUfunction function, int way) {
  constexpr std::size_t kKernelsCaptured = 3000;
  CUstream captured = nullptr;
  if (CU(cuStreamCreate)(&captured, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return 10;
  std::atomic<bool> stop = false;
  std::atomic<int> failed = 0;
  std::thread other([&] {
    CUstream stream = nullptr;
    CU(cuCtxSetCurrent)(context);
    if (CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) ++failed;
    while (!stop)
      failed += launch(function, stream) == CUDA_SUCCESS ? 0 : 1;
  });
  usleep(20'000);
  if (!begin_capture(captured, way)) return 11;
  int refused = 0;
  for (std::size_t i = 0; i < kKernelsCaptured; ++i)
    refused += launch(function, captured) == CUDA_SUCCESS ? 0 : 1;
  launched -= kKernelsCaptured;
  usleep(20'000);  // turns change
  CUgraph graph = nullptr;
  const CUresult ended = CU(cuStreamEndCapture)(captured, &graph);
  const std::size_t nodes = ended == CUDA_SUCCESS ? count_nodes(graph) : 0;
  stop = true;
  other.join();
  // A captured graph is one launch.
  ++launched;
  CUgraphExec executable = nullptr;
  if (refused != 0 || failed != 0 || nodes != kKernelsCaptured) {
    std::printf("mode %d: ended by %d, %zu nodes, %d refused, %d failed beside\n", way, ended,
                nodes, refused, failed.load());
    return 12;
  }
  return CU(cuGraphInstantiateWithFlags)(&executable, graph, 0) == CUDA_SUCCESS &&
                 CU(cuGraphLaunch)(executable, captured) == CUDA_SUCCESS &&
                 CU(cuStreamSynchronize)(captured) == CUDA_SUCCESS &&
                 CU(cuGraphExecDestroy)(executable) == CUDA_SUCCESS
             ? 0
             : 13;
}

}  // namespace

// After a capture has failed there is no capture any more: launches are counted again.
int capture_beside_launches() {
  CUcontext context = nullptr;
  if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS) return 1;
  CUfunction const function = kernel("spin_100us");
  for (int way = 0; way < 4; ++way)
    if (const int failed = capture_in_mode(context, function, way); failed != 0) return failed;
  CUstream stream = nullptr;
  CUstream other = nullptr;
  CUevent event = nullptr;
  CUgraph graph = nullptr;
  if (CU(cuStreamCreate)(&stream, 1) != CUDA_SUCCESS ||
      CU(cuStreamCreate)(&other, 1) != CUDA_SUCCESS ||
      CU(cuEventCreate)(&event, 0) != CUDA_SUCCESS || !begin_capture(stream, 0) ||
      CU(cuEventRecord)(event, stream) != CUDA_SUCCESS ||
      CU(cuStreamWaitEvent)(other, event, 0) != CUDA_SUCCESS ||
      launch(function, other) != CUDA_SUCCESS ||
      CU(cuStreamEndCapture)(stream, &graph) != CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
    return 2;
  --launched;
  if (launch(function, stream) != CUDA_SUCCESS) return 3;
  // The gate has counted what was not captured, and nothing else.
  auto* const count =
      reinterpret_cast<std::uint64_t (*)()>(dlsym(RTLD_DEFAULT, "regatta_gpu_launches"));
  if (count == nullptr || count() != launched) return 4;
  std::printf("captured\n");
  return 0;
}

// Contexts that come and go while their work is in flight, by several threads.
int launch_in_many_contexts() {
  if (CU(cuInit)(0) != CUDA_SUCCESS) return 1;
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        CUcontext context = nullptr;
        if (CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS) ++failed;
        CUfunction const function = kernel("spin_20us");
        for (int launches = 0; launches < 50; ++launches)
          failed += launch(function, nullptr) == CUDA_SUCCESS ? 0 : 1;
        if (CU(cuCtxDestroy_v2)(context) != CUDA_SUCCESS) ++failed;
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  std::printf("%d failed\n", failed.load());
  return failed == 0 ? 0 : 2;
}

// On both of two devices; how many kernels each did, the device tells.
int launch_on_two_devices() {
  if (CU(cuInit)(0) != CUDA_SUCCESS) return 1;
  for (const int device : {0, 1}) {
    CUcontext context = nullptr;
    if (CU(cuCtxCreate_v2)(&context, 0, device) != CUDA_SUCCESS) return 2;
    CUfunction const function = kernel("spin_20us");
    for (int launches = 0; launches < 300; ++launches)
      if (const CUresult result = launch(function, nullptr); result != CUDA_SUCCESS) {
        std::printf("device %d: %d\n", device, result);
        return 3;
      }
    if (CU(cuCtxSynchronize)() != CUDA_SUCCESS) return 4;
  }
  std::printf("both\n");
  return 0;
}

int flood() {
  CUcontext context = nullptr;
  if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS) return 1;
  CUfunction const function = kernel("spin_100us");
  std::printf("floods\n");
  std::fflush(stdout);
  std::thread([] {
    char letter = 0;
    while (read(STDIN_FILENO, &letter, 1) > 0) {
    }
    _exit(0);
  }).detach();
  while (launch(function, nullptr) == CUDA_SUCCESS) {
  }
  return 2;
}

// Children while other threads are in the gate: each is told at once that it has no driver.
int fork_while_launching() {
  CUcontext context = nullptr;
  if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS) return 1;
  CUfunction const function = kernel("spin_20us");
  std::atomic<bool> stop = false;
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      CU(cuCtxSetCurrent)(context);
      while (!stop)
        failed += launch(function, nullptr) == CUDA_SUCCESS ? 0 : 1;
    });
  // Found before, for a child of many threads may not.
  const auto launch_function = CU(cuLaunchKernel);
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(5);
      int wrong = 0;
      for (int launches = 0; launches < 3000; ++launches)
        wrong += launch_function(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
                         CUDA_ERROR_NOT_INITIALIZED
                     ? 0
                     : 1;
      _exit(wrong == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    failed += status == 0 ? 0 : 1;
  }
  stop = true;
  for (std::thread& thread : threads)
    thread.join();
  std::printf("%d failed\n", failed.load());
  return failed == 0 ? 0 : 2;
}

}  // namespace regatta::hook_test
