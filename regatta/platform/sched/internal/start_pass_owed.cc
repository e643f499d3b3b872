// Pending jobs that their queues are guaranteed: sched/internal/start_pass.h.
#include <algorithm>
#include <cstddef>
#include <span>
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
  // By leaf: jobs that are not within a guarantee, first to last.
  std::vector<std::vector<int>> ahead(as_index(state_.queue.quotas.size()));
  for (int pending = round.next(); pending >= 0; pending = round.next()) {
    if (is_started(pending)) continue;
    const int leaf = leaf_of(pending);
    if (!is_below_guarantee(leaf)) {
      if (state_.policy.is_fair) break;  // so are all that follow
      continue;
    }
    const int owed = owed_distance(pending);
    if (owed < 0) {
      at(ahead, leaf).push_back(pending);
    } else if (owed <= distance && !is_behind(pending, at(ahead, leaf)) && !try_start(pending)) {
      is_changed = true;
      if (has_made_room_) round.reorder();
      continue;
    }
    if (state_.policy.backfill == BackfillRule::kNone) round.close_line_of(pending);
  }
  return is_changed;
}

bool StartPass::is_below_guarantee(int leaf) const {
  const QuotaTree& tree = state_.queue.quotas;
  for (int queue = leaf; queue >= 0; queue = tree.parent(queue))
    if (state_.guarantees.is_below(queue, state_.usage.of_queue(queue))) return true;
  return false;
}

// Whether one of the jobs ahead in its line fits now, and would evict it later. Those that do not
// fit are left out of `ahead`.
bool StartPass::is_behind(int pending, std::vector<int>& ahead) {
  if (!state_.policy.preempts) return false;
  const auto& levels = state_.policy.service_levels;
  const PendingJob& job = at(state_.queue.jobs, pending);
  const auto would_evict = [&](const PendingJob& first) {
    if (first.request.priority != job.request.priority)
      return first.request.priority > job.request.priority;
    return service_level(levels, first.request, first.completed) <
           service_level(levels, job.request, job.completed);
  };
  for (std::size_t i = 0; i < ahead.size();) {
    if (!would_evict(at(state_.queue.jobs, ahead[i]))) {
      ++i;
    } else if (fits_now(ahead[i])) {
      return true;
    } else {
      ahead.erase(ahead.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return false;
}

bool StartPass::fits_now(int pending) {
  const JobRequest& job = at(state_.queue.jobs, pending).request;
  if (!admits(state_, job, smallest_size(job))) return false;
  const int shape = shapes_.shape_of(job);
  if (has_failed(0, shape)) return false;
  if (place_gang(state_.free, {job, smallest_size(job), state_.weights})) return true;
  set_failed(0, shape);
  return false;
}

int StartPass::owed_distance(int pending) {
  const JobRequest& request = at(state_.queue.jobs, pending).request;
  if (state_.quota_types.empty()) return owed_distance_as(pending, request);
  int least = -1;
  for (const JobRequest& job : by_device_type(state_, request)) {
    const int distance = owed_distance_as(pending, job);
    if (distance >= 0 && (least < 0 || distance < least)) least = distance;
  }
  return least;
}

int StartPass::owed_distance_as(int pending, const JobRequest& job) {
  if (!state_.policy.reclaims) return -1;
  return state_.guarantees.entitled_distance(state_.usage, claim_of(pending, job), -1);
}

QuotaClaim StartPass::claim_of(int pending, const JobRequest& job) {
  return {.leaf = leaf_of(pending),
          .amounts = wanted(job, shape_of(pending, job)),
          .was_evicted = at(state_.queue.jobs, pending).evictions > 0};
}

void StartPass::run_before(const RunningJob& service) {
  service_ = &service;
  const auto first =
      std::span(service.replicas).first(std::min<std::size_t>(1, service.replicas.size()));
  const QuotaClaim growth{.leaf = state_.usage.leaf_of(state_.accounts.at(&service.request)),
                          .amounts = amounts_on(state_, service.request, first)};
  is_service_owed_ =
      state_.policy.reclaims && state_.guarantees.is_entitled(state_.usage, growth, -1);
  room_searches_left_ = 0;
  start_in(PendingOrder(state_));
  state_.reservations.clear();
}

bool StartPass::goes_before_service(int pending) {
  if (at(state_.queue.jobs, pending).request.priority <= service_->request.priority) return false;
  return !is_service_owed_ || owed_distance(pending) >= 0;
}

}  // namespace regatta::sched
