#include "regatta/model/collective/internal/halving.h"

#include <cstddef>

#include <gtest/gtest.h>

#include "regatta/model/collective/test_collective_check.h"

namespace regatta::collective {
namespace {

int rounds_for(int ranks) {
  int rounds = 0;
  while (1 << rounds < ranks)
    ++rounds;
  return rounds;
}

TEST(HalvingDoubling, GivesTheSumOnEveryRank) {
  expect_all_reduce(halving_doubling_all_reduce);
}

TEST(HalvingDoubling, ScattersTheSum) {
  expect_reduce_scatter(halving_reduce_scatter);
}

TEST(HalvingDoubling, GathersThePartOfEveryRank) {
  expect_all_gather(doubling_all_gather);
}

TEST(HalvingDoubling, TakesTheStepsAndBytesOfItsHeaderForAnyNumberOfRanks) {
  for (const int ranks : kRankCounts) {
    const auto n = static_cast<std::size_t>(ranks);
    const std::size_t each = 120;
    const std::size_t all = each * n;
    const std::size_t least = (n - 1) * each * 4;
    const TrialOutcome reduced = measure(ranks, all, all, all, halving_doubling_all_reduce);
    EXPECT_EQ(reduced.rounds, 2 * rounds_for(ranks)) << ranks;
    const TrialOutcome scattered = measure(ranks, each, all, each, halving_reduce_scatter);
    EXPECT_EQ(scattered.rounds, rounds_for(ranks)) << ranks;
    const TrialOutcome gathered = measure(ranks, each, each, all, doubling_all_gather);
    EXPECT_EQ(gathered.rounds, rounds_for(ranks)) << ranks;
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(reduced.sent_by(rank), 2 * least) << ranks;
      EXPECT_EQ(scattered.sent_by(rank), least) << ranks;
      EXPECT_EQ(gathered.sent_by(rank), least) << ranks;
    }
  }
}

}  // namespace
}  // namespace regatta::collective
