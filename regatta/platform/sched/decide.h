// sched/decide.h: one decision of the scheduler: which jobs start, where, and what makes room for
// them. Pure.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/job_request.h"
#include "regatta/platform/sched/quota_tree.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::mixing {
class MixMemo;
}

namespace regatta::sched {

struct PendingJob {
  JobRequest request;
  Seconds completed;  // work done before an eviction, as time on its smallest size
  int evictions = 0;
};

// Jobs that wait, and the quotas of their queues.
struct JobQueue {
  QuotaTree quotas;
  std::vector<PendingJob> jobs;
};

enum class ActionKind {
  kStart,    // a pending job, on `replicas`
  kEvict,    // a running job becomes pending; `replicas` is empty
  kShrink,   // an elastic job gives replicas up and keeps `replicas`
  kGrow,     // an elastic job gets more: `replicas` are all it has then
  kReplace,  // a degraded gang gets other places for the replicas that it lost
  kMove      // a job continues from its checkpoint on other places
};

struct SchedulingAction {
  ActionKind kind = ActionKind::kStart;
  std::string job;
  std::vector<ReplicaPlacement> replicas;  // all of the job after the action
  std::string reason;                      // one sentence
};

// The jobs of a device share it in a new way, or one has it alone again, which these flags of
// `regatta gpu` carry out.
struct MixAction {
  struct Setting {
    std::string job;
    std::vector<std::string> run_flags;
    // Times of the day, from and until, between which it runs; empty: always.
    std::vector<std::array<Seconds, 2>> runs;
    double expected_share = 1;  // of its work that is done in its interval
  };
  DeviceMix mix;
  std::vector<std::string> daemon_flags;
  std::vector<Setting> settings;  // of the jobs on the device, in the order of their names
  std::string reason;             // one sentence
};

enum class WaitCause {
  kQuota,        // its queue or user is at a limit
  kNoRoom,       // free and reclaimable devices do not hold it
  kReservation,  // it would delay a job before it
  kSpares,       // it would fit on nodes that are kept free for large gangs that fail
  kDegraded,     // it runs no more: it lost nodes, and keeps its places until they return
  kNeverFits     // not even the empty cluster holds it, with all its nodes ready
};

struct WaitingJob {
  std::string job;
  WaitCause cause = WaitCause::kNoRoom;
  // kQuota: "queue a is at its limit of 64 devices"; kReservation: the job that it would delay, if
  // one alone is known; kNeverFits: "no node has devices of type b200; the types are h100"; or "".
  std::string detail;
};

// Carried out in order: what makes room comes before what uses it.
struct SchedulingDecision {
  std::vector<SchedulingAction> actions;
  std::vector<MixAction> mixes;     // of devices that are shared differently after the actions
  std::vector<WaitingJob> waiting;  // in the order in which they were considered
};

// Fails with kInvalidInput where the snapshot or a job is invalid, or a name comes twice.
Status check_state(const ClusterSnapshot& snapshot, const JobQueue& queue);

// Fails with kInvalidInput where the snapshot, a job or its queue is invalid. Two calls with equal
// arguments give equal decisions. `memo` may keep mixes from one decision to the next: it changes
// the time alone.
Result<SchedulingDecision> decide(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                  const SchedulingPolicy& policy, mixing::MixMemo* memo = nullptr);

// The snapshot and the queue once the actions are carried out, without the time that this takes: an
// evicted job is the last of the queue, and keeps the work that its last checkpoint holds. Actions
// on jobs that are neither running nor pending are left out. A mix ends where the jobs on its
// device take no more than the whole of it.
void apply_decision(const SchedulingDecision& decision, ClusterSnapshot& snapshot, JobQueue& queue);

}  // namespace regatta::sched
