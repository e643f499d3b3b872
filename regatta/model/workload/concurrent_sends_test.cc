#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include "regatta/model/workload/strategy.h"

namespace regatta::workload {
namespace {

std::vector<std::string> names(const std::vector<ConcurrentSends>& sets) {
  std::vector<std::string> all;
  for (const ConcurrentSends& set : sets)
    all.push_back(set.name);
  return all;
}

TEST(ConcurrentSends, AreTheRingsOfAllGroupsOfAKind) {
  // Ranks (pp, dp, tp): dp groups {0, 2} and {1, 3}, tp groups {0, 1} and {2, 3}.
  const auto sets = concurrent_sends({}, {.tp = 2, .pp = 1, .dp = 2});
  EXPECT_THAT(names(sets), testing::ElementsAre("data-parallel rings", "tensor-parallel rings"));
  EXPECT_THAT(sets[0].sends, testing::UnorderedElementsAre(
                                 RankSend{Rank{0}, Rank{2}}, RankSend{Rank{2}, Rank{0}},
                                 RankSend{Rank{1}, Rank{3}}, RankSend{Rank{3}, Rank{1}}));
  EXPECT_THAT(sets[1].sends, testing::UnorderedElementsAre(
                                 RankSend{Rank{0}, Rank{1}}, RankSend{Rank{1}, Rank{0}},
                                 RankSend{Rank{2}, Rank{3}}, RankSend{Rank{3}, Rank{2}}));
}

TEST(ConcurrentSends, JoinStagesBothWaysAndTheEndsWhereTheyShareEmbeddings) {
  const Strategy strategy{.pp = 3};
  const auto apart = concurrent_sends({.tied_embeddings = false}, strategy);
  ASSERT_THAT(names(apart), testing::ElementsAre("pipeline neighbours"));
  EXPECT_THAT(apart[0].sends, testing::UnorderedElementsAre(
                                  RankSend{Rank{0}, Rank{1}}, RankSend{Rank{1}, Rank{0}},
                                  RankSend{Rank{1}, Rank{2}}, RankSend{Rank{2}, Rank{1}}));
  const auto tied = concurrent_sends({.tied_embeddings = true}, strategy);
  EXPECT_THAT(tied[0].sends,
              testing::IsSupersetOf({RankSend{Rank{0}, Rank{2}}, RankSend{Rank{2}, Rank{0}}}));
}

// The sets share no pair, so each pair is led apart with the ones that it sends beside.
TEST(ConcurrentSends, NameEachPairOnce) {
  for (const Strategy& strategy : {Strategy{.tp = 2, .pp = 4, .dp = 3}, Strategy{.pp = 2, .dp = 8},
                                   Strategy{.tp = 4, .pp = 2}}) {
    std::set<RankSend> seen;
    for (const ConcurrentSends& set : concurrent_sends({.tied_embeddings = true}, strategy))
      for (const RankSend& send : set.sends)
        EXPECT_TRUE(seen.insert(send).second) << send.from.value << " to " << send.to.value;
  }
}

TEST(ConcurrentSends, OfOneRankAreNone) {
  EXPECT_TRUE(concurrent_sends({.tied_embeddings = true}, {}).empty());
}

}  // namespace
}  // namespace regatta::workload
