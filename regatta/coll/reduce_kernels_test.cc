#include "regatta/coll/reduce_kernels.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::coll {
namespace {

std::byte* bytes(auto& data) {
  return reinterpret_cast<std::byte*>(data.data());
}

float from_bf16(std::uint16_t x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}

// The bf16 nearest to x, ties to even, by search among the neighbours.
std::uint16_t nearest_bf16(float x) {
  const auto down = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
  const auto up = static_cast<std::uint16_t>(down + 1);
  const double below = std::abs(static_cast<double>(x) - from_bf16(down));
  const double above = std::abs(static_cast<double>(from_bf16(up)) - x);
  if (below != above) return below < above ? down : up;
  return down % 2 == 0 ? down : up;
}

TEST(ReduceKernels, RoundBf16ToNearestEven) {
  std::mt19937 random(3);
  std::vector<std::uint16_t> a(5001);
  std::vector<std::uint16_t> b(a.size());
  // Magnitudes within 2^40 of each other and far from overflow.
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::uint16_t>((random() & 0x807fU) | ((100 + random() % 40) << 7));
    b[i] = static_cast<std::uint16_t>((random() & 0x807fU) | ((100 + random() % 40) << 7));
  }
  std::vector<std::uint16_t> sum(a.size());
  combine({DataType::kBf16, ReduceOp::kSum, 1}, bytes(sum), bytes(a), bytes(b), a.size() * 2);
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(sum[i], nearest_bf16(from_bf16(a[i]) + from_bf16(b[i]))) << i;
}

TEST(ReduceKernels, KeepBf16Specials) {
  const auto infinity = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity()) >> 16;
  std::vector<std::uint16_t> a{static_cast<std::uint16_t>(infinity), 0x7fff, 0x0000, 0x8000};
  std::vector<std::uint16_t> b{0x3f80, 0x3f80, 0x0000, 0x8000};
  combine({DataType::kBf16, ReduceOp::kSum, 1}, bytes(a), bytes(a), bytes(b), 8);
  EXPECT_TRUE(std::isinf(from_bf16(a[0])));
  EXPECT_TRUE(std::isnan(from_bf16(a[1])));
  EXPECT_EQ(a[2], 0x0000);
  EXPECT_EQ(a[3], 0x8000);
}

TEST(ReduceKernels, WorkInPlaceOnEitherOperand) {
  for (const std::size_t count : {1U, 7U, 64U, 1001U}) {
    std::vector<float> a(count);
    std::vector<float> b(count);
    std::vector<float> sum(count);
    for (std::size_t i = 0; i < count; ++i) {
      a[i] = static_cast<float>(i) * 0.5F;
      b[i] = static_cast<float>(i) + 1;
      sum[i] = a[i] + b[i];
    }
    const Reduction add{DataType::kF32, ReduceOp::kSum, 1};
    auto left = a;
    combine(add, bytes(left), bytes(left), bytes(b), count * 4);
    EXPECT_EQ(left, sum);
    auto right = b;
    combine(add, bytes(right), bytes(a), bytes(right), count * 4);
    EXPECT_EQ(right, sum);
  }
}

TEST(ReduceKernels, AverageOfIntegersTruncatesAndSumsWrap) {
  std::vector<std::int32_t> values{7, -7, 9};
  finish({DataType::kI32, ReduceOp::kAverage, 3}, bytes(values), 12);
  EXPECT_EQ(values, (std::vector<std::int32_t>{2, -2, 3}));
  finish({DataType::kI32, ReduceOp::kSum, 3}, bytes(values), 12);
  EXPECT_EQ(values, (std::vector<std::int32_t>{2, -2, 3}));
  std::vector<std::int32_t> top{std::numeric_limits<std::int32_t>::max()};
  std::vector<std::int32_t> one{1};
  combine({DataType::kI32, ReduceOp::kSum, 1}, bytes(top), bytes(top), bytes(one), 4);
  EXPECT_EQ(top[0], std::numeric_limits<std::int32_t>::min());
}

}  // namespace
}  // namespace regatta::coll
