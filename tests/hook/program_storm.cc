// Processes that take and give back memory without end while they are killed, at any time or at a
// certain instruction; a process that forks, and one that becomes another.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/hook/program.h"
#include "tests/hook/program_steps.h"

namespace regatta::hook_test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMiB = 1 << 20;
constexpr int kMostWorkers = 65;  // 64 and one beside them

enum Phase { kWork, kPause, kEnd };

// State that a worker and its parent share.
struct Shared {
  std::atomic<int> phase = kWork;
  std::atomic<bool> is_paused[kMostWorkers] = {};
  std::atomic<unsigned long> calls = 0;
  std::atomic<unsigned long> refusals = 0;
  std::atomic<unsigned long> wrong = 0;
  std::atomic<long> slowest_us = 0;
};

// Where a victim stops to be driven on by instructions.
enum class Stop { kNever, kAtStart, kAtWork };

struct Held {
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
};

class Worker {
 public:
  Worker(Shared& shared, int number, unsigned seed, Stop stop)
      : shared_(shared), number_(number), random_(seed), stop_(stop) {}

  int run() {
    CUcontext context = nullptr;
    stop_if(Stop::kAtStart);
    if (CU(cuInit)(0) != CUDA_SUCCESS) return fail("cuInit");
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    while (result == CUDA_ERROR_OUT_OF_MEMORY && shared_.phase != kEnd) {
      pause_when_told();
      result = CU(cuCtxCreate_v2)(&context, 0, 0);
      if (result == CUDA_ERROR_OUT_OF_MEMORY) usleep(1000);
    }
    if (result != CUDA_SUCCESS) return shared_.phase == kEnd ? 0 : fail("cuCtxCreate");
    const std::size_t before_stop = random_() % 8;
    for (std::size_t done = 0; shared_.phase != kEnd; ++done) {
      pause_when_told();
      if (done == before_stop) stop_if(Stop::kAtWork);
      ++shared_.calls;
      if (held_.size() > 30 || (!held_.empty() && random_() % 2 == 0)) {
        give();
      } else {
        take();
      }
    }
    while (!held_.empty())
      give();
    return CU(cuCtxDestroy_v2)(context) == CUDA_SUCCESS ? 0 : fail("cuCtxDestroy");
  }

 private:
  int fail(const char* what) {
    std::fprintf(stderr, "worker: %s failed\n", what);
    ++shared_.wrong;
    return 1;
  }

  void stop_if(Stop here) {
    if (stop_ != here) return;
    stop_ = Stop::kNever;
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    is_driven_ = true;
    raise(SIGSTOP);
  }

  void pause_when_told() {
    if (shared_.phase != kPause) return;
    if (is_started_) CU(cuCtxSynchronize)();
    shared_.is_paused[number_] = true;
    while (shared_.phase == kPause)
      usleep(200);
    shared_.is_paused[number_] = false;
  }

  template <typename F>
  CUresult timed(F&& call) {
    const auto begin = Clock::now();
    const CUresult result = call();
    if (is_driven_) return result;  // it is slow for another reason
    const long took =
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin).count();
    long slowest = shared_.slowest_us;
    while (slowest < took && !shared_.slowest_us.compare_exchange_weak(slowest, took)) {
    }
    return result;
  }

  void take() {
    is_started_ = true;
    const std::size_t bytes =
        random_() % 4 == 0 ? (1 + random_() % 8) * 2 * kMiB : 1 + random_() % 100'000;
    Held made;
    const CUmemAllocationProp here = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUresult result = timed([&] {
      switch (random_() % 4) {
        case 0:
          return CU(cuMemAllocAsync)(&made.address, bytes, nullptr);
        case 1:
          return CU(cuMemCreate)(&made.handle, (bytes / (2 * kMiB) + 1) * 2 * kMiB, &here, 0);
        default:
          return CU(cuMemAlloc_v2)(&made.address, bytes);
      }
    });
    if (result == CUDA_SUCCESS) {
      held_.push_back(made);
    } else if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      ++shared_.refusals;
    } else {
      fail("an allocation");
    }
  }

  void give() {
    const Held one = held_.back();
    held_.pop_back();
    const CUresult result = timed([&] {
      if (one.handle != 0) return CU(cuMemRelease)(one.handle);
      return CU(cuMemFree_v2)(one.address);
    });
    if (result != CUDA_SUCCESS) fail("a release");
  }

  Shared& shared_;
  const int number_;
  std::mt19937 random_;
  std::vector<Held> held_;
  bool is_started_ = false;
  bool is_driven_ = false;
  Stop stop_;
};

Shared* make_shared() {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) Shared;
}

pid_t hire(Shared& shared, int number, Stop stop = Stop::kNever) {
  static unsigned seed = 0;
  ++seed;
  std::fflush(stdout);
  shared.is_paused[number] = false;
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  _exit(Worker(shared, number, seed, stop).run());
}

bool ended_by_itself(int status) {
  if (WIFEXITED(status))
    std::fprintf(stderr, "a process to be killed ended with %d\n", WEXITSTATUS(status));
  else
    std::fprintf(stderr, "a process to be killed died of signal %d\n", WTERMSIG(status));
  return false;
}

// Drives a process that stopped on to some system call and from there some instructions further,
// and kills it. False when it never stopped, or did not die of it.
bool drive_and_kill(pid_t pid, std::mt19937& random) {
  constexpr unsigned long kMostSystemCalls = 40;  // as many stops, going in and coming out
  constexpr unsigned long kMostSteps = 300;
  int status = 0;
  if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status)) return ended_by_itself(status);
  const auto go = [&](__ptrace_request how) {
    const int delivered =
        WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
    return ptrace(how, pid, nullptr, delivered) == 0 && waitpid(pid, &status, __WALL) == pid &&
           WIFSTOPPED(status);
  };
  bool is_there = true;
  // Half of them between two system calls, where the words in memory change.
  for (unsigned long i = random() % 2 == 0 ? 0 : random() % kMostSystemCalls; is_there && i > 0;
       --i)
    is_there = go(PTRACE_SYSCALL);
  for (unsigned long i = random() % kMostSteps; is_there && i > 0; --i)
    is_there = go(PTRACE_SINGLESTEP);
  if (!is_there) return ended_by_itself(status);
  kill(pid, SIGKILL);
  while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
  }
  const bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  return is_killed || ended_by_itself(status);
}

// Lets all workers stop between two calls, so that the books can be compared.
void compare(Shared& shared, int workers, const char* name) {
  shared.phase = kPause;
  for (int i = 0; i < workers; ++i)
    while (!shared.is_paused[i])
      usleep(200);
  step(name);
  shared.phase = kWork;
}

}  // namespace

int storm(int workers, int deaths, bool by_steps) {
  constexpr int kDeathsApart = 50;
  Shared* const shared = make_shared();
  if (shared == nullptr || workers >= kMostWorkers) return 1;
  std::vector<pid_t> pids;
  for (int i = 0; i < workers; ++i)
    pids.push_back(hire(*shared, i));
  std::mt19937 random(7);
  int unkilled = 0;
  for (int death = 1; by_steps && death <= deaths; ++death) {
    // One beside the workers, who go on and are measured.
    const Stop stop = death % 4 == 0 ? Stop::kAtStart : Stop::kAtWork;
    unkilled += drive_and_kill(hire(*shared, workers, stop), random) ? 0 : 1;
    if (death % kDeathsApart == 0) compare(*shared, workers, "after deaths");
  }
  for (int death = 1; !by_steps && death <= deaths; ++death) {
    const auto i = static_cast<std::size_t>(random() % pids.size());
    usleep(static_cast<unsigned>(random() % 3000));
    kill(pids[i], SIGKILL);
    waitpid(pids[i], nullptr, 0);
    pids[i] = hire(*shared, static_cast<int>(i));
    if (death % kDeathsApart == 0) compare(*shared, workers, "after deaths");
  }
  if (deaths == 0) {
    for (int round = 0; round < 5; ++round) {
      usleep(300'000);
      compare(*shared, workers, "in a race");
    }
  }
  shared->phase = kEnd;
  int failed = 0;
  for (const pid_t pid : pids) {
    int status = 0;
    waitpid(pid, &status, 0);
    failed += status != 0 ? 1 : 0;
  }
  shared->wrong += static_cast<unsigned long>(unkilled);
  std::printf("calls %lu refusals %lu wrong %lu slowest_us %ld\n", shared->calls.load(),
              shared->refusals.load(), shared->wrong.load(), shared->slowest_us.load());
  step("end");
  return failed == 0 && shared->wrong == 0 ? 0 : 1;
}

// The child may not use the driver; it finds that out at once, and the parent goes on.
int fork_and_go_on() {
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
  if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS) return 1;
  for (int i = 0; i < 10; ++i)
    if (CU(cuMemAlloc_v2)(&address, 2 * kMiB) != CUDA_SUCCESS) return 2;
  const pid_t child = fork();
  if (child == 0) {
    CUdeviceptr mine = 0;
    const bool is_refused = CU(cuMemAlloc_v2)(&mine, 2 * kMiB) == CUDA_ERROR_NOT_INITIALIZED &&
                            CU(cuMemFree_v2)(address) == CUDA_ERROR_NOT_INITIALIZED &&
                            CU(cuInit)(0) == CUDA_ERROR_NOT_INITIALIZED;
    _exit(is_refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) return 3;
  for (int i = 0; i < 10; ++i)
    if (CU(cuMemAlloc_v2)(&address, 2 * kMiB) != CUDA_SUCCESS) return 4;
  step("forked");
  return 0;
}

int become_another(char** argv) {
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
  if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS) return 1;
  for (int i = 0; i < 30; ++i)
    if (CU(cuMemAlloc_v2)(&address, 2 * kMiB) != CUDA_SUCCESS) return 2;
  char take[] = "take";
  char bytes[] = "2097152";
  char* words[] = {argv[0], take, bytes, nullptr};
  execv("/proc/self/exe", words);
  return 3;
}

}  // namespace regatta::hook_test
