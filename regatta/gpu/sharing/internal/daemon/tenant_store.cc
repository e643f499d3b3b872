#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"

#include <array>
#include <utility>

namespace regatta::sharing {

Result<TenantStore> TenantStore::open(MappedState state, std::string socket,
                                      MemoryCapacity capacity, bool opens_when_lost) {
  REGATTA_TRY(drained, DrainedDevices::load(state.folder()));
  TenantStore made(std::move(state), std::move(capacity), std::move(drained));
  StateFile& file = *made.state_;
  made.tenants_ = std::make_unique<TenantTable>(file, std::move(socket), opens_when_lost);
  REGATTA_TRY_DO(made.tenants_->open());
  made.clients_ = std::make_unique<ClientTable>(file);
  made.leases_ = std::make_unique<LeaseAccounts>(file, *made.tenants_, *made.clients_);
  made.swappable_ = std::make_unique<SwappableAccounts>(*made.capacity_, *made.tenants_,
                                                        *made.clients_, *made.leases_);
  made.update_shares();
  return made;
}

Result<int> TenantStore::add_tenant(const TenantLimits& limits) {
  REGATTA_TRY_DO(drained_->check(limits, device_count(), nullptr));
  REGATTA_TRY_DO(check_limits(*state_, *capacity_, limits, std::nullopt));
  REGATTA_TRY(tenant, tenants_->add(limits));
  update_shares();
  return tenant;
}

Status TenantStore::set_limits(int tenant, const TenantLimits& limits) {
  REGATTA_TRY_DO(drained_->check(limits, device_count(), &state_->tenants[tenant]));
  REGATTA_TRY_DO(check_limits(*state_, *capacity_, limits, tenant));
  tenants_->set_limits(tenant, limits);
  for (int device = 0; device < kDevicesMax; ++device) {
    if (leases_->room(tenant, device) == 0) leases_->recall(tenant, device, -1, 1);
  }
  update_shares();
  return {};
}

void TenantStore::remove_tenant(int tenant) {
  tenants_->remove(tenant);
  leases_->forget_tenant(tenant);
  swappable_->forget_tenant(tenant);
  update_shares();
}

Status TenantStore::set_policy(regatta_share_policy policy) {
  REGATTA_TRY_DO(tenants_->set_policy(policy));
  update_shares();
  return {};
}

Status TenantStore::set_drained(std::uint32_t devices) {
  const std::uint32_t added = devices & ~drained_->bits();
  REGATTA_TRY_DO(drained_->set(devices));
  for (int device = 0; device < device_count(); ++device) {
    if ((added >> device & 1U) == 0) continue;
    for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
      if (tenants_->is_live(tenant)) leases_->recall_all(tenant, device);
    }
  }
  return {};
}

Result<int> TenantStore::add_client(int tenant, ProcessId process) {
  REGATTA_TRY(client, clients_->add(tenant, process));
  if (clients_->of_tenant(tenant).size() == 1) update_shares();
  return client;
}

void TenantStore::remove_client(int client) {
  const int tenant = clients_->tenant_of(client);
  leases_->reclaim(client);
  swappable_->drop(client);
  clients_->remove(client);
  if (!clients_->tenant_has_any(tenant)) update_shares();
}

Status TenantStore::adopt_client_page(int client, os::UniqueFd page) {
  REGATTA_TRY_DO(clients_->adopt_page(client, std::move(page)));
  leases_->settle(client);
  swappable_->adopt(client);
  return {};
}

regatta_share_request TenantStore::share_request(int tenant) const {
  const TenantRecord& record = state_->tenants[tenant];
  if (record.live == 0) return {};
  const auto is_present = static_cast<unsigned char>(clients_->tenant_has_any(tenant) ? 1 : 0);
  return {record.compute_ppm, record.weight, is_present, 0};
}

// The store does not know which tenants have work, so each tenant with a process counts as having
// some.
void TenantStore::update_shares() {
  std::array<regatta_share_request, kTenantsMax> requests{};
  std::array<unsigned, kTenantsMax> shares{};
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    at(requests, tenant) = share_request(tenant);
    at(requests, tenant).runnable = at(requests, tenant).present;
  }
  regatta_compute_shares(tenants_->policy(), requests.data(), kTenantsMax, shares.data());
  for (int tenant = 0; tenant < kTenantsMax; ++tenant)
    tenants_->set_share_ppm(tenant, at(shares, tenant));
}

}  // namespace regatta::sharing
