// control/internal/attempts.h: the controller's state, and the attempts of jobs in it: how they
// begin and stop, and what follows.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/control/cluster_controller.h"
#include "regatta/platform/control/cluster_tables.h"

namespace regatta::control {

inline constexpr std::size_t kBytesOfNumber = 10;  // of the longest number in a record

struct ControllerState {
  ControllerOptions options;
  ClusterTables tables;
  // Since the last take_effects().
  std::set<JobId> changed_jobs;
  std::set<int> changed_nodes;
  std::set<int> ordered_nodes;
  std::set<std::string> changed_once;
  std::set<std::string> changed_users;
  std::set<std::string> changed_tokens;
  std::set<std::string> changed_observed;
  bool has_new_quotas = false;
  bool has_new_audit = false;
  bool needs_decision = true;
  bool is_urgent = false;
  std::multiset<Seconds> pause_ends;  // of jobs that have failed
  std::set<JobId> removed_jobs;       // since the last take_effects()
  std::set<std::string> removed_once;
  // They leave when they are old: the oldest first, with the moment at which it began to age.
  std::deque<std::pair<Seconds, JobId>> ended_jobs;
  std::deque<std::pair<Seconds, std::string>> once_keys;
  std::optional<Seconds> last_tick;
};

// The job is to be written.
void touch(ControllerState& state, const ManagedJob& job);
// `reason`: one sentence. Keeps the indices of the tables.
void set_phase(ControllerState& state, ManagedJob& job, JobPhase phase, std::string reason);
// A job that fails ends those that wait for its success, and those that wait for them.
void set_over(ControllerState& state, ManagedJob& job, JobPhase phase, std::string reason,
              const Moment& moment);

// Notes what was loaded and will leave. A job that is over has its time of loading as `submitted`.
void find_aging(ControllerState& state);

// kConflict where a node is not heard, or lacks devices.
Status check_places(const ControllerState& state, const ManagedJob& job,
                    std::span<const Replica> places);
void begin_attempt(ControllerState& state, ManagedJob& job, std::vector<Replica> places,
                   const Moment& moment);
// The first cause of an attempt counts, but for a cancellation, which goes over all.
void begin_stop(ControllerState& state, ManagedJob& job, StopCause cause, std::string reason,
                const Moment& moment);
// The replica with this index is over or lost: jobs that wait for its devices may be ordered.
void set_gone(ControllerState& state, ManagedJob& job, int replica, ReplicaPhase phase);
// After replicas have started or gone: the job runs, or its attempt is over, and what follows
// begins.
void settle(ControllerState& state, ManagedJob& job, const Moment& moment);

}  // namespace regatta::control
