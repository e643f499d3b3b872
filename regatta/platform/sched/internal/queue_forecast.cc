#include "regatta/platform/sched/internal/queue_forecast.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/job_progress.h"

namespace regatta::sched {
namespace {

constexpr double kHorizon = 60 * 86400.0;
constexpr int kDecisionsMax = 3000;  // of one future: later starts are taken to be at its end
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr int kScanned = 32;  // jobs of a shape that may pass a reservation, of each decision
constexpr std::size_t kQuantiles = 1024;

// Quantiles of the normal distribution at the middles of equal parts.
const std::array<double, kQuantiles>& normal_quantiles() {
  static const auto table = [] {
    std::array<double, kQuantiles> values{};
    for (std::size_t i = 0; i < kQuantiles; ++i)
      values[i] = normal_quantile((static_cast<double>(i) + 0.5) / kQuantiles);
    return values;
  }();
  return table;
}

double drawn_run_time(const RunTime& run_time, double elapsed, packing::RandomSequence& random) {
  if (run_time.median.value <= 0) return kInfinite;
  if (elapsed <= 0)
    return run_time.median.value *
           std::exp(run_time.log_spread * normal_quantiles()[random.below(kQuantiles)]);
  const double quantile = (static_cast<double>(random.below(kQuantiles)) + 0.5) / kQuantiles;
  return remaining_time(run_time, {elapsed}, quantile).value;
}

class Future {
 public:
  Future(const ForecastInput& input, packing::RandomSequence& random)
      : input_(input), random_(random), free_(input.cluster->free_now()) {
    queues_.resize(input.cluster->shapes().size());
    jobs_ = input.pending;
    wanted_at_.assign(jobs_.size(), -1);
    starts_.assign(input.wanted.size(), kInfinite);
    for (std::size_t i = 0; i < input.wanted.size(); ++i)
      at(wanted_at_, input.wanted[i]) = static_cast<int>(i);
    for (std::size_t i = 0; i < jobs_.size(); ++i)
      enqueue(static_cast<int>(i));
    runs_on_.resize(free_.size());
    now_ = input.now;
    for (const ForecastRun& run : input.running)
      add_run(run.job, run.places, run.started);
    if (!input.arrivals.empty()) next_arrival_ = random.below(input.arrivals.size());
  }

  std::vector<double> starts() {
    left_ = starts_.size();
    double arrival = input_.arrivals.empty() ? kInfinite : now_ + arrival_gap();
    start_jobs();
    int decisions = 0;
    while (left_ > 0) {
      if (++decisions > kDecisionsMax) {
        for (double& start : starts_)
          if (std::isinf(start)) start = now_;
        break;
      }
      double next = std::min(arrival, ends_.empty() ? kInfinite : ends_.top().first);
      if (!(next <= input_.now + kHorizon)) break;
      // All events before the next decision count together.
      next = std::max(next, now_ + input_.decision_interval);
      now_ = next;
      while (!ends_.empty() && ends_.top().first <= now_) {
        end_run(ends_.top().second);
        ends_.pop();
      }
      while (arrival <= now_) {
        add_arrival(arrival);
        arrival += arrival_gap();
      }
      start_jobs();
    }
    return starts_;
  }

 private:
  using Key = std::tuple<int, int, double, int>;  // less goes first
  struct Run {
    std::vector<ForecastPlace> places;
    double expected_end = 0;
    ForecastJob job;  // as it was when it began
    double started = 0;
    double begun = 0;  // in this future: `elapsed` of the job holds until then
    bool has_ended = false;
  };

  Key key_of(int job) const {
    const ForecastJob& entry = at(jobs_, job);
    return {-entry.priority, level_of(entry, entry.elapsed), entry.order, job};
  }
  int level_of(const ForecastJob& job, double elapsed) const {
    const auto& levels = input_.policy.service_levels;
    return static_cast<int>(std::count_if(levels.begin(), levels.end(), [&](Seconds level) {
      return level.value <= elapsed * job.devices;
    }));
  }
  void enqueue(int job) { at(queues_, at(jobs_, job).shape).insert(key_of(job)); }

  double arrival_gap() const { return std::max(1e-3, input_.arrivals[next_arrival_].gap); }

  void add_arrival(double time) {
    ForecastJob job = input_.arrivals[next_arrival_];
    next_arrival_ = (next_arrival_ + 1) % input_.arrivals.size();
    if (input_.policy.order == JobOrder::kSubmitted) job.order = time;
    jobs_.push_back(job);
    wanted_at_.push_back(-1);
    enqueue(static_cast<int>(jobs_.size()) - 1);
  }

  void add_run(const ForecastJob& job, std::vector<ForecastPlace> places, double started) {
    const int run = static_cast<int>(runs_.size());
    for (const ForecastPlace& place : places)
      at(runs_on_, place.node).push_back(run);
    const double expected = now_ + remaining_time(job.run_time, {job.elapsed}, 0.5).value;
    runs_.push_back({std::move(places), expected, job, started, now_, false});
    if (input_.policy.backfill == BackfillRule::kReservation) expected_.emplace(expected, run);
    ends_.emplace(now_ + drawn_run_time(job.run_time, job.elapsed, random_), run);
  }

  void end_run(int run) {
    Run& entry = at(runs_, run);
    if (std::exchange(entry.has_ended, true)) return;
    ForecastCluster::give(entry.places, free_);
    for (const ForecastPlace& place : entry.places)
      std::erase(at(runs_on_, place.node), run);
    expected_.erase({entry.expected_end, run});
  }

  // A run that a job of this level may evict.
  bool may_evict(int level, const Run& run) const {
    return level_of(run.job, run.job.elapsed + now_ - run.begun) > level &&
           now_ - run.started >= input_.policy.protected_run_time.value;
  }

  // Makes room on one node, where the least is evicted; for shapes of one replica alone.
  bool evict_for(int job) {
    const ForecastJob& entry = at(jobs_, job);
    const ForecastShape& shape = at(input_.cluster->shapes(), entry.shape);
    if (shape.replicas.size() != 1 || shape.replicas.front().first != 1) return false;
    const int level = level_of(entry, entry.elapsed);
    const int milli = shape.replicas.front().second;
    int best = -1;
    int least = 0;
    for (int node = 0; node < static_cast<int>(free_.size()); ++node) {
      if (!input_.cluster->accepts(entry.shape, node)) continue;
      int evictable = 0;
      for (const int run : at(runs_on_, node))
        if (may_evict(level, at(runs_, run))) evictable += milli_on(at(runs_, run), node);
      if (at(free_, node) + evictable < milli) continue;
      const int taken = milli - at(free_, node);
      if (best >= 0 && taken >= least) continue;
      best = node;
      least = taken;
    }
    if (best < 0) return false;
    const std::vector<int> runs = at(runs_on_, best);
    for (const int run : runs) {
      if (at(free_, best) >= milli) break;
      if (!may_evict(level, at(runs_, run))) continue;
      end_run(run);
      ForecastJob victim = at(runs_, run).job;
      victim.elapsed += now_ - at(runs_, run).begun;
      jobs_.push_back(victim);
      wanted_at_.push_back(-1);
      enqueue(static_cast<int>(jobs_.size()) - 1);
    }
    return true;
  }

  static int milli_on(const Run& run, int node) {
    int milli = 0;
    for (const ForecastPlace& place : run.places)
      if (place.node == node) milli += place.milli;
    return milli;
  }

  void start(int job, std::vector<ForecastPlace> places) {
    const ForecastJob& entry = at(jobs_, job);
    at(queues_, entry.shape).erase(key_of(job));
    add_run(entry, std::move(places), now_);
    if (const int wanted = at(wanted_at_, job); wanted >= 0) {
      at(starts_, wanted) = now_;
      --left_;
    }
  }

  // The shape whose first job is first of those that may still fit; -1: none.
  int next_shape(const std::vector<char>& is_closed) const {
    int best = -1;
    for (int shape = 0; shape < static_cast<int>(queues_.size()); ++shape) {
      const auto& queue = at(queues_, shape);
      if (at(is_closed, shape) != 0 || queue.empty()) continue;
      if (best < 0 || *queue.begin() < *at(queues_, best).begin()) best = shape;
    }
    return best;
  }

  void start_jobs() {
    std::vector<char> is_closed(queues_.size());
    for (int shape = next_shape(is_closed); shape >= 0; shape = next_shape(is_closed)) {
      const int job = std::get<3>(*at(queues_, shape).begin());
      if (auto places = input_.cluster->place(shape, free_)) {
        start(job, std::move(*places));
        continue;
      }
      if (input_.policy.preempts && !input_.policy.service_levels.empty() && evict_for(job)) {
        if (auto places = input_.cluster->place(shape, free_)) start(job, std::move(*places));
        is_closed.assign(is_closed.size(), 0);
        continue;
      }
      if (input_.policy.backfill == BackfillRule::kNone) return;
      if (input_.policy.backfill == BackfillRule::kReservation) return pass_reservation(shape);
      at(is_closed, shape) = 1;
    }
  }

  // Fills `spare` with the free amounts beside the first job of the shape at its expected start.
  double reserve(int shape, ForecastCluster::Free& spare) const {
    spare = free_;
    for (const auto& [end, run] : expected_) {
      ForecastCluster::give(at(runs_, run).places, spare);
      if (input_.cluster->place(shape, spare)) return end;
    }
    return kInfinite;
  }

  // Jobs behind the first start where they do not keep it from its reservation.
  void pass_reservation(int first_shape) {
    ForecastCluster::Free spare;
    const double reserved = reserve(first_shape, spare);
    const int first = std::get<3>(*at(queues_, first_shape).begin());
    std::vector<Key> candidates;
    for (int shape = 0; shape < static_cast<int>(queues_.size()); ++shape) {
      if (auto copy = free_; !input_.cluster->place(shape, copy)) continue;
      int scanned = 0;
      for (const Key& key : at(queues_, shape)) {
        if (scanned++ == kScanned) break;
        candidates.push_back(key);
      }
    }
    std::sort(candidates.begin(), candidates.end());
    for (const Key& key : candidates) {
      const int job = std::get<3>(key);
      if (job == first) continue;
      const ForecastJob& entry = at(jobs_, job);
      const double end = now_ + remaining_time(entry.run_time, {entry.elapsed}, 0.5).value;
      auto places = input_.cluster->place(entry.shape, free_);
      if (!places) continue;
      const bool is_spare = std::all_of(
          places->begin(), places->end(),
          [&](const ForecastPlace& place) { return at(spare, place.node) >= place.milli; });
      if (end > reserved && !is_spare) {
        ForecastCluster::give(*places, free_);
        continue;
      }
      if (end > reserved)
        for (const ForecastPlace& place : *places)
          at(spare, place.node) -= place.milli;
      start(job, std::move(*places));
    }
  }

  const ForecastInput& input_;
  packing::RandomSequence& random_;
  double now_ = 0;
  ForecastCluster::Free free_;
  std::vector<ForecastJob> jobs_;
  std::vector<int> wanted_at_;
  std::vector<double> starts_;
  std::size_t left_ = 0;
  std::vector<std::set<Key>> queues_;  // by shape
  std::vector<Run> runs_;
  std::vector<std::vector<int>> runs_on_;      // by node
  std::set<std::pair<double, int>> expected_;  // ends, where reservations need them
  using End = std::pair<double, int>;
  std::priority_queue<End, std::vector<End>, std::greater<End>> ends_;
  std::size_t next_arrival_ = 0;
};

}  // namespace

std::vector<double> sample_starts(const ForecastInput& input, packing::RandomSequence& random) {
  return Future(input, random).starts();
}

double forecast_order(JobOrder order, const JobRequest& job, double completed) {
  const double left = remaining_time(job.run_time, {completed}, 0.5).value;
  switch (order) {
    case JobOrder::kShortest:
      return left;
    case JobOrder::kLeastService:
      return devices_min(job) * (completed + left);
    case JobOrder::kDeadline:
      return job.deadline ? job.deadline->value : kInfinite;
    case JobOrder::kSubmitted:
      break;
  }
  return job.submitted.value;
}

}  // namespace regatta::sched
