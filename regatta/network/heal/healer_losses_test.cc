// The early returns of the healer, by what probes lose.
#include <gmock/gmock.h>

#include "regatta/network/heal/test_healer.h"

namespace regatta::heal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// A repaired link stays out for its clean period, but not while another path is breaking.
TEST_F(HealerOf, ReturnsARepairedLinkEarlyWhereProbesLosePacketsOnTheOthers) {
  const diag::LinkLoss first{.link = fabric.link("leaf0", "spine0"), .now = 1, .left = 1};
  const diag::LinkLoss second{.link = fabric.link("leaf0", "spine1"), .now = 0.2, .left = 0.1};
  const auto parts = [&] {
    return hops_of(switches.tables.parts(fabric.node("leaf0"), fabric.node("leaf1")));
  };
  const Fault fault = fabric.broken_link("leaf0", "spine0");
  healer.report_losses(std::vector{first}, Seconds{1});
  healer.report(fault, "probes", Seconds{1});
  step(1);
  EXPECT_THAT(parts(), ElementsAre(second.link));
  healer.report_losses(std::vector<diag::LinkLoss>(), Seconds{1.03});
  EXPECT_THAT(step(1.03), IsEmpty());
  healer.report_losses(std::vector{second}, Seconds{1.06});
  EXPECT_THAT(kinds(step(1.06)), ElementsAre(EventKind::kReturned));
  EXPECT_THAT(parts(), ElementsAre(first.link, second.link));
  EXPECT_THAT(healer.held(), IsEmpty());
  // The locator repeats what it saw, for its clean time.
  healer.report(fault, "probes", Seconds{2.5});
  EXPECT_THAT(step(2.5), IsEmpty());
  // But it goes on.
  healer.report_losses(std::vector{first}, Seconds{3});
  healer.report(fault, "probes", Seconds{3});
  EXPECT_THAT(kinds(step(3)), ElementsAre(EventKind::kWithdrawn));
  ASSERT_THAT(healer.held(), SizeIs(1));
  EXPECT_EQ(healer.held()[0].clean, Seconds{5});
}

// A wrong verdict beside another fault is of a link that probes cross without a loss.
TEST_F(HealerOf, ReturnsWhatProbesFoundBrokenAndCrossWithoutALossOnceNobodyRepeatsIt) {
  const diag::LinkLoss other{.link = fabric.link("leaf2", "spine0"), .now = 1, .left = 1};
  const auto returned_at = [&](const Fault& fault, double from) {
    healer.report(fault, "some flows", Seconds{from}, true);
    for (double now = from; now < from + 10; now += 0.03) {
      if (now < from + 2) healer.report(fault, "some flows", Seconds{now}, true);
      healer.report_losses(std::vector{other}, Seconds{now});
      for (const Event& event : step(now))
        if (event.kind == EventKind::kReturned) return now - from;
    }
    return 10.0;
  };
  EXPECT_NEAR(returned_at(fabric.broken_link("leaf0", "spine0"), 1), 3.2, 0.1);
  // Nobody knows the losses of cables of servers.
  EXPECT_NEAR(returned_at(fabric.broken_link("s0", "leaf0"), 20), 7, 0.1);
}

TEST_F(HealerOf, ReturnsAWrongVerdictAtOnceWhereThePathsInUseLosePackets) {
  const diag::LinkLoss used{.link = fabric.link("leaf0", "spine1"), .now = 0.05, .left = 0.05};
  healer.report(fabric.broken_link("leaf0", "spine0"), "some flows", Seconds{1}, true);
  step(1);
  healer.report_losses(std::vector{used}, Seconds{1.5});
  EXPECT_THAT(kinds(step(1.5)), ElementsAre(EventKind::kReturned));
}

// It may be broken for others, but what is in use here is worse than it can be.
TEST_F(HealerOf, ReturnsASwitchWhereThePathsInUseAreBlackHoles) {
  const diag::LinkLoss known{.link = fabric.link("spine0", "leaf2"), .now = 1, .left = 1};
  const diag::LinkLoss used{.link = fabric.link("leaf0", "spine1"), .now = 1, .left = 1};
  healer.report(fabric.broken_link("spine0", "leaf2"), "probes", Seconds{1}, true);
  healer.report(fabric.broken_switch("spine0"), "some flows", Seconds{1}, true);
  step(1);
  const auto parts = [&](const std::string& leaf) {
    return hops_of(switches.tables.parts(fabric.node("leaf0"), fabric.node(leaf)));
  };
  EXPECT_THAT(parts("leaf1"), ElementsAre(used.link));
  healer.report_losses(std::vector{known, used}, Seconds{1.5});
  step(1.5);
  EXPECT_THAT(parts("leaf1"), ElementsAre(fabric.link("leaf0", "spine0"), used.link));
  EXPECT_THAT(parts("leaf2"), ElementsAre(used.link)) << "its own fault is held";
}

// A fiftieth of the clean period without its losses proves a repair, of what broke the first time.
TEST_F(HealerOf, ReturnsWhatProbesHaveCrossedWithoutALossAndHoldsItForLongerWhenItBreaksAgain) {
  const diag::LinkLoss loss{.link = fabric.link("leaf0", "spine0"), .now = 0.1, .left = 0.1};
  const Fault fault = fabric.broken_link("leaf0", "spine0");
  const auto lose_until = [&](double from, double until) {
    for (double now = from; now < until; now += 0.03) {
      healer.report_losses(std::vector{loss}, Seconds{now});
      healer.report(fault, "probes", Seconds{now});
      step(now);
    }
  };
  const auto returned_at = [&](double from, double until) {
    for (double now = from; now < until; now += 0.03) {
      healer.report_losses(std::vector<diag::LinkLoss>(), Seconds{now});
      // The locator repeats what it saw until it is over.
      if (now < from + 2) healer.report(fault, "probes", Seconds{now});
      for (const Event& event : step(now))
        if (event.kind == EventKind::kReturned) return now;
    }
    return until;
  };
  lose_until(1, 3);
  EXPECT_NEAR(returned_at(3, 20), 3.1, 0.05);
  EXPECT_EQ(returned_at(3.3, 10), 10) << "its echo is no news";
  lose_until(20, 21);
  EXPECT_NEAR(returned_at(21, 60), 33, 0.1) << "10 s after the last report";
}

TEST_F(HealerOf, HoldsWhatProbesDoNotSeeForItsWholePeriod) {
  const Fault fault = fabric.broken_link("leaf0", "spine0");
  healer.report(fault, "loss of users' packets", Seconds{1});
  step(1);
  for (double now = 1.03; now < 5.9; now += 0.03) {
    healer.report_losses(std::vector<diag::LinkLoss>(), Seconds{now});
    EXPECT_THAT(step(now), IsEmpty()) << now;
  }
  EXPECT_THAT(kinds(step(6)), ElementsAre(EventKind::kReturned));
}

TEST_F(HealerOf, ReturnsNothingEarlyThatStillLosesMoreOrThatProbesNeverSaw) {
  const diag::LinkLoss held{.link = fabric.link("leaf0", "spine0"), .now = 1, .left = 1};
  const diag::LinkLoss used{.link = fabric.link("leaf0", "spine1"), .now = 0.2, .left = 0.1};
  const auto parts = [&] {
    return hops_of(switches.tables.parts(fabric.node("leaf0"), fabric.node("leaf1")));
  };
  healer.report(fabric.broken_link("leaf0", "spine0"), "a person", Seconds{1});
  step(1);
  healer.report_losses(std::vector{used}, Seconds{1.1});
  step(1.1);
  EXPECT_THAT(parts(), ElementsAre(used.link));
  healer.report_losses(std::vector{held, used}, Seconds{1.2});
  step(1.2);
  EXPECT_THAT(parts(), ElementsAre(used.link));
}

}  // namespace
}  // namespace regatta::heal
