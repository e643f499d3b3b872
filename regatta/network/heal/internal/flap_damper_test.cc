#include "regatta/network/heal/internal/flap_damper.h"

#include <gmock/gmock.h>

namespace regatta::heal {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr Damping kDamping{Seconds{5}, Seconds{60}, Seconds{300}};
constexpr Fault kUplink{Place::kLink, 4, {}, Harm::kBlackHole};

Seconds at(double seconds) {
  return Seconds{seconds};
}

TEST(FlapDamper, ReleasesAPlaceAfterItsCleanPeriod) {
  FlapDamper damper(kDamping);
  EXPECT_TRUE(damper.bad(kUplink, "probes", at(100), false));
  EXPECT_EQ(damper.next(), at(105));
  EXPECT_THAT(damper.release(at(104.9)), IsEmpty());
  EXPECT_THAT(damper.release(at(105)), SizeIs(1));
  EXPECT_THAT(damper.held(), IsEmpty());
  EXPECT_EQ(damper.next(), std::nullopt);
}

TEST(FlapDamper, BeginsTheCleanPeriodAnewWithEverySighting) {
  FlapDamper damper(kDamping);
  damper.bad(kUplink, "probes", at(100), false);
  EXPECT_FALSE(damper.bad(kUplink, "probes", at(104), false));
  EXPECT_THAT(damper.release(at(105)), IsEmpty());
  EXPECT_THAT(damper.release(at(109)), SizeIs(1));
}

TEST(FlapDamper, HoldsWhatLastsUntilItIsOver) {
  FlapDamper damper(kDamping);
  damper.bad(kUplink, "no carrier", at(0), true);
  EXPECT_EQ(damper.next(), std::nullopt);
  EXPECT_THAT(damper.release(at(1e6)), IsEmpty());
  damper.good(kUplink, at(1e6));
  EXPECT_EQ(damper.next(), at(1e6) + kDamping.proven()) << "its return proves that it works";
  EXPECT_THAT(damper.release(at(1e6 + 0.09)), IsEmpty());
  EXPECT_THAT(damper.release(at(1e6 + 0.11)), SizeIs(1));
}

TEST(FlapDamper, HoldsALinkWhoseCarrierIsBackForTheWholePeriodWhereProbesStillLosePackets) {
  FlapDamper damper(kDamping);
  damper.bad(kUplink, "no carrier", at(0), true);
  damper.good(kUplink, at(10));
  for (const double again : {10.5, 11.51, 12.52}) {
    damper.bad(kUplink, "probes", at(again), false);
    EXPECT_THAT(damper.release(at(again + 1)), IsEmpty());
  }
  EXPECT_EQ(damper.next(), at(17.52));
}

TEST(FlapDamper, HoldsACarrierThatIsLostAgainForTheWholePeriod) {
  FlapDamper damper(kDamping);
  damper.bad(kUplink, "no carrier", at(0), true);
  damper.good(kUplink, at(1));
  damper.release(at(2));
  damper.bad(kUplink, "no carrier", at(3), true);
  damper.good(kUplink, at(4));
  EXPECT_EQ(damper.next(), at(14));
}

TEST(FlapDamper, TakesMoreHarmAsNews) {
  FlapDamper damper(kDamping);
  Fault lossy = kUplink;
  lossy.harm = Harm::kLoss;
  damper.bad(lossy, "loses 1 %", at(0), false);
  EXPECT_TRUE(damper.bad(kUplink, "eats all", at(1), false));
  EXPECT_FALSE(damper.bad(lossy, "loses 1 %", at(2), false));
  ASSERT_THAT(damper.held(), SizeIs(1));
  EXPECT_EQ(damper.held()[0].fault.harm, Harm::kBlackHole);
  EXPECT_EQ(damper.held()[0].since, at(0));
}

// A place that breaks whenever it is used is tried ever more seldom, up to the limit.
TEST(FlapDamper, DoublesTheCleanPeriodWithEachRelapseUpToALimit) {
  FlapDamper damper(kDamping);
  double now = 0;
  std::vector<double> periods;
  for (int i = 0; i < 7; ++i) {
    damper.bad(kUplink, "probes", at(now), false);
    periods.push_back(damper.held()[0].clean.value);
    now += periods.back();
    EXPECT_THAT(damper.release(at(now)), SizeIs(1));
    now += 0.05;
  }
  EXPECT_THAT(periods, testing::ElementsAre(5, 10, 20, 40, 60, 60, 60));
}

TEST(FlapDamper, ForgetsRelapsesOfAPlaceThatBehavesWell) {
  FlapDamper damper(kDamping);
  double now = 0;
  for (int i = 0; i < 3; ++i) {
    damper.bad(kUplink, "probes", at(now), false);
    now += damper.held()[0].clean.value;
    damper.release(at(now));
    now += 0.05;
  }
  // Two relapses; two good times later only this one counts.
  damper.bad(kUplink, "probes", at(now + 2 * 300), false);
  EXPECT_EQ(damper.held()[0].clean, at(10));
  now += 2 * 300 + 10;
  damper.release(at(now));
  damper.bad(kUplink, "probes", at(now + 1000), false);
  EXPECT_EQ(damper.held()[0].clean, at(5));
}

TEST(FlapDamper, TellsPlacesApart) {
  FlapDamper damper(kDamping);
  damper.bad(kUplink, "", at(0), false);
  damper.bad({Place::kHop, 4, NodeId{1}, Harm::kBlackHole}, "", at(0), false);
  damper.bad({Place::kSwitch, 0, NodeId{1}, Harm::kBlackHole}, "", at(0), false);
  damper.bad({Place::kLink, 5, {}, Harm::kBlackHole}, "", at(0), false);
  EXPECT_THAT(damper.faults(), SizeIs(4));
}

TEST(FlapDamper, CountsWhatBreaksAfterItWasProvenToWorkAsARelapse) {
  FlapDamper damper(kDamping);
  damper.bad(kUplink, "probes", at(100), false);
  damper.release_proven(kUplink, at(101));
  EXPECT_THAT(damper.held(), IsEmpty());
  EXPECT_TRUE(damper.bad(kUplink, "probes", at(102), false));
  EXPECT_TRUE(damper.held()[0].is_relapse);
  EXPECT_EQ(damper.next(), at(112));
}

// It was released because other paths lost more, not because it had been repaired.
TEST(FlapDamper, GoesOnAfterAnEarlyReleaseAsIfThereHadBeenNone) {
  FlapDamper damper(kDamping);
  damper.bad(kUplink, "probes", at(100), false);
  damper.release_early(kUplink, at(101));
  EXPECT_THAT(damper.held(), IsEmpty());
  for (const double again : {102, 104, 106}) {
    EXPECT_TRUE(damper.bad(kUplink, "probes", at(again), false));
    EXPECT_EQ(damper.next(), at(again + 5));
    damper.release_early(kUplink, at(again + 1));
  }
}

}  // namespace
}  // namespace regatta::heal
