#include "regatta/platform/sched/internal/queue_forecast.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/forecast_lines.h"
#include "regatta/platform/sched/internal/forecast_runs.h"

namespace regatta::sched {
namespace {

constexpr double kHorizon = 60 * 86400.0;
constexpr int kDecisionsMax = 3000;  // of one future: later starts are taken to be at its end
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr int kScanned = 32;  // jobs of a kind that may pass a reservation, of each decision
constexpr int kForecastSearches = 32;  // of one decision

class Future {
 public:
  Future(const ForecastInput& input, packing::RandomSequence& random)
      : input_(input),
        now_(input.now),
        usage_(input.usage),
        runs_(input, usage_, random),
        lines_(input, usage_),
        scanned_(input.kinds.size()),
        held_(input.kinds.size(), -1) {
    for (const ForecastJob& job : input.pending)
      enqueue(job);
    starts_.assign(input.wanted.size(), kInfinite);
    for (std::size_t i = 0; i < input.wanted.size(); ++i)
      at(wanted_at_, input.wanted[i]) = static_cast<int>(i);
    left_ = starts_.size();
    if (!input.arrivals.empty()) next_arrival_ = random.below(input.arrivals.size());
  }

  std::vector<double> starts() {
    double arrival = input_.arrivals.empty() ? kInfinite : now_ + arrival_gap();
    start_jobs();
    for (int decisions = 0; left_ > 0; ++decisions) {
      if (decisions == kDecisionsMax) {
        for (double& start : starts_)
          if (std::isinf(start)) start = now_;
        break;
      }
      const double next = std::min(arrival, runs_.next_end());
      if (!(next <= input_.now + kHorizon)) break;
      // All events before the next decision count together.
      now_ = std::max(next, now_ + input_.decision_interval);
      runs_.end_until(now_);
      while (arrival <= now_) {
        add_arrival(arrival);
        arrival += arrival_gap();
      }
      start_jobs();
    }
    return starts_;
  }

 private:
  void enqueue(const ForecastJob& job) {
    jobs_.push_back(job);
    wanted_at_.push_back(-1);
    expected_.push_back(remaining_time(job.request->run_time, {job.elapsed}, 0.5).value);
    lines_.add(job, static_cast<int>(jobs_.size()) - 1, now_);
  }

  double arrival_gap() const { return std::max(1e-3, input_.arrivals[next_arrival_].gap); }

  void add_arrival(double time) {
    ForecastJob job = input_.arrivals[next_arrival_];
    next_arrival_ = (next_arrival_ + 1) % input_.arrivals.size();
    job.submitted = time;
    enqueue(job);
  }

  void start(int job, const ForecastVariant& variant, const ForecastRuns::Places& places) {
    runs_.start(at(jobs_, job), variant, places, now_);
    ++starts_made_;
    lines_.remove(job);
    if (const int wanted = at(wanted_at_, job); wanted >= 0) {
      at(starts_, wanted) = now_;
      --left_;
    }
  }

  // As decide() does it, with one reservation.
  void start_jobs() {
    lines_.begin_decision(now_);
    runs_.drop_reservation();
    runs_.keep_spares();
    std::fill(scanned_.begin(), scanned_.end(), 0);
    ++starts_made_;
    room_searches_ = 0;
    for (int job = lines_.next(); job >= 0; job = lines_.next())
      consider(job);
  }

  bool admits(int kind, const ForecastVariant& variant) const {
    return !input_.has_limits || usage_.admits(at(input_.kinds, kind).account, variant.amounts);
  }

  bool admits_any(int kind) const {
    const auto& variants = at(input_.kinds, kind).variants;
    return std::any_of(variants.begin(), variants.end(),
                       [&](const ForecastVariant& variant) { return admits(kind, variant); });
  }

  // On the first device type that its quotas allow and that has room.
  bool start_in_room(int index, bool beside_reservation) {
    const int kind = at(jobs_, index).kind;
    for (const ForecastVariant& variant : at(input_.kinds, kind).variants) {
      if (!admits(kind, variant)) continue;
      const auto places = runs_.find_place(variant.shape, beside_reservation);
      if (!places) continue;
      start(index, variant, *places);
      return true;
    }
    return false;
  }

  bool has_room(int kind) {
    const auto& variants = at(input_.kinds, kind).variants;
    return std::any_of(variants.begin(), variants.end(), [&](const ForecastVariant& variant) {
      return admits(kind, variant) && runs_.find_place(variant.shape, false);
    });
  }

  void consider(int index) {
    const ForecastJob job = at(jobs_, index);
    // Such jobs hold nobody up.
    if (at(input_.kinds, job.kind).never_fits || !admits_any(job.kind))
      return lines_.close_kind(job.kind);
    const bool passes = runs_.passes_reservation(now_ + at(expected_, index));
    // Nothing has started since one of its kind was held up.
    if (!passes && at(held_, job.kind) == starts_made_) return count_held(job.kind);
    if (start_in_room(index, !passes)) return;
    if (!passes && has_room(job.kind)) {
      at(held_, job.kind) = starts_made_;
      return count_held(job.kind);
    }
    for (const ForecastVariant& variant : at(input_.kinds, job.kind).variants)
      if (admits(job.kind, variant) && make_room(index, job, variant)) return;
    lines_.close_kind(job.kind);
    if (input_.policy.backfill == BackfillRule::kNone) return lines_.close_line(job.kind);
    if (input_.policy.backfill == BackfillRule::kReservation && !runs_.has_reservation())
      runs_.reserve(job, now_);
  }

  // Shorter jobs of the kind may end before the reservation begins.
  void count_held(int kind) {
    if (++at(scanned_, kind) == kScanned) lines_.close_kind(kind);
  }

  bool make_room(int index, const ForecastJob& job, const ForecastVariant& variant) {
    const bool may_move = input_.policy.moves > 0 && !runs_.has_reservation();
    if ((!may_move && !input_.policy.preempts) || ++room_searches_ > kForecastSearches)
      return false;
    bool has_room = may_move && runs_.move_for(job, variant.shape, now_);
    if (!has_room && input_.policy.preempts) {
      const auto evicted = runs_.evict_for(job, variant.shape, now_);
      has_room = evicted.has_value();
      if (evicted)
        for (const ForecastJob& each : *evicted)
          enqueue(each);
    }
    if (!has_room) return false;
    if (const auto places = runs_.find_place(variant.shape, false)) start(index, variant, *places);
    ++starts_made_;
    lines_.reopen();
    return true;
  }

  const ForecastInput& input_;
  double now_ = 0;
  QuotaUsage usage_;
  ForecastRuns runs_;
  ForecastLines lines_;
  std::vector<ForecastJob> jobs_;
  std::vector<int> wanted_at_;    // by job
  std::vector<double> expected_;  // run times of jobs, as decisions see them
  std::vector<double> starts_;
  std::size_t left_ = 0;
  std::size_t next_arrival_ = 0;
  std::vector<int> scanned_;  // by kind: jobs that the reservation held up
  std::vector<int> held_;     // by kind: starts made when the reservation held one of it up
  int starts_made_ = 0;       // and decisions begun
  int room_searches_ = 0;
};

}  // namespace

std::vector<double> sample_starts(const ForecastInput& input, packing::RandomSequence& random) {
  return Future(input, random).starts();
}

}  // namespace regatta::sched
