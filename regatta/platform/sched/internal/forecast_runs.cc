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
constexpr long long kKeptFree = 1'000'000'000;  // more compute than any node has

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
    add_run(run, input.now);
}

double ForecastRuns::next_end() const {
  return ends_.empty() ? kNever : ends_.top().first;
}

void ForecastRuns::add_run(ForecastRun added, double begun) {
  const int run = static_cast<int>(runs_.size());
  const ForecastJob& job = added.job;
  for (const ForecastPlace& place : added.places) {
    std::vector<int>& on = at(runs_on_, place.node);
    if (on.empty() || on.back() != run) on.push_back(run);
  }
  const double expected = begun + remaining_time(job.request->run_time, {job.elapsed}, 0.5).value;
  expected_.emplace(expected, run);
  ends_.emplace(begun + drawn_run_time(job.run_time, job.elapsed, random_), run);
  runs_.push_back({.places = std::move(added.places),
                   .job = added.job,
                   .held = added.held,
                   .started = added.started,
                   .begun = begun,
                   .expected_end = expected,
                   .has_ended = false,
                   .is_healed_by_spares = false});
  double milli = 0;
  for (const ForecastPlace& place : runs_.back().places)
    milli += static_cast<double>(place.amounts[Resource::kCompute]);
  runs_.back().is_healed_by_spares =
      is_healed_by_spares(input_.policy.spares, milli / kDeviceMilli);
  count_large(runs_.back(), 1);
}

void ForecastRuns::count_large(const Run& run, int change) {
  if (!run.is_healed_by_spares) return;
  const std::string& type = at(input_.snapshot->nodes, run.places.front().node).device_type;
  if ((large_[type] += change) == 0) large_.erase(type);
}

void ForecastRuns::set_spares(std::vector<int> spares) {
  for (const int node : spares_)
    at(free_, node)[Resource::kCompute] += kKeptFree;
  spares_ = std::move(spares);
  for (const int node : spares_)
    at(free_, node)[Resource::kCompute] -= kKeptFree;
}

void ForecastRuns::keep_spares() {
  if (!input_.policy.spares.is_kept()) return;
  set_spares({});
  const std::vector<ClusterNode>& nodes = input_.snapshot->nodes;
  const NodePrecautions& precautions = input_.precautions;
  SpareChoice choice{.nodes = nodes,
                     .device_types = {},
                     .is_open =
                         [&](int node) {
                           return at(nodes, node).health == NodeHealth::kReady &&
                                  !std::binary_search(precautions.avoided.begin(),
                                                      precautions.avoided.end(), node);
                         },
                     .is_wholly_free =
                         [&](int node) {
                           return at(free_, node)[Resource::kCompute] ==
                                  usable_amounts(at(nodes, node))[Resource::kCompute];
                         },
                     .failures_per_day =
                         [&](int node) {
                           return precautions.failures_per_day
                                      ? at(*precautions.failures_per_day, node)
                                      : at(nodes, node).failures_per_day;
                         }};
  for (const auto& [type, runs] : large_)
    choice.device_types.insert(type);
  set_spares(choose_spares(choice, input_.policy.spares));
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
  count_large(entry, -1);
  give(entry.places);
  for (const ForecastPlace& place : entry.places)
    std::erase(at(runs_on_, place.node), run);
  expected_.erase({entry.expected_end, run});
  usage_.remove(at(input_.kinds, entry.job.kind).account, entry.held.amounts);
}

void ForecastRuns::end_until(double now) {
  while (!ends_.empty() && ends_.top().first <= now) {
    if (!at(runs_, ends_.top().second).has_ended) end_run(ends_.top().second);
    ends_.pop();
  }
}

void ForecastRuns::start(const ForecastJob& job, const ForecastVariant& variant,
                         const Places& places, double now) {
  take(places);
  usage_.add(at(input_.kinds, job.kind).account, variant.amounts);
  add_run({.places = places, .job = job, .started = now, .held = variant}, now);
}

std::optional<ForecastRuns::Places> ForecastRuns::find_place(int shape, bool beside_reservation) {
  ForecastCluster::Free& free = beside_reservation ? beside_ : free_;
  auto places = input_.cluster.place(shape, free);
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
