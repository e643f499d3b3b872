#include "regatta/base/core/stats.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

namespace regatta {
namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

std::size_t quantile_place(std::size_t count, double share) {
  constexpr double kRounding = 1e-9;  // of a product that is meant to be whole
  const double rank = std::ceil(share * static_cast<double>(count) - kRounding);
  return static_cast<std::size_t>(std::clamp(rank, 1.0, static_cast<double>(count))) - 1;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto place =
      values.begin() + static_cast<std::ptrdiff_t>(quantile_place(values.size(), share));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

std::vector<double> average_ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]])
      ++end;
    // The places first + 1 ... end are shared.
    const double shared = static_cast<double>(first + 1 + end) / 2;
    for (; first < end; ++first)
      ranks[order[first]] = shared;
  }
  return ranks;
}

std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size() || a.size() < 3) return std::nullopt;
  const std::vector<double> ranks_a = average_ranks(a);
  const std::vector<double> ranks_b = average_ranks(b);
  const double mean_rank = mean(ranks_a);  // the same for both: ties keep the sum of ranks
  double covariance = 0;
  double variance_a = 0;
  double variance_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    covariance += (ranks_a[i] - mean_rank) * (ranks_b[i] - mean_rank);
    variance_a += (ranks_a[i] - mean_rank) * (ranks_a[i] - mean_rank);
    variance_b += (ranks_b[i] - mean_rank) * (ranks_b[i] - mean_rank);
  }
  if (variance_a == 0 || variance_b == 0) return std::nullopt;
  return covariance / std::sqrt(variance_a * variance_b);
}

std::uint64_t fnv1a_words(std::span<const std::byte> bytes, std::uint64_t hash) {
  for (std::uint32_t word = 0; bytes.size() >= sizeof word; bytes = bytes.subspan(sizeof word)) {
    std::memcpy(&word, bytes.data(), sizeof word);
    hash = (hash ^ word) * 0x100000001b3U;
  }
  return hash;
}

}  // namespace regatta
