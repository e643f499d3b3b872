#include "regatta/platform/mixing/duty_profile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

constexpr double kDaySeconds = 24 * 3600.0;
constexpr int kCurveParts = 24;  // of a measured day
// Curves are written with a digit or two after the point.
constexpr double kDayMeanTolerance = 0.02;

// The part of `parts` equal ones of a day that holds `time`.
int part_at(int parts, Seconds time) {
  const double day = std::fmod(time.value, kDaySeconds) / kDaySeconds;
  const double from_midnight = day < 0 ? day + 1 : day;
  return std::min(parts - 1, static_cast<int>(from_midnight * parts));
}

// A share in a part of the day.
double scaled(float share, float part) {
  return std::min(1.0, static_cast<double>(share) * part);
}

double mean_of_part(const DutyProfile& profile, float part) {
  double sum = 0;
  for (const float share : profile.shares)
    sum += scaled(share, part);
  return sum / static_cast<double>(profile.shares.size());
}

struct WeightedShare {
  double share = 0;
  double weight = 0;
};

// Means of kDutyShares parts of equal weight, so that the mean of all stays the same.
std::vector<float> means_of_parts(std::vector<WeightedShare> measured) {
  std::stable_sort(measured.begin(), measured.end(),
                   [](const auto& a, const auto& b) { return a.share < b.share; });
  double total = 0;
  for (const WeightedShare& each : measured)
    total += each.weight;
  std::vector<float> means;
  const double part = total / kDutyShares;
  double room = part;
  double sum = 0;
  for (WeightedShare each : measured) {
    while (each.weight >= room && std::ssize(means) < kDutyShares - 1) {
      means.push_back(static_cast<float>(std::min(1.0, (sum + room * each.share) / part)));
      each.weight -= room;
      room = part;
      sum = 0;
    }
    sum += each.weight * each.share;
    room -= each.weight;
  }
  // Rounding may leave a little more or less than a whole part to the last one.
  const double weight = part - room;
  const double last = weight > 0 ? sum / weight : measured.back().share;
  means.push_back(static_cast<float>(std::min(1.0, last)));
  for (std::size_t i = 1; i < means.size(); ++i)
    means[i] = std::max(means[i], means[i - 1]);
  return means;
}

struct PartSum {
  double demand = 0;
  int intervals = 0;
};

// Means of the hours over the mean of the day; empty where the series does not cover one.
std::vector<float> curve_of(const std::vector<PartSum>& hours) {
  double mean = 0;
  for (const PartSum& hour : hours) {
    if (hour.intervals == 0) return {};
    mean += hour.demand / hour.intervals / kCurveParts;
  }
  if (mean <= 0) return {};
  std::vector<float> curve;
  for (const PartSum& hour : hours)
    curve.push_back(static_cast<float>(hour.demand / hour.intervals / mean));
  return curve;
}

}  // namespace

double mean_share(const DutyProfile& profile) {
  if (!profile.is_known()) return 1;
  if (profile.day.empty()) return mean_of_part(profile, 1);
  double sum = 0;
  for (const float part : profile.day)
    sum += mean_of_part(profile, part);
  return sum / static_cast<double>(profile.day.size());
}

double mean_share(const DutyProfile& profile, Seconds time) {
  if (!profile.is_known()) return 1;
  if (profile.day.empty()) return mean_of_part(profile, 1);
  return mean_of_part(profile,
                      at(profile.day, part_at(static_cast<int>(profile.day.size()), time)));
}

DutyProfile profile_of(std::span<const float> demand, Seconds interval, Seconds start) {
  if (demand.empty()) return {};
  std::vector<PartSum> hours(kCurveParts);
  std::vector<int> hour_of;
  hour_of.reserve(demand.size());
  for (std::size_t i = 0; i < demand.size(); ++i) {
    hour_of.push_back(part_at(kCurveParts, start + interval * static_cast<double>(i)));
    PartSum& hour = at(hours, hour_of.back());
    hour.demand += demand[i];
    ++hour.intervals;
  }
  DutyProfile profile;
  if (interval.value * static_cast<double>(demand.size()) >= kDaySeconds)
    profile.day = curve_of(hours);
  // An hour counts as much as it has of the day's demand, so that hours without any tell nothing
  // about the shares, and the mean stays the measured one.
  std::vector<WeightedShare> measured;
  measured.reserve(demand.size());
  for (std::size_t i = 0; i < demand.size(); ++i) {
    const double part = profile.day.empty() ? 1 : at(profile.day, hour_of[i]);
    const double weight = profile.day.empty() ? 1 : part / at(hours, hour_of[i]).intervals;
    if (weight > 0) measured.push_back({std::min(1.0, demand[i] / part), weight});
  }
  profile.shares = means_of_parts(std::move(measured));
  return profile;
}

std::vector<float> draw_series(const DutyProfile& profile, int days, Seconds interval,
                               unsigned seed) {
  const std::vector<float> whole = {1};
  std::vector<float> shares = profile.is_known() ? profile.shares : whole;
  const int intervals = std::max(1, static_cast<int>(std::lround(kDaySeconds / interval.value)));
  packing::RandomSequence random(seed);
  std::vector<float> series;
  series.reserve(as_index(days) * as_index(intervals));
  for (int i = 0; i < days * intervals; ++i) {
    // All shares come once before one comes again.
    const std::size_t next = as_index(i) % shares.size();
    std::swap(shares[next], shares[next + random.below(shares.size() - next)]);
    const Seconds time = interval * static_cast<double>(i % intervals);
    const float part = profile.day.empty()
                           ? 1
                           : at(profile.day, part_at(static_cast<int>(profile.day.size()), time));
    series.push_back(static_cast<float>(scaled(shares[next], part)));
  }
  return series;
}

Status check_duty(const DutyProfile& profile) {
  const auto fail = [](std::string message) {
    return Error{Code::kInvalidInput, std::move(message)};
  };
  float least = 0;
  for (const float share : profile.shares) {
    if (!(share >= least && share <= 1))
      return fail("the shares of its duty are not from 0 to 1, or do not rise; sort them");
    least = share;
  }
  if (std::ssize(profile.day) > kDayPartsMax)
    return fail(fmt::format("the day of its duty has {} parts; give at most {}", profile.day.size(),
                            kDayPartsMax));
  if (!profile.day.empty() && !profile.is_known())
    return fail("its duty has a day and no shares; give shares");
  for (const float part : profile.day)
    if (!(part >= 0 && part <= kDayPartsMax))
      return fail(
          fmt::format("a part of the day of its duty is not from 0 to {}; give means of "
                      "parts of the day over the mean of the day",
                      kDayPartsMax));
  if (profile.day.empty()) return {};
  const double mean = std::accumulate(profile.day.begin(), profile.day.end(), 0.0) /
                      static_cast<double>(profile.day.size());
  if (mean <= 0) return fail("all parts of the day of its duty are 0; leave the day out");
  if (std::abs(mean - 1) > kDayMeanTolerance)
    return fail(
        fmt::format("the parts of the day of its duty have the mean {:.4g}, and not 1; divide each "
                    "by their mean",
                    mean));
  return {};
}

}  // namespace regatta::mixing
