// A program that uses a GPU and knows nothing of others: it launches the same again and again until
// its control says stop. Words: the control's file, then any of kernel_ns=, graph= (so many kernels
// in one graph; 0: none), blocks=, pause_us= (waits for each, then pauses), threads= (each with its
// own stream).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/gpu_time/program_control.h"
#include "tests/standin/api.h"

namespace regatta::gpu_time {
namespace {

void* driver_symbol(const char* name) {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) std::abort();
  return dlsym(handle, name);
}
#define CU(name) (reinterpret_cast<decltype(&::name)>(driver_symbol(#name)))

using Clock = std::chrono::steady_clock;

struct Work {
  std::uint64_t kernel_ns = 200'000;
  int graph_kernels = 0;
  unsigned blocks = 1024;
  unsigned pause_us = 0;
  int threads = 1;
};

// The launches of one thread.
struct Queue {
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  CUgraphExec graph = nullptr;
  std::uint64_t kernel_ns = 0;
  unsigned blocks = 1;
  decltype(&::cuLaunchKernel) launch_function = CU(cuLaunchKernel);
  decltype(&::cuGraphLaunch) launch_graph_function = CU(cuGraphLaunch);

  CUresult launch_kernel() {
    void* parameters[] = {&kernel_ns};
    return launch_function(function, blocks, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr);
  }
  CUresult launch() {
    return graph != nullptr ? launch_graph_function(graph, stream) : launch_kernel();
  }
};

bool capture(Queue& queue, int kernels) {
  CUgraph graph = nullptr;
  if (CU(cuStreamBeginCapture_v2)(queue.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) !=
      CUDA_SUCCESS)
    return false;
  for (int i = 0; i < kernels; ++i)
    queue.launch_kernel();
  return CU(cuStreamEndCapture)(queue.stream, &graph) == CUDA_SUCCESS &&
         CU(cuGraphInstantiateWithFlags)(&queue.graph, graph, 0) == CUDA_SUCCESS;
}

int work_in_thread(CUcontext context, CUfunction function, const Work& work,
                   ProgramControl& control) {
  Queue queue{.function = function, .kernel_ns = work.kernel_ns, .blocks = work.blocks};
  if (CU(cuCtxSetCurrent)(context) != CUDA_SUCCESS ||
      CU(cuStreamCreate)(&queue.stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
      (work.graph_kernels != 0 && !capture(queue, work.graph_kernels)))
    return 3;
  ++control.ready;
  while (!control.stop) {
    const auto begin = Clock::now();
    if (queue.launch() != CUDA_SUCCESS) return 4;
    if (work.pause_us == 0) continue;
    if (CU(cuStreamSynchronize)(queue.stream) != CUDA_SUCCESS) return 5;
    control.latency_ns[control.latency_count++ % ProgramControl::kMostLatencies] =
        static_cast<std::uint64_t>((Clock::now() - begin).count());
    std::this_thread::sleep_for(std::chrono::microseconds(work.pause_us));
  }
  return 0;
}

int work(const Work& work, ProgramControl& control) {
  const char* const kernels =
      ".version 6.4\n.target sm_75\n.address_size 64\n"
      ".visible .entry spin_ns(.param .u64 nanoseconds) { ret; }\n";
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS ||
      CU(cuCtxSetCurrent)(context) != CUDA_SUCCESS ||
      CU(cuModuleLoadData)(&module, kernels) != CUDA_SUCCESS ||
      CU(cuModuleGetFunction)(&function, module, "spin_ns") != CUDA_SUCCESS)
    return 2;
  std::atomic<int> status = 0;
  std::vector<std::thread> others;
  for (int i = 1; i < work.threads; ++i)
    others.emplace_back([&] {
      if (const int failed = work_in_thread(context, function, work, control); failed != 0)
        status = failed;
    });
  if (const int failed = work_in_thread(context, function, work, control); failed != 0)
    status = failed;
  for (std::thread& other : others)
    other.join();
  return status;
}

}  // namespace
}  // namespace regatta::gpu_time

int main(int argc, char** argv) {
  using namespace regatta::gpu_time;
  std::map<std::string, unsigned long> words;
  for (int i = 2; i < argc; ++i) {
    const char* const equals = std::strchr(argv[i], '=');
    if (equals == nullptr) return 64;
    words[std::string(argv[i], static_cast<std::size_t>(equals - argv[i]))] =
        std::strtoul(equals + 1, nullptr, 10);
  }
  const int file = argc > 1 ? ::open(argv[1], O_RDWR | O_CLOEXEC) : -1;
  void* const memory =
      ::mmap(nullptr, sizeof(ProgramControl), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return 64;
  ::prctl(PR_SET_TIMERSLACK, 1);
  return work({.kernel_ns = words["kernel_ns"],
               .graph_kernels = static_cast<int>(words["graph"]),
               .blocks = static_cast<unsigned>(words["blocks"]),
               .pause_us = static_cast<unsigned>(words["pause_us"]),
               .threads = static_cast<int>(words["threads"])},
              *static_cast<ProgramControl*>(memory));
}
