// sharing/internal/daemon/lease_accounts.h: memory that is leased to clients, and its sum for each
// tenant, which the quota limits. A change is written to the state, then to the client's lease
// counter, then confirmed in the state, so a SIGKILL of the daemon at any instruction loses
// nothing.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/gpu/sharing/internal/daemon/client_table.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_table.h"
#include "regatta/gpu/sharing/internal/ledger/ledger.h"
#include "regatta/gpu/sharing/state.h"

namespace regatta::sharing {

// Leased bytes, and how many of them are not in use.
struct Holding {
  std::uint64_t leased = 0;
  std::uint64_t spare = 0;
};

class LeaseAccounts {
 public:
  // Sums up the leases in `state`. The tables outlive this object.
  LeaseAccounts(StateFile& state, TenantTable& tenants, const ClientTable& clients);

  // Adds at least `least` bytes to the client's lease, after calling back spare bytes of the
  // tenant's other clients; false when that would exceed the quota.
  bool lease(int client, int device, std::uint64_t least);
  // Calls back spare bytes of the tenant's clients other than `except` (-1: of all) until `wanted`
  // bytes are free under the quota.
  void recall(int tenant, int device, int except, std::uint64_t wanted);
  // Calls back all spare bytes of the tenant.
  void recall_all(int tenant, int device) { recall(tenant, device, -1, REGATTA_MEMORY_MAX); }
  // After the client's page was adopted: finishes changes that an earlier daemon left half done.
  void settle(int client);
  // Ends the client's leases.
  void reclaim(int client);
  void forget_tenant(int tenant);

  // A lease whose last change is not known to have been made counts as the larger of both.
  std::uint64_t leased(int client, int device) const;
  std::uint64_t tenant_leased(int tenant, int device) const {
    return at(at(leased_, tenant), device);
  }
  std::uint64_t room(int tenant, int device) const;
  Holding holding(int client, int device) const;
  Holding tenant_holding(int tenant, int device) const;

  // Counts memory that is accounted elsewhere (swappable_accounts.h) against the quota.
  void add(int tenant, int device, std::int64_t bytes);

 private:
  regatta_account account(int tenant, int device) const;
  std::uint64_t lease_size(int client, int device, std::uint64_t least) const;
  // Changes a lease and its counter together by what `difference` makes of the spare bytes.
  template <typename F>
  void change(int client, int device, F&& difference);

  StateFile* state_;
  TenantTable* tenants_;
  const ClientTable* clients_;
  std::vector<std::array<std::uint64_t, kDevicesMax>> leased_;  // of each tenant
};

}  // namespace regatta::sharing
