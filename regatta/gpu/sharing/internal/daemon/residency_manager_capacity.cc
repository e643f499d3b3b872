// The part of residency_manager.h about room: how much of a device is taken, and whether more may
// be leased.

#include <algorithm>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/clock.h"
#include "regatta/gpu/sharing/internal/daemon/residency_manager.h"

namespace regatta::sharing {
namespace {

// A client that was told to retry does so within this time.
constexpr std::uint64_t kWantedNs = 1'000'000'000;

bool is_waiting(const regatta_residency_tenant& one) {
  return one.is_runnable != 0 && one.is_admitted == 0;
}

}  // namespace

ResidencyManager::Usage ResidencyManager::usage_of(const TenantStore& tenant_store, int tenant,
                                                   int device) {
  Usage sum;
  for (const int client : tenant_store.clients().of_tenant(tenant)) {
    const regatta_residency_state* const page = tenant_store.clients().residency(client, device);
    if (page == nullptr) continue;
    // The client writes there: no more than it may have, and no count that others would wrap.
    const std::uint64_t all = tenant_store.swappable().bytes(client, device);
    constexpr std::uint64_t kMostMoved = 1ULL << 56;
    sum.resident += std::min<std::uint64_t>(load(page->resident), all);
    sum.swapped_out += std::min<std::uint64_t>(load(page->swapped_out), all);
    sum.moved_in += std::min<std::uint64_t>(load(page->moved_in), kMostMoved);
    sum.moved_out += std::min<std::uint64_t>(load(page->moved_out), kMostMoved);
    if (CheckpointManager::place(tenant_store, client) != REGATTA_PROCESS_CHECKPOINTED) continue;
    const auto held = tenant_store.leases().holding(client, device);
    sum.swapped_out += held.leased - held.spare;
    sum.leased_swapped_out += held.leased - held.spare;
  }
  return sum;
}

std::uint64_t ResidencyManager::counted_there(const TenantStore& tenant_store, int client,
                                              int device) {
  const auto held = tenant_store.leases().holding(client, device);
  const std::uint64_t all = tenant_store.swappable().bytes(client, device);
  const regatta_residency_state* const page = tenant_store.clients().residency(client, device);
  const bool is_away =
      CheckpointManager::place(tenant_store, client) == REGATTA_PROCESS_CHECKPOINTED;
  const std::uint64_t leased = is_away ? 0 : held.leased - held.spare;
  return leased + (page == nullptr ? all : std::min<std::uint64_t>(load(page->resident), all));
}

// Bytes that are on the device or were granted a place there.
std::uint64_t ResidencyManager::taken(const TenantStore& tenant_store, int device) const {
  const Device& of = at(devices_, device);
  std::uint64_t sum = 0;
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (!tenant_store.tenants().is_live(tenant)) continue;
    const bool moves = tenant_store.tenants().is_overcommitted(tenant);
    if (moves) sum += at(of.asked, tenant).may_lease;
    for (const int client : tenant_store.clients().of_tenant(tenant)) {
      if (checkpoints_.is_lost(client)) continue;
      const bool is_away =
          CheckpointManager::place(tenant_store, client) == REGATTA_PROCESS_CHECKPOINTED;
      if (!is_away || checkpoints_.is_wanted_here(tenant_store, client))
        sum += tenant_store.leases().leased(client, device);
      const regatta_residency_state* const page = tenant_store.clients().residency(client, device);
      if (page != nullptr && moves)
        sum += std::max(resident(tenant_store, client, device),
                        place_of(tenant_store, client, device).granted);
    }
  }
  return sum;
}

// Whether a process can leave, when none of its memory has to be moved first, or come back, when
// all its memory fits: the driver does not recover from a lack of room.
bool ResidencyManager::may_begin(const TenantStore& tenant_store, int client, bool here) const {
  if (here && CheckpointManager::place(tenant_store, client) != REGATTA_PROCESS_CHECKPOINTED)
    return true;
  for (int device = 0; device < tenant_store.device_count(); ++device) {
    const std::uint64_t whole = tenant_store.capacity().bytes(device);
    if (here && tenant_store.leases().leased(client, device) == 0 &&
        tenant_store.swappable().bytes(client, device) == 0)
      continue;
    if (here && whole != 0 && taken(tenant_store, device) > whole)
      return false;  // with what it had
    if (!here && resident(tenant_store, client, device) != 0) return false;
  }
  return true;
}

// A tenant that waits for room has its turn when the policy allowed it as much; no other tenant
// takes the memory that is being freed for it.
bool ResidencyManager::is_its_turn(int tenant, int device, std::uint64_t bytes) const {
  const Device& of = at(devices_, device);
  if (at(of.asked, tenant).may_lease >= bytes) return true;
  const regatta_residency_tenant& known = at(of.policy.tenants, tenant);
  if (known.has_slice != 0 && known.is_admitted != 0) return true;
  for (unsigned other = 0; other < of.policy.count; ++other)
    if (static_cast<int>(other) != tenant && is_waiting(of.policy.tenants[other])) return false;
  return !is_waiting(known);
}

// Whether all tenants can still fit, one after the other, when this client leases so much more. A
// process with memory on a second device cannot leave the first one.
bool ResidencyManager::may_ever(TenantStore& tenant_store, int client, int device,
                                std::uint64_t bytes) const {
  const auto tenant = tenant_store.clients().tenant_of(client);
  for (int other = 0; other < tenant_store.device_count(); ++other) {
    const bool has_other = tenant_store.leases().leased(client, other) != 0 ||
                           tenant_store.swappable().bytes(client, other) != 0;
    if (other != device && has_other && !tenant_store.swappable().may_pin(tenant)) return false;
  }
  const bool leaves = tenant_store.swappable().is_checkpointable(tenant, device);
  const bool can = checkpoints_.may_leave(tenant_store, client, device) ||
                   CheckpointManager::place(tenant_store, client) != REGATTA_PROCESS_RUNNING;
  tenant_store.swappable().set_checkpointable(tenant, device, leaves && can);
  const bool may = tenant_store.swappable().fits_lease(tenant, device, bytes);
  tenant_store.swappable().set_checkpointable(tenant, device, leaves);
  return may;
}

// The decision is stored in the client's page, for this daemon and the next.
ResidencyManager::Admission ResidencyManager::pin(TenantStore& tenant_store, int client) {
  is_changed_ = true;
  for (int device = 0; device < tenant_store.device_count(); ++device)
    update_checkpointable(tenant_store, device);
  if (!tenant_store.swappable().may_pin(tenant_store.clients().tenant_of(client)))
    return Admission::kNever;
  if (CheckpointManager::place(tenant_store, client) != REGATTA_PROCESS_RUNNING)
    return Admission::kLater;
  checkpoints_.set_target(tenant_store, client, true);  // it may be about to leave
  store(tenant_store.clients().process(client)->pinned, 1U);
  return Admission::kNow;
}

ResidencyManager::Admission ResidencyManager::admit(TenantStore& tenant_store, int client,
                                                    int device, std::uint64_t bytes) {
  Device& of = at(devices_, device);
  if (of.policy.count == 0) return Admission::kNow;  // nobody's memory moves
  const auto tenant = tenant_store.clients().tenant_of(client);
  TenantState& asked = at(of.asked, tenant);
  const bool moves = tenant_store.tenants().is_overcommitted(tenant);
  is_changed_ = true;
  // Nobody makes room for what the quota does not allow.
  LeaseAccounts& leases = tenant_store.leases();
  if (leases.room(tenant, device) < bytes) leases.recall(tenant, device, client, bytes);
  if (leases.room(tenant, device) < bytes) {
    asked.wanted = asked.may_lease = 0;
    return Admission::kNever;
  }
  if (moves && !checkpoints_.is_decided()) return Admission::kLater;
  for (int other = 0; other < tenant_store.device_count(); ++other)
    update_checkpointable(tenant_store, other);
  if (moves && !may_ever(tenant_store, client, device, bytes))
    tenant_store.swappable().recall_spare(device, client);
  if (moves && !may_ever(tenant_store, client, device, bytes)) {
    asked.wanted = asked.may_lease = 0;
    return Admission::kNever;
  }
  const std::uint64_t whole = tenant_store.capacity().bytes(device);
  const auto fits = [&] {
    const std::uint64_t others = taken(tenant_store, device) - (moves ? asked.may_lease : 0);
    return whole == 0 || others + bytes <= whole;
  };
  // Spare bytes take room that nobody uses.
  if (!fits()) tenant_store.swappable().recall_spare(device, client);
  if (fits() && (!moves || is_its_turn(tenant, device, bytes))) {
    asked.wanted = asked.may_lease = 0;
    return Admission::kNow;
  }
  if (moves) {
    asked.wanted = std::max(asked.wanted, bytes);
    asked.wanted_until_ns = os::monotonic_ns() + kWantedNs;
  }
  return Admission::kLater;
}

}  // namespace regatta::sharing
