#include "regatta/gpu/sharing/internal/daemon/metrics.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "regatta/base/os/clock.h"
#include "regatta/gpu/sharing/control.h"
#include "regatta/gpu/sharing/internal/daemon/residency_manager.h"

namespace regatta::sharing {
namespace {

using nlohmann::json;

std::vector<int> live_tenants(const TenantStore& tenant_store) {
  std::vector<int> tenants;
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (tenant_store.tenants().is_live(tenant)) tenants.push_back(tenant);
  }
  return tenants;
}

// Adds the tenant's memory on the device, unswappable memory included, and in the host.
void add_places(json& memory, const TenantStore& tenant_store, int tenant, int device) {
  const auto held = tenant_store.leases().tenant_holding(tenant, device);
  const auto place = ResidencyManager::usage_of(tenant_store, tenant, device);
  memory["resident_bytes"] = held.leased - held.spare - place.leased_swapped_out + place.resident;
  memory["swapped_bytes"] = place.swapped_out;
  memory["moved_in_bytes"] = place.moved_in;
  memory["moved_out_bytes"] = place.moved_out;
}

// A client's memory on a device: by the books, and by NVML where that is asked.
struct ClientUse {
  std::uint64_t used = 0;
  std::optional<std::uint64_t> on_device;
  std::uint64_t uncounted = 0;  // on the device beyond what the books say is there
};

ClientUse use_of(const DaemonParts& parts, int client, int device) {
  const TenantStore& tenant_store = parts.tenant_store;
  const auto held = tenant_store.leases().holding(client, device);
  const std::uint64_t swappable = tenant_store.swappable().bytes(client, device);
  ClientUse use{.used = held.leased - held.spare + swappable};
  const auto& processes = parts.device_memory.processes(device);
  if (!processes) return use;
  const auto found = processes->find(tenant_store.state().clients[client].pid);
  use.on_device = found == processes->end() ? 0 : found->second;
  if (!use.on_device) return use;
  const std::uint64_t there = ResidencyManager::counted_there(tenant_store, client, device);
  use.uncounted = *use.on_device - std::min(*use.on_device, there);
  return use;
}

std::uint64_t uncounted_bytes(const DaemonParts& parts, int tenant, int device) {
  std::uint64_t sum = 0;
  for (const int client : parts.tenant_store.clients().of_tenant(tenant))
    sum += use_of(parts, client, device).uncounted;
  return sum;
}

json process_json(const DaemonParts& parts, int client) {
  const TenantStore& tenant_store = parts.tenant_store;
  json memory = json::array();
  for (int device = 0; device < tenant_store.device_count(); ++device) {
    const ClientUse use = use_of(parts, client, device);
    if (tenant_store.leases().holding(client, device).leased == 0 && use.used == 0 &&
        use.uncounted == 0)
      continue;
    memory.push_back({{"gpu", device}, {"used_bytes", use.used}});
    if (use.on_device) {
      memory.back()["device_bytes"] = *use.on_device;
      memory.back()["uncounted_bytes"] = use.uncounted;
    }
  }
  const pid_t pid = tenant_store.state().clients[client].pid;
  return {{"pid", pid}, {"name", process_name(pid)}, {"memory", memory}};
}

// Bytes that NVML reports of processes of no tenant; null where it is not asked.
json outside_bytes(const DaemonParts& parts, int device) {
  const auto& processes = parts.device_memory.processes(device);
  if (!processes) return {};
  std::uint64_t sum = 0;
  for (const auto& [pid, bytes] : *processes)
    sum += bytes.value_or(0);
  for (int client = 0; client < kClientsMax; ++client) {
    const ClientRecord& record = parts.tenant_store.state().clients[client];
    const auto found = processes->find(record.pid);
    if (record.live != 0 && found != processes->end())
      sum -= std::min(sum, found->second.value_or(0));
  }
  return sum;
}

// Names in `ps` and in the metrics.
struct EngineName {
  regatta_engine engine;
  const char* name;
};
constexpr EngineName kEngineNames[] = {{REGATTA_COPY_TO_DEVICE, "copy_to_device"},
                                       {REGATTA_COPY_FROM_DEVICE, "copy_from_device"},
                                       {REGATTA_ENCODE, "encode"},
                                       {REGATTA_DECODE, "decode"}};

json engines_json(const DaemonParts& parts, int tenant) {
  json engines = json::array();
  for (int device = 0; device < parts.tenant_store.device_count(); ++device) {
    for (const auto& [engine, name] : kEngineNames) {
      const std::uint64_t total = parts.engines.total(tenant, device, engine);
      if (total == 0) continue;
      engines.push_back(
          {{"gpu", device},
           {"engine", name},
           {"last_second", parts.engines.last_second(tenant, device, engine, os::monotonic_ns())},
           {"total", total}});
    }
  }
  return engines;
}

struct Metric {
  const char* name;
  const char* help;
  const char* type = "gauge";
};

// One metric with a value of each tenant on each GPU.
template <typename T>
void add_of_gpu(std::string& text, const TenantStore& tenant_store, const Metric& metric,
                const std::function<T(int, int)>& value) {
  text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", metric.name, metric.help, metric.type);
  for (const int tenant : live_tenants(tenant_store)) {
    for (int device = 0; device < tenant_store.device_count(); ++device) {
      text += fmt::format("{}{{tenant=\"{}\",gpu=\"{}\"}} {}\n", metric.name,
                          tenant_store.tenants().name(tenant), device, value(tenant, device));
    }
  }
}

void add_of_tenant(std::string& text, const TenantStore& tenant_store, const char* name,
                   const char* help, const std::function<double(int)>& value) {
  text += fmt::format("# HELP {} {}\n# TYPE {} gauge\n", name, help, name);
  for (const int tenant : live_tenants(tenant_store))
    text += fmt::format("{}{{tenant=\"{}\"}} {}\n", name, tenant_store.tenants().name(tenant),
                        value(tenant));
}

void add_engines(std::string& text, const DaemonParts& parts) {
  text +=
      "# HELP regatta_gpu_engine_units_total Work that the tenant gave to an engine: bytes of "
      "copies, pixels of pictures.\n"
      "# TYPE regatta_gpu_engine_units_total counter\n";
  for (const int tenant : live_tenants(parts.tenant_store)) {
    for (int device = 0; device < parts.tenant_store.device_count(); ++device) {
      for (const auto& [engine, name] : kEngineNames) {
        text += fmt::format(
            "regatta_gpu_engine_units_total{{tenant=\"{}\",gpu=\"{}\",engine=\"{}\"}} {}\n",
            parts.tenant_store.tenants().name(tenant), device, name,
            parts.engines.total(tenant, device, engine));
      }
    }
  }
}

}  // namespace

json tenant_json(const DaemonParts& parts, int tenant) {
  const TenantStore& tenant_store = parts.tenant_store;
  const TurnManager& turn_manager = parts.turn_manager;
  const TenantLimits limits = tenant_store.tenants().limits(tenant);
  json memory = json::array();
  for (int device = 0; device < tenant_store.device_count(); ++device) {
    const auto held = tenant_store.leases().tenant_holding(tenant, device);
    const std::uint64_t uncounted = uncounted_bytes(parts, tenant, device);
    if (limits.memory[device].value == 0 && held.leased == 0 && uncounted == 0) continue;
    const std::uint64_t swappable = tenant_store.swappable().tenant_bytes(tenant, device);
    memory.push_back({{"gpu", device},
                      {"limit_bytes", limits.memory[device].value},
                      {"used_bytes", held.leased - held.spare + swappable},
                      {"spare_bytes", held.spare}});
    if (parts.device_memory.processes(device)) memory.back()["uncounted_bytes"] = uncounted;
    if (limits.is_overcommitted) add_places(memory.back(), tenant_store, tenant, device);
  }
  json time = json::array();
  for (int device = 0; device < tenant_store.device_count(); ++device) {
    const double seconds = turn_manager.seconds(tenant, device);
    if (seconds == 0) continue;
    time.push_back({{"gpu", device},
                    {"last_second_percent", 100 * turn_manager.last_second(tenant, device)},
                    {"seconds", seconds}});
  }
  json processes = json::array();
  for (const int client : tenant_store.clients().of_tenant(tenant))
    processes.push_back(process_json(parts, client));
  return {{"name", limits.name},
          {"compute_percent", limits.compute_ppm / 1e4},
          {"share_percent", tenant_store.tenants().share_ppm(tenant) / 1e4},
          // Old name, until the next minor version.
          {"part_percent", tenant_store.tenants().share_ppm(tenant) / 1e4},
          {"weight", limits.weight},
          {"priority", limits.is_high_priority ? "high" : "normal"},
          {"on_fault", limits.is_open_on_fault ? "open" : "closed"},
          {"overcommit", limits.is_overcommitted},
          {"lease_s", limits.lease_s},
          {"memory", memory},
          {"time", time},
          {"engines", engines_json(parts, tenant)},
          {"processes", processes}};
}

json daemon_state_json(const DaemonParts& parts) {
  const TenantStore& tenant_store = parts.tenant_store;
  json gpus = json::array();
  for (int device = 0; device < tenant_store.device_count(); ++device) {
    const Bytes capacity = at(tenant_store.capacity().devices, device);
    gpus.push_back({{"memory_bytes", capacity.value == 0 ? json() : json(capacity.value)},
                    {"outside_bytes", outside_bytes(parts, device)},
                    {"drained", tenant_store.drained().contains(device)}});
  }
  json tenants = json::array();
  for (const int tenant : live_tenants(tenant_store)) {
    tenants.push_back(tenant_json(parts, tenant));
    json groups = json::array();
    for (const TenantCgroup& group : parts.tenant_cgroups.groups()) {
      if (group.tenant == tenant_store.tenants().name(tenant))
        groups.push_back({{"cgroup", os::to_string(group.cgroup)}, {"container", group.container}});
    }
    tenants.back()["cgroups"] = groups;
  }
  return {
      {"policy", kPolicyNames[tenant_store.state().policy]}, {"gpus", gpus}, {"tenants", tenants}};
}

std::string metrics_text(const DaemonParts& parts) {
  const TenantStore& tenant_store = parts.tenant_store;
  std::string text;
  using Whole = std::uint64_t;
  add_of_gpu<Whole>(
      text, tenant_store, {"regatta_gpu_memory_limit_bytes", "Quota of device memory."},
      [&](int tenant, int device) {
        return static_cast<Whole>(tenant_store.tenants().limits(tenant).memory[device].value);
      });
  add_of_gpu<Whole>(
      text, tenant_store, {"regatta_gpu_memory_used_bytes", "Device memory in use by the tenant."},
      [&](int tenant, int device) {
        const auto held = tenant_store.leases().tenant_holding(tenant, device);
        return held.leased - held.spare + tenant_store.swappable().tenant_bytes(tenant, device);
      });
  add_of_gpu<Whole>(
      text, tenant_store,
      {"regatta_gpu_memory_swapped_bytes", "Memory of the tenant that is swapped out."},
      [&](int tenant, int device) {
        return ResidencyManager::usage_of(tenant_store, tenant, device).swapped_out;
      });
  add_of_gpu<Whole>(text, tenant_store,
                    {"regatta_gpu_swap_in_bytes_total", "Copied to the device.", "counter"},
                    [&](int tenant, int device) {
                      return ResidencyManager::usage_of(tenant_store, tenant, device).moved_in;
                    });
  add_of_gpu<Whole>(text, tenant_store,
                    {"regatta_gpu_swap_out_bytes_total", "Copied to the host.", "counter"},
                    [&](int tenant, int device) {
                      return ResidencyManager::usage_of(tenant_store, tenant, device).moved_out;
                    });
  add_of_gpu<Whole>(
      text, tenant_store,
      {"regatta_gpu_memory_spare_bytes", "Leased and not in use; called back when needed."},
      [&](int tenant, int device) {
        return tenant_store.leases().tenant_holding(tenant, device).spare;
      });
  add_of_gpu<Whole>(text, tenant_store,
                    {"regatta_gpu_memory_uncounted_bytes",
                     "What NVML reports of the tenant's processes beyond what is counted; 0 "
                     "without NVML."},
                    [&](int tenant, int device) { return uncounted_bytes(parts, tenant, device); });
  add_of_gpu<double>(
      text, tenant_store,
      {"regatta_gpu_time_seconds_total", "Device time of the tenant.", "counter"},
      [&](int tenant, int device) { return parts.turn_manager.seconds(tenant, device); });
  add_engines(text, parts);
  text +=
      "# HELP regatta_gpu_drained 1 when the device is drained.\n"
      "# TYPE regatta_gpu_drained gauge\n";
  for (int device = 0; device < tenant_store.device_count(); ++device) {
    text += fmt::format("regatta_gpu_drained{{gpu=\"{}\"}} {}\n", device,
                        tenant_store.drained().contains(device) ? 1 : 0);
  }
  add_of_tenant(text, tenant_store, "regatta_gpu_compute_quota_ratio",
                "Share of the device's time that the tenant is promised.", [&](int tenant) {
                  return tenant_store.tenants().limits(tenant).compute_ppm / 1e6;
                });
  // The second is the old name, until the next minor version.
  for (const char* const name :
       {"regatta_gpu_compute_share_ratio", "regatta_gpu_compute_part_ratio"}) {
    add_of_tenant(text, tenant_store, name, "Share of the device's time under the current policy.",
                  [&](int tenant) { return tenant_store.tenants().share_ppm(tenant) / 1e6; });
  }
  add_of_tenant(text, tenant_store, "regatta_gpu_processes", "Processes of the tenant.",
                [&](int tenant) {
                  return static_cast<double>(tenant_store.clients().of_tenant(tenant).size());
                });
  return text;
}

}  // namespace regatta::sharing
