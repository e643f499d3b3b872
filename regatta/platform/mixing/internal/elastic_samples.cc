#include "regatta/platform/mixing/internal/elastic_samples.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/stats.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

constexpr std::size_t kRecent = 8;    // intervals that tell whether demand grows
constexpr std::size_t kUnknown = 30;  // a workload with fewer intervals counts as one with spikes
constexpr float kIdleMost = 0.12F;
constexpr float kSpikeLeast = 0.8F;
constexpr double kGrowthMax = 3;

enum Kind { kIdle, kOrdinary, kUnsteady, kKinds };

struct KindOfLoad {
  Kind kind = kUnsteady;
  bool has_spikes = false;
};

KindOfLoad kind_of(const MixedWorkload& workload, std::size_t now) {
  std::vector<float> past;
  for (std::size_t i = 0; i < now; ++i)
    if (workload.demand[i] >= 0) past.push_back(workload.demand[i]);
  if (past.size() < kUnknown) return {};
  const std::size_t high = past.size() - 1 - past.size() / 200;
  std::nth_element(past.begin(), past.begin() + static_cast<std::ptrdiff_t>(high), past.end());
  if (past[high] >= kSpikeLeast) return {kUnsteady, true};
  const float most =
      *std::max_element(past.begin() + static_cast<std::ptrdiff_t>(high), past.end());
  return {most < kIdleMost && past.size() >= 2 * kUnknown ? kIdle : kOrdinary, false};
}

void append_window(std::vector<float>& values, const MixedWorkload& workload, std::size_t now,
                   std::size_t window) {
  for (std::size_t i = now - std::min(now, window); i < now; ++i)
    if (workload.demand[i] >= 0) values.push_back(workload.demand[i]);
}

double average(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values)
    sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double growth(std::span<const MixedWorkload> workloads, std::span<const int> present,
              std::size_t now, std::size_t window) {
  std::vector<float> all;
  std::vector<float> recent;
  for (const int load : present) {
    append_window(all, at(workloads, load), now, window);
    append_window(recent, at(workloads, load), now, kRecent);
  }
  const double mean = average(all);
  return mean > 0 ? std::clamp(average(recent) / mean, 1.0, kGrowthMax) : 1;
}

float drawn(const std::vector<float>& sorted, double share) {
  return sorted.empty() ? 0 : sorted[quantile_place(sorted.size(), share)];
}

}  // namespace

std::vector<LoadSamples> elastic_samples(std::span<const MixedWorkload> workloads,
                                         std::span<const int> present, std::size_t now,
                                         const ElasticOptions& options) {
  const auto window = as_index(options.window);
  const auto factor = static_cast<float>(growth(workloads, present, now, window));
  std::array<std::vector<float>, kKinds> pools;
  std::vector<KindOfLoad> kinds;
  for (const int load : present) {
    kinds.push_back(kind_of(at(workloads, load), now));
    append_window(pools[kinds.back().kind], at(workloads, load), now, window);
  }
  for (std::vector<float>& pool : pools)
    std::sort(pool.begin(), pool.end());
  const auto samples = as_index(options.samples);
  const auto pooled =
      static_cast<std::size_t>(std::round(options.pooled_share * static_cast<double>(samples)));
  std::vector<LoadSamples> result;
  for (std::size_t i = 0; i < present.size(); ++i) {
    const MixedWorkload& workload = at(workloads, present[i]);
    std::vector<float> own;
    append_window(own, workload, now, window);
    std::sort(own.begin(), own.end());
    packing::RandomSequence random(
        splitmix(options.seed * 1'000'003U + static_cast<std::uint64_t>(present[i])));
    LoadSamples load{std::vector<float>(samples), !(options.spikes_may_wait && kinds[i].has_spikes),
                     workload.memory};
    // Both parts are spread over the samples, so that parts of two workloads meet at random.
    const std::size_t shift = random.below(samples);
    for (std::size_t draw = 0; draw < samples; ++draw) {
      const bool is_pooled = draw < pooled;
      const double share = random.uniform();
      const std::size_t index = (draw * 197 + shift) % samples;
      load.demand[index] =
          std::min(1.0F, factor * drawn(is_pooled ? pools[kinds[i].kind] : own, share));
    }
    result.push_back(std::move(load));
  }
  return result;
}

}  // namespace regatta::mixing
