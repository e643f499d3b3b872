#include "regatta/gpu/sharing/internal/daemon/lease_accounts.h"

#include <algorithm>

namespace regatta::sharing {

LeaseAccounts::LeaseAccounts(StateFile& state, TenantTable& tenants, const ClientTable& clients)
    : state_(&state), tenants_(&tenants), clients_(&clients), leased_(kTenantsMax) {
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    for (const int client : clients_->of_tenant(tenant)) {
      for (int device = 0; device < kDevicesMax; ++device)
        add(tenant, device, static_cast<std::int64_t>(leased(client, device)));
    }
  }
}

std::uint64_t LeaseAccounts::leased(int client, int device) const {
  const LeaseRecord& lease = state_->clients[client].leases[device];
  return std::max(lease.leased, lease.next);
}

void LeaseAccounts::add(int tenant, int device, std::int64_t bytes) {
  std::uint64_t& leased = at(at(leased_, tenant), device);
  leased += static_cast<std::uint64_t>(bytes);
  tenants_->set_leased(tenant, device, leased);
}

regatta_account LeaseAccounts::account(int tenant, int device) const {
  return {state_->tenants[tenant].quota[device], tenant_leased(tenant, device)};
}

std::uint64_t LeaseAccounts::room(int tenant, int device) const {
  const regatta_account of_tenant = account(tenant, device);
  return regatta_account_room(&of_tenant);
}

// The counter's generation tells whether the change that was recorded last was made. Repeating the
// stores that follow from that is harmless, so the daemon may be killed here, too.
void LeaseAccounts::settle(int client) {
  const int tenant = clients_->tenant_of(client);
  for (int device = 0; device < kDevicesMax; ++device) {
    LeaseRecord& lease = state_->clients[client].leases[device];
    const std::uint64_t before = leased(client, device);
    const unsigned generation = regatta_lease_word_generation(
        regatta_lease_counter_read(clients_->lease_counter(client, device)));
    if (generation == lease.generation) {
      store(lease.next, lease.leased);
    } else {
      store(lease.leased, lease.next);
      store(lease.generation, generation);
    }
    add(tenant, device, static_cast<std::int64_t>(lease.leased - before));
  }
}

template <typename F>
void LeaseAccounts::change(int client, int device, F&& difference) {
  LeaseRecord& lease = state_->clients[client].leases[device];
  regatta_lease_counter& counter = *clients_->lease_counter(client, device);
  const std::uint32_t generation = (lease.generation + 1) & 0xffffU;
  std::int64_t by = 0;
  for (bool is_made = false; !is_made;) {
    const unsigned long long word = regatta_lease_counter_read(&counter);
    const unsigned long long spare = regatta_lease_word_spare(word);
    by = difference(spare);
    if (by == 0) return store(lease.next, lease.leased);
    store(lease.next, lease.leased + static_cast<std::uint64_t>(by));
    // A client can write nonsense into its counter; the bound keeps the word from overflowing.
    const auto now =
        std::min<unsigned long long>(spare + static_cast<std::uint64_t>(by), REGATTA_MEMORY_MAX);
    is_made = regatta_lease_counter_replace(&counter, word, generation, now) != 0;
  }
  store(lease.leased, lease.next);
  store(lease.generation, generation);
  add(clients_->tenant_of(client), device, by);
}

void LeaseAccounts::recall(int tenant, int device, int except, std::uint64_t wanted) {
  for (const int client : clients_->of_tenant(tenant)) {
    const regatta_account of_tenant = account(tenant, device);
    const std::uint64_t free = regatta_account_room(&of_tenant);
    if (free >= wanted) return;
    if (client == except || !clients_->has_page(client)) continue;
    // After the quota was lowered, the excess comes back, too.
    const std::uint64_t excess =
        of_tenant.leased > of_tenant.quota ? of_tenant.leased - of_tenant.quota : 0;
    const std::uint64_t lacking = wanted - free + excess;
    const std::uint64_t held = state_->clients[client].leases[device].leased;
    change(client, device, [&](std::uint64_t spare) {
      return -static_cast<std::int64_t>(std::min({spare, held, lacking}));
    });
  }
}

// A tenant with over-commit gets no more than it requests: spare bytes would take room from others.
std::uint64_t LeaseAccounts::lease_size(int client, int device, std::uint64_t least) const {
  const int tenant = clients_->tenant_of(client);
  const regatta_account of_tenant = account(tenant, device);
  if (!tenants_->is_overcommitted(tenant))
    return regatta_lease_size(&of_tenant, state_->clients[client].leases[device].leased, least);
  const std::uint64_t free = regatta_account_room(&of_tenant);
  if (least == 0 || least > free) return 0;
  constexpr std::uint64_t kBlock = REGATTA_BLOCK_BYTES;
  return std::min((least + kBlock - 1) / kBlock * kBlock, free);
}

bool LeaseAccounts::lease(int client, int device, std::uint64_t least) {
  if (least > REGATTA_MEMORY_MAX || !clients_->has_page(client)) return false;
  const int tenant = clients_->tenant_of(client);
  if (room(tenant, device) < least) recall(tenant, device, client, least);
  const std::uint64_t size = lease_size(client, device, least);
  if (size == 0) return false;
  change(client, device, [&](std::uint64_t) { return static_cast<std::int64_t>(size); });
  return true;
}

void LeaseAccounts::reclaim(int client) {
  for (int device = 0; device < kDevicesMax; ++device)
    add(clients_->tenant_of(client), device, -static_cast<std::int64_t>(leased(client, device)));
}

void LeaseAccounts::forget_tenant(int tenant) {
  at(leased_, tenant) = {};
}

Holding LeaseAccounts::holding(int client, int device) const {
  if (!clients_->has_page(client)) return {leased(client, device), 0};
  const std::uint64_t held = state_->clients[client].leases[device].leased;
  const std::uint64_t spare =
      regatta_lease_word_spare(regatta_lease_counter_read(clients_->lease_counter(client, device)));
  return {held, std::min(held, spare)};
}

Holding LeaseAccounts::tenant_holding(int tenant, int device) const {
  Holding sum;
  for (const int client : clients_->of_tenant(tenant)) {
    const Holding one = holding(client, device);
    sum.leased += one.leased;
    sum.spare += one.spare;
  }
  return sum;
}

}  // namespace regatta::sharing
