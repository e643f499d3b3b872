// The part of tenant_store.h that is about memory that can leave a device: what tenants may have of
// it is bounded by the host's memory, so that whoever is asked to give always can.

#include <algorithm>

#include <fmt/core.h>

#include "regatta/base/core/units.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"
#include "regatta/gpu/sharing/internal/ledger/ledger.h"

namespace regatta::sharing {
namespace {

Error overcommit_error(const TenantLimits& limits, const std::string& why) {
  return {Code::kInvalidInput, fmt::format("tenant {}: {}", limits.name, why)};
}

}  // namespace

// What a tenant with these limits may have of a device: those without over-commit have theirs for
// themselves; those with it share what is left, and each has to fit there alone.
std::uint64_t TenantStore::room_on(int device, const TenantLimits& limits,
                                   std::optional<int> self) const {
  std::uint64_t taken = 0;
  std::uint64_t largest = 0;
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    const TenantRecord& record = state_->tenants[tenant];
    if (record.live == 0 || tenant == self) continue;
    if (is_overcommitted(tenant))
      largest = std::max<std::uint64_t>(largest, record.quota[device]);
    else
      taken += record.quota[device];
  }
  if (!limits.is_overcommitted) taken += largest;
  return whole(device) - std::min(whole(device), taken);
}

Status TenantStore::check_overcommit(const TenantLimits& limits, std::optional<int> self) const {
  if (self && is_overcommitted(*self) != limits.is_overcommitted)
    return overcommit_error(limits, "over-commit is chosen when it is started; start it anew");
  if (limits.lease_s != 0 && !limits.is_overcommitted)
    return overcommit_error(limits, "a lease of the device needs --overcommit, too");
  if (!limits.is_overcommitted) return {};
  std::uint64_t wanted = 0;
  std::uint64_t others = 0;
  for (int device = 0; device < device_count(); ++device) {
    const auto bytes = static_cast<std::uint64_t>(limits.memory[device].value);
    if (bytes != 0 && capacity_[device].value == 0) {
      return overcommit_error(limits,
                              fmt::format("it is not known how much memory GPU {} has; start "
                                          "the daemon with --gpu SIZE",
                                          device));
    }
    wanted += bytes;
    for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
      const TenantRecord& record = state_->tenants[tenant];
      if (record.live != 0 && tenant != self && is_overcommitted(tenant))
        others += record.quota[device];
    }
  }
  const auto host = static_cast<std::uint64_t>(host_memory_.value);
  if (host == 0) {
    return overcommit_error(
        limits,
        "the daemon allows no over-commit; start it with --host-memory SIZE, or leave "
        "--overcommit out");
  }
  if (others + wanted <= host) return {};
  const Bytes left{static_cast<long long>(host - std::min(host, others))};
  return overcommit_error(limits, fmt::format("{} of the host's memory are left for over-commit; "
                                              "give --memory at most that",
                                              format_bytes(left)));
}

std::uint64_t TenantStore::tenant_swappable(int tenant, int device) const {
  std::uint64_t sum = 0;
  for (const int client : clients_of_[tenant])
    sum += swappable(client, device);
  return sum;
}

// What a tenant with over-commit has on the device that stays there: what it has leased.
std::uint64_t TenantStore::unswappable_rest(int tenant, int device) const {
  const std::uint64_t all = accounts_[tenant][device].leased;
  return all - std::min(all, tenant_swappable(tenant, device));
}

std::uint64_t TenantStore::capacity_for_swappable(int device) const {
  std::uint64_t taken = 0;
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    const TenantRecord& record = state_->tenants[tenant];
    if (record.live == 0) continue;
    taken += is_checkpointable(tenant, device) ? 0
             : is_overcommitted(tenant)
                 ? unswappable_rest(tenant, device)
                 : std::max<std::uint64_t>(record.quota[device], accounts_[tenant][device].leased);
  }
  return whole(device) - std::min(whole(device), taken);
}

std::uint64_t TenantStore::demand_of(int tenant, int device) const {
  return tenant_swappable(tenant, device) +
         (is_checkpointable(tenant, device) ? unswappable_rest(tenant, device) : 0);
}

bool TenantStore::fits_unswappable(int tenant, int device, std::uint64_t least) const {
  const std::uint64_t room = capacity_for_swappable(device);
  if (is_checkpointable(tenant, device)) return demand_of(tenant, device) + least <= room;
  std::uint64_t largest = 0;
  for (int other = 0; other < kTenantsMax; ++other) {
    if (state_->tenants[other].live != 0 && is_overcommitted(other))
      largest = std::max(largest, demand_of(other, device));
  }
  return largest + least <= room;
}

bool TenantStore::may_pin(int tenant) {
  bool fits = true;
  for (int device = 0; device < device_count(); ++device) {
    if (!is_checkpointable(tenant, device)) continue;
    set_checkpointable(tenant, device, false);
    fits = fits_unswappable(tenant, device, 0) && fits;
    set_checkpointable(tenant, device, true);
  }
  return fits;
}

void TenantStore::recall_spare(int device) {
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (state_->tenants[tenant].live == 0 || !is_overcommitted(tenant)) continue;
    recall(tenant, device, -1, REGATTA_MEMORY_MAX);
    publish(tenant);
  }
}

bool TenantStore::set_swappable(int client, int device, std::uint64_t bytes) {
  const int tenant = static_cast<int>(state_->clients[client].tenant);
  if (device < 0 || device >= device_count() || bytes > REGATTA_MEMORY_MAX ||
      !has_client_page(client) || !is_overcommitted(tenant))
    return false;
  regatta_account& of_tenant = account(tenant, device);
  std::uint64_t& known =
      swappable_[static_cast<std::size_t>(client)][static_cast<std::size_t>(device)];
  if (bytes > known) {
    const std::uint64_t more = bytes - known;
    if (regatta_account_room(&of_tenant) < more) recall(tenant, device, -1, more);
    if (regatta_account_room(&of_tenant) < more) return false;
    if (demand_of(tenant, device) + more > capacity_for_swappable(device)) return false;
  }
  // One word: a daemon that is killed has made all of the change or nothing, and is asked again.
  store(residency(client, device)->leased, static_cast<unsigned long long>(bytes));
  of_tenant.leased = of_tenant.leased - known + bytes;
  known = bytes;
  publish(tenant);
  return true;
}

void TenantStore::adopt_swappable(int client) {
  const int tenant = static_cast<int>(state_->clients[client].tenant);
  if (!is_overcommitted(tenant)) return;
  drop_swappable(client);
  for (int device = 0; device < device_count(); ++device) {
    const std::uint64_t bytes =
        std::min<std::uint64_t>(residency(client, device)->leased, account(tenant, device).quota);
    swappable_[static_cast<std::size_t>(client)][static_cast<std::size_t>(device)] = bytes;
    account(tenant, device).leased += bytes;
  }
}

void TenantStore::drop_swappable(int client) {
  const int tenant = static_cast<int>(state_->clients[client].tenant);
  for (int device = 0; device < device_count(); ++device) {
    std::uint64_t& known =
        swappable_[static_cast<std::size_t>(client)][static_cast<std::size_t>(device)];
    account(tenant, device).leased -= known;
    known = 0;
  }
}

// With over-commit no more than is asked for: what is leased and not used would take room from
// others.
std::uint64_t TenantStore::lease_size(int client, int device, std::uint64_t least) {
  const ClientRecord& record = state_->clients[client];
  const int tenant = static_cast<int>(record.tenant);
  const regatta_account& of_tenant = account(tenant, device);
  if (!is_overcommitted(tenant))
    return regatta_lease_size(&of_tenant, record.leases[device].leased, least);
  const std::uint64_t room = regatta_account_room(&of_tenant);
  if (least == 0 || least > room) return 0;
  constexpr std::uint64_t kBlock = REGATTA_BLOCK_BYTES;
  return std::min((least + kBlock - 1) / kBlock * kBlock, room);
}

}  // namespace regatta::sharing
