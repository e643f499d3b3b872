// Pending jobs start in the order of their queues; those before which there is no room keep a
// reservation: sched/internal/decision_state.h.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/earliest_start.h"
#include "regatta/platform/sched/internal/job_progress.h"
#include "regatta/platform/sched/internal/job_shapes.h"
#include "regatta/platform/sched/internal/make_room.h"
#include "regatta/platform/sched/internal/pending_order.h"
#include "regatta/platform/sched/internal/slice_placement.h"

namespace regatta::sched {
namespace {

constexpr int kRoomSearchesMax = 32;  // of one decision

class StartPass {
 public:
  explicit StartPass(DecisionState& state)
      : state_(state),
        slices_(state.snapshot, state.queue, state.policy),
        shape_of_(state.queue.jobs.size(), -1) {}

  void run();

 private:
  struct Waiting {
    int pending = 0;
    WaitCause cause = WaitCause::kNoRoom;
  };

  // Nothing: the job starts.
  std::optional<WaitCause> try_start(int pending);
  std::optional<GangPlacement> place(int pending, const FreeCapacity& free);
  std::optional<GangPlacement> find_room(int pending, std::string& text);
  void start(int pending, std::vector<ReplicaPlacement> replicas, const std::string& room);
  void reserve(int pending);
  void use_what_victims_left(std::vector<Waiting>& waiting);
  void add_waiting(const Waiting& waiting);
  const FreeCapacity& view_for(int pending, int& view);
  bool is_owed(int pending) const;
  int shape_of(int pending);
  bool is_admitted(int pending);
  bool has_failed(int view, int shape) const;
  void set_failed(int view, int shape);
  bool fits_empty_cluster(const JobRequest& job, int shape);

  DecisionState& state_;
  SlicePlacement slices_;
  // views_[i]: what is free beside the first i reservations; the first is state_.free.
  std::vector<FreeCapacity> views_;
  JobShapes shapes_;
  std::vector<int> shape_of_;              // by pending job; -1: not known yet
  std::vector<ResourceAmounts> amounts_;   // of the smallest size, by shape
  std::vector<std::vector<char>> failed_;  // by view and shape: such jobs did not fit
  // Was evicted, priority, level of service, shape, leaf: these decide who makes room.
  using RoomKey = std::tuple<bool, int, int, int, int>;
  std::set<RoomKey> failed_rooms_;     // of gangs for which nobody makes room
  std::optional<FreeCapacity> empty_;  // the cluster without any job
  ClusterSnapshot repaired_nodes_;     // all ready
  std::optional<FreeCapacity> repaired_;
  std::vector<std::optional<bool>> fits_empty_;  // by shape
  int room_searches_ = 0;
  bool has_made_room_ = false;
};

void StartPass::run() {
  PendingOrder order(state_);
  std::vector<Waiting> waiting;
  for (int pending = order.next(); pending >= 0; pending = order.next()) {
    const auto cause = try_start(pending);
    if (!cause) {
      if (has_made_room_) order.reorder();
      continue;
    }
    waiting.push_back({pending, *cause});
    const bool waits_for_room = *cause == WaitCause::kNoRoom || *cause == WaitCause::kReservation;
    if (state_.policy.backfill == BackfillRule::kNone && waits_for_room) {
      for (const int behind : order.close_line_of(pending))
        waiting.push_back({behind, WaitCause::kReservation});
      continue;
    }
    if (state_.policy.backfill == BackfillRule::kReservation && *cause == WaitCause::kNoRoom &&
        static_cast<int>(state_.reservations.size()) < state_.policy.reservations)
      reserve(pending);
  }
  use_what_victims_left(waiting);
  for (const Waiting& job : waiting)
    add_waiting(job);
}

void StartPass::add_waiting(const Waiting& waiting) {
  const JobRequest& job = at(state_.queue.jobs, waiting.pending).request;
  WaitingJob added{.job = job.name, .cause = waiting.cause, .detail = {}};
  if (waiting.cause == WaitCause::kQuota) {
    const auto limit = quota_passed(state_, job, smallest_size(job));
    if (limit) added.detail = limit_text(state_.queue.quotas, *limit, job.user);
  }
  state_.decision.waiting.push_back(std::move(added));
}

// Victims may have had more than the gang takes: jobs before it in the order may fit now.
void StartPass::use_what_victims_left(std::vector<Waiting>& waiting) {
  if (!has_made_room_ || state_.policy.backfill == BackfillRule::kNone) return;
  failed_.clear();
  failed_rooms_.clear();
  room_searches_ = kRoomSearchesMax;
  std::erase_if(waiting, [&](const Waiting& job) {
    return job.cause != WaitCause::kQuota && job.cause != WaitCause::kNeverFits &&
           !try_start(job.pending).has_value();
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

std::optional<GangPlacement> StartPass::place(int pending, const FreeCapacity& free) {
  const JobRequest& job = at(state_.queue.jobs, pending).request;
  if (auto slice = slices_.place(job, free)) return slice;
  return place_gang(free, {job, smallest_size(job), state_.weights});
}

int StartPass::shape_of(int pending) {
  int& shape = at(shape_of_, pending);
  if (shape < 0) shape = shapes_.shape_of(at(state_.queue.jobs, pending).request);
  return shape;
}

// As admits() of the smallest size.
bool StartPass::is_admitted(int pending) {
  const JobRequest& job = at(state_.queue.jobs, pending).request;
  const int shape = shape_of(pending);
  if (shape == std::ssize(amounts_))
    amounts_.push_back(amounts_wanted(state_, job, smallest_size(job)));
  return state_.usage.admits(state_.accounts.at(&job), at(amounts_, shape));
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

std::optional<WaitCause> StartPass::try_start(int pending) {
  const JobRequest& job = at(state_.queue.jobs, pending).request;
  if (!is_admitted(pending)) return WaitCause::kQuota;
  int view = 0;
  const FreeCapacity& free = view_for(pending, view);
  const int shape = shape_of(pending);
  std::string room;
  if (!has_failed(view, shape)) {
    if (auto placement = place(pending, free)) {
      start(pending, std::move(placement->replicas), "");
      return std::nullopt;
    }
    set_failed(view, shape);
  }
  if (!fits_empty_cluster(job, shape)) return WaitCause::kNeverFits;
  // It would fit, but for reservations: those of its queue's guarantee pass them.
  if (view > 0 && !has_failed(0, shape)) {
    if (auto placement = place(pending, state_.free)) {
      if (!is_owed(pending)) return WaitCause::kReservation;
      start(pending, std::move(placement->replicas), "; its queue is guaranteed them");
      failed_.clear();
      failed_rooms_.clear();
      return std::nullopt;
    }
    set_failed(0, shape);
  }
  if (auto placement = find_room(pending, room)) {
    start(pending, std::move(placement->replicas), room);
    failed_.clear();
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

// Whether its queue is guaranteed what the job takes: reservations of others do not hold it up.
bool StartPass::is_owed(int pending) const {
  const PendingJob& job = at(state_.queue.jobs, pending);
  const QuotaClaim claim{.leaf = state_.usage.leaf_of(state_.accounts.at(&job.request)),
                         .amounts = amounts_wanted(state_, job.request, smallest_size(job.request)),
                         .was_evicted = job.evictions > 0};
  return state_.policy.reclaims && state_.guarantees.is_entitled(state_.usage, claim, -1);
}

std::optional<GangPlacement> StartPass::find_room(int pending, std::string& text) {
  const PendingJob& job = at(state_.queue.jobs, pending);
  if (room_searches_ >= kRoomSearchesMax) return std::nullopt;
  const bool was_evicted = job.evictions > 0;
  const int leaf = state_.usage.leaf_of(state_.accounts.at(&job.request));
  const RoomKey key{was_evicted, job.request.priority,
                    service_level(state_.policy.service_levels, job.request, job.completed),
                    shape_of(pending), leaf};
  if (failed_rooms_.count(key) > 0) return std::nullopt;
  RoomRequest request{.job = job.request,
                      .size = smallest_size(job.request),
                      .kept = {},
                      .work = job.completed,
                      .was_evicted = was_evicted,
                      .leaf = leaf};
  ++room_searches_;
  if (state_.policy.moves > 0 && has_free_devices(state_, request) &&
      static_cast<int>(state_.reservations.size()) < state_.policy.reservations) {
    const auto wait = earliest_start(state_, pending);
    const Seconds start = wait ? wait->start : state_.snapshot.now;
    if (auto placement = move_jobs(state_, request, start, text)) return placement;
  }
  auto placement = make_room(state_, request, text);
  if (!placement) failed_rooms_.insert(key);
  return placement;
}

void StartPass::start(int pending, std::vector<ReplicaPlacement> replicas,
                      const std::string& room) {
  const PendingJob& job = at(state_.queue.jobs, pending);
  take(state_, job.request, replicas);
  views_.clear();
  at(state_.started, pending) = replicas;
  const Seconds waited = state_.snapshot.now - job.request.submitted;
  add_action(state_, ActionKind::kStart, job.request, replicas,
             fmt::format("starts on {}{}{}", place_text(state_, job.request, replicas),
                         waited.value > 0 ? " after " + format_duration(waited) : "", room));
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
}

}  // namespace

void start_pending_jobs(DecisionState& state) {
  StartPass(state).run();
}

}  // namespace regatta::sched
