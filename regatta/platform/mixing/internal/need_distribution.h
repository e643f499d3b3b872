// mixing/internal/need_distribution.h: how likely workloads that are independent of each other need
// more than their device has. Without the noise of samples that happen to meet, or not.
#pragma once

#include <array>
#include <span>

namespace regatta::mixing {

constexpr int kNeedParts = 80;

// The need of workloads on one device, in parts of it. Interference makes demands x and y need
// x + y + 2 k x y (mixed_demand() in interference.h; of three and more up to terms of k^2), so that
// what adds up is log(1 + 2 k x), and parts are of equal size in that.
struct NeedDistribution {
  std::array<float, kNeedParts> parts = {1};  // the probability of each; the last is a whole device
  float above = 0;                            // of more than a device
};

// Each of the samples is as likely; `k` is the interference.
NeedDistribution need_of(std::span<const float> samples, float k);

// The need of both together, where neither tells anything about the other.
NeedDistribution sum_of(const NeedDistribution& a, const NeedDistribution& b);

// Place i: the probability of part i and of all that is more; kNeedParts parts are too much.
using NeedTail = std::array<float, kNeedParts + 1>;
NeedTail tail_of(const NeedDistribution& need);

// The `above` of the sum, in one pass.
float above_together(const NeedTail& tail, const NeedDistribution& added);

}  // namespace regatta::mixing
