// sharing/internal/daemon/tenant_limits.h: the limits of a tenant, and the check that the limits of
// all tenants fit into the machine together. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/gpu/sharing/internal/policy/share.h"
#include "regatta/gpu/sharing/state.h"

namespace regatta::sharing {

struct TenantLimits {
  std::string name;
  std::array<Bytes, kDevicesMax> memory{};
  unsigned compute_ppm = REGATTA_WHOLE_PPM;
  unsigned weight = 1;
  bool is_high_priority = false;
  bool is_open_on_fault = false;  // its processes continue while no daemon answers
  // Its memory is swapped out while others work; fixed when the tenant is created.
  bool is_overcommitted = false;
  unsigned lease_s = 0;  // length of its exclusive leases of the device; 0: none
};

// Memory that tenants share.
struct MemoryCapacity {
  std::vector<Bytes> devices;  // 0: unknown
  Bytes host;                  // for swapped-out memory; 0: the daemon allows no over-commit

  int device_count() const { return static_cast<int>(devices.size()); }
  std::uint64_t bytes(int device) const {
    return static_cast<std::uint64_t>(at(devices, device).value);
  }
};

TenantLimits limits_of(const TenantRecord& record);
// The flags of the record of a tenant with these limits.
std::uint32_t tenant_flags(const TenantLimits& limits);

// kInvalidInput when the limits are wrong or do not fit beside those of the other tenants in
// `state`: memory within the devices and the host, shares of time within the whole. `self` is the
// tenant whose limits these are; none for a new one.
Status check_limits(const StateFile& state, const MemoryCapacity& capacity,
                    const TenantLimits& limits, std::optional<int> self);

}  // namespace regatta::sharing
