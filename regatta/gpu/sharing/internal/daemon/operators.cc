#include "regatta/gpu/sharing/internal/daemon/operators.h"

#include <fmt/core.h>
#include <unistd.h>

#include "regatta/gpu/sharing/internal/daemon/process_tenant.h"

namespace regatta::sharing {
namespace {

bool is_user_of_operators(unsigned user) {
  return user == 0 || user == ::geteuid();
}

}  // namespace

bool may_be_operator(pid_t process, unsigned user) {
  return is_user_of_operators(user) && is_in_own_pid_namespace(process);
}

Status check_operator(const TenantStore& tenant_store, const TenantCgroups& tenant_cgroups,
                      const ClientProcesses& processes, const ProcessStat& process, unsigned user) {
  const auto refuse = [&](const std::string& reason) {
    return Error{Code::kUnsupported, fmt::format("process {}: {}; ask the operator of this machine",
                                                 process.id.pid, reason)};
  };
  if (!is_user_of_operators(user))
    return refuse("only root and the user of the daemon may ask this");
  if (!is_in_own_pid_namespace(process.id.pid)) return refuse("is in a container");
  REGATTA_TRY(tenant, find_process_tenant(tenant_store, tenant_cgroups, processes, process));
  if (tenant) return refuse("belongs to tenant " + tenant_store.tenants().name(*tenant));
  return {};
}

}  // namespace regatta::sharing
