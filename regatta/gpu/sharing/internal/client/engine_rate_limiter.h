// sharing/internal/client/engine_rate_limiter.h: delays the work of this process for the engines
// beside the processors to its tenant's rate. Any thread may call; none holds a lock while it
// waits.
#pragma once

#include <array>

#include "regatta/base/core/mutex.h"
#include "regatta/gpu/sharing/internal/client/client.h"
#include "regatta/gpu/sharing/internal/client/token_bucket.h"

namespace regatta::sharing {

class EngineRateLimiter {
 public:
  // Units a second that this process may use now; 0: unlimited.
  static std::uint64_t rate(const Client& client, int device, regatta_engine engine) {
    return __atomic_load_n(&client.pages().tenant().rates[device][engine], __ATOMIC_RELAXED);
  }

  // Waits until the rate allows `units`, and counts them. Not for captured work.
  void acquire(Client& client, int device, regatta_engine engine, std::uint64_t units);

 private:
  struct Engine {
    Mutex mutex;
    TokenBucket bucket REGATTA_GUARDED_BY(mutex);
  };
  std::array<std::array<Engine, REGATTA_ENGINES>, REGATTA_DEVICES_MAX> engines_;
};

}  // namespace regatta::sharing
