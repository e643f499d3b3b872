// sharing/internal/daemon/engine_shares.h: divides the engines beside the processors (copies to and
// from the device, encoder, decoder): reads from the clients' pages what they gave, and writes to
// the tenants' pages how much they may give.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"
#include "regatta/gpu/sharing/internal/daemon/timer_fd.h"
#include "regatta/gpu/sharing/internal/daemon/use_history.h"

namespace regatta::sharing {

// Units a second of each engine of a device; 0: unlimited.
using EngineRates = std::array<std::uint64_t, REGATTA_ENGINES>;
// Sessions of each engine at a time; 0: unlimited.
using EngineSessions = std::array<unsigned, REGATTA_ENGINES>;

class EngineShares {
 public:
  static Result<EngineShares> create(const TenantStore& tenant_store, const EngineRates& rates,
                                     const EngineSessions& sessions = {});

  // Readable when step() is due; never without a limited engine.
  int timer() const { return timer_fd_.descriptor(); }
  void acknowledge_timer() { timer_fd_.acknowledge(); }

  // The client has a page now; earlier use is not counted.
  void begin(const TenantStore& tenant_store, int client);
  // The client is about to be removed.
  void end(const TenantStore& tenant_store, int client, std::uint64_t now_ns);
  void forget(int tenant);

  // Counts what all clients gave, and shares each engine among the tenants that use it: a tenant
  // gets its share under the policy, divided equally among its processes that use the engine.
  void step(const TenantStore& tenant_store, std::uint64_t now_ns);

  // Opens one more session for the client, in its page; false when its tenant has its share of
  // them: its share of the number, rounded down, but at least one.
  bool open_session(const TenantStore& tenant_store, int client, int device,
                    regatta_engine engine) const;
  unsigned sessions(const TenantStore& tenant_store, int tenant, int device,
                    regatta_engine engine) const;

  std::uint64_t total(int tenant, int device, regatta_engine engine) const;
  std::uint64_t last_second(int tenant, int device, regatta_engine engine,
                            std::uint64_t now_ns) const;

 private:
  static constexpr std::uint64_t kActiveNs = 100'000'000;  // after the last use
  struct Use {
    std::uint64_t known = 0;      // units that are counted
    std::uint64_t active_ns = 0;  // when it last gave or waited; 0: never
  };
  struct Engine {
    std::vector<Use> uses;  // of each client
    UseHistory history;
  };

  EngineShares(TimerFd alarm, int devices, const EngineRates& rates,
               const EngineSessions& sessions);
  void sample(const TenantStore& tenant_store, int client, std::uint64_t now_ns);
  void share(const TenantStore& tenant_store, int device, regatta_engine engine,
             std::uint64_t now_ns) const;

  TimerFd timer_fd_;
  EngineRates rates_;
  EngineSessions sessions_;
  std::vector<std::array<Engine, REGATTA_ENGINES>> devices_;
};

}  // namespace regatta::sharing
