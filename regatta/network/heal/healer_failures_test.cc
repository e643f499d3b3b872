// The healer with switches that do not do as they are told.
#include <gmock/gmock.h>

#include "regatta/network/heal/event_text.h"
#include "regatta/network/heal/test_healer.h"

namespace regatta::heal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(HealerOf, TellsOnceThatASwitchDidNothingAndThatItHasOnceItHas) {
  refuse("routes of switch leaf0: no route to host");
  const Fault fault = fabric.broken_link("leaf0", "spine0");
  healer.report(fault, "probes", Seconds{1});
  const auto events = step(1);
  ASSERT_THAT(kinds(events), ElementsAre(EventKind::kFailed));
  EXPECT_EQ(events[0].message, "routes of switch leaf0: no route to host");
  EXPECT_THAT(step(1.2), IsEmpty()) << "the same once more";
  refuse("routes of switch leaf0: no buffer space");
  EXPECT_THAT(kinds(step(2)), ElementsAre(EventKind::kFailed)) << "for another reason";
  obey();
  const auto done = step(3);
  ASSERT_THAT(kinds(done), ElementsAre(EventKind::kWithdrawn, EventKind::kRecovered));
  ASSERT_THAT(done[0].reasons, SizeIs(1));
  EXPECT_EQ(done[0].reasons[0].fault, fault);
  EXPECT_THAT(done[0].changes, SizeIs(2));
  EXPECT_EQ(to_text(fabric.graph, done[1]),
            "recovered: try 4 succeeded; it failed with: routes of switch leaf0: no buffer space");
  EXPECT_THAT(kinds(step(6)), ElementsAre(EventKind::kReturned));
}

TEST_F(HealerOf, TellsWhatOtherSwitchesDidWhileOneDoesNothing) {
  refuse("routes of switch leaf1: no route to host");
  switches.only = fabric.node("leaf1");
  const Fault fault = fabric.broken_link("spine0", "leaf2");
  healer.report(fault, "probes", Seconds{1});
  const auto events = step(1);
  ASSERT_THAT(kinds(events), ElementsAre(EventKind::kFailed, EventKind::kWithdrawn));
  ASSERT_THAT(events[1].changes, SizeIs(1));
  EXPECT_EQ(events[1].changes[0].node, fabric.node("leaf0"));
  EXPECT_THAT(events[1].reasons, SizeIs(1));
  EXPECT_THAT(step(1.2), IsEmpty());
  obey();
  const auto rest = step(1.5);
  ASSERT_THAT(kinds(rest), ElementsAre(EventKind::kWithdrawn, EventKind::kRecovered));
  ASSERT_THAT(rest[0].changes, SizeIs(1));
  EXPECT_EQ(rest[0].changes[0].node, fabric.node("leaf1"));
  EXPECT_THAT(rest[0].reasons, SizeIs(1));
  EXPECT_THAT(switches.applied, SizeIs(1)) << "the other one has done it";
}

// leaf1 does nothing; a fault that it need not know of is handled and told all the same.
TEST_F(HealerOf, TellsOfFaultsThatASwitchWithoutAnAnswerHasNothingToDoWith) {
  refuse("routes of switch leaf1: no route to host");
  switches.only = fabric.node("leaf1");
  Fault towards = fabric.broken_link("leaf1", "spine0");
  towards.place = Place::kHop;
  towards.node = fabric.node("leaf2");
  healer.report(towards, "probes", Seconds{1});
  EXPECT_THAT(kinds(step(1)), ElementsAre(EventKind::kFailed));
  carrier("leaf0", "s0", false);
  EXPECT_THAT(kinds(step(1.01)), ElementsAre(EventKind::kHarmless));
  healer.report(fabric.broken_link("leaf0", "spine1"), "probes", Seconds{1.02});
  EXPECT_THAT(kinds(step(1.02)), ElementsAre(EventKind::kWithdrawn));
}

TEST_F(HealerOf, SaysNothingOfAFaultThatIsOverBeforeAnySwitchHasActed) {
  lose_in_vain("command 'x': exit status 1");
  for (double now = 1.1; now < 6.5; now += 0.1)
    for (const Event& event : step(now))
      EXPECT_EQ(event.kind, EventKind::kRecovered) << now;
  EXPECT_THAT(healer.held(), IsEmpty());
  EXPECT_THAT(switches.applied, IsEmpty());
}

TEST_F(HealerOf, TellsOfAReturnOnceItIsMade) {
  const Fault fault = fabric.broken_link("leaf0", "spine0");
  healer.report(fault, "probes", Seconds{1});
  step(1);
  refuse("command 'y': exit status 1");
  EXPECT_THAT(kinds(step(6)), ElementsAre(EventKind::kFailed));
  EXPECT_THAT(step(6.1), IsEmpty());
  // It breaks again: nothing is different for anybody.
  healer.report(fault, "probes", Seconds{6.15});
  EXPECT_THAT(step(6.15), IsEmpty());
  EXPECT_THAT(kinds(step(7)), ElementsAre(EventKind::kRecovered));
  EXPECT_THAT(kinds(step(16.2)), ElementsAre(EventKind::kFailed));
  obey();
  const auto back = step(16.4);
  ASSERT_THAT(kinds(back), ElementsAre(EventKind::kReturned, EventKind::kRecovered));
  EXPECT_THAT(back[0].reasons, SizeIs(1));
}

// Losses are reported every 30 ms.
TEST_F(HealerOf, TriesNothingAgainBeforeItsPauseIsOver) {
  lose_in_vain("command 'x': exit status 1");
  const diag::LinkLoss loss{.link = fabric.link("leaf0", "spine0"), .now = 1, .left = 1};
  const int tries = switches.tries;
  for (const double now : {1.02, 1.05, 1.08}) {
    healer.report_losses(std::vector{loss}, Seconds{now});
    step(now);
  }
  EXPECT_EQ(switches.tries, tries);
  step(1.11);
  EXPECT_EQ(switches.tries, 2 * tries);
}

TEST_F(HealerOf, TellsASwitchAgainThatDidNotDoAsItWasTold) {
  lose_in_vain("routes of switch leaf0: no buffer space");
  ASSERT_TRUE(healer.next());
  EXPECT_LT(*healer.next(), Seconds{1.5});
  // It still has what it had.
  for (const NodeId leaf : {fabric.node("leaf1"), fabric.node("leaf2")})
    switches.at_start.push_back(
        {fabric.node("leaf0"), leaf,
         even_parts(fabric.paths.routes.next_hops(fabric.node("leaf0"), leaf))});
  obey();
  EXPECT_THAT(kinds(step(1.2)), ElementsAre(EventKind::kWithdrawn, EventKind::kRecovered));
  EXPECT_THAT(switches.applied, SizeIs(2));
  EXPECT_THAT(step(1.4), IsEmpty());
  EXPECT_THAT(kinds(step(6)), ElementsAre(EventKind::kReturned));
}

// As those that are reached by commands.
TEST_F(HealerOf, TellsASwitchAgainThatCannotTellWhatItHas) {
  lose_in_vain("command 'x': exit status 1");
  obey();
  step(1.2);
  EXPECT_THAT(switches.applied, SizeIs(2));
  EXPECT_FALSE(hops_of(switches.tables.parts(fabric.node("leaf0"), fabric.node("leaf1"))).empty());
  EXPECT_THAT(step(1.4), IsEmpty());
}

TEST_F(HealerOf, TriesLessOftenWhatFailsAgainAndAgain) {
  lose_in_vain("command 'x': exit status 1");
  std::vector<double> pauses;
  double now = 1;
  while (now < 2) {
    ASSERT_TRUE(healer.next());
    pauses.push_back(healer.next()->value - now);
    now = healer.next()->value;
    EXPECT_THAT(step(now), IsEmpty());
  }
  EXPECT_NEAR(pauses[0], 0.1, 1e-9);
  EXPECT_NEAR(pauses[3], 0.8, 1e-9);
  obey();
  step(healer.next()->value);
  refuse("command 'x': exit status 1");
  healer.report(fabric.broken_link("leaf1", "spine0"), "probes", Seconds{5});
  EXPECT_THAT(kinds(step(5)), ElementsAre(EventKind::kFailed));
  EXPECT_NEAR(healer.next()->value, 5.1, 1e-9);
}

TEST_F(HealerOf, TriesAgainToPutInTheRoutesOfAnInterfaceThatCameOn) {
  options.damping.clean = Seconds{50};  // so that it is still held then
  Healer slow(fabric.graph, fabric.paths, switches, options);
  ASSERT_TRUE(slow.start(Seconds{0}));
  carrier("spine0", "leaf2", false);
  ASSERT_TRUE(slow.step(Seconds{10}));
  refuse("routes of switch spine0: network is down");
  carrier("spine0", "leaf2", true);
  EXPECT_THAT(kinds(*slow.step(Seconds{11})), ElementsAre(EventKind::kFailed));
  ASSERT_TRUE(slow.next());
  EXPECT_LT(*slow.next(), Seconds{11.5});
  switches.at_start.push_back({fabric.node("spine0"), fabric.node("leaf2"), {}});
  obey();
  ASSERT_TRUE(slow.step(Seconds{11.2}));
  ASSERT_THAT(switches.applied, SizeIs(1));
  EXPECT_EQ(switches.applied[0].node, fabric.node("spine0"));
}

TEST_F(HealerOf, TellsASwitchAgainAlsoWhereNobodyTellsWhatIsInstalled) {
  lose_in_vain("routes of switch leaf0: no buffer space");
  obey();
  switches.told = Error{Code::kTimeout, "routing socket: the kernel does not answer"};
  healer.report(fabric.broken_link("leaf1", "spine0"), "probes", Seconds{1.2});
  EXPECT_THAT(kinds(step(1.2)), ElementsAre(EventKind::kFailed, EventKind::kWithdrawn));
  EXPECT_THAT(switches.applied, SizeIs(4)) << "two of leaf0 and two of leaf1";
}

TEST_F(HealerOf, GoesOnWhenNobodyTellsWhatIsInstalled) {
  lose_in_vain("routes of switch leaf0: no buffer space");
  obey();
  switches.told = Error{Code::kTimeout, "routing socket: the kernel does not answer"};
  const auto events = step(1.2);
  ASSERT_THAT(kinds(events), ElementsAre(EventKind::kFailed));
  EXPECT_EQ(events[0].message, "routing socket: the kernel does not answer");
  switches.told = {};
  ASSERT_TRUE(healer.next());
  step(healer.next()->value);
  EXPECT_THAT(switches.applied, SizeIs(2));
}

}  // namespace
}  // namespace regatta::heal
