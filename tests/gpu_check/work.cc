// Work for a GPU through the CUDA driver, plain as a program that knows of no tenants: kernels one
// by one or as graphs, and requests with pauses between them. It prints its progress.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>

#include "tests/standin/api.h"

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// Runs as many rounds as the second parameter says; how long a round takes `calibrate` measures.
// The stand-in driver goes by the first one, nanoseconds. The sum of the clocks decides something,
// so that a compiler cannot leave the loop out.
constexpr char kKernel[] = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry busy(.param .u64 busy_param_0, .param .u64 busy_param_1)
{
  .reg .u64 %rd<5>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [busy_param_1];
  mov.u64 %rd2, 0;
  mov.u64 %rd4, 0;
AGAIN:
  mov.u64 %rd3, %clock64;
  add.u64 %rd4, %rd4, %rd3;
  add.u64 %rd2, %rd2, 1;
  setp.lt.u64 %p1, %rd2, %rd1;
  @%p1 bra AGAIN;
  setp.eq.u64 %p2, %rd4, 0;
  @%p2 trap;
  ret;
}
)";

void* find(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  void* const found = driver == nullptr ? nullptr : dlsym(driver, name);
  if (found != nullptr) return found;
  std::fprintf(stderr, "%s: not in libcuda.so.1; install a CUDA driver\n", name);
  std::exit(2);
}
#define CU(name) (reinterpret_cast<decltype(&::name)>(find(#name)))

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: CUDA error %d\n", what, result);
  std::exit(1);
}
#define CHECK(name, ...) check(CU(name)(__VA_ARGS__), #name)

double now() {
  return Seconds(Clock::now().time_since_epoch()).count();
}

struct Work {
  std::uint64_t ns = 0;
  std::uint64_t rounds = 0;
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  CUgraphExec graph = nullptr;  // of kGraphKernels
};
constexpr int kGraphKernels = 10;

void start(Work& work) {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CHECK(cuInit, 0);
  CHECK(cuDevicePrimaryCtxRetain, &context, 0);
  CHECK(cuCtxSetCurrent, context);
  CHECK(cuModuleLoadData, &module, kKernel);
  CHECK(cuModuleGetFunction, &work.function, module, "busy");
  CHECK(cuStreamCreate, &work.stream, CU_STREAM_NON_BLOCKING);
}

void launch_kernel(Work& work) {
  void* parameters[] = {&work.ns, &work.rounds};
  CHECK(cuLaunchKernel, work.function, 1024, 1, 1, 128, 1, 1, 0, work.stream, parameters, nullptr);
}

void make_graph(Work& work) {
  CUgraph graph = nullptr;
  CHECK(cuStreamBeginCapture_v2, work.stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  for (int i = 0; i < kGraphKernels; ++i)
    launch_kernel(work);
  CHECK(cuStreamEndCapture, work.stream, &graph);
  CHECK(cuGraphInstantiateWithFlags, &work.graph, graph, 0);
}

// Keeps a few launches under way and prints, ten times a second, when and how many kernels are
// done.
void work_for(Work& work, double seconds) {
  constexpr std::size_t kUnderWay = 8;
  std::deque<CUevent> events;
  std::uint64_t done = 0;
  const double end = now() + seconds;
  for (double next = now(); now() < end;) {
    CUevent event = nullptr;
    CHECK(cuEventCreate, &event, 2);  // without a time
    if (work.graph != nullptr)
      CHECK(cuGraphLaunch, work.graph, work.stream);
    else
      launch_kernel(work);
    CHECK(cuEventRecord, event, work.stream);
    events.push_back(event);
    if (events.size() < kUnderWay) continue;
    CHECK(cuEventSynchronize, events.front());
    CHECK(cuEventDestroy_v2, events.front());
    events.pop_front();
    done += work.graph != nullptr ? kGraphKernels : 1;
    if (now() < next) continue;
    std::printf("%.4f %llu\n", now(), static_cast<unsigned long long>(done));
    std::fflush(stdout);
    next += 0.1;
  }
  CHECK(cuStreamSynchronize, work.stream);
}

// A request each 10 ms; prints how long each took, in microseconds.
void serve_for(Work& work, double seconds) {
  const double end = now() + seconds;
  while (now() < end) {
    const double begin = now();
    launch_kernel(work);
    CHECK(cuStreamSynchronize, work.stream);
    std::printf("%.1f\n", (now() - begin) * 1e6);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// How many rounds take a microsecond, of a device that does nothing else.
void calibrate(Work& work) {
  double best = 0;
  work.ns = 20'000'000;
  work.rounds = 1'000'000;
  for (int i = 0; i < 5; ++i) {
    const double begin = now();
    launch_kernel(work);
    CHECK(cuStreamSynchronize, work.stream);
    best = std::max(best, static_cast<double>(work.rounds) / (now() - begin));
  }
  std::printf("%.3f\n", best * 1e-6);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  Work work;
  if (what == "calibrate") {
    start(work);
    calibrate(work);
    return 0;
  }
  if (argc != 5 || (what != "kernels" && what != "graphs" && what != "requests")) {
    std::fprintf(stderr,
                 "%s: give calibrate, or kernels, graphs or requests, then SECONDS, and the "
                 "NANOSECONDS and ROUNDS of a kernel\n",
                 argv[0]);
    return 2;
  }
  work.ns = std::strtoull(argv[3], nullptr, 10);
  work.rounds = std::strtoull(argv[4], nullptr, 10);
  start(work);
  if (what == "graphs") make_graph(work);
  if (what == "requests")
    serve_for(work, std::strtod(argv[2], nullptr));
  else
    work_for(work, std::strtod(argv[2], nullptr));
  return 0;
}
