#include "regatta/runtime/comm/internal/compress/top_k.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace regatta::comm::compress {
namespace {

TEST(TopK, SelectsWhatASortWouldAndKeepsTheRest) {
  std::mt19937 random(31);
  for (int round = 0; round < 30; ++round) {
    const std::size_t count = 1 + random() % 5000;
    std::vector<float> in(count);
    for (float& x : in)  // few distinct values, so that many are equal
      x = static_cast<float>(static_cast<int>(random() % 41) - 20) * (round % 2 == 0 ? 1 : 1e-3F);
    std::vector<float> before(count, round % 3 == 0 ? 0.5F : 0.0F);
    std::vector<float> residual = before;
    std::vector<TopKEntry> entries(top_k_count(count, 0.1));
    const ErrorSquares squares = select_top_k(in, residual, entries);

    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0U);
    const auto value = [&](std::uint32_t i) { return in[i] + before[i]; };
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::abs(value(a)) > std::abs(value(b));
    });
    order.resize(entries.size());
    std::sort(order.begin(), order.end());
    double left = 0;
    std::vector<float> expected(count);
    for (std::uint32_t i = 0; i < count; ++i)
      expected[i] = value(i);
    for (std::size_t k = 0; k < order.size(); ++k) {
      ASSERT_EQ(entries[k].index, order[k]) << "round " << round;
      ASSERT_EQ(entries[k].value, value(order[k]));
      expected[order[k]] = 0;
    }
    EXPECT_EQ(residual, expected) << "round " << round;
    for (const float x : expected)
      left += static_cast<double>(x) * static_cast<double>(x);
    EXPECT_NEAR(squares.error, left, 1e-9 * (1 + left));
  }
}

TEST(TopK, TakesNanFirst) {
  std::vector<float> in{5, 1, std::nanf(""), 7};
  std::vector<float> residual(4);
  std::vector<TopKEntry> entries(1);
  select_top_k(in, residual, entries);
  EXPECT_EQ(entries[0].index, 2U);
}

TEST(TopK, CountsAtLeastOneAndAtMostAll) {
  EXPECT_EQ(top_k_count(0, 0.5), 0U);
  EXPECT_EQ(top_k_count(10, 0.001), 1U);
  EXPECT_EQ(top_k_count(1000, 0.01), 10U);
  EXPECT_EQ(top_k_count(7, 1), 7U);
}

TEST(TopK, AddsEntriesThatAreInRange) {
  const std::vector<TopKEntry> entries{{0, 2}, {3, 1}, {4, 9}};
  std::vector<float> out(4, 1);
  add_entries(entries, out, 0.5F);
  EXPECT_EQ(out, (std::vector<float>{2, 1, 1, 1.5F}));
}

}  // namespace
}  // namespace regatta::comm::compress
