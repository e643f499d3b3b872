// sharing/internal/daemon/turn_manager.h: runs the turn schedulers of all devices: reads activities
// from the clients' pages and writes turns to the tenants' pages.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"
#include "regatta/gpu/sharing/internal/daemon/timer_fd.h"
#include "regatta/gpu/sharing/internal/daemon/turn_scheduler.h"

namespace regatta::sharing {

class TurnManager {
 public:
  // No turn begins before `hold_ns` has passed.
  static Result<TurnManager> create(const TenantStore& tenant_store,
                                    const TurnSchedulerOptions& options, std::uint64_t hold_ns);

  // Readable when step() is due.
  int timer() const { return timer_fd_.descriptor(); }

  // A client has an event connection, or no longer; clients without one do not count.
  void set_event_connection(const TenantStore& tenant_store, int client, bool is_connected);
  // Reads the activity of the tenant's clients, which may have changed.
  void sample(const TenantStore& tenant_store, int tenant);
  void sample(const TenantStore& tenant_store);  // of all tenants
  // Call after a change of limits, policy or tenants.
  void set_tenants(const TenantStore& tenant_store);
  void forget(int tenant);
  // A tenant whose memory is swapped out has no turns, and no share under policies that divide the
  // time among present tenants.
  void set_swapped_out(const TenantStore& tenant_store, int tenant, int device,
                       bool is_swapped_out);
  bool has_turn(int tenant, int device) const {
    return at(devices_, device).open_tenant() == tenant;
  }

  void acknowledge_timer();
  void step(const TenantStore& tenant_store);

  // Time of the tenant on the device: as a share of the last second, and in total.
  double last_second(int tenant, int device) const;
  double seconds(int tenant, int device) const;

 private:
  // The use of the device that a client's page states, all of it since it became a client.
  struct PageUse {
    std::uint64_t used_ns = 0;
    std::uint64_t busy_since_ns = 0;
    std::uint64_t ended_ns = 0;
  };
  // The use of a device that samples of a client have counted, and what its page said when its
  // process was found stopped.
  struct ClientUse {
    std::uint64_t used_ns = 0;
    std::optional<unsigned> stopped_at;
  };

  TurnManager(TimerFd alarm, const TurnSchedulerOptions& options, int devices,
              std::uint64_t hold_until_ns);
  void sample(const TenantStore& tenant_store, int tenant, int device, std::uint64_t now);
  static PageUse read_use(const TenantStore& tenant_store, int client, int device);
  static void count_use(const PageUse& page, bool is_working, std::uint64_t now, ClientUse& known,
                        TenantActivity& doing);
  ClientUse& use(int client, int device) { return at(uses_, client)[as_index(device)]; }
  void find_stopped(const TenantStore& tenant_store, int tenant, int device);
  std::uint64_t watch_stopped(const TenantStore& tenant_store);

  TimerFd timer_fd_;
  std::vector<TurnScheduler> devices_;
  std::vector<std::array<bool, kTenantsMax>> is_swapped_out_;  // of each device
  std::vector<char> is_connected_;                             // of each client
  std::vector<std::array<ClientUse, kDevicesMax>> uses_;       // of each client
  // By device and tenant: when its clients were last sampled.
  std::vector<std::array<std::uint64_t, kTenantsMax>> sampled_ns_;
  std::uint64_t watch_stopped_ns_ = ~0ULL;  // when to look again whether they are
  std::uint64_t hold_until_ns_;
};

}  // namespace regatta::sharing
