#include "regatta/model/collective/internal/rail.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/model/collective/test_collective_check.h"

namespace regatta::collective {
namespace {

Build over(const RailLayout& servers, const RailOptions& options = {}) {
  return [servers, options](CollectiveSchedule& schedule, const GroupPosition& self,
                            const Buffers& buffers) {
    rail_all_to_all(schedule, self, buffers, servers, options);
  };
}

int ranks_of(const RailLayout& servers) {
  std::size_t sum = 0;
  for (const auto& ranks : servers)
    sum += ranks.size();
  return static_cast<int>(sum);
}

// Servers of 1 to `locals` ranks, in any order of the rank numbers.
RailLayout random_layout(std::mt19937& random, bool is_even) {
  const std::size_t servers = 1 + random() % 4;
  const std::size_t locals = 1 + random() % 4;
  RailLayout layout;
  std::size_t count = 0;
  for (std::size_t s = 0; s < servers; ++s) {
    layout.emplace_back(is_even ? locals : 1 + random() % 4);
    count += layout.back().size();
  }
  if (count == 1) layout.emplace_back(1);
  std::vector<int> ranks(static_cast<std::size_t>(ranks_of(layout)));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::shuffle(ranks.begin(), ranks.end(), random);
  std::size_t next = 0;
  for (auto& server : layout)
    for (int& rank : server)
      rank = ranks[next++];
  return layout;
}

TEST(RailAllToAll, GivesEveryRankItsPartWhereverTheRanksAre) {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    const RailLayout layout = random_layout(random, round % 2 == 0);
    const RailOptions options{.local_message_bytes = std::size_t{1} << (random() % 12)};
    expect_all_to_all(over(layout, options), {ranks_of(layout)});
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
}

TEST(RailAllToAll, LeavesNoRailAndSendsNoMoreThanItHasTo) {
  const RailLayout layout = {{0, 4, 8}, {1, 5, 9}, {2, 6, 10}, {3, 7, 11}};
  constexpr std::size_t kCount = 16;
  constexpr std::size_t kPart = kCount * 4;
  const TrialOutcome outcome = measure(12, kCount, 12 * kCount, 12 * kCount, over(layout));
  ASSERT_TRUE(outcome.ended);
  for (std::size_t from = 0; from < 12; ++from)
    for (std::size_t to = 0; to < 12; ++to) {
      if (from == to) continue;
      const bool is_local = from % 4 == to % 4;
      const bool is_rail = from / 4 == to / 4;
      // N parts inside the server, P parts along the rail.
      EXPECT_EQ(outcome.sent[from][to], is_local ? 4 * kPart : is_rail ? 3 * kPart : 0U);
    }
  EXPECT_EQ(outcome.rounds, 2);
}

}  // namespace
}  // namespace regatta::collective
