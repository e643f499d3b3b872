#include "regatta/platform/control/cluster_tables.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/platform/control/job_spec.h"
#include "regatta/platform/control/records.pb.h"
#include "regatta/platform/sched/state_file.h"

namespace regatta::control {
namespace {

constexpr Seconds kLeaseBefore{30};  // of attempts that were made before queues had leases
constexpr std::string_view kJobs = "job/";
constexpr std::string_view kNodes = "node/";
constexpr std::string_view kQuotas = "queues/all";
constexpr std::string_view kOnce = "once/";
constexpr std::string_view kAudit = "audit/head";

Error damaged(std::string_view key) {
  return {Code::kInvalidInput,
          fmt::format("store: record {} cannot be read; restore a backup", printable(key, 80))};
}

void write_replica(const ClusterTables& tables, const Replica& replica,
                   proto::ReplicaRecord& record) {
  record.set_role(replica.role);
  record.set_node(at(tables.nodes, replica.node).facts.name);
  record.set_devices(replica.devices);
  record.set_phase(static_cast<int>(replica.phase));
  record.set_exit_status(replica.exit_status);
  record.set_signal(replica.signal);
  record.set_started_ms(replica.started_ms);
  record.set_ended_ms(replica.ended_ms);
  if (replica.slice.is_whole()) return;
  record.set_device_milli(replica.slice.device_milli);
  record.set_device_memory_mib(replica.slice.device_memory_mib);
}

void write_attempt(const ClusterTables& tables, const Attempt& attempt,
                   proto::AttemptRecord& record) {
  record.set_number(attempt.number);
  record.set_fence(attempt.fence);
  record.set_stop(static_cast<int>(attempt.stop));
  record.set_started_ms(attempt.started_ms);
  record.set_lease_s(attempt.lease.value);
  for (const Replica& replica : attempt.replicas)
    write_replica(tables, replica, *record.add_replicas());
}

// A node that records name is made, without facts, when its own record comes later.
int node_named(const std::string& name, ClusterTables& tables) {
  const auto [found, is_new] =
      tables.node_indices.emplace(name, static_cast<int>(tables.nodes.size()));
  if (is_new) tables.nodes.emplace_back().facts.name = name;
  return found->second;
}

Replica read_replica(const proto::ReplicaRecord& record, ClusterTables& tables) {
  Replica replica;
  replica.role = record.role();
  replica.node = node_named(record.node(), tables);
  replica.devices = record.devices();
  replica.phase = static_cast<ReplicaPhase>(record.phase());
  replica.exit_status = record.exit_status();
  replica.signal = record.signal();
  replica.started_ms = record.started_ms();
  replica.ended_ms = record.ended_ms();
  if (record.device_milli() > 0)
    replica.slice = {.device_milli = record.device_milli(),
                     .device_memory_mib = record.device_memory_mib()};
  return replica;
}

Status load_job(const store::Record& stored, Seconds now, ClusterTables& tables) {
  proto::JobRecord record;
  if (!record.ParseFromArray(stored.value.data(), static_cast<int>(stored.value.size())))
    return damaged(stored.key);
  ManagedJob& job = tables.jobs[record.id()];
  job.id = record.id();
  job.revision = stored.revision;
  job.spec = std::move(*record.mutable_spec());
  job.array = record.array();
  job.array_index = record.array_index();
  job.array_limit = record.array_limit();
  job.name = std::move(*record.mutable_name());
  job.queue = std::move(*record.mutable_queue());
  job.user = std::move(*record.mutable_user());
  job.priority = record.priority();
  job.phase = static_cast<JobPhase>(record.phase());
  job.is_held = record.is_held();
  job.is_cancelled = record.is_cancelled();
  job.attempts = record.attempts();
  job.failures = record.failures();
  job.evictions = record.evictions();
  job.exit_status = record.exit_status();
  job.submitted_ms = record.submitted_ms();
  job.started_ms = record.started_ms();
  job.ended_ms = record.ended_ms();
  job.submitted = now;
  job.not_before = now;
  job.completed = Seconds{record.completed_s()};
  job.reason = std::move(*record.mutable_reason());
  job.after.assign(record.after().begin(), record.after().end());
  for (const std::string& node : record.last_nodes())
    job.last_nodes.push_back(node_named(node, tables));
  for (const proto::ReplicaRecord& replica : record.next())
    job.next.push_back(read_replica(replica, tables));
  if (!record.has_attempt()) return {};
  job.attempt = std::make_unique<Attempt>();
  job.attempt->number = record.attempt().number();
  job.attempt->fence = record.attempt().fence();
  job.attempt->stop = static_cast<StopCause>(record.attempt().stop());
  job.attempt->started_ms = record.attempt().started_ms();
  job.attempt->lease = Seconds{record.attempt().lease_s()};
  if (!(job.attempt->lease.value > 0)) job.attempt->lease = kLeaseBefore;
  job.attempt->started = now;
  for (const proto::ReplicaRecord& replica : record.attempt().replicas())
    job.attempt->replicas.push_back(read_replica(replica, tables));
  return {};
}

Status load_node(const store::Record& stored, Seconds now, ClusterTables& tables) {
  proto::NodeRecord record;
  if (!record.ParseFromArray(stored.value.data(), static_cast<int>(stored.value.size())))
    return damaged(stored.key);
  ManagedNode& node = at(tables.nodes, node_named(record.name(), tables));
  node.facts.device_type = record.device_type();
  node.facts.devices = record.devices();
  node.facts.device_memory_mib = record.device_memory_mib();
  node.facts.cpu_milli = record.cpu_milli();
  node.facts.memory_mib = record.memory_mib();
  node.facts.nics = record.nics();
  node.facts.numa_nodes = record.numa_nodes();
  node.facts.leaf = record.leaf();
  node.facts.group = record.group();
  node.intent = static_cast<NodeIntent>(record.intent());
  node.address = record.address();
  node.joined_ms = record.joined_ms();
  node.journal_id = record.journal_id();
  node.revision = stored.revision;
  node.last_heard = now;  // its agent may have lived until this moment
  return {};
}

Status load_quotas(const store::Record& stored, ClusterTables& tables) {
  REGATTA_TRY(tree, parse_json(stored.value, "store"));
  REGATTA_TRY(document, YamlDocument::read(std::move(tree), "store"));
  tables.quotas = sched::read_quota_tree(document, document.root());
  tables.quotas_spec = stored.value;
  tables.quotas_revision = stored.revision;
  return document.status();
}

Status load_once(const store::Record& stored, Seconds now, ClusterTables& tables) {
  proto::OnceRecord record;
  if (!record.ParseFromArray(stored.value.data(), static_cast<int>(stored.value.size())))
    return damaged(stored.key);
  OnceResult& once = tables.once[std::string(stored.key.substr(kOnce.size()))];
  once.body_hash = record.body_hash();
  once.jobs.assign(record.jobs().begin(), record.jobs().end());
  once.created_ms = record.created_ms();
  once.revision = stored.revision;
  once.created = now;
  return {};
}

}  // namespace

bool is_over(JobPhase phase) {
  return phase == JobPhase::kSucceeded || phase == JobPhase::kFailed ||
         phase == JobPhase::kCancelled;
}

ManagedJob* ClusterTables::find_job(JobId id) {
  const auto found = jobs.find(id);
  return found == jobs.end() ? nullptr : &found->second;
}

const ManagedJob* ClusterTables::find_job(JobId id) const {
  const auto found = jobs.find(id);
  return found == jobs.end() ? nullptr : &found->second;
}

int ClusterTables::find_node(std::string_view name) const {
  const auto found = node_indices.find(std::string(name));
  return found == node_indices.end() ? -1 : found->second;
}

namespace {

Status load_audit(const store::Record& stored, ClusterTables& tables) {
  proto::AuditRecord record;
  if (!record.ParseFromArray(stored.value.data(), static_cast<int>(stored.value.size())))
    return damaged(stored.key);
  tables.audit = {record.number(), record.hash(), stored.revision};
  return {};
}

}  // namespace

Status load_record(const store::Record& record, Seconds now, ClusterTables& tables) {
  if (record.key.starts_with(kJobs)) return load_job(record, now, tables);
  if (record.key.starts_with(kNodes)) return load_node(record, now, tables);
  if (record.key == kQuotas) return load_quotas(record, tables);
  if (record.key.starts_with(kOnce)) return load_once(record, now, tables);
  if (record.key == kAudit) return load_audit(record, tables);
  if (record.key.starts_with(kObserved)) {
    tables.observed[std::string(record.key)] = {.value = std::string(record.value),
                                                .revision = record.revision};
    return {};
  }
  // Kinds that only a newer controller knows stay in the store as they are, so that an older one
  // can go on with it.
  const auto is_identity = load_identity(record, tables.identities);
  return is_identity ? Status() : Status(is_identity.error());
}

Status finish_loading(store::Revision last, ClusterTables& tables) {
  tables.last_revision = last;
  for (const ManagedNode& node : tables.nodes)
    if (node.revision == 0) return damaged(fmt::format("{}{}", kNodes, node.facts.name));
  for (const auto& [id, job] : tables.jobs) {
    tables.last_job = std::max(tables.last_job, id);
    if (job.phase == JobPhase::kPending) {
      tables.pending[job.queue].emplace(-job.priority, id);
      for (const JobId before : job.after)
        tables.dependents[before].push_back(id);
    }
    if (job.attempt == nullptr) continue;
    tables.live.insert(id);
    for (std::size_t i = 0; i < job.attempt->replicas.size(); ++i) {
      const Replica& replica = job.attempt->replicas[i];
      if (!replica.is_gone())
        at(tables.nodes, replica.node).replicas.push_back({id, static_cast<int>(i)});
    }
  }
  return {};
}

std::string job_key(JobId id) {
  return fmt::format("{}{:012}", kJobs, id);
}

std::string once_key(const std::string& key) {
  return fmt::format("{}{}", kOnce, key);
}

store::Change job_change(const ClusterTables& tables, const ManagedJob& job) {
  proto::JobRecord record;
  record.set_id(job.id);
  record.set_spec(job.spec);
  record.set_array(job.array);
  record.set_array_index(job.array_index);
  record.set_array_limit(job.array_limit);
  record.set_name(job.name);
  record.set_queue(job.queue);
  record.set_user(job.user);
  record.set_priority(job.priority);
  record.set_phase(static_cast<int>(job.phase));
  record.set_submitted_ms(job.submitted_ms);
  record.set_started_ms(job.started_ms);
  record.set_ended_ms(job.ended_ms);
  record.set_attempts(job.attempts);
  record.set_failures(job.failures);
  record.set_evictions(job.evictions);
  record.set_exit_status(job.exit_status);
  record.set_reason(job.reason);
  record.set_completed_s(job.completed.value);
  record.set_is_cancelled(job.is_cancelled);
  record.set_is_held(job.is_held);
  for (const JobId before : job.after)
    record.add_after(before);
  for (const int node : job.last_nodes)
    record.add_last_nodes(at(tables.nodes, node).facts.name);
  for (const Replica& replica : job.next)
    write_replica(tables, replica, *record.add_next());
  if (job.attempt != nullptr) write_attempt(tables, *job.attempt, *record.mutable_attempt());
  if (job.ended != nullptr) write_attempt(tables, *job.ended, *record.mutable_ended_attempt());
  return {job_key(job.id), job.revision, record.SerializeAsString()};
}

store::Change node_change(const ManagedNode& node) {
  proto::NodeRecord record;
  record.set_name(node.facts.name);
  record.set_device_type(node.facts.device_type);
  record.set_devices(node.facts.devices);
  record.set_device_memory_mib(node.facts.device_memory_mib);
  record.set_cpu_milli(node.facts.cpu_milli);
  record.set_memory_mib(node.facts.memory_mib);
  record.set_nics(node.facts.nics);
  record.set_numa_nodes(node.facts.numa_nodes);
  record.set_leaf(node.facts.leaf);
  record.set_group(node.facts.group);
  record.set_intent(static_cast<int>(node.intent));
  record.set_address(node.address);
  record.set_joined_ms(node.joined_ms);
  record.set_journal_id(node.journal_id);
  record.set_is_connected(node.is_connected);
  record.set_is_silent(node.is_silent);
  record.set_is_fenced(node.is_fenced);
  return {fmt::format("{}{}", kNodes, node.facts.name), node.revision, record.SerializeAsString()};
}

store::Change quotas_change(const ClusterTables& tables) {
  return {std::string(kQuotas), tables.quotas_revision, tables.quotas_spec};
}

store::Change once_change(const std::string& key, const OnceResult& once) {
  proto::OnceRecord record;
  record.set_body_hash(once.body_hash);
  for (const JobId job : once.jobs)
    record.add_jobs(job);
  record.set_created_ms(once.created_ms);
  return {once_key(key), once.revision, record.SerializeAsString()};
}

store::Change audit_change(const AuditMark& mark) {
  proto::AuditRecord record;
  record.set_number(mark.number);
  record.set_hash(mark.hash);
  return {std::string(kAudit), mark.revision, record.SerializeAsString()};
}

std::string handle_of(const ManagedJob& job) {
  if (job.array > 0) return fmt::format("{}-{}[{}]", job.name, job.array, job.array_index);
  return snapshot_name(job);
}

std::string snapshot_name(const ManagedJob& job) {
  return fmt::format("{}-{}", job.name, job.id);
}

const ManagedJob* find_handle(const ClusterTables& tables, std::string_view handle) {
  const std::size_t bracket = handle.find('[');
  if (bracket == std::string_view::npos || !handle.ends_with(']'))
    return tables.find_job(job_of_handle(handle));
  const JobId first = job_of_handle(handle.substr(0, bracket));
  const auto index = parse_number<int>(handle.substr(bracket + 1, handle.size() - bracket - 2));
  if (!index) return nullptr;
  // Indices rise with the numbers.
  for (auto job = tables.jobs.find(first); job != tables.jobs.end() && job->second.array == first;
       ++job)
    if (job->second.array_index == *index) return &job->second;
  return nullptr;
}

const std::string& spec_text(const ClusterTables& tables, const ManagedJob& job) {
  if (job.array == 0 || job.array == job.id) return job.spec;
  const ManagedJob* first = tables.find_job(job.array);
  return first != nullptr ? first->spec : job.spec;
}

const sched::JobRequest& submitted_request(const ClusterTables& tables, const ManagedJob& job) {
  if (job.request == nullptr) {
    // It was checked when it was submitted.
    auto spec = parse_job_spec(spec_text(tables, job), "job");
    job.request = std::make_shared<const sched::JobRequest>(spec ? std::move(spec->request)
                                                                 : sched::JobRequest{});
  }
  return *job.request;
}

std::vector<JobId> jobs_of_handle(const ClusterTables& tables, std::string_view handle) {
  const ManagedJob* job = find_handle(tables, handle);
  if (job == nullptr) return {};
  if (job->array != job->id || handle.ends_with(']')) return {job->id};
  std::vector<JobId> all;
  for (auto one = tables.jobs.find(job->id);
       one != tables.jobs.end() && one->second.array == job->id; ++one)
    all.push_back(one->first);
  return all;
}

JobId job_of_handle(std::string_view handle) {
  const std::size_t dash = handle.rfind('-');
  if (dash == 0) return 0;  // a negative number
  return parse_number<JobId>(handle.substr(dash + 1)).value_or(0);
}

sched::NodeHealth health_of(const ManagedNode& node) {
  if (node.is_fenced) return sched::NodeHealth::kFailed;
  // Its jobs may run on as long as their leases; what is ordered now would wait for its return.
  if (node.is_silent || !node.is_connected || node.intent == NodeIntent::kCordoned ||
      !node.fabric_fault.empty())
    return sched::NodeHealth::kCordoned;
  if (node.intent == NodeIntent::kDraining) return sched::NodeHealth::kDraining;
  return sched::NodeHealth::kReady;
}

}  // namespace regatta::control
