#include "regatta/platform/sched/internal/queue_forecast.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <queue>
#include <set>
#include <tuple>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

constexpr double kHorizon = 60 * 86400.0;
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
    for (const ForecastRun& run : input.running) {
      add_run(run.places, input.now + drawn_run_time(run.run_time, run.elapsed, random),
              input.now + remaining_time(run.run_time, {run.elapsed}, 0.5).value);
    }
    if (!input.arrivals.empty()) next_arrival_ = random.below(input.arrivals.size());
  }

  std::vector<double> starts() {
    now_ = input_.now;
    left_ = starts_.size();
    double arrival = input_.arrivals.empty() ? kInfinite : now_ + arrival_gap();
    start_jobs();
    while (left_ > 0) {
      double next = std::min(arrival, ends_.empty() ? kInfinite : ends_.top().first);
      if (!(next <= input_.now + kHorizon)) break;
      // All events before the next decision count together.
      next = std::max(next, now_ + input_.decision_interval);
      now_ = next;
      while (!ends_.empty() && ends_.top().first <= now_)
        end_run();
      while (arrival <= now_) {
        add_arrival(arrival);
        arrival += arrival_gap();
      }
      start_jobs();
    }
    return starts_;
  }

 private:
  using Key = std::tuple<int, double, int>;  // less goes first
  struct Run {
    std::vector<ForecastPlace> places;
    double expected_end = 0;
  };

  Key key_of(int job) const {
    const ForecastJob& entry = at(jobs_, job);
    return {-entry.priority, entry.order, job};
  }
  void enqueue(int job) { at(queues_, at(jobs_, job).shape).insert(key_of(job)); }

  double arrival_gap() const { return std::max(1e-3, input_.arrivals[next_arrival_].gap); }

  void add_arrival(double time) {
    ForecastJob job = input_.arrivals[next_arrival_];
    next_arrival_ = (next_arrival_ + 1) % input_.arrivals.size();
    if (input_.job_order == JobOrder::kSubmitted) job.order = time;
    jobs_.push_back(job);
    wanted_at_.push_back(-1);
    enqueue(static_cast<int>(jobs_.size()) - 1);
  }

  void add_run(std::vector<ForecastPlace> places, double end, double expected_end) {
    const int run = static_cast<int>(runs_.size());
    runs_.push_back({std::move(places), expected_end});
    expected_.emplace(expected_end, run);
    ends_.emplace(end, run);
  }

  void end_run() {
    const int run = ends_.top().second;
    ends_.pop();
    ForecastCluster::give(at(runs_, run).places, free_);
    expected_.erase({at(runs_, run).expected_end, run});
  }

  void start(int job, std::vector<ForecastPlace> places) {
    const ForecastJob& entry = at(jobs_, job);
    at(queues_, entry.shape).erase(key_of(job));
    add_run(std::move(places), now_ + drawn_run_time(entry.run_time, entry.elapsed, random_),
            now_ + remaining_time(entry.run_time, {entry.elapsed}, 0.5).value);
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
      const int job = std::get<2>(*at(queues_, shape).begin());
      if (auto places = input_.cluster->place(shape, free_)) {
        start(job, std::move(*places));
        continue;
      }
      if (input_.backfill == BackfillRule::kNone) return;
      if (input_.backfill == BackfillRule::kReservation) return pass_reservation(shape);
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
    const int first = std::get<2>(*at(queues_, first_shape).begin());
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
      const int job = std::get<2>(key);
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
  std::set<std::pair<double, int>> expected_;
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
    case JobOrder::kLeastService: {
      double devices = 0;
      for (const Role& role : job.roles)
        devices += role.replicas_min * role.devices * role.device_milli;
      return devices / kDeviceMilli * (completed + left);
    }
    case JobOrder::kDeadline:
      return job.deadline ? job.deadline->value : kInfinite;
    case JobOrder::kSubmitted:
      break;
  }
  return job.submitted.value;
}

}  // namespace regatta::sched
