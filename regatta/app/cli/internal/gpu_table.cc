#include "regatta/app/cli/internal/gpu_table.h"

#include <vector>

#include <fmt/core.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::cli {
namespace {

using nlohmann::json;

std::string gpu_bytes_text(const json& bytes) {
  return format_bytes(Bytes{bytes.get<long long>()});
}

std::string percent_text(const json& percent) {
  return fmt::format("{:.4g}", percent.get<double>());
}

// What the tenant had of the GPU's time in the last second.
std::string had_text(const json& time, const json& gpu) {
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

// What of the tenant's memory is not on the GPU; "-" for one without over-commit.
std::string away_text(const json& memory) {
  return memory.contains("swapped_bytes") ? gpu_bytes_text(memory["swapped_bytes"]) : "-";
}

// Its processes, or where it has none the cgroups that hold it.
std::string holders_text(const json& tenant) {
  if (!tenant["processes"].empty() || tenant["cgroups"].empty())
    return processes_text(tenant["processes"]);
  const std::string first = tenant["cgroups"][0]["cgroup"];
  const std::size_t more = tenant["cgroups"].size() - 1;
  return "none in " + first + (more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

std::string gpu_table(const json& books) {
  std::string head = "policy " + books["policy"].get<std::string>() + "\n";
  for (std::size_t gpu = 0; gpu < books["gpus"].size(); ++gpu) {
    if (books["gpus"][gpu]["drained"].get<bool>())
      head += fmt::format("GPU {}: drained, takes nothing new\n", gpu);
  }
  if (books["tenants"].empty()) return head + "no tenant; start one with regatta gpu run\n";
  std::vector<std::vector<std::string>> rows = {{"tenant", "gpu", "used", "away", "limit",
                                                 "compute %", "part %", "had %", "priority",
                                                 "processes"}};
  for (const json& tenant : books["tenants"]) {
    for (const json& memory : tenant["memory"]) {
      rows.push_back({tenant["name"], std::to_string(memory["gpu"].get<int>()),
                      gpu_bytes_text(memory["used_bytes"]), away_text(memory),
                      gpu_bytes_text(memory["limit_bytes"]),
                      percent_text(tenant["compute_percent"]), percent_text(tenant["part_percent"]),
                      had_text(tenant["time"], memory["gpu"]), tenant["priority"],
                      holders_text(tenant)});
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
                            percent_text(tenant["compute_percent"]), tenant["weight"].get<int>(),
                            tenant["priority"].get<std::string>());
}

}  // namespace regatta::cli
