// comm/internal/shm/futex_event.h: how threads of the ranks of a server wait for each other's
// counters: they spin, then yield the core, then sleep until a rank signals the event.
#pragma once

#include <functional>
#include <span>

#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/shared_segment.h"

namespace regatta::comm {

// The cost of a wait before the thread sleeps. Where every rank has a core of its own, spinning is
// fastest; where ranks share cores, each spin takes the core from the rank that is waited for.
struct SpinPolicy {
  int spins = 0;   // with a pause of some 40 ns between, but for the first ones
  int yields = 0;  // of the core, with a check between
};
SpinPolicy spin_policy_for(int ranks_on_server, int cores);

// Wakes every rank whose thread sleeps. Called after the caller changed a counter.
void signal_event(std::span<SharedSegmentHeader* const> ranks);

// Returns when `is_done()`, and after `limit` of sleep at the latest; it may return earlier without
// it, so callers check again. `own`: the shared segment of the calling rank.
template <typename Condition>
void wait_for_event(SharedSegmentHeader& own, const SpinPolicy& policy, Seconds limit,
                    const Condition& is_done);

namespace internal {
void pause_core();
void yield_core();
void sleep_on(std::atomic<std::uint32_t>& event, std::uint32_t seen, Seconds limit);
}  // namespace internal

// Without a pause, for changes that are about to happen.
inline constexpr int kSpinsWithoutPause = 32;

template <typename Condition>
void wait_for_event(SharedSegmentHeader& own, const SpinPolicy& policy, Seconds limit,
                    const Condition& is_done) {
  for (int i = 0; i < policy.spins; ++i) {
    if (is_done()) return;
    if (i >= kSpinsWithoutPause) internal::pause_core();
  }
  for (int i = 0; i < policy.yields; ++i) {
    if (is_done()) return;
    internal::yield_core();
  }
  const std::uint32_t seen = own.event.load(std::memory_order_relaxed);
  own.sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (!is_done()) internal::sleep_on(own.event, seen, limit);
  own.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace regatta::comm
