// Uses a driver that fails now and then, and goes on.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tests/hook/program.h"
#include "tests/hook/program_steps.h"

namespace regatta::hook_test {
namespace {

constexpr std::size_t kMiB = 1 << 20;
constexpr CUmemLocation kHere = {CU_MEM_LOCATION_TYPE_DEVICE, 0};

// One word a result, "-" after the kind of calls that gave them.
class Results {
 public:
  void add(CUresult result) { line_ += " " + std::to_string(result); }
  void begin(const char* kind) { line_ += std::string(line_.empty() ? "" : ", ") + kind; }
  const std::string& line() const { return line_; }

 private:
  std::string line_;
};

void stop(const std::string& line) {
  std::printf("%s\n", line.c_str());
  wait_for_line();
}

struct Taken {
  CUdeviceptr addresses[4] = {};
  CUdeviceptr of_pool[2] = {};
  CUmemGenericAllocationHandle handles[2] = {};
  CUarray arrays[2] = {};
};

void take(Taken& taken, Results& results) {
  const CUmemAllocationProp here = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = kHere};
  const CUDA_ARRAY_DESCRIPTOR square = {512, 512, CU_AD_FORMAT_FLOAT, 4};
  results.begin("addresses");
  for (CUdeviceptr& address : taken.addresses)
    results.add(CU(cuMemAlloc_v2)(&address, 3 * kMiB));
  results.begin("pool");
  for (CUdeviceptr& address : taken.of_pool)
    results.add(CU(cuMemAllocAsync)(&address, 4 * kMiB, nullptr));
  results.begin("handles");
  for (CUmemGenericAllocationHandle& handle : taken.handles)
    results.add(CU(cuMemCreate)(&handle, 2 * kMiB, &here, 0));
  results.begin("arrays");
  for (CUarray& array : taken.arrays)
    results.add(CU(cuArrayCreate_v2)(&array, &square));
}

void give(const Taken& taken, Results& results) {
  results.begin("addresses");
  for (const CUdeviceptr address : taken.addresses)
    if (address != 0) results.add(CU(cuMemFree_v2)(address));
  results.begin("pool");
  for (const CUdeviceptr address : taken.of_pool)
    if (address != 0) results.add(CU(cuMemFreeAsync)(address, nullptr));
  results.add(CU(cuCtxSynchronize)());
  results.begin("handles");
  for (const CUmemGenericAllocationHandle handle : taken.handles)
    if (handle != 0) results.add(CU(cuMemRelease)(handle));
  results.begin("arrays");
  for (CUarray const array : taken.arrays)
    if (array != nullptr) results.add(CU(cuArrayDestroy)(array));
}

}  // namespace

int take_with_faults() {
  CUcontext context = nullptr;
  Results start;
  start.begin("start");
  start.add(CU(cuInit)(0));
  start.add(CU(cuCtxCreate_v2)(&context, 0, 0));
  stop(start.line());
  Taken taken;
  Results results;
  take(taken, results);
  stop(results.line());
  Results ends;
  give(taken, ends);
  stop(ends.line());
  return 0;
}

// Makes its first context while another thread waits for memory: says what it sees as free before,
// within and after that, in MiB.
int make_a_context_beside_one_who_waits() {
  const CUmemAllocationProp here = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = kHere};
  const auto free_mib = [] {
    std::size_t free = 0;
    CU(cuMemGetInfo_v2)(&free, nullptr);
    return std::to_string(free / kMiB);
  };
  CUcontext context = nullptr;
  CUmemGenericAllocationHandle spare = 0;
  CUmemGenericAllocationHandle waited_for = 0;
  if (CU(cuInit)(0) != CUDA_SUCCESS ||
      CU(cuMemCreate)(&spare, 20 * kMiB, &here, 0) != CUDA_SUCCESS ||
      CU(cuMemRelease)(spare) != CUDA_SUCCESS)
    return 1;
  stop("20 MiB spare");
  std::atomic<CUresult> result = CUDA_ERROR_NOT_READY;
  std::thread thread([&] { result = CU(cuMemCreate)(&waited_for, 60 * kMiB, &here, 0); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS) return 2;
  const std::string within = result == CUDA_ERROR_NOT_READY ? free_mib() : "none waited";
  stop(within);
  thread.join();
  stop(std::to_string(result) + " " + free_mib());
  return 0;
}

// The daemon is asked at most once in a second, and on a loaded machine it may miss that moment.
static CUresult wait_past_a_pause() {
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < 3 && result == CUDA_SUCCESS; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    result = CU(cuCtxSynchronize)();
  }
  return result;
}

// Takes memory between stops, as the daemon comes and goes.
int take_beside_a_daemon() {
  CUcontext context = nullptr;
  if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS) return 1;
  stop("ready");
  CUdeviceptr taken[3] = {};
  std::string results = "taken";
  for (CUdeviceptr& address : taken)
    results += " " + std::to_string(CU(cuMemAlloc_v2)(&address, 10 * kMiB));
  stop(results);
  stop("waited " + std::to_string(wait_past_a_pause()));
  CUdeviceptr more = 0;
  stop("more " + std::to_string(CU(cuMemAlloc_v2)(&more, 10 * kMiB)));
  for (const CUdeviceptr address : taken)
    if (CU(cuMemFree_v2)(address) != CUDA_SUCCESS) return 2;
  stop("freed");
  stop("context " + std::to_string(CU(cuCtxCreate_v2)(&context, 0, 0)));
  return 0;
}

// Takes memory that nobody counts and waits for work again and again: says how long at most.
int wait_beside_a_daemon_that_hangs() {
  using Clock = std::chrono::steady_clock;
  CUcontext context = nullptr;
  if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS) return 1;
  stop("ready");
  CUdeviceptr address = 0;
  stop("taken " + std::to_string(CU(cuMemAlloc_v2)(&address, 10 * kMiB)));
  Clock::duration longest{};
  for (const auto end = Clock::now() + std::chrono::milliseconds(2500); Clock::now() < end;) {
    const auto begin = Clock::now();
    if (CU(cuCtxSynchronize)() != CUDA_SUCCESS) return 2;
    longest = std::max(longest, Clock::now() - begin);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  stop(std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(longest).count()));
  stop("waited " + std::to_string(wait_past_a_pause()));
  return 0;
}

// Has 10 MiB spare and owes 30 MiB. One thread asks for more, so that these are paid first, which
// takes its time; the other one asks for what is spare.
int take_while_debts_are_paid() {
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
  if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS ||
      CU(cuMemAlloc_v2)(&address, 10 * kMiB) != CUDA_SUCCESS ||
      CU(cuMemFree_v2)(address) != CUDA_SUCCESS)
    return 1;
  stop("ready");
  if (CU(cuMemAlloc_v2)(&address, 30 * kMiB) != CUDA_SUCCESS) return 2;
  stop("taken");
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // then the daemon is asked again
  CUresult results[2] = {};
  const auto take = [&](int which, std::size_t bytes) {
    CUdeviceptr taken = 0;
    CU(cuCtxSetCurrent)(context);
    results[which] = CU(cuMemAlloc_v2)(&taken, bytes);
  };
  std::thread payer(take, 0, 20 * kMiB);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::thread other(take, 1, 10 * kMiB);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  stop("asked");
  payer.join();
  other.join();
  stop(std::to_string(results[0]) + " " + std::to_string(results[1]));
  return 0;
}

// The first allocation is slow, in a thread of its own.
int take_beside_a_slow_call() {
  CUcontext context = nullptr;
  if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS) return 1;
  CUdeviceptr slow = 0;
  std::atomic<bool> is_done = false;
  std::thread thread([&] {
    CU(cuCtxSetCurrent)(context);
    CU(cuMemAlloc_v2)(&slow, kMiB);
    is_done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  int taken = 0;
  for (CUdeviceptr address = 0; !is_done && taken < 100; ++taken)
    if (CU(cuMemAlloc_v2)(&address, kMiB) != CUDA_SUCCESS ||
        CU(cuMemFree_v2)(address) != CUDA_SUCCESS)
      return 2;
  const int beside = is_done ? 0 : taken;
  thread.join();
  stop(std::to_string(beside) + (slow != 0 ? " beside it" : ", and it failed"));
  return 0;
}

}  // namespace regatta::hook_test
