#include "regatta/runtime/comm/internal/compress/codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace regatta::comm::compress {
namespace {

constexpr CompressionKind kCodes[] = {CompressionKind::kBf16, CompressionKind::kF16,
                                      CompressionKind::kInt8, CompressionKind::kFp8E4m3,
                                      CompressionKind::kFp8E5m2};

std::vector<float> gradients(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1e-3F);
  std::vector<float> values(count);
  for (float& x : values)
    x = normal(random) * (random() % 50 == 0 ? 100.0F : 1.0F);
  return values;
}

struct Coded {
  std::vector<std::byte> code;
  std::vector<float> decoded;
  ErrorSquares squares;
};
Coded code(CompressionKind kind, const std::vector<float>& in, float* residual = nullptr,
           std::uint32_t seed = 0) {
  Coded coded;
  coded.code.resize(encoded_bytes(kind, in.size()));
  coded.squares = encode({.kind = kind,
                          .in = in.data(),
                          .residual = residual,
                          .out = coded.code.data(),
                          .count = in.size(),
                          .seed = seed});
  coded.decoded.resize(in.size());
  decode(kind, coded.code.data(), coded.decoded.data(), in.size(), 1);
  return coded;
}

// The error that codec.h allows for a value of a block with the largest magnitude m.
double bound(CompressionKind kind, double x, double m) {
  constexpr double kRounding = 1.00001;
  switch (kind) {
    case CompressionKind::kBf16:
      return x / 256 * kRounding;
    case CompressionKind::kF16:
      return x / 2048 * kRounding + std::ldexp(1, -25);
    case CompressionKind::kFp8E4m3:
      return (x / 16 + std::ldexp(m, -18)) * kRounding;
    case CompressionKind::kFp8E5m2:
      return (x / 8 + std::ldexp(m, -32)) * kRounding;
    default:
      return m / 254 * kRounding;
  }
}

void expect_within_bound(CompressionKind kind, const std::vector<float>& in) {
  const Coded coded = code(kind, in);
  for (std::size_t at = 0; at < in.size(); at += kBlock) {
    const std::size_t end = std::min(at + kBlock, in.size());
    double m = 0;
    for (std::size_t i = at; i < end; ++i)
      m = std::max(m, std::abs(static_cast<double>(in[i])));
    for (std::size_t i = at; i < end; ++i)
      ASSERT_LE(std::abs(static_cast<double>(coded.decoded[i]) - static_cast<double>(in[i])),
                bound(kind, std::abs(static_cast<double>(in[i])), m))
          << to_string(kind) << ", element " << i << ": " << in[i];
  }
}

TEST(Codec, KeepsEveryValueWithinItsBound) {
  for (const CompressionKind kind : kCodes)
    for (const std::size_t count : {1U, 2U, 255U, 256U, 257U, 1000U, 100003U})
      expect_within_bound(kind, gradients(count, 5));
}

TEST(Codec, KeepsTheBoundOverAllMagnitudesOfABlock) {
  std::mt19937 random(6);
  std::vector<float> values(20000);
  for (float& x : values)
    x = std::ldexp(static_cast<float>(random()) * 0x1p-32F - 0.5F,
                   static_cast<int>(random() % 40) - 25);
  for (const CompressionKind kind : kCodes)
    if (kind != CompressionKind::kF16) expect_within_bound(kind, values);
}

// Every code of an 8-bit float, as its definition has it, comes back from the value it stands for.
void expect_all_codes(CompressionKind kind, int digits, int bias, double largest) {
  for (int code = 0; code < 128; ++code) {
    const int exponent = code >> digits;
    const int fraction = code & ((1 << digits) - 1);
    const double value = exponent == 0
                             ? std::ldexp(fraction, 1 - bias - digits)
                             : std::ldexp((1 << digits) + fraction, exponent - bias - digits);
    if (value > largest) continue;
    // The second value is the block's largest, so the scale is 1.
    const std::vector<float> in{static_cast<float>(-value), static_cast<float>(largest)};
    const Coded coded = compress::code(kind, in);
    EXPECT_EQ(coded.decoded, in) << to_string(kind) << " code " << code;
    EXPECT_EQ(static_cast<int>(coded.code[4]), code | 0x80) << to_string(kind);
  }
}

TEST(Codec, KeepsEveryValueOfTheEightBitFloats) {
  expect_all_codes(CompressionKind::kFp8E4m3, 3, 7, 448);
  expect_all_codes(CompressionKind::kFp8E5m2, 2, 15, 57344);
}

TEST(Codec, RoundsTiesOfEightBitFloatsToEven) {
  // Between 16 and 18 and between 18 and 20, and half the smallest step.
  const std::vector<float> in{17, 19, 0x1p-10F, 0x1.8p-9F, 448};
  const std::vector<float> expected{16, 20, 0, 0x1p-8F, 448};
  EXPECT_EQ(code(CompressionKind::kFp8E4m3, in).decoded, expected);
}

TEST(Codec, TellsWhatItLeavesOut) {
  const std::vector<float> in = gradients(3000, 7);
  for (const CompressionKind kind : kCodes) {
    std::vector<float> residual(in.size(), 1e-4F);
    const Coded coded = code(kind, in, residual.data());
    double value = 0;
    double error = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const float wanted = in[i] + 1e-4F;
      ASSERT_EQ(residual[i], wanted - coded.decoded[i]) << to_string(kind);
      value += static_cast<double>(wanted) * static_cast<double>(wanted);
      error += static_cast<double>(residual[i]) * static_cast<double>(residual[i]);
    }
    EXPECT_NEAR(coded.squares.value, value, 1e-5 * value);
    EXPECT_NEAR(coded.squares.error, error, 1e-5 * error);
    EXPECT_GT(error, 0);
  }
}

TEST(Codec, AddsAndScalesWhatItDecodes) {
  const std::vector<float> in = gradients(777, 8);
  for (const CompressionKind kind : kCodes) {
    const Coded coded = code(kind, in);
    std::vector<float> sum(in.size(), 2);
    decode_add(kind, coded.code.data(), sum.data(), sum.size());
    std::vector<float> quarter(in.size());
    decode(kind, coded.code.data(), quarter.data(), quarter.size(), 0.25F);
    for (std::size_t i = 0; i < in.size(); ++i) {
      ASSERT_EQ(sum[i], 2 + coded.decoded[i]);
      ASSERT_EQ(quarter[i], coded.decoded[i] / 4);
    }
  }
}

TEST(Codec, KeepsZerosAndShowsWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const CompressionKind kind : kCodes) {
    std::vector<float> in(600, 0.0F);
    EXPECT_EQ(code(kind, in).decoded, in) << to_string(kind);
    for (const float bad : {infinity, std::nanf("")}) {
      in.assign(600, 1.0F);
      in[300] = bad;
      std::vector<float> residual(in.size());
      const Coded coded = code(kind, in, residual.data());
      EXPECT_FALSE(std::isfinite(coded.decoded[300])) << to_string(kind);
      EXPECT_EQ(coded.decoded[0], 1) << to_string(kind);
      for (const float x : residual)
        ASSERT_TRUE(std::isfinite(x)) << to_string(kind);
    }
  }
}

TEST(Codec, RoundsRightOnAverageByChance) {
  // 0.3 of a step of 1/127.
  std::vector<float> in(1 << 16, 0.3F / 127);
  for (std::size_t i = 0; i < in.size(); i += kBlock)
    in[i] = 1;
  double sum = 0;
  const Coded once = code(CompressionKind::kInt8, in, nullptr, 1);
  for (std::size_t i = 1; i < kBlock; ++i)
    EXPECT_TRUE(once.decoded[i] == 0 || std::abs(once.decoded[i] - 1.0F / 127) < 1e-6F);
  for (std::size_t i = 0; i < in.size(); ++i)
    if (i % kBlock != 0) sum += static_cast<double>(once.decoded[i]) * 127;
  EXPECT_NEAR(sum / static_cast<double>(in.size()), 0.3, 0.01);
  EXPECT_NE(code(CompressionKind::kInt8, in, nullptr, 3).code, once.code);
  EXPECT_EQ(code(CompressionKind::kInt8, in, nullptr, 1).code, once.code);
}

TEST(Codec, GivesTheSameBitsOnEveryWidthOfVectors) {
  const std::vector<float> in = gradients(5001, 9);
  for (const CompressionKind kind : kCodes)
    for (const std::uint32_t seed : {0U, 5U}) {
      limit_vectors("baseline");
      std::vector<float> expected_residual(in.size());
      const Coded expected = code(kind, in, expected_residual.data(), seed);
      std::vector<float> expected_sum = in;
      decode_add(kind, expected.code.data(), expected_sum.data(), in.size());
      for (const char* level : {"avx2", "avx512"}) {
        limit_vectors(level);
        std::vector<float> residual(in.size());
        const Coded coded = code(kind, in, residual.data(), seed);
        EXPECT_EQ(coded.code, expected.code) << to_string(kind) << " " << level;
        EXPECT_EQ(coded.decoded, expected.decoded) << to_string(kind) << " " << level;
        EXPECT_EQ(residual, expected_residual) << to_string(kind) << " " << level;
        std::vector<float> sum = in;
        decode_add(kind, coded.code.data(), sum.data(), in.size());
        EXPECT_EQ(sum, expected_sum) << to_string(kind) << " " << level;
      }
    }
}

}  // namespace
}  // namespace regatta::comm::compress
