#include "tests/gpu_time/tenant.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "regatta/vgpu/client/cuda_marks.h"
#include "regatta/vgpu/client/gate.h"

namespace regatta::gpu_time {
namespace {

using vgpu::Durations;
using vgpu::Gate;

vgpu::CudaCalls cuda_calls() {
  return {.context_get = standin::driver_function<CUresult(CUcontext*)>("cuCtxGetCurrent"),
          .context_push = standin::driver_function<CUresult(CUcontext)>("cuCtxPushCurrent_v2"),
          .context_pop = standin::driver_function<CUresult(CUcontext*)>("cuCtxPopCurrent_v2"),
          .event_create = standin::driver_function<CUresult(CUevent*, unsigned)>("cuEventCreate"),
          .event_record = standin::driver_function<CUresult(CUevent, CUstream)>("cuEventRecord"),
          .event_wait = standin::driver_function<CUresult(CUevent)>("cuEventSynchronize"),
          .event_elapsed =
              standin::driver_function<CUresult(float*, CUevent, CUevent)>("cuEventElapsedTime"),
          .is_capturing = standin::driver_function<CUresult(CUstream, int*)>("cuStreamIsCapturing"),
          .may_exchange_capture_mode =
              standin::driver_function<CUresult(int*)>("cuThreadExchangeStreamCaptureMode")};
}

// What the process launches again and again.
struct Program {
  CUfunction function = nullptr;
  CUgraphExec graph = nullptr;
  CUstream stream = nullptr;
  std::uint64_t kernel_ns = 0;
  unsigned blocks = 1;

  CUresult launch() {
    if (graph != nullptr) return CU(cuGraphLaunch)(graph, stream);
    return launch_kernel();
  }
  CUresult launch_kernel() {
    void* parameters[] = {&kernel_ns};
    return CU(cuLaunchKernel)(function, blocks, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr);
  }
  std::uint64_t key() const {
    return graph != nullptr ? Durations::key_of(graph, 0) : Durations::key_of(function, blocks);
  }
};

bool capture(Program& program, int kernels) {
  CUgraph graph = nullptr;
  if (CU(cuStreamBeginCapture_v2)(program.stream, 0) != CUDA_SUCCESS) return false;
  for (int i = 0; i < kernels; ++i)
    program.launch_kernel();
  return CU(cuStreamEndCapture)(program.stream, &graph) == CUDA_SUCCESS &&
         CU(cuGraphInstantiateWithFlags)(&program.graph, graph, 0) == CUDA_SUCCESS;
}

bool prepare(Program& program, const Work& work) {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  program.kernel_ns = static_cast<std::uint64_t>(work.kernel.count());
  program.blocks = work.blocks;
  return CU(cuInit)(0) == CUDA_SUCCESS && CU(cuCtxCreate_v2)(&context, 0, 0) == CUDA_SUCCESS &&
         CU(cuModuleLoadData)(&module, standin::kKernels) == CUDA_SUCCESS &&
         CU(cuModuleGetFunction)(&program.function, module, "spin_ns") == CUDA_SUCCESS &&
         CU(cuStreamCreate)(&program.stream, 1) == CUDA_SUCCESS &&
         (work.graph_kernels == 0 || capture(program, work.graph_kernels));
}

}  // namespace

int work_on_device(const TestDevice& device, int page, const Work& work, Board& board) {
  ::setenv("REGATTA_STANDIN", device.socket().c_str(), 1);
  Program program;
  if (!prepare(program, work)) return 3;
  auto client = vgpu::Client::connect(page, Seconds{10.0});
  if (!client) return 4;
  vgpu::CudaMarks marks(cuda_calls());
  Gate gate(**client, 0, marks);
  ++board.ready;
  const double pause_s = std::chrono::duration<double>(work.pause).count();
  while (!board.stop) {
    const Seconds begin = os::monotonic_now();
    const Gate::Pass pass = work.is_bare ? Gate::Pass() : gate.pass(program.key(), program.stream);
    if (program.launch() != CUDA_SUCCESS) return 5;
    gate.launched(pass, program.stream);
    if (pause_s == 0) continue;
    if (CU(cuStreamSynchronize)(program.stream) != CUDA_SUCCESS) return 6;
    board.latency_s[board.latency_count++ % std::size(board.latency_s)] =
        (os::monotonic_now() - begin).value;
    os::sleep_for(Seconds{pause_s});
  }
  return 0;
}

double share(const std::vector<Interval>& log, pid_t pid, Time begin, Time end) {
  Time sum{};
  for (const Interval& one : log) {
    if (one.pid != static_cast<std::uint32_t>(pid) || one.end <= begin || one.start >= end)
      continue;
    sum += std::min(one.end, end) - std::max(one.start, begin);
  }
  return static_cast<double>(sum.count()) / static_cast<double>((end - begin).count());
}

double worst_miss(const std::vector<Interval>& log, pid_t pid, double part, Time begin, Time end) {
  double most = 0;
  constexpr Time kWindow = std::chrono::seconds(1);
  for (Time from = begin; from + kWindow <= end; from += std::chrono::milliseconds(50))
    most = std::max(most, std::abs(share(log, pid, from, from + kWindow) - part));
  return most;
}

}  // namespace regatta::gpu_time

// Tests of this folder fork their tenants.
int regatta::standin::run_client(const std::string&, const std::string&) {
  return 2;
}
