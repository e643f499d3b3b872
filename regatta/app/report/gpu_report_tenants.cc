// Tenants of the GPU daemon.
#include <string>
#include <vector>

#include <fmt/core.h>

#include "regatta/app/report/gpu_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

std::string bytes_text(const JsonReader& bytes) {
  return format_bytes(bytes.as<Bytes>());
}

std::string percent_text(const JsonReader& percent) {
  return fmt::format("{:.4g}", percent.as<double>());
}

// The tenant's use of the GPU's time in the last second.
std::string use_text(const JsonReader& time, int gpu) {
  for (const JsonReader& one : time.items()) {
    if (one.at("gpu").as<int>() == gpu)
      return fmt::format("{:.1f}", one.at("last_second_percent").as<double>());
  }
  return "0";
}

std::string processes_text(const std::vector<JsonReader>& processes) {
  constexpr std::size_t kShown = 4;
  std::vector<std::string> words;
  for (const JsonReader& one : processes) {
    if (words.size() == kShown) break;
    words.push_back(
        fmt::format("{} {}", one.at("pid").as<int>(), one.at("name").as<std::string>()));
  }
  const std::size_t more = processes.size() - words.size();
  return join(words, ", ") + (more == 0 ? "" : fmt::format(" and {} more", more));
}

// The tenant's memory that is swapped out to the host; "-" without over-commit.
std::string swapped_text(const JsonReader& memory) {
  return memory.has("swapped_bytes") ? bytes_text(memory.at("swapped_bytes")) : "-";
}

// The tenant's processes, or its cgroups where it has no process.
std::string holders_text(const JsonReader& tenant) {
  const auto processes = tenant.at("processes").items();
  const auto cgroups = tenant.at("cgroups").items();
  if (!processes.empty() || cgroups.empty()) return processes_text(processes);
  const std::size_t more = cgroups.size() - 1;
  return "none in " + cgroups.front().at("cgroup").as<std::string>() +
         (more == 0 ? "" : fmt::format(" and {} more", more));
}

// A line for each GPU on which the tenant's processes have more than is counted.
std::string uncounted_text(const JsonReader& tenant) {
  std::string text;
  for (const JsonReader& memory : tenant.at("memory").items()) {
    Bytes uncounted;
    memory.read_if("uncounted_bytes", uncounted);
    if (uncounted.value > 0)
      text += fmt::format(
          "tenant {}: has {} of GPU {} beyond what is counted, by NVML; regatta gpu ps --json says "
          "which process\n",
          tenant.at("name").as<std::string>(), format_bytes(uncounted), memory.at("gpu").as<int>());
  }
  return text;
}

}  // namespace

Result<JsonReader> parse_daemon_answer(const std::string& text) {
  return JsonReader::parse(
      text, "answer of the GPU daemon (after an update, restart regatta gpu daemon)");
}

Result<std::string> gpu_tenants_table(const JsonReader& answer) {
  std::string head = "policy " + answer.at("policy").as<std::string>() + "\n";
  const auto gpus = answer.at("gpus").items();
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    if (gpus[gpu].at("drained").as<bool>())
      head += fmt::format("GPU {}: drained, accepts no new tenant\n", gpu);
  }
  const auto tenants = answer.at("tenants").items();
  for (const JsonReader& tenant : tenants)
    head += uncounted_text(tenant);
  if (tenants.empty()) return answer.finish(head + "no tenant; start one with regatta gpu run\n");
  std::vector<std::vector<std::string>> rows = {{"tenant", "gpu", "used", "swapped out", "limit",
                                                 "compute %", "share %", "used %", "priority",
                                                 "processes"}};
  for (const JsonReader& tenant : tenants) {
    for (const JsonReader& memory : tenant.at("memory").items()) {
      const int gpu = memory.at("gpu").as<int>();
      rows.push_back({tenant.at("name").as<std::string>(), std::to_string(gpu),
                      bytes_text(memory.at("used_bytes")), swapped_text(memory),
                      bytes_text(memory.at("limit_bytes")),
                      percent_text(tenant.at("compute_percent")),
                      percent_text(tenant.at("share_percent")), use_text(tenant.at("time"), gpu),
                      tenant.at("priority").as<std::string>(), holders_text(tenant)});
    }
  }
  return answer.finish(head + format_table(rows));
}

Result<std::string> gpu_tenant_text(const JsonReader& tenant) {
  std::string text = "tenant " + tenant.at("name").as<std::string>() + ":";
  for (const JsonReader& memory : tenant.at("memory").items()) {
    text += fmt::format(" {} on GPU {} ({} in use),", bytes_text(memory.at("limit_bytes")),
                        memory.at("gpu").as<int>(), bytes_text(memory.at("used_bytes")));
  }
  return tenant.finish(text + fmt::format(" {} % of the time, weight {}, priority {}\n",
                                          percent_text(tenant.at("compute_percent")),
                                          tenant.at("weight").as<int>(),
                                          tenant.at("priority").as<std::string>()));
}

Result<std::vector<DrainedGpu>> read_drained_gpus(const JsonReader& answer) {
  std::vector<DrainedGpu> gpus;
  for (const JsonReader& gpu : answer.at("gpus").items()) {
    DrainedGpu& read = gpus.emplace_back();
    gpu.read("gpu", read.gpu);
    gpu.read("drained", read.is_drained);
    gpu.read("tenants", read.tenants);
  }
  return answer.finish(gpus);
}

std::string gpu_drain_text(const DrainedGpu& gpu) {
  if (!gpu.is_drained) return fmt::format("GPU {}: accepts tenants\n", gpu.gpu);
  if (gpu.tenants.empty()) return fmt::format("GPU {}: drained, no tenant is left\n", gpu.gpu);
  return fmt::format("GPU {}: draining; still running: {}\n", gpu.gpu, join(gpu.tenants, ", "));
}

}  // namespace regatta::report
