#include "regatta/planning/plan/internal/search/layer_balance.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace regatta::plan {
namespace {

double between(std::mt19937& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

MicroBatchTime random_slot(std::mt19937& random, double scale) {
  return {.forward = Seconds{scale * between(random, 0.1, 1)},
          .backward = Seconds{scale * between(random, 0.1, 2)}};
}

BalanceInput random_input(std::mt19937& random) {
  BalanceInput input;
  const int stages = std::uniform_int_distribution<int>(1, 5)(random);
  for (int s = 0; s < stages; ++s) {
    input.stages.push_back({.fixed = random_slot(random, s + 1 == stages ? 2 : 0.2),
                            .dense = random_slot(random, 1),
                            .expert = random_slot(random, 2),
                            .fixed_memory = between(random, 0, 2),
                            .dense_memory = between(random, 0.5, 1.5),
                            .expert_memory = between(random, 1, 2),
                            .capacity = between(random, 3, 12)});
  }
  input.dense = std::uniform_int_distribution<int>(0, 8)(random);
  input.expert = std::uniform_int_distribution<int>(0, 4)(random);
  input.micro_batches = std::uniform_int_distribution<int>(1, 12)(random);
  return input;
}

// Every partition, one by one; infinity where none fits.
double least_of_all(const BalanceInput& input) {
  double least = std::numeric_limits<double>::infinity();
  const int layers = input.dense + input.expert;
  std::vector<MicroBatchTime> slots;
  const std::function<void(int)> place = [&](int first) {
    const std::size_t s = slots.size();
    if (s == input.stages.size()) {
      if (first == layers) least = std::min(least, pipeline_time(slots, input.micro_batches).value);
      return;
    }
    for (int count = 1; first + count <= layers; ++count) {
      const int dense = std::clamp(input.dense - first, 0, count);
      const auto blocks = workload::dense_and_expert_blocks(dense, count - dense);
      if (!input.stages[s].fits(blocks)) continue;
      slots.push_back(input.stages[s].slot(blocks));
      place(first + count);
      slots.pop_back();
    }
  };
  place(0);
  return least;
}

TEST(BalanceLayers, FindsWhatTryingAllPartitionsFinds) {
  constexpr int kCases = 3000;
  std::mt19937 random(7);
  int fitting = 0;
  for (int i = 0; i < kCases; ++i) {
    const BalanceInput input = random_input(random);
    const double least = least_of_all(input);
    const auto balance = balance_layers(input, 1000000);
    ASSERT_EQ(balance.has_value(), least < 1e9) << "case " << i;
    if (!balance) continue;
    ++fitting;
    EXPECT_TRUE(balance->is_proven) << "case " << i;
    EXPECT_NEAR(balance->time.value / least, 1, 1e-6) << "case " << i;
    EXPECT_LE(balance->bound.value, least * (1 + 1e-6)) << "case " << i;
    EXPECT_EQ(std::accumulate(balance->layers.begin(), balance->layers.end(), 0),
              input.dense + input.expert);
  }
  EXPECT_GT(fitting, kCases / 4);
}

TEST(BalanceLayers, SpreadsEvenlyOverEqualStages) {
  const BalanceStage stage{.dense = {Seconds{1}, Seconds{2}}, .dense_memory = 1, .capacity = 100};
  const auto balance =
      balance_layers({.stages = {8, stage}, .dense = 96, .micro_batches = 64}, 1000);
  ASSERT_TRUE(balance);
  EXPECT_EQ(balance->layers, std::vector<int>(8, 12));
}

TEST(BalanceLayers, GivesTheFasterStageMoreUntilItsMemoryIsFull) {
  BalanceInput input{.dense = 24, .micro_batches = 1000};
  BalanceStage fast{.dense = {Seconds{1}, Seconds{2}}, .dense_memory = 1, .capacity = 100};
  BalanceStage slow{.dense = {Seconds{3}, Seconds{6}}, .dense_memory = 1, .capacity = 100};
  input.stages = {fast, slow};
  EXPECT_EQ(balance_layers(input, 1000)->layers, (std::vector<int>{18, 6}));
  input.stages[0].capacity = 15;
  EXPECT_EQ(balance_layers(input, 1000)->layers, (std::vector<int>{15, 9}));
  input.stages[1].capacity = 8;
  EXPECT_FALSE(balance_layers(input, 1000));
}

}  // namespace
}  // namespace regatta::plan
