// sharing/internal/daemon/tenant_store.h: tenants, clients and their memory, and the operations
// that concern several of them. Every change survives a SIGKILL of the daemon at any instruction
// (state.h). No sockets and no clock; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/daemon/client_table.h"
#include "regatta/gpu/sharing/internal/daemon/drained_devices.h"
#include "regatta/gpu/sharing/internal/daemon/lease_accounts.h"
#include "regatta/gpu/sharing/internal/daemon/swappable_accounts.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_limits.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_table.h"
#include "regatta/gpu/sharing/state.h"

namespace regatta::sharing {

class TenantStore {
 public:
  // Tenants' pages name `socket`, and say whether launches continue while no daemon answers.
  static Result<TenantStore> open(MappedState state, std::string socket, MemoryCapacity capacity,
                                  bool opens_when_lost = true);

  const StateFile& state() const { return *state_; }
  const MemoryCapacity& capacity() const { return *capacity_; }
  int device_count() const { return capacity_->device_count(); }
  const TenantTable& tenants() const { return *tenants_; }
  const ClientTable& clients() const { return *clients_; }
  const LeaseAccounts& leases() const { return *leases_; }
  LeaseAccounts& leases() { return *leases_; }
  const SwappableAccounts& swappable() const { return *swappable_; }
  SwappableAccounts& swappable() { return *swappable_; }
  const DrainedDevices& drained() const { return *drained_; }

  // kInvalidInput when the limits are wrong or do not fit beside those of the others; kConflict
  // when a tenant of this name exists or a device is drained, kExhausted when there are too many.
  Result<int> add_tenant(const TenantLimits& limits);
  // Spare bytes beyond a lowered quota are called back.
  Status set_limits(int tenant, const TenantLimits& limits);
  void remove_tenant(int tenant);  // has no clients
  Status set_policy(regatta_share_policy policy);
  // The tenant's request for a share of time while it has no work.
  regatta_share_request share_request(int tenant) const;
  // Drains exactly these devices, a bit for each, and calls back spare bytes on them.
  Status set_drained(std::uint32_t devices);

  Result<int> add_client(int tenant, ProcessId process);
  void remove_client(int client);  // ends its leases
  Result<os::UniqueFd> create_client_page(int client) { return clients_->create_page(client); }
  // The page of a client that an earlier daemon made: finishes changes that it left half done.
  Status adopt_client_page(int client, os::UniqueFd page);

 private:
  TenantStore(MappedState state, MemoryCapacity capacity, DrainedDevices drained)
      : state_(std::move(state)),
        capacity_(std::make_unique<MemoryCapacity>(std::move(capacity))),
        drained_(std::make_unique<DrainedDevices>(std::move(drained))) {}
  void update_shares();

  // By pointer: they refer to each other, and the store moves.
  MappedState state_;
  std::unique_ptr<MemoryCapacity> capacity_;
  std::unique_ptr<DrainedDevices> drained_;
  std::unique_ptr<TenantTable> tenants_;
  std::unique_ptr<ClientTable> clients_;
  std::unique_ptr<LeaseAccounts> leases_;
  std::unique_ptr<SwappableAccounts> swappable_;
};

}  // namespace regatta::sharing
