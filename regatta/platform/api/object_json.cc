#include "regatta/platform/api/object_json.h"

#include <bit>
#include <map>
#include <string>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/platform/api/internal/json_object.h"

namespace regatta::api {
namespace {

using control::ManagedJob;
using control::ManagedNode;

template <typename E, std::size_t kCount>
const char* name_in(const EnumNames<kCount>& names, E value) {
  return at(names, static_cast<int>(value));
}

std::string replica_json(const control::ClusterTables& tables, const control::Replica& replica) {
  JsonObject object;
  object.add("role", replica.role);
  object.add("node", at(tables.nodes, replica.node).facts.name);
  object.add("devices", replica.devices);
  object.add("phase", name_in(control::kReplicaPhaseNames, replica.phase));
  if (!replica.slice.is_whole()) {
    object.add("device_share", replica.slice.device_milli / 1000.0);
    object.add("device_memory_mib", replica.slice.device_memory_mib);
  }
  if (replica.is_gone()) {
    object.add("exit_status", replica.exit_status);
    object.add("signal", replica.signal);
  }
  return object.take();
}

std::string attempt_json(const control::ClusterTables& tables, const control::Attempt& attempt) {
  JsonObject object;
  object.add("number", attempt.number);
  object.add("stop", name_in(control::kStopCauseNames, attempt.stop));
  object.add("started_ms", attempt.started_ms);
  std::string replicas;
  for (const control::Replica& replica : attempt.replicas)
    append_item(replicas, replica_json(tables, replica));
  object.add_raw("replicas", finished_list(std::move(replicas)));
  return object.take();
}

std::string array_json(const ManagedJob& job) {
  JsonObject array;
  array.add_revision("first", job.array);
  array.add("index", job.array_index);
  if (job.array_limit > 0) array.add("limit", job.array_limit);
  return array.take();
}

std::string ids_json(const std::vector<control::JobId>& ids) {
  std::string list;
  for (const control::JobId id : ids)
    append_item(list, fmt::format("\"{}\"", id));
  return finished_list(std::move(list));
}

int devices_of(const ManagedJob& job) {
  int devices = 0;
  if (job.attempt != nullptr)
    for (const control::Replica& replica : job.attempt->replicas)
      devices += std::popcount(replica.devices);
  return devices;
}

std::string start_times_json(const controller::StartTimes& start) {
  JsonObject object;
  object.add("early_ms", start.early_ms);
  object.add("likely_ms", start.likely_ms);
  if (start.late_ms > 0) object.add("late_ms", start.late_ms);
  return object.take();
}

std::string status_json(const control::ClusterTables& tables, const ManagedJob& job, bool is_full,
                        const controller::StartTimes* start) {
  JsonObject status;
  status.add("phase", name_in(control::kJobPhaseNames, job.phase));
  status.add("reason", job.reason);
  status.add("held", job.is_held);
  status.add("attempts", job.attempts);
  status.add("failures", job.failures);
  status.add("evictions", job.evictions);
  status.add("devices", devices_of(job));
  status.add("submitted_ms", job.submitted_ms);
  if (job.started_ms > 0) status.add("started_ms", job.started_ms);
  if (job.ended_ms > 0) {
    status.add("ended_ms", job.ended_ms);
    status.add("exit_status", job.exit_status);
  }
  if (start != nullptr) status.add_raw("start", start_times_json(*start));
  if (is_full && job.attempt != nullptr)
    status.add_raw("attempt", attempt_json(tables, *job.attempt));
  return status.take();
}

}  // namespace

std::string job_json(const control::ClusterTables& tables, const ManagedJob& job, bool is_full,
                     const controller::StartTimes* start) {
  JsonObject object;
  object.add("kind", "job");
  object.add_revision("id", job.id);
  object.add("name", job.name);
  object.add("handle", handle_of(job));
  object.add_revision("rev", job.revision);
  object.add("queue", job.queue);
  object.add("user", job.user);
  object.add("priority", job.priority);
  if (job.array > 0) object.add_raw("array", array_json(job));
  if (!job.after.empty()) object.add_raw("after", ids_json(job.after));
  object.add_raw("status", status_json(tables, job, is_full, start));
  if (is_full) object.add_raw("spec", spec_text(tables, job));
  return object.take();
}

std::string node_json(const control::ClusterTables& tables, const ManagedNode& node) {
  const sched::ClusterNode& facts = node.facts;
  JsonObject object;
  object.add("kind", "node");
  object.add("id", facts.name);
  object.add("name", facts.name);
  object.add_revision("rev", node.revision);
  object.add("device_type", facts.device_type);
  object.add("devices", facts.devices);
  object.add("device_memory_mib", facts.device_memory_mib);
  object.add("cpus", facts.cpu_milli / 1000.0);
  object.add("memory_mib", facts.memory_mib);
  object.add("nics", facts.nics);
  object.add("leaf", facts.leaf);
  object.add("group", facts.group);
  object.add("address", node.address);
  object.add("joined_ms", node.joined_ms);
  JsonObject status;
  status.add("intent", name_in(control::kNodeIntentNames, node.intent));
  status.add("connected", node.is_connected);
  status.add("silent", node.is_silent);
  status.add("fenced", node.is_fenced);
  if (!node.fabric_fault.empty()) status.add("fabric_fault", node.fabric_fault);
  std::string replicas;
  std::uint32_t used = 0;
  for (const control::PlacedReplica& placed : node.replicas) {
    const ManagedJob& job = tables.jobs.at(placed.job);
    const control::Replica& replica = at(job.attempt->replicas, placed.replica);
    used |= replica.devices;
    JsonObject item;
    item.add_revision("job", job.id);
    item.add("handle", handle_of(job));
    item.add("replica", placed.replica);
    item.add("devices", replica.devices);
    item.add("phase", name_in(control::kReplicaPhaseNames, replica.phase));
    append_item(replicas, item.take());
  }
  status.add("devices_in_use", std::popcount(used));
  status.add_raw("replicas", finished_list(std::move(replicas)));
  object.add_raw("status", status.take());
  return object.take();
}

std::string queues_json(const control::ClusterTables& tables) {
  struct Counts {
    int pending = 0;
    int live = 0;
    int devices = 0;
  };
  std::map<std::string, Counts> counts;
  for (const int leaf : tables.quotas.leaves())
    counts[tables.quotas.queue(leaf).name];
  for (const auto& [queue, keys] : tables.pending)
    counts[queue].pending = static_cast<int>(keys.size());
  for (const control::JobId id : tables.live) {
    const ManagedJob& job = tables.jobs.at(id);
    ++counts[job.queue].live;
    counts[job.queue].devices += devices_of(job);
  }
  std::string items;
  for (const auto& [name, count] : counts) {
    JsonObject item;
    item.add("kind", "queue");
    item.add("name", name);
    item.add("pending", count.pending);
    item.add("running", count.live);
    item.add("devices", count.devices);
    append_item(items, item.take());
  }
  JsonObject object;
  object.add_revision("rev", tables.quotas_revision);
  object.add_raw("spec", tables.quotas_spec.empty() ? "null" : tables.quotas_spec);
  object.add_raw("items", finished_list(std::move(items)));
  return object.take();
}

std::string session_json(const Caller& caller) {
  JsonObject object;
  object.add("kind", "session");
  object.add("user", caller.user);
  object.add("role", at(kAccessRoleNames, static_cast<int>(caller.role)));
  object.add("expires_ms", caller.expires_ms);
  return object.take();
}

}  // namespace regatta::api
