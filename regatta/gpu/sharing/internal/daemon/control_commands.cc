// The part of control.h that is about cgroups and drained devices.

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/text.h"
#include "regatta/gpu/sharing/control.h"

namespace regatta::sharing {
namespace {

using nlohmann::json;

// A tenant of a cgroup: a new one with the limits of the request, or one that is there.
Result<ControlReply> enroll(TenantStore& tenant_store, TenantCgroups& tenant_cgroups,
                            const json& request, ProcessId asker) {
  REGATTA_TRY(cgroup, os::parse_cgroup_path(request.value("cgroup", "")));
  const std::string container = request.value("container", "");
  REGATTA_TRY(tenant, tenant_of_request(tenant_store, request));
  const std::string name = tenant_store.tenants().name(tenant.number);
  const Status status = tenant_cgroups.enroll(cgroup, name, container, asker.pid);
  // A daemon that is killed between the two leaves a tenant that nothing holds: the next ends it.
  if (!status && tenant.is_new) tenant_store.remove_tenant(tenant.number);
  if (!status) return status.error();
  return ControlReply{json{{"tenant", name}}.dump()};
}

// By the tenant's name, by the container's, or by both.
Result<ControlReply> leave(const TenantStore& tenant_store, TenantCgroups& tenant_cgroups,
                           const json& request) {
  const std::string name = request.value("name", "");
  const std::string container = request.value("container", "");
  if (name.empty() && container.empty())
    return bad_request("has neither a 'name' nor a 'container'");
  if (!name.empty()) REGATTA_TRY_DO(find_tenant_by_name(tenant_store, name));
  REGATTA_TRY(count, tenant_cgroups.leave([&](const TenantCgroup& group) {
    return (name.empty() || group.tenant == name) &&
           (container.empty() || group.container == container);
  }));
  if (count == 0 && container.empty()) {
    return Error{Code::kInvalidInput,
                 fmt::format("tenant {}: has no cgroup; it ends with its last process", name)};
  }
  return ControlReply{json{{"left", count}}.dump()};
}

// Names of the tenants that may have, or have, memory of the device.
json tenants_on(const TenantStore& tenant_store, int device) {
  json names = json::array();
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (!tenant_store.tenants().is_live(tenant)) continue;
    if (tenant_store.state().tenants[tenant].quota[device] != 0 ||
        tenant_store.leases().tenant_holding(tenant, device).leased != 0)
      names.push_back(tenant_store.tenants().name(tenant));
  }
  return names;
}

json drained_json(const TenantStore& tenant_store) {
  json gpus = json::array();
  for (int device = 0; device < tenant_store.device_count(); ++device) {
    gpus.push_back({{"gpu", device},
                    {"drained", tenant_store.drained().contains(device)},
                    {"tenants", tenants_on(tenant_store, device)}});
  }
  return {{"gpus", gpus}};
}

// The devices that the request lists, as bits; all when it lists none.
Result<std::uint32_t> devices_of(const TenantStore& tenant_store, const json& request) {
  const auto gpus = request.find("gpus");
  if (gpus == request.end()) return (1U << tenant_store.device_count()) - 1;
  if (!gpus->is_array()) return bad_request("has 'gpus' that are no list");
  std::uint32_t devices = 0;
  for (const json& gpu : *gpus) {
    if (!gpu.is_number_unsigned() || gpu >= tenant_store.device_count()) {
      return Error{Code::kInvalidInput,
                   fmt::format("GPU {}: there is none of this number; the daemon has GPU 0 to {}",
                               printable(gpu.dump(), 20), tenant_store.device_count() - 1)};
    }
    devices |= 1U << gpu.get<unsigned>();
  }
  return devices;
}

Result<ControlReply> drain(TenantStore& tenant_store, const json& request) {
  if (const auto wanted = request.find("drained"); wanted != request.end()) {
    if (!wanted->is_boolean()) return bad_request("has a 'drained' that is neither true nor false");
    REGATTA_TRY(devices, devices_of(tenant_store, request));
    REGATTA_TRY_DO(tenant_store.set_drained(wanted->get<bool>()
                                                ? tenant_store.drained().bits() | devices
                                                : tenant_store.drained().bits() & ~devices));
  }
  return ControlReply{drained_json(tenant_store).dump()};
}

}  // namespace

Result<ControlReply> answer_control_command(TenantStore& tenant_store,
                                            TenantCgroups& tenant_cgroups,
                                            const nlohmann::json& request, ProcessId asker) {
  const std::string what = request.value("ask", "");
  if (what == "enroll") return enroll(tenant_store, tenant_cgroups, request, asker);
  if (what == "leave") return leave(tenant_store, tenant_cgroups, request);
  if (what == "drain") return drain(tenant_store, request);
  return bad_request("asks for nothing that the daemon knows");
}

}  // namespace regatta::sharing
