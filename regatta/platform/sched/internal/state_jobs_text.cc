// Writes a pending job as an item of the list `pending` of a state file: sched/state_file.h.
#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/sched/internal/state_jobs.h"
#include "regatta/platform/sched/state_file.h"

namespace regatta::sched {
namespace {

// A YAML scalar: plain where it can be.
std::string quoted(const std::string& text) {
  const bool is_plain = !text.empty() &&
                        std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
                        std::all_of(text.begin(), text.end(), [](char letter) {
                          return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
                                 letter == '-' || letter == '_' || letter == '.';
                        });
  if (is_plain && text != "true" && text != "false" && text != "null") return text;
  std::string made = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') made += '\\';
    made += letter;
  }
  return made + "\"";
}

std::string role_text(const Role& role) {
  std::vector<std::string> parts = {fmt::format("name: {}", quoted(role.name)),
                                    fmt::format("replicas: {}", role.replicas_min)};
  if (role.replicas_max != role.replicas_min)
    parts.push_back(fmt::format("replicas_max: {}", role.replicas_max));
  if (role.devices > 0) parts.push_back(fmt::format("devices: {}", role.devices));
  if (role.is_sliced()) parts.push_back(fmt::format("share: {:g}", role.device_milli / 1000.0));
  if (role.device_memory_mib > 0)
    parts.push_back(fmt::format("device_memory: {}MiB", role.device_memory_mib));
  if (role.cpu_milli > 0) parts.push_back(fmt::format("cpus: {:g}", role.cpu_milli / 1000.0));
  if (role.memory_mib > 0) parts.push_back(fmt::format("memory: {}MiB", role.memory_mib));
  if (role.nic_milli > 0) parts.push_back(fmt::format("nics: {:g}", role.nic_milli / 1000.0));
  if (role.subgroup_replicas > 1)
    parts.push_back(fmt::format("subgroup: {{replicas: {}, level: {}}}", role.subgroup_replicas,
                                enum_name(kTopologyLevelNames, role.subgroup_level)));
  return "{" + join(parts, ", ") + "}";
}

std::string topology_text(const JobRequest& job) {
  std::vector<std::string> slowdowns;
  for (int level = 0; level < kTopologyLevels; ++level)
    slowdowns.push_back(
        fmt::format("{}: {:.4g}", at(kTopologyLevelNames, level), at(job.slowdown, level)));
  return fmt::format("{{required: {}, preferred: {}, slowdown: {{{}}}}}",
                     enum_name(kTopologyLevelNames, job.topology.required),
                     enum_name(kTopologyLevelNames, job.topology.preferred), join(slowdowns, ", "));
}

}  // namespace

std::string pending_job_text(const JobRequest& job) {
  std::string text = fmt::format("  - name: {}\n", quoted(job.name));
  if (!job.queue.empty()) text += fmt::format("    queue: {}\n", quoted(job.queue));
  if (!job.user.empty()) text += fmt::format("    user: {}\n", quoted(job.user));
  text += fmt::format("    priority: {}\n    roles:\n", job.priority);
  for (const Role& role : job.roles)
    text += "      - " + role_text(role) + "\n";
  std::vector<std::string> types;
  for (const std::string& type : job.device_types)
    types.push_back(quoted(type));
  if (!types.empty()) text += fmt::format("    device_types: [{}]\n", join(types, ", "));
  text += "    topology: " + topology_text(job) + "\n";
  if (!job.throughput.empty()) {
    text += "    throughput:\n";
    for (const ThroughputPoint& point : job.throughput)
      text += fmt::format("      - {{devices: {}, throughput: {:.6g}}}\n", point.devices,
                          point.throughput);
  }
  if (job.run_time.median.value > 0)
    text += fmt::format("    run_time: {{median: {:.0f}s, log_spread: {:g}}}\n",
                        job.run_time.median.value, job.run_time.log_spread);
  const Checkpointing& checkpoints = job.checkpointing;
  if (checkpoints.interval.value > 0 || checkpoints.restart.value > 0)
    text +=
        fmt::format("    checkpoint: {{interval: {:g}s, write: {:g}s, restart: {:g}s}}\n",
                    checkpoints.interval.value, checkpoints.write.value, checkpoints.restart.value);
  return text;
}

}  // namespace regatta::sched
