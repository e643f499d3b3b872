// A healer goes on with what the one before it has left.
#include <gmock/gmock.h>

#include "regatta/network/heal/test_healer.h"

namespace regatta::heal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(HealerOf, TakesOverWhatAKilledOneLeft) {
  const std::vector<Fault> faults = {fabric.broken_link("leaf0", "spine1")};
  for (const RouteChange& change : switches.tables.changes(decide(fabric.paths, faults)))
    switches.at_start.push_back({change.node, change.leaf, change.parts});
  const auto events = healer.start(Seconds{100});
  ASSERT_TRUE(events);
  ASSERT_THAT(kinds(*events), ElementsAre(EventKind::kTakenOver));
  EXPECT_THAT((*events)[0].changes, SizeIs(2));
  EXPECT_THAT(switches.applied, IsEmpty());
  EXPECT_THAT(kinds(step(105)), ElementsAre(EventKind::kReturned));
  EXPECT_THAT(switches.applied, SizeIs(2));
}

TEST_F(HealerOf, GoesOnWithTheFaultsOfAKilledOne) {
  healer.report(fabric.broken_link("leaf0", "spine1"), "probes", Seconds{98});
  EXPECT_THAT(kinds(step(98)), ElementsAre(EventKind::kWithdrawn));
  for (const RouteChange& change : std::exchange(switches.applied, {}))
    switches.at_start.push_back({change.node, change.leaf, change.parts});
  Healer next(fabric.graph, fabric.paths, switches, {});
  const auto events = next.start(Seconds{102}, healer.state());
  ASSERT_TRUE(events);
  EXPECT_THAT(*events, IsEmpty());
  EXPECT_THAT(switches.applied, IsEmpty());
  ASSERT_THAT(next.held(), SizeIs(1));
  EXPECT_EQ(next.held()[0].fault, fabric.broken_link("leaf0", "spine1"));
  EXPECT_EQ(next.held()[0].why, "probes");
  EXPECT_EQ(next.held()[0].since, Seconds{98});
  // The time without a healer is no clean time.
  EXPECT_THAT(kinds(*next.step(Seconds{106.9})), IsEmpty());
  EXPECT_THAT(kinds(*next.step(Seconds{107})), ElementsAre(EventKind::kReturned));
  // It is a relapse, although another process saw the first fault.
  next.report(fabric.broken_link("leaf0", "spine1"), "probes", Seconds{108});
  EXPECT_THAT(kinds(*next.step(Seconds{108})), ElementsAre(EventKind::kWithdrawn));
  EXPECT_EQ(next.held()[0].clean, Seconds{10});
}

TEST_F(HealerOf, WithdrawsOnceWhereSwitchesDoNotTellWhatIsInstalled) {
  healer.report(fabric.broken_link("leaf0", "spine1"), "probes", Seconds{98});
  step(98);
  switches.applied.clear();
  Healer next(fabric.graph, fabric.paths, switches, {});
  ASSERT_TRUE(next.start(Seconds{98.1}, healer.state()));
  EXPECT_THAT(switches.applied, IsEmpty());
  EXPECT_THAT(kinds(*next.step(Seconds{103.1})), ElementsAre(EventKind::kReturned));
  EXPECT_THAT(switches.applied, SizeIs(2));
}

TEST_F(HealerOf, TellsSwitchesAfterAKillWhatTheyWereToldInVainBefore) {
  switches.tells = false;
  lose_in_vain("command 'x': exit status 1");
  obey();
  Healer next(fabric.graph, fabric.paths, switches, {});
  ASSERT_TRUE(next.start(Seconds{1.1}, healer.state()));
  EXPECT_THAT(switches.applied, SizeIs(2)) << "the withdrawals";
  // And the return.
  refuse("command 'y': exit status 1");
  ASSERT_TRUE(next.step(Seconds{6.2}));
  EXPECT_THAT(next.held(), IsEmpty());
  obey();
  Healer last(fabric.graph, fabric.paths, switches, {});
  ASSERT_TRUE(last.start(Seconds{6.3}, next.state()));
  EXPECT_THAT(last.held(), SizeIs(2)) << "for one more clean period";
  ASSERT_TRUE(last.step(Seconds{11.4}));
  EXPECT_THAT(switches.applied, SizeIs(2));
  EXPECT_EQ(hops_of(switches.tables.parts(fabric.node("leaf0"), fabric.node("leaf1"))).size(), 2U);
}

TEST_F(HealerOf, TakesOverWhatTheStateDoesNotExplain) {
  const std::vector<Fault> faults = {fabric.broken_link("leaf0", "spine1")};
  for (const RouteChange& change : switches.tables.changes(decide(fabric.paths, faults)))
    switches.at_start.push_back({change.node, change.leaf, change.parts});
  const auto events = healer.start(Seconds{100}, HealerState{});
  ASSERT_TRUE(events);
  EXPECT_THAT(kinds(*events), ElementsAre(EventKind::kTakenOver));
  EXPECT_FALSE(healer.held().empty());
}

TEST_F(HealerOf, PutsRoutesInThatAreNotThere) {
  switches.at_start.push_back({fabric.node("leaf0"), fabric.node("leaf1"), {}});
  const auto events = healer.start(Seconds{0});
  ASSERT_TRUE(events);
  ASSERT_THAT(kinds(*events), ElementsAre(EventKind::kReturned));
  ASSERT_THAT(switches.applied, SizeIs(1));
  EXPECT_EQ(switches.applied[0].parts,
            even_parts(fabric.paths.routes.next_hops(fabric.node("leaf0"), fabric.node("leaf1"))));
}

}  // namespace
}  // namespace regatta::heal
