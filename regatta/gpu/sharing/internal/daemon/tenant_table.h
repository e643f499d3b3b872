// sharing/internal/daemon/tenant_table.h: the records of all tenants, and the page in which the
// daemon shows each tenant its quota, turns and engine rates.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/daemon/shared_page.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_limits.h"
#include "regatta/gpu/sharing/internal/ledger/page_layout.h"
#include "regatta/gpu/sharing/internal/policy/share.h"
#include "regatta/gpu/sharing/state.h"

namespace regatta::sharing {

class TenantTable {
 public:
  // The pages name `socket` as the daemon's address, and say whether launches continue while no
  // daemon answers.
  TenantTable(StateFile& state, std::string socket, bool opens_when_lost);
  // Makes the pages of the tenants in the state.
  Status open();

  bool is_live(int tenant) const { return state_->tenants[tenant].live != 0; }
  std::string name(int tenant) const { return state_->tenants[tenant].name; }
  TenantLimits limits(int tenant) const { return limits_of(state_->tenants[tenant]); }
  bool is_overcommitted(int tenant) const {
    return (state_->tenants[tenant].flags & kOvercommit) != 0;
  }
  std::optional<int> find(std::string_view name) const;
  std::optional<int> find_by_token(const unsigned char (&token)[16]) const;

  // `limits` have been checked. kConflict when there is a tenant of this name, kExhausted when
  // there are too many.
  Result<int> add(const TenantLimits& limits);
  void set_limits(int tenant, const TenantLimits& limits);
  void remove(int tenant);

  regatta_share_policy policy() const { return static_cast<regatta_share_policy>(state_->policy); }
  Status set_policy(regatta_share_policy policy);

  // The page's descriptor, which the tenant's processes inherit.
  int page_fd(int tenant) const { return at(pages_, tenant).fd(); }
  // Whether the descriptor was handed down from the tenant's first process, whose page this daemon
  // or an earlier one made; not one that another process opened anew.
  bool is_page_of(const os::UniqueFd& page, int tenant) const;
  // Fields of the page; null for a tenant that does not exist.
  regatta_turn* turn(int tenant, int device) const;
  void set_working_processes(int tenant, int device, unsigned count) const;
  unsigned long long* engine_rates(int tenant, int device) const;
  // The tenant's share of the time of a device, under the policy.
  unsigned share_ppm(int tenant) const;
  void set_share_ppm(int tenant, unsigned share_ppm);
  void set_leased(int tenant, int device, std::uint64_t bytes);

 private:
  regatta_tenant_page* page(int tenant) const {
    return at(pages_, tenant).as<regatta_tenant_page>();
  }
  Status make_page(int tenant);

  StateFile* state_;
  std::string socket_;
  bool opens_when_lost_;
  std::vector<SharedPage> pages_;
};

}  // namespace regatta::sharing
