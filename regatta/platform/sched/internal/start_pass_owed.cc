// Pending jobs that their queues are guaranteed: sched/internal/start_pass.h.
#include <algorithm>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/job_progress.h"
#include "regatta/platform/sched/internal/start_pass.h"

namespace regatta::sched {

// Jobs that their queues are guaranteed start before jobs of other queues take their room, those
// of the lowest queues first. A start may lift a queue above its guarantee, and others may take
// back from it then: so again.
void StartPass::start_owed(const PendingOrder& order) {
  const int others = std::exchange(room_searches_left_, owed_room_searches_left_);
  const QuotaTree& tree = state_.queue.quotas;
  int height_max = 0;
  for (const int top : tree.children(-1))
    height_max = std::max(height_max, tree.height(top));
  for (int distance = 0; distance <= height_max;)
    distance = start_owed_within(order, distance) ? 0 : distance + 1;
  owed_room_searches_left_ = std::exchange(room_searches_left_, others);
  owed_distance_max_ = -1;
  starts_of_owed_ = starts_;
}

// Whether one started.
bool StartPass::start_owed_within(const PendingOrder& order, int distance) {
  owed_distance_max_ = distance;
  failed_.clear();
  failed_rooms_.clear();
  bool is_changed = false;
  PendingOrder round = order;
  round.reorder();
  std::map<int, int> first_in_line;  // by leaf: the first job that fits and is not owed
  for (int pending = round.next(); pending >= 0; pending = round.next()) {
    if (is_started(pending)) continue;
    const int owed = owed_distance(pending);
    if (owed < 0 || is_behind(pending, first_in_line)) {
      note_first(pending, first_in_line);
    } else if (owed <= distance && !try_start(pending)) {
      is_changed = true;
      if (has_made_room_) round.reorder();
      continue;
    }
    if (state_.policy.backfill == BackfillRule::kNone) round.close_line_of(pending);
  }
  return is_changed;
}

// A job of its own queue goes first that would evict it later.
bool StartPass::is_behind(int pending, const std::map<int, int>& first_in_line) const {
  const auto first = first_in_line.find(leaf_of(pending));
  if (first == first_in_line.end()) return false;
  const PendingJob& job = at(state_.queue.jobs, pending);
  const PendingJob& ahead = at(state_.queue.jobs, first->second);
  if (ahead.request.priority != job.request.priority)
    return ahead.request.priority > job.request.priority;
  const auto& levels = state_.policy.service_levels;
  return service_level(levels, ahead.request, ahead.completed) <
         service_level(levels, job.request, job.completed);
}

void StartPass::note_first(int pending, std::map<int, int>& first_in_line) {
  const JobRequest& job = at(state_.queue.jobs, pending).request;
  if (!state_.policy.preempts || first_in_line.contains(leaf_of(pending)) ||
      !admits(state_, job, smallest_size(job)))
    return;
  const std::string shape = shape_of(job);
  if (failed_.contains({0, shape})) return;
  if (place_gang(state_.free, {job, smallest_size(job), state_.weights}))
    first_in_line.emplace(leaf_of(pending), pending);
  else
    failed_.emplace(0, shape);
}

int StartPass::owed_distance(int pending) const {
  const JobRequest& request = at(state_.queue.jobs, pending).request;
  if (state_.quota_types.empty()) return owed_distance_as(pending, request);
  int least = -1;
  for (const JobRequest& job : by_device_type(state_, request)) {
    const int distance = owed_distance_as(pending, job);
    if (distance >= 0 && (least < 0 || distance < least)) least = distance;
  }
  return least;
}

int StartPass::owed_distance_as(int pending, const JobRequest& job) const {
  if (!state_.policy.reclaims) return -1;
  const QuotaClaim claim{.leaf = leaf_of(pending),
                         .amounts = amounts_wanted(state_, job, smallest_size(job)),
                         .was_evicted = at(state_.queue.jobs, pending).evictions > 0};
  return state_.guarantees.entitled_distance(state_.usage, claim, -1);
}

}  // namespace regatta::sched
