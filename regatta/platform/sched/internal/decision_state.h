// sched/internal/decision_state.h: what a decision has changed so far, and the steps that it is
// made of.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/internal/device_mixes.h"
#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/internal/gang_placement.h"
#include "regatta/platform/sched/internal/job_accounts.h"
#include "regatta/platform/sched/internal/node_precautions.h"
#include "regatta/platform/sched/internal/quota_usage.h"
#include "regatta/platform/sched/internal/reclaim_rule.h"

namespace regatta::sched {

// Room that a pending job will have: others may use it until then.
struct StartReservation {
  int pending = 0;
  Seconds start;
  std::vector<ReplicaPlacement> replicas;
};

// A running job in the course of a decision.
struct JobChange {
  std::vector<ReplicaPlacement> replicas;
  bool is_evicted = false;
  bool is_changed = false;  // it has an action already
};

// Searches for room ask this about each running job. It depends on the snapshot alone.
struct VictimFacts {
  QuotaClaim claim;
  double loss = 0;  // of an eviction, in device-seconds
  int level = 0;    // of service
  bool is_degraded = false;
  bool has_surplus = false;  // replicas beyond its smallest size
};

struct DecisionState {
  // Fails with kInvalidInput where a job names a queue that is no leaf.
  static Result<DecisionState> create(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                      const SchedulingPolicy& policy);

  const ClusterSnapshot& snapshot;
  const JobQueue& queue;
  const SchedulingPolicy& policy;
  GangWeights weights;
  NodePrecautions precautions;
  FreeCapacity free;  // nodes to avoid and spares are closed
  QuotaUsage usage;
  ReclaimRule guarantees;
  ResourceAmounts capacity;                            // of the nodes that work
  std::map<std::string, int> device_memory_mib;        // by device type
  std::vector<int> quota_types;                        // by node, in the quotas; -1: none
  JobAccounts accounts;                                // in the usage
  std::vector<JobChange> running;                      // by index into the running jobs
  std::vector<std::vector<ReplicaPlacement>> started;  // by index into the pending jobs; or empty
  std::vector<StartReservation> reservations;          // by rising start
  std::optional<DeviceMixes> mixes;                    // where the policy mixes
  std::vector<VictimFacts> victim_facts;  // by running job; empty until the first search for room
  SchedulingDecision decision;
};

// The amounts that replicas of a job take from its quota.
ResourceAmounts amounts_on(const DecisionState& state, const JobRequest& job,
                           std::span<const ReplicaPlacement> replicas);
// The same of replicas that have no place yet: with the least device memory that the job accepts,
// and of a device type where it accepts one alone.
ResourceAmounts amounts_wanted(const DecisionState& state, const JobRequest& job,
                               const GangSize& size);
// The job once for each device type that it may get; once where quotas name no type.
std::vector<JobRequest> by_device_type(const DecisionState& state, const JobRequest& job);
// Whether the quota of the job allows `more` replicas of each role, on a type that it may get, and
// the limit that does not.
bool admits(const DecisionState& state, const JobRequest& job, const GangSize& more);
std::optional<QuotaLimit> quota_passed(const DecisionState& state, const JobRequest& job,
                                       const GangSize& more);
// The limit that does not allow `more` beside the replicas that the job has: a gang grows on the
// device type that it has.
std::optional<QuotaLimit> growth_limit(const DecisionState& state, const JobRequest& job,
                                       std::span<const ReplicaPlacement> replicas,
                                       const GangSize& more);

// Takes what a reservation holds from `free`, as far as it is free.
void block_reservation(const DecisionState& state, const StartReservation& reservation,
                       FreeCapacity& free);
// The free devices without those that reservations hold.
FreeCapacity free_beside_reservations(const DecisionState& state);

// The free capacity with the nodes that are avoided too.
FreeCapacity free_with_avoided(const DecisionState& state, const FreeCapacity& free);
// "; node n3 failed 4 times in 90 d, and no other has room" where a replica is on
// such a node; else "".
std::string avoided_text(const DecisionState& state, std::span<const ReplicaPlacement> replicas);

// Chooses the spares anew of what is free now.
void keep_spares(DecisionState& state);

// Takes and returns the devices and the quota of replicas of a job.
void take(DecisionState& state, const JobRequest& job, std::span<const ReplicaPlacement> replicas);
void give(DecisionState& state, const JobRequest& job, std::span<const ReplicaPlacement> replicas);

void add_action(DecisionState& state, ActionKind kind, const JobRequest& job,
                std::vector<ReplicaPlacement> replicas, std::string reason);

// "8 devices on 2 nodes below leaf 3".
std::string place_text(const DecisionState& state, const JobRequest& job,
                       std::span<const ReplicaPlacement> replicas);

// A gang that would share devices with others.
struct MixSearch {
  const JobRequest& job;
  GangSize size;
  std::span<const ReplicaPlacement> kept;  // that it has already
  const FreeCapacity& free;                // beside the reservations that it may not use
  int reservations = 0;                    // so many of the state, whose devices it may not use
  bool is_shared_only = false;             // no free device, only those that others use
};

// The place of the gang on devices of others that admit it, and on free ones; nothing where the
// policy or the job does not mix, or no place is known. One device: the fullest. More: a device
// that admits it counts as free in place_gang().
std::optional<GangPlacement> place_mixed(DecisionState& state, const MixSearch& search);

// "; shares devices with jobs a and b", before the replicas are taken; empty where they share none.
std::string sharing_text(const DecisionState& state, std::span<const ReplicaPlacement> replicas);

// The steps, in this order.
void heal_degraded_gangs(DecisionState& state);
void size_services(DecisionState& state);
void empty_draining_nodes(DecisionState& state);
// Jobs leave devices whose mix keeps the budget no more.
void mend_mixes(DecisionState& state);
void start_pending_jobs(DecisionState& state);
// Before a service grows: pending jobs of a higher priority start that fit what is free beside
// reservations of such jobs, in their order. Not those beyond what their queues are guaranteed
// where one more replica is within what the service's are.
void start_jobs_before(DecisionState& state, const RunningJob& service);
void resize_elastic_jobs(DecisionState& state);
void consolidate_running_jobs(DecisionState& state);
// The actions for devices that other jobs share now, or in another way.
void settle_mixes(DecisionState& state);

// A pending service, service_size.h: as many replicas as its forecast asks for, as far as they fit
// `free` and the quota of its account; nothing where its smallest size does not fit.
std::optional<GangPlacement> place_service(const DecisionState& state, const JobRequest& job,
                                           int account, const FreeCapacity& free);
// Adds replicas that it lacks then to those that it starts with, which are taken; others make room
// for them. The text says what its demand needs.
std::string complete_service(DecisionState& state, const PendingJob& job,
                             std::vector<ReplicaPlacement>& replicas);
// Which replicas a service gives back, as rising indices: as many whole nodes as possible become
// free, and nodes that jobs leave come first.
std::vector<int> replicas_to_return(const DecisionState& state, const JobRequest& job,
                                    std::span<const ReplicaPlacement> replicas, int count);

}  // namespace regatta::sched
