#include "regatta/platform/mixing/internal/elastic_samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

constexpr std::size_t kHour = 60;     // intervals
constexpr std::size_t kUnknown = 30;  // a workload with fewer intervals may have spikes
constexpr float kHigh = 0.5F;
constexpr float kSpikeLeast = 0.8F;
constexpr float kUnknownHighShare = 0.06F;
constexpr std::size_t kPoolStep = 6;  // one history in so many is searched
// How much features tell, in the order of ElasticForecast::history_of(), and how much less a
// history tells for each interval of its age.
constexpr std::array<float, 7> kWeights = {3, 3, 2, 1, 2, 1.5F, 1};
constexpr float kAgeWeight = 4e-5F;

// Mean demand of all workloads before each interval; an interval counts a fifth less than the next.
std::vector<float> level_of(std::span<const MixedWorkload> workloads) {
  std::vector<float> level;
  float recent = 0;
  const std::size_t intervals = workloads.empty() ? 0 : workloads.front().demand.size();
  for (std::size_t t = 0; t < intervals; ++t) {
    level.push_back(recent);
    float sum = 0;
    float count = 0;
    for (const MixedWorkload& workload : workloads) {
      if (workload.demand[t] < 0) continue;
      sum += workload.demand[t];
      count += 1;
    }
    recent += (sum / std::max(1.0F, count) - recent) / 5;
  }
  return level;
}

}  // namespace

ElasticForecast::ElasticForecast(std::span<const MixedWorkload> workloads,
                                 const ElasticOptions& options)
    : workloads_(workloads), options_(options), level_(level_of(workloads)) {
  for (std::size_t t = 1; t < level_.size(); ++t)
    for (std::size_t i = 0; i < workloads.size(); ++i) {
      const auto& demand = workloads[i].demand;
      if (demand[t] < 0 || demand[t - 1] < 0 || (t * 31 + i * 17) % kPoolStep != 0) continue;
      pool_.push_back(history_of(static_cast<int>(i), t));
    }
}

ElasticForecast::History ElasticForecast::history_of(int workload, std::size_t interval) const {
  const std::vector<float>& demand = at(workloads_, workload).demand;
  std::array<float, 3> sums{};  // of the last 3, 10 and 60
  std::array<float, 3> counts{};
  constexpr std::array<std::size_t, 3> kSpans = {3, 10, kHour};
  float highest = 0;
  for (std::size_t back = 1; back <= std::min(kHour, interval); ++back) {
    const float share = demand[interval - back];
    if (share < 0) break;
    highest = std::max(highest, share);
    for (std::size_t span = 0; span < kSpans.size(); ++span) {
      if (back > kSpans[span]) continue;
      sums[span] += share;
      counts[span] += 1;
    }
  }
  std::size_t seen = 0;
  std::size_t high = 0;
  std::size_t spikes = 0;
  for (std::size_t t = 0; t < interval; ++t) {
    seen += demand[t] >= 0 ? 1 : 0;
    high += demand[t] > kHigh ? 1 : 0;
    spikes += demand[t] >= kSpikeLeast ? 1 : 0;
  }
  const float high_share =
      seen > kUnknown ? static_cast<float>(high) / static_cast<float>(seen) : kUnknownHighShare;
  History history{workload,
                  interval,
                  {level_[interval], sums[2] / std::max(1.0F, counts[2]), high_share, highest,
                   sums[1] / std::max(1.0F, counts[1]), sums[0] / std::max(1.0F, counts[0]),
                   std::max(0.0F, demand[interval - 1])},
                  seen >= kUnknown && spikes > seen / 200};
  // The root makes a difference between small demands count as one between large ones.
  for (float& feature : history.features)
    feature = std::sqrt(feature);
  return history;
}

std::vector<float> ElasticForecast::demand_after(const History& history, std::size_t now) const {
  const std::size_t lead = as_index(options_.move_intervals);
  const std::size_t every = as_index(options_.every);
  // Only what has followed by now.
  const auto end = std::partition_point(pool_.begin(), pool_.end(), [&](const History& past) {
    return past.interval + lead + every <= now;
  });
  // The nearest so far, the farthest of them first; from new to old, until age alone is too much.
  std::vector<std::pair<float, std::size_t>> nearest;
  const std::size_t count = as_index(options_.histories);
  for (auto place = static_cast<std::size_t>(end - pool_.begin()); place-- > 0;) {
    const float most = nearest.size() < count ? 1e30F : nearest.front().first;
    float distance = kAgeWeight * static_cast<float>(now - pool_[place].interval);
    if (distance >= most) break;
    for (std::size_t i = 0; i < kFeatures && distance < most; ++i) {
      const float difference = pool_[place].features[i] - history.features[i];
      distance += kWeights[i] * difference * difference;
    }
    if (distance >= most) continue;
    nearest.emplace_back(distance, place);
    std::push_heap(nearest.begin(), nearest.end());
    if (nearest.size() <= count) continue;
    std::pop_heap(nearest.begin(), nearest.end());
    nearest.pop_back();
  }
  std::vector<float> demand;
  for (const auto& [distance, place] : nearest) {
    const History& past = pool_[place];
    for (std::size_t t = 0; t < every; ++t)
      demand.push_back(
          std::max(0.0F, at(workloads_, past.workload).demand[past.interval + lead + t]));
  }
  std::sort(demand.begin(), demand.end());
  return demand;
}

std::vector<LoadSamples> ElasticForecast::samples(std::span<const int> present,
                                                  std::size_t now) const {
  const auto count = as_index(options_.samples);
  std::vector<LoadSamples> result;
  for (const int workload : present) {
    const History history = history_of(workload, now);
    std::vector<float> demand = demand_after(history, now);
    if (demand.empty()) demand.push_back(1);
    packing::RandomSequence random(
        splitmix(options_.seed * 1'000'003U + static_cast<std::uint64_t>(workload)));
    LoadSamples load{std::vector<float>(count), !(options_.spikes_may_wait && history.has_spikes),
                     at(workloads_, workload).memory};
    for (std::size_t i = 0; i < count; ++i)
      load.demand[i] = demand[(2 * i + 1) * demand.size() / (2 * count)];
    for (std::size_t i = count; i > 1; --i)
      std::swap(load.demand[i - 1], load.demand[random.below(i)]);
    result.push_back(std::move(load));
  }
  return result;
}

}  // namespace regatta::mixing
