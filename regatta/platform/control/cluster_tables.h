// control/cluster_tables.h: all jobs, nodes and queues of the controller, in memory, and the
// records by which the store keeps them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/control/job.h"
#include "regatta/platform/control/node.h"
#include "regatta/platform/identity/identity_tables.h"
#include "regatta/platform/sched/quota_tree.h"
#include "regatta/platform/store/store.h"

namespace regatta::control {

// The effect of a request with an idempotency key, which a repeated one gets as its answer.
struct OnceResult {
  std::string body_hash;
  std::vector<JobId> jobs;
  std::int64_t created_ms = 0;
  Revision revision = 0;
  Seconds created;  // on the controller's monotonic clock
};

// The last record of the audit that was durable when this was stored: a tail that is cut off later
// is missed.
struct AuditMark {
  std::int64_t number = 0;
  std::string hash;
  Revision revision = 0;
};

// A record of what was measured and is to survive a restart: sums of tenants, alerts, their rules.
// The controller only keeps it, by a key with kObserved; the module monitoring knows the rest.
struct ObservedRecord {
  std::string value;
  Revision revision = 0;
};
inline constexpr std::string_view kObserved = "observed/";

// The order in which pending jobs of a queue are looked at: higher priority first, then older.
using PendingKey = std::pair<int, JobId>;  // -priority, id

struct ClusterTables {
  std::map<JobId, ManagedJob> jobs;
  std::vector<ManagedNode> nodes;  // never shrinks; the index of a node is its number in snapshots
  std::unordered_map<std::string, int> node_indices;
  sched::QuotaTree quotas;
  std::string quotas_spec;  // JSON; empty: the tree of one queue
  Revision quotas_revision = 0;
  std::map<std::string, OnceResult> once;
  identity::IdentityTables identities;
  AuditMark audit;
  std::map<std::string, ObservedRecord> observed;  // by key
  // Indices of `jobs`.
  std::set<JobId> live;                                 // with an attempt
  std::map<std::string, std::set<PendingKey>> pending;  // by queue
  std::map<JobId, std::vector<JobId>> dependents;  // of jobs that are not over: those after them
  JobId last_job = 0;
  Revision last_revision = 0;
  // Since the start of this controller, for people.
  long long silences = 0;       // nodes that were not heard any more
  long long lost_replicas = 0;  // on nodes that are fenced, or have lost their journal

  ManagedJob* find_job(JobId id);
  const ManagedJob* find_job(JobId id) const;
  int find_node(std::string_view name) const;  // -1: there is none
};

// Times of loaded objects count from `now`: a monotonic clock does not survive its process. Records
// of kinds that a newer controller has made are passed over.
Status load_record(const store::Record& record, Seconds now, ClusterTables& tables);
// Makes the indices of what was loaded; `last` is the store's revision. kInvalidInput when records
// name objects that do not exist.
Status finish_loading(store::Revision last, ClusterTables& tables);

std::string job_key(JobId id);
std::string once_key(const std::string& key);
// The records of objects as they are now.
store::Change job_change(const ClusterTables& tables, const ManagedJob& job);
store::Change node_change(const ManagedNode& node);
store::Change quotas_change(const ClusterTables& tables);
store::Change once_change(const std::string& key, const OnceResult& once);
store::Change audit_change(const AuditMark& mark);

// The word by which people call a job: its name and its number, such as bert-17, and of one of an
// array also its index: bert-17[3].
std::string handle_of(const ManagedJob& job);
// The word for it in snapshots: its name and its own number.
std::string snapshot_name(const ManagedJob& job);
// The number in a handle without an index, or of a text that is a number alone; 0: neither.
JobId job_of_handle(std::string_view handle);
// The job of a handle of any kind; nullptr: there is none.
const ManagedJob* find_handle(const ClusterTables& tables, std::string_view handle);
// Its spec, which the jobs of an array share.
const std::string& spec_text(const ClusterTables& tables, const ManagedJob& job);
// The request in it, which is read once; of a job that is not over.
const sched::JobRequest& submitted_request(const ClusterTables& tables, const ManagedJob& job);
// The jobs that a handle means which names `job`: without an index all of its array.
std::vector<JobId> jobs_of_handle(const ClusterTables& tables, std::string_view handle);

// The node's state for the scheduler.
sched::NodeHealth health_of(const ManagedNode& node);

}  // namespace regatta::control
