#include "regatta/runtime/comm/internal/shm/futex_event.h"

#include <algorithm>

#include <sched.h>

#include "regatta/base/os/memory.h"

namespace regatta::comm {

SpinPolicy spin_policy_for(int ranks_on_server, int cores) {
  if (ranks_on_server <= cores) return {.spins = 2000, .yields = 100};
  return {.spins = 20, .yields = 200};
}

void signal_event(std::span<SharedSegmentHeader* const> ranks) {
  // A sleeper announces itself, then reads the counters; this thread changed a counter, then reads
  // the sleepers: with a fence between, one of the two sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (SharedSegmentHeader* rank : ranks) {
    if (rank->sleepers.load(std::memory_order_relaxed) == 0) continue;
    rank->event.fetch_add(1, std::memory_order_release);
    os::futex_wake_all(&rank->event);
  }
}

namespace internal {

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

void yield_core() {
  sched_yield();
}

void sleep_on(std::atomic<std::uint32_t>& event, std::uint32_t seen, Seconds limit) {
  os::futex_wait(&event, seen, static_cast<std::uint64_t>(std::max(limit.value, 0.0) * 1e9));
}

}  // namespace internal
}  // namespace regatta::comm
