#include "regatta/runtime/comm/internal/compress/top_k.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace regatta::comm::compress {
namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffffU;
// A magnitude has 31 bits: the upper 16 are compared first, then the lower 15.
constexpr unsigned kLowBits = 15;
constexpr std::size_t kHighBuckets = std::size_t{1} << 16;
constexpr std::size_t kLowBuckets = std::size_t{1} << kLowBits;

std::uint32_t magnitude_of(float x) {
  return std::bit_cast<std::uint32_t>(x) & kMagnitude;
}

// The bucket that holds the `rank`-th largest (from 1); `rank` becomes its place in the bucket.
std::uint32_t find_bucket(const std::vector<std::uint32_t>& counts, std::size_t& rank) {
  std::size_t bucket = counts.size();
  while (bucket-- > 1) {
    if (counts[bucket] >= rank) break;
    rank -= counts[bucket];
  }
  return static_cast<std::uint32_t>(bucket);
}

}  // namespace

std::size_t top_k_count(std::size_t count, double fraction) {
  const auto wanted = static_cast<std::size_t>(std::llround(fraction * static_cast<double>(count)));
  return std::clamp<std::size_t>(wanted, std::min<std::size_t>(count, 1), count);
}

ErrorSquares select_top_k(std::span<const float> in, std::span<float> residual,
                          std::span<TopKEntry> entries) {
  for (std::size_t i = 0; i < in.size(); ++i)
    residual[i] += in[i];
  if (entries.empty()) return {};
  std::vector<std::uint32_t> counts(kHighBuckets);
  for (const float x : residual)
    ++counts[magnitude_of(x) >> kLowBits];
  std::size_t rank = entries.size();
  const std::uint32_t high = find_bucket(counts, rank);
  counts.assign(kLowBuckets, 0);
  for (const float x : residual)
    if (magnitude_of(x) >> kLowBits == high) ++counts[magnitude_of(x) & (kLowBuckets - 1)];
  const std::uint32_t threshold = high << kLowBits | find_bucket(counts, rank);
  // `rank` of those that are equal to the threshold go too.
  ErrorSquares squares;
  std::size_t used = 0;
  for (std::size_t i = 0; i < residual.size(); ++i) {
    const std::uint32_t magnitude = magnitude_of(residual[i]);
    const double square = static_cast<double>(residual[i]) * static_cast<double>(residual[i]);
    squares.value += square;
    const bool is_tie = magnitude == threshold && rank > 0;
    if (magnitude <= threshold && !is_tie) {
      squares.error += square;
      continue;
    }
    if (is_tie) --rank;
    entries[used++] = {static_cast<std::uint32_t>(i), residual[i]};
    residual[i] = 0;
  }
  return squares;
}

void add_entries(std::span<const TopKEntry> entries, std::span<float> out, float factor) {
  for (const TopKEntry& entry : entries)
    if (entry.index < out.size()) out[entry.index] += entry.value * factor;
}

}  // namespace regatta::comm::compress
