// sharing/internal/daemon/engine_shares.h: the engines beside the processors: copies to and from
// the device, encoder, decoder. Reads from clients' pages what they gave, and writes to tenants'
// pages how much they may give.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"
#include "regatta/gpu/sharing/internal/daemon/timer_fd.h"
#include "regatta/gpu/sharing/internal/daemon/use_history.h"

namespace regatta::sharing {

// Units a second of each engine of a device; 0: nothing is held back.
using EngineRates = std::array<std::uint64_t, REGATTA_ENGINES>;
// Sessions of each at a time; 0: any number.
using EngineSessions = std::array<unsigned, REGATTA_ENGINES>;

class EngineShares {
 public:
  static Result<EngineShares> create(const TenantStore& tenant_store, const EngineRates& rates,
                                     const EngineSessions& sessions = {});

  // Readable when step() is due; nothing is due where nothing is held back.
  int timer() const { return timer_fd_.descriptor(); }
  void acknowledge_timer() { timer_fd_.acknowledge(); }

  // The client has a page now; what it gave before is not counted here.
  void begin(const TenantStore& tenant_store, int client);
  // It is about to be removed.
  void end(const TenantStore& tenant_store, int client, std::uint64_t now_ns);
  void forget(int tenant);

  // Counts what all clients gave, and shares the engines among those that use them: a tenant has
  // its part under the policy, each of its processes that use the engine the same part of that.
  void step(const TenantStore& tenant_store, std::uint64_t now_ns);

  // Opens one more session for the client, in its page; false when its tenant has its part of them:
  // of n sessions n times the part, rounded down, but at least one.
  bool open_session(const TenantStore& tenant_store, int client, int device,
                    regatta_engine engine) const;
  unsigned sessions(const TenantStore& tenant_store, int tenant, int device,
                    regatta_engine engine) const;

  std::uint64_t total(int tenant, int device, regatta_engine engine) const;
  std::uint64_t last_second(int tenant, int device, regatta_engine engine,
                            std::uint64_t now_ns) const;

 private:
  static constexpr std::uint64_t kActiveNs = 100'000'000;  // since it gave something
  struct Use {
    std::uint64_t known = 0;      // of what it gave
    std::uint64_t active_ns = 0;  // when it last gave or waited; 0: never
  };
  struct Engine {
    std::vector<Use> uses;  // of each client
    UseHistory history;
  };

  EngineShares(TimerFd alarm, int devices, const EngineRates& rates,
               const EngineSessions& sessions);
  void look(const TenantStore& tenant_store, int client, std::uint64_t now_ns);
  void share(const TenantStore& tenant_store, int device, regatta_engine engine,
             std::uint64_t now_ns) const;

  TimerFd timer_fd_;
  EngineRates rates_;
  EngineSessions sessions_;
  std::vector<std::array<Engine, REGATTA_ENGINES>> devices_;
};

}  // namespace regatta::sharing
