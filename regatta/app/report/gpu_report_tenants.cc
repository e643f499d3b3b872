// Tenants of the GPU daemon.
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/gpu_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

using nlohmann::json;

std::string gpu_bytes_text(const json& bytes) {
  return format_bytes(Bytes{bytes.get<long long>()});
}

std::string percent_number(const json& percent) {
  return fmt::format("{:.4g}", percent.get<double>());
}

// The tenant's use of the GPU's time in the last second.
std::string use_text(const json& time, const json& gpu) {
  for (const json& one : time) {
    if (one["gpu"] == gpu) return fmt::format("{:.1f}", one["last_second_percent"].get<double>());
  }
  return "0";
}

std::string processes_text(const json& processes) {
  constexpr std::size_t kShown = 4;
  std::vector<std::string> words;
  for (const json& one : processes) {
    if (words.size() == kShown) break;
    words.push_back(fmt::format("{} {}", one["pid"].get<int>(), one["name"].get<std::string>()));
  }
  const std::size_t more = processes.size() - words.size();
  return join(words, ", ") + (more == 0 ? "" : fmt::format(" and {} more", more));
}

// The tenant's memory that is swapped out to the host; "-" without over-commit.
std::string swapped_text(const json& memory) {
  return memory.contains("swapped_bytes") ? gpu_bytes_text(memory["swapped_bytes"]) : "-";
}

// The tenant's processes, or its cgroups where it has no process.
std::string holders_text(const json& tenant) {
  if (!tenant["processes"].empty() || tenant["cgroups"].empty())
    return processes_text(tenant["processes"]);
  const std::string first = tenant["cgroups"][0]["cgroup"];
  const std::size_t more = tenant["cgroups"].size() - 1;
  return "none in " + first + (more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

std::string gpu_tenants_table(const json& answer) {
  std::string head = "policy " + answer["policy"].get<std::string>() + "\n";
  for (std::size_t gpu = 0; gpu < answer["gpus"].size(); ++gpu) {
    if (answer["gpus"][gpu]["drained"].get<bool>())
      head += fmt::format("GPU {}: drained, accepts no new tenant\n", gpu);
  }
  if (answer["tenants"].empty()) return head + "no tenant; start one with regatta gpu run\n";
  std::vector<std::vector<std::string>> rows = {{"tenant", "gpu", "used", "swapped out", "limit",
                                                 "compute %", "share %", "used %", "priority",
                                                 "processes"}};
  for (const json& tenant : answer["tenants"]) {
    for (const json& memory : tenant["memory"]) {
      rows.push_back(
          {tenant["name"], std::to_string(memory["gpu"].get<int>()),
           gpu_bytes_text(memory["used_bytes"]), swapped_text(memory),
           gpu_bytes_text(memory["limit_bytes"]), percent_number(tenant["compute_percent"]),
           percent_number(tenant["share_percent"]), use_text(tenant["time"], memory["gpu"]),
           tenant["priority"], holders_text(tenant)});
    }
  }
  return head + format_table(rows);
}

std::string gpu_tenant_text(const json& tenant) {
  std::string text = "tenant " + tenant["name"].get<std::string>() + ":";
  for (const json& memory : tenant["memory"]) {
    text += fmt::format(" {} on GPU {} ({} in use),", gpu_bytes_text(memory["limit_bytes"]),
                        memory["gpu"].get<int>(), gpu_bytes_text(memory["used_bytes"]));
  }
  return text + fmt::format(" {} % of the time, weight {}, priority {}\n",
                            percent_number(tenant["compute_percent"]), tenant["weight"].get<int>(),
                            tenant["priority"].get<std::string>());
}

std::string gpu_drain_text(const json& gpu) {
  const int number = gpu["gpu"];
  if (!gpu["drained"].get<bool>()) return fmt::format("GPU {}: accepts tenants\n", number);
  if (gpu["tenants"].empty()) return fmt::format("GPU {}: drained, no tenant is left\n", number);
  return fmt::format("GPU {}: draining; still running: {}\n", number,
                     join(gpu["tenants"].get<std::vector<std::string>>(), ", "));
}

}  // namespace regatta::report
