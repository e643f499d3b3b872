#include "regatta/platform/node_agent/internal/replica_meter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include <unistd.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/memory.h"
#include "regatta/platform/node_agent/internal/process_end.h"

namespace regatta::node_agent {
namespace {

using node_protocol::ReadingSource;

constexpr std::size_t kTimeFields = 4;       // utime, stime, cutime, cstime
constexpr std::size_t kFirstTimeField = 11;  // after the state, which follows the name

std::optional<double> number_after(std::string_view text, std::string_view word) {
  const std::size_t place = text.find(word);
  if (place == std::string_view::npos) return std::nullopt;
  text.remove_prefix(place + word.size());
  return parse_number<double>(text.substr(0, text.find('\n')));
}

double processor_time_of(pid_t pid) {
  const auto text = os::read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return 0;
  const std::size_t name_end = text->rfind(')');
  if (name_end == std::string::npos) return 0;
  const std::vector<std::string> fields = split(std::string_view(*text).substr(name_end + 2), ' ');
  double ticks = 0;
  for (std::size_t i = kFirstTimeField; i < kFirstTimeField + kTimeFields; ++i)
    if (i < fields.size()) ticks += parse_number<double>(fields[i]).value_or(0);
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::uint8_t percent_of(double part, double whole) {
  if (whole <= 0) return node_protocol::kUnknownPercent;
  return static_cast<std::uint8_t>(std::clamp(std::round(100 * part / whole), 0.0, 100.0));
}

}  // namespace

ReplicaUse measure_replica(const MeasuredReplica& replica) {
  ReplicaUse use{.source = ReadingSource::kProcesses};
  std::optional<double> processor_us;
  std::optional<double> memory;
  if (!replica.cgroup.empty()) {
    if (const auto stat = os::read_file(replica.cgroup + "/cpu.stat"))
      processor_us = number_after(*stat, "usage_usec ");
    if (const auto current = os::read_file(replica.cgroup + "/memory.current"))
      memory = parse_number<double>(std::string_view(*current).substr(0, current->find('\n')));
  }
  if (processor_us) use.source = ReadingSource::kCgroups;
  use.processor_s = processor_us.value_or(0) * 1e-6;
  use.memory_bytes = memory.value_or(0);
  if (processor_us && memory) return use;
  const std::vector<pid_t> members =
      replica.cgroup.empty() ? descendants_of(replica.supervisor) : cgroup_members(replica.cgroup);
  for (const pid_t pid : members) {
    if (!processor_us) use.processor_s += processor_time_of(pid);
    if (!memory) use.memory_bytes += static_cast<double>(os::resident_memory(pid).value);
  }
  return use;
}

node_protocol::DeviceReadings ReplicaMeter::read(std::span<const MeasuredReplica> replicas,
                                                 double now_s) {
  node_protocol::DeviceReadings readings{.source = ReadingSource::kProcesses};
  readings.devices =
      static_cast<std::uint32_t>((std::uint64_t{1} << static_cast<unsigned>(devices_)) - 1);
  readings.use.assign(static_cast<std::size_t>(devices_), 0);
  readings.memory.assign(static_cast<std::size_t>(devices_), 0);
  std::map<control::ReplicaKey, Earlier> now;
  for (const MeasuredReplica& replica : replicas) {
    const ReplicaUse use = measure_replica(replica);
    readings.source = use.source;
    now[replica.key] = {.processor_s = use.processor_s, .time_s = now_s};
    const double share = static_cast<double>(std::popcount(replica.devices)) / devices_;
    const auto before = earlier_.find(replica.key);
    std::uint8_t percent = node_protocol::kUnknownPercent;
    if (before != earlier_.end())
      percent = percent_of(std::max(0.0, use.processor_s - before->second.processor_s),
                           share * processors_ * (now_s - before->second.time_s));
    const std::uint8_t memory = percent_of(use.memory_bytes, share * memory_bytes_);
    for (int device = 0; device < devices_; ++device) {
      if ((replica.devices >> static_cast<unsigned>(device) & 1) == 0) continue;
      at(readings.use, device) = percent;
      at(readings.memory, device) = memory;
    }
  }
  earlier_ = std::move(now);
  return readings;
}

}  // namespace regatta::node_agent
