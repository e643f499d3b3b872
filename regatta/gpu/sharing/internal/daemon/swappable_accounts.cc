#include "regatta/gpu/sharing/internal/daemon/swappable_accounts.h"

#include <algorithm>

namespace regatta::sharing {

SwappableAccounts::SwappableAccounts(const MemoryCapacity& capacity, const TenantTable& tenants,
                                     const ClientTable& clients, LeaseAccounts& leases)
    : capacity_(&capacity),
      tenants_(&tenants),
      clients_(&clients),
      leases_(&leases),
      bytes_(kClientsMax),
      is_checkpointable_(kTenantsMax) {}

std::uint64_t SwappableAccounts::tenant_bytes(int tenant, int device) const {
  std::uint64_t sum = 0;
  for (const int client : clients_->of_tenant(tenant))
    sum += bytes(client, device);
  return sum;
}

std::uint64_t SwappableAccounts::unswappable(int tenant, int device) const {
  const std::uint64_t all = leases_->tenant_leased(tenant, device);
  return all - std::min(all, tenant_bytes(tenant, device));
}

std::uint64_t SwappableAccounts::device_capacity(int device) const {
  std::uint64_t reserved = 0;
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (!tenants_->is_live(tenant) || is_checkpointable(tenant, device)) continue;
    if (tenants_->is_overcommitted(tenant)) {
      reserved += unswappable(tenant, device);
    } else {
      const auto quota =
          static_cast<std::uint64_t>(at(tenants_->limits(tenant).memory, device).value);
      reserved += std::max(quota, leases_->tenant_leased(tenant, device));
    }
  }
  return capacity_->bytes(device) - std::min(capacity_->bytes(device), reserved);
}

std::uint64_t SwappableAccounts::demand(int tenant, int device) const {
  return tenant_bytes(tenant, device) +
         (is_checkpointable(tenant, device) ? unswappable(tenant, device) : 0);
}

bool SwappableAccounts::fits_lease(int tenant, int device, std::uint64_t least) const {
  const std::uint64_t room = device_capacity(device);
  if (is_checkpointable(tenant, device)) return demand(tenant, device) + least <= room;
  std::uint64_t largest = 0;
  for (int other = 0; other < kTenantsMax; ++other) {
    if (tenants_->is_live(other) && tenants_->is_overcommitted(other))
      largest = std::max(largest, demand(other, device));
  }
  return largest + least <= room;
}

bool SwappableAccounts::may_pin(int tenant) {
  bool fits = true;
  for (int device = 0; device < capacity_->device_count(); ++device) {
    if (!is_checkpointable(tenant, device)) continue;
    set_checkpointable(tenant, device, false);
    fits = fits_lease(tenant, device, 0) && fits;
    set_checkpointable(tenant, device, true);
  }
  return fits;
}

void SwappableAccounts::recall_spare(int device, int except) {
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (tenants_->is_live(tenant) && tenants_->is_overcommitted(tenant))
      leases_->recall(tenant, device, except, REGATTA_MEMORY_MAX);
  }
}

bool SwappableAccounts::set(int client, int device, std::uint64_t bytes) {
  const int tenant = clients_->tenant_of(client);
  if (bytes > REGATTA_MEMORY_MAX || !clients_->has_page(client) ||
      !tenants_->is_overcommitted(tenant))
    return false;
  std::uint64_t& known = at(at(bytes_, client), device);
  if (bytes > known) {
    const std::uint64_t more = bytes - known;
    if (leases_->room(tenant, device) < more) leases_->recall(tenant, device, -1, more);
    if (leases_->room(tenant, device) < more) return false;
    if (demand(tenant, device) + more > device_capacity(device)) return false;
  }
  // The page's word is the record: a killed daemon has changed it or not, and the client retries.
  store(clients_->residency(client, device)->leased, static_cast<unsigned long long>(bytes));
  leases_->add(tenant, device, static_cast<std::int64_t>(bytes - known));
  known = bytes;
  return true;
}

void SwappableAccounts::adopt(int client) {
  const int tenant = clients_->tenant_of(client);
  if (!tenants_->is_overcommitted(tenant)) return;
  drop(client);
  const TenantLimits limits = tenants_->limits(tenant);
  for (int device = 0; device < capacity_->device_count(); ++device) {
    const auto quota = static_cast<std::uint64_t>(at(limits.memory, device).value);
    at(at(bytes_, client), device) =
        std::min<std::uint64_t>(clients_->residency(client, device)->leased, quota);
    leases_->add(tenant, device, static_cast<std::int64_t>(bytes(client, device)));
  }
}

void SwappableAccounts::drop(int client) {
  for (int device = 0; device < capacity_->device_count(); ++device) {
    leases_->add(clients_->tenant_of(client), device,
                 -static_cast<std::int64_t>(bytes(client, device)));
    at(at(bytes_, client), device) = 0;
  }
}

}  // namespace regatta::sharing
