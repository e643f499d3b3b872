// The part of tenant_store.h that is about tenants: their limits, their pages, their parts of the
// time.

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <sys/random.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"

namespace regatta::sharing {
namespace {

Status check_name(const std::string& name) {
  const auto is_allowed = [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '-' || letter == '_' || letter == '.';
  };
  if (!name.empty() && name.size() < sizeof TenantRecord{}.name &&
      std::all_of(name.begin(), name.end(), is_allowed)) {
    return {};
  }
  return Error{Code::kInvalidInput,
               fmt::format("tenant '{}': a name has 1 to 47 letters, digits, '-', '_' and '.'",
                           printable(name, 60))};
}

std::uint32_t flags_of(const TenantLimits& limits) {
  return (limits.is_high_priority ? kHighPriority : 0) |
         (limits.is_open_on_fault ? kOpenOnFault : 0) |
         (limits.is_overcommitted ? kOvercommit : 0) | limits.lease_s << kLeaseBit;
}

unsigned page_flags(const TenantRecord& record) {
  return ((record.flags & kOpenOnFault) != 0 ? REGATTA_TENANT_OPEN_ON_FAULT : 0) |
         ((record.flags & kOvercommit) != 0 ? REGATTA_TENANT_OVERCOMMIT : 0);
}

}  // namespace

std::optional<int> TenantStore::find_tenant(std::string_view name) const {
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    const TenantRecord& record = state_->tenants[tenant];
    if (record.live != 0 && name == record.name) return tenant;
  }
  return std::nullopt;
}

std::optional<int> TenantStore::find_tenant_of(const unsigned char (&token)[16]) const {
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    const TenantRecord& record = state_->tenants[tenant];
    if (record.live != 0 && std::memcmp(token, record.token, sizeof token) == 0) return tenant;
  }
  return std::nullopt;
}

TenantLimits TenantStore::limits(int tenant) const {
  const TenantRecord& record = state_->tenants[tenant];
  TenantLimits limits{.name = record.name,
                      .compute_ppm = record.compute_ppm,
                      .weight = record.weight,
                      .is_high_priority = (record.flags & kHighPriority) != 0,
                      .is_open_on_fault = (record.flags & kOpenOnFault) != 0,
                      .is_overcommitted = (record.flags & kOvercommit) != 0,
                      .lease_s = record.flags >> kLeaseBit};
  for (int device = 0; device < kDevicesMax; ++device)
    limits.memory[device] = {static_cast<long long>(record.quota[device])};
  return limits;
}

// The limits of all tenants together, `self` aside, are kept whatever happens: memory within what a
// device has, parts of the time within the whole.
Status TenantStore::check_limits(const TenantLimits& limits, std::optional<int> self) const {
  REGATTA_TRY_DO(check_name(limits.name));
  REGATTA_TRY_DO(check_drained(limits, self));
  REGATTA_TRY_DO(check_overcommit(limits, self));
  std::uint64_t compute = limits.compute_ppm;
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    const TenantRecord& record = state_->tenants[tenant];
    if (record.live == 0 || tenant == self) continue;
    compute += record.compute_ppm;
  }
  for (int device = 0; device < kDevicesMax; ++device) {
    const auto wanted = static_cast<std::uint64_t>(limits.memory[device].value);
    if (wanted == 0) continue;
    if (device >= device_count()) {
      return Error{Code::kInvalidInput,
                   fmt::format("tenant {}: there is no GPU {}; the daemon has GPU 0 to {}",
                               limits.name, device, device_count() - 1)};
    }
    const bool is_known = capacity_[device].value != 0;
    const std::uint64_t left = room_on(device, limits, self);
    if (wanted > REGATTA_MEMORY_MAX || (is_known && wanted > left)) {
      return Error{
          Code::kInvalidInput,
          fmt::format("tenant {}: GPU {} has {} left for it; give --memory at most that",
                      limits.name, device, format_bytes(Bytes{static_cast<long long>(left)}))};
    }
  }
  if (compute > REGATTA_WHOLE_PPM) {
    const std::uint64_t others = compute - limits.compute_ppm;
    return Error{Code::kInvalidInput,
                 fmt::format("tenant {}: {} % of the time are left; give --compute at most that",
                             limits.name, static_cast<double>(REGATTA_WHOLE_PPM - others) / 1e4)};
  }
  if (limits.compute_ppm == 0 && state_->policy == REGATTA_SHARE_FIXED) {
    return Error{Code::kInvalidInput,
                 fmt::format("tenant {}: has no part of the time under the policy fixed; give "
                             "--compute or choose another policy",
                             limits.name)};
  }
  return {};
}

Result<int> TenantStore::add_tenant(const TenantLimits& limits) {
  REGATTA_TRY_DO(check_limits(limits, std::nullopt));
  if (find_tenant(limits.name)) {
    return Error{Code::kConflict, fmt::format("tenant {}: is there already", limits.name)};
  }
  const auto free = std::find_if(std::begin(state_->tenants), std::end(state_->tenants),
                                 [](const TenantRecord& record) { return record.live == 0; });
  if (free == std::end(state_->tenants)) {
    return Error{Code::kExhausted, fmt::format("tenant {}: there are {} already, which is the most",
                                               limits.name, kTenantsMax)};
  }
  const int tenant = static_cast<int>(free - state_->tenants);
  *free = TenantRecord{};
  std::memcpy(free->name, limits.name.data(), limits.name.size());
  if (::getrandom(free->token, sizeof free->token, 0) != sizeof free->token)
    return os::errno_error("cannot draw a token");
  accounts_[tenant] = {};
  for (int device = 0; device < kDevicesMax; ++device) {
    free->quota[device] = static_cast<std::uint64_t>(limits.memory[device].value);
    account(tenant, device).quota = free->quota[device];
  }
  free->compute_ppm = limits.compute_ppm;
  free->weight = limits.weight;
  free->flags = flags_of(limits);
  REGATTA_TRY(page, make_tenant_page(tenant));
  tenant_pages_[tenant] = std::move(page);
  store(free->live, 1U);
  publish_parts();
  return tenant;
}

Status TenantStore::set_limits(int tenant, const TenantLimits& limits) {
  REGATTA_TRY_DO(check_limits(limits, tenant));
  TenantRecord& record = state_->tenants[tenant];
  for (int device = 0; device < kDevicesMax; ++device) {
    store(record.quota[device], static_cast<std::uint64_t>(limits.memory[device].value));
    account(tenant, device).quota = record.quota[device];
    // What a lowered quota does not cover any more comes back as far as it is spare.
    if (regatta_account_room(&account(tenant, device)) == 0) recall(tenant, device, -1, 1);
  }
  store(record.compute_ppm, static_cast<std::uint32_t>(limits.compute_ppm));
  store(record.weight, static_cast<std::uint32_t>(limits.weight));
  store(record.flags, flags_of(limits));
  publish(tenant);
  publish_parts();
  return {};
}

void TenantStore::remove_tenant(int tenant) {
  store(state_->tenants[tenant].live, 0U);
  accounts_[tenant] = {};
  is_checkpointable_[tenant] = {};
  tenant_pages_[tenant] = SharedPage();
  publish_parts();
}

bool TenantStore::has_clients(int tenant) const {
  return !clients_of_[tenant].empty();
}

Status TenantStore::set_policy(regatta_share_policy policy) {
  for (const TenantRecord& record : state_->tenants) {
    if (record.live != 0 && record.compute_ppm == 0 && policy == REGATTA_SHARE_FIXED) {
      return Error{Code::kInvalidInput,
                   fmt::format("tenant {}: would have no part of the time under the policy fixed; "
                               "give it one with regatta gpu set {} --compute",
                               record.name, record.name)};
    }
  }
  store(state_->policy, static_cast<std::uint32_t>(policy));
  publish_parts();
  return {};
}

Result<SharedPage> TenantStore::make_tenant_page(int tenant) const {
  const TenantRecord& record = state_->tenants[tenant];
  REGATTA_TRY(page, SharedPage::create(REGATTA_TENANT_PAGE_NAME, true));
  auto& shown = *page.as<regatta_tenant_page>();
  shown.version = REGATTA_TENANT_VERSION;
  std::memcpy(shown.token, record.token, sizeof shown.token);
  std::memcpy(shown.name, record.name, sizeof shown.name);
  std::memcpy(shown.socket, socket_.data(), socket_.size());
  for (int device = 0; device < kDevicesMax; ++device) {
    shown.quota[device] = record.quota[device];
    shown.leased[device] = accounts_[tenant][device].leased;
  }
  shown.opens_when_lost = opens_when_lost_ ? 1 : 0;
  shown.flags = page_flags(record);
  shown.magic = REGATTA_TENANT_MAGIC;
  return page;
}

void TenantStore::publish(int tenant) {
  auto* shown = tenant_pages_[tenant].as<regatta_tenant_page>();
  if (shown == nullptr) return;
  for (int device = 0; device < device_count(); ++device) {
    const regatta_account& of_tenant = account(tenant, device);
    store(shown->quota[device], of_tenant.quota);
    store(shown->leased[device], of_tenant.leased);
  }
  store(shown->flags, page_flags(state_->tenants[tenant]));
}

unsigned TenantStore::part_ppm(int tenant) const {
  const auto* shown = tenant_pages_[tenant].as<regatta_tenant_page>();
  return shown == nullptr ? 0 : shown->part_ppm;
}

regatta_share_request TenantStore::share_request(int tenant) const {
  const TenantRecord& record = state_->tenants[tenant];
  if (record.live == 0) return {};
  const auto is_present = static_cast<unsigned char>(has_clients(tenant) ? 1 : 0);
  return {record.compute_ppm, record.weight, is_present, 0};
}

regatta_share_policy TenantStore::policy() const {
  return static_cast<regatta_share_policy>(state_->policy);
}

// Nobody tells the tenant store who has work, so each tenant that is present counts as having some.
void TenantStore::publish_parts() {
  std::array<regatta_share_request, kTenantsMax> requests{};
  std::array<unsigned, kTenantsMax> parts{};
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    requests[tenant] = share_request(tenant);
    requests[tenant].runnable = requests[tenant].present;
  }
  regatta_compute_shares(policy(), requests.data(), kTenantsMax, parts.data());
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (auto* shown = tenant_pages_[tenant].as<regatta_tenant_page>())
      store(shown->part_ppm, parts[tenant]);
  }
}

}  // namespace regatta::sharing
