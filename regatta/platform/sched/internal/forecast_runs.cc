#include "regatta/platform/sched/internal/forecast_runs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/node_amounts.h"

namespace regatta::sched {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
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

double drawn_part(packing::RandomSequence& random) {
  return (static_cast<double>(random.below(kQuantiles)) + 0.5) / kQuantiles;
}

double drawn_run_time(const RunTime& run_time, double elapsed, packing::RandomSequence& random) {
  if (run_time.median.value <= 0) return kNever;
  if (elapsed <= 0)
    return run_time.median.value *
           std::exp(run_time.log_spread * normal_quantiles()[random.below(kQuantiles)]);
  return remaining_time(run_time, {elapsed}, drawn_part(random)).value;
}

}  // namespace

ForecastRuns::ForecastRuns(const ForecastInput& input, QuotaUsage& usage,
                           packing::RandomSequence& random)
    : input_(input),
      usage_(usage),
      random_(random),
      free_(input.cluster.free_now()),
      reserved_on_(free_.size()),
      runs_on_(free_.size()) {
  for (const ForecastRun& run : input.running)
    add_run(run.job, run.places, run.started, input.now);
}

double ForecastRuns::next_end() const {
  return ends_.empty() ? kNever : ends_.top().first;
}

int ForecastRuns::add_run(const ForecastJob& job, Places places, double started, double begun) {
  const int run = static_cast<int>(runs_.size());
  for (const ForecastPlace& place : places) {
    std::vector<int>& on = at(runs_on_, place.node);
    if (on.empty() || on.back() != run) on.push_back(run);
  }
  const double expected = begun + remaining_time(job.request->run_time, {job.elapsed}, 0.5).value;
  runs_.push_back({std::move(places), job, started, begun, expected, false});
  expected_.emplace(expected, run);
  ends_.emplace(begun + drawn_run_time(job.run_time, job.elapsed, random_), run);
  return run;
}

void ForecastRuns::take(const Places& places) {
  for (const ForecastPlace& place : places) {
    at(free_, place.node) -= place.amounts;
    refresh_beside(place.node);
  }
}

void ForecastRuns::give(const Places& places) {
  for (const ForecastPlace& place : places) {
    at(free_, place.node) += place.amounts;
    refresh_beside(place.node);
  }
}

void ForecastRuns::refresh_beside(int node) {
  if (!reserved_) return;
  ResourceAmounts& beside = at(beside_, node);
  beside = at(free_, node);
  for (std::size_t i = 0; i < beside.of.size(); ++i)
    beside.of[i] =
        std::max(std::min(0LL, beside.of[i]), beside.of[i] - at(reserved_on_, node).of[i]);
}

void ForecastRuns::end_run(int run) {
  Run& entry = at(runs_, run);
  entry.has_ended = true;
  give(entry.places);
  for (const ForecastPlace& place : entry.places)
    std::erase(at(runs_on_, place.node), run);
  expected_.erase({entry.expected_end, run});
  const ForecastKind& kind = at(input_.kinds, entry.job.kind);
  usage_.remove(kind.account, kind.amounts);
}

void ForecastRuns::end_until(double now) {
  while (!ends_.empty() && ends_.top().first <= now) {
    if (!at(runs_, ends_.top().second).has_ended) end_run(ends_.top().second);
    ends_.pop();
  }
}

void ForecastRuns::start(const ForecastJob& job, const Places& places, double now) {
  take(places);
  const ForecastKind& kind = at(input_.kinds, job.kind);
  usage_.add(kind.account, kind.amounts);
  add_run(job, places, now, now);
}

std::optional<ForecastRuns::Places> ForecastRuns::find_place(int kind, bool beside_reservation) {
  ForecastCluster::Free& free = beside_reservation ? beside_ : free_;
  auto places = input_.cluster.place(at(input_.kinds, kind).shape, free);
  if (places) ForecastCluster::give(*places, free);
  return places;
}

bool ForecastRuns::passes_reservation(double end) const {
  return !reserved_ || end <= reserved_->start;
}

// Runs that have gone on for longer than was expected of them are expected anew.
void ForecastRuns::renew_expected_ends(double now) {
  std::vector<int> late;
  while (!expected_.empty() && expected_.begin()->first < now) {
    late.push_back(expected_.begin()->second);
    expected_.erase(expected_.begin());
  }
  for (const int run : late) {
    Run& entry = at(runs_, run);
    const Seconds left = remaining_time(entry.job.request->run_time, {elapsed_at(entry, now)}, 0.5);
    entry.expected_end = now + left.value;
    expected_.emplace(entry.expected_end, run);
  }
}

std::pair<double, std::optional<ForecastRuns::Places>> ForecastRuns::place_after_ends(
    const ForecastJob& job, double now) {
  renew_expected_ends(now);
  const int shape = at(input_.kinds, job.kind).shape;
  std::vector<std::pair<double, int>> ends;
  for (const auto& end : expected_)
    if (std::isfinite(end.first)) ends.push_back(end);
  const auto place_after = [&](std::size_t count) {
    ForecastCluster::Free free = free_;
    for (std::size_t i = 0; i < count; ++i)
      ForecastCluster::give(at(runs_, ends[i].second).places, free);
    return input_.cluster.place(shape, free);
  };
  auto places = place_after(ends.size());
  if (!places) return {kNever, std::nullopt};
  // More ends never take room away, so that the first number of them is found by halves.
  std::size_t low = 0;
  std::size_t high = ends.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (auto found = place_after(middle)) {
      places = std::move(found);
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return {low == 0 ? now : ends[low - 1].first, std::move(places)};
}

double ForecastRuns::expected_start(const ForecastJob& job, double now) {
  return place_after_ends(job, now).first;
}

void ForecastRuns::reserve(const ForecastJob& job, double now) {
  auto [start, places] = place_after_ends(job, now);
  if (!places) return;
  reserved_ = {start, std::move(*places)};
  beside_ = free_;
  for (const ForecastPlace& place : reserved_->places)
    at(reserved_on_, place.node) += place.amounts;
  for (const ForecastPlace& place : reserved_->places)
    refresh_beside(place.node);
}

void ForecastRuns::drop_reservation() {
  if (!reserved_) return;
  for (const ForecastPlace& place : reserved_->places)
    at(reserved_on_, place.node) = {};
  reserved_.reset();
}

}  // namespace regatta::sched
