#include "regatta/gpu/sharing/internal/daemon/process_tenant.h"

#include <string>

namespace regatta::sharing {
namespace {

constexpr int kAncestorsMost = 256;

std::optional<int> find_own_tenant(const TenantStore& tenant_store,
                                   const TenantCgroups& tenant_cgroups,
                                   const ProcessStat& process) {
  if (const auto client = tenant_store.clients().find(process.id))
    return tenant_store.clients().tenant_of(*client);
  const auto name = tenant_cgroups.tenant_of(process);
  return name ? tenant_store.tenants().find(*name) : std::nullopt;
}

}  // namespace

Result<std::optional<int>> find_process_tenant(const TenantStore& tenant_store,
                                               const TenantCgroups& tenant_cgroups,
                                               const ClientProcesses& processes,
                                               ProcessStat process) {
  const pid_t asked = process.id.pid;
  for (int i = 0; i < kAncestorsMost; ++i) {
    if (const auto tenant = find_own_tenant(tenant_store, tenant_cgroups, process)) return tenant;
    if (process.parent <= 1) return std::optional<int>();
    // A client that lives has its number, so the parent is that client, and need not be read.
    const auto client = tenant_store.clients().find(process.parent);
    if (client && processes.is_watched(*client) && !processes.has_ended(*client))
      return std::optional<int>(tenant_store.clients().tenant_of(*client));
    REGATTA_TRY(parent, read_process(process.parent));
    process = parent;
  }
  return Error{Code::kUnsupported,
               "process " + std::to_string(asked) + ": has too many ancestors to look at them all"};
}

}  // namespace regatta::sharing
