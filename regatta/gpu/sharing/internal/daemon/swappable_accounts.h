// sharing/internal/daemon/swappable_accounts.h: memory of tenants with over-commit that can leave a
// device: what each client may have of it, and what has to fit on a device at the same time. It
// counts against the quota as leases do, wherever it is.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/gpu/sharing/internal/daemon/client_table.h"
#include "regatta/gpu/sharing/internal/daemon/lease_accounts.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_table.h"

namespace regatta::sharing {

class SwappableAccounts {
 public:
  // The arguments outlive this object.
  SwappableAccounts(const MemoryCapacity& capacity, const TenantTable& tenants,
                    const ClientTable& clients, LeaseAccounts& leases);

  // Sets how much the client may have. False when that exceeds the quota or the part of the device
  // that swappable memory can use.
  bool set(int client, int device, std::uint64_t bytes);
  std::uint64_t bytes(int client, int device) const { return at(at(bytes_, client), device); }
  std::uint64_t tenant_bytes(int tenant, int device) const;
  // After the client's page was adopted: takes over what it may have according to the page.
  void adopt(int client);
  // The client has none any more.
  void drop(int client);

  // Whether the tenant's processes can leave the device as a whole, so that their leases leave with
  // them.
  void set_checkpointable(int tenant, int device, bool is_checkpointable) {
    at(at(is_checkpointable_, tenant), device) = is_checkpointable;
  }
  bool is_checkpointable(int tenant, int device) const {
    return at(at(is_checkpointable_, tenant), device);
  }
  void forget_tenant(int tenant) { at(is_checkpointable_, tenant) = {}; }

  // The part of the device that memory which can leave it may use.
  std::uint64_t device_capacity(int device) const;
  // Whether each tenant still fits on the device when this one leases `least` more.
  bool fits_lease(int tenant, int device, std::uint64_t least) const;
  // Whether each tenant still fits when this one's processes cannot leave any more.
  bool may_pin(int tenant);
  // Calls back spare bytes of the clients with over-commit other than `except`, which asks for what
  // it lacks beside its own.
  void recall_spare(int device, int except);

 private:
  // Bytes that have to be on the device for the tenant to work, and that can leave it.
  std::uint64_t demand(int tenant, int device) const;
  // Bytes of the tenant on the device that do not leave it by themselves.
  std::uint64_t unswappable(int tenant, int device) const;

  const MemoryCapacity* capacity_;
  const TenantTable* tenants_;
  const ClientTable* clients_;
  LeaseAccounts* leases_;
  std::vector<std::array<std::uint64_t, kDevicesMax>> bytes_;     // of each client
  std::vector<std::array<bool, kDevicesMax>> is_checkpointable_;  // of each tenant
};

}  // namespace regatta::sharing
