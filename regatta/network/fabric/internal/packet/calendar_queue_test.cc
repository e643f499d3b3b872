#include "regatta/network/fabric/internal/packet/calendar_queue.h"

#include <map>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace regatta::fabric::packet {
namespace {

TEST(PacketCalendarQueue, GivesEventsInOrderOfTimeAndThenOfEntry) {
  CalendarQueue calendar(8, 1000);
  calendar.push(3, 50);
  calendar.push(1, 20);
  calendar.push(2, 50);
  calendar.push(0, 1'000'000'000);
  for (const std::uint32_t number : {1U, 3U, 2U, 0U})
    EXPECT_EQ(calendar.pop(kNever - 1).number, number);
  EXPECT_TRUE(calendar.empty());
  EXPECT_EQ(calendar.pop(kNever - 1).at, kNever);
}

TEST(PacketCalendarQueue, TellsWhatIsNearInOrder) {
  CalendarQueue calendar(4, 1000);
  calendar.push(2, 900);
  calendar.push(0, 30);
  calendar.push(1, 900);
  std::vector<std::uint32_t> numbers;
  const auto note = [&numbers](Picoseconds, std::uint32_t number) { numbers.push_back(number); };
  EXPECT_TRUE(calendar.for_each(note));
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{0, 2, 1}));
  calendar.push(3, 1'000'000'000);
  EXPECT_FALSE(calendar.for_each(note));
}

TEST(PacketCalendarQueue, KeepsWhatComesLaterThanAsked) {
  CalendarQueue calendar(2, 1000);
  calendar.push(0, 40'000'000);
  EXPECT_EQ(calendar.pop(39'999'999).at, kNever);
  calendar.push(1, 7);
  EXPECT_EQ(calendar.pop(39'999'999).number, 1U);
  EXPECT_EQ(calendar.pop(40'000'000).number, 0U);
}

// Beside a sorted map, for near and far events.
TEST(PacketCalendarQueue, AgreesWithASortedList) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    CalendarQueue calendar(500, seed * 10'000);
    std::map<std::pair<Picoseconds, std::uint64_t>, std::uint32_t> sorted;
    std::uint64_t order = 0;
    Picoseconds now = 0;
    std::vector<std::uint32_t> unused;
    for (std::uint32_t number = 0; number < 500; ++number)
      unused.push_back(number);
    for (int step = 0; step < 20'000; ++step) {
      if (!unused.empty() && random() % 2 == 0) {
        const Picoseconds ahead = static_cast<Picoseconds>(
            random() % 8 == 0 ? random() % 10'000'000'000 : random() % (seed * 10'000));
        const std::uint32_t number = unused.back();
        unused.pop_back();
        calendar.push(number, now + ahead);
        sorted[{now + ahead, order++}] = number;
        continue;
      }
      const Picoseconds until = now + static_cast<Picoseconds>(random() % (seed * 50'000));
      const CalendarQueue::Event event = calendar.pop(until);
      if (sorted.empty() || sorted.begin()->first.first > until) {
        ASSERT_EQ(event.at, kNever) << seed;
        now = until;
        continue;
      }
      ASSERT_EQ(event.at, sorted.begin()->first.first) << seed;
      ASSERT_EQ(event.number, sorted.begin()->second) << seed;
      now = event.at;
      unused.push_back(event.number);
      sorted.erase(sorted.begin());
    }
  }
}

}  // namespace
}  // namespace regatta::fabric::packet
