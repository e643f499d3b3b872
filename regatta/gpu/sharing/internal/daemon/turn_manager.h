// sharing/internal/daemon/turn_manager.h: the time of all devices: reads what clients do from their
// pages, lets TurnScheduler decide, and writes to the tenants' pages whose turn it is.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"
#include "regatta/gpu/sharing/internal/daemon/timer_fd.h"
#include "regatta/gpu/sharing/internal/daemon/turn_scheduler.h"

namespace regatta::sharing {

class TurnManager {
 public:
  // `hold_ns`: no turn begins before that has passed.
  static Result<TurnManager> create(const TenantStore& tenant_store,
                                    const TurnSchedulerOptions& options, std::uint64_t hold_ns);

  // Readable when step() is due.
  int timer() const { return timer_fd_.descriptor(); }

  // A client rings from now on, or not any more; only those that do count.
  void set_event_connection(const TenantStore& tenant_store, int client, bool is_connected);
  // What the tenant's clients do may have changed.
  void look(const TenantStore& tenant_store, int tenant);
  void look(const TenantStore& tenant_store);  // at all
  // Limits, policy, or which tenants there are.
  void set_tenants(const TenantStore& tenant_store);
  void forget(int tenant);
  // Whether the tenant's memory is not on the device: then it has no turns, and no part of the time
  // under policies that divide it among those who are there.
  void set_swapped_out(const TenantStore& tenant_store, int tenant, int device,
                       bool is_swapped_out);
  bool has_turn(int tenant, int device) const {
    return devices_[static_cast<std::size_t>(device)].open_tenant() == tenant;
  }

  void acknowledge_timer();
  void step(const TenantStore& tenant_store);

  // Of the last second, as a part of the device's time; and in all.
  double last_second(int tenant, int device) const;
  double seconds(int tenant, int device) const;

 private:
  TurnManager(TimerFd alarm, const TurnSchedulerOptions& options, int devices,
              std::uint64_t hold_until_ns);
  void look(const TenantStore& tenant_store, int tenant, int device, std::uint64_t now);

  TimerFd timer_fd_;
  std::vector<TurnScheduler> devices_;
  std::vector<std::array<bool, kTenantsMax>> is_swapped_out_;  // of each device
  std::vector<char> is_connected_;                             // of each client
  // Of each client on each device: the use that is accounted for.
  std::vector<std::array<std::uint64_t, kDevicesMax>> used_ns_;
  std::uint64_t hold_until_ns_;
};

}  // namespace regatta::sharing
