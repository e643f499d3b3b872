// The GPUs of a pool of servers.
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/gpu_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

std::string known_bytes_text(const std::optional<Bytes>& size) {
  return size ? format_bytes(*size) : "unknown";
}

nlohmann::json known_bytes_json(const std::optional<Bytes>& size) {
  return size ? nlohmann::json(size->value) : nlohmann::json();
}

}  // namespace

std::string gpu_pool_table(const std::vector<remote::ServerView>& servers) {
  std::vector<std::vector<std::string>> rows = {
      {"server", "gpu", "memory", "free", "free %", "tenants", "rdma"}};
  for (const remote::ServerView& view : servers) {
    if (!view.devices) continue;
    for (const remote::PoolDevice& device : *view.devices)
      rows.push_back({device.server, std::to_string(device.gpu), known_bytes_text(device.memory),
                      known_bytes_text(device.memory_free),
                      fmt::format("{:.4g}", device.compute_free_ppm / 1e4),
                      std::to_string(device.tenants), device.has_rdma ? "yes" : "no"});
  }
  return format_table(rows);
}

nlohmann::json gpu_pool_json(const std::vector<remote::ServerView>& servers) {
  nlohmann::json gpus = nlohmann::json::array();
  nlohmann::json unreachable = nlohmann::json::array();
  for (const remote::ServerView& view : servers) {
    if (!view.devices) {
      unreachable.push_back({{"server", view.server}, {"why", view.devices.error().message}});
      continue;
    }
    for (const remote::PoolDevice& device : *view.devices)
      gpus.push_back({{"server", device.server},
                      {"gpu", device.gpu},
                      {"memory_bytes", known_bytes_json(device.memory)},
                      {"memory_free_bytes", known_bytes_json(device.memory_free)},
                      {"compute_free_percent", device.compute_free_ppm / 1e4},
                      {"tenants", device.tenants},
                      {"rdma", device.has_rdma}});
  }
  return {{"gpus", gpus}, {"unreachable", unreachable}};
}

}  // namespace regatta::report
