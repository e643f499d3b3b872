// Jobs that are over and idempotency keys leave the controller when they are old.
#include <algorithm>
#include <vector>

#include "regatta/platform/control/cluster_controller.h"
#include "regatta/platform/control/internal/attempts.h"

namespace regatta::control {
namespace {

constexpr int kRemovedMost = 5000;  // jobs, and keys, of one call

}  // namespace

void find_aging(ControllerState& state) {
  std::vector<const ManagedJob*> ended;
  for (const auto& [id, job] : state.tables.jobs)
    if (is_over(job.phase)) ended.push_back(&job);
  std::stable_sort(ended.begin(), ended.end(), [](const ManagedJob* a, const ManagedJob* b) {
    return a->ended_ms < b->ended_ms;
  });
  for (const ManagedJob* job : ended)
    state.ended_jobs.emplace_back(job->submitted, job->id);
  for (const auto& [key, once] : state.tables.once)
    state.once_keys.emplace_back(once.created, key);
}

void ClusterController::remove_old(Revision durable, const Moment& moment) {
  ControllerState& state = *state_;
  for (int i = 0; i < kRemovedMost && !state.ended_jobs.empty(); ++i) {
    const auto [ended, id] = state.ended_jobs.front();
    if (moment.now - ended < state.options.ended_kept &&
        state.ended_jobs.size() <= state.options.ended_most)
      break;
    // The numbers of jobs go on from the last one, also after a restart.
    const bool is_durable =
        state.tables.jobs.at(id).revision <= durable && !state.changed_jobs.contains(id);
    if (id == state.tables.last_job || !is_durable) break;
    state.ended_jobs.pop_front();
    // The first one of an array has the spec of all, so it leaves last.
    const auto next = state.tables.jobs.upper_bound(id);
    if (next != state.tables.jobs.end() && next->second.array == id) {
      state.ended_jobs.emplace_back(moment.now, id);
      continue;
    }
    state.tables.dependents.erase(id);
    state.tables.jobs.erase(id);
    state.removed_jobs.insert(id);
  }
  for (int i = 0; i < kRemovedMost && !state.once_keys.empty(); ++i) {
    const auto& [created, key] = state.once_keys.front();
    if (moment.now - created < state.options.once_kept) break;
    state.tables.once.erase(key);
    state.changed_once.erase(key);
    state.removed_once.insert(key);
    state.once_keys.pop_front();
  }
}

}  // namespace regatta::control
