#include "regatta/platform/control/internal/attempts.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/control/job_spec.h"

namespace regatta::control {
namespace {

// Bounds of the bytes in a record of a job, without its text and the names of nodes.
constexpr std::size_t kOtherBytes = 8192;
constexpr std::size_t kBytesOfPlace = 60;

bool overlaps(const Replica& a, const Replica& b) {
  return a.node == b.node && (a.devices & b.devices) != 0;
}

// Work that the checkpoints of a finished attempt hold, as time on the job's smallest size.
Seconds kept_work(const JobSpec& spec, Seconds elapsed) {
  const Seconds interval = spec.request.checkpointing.interval;
  if (interval.value <= 0) return {};
  return interval * std::floor(elapsed.value / interval.value);
}

// The lease of the job's queue; at least that of the welcome where a node knows no other one.
Seconds lease_for(const ControllerState& state, const ManagedJob& job) {
  const auto leaf = state.tables.quotas.find_leaf(job.queue);
  Seconds lease = leaf ? state.tables.quotas.queue(*leaf).lease : Seconds{};
  if (!(lease.value > 0)) lease = state.options.lease;
  for (const Replica& replica : job.attempt->replicas)
    if (!at(state.tables.nodes, replica.node).has_replica_leases)
      lease = std::max(lease, state.options.lease);
  return lease;
}

JobSpec spec_of(const ControllerState& state, const ManagedJob& job) {
  // It was read when it was submitted.
  auto spec = parse_job_spec(spec_text(state.tables, job), "job");
  return spec ? std::move(*spec) : JobSpec{};
}

ReplicaSlice slice_of(const sched::JobRequest& request, int role) {
  if (role < 0 || role >= static_cast<int>(request.roles.size())) return {};
  const sched::Role& asked = at(request.roles, role);
  if (!asked.is_sliced()) return {};
  return {.device_milli = asked.device_milli, .device_memory_mib = asked.device_memory_mib};
}

// A gang is ordered whole, once nothing that stops is left on its devices.
void order_when_free(ControllerState& state, ManagedJob& job) {
  Attempt& attempt = *job.attempt;
  if (attempt.stop != StopCause::kNone) return;
  for (const Replica& replica : attempt.replicas) {
    if (replica.phase != ReplicaPhase::kWaiting) return;
    for (const PlacedReplica& placed : at(state.tables.nodes, replica.node).replicas) {
      if (placed.job == job.id) continue;
      const Attempt& other = *state.tables.jobs.at(placed.job).attempt;
      if (other.stop != StopCause::kNone && overlaps(at(other.replicas, placed.replica), replica)) {
        job.reason = fmt::format("job {} still stops on node {}",
                                 handle_of(state.tables.jobs.at(placed.job)),
                                 at(state.tables.nodes, replica.node).facts.name);
        return;
      }
    }
  }
  for (Replica& replica : attempt.replicas) {
    replica.phase = ReplicaPhase::kOrdered;
    state.ordered_nodes.insert(replica.node);
  }
  job.reason = "its replicas start";
  touch(state, job);
}

void order_waiting_on(ControllerState& state, int node) {
  // order_when_free() does not change the list.
  for (const PlacedReplica& placed : at(state.tables.nodes, node).replicas) {
    ManagedJob& job = state.tables.jobs.at(placed.job);
    if (at(job.attempt->replicas, placed.replica).phase == ReplicaPhase::kWaiting)
      order_when_free(state, job);
  }
}

void finish_attempt(ControllerState& state, ManagedJob& job, const Moment& moment) {
  job.ended = std::move(job.attempt);
  const Attempt* attempt = job.ended.get();
  const std::vector<Replica> next = std::exchange(job.next, {});
  state.tables.live.erase(job.id);
  const JobSpec spec = spec_of(state, job);
  const std::string last_reason = job.reason;
  if (attempt->stop != StopCause::kNone)
    job.completed += kept_work(spec, moment.now - attempt->started);
  if (job.is_cancelled) {
    set_over(state, job, JobPhase::kCancelled, "its user cancelled it", moment);
  } else if (attempt->stop == StopCause::kNone) {
    job.exit_status = 0;  // an earlier attempt may have failed
    set_over(state, job, JobPhase::kSucceeded, "all its replicas succeeded", moment);
  } else if (attempt->stop == StopCause::kMoved && check_places(state, job, next)) {
    begin_attempt(state, job, next, moment);
  } else if (attempt->stop == StopCause::kFailed) {
    ++job.failures;
    if (spec.restart.rule == RestartRule::kOnFailure && job.failures <= spec.restart.failures_max) {
      const Seconds pause = pause_before_restart(spec.restart, job.failures);
      job.not_before = moment.now + pause;
      state.pause_ends.insert(job.not_before);
      set_phase(state, job, JobPhase::kPending,
                fmt::format("{}; restart {} of {} after {:g} s", last_reason, job.failures,
                            spec.restart.failures_max, pause.value));
    } else {
      set_over(state, job, JobPhase::kFailed, last_reason, moment);
    }
  } else if (attempt->stop == StopCause::kLostNode && spec.restart.rule == RestartRule::kNever) {
    set_over(state, job, JobPhase::kFailed, last_reason, moment);
  } else {
    if (attempt->stop == StopCause::kEvicted) ++job.evictions;
    set_phase(state, job, JobPhase::kPending, last_reason);
  }
}

}  // namespace

void touch(ControllerState& state, const ManagedJob& job) {
  state.changed_jobs.insert(job.id);
}

void set_phase(ControllerState& state, ManagedJob& job, JobPhase phase, std::string reason) {
  if (job.phase == JobPhase::kPending)
    state.tables.pending[job.queue].erase({-job.priority, job.id});
  if (phase == JobPhase::kPending) state.tables.pending[job.queue].emplace(-job.priority, job.id);
  job.phase = phase;
  job.reason = std::move(reason);
  if (is_over(phase)) job.request.reset();
  touch(state, job);
  state.needs_decision = true;
}

void set_over(ControllerState& state, ManagedJob& job, JobPhase phase, std::string reason,
              const Moment& moment) {
  job.ended_ms = moment.unix_ms;
  state.ended_jobs.emplace_back(moment.now, job.id);
  set_phase(state, job, phase, std::move(reason));
  std::vector<JobId> over = {job.id};
  for (std::size_t i = 0; i < over.size(); ++i) {
    const ManagedJob& before = state.tables.jobs.at(over[i]);
    const auto found = state.tables.dependents.find(before.id);
    if (found == state.tables.dependents.end()) continue;
    const std::vector<JobId> dependents = std::move(found->second);
    state.tables.dependents.erase(found);
    if (before.phase == JobPhase::kSucceeded) continue;
    for (const JobId id : dependents) {
      ManagedJob& dependent = state.tables.jobs.at(id);
      if (dependent.phase != JobPhase::kPending) continue;
      dependent.ended_ms = moment.unix_ms;
      state.ended_jobs.emplace_back(moment.now, id);
      set_phase(state, dependent, JobPhase::kCancelled,
                fmt::format("job {}, which it waits for, has not succeeded", handle_of(before)));
      over.push_back(id);
    }
  }
}

Status check_places(const ControllerState& state, const ManagedJob& job,
                    std::span<const Replica> places) {
  const auto refuse = [&job](const ManagedNode& node, std::string_view why) {
    return Error{Code::kConflict,
                 fmt::format("job {}: node {} {}", handle_of(job), node.facts.name, why)};
  };
  std::size_t bytes =
      spec_text(state.tables, job).size() + kBytesOfNumber * job.after.size() + kOtherBytes;
  for (const Replica& place : places) {
    const ManagedNode& node = at(state.tables.nodes, place.node);
    bytes += 3 * node.facts.name.size() + kBytesOfPlace;
    if (bytes > store::kValueMost) return refuse(node, "has no room in the record of the job");
    if (node.is_silent || node.is_fenced) return refuse(node, "is not heard");
    if (place.devices >> static_cast<unsigned>(node.facts.devices) != 0)
      return refuse(node, "has not so many devices");
  }
  return {};
}

void begin_attempt(ControllerState& state, ManagedJob& job, std::vector<Replica> places,
                   const Moment& moment) {
  job.attempt = std::make_unique<Attempt>();
  job.attempt->number = ++job.attempts;
  job.attempt->started_ms = moment.unix_ms;
  job.attempt->started = moment.now;
  job.attempt->replicas = std::move(places);
  job.attempt->lease = lease_for(state, job);
  if (job.started_ms == 0) job.started_ms = moment.unix_ms;
  state.tables.live.insert(job.id);
  job.last_nodes.clear();
  const sched::JobRequest& request = submitted_request(state.tables, job);
  for (std::size_t i = 0; i < job.attempt->replicas.size(); ++i) {
    job.last_nodes.push_back(job.attempt->replicas[i].node);
    Replica& replica = job.attempt->replicas[i];
    replica.phase = ReplicaPhase::kWaiting;
    replica.slice = slice_of(request, replica.role);
    at(state.tables.nodes, replica.node).replicas.push_back({job.id, static_cast<int>(i)});
  }
  set_phase(state, job, JobPhase::kStarting, "its places are chosen");
  order_when_free(state, job);
}

void set_gone(ControllerState& state, ManagedJob& job, int index, ReplicaPhase phase) {
  Replica& replica = at(job.attempt->replicas, index);
  replica.phase = phase;
  if (phase == ReplicaPhase::kLost) {
    ++state.tables.lost_replicas;
    state.is_urgent = true;
  }
  std::erase(at(state.tables.nodes, replica.node).replicas, PlacedReplica{job.id, index});
  order_waiting_on(state, replica.node);
  touch(state, job);
  state.needs_decision = true;
}

void begin_stop(ControllerState& state, ManagedJob& job, StopCause cause, std::string reason,
                const Moment& moment) {
  Attempt& attempt = *job.attempt;
  // A cancellation goes over every other cause; else the first one counts.
  if (attempt.stop == StopCause::kNone || cause == StopCause::kCancelled) {
    attempt.stop = cause;
    set_phase(state, job, JobPhase::kStopping, std::move(reason));
  }
  for (int i = 0; i < static_cast<int>(attempt.replicas.size()); ++i) {
    const Replica replica = at(attempt.replicas, i);
    if (replica.phase == ReplicaPhase::kWaiting)
      set_gone(state, job, i, ReplicaPhase::kEnded);
    else if (!replica.is_gone())
      state.ordered_nodes.insert(replica.node);
  }
  settle(state, job, moment);
}

void settle(ControllerState& state, ManagedJob& job, const Moment& moment) {
  const std::vector<Replica>& replicas = job.attempt->replicas;
  const auto is_gone = [](const Replica& replica) { return replica.is_gone(); };
  if (std::all_of(replicas.begin(), replicas.end(), is_gone)) {
    finish_attempt(state, job, moment);
    return;
  }
  const auto runs = [](const Replica& replica) {
    return replica.phase == ReplicaPhase::kRunning || replica.phase == ReplicaPhase::kEnded;
  };
  if (job.phase == JobPhase::kStarting && std::all_of(replicas.begin(), replicas.end(), runs))
    set_phase(state, job, JobPhase::kRunning, "all its replicas run");
}

}  // namespace regatta::control
