#include "tests/attacks/memory_report.h"

#include <algorithm>

namespace regatta::attacks {
namespace {

TenantMemory read_tenant(const nlohmann::json& tenant) {
  TenantMemory report;
  for (const auto& process : tenant["processes"])
    report.processes.insert(process["pid"].get<pid_t>());
  if (tenant["memory"].empty()) return report;
  const auto& memory = tenant["memory"][0];
  const auto number = [&](const char* name) { return memory[name].get<std::uint64_t>(); };
  report.limit = number("limit_bytes");
  report.used = number("used_bytes");
  report.spare = number("spare_bytes");
  if (memory.contains("resident_bytes")) report.resident = number("resident_bytes");
  if (memory.contains("uncounted_bytes")) report.uncounted = number("uncounted_bytes");
  return report;
}

std::optional<MemoryReport> read_daemon(const sharing::TestDaemon& daemon) {
  const auto listing = daemon.query({{"request", "ps"}});
  if (!listing) return std::nullopt;
  MemoryReport report;
  for (const auto& tenant : (*listing)["tenants"])
    report.tenants[tenant["name"].get<std::string>()] = read_tenant(tenant);
  return report;
}

std::string in_kib(std::uint64_t bytes) {
  return std::to_string(bytes / 1024) + " KiB";
}

std::string compare_tenant(const TenantMemory& report, std::uint64_t may_exceed) {
  // Memory of others is the tenant's now, and the quota has no room for it; with over-commit it is
  // counted when its process waits the next time.
  const bool is_uncounted = report.resident.has_value() || report.used >= report.limit;
  const bool is_excess = report.device > report.here() && is_uncounted &&
                         report.device <= std::max(report.limit, report.here()) + may_exceed;
  if (report.device != report.here() && !is_excess)
    return "what is counted is not what the device has: " + to_string(report);
  const std::uint64_t beyond = report.device - std::min(report.device, report.here());
  if (report.uncounted.value_or(beyond) != beyond)
    return "the daemon says that " + in_kib(*report.uncounted) +
           " are uncounted: " + to_string(report);
  return "";
}

}  // namespace

std::string to_string(const TenantMemory& report) {
  return "device " + in_kib(report.device) + ", counted " + in_kib(report.here()) + ", used " +
         in_kib(report.used) + " of " + in_kib(report.limit) + ", spare " + in_kib(report.spare);
}

std::optional<MemoryReport> read_report(const sharing::TestDaemon& daemon,
                                        const hook_test::DeviceProcess& device, bool is_moving) {
  auto report = read_daemon(daemon);
  const auto bytes = device.bytes_of_processes();
  const auto after = is_moving ? read_daemon(daemon) : report;
  if (!report || !after) return std::nullopt;
  for (const auto& [pid, held] : bytes) {
    report->device += held;
    bool is_known = false;
    for (auto& [name, tenant] : report->tenants) {
      const auto later = after->tenants.find(name);
      if (!tenant.processes.contains(pid) || later == after->tenants.end() ||
          !later->second.processes.contains(pid))
        continue;
      tenant.device += held;
      is_known = true;
    }
    if (!is_known) report->outside += held;
  }
  return report;
}

std::string compare_at_rest(const MemoryReport& report,
                            const std::map<std::string, std::uint64_t>& may_exceed) {
  std::string wrong;
  for (const auto& [name, tenant] : report.tenants) {
    const auto exceed = may_exceed.find(name);
    const std::string one = compare_tenant(tenant, exceed == may_exceed.end() ? 0 : exceed->second);
    if (!one.empty()) wrong += (wrong.empty() ? "" : "; ") + ("tenant " + name + ": " + one);
  }
  if (report.outside != 0)
    wrong += (wrong.empty() ? "" : "; ") + in_kib(report.outside) +
             " of processes that the daemon does not know";
  return wrong;
}

}  // namespace regatta::attacks
