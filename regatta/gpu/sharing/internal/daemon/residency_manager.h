// sharing/internal/daemon/residency_manager.h: decides whose memory is on the devices when tenants
// with over-commit have more than fits: reads from the clients' pages what is resident and whether
// they work, applies internal/policy/residency.h, and grants residency. A tenant has turns while
// all of its memory is resident; memory is called back only after its turn has ended. Memory that
// cannot be moved piece by piece leaves with its whole process (checkpoint_manager.h), where the
// driver can do that.
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
  Seconds longest_wait{600.0};  // for a turn, where stays have to be shortened for that
  // A tenant that was called back and has given nothing for this long is not waited for.
  Seconds timeout{30.0};
  CheckpointOptions checkpoints;
};

class ResidencyManager {
 public:
  static Result<ResidencyManager> create(const TenantStore& tenant_store,
                                         const ResidencyOptions& options);

  int timer() const { return timer_fd_.descriptor(); }  // readable when step() is due
  void acknowledge_timer();
  // A client, a tenant or a report of one of them has changed.
  void mark_changed() { is_changed_ = true; }
  // Makes the decisions that are due.
  void step(TenantStore& tenant_store, TurnManager& turn_manager);

  // Whether memory that is not swappable may be leased: now; later, when it is the tenant's turn
  // and others have made room, which this requests; never.
  enum class Admission : std::uint8_t { kNow, kLater, kNever };
  Admission admit(TenantStore& tenant_store, int client, int device, std::uint64_t bytes);
  // Pins the process, which is about to get memory that no checkpoint can take: later, while it is
  // not on its devices; never, when others would have no room beside it.
  Admission pin(TenantStore& tenant_store, int client);

  // Updates in the tenant store which tenants can leave the device as a whole, which its checks of
  // room depend on.
  void update_checkpointable(TenantStore& tenant_store, int device) const;
  // The client has ended.
  void forget_client(int client) {
    checkpoints_.forget(client);
    at(places_, client) = {};
  }
  // The tenant is about to be removed; another one may get its number.
  void forget_tenant(int tenant);

  // Memory of a tenant beside its leases: on the device; swapped out or never written, with the
  // leases of checkpointed processes; and bytes copied in and out.
  struct Usage {
    std::uint64_t resident = 0;
    std::uint64_t swapped_out = 0;
    std::uint64_t leased_swapped_out = 0;  // of that
    std::uint64_t moved_in = 0;
    std::uint64_t moved_out = 0;
  };
  static Usage usage_of(const TenantStore& tenant_store, int tenant, int device);
  // The part of a client's counted memory that is on the device, with what is on its way to the
  // host or back, without a spare lease.
  static std::uint64_t counted_there(const TenantStore& tenant_store, int client, int device);

 private:
  // State of a tenant whose memory is called back.
  struct TenantState {
    std::uint64_t since_ns = 0;  // since when nothing came back
    std::uint64_t resident = 0;
    std::uint64_t leaves_ns =
        0;  // since when the manager waits for the end of its turn; 0: it does not
    bool is_stuck = false;
    bool is_at_work = false;  // by its launch gates
    // Bytes that it waits to lease, how many of them it may lease, and when the request expires.
    std::uint64_t wanted = 0;
    std::uint64_t may_lease = 0;
    std::uint64_t wanted_until_ns = 0;
    // Bytes that it needs beside its own since the driver has no room for what its processes were
    // granted, and how many of them it was granted: others leave for them, and nothing takes them.
    std::uint64_t lacking = 0;
    std::uint64_t may_lack = 0;
    std::uint64_t lacking_until_ns = 0;
  };
  struct Device {
    regatta_residency policy{};
    regatta_exclusive_leases leases{};
    std::array<TenantState, kTenantsMax> asked{};
  };

  // The daemon's own record of its grants to a client on a device. The client's page has them, too,
  // and how much is there, but the client can write anything into it.
  struct ClientPlace {
    bool is_known = false;
    std::uint64_t granted = 0;
    std::uint64_t may_hold = 0;  // the largest since the client last held no more than granted
  };

  ResidencyManager(TimerFd alarm, const ResidencyOptions& options);
  ClientPlace place_of(const TenantStore& tenant_store, int client, int device) const;
  std::uint64_t resident(const TenantStore& tenant_store, int client, int device) const;
  void write_grant(const TenantStore& tenant_store, int client, int device, std::uint64_t may);
  bool is_complete(const TenantStore& tenant_store, std::uint64_t now) const;
  std::uint64_t sample_client(const TenantStore& tenant_store, int client, int device, bool leaves,
                              std::uint64_t now, regatta_residency_tenant& seen);
  std::uint64_t counted_room(int device) const;
  regatta_residency_tenant sample(const TenantStore& tenant_store, int tenant, int device,
                                  std::uint64_t now);
  bool can_leave(const TenantStore& tenant_store, int tenant, int device) const;
  bool may_call_back(const TurnManager& turn_manager, int tenant, int device, std::uint64_t now);
  void sample_all(TenantStore& tenant_store, int device, std::uint64_t now);
  std::uint64_t assign_turns(const TenantStore& tenant_store, TurnManager& turn_manager, int device,
                             std::uint64_t now);
  std::uint64_t step_device(TenantStore& tenant_store, TurnManager& turn_manager, int device,
                            std::uint64_t now);
  void grant(const TenantStore& tenant_store, int tenant, int device, std::uint64_t may);
  std::uint64_t taken(const TenantStore& tenant_store, int device) const;
  bool may_ever(TenantStore& tenant_store, int client, int device, std::uint64_t bytes) const;
  bool is_its_turn(int tenant, int device, std::uint64_t bytes) const;
  bool may_begin(const TenantStore& tenant_store, int client, bool here) const;

  TimerFd timer_fd_;
  ResidencyOptions options_;
  std::vector<Device> devices_;
  std::vector<std::array<ClientPlace, kDevicesMax>> places_;  // of each client
  CheckpointManager checkpoints_;
  std::uint64_t began_ns_ = 0;
  bool is_changed_ = true;
};

}  // namespace regatta::sharing
