#include "regatta/platform/sched/internal/earliest_start.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/job_progress.h"

namespace regatta::sched {
namespace {

struct ExpectedEnd {
  Seconds time;
  const JobRequest* job = nullptr;
  std::span<const ReplicaPlacement> replicas;
};

std::vector<ExpectedEnd> expected_ends(const DecisionState& state) {
  std::vector<ExpectedEnd> ends;
  for (std::size_t i = 0; i < state.running.size(); ++i) {
    const RunningJob& job = state.snapshot.running[i];
    const Seconds end = end_time(state.snapshot, job, 0.5);
    if (state.running[i].is_evicted || !std::isfinite(end.value)) continue;
    ends.push_back({end, &job.request, state.running[i].replicas});
  }
  for (std::size_t i = 0; i < state.started.size(); ++i) {
    if (state.started[i].empty()) continue;
    const PendingJob& job = state.queue.jobs[i];
    const Seconds end = state.snapshot.now + expected_run_time(job.request, job.completed, 0.5);
    if (std::isfinite(end.value)) ends.push_back({end, &job.request, state.started[i]});
  }
  std::stable_sort(ends.begin(), ends.end(),
                   [](const ExpectedEnd& a, const ExpectedEnd& b) { return a.time < b.time; });
  return ends;
}

// The place of the job once the first `count` jobs have ended.
std::optional<GangPlacement> place_after(const DecisionState& state, const FreeCapacity& now,
                                         std::span<const ExpectedEnd> ends, const JobRequest& job) {
  FreeCapacity free = now;
  for (const ExpectedEnd& end : ends)
    for (const ReplicaPlacement& replica : end.replicas)
      free.give(at(end.job->roles, replica.role), replica);
  for (const StartReservation& reservation : state.reservations)
    block_reservation(state, reservation, free);
  return place_gang(free, {job, smallest_size(job), state.weights});
}

}  // namespace

std::optional<StartReservation> earliest_start(const DecisionState& state, int pending) {
  const JobRequest& job = at(state.queue.jobs, pending).request;
  const std::vector<ExpectedEnd> ends = expected_ends(state);
  const std::span<const ExpectedEnd> all(ends);
  auto place = place_after(state, state.free, all, job);
  if (!place) return std::nullopt;
  // More ends never take room away, so that the first number of them with room is found by halves.
  std::size_t low = 0;
  std::size_t high = ends.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    auto found = place_after(state, state.free, all.first(middle), job);
    if (found) {
      place = std::move(found);
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  const Seconds start = low == 0 ? state.snapshot.now : ends[low - 1].time;
  return StartReservation{.pending = pending, .start = start, .replicas = place->replicas};
}

}  // namespace regatta::sched
