#include "regatta/network/rdma/credit.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>

#include <gtest/gtest.h>

namespace regatta::rdma {
namespace {

TEST(Credit, KeepsTheLastOneForGivingBack) {
  Credit credit(4);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(credit.may_send());
    EXPECT_EQ(credit.send(), 0U);
  }
  EXPECT_FALSE(credit.may_send());
  EXPECT_FALSE(credit.must_return());
  EXPECT_TRUE(credit.receive(0));
  EXPECT_TRUE(credit.must_return());
  EXPECT_EQ(credit.send(), 1U);
  EXPECT_FALSE(credit.must_return());
  EXPECT_TRUE(credit.receive(4));
  EXPECT_EQ(credit.left(), 4U);
}

TEST(Credit, RefusesMoreThanWasGiven) {
  Credit credit(8);
  EXPECT_FALSE(credit.receive(1));
  (void)credit.send();
  EXPECT_TRUE(credit.receive(1));
  EXPECT_FALSE(credit.receive(1));
}

// Two ends with packets in flight. In any order of events, no packet arrives without a posted
// receive, and an end with a packet to send gets to send it.
TEST(Credit, NeverOverrunsAndNeverStallsInAnyOrderOfEvents) {
  constexpr std::uint32_t kSlots = 16;
  constexpr int kPackets = 2000;
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::array<Credit, 2> ends{Credit(kSlots), Credit(kSlots)};
    std::array<std::deque<std::uint32_t>, 2> in_flight;  // to the end: what each gives back
    std::array<int, 2> to_say{kPackets, seed % 3 == 0 ? 0 : kPackets};
    int idle = 0;
    while (to_say[0] + to_say[1] > 0 || !in_flight[0].empty() || !in_flight[1].empty()) {
      const std::size_t end = random() % 2;
      const std::size_t other = 1 - end;
      bool moved = true;
      if (random() % 2 == 0 && !in_flight[end].empty()) {
        ASSERT_TRUE(ends[end].receive(in_flight[end].front()));
        in_flight[end].pop_front();
      } else if (to_say[end] > 0 && ends[end].may_send()) {
        --to_say[end];
        const bool is_bare = random() % 2 == 0;
        if (is_bare) ends[end].send_bare();
        in_flight[other].push_back(is_bare ? 0 : ends[end].send());
      } else if (ends[end].must_return()) {
        in_flight[other].push_back(ends[end].send());
      } else {
        moved = false;
      }
      ASSERT_LE(in_flight[other].size(), kSlots);
      idle = moved ? 0 : idle + 1;
      ASSERT_LT(idle, 1000) << "nobody may send";
    }
  }
}

}  // namespace
}  // namespace regatta::rdma
