#include "regatta/runtime/comm/internal/tuning/setting_search.h"

#include <functional>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

using Times = std::function<double(const Setting&)>;

Setting with(Algorithm algorithm, int connections = 0, std::size_t chunk_bytes = 0) {
  return {.algorithm = algorithm, .chunk_bytes = chunk_bytes, .connections = connections};
}

SettingSearch three_algorithms() {
  return {{{with(Algorithm::kRing), Seconds{1.0}},
           {with(Algorithm::kHalving), Seconds{1.1}},
           {with(Algorithm::kDoubleTree), Seconds{1.4}}},
          {[](const Setting& setting) {
             return std::vector{with(setting.algorithm, 1), with(setting.algorithm, 2)};
           },
           [](const Setting& setting) {
             Setting small = setting;
             small.chunk_bytes = 4096;
             return std::vector{small};
           }}};
}

// Makes one call; its time is told at once.
Setting call(SettingSearch& search, const Times& times) {
  const auto [setting, ticket] = search.next();
  if (ticket >= 0) search.give(ticket, Seconds{times(setting)});
  return setting;
}

int calls_until_settled(SettingSearch& search, const Times& times) {
  int calls = 0;
  while (!search.is_settled() && calls < 1000) {
    call(search, times);
    ++calls;
  }
  return calls;
}

const Setting& chosen(const SettingSearch& search) {
  return search.tried()[search.chosen()].setting;
}

TEST(SettingSearch, UsesTheBestPredictionUntilAnotherHasShownToBeFaster) {
  SettingSearch search = three_algorithms();
  EXPECT_EQ(search.next().setting, with(Algorithm::kRing));
  EXPECT_EQ(chosen(search), with(Algorithm::kRing));
}

TEST(SettingSearch, FindsTheFastestAlgorithmThenConnectionsThenChunks) {
  SettingSearch search = three_algorithms();
  const int calls = calls_until_settled(search, [](const Setting& setting) {
    double time = setting.algorithm == Algorithm::kHalving ? 1.0 : 2.0;
    time *= setting.connections == 2 ? 0.8 : 1.0;
    return time * (setting.chunk_bytes == 4096 ? 0.9 : 1.0);
  });
  EXPECT_EQ(chosen(search), with(Algorithm::kHalving, 2, 4096));
  EXPECT_EQ(calls, 2 * (3 + 3 + 2) + 3 * 2);
}

TEST(SettingSearch, StaysWithWhatIsInUseWhereNothingIsClearlyFaster) {
  SettingSearch search = three_algorithms();
  calls_until_settled(search, [](const Setting& setting) {
    return setting.algorithm == Algorithm::kRing && setting.connections == 0 ? 1.0 : 0.98;
  });
  EXPECT_EQ(chosen(search), with(Algorithm::kRing));
}

TEST(SettingSearch, IsNotTakenInByOneLuckyTry) {
  SettingSearch search = three_algorithms();
  int tries = 0;
  calls_until_settled(search, [&](const Setting& setting) {
    if (setting.algorithm != Algorithm::kHalving) return 1.0;
    return tries++ == 0 ? 0.95 : 1.4;
  });
  EXPECT_EQ(chosen(search).algorithm, Algorithm::kRing);
}

TEST(SettingSearch, JudgesShortCallsByManyInARow) {
  SettingSearch search(
      {{with(Algorithm::kExchange), Seconds{80e-6}}, {with(Algorithm::kDoubling), Seconds{120e-6}}},
      {});
  Setting last;
  int in_a_row = 0;
  calls_until_settled(search, [&](const Setting& setting) {
    in_a_row = setting == last ? in_a_row + 1 : 0;
    last = setting;
    if (setting.algorithm == Algorithm::kDoubling) return 87e-6;
    return in_a_row == 0 ? 48e-6 : 180e-6;
  });
  EXPECT_EQ(chosen(search).algorithm, Algorithm::kDoubling);
}

TEST(SettingSearch, FindsTheNewFastestWhenTheNetworkChanges) {
  SettingSearch search = three_algorithms();
  bool is_slow = false;
  const auto times = [&](const Setting& setting) {
    return setting.algorithm == Algorithm::kRing && is_slow ? 5.0 : 1.0;
  };
  calls_until_settled(search, times);
  ASSERT_EQ(chosen(search), with(Algorithm::kRing));
  is_slow = true;
  int calls = 0;
  while (chosen(search).algorithm == Algorithm::kRing && calls < 200) {
    call(search, times);
    ++calls;
  }
  EXPECT_LT(calls, 100);
}

// A look is three calls, of which one may be as fast as ever.
TEST(SettingSearch, SeesThatTheChoiceIsMostlySlowerThanBefore) {
  SettingSearch search = three_algorithms();
  int ring_calls = 0;
  bool is_slow = false;
  const auto times = [&](const Setting& setting) {
    return setting.algorithm == Algorithm::kRing && is_slow && ring_calls++ % 3 != 0 ? 5.0 : 1.0;
  };
  calls_until_settled(search, times);
  ASSERT_EQ(chosen(search), with(Algorithm::kRing));
  is_slow = true;
  for (int i = 0; i < 100 && search.is_settled(); ++i)
    call(search, times);
  EXPECT_FALSE(search.is_settled());
}

TEST(SettingSearch, TriesEverythingAgainAfterAWhileThoughNothingBecameSlower) {
  SettingSearch search = three_algorithms();
  bool has_improved = false;
  const auto times = [&](const Setting& setting) {
    return setting.algorithm == Algorithm::kHalving && has_improved ? 0.5 : 1.0;
  };
  calls_until_settled(search, times);
  has_improved = true;
  for (int i = 0; i < 2000; ++i)
    call(search, times);
  EXPECT_EQ(chosen(search).algorithm, Algorithm::kHalving);
}

TEST(SettingSearch, GoesOnWithoutTheTimeOfACallThatTellsNothing) {
  SettingSearch search = three_algorithms();
  for (int i = 0; i < 100 && !search.is_settled(); ++i) {
    const auto [setting, ticket] = search.next();
    if (ticket >= 0) search.skip(ticket);
  }
  EXPECT_TRUE(search.is_settled());
  EXPECT_EQ(chosen(search), with(Algorithm::kRing));
}

TEST(SettingSearch, WaitsForTheTimesOfAllItsTrials) {
  SettingSearch search = three_algorithms();
  std::vector<int> tickets;
  while (!search.waits())
    tickets.push_back(search.next().ticket);
  EXPECT_EQ(tickets.size(), 6U);
  EXPECT_EQ(search.next().ticket, -1);  // more calls go on with what is in use
  for (const int ticket : tickets)
    search.give(ticket, Seconds{1.0});
  EXPECT_FALSE(search.waits());
}

TEST(SettingSearch, HasNothingToTryWithOneCandidate) {
  SettingSearch search({{with(Algorithm::kDirect), Seconds{1.0}}}, {});
  EXPECT_TRUE(search.is_settled());
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(search.next().ticket, -1);
}

TEST(SettingSearch, TakesOverWhatAnEarlierRunFound) {
  SettingSearch search = three_algorithms();
  search.start_from(with(Algorithm::kDoubleTree, 2), Seconds{1.0});
  EXPECT_TRUE(search.is_settled());
  EXPECT_EQ(search.next().setting, with(Algorithm::kDoubleTree, 2));
}

// However times scatter and however late they are told: ranks that are told the same choose the
// same, and the choice is among the fastest.
TEST(SettingSearch, ChoosesAlikeOnAllRanksWhateverTheTimes) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> scatter(1.0, 1.1);
    std::map<std::pair<int, int>, double> cost;
    const auto true_time = [&](const Setting& setting) {
      const std::pair key{static_cast<int>(setting.algorithm), setting.connections};
      if (!cost.contains(key)) cost[key] = 1 + 4 * std::generate_canonical<double, 20>(random);
      return cost[key];
    };
    SettingSearch one = three_algorithms();
    SettingSearch other = three_algorithms();
    std::vector<std::pair<int, Seconds>> late;
    for (int i = 0; i < 300; ++i) {
      const auto [setting, ticket] = one.next();
      const auto same = other.next();
      ASSERT_EQ(setting, same.setting);
      ASSERT_EQ(ticket, same.ticket);
      if (ticket >= 0) late.push_back({ticket, Seconds{true_time(setting) * scatter(random)}});
      if (random() % 3 != 0) continue;
      for (const auto& [told, time] : late) {
        one.give(told, time);
        other.give(told, time);
      }
      late.clear();
    }
    double best_algorithm = 1e9;
    for (const MeasuredSetting& tried : one.tried())
      if (tried.setting.connections == 0 && tried.setting.chunk_bytes == 0)
        best_algorithm = std::min(best_algorithm, true_time(tried.setting));
    EXPECT_LE(true_time(chosen(one)), 1.15 * best_algorithm);
  }
}

}  // namespace
}  // namespace regatta::comm
