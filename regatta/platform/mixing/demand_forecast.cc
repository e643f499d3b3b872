#include "regatta/platform/mixing/demand_forecast.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "regatta/base/core/ids.h"

namespace regatta::mixing {
namespace {

constexpr std::size_t kFewestErrors = 20;
constexpr double kLowLevel = 0.1;   // of yesterday's highest level: below it a ratio says nothing
constexpr std::size_t kLatest = 3;  // intervals whose mean answers a jump before the level does
constexpr std::size_t kRampIntervals = 60;

double mean_between(const std::vector<double>& sums, std::size_t first, std::size_t last) {
  return last > first ? (sums[last] - sums[first]) / static_cast<double>(last - first) : 0;
}

// Slope of the least-squares line through the last `window` values up to `now`.
double slope_at(std::span<const double> demand, std::size_t now, std::size_t window) {
  const std::size_t count = std::min(window, now + 1);
  if (count < 2) return 0;
  const double middle = static_cast<double>(count - 1) / 2;
  double weighted = 0;
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i) - middle;
    weighted += x * demand[now + 1 - count + i];
    squares += x * x;
  }
  return weighted / squares;
}

double centre_at(std::span<const double> demand, const std::vector<double>& sums, std::size_t now,
                 const ForecastOptions& options) {
  const std::size_t window = as_index(options.level_window);
  const std::size_t lead = as_index(options.lead);
  const std::size_t day = as_index(options.day);
  const auto level_at = [&](std::size_t t) {
    return mean_between(sums, t + 1 - std::min(window, t + 1), t + 1);
  };
  const double level = level_at(now);
  const double trend =
      slope_at(demand, now, as_index(options.trend_window)) * static_cast<double>(lead) / 2;
  if (options.day > options.lead && now >= day) {
    const std::size_t yesterday = now - day;
    const double highest =
        *std::max_element(demand.begin() + static_cast<std::ptrdiff_t>(yesterday),
                          demand.begin() + static_cast<std::ptrdiff_t>(now + 1));
    const double before = level_at(yesterday);
    if (before > kLowLevel * highest)
      return *std::max_element(demand.begin() + static_cast<std::ptrdiff_t>(yesterday + 1),
                               demand.begin() + static_cast<std::ptrdiff_t>(
                                                    std::min(now, yesterday + lead) + 1)) *
             level / before;
  }
  const double latest = mean_between(sums, now + 1 - std::min(kLatest, now + 1), now + 1);
  return std::max({0.0, latest, level + trend});
}

// The last values of a series in order, so that a quantile takes no sorting.
class SortedWindow {
 public:
  explicit SortedWindow(std::size_t size) : size_(size) {}

  void add(double value) {
    recent_.push_back(value);
    sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), value), value);
    if (recent_.size() <= size_) return;
    sorted_.erase(std::lower_bound(sorted_.begin(), sorted_.end(), recent_.front()));
    recent_.pop_front();
  }

  std::size_t size() const { return sorted_.size(); }

  // The rank of conformal prediction, so that the quantile holds for the next value as well.
  double quantile(double share) const {
    const double rank = std::ceil(share * static_cast<double>(sorted_.size() + 1));
    return sorted_[std::min(sorted_.size() - 1, static_cast<std::size_t>(rank) - 1)];
  }

 private:
  std::size_t size_;
  std::deque<double> recent_;
  std::vector<double> sorted_;
};

// Share of the device intervals lent by one that knows all demand.
double lent_with_hindsight(const std::vector<int>& needed, int devices, std::size_t lead) {
  double lent = 0;
  for (int device = 1; device <= devices; ++device) {
    std::size_t gap = 0;
    for (const int count : needed) {
      if (count < device) {
        ++gap;
        continue;
      }
      lent += static_cast<double>(gap - std::min(gap, lead));
      gap = 0;
    }
    lent += static_cast<double>(gap);
  }
  return lent / (static_cast<double>(needed.size()) * devices);
}

void count_ramps(const std::vector<int>& needed, const std::vector<bool>& is_missed,
                 const TidalOptions& options, double missed_share, TidalUse& use) {
  std::size_t last_end = 0;
  for (std::size_t t = 0; t < needed.size(); ++t) {
    const std::size_t first = std::max(last_end, t - std::min(t, kRampIntervals));
    if (first >= t) continue;
    const auto begin = needed.begin() + static_cast<std::ptrdiff_t>(first);
    const int lowest = *std::min_element(begin, needed.begin() + static_cast<std::ptrdiff_t>(t));
    if (4 * (needed[t] - lowest) < options.devices) continue;
    // The ramp goes on for as long as it may take to answer it.
    const std::size_t end = std::min(needed.size(), t + 1 + as_index(options.forecast.lead));
    const auto missed = std::count(is_missed.begin() + static_cast<std::ptrdiff_t>(first),
                                   is_missed.begin() + static_cast<std::ptrdiff_t>(end), true);
    ++use.ramps;
    if (static_cast<double>(missed) > missed_share * static_cast<double>(end - first))
      ++use.missed_ramps;
    last_end = end;
  }
}

bool is_valid(const ForecastOptions& options) {
  return options.lead >= 1 && options.level_window >= 1 && options.trend_window >= 1 &&
         options.error_window >= 1 && options.day >= 1 && options.quantile > 0 &&
         options.quantile < 1;
}

// Devices of the service: at work for it, lent, and asked back.
struct LentDevices {
  int kept = 0;
  std::deque<int> arrivals;  // how many come in each of the next intervals
  std::deque<int> wanted;    // of the last intervals

  int coming() const {
    int sum = 0;
    for (const int count : arrivals)
      sum += count;
    return sum;
  }
};

}  // namespace

std::vector<double> forecast_series(std::span<const double> demand,
                                    const ForecastOptions& options) {
  std::vector<double> sums = {0};
  for (const double value : demand)
    sums.push_back(sums.back() + value);
  const std::size_t lead = as_index(options.lead);
  std::vector<double> centres;
  SortedWindow errors(as_index(options.error_window));
  std::vector<double> forecasts;
  for (std::size_t t = 0; t < demand.size(); ++t) {
    const auto scale = [&](std::size_t when) {
      return std::max(1e-12, centres[when] + mean_between(sums, 0, when + 1));
    };
    centres.push_back(centre_at(demand, sums, t, options));
    if (t >= lead) {
      const std::size_t made = t - lead;
      const double highest =
          *std::max_element(demand.begin() + static_cast<std::ptrdiff_t>(made + 1),
                            demand.begin() + static_cast<std::ptrdiff_t>(t + 1));
      errors.add((highest - centres[made]) / scale(made));
    }
    forecasts.push_back(
        errors.size() < kFewestErrors
            ? std::numeric_limits<double>::infinity()
            : std::max(0.0, centres[t] + scale(t) * errors.quantile(options.quantile)));
  }
  return forecasts;
}

Result<TidalUse> replay_tidal(std::span<const double> demand, const TidalOptions& options,
                              double missed_share) {
  if (demand.empty() || !is_valid(options.forecast) || options.devices < 1 || options.hold < 1 ||
      !(options.demand_per_device > 0))
    return Error{Code::kInvalidInput,
                 "tidal options: give a series, a demand per device above 0, a quantile between 0 "
                 "and 1, and at least 1 for lead, windows, hold and devices"};
  const auto devices_for = [&](double amount) {
    return static_cast<int>(
        std::min<double>(options.devices, std::ceil(amount / options.demand_per_device)));
  };
  const std::vector<double> forecasts = forecast_series(demand, options.forecast);
  const std::size_t lead = as_index(options.forecast.lead);
  TidalUse use;
  use.intervals = static_cast<double>(demand.size());
  std::vector<int> needed;
  std::vector<bool> is_missed;
  double lent = 0;
  LentDevices state{options.devices, std::deque<int>(lead, 0), {}};
  for (std::size_t t = 0; t < demand.size(); ++t) {
    state.kept += state.arrivals.front();
    state.arrivals.pop_front();
    needed.push_back(devices_for(demand[t]));
    is_missed.push_back(needed.back() > state.kept);
    lent += options.devices - state.kept - state.coming();
    const int wanted = devices_for(forecasts[t]);
    state.wanted.push_back(wanted);
    if (state.wanted.size() > as_index(options.hold)) state.wanted.pop_front();
    const int short_by = std::max(0, wanted - state.kept - state.coming());
    state.arrivals.push_back(short_by);
    use.reclaims += short_by;
    const int held = *std::max_element(state.wanted.begin(), state.wanted.end());
    if (state.wanted.size() == as_index(options.hold) && held < state.kept) state.kept = held;
  }
  use.missed_share =
      static_cast<double>(std::count(is_missed.begin(), is_missed.end(), true)) / use.intervals;
  use.lent_share = lent / (use.intervals * options.devices);
  use.lent_share_of_oracle = lent_with_hindsight(needed, options.devices, lead);
  count_ramps(needed, is_missed, options, missed_share, use);
  return use;
}

}  // namespace regatta::mixing
