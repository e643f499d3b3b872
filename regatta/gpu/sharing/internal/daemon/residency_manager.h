// sharing/internal/daemon/residency_manager.h: whose memory is on the devices, where tenants with
// over-commit have more than fits: reads from the clients' pages what they have there and whether
// they work, lets internal/policy/residency.h decide, and tells them what may be there. A tenant
// has turns while all of its memory is there; memory is asked back only once its turn has ended.
// What cannot be moved piece by piece leaves with its whole process (checkpoint_manager.h), where
// the driver can do that.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/gpu/sharing/internal/daemon/checkpoint_manager.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"
#include "regatta/gpu/sharing/internal/daemon/timer_fd.h"
#include "regatta/gpu/sharing/internal/daemon/turn_manager.h"
#include "regatta/gpu/sharing/internal/policy/exclusive_leases.h"
#include "regatta/gpu/sharing/internal/policy/residency.h"

namespace regatta::sharing {

struct ResidencyOptions {
  BytesPerSecond link{25e9};    // between host and device, in one direction
  Seconds longest_wait{600.0};  // for a turn, where stays have to be cut for that
  // Who was asked for memory and has given none for so long is not waited for.
  Seconds timeout{30.0};
  CheckpointOptions checkpoints;
};

class ResidencyManager {
 public:
  static Result<ResidencyManager> create(const TenantStore& tenant_store,
                                         const ResidencyOptions& options);

  int timer() const { return timer_fd_.descriptor(); }  // readable when step() is due
  void acknowledge_timer();
  // Something changed: a client, a tenant, or what one of them said.
  void mark_changed() { is_changed_ = true; }
  // Does what is due; nothing where nothing is.
  void step(TenantStore& tenant_store, TurnManager& turn_manager);

  // Whether memory that is not swappable may be leased: now; later, when it is the tenant's turn
  // and others have made room, which this asks for; never.
  enum class Admission : std::uint8_t { kNow, kLater, kNever };
  Admission admit(TenantStore& tenant_store, int client, int device, std::uint64_t bytes);
  // Whether the process may have memory that no checkpoint can take, and never leaves from now on:
  // later, while it is not on its devices; never, where others would have no room beside it.
  Admission pin(TenantStore& tenant_store, int client);

  // Tells the tenant store which tenants' processes can leave the device, before they are asked
  // whether something fits there.
  void update_checkpointable(TenantStore& tenant_store, int device) const;
  // The client has ended.
  void forget_client(int client) { checkpoints_.forget(client); }
  // It is about to be removed; another one may get its number.
  void forget_tenant(int tenant);

  // Of a tenant, beside what it has leased: on the device; not there, in the host or never written,
  // with what is leased and away; copied out and in.
  struct Usage {
    std::uint64_t resident = 0;
    std::uint64_t swapped_out = 0;
    std::uint64_t leased_swapped_out = 0;  // of that
    std::uint64_t moved_in = 0;
    std::uint64_t moved_out = 0;
  };
  static Usage usage_of(const TenantStore& tenant_store, int tenant, int device);

 private:
  // Of a tenant that is asked to give.
  struct TenantState {
    std::uint64_t since_ns = 0;  // nothing came back
    std::uint64_t resident = 0;
    std::uint64_t leaves_ns = 0;  // its turn is ended first, since then; 0: no
    bool is_stuck = false;
    bool is_at_work = false;  // as its gates say
    // What it wants to lease and waits for, what it may have of that, and until when it has to ask
    // again.
    std::uint64_t wanted = 0;
    std::uint64_t may_lease = 0;
    std::uint64_t wanted_until_ns = 0;
  };
  struct Device {
    regatta_residency policy{};
    regatta_exclusive_leases leases{};
    std::array<TenantState, kTenantsMax> asked{};
  };

  ResidencyManager(TimerFd alarm, const ResidencyOptions& options);
  bool is_complete(const TenantStore& tenant_store, std::uint64_t now) const;
  void see_client(const TenantStore& tenant_store, int client, int device, bool leaves,
                  std::uint64_t now, regatta_residency_tenant& seen);
  regatta_residency_tenant see(const TenantStore& tenant_store, int tenant, int device,
                               std::uint64_t now);
  bool can_leave(const TenantStore& tenant_store, int tenant, int device) const;
  bool may_be_told(const TurnManager& turn_manager, int tenant, int device, std::uint64_t now);
  void see_all(TenantStore& tenant_store, int device, std::uint64_t now);
  std::uint64_t give_turns(const TenantStore& tenant_store, TurnManager& turn_manager, int device,
                           std::uint64_t now);
  std::uint64_t step_device(TenantStore& tenant_store, TurnManager& turn_manager, int device,
                            std::uint64_t now);
  void tell(const TenantStore& tenant_store, int tenant, int device, std::uint64_t may);
  std::uint64_t taken(const TenantStore& tenant_store, int device) const;
  bool may_ever(TenantStore& tenant_store, int client, int device, std::uint64_t bytes) const;
  bool is_its_turn(int tenant, int device, std::uint64_t bytes) const;
  bool may_begin(const TenantStore& tenant_store, int client, bool here) const;

  TimerFd timer_fd_;
  ResidencyOptions options_;
  std::vector<Device> devices_;
  CheckpointManager checkpoints_;
  std::uint64_t began_ns_ = 0;
  bool is_changed_ = true;
};

}  // namespace regatta::sharing
