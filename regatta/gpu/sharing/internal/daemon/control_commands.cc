#include "regatta/gpu/sharing/internal/daemon/control_commands.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/text.h"
#include "regatta/gpu/sharing/internal/daemon/requested_tenant.h"

namespace regatta::sharing {
namespace {

using nlohmann::json;

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
Result<std::uint32_t> devices_of(const TenantStore& tenant_store, const JsonReader& request) {
  if (!request.has("gpus")) return (1U << tenant_store.device_count()) - 1;
  std::uint32_t devices = 0;
  for (const JsonReader& item : request.at("gpus").items()) {
    const json& gpu = item.raw();
    if (!gpu.is_number_unsigned() || gpu >= tenant_store.device_count()) {
      return Error{Code::kInvalidInput,
                   fmt::format("GPU {}: there is none of this number; the daemon has GPU 0 to {}",
                               printable(gpu.dump(), 20), tenant_store.device_count() - 1)};
    }
    devices |= 1U << gpu.get<unsigned>();
  }
  return request.finish(devices);
}

}  // namespace

Result<ControlReply> enroll_cgroup(TenantStore& tenant_store, TenantCgroups& tenant_cgroups,
                                   const JsonReader& request, ProcessId sender) {
  std::string path;
  std::string container;
  request.read_if("cgroup", path);
  request.read_if("container", container);
  REGATTA_TRY_DO(request.status());
  REGATTA_TRY(cgroup, os::parse_cgroup_path(path));
  REGATTA_TRY(tenant, tenant_of_request(tenant_store, request));
  const std::string name = tenant_store.tenants().name(tenant.number);
  const Status status = tenant_cgroups.enroll(cgroup, name, container, sender.pid);
  // A daemon that is killed between the two leaves a tenant without processes, which the next one
  // ends.
  if (!status && tenant.is_new) tenant_store.remove_tenant(tenant.number);
  if (!status) return status.error();
  return ControlReply{json{{"tenant", name}}.dump()};
}

Result<ControlReply> remove_cgroups(const TenantStore& tenant_store, TenantCgroups& tenant_cgroups,
                                    const JsonReader& request) {
  std::string name;
  std::string container;
  request.read_if("name", name);
  request.read_if("container", container);
  if (name.empty() && container.empty()) request.fail("has neither a 'name' nor a 'container'");
  REGATTA_TRY_DO(request.status());
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

Result<ControlReply> drain(TenantStore& tenant_store, const JsonReader& request) {
  if (request.has("drained")) {
    const bool is_drained = request.at("drained").as<bool>();
    REGATTA_TRY_DO(request.status());
    REGATTA_TRY(devices, devices_of(tenant_store, request));
    const std::uint32_t before = tenant_store.drained().bits();
    REGATTA_TRY_DO(tenant_store.set_drained(is_drained ? before | devices : before & ~devices));
  }
  return ControlReply{drained_json(tenant_store).dump()};
}

}  // namespace regatta::sharing
