#include "regatta/network/heal/healer.h"

#include <array>
#include <deque>
#include <map>
#include <optional>

#include <gmock/gmock.h>

#include "regatta/network/heal/event_text.h"
#include "regatta/network/heal/test_fabric.h"

namespace regatta::heal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Switches that remember what they were told.
class FakeSwitches final : public Switches {
 public:
  explicit FakeSwitches(const FabricPaths& paths) : tables(paths) {}

  Result<std::vector<Installed>> installed() override {
    if (!told) return told.error();
    return at_start;
  }
  std::vector<Status> apply(std::span<const RouteChange> changes) override {
    std::vector<Status> made;
    for (const RouteChange& change : changes) {
      const bool refuses_this = refuses && (!only || *only == change.node);
      made.push_back(refuses_this ? answer : Status());
      if (refuses_this) continue;
      applied.push_back(change);
      tables.apply(std::array{change});
    }
    tries += static_cast<int>(changes.size());
    return made;
  }
  Result<std::vector<CarrierChange>> carriers() override { return std::exchange(coming, {}); }
  int fd() const override { return -1; }
  bool reads_installed() const override { return tells; }

  bool tells = false;
  std::vector<Installed> at_start;
  std::vector<CarrierChange> coming;
  std::vector<RouteChange> applied;
  Tables tables;
  Status answer;
  Status told;  // whether they tell what is installed
  bool refuses = false;
  std::optional<NodeId> only;  // the one that refuses; else all do
  int tries = 0;               // of changes
};

class HealerOf : public testing::Test {
 protected:
  std::vector<Event> step(double now) {
    auto events = healer.step(Seconds{now});
    EXPECT_TRUE(events);
    return *events;
  }
  void carrier(const std::string& at, const std::string& other, bool up) {
    switches.coming.push_back(
        {fabric.node(at), LinkId{static_cast<int>(fabric.link(at, other) / 2)}, up});
  }
  // From now on switches do nothing, and say this.
  void refuse(const std::string& why) {
    switches.answer = Error{Code::kUnavailable, why};
    switches.refuses = true;
  }
  // From now on they do as they are told, and what they did so far is forgotten.
  void obey() {
    switches.answer = {};
    switches.refuses = false;
    switches.only.reset();
    switches.applied.clear();
  }
  // leaf0 loses a path, and is told so in vain.
  void lose_in_vain(const std::string& why) {
    refuse(why);
    healer.report(fabric.broken_link("leaf0", "spine0"), "probes", Seconds{1});
    EXPECT_THAT(kinds(step(1)), testing::Contains(EventKind::kFailed));
  }
  std::vector<EventKind> kinds(const std::vector<Event>& events) {
    std::vector<EventKind> kinds;
    kinds.reserve(events.size());
    for (const Event& event : events)
      kinds.push_back(event.kind);
    return kinds;
  }

  TestFabricPaths fabric = TestFabricPaths::two_tiers(3, 2);
  FakeSwitches switches{fabric.paths};
  HealerOptions options{{Seconds{5}, Seconds{60}, Seconds{300}}, false};
  Healer healer{fabric.graph, fabric.paths, switches, options};
};

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
  EXPECT_THAT(kinds(step(24.1)), testing::Contains(EventKind::kReturned));
}

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
