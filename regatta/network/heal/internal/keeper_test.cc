#include "regatta/network/heal/internal/keeper.h"

#include <gmock/gmock.h>

namespace regatta::heal {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr Damping kDamping{Seconds{5}, Seconds{60}, Seconds{300}};
constexpr Fault kUplink{Place::kLink, 4, {}, Harm::kEats};

Seconds at(double seconds) {
  return Seconds{seconds};
}

TEST(Keeper, ReleasesAPlaceAfterItsCleanPeriod) {
  Keeper keeper(kDamping);
  EXPECT_TRUE(keeper.bad(kUplink, "probes", at(100), false));
  EXPECT_EQ(keeper.next(), at(105));
  EXPECT_THAT(keeper.release(at(104.9)), IsEmpty());
  EXPECT_THAT(keeper.release(at(105)), SizeIs(1));
  EXPECT_THAT(keeper.held(), IsEmpty());
  EXPECT_EQ(keeper.next(), std::nullopt);
}

TEST(Keeper, BeginsTheCleanPeriodAnewWithEverySighting) {
  Keeper keeper(kDamping);
  keeper.bad(kUplink, "probes", at(100), false);
  EXPECT_FALSE(keeper.bad(kUplink, "probes", at(104), false));
  EXPECT_THAT(keeper.release(at(105)), IsEmpty());
  EXPECT_THAT(keeper.release(at(109)), SizeIs(1));
}

TEST(Keeper, HoldsWhatLastsUntilItIsOver) {
  Keeper keeper(kDamping);
  keeper.bad(kUplink, "no carrier", at(0), true);
  EXPECT_EQ(keeper.next(), std::nullopt);
  EXPECT_THAT(keeper.release(at(1e6)), IsEmpty());
  keeper.good(kUplink, at(1e6));
  EXPECT_THAT(keeper.release(at(1e6 + 4)), IsEmpty());
  EXPECT_THAT(keeper.release(at(1e6 + 5)), SizeIs(1));
}

TEST(Keeper, TakesMoreHarmAsNews) {
  Keeper keeper(kDamping);
  Fault lossy = kUplink;
  lossy.harm = Harm::kLoses;
  keeper.bad(lossy, "loses 1 %", at(0), false);
  EXPECT_TRUE(keeper.bad(kUplink, "eats all", at(1), false));
  EXPECT_FALSE(keeper.bad(lossy, "loses 1 %", at(2), false));
  ASSERT_THAT(keeper.held(), SizeIs(1));
  EXPECT_EQ(keeper.held()[0].fault.harm, Harm::kEats);
  EXPECT_EQ(keeper.held()[0].since, at(0));
}

// A place that breaks whenever it is used is tried ever more seldom, up to the limit.
TEST(Keeper, DoublesTheCleanPeriodWithEachRelapseUpToALimit) {
  Keeper keeper(kDamping);
  double now = 0;
  std::vector<double> periods;
  for (int i = 0; i < 7; ++i) {
    keeper.bad(kUplink, "probes", at(now), false);
    periods.push_back(keeper.held()[0].clean.value);
    now += periods.back();
    EXPECT_THAT(keeper.release(at(now)), SizeIs(1));
    now += 0.05;
  }
  EXPECT_THAT(periods, testing::ElementsAre(5, 10, 20, 40, 60, 60, 60));
}

TEST(Keeper, ForgetsRelapsesOfAPlaceThatBehavesWell) {
  Keeper keeper(kDamping);
  double now = 0;
  for (int i = 0; i < 3; ++i) {
    keeper.bad(kUplink, "probes", at(now), false);
    now += keeper.held()[0].clean.value;
    keeper.release(at(now));
    now += 0.05;
  }
  // Two relapses; two good times later only this one counts.
  keeper.bad(kUplink, "probes", at(now + 2 * 300), false);
  EXPECT_EQ(keeper.held()[0].clean, at(10));
  now += 2 * 300 + 10;
  keeper.release(at(now));
  keeper.bad(kUplink, "probes", at(now + 1000), false);
  EXPECT_EQ(keeper.held()[0].clean, at(5));
}

TEST(Keeper, TellsPlacesApart) {
  Keeper keeper(kDamping);
  keeper.bad(kUplink, "", at(0), false);
  keeper.bad({Place::kHop, 4, NodeId{1}, Harm::kEats}, "", at(0), false);
  keeper.bad({Place::kSwitch, 0, NodeId{1}, Harm::kEats}, "", at(0), false);
  keeper.bad({Place::kLink, 5, {}, Harm::kEats}, "", at(0), false);
  EXPECT_THAT(keeper.faults(), SizeIs(4));
}

}  // namespace
}  // namespace regatta::heal
