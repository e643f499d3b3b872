#include "regatta/network/probe/internal/poll_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::probe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Seconds kStart{100.0};
constexpr std::uint64_t kMuch = 1'000'000;

// With cookies 1, 2 ..., which sent so many bytes and were queried at `at`.
std::vector<ConnectionCounters> connections(const std::vector<std::uint64_t>& sent, Seconds at) {
  std::vector<ConnectionCounters> all;
  all.reserve(sent.size());
  for (const std::uint64_t bytes : sent)
    all.push_back({.cookie = all.size() + 1, .sent_bytes = bytes, .at = at});
  return all;
}

// After the first dump, which takes a second, and queries, which take a tenth of it.
PollSchedule schedule_after_dump(const CounterOptions& options = {}) {
  PollSchedule schedule(options, kStart);
  EXPECT_EQ(schedule.next(kStart, 0), Poll::kAllAndDump);
  schedule.set_dump_cost(Seconds{1.0});
  schedule.set_query_cost(Seconds{0.1});
  return schedule;
}

TEST(PollSchedule, LooksForNewConnectionsFirstAndAfterEachPeriod) {
  PollSchedule schedule({.look_for_new = {0.5}}, kStart);
  EXPECT_TRUE(schedule.is_dump_due(kStart));
  EXPECT_EQ(schedule.next(kStart, kMuch), Poll::kAllAndDump);
  EXPECT_FALSE(schedule.is_dump_due(kStart + Seconds{0.4}));
  EXPECT_NE(schedule.next(kStart + Seconds{0.4}, kMuch), Poll::kAllAndDump);
  EXPECT_TRUE(schedule.is_dump_due(kStart + Seconds{0.5}));
  EXPECT_EQ(schedule.next(kStart + Seconds{0.5}, 0), Poll::kAllAndDump);
}

TEST(PollSchedule, QueriesNothingUntilInterfacesCarriedMoreThanALittle) {
  PollSchedule schedule = schedule_after_dump();
  const Seconds now = kStart + Seconds{0.01};
  EXPECT_EQ(schedule.next(now, 16'000), Poll::kNothing);
  EXPECT_EQ(schedule.next(now, 384), Poll::kNothing);
  EXPECT_EQ(schedule.next(now, 1), Poll::kMovers);
}

TEST(PollSchedule, QueriesAllWhereInterfacesCannotBeQueried) {
  PollSchedule schedule = schedule_after_dump();
  EXPECT_EQ(schedule.next(kStart + Seconds{0.01}, std::nullopt), Poll::kAll);
}

TEST(PollSchedule, DumpsWhereThatIsCheaper) {
  PollSchedule schedule = schedule_after_dump();
  schedule.set_query_cost(Seconds{1.1});
  const Seconds now = kStart + Seconds{0.01};
  EXPECT_EQ(schedule.next(now, std::nullopt), Poll::kDump);
  EXPECT_EQ(schedule.next(now, kMuch), Poll::kDump);
  // It explained all that had been carried.
  EXPECT_EQ(schedule.next(now, 0), Poll::kNothing);
}

TEST(PollSchedule, QueriesTheOthersWhereTheMoversDoNotAccountForTheBytes) {
  PollSchedule schedule = schedule_after_dump();
  const Seconds now = kStart + Seconds{0.01};
  // An eighth more are headers.
  EXPECT_EQ(schedule.next(now, 900'000), Poll::kMovers);
  EXPECT_FALSE(schedule.has_unexplained_bytes(800'000));
  EXPECT_EQ(schedule.next(now, 900'000), Poll::kMovers);
  EXPECT_TRUE(schedule.has_unexplained_bytes(700'000));
  // The others explained the rest.
  EXPECT_EQ(schedule.next(now, 16'384), Poll::kNothing);
}

TEST(PollSchedule, TakesAnInterfaceThatWentForOneThatCarriedMuch) {
  PollSchedule schedule = schedule_after_dump();
  const Seconds now = kStart + Seconds{0.01};
  EXPECT_EQ(schedule.carried_since(kMuch), kMuch);
  EXPECT_EQ(schedule.carried_since(kMuch + 50), 50U);
  EXPECT_EQ(schedule.next(now, schedule.carried_since(100)), Poll::kMovers);
  EXPECT_EQ(schedule.carried_since(150), 50U);
}

TEST(PollSchedule, GivesUpInterfacesThatReportTooLateThriceInARow) {
  PollSchedule schedule({.look_for_new = {0.5}}, kStart);
  double at = kStart.value;
  const auto is_late = [&](std::uint64_t carried, std::uint64_t found) {
    at += 1;
    EXPECT_EQ(schedule.next(Seconds{at}, carried), Poll::kAllAndDump);
    return schedule.are_interfaces_late(found);
  };
  EXPECT_FALSE(is_late(0, kMuch));
  EXPECT_FALSE(is_late(0, kMuch));
  EXPECT_FALSE(is_late(kMuch, kMuch));
  EXPECT_FALSE(is_late(0, kMuch));
  EXPECT_FALSE(is_late(0, 1000));  // too little to tell
  EXPECT_FALSE(is_late(0, kMuch));
  EXPECT_TRUE(is_late(0, kMuch));
}

TEST(PollSchedule, ChoosesThoseThatMovedAMomentAgoAndThenTheOthers) {
  PollSchedule schedule = schedule_after_dump();
  schedule.note_dump({}, connections({10, 10, 10}, kStart));
  const Seconds later = kStart + Seconds{1.0};
  auto known = connections({10, 10, 10}, kStart);
  EXPECT_THAT(schedule.choose_movers(known, later), IsEmpty());
  // By a dump, and by a query.
  schedule.note_dump(known, connections({10, 20, 10}, later));
  schedule.note_move(3, later);
  EXPECT_THAT(schedule.choose_movers(known, later + Seconds{0.04}), ElementsAre(1, 2));
  EXPECT_THAT(schedule.choose_movers(known, later + Seconds{0.06}), IsEmpty());
  known[1].at = later;
  EXPECT_THAT(PollSchedule::choose_others(known, later), ElementsAre(0, 2));
  known[2].cookie = 0;  // it is gone
  EXPECT_THAT(PollSchedule::choose_others(known, later), ElementsAre(0));
}

TEST(PollSchedule, ChoosesAShareOfTheQuietOnesUntilOneWakes) {
  PollSchedule schedule = schedule_after_dump({.quiet_after = {3.0}, .quiet_share = 2});
  const auto known = connections({10, 10, 10, 10}, kStart);
  schedule.note_dump({}, known);
  EXPECT_THAT(schedule.choose_all(known, kStart + Seconds{2.9}), ElementsAre(0, 1, 2, 3));
  const Seconds quiet = kStart + Seconds{3.0};
  EXPECT_THAT(schedule.choose_all(known, quiet), ElementsAre(0, 2));
  EXPECT_THAT(schedule.choose_all(known, quiet), ElementsAre(1, 3));
  schedule.note_move(2, quiet);
  EXPECT_THAT(schedule.choose_all(known, quiet + Seconds{2.9}), ElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace regatta::probe
