#include "regatta/platform/mixing/internal/need_distribution.h"

#include <algorithm>
#include <cmath>

#include "regatta/base/core/ids.h"

namespace regatta::mixing {

NeedDistribution need_of(std::span<const float> samples, float k) {
  NeedDistribution need;
  if (samples.empty()) return need;
  need.parts[0] = 0;
  const float weight = 1 / static_cast<float>(samples.size());
  for (const float demand : samples) {
    const float share = k > 0 ? std::log1p(2 * k * demand) / std::log1p(2 * k) : demand;
    const float place = std::clamp(share, 0.0F, 1.0F) * (kNeedParts - 1);
    // Between two parts both get some, so that the mean stays.
    const auto part = std::min(static_cast<std::size_t>(place), std::size_t{kNeedParts - 2});
    const float rest = place - static_cast<float>(part);
    need.parts[part] += weight * (1 - rest);
    need.parts[part + 1] += weight * rest;
  }
  return need;
}

NeedDistribution sum_of(const NeedDistribution& a, const NeedDistribution& b) {
  NeedDistribution sum;
  sum.parts[0] = 0;
  for (std::size_t i = 0; i < kNeedParts; ++i) {
    const float weight = b.parts[i];
    if (weight <= 0) continue;
    for (std::size_t j = 0; i + j < kNeedParts; ++j)
      sum.parts[i + j] += weight * a.parts[j];
  }
  sum.above = above_together(tail_of(a), b);
  return sum;
}

NeedTail tail_of(const NeedDistribution& need) {
  NeedTail tail{};
  float above = need.above;
  tail[kNeedParts] = above;
  for (std::size_t i = kNeedParts; i-- > 0;) {
    above += need.parts[i];
    tail[i] = above;
  }
  return tail;
}

float above_together(const NeedTail& tail, const NeedDistribution& added) {
  float above = added.above;
  for (std::size_t i = 0; i < kNeedParts; ++i)
    above += added.parts[i] * tail[kNeedParts - i];
  return above;
}

}  // namespace regatta::mixing
