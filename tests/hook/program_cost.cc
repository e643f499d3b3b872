// The cost of calls of the driver, to be compared with and without the hook.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <new>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/hook/program.h"

namespace regatta::hook_test {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The least of some tries is what the call costs when nothing comes between.
template <typename F>
double best_ns(int calls, F&& call) {
  double best = 1e9;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i)
      call();
    best = std::min(best, seconds_since(begin) / calls * 1e9);
  }
  return best;
}

constexpr int kMostProcesses = 1024;
struct Times {
  std::atomic<int> ready = 0;
  std::atomic<int> done = 0;
  double seconds[kMostProcesses] = {};
};

}  // namespace

int print_cost() {
  CUcontext context = nullptr;
  if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS) return 1;
  const auto launch = CU(cuLaunchKernel);
  const auto allocate = CU(cuMemAlloc_v2);
  const auto release = CU(cuMemFree_v2);
  const double launch_ns =
      best_ns(1'000'000, [&] { launch(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr); });
  bool has_failed = false;
  const auto pair_ns = [&](std::size_t bytes) {
    return best_ns(100'000, [&] {
      CUdeviceptr address = 0;
      has_failed |= allocate(&address, bytes) != CUDA_SUCCESS;
      has_failed |= release(address) != CUDA_SUCCESS;
    });
  };
  const double small_ns = pair_ns(512);
  const double large_ns = pair_ns(20 << 20);
  std::printf("launch %.1f small %.1f large %.1f\n", launch_ns, small_ns, large_ns);
  return has_failed ? 1 : 0;
}

// All at once, or each when the one before it is done; they stay until all are. A process that
// reads a letter continues.
int print_start_cost(int processes, bool at_once) {
  void* const memory =
      mmap(nullptr, sizeof(Times), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int go[2] = {};
  int end[2] = {};
  if (memory == MAP_FAILED || processes > kMostProcesses || pipe(go) != 0 || pipe(end) != 0)
    return 1;
  Times& times = *new (memory) Times;
  for (int i = 0; i < processes; ++i) {
    if (fork() != 0) continue;
    char letter = 0;
    close(end[1]);
    ++times.ready;
    if (read(go[0], &letter, 1) != 1) _exit(1);
    const auto begin = Clock::now();
    const CUresult result = CU(cuInit)(0);
    times.seconds[i] = seconds_since(begin);
    ++times.done;
    _exit(read(end[0], &letter, 1) == 0 && result == CUDA_SUCCESS ? 0 : 1);
  }
  const std::vector<char> letters(static_cast<std::size_t>(processes), 'x');
  while (times.ready < processes)
    usleep(1000);
  int failed = 0;
  for (int given = 0; given < processes;) {
    const int more = at_once ? processes : 1;
    if (write(go[1], letters.data(), static_cast<std::size_t>(more)) != more) return 1;
    given += more;
    while (times.done < given)
      usleep(200);
  }
  close(end[1]);
  for (int status = 0; wait(&status) > 0;)
    failed += status != 0 ? 1 : 0;
  std::vector<double> sorted(times.seconds, times.seconds + processes);
  std::ranges::sort(sorted);
  std::printf("p50 %.3f p99 %.3f\n", sorted[sorted.size() / 2] * 1e3,
              sorted[sorted.size() * 99 / 100] * 1e3);
  return failed;
}

}  // namespace regatta::hook_test
