#include "regatta/gpu/sharing/internal/client/engine_rate_limiter.h"

#include <algorithm>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"

namespace regatta::sharing {
namespace {

constexpr double kLongestWaitNs = 10e6;  // until the rate is read again

}  // namespace

void EngineRateLimiter::acquire(Client& client, int device, regatta_engine engine,
                                std::uint64_t units) {
  Engine& own = at(engines_, device)[engine];
  regatta_engine_usage& usage = client.pages().engine_usage(device, engine);
  bool is_waiting = false;
  for (;;) {
    std::uint64_t wait = 0;
    {
      const MutexLock lock(own.mutex);
      wait = own.bucket.wait_ns(rate(client, device, engine), os::monotonic_ns());
      if (wait == 0) own.bucket.grant(units);
    }
    if (wait == 0) break;
    if (!is_waiting) __atomic_fetch_add(&usage.waiting, 1U, __ATOMIC_RELAXED);
    is_waiting = true;
    os::sleep_for(Seconds{std::min(static_cast<double>(wait), kLongestWaitNs) * 1e-9});
  }
  if (is_waiting) __atomic_fetch_sub(&usage.waiting, 1U, __ATOMIC_RELAXED);
  __atomic_fetch_add(&usage.given, units, __ATOMIC_RELAXED);
}

}  // namespace regatta::sharing
