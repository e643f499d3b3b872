#include "regatta/runtime/comm/internal/engine/membership_consensus.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

using Lost = std::vector<bool>;

// Ranks and first-in-first-out links between them; a statement may take any time on its link.
class Ranks {
 public:
  explicit Ranks(int count) : is_dead_(static_cast<std::size_t>(count)) {
    for (int rank = 0; rank < count; ++rank)
      members_.emplace_back(rank, count);
  }

  int count() const { return static_cast<int>(members_.size()); }
  MembershipConsensus& at(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  bool is_dead(int rank) const { return is_dead_[static_cast<std::size_t>(rank)]; }

  // Puts the statements of the rank on its links.
  void send(int from) {
    for (const MembershipStatement& statement : at(from).consume_statements())
      for (int to = 0; to < count(); ++to)
        if (to != from) paths_[{from, to}].emplace_back(encode_statement(statement));
  }

  // Each link loses a random number of the last statements of the rank; then its peer sees the
  // death.
  void kill(int rank, std::mt19937& random) {
    is_dead_[static_cast<std::size_t>(rank)] = true;
    for (int to = 0; to < count(); ++to) {
      if (to == rank) continue;
      auto& path = paths_[{rank, to}];
      path.resize(std::uniform_int_distribution<std::size_t>(0, path.size())(random));
      path.emplace_back(std::nullopt);
    }
  }

  void suspect(int who, int whom) {
    at(who).mark_lost(whom);
    send(who);
  }

  // Delivers one statement; false when none is under way.
  bool deliver(std::mt19937& random) {
    std::vector<std::pair<int, int>> open;
    for (const auto& [ends, path] : paths_)
      if (!path.empty() && !is_dead(ends.second)) open.push_back(ends);
    if (open.empty()) return false;
    const auto [from, to] =
        open[std::uniform_int_distribution<std::size_t>(0, open.size() - 1)(random)];
    auto& path = paths_[{from, to}];
    const std::optional<std::string> bytes = std::move(path.front());
    path.pop_front();
    if (bytes)
      at(to).receive(from, *decode_statement(*bytes, count()));
    else
      at(to).mark_lost(from);
    send(to);
    return true;
  }

 private:
  std::vector<MembershipConsensus> members_;
  std::vector<bool> is_dead_;
  std::map<std::pair<int, int>, std::deque<std::optional<std::string>>> paths_;
};

int pick(std::mt19937& random, int below) {
  return std::uniform_int_distribution<int>(0, below - 1)(random);
}

TEST(MembershipStatement, DecodesToTheSameStatement) {
  for (const std::size_t ranks : {1U, 7U, 8U, 9U, 64U}) {
    MembershipStatement statement{.round = 70000,
                                  .is_decision = ranks % 2 == 0,
                                  .consents = ranks % 2 == 1,
                                  .lost = Lost(ranks),
                                  .payload = std::string("a\0b", 3)};
    statement.lost.back() = true;
    const auto heard = decode_statement(encode_statement(statement), static_cast<int>(ranks));
    ASSERT_TRUE(heard);
    EXPECT_EQ(heard->round, statement.round);
    EXPECT_EQ(heard->is_decision, statement.is_decision);
    EXPECT_EQ(heard->consents, statement.consents);
    EXPECT_EQ(heard->lost, statement.lost);
    EXPECT_EQ(heard->payload, statement.payload);
  }
  EXPECT_FALSE(decode_statement("12345", 1));
  EXPECT_FALSE(decode_statement("", 8));
}

TEST(MembershipStatement, SurvivesRandomBytes) {
  std::mt19937 random(3);
  for (int round = 0; round < 50000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& byte : bytes)
      byte = static_cast<char>(random());
    const int ranks = 1 + static_cast<int>(random() % 100);
    const auto statement = decode_statement(bytes, ranks);
    if (statement) {
      EXPECT_EQ(statement->lost.size(), static_cast<std::size_t>(ranks));
    }
  }
}

TEST(MembershipConsensus, DecidesAtOnceInAWorldOfOneRank) {
  MembershipConsensus alone(0, 3);
  alone.mark_lost(1);
  alone.mark_lost(2);
  alone.begin(true, "word");
  ASSERT_TRUE(alone.outcome());
  EXPECT_EQ(alone.outcome()->lost, (Lost{false, true, true}));
  EXPECT_TRUE(alone.outcome()->all_consent);
  EXPECT_THAT(alone.outcome()->payloads, testing::ElementsAre("word", "", ""));
}

TEST(MembershipConsensus, ReportsADissentToAllRanks) {
  std::mt19937 random(1);
  Ranks ranks(4);
  for (int rank = 0; rank < 4; ++rank) {
    ranks.at(rank).begin(rank != 2, std::to_string(rank));
    ranks.send(rank);
  }
  while (ranks.deliver(random)) {
  }
  for (int rank = 0; rank < 4; ++rank) {
    ASSERT_TRUE(ranks.at(rank).outcome());
    EXPECT_FALSE(ranks.at(rank).outcome()->all_consent);
    EXPECT_THAT(ranks.at(rank).outcome()->payloads, testing::ElementsAre("0", "1", "2", "3"));
  }
}

TEST(MembershipConsensus, NamesTheRanksThatHaveNotEntered) {
  std::mt19937 random(1);
  Ranks ranks(3);
  ranks.at(0).begin(true, "");
  ranks.send(0);
  while (ranks.deliver(random)) {
  }
  EXPECT_THAT(ranks.at(0).silent(), testing::ElementsAre(1, 2));
  ranks.suspect(0, 1);
  ranks.at(2).begin(true, "");
  ranks.send(2);
  while (ranks.deliver(random)) {
  }
  EXPECT_TRUE(ranks.at(0).outcome());
  EXPECT_TRUE(ranks.at(2).outcome());
  EXPECT_EQ(ranks.at(1).excluded_by(), 0);
}

TEST(MembershipConsensus, GoesOnWithoutARankThatLeaves) {
  std::mt19937 random(1);
  Ranks ranks(3);
  for (int rank = 0; rank < 3; ++rank) {
    ranks.at(rank).begin(true, "");
    ranks.send(rank);
  }
  while (ranks.deliver(random)) {
  }
  ranks.suspect(1, 1);
  while (ranks.deliver(random)) {
  }
  EXPECT_TRUE(ranks.at(0).is_outdated());
  EXPECT_TRUE(ranks.at(1).excluded_by());
  for (const int rank : {0, 2}) {
    ranks.at(rank).begin(false, "");
    ranks.send(rank);
  }
  while (ranks.deliver(random)) {
  }
  for (const int rank : {0, 2})
    EXPECT_EQ(ranks.at(rank).outcome()->lost, (Lost{false, true, false}));
}

TEST(MembershipConsensus, ExcludesALostRankBeforeItEntersARound) {
  std::mt19937 random(1);
  Ranks ranks(2);
  ranks.at(0).mark_lost(1);
  ranks.at(0).announce_lost();
  ranks.send(0);
  while (ranks.deliver(random)) {
  }
  EXPECT_EQ(ranks.at(1).excluded_by(), 0);
}

TEST(MembershipConsensus, IsOutdatedByADisagreement) {
  std::mt19937 random(1);
  Ranks ranks(2);
  for (const int rank : {0, 1}) {
    ranks.at(rank).begin(true, "");
    ranks.send(rank);
  }
  while (ranks.deliver(random)) {
  }
  EXPECT_FALSE(ranks.at(0).is_outdated());
  ranks.at(1).begin(false, "");
  ranks.send(1);
  while (ranks.deliver(random)) {
  }
  EXPECT_TRUE(ranks.at(0).is_outdated());
}

// A world that shrinks: rounds in pairs, the second of which says whether what followed the first
// one went well; over when nobody was lost between the two.
class Shrinking {
 public:
  Shrinking(int count, std::mt19937& random) : ranks(count), results(count), random_(random) {}

  void run(int deaths, int suspicions) {
    std::vector<int> waiting;
    for (int rank = 0; rank < ranks.count(); ++rank)
      waiting.push_back(rank);
    for (;;) {
      const int what = pick(random_, 40);
      if (!waiting.empty() && what < 10) {
        const auto at = waiting.begin() + pick(random_, static_cast<int>(waiting.size()));
        const int rank = *at;
        waiting.erase(at);
        if (!ranks.is_dead(rank)) begin(rank, true);
      } else if (deaths > 0 && what < 13) {
        --deaths;
        const int rank = pick(random_, ranks.count());
        if (!ranks.is_dead(rank)) ranks.kill(rank, random_);
      } else if (suspicions > 0 && what < 15) {
        --suspicions;
        const int who = pick(random_, ranks.count());
        const int whom = pick(random_, ranks.count());
        if (who != whom && !ranks.is_dead(who)) ranks.suspect(who, whom);
      } else if (!ranks.deliver(random_) && waiting.empty()) {
        break;
      }
      for (int rank = 0; rank < ranks.count(); ++rank)
        if (!ranks.is_dead(rank)) go_on(rank);
    }
  }

  Ranks ranks;
  std::vector<std::optional<Lost>> results;

 private:
  void begin(int rank, bool consents) {
    ranks.at(rank).begin(consents, "word of " + std::to_string(rank));
    ++rounds_[rank];
    ranks.send(rank);
  }

  void go_on(int rank) {
    auto& result = results[static_cast<std::size_t>(rank)];
    while (!result && ranks.at(rank).outcome() && !ranks.at(rank).excluded_by()) {
      const MembershipConsensus::Outcome outcome = *ranks.at(rank).outcome();
      if (rounds_[rank] % 2 == 1) {
        first_[rank] = outcome;
        begin(rank, !ranks.at(rank).is_outdated());
      } else if (outcome.all_consent && outcome.lost == first_[rank].lost) {
        result = outcome.lost;
      } else {
        begin(rank, true);
      }
    }
  }

  std::mt19937& random_;
  std::map<int, int> rounds_;
  std::map<int, MembershipConsensus::Outcome> first_;
};

void expect_agreement(Shrinking& world, bool with_suspicions) {
  for (int rank = 0; rank < world.ranks.count(); ++rank) {
    const auto& mine = world.results[static_cast<std::size_t>(rank)];
    if (world.ranks.is_dead(rank)) continue;
    if (!with_suspicions) {
      EXPECT_TRUE(mine) << rank << " never ends";
    }
    EXPECT_TRUE(mine || world.ranks.at(rank).excluded_by()) << rank << " never ends";
    if (!mine) continue;
    EXPECT_FALSE((*mine)[static_cast<std::size_t>(rank)]);
    for (int other = 0; other < world.ranks.count(); ++other) {
      const auto index = static_cast<std::size_t>(other);
      if (!with_suspicions) {
        EXPECT_TRUE(!(*mine)[index] || world.ranks.is_dead(other)) << other << " lives";
      }
      if (world.ranks.is_dead(other) || (*mine)[index]) continue;
      // A rank in the outcome has the same one, or was excluded by others.
      const auto& theirs = world.results[index];
      if (theirs && !(*theirs)[static_cast<std::size_t>(rank)]) {
        EXPECT_EQ(*theirs, *mine) << rank << " and " << other;
      }
      if (!with_suspicions) {
        EXPECT_TRUE(theirs) << other;
      }
    }
  }
}

TEST(MembershipConsensus, GivesAllSurvivorsTheSameOutcomeInRandomDeaths) {
  const auto seed = std::random_device{}();
  for (std::uint32_t run = 0; run < 3000; ++run) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " run " + std::to_string(run));
    std::mt19937 random(seed + run);
    Shrinking world(1 + pick(random, 7), random);
    world.run(pick(random, world.ranks.count() + 1), 0);
    expect_agreement(world, false);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(MembershipConsensus, NeverSplitsRanksThatConsiderEachOtherAliveUnderWrongSuspicions) {
  const auto seed = std::random_device{}();
  for (std::uint32_t run = 0; run < 3000; ++run) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " run " + std::to_string(run));
    std::mt19937 random(seed + run);
    Shrinking world(2 + pick(random, 6), random);
    world.run(pick(random, world.ranks.count()), 1 + pick(random, 4));
    expect_agreement(world, true);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace regatta::comm
