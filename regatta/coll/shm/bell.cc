#include "regatta/coll/shm/bell.h"

#include <climits>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace regatta::coll {

Patience patience_for(int ranks_on_server, int cores) {
  if (ranks_on_server <= cores) return {.looks = 2000, .yields = 100};
  return {.looks = 20, .yields = 200};
}

void ring(std::span<ShelfHeader* const> ranks) {
  // A sleeper announces itself, then looks at the counters; we changed a counter, then look for
  // sleepers: with a fence between, one of the two sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (ShelfHeader* rank : ranks) {
    if (rank->sleepers.load(std::memory_order_relaxed) == 0) continue;
    rank->bell.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &rank->bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
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

void sleep_on(std::atomic<std::uint32_t>& bell, std::uint32_t seen, Seconds limit) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(limit.value);
  time.tv_nsec = static_cast<long>((limit.value - static_cast<double>(time.tv_sec)) * 1e9);
  syscall(SYS_futex, &bell, FUTEX_WAIT, seen, &time, nullptr, 0);
}

}  // namespace internal
}  // namespace regatta::coll
