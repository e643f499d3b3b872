#include "regatta/model/collective/internal/bruck.h"

#include <cstddef>

#include <gtest/gtest.h>

#include "regatta/model/collective/test_collective_check.h"

namespace regatta::collective {
namespace {

TEST(Bruck, GivesEveryRankItsPart) {
  expect_all_to_all(bruck_all_to_all);
}

TEST(Bruck, GathersThePartOfEveryRank) {
  expect_all_gather(bruck_all_gather);
}

TEST(Bruck, TakesALogarithmOfTheStepsForMoreBytes) {
  for (const int ranks : kRankCounts) {
    const auto n = static_cast<std::size_t>(ranks);
    int rounds = 0;
    std::size_t moved = 0;  // parts, each as many times as its way has bits
    for (int distance = 1; distance < ranks; distance *= 2, ++rounds)
      for (int i = 1; i < ranks; ++i)
        moved += (i & distance) != 0 ? 1 : 0;
    const TrialOutcome all_to_all = measure(ranks, 10, 10 * n, 10 * n, bruck_all_to_all);
    const TrialOutcome gathered = measure(ranks, 10, 10, 10 * n, bruck_all_gather);
    EXPECT_LE(all_to_all.rounds, rounds);
    EXPECT_EQ(gathered.rounds, rounds);
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(all_to_all.sent_by(rank), moved * 40);
      EXPECT_EQ(gathered.sent_by(rank), (n - 1) * 40);
    }
  }
}

}  // namespace
}  // namespace regatta::collective
