#include "regatta/runtime/comm/internal/compress/schedules.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/model/collective/test_schedule_runner.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm::compress {
namespace {

struct TunedCall {
  CompressionKind kind = CompressionKind::kInt8;
  int ranks = 4;
  std::size_t count = 1000;
  bool in_place = false;
  bool keeps_residual = true;
  bool averages = false;
  unsigned seed = 1;
};

struct Outcome {
  bool ended = false;
  std::vector<std::vector<float>> in;  // by rank
  std::vector<std::vector<float>> out;
  std::vector<std::vector<float>> residual;  // after the call; 1e-5 before it
  std::vector<double> errors;                // as reported
  std::size_t sent = 0;                      // by rank 0

  // The sum over the ranks of what went in, in f64.
  std::vector<double> sum(double residual_before) const {
    std::vector<double> total(in[0].size());
    for (const auto& values : in)
      for (std::size_t i = 0; i < total.size(); ++i)
        total[i] += static_cast<double>(values[i]) + residual_before;
    return total;
  }
};

constexpr float kBefore = 1e-5F;

std::vector<float> gradient(std::size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 1e-2F);
  std::vector<float> values(count);
  for (float& x : values)
    x = normal(random);
  return values;
}

void build(CollectiveSchedule& schedule, const GroupPosition& self, const CompressionInput& vector,
           const std::shared_ptr<ReductionStats>& stats) {
  if (vector.kind == CompressionKind::kTopK)
    top_k_all_reduce(schedule, self, vector, 0.05, stats);
  else if (vector.kind == CompressionKind::kPowerSgd)
    power_sgd_all_reduce(schedule, self, vector, 3, stats);
  else
    two_step_all_reduce(schedule, self, vector, stats);
}

Outcome run(const TunedCall& given) {
  Outcome result;
  std::mt19937 random(given.seed);
  const auto ranks = static_cast<std::size_t>(given.ranks);
  std::vector<CollectiveSchedule> schedules(ranks);
  std::vector<std::shared_ptr<ReductionStats>> tallies;
  result.out.resize(ranks);
  result.residual.assign(ranks, std::vector<float>(given.count, kBefore));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    result.in.push_back(gradient(given.count, random));
    result.out[rank] = given.in_place ? result.in[rank] : std::vector<float>(given.count, -7);
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    tallies.push_back(std::make_shared<ReductionStats>());
    build(schedules[rank], {static_cast<int>(rank), given.ranks},
          {.in = given.in_place ? result.out[rank].data() : result.in[rank].data(),
           .out = result.out[rank].data(),
           .count = given.count,
           .residual = given.keeps_residual ? result.residual[rank].data() : nullptr,
           .scale = given.averages ? 1.0F / static_cast<float>(given.ranks) : 1,
           .kind = given.kind},
          tallies.back());
  }
  ScheduleRunner runner(schedules, given.seed);
  result.ended = runner.run();
  for (const auto& stats : tallies)
    result.errors.push_back(stats->relative_error());
  for (int peer = 1; peer < given.ranks; ++peer)
    result.sent += runner.sent(0, peer);
  return result;
}

constexpr CompressionKind kAll[] = {CompressionKind::kBf16,    CompressionKind::kF16,
                                    CompressionKind::kInt8,    CompressionKind::kFp8E4m3,
                                    CompressionKind::kFp8E5m2, CompressionKind::kTopK,
                                    CompressionKind::kPowerSgd};

TunedCall random_case(CompressionKind kind, std::mt19937& random) {
  return {.kind = kind,
          .ranks = 2 + static_cast<int>(random() % 6),
          .count = random() % 3 == 0 ? 1 + random() % 600 : 1 + random() % 900000,
          .in_place = random() % 2 == 0,
          .averages = random() % 3 == 0,
          .seed = static_cast<unsigned>(random())};
}

// All of the input is in the result or in the residuals of the ranks.
TEST(CompressedAllReduce, LosesNothingButToTheResiduals) {
  std::mt19937 random(51);
  for (int round = 0; round < 5; ++round)
    for (const CompressionKind kind : kAll) {
      const TunedCall given = random_case(kind, random);
      const Outcome result = run(given);
      ASSERT_TRUE(result.ended) << to_string(kind);
      const std::vector<double> sum = result.sum(static_cast<double>(kBefore));
      const double factor = given.averages ? given.ranks : 1;
      for (std::size_t i = 0; i < given.count; ++i) {
        double kept = static_cast<double>(result.out[0][i]) * factor;
        for (const auto& residual : result.residual)
          kept += static_cast<double>(residual[i]);
        ASSERT_NEAR(kept, sum[i], 1e-6)
            << to_string(kind) << " of " << given.count << " over " << given.ranks << ", " << i;
      }
    }
}

TEST(CompressedAllReduce, GivesTheSameBitsOnEveryRankInAnyOrderOfSteps) {
  std::mt19937 random(52);
  for (const CompressionKind kind : kAll) {
    TunedCall given = random_case(kind, random);
    const Outcome once = run(given);
    for (const auto& out : once.out)
      EXPECT_EQ(out, once.out[0]) << to_string(kind);
    for (const double error : once.errors)
      EXPECT_EQ(error, once.errors[0]) << to_string(kind);
    given.in_place = !given.in_place;
    EXPECT_EQ(run(given).out, once.out) << to_string(kind);
  }
}

// The reported error beside the true one.
TEST(CompressedAllReduce, ReportsItsError) {
  for (const CompressionKind kind : kAll) {
    const Outcome result = run({.kind = kind, .ranks = 4, .count = 200000, .seed = 53});
    const std::vector<double> sum = result.sum(static_cast<double>(kBefore));
    double error = 0;
    double value = 0;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const double out = static_cast<double>(result.out[0][i]);
      error += (out - sum[i]) * (out - sum[i]);
      value += out * out;
    }
    const double truth = std::sqrt(error / value);
    EXPECT_NEAR(result.errors[0], truth, 0.1 * truth) << to_string(kind);
    EXPECT_GT(truth, 1e-5) << to_string(kind);
    if (is_elementwise(kind)) {
      EXPECT_LT(truth, 0.1) << to_string(kind);
    }
  }
}

TEST(CompressedAllReduce, SendsWhatItsHeaderSays) {
  constexpr std::size_t kCount = 1 << 20;
  const double each = 2.0 * 3 / 4 * kCount;  // elements that a rank sends
  const auto bytes = [&](CompressionKind kind) {
    return static_cast<double>(run({.kind = kind, .ranks = 4, .count = kCount}).sent) / each;
  };
  EXPECT_NEAR(bytes(CompressionKind::kBf16), 2, 0.01);
  EXPECT_NEAR(bytes(CompressionKind::kInt8), 260.0 / 256, 0.01);
  EXPECT_NEAR(bytes(CompressionKind::kFp8E5m2), 260.0 / 256, 0.01);
  EXPECT_NEAR(bytes(CompressionKind::kTopK) * each, 3 * 0.05 * kCount * 8, 200);
  EXPECT_NEAR(bytes(CompressionKind::kPowerSgd) * each, 3 * 3 * (1024 + 1024) * 4.0, 200);
}

TEST(CompressedAllReduce, WorksWithoutResiduals) {
  for (const CompressionKind kind :
       {CompressionKind::kBf16, CompressionKind::kInt8, CompressionKind::kFp8E4m3}) {
    const Outcome result =
        run({.kind = kind, .ranks = 3, .count = 70000, .keeps_residual = false, .seed = 54});
    ASSERT_TRUE(result.ended);
    const std::vector<double> sum = result.sum(0);
    for (std::size_t i = 0; i < sum.size(); ++i)
      ASSERT_NEAR(static_cast<double>(result.out[1][i]), sum[i], 0.01) << to_string(kind);
    EXPECT_EQ(result.residual[0], std::vector<float>(70000, kBefore));
  }
}

// Reduces `count` elements a part between three ranks, in place: to the rank's part of the input,
// or to its beginning. All of the input is in the results or in the residuals.
void check_scatter(std::size_t count, bool to_own_part) {
  constexpr int kRanks = 3;
  std::mt19937 random(55);
  std::vector<std::vector<float>> in;
  std::vector<std::vector<float>> residual(kRanks, std::vector<float>(count * kRanks));
  std::vector<CollectiveSchedule> schedules(kRanks);
  for (int rank = 0; rank < kRanks; ++rank)
    in.push_back(gradient(count * kRanks, random));
  const auto before = in;
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    one_step_reduce_scatter(schedules[index], {rank, kRanks},
                            {.in = in[index].data(),
                             .out = in[index].data() + (to_own_part ? index * count : 0),
                             .count = count,
                             .residual = residual[index].data(),
                             .kind = CompressionKind::kInt8},
                            std::make_shared<ReductionStats>());
  }
  ScheduleRunner runner(schedules, 5);
  ASSERT_TRUE(runner.run());
  for (std::size_t i = 0; i < count * kRanks; ++i) {
    double sum = 0;
    double kept = static_cast<double>(in[i / count][to_own_part ? i : i % count]);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      sum += static_cast<double>(before[rank][i]);
      kept += static_cast<double>(residual[rank][i]);
    }
    ASSERT_NEAR(kept, sum, 1e-7) << i;
  }
}

TEST(CompressedAllReduce, CutsALargeVectorIntoShortChunks) {
  constexpr std::size_t kCount = std::size_t{1} << 28;
  const std::unique_ptr<float[]> data(new float[kCount]);  // never touched
  CollectiveSchedule schedule;
  two_step_all_reduce(
      schedule, {0, 2},
      {.in = data.get(), .out = data.get(), .count = kCount, .kind = CompressionKind::kInt8},
      std::make_shared<ReductionStats>());
  for (const Step& step : schedule.steps())
    ASSERT_LE(step.bytes,
              encoded_bytes(CompressionKind::kInt8, std::size_t{1} << 20) + sizeof(ErrorSquares));
}

TEST(CompressedReduceScatter, GivesEachRankItsPart) {
  for (const std::size_t count : {std::size_t{3}, std::size_t{1000}, std::size_t{300001}})
    check_scatter(count, true);
}

TEST(CompressedReduceScatter, WritesOverItsInputOnlyWhenThatIsSent) {
  for (const std::size_t count : {std::size_t{3}, std::size_t{900001}})
    check_scatter(count, false);
}

}  // namespace
}  // namespace regatta::comm::compress
