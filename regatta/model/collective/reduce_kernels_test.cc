#include "regatta/model/collective/reduce_kernels.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::collective {
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

// The value of an f16 by its definition (IEEE 754, binary16).
double from_f16(std::uint16_t x) {
  const int exponent = x >> 10 & 31;
  const int fraction = x & 1023;
  const double sign = (x & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// Every value there is, plus zero: widening and rounding give it back.
TEST(ReduceKernels, KeepEveryF16) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<std::uint16_t>(i);
  const std::vector<std::uint16_t> zeros(all.size(), 0x8000);  // -0 + x is x, also for -0
  std::vector<std::uint16_t> sum(all.size());
  combine({DataType::kF16, ReduceOp::kSum, 1}, bytes(sum), bytes(all),
          reinterpret_cast<const std::byte*>(zeros.data()), sum.size() * 2);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (std::isnan(from_f16(all[i]))) {
      ASSERT_TRUE(std::isnan(from_f16(sum[i]))) << i;
    } else {
      ASSERT_EQ(sum[i], all[i]);
    }
  }
}

TEST(ReduceKernels, RoundF16ToNearestEven) {
  std::mt19937 random(4);
  std::vector<std::uint16_t> a(200001);
  std::vector<std::uint16_t> b(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::uint16_t>(random());
    b[i] = static_cast<std::uint16_t>(random());
  }
  std::vector<std::uint16_t> product(a.size());
  combine({DataType::kF16, ReduceOp::kProduct, 1}, bytes(product), bytes(a), bytes(b),
          a.size() * 2);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double exact = from_f16(a[i]) * from_f16(b[i]);  // 22 bits at most
    const double got = from_f16(product[i]);
    if (std::isnan(exact)) {
      ASSERT_TRUE(std::isnan(got)) << i;
      continue;
    }
    // 65520 is half way between the largest f16 and what would be the next one.
    if (std::abs(exact) >= 65520) {
      ASSERT_EQ(got, std::copysign(INFINITY, exact)) << i;
      continue;
    }
    const auto next = [&](int step) {
      return from_f16(static_cast<std::uint16_t>(product[i] + step));
    };
    const double error = std::abs(got - exact);
    for (const double other : {next(1), (product[i] & 0x7fff) == 0 ? got : next(-1)}) {
      if (std::isnan(other) || std::isinf(other) || other == got) continue;
      ASSERT_LE(error, std::abs(other - exact)) << i;
      if (error == std::abs(other - exact)) {
        ASSERT_EQ(product[i] % 2, 0) << i;
      }
    }
  }
}

TEST(ReduceKernels, MultiplyAndKeepSignsOfBytes) {
  std::vector<std::int8_t> a{-3, 100, 7};
  std::vector<std::int8_t> b{5, 2, -1};
  auto out = a;
  combine({DataType::kI8, ReduceOp::kProduct, 1}, bytes(out), bytes(a), bytes(b), 3);
  EXPECT_EQ(out, (std::vector<std::int8_t>{-15, -56, -7}));  // 200 wraps round
  combine({DataType::kI8, ReduceOp::kMin, 1}, bytes(out), bytes(a), bytes(b), 3);
  EXPECT_EQ(out, (std::vector<std::int8_t>{-3, 2, -1}));
  std::vector<std::uint8_t> top{255, 3};
  finish({DataType::kU8, ReduceOp::kAverage, 256}, bytes(top), 2);
  EXPECT_EQ(top, (std::vector<std::uint8_t>{0, 0}));
}

}  // namespace
}  // namespace regatta::collective
