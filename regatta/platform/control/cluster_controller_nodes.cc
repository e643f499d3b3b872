// Nodes: how they join, report, fall silent, and what they are ordered.
#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/container/rank_container.h"
#include "regatta/platform/control/cluster_controller.h"
#include "regatta/platform/control/internal/attempts.h"
#include "regatta/platform/trainer/training_request.h"

namespace regatta::control {
namespace {

constexpr double kFenceFactor = 1.25;
constexpr const char* kCheckpointVariable = "REGATTA_CHECKPOINT_FOLDER";
constexpr Seconds kLateTick{1.5};  // ticks are a few times a second

// The facts that a node reports; its health and its domains' failures are the controller's.
bool has_same_facts(const sched::ClusterNode& a, const sched::ClusterNode& b) {
  return a.device_type == b.device_type && a.devices == b.devices &&
         a.device_memory_mib == b.device_memory_mib && a.cpu_milli == b.cpu_milli &&
         a.memory_mib == b.memory_mib && a.nics == b.nics && a.numa_nodes == b.numa_nodes &&
         a.leaf == b.leaf && a.group == b.group;
}

std::string end_text(const ReplicaReport& report, const std::string& node) {
  if (report.signal != 0)
    return fmt::format("replica {} on node {} was ended by signal {}", report.key.replica, node,
                       report.signal);
  return fmt::format("replica {} on node {} ended with status {}", report.key.replica, node,
                     report.exit_status);
}

std::int64_t unix_ms_before(const Moment& moment, Seconds time) {
  return moment.unix_ms - static_cast<std::int64_t>(time.value * 1000);
}

void apply_report(ControllerState& state, ManagedJob& job, const ReplicaReport& report,
                  const Moment& moment) {
  Replica& replica = at(job.attempt->replicas, report.key.replica);
  if (!report.is_over) {
    if (replica.phase != ReplicaPhase::kOrdered) return;
    replica.phase = ReplicaPhase::kRunning;
    replica.started_ms = unix_ms_before(moment, report.running_for);
    settle(state, job, moment);
    return;
  }
  replica.exit_status = report.exit_status;
  replica.signal = report.signal;
  replica.ended_ms = moment.unix_ms;
  if (replica.started_ms == 0) replica.started_ms = unix_ms_before(moment, report.running_for);
  set_gone(state, job, report.key.replica, ReplicaPhase::kEnded);
  const bool has_failed = report.exit_status != 0 || report.signal != 0 || report.is_node_fault;
  if (!has_failed || job.attempt->stop != StopCause::kNone) {
    settle(state, job, moment);
    return;
  }
  if (report.is_node_fault) {
    begin_stop(state, job, StopCause::kLostNode,
               fmt::format("node {} has ended a replica that it could not keep",
                           at(state.tables.nodes, replica.node).facts.name),
               moment);
    return;
  }
  job.exit_status = report.signal != 0 ? 128 + report.signal : report.exit_status;
  begin_stop(state, job, StopCause::kFailed,
             end_text(report, at(state.tables.nodes, replica.node).facts.name), moment);
}

// `why`: what is said of the node. Replicas with a lease of at most `lease_most` are lost.
void set_lost(ControllerState& state, int index, std::string_view why, Seconds lease_most,
              const Moment& moment) {
  const std::vector<PlacedReplica> placed = at(state.tables.nodes, index).replicas;
  const std::string reason =
      fmt::format("node {} {}", at(state.tables.nodes, index).facts.name, why);
  for (const auto& [id, replica] : placed) {
    ManagedJob& job = state.tables.jobs.at(id);
    if (job.attempt == nullptr || at(job.attempt->replicas, replica).is_gone() ||
        job.attempt->lease > lease_most)
      continue;
    at(job.attempt->replicas, replica).ended_ms = moment.unix_ms;
    set_gone(state, job, replica, ReplicaPhase::kLost);
    begin_stop(state, job, StopCause::kLostNode, reason, moment);
  }
}

void set_heard(ControllerState& state, int index, const Moment& moment) {
  ManagedNode& node = at(state.tables.nodes, index);
  node.last_heard = moment.now;
  if (!node.is_silent && !node.is_fenced) return;
  node.is_silent = false;
  node.is_fenced = false;
  state.changed_nodes.insert(index);
  state.needs_decision = true;
}

// While this process stood still nobody could be heard: that is no silence of the nodes.
void leave_out(Seconds gap, const Moment& moment, std::vector<ManagedNode>& nodes) {
  for (ManagedNode& node : nodes)
    node.last_heard = std::min(node.last_heard + gap, moment.now);
}

// An agent of before ends replicas by the lease of its welcome alone.
void lengthen_leases(ControllerState& state, const ManagedNode& node) {
  for (const PlacedReplica& placed : node.replicas) {
    ManagedJob& job = state.tables.jobs.at(placed.job);
    if (job.attempt->lease >= state.options.lease) continue;
    job.attempt->lease = state.options.lease;
    touch(state, job);
  }
}

}  // namespace

Result<int> ClusterController::join(const NodeIdentity& identity, const Moment& moment) {
  const sched::ClusterNode& facts = identity.facts;
  if (facts.name.empty() || facts.devices < 0 || facts.devices > sched::kNodeDevicesMax)
    return Error{Code::kInvalidInput,
                 fmt::format("node {}: it has no name, or not 0 to {} devices",
                             printable(facts.name, 60), sched::kNodeDevicesMax)};
  ClusterTables& tables = state_->tables;
  int index = tables.find_node(facts.name);
  if (index < 0) {
    index = static_cast<int>(tables.nodes.size());
    tables.nodes.emplace_back().joined_ms = moment.unix_ms;
    tables.node_indices[facts.name] = index;
  }
  const bool is_other_journal = !at(tables.nodes, index).journal_id.empty() &&
                                at(tables.nodes, index).journal_id != identity.journal_id;
  if (is_other_journal) set_lost(*state_, index, "has a new journal", sched::kLeaseNever, moment);
  ManagedNode& node = at(tables.nodes, index);
  for (const PlacedReplica& placed : node.replicas) {
    const Attempt& attempt = *tables.jobs.at(placed.job).attempt;
    if (at(attempt.replicas, placed.replica).devices >> static_cast<unsigned>(facts.devices) != 0)
      return Error{
          Code::kConflict,
          fmt::format("node {}: it has {} devices now, and job {} runs on others; drain it "
                      "first",
                      facts.name, facts.devices, handle_of(tables.jobs.at(placed.job)))};
  }
  if (node.revision == 0 || !has_same_facts(node.facts, facts) ||
      node.address != identity.address || node.journal_id != identity.journal_id) {
    node.facts = facts;
    node.address = identity.address;
    node.journal_id = identity.journal_id;
    state_->changed_nodes.insert(index);
    state_->needs_decision = true;
  }
  node.facts.failed_devices = facts.failed_devices;
  node.enforces_slices = identity.enforces_slices;
  node.has_replica_leases = identity.has_replica_leases;
  if (!node.has_replica_leases) lengthen_leases(*state_, node);
  if (!std::exchange(node.is_connected, true)) {
    state_->changed_nodes.insert(index);
    state_->needs_decision = true;
  }
  set_heard(*state_, index, moment);
  state_->ordered_nodes.insert(index);
  return index;
}

void ClusterController::hear(int index, const Moment& moment) {
  ManagedNode& node = at(state_->tables.nodes, index);
  set_heard(*state_, index, moment);
  node.is_welcome = true;
}

void ClusterController::disconnect(int index) {
  at(state_->tables.nodes, index).is_connected = false;
  state_->changed_nodes.insert(index);
}

void ClusterController::set_failed_devices(int index, std::uint32_t devices) {
  ManagedNode& node = at(state_->tables.nodes, index);
  if (node.facts.failed_devices == devices) return;
  node.facts.failed_devices = devices;
  state_->changed_nodes.insert(index);
  state_->needs_decision = true;
}

std::vector<ReplicaOrder> ClusterController::report(int index,
                                                    std::span<const ReplicaReport> reports,
                                                    bool is_complete, Revision durable,
                                                    const Moment& moment) {
  std::vector<ReplicaOrder> answers;
  std::set<ReplicaKey> listed;
  for (const ReplicaReport& report : reports) {
    listed.insert(report.key);
    ManagedJob* job = state_->tables.find_job(report.key.job);
    const bool is_current = job != nullptr && job->attempt != nullptr &&
                            job->attempt->number == report.key.attempt &&
                            job->attempt->fence == report.fence && report.key.replica >= 0 &&
                            report.key.replica < static_cast<int>(job->attempt->replicas.size()) &&
                            at(job->attempt->replicas, report.key.replica).node == index;
    if (is_current && !at(job->attempt->replicas, report.key.replica).is_gone()) {
      apply_report(*state_, *job, report, moment);
      continue;
    }
    if (!report.is_over)
      answers.push_back({.kind = OrderKind::kStop, .key = report.key, .fence = report.fence});
    else if (job == nullptr ||
             (job->revision <= durable && !state_->changed_jobs.contains(job->id)))
      answers.push_back({.kind = OrderKind::kForget, .key = report.key, .fence = report.fence});
  }
  if (!is_complete) return answers;
  // Replicas that ran, and of which the journal knows nothing: the journal is a new one.
  const std::vector<PlacedReplica> placed = at(state_->tables.nodes, index).replicas;
  for (const auto& [id, replica] : placed) {
    ManagedJob& job = state_->tables.jobs.at(id);
    if (job.attempt == nullptr) continue;
    const ReplicaKey key{id, job.attempt->number, replica};
    if (at(job.attempt->replicas, replica).phase != ReplicaPhase::kRunning || listed.contains(key))
      continue;
    at(job.attempt->replicas, replica).ended_ms = moment.unix_ms;
    set_gone(*state_, job, replica, ReplicaPhase::kLost);
    begin_stop(
        *state_, job, StopCause::kLostNode,
        fmt::format("node {} has lost its journal", at(state_->tables.nodes, index).facts.name),
        moment);
  }
  return answers;
}

std::vector<ReplicaOrder> ClusterController::orders_for(int index, Revision durable) const {
  std::vector<ReplicaOrder> orders;
  for (const auto& [id, replica] : at(state_->tables.nodes, index).replicas) {
    const ManagedJob& job = state_->tables.jobs.at(id);
    const Attempt& attempt = *job.attempt;
    if (job.revision > durable || state_->changed_jobs.contains(id)) continue;
    const Replica& placed = at(attempt.replicas, replica);
    ReplicaOrder order{
        .kind = OrderKind::kStop, .key = {id, attempt.number, replica}, .fence = attempt.fence};
    if (attempt.stop == StopCause::kNone) {
      if (placed.phase != ReplicaPhase::kOrdered) continue;
      auto spec = parse_job_spec(spec_text(state_->tables, job), "job");
      if (!spec) continue;
      order.kind = OrderKind::kStart;
      order.command = std::move(spec->command);
      order.environment = std::move(spec->environment);
      if (!spec->training.empty()) {
        order.command = {trainer::kTrainerProgram};
        order.environment.emplace_back(trainer::kTrainingVariable, std::move(spec->training));
      }
      order.working_folder = std::move(spec->working_folder);
      if (!spec->checkpoint_folder.empty())
        order.environment.emplace_back(kCheckpointVariable, std::move(spec->checkpoint_folder));
      if (job.array > 0) {
        order.environment.emplace_back("REGATTA_ARRAY", std::to_string(job.array));
        order.environment.emplace_back("REGATTA_ARRAY_INDEX", std::to_string(job.array_index));
      }
      if (!spec->container.path.empty()) {
        // An agent that knows no containers finds no such program, and runs nothing outside of one.
        order.command.insert(order.command.begin(), container::kContainerProgram);
        order.container = std::move(spec->container);
      }
      order.stop_signal = spec->stop_signal;
      order.stop_grace = spec->stop_grace;
      order.user = job.user;
      order.devices = placed.devices;
      order.slice = placed.slice;
      order.ranks = ranks_of_replica(*spec, placed.role);
      order.world_size = 0;
      order.replicas = static_cast<int>(attempt.replicas.size());
      for (int i = 0; i < order.replicas; ++i) {
        const int ranks = ranks_of_replica(*spec, at(attempt.replicas, i).role);
        if (i == replica) order.first_rank = order.world_size;
        order.world_size += ranks;
        if (replica == 0 && order.replicas <= kGangHostsMax)
          order.hosts.push_back(
              {at(state_->tables.nodes, at(attempt.replicas, i).node).address, ranks});
      }
      order.lease = attempt.lease;
      order.head_address = at(state_->tables.nodes, attempt.replicas.front().node).address;
    }
    orders.push_back(std::move(order));
  }
  return orders;
}

void ClusterController::set_fabric_faults(const std::map<std::string, std::string>& faults,
                                          const Moment& moment) {
  for (int index = 0; index < static_cast<int>(state_->tables.nodes.size()); ++index) {
    ManagedNode& node = at(state_->tables.nodes, index);
    const auto found = faults.find(node.facts.name);
    const std::string fault = found == faults.end() ? "" : found->second;
    if (node.fabric_fault.empty() != fault.empty()) state_->needs_decision = true;
    if (node.fabric_fault != fault) state_->changed_nodes.insert(index);
    node.fabric_fault = fault;
    node.fabric_fault_until = moment.now + kFabricFaultLasts;
  }
}

void ClusterController::tick(const Moment& moment) {
  const auto ended = state_->pause_ends.upper_bound(moment.now);
  if (ended != state_->pause_ends.begin()) state_->needs_decision = true;
  state_->pause_ends.erase(state_->pause_ends.begin(), ended);
  const Seconds gap = state_->last_tick ? moment.now - *state_->last_tick : Seconds{};
  state_->last_tick = moment.now;
  if (gap > kLateTick) leave_out(gap, moment, state_->tables.nodes);
  for (int index = 0; index < static_cast<int>(state_->tables.nodes.size()); ++index) {
    ManagedNode& node = at(state_->tables.nodes, index);
    if (!node.fabric_fault.empty() && node.fabric_fault_until < moment.now) {
      node.fabric_fault.clear();
      state_->changed_nodes.insert(index);
      state_->needs_decision = true;
    }
    const Seconds silence = moment.now - node.last_heard;
    if (!node.is_silent && silence > state_->options.silent_after) {
      node.is_silent = true;
      state_->changed_nodes.insert(index);
      ++state_->tables.silences;
      state_->needs_decision = true;
    }
    if (!node.is_silent || node.is_fenced) continue;
    const Seconds over = silence * (1 / kFenceFactor);
    if (node.is_welcome || over > state_->options.restart_lease)
      set_lost(*state_, index, "has not been heard", over, moment);
    node.is_fenced = node.replicas.empty();
    if (node.is_fenced) state_->changed_nodes.insert(index);
  }
}

}  // namespace regatta::control
