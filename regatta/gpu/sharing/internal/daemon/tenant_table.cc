#include "regatta/gpu/sharing/internal/daemon/tenant_table.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <sys/random.h>
#include <unistd.h>

#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {
namespace {

unsigned page_flags(const TenantRecord& record) {
  return ((record.flags & kOpenOnFault) != 0 ? REGATTA_TENANT_OPEN_ON_FAULT : 0) |
         ((record.flags & kOvercommit) != 0 ? REGATTA_TENANT_OVERCOMMIT : 0);
}

}  // namespace

TenantTable::TenantTable(StateFile& state, std::string socket, bool opens_when_lost)
    : state_(&state),
      socket_(std::move(socket)),
      opens_when_lost_(opens_when_lost),
      pages_(kTenantsMax) {}

Status TenantTable::open() {
  if (socket_.size() >= sizeof regatta_tenant_page{}.socket - 4) {
    return Error{Code::kInvalidInput,
                 socket_ + ": is too long for the address of a socket; give a shorter path"};
  }
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (is_live(tenant)) REGATTA_TRY_DO(make_page(tenant));
  }
  return {};
}

std::optional<int> TenantTable::find(std::string_view name) const {
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (is_live(tenant) && name == state_->tenants[tenant].name) return tenant;
  }
  return std::nullopt;
}

std::optional<int> TenantTable::find_by_token(const unsigned char (&token)[16]) const {
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (is_live(tenant) && std::memcmp(token, state_->tenants[tenant].token, sizeof token) == 0)
      return tenant;
  }
  return std::nullopt;
}

bool TenantTable::is_page_of(const os::UniqueFd& page, int tenant) const {
  unsigned char token[sizeof state_->tenants[tenant].token];
  return SharedPage::is_handed_down(page) &&
         ::pread(page.get(), token, sizeof token, offsetof(regatta_tenant_page, token)) ==
             static_cast<ssize_t>(sizeof token) &&
         std::memcmp(token, state_->tenants[tenant].token, sizeof token) == 0;
}

Result<int> TenantTable::add(const TenantLimits& limits) {
  if (find(limits.name)) {
    return Error{Code::kConflict, fmt::format("tenant {}: exists already", limits.name)};
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
  set_limits(tenant, limits);
  REGATTA_TRY_DO(make_page(tenant));
  store(free->live, 1U);
  return tenant;
}

void TenantTable::set_limits(int tenant, const TenantLimits& limits) {
  TenantRecord& record = state_->tenants[tenant];
  for (int device = 0; device < kDevicesMax; ++device)
    store(record.quota[device], static_cast<std::uint64_t>(at(limits.memory, device).value));
  store(record.compute_ppm, static_cast<std::uint32_t>(limits.compute_ppm));
  store(record.weight, static_cast<std::uint32_t>(limits.weight));
  store(record.flags, tenant_flags(limits));
  auto* const shown = page(tenant);
  if (shown == nullptr) return;
  for (int device = 0; device < kDevicesMax; ++device)
    store(shown->quota[device], static_cast<unsigned long long>(record.quota[device]));
  store(shown->flags, page_flags(record));
}

void TenantTable::remove(int tenant) {
  store(state_->tenants[tenant].live, 0U);
  at(pages_, tenant) = SharedPage();
}

Status TenantTable::set_policy(regatta_share_policy policy) {
  for (const TenantRecord& record : state_->tenants) {
    if (record.live != 0 && record.compute_ppm == 0 && policy == REGATTA_SHARE_FIXED) {
      return Error{Code::kInvalidInput,
                   fmt::format("tenant {}: would have no share of the time under the policy fixed; "
                               "give it one with regatta gpu set {} --compute",
                               record.name, record.name)};
    }
  }
  store(state_->policy, static_cast<std::uint32_t>(policy));
  return {};
}

Status TenantTable::make_page(int tenant) {
  const TenantRecord& record = state_->tenants[tenant];
  REGATTA_TRY(made, SharedPage::create(REGATTA_TENANT_PAGE_NAME, true));
  auto& shown = *made.as<regatta_tenant_page>();
  shown.version = REGATTA_TENANT_VERSION;
  std::memcpy(shown.token, record.token, sizeof shown.token);
  std::memcpy(shown.name, record.name, sizeof shown.name);
  std::memcpy(shown.socket, socket_.data(), socket_.size());
  for (int device = 0; device < kDevicesMax; ++device)
    shown.quota[device] = record.quota[device];
  shown.opens_when_lost = opens_when_lost_ ? 1 : 0;
  shown.flags = page_flags(record);
  shown.magic = REGATTA_TENANT_MAGIC;
  at(pages_, tenant) = std::move(made);
  return {};
}

regatta_turn* TenantTable::turn(int tenant, int device) const {
  return page(tenant) == nullptr ? nullptr : &page(tenant)->turns[device];
}

void TenantTable::set_working_processes(int tenant, int device, unsigned count) const {
  if (regatta_tenant_page* const own = page(tenant)) store(own->working_processes[device], count);
}

unsigned long long* TenantTable::engine_rates(int tenant, int device) const {
  return page(tenant) == nullptr ? nullptr : page(tenant)->rates[device];
}

unsigned TenantTable::share_ppm(int tenant) const {
  return page(tenant) == nullptr ? 0 : page(tenant)->share_ppm;
}

void TenantTable::set_share_ppm(int tenant, unsigned share_ppm) {
  if (page(tenant) != nullptr) store(page(tenant)->share_ppm, share_ppm);
}

void TenantTable::set_leased(int tenant, int device, std::uint64_t bytes) {
  if (page(tenant) != nullptr)
    store(page(tenant)->leased[device], static_cast<unsigned long long>(bytes));
}

}  // namespace regatta::sharing
