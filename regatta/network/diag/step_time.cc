#include "regatta/network/diag/step_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "regatta/base/core/ids.h"

namespace regatta::diag {
namespace {

// A step that is so much longer or shorter than the usual one is looked for.
constexpr double kShortened = 0.6;
constexpr double kStretched = 1.7;
// Cost of a step whose length is off, by the square of the logarithm: 5 % off costs 0.02 of the
// best match of a step, 50 % off 1.3 of it.
constexpr double kStrictness = 8;
// StepTiming::is_clear(). With 8 steps instead of 10 some trains of micro-batches in a look shorter
// than one step count as steps; with kRivalShorter 0.8, some doubled steps.
constexpr std::size_t kClearSteps = 10;
constexpr double kClearCoverage = 0.9;
// Ratio to the periodicity of a longer period, from which a shorter one makes it ambiguous, and
// below which a shorter one is.
constexpr double kRivalShorter = 0.65;
constexpr double kRivalLonger = 0.93;
constexpr int kRounds = 3;
// Share of the usual match that a step at an end of the series needs to count.
constexpr double kFairMatch = 0.75;
// Lengths whose autocorrelation is below this share of the best are not tried.
constexpr double kWorthTrying = 0.6;
constexpr double kHighPeak = 0.75;
constexpr std::size_t kTriedMost = 12;
// The shortest length that explains so much of what the best one does is the step: multiples of it
// do as well.
constexpr double kAsGood = 0.85;
constexpr double kPhases = 32;  // of a step; shorter differences between steps are jitter

// Mean 0 and variance 1; empty when it never changes.
std::vector<double> normalized(Series bytes) {
  const double count = static_cast<double>(bytes.size());
  const double mean = std::accumulate(bytes.begin(), bytes.end(), 0.0) / count;
  double variance = 0;
  for (const double value : bytes)
    variance += (value - mean) * (value - mean) / count;
  if (!(variance > 0)) return {};
  std::vector<double> out(bytes.begin(), bytes.end());
  for (double& value : out)
    value = (value - mean) / std::sqrt(variance);
  return out;
}

// Four sums side by side: one alone waits for each of its additions.
double product_of(const double* a, const double* b, std::size_t count) {
  double sums[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (std::size_t lane = 0; lane < 4; ++lane)
      sums[lane] += a[i + lane] * b[i + lane];
  for (; i < count; ++i)
    sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// By lag, how like the series is to itself that much later; up to a third of its length.
void add_autocorrelation(std::vector<double>& sum, const std::vector<double>& series) {
  for (std::size_t lag = 0; lag < sum.size(); ++lag) {
    const std::size_t count = series.size() - lag;
    sum[lag] += product_of(series.data() + lag, series.data(), count) / static_cast<double>(count);
  }
}

// Steps are not all alike: what belongs to one lag lies around it, the wider the longer it is.
std::vector<double> smoothed(const std::vector<double>& autocorrelation) {
  std::vector<double> out(autocorrelation.size());
  const auto last = static_cast<std::ptrdiff_t>(autocorrelation.size()) - 1;
  for (std::ptrdiff_t lag = 0; lag <= last; ++lag) {
    const auto width = static_cast<std::ptrdiff_t>(0.02 * static_cast<double>(lag));
    double sum = 0;
    double weights = 0;
    for (std::ptrdiff_t i = std::max<std::ptrdiff_t>(0, lag - width);
         i <= std::min(last, lag + width); ++i) {
      const double weight = static_cast<double>(width + 1 - std::abs(i - lag));
      sum += weight * at(autocorrelation, i);
      weights += weight;
    }
    at(out, lag) = sum / weights;
  }
  return out;
}

// Lags at which the autocorrelation has a peak, shortest first.
std::vector<std::size_t> candidates(const std::vector<double>& autocorrelation,
                                    const StepSearchOptions& search) {
  std::vector<std::size_t> peaks;
  double best = 0;
  for (std::size_t lag = std::max<std::size_t>(2, search.step_min);
       lag + 1 < autocorrelation.size(); ++lag) {
    if (autocorrelation[lag] < autocorrelation[lag - 1] ||
        autocorrelation[lag] <= autocorrelation[lag + 1])
      continue;
    peaks.push_back(lag);
    best = std::max(best, autocorrelation[lag]);
  }
  if (best < search.autocorrelation_min) return {};
  std::erase_if(peaks, [&](std::size_t lag) { return autocorrelation[lag] < kWorthTrying * best; });
  // The step is often the shortest of the high peaks: the others are its multiples.
  std::vector<std::size_t> chosen;
  for (const std::size_t lag : peaks)
    if (chosen.size() < kTriedMost / 2 && autocorrelation[lag] >= kHighPeak * best)
      chosen.push_back(lag);
  std::ranges::stable_sort(peaks, std::greater<>{},
                           [&](std::size_t lag) { return autocorrelation[lag]; });
  for (const std::size_t lag : peaks)
    if (chosen.size() < kTriedMost && std::ranges::find(chosen, lag) == chosen.end())
      chosen.push_back(lag);
  std::ranges::sort(chosen);
  return chosen;
}

// By place, the correlation of what follows there with the pattern.
std::vector<double> matches(const std::vector<double>& series, const std::vector<double>& pattern) {
  const std::vector<double> shape = normalized(pattern);
  const std::size_t length = pattern.size();
  std::vector<double> out(series.size() - length + 1, 0.0);
  if (shape.empty()) return out;
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < series.size(); ++i) {
    sum += series[i];
    squares += series[i] * series[i];
    if (i + 1 < length) continue;
    const std::size_t at = i + 1 - length;
    const double variance = squares - sum * sum / static_cast<double>(length);
    const double product = product_of(shape.data(), series.data() + at, length);
    // Quiet stretches are like anything: hold them against the usual variance, which is 1.
    const double scale = std::sqrt(std::max(variance / static_cast<double>(length), 0.1));
    out[at] = product / static_cast<double>(length) / scale;
    sum -= series[at];
    squares -= series[at] * series[at];
  }
  return out;
}

// The chain of places, about `step` apart, that match best in all.
std::vector<std::size_t> best_chain(const std::vector<double>& match, double step) {
  const auto near = std::max<std::size_t>(1, static_cast<std::size_t>(kShortened * step));
  const auto far = static_cast<std::size_t>(std::ceil(kStretched * step));
  std::vector<double> cost(far + 1, 0.0);
  for (std::size_t gap = near; gap <= far; ++gap) {
    const double off = std::log(static_cast<double>(gap) / step);
    cost[gap] = kStrictness * off * off;
  }
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<double> score(match.size());
  std::vector<std::size_t> previous(match.size(), kNone);
  for (std::size_t at = 0; at < match.size(); ++at) {
    double best = 0;
    for (std::size_t gap = near; gap <= std::min(far, at); ++gap) {
      if (score[at - gap] - cost[gap] <= best) continue;
      best = score[at - gap] - cost[gap];
      previous[at] = at - gap;
    }
    score[at] = match[at] + best;
  }
  std::vector<std::size_t> chain;
  if (match.empty()) return chain;
  auto at = static_cast<std::size_t>(std::ranges::max_element(score) - score.begin());
  for (; at != kNone; at = previous[at])
    chain.push_back(at);
  std::ranges::reverse(chain);
  return chain;
}

// Leaves out places at the ends of the chain where the match has no peak, or a poor one: there the
// series ends before the step does, or begins after it.
void trim(std::vector<std::size_t>& chain, const std::vector<double>& match) {
  std::vector<double> usual;
  usual.reserve(chain.size());
  for (const std::size_t at : chain)
    usual.push_back(match[at]);
  std::ranges::sort(usual);
  const double least = usual.empty() ? 0 : kFairMatch * usual[usual.size() / 2];
  const auto is_peak = [&](std::size_t at) {
    return at > 0 && at + 1 < match.size() && match[at] >= match[at - 1] &&
           match[at] >= match[at + 1] && match[at] >= least;
  };
  while (!chain.empty() && !is_peak(chain.back()))
    chain.pop_back();
  const auto first = std::ranges::find_if(chain, is_peak);
  chain.erase(chain.begin(), first);
}

// The place of the peak of the parabola through the match at `at` and beside it.
double between_intervals(const std::vector<double>& match, std::size_t at) {
  const double place = static_cast<double>(at);
  if (at == 0 || at + 1 >= match.size()) return place;
  const double left = match[at - 1];
  const double right = match[at + 1];
  const double bend = left - 2 * match[at] + right;
  if (!(bend < 0)) return place;
  return place + std::clamp(0.5 * (left - right) / bend, -0.5, 0.5);
}

// Where each step is, in intervals, if one takes about `length`.
std::vector<double> track(const std::vector<double>& series, std::size_t length) {
  if (2 * length > series.size()) return {};
  // The first pattern: the liveliest stretch of the middle third.
  std::size_t start = 0;
  double most = -1;
  for (std::size_t at = series.size() / 3; at + length <= series.size(); ++at) {
    double squares = 0;
    for (std::size_t k = 0; k < length; ++k)
      squares += series[at + k] * series[at + k];
    if (squares > most) start = at, most = squares;
    if (at > 2 * series.size() / 3) break;
  }
  const auto from = series.begin() + static_cast<std::ptrdiff_t>(start);
  std::vector<double> pattern(from, from + static_cast<std::ptrdiff_t>(length));
  std::vector<double> places;
  double step = static_cast<double>(length);
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<double> match = matches(series, pattern);
    std::vector<std::size_t> chain = best_chain(match, step);
    trim(chain, match);
    if (chain.size() < 3) return {};
    places.clear();
    std::ranges::fill(pattern, 0.0);
    for (const std::size_t at : chain) {
      places.push_back(between_intervals(match, at));
      for (std::size_t k = 0; k < length; ++k)
        pattern[k] += series[at + k];
    }
    step = (places.back() - places.front()) / static_cast<double>(places.size() - 1);
  }
  return places;
}

// Means of `series` over bins: the series may be read at fractions of intervals.
class BinnedSeries {
 public:
  explicit BinnedSeries(Series series) : before_(series.size() + 1, 0.0) {
    std::partial_sum(series.begin(), series.end(), before_.begin() + 1);
  }
  double mean(double from, double to) const { return (sum_to(to) - sum_to(from)) / (to - from); }
  double end() const { return static_cast<double>(before_.size() - 1); }

 private:
  double sum_to(double place) const {
    const auto left = static_cast<std::size_t>(std::clamp(place, 0.0, end()));
    if (left + 1 >= before_.size()) return before_.back();
    return before_[left] +
           (place - static_cast<double>(left)) * (before_[left + 1] - before_[left]);
  }

  std::vector<double> before_;  // [i]: sum of all values before i
};

double mean_gap(const std::vector<double>& places) {
  return (places.back() - places.front()) / static_cast<double>(places.size() - 1);
}

double resolution_of(const std::vector<double>& places) {
  return std::max(1.0, mean_gap(places) / kPhases);
}

// Sum of squares about `mean` of bins of `width` in [from, to).
double variation(const BinnedSeries& series, double from, double to, double width, double mean) {
  double squares = 0;
  for (; from + width <= to; from += width) {
    const double off = series.mean(from, from + width) - mean;
    squares += off * off;
  }
  return squares;
}

// Stellingwerf's statistic by steps of varying length, each predicted by the mean of the others.
// `resolution`: width of a bin, about.
double periodicity(const BinnedSeries& series, const std::vector<double>& places,
                   double resolution) {
  if (places.size() < 3) return 0;
  const std::size_t steps = places.size() - 1;
  const double step = mean_gap(places);
  const auto phases = static_cast<std::size_t>(std::max(4L, std::lround(step / resolution)));
  double all = 0;
  double all_squares = 0;
  double within = 0;
  for (std::size_t phase = 0; phase < phases; ++phase) {
    double sum = 0;
    double squares = 0;
    for (std::size_t k = 0; k < steps; ++k) {
      const double width = (places[k + 1] - places[k]) / static_cast<double>(phases);
      const double from = places[k] + static_cast<double>(phase) * width;
      const double value = series.mean(from, from + width);
      sum += value;
      squares += value * value;
    }
    within += squares - sum * sum / static_cast<double>(steps);
    all += sum;
    all_squares += squares;
  }
  const double bins = static_cast<double>(phases * steps);
  const double width = step / static_cast<double>(phases);
  const double uncovered = variation(series, 0, places.front() - step, width, all / bins) +
                           variation(series, places.back() + step, series.end(), width, all / bins);
  const double total = all_squares - all * all / bins + uncovered;
  if (!(total > 0)) return 0;
  const double others = static_cast<double>(steps) / static_cast<double>(steps - 1);
  return 1 - (others * others * within + uncovered) / total;
}

double median_gap(const std::vector<double>& places) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < places.size(); ++i)
    gaps.push_back(places[i] - places[i - 1]);
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::ranges::nth_element(gaps, middle);
  return *middle;
}

double mean_periodicity(const std::vector<BinnedSeries>& flows, const std::vector<double>& places,
                        double resolution) {
  double sum = 0;
  for (const BinnedSeries& flow : flows)
    sum += periodicity(flow, places, resolution);
  return sum / static_cast<double>(flows.size());
}

// The least ratio of what `track` explains to what a longer one of `tracks` does, at the resolution
// of the longer one.
double ratio_to_longer(const std::vector<BinnedSeries>& flows, const std::vector<double>& track,
                       const std::vector<std::vector<double>>& tracks) {
  double least = 1e9;
  for (const std::vector<double>& other : tracks) {
    if (mean_gap(other) <= mean_gap(track)) continue;
    const double resolution = resolution_of(other);
    const double most = mean_periodicity(flows, other, resolution);
    if (most > 0) least = std::min(least, mean_periodicity(flows, track, resolution) / most);
  }
  return least;
}

// `steps`: without times.
StepTiming timing_of(const std::vector<double>& places, StepTiming steps, std::size_t size,
                     Seconds interval) {
  const double length = mean_gap(places);
  steps.mean = interval * length;
  steps.median = interval * median_gap(places);
  steps.coverage =
      std::min(1.0, (places.back() - places.front() + 2 * length) / static_cast<double>(size));
  for (const double place : places)
    steps.marks.push_back(interval * place);
  return steps;
}

}  // namespace

bool StepTiming::is_clear(double periodicity_min) const {
  return steps() >= kClearSteps && coverage >= kClearCoverage && periodicity >= periodicity_min &&
         !is_ambiguous;
}

std::optional<StepTiming> find_steps(const std::vector<Series>& flows, Seconds interval,
                                     const StepSearchOptions& search) {
  std::vector<std::vector<double>> series;
  for (const Series flow : flows)
    if (auto lively = normalized(flow); !lively.empty()) series.push_back(std::move(lively));
  if (series.empty()) return std::nullopt;
  const std::size_t size = series.front().size();
  std::vector<double> autocorrelation(size / 3 + 1, 0.0);
  std::vector<double> sum(size, 0.0);
  for (const auto& one : series) {
    add_autocorrelation(autocorrelation, one);
    for (std::size_t i = 0; i < size; ++i)
      sum[i] += one[i];
  }
  for (double& value : autocorrelation)
    value /= static_cast<double>(series.size());
  sum = normalized(sum);
  if (sum.empty()) return std::nullopt;
  const std::vector<BinnedSeries> binned(series.begin(), series.end());
  std::vector<std::vector<double>> tracks;
  for (const std::size_t length : candidates(smoothed(autocorrelation), search))
    if (auto places = track(sum, length); places.size() >= 3) tracks.push_back(std::move(places));
  double shorter = 0;
  for (const std::vector<double>& places : tracks) {
    const double ratio = ratio_to_longer(binned, places, tracks);
    if (ratio < kAsGood) {
      shorter = std::max(shorter, ratio);
      continue;
    }
    StepTiming steps{.periodicity = mean_periodicity(binned, places, resolution_of(places)),
                     .is_ambiguous = shorter > kRivalShorter || ratio < kRivalLonger};
    if (steps.periodicity > 0) return timing_of(places, std::move(steps), size, interval);
  }
  return std::nullopt;
}

double periodicity_of(Series bytes, Seconds interval, const std::vector<Seconds>& marks) {
  std::vector<double> places;
  places.reserve(marks.size());
  for (const Seconds mark : marks)
    places.push_back(mark / interval);
  return bytes.empty() ? 0 : periodicity(BinnedSeries(bytes), places, resolution_of(places));
}

}  // namespace regatta::diag
