#include "regatta/runtime/comm/internal/compress/all_reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/runtime/comm/compressor.h"
#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_status.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm::compress {
namespace {

constexpr CompressionKind kAll[] = {CompressionKind::kNone,    CompressionKind::kBf16,
                                    CompressionKind::kF16,     CompressionKind::kInt8,
                                    CompressionKind::kFp8E4m3, CompressionKind::kFp8E5m2,
                                    CompressionKind::kTopK,    CompressionKind::kPowerSgd};

std::vector<float> gradient(int rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) + 60);
  std::normal_distribution<float> normal(0, 1e-2F);
  std::vector<float> values(count);
  for (float& x : values)
    x = normal(random);
  return values;
}

std::vector<float> sum_of(int ranks, std::size_t count) {
  std::vector<float> sum(count);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<float> mine = gradient(rank, count);
    for (std::size_t i = 0; i < count; ++i)
      sum[i] += mine[i];
  }
  return sum;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0;
  double value = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    value += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(error / value);
}

void run(TestLayout layout, int ranks, const std::function<void(Communicator&)>& body) {
  run_all(layout, ranks, body);
}

class CompressedCall : public testing::TestWithParam<std::tuple<TestLayout, int>> {
 protected:
  TestLayout layout() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Worlds, CompressedCall,
                         testing::Combine(testing::Values(TestLayout::kShm, TestLayout::kTcp,
                                                          TestLayout::kMixed),
                                          testing::Values(1, 2, 4)));

TEST_P(CompressedCall, ComesNearTheSumWithTheSameBitsOnEveryRank) {
  constexpr std::size_t kCount = 300001;
  const std::vector<float> sum = sum_of(ranks(), kCount);
  run(layout(), ranks(), [&](Communicator& world) {
    const std::vector<float> in = gradient(world.rank().value, kCount);
    for (const CompressionKind kind : kAll) {
      ErrorFeedback feedback;
      std::vector<float> out(kCount);
      auto pending = all_reduce(world, {in.data(), out.data(), kCount}, {.kind = kind}, &feedback);
      const Result<CompressionReport> report = pending.wait();
      ASSERT_TRUE(report) << report.error().message;
      const double truth = distance(out, sum);
      const bool is_rough = kind == CompressionKind::kTopK || kind == CompressionKind::kPowerSgd;
      EXPECT_LT(truth, is_rough ? 1.0 : 0.08) << to_string(kind);
      if (!is_rough) {
        EXPECT_NEAR(report->relative_error, truth, 0.15 * truth + 1e-6);
      }
      std::vector<float> first = out;
      expect_ok(world.broadcast(first.data(), kCount, DataType::kF32, Rank{0}).wait());
      EXPECT_EQ(out, first) << to_string(kind);
      EXPECT_LE(pending.started_at().value, pending.ended_at().value);
    }
  });
}

TEST_P(CompressedCall, MakesUpForWhatItLeftOut) {
  constexpr std::size_t kCount = 20000;
  constexpr int kCalls = 30;
  const std::vector<float> sum = sum_of(ranks(), kCount);
  run(layout(), ranks(), [&](Communicator& world) {
    const std::vector<float> in = gradient(world.rank().value, kCount);
    for (const CompressionKind kind : {CompressionKind::kInt8, CompressionKind::kFp8E5m2,
                                       CompressionKind::kTopK, CompressionKind::kPowerSgd}) {
      ErrorFeedback feedback;
      std::vector<float> total(kCount);
      std::vector<float> out(kCount);
      double first = 0;
      for (int call = 0; call < kCalls; ++call) {
        ASSERT_TRUE(all_reduce(world, {in.data(), out.data(), kCount},
                               {.kind = kind, .fraction = 0.2, .rank = 20}, &feedback)
                        .wait());
        if (call == 0) first = distance(out, sum);
        for (std::size_t i = 0; i < kCount; ++i)
          total[i] += out[i] / kCalls;
      }
      EXPECT_LT(distance(total, sum), 0.25 * first + 1e-6) << to_string(kind);
    }
  });
}

TEST_P(CompressedCall, AveragesInPlaceAndQueues) {
  constexpr std::size_t kCount = 50000;
  std::vector<float> mean = sum_of(ranks(), kCount);
  for (float& x : mean)
    x /= static_cast<float>(ranks());
  run(layout(), ranks(), [&](Communicator& world) {
    std::array<std::vector<float>, 4> buckets;
    std::array<ErrorFeedback, 4> feedback;
    std::vector<CompressedHandle> pending;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      buckets[i] = gradient(world.rank().value, kCount);
      pending.push_back(
          all_reduce(world, {buckets[i].data(), buckets[i].data(), kCount, ReduceOp::kAverage},
                     {.kind = CompressionKind::kInt8}, &feedback[i]));
    }
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      ASSERT_TRUE(pending[i].wait());
      EXPECT_LT(distance(buckets[i], mean), 0.02);
    }
    EXPECT_EQ(buckets[3], buckets[0]);
  });
}

TEST_P(CompressedCall, OfAnyKindNeedsNoFeedback) {
  constexpr std::size_t kCount = 5000;
  run(layout(), ranks(), [](Communicator& world) {
    const std::vector<float> in = gradient(world.rank().value, kCount);
    for (const CompressionKind kind : kAll) {
      ErrorFeedback feedback;
      std::vector<float> kept(kCount);
      std::vector<float> lost(kCount);
      const CompressionOptions compression{.kind = kind};
      ASSERT_TRUE(
          all_reduce(world, {in.data(), kept.data(), kCount}, compression, &feedback).wait());
      ASSERT_TRUE(all_reduce(world, {in.data(), lost.data(), kCount}, compression, nullptr).wait());
      EXPECT_EQ(lost, kept) << to_string(kind);
    }
  });
}

// A tensor whose compression is turned off gets what was left out, and the residual is used up.
TEST_P(CompressedCall, WithNoneSendsTheRest) {
  constexpr std::size_t kCount = 5000;
  const std::vector<float> sum = sum_of(ranks(), kCount);
  run(layout(), ranks(), [&](Communicator& world) {
    const std::vector<float> in = gradient(world.rank().value, kCount);
    ErrorFeedback feedback;
    std::vector<float> first(kCount);
    std::vector<float> second(kCount);
    ASSERT_TRUE(all_reduce(world, {in.data(), first.data(), kCount},
                           {.kind = CompressionKind::kTopK}, &feedback)
                    .wait());
    ASSERT_TRUE(all_reduce(world, {in.data(), second.data(), kCount}, {}, &feedback).wait());
    for (std::size_t i = 0; i < kCount; ++i)
      ASSERT_NEAR(first[i] + second[i], 2 * sum[i], 1e-5);
    EXPECT_TRUE(feedback.residual.empty());
  });
}

TEST_P(CompressedCall, ScattersParts) {
  const std::size_t all = 12000 * static_cast<std::size_t>(ranks());
  const std::vector<float> sum = sum_of(ranks(), all);
  run(layout(), ranks(), [&](Communicator& world) {
    const std::vector<float> in = gradient(world.rank().value, all);
    for (const CompressionKind kind :
         {CompressionKind::kNone, CompressionKind::kBf16, CompressionKind::kInt8}) {
      ErrorFeedback feedback;
      std::vector<float> out(12000);
      const auto report =
          reduce_scatter(world, {in.data(), out.data(), 12000}, {.kind = kind}, &feedback).wait();
      ASSERT_TRUE(report) << report.error().message;
      const auto begin = sum.begin() + static_cast<std::ptrdiff_t>(12000 * world.rank().index());
      EXPECT_LT(distance(out, {begin, begin + 12000}), 0.02) << to_string(kind);
    }
  });
}

// The reported error assumes that the ranks' errors are independent; those of equal inputs are so
// only where the random numbers differ.
TEST(CompressedCalls, RoundByAnotherChanceOnEveryRank) {
  constexpr std::size_t kCount = 20000;
  constexpr int kRanks = 4;
  run(TestLayout::kTcp, kRanks, [](Communicator& world) {
    const std::vector<float> in = gradient(0, kCount * kRanks);
    std::vector<float> out(kCount);
    const auto report =
        reduce_scatter(world, {in.data(), out.data(), kCount},
                       {.kind = CompressionKind::kInt8, .stochastic = true}, nullptr)
            .wait();
    ASSERT_TRUE(report);
    std::vector<float> sum(kCount);
    for (std::size_t i = 0; i < kCount; ++i)
      sum[i] = kRanks * in[world.rank().index() * kCount + i];
    const double truth = distance(out, sum);
    EXPECT_NEAR(report->relative_error, truth, 0.1 * truth);
  });
}

TEST(CompressedCalls, RefuseWhatCannotBe) {
  run(TestLayout::kTcp, 2, [](Communicator& world) {
    std::vector<float> data(10);
    ErrorFeedback feedback{.residual = std::vector<float>(9)};
    const auto message = [&](const CompressionOptions& compression, ReduceOp op,
                             ErrorFeedback* state) {
      const auto report =
          all_reduce(world, {data.data(), data.data(), 10, op}, compression, state).wait();
      return report ? std::string("no error") : report.error().message;
    };
    EXPECT_THAT(message({.kind = CompressionKind::kInt8}, ReduceOp::kMax, nullptr),
                testing::HasSubstr("only sums and averages"));
    EXPECT_THAT(message({.kind = CompressionKind::kInt8}, ReduceOp::kSum, &feedback),
                testing::HasSubstr("of a tensor of 9 elements, not 10"));
    EXPECT_THAT(message({.kind = CompressionKind::kAutomatic}, ReduceOp::kSum, nullptr),
                testing::HasSubstr("through a Compressor"));
    EXPECT_THAT(message({.kind = CompressionKind::kTopK, .fraction = 2}, ReduceOp::kSum, nullptr),
                testing::HasSubstr("the fraction 2"));
    EXPECT_FALSE(reduce_scatter(world, {data.data(), data.data(), 5},
                                {.kind = CompressionKind::kTopK}, nullptr)
                     .wait());
    EXPECT_TRUE(world.barrier().wait());
  });
}

// Two ranks that asked for different codes: the sizes of their messages tell.
TEST(CompressedCalls, OfDifferentKindsAreAnError) {
  run_all(TestLayout::kTcp, 2, [](Communicator& world) {
    std::vector<float> data(1000, 1);
    const CompressionKind kind =
        world.rank().value == 0 ? CompressionKind::kInt8 : CompressionKind::kBf16;
    EXPECT_FALSE(
        all_reduce(world, {data.data(), data.data(), data.size()}, {.kind = kind}, nullptr).wait());
  });
}

TEST(CompressorInAutomaticMode, ForgetsCallsThatWereRefused) {
  constexpr std::size_t kCount = 1000;
  run(TestLayout::kTcp, 2, [](Communicator& world) {
    Compressor compressor(world, {.kind = CompressionKind::kAutomatic});
    std::vector<float> data(kCount, 1.0F);
    ErrorFeedback of_another{.residual = std::vector<float>(kCount / 2)};
    EXPECT_FALSE(compressor.all_reduce({data.data(), data.data(), kCount}, &of_another).wait());
    ErrorFeedback feedback;
    for (int call = 0; call < 3 * CompressionTuner::kTrials + 2; ++call) {
      const auto report =
          compressor.all_reduce({data.data(), data.data(), kCount}, &feedback).wait();
      EXPECT_TRUE(report) << report.error().message;
    }
  });
}

TEST(CompressorInAutomaticMode, PicksNoneInsideAServerAndNothingThatIsNotAllowed) {
  constexpr std::size_t kCount = 1 << 20;
  run(TestLayout::kShm, 2, [](Communicator& world) {
    Compressor compressor(world, {.kind = CompressionKind::kAutomatic});
    ErrorFeedback feedback;
    std::vector<float> data = gradient(world.rank().value, kCount);
    for (int call = 0; call < 3 * CompressionTuner::kTrials + 2; ++call) {
      const auto report =
          compressor.all_reduce({data.data(), data.data(), kCount}, &feedback).wait();
      ASSERT_TRUE(report) << report.error().message;
      if (call >= 3 * CompressionTuner::kTrials) {
        EXPECT_EQ(report->kind, CompressionKind::kNone);
      }
      std::fill(data.begin(), data.end(), 1.0F);
    }
    EXPECT_EQ(compressor.choice(kCount * 4), CompressionKind::kNone);
  });
}

}  // namespace
}  // namespace regatta::comm::compress
