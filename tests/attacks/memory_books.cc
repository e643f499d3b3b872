#include "tests/attacks/memory_books.h"

#include <algorithm>

namespace regatta::attacks {
namespace {

TenantBooks read_tenant(const nlohmann::json& tenant) {
  TenantBooks books;
  for (const auto& process : tenant["processes"])
    books.processes.insert(process["pid"].get<pid_t>());
  if (tenant["memory"].empty()) return books;
  const auto& memory = tenant["memory"][0];
  const auto number = [&](const char* name) { return memory[name].get<std::uint64_t>(); };
  books.limit = number("limit_bytes");
  books.used = number("used_bytes");
  books.spare = number("spare_bytes");
  if (memory.contains("resident_bytes")) books.resident = number("resident_bytes");
  if (memory.contains("uncounted_bytes")) books.uncounted = number("uncounted_bytes");
  return books;
}

std::optional<MemoryBooks> read_daemon(const sharing::TestDaemon& daemon) {
  const auto listing = daemon.query({{"request", "ps"}});
  if (!listing) return std::nullopt;
  MemoryBooks books;
  for (const auto& tenant : (*listing)["tenants"])
    books.tenants[tenant["name"].get<std::string>()] = read_tenant(tenant);
  return books;
}

std::string in_kib(std::uint64_t bytes) {
  return std::to_string(bytes / 1024) + " KiB";
}

std::string compare_tenant(const TenantBooks& books, std::uint64_t may_exceed) {
  const std::string figures = "device " + in_kib(books.device) + ", books " + in_kib(books.here()) +
                              ", used " + in_kib(books.used) + " of " + in_kib(books.limit) +
                              ", spare " + in_kib(books.spare);
  // Memory of others is the tenant's now, and the quota has no room for it; with over-commit it is
  // counted when its process waits the next time.
  const bool is_uncounted = books.resident.has_value() || books.used >= books.limit;
  const bool is_excess = books.device > books.here() && is_uncounted &&
                         books.device <= std::max(books.limit, books.here()) + may_exceed;
  if (books.device != books.here() && !is_excess) return "books are not the device's: " + figures;
  const std::uint64_t beyond = books.device - std::min(books.device, books.here());
  if (books.uncounted.value_or(beyond) != beyond)
    return "the daemon says that " + in_kib(*books.uncounted) + " are uncounted: " + figures;
  return "";
}

}  // namespace

std::string to_string(const TenantBooks& books) {
  return "device " + in_kib(books.device) + ", books " + in_kib(books.here()) + ", used " +
         in_kib(books.used) + " of " + in_kib(books.limit) + ", spare " + in_kib(books.spare);
}

std::optional<MemoryBooks> read_books(const sharing::TestDaemon& daemon,
                                      const hook_test::DeviceProcess& device, bool is_moving) {
  auto books = read_daemon(daemon);
  const auto bytes = device.bytes_of_processes();
  const auto after = is_moving ? read_daemon(daemon) : books;
  if (!books || !after) return std::nullopt;
  for (const auto& [pid, held] : bytes) {
    books->device += held;
    bool is_known = false;
    for (auto& [name, tenant] : books->tenants) {
      const auto later = after->tenants.find(name);
      if (!tenant.processes.contains(pid) || later == after->tenants.end() ||
          !later->second.processes.contains(pid))
        continue;
      tenant.device += held;
      is_known = true;
    }
    if (!is_known) books->outside += held;
  }
  return books;
}

std::string compare_at_rest(const MemoryBooks& books,
                            const std::map<std::string, std::uint64_t>& may_exceed) {
  std::string wrong;
  for (const auto& [name, tenant] : books.tenants) {
    const auto exceed = may_exceed.find(name);
    const std::string one = compare_tenant(tenant, exceed == may_exceed.end() ? 0 : exceed->second);
    if (!one.empty()) wrong += (wrong.empty() ? "" : "; ") + ("tenant " + name + ": " + one);
  }
  if (books.outside != 0)
    wrong += (wrong.empty() ? "" : "; ") + in_kib(books.outside) +
             " of processes that the daemon does not know";
  return wrong;
}

}  // namespace regatta::attacks
