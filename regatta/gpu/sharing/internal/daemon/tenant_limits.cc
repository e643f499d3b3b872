#include "regatta/gpu/sharing/internal/daemon/tenant_limits.h"

#include <algorithm>
#include <cctype>

#include <fmt/core.h>

#include "regatta/base/core/text.h"

namespace regatta::sharing {
namespace {

Error limit_error(const TenantLimits& limits, const std::string& reason) {
  return {Code::kInvalidInput, fmt::format("tenant {}: {}", limits.name, reason)};
}

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

bool is_overcommitted(const TenantRecord& record) {
  return (record.flags & kOvercommit) != 0;
}

template <typename F>
void for_each_other(const StateFile& state, std::optional<int> self, F&& visit) {
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (state.tenants[tenant].live != 0 && tenant != self) visit(state.tenants[tenant]);
  }
}

// Bytes of a device that a tenant with these limits may have. Quotas of tenants without over-commit
// add up; tenants with over-commit share the rest, and each of them fits there alone.
std::uint64_t available_on(const StateFile& state, const MemoryCapacity& capacity, int device,
                           const TenantLimits& limits, std::optional<int> self) {
  std::uint64_t reserved = 0;
  std::uint64_t largest = 0;
  for_each_other(state, self, [&](const TenantRecord& other) {
    if (is_overcommitted(other))
      largest = std::max<std::uint64_t>(largest, other.quota[device]);
    else
      reserved += other.quota[device];
  });
  if (!limits.is_overcommitted) reserved += largest;
  return capacity.bytes(device) - std::min(capacity.bytes(device), reserved);
}

Status check_overcommit(const StateFile& state, const MemoryCapacity& capacity,
                        const TenantLimits& limits, std::optional<int> self) {
  if (self && is_overcommitted(state.tenants[*self]) != limits.is_overcommitted)
    return limit_error(limits, "over-commit is chosen when it is started; start it anew");
  if (limits.lease_s != 0 && !limits.is_overcommitted)
    return limit_error(limits, "a lease of the device needs --overcommit, too");
  if (!limits.is_overcommitted) return {};
  std::uint64_t wanted = 0;
  std::uint64_t others = 0;
  for (int device = 0; device < capacity.device_count(); ++device) {
    const auto bytes = static_cast<std::uint64_t>(at(limits.memory, device).value);
    if (bytes != 0 && capacity.bytes(device) == 0) {
      return limit_error(limits, fmt::format("the memory of GPU {} is not known; start the daemon "
                                             "with --gpu SIZE",
                                             device));
    }
    wanted += bytes;
    for_each_other(state, self, [&](const TenantRecord& other) {
      if (is_overcommitted(other)) others += other.quota[device];
    });
  }
  const auto host = static_cast<std::uint64_t>(capacity.host.value);
  if (host == 0) {
    return limit_error(limits,
                       "the daemon allows no over-commit; start it with --host-memory SIZE, or "
                       "leave --overcommit out");
  }
  if (others + wanted <= host) return {};
  const Bytes left{static_cast<long long>(host - std::min(host, others))};
  return limit_error(limits, fmt::format("{} of the host's memory are left for over-commit; give "
                                         "--memory at most that",
                                         format_bytes(left)));
}

Status check_memory(const StateFile& state, const MemoryCapacity& capacity,
                    const TenantLimits& limits, std::optional<int> self) {
  for (int device = 0; device < kDevicesMax; ++device) {
    const auto wanted = static_cast<std::uint64_t>(at(limits.memory, device).value);
    if (wanted == 0) continue;
    if (device >= capacity.device_count()) {
      return limit_error(limits, fmt::format("there is no GPU {}; the daemon has GPU 0 to {}",
                                             device, capacity.device_count() - 1));
    }
    const bool is_known = capacity.bytes(device) != 0;
    const std::uint64_t available = available_on(state, capacity, device, limits, self);
    if (wanted > REGATTA_MEMORY_MAX || (is_known && wanted > available)) {
      return limit_error(
          limits, fmt::format("GPU {} has {} left for it; give --memory at most that", device,
                              format_bytes(Bytes{static_cast<long long>(available)})));
    }
  }
  return {};
}

Status check_compute(const StateFile& state, const TenantLimits& limits, std::optional<int> self) {
  std::uint64_t others = 0;
  for_each_other(state, self, [&](const TenantRecord& other) { others += other.compute_ppm; });
  if (others + limits.compute_ppm > REGATTA_WHOLE_PPM) {
    const double left = static_cast<double>(REGATTA_WHOLE_PPM - others) / 1e4;
    return limit_error(limits,
                       fmt::format("{} % of the time are left; give --compute at most that", left));
  }
  if (limits.compute_ppm == 0 && state.policy == REGATTA_SHARE_FIXED) {
    return limit_error(limits,
                       "has no share of the time under the policy fixed; give --compute or choose "
                       "another policy");
  }
  return {};
}

}  // namespace

TenantLimits limits_of(const TenantRecord& record) {
  TenantLimits limits{.name = record.name,
                      .compute_ppm = record.compute_ppm,
                      .weight = record.weight,
                      .is_high_priority = (record.flags & kHighPriority) != 0,
                      .is_open_on_fault = (record.flags & kOpenOnFault) != 0,
                      .is_overcommitted = is_overcommitted(record),
                      .lease_s = record.flags >> kLeaseBit};
  for (int device = 0; device < kDevicesMax; ++device)
    at(limits.memory, device) = {static_cast<long long>(record.quota[device])};
  return limits;
}

std::uint32_t tenant_flags(const TenantLimits& limits) {
  return (limits.is_high_priority ? kHighPriority : 0) |
         (limits.is_open_on_fault ? kOpenOnFault : 0) |
         (limits.is_overcommitted ? kOvercommit : 0) | limits.lease_s << kLeaseBit;
}

Status check_limits(const StateFile& state, const MemoryCapacity& capacity,
                    const TenantLimits& limits, std::optional<int> self) {
  REGATTA_TRY_DO(check_name(limits.name));
  REGATTA_TRY_DO(check_overcommit(state, capacity, limits, self));
  REGATTA_TRY_DO(check_memory(state, capacity, limits, self));
  return check_compute(state, limits, self);
}

}  // namespace regatta::sharing
