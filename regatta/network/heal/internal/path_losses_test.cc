#include "regatta/network/heal/internal/path_losses.h"

#include <gmock/gmock.h>

#include "regatta/network/heal/test_fabric.h"

namespace regatta::heal {
namespace {

using testing::UnorderedElementsAre;

class PathLossesTest : public testing::Test {
 protected:
  void set(double at, const std::vector<diag::LinkLoss>& lossy) { losses_.set(lossy, Seconds{at}); }

  TestFabricPaths fabric_ = TestFabricPaths::two_tiers(3, 2);
  std::uint32_t up_ = fabric_.link("leaf0", "spine0");
  PathLosses losses_{fabric_.paths};
};

TEST_F(PathLossesTest, AreThoseOfTheLastReport) {
  set(1, {{.link = up_, .now = 0.3, .left = 0.1}});
  EXPECT_EQ(losses_.in_use(up_), 0.3);
  EXPECT_EQ(losses_.if_used(up_), 0.1);
  EXPECT_EQ(losses_.if_used(fabric_.broken_switch("spine0")), 0.1);
  EXPECT_TRUE(losses_.is_lossy());
  set(1.1, {{.link = up_ ^ 1U, .now = 0, .left = 0.1}});
  EXPECT_EQ(losses_.in_use(up_), 0);
  EXPECT_EQ(losses_.if_used(up_), 0);
  EXPECT_TRUE(losses_.is_lossy()) << "the other direction";
  EXPECT_EQ(losses_.in_use(up_ ^ 1U), 0.1) << "of the last half second";
  set(1.2, {});
  EXPECT_FALSE(losses_.is_lossy());
}

TEST_F(PathLossesTest, TrustNoLinkThatNoProbeCrosses) {
  set(1, {{.link = up_, .is_blind = true}});
  EXPECT_EQ(losses_.in_use(up_), 0);
  EXPECT_EQ(losses_.if_used(up_), 1);
}

TEST_F(PathLossesTest, RememberWhenAFaultLostPackets) {
  const Fault fault = fabric_.broken_link("leaf0", "spine0");
  EXPECT_FALSE(losses_.has_lost_since(fault, Seconds{0}));
  set(1, {{.link = up_, .now = 1, .left = 1}});
  set(2, {});
  EXPECT_TRUE(losses_.has_lost_since(fault, Seconds{1}));
  EXPECT_FALSE(losses_.has_lost_since(fault, Seconds{1.5}));
}

TEST_F(PathLossesTest, ProveARepairOnceSevenLossesAreMissing) {
  const Fault fault = fabric_.broken_link("leaf0", "spine0", Harm::kLoss);
  const Seconds least{1};
  // A loss each second is in three of 33 reports.
  double now = 1;
  for (int i = 0; now < 10; now += 0.03, ++i)
    set(now, i % 33 < 3 ? std::vector{diag::LinkLoss{.link = up_, .now = 0.01, .left = 0.01}}
                        : std::vector<diag::LinkLoss>{});
  const double last = now;
  while (!losses_.is_proven_clean(fault, Seconds{2}, least, Seconds{now}) && now < 30)
    set(now += 0.03, {});
  EXPECT_GT(now - last, 5.5);
  EXPECT_LT(now - last, 8.5);
  EXPECT_FALSE(losses_.is_proven_clean(fault, Seconds{2}, least, Seconds{now + 0.3}))
      << "nobody reports any more";
}

TEST_F(PathLossesTest, ProveNothingOfWhatProbesDidNotSee) {
  const Fault black_hole = fabric_.broken_link("leaf0", "spine0");
  set(1, {{.link = up_, .now = 0.01, .left = 0.01}});
  for (double now = 1.03; now < 9; now += 0.03)
    set(now, {});
  EXPECT_FALSE(losses_.is_proven_clean(black_hole, Seconds{1}, Seconds{1}, Seconds{9}));
  const Fault other = fabric_.broken_link("leaf0", "spine1");
  EXPECT_FALSE(losses_.is_proven_clean(other, Seconds{1}, Seconds{1}, Seconds{9}));
}

TEST_F(PathLossesTest, CountTheWholePathThatAnEarlierHealerLeftOut) {
  const Fault taken{Place::kHop, up_, fabric_.node("leaf2"), Harm::kLoss};
  EXPECT_THAT(links_of(fabric_.paths, taken),
              UnorderedElementsAre(up_, fabric_.link("spine0", "leaf2")));
}

TEST_F(PathLossesTest, CountAllLinksOfASwitch) {
  EXPECT_EQ(links_of(fabric_.paths, fabric_.broken_switch("spine0")).size(), 6U);
}

}  // namespace
}  // namespace regatta::heal
