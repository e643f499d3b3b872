#include "regatta/platform/sched/internal/state_jobs.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/node_fit.h"
#include "regatta/platform/sched/state_file.h"

namespace regatta::sched {
namespace {

constexpr double kMilli = 1000;
constexpr NumberRange kTimes{.low = 0, .high = 1e10};
constexpr int kPriorityMax = 1'000'000'000;

const Choices<TopologyLevel>& levels() {
  static const auto choices = choices_of<TopologyLevel>(kTopologyLevelNames);
  return choices;
}

const Choices<JobClass>& job_classes() {
  static const Choices<JobClass> choices = {{"batch", JobClass::kBatch},
                                            {"online", JobClass::kOnline},
                                            {"intermittent", JobClass::kIntermittent},
                                            {"tidal", JobClass::kTidal}};
  return choices;
}

int mebibytes(const YamlMap& map, std::string_view key) {
  return static_cast<int>(map.bytes(key, Bytes{0}, {.low = 0, .high = 0x1p50}).value >> 20);
}

int thousandths(const YamlMap& map, std::string_view key, double fallback) {
  return static_cast<int>(kMilli * map.number_or(key, fallback, {.low = 0, .high = 1e6}) + 0.5);
}

// Numbers of a list, as "20%" or 0.2.
std::vector<double> numbers(const YamlMap& map, std::string_view key, NumberRange range,
                            std::string_view example) {
  std::vector<double> values;
  if (!map.has(key)) return values;
  for (const std::string& text : map.texts(key)) {
    const bool is_percent = text.ends_with('%');
    const auto number =
        parse_number<double>(std::string_view(text).substr(0, text.size() - (is_percent ? 1 : 0)));
    const double value = number ? *number / (is_percent ? 100 : 1) : -1;
    if (!(value >= range.low && value <= range.high)) {
      map.fail(key, fmt::format("'{}' is no number from {:g} to {:g}; write a list like {}",
                                printable(text, 64), range.low, range.high, example));
      return {};
    }
    values.push_back(value);
  }
  return values;
}

mixing::DutyProfile read_duty(const YamlMap& map) {
  map.allow({"shares", "day"});
  mixing::DutyProfile duty;
  for (const double share : numbers(map, "shares", {.low = 0, .high = 1}, "[5%, 10%, 60%]"))
    duty.shares.push_back(static_cast<float>(share));
  for (const double part :
       numbers(map, "day", {.low = 0, .high = mixing::kDayPartsMax}, "[0.4, 1.2, 1.4]"))
    duty.day.push_back(static_cast<float>(part));
  if (duty.shares.empty()) map.fail("shares", "there are none; write a list like [5%, 10%, 60%]");
  if (const Status status = mixing::check_duty({.shares = duty.shares, .day = {}}); !status)
    map.fail("shares", status.error().message);
  if (const Status status = mixing::check_duty(duty); !status)
    map.fail("day", status.error().message);
  return duty;
}

ServiceDemand read_demand(const YamlMap& map) {
  map.allow({"interval", "history", "per_replica"});
  ServiceDemand demand;
  demand.interval = map.seconds_or("interval", demand.interval, {.low = 1, .high = 1e6});
  demand.history = numbers(map, "history", {.low = 0, .high = 1e12}, "[120, 140, 135]");
  demand.per_replica = map.number_or("per_replica", 1, {.low = 1e-9, .high = 1e12});
  return demand;
}

Role read_role(const YamlMap& map) {
  map.allow({"name", "replicas", "replicas_max", "devices", "share", "device_memory", "cpus",
             "memory", "nics", "subgroup", "duty"});
  Role role;
  role.name = map.text("name", "worker");
  role.replicas_min = map.integer_or("replicas", 1, {0, kReplicasMax});
  role.replicas_max =
      map.integer_or("replicas_max", std::max(1, role.replicas_min), {1, kReplicasMax});
  role.devices = map.integer_or("devices", 0, {0, kNodeDevicesMax});
  role.device_milli = std::max(1, static_cast<int>(kMilli * map.ratio_or("share", 1) + 0.5));
  role.device_memory_mib = mebibytes(map, "device_memory");
  role.cpu_milli = thousandths(map, "cpus", 0);
  role.memory_mib = mebibytes(map, "memory");
  role.nic_milli = thousandths(map, "nics", 0);
  for (const char* const key : {"share", "device_memory", "duty"})
    if (role.devices == 0 && map.has(key))
      map.fail(key, "it is of the devices of a replica; give devices, or leave it out");
  if (map.has("duty")) {
    role.duty = read_duty(map.map("duty"));
    if (role.devices > 0 && role.device_memory_mib == 0)
      map.fail("duty", "a role whose devices others may use says its memory; give device_memory");
  }
  if (map.has("subgroup")) {
    const YamlMap subgroup = map.map("subgroup");
    subgroup.allow({"replicas", "level"});
    role.subgroup_replicas = subgroup.integer("replicas", {1, kReplicasMax});
    role.subgroup_level = subgroup.choice("level", levels());
  }
  return role;
}

void read_times(const YamlMap& map, JobRequest& job) {
  if (map.has("run_time")) {
    const YamlMap time = map.map("run_time");
    time.allow({"median", "log_spread"});
    if (!time.has("median")) time.fail("median", "missing; add a time like 4h");
    job.run_time.median = time.seconds_or("median", {0}, kTimes);
    job.run_time.log_spread = time.number_or("log_spread", 0, {.low = 0, .high = 10});
  }
  if (map.has("checkpoint")) {
    const YamlMap checkpoint = map.map("checkpoint");
    checkpoint.allow({"interval", "write", "restart"});
    if (checkpoint.has("write") && !checkpoint.has("interval"))
      checkpoint.fail("write", "it is of each checkpoint; give their interval, or leave it out");
    job.checkpointing.interval = checkpoint.seconds_or("interval", {0}, kTimes);
    job.checkpointing.write = checkpoint.seconds_or("write", {0}, kTimes);
    job.checkpointing.restart = checkpoint.seconds_or("restart", {0}, kTimes);
  }
  if (map.has("deadline_in")) job.deadline = map.seconds_or("deadline_in", {0}, kTimes);
}

void read_topology(const YamlMap& map, JobRequest& job) {
  if (map.has("topology")) {
    const YamlMap topology = map.map("topology");
    topology.allow({"required", "preferred", "slowdown"});
    job.topology.required =
        topology.choice("required", levels(), std::optional(TopologyLevel::kCluster));
    job.topology.preferred =
        topology.choice("preferred", levels(), std::optional(job.topology.required));
    if (topology.has("slowdown")) {
      const YamlMap slowdown = topology.map("slowdown");
      slowdown.allow({kTopologyLevelNames.begin(), kTopologyLevelNames.end()});
      double least = 1;
      for (const auto& [name, level] : levels()) {
        const double number = slowdown.number_or(name, least, {.low = 1, .high = 1e6});
        if (number < least)
          slowdown.fail(
              name, fmt::format("it is below that of a narrower level; write {:g} or more", least));
        at(job.slowdown, static_cast<int>(level)) = least = std::max(least, number);
      }
    }
  }
  if (!map.has("throughput")) return;
  for (const YamlMap& point : map.maps("throughput")) {
    point.allow({"devices", "throughput"});
    if (!point.has("throughput")) point.fail("throughput", "missing; add a number");
    job.throughput.push_back({.devices = point.integer("devices"),
                              .throughput = point.number_or("throughput", 1, {.low = 1e-12})});
  }
}

std::vector<std::string> with_job_keys(std::vector<std::string> keys) {
  for (const char* key :
       {"name", "queue", "user", "class", "priority", "preemptible", "roles", "device_types",
        "topology", "throughput", "run_time", "checkpoint", "deadline_in", "demand"})
    keys.emplace_back(key);
  return keys;
}

std::vector<std::string> read_device_types_of(const YamlMap& map) {
  std::vector<std::string> types = map.texts("device_types");
  if (types.empty())
    map.fail("device_types", "it is empty; name a device type, or leave it out for any");
  const std::set<std::string> different(types.begin(), types.end());
  if (different.size() < types.size())
    map.fail("device_types", "a type is listed twice; list each once");
  return types;
}

JobRequest read_job(const YamlMap& map) {
  JobRequest job;
  job.name = map.text("name");
  job.queue = map.text("queue", "");
  job.user = map.text("user", "");
  job.job_class = map.choice("class", job_classes(), std::optional(JobClass::kBatch));
  job.priority = map.integer_or("priority", 0, {-kPriorityMax, kPriorityMax});
  job.is_preemptible = map.boolean_or("preemptible", job.job_class != JobClass::kOnline);
  for (const YamlMap& role : map.maps("roles"))
    job.roles.push_back(read_role(role));
  if (map.has("device_types")) job.device_types = read_device_types_of(map);
  read_topology(map, job);
  read_times(map, job);
  if (map.has("demand")) job.demand = read_demand(map.map("demand"));
  return job;
}

ReplicaPlacement read_replica(const YamlMap& map, const JobRequest& job, const NodeIndex& nodes) {
  map.allow({"role", "node", "devices"});
  ReplicaPlacement replica;
  const std::string role = map.text("role", job.roles.empty() ? "" : job.roles.front().name);
  const auto found = std::find_if(job.roles.begin(), job.roles.end(),
                                  [&](const Role& each) { return each.name == role; });
  if (found == job.roles.end())
    map.fail("role",
             fmt::format("the job has no role '{}'; name one of its roles", printable(role, 64)));
  else
    replica.role = static_cast<int>(found - job.roles.begin());
  const std::string node = map.text("node");
  const auto index = nodes.find(node);
  if (index == nodes.end())
    map.fail("node", fmt::format("no node is called '{}'; name one of nodes", printable(node, 64)));
  else
    replica.node = index->second;
  if (map.has("devices"))
    for (const int device : map.integers("devices", {0, kNodeDevicesMax - 1}))
      replica.devices |= 1U << static_cast<unsigned>(device);
  return replica;
}

}  // namespace

RunningJob read_running_job(const YamlMap& map, const NodeIndex& nodes) {
  map.allow(with_job_keys({"running_for", "since_checkpoint", "completed", "replicas"}));
  RunningJob job;
  job.request = read_job(map);
  const Seconds running_for = map.seconds_or("running_for", {0}, kTimes);
  const Seconds since = map.seconds_or("since_checkpoint", running_for, kTimes);
  if (since > running_for)
    map.fail("since_checkpoint", "it is longer than running_for; give the time since the last one");
  job.started = Seconds{0} - running_for;
  job.checkpointed = Seconds{0} - since;
  job.request.submitted = job.started;
  job.completed = map.seconds_or("completed", {0}, kTimes);
  for (const YamlMap& replica : map.maps("replicas"))
    job.replicas.push_back(read_replica(replica, job.request, nodes));
  return job;
}

JobRequest read_job_request(const YamlMap& map, const std::vector<std::string>& more_keys) {
  map.allow(with_job_keys(more_keys));
  return read_job(map);
}

PendingJob read_pending_job(const YamlMap& map) {
  map.allow(with_job_keys({"waited", "completed", "evictions"}));
  PendingJob job;
  job.request = read_job(map);
  job.request.submitted = Seconds{0} - map.seconds_or("waited", {0}, kTimes);
  job.completed = map.seconds_or("completed", {0}, kTimes);
  job.evictions = map.integer_or("evictions", 0, {0, kReplicasMax});
  return job;
}

}  // namespace regatta::sched
