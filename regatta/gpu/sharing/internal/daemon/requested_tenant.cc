#include "regatta/gpu/sharing/internal/daemon/requested_tenant.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/core.h>

#include "regatta/base/core/text.h"

namespace regatta::sharing {
namespace {

// The number of a GPU, as the keys of `memory` have it.
Result<int> parse_gpu(const std::string& text) {
  int number = -1;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && rest == end && number >= 0 && number < kDevicesMax) return number;
  return Error{Code::kInvalidInput,
               fmt::format("GPU {}: there is none of this number", printable(text, 20))};
}

std::string or_none(std::uint64_t number, const std::string& text) {
  return number == 0 ? "none" : text;
}

// A process that joins a tenant gets the tenant's limits, so a request for other limits is an
// error.
Status check_same(const TenantLimits& has, const TenantLimits& wanted) {
  struct Limit {
    std::string option;  // of the command line
    std::string there;
    bool is_same;
    bool can_change = true;
  };
  const auto percent = [](unsigned ppm) { return fmt::format("{:.6g}", ppm / 1e4); };
  const auto priority = [](bool is_high) { return is_high ? "high" : "normal"; };
  const auto fault = [](bool is_open) { return is_open ? "open" : "closed"; };
  const auto lease = [](unsigned seconds) { return fmt::format("{}s", seconds); };
  const Limit limits[] = {
      {"--compute " + percent(wanted.compute_ppm),
       or_none(has.compute_ppm, percent(has.compute_ppm) + " %"),
       has.compute_ppm == wanted.compute_ppm},
      {fmt::format("--weight {}", wanted.weight), std::to_string(has.weight),
       has.weight == wanted.weight},
      {fmt::format("--priority {}", priority(wanted.is_high_priority)),
       priority(has.is_high_priority), has.is_high_priority == wanted.is_high_priority},
      {fmt::format("--on-fault {}", fault(wanted.is_open_on_fault)), fault(has.is_open_on_fault),
       has.is_open_on_fault == wanted.is_open_on_fault},
      {"--overcommit", has.is_overcommitted ? "it" : "none",
       has.is_overcommitted == wanted.is_overcommitted, false},
      {"--lease " + lease(wanted.lease_s), or_none(has.lease_s, lease(has.lease_s)),
       has.lease_s == wanted.lease_s, false}};
  for (const Limit& limit : limits) {
    if (limit.is_same) continue;
    return Error{Code::kInvalidInput,
                 fmt::format("{}: tenant {} is there and has {}; leave it out to join, or {}",
                             limit.option, has.name, limit.there,
                             limit.can_change ? fmt::format("change it with regatta gpu set {} {}",
                                                            has.name, limit.option)
                                              : "start a tenant of another name with it")};
  }
  return {};
}

}  // namespace

Result<TenantLimits> limits_with_request(TenantLimits limits, const JsonReader& request) {
  if (request.has("memory")) {
    for (const auto& [gpu, bytes] : request.at("memory").members()) {
      REGATTA_TRY(number, parse_gpu(gpu));
      at(limits.memory, number) = bytes.as<Bytes>(IntRange{0, REGATTA_MEMORY_MAX});
    }
  }
  request.read_if("compute_ppm", limits.compute_ppm, IntRange{0, REGATTA_WHOLE_PPM});
  request.read_if("weight", limits.weight, IntRange{0, 10'000});
  if (request.has("priority"))
    limits.is_high_priority = request.at("priority").choice({"normal", "high"}) == 1;
  if (request.has("on_fault"))
    limits.is_open_on_fault = request.at("on_fault").choice({"closed", "open"}) == 1;
  request.read_if("overcommit", limits.is_overcommitted);
  request.read_if("lease_s", limits.lease_s, IntRange{0, kLeaseMost});
  return request.finish(limits);
}

Result<int> find_tenant_by_name(const TenantStore& tenant_store, const std::string& name) {
  if (const auto tenant = tenant_store.tenants().find(name)) return *tenant;
  std::vector<std::string> known;
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (tenant_store.tenants().is_live(tenant))
      known.push_back(tenant_store.tenants().name(tenant));
  }
  return Error{Code::kInvalidInput,
               fmt::format("tenant {}: there is none of this name; there is {}",
                           printable(name, 60), known.empty() ? "none at all" : join(known, ", "))};
}

Result<RequestedTenant> tenant_of_request(TenantStore& tenant_store, const JsonReader& request) {
  std::string name;
  request.read_if("name", name);
  REGATTA_TRY_DO(request.status());
  if (!request.has("memory")) {
    const auto tenant = find_tenant_by_name(tenant_store, name);
    if (!tenant) {
      return Error{tenant.error().code,
                   tenant.error().message + "; give --memory to start one of this name"};
    }
    const TenantLimits has = tenant_store.tenants().limits(*tenant);
    REGATTA_TRY(wanted, limits_with_request(has, request));
    REGATTA_TRY_DO(check_same(has, wanted));
    return RequestedTenant{*tenant, false};
  }
  if (tenant_store.tenants().find(name)) {
    return Error{Code::kInvalidInput,
                 fmt::format("tenant {0}: is there already; leave --memory out to join it, or "
                             "change its limits with regatta gpu set {0}",
                             name)};
  }
  REGATTA_TRY(limits, limits_with_request({.name = name, .compute_ppm = 0}, request));
  const bool has_memory = std::any_of(limits.memory.begin(), limits.memory.end(),
                                      [](Bytes memory) { return memory.value != 0; });
  if (!has_memory) {
    return Error{Code::kInvalidInput,
                 fmt::format("tenant {}: would have no memory of any GPU; give --memory 2MiB or "
                             "more",
                             printable(name, 60))};
  }
  REGATTA_TRY(tenant, tenant_store.add_tenant(limits));
  return RequestedTenant{tenant, true};
}

}  // namespace regatta::sharing
