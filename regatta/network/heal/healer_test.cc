#include "regatta/network/heal/healer.h"

#include <gmock/gmock.h>

#include "regatta/network/heal/event_text.h"
#include "regatta/network/heal/test_healer.h"

namespace regatta::heal {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(HealerOf, LeavesAHealthyFabricAlone) {
  const auto events = healer.start(Seconds{0});
  ASSERT_TRUE(events);
  EXPECT_THAT(*events, IsEmpty());
  EXPECT_THAT(step(1), IsEmpty());
  EXPECT_THAT(switches.applied, IsEmpty());
}

TEST_F(HealerOf, WithdrawsALinkWithoutCarrierFromBothSidesAndReturnsItAfterACleanPeriod) {
  carrier("spine0", "leaf2", false);
  const auto down = step(10);
  ASSERT_THAT(kinds(down), ElementsAre(EventKind::kWithdrawn));
  EXPECT_THAT(down[0].reasons, SizeIs(2));
  // Towards leaf2 at two leaves, and at leaf2 towards two.
  EXPECT_THAT(down[0].changes, SizeIs(4));
  carrier("leaf2", "spine0", false);  // the other end sees it later
  EXPECT_THAT(step(10.1), IsEmpty());
  carrier("spine0", "leaf2", true);
  EXPECT_THAT(step(20), IsEmpty());
  carrier("leaf2", "spine0", true);
  switches.applied.clear();
  EXPECT_THAT(step(21), IsEmpty());
  EXPECT_EQ(healer.next(), Seconds{21.1}) << "what broke for the first time, and has its carrier";
  const auto back = step(21.1);
  ASSERT_THAT(kinds(back), ElementsAre(EventKind::kReturned));
  EXPECT_THAT(back[0].changes, SizeIs(4));
  EXPECT_THAT(healer.held(), IsEmpty());
  for (const NodeId leaf : fabric.paths.routes.leaves())
    for (const NodeId node : fabric.paths.routes.leaves())
      EXPECT_EQ(switches.tables.parts(node, leaf),
                even_parts(fabric.paths.routes.next_hops(node, leaf)));
}

// A spine has one path to a leaf; its kernel drops that route when the interface goes off.
TEST_F(HealerOf, InstallsTheRoutesAgainThatAKernelForgets) {
  carrier("spine0", "leaf2", false);
  step(10);
  switches.applied.clear();
  carrier("spine0", "leaf2", true);
  step(11);
  ASSERT_THAT(switches.applied, SizeIs(1));
  EXPECT_EQ(switches.applied[0].node, fabric.node("spine0"));
  EXPECT_EQ(switches.applied[0].leaf, fabric.node("leaf2"));
}

TEST_F(HealerOf, ActsOnWhatProbesSawAsLongAsTheySeeIt) {
  const Fault fault = fabric.broken_link("leaf0", "spine1");
  healer.report(fault, "3 of 3 probes lost", Seconds{1});
  const auto down = step(1);
  ASSERT_THAT(kinds(down), ElementsAre(EventKind::kWithdrawn));
  EXPECT_EQ(down[0].reasons[0].why, "3 of 3 probes lost");
  EXPECT_THAT(down[0].changes, SizeIs(2));
  healer.report(fault, "3 of 3 probes lost", Seconds{4});
  EXPECT_THAT(step(6.1), IsEmpty());
  EXPECT_THAT(kinds(step(9)), ElementsAre(EventKind::kReturned));
}

TEST_F(HealerOf, RestoresRoutesThatAnotherProgramChangedAndNamesThem) {
  switches.tells = true;
  ASSERT_TRUE(healer.start(Seconds{0}));
  switches.at_start = {{fabric.node("leaf0"), fabric.node("leaf1"), {}, {}, {}}};
  EXPECT_THAT(step(1), IsEmpty());
  EXPECT_EQ(healer.next(), Seconds{1.02});
  const auto events = step(1.02);
  ASSERT_THAT(kinds(events), ElementsAre(EventKind::kRepaired));
  EXPECT_EQ(events[0].message,
            "another program changed the routes leaf0 to leaf1 (removed); they are restored");
  ASSERT_THAT(switches.applied, SizeIs(1));
  EXPECT_THAT(switches.applied[0].returned, SizeIs(2));
}

// The locator may see three dead links of a leaf as one fault of that leaf, which no route avoids.
TEST_F(HealerOf, HoldsTheLinksOfASwitchAsLongAsTheSwitchIsReported) {
  healer.report(fabric.broken_link("leaf0", "spine0"), "probes", Seconds{1});
  step(1);
  const auto held = switches.tables.parts(fabric.node("leaf0"), fabric.node("leaf1"));
  for (double now = 2; now < 20; now += 1) {
    healer.report(fabric.broken_switch("leaf0"), "some flows", Seconds{now});
    for (const Event& event : step(now))
      EXPECT_NE(event.kind, EventKind::kReturned) << now;
  }
  EXPECT_EQ(switches.tables.parts(fabric.node("leaf0"), fabric.node("leaf1")), held);
  EXPECT_THAT(kinds(step(24.1)), Contains(EventKind::kReturned));
}

TEST_F(HealerOf, TellsOnceThatItRefusesToCutALeafOff) {
  healer.report(fabric.broken_link("leaf0", "spine0"), "probes", Seconds{1});
  step(1);
  healer.report(fabric.broken_link("leaf0", "spine1"), "probes", Seconds{2});
  const auto events = step(2);
  // The first one is as good as the second now.
  ASSERT_THAT(kinds(events),
              ElementsAre(EventKind::kReturned, EventKind::kHarmless, EventKind::kRefused));
  EXPECT_THAT(events[2].refusals, SizeIs(2));
  ASSERT_THAT(events[2].reasons, SizeIs(1));
  EXPECT_EQ(events[2].reasons[0].fault.link, fabric.link("leaf0", "spine1"));
  healer.report(fabric.broken_link("leaf0", "spine1"), "probes", Seconds{3});
  EXPECT_THAT(step(3), IsEmpty());
}

TEST_F(HealerOf, TellsWhatIsOverBeforeWhatIsNew) {
  healer.report(fabric.broken_link("leaf0", "spine1"), "probes", Seconds{1});
  step(1);
  healer.report(fabric.broken_link("leaf1", "spine0"), "probes", Seconds{7});
  EXPECT_THAT(kinds(step(7)), ElementsAre(EventKind::kReturned, EventKind::kWithdrawn));
}

TEST_F(HealerOf, TellsThatNothingCanBeDoneAboutTheCableOfANic) {
  carrier("leaf0", "s0", false);
  const auto events = step(1);
  ASSERT_THAT(kinds(events), ElementsAre(EventKind::kHarmless));
  EXPECT_THAT(switches.applied, IsEmpty());
}

TEST_F(HealerOf, TellsOnceThatItLeavesAloneWhatIsSetUpWrongly) {
  ASSERT_TRUE(healer.start(Seconds{0}));
  healer.note("cables a and b: swapped", Seconds{1});
  const auto events = step(1);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].kind, EventKind::kHarmless);
  EXPECT_EQ(to_text(fabric.graph, events[0]), "noted: cables a and b: swapped");
  healer.note("cables a and b: swapped", Seconds{2});
  EXPECT_THAT(step(2), IsEmpty());
  EXPECT_THAT(switches.applied, IsEmpty());
  healer.note("cables a and b: swapped", Seconds{20});
  EXPECT_THAT(step(20), SizeIs(1)) << "seen again";
}

TEST_F(HealerOf, ChangesNothingWhenDry) {
  options.dry_run = true;
  Healer dry(fabric.graph, fabric.paths, switches, options);
  ASSERT_TRUE(dry.start(Seconds{0}));
  dry.report(fabric.broken_link("leaf0", "spine0"), "probes", Seconds{1});
  const auto events = dry.step(Seconds{1});
  ASSERT_TRUE(events);
  EXPECT_THAT(kinds(*events), ElementsAre(EventKind::kWithdrawn));
  EXPECT_THAT(switches.applied, IsEmpty());
}

}  // namespace
}  // namespace regatta::heal
