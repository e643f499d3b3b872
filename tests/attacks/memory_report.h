// tests/attacks/memory_report.h: what the daemon says that tenants have, and what the device has
// for their processes by its own count, side by side.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <sys/types.h>

#include "tests/hook/tenant.h"

namespace regatta::attacks {

struct TenantMemory {
  std::uint64_t limit = 0;
  std::uint64_t used = 0;
  std::uint64_t spare = 0;
  std::optional<std::uint64_t> resident;   // with over-commit
  std::optional<std::uint64_t> uncounted;  // where the daemon asks NVML
  std::set<pid_t> processes;
  std::uint64_t device = 0;  // that the device has for them

  std::uint64_t here() const { return resident.value_or(used); }  // on the device, as counted
};
std::string to_string(const TenantMemory& report);

struct MemoryReport {
  std::map<std::string, TenantMemory> tenants;
  std::uint64_t device = 0;   // of all processes
  std::uint64_t outside = 0;  // of those that the daemon does not name
};

// None while no daemon answers. `is_moving`: programs work meanwhile, so only processes count that
// the daemon names before and after the device was asked.
std::optional<MemoryReport> read_report(const sharing::TestDaemon& daemon,
                                        const hook_test::DeviceProcess& device,
                                        bool is_moving = false);

// "": all is as it should be at rest. `may_exceed`: bytes of others that processes of the tenant
// have open, which its quota does not hold.
std::string compare_at_rest(const MemoryReport& report,
                            const std::map<std::string, std::uint64_t>& may_exceed);

}  // namespace regatta::attacks
