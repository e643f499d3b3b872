#include "regatta/platform/control/scheduling_view.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"

namespace regatta::control {
namespace {

std::vector<sched::ReplicaPlacement> placements(const std::vector<Replica>& replicas) {
  std::vector<sched::ReplicaPlacement> made;
  made.reserve(replicas.size());
  for (const Replica& replica : replicas)
    made.push_back({.role = replica.role, .node = replica.node, .devices = replica.devices});
  return made;
}

std::vector<Replica> places_of(const sched::SchedulingAction& action) {
  std::vector<Replica> places;
  for (const sched::ReplicaPlacement& placement : action.replicas) {
    Replica& place = places.emplace_back();
    place.role = placement.role;
    place.node = placement.node;
    place.devices = placement.devices;
  }
  return places;
}

bool is_ready(const ClusterTables& tables, const ManagedJob& job, Seconds now) {
  if (job.is_held || job.not_before > now) return false;
  return std::all_of(job.after.begin(), job.after.end(), [&](JobId id) {
    const ManagedJob* before = tables.find_job(id);
    return before == nullptr || before->phase == JobPhase::kSucceeded;
  });
}

// The job's request as the scheduler wants it.
sched::JobRequest request_of(const ClusterTables& tables, const ManagedJob& job) {
  sched::JobRequest request = submitted_request(tables, job);
  request.name = snapshot_name(job);
  request.queue = job.queue;
  request.user = job.user;
  request.priority = job.priority;
  request.submitted = job.submitted;
  return request;
}

sched::RunningJob running_job(const ClusterTables& tables, const ManagedJob& job, Seconds now) {
  sched::RunningJob running;
  running.request = request_of(tables, job);
  const bool moves = job.attempt->stop == StopCause::kMoved;
  running.replicas = placements(moves ? job.next : job.attempt->replicas);
  running.started = job.attempt->started;
  running.completed = job.completed;
  const Seconds interval = running.request.checkpointing.interval;
  const double intervals =
      interval.value > 0 ? std::floor((now - running.started).value / interval.value) : 0;
  running.checkpointed = running.started + interval * intervals;
  // Until its processes run, or while they stop, it is not moved again.
  if (job.phase != JobPhase::kRunning) running.request.is_preemptible = false;
  return running;
}

std::string waiting_text(const sched::WaitingJob& waiting) {
  switch (waiting.cause) {
    case sched::WaitCause::kQuota:
      return waiting.detail.empty() ? "its queue or user is at a limit" : waiting.detail;
    case sched::WaitCause::kNoRoom:
      return "there is no room for it now";
    case sched::WaitCause::kReservation:
      return waiting.detail.empty() ? "it would delay a job that goes before it"
                                    : fmt::format("it would delay job {}", waiting.detail);
    case sched::WaitCause::kSpares:
      return "the nodes that would hold it are kept free for large gangs that fail";
    case sched::WaitCause::kDegraded:
      return "it lost nodes, and keeps its places until they return";
    case sched::WaitCause::kNeverFits:
      return fmt::format("no nodes here hold it, even when all are free{}{}",
                         waiting.detail.empty() ? "" : ": ", waiting.detail);
  }
  return "";
}

}  // namespace

SchedulingView scheduling_view(const ClusterTables& tables, Seconds now, std::size_t depth) {
  SchedulingView view;
  view.snapshot.now = now;
  view.snapshot.nodes.reserve(tables.nodes.size());
  for (const ManagedNode& node : tables.nodes) {
    view.snapshot.nodes.push_back(node.facts);
    view.snapshot.nodes.back().health = health_of(node);
  }
  std::map<JobId, int> of_array;  // that are there at once
  for (const JobId id : tables.live) {
    const ManagedJob& job = tables.jobs.at(id);
    if (job.array_limit > 0) ++of_array[job.array];
    const StopCause stop = job.attempt->stop;
    if (stop == StopCause::kNone || (stop == StopCause::kMoved && !job.is_cancelled))
      view.snapshot.running.push_back(running_job(tables, job, now));
  }
  view.queue.quotas = tables.quotas;
  for (const auto& [queue, keys] : tables.pending) {
    std::size_t taken = 0;
    for (const auto& [priority, id] : keys) {
      const ManagedJob& job = tables.jobs.at(id);
      if (!is_ready(tables, job, now)) continue;
      if (job.array_limit > 0 && ++of_array[job.array] > job.array_limit) continue;
      if (++taken > depth) break;
      view.queue.jobs.push_back({.request = request_of(tables, job),
                                 .completed = job.completed,
                                 .evictions = job.evictions});
    }
  }
  return view;
}

CarriedOut carry_out(const sched::SchedulingDecision& decision, ClusterController& controller,
                     const Moment& moment) {
  CarriedOut result;
  for (const sched::SchedulingAction& action : decision.actions) {
    const JobId id = job_of_handle(action.job);
    Status status;
    switch (action.kind) {
      case sched::ActionKind::kStart:
        status = controller.start(id, places_of(action), moment);
        break;
      case sched::ActionKind::kEvict:
        status = controller.evict(id, action.reason, moment);
        break;
      case sched::ActionKind::kShrink:
      case sched::ActionKind::kGrow:
      case sched::ActionKind::kReplace:
      case sched::ActionKind::kMove:
        status = controller.move(id, places_of(action), action.reason, moment);
        break;
    }
    ++(status ? result.actions : result.outdated);
  }
  for (const sched::WaitingJob& waiting : decision.waiting)
    controller.set_waiting_reason(job_of_handle(waiting.job), waiting_text(waiting));
  return result;
}

}  // namespace regatta::control
