#include "regatta/model/cost/collective.h"

#include "regatta/base/core/result.h"

namespace regatta::cost {
namespace {

int ceil_log2(int n) {
  int steps = 0;
  while ((1 << steps) < n)
    ++steps;
  return steps;
}

}  // namespace

CollectiveCost all_reduce_cost(Bytes size, int world_size) {
  REGATTA_CHECK(world_size >= 1 && size.value >= 0);
  if (world_size == 1) return {};
  const auto bytes = static_cast<double>(size.value);
  if (size.value * (world_size - 1) <= kSmallMessageBytes) return {1, bytes * (world_size - 1)};
  if (size.value <= kSmallMessageBytes) {
    const int steps = ceil_log2(world_size);
    return {steps, bytes * steps};
  }
  return {2 * (world_size - 1), 2 * pass_share(world_size) * bytes};
}

CollectiveCost reduce_scatter_cost(Bytes size, int world_size) {
  REGATTA_CHECK(world_size >= 1 && size.value >= 0);
  return {world_size - 1, pass_share(world_size) * static_cast<double>(size.value)};
}

Seconds cpu_throttling_wait(double cpu_share, int ranks) {
  if (ranks <= 1 || cpu_share <= 0) return {};
  const double n = ranks;
  return kCfsPeriod * ((1 - cpu_share) * (n / (n + 1) - 0.5));
}

}  // namespace regatta::cost
