// Pending jobs start in the order of their queues; those before which there is no room keep a
// reservation: sched/internal/decision_state.h.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/earliest_start.h"
#include "regatta/platform/sched/internal/job_progress.h"
#include "regatta/platform/sched/internal/make_room.h"
#include "regatta/platform/sched/internal/service_size.h"
#include "regatta/platform/sched/internal/start_pass.h"
#include "regatta/platform/sched/internal/unfit_reason.h"

namespace regatta::sched {

StartPass::StartPass(DecisionState& state)
    : state_(state),
      slices_(state.snapshot, state.queue, state.policy),
      shape_of_(state.queue.jobs.size(), -1),
      was_withdrawn_(state.queue.jobs.size(), 0) {}

void StartPass::run() {
  const PendingOrder order(state_);
  const bool has_guarantees = state_.policy.reclaims && state_.guarantees.is_any();
  if (has_guarantees) start_owed(order);
  withdrawn_.clear();  // they are considered again
  std::vector<Waiting> waiting = start_in(order);
  // Others may take back from a queue that what started lifted above its guarantee.
  for (bool is_first = true;; is_first = false) {
    const int before = starts_;
    if (has_guarantees && starts_ > starts_of_owed_) start_owed(order);
    add_withdrawn(waiting);
    if (!is_first && starts_ == before) break;
    use_what_victims_left(waiting);
  }
  for (const Waiting& job : waiting)
    if (!is_started(job.pending)) add_waiting(job);
}

std::vector<StartPass::Waiting> StartPass::start_in(PendingOrder order) {
  std::vector<Waiting> waiting;
  order.reorder();
  for (int pending = order.next(); pending >= 0; pending = order.next()) {
    if (is_started(pending)) continue;
    if (service_ != nullptr && !goes_before_service(pending)) continue;
    const auto cause = try_start(pending);
    if (!cause) {
      if (has_made_room_) order.reorder();
      continue;
    }
    waiting.push_back({pending, *cause});
    if (*cause == WaitCause::kReservation && state_.reservations.size() == 1)
      waiting.back().behind = state_.reservations.front().pending;
    const bool waits_for_room = *cause == WaitCause::kNoRoom || *cause == WaitCause::kReservation;
    if (state_.policy.backfill == BackfillRule::kNone && waits_for_room) {
      for (const int behind : order.close_line_of(pending))
        waiting.push_back({behind, WaitCause::kReservation, pending});
      continue;
    }
    if (state_.policy.backfill == BackfillRule::kReservation && *cause == WaitCause::kNoRoom &&
        static_cast<int>(state_.reservations.size()) < state_.policy.reservations)
      reserve(pending);
  }
  return waiting;
}

void StartPass::add_waiting(const Waiting& waiting) {
  const JobRequest& job = at(state_.queue.jobs, waiting.pending).request;
  WaitingJob added{.job = job.name, .cause = waiting.cause, .detail = {}};
  if (waiting.cause == WaitCause::kQuota) {
    const auto limit = quota_passed(state_, job, smallest_size(job));
    if (limit) added.detail = limit_text(state_.queue.quotas, *limit, job.user);
  } else if (waiting.cause == WaitCause::kNeverFits) {
    const auto [reason, is_new] = unfit_reasons_.try_emplace(shapes_.shape_of(job));
    if (is_new) reason->second = unfit_reason(state_.snapshot.nodes, job);
    added.detail = reason->second;
  } else if (waiting.cause == WaitCause::kReservation && waiting.behind >= 0) {
    added.detail = at(state_.queue.jobs, waiting.behind).request.name;
  }
  if (waiting.cause == WaitCause::kNoRoom && fits_on_spares(waiting.pending))
    added.cause = WaitCause::kSpares;
  state_.decision.waiting.push_back(std::move(added));
}

bool StartPass::fits_on_spares(int pending) {
  if (state_.precautions.spares.empty()) return false;
  const JobRequest& job = at(state_.queue.jobs, pending).request;
  const int shape = shapes_.shape_of(job);
  const auto known = fits_spares_.find(shape);
  if (known != fits_spares_.end()) return known->second;
  FreeCapacity free = state_.free;
  set_all_open(free, state_.precautions.spares, true);
  return fits_spares_.emplace(shape, place(pending, job, free).has_value()).first->second;
}

// Victims may have had more than the gang takes: jobs before it in the order may fit now.
void StartPass::use_what_victims_left(std::vector<Waiting>& waiting) {
  if (!has_made_room_ || state_.policy.backfill == BackfillRule::kNone) return;
  failed_.clear();
  failed_mixes_.clear();
  failed_rooms_.clear();
  room_searches_left_ = 0;
  std::erase_if(waiting, [&](const Waiting& job) {
    return job.cause != WaitCause::kQuota && job.cause != WaitCause::kNeverFits &&
           !is_started(job.pending) && !try_start(job.pending).has_value();
  });
}

// A job that ends before a reservation begins may use what it holds.
const FreeCapacity& StartPass::view_for(int pending, int& view) {
  const PendingJob& job = at(state_.queue.jobs, pending);
  const Seconds end = state_.snapshot.now + expected_run_time(job.request, job.completed, 0.5);
  view = 0;
  while (view < static_cast<int>(state_.reservations.size()) &&
         at(state_.reservations, view).start < end)
    ++view;
  if (view == 0) return state_.free;
  if (views_.empty()) views_.push_back(state_.free);
  while (static_cast<int>(views_.size()) <= view) {
    const StartReservation& reservation =
        at(state_.reservations, static_cast<int>(views_.size()) - 1);
    FreeCapacity free = views_.back();
    block_reservation(state_, reservation, free);
    views_.push_back(std::move(free));
  }
  return at(views_, view);
}

std::optional<GangPlacement> StartPass::place(int pending, const JobRequest& job,
                                              const FreeCapacity& free) {
  if (follows_demand(state_.policy, job))
    return place_service(state_, job, account_of(pending), free);
  if (auto slice = slices_.place(job, free)) return slice;
  return place_gang(free, {job, smallest_size(job), state_.weights});
}

int StartPass::shape_of(int pending, const JobRequest& job) {
  int& known = at(shape_of_, pending);
  const bool is_known = &job == &at(state_.queue.jobs, pending).request;
  if (is_known && known >= 0) return known;
  const bool is_mixed = state_.mixes && may_share_devices(job);
  const int shape = shapes_.shape_of(job, is_mixed ? state_.mixes->kinds_text(job) : "");
  if (is_known) known = shape;
  return shape;
}

const ResourceAmounts& StartPass::wanted(const JobRequest& job, int shape) {
  if (shape >= std::ssize(amounts_)) amounts_.resize(as_index(shapes_.size()));
  auto& amounts = at(amounts_, shape);
  if (!amounts) amounts = amounts_wanted(state_, job, smallest_size(job));
  return *amounts;
}

bool StartPass::has_failed(int view, int shape) const {
  return view < std::ssize(failed_) && shape < std::ssize(at(failed_, view)) &&
         at(at(failed_, view), shape) != 0;
}

void StartPass::set_failed(int view, int shape) {
  if (view >= std::ssize(failed_)) failed_.resize(as_index(view) + 1);
  std::vector<char>& shapes = at(failed_, view);
  if (shape >= std::ssize(shapes)) shapes.resize(as_index(shapes_.size()));
  at(shapes, shape) = 1;
}

// Where quotas name device types, on each of them alone, and nobody makes room on one where another
// is free.
std::optional<WaitCause> StartPass::try_start(int pending) {
  const JobRequest& request = at(state_.queue.jobs, pending).request;
  if (state_.quota_types.empty()) return try_start_as(pending, request, true);
  WaitCause cause = WaitCause::kQuota;
  const std::vector<JobRequest> jobs = by_device_type(state_, request);
  for (const bool may_make_room : {false, true}) {
    for (const JobRequest& job : jobs) {
      if (owed_distance_max_ >= 0) {
        const int owed = owed_distance_as(pending, job);
        if (owed < 0 || owed > owed_distance_max_) continue;
      }
      const auto failed = try_start_as(pending, job, may_make_room);
      if (!failed) return std::nullopt;
      if (cause == WaitCause::kQuota || *failed == WaitCause::kNoRoom) cause = *failed;
    }
  }
  return cause;
}

std::optional<WaitCause> StartPass::try_start_as(int pending, const JobRequest& job,
                                                 bool may_make_room) {
  const int shape = shape_of(pending, job);
  if (!state_.usage.admits(account_of(pending), wanted(job, shape))) return WaitCause::kQuota;
  int view = 0;
  const FreeCapacity& free = view_for(pending, view);
  std::string room;
  if (auto placement = place_free_or_mixed(job, {free, view, pending}, shape, room)) {
    started_free_.push_back(pending);
    start(pending, std::move(placement->replicas), room);
    return std::nullopt;
  }
  if (!fits_empty_cluster(job, shape)) return WaitCause::kNeverFits;
  // It would fit, but for reservations: those of its queue's guarantee pass them.
  if (view > 0 && !has_failed(0, shape)) {
    if (auto placement = place(pending, job, state_.free)) {
      if (owed_distance_as(pending, job) < 0) return WaitCause::kReservation;
      start(pending, std::move(placement->replicas), "; its queue is guaranteed them");
      failed_.clear();
      failed_mixes_.clear();
      failed_rooms_.clear();
      return std::nullopt;
    }
    set_failed(0, shape);
  }
  if (!may_make_room) return WaitCause::kNoRoom;
  if (auto placement = find_room(pending, job, room)) {
    start(pending, std::move(placement->replicas), room);
    failed_.clear();
    failed_mixes_.clear();
    failed_rooms_.clear();
    has_made_room_ = true;
    return std::nullopt;
  }
  return WaitCause::kNoRoom;
}

// Nodes that are not ready may come back, and hold jobs again then. They are looked at only where
// the others do not suffice.
bool StartPass::fits_empty_cluster(const JobRequest& job, int shape) {
  if (shape >= std::ssize(fits_empty_)) fits_empty_.resize(as_index(shapes_.size()));
  if (at(fits_empty_, shape)) return *at(fits_empty_, shape);
  if (!empty_) {
    empty_.emplace(state_.free);
    const auto give_all = [&](const JobRequest& owner,
                              const std::vector<ReplicaPlacement>& replicas) {
      for (const ReplicaPlacement& replica : replicas)
        empty_->give(at(owner.roles, replica.role), replica);
    };
    for (int i = 0; i < static_cast<int>(state_.running.size()); ++i)
      give_all(at(state_.snapshot.running, i).request, at(state_.running, i).replicas);
    for (int i = 0; i < static_cast<int>(state_.started.size()); ++i)
      give_all(at(state_.queue.jobs, i).request, at(state_.started, i));
  }
  bool fits = place_gang(*empty_, {job, smallest_size(job), state_.weights}).has_value();
  if (!fits && !repaired_) {
    repaired_nodes_.nodes = state_.snapshot.nodes;
    for (ClusterNode& node : repaired_nodes_.nodes) {
      node.health = NodeHealth::kReady;
      node.failed_devices = 0;
    }
    repaired_.emplace(repaired_nodes_);
  }
  if (!fits) fits = place_gang(*repaired_, {job, smallest_size(job), state_.weights}).has_value();
  at(fits_empty_, shape) = fits;
  return fits;
}

std::optional<GangPlacement> StartPass::find_room(int pending, const JobRequest& request,
                                                  std::string& text) {
  const PendingJob& job = at(state_.queue.jobs, pending);
  if (room_searches_left_ <= 0) return std::nullopt;
  const bool was_evicted = job.evictions > 0;
  const int leaf = leaf_of(pending);
  const RoomKey key{was_evicted, request.priority,
                    service_level(state_.policy.service_levels, request, job.completed),
                    shape_of(pending, request), leaf};
  if (failed_rooms_.count(key) > 0) return std::nullopt;
  RoomRequest room{.job = request,
                   .size = smallest_size(request),
                   .kept = {},
                   .work = job.completed,
                   .was_evicted = was_evicted,
                   .leaf = leaf};
  --room_searches_left_;
  if (state_.policy.moves > 0 && has_free_devices(state_, room) &&
      static_cast<int>(state_.reservations.size()) < state_.policy.reservations) {
    const auto wait = earliest_start(state_, pending);
    const Seconds start = wait ? wait->start : state_.snapshot.now;
    if (auto placement = move_jobs(state_, room, start, text)) return placement;
  }
  auto placement = make_room(state_, room, text);
  if (!placement && owed_distance_max_ >= 0) placement = withdraw_for(pending, request, text);
  if (!placement) failed_rooms_.insert(key);
  return placement;
}

void StartPass::start(int pending, std::vector<ReplicaPlacement> replicas,
                      const std::string& room) {
  const PendingJob& job = at(state_.queue.jobs, pending);
  take(state_, job.request, replicas);
  ++starts_;
  std::string need;
  if (follows_demand(state_.policy, job.request)) {
    const std::size_t actions = state_.decision.actions.size();
    need = "; " + complete_service(state_, job, replicas);
    if (state_.decision.actions.size() > actions) {
      failed_.clear();
      failed_mixes_.clear();
      failed_rooms_.clear();
      has_made_room_ = true;
    }
  }
  views_.clear();
  // Others may come to its devices.
  if (state_.mixes && may_share_devices(job.request)) failed_mixes_.clear();
  at(state_.started, pending) = replicas;
  const Seconds waited = state_.snapshot.now - job.request.submitted;
  add_action(state_, ActionKind::kStart, job.request, replicas,
             fmt::format("starts on {}{}{}{}", place_text(state_, job.request, replicas),
                         waited.value > 0 ? " after " + format_duration(waited) : "", room, need));
}

void StartPass::reserve(int pending) {
  auto reservation = earliest_start(state_, pending);
  if (!reservation) return;
  const auto place = std::upper_bound(
      state_.reservations.begin(), state_.reservations.end(), reservation->start,
      [](Seconds start, const StartReservation& other) { return start < other.start; });
  state_.reservations.insert(place, std::move(*reservation));
  views_.clear();
  // All views but the first stand for other reservations now.
  if (failed_.size() > 1) failed_.resize(1);
  failed_mixes_.clear();
}

void start_pending_jobs(DecisionState& state) {
  StartPass(state).run();
}

void start_jobs_before(DecisionState& state, const RunningJob& service) {
  const int priority = service.request.priority;
  const bool is_any =
      std::any_of(state.queue.jobs.begin(), state.queue.jobs.end(),
                  [priority](const PendingJob& job) { return job.request.priority > priority; });
  if (is_any) StartPass(state).run_before(service);
}

}  // namespace regatta::sched
