#include "regatta/gpu/sharing/internal/daemon/operators.h"

#include <fmt/core.h>
#include <unistd.h>

namespace regatta::sharing {

Status check_operator(const TenantStore& tenant_store, const TenantCgroups& tenant_cgroups,
                      pid_t process, unsigned user) {
  const auto refuse = [&](const std::string& reason) {
    return Error{Code::kUnsupported,
                 fmt::format("process {}: {}; ask the operator of this machine", process, reason)};
  };
  if (user != 0 && user != ::geteuid())
    return refuse("only root and the user of the daemon may ask this");
  if (!is_in_own_pid_namespace(process)) return refuse("is in a container");
  for (pid_t pid = process; pid > 1;) {
    const auto stat = read_process(pid);
    if (!stat) return stat.error();
    if (const auto client = tenant_store.clients().find(stat->id)) {
      const int tenant = tenant_store.clients().tenant_of(*client);
      return refuse("belongs to tenant " + tenant_store.tenants().name(tenant));
    }
    if (const auto tenant = tenant_cgroups.tenant_of(*stat))
      return refuse("belongs to tenant " + *tenant);
    pid = stat->parent;
  }
  return {};
}

}  // namespace regatta::sharing
